//! The memory of a run against its estimate.

use kasuri::estimate::Work;
use kasuri::input::KNOWN;
use kasuri::plan::{Plan, RunOptions};
use kasuri_config::topology::ALL_TOPOLOGIES;
use kasuri_config::{Document, Known, Preparation};
use kasuri_network::routing::ROUTINGS;
use kasuri_network::routing::extents::Extents;
use kasuri_network::topology::{BuildContext, ChannelParameters, Files};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts the bytes that are held, and the most that ever were.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn taken(bytes: usize) {
    let held = HELD.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(held, Relaxed);
}

// SAFETY: all requests go to the system's allocator as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The system may move a block page by page, without holding it twice.
        if size > layout.size() {
            taken(size - layout.size());
        } else {
            HELD.fetch_sub(layout.size() - size, Relaxed);
        }
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Random networks without equal rows in a table: `random-ROUTERS-LINKS`, where each router begins LINKS links.
struct RandomNetworks;

impl Files for RandomNetworks {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let mut numbers = path.split('-').skip(1).map(|number| number.parse::<u64>().unwrap());
        let (routers, links) = (numbers.next().unwrap(), numbers.next().unwrap());
        let mut text: String = (0..routers).map(|router| format!("terminal {router} router {router}\n")).collect();
        let (mut state, mut seen) = (12345u64, BTreeSet::new());
        for (router, link) in (0..routers).flat_map(|router| (0..links).map(move |link| (router, link))) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let other = if link == 0 { (router + 1) % routers } else { (state >> 33) % routers };
            if other != router && seen.insert((router.min(other), router.max(other))) {
                text += &format!("router {router} router {other} latency={}\n", 1 + (state >> 40) % 7);
            }
        }
        Ok(text.into_bytes())
    }
}

/// Networks of two sizes each, as large as need be for what grows with them to outweigh what does not.
const NETWORKS: [&str; 24] = [
    "topology = \"mesh\"\ndimensions = [20, 20]",
    "topology = \"mesh\"\ndimensions = [36, 36]",
    "topology = \"mesh\"\ndimensions = [6, 6, 6]\nconcentration = 4",
    "topology = \"torus\"\ndimensions = [20, 20]",
    "topology = \"torus\"\ndimensions = [9, 9, 9]",
    "topology = \"fat-tree\"\nup = 8\ndown = 8\nlevels = 3",
    "topology = \"fat-tree\"\nup = 4\ndown = 4\nlevels = 5",
    "topology = \"full-mesh\"\nrouters = 40\nconcentration = 8",
    "topology = \"butterfly\"\nradix = 4\nstages = 4",
    "topology = \"butterfly\"\nradix = 4\nstages = 6",
    "topology = \"omega\"\nradix = 4\nstages = 5\nterminals = 1024",
    "topology = \"mlfm\"\ndegree = 10",
    "topology = \"oft\"\norder = 7\nsides = 2",
    "topology = \"slim-fly\"\norder = 11\nconcentration = 4",
    "topology = \"dragonfly\"\nterminals_per_router = 2\nrouters_per_group = 4\nglobal_channels = 2",
    "topology = \"dragonfly\"\nterminals_per_router = 4\nrouters_per_group = 8\nglobal_channels = 4",
    "topology = \"flattened-butterfly\"\ndimensions = [12, 12]\nconcentration = 4",
    "topology = \"rdt\"\nside = 16",
    "topology = \"rdt\"\nside = 32",
    "topology = \"file\"\npath = \"random-400-3\"",
    "topology = \"file\"\npath = \"random-1000-4\"",
    "topology = \"cenju4\"\nterminals = 256",
    "topology = \"twisted-torus\"\nshape = \"kk2k\"\nk = 6",
    "topology = \"hxmesh\"\na = 4\nb = 4\nx = 5\ny = 5",
];

/// Parts of the small ones: on these the formulas are worked out as well, which takes longer.
const SMALL: [&str; 7] = ["[20, 20]", "levels = 3", "stages = 4", "routers_per_group = 4", "side = 16", "random-400", "mlfm"];

/// True if the routing can find its path on a network.
fn fits(network: &str, routing: &str) -> bool {
    let mut table: toml::Table = network.parse().unwrap();
    let name = table.remove("topology").unwrap();
    let entry = ALL_TOPOLOGIES.iter().find(|entry| Some(entry.name) == name.as_str()).unwrap();
    let context = BuildContext { channels: &ChannelParameters::default(), files: &RandomNetworks, structure_seed: 0 };
    let network = Arc::new((entry.parse)(table).unwrap().build(&context).unwrap());
    let entry = ROUTINGS.iter().find(|entry| entry.name == routing).unwrap();
    (entry.parse)(entry.example.parse().unwrap()).unwrap().compile(&network).is_ok()
}

/// Bytes that grow with no network: the description, histograms, the row of the results.
const FLOOR: f64 = (1 << 20) as f64;

/// Prepares and computes a run: the bytes that it held at most, and those that were promised.
fn measured(text: &str) -> (f64, f64) {
    let document = Document::parse("memory.toml", text).unwrap();
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    let plan = Plan::prepare(&document, &RandomNetworks).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let prepared = PEAK.load(Relaxed) - before;
    let study = plan.points().next().unwrap().unwrap().study;
    let engine = KNOWN.engine(&study.engine).unwrap();
    let promised = Work::of(&study, engine, &mut Extents::default()).state_bytes;
    PEAK.store(HELD.load(Relaxed), Relaxed);
    plan.run(&RunOptions { jobs: Some(1), ..RunOptions::default() }).unwrap();
    let peak = prepared.max(PEAK.load(Relaxed) - before);
    (peak as f64, promised)
}

/// The error of an estimate, if there is one.
fn verdict(text: &str) -> Option<String> {
    let (peak, promised) = measured(text);
    let wrong = peak > promised + FLOOR || promised > 2.0 * peak + FLOOR;
    let said = format!("{promised:.0} bytes were promised, {peak:.0} taken ({:.2})", promised / peak);
    // With --nocapture: how near promises come.
    println!("{said}: {}", text.replace('\n', " "));
    wrong.then(|| format!("{said}:\n{text}"))
}

/// Routings with tables that may grow with the square of a network are refused if the tables are too large: the message has their bytes,
/// and comes before any of them are allocated.
fn tables_are_refused_before_they_are_made() {
    const SPARE: u64 = 6 << 20;
    for routing in ["minimal", "minimal-adaptive", "up-down", "valiant", "ugal", "dijkstra"] {
        let text = format!(
            "[network]\ntopology = \"file\"\npath = \"random-2500-3\"\n[routing]\nalgorithm = \"{routing}\"\n\
             [traffic]\npattern = \"uniform\"\nload = 0.1\n"
        );
        let document = Document::parse("memory.toml", &text).unwrap();
        let known = Known { memory_bytes: SPARE, ..*KNOWN };
        let before = HELD.load(Relaxed);
        PEAK.store(before, Relaxed);
        let points = document.points().unwrap();
        let problem = Preparation::new(&document, &RandomNetworks, known).study(&points[0]).unwrap_err().to_string();
        let taken = (PEAK.load(Relaxed) - before) as u64;
        let number =
            problem.split("may take ").nth(1).and_then(|rest| rest.split(' ').next()).and_then(|number| number.parse::<u64>().ok());
        assert!(number.is_some_and(|bytes| bytes > SPARE), "{problem}");
        assert!(taken < SPARE, "{taken} bytes to say: {problem}");
    }
}

/// The engines to check with a routing on a network. Large networks take long with `ugal`, which may choose among all paths, and with
/// formulas for all orders in which `minimal-adaptive` may offer the paths up a tree.
fn engines(network: &str, routing: &str) -> &'static [&'static str] {
    let small = SMALL.iter().any(|part| network.contains(part));
    match routing {
        "ugal" if !small => &["flow"],
        "ugal" => &["flow", "flit"],
        "minimal-adaptive" if network.contains("tree") => &["flow", "flit"],
        _ if small && !network.contains("torus") => &["flow", "flit", "analysis"],
        _ => &["flow", "flit"],
    }
}

/// The estimated memory of a run is at least its real use, from the reading of its description to its row, and at most twice that: for
/// every routing on every engine; on all networks here if `KASURI_MEMORY=all` (`make verify`), else on each fourth. It is a single test,
/// because tests run in parallel would take memory, too.
#[test]
fn no_run_takes_more_memory_than_promised_nor_less_than_half() {
    tables_are_refused_before_they_are_made();
    let pairs = || NETWORKS.iter().flat_map(|network| ROUTINGS.iter().map(move |entry| (*network, entry)));
    let (mut wrong, mut covered) = (Vec::new(), BTreeSet::new());
    let each = if std::env::var("KASURI_MEMORY").is_ok_and(|word| word == "all") { 1 } else { 4 };
    for (number, (network, entry)) in pairs().filter(|(network, entry)| fits(network, entry.name)).enumerate() {
        if !covered.insert(entry.name) && number % each > 0 {
            continue;
        }
        for engine in engines(network, entry.name) {
            wrong.extend(verdict(&format!(
                "engine = \"{engine}\"\n[network]\n{network}\n[routing]\nallow_deadlock = true\nalgorithm = \"{}\"\n{}\n\
                 [router]\nvirtual_channels = 6\n[traffic]\npattern = \"uniform\"\nload = 0.05\npacket_flits = 4\n\
                 [measure]\nwarmup = 10\ncycles = 60\n",
                entry.name, entry.example
            )));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert_eq!(covered, ROUTINGS.iter().map(|entry| entry.name).collect(), "every routing has a network here");
    // The other parameters of the state's size: virtual channels, sizes of buffers, packets that fill them, routers in the full layout.
    for router in [
        "virtual_channels = 1\nbuffer_flits = 4",
        "virtual_channels = 2\nbuffer_flits = 64",
        "virtual_channels = 16\nbuffer_flits = 8",
        "virtual_channels = 24\nbuffer_flits = 2",
        "virtual_channels = 4\nhold_switch = true\noutput_buffer_flits = 4",
        "virtual_channels = 4\npredictor = \"static-straight\"",
    ] {
        for load in ["0.02", "0.3"] {
            wrong.extend(verdict(&format!(
                "[network]\ntopology = \"torus\"\ndimensions = [24, 24]\n[routing]\nallow_deadlock = true\n\
                 algorithm = \"dimension-order\"\n[router]\n{router}\n[traffic]\npattern = \"uniform\"\nload = {load}\n\
                 packet_flits = 4\n[measure]\nwarmup = 10\ncycles = 400\n"
            )));
        }
    }
    for (engine, collective) in
        [("flow", "alltoall"), ("flow", "allreduce"), ("flit", "alltoall"), ("flit", "allgather"), ("flit", "allreduce")]
    {
        wrong.extend(verdict(&format!(
            "engine = \"{engine}\"\n[network]\ntopology = \"torus\"\ndimensions = [20, 20]\n[routing]\nallow_deadlock = true\n\
             algorithm = \"dimension-order\"\n[router]\nvirtual_channels = 2\n[workload]\ncollective = \"{collective}\"\n\
             message_flits = 4\n"
        )));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
