//! Networks that are given by the neighbours of each router: their ports, in one place.

use super::contract::BuildContext;
use super::sizes;
use crate::id::{Port, RouterId};
use crate::network::{MAX_NETWORK_PORTS, MAX_PORTS, NetworkBuilder, NetworkError};

/// Adds routers with their links and so many terminals each: the ports are the neighbours in ascending order, then the terminals, numbered
/// router by router.
///
/// `neighbours` holds each link at both of its ends, ascending.
///
/// # Errors
/// A router of too many ports, or too many ports in all.
pub(super) fn attach(
    builder: &mut NetworkBuilder,
    neighbours: &[Vec<u32>],
    concentration: u32,
    context: &BuildContext<'_>,
) -> Result<(), NetworkError> {
    for list in neighbours {
        builder.add_router(list.len() + concentration as usize)?;
    }
    for (router, list) in neighbours.iter().enumerate() {
        for (port, &other) in list.iter().enumerate().filter(|&(_, &other)| other as usize > router) {
            let back = neighbours[other as usize].binary_search(&(router as u32)).unwrap_or_default();
            builder.add_link((RouterId(router as u32), port as Port), (RouterId(other), back as Port), context.channels.link(0));
        }
    }
    for (router, list) in neighbours.iter().enumerate() {
        for terminal in 0..concentration as usize {
            builder.add_terminal(RouterId(router as u32), (list.len() + terminal) as Port, context.channels.terminal_link());
        }
    }
    Ok(())
}

/// The neighbours of each router from the links between them, each once; sorted, parallel links merged.
pub(super) fn of_edges(routers: u32, edges: impl Iterator<Item = (u32, u32)>) -> Vec<Vec<u32>> {
    let mut neighbours = vec![Vec::new(); routers as usize];
    for (one, other) in edges {
        neighbours[one as usize].push(other);
        neighbours[other as usize].push(one);
    }
    for list in &mut neighbours {
        list.sort_unstable();
        list.dedup();
    }
    neighbours
}

/// Refuses a number of routers and ports that no network has, before neighbours are looked for.
///
/// # Errors
/// Too many ports of a router or in all, or no terminal on a router.
pub(super) fn check(routers: u32, degree: u32, concentration: u32) -> Result<(), NetworkError> {
    sizes::positive("concentration", concentration)?;
    let ports = sizes::sum("ports of a router", &[degree, concentration])?;
    if ports as usize > MAX_PORTS {
        return Err(NetworkError::TooLarge(format!("a router of {ports} ports; the limit is {MAX_PORTS}")));
    }
    let all = u64::from(routers) * u64::from(ports);
    if all > MAX_NETWORK_PORTS {
        return Err(NetworkError::TooLarge(format!("{routers} routers of {ports} ports; the limit is {MAX_NETWORK_PORTS} ports in all")));
    }
    Ok(())
}
