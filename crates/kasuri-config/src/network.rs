//! `[network]`: the topology, how fast its channels are, and what flits and cycles are.

use super::context::Context;
use super::document::Part;
use super::error::ConfigError;
use super::physical::{PhysicalLinks, alias_in_file};
use super::section::Section;
use super::units::UnitParameters;
use crate::topology::ALL_TOPOLOGIES;
use crate::topology::file::{File, NeededUnits};
use kasuri_network::fields::fields_of;
use kasuri_network::network::connectivity::separated;
use kasuri_network::network::{Network, NetworkError};
use kasuri_network::registry::{Entry, Member};
use kasuri_network::topology::{BuildContext, ChannelParameters, Files, Topology};
use kasuri_workload::units::Units;
use toml::{Table, Value};

/// The section, of which the topology is yet to be built.
pub(super) struct NetworkSection<'a> {
    section: Section<'a>,
    entry: &'static Entry<dyn Topology>,
    /// The topology that this one wraps.
    wrapped: Option<&'static Entry<dyn Topology>>,
    channels: ChannelParameters,
    pub(super) units: Units,
}

/// `[network]`, which every experiment has.
pub(super) fn table(context: Context<'_>) -> Result<&Table, ConfigError> {
    context.required_table("network", "topology = \"mesh\"")
}

/// Reads the section.
pub(super) fn read(context: Context<'_>) -> Result<NetworkSection<'_>, ConfigError> {
    let section = Section::new(context, "network", table(context)?);
    let entry = section.member(ALL_TOPOLOGIES, "topology", None)?;
    let of_channels = [fields_of::<ChannelParameters>(), fields_of::<UnitParameters>(), fields_of::<PhysicalLinks>()].concat();
    let wrapped = section.wrapped(entry, ALL_TOPOLOGIES)?;
    let of_wrapped = wrapped.map(Entry::keys).unwrap_or_default();
    section.refuse_unknown(&[entry.keys(), of_wrapped, &of_channels, &["topology"]], &format!("topology `{}`", entry.name))?;
    let (channels, units) = channels(&section)?;
    Ok(NetworkSection { section, entry, wrapped, channels, units })
}

impl NetworkSection<'_> {
    /// Builds the network.
    pub(super) fn build(&self, files: &dyn Files) -> Result<Network, ConfigError> {
        let Self { section, entry, wrapped, channels, units } = self;
        let topology = match wrapped {
            Some(inner) => section.parse_around(entry, inner, "topology")?,
            None => section.parse(entry, "topology")?,
        };
        let built = if entry.name == File::NAME {
            let file: File = section.structure()?;
            file.content(files).and_then(|content| {
                let needed = content.needed_units(channels);
                Ok((content.build(channels)?, needed))
            })
        } else {
            topology.build(&BuildContext { channels, files, structure_seed: 0 }).map(|network| (network, None))
        };
        let (network, needed) = built.map_err(|error| match error {
            NetworkError::Parameter { key, problem } => section.error(alias_in_file(section.table, &key), problem),
            other => section.error("topology", other.to_string()),
        })?;
        needed.map_or(Ok(()), |needed| check_rates(section, &needed, *units))?;
        Ok(network)
    }
}

/// What flits and cycles are, by `[network]`.
pub(super) fn units(context: Context<'_>) -> Result<Units, ConfigError> {
    let section = Section::new(context, "network", table(context)?);
    Ok(channels(&section)?.1)
}

/// How fast channels are, and what flits and cycles are, by the keys of `[network]` in cycles and in Gbit/s and ns.
fn channels(section: &Section<'_>) -> Result<(ChannelParameters, Units), ConfigError> {
    let mut channels: ChannelParameters = section.structure()?;
    let units: UnitParameters = section.structure()?;
    let links: PhysicalLinks = section.structure()?;
    let units = links.apply(section.table, &mut channels, &units);
    let wrong = |(key, problem): (String, String)| {
        if section.table.contains_key(&key) || key.contains('.') {
            section.error(&key, problem)
        } else {
            section.error_at_key(&key, problem)
        }
    };
    Ok((channels, units.map_err(wrong)?))
}

/// Refuses a network in which a packet could not arrive by any routing. Topologies that leave labels build connected ones.
pub(super) fn check_connected(context: Context<'_>, network: &Network) -> Result<(), ConfigError> {
    if !network.labels().is_empty() {
        return Ok(());
    }
    let Some((from, to)) = separated(network) else { return Ok(()) };
    let (from, to) = (network.terminal_name(from), network.terminal_name(to));
    let key = if context.table("network")?.is_some_and(|table| table.contains_key("path")) { "network.path" } else { "network.topology" };
    let problem = format!("the network is disconnected: {from} cannot reach {to}; add channels, or leave one of the two out");
    Err(context.error(key, Part::Value, problem))
}

/// Refuses a cycle or flit length at which the links would not have the rates or latencies of the network's file.
fn check_rates(section: &Section<'_>, needed: &NeededUnits, units: Units) -> Result<(), ConfigError> {
    let (Some(flit_bytes), Some(cycle_ns)) = (units.flit_bytes, units.cycle_ns) else { return Ok(()) };
    let path = section.table.get("path").and_then(Value::as_str).unwrap_or_default();
    let (given, wanted) = (f64::from(flit_bytes) * 8.0 / cycle_ns, needed.gbit_per_second);
    let ratio = given / wanted;
    if (ratio - 1.0).abs() > RATE_TOLERANCE {
        let is_written = |key: &&str| section.table.contains_key(*key);
        let key = ["channel_gbit_per_second", "rate", "cycle_ns"].into_iter().find(is_written).unwrap_or("path");
        let problem = format!(
            "gives a channel of one cycle a flit {given} Gbit/s; with the rates of the links in `{path}` it is {wanted}: all links would \
             be {ratio:.4} times as fast as in the file; set channel_gbit_per_second = {wanted}"
        );
        return Err(section.error(key, problem));
    }
    match needed.flit_bytes {
        Some(bytes) if bytes != flit_bytes => {
            let problem =
                format!("is {flit_bytes}, and the latencies in `{path}` are cycles of flits of {bytes} bytes: set flit_bytes = {bytes}");
            Err(section.error("flit_bytes", problem))
        }
        _ => Ok(()),
    }
}

/// How much of a rate may be lost by rounding when it is written down.
const RATE_TOLERANCE: f64 = 1e-6;
