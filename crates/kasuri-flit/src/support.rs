//! What the routers of this engine can do: one table, a row a feature, a column a layout of the routers' state. The choice of the layout,
//! the refusals and the documentation's table are made of it. A layout changes the time that a run takes and nothing else.

use crate::facts::{self, can_use_vectors, has_cycle_of_one_flit, has_slow_channel, is_loaded, widest_router};
use crate::record::options::LayoutName;
use crate::record::options::{FlitOptions, Simd};
use kasuri_model::engine::Feature;
use kasuri_model::refusal::Refusal;
use kasuri_model::router::{Architecture, Bidding, Switching, VcRelease};
use kasuri_model::scenario::Scenario;
use kasuri_network::predictor;

/// A row of the table.
struct Row {
    /// The feature in the field's words.
    name: &'static str,
    /// The key that asks for it.
    key: &'static str,
    /// The key's value as the file would write it, if the scenario asks for the feature; nothing where the key names a section.
    asks: fn(&Scenario) -> Option<String>,
    /// Have routers in the layouts [`LayoutName::ALL`] it?
    layouts: [bool; 3],
}

/// By layout: `avx512`, `plain`, `full`.
const EVERY: [bool; 3] = [true, true, true];
const BUT_VECTORS: [bool; 3] = [false, true, true];
const PLAIN_ONLY: [bool; 3] = [false, true, false];
const FULL_ONLY: [bool; 3] = [false, false, true];

impl Row {
    fn is_in(&self, layout: LayoutName) -> bool {
        self.layouts[layout as usize]
    }

    /// The feature as the file asks for it.
    fn written(&self, value: &str) -> String {
        match (self.key, value) {
            ("user", _) => "[[user]]".to_owned(),
            (section, "") => format!("[{section}]"),
            (key, value) => format!("{key} = {value}"),
        }
    }
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

fn if_true(asks: bool) -> Option<String> {
    asks.then(|| "true".to_owned())
}

fn if_section(asks: bool) -> Option<String> {
    asks.then(String::new)
}

fn architecture_of(scenario: &Scenario, asked: &[Architecture]) -> Option<String> {
    let name = match scenario.router.architecture {
        Architecture::InputQueued => "input-queued",
        Architecture::VirtualOutputQueued => "virtual-output-queued",
        Architecture::Crosspoint => "crosspoint",
        Architecture::OutputQueued => "output-queued",
    };
    asked.contains(&scenario.router.architecture).then(|| quoted(name))
}

/// The value of a key of `[router]` by which routers are more than canonical ones.
fn extension(scenario: &Scenario, key: &str) -> Option<String> {
    let router = &scenario.router;
    router.extends(key).then(|| match key {
        "vc_allocator" => quoted(router.vc_allocator.name()),
        "switch_allocator" => quoted(router.switch_allocator.name()),
        "input_speedup" => router.input_speedup.to_string(),
        "output_speedup" => router.output_speedup.to_string(),
        "internal_speedup" => router.internal_speedup.to_string(),
        "output_buffer_flits" => router.output_buffer_flits.unwrap_or(0).to_string(),
        "vc_busy_when_full" | "bubble" | "vc_prefer_empty" | "hold_switch" => "true".to_owned(),
        _ => serde_word(scenario, key),
    })
}

/// The word of a key whose values are words.
fn serde_word(scenario: &Scenario, key: &str) -> String {
    let router = &scenario.router;
    let word = match key {
        "buffer_policy" => toml::Value::try_from(router.buffer_policy),
        "priority" => toml::Value::try_from(router.priority),
        "speculation" => toml::Value::try_from(router.speculation),
        "long_stages" => toml::Value::try_from(router.long_stages),
        _ => toml::Value::try_from(router.lookahead_decides),
    };
    word.map(|word| word.to_string()).unwrap_or_default()
}

fn looks_at_congestion(scenario: &Scenario) -> bool {
    scenario.routing.facts().observes_congestion
}

fn predicts(scenario: &Scenario) -> bool {
    scenario.router.predictor != predictor::NONE
}

fn takes_slow_steps(scenario: &Scenario) -> bool {
    has_slow_channel(&scenario.network) || scenario.pipeline.bidding == Bidding::Speculative
}

const PREDICTORS: &str = "predictors";
const EXPRESS_WAYS: &str = "express virtual channels";
const SERIAL_ROUTERS: &str = "routers that send and receive flits bit by bit";
const CLASS_QUEUES: &str = "sources with a queue for each class";
const SHARED_MEMORIES: &str = "hosts whose terminals share a memory";
const FAILURES: &str = "links and routers that fail during the run";
const USERS: &str = "several users";
const QUEUES_FOR_OUTPUTS: &str = "a queue for each output (virtual-output-queued and crosspoint routers)";
const SHARED_BUFFERS: &str = "buffers that virtual channels share";
const AHEAD: &str = "adaptive lookahead that decides on departure";
const MACHINES: &str = "machines of network interfaces";
const OWN_NETWORK: &str = "machines of network interfaces on routers of their own";

static ROWS: &[Row] = &[
    Row { name: USERS, key: "user", asks: |scenario| if_section(scenario.users.is_some()), layouts: EVERY },
    Row { name: "closed workloads", key: "workload", asks: |scenario| if_section(scenario.workload.is_some()), layouts: EVERY },
    Row {
        name: MACHINES,
        key: "endpoint.model",
        asks: |scenario| scenario.endpoint.as_ref().map(|endpoint| quoted(endpoint.model())),
        layouts: EVERY,
    },
    Row {
        name: OWN_NETWORK,
        key: "endpoint.model",
        asks: |scenario| {
            let machine = scenario.endpoint.as_ref().filter(|machine| machine.packet_flits().is_none());
            machine.map(|machine| quoted(machine.model()))
        },
        layouts: EVERY,
    },
    Row {
        name: PREDICTORS,
        key: "router.predictor",
        asks: |scenario| predicts(scenario).then(|| quoted(&scenario.router.predictor)),
        layouts: BUT_VECTORS,
    },
    Row {
        name: EXPRESS_WAYS,
        key: "router.predictor",
        asks: |scenario| (scenario.router.predictor == predictor::EXPRESS).then(|| quoted(predictor::EXPRESS)),
        layouts: PLAIN_ONLY,
    },
    Row {
        name: SERIAL_ROUTERS,
        key: "router.pipeline",
        asks: |scenario| {
            let serial = scenario.pipeline.serialisation_cycles + scenario.pipeline.link_cycles;
            (serial > 0).then(|| "one with Ser or LT".to_owned())
        },
        layouts: EVERY,
    },
    Row {
        name: "hint bits that take time on the channels",
        key: "router.hint_cycles",
        asks: |scenario| Some(scenario.router.total_hint_cycles()).filter(|&cycles| cycles > 0).map(|cycles| cycles.to_string()),
        layouts: PLAIN_ONLY,
    },
    Row {
        name: "predictors in routers that take several steps in a cycle",
        key: "router.internal_speedup",
        asks: |scenario| extension(scenario, "internal_speedup").filter(|_| predicts(scenario)),
        layouts: FULL_ONLY,
    },
    Row {
        name: QUEUES_FOR_OUTPUTS,
        key: "router.architecture",
        asks: |scenario| architecture_of(scenario, &[Architecture::VirtualOutputQueued, Architecture::Crosspoint]),
        layouts: EVERY,
    },
    Row {
        name: "crosspoint routers",
        key: "router.architecture",
        asks: |scenario| architecture_of(scenario, &[Architecture::Crosspoint]),
        layouts: PLAIN_ONLY,
    },
    Row {
        name: "shares of switch outputs for users",
        key: "users.isolation",
        asks: |scenario| facts::divides_outputs(scenario).then(|| quoted("channels-and-shares")),
        layouts: BUT_VECTORS,
    },
    Row { name: FAILURES, key: "faults", asks: |scenario| if_section(scenario.failure.is_some()), layouts: FULL_ONLY },
    Row { name: SHARED_MEMORIES, key: "hosts", asks: |scenario| if_section(scenario.hosts.is_some()), layouts: EVERY },
    Row { name: CLASS_QUEUES, key: "router.class_queues", asks: |scenario| if_true(scenario.router.class_queues), layouts: EVERY },
    Row {
        name: "open traffic beside a machine of network interfaces, whose sinks give two credits in a cycle",
        key: "traffic",
        asks: |scenario| if_section(scenario.endpoint.is_some() && scenario.has_background()),
        layouts: BUT_VECTORS,
    },
    Row {
        name: "routings that leave the choice of the port to the router",
        key: "routing.algorithm",
        asks: |scenario| scenario.routing.facts().offers_several.then(|| "one that offers several ports".to_owned()),
        layouts: FULL_ONLY,
    },
    Row {
        name: "routings that look at congestion",
        key: "routing.algorithm",
        asks: |scenario| looks_at_congestion(scenario).then(|| "one that looks at congestion".to_owned()),
        layouts: BUT_VECTORS,
    },
    Row {
        name: "virtual-channel allocators with a history, and arbiters other than round-robin ones",
        key: "router.vc_allocator",
        asks: |scenario| extension(scenario, "vc_allocator"),
        layouts: FULL_ONLY,
    },
    Row {
        name: "switch allocators with a history, and arbiters other than round-robin ones",
        key: "router.switch_allocator",
        asks: |scenario| extension(scenario, "switch_allocator"),
        layouts: FULL_ONLY,
    },
    Row {
        name: "switch allocators other than iSLIP of one iteration and the separable one that begins at the outputs",
        key: "router.switch_allocator",
        asks: |scenario| {
            let allocator = &scenario.router.switch_allocator;
            crate::record::allocators::build(allocator).map(|_| quoted(allocator.name()))
        },
        layouts: BUT_VECTORS,
    },
    Row { name: SHARED_BUFFERS, key: "router.buffer_policy", asks: |scenario| extension(scenario, "buffer_policy"), layouts: FULL_ONLY },
    Row {
        name: "virtual channels without a credit that count as taken",
        key: "router.vc_busy_when_full",
        asks: |scenario| extension(scenario, "vc_busy_when_full"),
        layouts: FULL_ONLY,
    },
    Row { name: "bubbles in rings", key: "router.bubble", asks: |scenario| extension(scenario, "bubble"), layouts: PLAIN_ONLY },
    Row {
        name: "heads that prefer empty virtual channels",
        key: "router.vc_prefer_empty",
        asks: |scenario| extension(scenario, "vc_prefer_empty"),
        layouts: FULL_ONLY,
    },
    Row { name: "priorities of packets", key: "router.priority", asks: |scenario| extension(scenario, "priority"), layouts: FULL_ONLY },
    Row {
        name: "several switch inputs of a port",
        key: "router.input_speedup",
        asks: |scenario| extension(scenario, "input_speedup"),
        layouts: FULL_ONLY,
    },
    Row {
        name: "several switch outputs of a port",
        key: "router.output_speedup",
        asks: |scenario| extension(scenario, "output_speedup"),
        layouts: FULL_ONLY,
    },
    Row {
        name: "routers that take several steps in a cycle",
        key: "router.internal_speedup",
        asks: |scenario| extension(scenario, "internal_speedup"),
        layouts: BUT_VECTORS,
    },
    Row {
        name: "the same with speculative bids, or before channels that a flit occupies for several cycles",
        key: "router.internal_speedup",
        asks: |scenario| extension(scenario, "internal_speedup").filter(|_| takes_slow_steps(scenario)),
        layouts: FULL_ONLY,
    },
    Row {
        name: "output buffers with bounds",
        key: "router.output_buffer_flits",
        asks: |scenario| extension(scenario, "output_buffer_flits"),
        layouts: FULL_ONLY,
    },
    Row {
        name: "a switch that is held for packets of several flits",
        key: "router.hold_switch",
        asks: |scenario| extension(scenario, "hold_switch").filter(|_| scenario.longest_packet() > 1),
        layouts: FULL_ONLY,
    },
    Row {
        name: "speculative and real bids in one allocation",
        key: "router.speculation",
        asks: |scenario| extension(scenario, "speculation"),
        layouts: FULL_ONLY,
    },
    Row {
        name: "stages of several cycles that take their heads in batches",
        key: "router.long_stages",
        asks: |scenario| extension(scenario, "long_stages"),
        layouts: FULL_ONLY,
    },
    Row {
        name: AHEAD,
        key: "router.lookahead_decides",
        asks: |scenario| extension(scenario, "lookahead_decides").filter(|_| looks_at_congestion(scenario)),
        layouts: FULL_ONLY,
    },
    Row {
        name: "speculative bids that have the outputs for which no real one asks, in routers that are canonical otherwise",
        key: "router.speculative",
        asks: |scenario| if_true(scenario.pipeline.bidding == Bidding::Speculative && !needs_full(scenario)),
        layouts: PLAIN_ONLY,
    },
    Row {
        name: "switch allocation in the cycle of virtual-channel allocation, speculative or not",
        key: "router.pipeline",
        asks: |scenario| same_cycle_bidding_value(scenario),
        layouts: BUT_VECTORS,
    },
    Row {
        name: "virtual cut-through and store-and-forward switching",
        key: "router.switching",
        asks: |scenario| match scenario.router.switching {
            Switching::Wormhole => None,
            Switching::VirtualCutThrough => Some(quoted("virtual-cut-through")),
            Switching::StoreAndForward => Some(quoted("store-and-forward")),
        },
        layouts: BUT_VECTORS,
    },
    Row {
        name: "virtual channels that stay taken until the credit of the tail is back",
        key: "router.vc_release",
        asks: |scenario| (scenario.router.vc_release == VcRelease::TailCredit).then(|| quoted("tail-credit")),
        layouts: BUT_VECTORS,
    },
    Row {
        name: "channels that a flit occupies for several cycles",
        key: "network.channel_period",
        asks: |scenario| has_slow_channel(&scenario.network).then(|| "more than 1".to_owned()),
        layouts: BUT_VECTORS,
    },
    Row {
        name: "more than 8 virtual channels of a port, queues for outputs among them",
        key: "router.virtual_channels",
        asks: |scenario| (scenario.router.virtual_channels > 8).then(|| scenario.router.virtual_channels.to_string()),
        layouts: BUT_VECTORS,
    },
    Row {
        name: "more than 512 virtual channels of a router",
        key: "router.virtual_channels",
        asks: |scenario| {
            let of_router = widest_router(scenario);
            (of_router > 512).then(|| format!("{} at each port", scenario.router.virtual_channels))
        },
        layouts: BUT_VECTORS,
    },
    Row {
        name: "buffers of more than 255 flits",
        key: "router.buffer_flits",
        asks: |scenario| (scenario.router.buffer_flits > 255).then(|| scenario.router.buffer_flits.to_string()),
        layouts: BUT_VECTORS,
    },
    Row {
        name: "packets of more than 255 flits",
        key: "traffic.packet_flits",
        asks: |scenario| (scenario.longest_packet() > 255).then(|| scenario.longest_packet().to_string()),
        layouts: BUT_VECTORS,
    },
];

/// The pipeline, if heads bid for the switch before the cycle after they have won a virtual channel.
fn same_cycle_bidding_value(scenario: &Scenario) -> Option<String> {
    match scenario.pipeline.bidding {
        Bidding::InTurn => None,
        Bidding::SameCycle => Some("one with VA and SA in the same cycle".to_owned()),
        Bidding::Speculative => Some("one with speculative bids".to_owned()),
    }
}

/// Does the scenario ask for what only the full layout has? Its speculative bids have the outputs that no real one wins, too.
fn needs_full(scenario: &Scenario) -> bool {
    ROWS.iter().any(|row| row.layouts == FULL_ONLY && (row.asks)(scenario).is_some())
}

/// Two features that this engine has, but not together, whatever the layout: the key of the first is to be changed.
struct Pair {
    one: &'static str,
    other: &'static str,
    reason: &'static str,
    instead: &'static str,
}

const KEEP_ONE: &str = "leave one of the two out";
const WITHOUT_TIMES: &str = "leave the times of the failures out";

static PAIRS: &[Pair] = &[
    Pair {
        one: FAILURES,
        other: USERS,
        reason: "an access of a user would have to be translated again when its packet is sent again",
        instead: WITHOUT_TIMES,
    },
    Pair {
        one: FAILURES,
        other: MACHINES,
        reason: "its interfaces have no time-out by which they would find a parcel lost",
        instead: WITHOUT_TIMES,
    },
    Pair {
        one: FAILURES,
        other: SHARED_MEMORIES,
        reason: "a packet that is sent again would have to be read from its host's memory again",
        instead: WITHOUT_TIMES,
    },
    Pair {
        one: FAILURES,
        other: CLASS_QUEUES,
        reason: "what is sent again goes before all classes, and each has a queue of its own",
        instead: KEEP_ONE,
    },
    Pair {
        one: FAILURES,
        other: QUEUES_FOR_OUTPUTS,
        reason: "a packet stands in the queue of the output that the routing named before the failure",
        instead: KEEP_ONE,
    },
    Pair {
        one: FAILURES,
        other: SHARED_BUFFERS,
        reason: "places that are promised to packets which never come would have to be taken back from the pool",
        instead: KEEP_ONE,
    },
    Pair {
        one: FAILURES,
        other: PREDICTORS,
        reason: "flits that pass on a prediction are on two channels at once, of which one may be dead",
        instead: KEEP_ONE,
    },
    Pair { one: FAILURES, other: AHEAD, reason: "a head's next port is chosen before it is known that it is dead", instead: KEEP_ONE },
    Pair {
        one: CLASS_QUEUES,
        other: OWN_NETWORK,
        reason: "the routers of such a machine carry its programs' parcels alone, which have no classes",
        instead: KEEP_ONE,
    },
    Pair { one: SHARED_MEMORIES, other: MACHINES, reason: "the nodes of such a machine have memories of their own", instead: KEEP_ONE },
    Pair {
        one: SHARED_MEMORIES,
        other: CLASS_QUEUES,
        reason: "which of a terminal's queues sends is decided when its channel is free, before its host's memory is",
        instead: KEEP_ONE,
    },
    Pair {
        one: EXPRESS_WAYS,
        other: SERIAL_ROUTERS,
        reason: "an express flit takes its turn at the switch in the cycle before it arrives as a whole",
        instead: KEEP_ONE,
    },
];

/// The rows that a scenario asks for, each with the value of its key.
struct Asked(Vec<(&'static Row, String)>);

impl Asked {
    fn of(scenario: &Scenario) -> Self {
        Self(ROWS.iter().filter_map(|row| Some((row, (row.asks)(scenario)?))).collect())
    }

    fn fits(&self, layout: LayoutName) -> bool {
        self.0.iter().all(|(row, _)| row.is_in(layout))
    }

    /// Every two features that no layout has both of.
    fn without_common_layout(&self) -> Vec<Refusal> {
        let mut refusals: Vec<Refusal> = Vec::new();
        for (number, (row, value)) in self.0.iter().enumerate() {
            let apart = |before: &&(&'static Row, String)| !LayoutName::ALL.into_iter().any(|one| row.is_in(one) && before.0.is_in(one));
            let Some((other, its_value)) = self.0[..number].iter().find(apart) else { continue };
            let reason = format!("no routers of the flit engine have both {} and {}", other.name, row.name);
            let refusal = Refusal::new(row.key, reason).value(value.as_str()).conflicts_with(other.written(its_value)).instead(KEEP_ONE);
            if refusals.iter().all(|known| known.key != refusal.key) {
                refusals.push(refusal);
            }
        }
        refusals
    }

    /// What a layout that the file asks for lacks.
    fn lacking_in(&self, layout: LayoutName) -> Vec<Refusal> {
        let names: Vec<String> = LayoutName::ALL.into_iter().filter(|one| self.fits(*one)).map(|one| quoted(one.name())).collect();
        let instead = if names.is_empty() { "leave it out".to_owned() } else { format!("take {}, or leave it out", names.join(" or ")) };
        let lacking = self.0.iter().filter(|(row, _)| !row.is_in(layout));
        let refusal = |(row, value): &(&Row, String)| {
            let reason = format!("this layout has no {}", row.name);
            asked_layout(layout, reason).conflicts_with(row.written(value)).instead(instead.clone())
        };
        lacking.map(refusal).collect()
    }
}

fn asked_layout(layout: LayoutName, reason: impl Into<String>) -> Refusal {
    Refusal::new("flit.layout", reason).value(quoted(layout.name()))
}

/// The row of a name that stands in [`PAIRS`].
fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name)
}

/// What this engine cannot simulate: the feature, its key, whether a scenario asks for it, and why.
struct Lacking {
    name: &'static str,
    key: &'static str,
    asks: fn(&Scenario) -> bool,
    /// What the key conflicts with, if its own meaning is right.
    against: &'static str,
    reason: &'static str,
    instead: &'static str,
}

static LACKING: &[Lacking] = &[
    Lacking {
        name: "output-queued routers, flit by flit",
        key: "router.architecture",
        asks: |scenario| scenario.router.architecture == Architecture::OutputQueued,
        against: "engine = \"flit\"",
        reason: "packets enter and leave queues at outputs as a whole",
        instead: "have them simulated packet by packet",
    },
    Lacking {
        name: "packets that a failure takes along for good where somebody waits for them",
        key: "faults.resend_after",
        asks: Scenario::drops_required_packets,
        against: "",
        reason: "a message, a batch, an answer or a window would never be complete",
        instead: "give the cycles after which a lost packet is sent again, for example resend_after = 1000",
    },
];

/// All features of a scenario that this engine does not have, or does not combine, whatever the layout.
pub(crate) fn refused(scenario: &Scenario) -> Vec<Refusal> {
    let refusal = |pair: &Pair| {
        let (one, other) = (row(pair.one)?, row(pair.other)?);
        let (value, its_value) = ((one.asks)(scenario)?, (other.asks)(scenario)?);
        Some(Refusal::new(one.key, pair.reason).value(value).conflicts_with(other.written(&its_value)).instead(pair.instead))
    };
    let lacking = |lacking: &Lacking| {
        let asks = (lacking.asks)(scenario);
        asks.then(|| Refusal::new(lacking.key, lacking.reason).conflicts_with(lacking.against).instead(lacking.instead))
    };
    let mut refusals: Vec<Refusal> = LACKING.iter().filter_map(lacking).collect();
    for refusal in PAIRS.iter().filter_map(refusal) {
        if refusals.iter().all(|known| known.key != refusal.key) {
            refusals.push(refusal);
        }
    }
    refusals
}

/// The layout for a scenario: the one that the file asks for, or the fastest that has all features.
///
/// # Errors
/// Features that no layout has together, or that the one asked for lacks.
pub(crate) fn choose(scenario: &Scenario, options: &FlitOptions) -> Result<LayoutName, Vec<Refusal>> {
    let asked = Asked::of(scenario);
    if let Some(layout) = options.layout {
        let mut refusals = asked.lacking_in(layout);
        if layout == LayoutName::Avx512 && !can_use_vectors() {
            refusals.push(asked_layout(layout, "this processor lacks the vector instructions").instead("leave it out"));
        }
        if layout == LayoutName::Avx512 && options.simd == Simd::Portable {
            let reason = "the layout is made of vector instructions";
            refusals.push(asked_layout(layout, reason).conflicts_with("flit.simd = \"portable\"").instead(KEEP_ONE));
        }
        return if refusals.is_empty() { Ok(layout) } else { Err(refusals) };
    }
    let serves = |layout: LayoutName| layout != LayoutName::Avx512 || prefers_vectors(scenario, options.simd);
    let fastest = LayoutName::ALL.into_iter().find(|&layout| asked.fits(layout) && serves(layout));
    fastest.ok_or_else(|| asked.without_common_layout())
}

/// Is the vector layout, which can run this, expected to be the faster one?
fn prefers_vectors(scenario: &Scenario, simd: Simd) -> bool {
    match simd {
        Simd::Portable => false,
        Simd::Always => can_use_vectors(),
        Simd::Auto => can_use_vectors() && !has_cycle_of_one_flit(scenario) && is_loaded(scenario),
    }
}

/// The table for the documentation: the features, then those that are not combined.
pub(crate) fn features() -> Vec<Feature> {
    let word = |has: bool| if has { "yes" } else { "no" };
    let support = |has: &dyn Fn(LayoutName) -> bool| LayoutName::ALL.into_iter().map(|layout| (layout.name(), word(has(layout)))).collect();
    let feature = |row: &Row| Feature { name: row.name.to_owned(), key: row.key, support: support(&|layout| row.is_in(layout)) };
    let refused = |pair: &Pair| {
        let name = format!("{}, together with {}: {}", pair.one, pair.other, pair.reason);
        Feature { name, key: row(pair.one).map_or("", |row| row.key), support: support(&|_| false) }
    };
    let lacking = |lacking: &Lacking| Feature { name: lacking.name.to_owned(), key: lacking.key, support: support(&|_| false) };
    ROWS.iter().map(feature).chain(LACKING.iter().map(lacking)).chain(PAIRS.iter().map(refused)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_model::router::RouterParameters;

    /// Where no layout has all that is asked for, there are two features of which none has both: a refusal can name them.
    #[test]
    fn what_has_no_layout_has_two_features_at_odds() {
        let mut kinds: Vec<[bool; 3]> = Vec::new();
        ROWS.iter().for_each(|row| {
            if !kinds.contains(&row.layouts) {
                kinds.push(row.layouts);
            }
        });
        for chosen in 0u32..1 << kinds.len() {
            let chosen: Vec<[bool; 3]> = (0..kinds.len()).filter(|kind| chosen >> kind & 1 == 1).map(|kind| kinds[kind]).collect();
            let common = (0..3).any(|layout| chosen.iter().all(|kind| kind[layout]));
            let at_odds = chosen.iter().any(|one| chosen.iter().any(|other| !(0..3).any(|layout| one[layout] && other[layout])));
            assert_eq!(common, !at_odds, "{chosen:?}");
        }
    }

    /// Every feature has a layout, every extension of a router a row, and every pair names rows.
    #[test]
    fn the_table_is_whole() {
        assert!(ROWS.iter().all(|row| row.layouts.contains(&true)));
        for key in RouterParameters::EXTENSION_KEYS {
            assert!(ROWS.iter().any(|row| row.key.strip_prefix("router.") == Some(key)), "{key}");
        }
        for name in PAIRS.iter().flat_map(|pair| [pair.one, pair.other]) {
            assert!(ROWS.iter().any(|row| row.name == name), "{name}");
        }
        let mut names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ROWS.len(), "a name stands twice");
    }
}
