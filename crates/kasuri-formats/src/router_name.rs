//! Routers by their names or numbers.

use kasuri_network::id::RouterId;
use kasuri_network::network::Network;

/// The router that a word of a file means.
///
/// # Errors
/// There is none; the message shows the word and says what would be right.
pub fn find_router(network: &Network, word: &str) -> Result<RouterId, String> {
    let found = network.router_names().number(word).filter(|&router| router < network.router_count());
    found.map(RouterId).ok_or_else(|| {
        let right = match network.router_names().all() {
            Some([first, .., last]) => format!("they are called `{first}` to `{last}`"),
            _ => format!("they are numbered 0 to {}", network.router_count().saturating_sub(1)),
        };
        format!("`{word}` is not a router; {right}")
    })
}
