//! Networks of fabrics as they are built against counts, distances and digests that a program without any of this code has made.

use kasuri_network::network::Network;
use kasuri_network::network::metrics::Summary;
use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, TOPOLOGIES};

const NETWORKS: &str = include_str!("../../../../tests/data/fabrics/networks.csv");

/// The keys of a row's second column, as a table of the experiment file.
fn keys(parameters: &str) -> toml::Table {
    let text = match parameters.split_once(" twisted:") {
        Some((before, _)) => format!("{before} shape=twisted"),
        None => parameters.replace("permutations ", "permutations=").replace(" of ", " of="),
    };
    // A key begins where a word is followed by `=`; its value goes on to the next key.
    let begins: Vec<usize> = text.match_indices('=').map(|(place, _)| text[..place].rfind(' ').map_or(0, |space| space + 1)).collect();
    let first = begins.first().copied().unwrap_or(text.len());
    let mut table = toml::Table::new();
    if !text[..first].trim().is_empty() {
        table.insert("shape".to_owned(), text[..first].trim().into());
    }
    for (place, &begin) in begins.iter().enumerate() {
        let end = begins.get(place + 1).copied().unwrap_or(text.len());
        let (key, value) = text[begin..end].trim().split_once('=').expect("a key and a value");
        let parsed = toml::from_str::<toml::Table>(&format!("value = {value}")).ok().and_then(|mut table| table.remove("value"));
        table.insert(key.to_owned(), parsed.unwrap_or_else(|| value.into()));
    }
    table
}

fn build(topology: &str, parameters: &str) -> Network {
    let entry = TOPOLOGIES.iter().find(|entry| entry.name == topology).unwrap_or_else(|| panic!("no topology {topology}"));
    let topology = (entry.parse)(keys(parameters)).unwrap_or_else(|error| panic!("{topology} {parameters}: {error}"));
    let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
    topology.build(&context).unwrap_or_else(|error| panic!("{parameters}: {error}"))
}

/// The columns behind the first two, as the table writes them.
fn columns(summary: &Summary) -> Vec<String> {
    let number = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    vec![
        summary.terminals.to_string(),
        summary.routers.to_string(),
        summary.links.to_string(),
        summary.terminal_links.to_string(),
        summary.max_ports.to_string(),
        summary.min_ports.to_string(),
        summary.components.to_string(),
        number(summary.diameter_terminals.map(u64::from)),
        number(summary.diameter_routers.map(u64::from)),
        number(summary.sum_hops),
        number(summary.pairs),
        summary.mean_hops().map_or(String::new(), |mean| format!("{mean:.6}")),
        summary.histogram_text(),
        number(summary.links_across_half),
        summary.edges_sha256.clone(),
        summary.ports_sha256.clone(),
    ]
}

/// Every row of the table, in every column.
#[test]
fn every_network_of_the_table_is_built_exactly() {
    let mut table = csv::Reader::from_reader(NETWORKS.as_bytes());
    let heads: Vec<String> = table.headers().unwrap().iter().map(str::to_owned).collect();
    let (mut rows, mut wrong) = (0, Vec::new());
    for row in table.records() {
        let row = row.unwrap();
        rows += 1;
        let found = columns(&Summary::of(&build(&row[0], &row[1])));
        for ((column, wanted), found) in heads.iter().zip(&row).skip(2).zip(&found) {
            if found != wanted {
                wrong.push(format!("{} {}: {column} is {found}, not {wanted}", &row[0], &row[1]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(rows, 123);
}
