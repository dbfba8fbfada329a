//! How often predictions are right, each packet alone: hits counted over all routes of the pattern.
//!
//! A predictor that never changes its guesses makes of each place of a route (router, input port) a hit or a miss, and of the routing
//! another one: where a packet may take any of several ports, it takes the guessed one. So the flows of the traffic over these routes tell
//! the hit rates exactly. What a predictor that learns will guess depends on the packets before, and no formula here knows them.

use super::AnalysisError;
use super::flow::{Congestion, Ends, Flow, Packets, for_each_flow, packets};
use kasuri_model::engine::Prediction;
use kasuri_model::router::Switching;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{Port, RouterId, TerminalId};
use kasuri_network::network::{Endpoint, Network};
use kasuri_network::predictor;
use kasuri_network::predictor::direction::{self, CASES, Directions};
use kasuri_network::routing::{Candidate, Choice, Hop, Reads, Routing, RoutingFacts};
use std::sync::Arc;

/// Packets for which [`HitRates::as_counts`] counts.
const PACKETS: f64 = 1e9;

/// What is predicted of a mean packet that is alone in the network.
#[derive(Clone, Debug, PartialEq)]
pub struct HitRates {
    /// Routers that its head crosses.
    pub routers: f64,
    /// Of these, routers that predict an output for it.
    pub attempts: f64,
    /// Of these, routers that it crosses on the prediction.
    pub hits: f64,
    /// The three by the channel that leads to the router, shape `[channels]`.
    pub by_channel: Vec<[f64; 3]>,
    /// Attempts and hits by the level of the router and the way that heads take there; empty where routers have no levels.
    pub by_level: Vec<[[f64; 2]; 3]>,
    /// The part of the traffic that was looked at; 1 is all.
    pub share: f64,
}

impl HitRates {
    /// Hits over routers crossed.
    pub fn hit_rate(&self) -> f64 {
        self.hits / self.routers
    }

    /// The expectation for a thousand million packets as whole numbers.
    pub(super) fn as_counts(&self) -> Prediction {
        let count = |mean: f64| (mean * PACKETS).round() as u64;
        Prediction {
            switches: count(self.routers),
            attempts: count(self.attempts),
            hits: count(self.hits),
            heads_only: true,
            by_channel: self.by_channel.iter().map(|counts| counts.map(count)).collect(),
            by_level: self.by_level.iter().map(|ways| ways.map(|counts| counts.map(count))).collect(),
            ..Prediction::default()
        }
    }
}

/// The hit rates of a scenario whose routers predict; `None` where they do not.
///
/// # Errors
/// The predictor has no closed form; and as `zero_load`.
pub fn hit_rates(scenario: &Scenario) -> Result<Option<HitRates>, AnalysisError> {
    match Guided::of(scenario)? {
        Some(guided) => rates_of(&guided.scenario(scenario), &guided).map(Some),
        None => Ok(None),
    }
}

/// A routing whose packets follow right guesses.
#[derive(Clone, Debug)]
pub(crate) struct Guided {
    network: Arc<Network>,
    routing: Arc<dyn Routing>,
    /// By input port, as numbered by the network; `None`: the guess is always the routing's answer.
    guesses: Option<Vec<Option<Port>>>,
    /// Is nothing tried for a packet that goes another way?
    is_express: bool,
    /// Does any port that the routing accepts do?
    any_up: bool,
    /// The ways across the routers, where they have levels.
    directions: Option<Directions>,
}

impl Guided {
    /// The routing of packets that are alone among routers that predict; `None` if they do not.
    pub(crate) fn of(scenario: &Scenario) -> Result<Option<Arc<Self>>, AnalysisError> {
        let (name, network) = (&scenario.router.predictor, &scenario.network);
        if name == predictor::NONE {
            return Ok(None);
        }
        let no_formula = |problem: String| AnalysisError::Prediction { problem };
        let predictor = scenario.router.build_predictor(network).map_err(no_formula)?;
        if !predictor.knows() && !predictor.is_fixed() {
            return Err(no_formula(format!("`{name}` learns: how often it is right depends on the packets before")));
        }
        if scenario.router.switching == Switching::StoreAndForward && packets(scenario).iter().any(|kind| kind.sizes.max() > 1) {
            return Err(no_formula(format!("`{name}` with store-and-forward of packets of several flits, which a hit cuts through")));
        }
        let inputs = network.port_bases().last().map_or(0, |&ports| ports as usize);
        let guesses = (!predictor.knows()).then(|| (0..inputs).map(|input| predictor.predict(input)).collect());
        let (network, routing) = (Arc::clone(network), Arc::clone(&scenario.routing));
        Ok(Some(Arc::new(Self {
            directions: Directions::of(&network),
            network,
            routing,
            guesses,
            is_express: predictor.is_express(),
            any_up: scenario.takes_accepted_ports(),
        })))
    }

    /// A scenario whose packets take these paths.
    pub(crate) fn scenario(self: &Arc<Self>, scenario: &Scenario) -> Scenario {
        Scenario { routing: Arc::clone(self) as Arc<dyn Routing>, ..scenario.clone() }
    }

    /// Does a right guess take a packet by a port that the routing accepts but would not have chosen?
    pub(crate) fn changes_paths(&self) -> bool {
        self.any_up && self.guesses.is_some()
    }

    fn guess(&self, router: RouterId, input: Port) -> Option<Port> {
        self.guesses.as_ref().and_then(|guesses| guesses[self.network.port_index(router, input)])
    }

    /// Is something predicted for a head that comes to a router by an input port, and is it this output?
    pub(crate) fn outcome(&self, router: RouterId, input: Port, output: Port) -> (bool, bool) {
        match (&self.guesses, self.guess(router, input)) {
            (None, _) => (true, true),
            (Some(_), guess) => {
                let is_right = guess == Some(output);
                (is_right || guess.is_some() && !self.is_express, is_right)
            }
        }
    }
}

impl Guided {
    /// Levels of the routers; 0 where they have none.
    pub(crate) fn levels(&self) -> usize {
        self.directions.as_ref().map_or(0, Directions::levels)
    }

    /// The case by which a head is counted, where routers have levels.
    pub(crate) fn case(&self, router: RouterId, input: Port, output: Port) -> Option<usize> {
        let directions = self.directions.as_ref()?;
        Some(directions.case(self.network.port_index(router, input), self.network.port_index(router, output)))
    }
}

impl Routing for Guided {
    fn facts(&self) -> RoutingFacts {
        let inner = self.routing.facts();
        RoutingFacts {
            virtual_channels_required: inner.virtual_channels_required,
            // Whether a guess is right depends on the input port and on the terminal behind the last router.
            reads: Reads { input: true, terminal: true, ..inner.reads },
            is_deadlock_free: inner.is_deadlock_free,
            observes_congestion: inner.observes_congestion,
            ..RoutingFacts::default()
        }
    }

    fn connects(&self, source: TerminalId, destination: TerminalId) -> bool {
        self.routing.connects(source, destination)
    }

    fn initial_state(&self, source: TerminalId, destination: TerminalId, choice: &mut dyn Choice) -> u32 {
        self.routing.initial_state(source, destination, choice)
    }

    fn route(&self, hop: &Hop, state: &mut u32, choice: &mut dyn Choice, candidates: &mut Vec<Candidate>) {
        let guess = self.guess(hop.router, hop.input).filter(|_| self.any_up);
        match guess.and_then(|port| Some(Candidate::new(port, self.routing.accepts(hop, *state, port)?))) {
            Some(candidate) => candidates.push(candidate),
            None => self.routing.route(hop, state, choice, candidates),
        }
    }
}

/// What is counted: routers, attempts and hits by channel, and attempts and hits by the case of [`Directions`].
struct Counts {
    by_channel: Vec<[f64; 3]>,
    cases: Vec<[f64; 2]>,
}

impl Counts {
    fn none(network: &Network, guided: &Guided) -> Self {
        Self { by_channel: vec![[0.0; 3]; network.channel_count() as usize], cases: vec![[0.0; 2]; CASES * guided.levels()] }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut f64> {
        self.by_channel.as_flattened_mut().iter_mut().chain(self.cases.as_flattened_mut())
    }
}

/// Lets the traffic flow over the guided paths, which `scenario` has for its routing.
pub(super) fn rates_of(scenario: &Scenario, guided: &Guided) -> Result<HitRates, AnalysisError> {
    let mut sums = Counts::none(&scenario.network, guided);
    let (mut total, mut share) = (0.0, 1.0f64);
    for kind in packets(scenario) {
        let (mut counts, sent, seen) = count_kind(scenario, guided, &kind)?;
        sums.all().zip(counts.all()).for_each(|(sum, count)| *sum += *count);
        total += sent;
        share = share.min(seen);
    }
    if total == 0.0 {
        return Err(AnalysisError::NoTraffic);
    }
    sums.all().for_each(|count| *count /= total);
    let Counts { by_channel, cases } = sums;
    let sum = |column: usize| by_channel.iter().map(|counts| counts[column]).sum();
    Ok(HitRates { routers: sum(0), attempts: sum(1), hits: sum(2), by_level: direction::by_level(&cases), by_channel, share })
}

/// What one kind of packets adds, how much of it there is, and the part of it that was looked at.
fn count_kind(scenario: &Scenario, guided: &Guided, kind: &Packets<'_>) -> Result<(Counts, f64, f64), AnalysisError> {
    let network = &scenario.network;
    let mut counts = Counts::none(network, guided);
    let mut sent = 0.0;
    let (demand, visited) = for_each_flow(scenario, kind, Congestion::None, Ends::ByRoute, |flow| {
        sent += flow.beginning.iter().sum::<f64>();
        count_flow(network, guided, flow, &mut counts);
    })?;
    // What was visited stands for all of this kind.
    let weight = if sent > 0.0 { kind.rate * demand.total() / sent } else { 0.0 };
    counts.all().for_each(|count| *count *= weight);
    Ok((counts, sent * weight, visited * demand.share))
}

fn count_flow(network: &Network, guided: &Guided, flow: &Flow<'_>, counts: &mut Counts) {
    let through = flow.through();
    for step in &flow.routes.steps {
        let hop = &flow.routes.places[step.from as usize].hop;
        let (Some(channel), Endpoint::Router(_, output)) = (network.input_channel(hop.router, hop.input), network.source(step.channel))
        else {
            continue;
        };
        let packets = through[step.from as usize] * step.probability;
        let (attempt, hit) = guided.outcome(hop.router, hop.input, output);
        let seen = [true, attempt, hit].map(|seen| packets * f64::from(u8::from(seen)));
        counts.by_channel[channel.index()].iter_mut().zip(seen).for_each(|(sum, seen)| *sum += seen);
        if let Some(case) = guided.case(hop.router, hop.input, output) {
            counts.cases[case].iter_mut().zip(&seen[1..]).for_each(|(sum, seen)| *sum += seen);
        }
    }
}
