//! Shares of the switches' outputs: of the users that want an output, the one that has had least of it for its share.
//!
//! Self-clocked fair queueing (Golestani 1994), a flit at a time: when a flit begins to want an output it is due 1 / share after
//! its user's flit before, or after the output's clock where it has not wanted it; the least due goes, and the clock with it. A flit
//! that waits keeps its time.
//!
//! Touches switch allocation: an output requests for the user whose turn it is, and its winner is charged. Who takes what nobody has asked
//! for, on a prediction, is not charged.

use crate::record::vc_mask::VcMask;
use kasuri_model::router::Architecture;
use kasuri_model::scenario::Scenario;
use kasuri_network::routing::per_output::PerOutput;

/// Which user has which virtual channels, and what for.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    /// The first virtual channel, one past the last, and the part of an output.
    pub(crate) users: Vec<(u32, u32, f64)>,
    /// Virtual channels of one queue: where routers have a queue for each output, each of these has a user's virtual channels.
    pub(crate) each: u32,
}

impl Granted {
    /// What a scenario grants, if it divides outputs.
    pub(crate) fn of(scenario: &Scenario) -> Option<Self> {
        let users = scenario.users.as_ref().filter(|users| users.shares)?;
        let channels = scenario.channels_of_classes();
        let granted = users.users.iter().filter(|user| !user.classes.is_empty()).map(|user| {
            let ranges = channels[user.classes.clone()].as_flattened();
            let begin = ranges.iter().map(|range| range.begin).min().unwrap_or(0);
            let end = ranges.iter().map(|range| range.end).max().unwrap_or(0);
            (u32::from(begin), u32::from(end), user.share)
        });
        let (all, queued) = (scenario.router.virtual_channels, scenario.router.architecture != Architecture::InputQueued);
        let each = if queued { all / PerOutput::virtual_channels(&scenario.network, 1) } else { all };
        Some(Self { users: granted.collect(), each })
    }
}

impl Granted {
    /// A user's virtual channels, in all queues.
    fn mask<M: VcMask>(&self, begin: u32, end: u32) -> M {
        let queues = (0..M::BITS / self.each).map(|queue| queue * self.each);
        queues.fold(M::default(), |mask, first| mask.or(M::range(first + begin, first + end)))
    }
}

/// The clocks of all outputs.
pub(crate) struct Shares<M> {
    users: Vec<(M, f64)>,
    clock: Vec<f64>,
    /// Shape `[ports, users]`.
    accounts: Vec<Account>,
}

/// What a user has had of an output.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// When its flit before was due.
    last: f64,
    /// When the flit that waits is due.
    waiting: Option<f64>,
}

impl<M: VcMask> Shares<M> {
    pub(crate) fn new(granted: &Granted, ports: u32) -> Self {
        let users: Vec<(M, f64)> = granted.users.iter().map(|&(begin, end, share)| (granted.mask(begin, end), 1.0 / share)).collect();
        let accounts = vec![Account::default(); ports as usize * users.len()];
        Self { users, clock: vec![0.0; ports as usize], accounts }
    }

    /// Bytes for each port.
    pub(crate) fn bytes_of_port(granted: &Granted) -> usize {
        size_of::<f64>() + granted.users.len() * size_of::<Account>()
    }

    /// Of the virtual channels of an output that are ready, those of the user whose flit is due first.
    pub(crate) fn choose(&mut self, port: u32, ready: M) -> M {
        let clock = self.clock[port as usize];
        let accounts = &mut self.accounts[port as usize * self.users.len()..];
        let mut best = (f64::INFINITY, M::default());
        for (&(own, cost), account) in self.users.iter().zip(accounts) {
            let wanted = ready.and(own);
            if wanted.is_empty() {
                continue;
            }
            let due = *account.waiting.get_or_insert(account.last.max(clock) + cost);
            if due < best.0 {
                best = (due, wanted);
            }
        }
        best.1
    }

    /// A flit of this virtual channel has the output: one of those chosen or, where an output takes several at once or keeps a path through
    /// the switch, one more.
    pub(crate) fn charge(&mut self, port: u32, vc: u32) {
        let Some(user) = self.users.iter().position(|(own, _)| !own.and(M::bit(vc)).is_empty()) else { return };
        let (clock, cost) = (self.clock[port as usize], self.users[user].1);
        let account = &mut self.accounts[port as usize * self.users.len() + user];
        let due = account.waiting.take().unwrap_or(account.last.max(clock) + cost);
        account.last = due;
        self.clock[port as usize] = due;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::vc_mask::Word;

    type Mask = Word<u8, 2>;

    /// Grants of each user when both always want the output.
    fn grants(shares: [f64; 2], cycles: usize, wants: impl Fn(usize) -> Mask) -> [usize; 2] {
        let granted = Granted { users: vec![(0, 2, shares[0]), (2, 4, shares[1])], each: 4 };
        let mut shares = Shares::<Mask>::new(&granted, 1);
        let mut had = [0; 2];
        for cycle in 0..cycles {
            let chosen = shares.choose(0, wants(cycle));
            if !chosen.is_empty() {
                had[usize::from(chosen.first() >= 2)] += 1;
                shares.charge(0, chosen.first());
            }
        }
        had
    }

    #[test]
    fn who_contends_gets_his_share() {
        let both = |_| Mask::range(0, 4);
        assert_eq!(grants([1.0, 1.0], 1000, both), [500, 500]);
        let [three, one] = grants([3.0, 1.0], 1000, both);
        assert!((749..=751).contains(&three) && three + one == 1000, "{three} {one}");
    }

    /// An output that takes two flits at once charges both.
    #[test]
    fn every_flit_is_charged() {
        let granted = Granted { users: vec![(0, 2, 1.0), (2, 4, 1.0)], each: 4 };
        let mut shares = Shares::<Mask>::new(&granted, 1);
        let mut had = [0u32; 2];
        for _ in 0..1000 {
            let first = shares.choose(0, Mask::range(0, 4)).first();
            let user = usize::from(first >= 2);
            let flits = if user == 0 { 2 } else { 1 };
            (0..flits).for_each(|_| shares.charge(0, first));
            had[user] += flits;
        }
        assert!(had[0].abs_diff(had[1]) <= 2, "{had:?}");
    }

    /// What nobody else wants is not lost, and he who has been away gets no more than his share when he comes back.
    #[test]
    fn shares_are_neither_wasted_nor_saved_up() {
        assert_eq!(grants([1.0, 1.0], 1000, |_| Mask::range(0, 2)), [1000, 0]);
        let [first, second] = grants([1.0, 1.0], 1000, |cycle| if cycle < 500 { Mask::range(0, 2) } else { Mask::range(0, 4) });
        assert!((249..=251).contains(&second), "{first} {second}");
    }
}
