//! Real fabrics: dumps in, verdicts, loads and schedules out.

use kasuri::fabric::audit;
use kasuri::fabric::job::{Job, JobCollective, Order};
use kasuri_config::fabric::{Fabric, Options, SourceFile, import};
use kasuri_network::id::TerminalId;
use serde_json::Value as Json;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/ib")
}

/// A file, unpacked if it is gzipped.
fn file(path: &Path) -> SourceFile {
    let bytes = fs::read(path).unwrap();
    let mut text = Vec::new();
    match path.extension().is_some_and(|end| end == "gz") {
        true => drop(flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut text).unwrap()),
        false => text = bytes,
    }
    (path.display().to_string(), text)
}

fn fabric(files: &[PathBuf]) -> Fabric {
    import(&files.iter().map(|path| file(path)).collect::<Vec<_>>(), Options::default()).unwrap()
}

fn case(name: &str) -> Fabric {
    fabric(&["ibnetdiscover.txt.gz", "opensm-lfts.dump.gz"].map(|end| data().join(name).join(end)))
}

/// Mellanox's own checker has verified the same tables.
#[test]
fn verdicts_on_credit_loops_are_those_of_ibdmchk() {
    let text = fs::read_to_string(data().join("ibdmchk.csv")).unwrap();
    let mut seen = [0, 0];
    for row in text.lines().skip(1) {
        let columns: Vec<&str> = row.split(',').collect();
        let [name, engine, pairs, loops, ..] = columns[..] else { panic!("{row}") };
        let Ok(pairs) = pairs.parse::<u64>() else { continue };
        let tables = audit(&case(&format!("{name}/{engine}")), 0).tables.unwrap();
        assert_eq!((tables.routes, tables.unreachable, tables.credit_loops), (pairs, 0, loops == "1"), "{row}");
        // A cycle is one: each of its cables begins at the switch where the one before ends.
        for (cable, next) in tables.cycle.iter().zip(tables.cycle.iter().cycle().skip(1)) {
            let end = |text: &str| text.rsplit_once(" port ").unwrap().0.to_owned();
            let (into, from) = (cable.split(" -> ").nth(1).unwrap(), next.split(" -> ").next().unwrap());
            assert_eq!(end(into), end(from), "{row}");
        }
        seen[usize::from(tables.credit_loops)] += 1;
    }
    assert!(seen[0] >= 4 && seen[1] >= 3, "{seen:?}");
}

/// All tables of a real cluster are cut before their last line; their entries still lead everywhere. The two forms in which OpenSM's tables
/// are dumped, and the file written from them, are equivalent.
#[test]
fn dumps_of_several_tools_are_one_fabric() {
    let avakas = fabric(&["avakas/ibnetdiscover-p.txt.gz", "avakas/ibroutes.txt.gz"].map(|path| data().join(path)));
    let found = audit(&avakas, 1);
    let tables = found.tables.unwrap();
    assert_eq!((found.adapters, found.switches, tables.routes, tables.unreachable), (281, 25, 281 * 280, 0));
    assert_eq!(found.notes, ["25 forwarding tables end early: the tool that wrote them failed"]);
    assert_eq!((found.slow_cables.len(), found.slow_cables[0].rate.as_str()), (1, "4xDDR"));
    let minhop = case("ft2_16/minhop");
    let other = fabric(&["ibnetdiscover.txt.gz", "dump_fts.txt.gz"].map(|end| data().join("ft2_16/minhop").join(end)));
    assert_eq!(other.network.tables(), minhop.network.tables());
    let again = import(&[("f.json".to_owned(), minhop.write().into_bytes())], Options::default()).unwrap();
    assert_eq!(again.network, minhop.network);
    let plain = fabric(&[data().join("ft2_16/ft2_16.net.gz")]);
    assert_eq!((plain.network.terminal_count(), plain.network.channel_count()), (16, minhop.network.channel_count()));
}

/// With an LMC of 2 each adapter has four addresses: four routes, and a load that is shared among them.
#[test]
fn several_addresses_are_as_many_routes() {
    let found = audit(&case("ft2_32/minhop_lmc2"), 3).tables.unwrap();
    assert_eq!((found.routes, found.unreachable), (4 * 32 * 31, 0));
    // Eight leaves of four adapters: 28 packets leave each of the four adapters by one of its leaf's uplinks.
    let sum: f64 = found.uniform.mean * 64.0;
    assert!((sum - 2.0 * 32.0 * 28.0).abs() < 1e-9, "{sum}");
}

/// Every second host of a torus: the load of the steps on cables, their times and bounds follow from counts.
#[test]
fn messages_of_a_job_are_counted_on_their_cables() {
    let torus = case("torus_4x4_2h/minhop");
    let job = Job::new(&torus, (0..32).step_by(2).map(TerminalId).collect()).unwrap();
    let asked = JobCollective { collective: "alltoall", bytes: 1 << 20 };
    let (name, collective) = job.usual(asked).unwrap();
    let taken = job.run(collective.as_ref(), asked, &job.placed(Order::Given));
    assert_eq!((name, taken.steps.len()), ("shift", 15));
    // Each of 16 ranks sends 15 messages.
    let sent: u64 = (0..32).map(|terminal| taken.totals[terminal]).sum();
    assert_eq!(sent, (16 * 15) << 20);
    // 4x QDR carries 32 Gbit/s: the time of a step is its most loaded channel's.
    for (number, step) in taken.steps.iter().enumerate() {
        let most = job.collisions(collective.as_ref(), number as u32).first().map_or(1, |(_, messages)| messages.len());
        assert_eq!((step.messages as usize, step.bytes), (most, (most as u64) << 20));
        assert!((step.time - step.bytes as f64 * 8.0 / 32.0).abs() < 1e-6);
    }
    let bound = job.bound(asked).unwrap();
    let busiest = taken.totals.iter().copied().max().unwrap();
    assert!((bound.time - busiest as f64 * 8.0 / 32.0).abs() < 1e-6 && taken.totals[bound.channel.index()] == busiest);
    let found = job.alternatives(asked, 64, (name, &taken));
    assert!(found.windows(2).all(|pair| pair[0].time <= pair[1].time));
    assert!(found.iter().all(|other| other.time >= bound.time - 1e-6));
    assert!(found.iter().any(|other| other.schedule == "general"));
    // The logarithm of 16.
    assert_eq!(found.iter().filter(|other| other.schedule == "bruck").map(|other| other.steps).next(), Some(4));
}

fn kasuri(arguments: &[&str], folder: &Path) -> (Option<i32>, String, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_kasuri")).args(arguments).current_dir(folder).output().unwrap();
    (done.status.code(), String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap())
}

/// The engines follow the tables of the file. A table with a hole is refused.
#[test]
fn experiments_follow_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cmd/fabric.in").join(name).display().to_string();
    fs::write(folder.path().join("three"), "n0\nn[2-3]\n").unwrap();
    let dumps = [at("ibnetdiscover.txt"), at("lfts.txt")];
    let imports = |end: &[&str]| kasuri(&[&["fabric", "import", &dumps[0], &dumps[1]], end].concat(), folder.path()).0;
    assert_eq!((imports(&["-o", "all.json"]), imports(&["-o", "three.json", "--hosts", "three"])), (Some(0), Some(0)));
    let experiment = |network: &str, engine: &str| {
        format!(
            "engine = \"{engine}\"\n[network]\ntopology = \"file\"\npath = \"{network}\"\n[routing]\nalgorithm = \"tables\"\n\
             [workload]\ncollective = \"alltoall\"\nmessage_flits = 4\n"
        )
    };
    for engine in ["flow", "flit"] {
        fs::write(folder.path().join("e.toml"), experiment("three.json", engine)).unwrap();
        let (status, text, error) = kasuri(&["run", "e.toml", "--format", "json"], folder.path());
        assert_eq!(status, Some(0), "{error}");
        let row = serde_json::from_str::<Json>(&text).unwrap()["runs"][0].clone();
        assert_eq!((row["status"].as_str(), row["terminals"].as_u64()), (Some("completed"), Some(3)), "{row}");
    }
    fs::write(folder.path().join("e.toml"), experiment("all.json", "flit")).unwrap();
    let (status, _, error) = kasuri(&["check", "e.toml"], folder.path());
    assert_eq!(status, Some(2));
    assert!(
        error.contains("in 2 ordered pairs of terminals packets do not arrive, first from terminal n2 HCA-1 to terminal n1 HCA-1"),
        "{error}"
    );
}

/// Three switches in a line with a host each; the tables of `entries` (switch, LID, port) are right but for those that `wrong` replaces.
fn line(wrong: &[(u32, u32, u32)], extra: &[(&str, &str)]) -> Fabric {
    let (mut discovery, mut dump) = (String::new(), String::new());
    // Port 1 is the host's, port 2 leads down the line, port 3 up.
    for switch in 0..3u32 {
        discovery += &format!("Switch 3 \"S-{:x}\" # \"s{switch}\" base port 0 lid {} lmc 0\n", 16 + switch, 20 + switch);
        discovery += &format!("[1] \"H-{:x}\"[1]({:x}) # \"h\" lid {} 4xHDR\n", 32 + switch, 64 + switch, switch + 1);
        if switch > 0 {
            discovery += &format!("[2] \"S-{:x}\"[3] # \"s\" lid 1 4xHDR\n", 16 + switch - 1);
        }
        if switch < 2 {
            discovery += &format!("[3] \"S-{:x}\"[2] # \"s\" lid 1 4xHDR\n", 16 + switch + 1);
        }
        discovery += &format!("Ca 1 \"H-{:x}\" # \"h{switch} HCA-1\"\n", 32 + switch);
        discovery += &format!("[1]({:x}) \"S-{:x}\"[1] # lid {} lmc 0 \"s\" lid 1 4xHDR\n", 64 + switch, 16 + switch, switch + 1);
        dump += &format!("Unicast lids [0-3] of switch Lid 1 guid 0x{:x} ('s'):\n", 16 + switch);
        for lid in 1..4 {
            let right = 1 + u32::from(lid - 1 < switch) + 2 * u32::from(lid - 1 > switch);
            let port = wrong.iter().find(|(at, to, _)| (*at, *to) == (switch, lid)).map_or(right, |(.., port)| *port);
            dump += &format!("0x{lid:04x} {port:03}\n");
        }
        dump += "3 lids dumped\n";
    }
    let mut files = vec![("d".to_owned(), discovery.into_bytes()), ("t".to_owned(), dump.into_bytes())];
    files.extend(extra.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())));
    import(&files, Options::default()).unwrap()
}

/// Packets to the last host that two switches send to each other loop. That is not a credit loop: those that arrive do not wait in a cycle.
/// Of six routes the two to that host are lost, and one in the requested pairs.
#[test]
fn a_looping_packet_is_not_a_credit_loop() {
    let fabric = line(&[(1, 3, 2)], &[]);
    let found = audit(&fabric, 0).tables.unwrap();
    assert_eq!((found.routes, found.unreachable, found.going_round, found.credit_loops), (6, 2, 2, false));
    assert!(found.unreachable_first[0].problem.contains("goes round"), "{found:?}");
    let pairs = [(TerminalId(0), TerminalId(2)), (TerminalId(0), TerminalId(1))];
    let found = kasuri::fabric::audit::audit_pairs(&fabric, fabric.network.tables().unwrap(), &pairs, 0).pairs.unwrap();
    assert_eq!((found.routes, found.unreachable, found.going_round, found.credit_loops), (2, 1, 1, false));
    // A route with a missing entry is lost, too, but does not go round.
    let found = audit(&line(&[(1, 3, 255)], &[]), 0).tables.unwrap();
    assert_eq!((found.unreachable, found.going_round, found.credit_loops), (2, 0, false));
    // Two packets that go to and fro over the same cables the long way round wait for each other: a credit loop, and all arrive.
    let found = audit(&line(&[], &[]), 0).tables.unwrap();
    assert_eq!((found.unreachable, found.going_round, found.credit_loops), (0, 0, false));
}

/// The exit status of an audit: 1 where routes are lost, in every output format; 0 for a whole fabric.
#[test]
fn an_audit_with_lost_routes_ends_with_status_1() {
    let folder = tempfile::tempdir().unwrap();
    for (name, wrong) in [("whole.json", &[][..]), ("lost.json", &[(1, 3, 255)][..]), ("round.json", &[(1, 3, 2)][..])] {
        fs::write(folder.path().join(name), line(wrong, &[]).write()).unwrap();
    }
    for (arguments, status) in [
        (&["whole.json"][..], 0),
        (&["lost.json"], 1),
        (&["lost.json", "--format", "json"], 1),
        (&["round.json"], 1),
        (&["round.json", "--pairs", "good"], 0),
        (&["round.json", "--pairs", "bad"], 1),
    ] {
        fs::write(folder.path().join("good"), "\"h0 HCA-1\" \"h1 HCA-1\"\n").unwrap();
        fs::write(folder.path().join("bad"), "\"h0 HCA-1\" \"h2 HCA-1\"\n").unwrap();
        let (found, text, error) = kasuri(&[&["fabric", "audit"], arguments].concat(), folder.path());
        assert_eq!(found, Some(status), "{arguments:?}: {text}{error}");
    }
}

/// A verdict on lanes states its assumption where the dumps do not give them: routings such as DFSSSP separate packets by service level.
#[test]
fn verdicts_say_which_lanes_they_assume() {
    let lanes = "Switch 0x11, base LID 1, \"s\"\n1 2 : 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 15\n";
    let levels = "1 3 1\n";
    let assumed = |extra: &[(&str, &str)]| audit(&line(&[], extra), 0).tables.unwrap().assumed_lanes;
    assert_eq!(assumed(&[]).as_deref(), Some("their service levels are not known, and all are taken to have the same lane"));
    assert_eq!(assumed(&[("l", lanes)]).as_deref(), Some("their service levels are not known, and all are taken to have level 0"));
    assert!(assumed(&[("s", levels)]).unwrap().contains("level N is taken to have lane N"));
    assert_eq!(assumed(&[("l", lanes), ("s", levels)]), None);
    // On a torus without levels OpenSM's tables have a cycle: the table says under which assumption.
    let torus = data().join("torus_4x4_2h/minhop");
    let files = ["ibnetdiscover.txt.gz", "opensm-lfts.dump.gz"].map(|name| torus.join(name).display().to_string());
    let (_, text, error) = kasuri(&["fabric", "audit", &files[0], &files[1]], Path::new("."));
    let row = text.lines().find(|line| line.starts_with("credit loops ")).unwrap_or_else(|| panic!("{text}{error}"));
    assert!(row.contains("possible: a cycle of") && row.contains("service levels are not known"), "{row}");
}

/// The rates of a fabric's file hold for one length of a cycle: another one, which would scale all of them, is refused with the right one.
#[test]
fn rates_of_a_file_are_not_scaled_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let topology = "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 50Gbps 1us 0\n";
    let fabric = import(&[("t".to_owned(), topology.as_bytes().to_vec())], Options::default()).unwrap();
    fs::write(at("f.json"), fabric.write()).unwrap();
    fs::write(at("l.txt"), "terminal 0 router a gbit=100\nterminal 1 router a gbit=50\n").unwrap();
    let check = |path: &str, keys: &str| {
        let text = format!(
            "[network]\ntopology = \"file\"\npath = \"{path}\"\n{keys}\n[routing]\nalgorithm = \"minimal\"\n\
             [traffic]\npattern = \"uniform\"\nload = 0.1\n"
        );
        fs::write(at("e.toml"), text).unwrap();
        let (status, _, error) = kasuri(&["check", "e.toml"], folder.path());
        (status, error)
    };
    for path in ["f.json", "l.txt"] {
        for right in ["", "flit_bytes = 64\nchannel_gbit_per_second = 100", "flit_bytes = 64\ncycle_ns = 5.12"] {
            let (status, error) = check(path, right);
            assert_eq!(status, Some(0), "{path} {right}: {error}");
        }
        for wrong in
            ["flit_bytes = 64\nchannel_gbit_per_second = 400", "flit_bytes = 64\ncycle_ns = 1.28", "flit_bytes = 64\nrate = \"400 Gbit/s\""]
        {
            let (status, error) = check(path, wrong);
            assert_eq!(status, Some(2), "{path} {wrong}");
            assert!(error.contains("all links would be 4.0000 times as fast as in the file; set channel_gbit_per_second = 100"), "{error}");
        }
    }
    // Latencies are cycles of flits of 64 bytes.
    let (status, error) = check("f.json", "flit_bytes = 32\nchannel_gbit_per_second = 100");
    assert!(
        status == Some(2) && error.contains("the latencies in `f.json` are cycles of flits of 64 bytes: set flit_bytes = 64"),
        "{error}"
    );
}
