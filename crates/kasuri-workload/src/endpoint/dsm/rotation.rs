//! Time sharing: which users have the processors.

/// Where the machine is between two slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A set of users runs.
    Runs,
    /// Its slice has ended then, and what it has begun comes to its end.
    Drains(u64),
    /// All nodes work on the switch; the slice had ended then.
    Switches(u64),
}

/// The turns of the sets of users.
#[derive(Debug)]
pub(super) struct Rotation {
    sets: u32,
    active: u32,
    state: State,
    /// The slice: what ends under another number has ended before.
    pub(super) slice: u32,
    pub(super) switches: u64,
    pub(super) switch_cycles: u64,
}

impl Rotation {
    /// So many sets, of which the first begins.
    pub(super) fn new(sets: u32) -> Self {
        Self { sets, active: 0, state: State::Runs, slice: 0, switches: 0, switch_cycles: 0 }
    }

    /// May users of this set run?
    pub(super) fn lets(&self, set: Option<u32>) -> bool {
        set.is_none_or(|set| set == self.active && self.state == State::Runs)
    }

    /// Is this the set that runs, or that comes to its end?
    pub(super) fn is_active(&self, set: Option<u32>) -> bool {
        set == Some(self.active)
    }

    pub(super) fn drains(&self) -> bool {
        matches!(self.state, State::Drains(_))
    }

    pub(super) fn runs(&self) -> bool {
        self.state == State::Runs
    }

    /// The slice ends.
    pub(super) fn end_slice(&mut self, now: u64) {
        self.state = State::Drains(now);
        self.slice += 1;
    }

    /// What was begun has come to its end.
    pub(super) fn drained(&mut self) {
        if let State::Drains(since) = self.state {
            self.state = State::Switches(since);
        }
    }

    /// The switch is done: the next set that has something to do has the processors.
    pub(super) fn switched(&mut self, now: u64, has_work: impl Fn(u32) -> bool) {
        if let State::Switches(since) = self.state {
            self.switches += 1;
            self.switch_cycles += now - since;
        }
        self.state = State::Runs;
        let next = (1..=self.sets).map(|step| (self.active + step) % self.sets).find(|&set| has_work(set));
        self.active = next.unwrap_or(self.active);
    }
}
