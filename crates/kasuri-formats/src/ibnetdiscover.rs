//! What `ibnetdiscover` prints, and the networks of ibsim, which have the same form.
//!
//! ```text
//! Switch  36 "S-0002c90000001000"   # "leaf 0" base port 0 lid 2 lmc 0
//! [1]  "H-0002c90300001000"[1](2c90300001001)   # "node1 HCA-1" lid 1 4xQDR
//!
//! Ca  1 "H-0002c90300001000"   # "node1 HCA-1"
//! [1](2c90300001001)  "S-0002c90000001000"[1]   # lid 1 lmc 0 "leaf 0" lid 2 4xQDR
//! ```
//!
//! Each cable is listed at both ends. GUIDs are compared as numbers, however they are padded. With `-f` ` s=4 w=2 v=4` follows each rate,
//! with `-g` the nodes of a chassis may be described twice, alike, and ports have a second number (`[3][ext 1]`). Files of ibsim have any
//! word for an id, `Hca` for `Ca`, and a cable may be listed at one end only. Source: rdma-core 44, `infiniband-diags/ibnetdiscover.c`;
//! ibsim 0.10, `README`.

use crate::discovery::{Discovery, End, Id, Kind, MAX_LID, MAX_LMC, MAX_PORT, Node, hexadecimal, number_after};
use crate::error::FormatError;
use crate::rate::Rate;
use crate::text::text_of;
use std::collections::BTreeMap;

/// Reads a topology file. `name` is the file's name for messages.
///
/// # Errors
/// A line of another form, a port before any node, a number outside its range.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Discovery, FormatError> {
    let mut found = Discovery { name: name.to_owned(), ..Discovery::default() };
    let (mut guid, mut system) = (None, None);
    // The node to which the next ports belong, and whether it was described before.
    let mut open: Option<(u32, bool)> = None;
    let mut known: BTreeMap<Id, u32> = BTreeMap::new();
    // The first end at each node's port.
    let mut first_ends: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for (index, line) in text_of(name, bytes)?.lines().enumerate() {
        let number = index + 1;
        let error = |problem: String| FormatError::new(name, number, problem);
        let text = line.trim();
        let first = text.split_whitespace().next().unwrap_or_default();
        let kind = kind_of(first);
        if text.is_empty() || text.starts_with('#') || is_heading(text) || found.messages.take(number, text) {
            continue;
        }
        if let Some(kind) = kind {
            let node = node(kind, text, (guid.take(), system.take()), number).map_err(error)?;
            found.one_sided |= matches!(node.id, Id::Word(_));
            open = Some(match known.get(&node.id) {
                Some(&first) if found.nodes[first as usize].is_alike(&node) => (first, true),
                _ => {
                    known.entry(node.id.clone()).or_insert(found.nodes.len() as u32);
                    found.nodes.push(node);
                    (found.nodes.len() as u32 - 1, false)
                }
            });
        } else if text.starts_with('[') {
            let Some((node, is_again)) = open else {
                return Err(error("a port before any node; a node begins with Switch, Ca or Rt".to_owned()));
            };
            let is_switch = found.nodes[node as usize].kind == Kind::Switch;
            let end = port(text, node, is_switch, number).map_err(error)?;
            let first = *first_ends.entry((node, end.port)).or_insert(found.ends.len());
            if !(is_again && found.ends.get(first).is_some_and(|first| first.is_alike(&end))) {
                found.ends.push(end);
            }
        } else if let Some((key, value)) = first.split_once('=') {
            let value_of = || {
                let digits = value.split('(').next().unwrap_or_default();
                hexadecimal(digits).ok_or_else(|| error(format!("invalid GUID in `{key}={value}`; expected e.g. 0x2c90300001000")))
            };
            match key {
                "caguid" | "switchguid" | "rtguid" => guid = Some(value_of()?),
                "sysimgguid" => system = Some(value_of()?).filter(|&guid| guid != 0),
                _ => {}
            }
        } else {
            let shown: String = text.chars().take(60).collect();
            return Err(error(format!(
                "`{shown}` is neither a node (Switch, Ca, Rt), nor a port ([1] …), nor an attribute (switchguid=0x…)"
            )));
        }
    }
    if found.nodes.is_empty() {
        return Err(FormatError::new(name, 1, "describes no node; is it what `ibnetdiscover` prints?"));
    }
    Ok(found)
}

/// Lines between the nodes that say nothing of them.
fn is_heading(text: &str) -> bool {
    ["Non-Chassis Nodes", "Chassis ", "Hostname: ", "DR path "].iter().any(|heading| text.starts_with(heading))
}

fn kind_of(word: &str) -> Option<Kind> {
    match word {
        "Switch" => Some(Kind::Switch),
        "Ca" | "Hca" => Some(Kind::Adapter),
        "Rt" => Some(Kind::Router),
        _ => None,
    }
}

/// `Switch 36 "S-0002…" # "name" base port 0 lid 2 lmc 0`. The GUIDs come from the lines before it: the node's and its system's.
fn node(kind: Kind, text: &str, (guid, system): (Option<u64>, Option<u64>), line: usize) -> Result<Node, String> {
    if text.contains(" ports ") && text.contains(" devid 0x") {
        return Err("is a line of `ibnetdiscover -l` (or -S, -H, -R), which names no cables; run it without these options".to_owned());
    }
    let (before, comment) = text.split_once('#').unwrap_or((text, ""));
    let wrong = || format!("invalid node `{}`; expected a number of ports and an id, e.g. Switch 36 \"S-0002c90000001000\"", before.trim());
    let (head, id, _) = quoted(before).ok_or_else(wrong)?;
    let ports = head.split_whitespace().nth(1).and_then(|word| word.parse().ok()).filter(|ports| (0..=MAX_PORT).contains(ports));
    let ports = ports.ok_or_else(wrong)?;
    let id = id_of(id);
    let (name, after) = match comment.find('"').zip(comment.rfind('"')) {
        Some((open, close)) if open < close => (&comment[open + 1..close], &comment[close + 1..]),
        _ => ("", comment),
    };
    let lid = if kind == Kind::Switch { number_after(after, "lid").unwrap_or(0) } else { 0 };
    check_lid(lid, 0)?;
    let guid = if let Id::Guid(guid) = id { Some(guid) } else { guid };
    let name = if name.trim().is_empty() { id.to_string() } else { name.trim().to_owned() };
    Ok(Node { kind, id, guid, system, name, ports: Some(ports), lid, line })
}

/// `[1](guid) "S-0002…"[4](guid) # …`.
fn port(text: &str, node: u32, is_switch: bool, line: usize) -> Result<End, String> {
    // Names in the comment may hold anything, so it begins at the first `#` after the peer.
    let wrong = || {
        let shown: String = text.chars().take(60).collect();
        format!("invalid port `{shown}`; expected e.g. [1] \"S-0002c90000001000\"[4] # \"leaf 0\" lid 2 4xQDR; was the dump cut short?")
    };
    let (head, peer, rest) = quoted(text).ok_or_else(wrong)?;
    let (port, after) = bracketed(head).ok_or_else(wrong)?;
    let (peer_port, comment) = bracketed(rest).ok_or_else(wrong)?;
    let guid = after.split('(').nth(1).and_then(|text| text.split(')').next()).and_then(hexadecimal);
    let comment = comment.split_once('#').map(|(_, comment)| comment.trim());
    let (mut lid, mut lmc, mut rate) = (0, 0, None);
    if let Some(comment) = comment {
        let comment = without_full_information(comment);
        let word = comment.rsplit(char::is_whitespace).next().unwrap_or_default();
        let no_rate = || format!("invalid rate `{word}` at the end; {}; was the dump cut short?", Rate::right());
        rate = Some(Rate::parse(word).ok_or_else(no_rate)?);
        if !is_switch {
            let own = comment.split('"').next().unwrap_or_default();
            lid = number_after(own, "lid").unwrap_or(0);
            lmc = u8::try_from(number_after(own, "lmc").unwrap_or(0)).unwrap_or(u8::MAX);
        }
    }
    check_lid(lid, lmc)?;
    Ok(End { node, port, guid, lid, lmc, peer: id_of(peer), peer_port, rate, line })
}

/// The comment of a port up to the rate, without ` s=4 w=2 v=4` of `ibnetdiscover -f`, and ` slot 3` and ` (scp)` of some makers.
fn without_full_information(comment: &str) -> &str {
    let mut rest = comment.trim_end();
    loop {
        let (before, word) = rest.rsplit_once(char::is_whitespace).unwrap_or(("", rest));
        let before = before.trim_end();
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_option = word.split_once('=').is_some_and(|(key, value)| matches!(key, "s" | "e" | "w" | "v") && is_number(value));
        rest = if is_option || word == "(scp)" {
            before
        } else if let Some(before) = before.strip_suffix(" slot").filter(|_| is_number(word)) {
            before.trim_end()
        } else {
            return rest;
        };
    }
}

/// Refuses what is no LID or no LMC.
pub(super) fn check_lid(lid: u32, lmc: u8) -> Result<(), String> {
    if lmc > MAX_LMC {
        return Err(format!("has an lmc of {lmc}; it is at most {MAX_LMC}"));
    }
    if lid > MAX_LID { Err(format!("has lid {lid}; the largest is {MAX_LID}")) } else { Ok(()) }
}

/// The text before the first word in double quotes, the word, the text after it.
fn quoted(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('"')?;
    let (word, after) = rest.split_once('"')?;
    (!word.is_empty()).then_some((before, word, after))
}

/// The number in brackets with which the text begins, and what follows.
fn bracketed(text: &str) -> Option<(u32, &str)> {
    let (number, after) = text.trim_start().strip_prefix('[')?.split_once(']')?;
    Some((number.trim().parse().ok()?, after))
}

/// `S-0002c90000001000`, `H-…` and `R-…` are GUIDs, all else is a word.
fn id_of(word: &str) -> Id {
    let guid = ["S-", "H-", "R-"].iter().find_map(|prefix| word.strip_prefix(prefix)).and_then(hexadecimal);
    guid.map_or_else(|| Id::Word(word.to_owned()), Id::Guid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: &str = "#\n# Topology file: generated on Fri Nov 20 20:29:32 2026\n\nvendid=0x0\nswitchguid=0x2c900000010a0(2c900000010a0)\n\
        Switch\t6 \"S-0002c900000010a0\"\t\t# \"MF0;a #1:x/U1\" enhanced port 0 lid 31 lmc 0\n\
        [5]\t\"H-2c90300001140\"[1](2c90300001141) \t\t# \"h 20 mlx5_0\" lid 15 4xQDR\n\n\
        caguid=0x2c90300001140\nCa 1 \"H-0002c90300001140\" # \"h 20 mlx5_0\"\n\
        [1](2c90300001141)   \"S-0002c900000010a0\"[5] # lid 15 lmc 2 \"MF0;a #1:x/U1\" lid 31 4xQDR\n";

    #[test]
    fn nodes_ports_names_and_lids_are_read() {
        let found = parse("t", PAIR.as_bytes()).unwrap();
        assert_eq!((found.nodes.len(), found.ends.len(), found.one_sided), (2, 2, false));
        assert_eq!((found.nodes[0].name.as_str(), found.nodes[0].lid, found.nodes[0].ports), ("MF0;a #1:x/U1", 31, Some(6)));
        let end = &found.ends[1];
        assert_eq!((end.port, end.guid, end.lid, end.lmc, end.peer_port), (1, Some(0x2_c903_0000_1141), 15, 2, 5));
        assert_eq!((end.peer.clone(), end.rate.unwrap().to_string()), (Id::Guid(0x2_c900_0000_10a0), "4xQDR".to_owned()));
    }

    #[test]
    fn what_is_wrong_is_named_by_its_line() {
        for (old, new, expected) in [
            ("Switch\t6 ", "Switch\tsix ", "t:6: invalid node `Switch\tsix \"S-0002c900000010a0\"`"),
            ("[5]\t\"H", "[5\t\"H", "t:7: invalid port `[5\t"),
            ("lid 15 4xQDR\n\n", "lid 15 4xQD\n\n", "t:7: invalid rate `4xQD` at the end"),
            ("lmc 2", "lmc 9", "t:11: has an lmc of 9"),
            ("lid 15 lmc", "lid 99999999 lmc", "t:11: has lid 99999999"),
            ("vendid=0x0", "vendor 0", "t:4: `vendor 0` is neither a node"),
            ("Switch\t6", "switch\t6", "is neither a node"),
        ] {
            let error = parse("t", PAIR.replacen(old, new, 1).as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{new:?}: {error}");
        }
        assert!(parse("t", b"# nothing\n").unwrap_err().to_string().contains("describes no node"));
        assert!(parse("t", b"[1] \"S-1\"[2]\n").unwrap_err().to_string().contains("t:1: a port before any node"));
    }

    /// The output with -f and -g, and with messages of the tools.
    #[test]
    fn full_and_grouped_output_is_the_same_fabric() {
        let plain = parse("t", PAIR.as_bytes()).unwrap();
        let lines = |found: Discovery| {
            let ends: Vec<End> = found.ends.into_iter().map(|end| End { line: 0, ..end }).collect();
            let nodes: Vec<Node> = found.nodes.into_iter().map(|node| Node { line: 0, ..node }).collect();
            (nodes, ends)
        };
        let full = PAIR.replace(" 4xQDR\n", " 4xQDR s=4 w=2 v=4\n").replacen("v=4\n", "v=4 slot 5\n", 1);
        assert_eq!(lines(parse("t", full.as_bytes()).unwrap()), lines(plain.clone()));
        let external = PAIR.replace("[5]\t\"H", "[5][ext 3]\t\"H").replace("[5] # lid", "[5][ext 3] # lid");
        assert_eq!(lines(parse("t", external.as_bytes()).unwrap()), lines(plain.clone()));
        let place = PAIR.find("vendid").unwrap();
        let switch = &PAIR[place..PAIR.find("\n\ncaguid").unwrap()];
        let grouped = format!(
            "{}\nChassis 1 (guid 0x7)\nHostname: a b\n\n# Spine Nodes\n{switch}\n# Chassis Switches\n{}",
            &PAIR[..place],
            &PAIR[place..]
        );
        assert_eq!(lines(parse("t", grouped.as_bytes()).unwrap()), lines(plain.clone()));
        // Different descriptions of a node are kept: the check of cables refuses them.
        assert_eq!(parse("t", grouped.replacen("\"MF0;a", "\"MF0;b", 1).as_bytes()).unwrap().nodes.len(), 3);
        let with_messages =
            PAIR.replacen("\n[5]", "\nibwarn: [12] mad_rpc: _do_madrpc failed; dport (Lid 3)\nsrc/query_smp.c:98; send failed; -5\n[5]", 1);
        let found = parse("t", with_messages.as_bytes()).unwrap();
        let note = "t holds 2 messages of the tools, first in line 7: `ibwarn: [12] mad_rpc: _do_madrpc failed; dport (Lid 3)`; \
                    the dump may be incomplete";
        assert_eq!(found.messages.note("t").as_deref(), Some(note));
        assert_eq!(lines(found), lines(plain));
        let unknown = parse("t", PAIR.replace("4xQDR", "?????").as_bytes()).unwrap();
        assert!(!unknown.ends[0].rate.unwrap().is_known());
        let list = b"Ca\t : 0x0002c90300001000 ports 1 devid 0x101b vendid 0x2c9 \"n1 mlx5_0\"\n";
        assert!(parse("t", list).unwrap_err().to_string().contains("t:1: is a line of `ibnetdiscover -l`"));
    }

    #[test]
    fn networks_of_ibsim_have_words_for_ids() {
        let found =
            parse("n", b"caguid=0x10\nHca 1 \"h0\" # \"h0\"\n[1] \"s\"[5] # lid 0 lmc 0 \"s\" lid 0 4xSDR\nSwitch 8 \"s\"\n").unwrap();
        assert!(found.one_sided);
        assert_eq!((found.nodes[0].guid, found.nodes[1].name.as_str()), (Some(16), "s"));
        assert_eq!(found.ends[0].peer, Id::Word("s".to_owned()));
    }
}
