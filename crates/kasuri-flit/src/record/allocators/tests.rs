//! What every allocator promises, and what each promises besides.

use super::allocator::*;
use super::*;
use kasuri_model::router::{ArbiterParameters, Draw};
use kasuri_network::rng::{Purpose, Stream, Streams};
use num_traits::PrimInt;

fn named(name: &str, iterations: u32) -> AllocatorParameters {
    AllocatorParameters::Detailed {
        name: name.to_owned(),
        iterations,
        arbiter: ArbiterParameters::default(),
        draw: Draw::default(),
        turns: Default::default(),
    }
}

fn build_one(parameters: &AllocatorParameters, shape: RouterShape) -> Box<dyn RouterAllocator> {
    build_full(AllocatorSpec { parameters, shape, stream: Streams::new(1).get(Purpose::Allocation, 0) })
}

fn request(row: u32, column: u32) -> Request {
    Request { row, column, preference: 0, priority: 0, created: 0 }
}

/// Each pair of a row and a column with probability `density`.
fn draw_requests(shape: RouterShape, density: f64, stream: &mut Stream) -> Vec<Request> {
    let pairs = (0..shape.rows).flat_map(|row| (0..shape.columns).map(move |column| request(row, column)));
    pairs.filter(|_| stream.unit() < density).collect()
}

/// The greatest matching, by trying everything.
fn brute_force(requests: &[Request], columns: u64) -> u32 {
    let Some(first) = requests.first() else { return 0 };
    let others = &requests[requests.partition_point(|request| request.row == first.row)..];
    let open = requests.iter().take_while(|request| request.row == first.row).filter(|request| columns >> request.column & 1 == 0);
    let with = open.map(|request| 1 + brute_force(others, columns | 1 << request.column)).max().unwrap_or(0);
    with.max(brute_force(others, columns))
}

const SHAPES: [RouterShape; 3] =
    [RouterShape { rows: 5, columns: 5 }, RouterShape { rows: 10, columns: 5 }, RouterShape { rows: 4, columns: 9 }];

/// Calls `check` with many sets of requests and what an allocator grants of them.
fn on_random_requests(parameters: &AllocatorParameters, check: impl FnMut(RouterShape, &[Request], &[u32])) {
    on_random_requests_of(&SHAPES, parameters, check);
}

fn on_random_requests_of(shapes: &[RouterShape], parameters: &AllocatorParameters, mut check: impl FnMut(RouterShape, &[Request], &[u32])) {
    let mut stream = Streams::new(7).get(Purpose::Allocation, 1);
    for &shape in shapes {
        let mut allocator = build_one(parameters, shape);
        for round in 0..300 {
            let requests = draw_requests(shape, [0.1, 0.3, 0.8][round % 3], &mut stream);
            let mut granted = Vec::new();
            if !requests.is_empty() {
                allocator.allocate(&requests, &mut granted);
            }
            check(shape, &requests, &granted);
        }
    }
}

fn is_taken(requests: &[Request], granted: &[u32], taken: impl Fn(&Request) -> bool) -> bool {
    granted.iter().any(|&position| taken(&requests[position as usize]))
}

#[test]
fn no_row_and_no_column_is_granted_twice() {
    for entry in ALLOCATORS {
        on_random_requests(&AllocatorParameters::Name(entry.name.to_owned()), |_, requests, granted| {
            let mut rows: Vec<u32> = granted.iter().map(|&position| requests[position as usize].row).collect();
            let mut columns: Vec<u32> = granted.iter().map(|&position| requests[position as usize].column).collect();
            for side in [&mut rows, &mut columns] {
                side.sort_unstable();
                side.dedup();
                assert_eq!(side.len(), granted.len(), "{}", entry.name);
            }
            assert_eq!(granted.is_empty(), requests.is_empty(), "{}: of several requests at least one is granted", entry.name);
        });
    }
}

/// A maximal matching leaves no request whose row and column are both open. Iterated allocators are maximal after as many rounds as
/// there are rows; wavefronts and maximum size at once.
#[test]
fn wavefronts_and_iterated_allocators_find_maximal_matchings() {
    for parameters in [
        named("wavefront", 1),
        named("round-robin-wavefront", 1),
        named("maximum-size", 1),
        named("islip", 10),
        named("pim", 10),
        named("select", 10),
    ] {
        on_random_requests(&parameters, |_, requests, granted| {
            for open in requests {
                let taken = is_taken(requests, granted, |other| other.row == open.row || other.column == open.column);
                assert!(taken, "{parameters:?} leaves {open:?} open");
            }
        });
    }
}

#[test]
fn maximum_size_is_the_maximum() {
    on_random_requests(&named("maximum-size", 1), |_, requests, granted| {
        assert_eq!(granted.len() as u32, brute_force(requests, 0));
    });
}

/// Row 0 asks for columns 0 and 1, row 1 for 0 alone: the lonely column 1 serves row 0, so both are served, at once and always.
#[test]
fn lonely_outputs_are_used() {
    let shape = RouterShape { rows: 2, columns: 2 };
    let mut allocator = build_one(&named("loa", 1), shape);
    for _ in 0..10 {
        let mut granted = Vec::new();
        allocator.allocate(&[request(0, 0), request(0, 1), request(1, 0)], &mut granted);
        granted.sort_unstable();
        assert_eq!(granted, [1, 2]);
    }
}

/// Of two rows that want one column the higher priority is served, always.
#[test]
fn priorities_are_heeded_where_they_are_promised() {
    let shape = RouterShape { rows: 3, columns: 3 };
    for name in ["separable-input-first", "separable-output-first", "wavefront", "round-robin-wavefront", "select"] {
        let mut allocator = build_one(&named(name, 1), shape);
        for _ in 0..10 {
            let mut granted = Vec::new();
            let urgent = Request { priority: 5, ..request(2, 1) };
            allocator.allocate(&[request(0, 1), request(1, 1), urgent], &mut granted);
            assert_eq!(granted, [2], "{name}");
        }
    }
}

/// Rows that always ask for the same column share it equally; where all rows ask for everything, a switch is full: iSLIP, wavefronts,
/// maximum size and separable allocators with round robin desynchronise to one pair for each row.
#[test]
fn constant_requests_are_served_equally() {
    let shape = RouterShape { rows: 4, columns: 4 };
    for entry in ALLOCATORS {
        let mut allocator = build_one(&AllocatorParameters::Name(entry.name.to_owned()), shape);
        let requests: Vec<_> = (0..4).map(|row| request(row, 2)).collect();
        let mut served = [0u32; 4];
        for _ in 0..4000 {
            let mut granted = Vec::new();
            allocator.allocate(&requests, &mut granted);
            granted.iter().for_each(|&position| served[position as usize] += 1);
        }
        for count in served {
            // PIM draws: three standard deviations of a binomial distribution are 82.
            let tolerance = if entry.name == "pim" { 90 } else { 1 };
            assert!(count.abs_diff(1000) <= tolerance, "{}: {served:?}", entry.name);
        }
    }
}

/// Of rows 1, 2 and 6 of eight, which ask for one column, each wins as often as its share of the starts says: 7, 0 and 1 lead to row
/// 1, 2 to row 2, and 3 to 6 to row 6. The same among the grants of one row.
#[test]
fn a_random_start_favours_what_stands_behind_a_gap() {
    const PLACES: [u32; 3] = [1, 2, 6];
    let shares = |draw, request: fn(u32) -> Request| {
        let parameters = AllocatorParameters::Detailed {
            draw,
            name: "pim".to_owned(),
            iterations: 1,
            arbiter: Default::default(),
            turns: Default::default(),
        };
        let mut allocator = build_one(&parameters, RouterShape { rows: 8, columns: 8 });
        let mut won = [0u32; 3];
        for _ in 0..80_000 {
            let mut granted = Vec::new();
            allocator.allocate(&PLACES.map(request), &mut granted);
            assert_eq!(granted.len(), 1);
            won[granted[0] as usize] += 1;
        }
        won.map(|count| f64::from(count) / 80_000.0)
    };
    for side in [|place| request(place, 5), |place| request(5, place)] {
        for (draw, expected) in [(Draw::RandomStart, [3.0 / 8.0, 1.0 / 8.0, 4.0 / 8.0]), (Draw::Uniform, [1.0 / 3.0; 3])] {
            for (share, expected) in shares(draw, side).into_iter().zip(expected) {
                // Four standard deviations of a binomial share.
                let tolerance = 4.0 * f64::sqrt(expected * (1.0 - expected) / 80_000.0);
                assert!((share - expected).abs() < tolerance, "{draw:?}: {share} instead of {expected}");
            }
        }
    }
}

/// One round of random matching serves 1 - 1/e of a large full switch (Anderson et al. 1993); the others learn to serve all of it.
#[test]
fn full_switches_are_used_as_published() {
    let shape = RouterShape { rows: 32, columns: 32 };
    let requests: Vec<_> = (0..32).flat_map(|row| (0..32).map(move |column| request(row, column))).collect();
    for entry in ALLOCATORS {
        let mut allocator = build_one(&AllocatorParameters::Name(entry.name.to_owned()), shape);
        let mut pairs = 0;
        for round in 0..600 {
            let mut granted = Vec::new();
            allocator.allocate(&requests, &mut granted);
            pairs += if round >= 100 { granted.len() } else { 0 };
        }
        let used = pairs as f64 / (500.0 * 32.0);
        let wanted = match entry.name {
            // (1 - (1 - 1/32)^32): a column is accepted unless no row drew it.
            "pim" => 1.0 - (31f64 / 32.0).powi(32),
            "loa" => continue,
            _ => 1.0,
        };
        assert!((used - wanted).abs() < 0.01, "{}: {used}", entry.name);
    }
}

/// On masks of either width the same pairs are granted in the same order, call after call.
#[test]
fn masks_grant_what_requests_are_granted() {
    let square = |side| RouterShape { rows: side, columns: side };
    masks_of_a_width_grant_what_requests_are_granted::<u64>(&[SHAPES[0], SHAPES[1], SHAPES[2], square(64)]);
    masks_of_a_width_grant_what_requests_are_granted::<u128>(&[SHAPES[2], square(80), square(128)]);
}

fn masks_of_a_width_grant_what_requests_are_granted<W: PrimInt>(shapes: &[RouterShape]) {
    for parameters in
        [named("islip", 1), named("islip", 2), named("islip", 4), named("separable-input-first", 1), named("separable-output-first", 1)]
    {
        let rule = rule_on_masks(&parameters).unwrap();
        let mut shape_now = None;
        let mut on_masks = masks::MaskAllocator::new(rule, SHAPES[0]);
        on_random_requests_of(shapes, &parameters, |shape, requests, granted| {
            if shape_now != Some(shape) {
                (shape_now, on_masks) = (Some(shape), masks::MaskAllocator::new(rule, shape));
            }
            let mut asked = masks::RequestMasks::<W>::new();
            requests.iter().for_each(|request| assert!(asked.add(request.row, request.column)));
            let mut pairs = Vec::new();
            if !requests.is_empty() {
                on_masks.allocate(&mut asked, &mut pairs);
            }
            let wanted: Vec<_> =
                granted.iter().map(|&position| (requests[position as usize].row, requests[position as usize].column)).collect();
            assert_eq!(pairs, wanted, "{parameters:?} {shape:?}");
        });
    }
}
