//! `[traffic] trace`: open traffic that a file lists message by message.

use super::error::ConfigError;
use super::section::Section;
use super::traffic::Setting;
use kasuri_formats::trace;
use kasuri_model::scenario::WorkloadPart;
use kasuri_workload::traffic::MAX_PACKET_FLITS;
use kasuri_workload::units::Units;
use kasuri_workload::workload::Workload;
use kasuri_workload::workload::trace::Trace;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use toml::Table;

/// The keys of `[traffic]` with a trace, which takes the place of pattern, process, load and sizes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TraceSection {
    /// A file with a line for each message: time (cycles, or with ns, us, ms or s), source, destination, bytes; the first line may name the
    /// columns. A message is created at its time, whether or not earlier messages have arrived. The run ends when all have arrived.
    trace: String,
    /// A message is cut into packets of this many flits, the last one shorter.
    #[serde(default = "sixteen")]
    packet_flits: u32,
    /// The virtual channels that the packets may use: the first, and one past the last. All unless given.
    virtual_channels: Option<[u32; 2]>,
}

fn sixteen() -> u32 {
    16
}

/// Does a section of traffic name a trace?
pub(super) fn is_trace(table: &Table) -> bool {
    table.contains_key("trace")
}

impl Setting<'_> {
    /// The trace that a section of this name describes, and how its messages are sent.
    pub(super) fn trace_of(&self, name: &str, table: &Table, units: Units) -> Result<(Arc<dyn Workload>, WorkloadPart), ConfigError> {
        let section = Section::new(self.context, name, table);
        let others = ["pattern", "process", "load", "class", "include_self", "reply"];
        if let Some(key) = others.into_iter().find(|key| table.contains_key(*key)) {
            return Err(
                section.error_at_key(key, "conflicts with trace, which gives sources, destinations, sizes and times; keep one of the two")
            );
        }
        let keys: TraceSection = section.whole()?;
        if keys.packet_flits == 0 || keys.packet_flits > MAX_PACKET_FLITS {
            return Err(section.error("packet_flits", format!("is {}; a packet has 1 to {MAX_PACKET_FLITS} flits", keys.packet_flits)));
        }
        let default = self.default_channels.unwrap_or(self.all_channels());
        let virtual_channels = self.virtual_channels(&section, "virtual_channels", keys.virtual_channels, default)?;
        let mut lines = trace::Lines::new(&keys.trace, (&**self.network).into(), units);
        self.files.read_pieces(&keys.trace, &mut |piece| lines.take(piece)).map_err(|problem| section.error("trace", problem))?;
        let trace = Trace::new(lines.finish().map_err(|error| section.error("trace", error.to_string()))?);
        let part = WorkloadPart::new(&trace, keys.packet_flits, virtual_channels);
        Ok((Arc::new(trace), part))
    }
}
