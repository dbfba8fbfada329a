//! File formats: parsers over bytes and writers to text. None of them opens a file.

pub mod anynet;
pub mod astra;
pub mod booksim;
pub mod chakra;
pub mod dot;
pub mod edge_list;
pub mod forwarding_csv;
pub mod forwarding_dump;
pub mod goal;
pub mod goal_binary;
pub mod graphml;
pub mod hostlist;
pub mod hosts;
pub mod ibnetdiscover;
pub mod ibnetdiscover_ports;
pub mod layers;
pub mod mesh_graph;
pub mod mpi;
pub mod msccl;
pub mod nccl;
pub mod network_json;
pub mod ns3;
pub(crate) mod protobuf_text;
pub mod recognise;
pub mod service_levels;
pub mod sl2vl;
pub mod slurm_topology;
pub mod text;
pub(crate) mod tool_messages;
pub mod trace;
pub mod traffic;
pub mod uec;
pub(crate) mod words;
mod xml;
pub(crate) mod yaml;

use kasuri_network::id::RouterId;
use kasuri_network::network::Network;
use text::text_of;
use thiserror::Error;

/// What is wrong in a text, and where. Mend the named line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name}:{line}{}: {problem}", column.map(|column| format!(":{column}")).unwrap_or_default())]
pub struct FormatError {
    /// The file's name as the user gave it.
    pub name: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1, where one is meant.
    pub column: Option<usize>,
    /// What was found and what would be right.
    pub problem: String,
}

impl FormatError {
    /// A problem in one line (from 1).
    pub fn new(name: &str, line: usize, problem: impl Into<String>) -> Self {
        Self { name: name.to_owned(), line, column: None, problem: problem.into() }
    }

    /// The same problem in a column (from 1) of its line.
    pub(crate) fn in_column(self, column: usize) -> Self {
        Self { column: Some(column), ..self }
    }
}

/// The lines of a text file that say something: number (from 1) and text without its `#` comment and surrounding blanks.
///
/// # Errors
/// The bytes are not UTF-8; the line that holds the first wrong byte is named.
pub(crate) fn meaningful_lines<'a>(name: &str, bytes: &'a [u8]) -> Result<Vec<(usize, &'a str)>, FormatError> {
    let text = text_of(name, bytes)?;
    let without_comment = |line: &'a str| line.split('#').next().unwrap_or_default().trim();
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, without_comment(line)));
    Ok(lines.filter(|(_, line)| !line.is_empty()).collect())
}

/// The beginning of a text, for messages.
pub(crate) fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

/// The router that a word of a file means.
///
/// # Errors
/// There is none; the message shows the word and says what would be right.
pub(crate) fn find_router(network: &Network, word: &str) -> Result<RouterId, String> {
    let found = network.router_names().number(word).filter(|&router| router < network.router_count());
    found.map(RouterId).ok_or_else(|| {
        let right = match network.router_names().all() {
            Some([first, .., last]) => format!("they are called `{first}` to `{last}`"),
            _ => format!("they are numbered 0 to {}", network.router_count().saturating_sub(1)),
        };
        format!("`{word}` is not a router; {right}")
    })
}
