//! Nodes as NCCL sees them: each part is a router; GPUs and ports to the network have a terminal.

use super::parts::{LinkPart, Parts, TerminalPart};
use super::{Fabric, FabricError, UNUSED_LINK_RATE};
use kasuri_formats::names::distinguish;
use kasuri_formats::nccl::{Device, Kind, Topology};
use kasuri_formats::rate::Speed;

/// The fabric of a node, or of several with GPUs at one NVSwitch. GPUs can send on all their links at once. `link_rate` is that
/// of ports of adapters for which the file gives none.
///
/// # Errors
/// Neither a GPU nor a port to the network; more ports or rates than there can be.
pub(super) fn fabric(topology: Topology, link_rate: Option<Speed>) -> Result<Fabric, FabricError> {
    let speed = |gbyte: f64| {
        let too_fast = || FabricError::Files(format!("{}: a link of {gbyte} GB/s is too fast", topology.name));
        Speed::from_gbit_per_second(8.0 * gbyte).ok_or_else(too_fast)
    };
    let lacks_rates = topology.nets.iter().any(|net| !net.has_rate);
    let is_switch = topology.devices.iter().map(|device| matches!(device.kind, Kind::Switch | Kind::NvSwitch)).collect();
    let mut parts = Parts { file: topology.name.clone(), is_switch, notes: topology.notes.clone(), ..Parts::default() };
    if link_rate.is_some() && !lacks_rates {
        parts.notes.push(UNUSED_LINK_RATE.to_owned());
    }
    if lacks_rates && link_rate.is_none() {
        parts.notes.push("ports without a rate have that of their adapter's PCI link; --link-rate sets another".to_owned());
    }
    // In a file of several machines the names of parts include the machine.
    let of_host = |host: u32, name: &str| if topology.hosts > 1 { format!("node{host} {name}") } else { name.to_owned() };
    let named = |device: &Device| if device.kind == Kind::NvSwitch { device.name.clone() } else { of_host(device.host, &device.name) };
    let mut routers: Vec<(String, String)> = topology.devices.iter().map(|device| (named(device), device.busid.clone())).collect();
    distinguish(&mut routers, String::clone);
    parts.routers = routers.into_iter().map(|(name, _)| name).collect();
    for link in &topology.links {
        let ends = link.ends.map(|end| end as u32);
        parts.links.push(LinkPart { ends, speed: speed(link.gbyte_per_second)?, latency_ns: None });
    }
    let of = |device: usize| topology.links.iter().filter(move |link| link.ends.contains(&device)).map(|link| link.gbyte_per_second);
    let gpus: Vec<usize> = (0..topology.devices.len()).filter(|&place| topology.devices[place].kind == Kind::Gpu).collect();
    let fastest = speed(gpus.iter().map(|&gpu| of(gpu).sum()).fold(0.0, f64::max));
    let mut terminals: Vec<(String, TerminalPart)> = Vec::new();
    let mut add = |name: String, router: usize, speed: Speed| {
        let host = topology.devices[router].host;
        let host = if topology.hosts > 1 { format!("node{host}") } else { "node".to_owned() };
        terminals.push((name, TerminalPart { name: String::new(), host, router: router as u32, speed, latency_ns: None }));
    };
    for &gpu in &gpus {
        add(parts.routers[gpu].clone(), gpu, fastest.clone()?);
    }
    for net in &topology.nets {
        let own = speed(net.gbyte_per_second)?;
        let rate = link_rate.filter(|_| !net.has_rate).unwrap_or(own);
        add(of_host(topology.devices[net.nic].host, &net.name), net.nic, rate);
    }
    distinguish(&mut terminals, |part| parts.routers[part.router as usize].clone());
    parts.terminals = terminals.into_iter().map(|(name, part)| TerminalPart { name, ..part }).collect();
    parts.fabric(|_, _| None)
}
