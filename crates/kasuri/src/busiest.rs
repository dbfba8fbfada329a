//! The busiest channels of finished runs, read from the folder of results and named by their ends.

use crate::checksums::network_id;
use crate::results::{NETWORK_ID, RunRow};
use crate::store::Store;
use kasuri_formats::network_json;
use kasuri_network::id::ChannelId;
use std::fs;
use std::path::Path;

/// A channel of a run and its busy share of the time.
#[derive(Clone, Debug, PartialEq)]
pub struct BusyChannel {
    /// Its ends: `router a port 1 -> router b port 0`.
    pub channel: String,
    /// From 0 to 1.
    pub utilisation: f64,
}

/// The busiest channels of a run, busiest first, equal ones by number; none where the folder does not hold the network or the
/// utilisations, or where nothing moves.
pub fn busiest(folder: &Path, row: &RunRow, most: usize) -> Vec<BusyChannel> {
    find(folder, row, most).unwrap_or_default()
}

fn find(folder: &Path, row: &RunRow, most: usize) -> Option<Vec<BusyChannel>> {
    let utilisations = numbers(&fs::read(Store::vector_file(folder, row.key(), "channel_utilisation")).ok()?)?;
    let id = row.get(NETWORK_ID).as_str()?;
    let text = fs::read(Store::network_file(folder, id)).ok().filter(|text| network_id(text) == id)?;
    let network = network_json::parse("", &text).ok()?;
    let mut busy: Vec<(usize, f64)> = utilisations.into_iter().enumerate().filter(|&(_, utilisation)| utilisation > 0.0).collect();
    busy.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    busy.truncate(most);
    let channels = busy.into_iter().filter(|&(channel, _)| channel < network.channel_count() as usize);
    Some(
        channels
            .map(|(channel, utilisation)| BusyChannel { channel: network.channel_name(ChannelId(channel as u32)), utilisation })
            .collect(),
    )
}

/// The real numbers of a file as `Vector::to_npy` writes it.
fn numbers(bytes: &[u8]) -> Option<Vec<f64>> {
    let begin = 10 + usize::from(u16::from_le_bytes([*bytes.get(8)?, *bytes.get(9)?]));
    let data = bytes.get(begin..)?.chunks_exact(8);
    Some(data.map(|eight| f64::from_le_bytes(eight.try_into().expect("a chunk has eight bytes"))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::networks::Networks;
    use crate::results::{Numbers, Vector, tests as example};
    use crate::store::Access;
    use std::sync::Arc;

    #[test]
    fn channels_come_by_name_and_utilisation() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Access::Whole).unwrap();
        let mut row = RunRow::failed(&example::head(), "");
        assert_eq!(busiest(folder.path(), &row, 3), []);
        let id = Networks::default().keep(&Arc::new(example::network()), None, Some(&store)).unwrap();
        row.set(NETWORK_ID, id);
        let values = vec![0.25, 0.0, 0.5, 0.0, 0.75, 0.5];
        store.keep(&row, &[Vector { name: "channel_utilisation", shape: vec![6], values: Numbers::Real(values) }]).unwrap();
        let found: Vec<(String, f64)> = busiest(folder.path(), &row, 3).into_iter().map(|busy| (busy.channel, busy.utilisation)).collect();
        let expected = [
            ("router 0 port 1 -> router 1 port 1", 0.75),
            ("router 0 port 0 -> terminal 0", 0.5),
            ("router 1 port 1 -> router 0 port 1", 0.5),
        ];
        assert_eq!(found, expected.map(|(channel, utilisation)| (channel.to_owned(), utilisation)));
    }
}
