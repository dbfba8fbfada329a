//! The memory of a large sweep before its first run. The only test in its process, one case at a time, because it measures the allocations
//! of the process.

use kasuri::estimate::Costs;
use kasuri::listing::Listing;
use kasuri::plan::Plan;
use kasuri_config::Document;
use kasuri_network::topology::NoFiles;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Counts the bytes that are allocated, and the most that ever were.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all work is the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The peak of the bytes that `make` allocates beyond those allocated before.
fn most_bytes<T>(make: impl FnOnce() -> T) -> usize {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    drop(make());
    PEAK.load(Ordering::Relaxed) - before
}

/// Bytes of each further point, between a sweep of `seeds` seeds and one of twice that number.
fn bytes_of_point(seeds: usize, sweep: &str, make: impl Fn(&Document)) -> usize {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let most = |seeds: usize| {
        let text = FILE.replace("SEEDS", &seeds.to_string()) + sweep;
        let document = Document::parse("t.toml", &text).unwrap();
        let points = document.sweep().unwrap().count();
        (points, most_bytes(|| make(&document)))
    };
    let (few, many) = (most(seeds), most(2 * seeds));
    many.1.saturating_sub(few.1) / (many.0 - few.0)
}

const FILE: &str = r#"
    [network]
    topology = "mesh"
    dimensions = [2, 2]
    [routing]
    algorithm = "dimension-order"
    [traffic]
    pattern = "uniform"
    load = 0.1
    [measure]
    cycles = 1000
    [sweep]
    "measure.seed" = { from = 1, to = SEEDS, step = 1 }
"#;

/// A point of a sweep is a number and a key, whatever the engine receives for it. Each plan keeps a record for each point, while it is made
/// twice; a million points are to be checked in 400 MB.
#[test]
fn a_point_of_a_sweep_takes_a_few_hundred_bytes() {
    const MAX_POINT_BYTES: usize = 200;
    // Above 4000 points several threads check, each with private data: both sizes lie on the same side.
    let swept = "\"router.virtual_channels\" = [1, 2, 3, 4, 5]\n\"router.buffer_flits\" = [4, 8, 12, 16]\n";
    let plan = bytes_of_point(210, swept, |document| drop(Plan::prepare(document, &NoFiles).unwrap()));
    assert!((size_of::<usize>()..MAX_POINT_BYTES).contains(&plan), "{plan} bytes of a point in a plan");
    let listing = |document: &Document| {
        let folder = tempfile::tempdir().unwrap();
        let store = kasuri::store::Store::open(folder.path(), kasuri::store::Access::Point).unwrap();
        Listing::of(document, &NoFiles, &Costs::default()).unwrap().keep(&store).unwrap();
    };
    let listing = bytes_of_point(60, swept, listing);
    assert!((size_of::<usize>()..MAX_POINT_BYTES).contains(&listing), "{listing} bytes of a point in a list");
}

/// Every point has a separate network: those of checked points are freed, together with what their routes required.
#[test]
fn a_sweep_over_networks_does_not_keep_them() {
    const MAX_POINT_BYTES: usize = 1000;
    let networks = "\"network.channel_latency\" = [1, 2, 3, 4, 5, 6, 7, 8]\n";
    let bytes = bytes_of_point(20, networks, |document| drop(Plan::prepare(document, &NoFiles).unwrap()));
    assert!(bytes < MAX_POINT_BYTES, "{bytes} bytes of a point with a network of its own");
}
