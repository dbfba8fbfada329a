//! What routers that predict keep beside their ordinary state: the predictor, which places of the switch are taken, which
//! connections are held, and the counters.

use crate::step::Route;
use kasuri_model::engine::{EngineError, Prediction};
use kasuri_model::id::ChannelId;
use kasuri_model::memory::Column;
use kasuri_model::network::{Endpoint, Network};
use kasuri_model::predictor::hint::Hint;
use kasuri_model::predictor::{self, Predictor};
use kasuri_model::router::{OnMiss, PredictorMatch};
use kasuri_model::scenario::Scenario;

/// Added to cycles, so that the place of a flit that passes on before its end has arrived is no negative number.
const BIAS: u64 = 256;

/// Cycles that [`Slots`] looks back.
const REACH: u64 = 128;

/// The unit of all routers of a simulation.
pub(crate) struct PredictionUnit<'n> {
    pub(crate) predictor: Box<dyn Predictor>,
    /// Does any output that the routing would accept do?
    pub(crate) any_up: bool,
    pub(crate) on_miss: OnMiss,
    pub(crate) hint: Option<Hint<'n>>,
    /// By how many cycles a flit that passes on is ahead of one that wins the switch in the cycle of its arrival.
    pub(crate) advance: u16,
    /// Cycles from an arrival until a wrong prediction is found out.
    pub(crate) blind_cycles: u64,
    /// Places of each output port and of each input port, by the cycle of the switch grant that they correspond to.
    outputs: Column<Slots>,
    inputs: Column<Slots>,
    /// By output slot: the place of the last flit, and 0 before any.
    last_sent: Column<u64>,
    /// Flits in a place that was taken, and flits before an earlier one of their virtual channel: none, or the engine is wrong.
    collisions: u64,
    overtakings: u64,
    /// By input slot: is the packet that enters connected with its output by a prediction?
    pub(crate) connected: Column<bool>,
    /// By input slot: the wrongly connected output port, and until when.
    pub(crate) wrong: Column<(u32, u64)>,
    /// The arrivals of a cycle, and what sorts them.
    pub(crate) arrivals: Vec<u32>,
    pub(crate) sorter: Sorter,
    /// By input slot: the routing's answer for the head there, if a guess was held against it. It is asked once where it cannot change
    /// its mind.
    pub(crate) found: Column<Option<Route>>,
    pub(crate) routes_stay: bool,
    pub(crate) counters: Prediction,
}

/// The latest places of a port that are taken, one bit a cycle.
#[derive(Clone, Copy, Debug, Default)]
struct Slots {
    last: u64,
    taken: u128,
}

impl Slots {
    #[inline(always)]
    fn is_free(self, place: u64) -> bool {
        place > self.last || self.last - place < REACH && self.taken >> (self.last - place) & 1 == 0
    }

    /// Takes a place. Was it free?
    #[inline(always)]
    fn take(&mut self, place: u64) -> bool {
        if place <= self.last {
            debug_assert!(self.last - place < REACH);
            let bit = 1 << (self.last - place);
            let was_free = self.taken & bit == 0;
            self.taken |= bit;
            return was_free;
        }
        let ahead = place - self.last;
        self.taken = if ahead < REACH { self.taken << ahead | 1 } else { 1 };
        self.last = place;
        true
    }
}

/// Sorts addresses of a tile, each of which occurs once: a bit for each, and a bit for each word of those that has one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sorter {
    words: Vec<u64>,
    used: Vec<u64>,
}

impl Sorter {
    /// Adds addresses from `first` to `first` + `span` - 1 to a list in ascending order.
    pub(crate) fn sort_into(&mut self, addresses: &[u32], first: u32, span: usize, sorted: &mut Vec<u32>) {
        let words = span.div_ceil(64);
        if self.words.len() < words {
            self.words.resize(words, 0);
            self.used.resize(words.div_ceil(64), 0);
        }
        for &address in addresses {
            let word = (address - first) >> 6;
            self.words[word as usize] |= 1 << ((address - first) & 63);
            self.used[word as usize >> 6] |= 1 << (word & 63);
        }
        for (group, used) in self.used.iter_mut().enumerate() {
            for place in bits(std::mem::take(used)) {
                let word = group as u32 * 64 + place;
                let addresses = bits(std::mem::take(&mut self.words[word as usize]));
                sorted.extend(addresses.map(|bit| first + word * 64 + bit));
            }
        }
    }
}

/// The bits of a word that are set, from the lowest.
fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (word != 0).then(|| word.trailing_zeros());
        word &= word.wrapping_sub(1);
        lowest
    })
}

/// By how many cycles a flit that passes on is ahead of one that wins the switch in the cycle of its arrival: it skips the grant
/// and the serialisation, and does not wait for its own end.
pub(crate) fn advance(scenario: &Scenario) -> u32 {
    1 + scenario.pipeline.serialisation_cycles + scenario.pipeline.link_cycles
}

/// Refuses pipelines in which a flit cannot pass on in one cycle.
fn check_pipeline(scenario: &Scenario) -> Result<(), EngineError> {
    let pipeline = &scenario.pipeline;
    let wrong = |problem: String| Err(EngineError::Option { key: "router.pipeline".to_owned(), problem });
    if pipeline.traversal_cycles == pipeline.serialisation_cycles || pipeline.switch_extra_cycles > 0 {
        let problem = "a router with a predictor needs a switch allocation (SA or VSA) of one cycle and ST in cycles of its own";
        return wrong(problem.to_owned());
    }
    if u64::from(advance(scenario)) >= REACH {
        let problem = format!("Ser and LT take {} cycles; with a predictor together at most {}", advance(scenario) - 1, REACH - 2);
        return wrong(problem);
    }
    let network = &scenario.network;
    let shortest = (0..network.channel_count()).map(|channel| network.link(ChannelId(channel)).latency).min().unwrap_or(0);
    if pipeline.link_cycles > shortest {
        let problem = format!(
            "LT takes {} cycles, but a channel's latency is {shortest}; link traversal is a part of network.channel_latency and \
             network.terminal_channel_latency",
            pipeline.link_cycles
        );
        return wrong(problem);
    }
    Ok(())
}

/// The predictor of a scenario that has one, and its hint bits.
fn parts(scenario: &Scenario) -> Result<(Box<dyn Predictor>, Option<Hint<'_>>), EngineError> {
    check_pipeline(scenario)?;
    let wrong = |key: &'static str| move |problem: String| EngineError::Option { key: format!("router.{key}"), problem };
    let (network, router) = (&scenario.network, &scenario.router);
    let predictor = predictor::build(&router.predictor, network).map_err(wrong("predictor"))?;
    let hint = if router.on_miss == OnMiss::Hint { Some(Hint::of(network).map_err(wrong("on_miss"))?) } else { None };
    Ok((predictor, hint))
}

/// Checks before a run that its routers can predict as `[router]` says, if at all.
///
/// # Errors
/// Predictor, hint bits or pipeline do not fit each other or the network.
pub fn check_prediction(scenario: &Scenario) -> Result<(), EngineError> {
    if scenario.router.predictor == predictor::NONE { Ok(()) } else { parts(scenario).map(|_| ()) }
}

impl<'n> PredictionUnit<'n> {
    /// The unit that a scenario asks for, if any; `ports` are the routers' port addresses, of `stride` slots each.
    ///
    /// # Errors
    /// Predictor, hint bits or pipeline do not fit.
    pub(crate) fn new(scenario: &'n Scenario, ports: u32, stride: u32) -> Result<Option<Box<Self>>, EngineError> {
        let router = &scenario.router;
        if router.predictor == predictor::NONE {
            return Ok(None);
        }
        let network: &'n Network = &scenario.network;
        let (predictor, hint) = parts(scenario)?;
        let (ports, slots) = (ports as usize, (ports * stride) as usize);
        Ok(Some(Box::new(Self {
            predictor,
            any_up: router.predictor_match == PredictorMatch::AnyUp,
            on_miss: router.on_miss,
            advance: advance(scenario) as u16,
            blind_cycles: u64::from(scenario.pipeline.computation_cycles.max(1)),
            outputs: Column::filled(ports, Slots::default()),
            inputs: Column::filled(ports, Slots::default()),
            last_sent: Column::filled(slots, 0),
            collisions: 0,
            overtakings: 0,
            connected: Column::filled(slots, false),
            wrong: Column::filled(slots, (0, 0)),
            arrivals: Vec::new(),
            sorter: Sorter::default(),
            found: Column::filled(slots, None),
            routes_stay: !scenario.routing.observes_congestion(),
            counters: Self::no_counts(network, hint.as_ref()),
            hint,
        })))
    }

    fn no_counts(network: &Network, hint: Option<&Hint<'_>>) -> Prediction {
        Prediction {
            hint_bits: hint.map_or(0, Hint::bits),
            by_channel: vec![[0; 3]; network.channel_count() as usize],
            ..Prediction::default()
        }
    }

    /// Throws the counts away.
    pub(crate) fn clear(&mut self, network: &Network) {
        self.counters = Self::no_counts(network, self.hint.as_ref());
    }

    /// The place that a flit takes which passes on in cycle `now`.
    #[inline(always)]
    fn place(&self, now: u64) -> u64 {
        now + BIAS - u64::from(self.advance)
    }

    /// May a flit that arrives now pass from an input port to an output port: does no other one cross there?
    #[inline(always)]
    pub(crate) fn is_open(&self, input_port: u32, port: u32, now: u64) -> bool {
        self.inputs[input_port].is_free(self.place(now)) && self.outputs[port].is_free(self.place(now))
    }

    /// Would a flit that passes on now stay behind those sent on this virtual channel before?
    #[inline(always)]
    pub(crate) fn keeps_order(&self, output: u32, now: u64) -> bool {
        self.last_sent[output] < self.place(now)
    }

    /// A flit passes on, or a wrong copy of one crosses.
    #[inline(always)]
    pub(crate) fn take_place(&mut self, input_port: u32, port: u32, now: u64) {
        self.take_both(input_port, port, self.place(now));
    }

    #[inline(always)]
    fn take_both(&mut self, input_port: u32, port: u32, place: u64) {
        let were_free = self.inputs[input_port].take(place) & self.outputs[port].take(place);
        self.collisions += u64::from(!were_free);
    }

    /// A flit on a virtual channel has a later place than the one before it.
    #[inline(always)]
    fn note_sent(&mut self, output: u32, place: u64) {
        self.overtakings += u64::from(self.last_sent[output] >= place);
        self.last_sent[output] = place;
    }

    /// What should never happen, of everything since the beginning: two flits in one place of the switch, and a flit that left
    /// before another that was ahead of it.
    pub(crate) fn wrongs(&self) -> Option<String> {
        let (collisions, overtakings) = (self.collisions, self.overtakings);
        let found = || format!("predictions: {collisions} flits crossed where another did, {overtakings} overtook another");
        (collisions + overtakings > 0).then(found)
    }

    /// A flit that passes on is the last one of its virtual channel.
    #[inline(always)]
    pub(crate) fn note_passed(&mut self, output: u32, now: u64) {
        self.note_sent(output, self.place(now));
    }

    /// A flit wins the switch in the ordinary way.
    #[inline(always)]
    pub(crate) fn note_grant(&mut self, input_port: u32, port: u32, output: u32, now: u64) {
        self.take_both(input_port, port, now + BIAS);
        self.note_sent(output, now + BIAS);
    }

    /// A head's route has become known. Measured packets are counted by the channel they came by.
    #[inline(always)]
    pub(crate) fn note_head(&mut self, network: &Network, router: u32, input: u16, output: u16, counted: bool) {
        let router = kasuri_model::id::RouterId(router);
        self.predictor.learn(network.port_index(router, input), output);
        if counted {
            self.counters.switches += 1;
            self.count_by_channel(network, router, input, 0);
        }
    }

    /// Counts in one of the columns of [`Prediction::by_channel`].
    #[inline(always)]
    pub(crate) fn count_by_channel(&mut self, network: &Network, router: kasuri_model::id::RouterId, input: u16, column: usize) {
        let channel = network.input_channel(router, input).expect("a flit came in by it");
        self.counters.by_channel[channel.index()][column] += 1;
    }
}

/// Does a channel leave a router?
pub(crate) fn leaves_router(network: &Network, channel: ChannelId) -> bool {
    matches!(network.source(channel), Endpoint::Router(..))
}

#[cfg(test)]
mod tests {
    use super::{Slots, Sorter};

    #[test]
    fn addresses_are_sorted_whatever_their_order() {
        let mut sorter = Sorter::default();
        for (count, factor) in [(0, 1), (1, 5), (700, 4093), (5000, 77)] {
            let addresses: Vec<u32> = (0..count).map(|number| 32_768 + number * factor % 16_384).collect();
            let mut expected = addresses.clone();
            expected.sort_unstable();
            let mut sorted = Vec::new();
            sorter.sort_into(&addresses, 32_768, 16_384, &mut sorted);
            assert_eq!(sorted, expected);
        }
    }

    #[test]
    fn slots_remember_the_last_places() {
        let mut slots = Slots::default();
        assert!(slots.is_free(300));
        slots.take(300);
        slots.take(302);
        slots.take(301);
        assert!((300..=302).all(|place| !slots.is_free(place)));
        assert!(slots.is_free(299) && slots.is_free(303));
        slots.take(430);
        assert!(!slots.is_free(302), "too long ago to know, so taken");
        assert!(!slots.is_free(430) && slots.is_free(303) && slots.is_free(429));
    }
}
