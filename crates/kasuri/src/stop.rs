//! Requests to stop: Ctrl-C, SIGTERM, or the embedding program.

use crate::measure::Measurement;
use kasuri_model::engine::{Command, Controller, Interval, Status};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A request to stop that all runs of a plan share. Clones are the same request.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// 0, or the number of the signal.
    signal: Arc<AtomicUsize>,
    /// True to stop because results cannot be kept.
    halted: Arc<AtomicBool>,
}

impl Stop {
    /// Stops at SIGINT and SIGTERM from now on, for the rest of the process. A second signal ends the process at once.
    ///
    /// # Errors
    /// The operating system refuses the handlers.
    pub fn on_signals() -> io::Result<Self> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM] {
            let asked = Arc::new(AtomicBool::new(false));
            // In this order: at the first signal the flag is still unset when the first handler reads it.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&asked))?;
            flag::register(signal, asked)?;
            flag::register_usize(signal, Arc::clone(&stop.signal), signal as usize)?;
        }
        Ok(stop)
    }

    /// Requests an early end of all runs, as if this signal (2 for SIGINT, 15 for SIGTERM) had come.
    pub fn request(&self, signal: u8) {
        self.signal.store(usize::from(signal), Ordering::Relaxed);
    }

    /// The signal of the request, if any.
    pub fn signal(&self) -> Option<u8> {
        u8::try_from(self.signal.load(Ordering::Relaxed)).ok().filter(|&signal| signal != 0)
    }

    /// The same request, with a separate [`Stop::halt`] for one experiment.
    pub(crate) fn of_experiment(&self) -> Self {
        Self { signal: Arc::clone(&self.signal), halted: Arc::default() }
    }

    /// Requests the end of all runs of this experiment, without a signal.
    pub(crate) fn halt(&self) {
        self.halted.store(true, Ordering::Relaxed);
    }

    /// True if runs should end.
    pub(crate) fn is_requested(&self) -> bool {
        self.halted.load(Ordering::Relaxed) || self.signal().is_some()
    }
}

/// Any measurement, cut short when a stop is requested.
pub(crate) struct Interruptible<'a> {
    inner: &'a mut dyn Measurement,
    stop: &'a Stop,
    interrupted: bool,
}

impl<'a> Interruptible<'a> {
    pub(crate) fn new(inner: &'a mut dyn Measurement, stop: &'a Stop) -> Self {
        Self { inner, stop, interrupted: false }
    }

    /// True if the run was cut short. Its outcome is then meaningless.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted
    }
}

impl Controller for Interruptible<'_> {
    fn interval_cycles(&mut self) -> u64 {
        self.inner.interval_cycles()
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        if self.stop.is_requested() {
            self.interrupted = true;
            return Command::End(Status::MaxCycles);
        }
        self.inner.interval_ended(interval)
    }

    fn assured_intervals(&self) -> u64 {
        self.inner.assured_intervals()
    }

    fn waits_until(&self) -> Option<u64> {
        self.inner.waits_until()
    }

    fn weighs_ages(&self) -> bool {
        self.inner.weighs_ages()
    }

    fn should_stop(&self) -> bool {
        self.stop.is_requested() || self.inner.should_stop()
    }
}
