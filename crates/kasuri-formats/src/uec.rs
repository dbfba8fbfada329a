//! The files of the Ultra Ethernet Consortium's simulator htsim: fabrics (`.topo`) and connection matrices (`.cm`, `.tm`).
//!
//! Both are read as `htsim_uec` of uet-htsim, 13 August 2025, reads them; what it refuses or cannot survive is refused here, too.

mod fabric;
mod matrix;
mod network;

pub use fabric::fabric;
pub use matrix::{Read, matrix};
pub use network::network;

/// A word as a message shows it, cut short.
fn shown(word: &str) -> String {
    let short: String = word.chars().take(40).collect();
    if short.len() < word.len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests;
