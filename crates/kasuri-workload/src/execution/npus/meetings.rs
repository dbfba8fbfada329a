//! Messages matched with receives: the k-th of a name with the k-th.

use super::messages::{Done, Sending};
use super::{Npus, Outside};
use std::collections::{BTreeMap, VecDeque};

/// What is called alike between two NPUs: tag, source, size.
type Key = (u32, u32, u64);

/// Messages without receives, or receives without messages.
#[derive(Debug)]
enum Meeting {
    Arrived(u32),
    /// So many receives that tell the same.
    Posted(Done, u32),
    ManyPosted(Box<VecDeque<Done>>),
}

/// In the place of a source: any, where so many phases follow.
fn anybody(phases: u32) -> u32 {
    u32::MAX - phases
}

/// What an NPU waits for, and what has come before it was waited for.
#[derive(Debug, Default)]
pub(super) struct Meetings(BTreeMap<Key, Meeting>);

/// Tags of a program are cut to this; those of collectives begin with it.
pub(super) const TAGS: u32 = 500_000_000;

impl Meetings {
    /// The receive that waits for a message, or the message waits for a receive.
    fn take_posted(&mut self, key: Key) -> Option<Done> {
        let meetings = &mut self.0;
        match meetings.get_mut(&key) {
            None => {
                meetings.insert(key, Meeting::Arrived(1));
                None
            }
            Some(Meeting::Arrived(count)) => {
                *count += 1;
                None
            }
            Some(Meeting::Posted(done, count)) => {
                let done = *done;
                *count -= 1;
                if *count == 0 {
                    meetings.remove(&key);
                }
                Some(done)
            }
            Some(Meeting::ManyPosted(posted)) => {
                let done = posted.pop_front();
                if posted.is_empty() {
                    meetings.remove(&key);
                }
                done
            }
        }
    }

    /// Posts a receive; is its message there already?
    fn post(&mut self, key: Key, done: Done) -> bool {
        let meetings = &mut self.0;
        match meetings.get_mut(&key) {
            None => {
                meetings.insert(key, Meeting::Posted(done, 1));
            }
            Some(Meeting::Arrived(count)) => {
                *count -= 1;
                if *count == 0 {
                    meetings.remove(&key);
                }
                return true;
            }
            Some(Meeting::ManyPosted(posted)) => posted.push_back(done),
            Some(Meeting::Posted(first, count)) if *first == done => *count += 1,
            Some(posted @ Meeting::Posted(..)) => {
                if let Meeting::Posted(first, count) = *posted {
                    let mut all = VecDeque::from(vec![first; count as usize]);
                    all.push_back(done);
                    *posted = Meeting::ManyPosted(Box::new(all));
                }
            }
        }
        false
    }
}

impl<O: Outside> Npus<'_, O> {
    /// A message has arrived at `npu`.
    pub fn arrived(&mut self, npu: u32, message: &Sending) {
        let Sending { source, tag, bytes, sent, anonymous, .. } = *message;
        let from = anonymous.map_or(source, anybody);
        let receive = self.npus[npu as usize].meetings.take_posted((tag, from, bytes));
        self.tell(source, sent);
        if let Some(receive) = receive {
            self.tell(npu, receive);
        }
    }

    /// Posts a receive now.
    pub(super) fn receive(&mut self, npu: u32, source: u32, tag: u32, bytes: u64, done: Done, anonymous: Option<u32>) {
        let from = anonymous.map_or(source, anybody);
        if self.npus[npu as usize].meetings.post((tag, from, bytes), done) {
            self.outside.received(npu, done);
        }
    }

    /// A message was sent, or received.
    pub fn tell(&mut self, npu: u32, done: Done) {
        match done {
            Done::Silent => {}
            Done::Node(node) => self.node_ends(npu, node),
            Done::Stream(stream) => self.stream_receives(stream),
            Done::Custom(stream, node) => self.custom_ends(stream, node),
        }
    }
}
