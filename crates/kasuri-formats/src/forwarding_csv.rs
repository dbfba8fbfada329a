//! Forwarding tables as text: lines `router,destination,port` or `router,destination,port,virtual_channel`.
//!
//! Routers and terminals by name, or by number where no name is a number. A first line that names these columns is a heading; `#` starts a
//! comment. A name that holds a comma or `#` cannot be written here.

use crate::error::FormatError;
use crate::router_name::find_router;
use crate::text::meaningful_lines;
use kasuri_network::id::{Port, TerminalId};
use kasuri_network::network::tables::ForwardingTables;
use kasuri_network::network::{Network, Terminals};

/// The columns.
const HEADING: [&str; 4] = ["router", "destination", "port", "virtual_channel"];

/// The largest virtual channel that an entry may name.
const MAX_VIRTUAL_CHANNEL: u8 = 254;

/// Reads the tables of a network.
///
/// # Errors
/// A line of another form; a router, terminal or port that the network does not have; a duplicate entry; some entries with a
/// virtual channel and some without.
pub fn parse(name: &str, bytes: &[u8], network: &Network) -> Result<ForwardingTables, FormatError> {
    let mut tables = ForwardingTables::new(network.router_count(), (0..network.terminal_count()).map(|_| 1));
    let mut with_channels = None;
    for (place, (number, line)) in meaningful_lines(name, bytes)?.into_iter().enumerate() {
        let words: Vec<&str> = line.split(',').map(str::trim).collect();
        let error = |problem: String| FormatError::new(name, number, problem);
        if place == 0 && HEADING.starts_with(&words) && words.len() >= 3 {
            continue;
        }
        let (router, destination, port, channel) = match words[..] {
            [router, destination, port] => (router, destination, port, None),
            [router, destination, port, channel] => (router, destination, port, Some(channel)),
            _ => {
                return Err(error(format!(
                    "invalid entry `{line}`; expected router,destination,port or router,destination,port,virtual_channel"
                )));
            }
        };
        if *with_channels.get_or_insert(channel.is_some()) != channel.is_some() {
            return Err(error("has a virtual channel and lines before it have none, or the other way round".to_owned()));
        }
        let router = find_router(network, router).map_err(error)?;
        let terminal = Terminals::from(network).find(destination).map(TerminalId).map_err(error)?;
        let ports = network.port_count(router);
        let found = port.parse().ok().filter(|&port: &Port| u32::from(port) < ports);
        let no_port = || error(format!("`{port}` is not a port of {}, which has {ports} ports", network.router_name(router)));
        let port = found.ok_or_else(no_port)?;
        let address = tables.addresses(terminal).start;
        if tables.port(router, address).is_some() {
            let (router, terminal) = (network.router_name(router), network.terminal_name(terminal));
            return Err(error(format!("duplicate entry of {router} for {terminal}")));
        }
        tables.set(router, address, port);
        if let Some(word) = channel {
            let found = word.parse().ok().filter(|&channel| channel <= MAX_VIRTUAL_CHANNEL);
            let no_channel = || error(format!("invalid virtual channel `{word}`; expected 0 to {MAX_VIRTUAL_CHANNEL}"));
            tables.set_virtual_channel(router, address, found.ok_or_else(no_channel)?);
        }
    }
    Ok(tables)
}
