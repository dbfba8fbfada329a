//! `[hosts]`: terminals that share a memory.

use super::context::Context;
use super::document::Part;
use super::error::ConfigError;
use super::section::Section;
use kasuri_model::scenario::Hosts;
use kasuri_workload::units::Units;
use schemars::JsonSchema;
use serde::Deserialize;

/// Hosts with several terminals each and one memory, which all messages of a host share while they flow.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HostsSection {
    /// Terminals of a host, in the order of their numbers, at least 1.
    #[serde(default = "one")]
    terminals_per_host: u32,
    /// What the memory of a host carries, Gbyte/s (10^9 bytes), above 0.
    memory_gbyte_per_second: f64,
    /// How often a program copies each message at either end, through buffers that the adapter may use. The adapter reads or writes once; a
    /// copy reads and writes once more.
    #[serde(default)]
    copies: u32,
}

fn one() -> u32 {
    1
}

/// The most copies: more bytes than any memory carries.
const MAX_COPIES: u32 = 1000;

/// The hosts, if there is such a section.
pub(super) fn read(context: Context<'_>, units: Units) -> Result<Option<Hosts>, ConfigError> {
    let Some(table) = context.table("hosts")? else { return Ok(None) };
    let section = Section::new(context, "hosts", table);
    let keys: HostsSection = section.whole()?;
    if keys.terminals_per_host == 0 {
        return Err(section.error("terminals_per_host", "is 0; a host has at least 1 terminal"));
    }
    let rate = keys.memory_gbyte_per_second;
    if !(rate > 0.0 && rate.is_finite()) {
        return Err(section.error("memory_gbyte_per_second", format!("is {rate}; it must be above 0")));
    }
    if keys.copies > MAX_COPIES {
        return Err(section.error("copies", format!("is {}; it must be 0 to {MAX_COPIES}", keys.copies)));
    }
    let (Some(flit_bytes), Some(cycle_ns)) = (units.flit_bytes, units.cycle_ns) else {
        let problem = "asks what a flit and a cycle are: network.flit_bytes, and network.channel_gbit_per_second or network.cycle_ns";
        return Err(context.error("hosts", Part::Key, problem));
    };
    // Gbyte/s are bytes per ns.
    let passes = f64::from(1 + 2 * keys.copies);
    Ok(Some(Hosts { terminals: keys.terminals_per_host, memory_bandwidth: rate * cycle_ns / (f64::from(flit_bytes) * passes) }))
}
