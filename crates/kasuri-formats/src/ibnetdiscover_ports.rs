//! What `ibnetdiscover -p` prints: a line for each port.
//!
//! ```text
//! CA   182  1 0x001175000077d284 4x QDR - SW    18 18 0x00066a00ec002dd9 ( 'node179 HCA-1' - 'leaf 12' )
//! SW    18 18 0x00066a00ec002dd9 4x QDR - CA   182  1 0x001175000077d284 ( 'leaf 12' - 'node179 HCA-1' )
//! SW    18 19 0x00066a00ec002dd9 4x SDR                                    'leaf 12'
//! ```
//!
//! Kind, LID, port, GUID of the node, width and speed, then the same of the other end. A port without a cable has no other end. Lines
//! of progress (`DR path … -> new Switch`) and messages are skipped. The number of a node's ports and the LMC of an adapter are missing.
//! Source: rdma-core 44, `infiniband-diags/ibnetdiscover.c`, `dump_ports_report`.

use crate::discovery::{Discovery, End, Id, Kind, Node, hexadecimal};
use crate::error::FormatError;
use crate::ibnetdiscover::check_lid;
use crate::rate::Rate;
use crate::text::text_of;
use std::collections::BTreeMap;

/// Reads a list of ports. `name` is the file's name for messages.
///
/// # Errors
/// A line of another form, a number outside its range, a node that is a switch in one line and an adapter in another.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Discovery, FormatError> {
    let mut found = Discovery { name: name.to_owned(), ..Discovery::default() };
    let mut known: BTreeMap<u64, u32> = BTreeMap::new();
    for (index, line) in text_of(name, bytes)?.lines().enumerate() {
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') || text.starts_with("DR path") || found.messages.take(index + 1, text) {
            continue;
        }
        let error = |problem: String| FormatError::new(name, index + 1, problem);
        let (place, own_name, link) = port(text).map_err(error)?;
        let node = *known.entry(place.guid).or_insert_with(|| {
            let lid = if place.kind == Kind::Switch { place.lid } else { 0 };
            let (kind, id, guid) = (place.kind, Id::Guid(place.guid), Some(place.guid));
            let name = if own_name.is_empty() { id.to_string() } else { own_name.to_owned() };
            found.nodes.push(Node { kind, id, guid, system: None, name, ports: None, lid, line: index + 1 });
            found.nodes.len() as u32 - 1
        });
        let first = &found.nodes[node as usize];
        if first.kind != place.kind {
            let problem = format!("calls node {} something else than line {}, which describes it, too", first.id, first.line);
            return Err(error(problem));
        }
        let Some((rate, peer)) = link else { continue };
        let lid = if place.kind == Kind::Switch { 0 } else { place.lid };
        let (peer, peer_port) = (Id::Guid(peer.guid), peer.port);
        found.ends.push(End { node, port: place.port, guid: None, lid, lmc: 0, peer, peer_port, rate: Some(rate), line: index + 1 });
    }
    if found.nodes.is_empty() {
        return Err(FormatError::new(name, 1, "describes no port; is it what `ibnetdiscover -p` prints?"));
    }
    Ok(found)
}

/// One end of a line.
struct Place {
    kind: Kind,
    lid: u32,
    port: u32,
    guid: u64,
}

/// A port, its node's name, and the rate and the other end of its cable.
type Line<'a> = (Place, &'a str, Option<(Rate, Place)>);

/// The port of a line, its node's name, and the cable if there is one.
fn port(text: &str) -> Result<Line<'_>, String> {
    let shown = || text.chars().take(60).collect::<String>();
    let wrong = || {
        format!(
            "invalid port `{}`; a line is CA, SW or RT, LID, port, GUID, width, speed, - and the same of the other end, names; was the dump \
             cut short?",
            shown()
        )
    };
    let (fields, names) = text.split_once('\'').ok_or_else(wrong)?;
    let words: Vec<&str> = fields.split_whitespace().collect();
    let own = place(words.get(..4).ok_or_else(wrong)?).ok_or_else(wrong)?;
    check_lid(own.lid, 0)?;
    if !words.contains(&"-") {
        let name = names.trim_end_matches(')').trim_end().strip_suffix('\'').ok_or_else(wrong)?;
        return Ok((own, name.trim(), None));
    }
    let &[width, speed, "-", ref peer @ .., "("] = &words[4..] else { return Err(wrong()) };
    let rate = Rate::parse(&format!("{width}{speed}")).ok_or_else(|| format!("invalid rate `{width} {speed}`; {}", Rate::right()))?;
    let peer = place(peer).ok_or_else(wrong)?;
    let names = names.strip_suffix("' )").ok_or_else(wrong)?;
    let (name, _) = names.split_once("' - '").ok_or_else(wrong)?;
    Ok((own, name.trim(), Some((rate, peer))))
}

/// `SW 18 36 0x00066a00ec002dd9`.
fn place(words: &[&str]) -> Option<Place> {
    let &[kind, lid, port, guid] = words else { return None };
    let kind = match kind {
        "CA" => Kind::Adapter,
        "SW" => Kind::Switch,
        "RT" => Kind::Router,
        _ => return None,
    };
    Some(Place { kind, lid: lid.parse().ok()?, port: port.parse().ok()?, guid: hexadecimal(guid)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: &str = "DR path slid 0; dlid 0; 0,1 -> new Switch {00066a00ec002dea} portnum 0 lid 0-0 \"\"\n\
        CA   182  1 0x001175000077d284 4x QDR - SW    18 17 0x00066a00ec002dd9 ( 'node179 HCA-1' - 'GUID=0x1 L112' )\n\
        SW    18 17 0x00066a00ec002dd9 4x QDR - CA   182  1 0x001175000077d284 ( 'GUID=0x1 L112' - 'node179 HCA-1' )\n\
        SW    18 19 0x00066a00ec002dd9 4x SDR                                    'GUID=0x1 L112'\n";

    #[test]
    fn ports_and_names_are_read() {
        let found = parse("p", PAIR.as_bytes()).unwrap();
        assert_eq!((found.nodes.len(), found.ends.len()), (2, 2));
        assert_eq!((found.nodes[1].name.as_str(), found.nodes[1].lid), ("GUID=0x1 L112", 18));
        assert_eq!((found.ends[0].lid, found.ends[0].peer_port, found.ends[1].lid), (182, 17, 0));
        assert_eq!(found.ends[0].rate.unwrap().to_string(), "4xQDR");
    }

    #[test]
    fn what_is_wrong_is_named_by_its_line() {
        for (old, new, expected) in [
            ("CA   182", "CB   182", "p:2: invalid port `CB   182"),
            ("4x QDR - SW", "4x QQR - SW", "p:2: invalid rate `4x QQR`"),
            ("'node179 HCA-1' )", "'node17", "p:3: invalid port `SW    18 17"),
            ("SW    18 19", "RT    18 19", "p:4: calls node 0x00066a00ec002dd9 something else than line 3"),
        ] {
            let error = parse("p", PAIR.replacen(old, new, 1).as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{new:?}: {error}");
        }
    }
}
