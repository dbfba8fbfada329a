//! Channels that users claim while each is simulated alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// The owner of a channel that nobody has claimed.
const NOBODY: u8 = 0;

/// Whose each channel is, by the paths that have been found.
#[derive(Debug)]
pub(super) struct Claims {
    owners: Box<[AtomicU8]>,
    /// Is simulating parts alone over: because two share a channel, one has not come to its end, or the run is to end?
    is_over: AtomicBool,
}

impl Claims {
    pub(super) fn new(channels: u32) -> Self {
        Self { owners: (0..channels).map(|_| AtomicU8::new(NOBODY)).collect(), is_over: AtomicBool::new(false) }
    }

    /// Claims the channels of a path for a part.
    pub(super) fn claim(&self, part: usize, channels: &[u32]) {
        let own = part as u8 + 1;
        for &channel in channels {
            let owner = &self.owners[channel as usize];
            let before = owner.load(Ordering::Relaxed);
            if before != own && (before != NOBODY || owner.compare_exchange(NOBODY, own, Ordering::Relaxed, Ordering::Relaxed).is_err()) {
                self.end();
            }
        }
    }

    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// The claims of the part that is simulated at present.
#[derive(Debug)]
pub(super) struct Territory {
    pub(super) claims: Arc<Claims>,
    pub(super) part: usize,
}

impl Territory {
    pub(super) fn claim(&self, channels: &[u32]) {
        self.claims.claim(self.part, channels);
    }
}
