//! What `team.rs` is made of: the threads, numbers and locks of the standard library. `validation/threads` compiles that file with others in
//! their place, which try every order in which threads may take their turns.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::Mutex;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
pub(crate) use std::thread::{self, Thread};
pub(crate) use std::time::Duration;
use std::time::Instant;

/// Looks of a thread that keeps its core: some microseconds, as long as the shortest tasks take. Few where an interpreter takes far longer.
pub(crate) const SPINS: u32 = if cfg!(miri) { 3 } else { 400 };

/// Looks after these, between which others may have the core, before the thread goes to sleep: some hundred microseconds. Sixteen threads
/// that are woken one after the other take longer to begin than a short window takes.
pub(crate) const YIELD_SPINS: u32 = if cfg!(miri) { 1 } else { 400 };

/// A core that no other thread wants comes back sooner than this; a thread that takes it keeps it for longer.
const COMES_BACK: Duration = Duration::from_micros(200);

/// Yields the core of this thread. Has it come back at once?
pub(crate) fn offer_core() -> bool {
    let offered = Stopwatch::start();
    thread::yield_now();
    offered.elapsed() < COMES_BACK
}

/// Measures time.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A place that threads write and read in turns, which they arrange themselves.
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(content: T) -> Self {
        Self(std::cell::UnsafeCell::new(content))
    }

    /// Lends the place to a reader.
    #[inline(always)]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Lends the place to a writer.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
