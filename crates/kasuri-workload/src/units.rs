//! The physical units behind flits and cycles.

/// What flits and cycles are in bytes and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Units {
    /// Bytes of a flit.
    pub flit_bytes: Option<u32>,
    /// Nanoseconds of a cycle.
    pub cycle_ns: Option<f64>,
}

impl Units {
    /// Flits that hold this many bytes, at least 1; `None` if flits have no size.
    pub fn flits(&self, bytes: u64) -> Option<u64> {
        self.flit_bytes.map(|size| bytes.div_ceil(u64::from(size)).max(1))
    }

    /// Cycles that this many nanoseconds last; `None` if cycles have no length.
    pub fn cycles(&self, ns: f64) -> Option<f64> {
        self.cycle_ns.map(|cycle| ns / cycle)
    }
}
