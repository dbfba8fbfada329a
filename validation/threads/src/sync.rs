//! What takes the place of `crates/kasuri-flit/src/record/sync.rs`: the same names, from Loom.

pub(crate) use loom::cell::UnsafeCell;
pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::sync::Mutex;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
pub(crate) use std::time::Duration;
pub(crate) use thread::Thread;

/// Looks before a thread goes to sleep: each would multiply the orders, and tell nothing new.
pub(crate) const SPINS: u32 = 1;

/// Looks between which others may have the core: none, for the same reason.
pub(crate) const YIELD_SPINS: u32 = 0;

/// Lets others go on; the core always comes back.
pub(crate) fn offer_core() -> bool {
    thread::yield_now();
    true
}

/// Time stands still: nobody is late, so that the leader never goes on alone, which takes no turns with others.
pub(crate) struct Stopwatch;

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self
    }

    pub(crate) fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

/// Threads that fall asleep and are woken by Loom's `Notify`, and that end with a scope. Loom's own `unpark` wakes a thread from whatever it
/// waits for, and scopes it has none.
pub(crate) mod thread {
    use loom::sync::Notify;
    use std::cell::RefCell;
    use std::io;
    use std::marker::PhantomData;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::Arc;

    loom::thread_local! {
        static CURRENT: RefCell<Thread> = RefCell::default();
    }

    /// A thread, for who wakes it.
    #[derive(Clone, Default)]
    pub(crate) struct Thread(Arc<Notify>);

    impl Thread {
        pub(crate) fn unpark(&self) {
            self.0.notify();
        }
    }

    /// The thread that asks.
    pub(crate) fn current() -> Thread {
        CURRENT.with(|thread| thread.borrow().clone())
    }

    /// Lets others go on.
    pub(crate) fn yield_now() {
        loom::thread::yield_now();
    }

    /// Sleeps until somebody wakes this thread or has woken it, or for no reason.
    pub(crate) fn park() {
        current().0.wait();
    }

    /// Threads that end before what they borrow.
    #[derive(Default)]
    pub(crate) struct Scope<'env> {
        threads: RefCell<Vec<loom::thread::JoinHandle<()>>>,
        lent: PhantomData<&'env mut &'env ()>,
    }

    /// Waits for the threads that the work has begun, also if it panics.
    pub(crate) fn scope<'env, R>(work: impl FnOnce(&Scope<'env>) -> R) -> R {
        let scope = Scope::default();
        let result = catch_unwind(AssertUnwindSafe(|| work(&scope)));
        for thread in scope.threads.take() {
            thread.join().expect("no thread of a team panics");
        }
        result.unwrap_or_else(|payload| resume_unwind(payload))
    }

    /// A thread of a scope.
    pub(crate) struct Handle(Thread);

    impl Handle {
        pub(crate) fn thread(&self) -> &Thread {
            &self.0
        }
    }

    /// Begins threads, which have no names here.
    pub(crate) struct Builder;

    impl Builder {
        pub(crate) fn new() -> Self {
            Self
        }

        pub(crate) fn name(self, _name: String) -> Self {
            self
        }

        pub(crate) fn spawn_scoped<'env>(self, scope: &Scope<'env>, work: impl FnOnce() + Send + 'env) -> io::Result<Handle> {
            let work: Box<dyn FnOnce() + Send + 'env> = Box::new(work);
            // SAFETY: `scope` returns only when the thread has ended.
            let work = unsafe { std::mem::transmute::<Box<dyn FnOnce() + Send + 'env>, Box<dyn FnOnce() + Send>>(work) };
            let thread = Thread::default();
            let own = thread.clone();
            let begun = loom::thread::Builder::new().spawn(move || {
                CURRENT.with(|current| current.replace(own));
                work();
            })?;
            scope.threads.borrow_mut().push(begun);
            Ok(Handle(thread))
        }
    }
}
