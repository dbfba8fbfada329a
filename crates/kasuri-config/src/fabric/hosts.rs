//! The hosts of adapters, by their descriptions.
//!
//! A driver's default description names the adapter's make (`MT4123 ConnectX6 Mellanox Technologies`) or a machine without a name
//! (`localhost mlx5_0`): many machines share it. The hosts of such adapters are distinguished by the GUID of their system (`sysimgguid`, or
//! else the adapter's own GUID).

use kasuri_formats::discovery::{Discovery, Kind, Node};
use std::collections::{BTreeMap, BTreeSet};

/// Words that drivers append to the name of a host.
const ADAPTER_WORDS: [&str; 5] = [" mlx", " HCA-", " hfi1_", " qib", " ib"];

/// The host in an adapter's description: the text before the name of the device, else the first word.
pub fn host_of(name: &str) -> &str {
    let device = ADAPTER_WORDS.iter().filter_map(|word| name.rfind(word)).max();
    let host = device.map_or_else(|| name.split_whitespace().next().unwrap_or(name), |place| &name[..place]);
    if host.trim().is_empty() { name } else { host.trim() }
}

/// First words of descriptions that are not names of machines, in small letters.
const NO_NAMES: [&str; 15] = [
    "localhost",
    "localhost6",
    "(none)",
    "unknown",
    "mellanox",
    "nvidia",
    "intel",
    "qlogic",
    "infinipath",
    "voltaire",
    "topspin",
    "cornelis",
    "infiniband",
    "connect-ib",
    "hca",
];

/// Beginnings of the names of products.
const PRODUCTS: [&str; 5] = ["localhost.", "connectx", "infinihost", "infiniscale", "bluefield"];

/// The drivers' names of devices; a number follows.
const DEVICES: [&str; 10] = ["mt", "mlx4_", "mlx5_", "mthca", "hfi1_", "qib", "ipath", "ehca", "hca-", "ibp"];

/// Whether a description begins with a maker, a product or a device instead of a machine.
fn is_generic(description: &str) -> bool {
    let word = description.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let is_device = |name: &&str| {
        let number = word.strip_prefix(*name).unwrap_or_default();
        // An MT number has four digits or more: `mt1` may well be a machine.
        let digits = if *name == "mt" { 4 } else { 1 };
        number.len() >= digits && number.bytes().take(digits).all(|byte| byte.is_ascii_digit())
    };
    NO_NAMES.contains(&word.as_str()) || PRODUCTS.iter().any(|name| word.starts_with(name)) || DEVICES.iter().any(|name| is_device(&name))
}

/// The hosts of a discovery's adapters.
pub(super) struct Hosts<'a> {
    discovery: &'a Discovery,
    /// Descriptions that adapters of several systems share.
    ambiguous: BTreeSet<&'a str>,
    /// The imported adapters without a host in their description.
    unnamed: BTreeSet<u32>,
}

/// The identity of an adapter's machine: the GUID of its system, or else its own.
fn system(node: &Node) -> String {
    node.system.or(node.guid).map_or_else(|| node.id.to_string(), |guid| format!("{guid:016x}"))
}

impl<'a> Hosts<'a> {
    pub(super) fn of(discovery: &'a Discovery) -> Self {
        let mut systems: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for node in discovery.nodes.iter().filter(|node| node.kind != Kind::Switch) {
            systems.entry(&node.name).or_default().insert(system(node));
        }
        let ambiguous = systems.into_iter().filter(|(_, systems)| systems.len() > 1).map(|(name, _)| name).collect();
        Self { discovery, ambiguous, unnamed: BTreeSet::new() }
    }

    fn is_named(&self, node: &Node) -> bool {
        !self.ambiguous.contains(node.name.as_str()) && !is_generic(&node.name)
    }

    /// The host of an adapter.
    pub(super) fn name(&self, node: u32) -> String {
        let node = &self.discovery.nodes[node as usize];
        if self.is_named(node) { host_of(&node.name).to_owned() } else { format!("host-{}", system(node)) }
    }

    /// Records an adapter as imported.
    pub(super) fn note_taken(&mut self, node: u32, is_host: bool) {
        if is_host && !self.is_named(&self.discovery.nodes[node as usize]) {
            self.unnamed.insert(node);
        }
    }

    /// A note about adapters without a host in their description.
    pub(super) fn note(&self) -> Option<String> {
        let first = &self.discovery.nodes[*self.unnamed.first()? as usize];
        let by = if first.system.is_some() { "sysimgguid" } else { "GUID" };
        Some(format!(
            "the descriptions of {} adapters name no host, first `{}` in line {}: their hosts are distinguished by {by}",
            self.unnamed.len(),
            first.name,
            first.line
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_that_name_no_machine_are_known() {
        for text in [
            "MT4123 ConnectX6 Mellanox Technologies",
            "MT25408 ConnectX Mellanox Technologies",
            "localhost mlx5_0",
            "localhost.localdomain HCA-1",
            "mlx5_0",
            "Mellanox ConnectX",
            "ConnectX-7 NDR",
            "HCA-1",
            "hfi1_0",
            "NVIDIA BlueField",
        ] {
            assert!(is_generic(text), "{text}");
        }
        for text in ["node1 mlx5_0", "mt1 HCA-1", "mlxnode HCA-1", "intel01 mlx5_0", "hcahost", "nvidia-dgx1 mlx5_2", "ibp"] {
            assert!(!is_generic(text), "{text}");
        }
    }
}
