//! What the engines of this crate can simulate: one table, a row a feature, a column an engine. The refusals, the list of what an answer
//! leaves out, and the documentation's table are made of it.

use Support::{LeftOut, No, Yes};
use kasuri_model::engine::Feature;
use kasuri_model::refusal::Refusal;
use kasuri_model::router::{Architecture, Queue, SourceTurns, Switching};
use kasuri_model::scenario::{Scenario, TrafficClass};
use kasuri_network::predictor;

/// Whether an engine can simulate a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Support {
    /// It can, or its answer does not depend on it.
    Yes,
    /// It leaves the feature out, and says so in the answer's `not_modelled`.
    LeftOut,
    /// It refuses the feature, which changes the question: what to take instead.
    No(&'static str),
}

impl Support {
    fn word(self) -> &'static str {
        match self {
            Yes => "yes",
            LeftOut => "left out",
            No(_) => "no",
        }
    }
}

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Flow,
    /// The engine `flow` with `sharing = "arbitrated"`.
    Arbitrated,
    Analysis,
}

impl Column {
    pub(crate) fn engine(self) -> &'static str {
        match self {
            Self::Flow | Self::Arbitrated => "flow",
            Self::Analysis => "analysis",
        }
    }

    /// What asks for it, and what a refusal calls it.
    fn setting(self) -> (&'static str, &'static str) {
        match self {
            Self::Flow => ("the flow engine", "engine = \"flow\""),
            Self::Arbitrated => ("the arbitrated sharing", "flow.sharing = \"arbitrated\""),
            Self::Analysis => ("the analysis engine", "engine = \"analysis\""),
        }
    }
}

/// A row of the table.
struct Row {
    /// The feature in the field's words.
    name: &'static str,
    /// The key that asks for it.
    key: &'static str,
    /// The key's value as the file would write it, if the scenario asks for the feature.
    asks: fn(&Scenario) -> Option<String>,
    flow: Support,
    arbitrated: Support,
    analysis: Support,
}

impl Row {
    fn support(&self, column: Column) -> Support {
        match column {
            Column::Flow => self.flow,
            Column::Arbitrated => self.arbitrated,
            Column::Analysis => self.analysis,
        }
    }
}

const USE_FLITS_OR_NO_TIME: &str = "take engine = \"flit\", or leave it out for faults from the beginning on";

const USE_FLIT: &str = "use engine = \"flit\"";

/// The value of a key that has none worth showing.
fn if_so(asks: bool) -> Option<String> {
    asks.then(String::new)
}

fn predictor_of(scenario: &Scenario) -> Option<String> {
    (scenario.router.predictor != predictor::NONE).then(|| format!("\"{}\"", scenario.router.predictor))
}

fn machine_of(scenario: &Scenario) -> Option<String> {
    scenario.endpoint.as_ref().map(|endpoint| format!("\"{}\"", endpoint.model()))
}

/// Is there open traffic and a closed workload?
fn has_both(scenario: &Scenario) -> bool {
    scenario.workload.is_some() && !scenario.classes.is_empty()
}

/// Are there users whose accesses no machine translates?
fn has_users_outside(scenario: &Scenario) -> bool {
    scenario.users.is_some() && (scenario.endpoint.is_none() || !scenario.classes.is_empty())
}

/// Do guesses depend on the packets before?
fn learns(scenario: &Scenario) -> bool {
    scenario.router.build_predictor(&scenario.network).is_ok_and(|predictor| !predictor.knows() && !predictor.is_fixed())
}

fn stores_long_packets(scenario: &Scenario) -> bool {
    let has_several_flits = |class: &TrafficClass| class.sizes.max() > 1 || class.reply.as_ref().is_some_and(|reply| reply.sizes.max() > 1);
    let longest_of_workload = scenario.workload.as_ref().map_or(1, |closed| closed.workload.longest_message());
    scenario.router.switching == Switching::StoreAndForward && (scenario.classes.iter().any(has_several_flits) || longest_of_workload > 1)
}

/// A key of `[router]` that asks for more than the canonical router has, and that both engines leave out.
macro_rules! refinement {
    ($name:literal, $key:literal) => {
        Row {
            name: $name,
            key: concat!("router.", $key),
            asks: |scenario| if_so(scenario.router.extends($key)),
            flow: LeftOut,
            arbitrated: LeftOut,
            analysis: LeftOut,
        }
    };
}

/// Keys of users that both engines leave out.
macro_rules! of_users {
    ($name:literal, $key:literal) => {
        Row {
            name: $name,
            key: $key,
            asks: |scenario| if_so(scenario.users.is_some()),
            flow: LeftOut,
            arbitrated: LeftOut,
            analysis: LeftOut,
        }
    };
}

static ROWS: &[Row] = &[
    Row { name: "predictors", key: "router.predictor", asks: predictor_of, flow: Yes, arbitrated: LeftOut, analysis: Yes },
    Row {
        name: "predictors under a closed workload",
        key: "router.predictor",
        asks: |scenario| predictor_of(scenario).filter(|_| scenario.workload.is_some()),
        flow: Yes,
        arbitrated: LeftOut,
        analysis: No("use engine = \"flow\" or \"flit\""),
    },
    Row {
        name: "predictors in the routers of a machine of network interfaces, which its packets cross as a whole",
        key: "router.predictor",
        asks: |scenario| predictor_of(scenario).filter(|_| scenario.endpoint.is_some()),
        flow: No(USE_FLIT),
        arbitrated: Yes,
        analysis: Yes,
    },
    Row {
        name: "predictors beside a routing that leaves the choice of the port to the router",
        key: "router.predictor",
        asks: |scenario| predictor_of(scenario).filter(|_| scenario.routing.facts().offers_several),
        flow: No(USE_FLIT),
        arbitrated: LeftOut,
        analysis: No("take another routing, or leave the predictor out"),
    },
    Row {
        name: "a predictor that learns: how often it is right depends on the packets before",
        key: "router.predictor",
        asks: |scenario| predictor_of(scenario).filter(|_| learns(scenario)),
        flow: No(USE_FLIT),
        arbitrated: LeftOut,
        analysis: No(USE_FLIT),
    },
    Row {
        name: "predictors with store-and-forward of packets of several flits, which a hit cuts through",
        key: "router.predictor",
        asks: |scenario| predictor_of(scenario).filter(|_| stores_long_packets(scenario)),
        flow: No(USE_FLIT),
        arbitrated: LeftOut,
        analysis: No(USE_FLIT),
    },
    Row {
        name: "hint bits that take time on the channels",
        key: "router.hint_cycles",
        asks: |scenario| Some(scenario.router.total_hint_cycles()).filter(|&cycles| cycles > 0).map(|cycles| cycles.to_string()),
        flow: No(USE_FLIT),
        arbitrated: LeftOut,
        analysis: Yes,
    },
    Row {
        name: "users with open traffic beside users with a closed workload",
        key: "user",
        asks: |scenario| if_so(scenario.users.is_some() && has_both(scenario)),
        flow: Yes,
        arbitrated: Yes,
        analysis: No("use engine = \"flow\" or \"flit\""),
    },
    Row {
        name: "open traffic beside a closed workload",
        key: "traffic",
        asks: |scenario| if_so(scenario.users.is_none() && has_both(scenario)),
        flow: Yes,
        arbitrated: Yes,
        analysis: No("use engine = \"flow\" or \"flit\""),
    },
    Row {
        name: "open traffic beside a machine of network interfaces",
        key: "traffic",
        asks: |scenario| if_so(scenario.endpoint.is_some() && scenario.has_background()),
        flow: Yes,
        arbitrated: Yes,
        analysis: No("use engine = \"flow\" or \"flit\""),
    },
    Row {
        name: "batches that count the answers to others",
        key: "traffic.counts_answers",
        asks: |scenario| scenario.counts_answers().then(|| "true".to_owned()),
        flow: Yes,
        arbitrated: Yes,
        analysis: Yes,
    },
    Row {
        name: "a batch of several classes",
        key: "traffic.class.shares_coins",
        asks: |scenario| {
            let shared = scenario.classes.iter().any(|class| class.joint.is_some() && class.packets_per_terminal.is_some());
            shared.then(|| "true".to_owned())
        },
        flow: Yes,
        arbitrated: Yes,
        analysis: LeftOut,
    },
    Row {
        name: "a machine whose packets go through the routers, with its programs (endpoint dsm)",
        key: "endpoint.model",
        asks: |scenario| machine_of(scenario).filter(|_| crate::packets::machine::begin(scenario).is_some()),
        flow: Yes,
        arbitrated: No("take another sharing, or engine = \"flit\""),
        analysis: No("use engine = \"flow\" or \"flit\""),
    },
    Row {
        name: "a machine with a network of its own, with its programs (endpoint cenju4)",
        key: "endpoint.model",
        asks: |scenario| machine_of(scenario).filter(|_| crate::packets::machine::begin(scenario).is_none()),
        flow: No(USE_FLIT),
        arbitrated: No(USE_FLIT),
        analysis: No(USE_FLIT),
    },
    Row {
        name: "host adapters, which take time between a closed workload and the network (endpoint rdma)",
        key: "endpoint.model",
        asks: |scenario| {
            let interfaces = scenario.workload.as_ref().and_then(|closed| closed.interfaces.as_ref());
            interfaces.map(|interfaces| format!("\"{}\"", interfaces.model()))
        },
        flow: Yes,
        arbitrated: Yes,
        analysis: No("use engine = \"flow\" or \"flit\""),
    },
    Row {
        name: "links and routers that are down",
        key: "faults",
        asks: |scenario| if_so(scenario.network.damage().is_some()),
        flow: Yes,
        arbitrated: Yes,
        analysis: Yes,
    },
    Row {
        name: "links and routers that fail during the run: which packets are lost hangs on where each is",
        key: "faults.at",
        asks: |scenario| if_so(scenario.failure.is_some()),
        flow: No(USE_FLITS_OR_NO_TIME),
        arbitrated: No(USE_FLITS_OR_NO_TIME),
        analysis: No(USE_FLITS_OR_NO_TIME),
    },
    Row {
        name: "hosts whose terminals share a memory",
        key: "hosts",
        asks: |scenario| if_so(scenario.hosts.is_some()),
        flow: Yes,
        arbitrated: No("take another sharing"),
        analysis: No("use engine = \"flow\""),
    },
    Row {
        name: "hosts whose terminals share a memory, beside a machine of network interfaces, whose nodes have memories of their own",
        key: "hosts",
        asks: |scenario| if_so(scenario.hosts.is_some() && scenario.endpoint.is_some()),
        flow: No("leave one of the two out"),
        arbitrated: No("leave one of the two out"),
        analysis: No("leave one of the two out"),
    },
    Row {
        name: "the cost of translations, outside of a machine that translates itself",
        key: "translation",
        asks: |scenario| if_so(has_users_outside(scenario)),
        flow: LeftOut,
        arbitrated: LeftOut,
        analysis: LeftOut,
    },
    of_users!("virtual channels and shares that keep users apart", "users.isolation"),
    of_users!("shares of switch outputs", "user.share"),
    of_users!("tables that change", "user.change_every"),
    Row {
        name: "tables that are written, outside of a machine that translates itself",
        key: "user.table_writes",
        asks: |scenario| if_so(has_users_outside(scenario) && scenario.users.iter().any(|users| !users.writes.is_empty())),
        flow: LeftOut,
        arbitrated: LeftOut,
        analysis: LeftOut,
    },
    refinement!("buffers that virtual channels share", "buffer_policy"),
    refinement!("virtual channels without a credit that count as taken", "vc_busy_when_full"),
    refinement!("bubbles in rings", "bubble"),
    refinement!("heads that prefer empty virtual channels", "vc_prefer_empty"),
    refinement!("priorities of packets", "priority"),
    refinement!("several switch inputs of a port", "input_speedup"),
    refinement!("several switch outputs of a port", "output_speedup"),
    refinement!("routers that take several steps in a cycle", "internal_speedup"),
    refinement!("output buffers with bounds", "output_buffer_flits"),
    refinement!("a switch that is held for a packet", "hold_switch"),
    refinement!("speculative and real bids in one allocation", "speculation"),
    refinement!("stages of several cycles that take their heads in batches", "long_stages"),
    refinement!("adaptive lookahead that decides on departure", "lookahead_decides"),
    Row {
        name: "queues at outputs that pause or drop what they cannot take",
        key: "router.queue",
        asks: |scenario| if_so(scenario.router.queue != Queue::Unlimited),
        flow: LeftOut,
        arbitrated: LeftOut,
        analysis: LeftOut,
    },
    Row {
        name: "messages of a terminal that take turns, packet by packet",
        key: "router.source_turns",
        asks: |scenario| {
            let in_turns =
                scenario.router.architecture == Architecture::OutputQueued && scenario.router.source_turns == SourceTurns::Packet;
            if_so(in_turns && scenario.workload.is_some())
        },
        flow: LeftOut,
        arbitrated: LeftOut,
        analysis: LeftOut,
    },
    Row {
        name: "sources with a queue for each class",
        key: "router.class_queues",
        asks: |scenario| if_so(scenario.router.class_queues),
        flow: LeftOut,
        arbitrated: LeftOut,
        analysis: LeftOut,
    },
    Row {
        name: "routings that look at congestion, hop by hop",
        key: "routing.algorithm",
        asks: |scenario| if_so(scenario.routing.facts().observes_congestion),
        flow: Yes,
        arbitrated: LeftOut,
        analysis: Yes,
    },
    Row {
        name: "classes of open traffic that share their coins",
        key: "traffic.class.shares_coins",
        asks: |scenario| if_so(scenario.classes.iter().any(|class| class.joint.is_some() && class.packets_per_terminal.is_none())),
        flow: LeftOut,
        arbitrated: LeftOut,
        analysis: LeftOut,
    },
];

/// All that an engine refuses of a scenario by the table: of each key the first reason.
pub(crate) fn refusals(column: Column, scenario: &Scenario) -> Vec<Refusal> {
    let mut refusals: Vec<Refusal> = Vec::new();
    for row in ROWS {
        let No(instead) = row.support(column) else { continue };
        if refusals.iter().any(|known| known.key == row.key) {
            continue;
        }
        let Some(value) = (row.asks)(scenario) else { continue };
        refusals.push(refusal(column, row.key, row.name).value(value).instead(instead));
    }
    refusals
}

/// Something that an engine cannot model.
pub(crate) fn refusal(column: Column, key: &'static str, what: &str) -> Refusal {
    let (who, setting) = column.setting();
    Refusal::new(key, format!("{who} cannot model {what}")).conflicts_with(setting)
}

/// The keys of this scenario that an engine leaves out besides what it always leaves out.
pub(crate) fn left_out(column: Column, scenario: &Scenario) -> impl Iterator<Item = String> {
    let asked = move |row: &&Row| row.support(column) == LeftOut && (row.asks)(scenario).is_some();
    ROWS.iter().filter(asked).map(|row| row.key.to_owned())
}

/// The table's columns of an engine by their names, for the documentation.
pub(crate) fn features(columns: &[(Column, &'static str)]) -> Vec<Feature> {
    let support = |row: &Row| columns.iter().map(|&(column, name)| (name, row.support(column).word())).collect();
    ROWS.iter().map(|row| Feature { name: row.name.to_owned(), key: row.key, support: support(row) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_model::router::RouterParameters;

    /// Every key by which a router is more than the canonical one stands in the table, but for the allocators, which are always left out.
    #[test]
    fn the_table_knows_every_extension_of_a_router() {
        for key in RouterParameters::EXTENSION_KEYS.iter().filter(|key| !key.ends_with("_allocator")) {
            let found = ROWS.iter().filter(|row| row.key.strip_prefix("router.") == Some(key)).count();
            assert_eq!(found, 1, "{key}");
        }
    }
}
