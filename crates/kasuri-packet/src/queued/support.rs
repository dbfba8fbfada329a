//! What output-queued routers cannot be part of: one table, of which the refusals and the documentation's column are made.

use kasuri_model::engine::Feature;
use kasuri_model::refusal::Refusal;
use kasuri_model::router::Queue;
use kasuri_model::scenario::Scenario;

/// A row of the table.
struct Row {
    /// The feature in the field's words; the same as in the tables of other routers where they have it.
    name: &'static str,
    /// The key that asks for it.
    key: &'static str,
    asks: fn(&Scenario) -> bool,
    /// Why it cannot be.
    reason: &'static str,
    instead: &'static str,
}

const USE_OTHERS: &str = "take architecture = \"input-queued\"";

static ROWS: &[Row] = &[
    Row {
        name: "several users",
        key: "user",
        asks: |scenario| scenario.users.is_some(),
        reason: "users are kept apart by virtual channels and shares of the switch, and their node numbers translated flit by flit",
        instead: USE_OTHERS,
    },
    Row {
        name: "machines of network interfaces",
        key: "endpoint.model",
        asks: |scenario| scenario.endpoint.is_some(),
        reason: "its interfaces hold packets in the buffers of virtual channels until they take them",
        instead: USE_OTHERS,
    },
    Row {
        name: "hosts whose terminals share a memory",
        key: "hosts",
        asks: |scenario| scenario.hosts.is_some(),
        reason: "terminals send packets at the rate of their channels, and nothing there holds them back for a memory",
        instead: USE_OTHERS,
    },
    Row {
        name: "packets that are lost for good where somebody waits for them",
        key: "router.resend_after",
        asks: |scenario| {
            let loses = scenario.router.queue == Queue::Drop && scenario.resend_after.is_none();
            loses && scenario.waits_for_packets()
        },
        reason: "a message, a batch, an answer or a window would never be complete",
        instead: "give the cycles after which a lost packet is sent again, for example resend_after = 1000",
    },
    Row {
        name: "packets that a failure takes along for good where somebody waits for them",
        key: "faults.resend_after",
        asks: Scenario::drops_required_packets,
        reason: "a message, a batch, an answer or a window would never be complete",
        instead: "give the cycles after which a lost packet is sent again, for example resend_after = 1000",
    },
    Row {
        name: "layouts of virtual channels in memory",
        key: "flit.layout",
        asks: |scenario| scenario.engine_options.contains_key("layout"),
        reason: "there are none",
        instead: "leave it out",
    },
];

/// All that is refused of a scenario.
pub(super) fn refusals(scenario: &Scenario) -> Vec<Refusal> {
    let refusal = |row: &Row| {
        let reason = format!("output-queued routers do not go with {}: {}", row.name, row.reason);
        Refusal::new(row.key, reason).conflicts_with("router.architecture = \"output-queued\"").instead(row.instead)
    };
    ROWS.iter().filter(|row| (row.asks)(scenario)).map(refusal).collect()
}

/// The table for the documentation: a column of this name.
pub fn features(column: &'static str) -> Vec<Feature> {
    ROWS.iter().map(|row| Feature { name: row.name.to_owned(), key: row.key, support: vec![(column, "no")] }).collect()
}
