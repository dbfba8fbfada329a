use super::*;
use kasuri_formats::slurm_topology;
use kasuri_network::deadlock::{EscapePath, Verdict, check_within};
use kasuri_network::id::TerminalId;
use kasuri_network::routing::forwarding::{AddressChoice, TableRouting};
use kasuri_network::routing::{Routing, VirtualChannels};
use std::fmt::Write;
use std::sync::Arc;

/// Two leaves, two spines, two hosts a leaf, one of them with an LMC of 1; `lids` of the four hosts.
const LIDS: [u32; 4] = [1, 2, 8, 10];

fn switch(number: u32) -> String {
    format!("S-{number:016x}")
}

/// A discovery in blocks. Switches 16 and 17 are leaves, 18 and 19 spines; hosts 32 to 35.
fn blocks() -> String {
    let mut text = String::new();
    for leaf in 0..2 {
        let _ = writeln!(text, "\nSwitch\t4 \"{}\"\t\t# \"leaf{}\" base port 0 lid {} lmc 0", switch(16 + leaf), 10 - leaf, 20 + leaf);
        for host in 0..2 {
            let number = 2 * leaf + host;
            let _ = writeln!(
                text,
                "[{}]\t\"H-{:x}\"[1]({:x}) # \"n{number} HCA-1\" lid {} 4xEDR",
                host + 1,
                32 + number,
                64 + number,
                LIDS[number as usize]
            );
        }
        for spine in 0..2 {
            let _ = writeln!(text, "[{}]\t\"{}\"[{}] # \"spine{spine}\" lid {} 4xHDR", spine + 3, switch(18 + spine), leaf + 1, 22 + spine);
        }
    }
    for spine in 0..2 {
        let _ = writeln!(text, "\nSwitch\t2 \"{}\"\t\t# \"spine{spine}\" enhanced port 0 lid {} lmc 0", switch(18 + spine), 22 + spine);
        for leaf in 0..2 {
            let _ = writeln!(text, "[{}]\t\"{}\"[{}] # \"leaf\" lid {} 4xHDR", leaf + 1, switch(16 + leaf), spine + 3, 20 + leaf);
        }
    }
    for host in 0..4 {
        let _ = writeln!(text, "\nCa\t1 \"H-{:016x}\"\t\t# \"n{host} HCA-1\"", 32 + host);
        let lmc = u32::from(host == 2);
        let _ = writeln!(
            text,
            "[1]({:x}) \"{}\"[{}] # lid {} lmc {lmc} \"leaf\" lid 20 4xEDR",
            64 + host,
            switch(16 + host / 2),
            host % 2 + 1,
            LIDS[host as usize]
        );
    }
    text
}

/// Packets to a host of the other leaf go by the spine of the LID's parity.
fn tables() -> String {
    let mut text = String::new();
    for (guid, is_leaf) in [(16, true), (17, true), (18, false), (19, false)] {
        let _ = writeln!(text, "Unicast lids [0x0-0xb] of switch Lid 1 guid 0x{guid:016x} (s):");
        for (lid, host) in [(1, 0), (2, 1), (8, 2), (9, 2), (10, 3)] {
            let leaf = 16 + host / 2;
            let port = match is_leaf {
                true if guid == leaf => host % 2 + 1,
                true => 3 + lid % 2,
                false => leaf - 15,
            };
            let _ = writeln!(text, "0x{lid:04x} {port:03} : (Channel Adapter portguid 0x{:016x}: 'n')", 64 + host);
        }
        let _ = writeln!(text, "5 valid lids dumped ");
    }
    text
}

fn file(name: &str, text: &str) -> SourceFile {
    (name.to_owned(), text.as_bytes().to_vec())
}

fn fabric(files: &[SourceFile]) -> Result<Fabric, String> {
    import(files, Options::default()).map_err(|error| error.to_string())
}

#[test]
fn names_addresses_rates_and_tables_are_kept() {
    let fabric = fabric(&[file("t", &tables()), file("d", &blocks())]).unwrap();
    let (network, details) = (&fabric.network, &fabric.details);
    assert_eq!(network.router_names().all().unwrap(), ["leaf9", "leaf10", "spine0", "spine1"]);
    assert_eq!(network.terminal_names().all().unwrap(), ["n0 HCA-1", "n1 HCA-1", "n2 HCA-1", "n3 HCA-1"]);
    assert_eq!((network.channel_count(), &details.terminal_lids[..], &details.terminal_lmcs[..]), (16, &LIDS[..], &[0, 0, 1, 0][..]));
    assert_eq!(details.hosts, ["n0", "n1", "n2", "n3"]);
    // 97 and 200 Gbit/s: a flit takes 200 cycles on the one when it takes 97 on the other.
    assert_eq!((details.rates.as_slice(), network.link(ChannelId(0)).period), (&["4xEDR".to_owned(), "4xHDR".to_owned()][..], 200));
    assert_eq!(fabric.gbit_per_second(ChannelId(8)), Some(200.0));
    assert_eq!(details.notes, Vec::<String>::new());
    // Leaf 9 is node 17: its first host is n2, and its port 3 leads to spine 0.
    assert_eq!(network.injection_port(TerminalId(2)), (RouterId(0), 1));
    let tables = network.tables().unwrap();
    assert_eq!(tables.addresses(TerminalId(2)), 2..4);
    let mut path = Vec::new();
    tables.follow(network, RouterId(1), TerminalId(2), 3, &mut path).unwrap();
    let names: Vec<String> = path.iter().map(|&channel| fabric.cable_name(channel)).collect();
    assert_eq!(names, ["leaf10 port 4 -> spine1 port 1", "spine1 port 2 -> leaf9 port 4", "leaf9 port 1 -> n2 HCA-1"]);
}

#[test]
fn what_is_written_is_read_again() {
    let lanes = "Switch 0x10, base LID 1, \"s\"\n1 3 : 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 15\n";
    let levels = "1 10 3\n0x00000021 8 2\n";
    let whole = [file("t", &tables()), file("d", &blocks()), file("l", lanes), file("s", levels)];
    let fabric = fabric(&whole).unwrap();
    let again = super::import(&[file("f.json", &fabric.write())], Options::default()).unwrap();
    assert_eq!((again.network, &again.details), (fabric.network.clone(), &fabric.details));
    let tables = fabric.network.tables().unwrap();
    assert_eq!((tables.level(TerminalId(0), 4), tables.level(TerminalId(1), 2), tables.level(TerminalId(1), 3)), (3, 2, 0));
    assert_eq!(tables.lanes().unwrap().get(RouterId(1), 1, 3)[3], 1);
}

/// The two forms of `ibnetdiscover` give the same network; the list of ports knows neither ports without a cable nor the LMC.
#[test]
fn the_order_of_discovery_does_not_matter() {
    let text = blocks();
    let mut nodes: Vec<&str> = text.split("\n\n").collect();
    let fabric = fabric(&[file("d", &text)]).unwrap();
    nodes.reverse();
    let reversed = import(&[file("d", &nodes.join("\n\n"))], Options::default()).unwrap();
    assert_eq!(reversed.network, fabric.network);
}

#[test]
fn damaged_discoveries_are_refused() {
    let text = blocks();
    for (old, new, expected) in [
        (
            "[3]\t\"S-0000000000000012\"[1]",
            "[2]\t\"S-0000000000000012\"[1]",
            "a second cable on port 2 of `leaf10`; the first is in line 4",
        ),
        ("[3]\t\"S-0000000000000012\"[1]", "[5]\t\"S-0000000000000012\"[1]", "names port 5 of `leaf10`, whose ports are 1 to 4"),
        ("\"S-0000000000000012\"[1]", "\"S-0000000000000012\"[3]", "names port 3 of `spine0`, whose ports are 1 to 2"),
        ("\"S-0000000000000012\"[1]", "\"S-0000000000000099\"[1]", "names node 0x0000000000000099, which the file does not describe"),
        ("\"S-0000000000000012\"[1]", "\"S-0000000000000012\"[2]", "from which line"),
        ("\n[1](40)", "\n#[1](40)", "where the file has no cable; was the dump cut short?"),
        ("lid 1 lmc", "lid 2 lmc", "has LID 2, which line"),
        ("Ca\t1 \"H-0000000000000020\"", "Ca\t1 \"H-0000000000000021\"", "describes node 0x0000000000000021 again; line"),
    ] {
        let error = fabric(&[file("d", &text.replacen(old, new, 1))]).unwrap_err();
        assert!(error.starts_with("d:") && error.contains(expected), "{new}: {error}");
    }
    let half = &text[..text.len() / 2];
    assert!(fabric(&[file("d", half)]).unwrap_err().contains("was the dump cut short?"));
    let unknown = text.replace("4xHDR", "4x???");
    assert!(fabric(&[file("d", &unknown)]).unwrap_err().contains("has rate 4x???; say what such cables carry"));
    let options = Options { unknown_rate: Rate::parse("4xHDR"), ..Options::default() };
    let told = import(&[file("d", &unknown)], options).unwrap();
    assert_eq!(told.network, fabric(&[file("d", &text)]).unwrap().network);
}

#[test]
fn tables_of_another_fabric_are_refused() {
    let (blocks, text) = (blocks(), tables());
    for (old, new, expected) in [
        (
            "guid 0x0000000000000010",
            "guid 0x0000000000000099",
            "t:1: the table of switch 0x0000000000000099 (s), which the discovery does not have",
        ),
        ("guid 0x0000000000000011", "guid 0x0000000000000010", "t:8: a second table of switch 0x0000000000000010"),
        ("0x0001 001", "0x0001 007", "t:2: sends LID 0x0001 to port 7, but the switch has ports 1 to 4"),
        ("portguid 0x0000000000000040", "portguid 0x0000000000000099", "t:2: says that LID 0x0001 is port GUID 0x0000000000000099"),
        ("5 valid", "6 valid", "t:7: says `6 valid lids dumped`"),
    ] {
        let error = fabric(&[file("d", &blocks), file("t", &text.replacen(old, new, 1))]).unwrap_err();
        assert!(error.contains(expected), "{new}: {error}");
    }
    for (old, new, expected) in [
        ("0x000a 003 : (Channel Adapter portguid 0x0000000000000043: 'n')\n5", "4", ""),
        ("0x0001 001", "0x0055 001", "unknown LIDs in the tables: 1, first 85 (0x0055)"),
        ("5 valid lids dumped ", "iberror: failed: dump tables", "1 forwarding tables end early"),
    ] {
        let notes = fabric(&[file("d", &blocks), file("t", &text.replacen(old, new, 1))]).unwrap().details.notes.join("; ");
        assert!(notes.contains(expected), "{new}: {notes}");
    }
    for (files, expected) in [
        (vec![file("x", "hello\n")], "x: is not a known dump of a fabric"),
        (vec![file("t", &text)], "a fabric has one file of ibnetdiscover, or one that says all of it; found: none"),
        (vec![file("d", &blocks), file("e", &blocks)], "found: d, e"),
        (vec![file("d", &blocks), file("s", "1 2 3\n")], "s says something of routes; give the forwarding tables"),
        (vec![file("d", &blocks), file("t", &text), file("s", "1 99 3\n")], "s:1: names unknown destination LID 99"),
    ] {
        let error = fabric(&files).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

/// Three switches in a ring, one host each, all packets the same way round: the three cables wait for each other. Two service levels on two
/// lanes break the cycle where the packets that come past the third cable have a lane of their own.
#[test]
fn service_levels_break_a_cycle() {
    let mut discovery = String::new();
    let mut dump = String::new();
    for number in 0..3 {
        let (next, before) = ((number + 1) % 3, (number + 2) % 3);
        let _ = writeln!(discovery, "Switch 3 \"{}\" # \"s{number}\" base port 0 lid {} lmc 0", switch(16 + number), 20 + number);
        let _ = writeln!(discovery, "[1] \"H-{:x}\"[1]({:x}) # \"h\" lid {} 4xHDR", 32 + number, 64 + number, number + 1);
        let _ = writeln!(
            discovery,
            "[2] \"{}\"[3] # \"s\" lid 1 4xHDR\n[3] \"{}\"[2] # \"s\" lid 1 4xHDR",
            switch(16 + next),
            switch(16 + before)
        );
        let _ = writeln!(discovery, "Ca 1 \"H-{:x}\" # \"h{number}\"", 32 + number);
        let _ = writeln!(discovery, "[1]({:x}) \"{}\"[1] # lid {} lmc 0 \"s\" lid 1 4xHDR", 64 + number, switch(16 + number), number + 1);
        let _ = writeln!(dump, "Unicast lids [0-3] of switch Lid 1 guid 0x{:x} ('s'):", 16 + number);
        for lid in 1..4 {
            let _ = writeln!(dump, "0x{lid:04x} {:03}", if lid == number + 1 { 1 } else { 2 });
        }
        let _ = writeln!(dump, "3 lids dumped");
    }
    let verdict = |levels: &str| {
        let mut files = vec![file("d", &discovery), file("t", &dump)];
        files.extend((!levels.is_empty()).then(|| file("l", levels)));
        let fabric = fabric(&files).unwrap();
        let routing = TableRouting::new(&fabric.network, Arc::clone(fabric.network.tables().unwrap()), AddressChoice::First);
        assert_eq!(routing.unreachable(), (0, None));
        let classes = [VirtualChannels { begin: 0, end: routing.facts().virtual_channels_required as u16 }];
        check_within(&fabric.network, &routing, &classes, EscapePath::Open, u64::MAX).verdict
    };
    assert!(matches!(verdict(""), Verdict::Cycle(cycle) if cycle.len() == 3));
    // Three of the six pairs take two cables each, so one of them on a lane of its own opens the cycle, and all of them close it there.
    assert_eq!(verdict("2 1 1\n"), Verdict::Acyclic);
    assert!(matches!(verdict("2 1 1\n1 3 1\n3 2 1\n"), Verdict::Cycle(_)));
}

#[test]
fn hosts_are_the_words_before_the_device() {
    let names = ["node179 HCA-1", "a08 c17 mlx5_5", "login", "Mellanox Technologies Aggregation Node", "n1 hfi1_0", " HCA-1"];
    assert_eq!(names.map(host_of), ["node179", "a08 c17", "login", "Mellanox", "n1", " HCA-1"]);
}

/// The hosts of [`blocks`] with other descriptions and the systems of their adapters, by host; and the notes.
fn hosts_of(describe: impl Fn(u32) -> String, system: impl Fn(u32) -> u32) -> (Vec<String>, String) {
    let mut text = blocks();
    for host in 0..4 {
        let plain = format!("\"n{host} HCA-1\"");
        let named = format!("\nsysimgguid=0x{:x}\ncaguid=0x{:x}\nCa\t1 \"H-{:016x}\"", system(host), 32 + host, 32 + host);
        text = text.replace(&format!("\nCa\t1 \"H-{:016x}\"", 32 + host), &named).replace(&plain, &format!("\"{}\"", describe(host)));
    }
    let details = fabric(&[file("d", &text)]).unwrap().details;
    (details.hosts, details.notes.join("; "))
}

/// Hosts with a description that names no machine, or that several systems share, are distinguished by the system; other names are kept.
#[test]
fn adapters_without_a_name_are_hosts_by_their_system() {
    let generic = ["MT4123 ConnectX6 Mellanox Technologies", "localhost mlx5_0", "localhost HCA-1", "node HCA-1", "mlx5_0 node"];
    for description in generic {
        let (mut hosts, notes) = hosts_of(|_| description.to_owned(), |host| 0xa0 + host);
        hosts.sort_unstable();
        assert_eq!(hosts, ["host-00000000000000a0", "host-00000000000000a1", "host-00000000000000a2", "host-00000000000000a3"]);
        assert!(notes.contains(&format!("the descriptions of 4 adapters name no host, first `{description}`")), "{notes}");
        assert!(notes.ends_with("are distinguished by sysimgguid"), "{notes}");
    }
    // A device before the name of each machine: two adapters of one system are one host.
    let (hosts, notes) = hosts_of(|host| format!("mlx5_0 node{host}"), |host| 0xa0 + host / 2);
    assert_eq!(hosts.iter().collect::<std::collections::BTreeSet<_>>().len(), 2);
    assert!(notes.contains("of 4 adapters"), "{notes}");
    // Two systems with the same name, and two with names of their own.
    let (hosts, notes) = hosts_of(|host| if host < 2 { "node HCA-1".to_owned() } else { format!("n{host} HCA-1") }, |host| 0xa0 + host);
    assert_eq!(hosts, ["n2", "n3", "host-00000000000000a0", "host-00000000000000a1"]);
    assert!(notes.contains("of 2 adapters"), "{notes}");
    // Two adapters of one host with names of their own, whatever their systems.
    let (hosts, notes) = hosts_of(|host| format!("n{} mlx5_{}", host / 2, host % 2), |host| 0xa0 + host);
    assert_eq!((hosts, notes), (["n0", "n0", "n1", "n1"].map(str::to_owned).to_vec(), String::new()));
}

/// Two leaves and two spines are no tree; two leaves below one spine are.
#[test]
fn slurm_gets_a_tree() {
    let ForSlurm { topology, several, unnamed } = fabric(&[file("d", &blocks())]).unwrap().slurm();
    let written = "SwitchName=leaf9 Nodes=n[2-3]\nSwitchName=leaf10 Nodes=n[0-1]\nSwitchName=fabric Switches=leaf9,leaf10\n";
    assert_eq!((topology.write_conf().as_str(), several, unnamed), (written, 0, Vec::new()));
    let text = blocks();
    let spine = text.find("\nSwitch\t2 \"S-0000000000000013\"").unwrap();
    let host = text.find("\nCa\t1").unwrap();
    let without: String = (text[..spine].to_owned() + &text[host..])
        .lines()
        .filter(|line| !line.contains("spine1"))
        .map(|line| format!("{line}\n"))
        .collect();
    let tree = fabric(&[file("d", &without)]).unwrap().slurm().topology;
    assert_eq!(tree.write_conf(), written.replace("fabric", "spine0"));
}

/// slurmctld 22.05 ends with "switch has both child switches and nodes": hosts are at leaves alone. Two leaves joined to each other, and a
/// chain of three, each with hosts; and a host with a name that Slurm would read as a list.
#[test]
fn slurm_gets_hosts_at_leaves_alone() {
    for (switches, hosts, written) in [
        (2, ["n0", "n1", "n2"], "SwitchName=s0 Nodes=n[0,2]\nSwitchName=s1 Nodes=n1\nSwitchName=fabric Switches=s[0-1]\n"),
        (
            3,
            ["n0", "n1", "n2"],
            "SwitchName=s0 Nodes=n0\nSwitchName=s1 Nodes=n1\nSwitchName=s2 Nodes=n2\nSwitchName=fabric Switches=s[0-2]\n",
        ),
        (3, ["n0", "\"rack 1,2\"", "n2"], "SwitchName=s1 Switches=s[0,2]\nSwitchName=s0 Nodes=n0\nSwitchName=s2 Nodes=n2\n"),
    ] {
        let mut text: String = (1..switches).map(|switch| format!("router s{} router s{switch} gbit=100\n", switch - 1)).collect();
        hosts.iter().enumerate().for_each(|(place, host)| text += &format!("terminal {host} router s{}\n", place % switches));
        let found = fabric(&[file("e", &text)]).unwrap().slurm();
        let sorted = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
        assert_eq!(sorted(&found.topology.write_conf()), sorted(written));
        assert_eq!(found.unnamed.len(), hosts.iter().filter(|host| host.contains(' ')).count());
        assert_eq!(
            slurm_topology::parse_conf("w", found.topology.write_conf().as_bytes()).unwrap().write_conf(),
            found.topology.write_conf()
        );
    }
}
