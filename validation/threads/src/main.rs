//! A team's threads in every order in which they may take their turns: the text of `crates/kasuri-flit/src/record/team.rs` with Loom's threads.

mod sync;
#[path = "../../../crates/kasuri-flit/src/record/team.rs"]
mod team;

use kasuri_model::engine::Threads;
use loom::cell::UnsafeCell;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use team::{Team, with_team};

/// The panic of a task that is meant to panic.
struct AsAsked;

/// A number that one thread writes or several read. Loom looks whether they could do so at once.
#[derive(Default)]
struct Place(UnsafeCell<u32>);

// SAFETY: that it is never touched by two threads at once is what the models find out.
unsafe impl Sync for Place {}

impl Place {
    fn get(&self) -> u32 {
        // SAFETY: as above, and nobody keeps a reference.
        self.0.with(|number| unsafe { *number })
    }

    fn set(&self, number: u32) {
        // SAFETY: as in `get`.
        self.0.with_mut(|place| unsafe { *place = number });
    }
}

/// A tile, as far as others have to do with it: what it has for its neighbour, and what has come for it.
#[derive(Default)]
struct Tile {
    leaving: Place,
    incoming: Place,
    state: Place,
}

/// Each thread does each task once, under its number; what it leaves the leader sees, and all others in the next task.
fn tasks(threads: usize, count: u32) {
    let new = || (0..threads).map(|_| Place::default()).collect::<Vec<_>>();
    let (mut old, mut new) = (new(), new());
    with_team(&Threads::new(threads), |team| {
        assert_eq!(team.size(), threads);
        for task in 1..=count {
            team.run(&|thread| {
                assert!(old.iter().all(|place| place.get() == task - 1));
                new[thread].set(task);
            });
            assert!(new.iter().all(|place| place.get() == task));
            std::mem::swap(&mut old, &mut new);
        }
    });
}

/// Windows of a run in tiles: between them the leader hands the mail over by swapping it.
fn mail(threads: usize, tiles: usize, windows: u32) {
    let mut tiles: Vec<Tile> = (0..tiles).map(|_| Tile::default()).collect();
    with_team(&Threads::new(threads), |team| {
        for window in 1..=windows {
            team.each(&mut tiles, |number, tile| {
                tile.state.set(tile.state.get() + tile.incoming.get());
                tile.leaving.set(window * 10 + number as u32);
            });
            hand_over(&mut tiles);
        }
    });
    for (number, tile) in tiles.iter().enumerate() {
        let before = (number + tiles.len() - 1) % tiles.len();
        let expected: u32 = (1..windows).map(|window| window * 10 + before as u32).sum();
        assert_eq!(tile.state.get(), expected);
    }
}

/// What each tile has for the next one, against what that has read.
fn hand_over(tiles: &mut [Tile]) {
    for from in 0..tiles.len() {
        let to = (from + 1) % tiles.len();
        let mail = std::mem::take(&mut tiles[from].leaving);
        tiles[from].leaving = std::mem::replace(&mut tiles[to].incoming, mail);
    }
}

/// A task panics in some threads: the leader hears of it when all have finished, and may go on or leave.
fn panics(threads: usize, culprits: &[usize], goes_on: bool) {
    let places: Vec<Place> = (0..threads).map(|_| Place::default()).collect();
    let heard = |result: Result<(), Box<dyn Any + Send>>| assert!(result.expect_err("a panic").is::<AsAsked>());
    let task = |thread: usize| {
        places[thread].set(1);
        if culprits.contains(&thread) {
            panic_any(AsAsked);
        }
    };
    let work = |team: &mut Team<'_>| {
        if goes_on {
            heard(catch_unwind(AssertUnwindSafe(|| team.run(&task))));
            assert!(places.iter().all(|place| place.get() == 1));
            team.run(&|thread| places[thread].set(2));
        } else {
            team.run(&task);
        }
    };
    let result = catch_unwind(AssertUnwindSafe(|| with_team(&Threads::new(threads), work)));
    if !goes_on {
        heard(result);
    }
    assert!(places.iter().all(|place| place.get() == if goes_on { 2 } else { 1 }));
}

/// Tries a model in every order, or in every one in which threads are interrupted so often at most.
fn check(name: &str, interruptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let (begin, orders) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = interruptions;
    let counter = orders.clone();
    let result = catch_unwind(AssertUnwindSafe(|| {
        builder.check(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            model();
        });
    }));
    let (orders, seconds) = (orders.load(Ordering::Relaxed), begin.elapsed().as_secs_f64());
    println!("{name}: {orders} orders, {seconds:.1} s{}", if result.is_ok() { "" } else { ": FAILED" });
    if result.is_err() {
        exit(1);
    }
}

/// Says on the standard output what panics, unless it is meant to: Loom writes to the other of what a thread waits for.
fn say_panics() {
    std::panic::set_hook(Box::new(|panic| {
        if !panic.payload().is::<AsAsked>() {
            println!("{panic}");
        }
    }));
}

fn main() {
    say_panics();
    check("2 threads sent home without a task", None, || tasks(2, 0));
    check("3 threads sent home without a task", None, || tasks(3, 0));
    check("2 threads, 1 task", None, || tasks(2, 1));
    check("2 threads, 2 tasks", Some(4), || tasks(2, 2));
    check("2 threads, 3 tasks", Some(3), || tasks(2, 3));
    check("3 threads, 1 task", Some(2), || tasks(3, 1));
    check("2 threads, 3 windows with mail among 3 tiles", Some(3), || mail(2, 3, 3));
    check("3 threads, 2 windows with mail among 3 tiles", Some(1), || mail(3, 3, 2));
    check("a follower of 1 panics", None, || panics(2, &[1], false));
    check("a follower of 1 panics, and works on", Some(3), || panics(2, &[1], true));
    check("a follower of 2 panics", Some(1), || panics(3, &[1], false));
    check("all of 3 threads panic", Some(1), || panics(3, &[0, 1, 2], false));
}
