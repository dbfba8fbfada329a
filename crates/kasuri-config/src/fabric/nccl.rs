//! Nodes as NCCL sees them: each part is a router; GPUs and ports to the network have a terminal.

use super::parts::{LinkPart, Parts, TerminalPart};
use super::rate::Speed;
use super::{Fabric, FabricError, distinguish};
use crate::format::nccl::{Kind, Topology};

/// The fabric of a node. GPUs can send on all their links at once.
///
/// # Errors
/// Neither a GPU nor a port to the network; more ports or rates than there can be.
pub(super) fn fabric(topology: Topology) -> Result<Fabric, FabricError> {
    let speed = |gbyte: f64| {
        let too_fast = || FabricError::Files(format!("{}: a link of {gbyte} GB/s is more than can be told", topology.name));
        Speed::from_gbit_per_second(8.0 * gbyte).ok_or_else(too_fast)
    };
    let mut parts = Parts { file: topology.name.clone(), notes: topology.notes.clone(), ..Parts::default() };
    let mut routers: Vec<(String, String)> = topology.devices.iter().map(|device| (device.name.clone(), device.busid.clone())).collect();
    distinguish(&mut routers, String::clone);
    parts.routers = routers.into_iter().map(|(name, _)| name).collect();
    for link in &topology.links {
        let ends = link.ends.map(|end| end as u32);
        parts.links.push(LinkPart { ends, speed: speed(link.gbyte_per_second)?, latency_ns: None });
    }
    let of = |device: usize| topology.links.iter().filter(move |link| link.ends.contains(&device)).map(|link| link.gbyte_per_second);
    let gpus: Vec<usize> = (0..topology.devices.len()).filter(|&place| topology.devices[place].kind == Kind::Gpu).collect();
    let fastest = gpus.iter().map(|&gpu| of(gpu).sum()).fold(0.0, f64::max);
    let host = "node".to_owned();
    let mut terminals: Vec<(String, TerminalPart)> = Vec::new();
    let mut add = |name: &str, router: usize, gbyte: f64| {
        let part = TerminalPart { name: String::new(), host: host.clone(), router: router as u32, speed: speed(gbyte)?, latency_ns: None };
        terminals.push((name.to_owned(), part));
        Ok::<_, FabricError>(())
    };
    gpus.iter().try_for_each(|&gpu| add(&parts.routers[gpu], gpu, fastest))?;
    topology.nets.iter().try_for_each(|net| add(&net.name, net.nic, net.gbyte_per_second))?;
    distinguish(&mut terminals, |part| parts.routers[part.router as usize].clone());
    parts.terminals = terminals.into_iter().map(|(name, part)| TerminalPart { name, ..part }).collect();
    parts.fabric(|_, _| None)
}
