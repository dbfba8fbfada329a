//! The threads of one run: they work on the parts of a simulation side by side, each always on the same ones, and wait for each other.
//!
//! The thread that makes a team leads it. Between two tasks the others wait: for a moment by looking again and again, then by looking
//! whenever the system has nothing else to do on their cores, then asleep. A task is over when all have done their part, so what they are
//! lent lives long enough, and only one of them touches a part.
//!
//! On an overloaded machine a woken thread starts some milliseconds late: too late for thousands of tasks a second. A leader that waits for
//! far longer than it works does all parts itself for a while, and the others stay asleep.

use super::sync::{
    AtomicBool, AtomicU32, Duration, Mutex, Ordering, SPINS, Stopwatch, Thread, UnsafeCell, YIELD_SPINS, offer_core, spin_loop, thread,
};
use kasuri_model::engine::Threads;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::PoisonError;

/// A task: called with the number of the thread.
type Task<'t> = &'t (dyn Fn(usize) + Sync);

/// Waits for a number that another thread changes.
///
/// The waiter sets the flag, then re-reads the number; the waker writes the number, then reads the flag. Both change `is_awaited` by swaps:
/// so the later of them sees what the earlier has done before, and no thread falls asleep at an open gate.
struct Gate {
    number: AtomicU32,
    /// Is somebody asleep who waits for it?
    is_awaited: AtomicBool,
}

impl Gate {
    fn new(number: u32) -> Self {
        Self { number: AtomicU32::new(number), is_awaited: AtomicBool::new(false) }
    }

    /// Waits until the number is what `is_open` wants, and returns it. One thread may wait at a gate.
    fn wait(&self, is_open: impl Fn(u32) -> bool) -> u32 {
        self.look(SPINS, &is_open, spin_loop).unwrap_or_else(|| self.wait_long(is_open))
    }

    /// Polls at most `looks` times, with a pause after each.
    fn look(&self, looks: u32, is_open: impl Fn(u32) -> bool, mut pause: impl FnMut()) -> Option<u32> {
        for _ in 0..looks {
            let number = self.number.load(Ordering::Acquire);
            if is_open(number) {
                return Some(number);
            }
            pause();
        }
        None
    }

    /// Polls while it offers the core to others. If another thread takes the core, this one sleeps: the core would come back only after a
    /// time slice.
    #[cold]
    fn wait_long(&self, is_open: impl Fn(u32) -> bool) -> u32 {
        for _ in 0..YIELD_SPINS {
            let number = self.number.load(Ordering::Acquire);
            if is_open(number) {
                return number;
            }
            if !offer_core() {
                break;
            }
        }
        loop {
            self.is_awaited.swap(true, Ordering::AcqRel);
            let number = self.number.load(Ordering::Acquire);
            if is_open(number) {
                self.is_awaited.swap(false, Ordering::Relaxed);
                return number;
            }
            thread::park();
        }
    }

    /// Wakes who is asleep at the gate, after its number has been changed (in the order `Release`).
    fn wake(&self, thread: &Thread) {
        if self.is_awaited.swap(false, Ordering::AcqRel) {
            thread.unpark();
        }
    }
}

/// What the threads of a team share.
struct Shared {
    /// The task at hand. Written by the leader while the others wait at their gates.
    task: UnsafeCell<Option<Task<'static>>>,
    /// By follower: the number of the task that it may do; the last number sends it home.
    begin: Vec<Gate>,
    /// Followers that have not finished the task.
    unfinished: Gate,
    leader: Thread,
    /// What the first follower that panicked said.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `task` is written by the leader only while all followers wait at their gates, and read by followers only between the opening of
// their gate, which follows the writing, and their leaving, which the leader waits for (`Team::run`). Everything else is `Sync` by itself.
unsafe impl Sync for Shared {}

/// The number that sends followers home.
const SHUTDOWN: u32 = u32::MAX;

impl Shared {
    /// What a follower does: task after task.
    fn follow(&self, follower: usize) {
        let mut done = 0;
        loop {
            let number = self.begin[follower].wait(|number| number != done);
            if number == SHUTDOWN {
                return;
            }
            done = number;
            // SAFETY: the gate is open, so the leader has written the task and waits until this thread has finished it.
            let task = self.task.with(|task| unsafe { (*task).expect("the leader has written it") });
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| task(follower + 1))) {
                self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(payload);
            }
            if self.unfinished.number.fetch_sub(1, Ordering::Release) == 1 {
                self.unfinished.wake(&self.leader);
            }
        }
    }
}

/// Threads that work together.
pub(crate) struct Team<'s> {
    shared: Option<&'s Shared>,
    /// The followers.
    threads: Vec<Thread>,
    /// Tasks so far.
    tasks: u32,
    crowding: Crowding,
}

/// Whether followers start in time, as the leader sees it.
#[derive(Default)]
struct Crowding {
    /// Did the leader wait for long after the last task? Then it measures its own part of the next one.
    was_late: bool,
    /// The leader works alone for this multiple of its last wait; 0 if followers have been in time since.
    factor: u32,
    /// Since when, and for how long, the leader works alone.
    alone: Option<(Stopwatch, Duration)>,
}

/// Shorter waits do not count.
const LATE: Duration = Duration::from_millis(1);

/// Parts differ in size: a wait below this multiple of the leader's own part is not a delay.
const TIMES_OF_PART: u32 = 4;

/// The leader works alone for this multiple of a wait, at first and at most; the multiple doubles each time that followers are late again.
const ALONE_FACTORS: [u32; 2] = [4, 64];

impl Crowding {
    fn is_alone(&mut self) -> bool {
        self.alone = self.alone.take().filter(|(since, time)| since.elapsed() < *time);
        self.alone.is_some()
    }

    /// The leader has waited for `waited` after its own part took `own`, if that was measured.
    fn note(&mut self, own: Option<Duration>, waited: Duration) {
        self.was_late = waited >= LATE;
        if !self.was_late {
            self.factor = 0;
        } else if own.is_some_and(|own| waited > TIMES_OF_PART * own) {
            self.factor = (2 * self.factor).clamp(ALONE_FACTORS[0], ALONE_FACTORS[1]);
            self.alone = Some((Stopwatch::start(), self.factor * waited));
        }
    }
}

impl Team<'_> {
    /// How many threads it has.
    pub(crate) fn size(&self) -> usize {
        self.threads.len() + 1
    }

    /// Lets each thread do the task under its number. Returns when all have.
    ///
    /// # Panics
    /// If the task has panicked in some thread.
    pub(crate) fn run(&mut self, task: Task<'_>) {
        let Some(shared) = self.shared else { return task(0) };
        if self.crowding.is_alone() {
            return (0..self.size()).for_each(task);
        }
        // Zero is what followers begin with, the greatest number sends them home.
        self.tasks = if self.tasks + 1 == SHUTDOWN { 1 } else { self.tasks + 1 };
        // SAFETY: followers wait at their gates, so nobody reads the task. They use it only until they have finished, which this function
        // waits for, whatever happens; so the longer lifetime is never made use of.
        shared.task.with_mut(|place| unsafe { *place = Some(std::mem::transmute::<Task<'_>, Task<'static>>(task)) });
        shared.unfinished.number.store(self.threads.len() as u32, Ordering::Relaxed);
        for (gate, thread) in shared.begin.iter().zip(&self.threads) {
            gate.number.store(self.tasks, Ordering::Release);
            gate.wake(thread);
        }
        let begin = self.crowding.was_late.then(Stopwatch::start);
        let own = catch_unwind(AssertUnwindSafe(|| task(0)));
        let is_done = |number| number == 0;
        if shared.unfinished.look(SPINS, is_done, spin_loop).is_none() {
            let own = begin.map(|begin| begin.elapsed());
            let wait = Stopwatch::start();
            shared.unfinished.wait_long(is_done);
            self.crowding.note(own, wait.elapsed());
        }
        let others = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(payload) = own.err().or(others) {
            resume_unwind(payload);
        }
    }

    /// Does something with each of these parts, in the threads to which they belong: shares of as many parts each, in their order.
    ///
    /// # Panics
    /// If that has panicked for some part.
    pub(crate) fn each<T: Send>(&mut self, parts: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
        let threads = self.size();
        if threads == 1 {
            return parts.iter_mut().enumerate().for_each(|(number, part)| work(number, part));
        }
        let (count, parts) = (parts.len(), Parts(parts.as_mut_ptr()));
        let share = move |thread: usize| thread * count / threads..(thread + 1) * count / threads;
        self.run(&|thread| {
            for number in share(thread) {
                // SAFETY: shares are within the slice and disjoint, so this thread alone has the part; the slice is borrowed until all have
                // finished.
                work(number, unsafe { parts.of(number) });
            }
        });
    }
}

/// The parts of a slice, each for one thread.
struct Parts<T>(*mut T);

// SAFETY: threads get different parts, each of which may be sent to them.
unsafe impl<T: Send> Sync for Parts<T> {}

impl<T> Parts<T> {
    /// One part.
    ///
    /// # Safety
    /// It lies in the slice, and nobody else has it.
    #[expect(clippy::mut_from_ref, reason = "whoever calls it has each part once")]
    unsafe fn of(&self, number: usize) -> &mut T {
        // SAFETY: as promised.
        unsafe { &mut *self.0.add(number) }
    }
}

/// Sends the followers home, also while a panic passes.
struct Dismissal<'s> {
    shared: &'s Shared,
    threads: Vec<Thread>,
}

impl Drop for Dismissal<'_> {
    fn drop(&mut self) {
        for (gate, thread) in self.shared.begin.iter().zip(&self.threads) {
            gate.number.store(SHUTDOWN, Ordering::Release);
            gate.wake(thread);
        }
    }
}

/// Lets a team of so many threads work: as many as the system gives.
pub(crate) fn with_team<R>(threads: &Threads, work: impl FnOnce(&mut Team<'_>) -> R) -> R {
    let Threads { count: threads, at_begin, at_end } = threads;
    let threads = *threads;
    if threads <= 1 {
        return work(&mut Team { shared: None, threads: Vec::new(), tasks: 0, crowding: Crowding::default() });
    }
    let shared = Shared {
        task: UnsafeCell::new(None),
        begin: (1..threads).map(|_| Gate::new(0)).collect(),
        unfinished: Gate::new(0),
        leader: thread::current(),
        panic: Mutex::new(None),
    };
    thread::scope(|scope| {
        let mut dismissal = Dismissal { shared: &shared, threads: Vec::new() };
        for follower in 0..threads - 1 {
            let shared = &shared;
            match thread::Builder::new().name(format!("kasuri-tile-{follower}")).spawn_scoped(scope, move || {
                at_begin(follower + 1);
                shared.follow(follower);
                at_end();
            }) {
                Ok(handle) => dismissal.threads.push(handle.thread().clone()),
                Err(_) => break,
            }
        }
        let threads = dismissal.threads.clone();
        work(&mut Team { shared: Some(&shared), threads, tasks: 0, crowding: Crowding::default() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// Few where an interpreter looks at each step.
    const ROUNDS: u64 = if cfg!(miri) { 4 } else { 300 };

    /// By the same thread, or by the leader if the machine is overloaded.
    #[test]
    fn every_part_is_done_once_in_each_task_and_always_by_the_same_thread() {
        let leader = thread::current().id();
        for threads in [1, 2, 3, 7] {
            for count in [1, 2, 5, 16] {
                let mut parts = vec![(0u64, None); count];
                with_team(&Threads::new(threads), |team| {
                    for round in 0..ROUNDS {
                        team.each(&mut parts, |number, (sum, owner)| {
                            *sum += round + number as u64;
                            let me = thread::current().id();
                            assert!(*owner.get_or_insert(me) == me || me == leader);
                        });
                    }
                });
                for (number, (sum, _)) in parts.iter().enumerate() {
                    assert_eq!(*sum, ROUNDS * (ROUNDS - 1) / 2 + ROUNDS * number as u64, "{threads} threads, {count} parts");
                }
            }
        }
    }

    /// What one thread wrote in a task the others see in the next one, asleep or not in between.
    #[test]
    fn what_was_written_in_a_task_is_seen_in_the_next() {
        let cells: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        with_team(&Threads::new(4), |team| {
            for round in 0..ROUNDS {
                team.run(&|thread| cells[thread].store(round, Ordering::Relaxed));
                team.run(&|_| assert!(cells.iter().all(|cell| cell.load(Ordering::Relaxed) == round)));
                if round % 100 == 0 {
                    thread::sleep(std::time::Duration::from_millis(5));
                }
            }
        });
    }

    /// A leader that waits for far longer than it works does all parts alone for a multiple of that wait, doubled each time, and then gives
    /// followers another chance. Parts of different size are not a reason, and neither is a wait below a millisecond.
    #[test]
    fn a_leader_with_late_followers_works_alone() {
        let milliseconds = Duration::from_millis;
        let alone = |crowding: &Crowding| crowding.alone.as_ref().map(|(_, time)| *time);
        let mut crowding = Crowding::default();
        crowding.note(None, milliseconds(8));
        assert!(crowding.was_late && alone(&crowding).is_none());
        crowding.note(Some(milliseconds(3)), milliseconds(8));
        assert_eq!(alone(&crowding), None);
        for factor in [4, 8, 16, 32, 64, 64] {
            crowding.note(Some(Duration::from_micros(5)), milliseconds(1000));
            assert_eq!(alone(&crowding), Some(milliseconds(1000 * factor)));
            assert!(crowding.is_alone());
        }
        crowding.note(Some(Duration::from_micros(5)), Duration::from_micros(900));
        assert!(!crowding.was_late && crowding.factor == 0);
        crowding.alone = Some((Stopwatch::start(), Duration::ZERO));
        assert!(!crowding.is_alone() && crowding.alone.is_none());
    }

    /// A leader that works alone does every part of a task.
    #[test]
    fn a_leader_alone_does_all_parts() {
        with_team(&Threads::new(3), |team| {
            let me = thread::current().id();
            for is_alone in [true, false, true] {
                team.crowding.alone = is_alone.then(|| (Stopwatch::start(), Duration::from_secs(3600)));
                let mut parts = vec![None; 7];
                team.each(&mut parts, |number, part| *part = Some((number, thread::current().id())));
                assert!(parts.iter().enumerate().all(|(number, part)| part.is_some_and(|(done, _)| done == number)));
                assert!(!is_alone || parts.iter().all(|part| part.is_some_and(|(_, thread)| thread == me)));
            }
        });
    }

    #[test]
    fn a_panic_in_any_thread_reaches_the_leader_after_all_have_finished() {
        for culprit in 0..3 {
            let finished = AtomicU32::new(0);
            let result = catch_unwind(AssertUnwindSafe(|| {
                with_team(&Threads::new(3), |team| {
                    team.run(&|thread| {
                        assert_ne!(thread, culprit, "a defect");
                        finished.fetch_add(1, Ordering::SeqCst);
                    });
                });
            }));
            let payload = result.expect_err("the panic arrives");
            let text = payload.downcast_ref::<String>().expect("a text");
            assert!(text.contains("a defect"), "{text}");
            assert_eq!(finished.load(Ordering::SeqCst), 2);
        }
    }
}
