//! What routers that predict keep beside their ordinary state: the predictor, which places of the switch are taken, which
//! connections are held, and the counters.
//!
//! Touches arrivals (a flit that is predicted rightly passes on at once, see `passing`), routing (the answer that a guess
//! was held against is used again) and traversal (which notes the places of the switch that are taken).

use crate::record::clock::Clock;
use crate::record::marks::NONE;
use crate::state::copies::Copies;
use crate::state::routing::Route;
use crate::state::share::Share;
use kasuri_model::engine::Prediction;
use kasuri_model::refusal::Refusal;
use kasuri_model::router::{ForwardCopies, OnMiss, PredictorMatch, RouterParameters};
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{ChannelId, Port, RouterId};
use kasuri_network::memory::Column;
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::predictor::direction::{self, Directions};
use kasuri_network::predictor::hint::Hint;
use kasuri_network::predictor::{self, Predictor};
use kasuri_network::routing::{Candidate, VirtualChannels};

/// Added to cycles, so that the place of a flit that passes on before its end has arrived is no negative number.
const BIAS: u64 = 256;

/// Cycles that [`Places`] look back, in one word and in two.
const WORD: u64 = 64;
const REACH: u64 = 128;

/// Flags of an input slot: the packet that enters is connected with its output by a prediction; it is measured; it has been guessed
/// wrongly; the routing's answer for it is known.
pub(crate) const CONNECTED: u8 = 1;
pub(crate) const COUNTED: u8 = 2;
pub(crate) const WRONG: u8 = 4;
pub(crate) const FOUND: u8 = 8;
/// Something has been guessed for it, and it is measured.
pub(crate) const TRIED: u8 = 16;

/// Bytes of all columns for each slot of a router, those by port among them; and of one more column of places.
const SLOT_BYTES: usize = 64;
const PLACES_BYTES: usize = 24;

/// The unit of all routers of a tile.
pub(crate) struct PredictionUnit<'n> {
    pub(crate) predictor: Box<dyn Predictor>,
    pub(crate) rules: Rules,
    pub(crate) hint: Option<Hint<'n>>,
    taken: Taken,
    pub(crate) input_ports: Column<InputPort>,
    /// By output slot: the place of the last flit, and 0 before any.
    last_sent: Column<u64>,
    /// None, or the engine is wrong.
    wrongs: Wrongs,
    /// By input slot: [`CONNECTED`] and the others.
    pub(crate) flags: Column<u8>,
    /// By input slot, where flagged.
    pub(crate) wrong: Column<WrongPath>,
    /// Wrong copies that have left.
    pub(crate) copies: Copies,
    pub(crate) sorting: Sorting,
    /// By input slot, where flagged: the routing's answer for the head there, which a guess was held against. It is asked once where
    /// it cannot change its mind.
    found: Column<Found>,
    pub(crate) counters: Prediction,
    /// Attempts and hits by the case of [`Directions`]; of networks without levels in one level, and not told.
    cases: Vec<[u64; 2]>,
    /// When the short counts of the input ports were last added to those of channels.
    settled: u64,
}

/// Which places are taken, of what flits share one after the other.
struct Taken {
    /// Of each output and of each input of the switches, by the step of the switch grant that they correspond to.
    outputs: Places,
    inputs: Places,
    /// Of each channel behind an output port, by the cycle in which a flit is sent; where flits wait for it behind the switch, so that the
    /// places of the switch do not tell.
    channels: Option<Places>,
}

/// The arrivals of a cycle that may pass on and those that do not, and what tells them apart; memory to use. And the input and output slots
/// of express packets whose tails have passed in this cycle: like those of tails that win the switch they are free at its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sorting {
    pub(crate) possible: Vec<u32>,
    pub(crate) ordinary: Vec<u32>,
    pub(crate) ended: Vec<(u32, u32)>,
    pub(crate) sorter: Sorter,
}

/// What should never happen: two flits in one place of the switch, and a flit that left before another that was ahead of it.
#[derive(Clone, Copy, Debug, Default)]
struct Wrongs {
    collisions: u64,
    overtakings: u64,
}

/// How routers act on predictions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Does any output that the routing would accept do?
    pub(crate) any_up: bool,
    pub(crate) on_miss: OnMiss,
    /// By how many cycles a flit that passes on is ahead of one that wins the switch in the cycle of its arrival.
    pub(crate) advance: u16,
    /// Of these, the steps of serialisation, and the cycles by which its front is ahead of its end.
    serialisation: u16,
    front: u16,
    /// Cycles from an arrival until a wrong prediction is found out.
    pub(crate) blind_cycles: u64,
    /// Do packets go before all that wait, and nothing is tried for others?
    pub(crate) is_express: bool,
    /// Is a routing asked once only, since it cannot change its mind?
    pub(crate) routes_stay: bool,
}

/// The output slot that a wrong guess has connected, and until which cycle (modulo 2^32).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WrongPath {
    pub(crate) output: u32,
    pub(crate) until: u32,
}

impl WrongPath {
    /// Does it still lead there?
    #[inline(always)]
    pub(crate) fn lasts(self, now: u64) -> bool {
        self.until.wrapping_sub(now as u32).cast_signed() > 0
    }
}

/// When a flit that passes on in a cycle crosses a router in the full layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Early {
    /// The step in which it begins to cross.
    pub(crate) step: u64,
    /// Its place in the switch.
    pub(crate) place: u64,
    /// The cycle in which it is sent.
    pub(crate) departure: u64,
}

impl Early {
    /// Its place among those sent on its virtual channel.
    pub(crate) fn order(self) -> u64 {
        self.departure + BIAS
    }
}

/// A [`Route`] in few bytes: a range of virtual channels by its first and its last.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    state: u32,
    port: Port,
    first: u8,
    last: u8,
}

/// The places of ports that are taken. As little as the pipeline needs is kept of each, so that a small network's lie in the
/// fastest cache.
#[derive(Clone, Debug)]
struct Places {
    /// The latest. A flit that passes on is at most `advance` places behind it: by one, whoever is not later is too late.
    last: Column<u64>,
    /// The places before it, one bit a cycle from the lowest: empty if they are not asked for.
    taken: Column<u64>,
    /// The bits beyond the first word: empty if they are not asked for.
    older: Column<u64>,
}

impl Places {
    fn new(ports: usize, advance: u32) -> Self {
        let if_asked = |asked: bool| Column::filled(if asked { ports } else { 0 }, 0);
        Self { last: if_asked(true), taken: if_asked(advance > 1), older: if_asked(u64::from(advance) >= WORD) }
    }

    #[inline(always)]
    fn is_free(&self, port: u32, place: u64) -> bool {
        place > self.last[port] || !self.taken.is_empty() && self.is_free_before(port, place)
    }

    /// Beyond what is remembered nothing is known to be free.
    fn is_free_before(&self, port: u32, place: u64) -> bool {
        let back = self.last[port] - place;
        let word = if back < WORD { &self.taken } else { &self.older };
        back < REACH && !word.is_empty() && word[port] >> (back % WORD) & 1 == 0
    }

    /// Takes a place. Was it free?
    #[inline(always)]
    fn take(&mut self, port: u32, place: u64) -> bool {
        if !self.taken.is_empty() {
            return self.take_among(port, place);
        }
        let was_free = place > self.last[port];
        self.last[port] = place;
        was_free
    }

    /// The same where places before the latest one may be free.
    fn take_among(&mut self, port: u32, place: u64) -> bool {
        let older = if self.older.is_empty() { 0 } else { self.older[port] };
        let mut taken = u128::from(older) << WORD | u128::from(self.taken[port]);
        let last = self.last[port];
        let mut was_free = true;
        if place <= last {
            debug_assert!(last - place < REACH);
            let bit = 1 << (last - place);
            was_free = taken & bit == 0;
            taken |= bit;
        } else {
            taken = if place - last < REACH { taken << (place - last) | 1 } else { 1 };
            self.last[port] = place;
        }
        self.taken[port] = taken as u64;
        if !self.older.is_empty() {
            self.older[port] = (taken >> WORD) as u64;
        }
        was_free
    }
}

/// Where a port address of an input stands in the network, and what was measured there. All that a head touches lies together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputPort {
    /// The first port address of the router.
    pub(crate) base: u32,
    /// The predictor's number of it.
    pub(crate) index: u32,
    /// The channel that arrives there; [`NONE`] where none does.
    pub(crate) channel: u32,
    /// Heads that were routed, predictions, and right ones, since the counts were settled.
    pub(crate) counts: [u32; 3],
    /// The case of heads from there that go down, and what is added to it of those that leave by the output port of this number.
    case: u16,
    leads_up: u16,
}

/// The input ports of a tile's routers, by address; `router_port` has each router's first.
fn input_ports(network: &Network, share: &Share, router_port: &[u32], ports: usize) -> Column<InputPort> {
    let directions = Directions::of(network);
    let mut column = vec![InputPort { base: NONE, index: NONE, channel: NONE, counts: [0; 3], case: 0, leads_up: 0 }; ports];
    for (&router, &base) in share.routers.iter().zip(router_port) {
        for port in 0..network.port_count(RouterId(router)) {
            let channel = network.input_channel(RouterId(router), port as Port).map_or(NONE, |channel| channel.0);
            let index = network.port_index(RouterId(router), port as Port) as u32;
            let case = |directions: &Directions| directions.case_of_input(index as usize);
            let leads_up = |directions: &Directions| u16::from(directions.leads_up(index as usize));
            let (case, leads_up) = (directions.as_ref().map_or(0, case), directions.as_ref().map_or(0, leads_up));
            column[(base + port) as usize] = InputPort { base, index, channel, counts: [0; 3], case, leads_up };
        }
    }
    column.into()
}

/// The addresses of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) first: u32,
    pub(crate) span: usize,
}

/// Sorts addresses of a block, each of which occurs once: a bit for each, and a bit for each word of those that has one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sorter {
    words: Vec<u64>,
    used: Vec<u64>,
}

impl Sorter {
    /// Adds the addresses of which something is true to a list in ascending order, and puts the others as they come to the front of
    /// another. Returns how many those are.
    #[inline(always)]
    pub(crate) fn part(
        &mut self,
        addresses: &[u32],
        of: Addresses,
        is_true: impl Fn(u32) -> bool,
        sorted: &mut Vec<u32>,
        others: &mut Vec<u32>,
    ) -> usize {
        let words = of.span.div_ceil(64);
        if self.words.len() < words {
            self.words.resize(words, 0);
            self.used.resize(words.div_ceil(64), 0);
        }
        if others.len() < addresses.len() {
            others.resize(of.span, 0);
        }
        let mut count = 0;
        for &address in addresses {
            let bit = is_true(address);
            let word = (address - of.first) >> 6;
            self.words[word as usize] |= u64::from(bit) << ((address - of.first) & 63);
            self.used[word as usize >> 6] |= u64::from(bit) << (word & 63);
            others[count] = address;
            count += usize::from(!bit);
        }
        for (group, used) in self.used.iter_mut().enumerate() {
            for place in bits(std::mem::take(used)) {
                let word = group as u32 * 64 + place;
                append_bits(std::mem::take(&mut self.words[word as usize]), of.first + word * 64, sorted);
            }
        }
        count
    }
}

/// Appends the numbers of the bits that are set, from the lowest, each added to `first`. Four at a time whether or not there are as
/// many: nobody can foretell how many there are, and a branch that is foretold wrongly costs more.
#[inline(always)]
fn append_bits(mut word: u64, first: u32, sorted: &mut Vec<u32>) {
    let end = sorted.len() + word.count_ones() as usize;
    while word != 0 {
        let four: [u32; 4] = std::array::from_fn(|_| {
            let lowest = word.trailing_zeros();
            word &= word.wrapping_sub(1);
            first + lowest
        });
        sorted.extend_from_slice(&four);
    }
    sorted.truncate(end);
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
    1 + scenario.pipeline.serialisation_cycles + front(scenario)
}

/// Cycles by which the front of a flit that passes on is ahead of its end.
fn front(scenario: &Scenario) -> u32 {
    scenario.pipeline.front_cycles(scenario.router.hit_saves)
}

/// The same in steps of the router, of which it may take several in a cycle: so far back lie the places of flits that pass on.
fn reach(scenario: &Scenario) -> u32 {
    let pipeline = &scenario.pipeline;
    1 + pipeline.serialisation_cycles + (f64::from(front(scenario)) * scenario.router.internal_speedup).ceil() as u32
}

/// Cycles for which flits are copied to a wrong output. Those behind the head are before route computation has ended, unless heads alone
/// leave.
fn blind_cycles(scenario: &Scenario) -> u64 {
    let RouterParameters { on_miss, forward_copies, .. } = scenario.router;
    let head_alone = on_miss == OnMiss::Forward && forward_copies.unwrap_or_default() == ForwardCopies::Head;
    if head_alone { 0 } else { scenario.pipeline.computation_cycles.max(1).into() }
}

/// Nothing is counted by case yet.
fn no_cases(network: &Network) -> Vec<[u64; 2]> {
    vec![[0; 2]; direction::CASES * Directions::of(network).map_or(1, |directions| directions.levels())]
}

/// May flits that have crossed the switch wait for their channel?
fn waits_behind_switch(router: &RouterParameters) -> bool {
    ["internal_speedup", "output_speedup", "long_stages"].into_iter().any(|key| router.extends(key))
}

/// Bytes of all columns for so many ports and slots.
pub(crate) fn bytes(router: &RouterParameters, ports: usize, slots: usize) -> usize {
    if router.predictor == predictor::NONE {
        return 0;
    }
    // Two bytes for each line of a predictor's table beyond those that a slot's bytes hold.
    let lines = 2 * router.predictor_entries.unwrap_or(0) as usize;
    let of_switch = (router.input_speedup + router.output_speedup - 2) as usize + usize::from(waits_behind_switch(router));
    slots * SLOT_BYTES + ports * (of_switch * PLACES_BYTES + lines)
}

/// What is refused of pipelines in which a flit cannot pass on in one cycle.
fn check_pipeline(scenario: &Scenario) -> Result<(), Refusal> {
    let pipeline = &scenario.pipeline;
    let wrong = |reason: String| Err(Refusal::new("router.pipeline", reason));
    if pipeline.traversal_cycles == pipeline.serialisation_cycles || pipeline.switch_extra_cycles > 0 {
        let reason = "a router with a predictor needs a switch allocation (SA or VSA) of one cycle and ST in cycles of its own";
        return wrong(reason.to_owned());
    }
    if u64::from(reach(scenario)) >= REACH {
        let steps = if scenario.router.internal_speedup > 1.0 { "steps of the router" } else { "cycles" };
        return wrong(format!("Ser and LT take {} {steps}; with a predictor together at most {}", reach(scenario) - 1, REACH - 2));
    }
    let network = &scenario.network;
    let shortest = (0..network.channel_count()).map(|channel| network.link(ChannelId(channel)).latency).min().unwrap_or(0);
    if pipeline.link_cycles > shortest {
        return wrong(format!(
            "LT takes {} cycles, but a channel's latency is {shortest}; link traversal is a part of network.channel_latency and \
             network.terminal_channel_latency",
            pipeline.link_cycles
        ));
    }
    Ok(())
}

/// The predictor of a scenario that has one.
fn predictor_of(scenario: &Scenario) -> Result<Box<dyn Predictor>, Refusal> {
    scenario.router.build_predictor(&scenario.network).map_err(|reason| Refusal::new("router.predictor", reason))
}

/// The hint bits of a scenario with a predictor, if there are some.
fn hint_of(scenario: &Scenario) -> Result<Option<Hint<'_>>, Refusal> {
    if scenario.router.on_miss != OnMiss::Hint {
        return Ok(None);
    }
    Hint::of(&scenario.network).map(Some).map_err(|reason| Refusal::new("router.on_miss", reason))
}

/// All that is refused of how routers predict: predictor, hint bits or pipeline do not fit each other or the network.
pub(crate) fn refusals(scenario: &Scenario) -> Vec<Refusal> {
    if scenario.router.predictor == predictor::NONE {
        return Vec::new();
    }
    let checks = [check_pipeline(scenario), predictor_of(scenario).map(|_| ()), hint_of(scenario).map(|_| ())];
    checks.into_iter().filter_map(Result::err).collect()
}

impl<'n> PredictionUnit<'n> {
    /// The unit that a scenario asks for, if any, for the routers of a tile; `ports` are their port addresses, of `stride` slots each, and
    /// `router_port` the first of each router.
    ///
    /// # Errors
    /// Predictor or hint bits do not fit: [`refusals`] has said so.
    pub(crate) fn new(
        scenario: &'n Scenario,
        share: &Share,
        router_port: &[u32],
        ports: u32,
        stride: u32,
    ) -> Result<Option<Box<Self>>, Refusal> {
        let router = &scenario.router;
        if router.predictor == predictor::NONE {
            return Ok(None);
        }
        let network: &'n Network = &scenario.network;
        let (predictor, hint) = (predictor_of(scenario)?, hint_of(scenario)?);
        let is_express = predictor.is_express();
        let (ports, slots) = (ports as usize, (ports * stride) as usize);
        Ok(Some(Box::new(Self {
            predictor,
            rules: Rules {
                any_up: router.predictor_match == PredictorMatch::AnyUp,
                on_miss: router.on_miss,
                advance: advance(scenario) as u16,
                serialisation: scenario.pipeline.serialisation_cycles as u16,
                front: front(scenario) as u16,
                blind_cycles: blind_cycles(scenario),
                is_express,
                routes_stay: !scenario.routing.facts().observes_congestion,
            },
            taken: Taken {
                outputs: Places::new(ports * router.output_speedup as usize, reach(scenario)),
                inputs: Places::new(ports * router.input_speedup as usize, reach(scenario)),
                channels: waits_behind_switch(router).then(|| Places::new(ports, reach(scenario))),
            },
            input_ports: input_ports(network, share, router_port, ports),
            last_sent: Column::filled(slots, 0),
            wrongs: Wrongs::default(),
            flags: Column::filled(slots, 0),
            wrong: Column::filled(slots, WrongPath::default()),
            copies: Copies::new(scenario, share, router_port, ports, if router.on_miss == OnMiss::Forward { slots } else { 0 }),
            sorting: Sorting::default(),
            found: Column::filled(slots, Found::default()),
            counters: Self::no_counts(network, hint.as_ref()),
            cases: no_cases(network),
            settled: 0,
            hint,
        })))
    }

    fn no_counts(network: &Network, hint: Option<&Hint<'_>>) -> Prediction {
        Prediction {
            hint_bits: hint.map_or(0, Hint::bits),
            by_channel: vec![[0; 3]; network.channel_count() as usize],
            by_level: vec![[[0; 2]; 3]; Directions::of(network).map_or(0, |directions| directions.levels())],
            ..Prediction::default()
        }
    }

    /// Throws the counts away.
    pub(crate) fn clear(&mut self, network: &Network) {
        self.counters = Self::no_counts(network, self.hint.as_ref());
        self.cases.fill([0; 2]);
        self.input_ports.iter_mut().for_each(|port| port.counts = [0; 3]);
    }

    /// Adds the input ports' short counts to those of channels, before they can overflow: a port has at most one head in a cycle.
    pub(crate) fn settle(&mut self, now: u64) {
        if now - self.settled >= 1 << 31 {
            self.counters = self.all_counts();
            self.input_ports.iter_mut().for_each(|port| port.counts = [0; 3]);
            self.settled = now;
        }
    }

    /// Everything that was counted.
    pub(crate) fn all_counts(&self) -> Prediction {
        let mut all = self.counters.clone();
        for port in self.input_ports.iter().filter(|port| port.channel != NONE) {
            for (sum, count) in all.by_channel[port.channel as usize].iter_mut().zip(port.counts) {
                *sum += u64::from(count);
            }
        }
        if !all.by_level.is_empty() {
            all.by_level = direction::by_level(&self.cases);
        }
        all
    }

    /// The place that a flit takes which passes on in cycle `now`.
    #[inline(always)]
    pub(crate) fn place(&self, now: u64) -> u64 {
        now + BIAS - u64::from(self.rules.advance)
    }

    /// The same in routers that may take several steps in a cycle, and the cycle in which the flit is sent: it crosses in the first steps
    /// of cycle `now`, `traversal` with serialisation.
    pub(crate) fn early(&self, clock: Clock, traversal: u32, now: u64) -> Early {
        let Rules { serialisation, front, .. } = self.rules;
        let begin = clock.first_step(now.saturating_sub(front.into()));
        let across = clock.first_step(now) + u64::from(traversal) - u64::from(serialisation) - 1;
        Early { step: begin, place: begin + BIAS - 1 - u64::from(serialisation), departure: clock.cycle_of(across, now) - u64::from(front) }
    }

    /// Is nothing sent on the channel of an output port in a cycle?
    pub(crate) fn is_channel_open(&self, port: u32, departure: u64) -> bool {
        self.taken.channels.as_ref().is_none_or(|channels| channels.is_free(port, departure + BIAS))
    }

    /// A flit is sent on the channel of an output port.
    pub(crate) fn take_channel(&mut self, port: u32, departure: u64) {
        if let Some(channels) = &mut self.taken.channels {
            self.wrongs.collisions += u64::from(!channels.take(port, departure + BIAS));
        }
    }

    /// A flit wins the switch of a router that may take several steps in a cycle.
    pub(crate) fn note_step(&mut self, (input, output): (u32, u32), slot: u32, (port, departure): (u32, u64), step: u64) {
        self.take_place(input, output, step + BIAS);
        self.take_channel(port, departure);
        self.note_sent(slot, departure + BIAS);
    }

    /// Does no flit cross from an input of the switch, nor to an output, in a place?
    #[inline(always)]
    pub(crate) fn is_open(&self, input: u32, output: u32, place: u64) -> bool {
        self.taken.inputs.is_free(input, place) && self.taken.outputs.is_free(output, place)
    }

    /// Has a flit that goes before all others taken an input or an output of the switch in this cycle?
    #[inline(always)]
    pub(crate) fn is_promised(&self, input: u32, output: u32, now: u64) -> bool {
        self.rules.is_express && !self.is_open(input, output, now + BIAS)
    }

    /// Would a flit in this place stay behind those sent on this virtual channel before?
    #[inline(always)]
    pub(crate) fn keeps_order(&self, output: u32, place: u64) -> bool {
        self.last_sent[output] < place
    }

    /// A flit passes on, or a wrong copy of one crosses, or one that has won the switch.
    #[inline(always)]
    pub(crate) fn take_place(&mut self, input: u32, output: u32, place: u64) {
        let were_free = self.taken.inputs.take(input, place) & self.taken.outputs.take(output, place);
        self.wrongs.collisions += u64::from(!were_free);
    }

    /// A flit on a virtual channel has a later place than the one before it.
    #[inline(always)]
    pub(crate) fn note_sent(&mut self, output: u32, place: u64) {
        self.wrongs.overtakings += u64::from(self.last_sent[output] >= place);
        self.last_sent[output] = place;
    }

    /// A flit passes on through a router in the full layout.
    pub(crate) fn note_passed(&mut self, output: u32, early: Early, counted: bool) {
        self.note_sent(output, early.order());
        self.counters.speculative_traversals += u64::from(counted);
    }

    /// Do wrong flits leave their router?
    pub(crate) fn forwards(&self) -> bool {
        self.rules.on_miss == OnMiss::Forward
    }

    /// What should never happen, of everything since the beginning: two flits in one place of the switch, and a flit that left
    /// before another that was ahead of it.
    pub(crate) fn wrongs(&self) -> Option<String> {
        let Wrongs { collisions, overtakings } = self.wrongs;
        let found = || format!("predictions: {collisions} flits crossed where another did, {overtakings} overtook another");
        (collisions + overtakings > 0).then(found)
    }

    /// A flit wins the switch in the ordinary way.
    #[inline(always)]
    pub(crate) fn note_grant(&mut self, input_port: u32, port: u32, output: u32, now: u64) {
        self.take_place(input_port, port, now + BIAS);
        self.note_sent(output, now + BIAS);
    }

    /// A head's route has become known, by a hit or otherwise. Measured packets are counted by the channel they came by, and what has
    /// been guessed for them by the way that they take.
    #[inline(always)]
    pub(crate) fn note_head(&mut self, slot: u32, input_port: u32, output: u16, counted: bool, is_hit: bool) {
        let flags = self.flags[slot];
        self.flags[slot] = flags & !TRIED;
        let InputPort { base, case, .. } = self.input_ports[input_port];
        let way = &mut self.cases[usize::from(case + self.input_ports[base + u32::from(output)].leads_up)];
        way[0] += u64::from(counted & (flags & TRIED != 0));
        way[1] += u64::from(counted & is_hit);
        let port = &mut self.input_ports[input_port];
        self.predictor.learn(port.index as usize, output);
        if counted {
            self.counters.switches += 1;
            port.counts[0] += 1;
        }
    }

    /// Keeps the routing's answer for the head in an input slot, if it would be the same again.
    #[inline(always)]
    pub(crate) fn keep_route(&mut self, slot: u32, route: Route) {
        if self.rules.routes_stay {
            let Candidate { port, virtual_channels, .. } = route.candidate;
            // A router has at most 256 virtual channels.
            let (first, last) = (virtual_channels.begin as u8, (virtual_channels.end - 1) as u8);
            self.found[slot] = Found { state: route.state, port, first, last };
            self.flags[slot] |= FOUND;
        }
    }

    /// The routing's answer for the head in an input slot, if it is known. All that was noted of the head has served.
    #[inline(always)]
    pub(crate) fn take_route(&mut self, slot: u32) -> Option<Route> {
        let flags = self.flags[slot];
        self.flags[slot] = flags & !FOUND;
        (flags & FOUND != 0).then(|| {
            let Found { state, port, first, last } = self.found[slot];
            let virtual_channels = VirtualChannels { begin: first.into(), end: u16::from(last) + 1 };
            Route { candidate: Candidate::new(port, virtual_channels), state }
        })
    }
}

/// Does a channel leave a router?
pub(crate) fn leaves_router(network: &Network, channel: ChannelId) -> bool {
    matches!(network.source(channel), Endpoint::Router(..))
}

#[cfg(test)]
mod tests {
    use super::{Addresses, Places, Sorter};

    #[test]
    fn addresses_are_parted_and_sorted_whatever_their_order() {
        let mut sorter = Sorter::default();
        for (count, factor) in [(0, 1), (1, 5), (700, 4093), (5000, 77)] {
            let addresses: Vec<u32> = (0..count).map(|number| 32_768 + number * factor % 16_384).collect();
            let (mut expected, rest): (Vec<u32>, Vec<u32>) = addresses.iter().partition(|&&address| address % 3 > 0);
            expected.sort_unstable();
            let (mut sorted, mut others) = (Vec::new(), Vec::new());
            let of = Addresses { first: 32_768, span: 16_384 };
            let count = sorter.part(&addresses, of, |address| address % 3 > 0, &mut sorted, &mut others);
            assert_eq!((sorted, &others[..count]), (expected, &rest[..]));
        }
    }

    #[test]
    fn places_are_remembered_as_far_back_as_the_pipeline_reaches() {
        for (advance, jump) in [(2, 64), (63, 64), (64, 128), (126, 128)] {
            let mut places = Places::new(2, advance);
            assert!(places.is_free(1, 300));
            for place in [300, 302, 301] {
                assert!(places.take(1, place));
            }
            assert!((300..=302).all(|place| !places.is_free(1, place) && places.is_free(0, place)));
            assert!(places.is_free(1, 299) && places.is_free(1, 303));
            assert!(!places.clone().take(1, 301), "taken twice");
            places.take(1, 302 + jump);
            assert!(!places.is_free(1, 302), "too long ago to know, so taken");
            assert!(!places.is_free(1, 302 + jump) && places.is_free(1, 303) && places.is_free(1, 301 + jump));
        }
    }

    #[test]
    fn of_the_shortest_pipeline_the_last_place_says_all() {
        let mut places = Places::new(2, 1);
        for place in [300, 301, 303] {
            assert!(places.is_free(1, place) && places.take(1, place));
            assert!(!places.is_free(1, place) && places.is_free(1, place + 1) && places.is_free(0, place));
        }
        assert!(!places.take(1, 303), "taken twice");
    }
}
