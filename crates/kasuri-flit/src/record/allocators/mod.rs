//! Allocators: which requests are granted, so that no row and no column is granted twice.
//!
//! For a switch allocator, rows are input ports and columns output ports; for a virtual-channel allocator, rows are input
//! virtual channels and columns output virtual channels. Rows and columns are addresses, so the requests of many routers may
//! stand in one call: a matching of separate routers is the union of their matchings.
//!
//! To add one: a file here that implements [`RouterAllocator`], a `mod` line, and its line in [`ALLOCATORS`]. iSLIP of one iteration
//! (which is separable output-first with round-robin arbiters) is built into the cycle, see `vc_allocation.rs`; its text here serves
//! more iterations and as the reference of the tests. [`Allocator`] is what the plain form of a router needs: no history but
//! round-robin pointers, and no priorities.

pub(crate) mod allocator;
mod islip;
mod loa;
pub(crate) mod masks;
mod maximum_size;
mod pim;
mod router;
mod select;
mod separable;
mod separable_input_first;
#[cfg(test)]
mod tests;
mod wavefront;

use allocator::{Allocator, AllocatorSpec, RouterAllocator};
use kasuri_model::router::{AllocatorParameters, Arbiter, ArbiterParameters};

/// By the iterations: an allocator for plain routers, `None` for the built-in one.
type BuildPlain = fn(u32) -> Option<PlainAllocator>;

/// An allocator of plain routers that is not iSLIP of one iteration.
pub(crate) enum PlainAllocator {
    /// Separable input-first, built into the cycle as well: see `vc_allocation.rs` and `layouts/plain/input_first.rs`.
    InputFirst,
    /// One that wants all requests at once.
    Other(Box<dyn Allocator>),
}

impl PlainAllocator {
    /// The same for requests at once.
    pub(crate) fn by_requests(self) -> Box<dyn Allocator> {
        match self {
            Self::InputFirst => Box::new(separable_input_first::SeparableInputFirst),
            Self::Other(allocator) => allocator,
        }
    }
}

/// A line of the table of allocators.
#[derive(Clone, Copy)]
pub struct AllocatorEntry {
    /// The name in the experiment file.
    pub name: &'static str,
    /// One line for `kasuri list allocators`.
    pub summary: &'static str,
    /// For routers in the plain layout, if it takes it.
    plain: Option<BuildPlain>,
    /// For one router in the full layout.
    general: fn(AllocatorSpec<'_>) -> Box<dyn RouterAllocator>,
    /// The same on masks, for these parameters.
    masks: fn(&AllocatorParameters) -> Option<masks::Rule>,
}

impl std::fmt::Debug for AllocatorEntry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AllocatorEntry").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All allocators.
pub static ALLOCATORS: &[AllocatorEntry] = &[
    AllocatorEntry {
        name: "islip",
        summary: "outputs grant, inputs accept, pointers move on accepted grants; `iterations` rounds (McKeown 1999)",
        plain: Some(|iterations| (iterations > 1).then(|| PlainAllocator::Other(Box::new(islip::Islip::new(iterations))))),
        general: |spec| {
            let iterations = spec.parameters.iterations();
            Box::new(router::ByPointers::new(islip::Islip::new(iterations), iterations == 1, spec.shape))
        },
        masks: |parameters| Some(masks::Rule::Islip(parameters.iterations())),
    },
    AllocatorEntry {
        name: "separable-input-first",
        summary: "each input picks one request, then each output one of those, by `arbiter` (Dally and Towles 2004, section 19.3)",
        plain: Some(|_| Some(PlainAllocator::InputFirst)),
        general: |spec| Box::new(separable::Separable::new(separable::First::Input, spec.parameters.arbiter(), spec.shape)),
        masks: |parameters| takes_turns(parameters).then_some(masks::Rule::InputFirst),
    },
    AllocatorEntry {
        name: "separable-output-first",
        summary: "each output picks one request, then each input one of those; with round-robin arbiters iSLIP of one iteration",
        plain: Some(|_| None),
        general: |spec| Box::new(separable::Separable::new(separable::First::Output, spec.parameters.arbiter(), spec.shape)),
        masks: |parameters| takes_turns(parameters).then_some(masks::Rule::Islip(1)),
    },
    AllocatorEntry {
        name: "wavefront",
        summary: "diagonal after diagonal, beginning one further each time (Tamir and Chi 1993)",
        plain: None,
        general: |spec| Box::new(wavefront::Wavefront::new(false, spec.shape)),
        masks: |_| None,
    },
    AllocatorEntry {
        name: "round-robin-wavefront",
        summary: "wavefront that begins behind the first diagonal that granted last time",
        plain: None,
        general: |spec| Box::new(wavefront::Wavefront::new(true, spec.shape)),
        masks: |_| None,
    },
    AllocatorEntry {
        name: "maximum-size",
        summary: "a matching of the greatest size, by augmenting paths (Dally and Towles 2004, section 19.2)",
        plain: None,
        general: |spec| Box::new(maximum_size::MaximumSize::new(spec.shape)),
        masks: |_| None,
    },
    AllocatorEntry {
        name: "pim",
        summary: "random grants, random acceptances, as `draw` says; `iterations` rounds (Anderson, Owicki, Saxe and Thacker 1993)",
        plain: None,
        general: |spec| Box::new(pim::Pim::new(spec)),
        masks: |_| None,
    },
    AllocatorEntry {
        name: "loa",
        summary: "each input asks for the output that the fewest want (lonely output allocator, Gupta 1996)",
        plain: None,
        general: |spec| Box::new(loa::Loa::new(spec.shape)),
        masks: |_| None,
    },
    AllocatorEntry {
        name: "select",
        summary: "iSLIP in which priorities go before pointers; `iterations` rounds (Dally and Towles 2004, section 19.3)",
        plain: None,
        general: |spec| Box::new(select::Select::new(spec.parameters.iterations(), spec.shape)),
        masks: |_| None,
    },
];

/// The built-in allocator as one of its own, for routers that look at requests before it does.
pub(crate) fn single() -> Box<dyn Allocator> {
    Box::new(islip::Islip::new(1))
}

fn entry(parameters: &AllocatorParameters) -> &'static AllocatorEntry {
    ALLOCATORS.iter().find(|entry| entry.name == parameters.name()).expect("the configuration checks the allocator's name")
}

/// The allocator of these parameters for routers in the plain layout, `None` for the built-in one, and where only the full layout
/// knows it. Names are checked before a scenario exists.
pub(crate) fn build(parameters: &AllocatorParameters) -> Option<PlainAllocator> {
    entry(parameters).plain.and_then(|build| build(parameters.iterations()))
}

/// The allocator of one router in the full layout.
pub(crate) fn build_full(spec: AllocatorSpec<'_>) -> Box<dyn RouterAllocator> {
    (entry(spec.parameters).general)(spec)
}

/// Are its arbiters round-robin ones?
fn takes_turns(parameters: &AllocatorParameters) -> bool {
    parameters.arbiter() == ArbiterParameters::Single(Arbiter::RoundRobin)
}

/// The rule by which requests that all stand alike may be allocated on masks instead.
pub(crate) fn rule_on_masks(parameters: &AllocatorParameters) -> Option<masks::Rule> {
    (entry(parameters).masks)(parameters)
}
