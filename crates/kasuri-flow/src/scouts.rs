//! Threads that draw messages and find their paths before they begin.
//!
//! What a terminal of a batch sends, and by which path, hangs on nothing that happens. So *scouts* go ahead of the event loop, each for a part
//! of the terminals, by one message of each. Each terminal has a place on a board, which its scout writes and the event loop reads, in turns:
//! whose message has been taken is put on a list, and a full list goes to the scout through a queue without locks. The event loop waits only
//! where it needs a message that is not there yet. It takes every message at the same moment as without scouts: nothing else is different.

use crate::path_prefetch::may_look_ahead;
use crate::paths::{Paths, Request, Walk};
use kasuri_model::engine::Threads;
use kasuri_model::scenario::Scenario;
use kasuri_model::sources::{Drawn, Forecast, Foreseen, Sources};
use kasuri_network::id::TerminalId;
use kasuri_network::memory::{fetch_ahead, large_vec};
use kasuri_network::network::metrics::hops_from;
use std::any::Any;
use std::hint::spin_loop;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Terminals on a full list: to fill one takes the event loop about a hundred times as long as to wake a scout.
const FULL: usize = 256;

/// Terminals of a scout: of fewer, lists fill too slowly.
const LEAST_TERMINALS: u32 = 4096;

/// Terminals of a network that is worth a scout: a million take three quarters of the time, 262,144 nine tenths at best.
const WORTH_A_CORE: u32 = 1 << 19;

/// How often the event loop looks at a place on the board before it lets others have its core.
const LOOKS: u32 = 400;

/// Words of a cache line.
const WORDS: usize = 16;

/// The words of a place: how many messages of the terminal have been found; of the last of them the destination and the flits, when the one
/// after it is created (two words), and how many channels its path has (none if it is not known), which follow.
const FOUND: usize = 0;
const DESTINATION: usize = 1;
const FLITS: usize = 2;
const FOLLOWING: usize = 3;
const CHANNELS: usize = 5;
const PATH: usize = 6;

/// The destination of no message.
const NOBODY: u32 = u32::MAX;

/// A cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line([AtomicU32; WORDS]);

/// A place for each terminal, some lines long.
#[derive(Debug)]
struct Board {
    lines: Vec<Line>,
    lines_of_place: usize,
}

impl Board {
    fn new(scenario: &Scenario) -> Self {
        let lines_of_place = lines_of_place(scenario);
        let count = scenario.network.terminal_count() as usize * lines_of_place;
        let mut lines = large_vec(count);
        lines.resize_with(count, Line::default);
        Self { lines, lines_of_place }
    }

    /// The words of a terminal's place.
    #[inline(always)]
    fn place(&self, terminal: u32) -> Place<'_> {
        Place(&self.lines[terminal as usize * self.lines_of_place..][..self.lines_of_place])
    }
}

/// Lines for the longest path between terminals, or one with a detour of that length. What is longer yet is found by who needs it.
fn lines_of_place(scenario: &Scenario) -> usize {
    let network = &scenario.network;
    let hops = hops_from(network, network.injection_port(TerminalId(0)).0);
    let longest = 2 + 2 * hops.into_iter().flatten().max().unwrap_or(0) as usize;
    (PATH + longest).div_ceil(WORDS)
}

/// A terminal's place on the board.
#[derive(Clone, Copy)]
struct Place<'b>(&'b [Line]);

impl Place<'_> {
    #[inline(always)]
    fn word(self, index: usize) -> u32 {
        self.0[index / WORDS].0[index % WORDS].load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn write(self, index: usize, word: u32) {
        self.0[index / WORDS].0[index % WORDS].store(word, Ordering::Relaxed);
    }

    /// Writes the message of this running number, which makes it known.
    fn put(self, serial: u32, foreseen: &Foreseen, path: &[u32]) {
        let (destination, flits) = foreseen.message.map_or((NOBODY, 0), |(destination, flits)| (destination.0, flits));
        self.write(DESTINATION, destination);
        self.write(FLITS, flits);
        self.write(FOLLOWING, foreseen.following as u32);
        self.write(FOLLOWING + 1, (foreseen.following >> 32) as u32);
        let path = if PATH + path.len() > self.0.len() * WORDS { &[] } else { path };
        self.write(CHANNELS, path.len() as u32);
        path.iter().zip(PATH..).for_each(|(&channel, index)| self.write(index, channel));
        self.0[0].0[FOUND].store(serial + 1, Ordering::Release);
    }

    /// Is the message of this running number there?
    #[inline(always)]
    fn has(self, serial: u32) -> bool {
        self.0[0].0[FOUND].load(Ordering::Acquire) == serial + 1
    }

    #[inline(always)]
    fn following(self) -> u64 {
        u64::from(self.word(FOLLOWING)) | u64::from(self.word(FOLLOWING + 1)) << 32
    }

    fn foreseen(self) -> Foreseen {
        let destination = self.word(DESTINATION);
        let message = (destination != NOBODY).then(|| (TerminalId(destination), self.word(FLITS)));
        Foreseen { message, following: self.following() }
    }

    fn path(self) -> impl Iterator<Item = u32> {
        (PATH..PATH + self.word(CHANNELS) as usize).map(move |index| self.word(index))
    }
}

/// What all threads see.
#[derive(Debug)]
struct Shared {
    board: Board,
    /// Does nobody want messages any more?
    is_over: AtomicBool,
}

/// What a thread needs that goes ahead.
struct Scout<'s> {
    scenario: &'s Scenario,
    forecast: Forecast,
    paths: Paths,
    walks: Vec<Walk>,
    foreseen: Vec<(u32, Foreseen)>,
    unused: Vec<Vec<u32>>,
}

impl<'s> Scout<'s> {
    fn new(scenario: &'s Scenario, terminals: Range<u32>) -> Self {
        let (forecast, paths) = (Forecast::new(scenario, terminals), Paths::new(scenario));
        Self { scenario, forecast, paths, walks: Vec::new(), foreseen: Vec::new(), unused: Vec::new() }
    }

    /// Finds what the terminals of these lists send next, until that is over.
    fn serve(&mut self, lists: &Receiver<Vec<u32>>, shared: &Shared) {
        while let Ok(list) = lists.recv()
            && !shared.is_over.load(Ordering::Relaxed)
        {
            self.find(&list, &shared.board);
        }
    }

    fn find(&mut self, terminals: &[u32], board: &Board) {
        for &terminal in terminals {
            self.draw(TerminalId(terminal), board);
        }
        // A path that is not found is looked for again by who needs it, and says what is wrong: in the same order as without scouts.
        let are_found = self.paths.find(self.scenario, &mut self.walks, &|_| 0).is_ok();
        for (walk, (serial, foreseen)) in self.walks.drain(..).zip(self.foreseen.drain(..)) {
            board.place(walk.request.source.0).put(serial, &foreseen, if are_found { &walk.channels } else { &[] });
            self.unused.push(walk.channels);
        }
    }

    /// Draws a terminal's next message, of which the path is still to be found if there is one.
    fn draw(&mut self, source: TerminalId, board: &Board) {
        let (serial, foreseen) = self.forecast.draw(self.scenario, source);
        let Some((destination, _)) = foreseen.message else { return board.place(source.0).put(serial, &foreseen, &[]) };
        let request = Request { source, destination, serial, available: self.scenario.classes[0].virtual_channels };
        self.walks.push(Walk::new(request, self.unused.pop().unwrap_or_default()));
        self.foreseen.push((serial, foreseen));
    }
}

/// The scouts, as the event loop sees them.
#[derive(Debug)]
pub(crate) struct Scouts {
    shared: Arc<Shared>,
    /// By scout: a list that is not full, and the queue of those that are.
    open: Vec<(Vec<u32>, Sender<Vec<u32>>)>,
    /// Terminals of each scout; the last may have fewer.
    share: u32,
    /// What scouts have said that have panicked.
    panics: Receiver<Box<dyn Any + Send>>,
}

impl Scouts {
    fn new(scenario: &Scenario, shared: Arc<Shared>, queues: Vec<Sender<Vec<u32>>>, panics: Receiver<Box<dyn Any + Send>>) -> Self {
        let terminals = scenario.network.terminal_count();
        let share = share(terminals, queues.len());
        let open = queues.into_iter().map(|queue| (Vec::new(), queue)).collect();
        let mut scouts = Self { shared, open, share, panics };
        (0..terminals).for_each(|terminal| scouts.want(terminal));
        scouts
    }

    /// Wants a terminal's next message.
    fn want(&mut self, terminal: u32) {
        let scout = (terminal / self.share) as usize;
        let list = &mut self.open[scout].0;
        list.push(terminal);
        if list.len() >= FULL {
            self.send(scout);
        }
    }

    /// Sends the list of a scout, full or not.
    fn send(&mut self, scout: usize) {
        let (list, queue) = &mut self.open[scout];
        // A scout that is gone has said why, and who waits for its messages hears it.
        let _ = queue.send(std::mem::replace(list, Vec::with_capacity(FULL)));
    }

    /// Waits until the message of a terminal that has this running number is there.
    #[cold]
    fn wait_for(&mut self, terminal: u32, serial: u32) {
        self.send((terminal / self.share) as usize);
        let mut looks = 0;
        while !self.shared.board.place(terminal).has(serial) {
            looks += 1;
            if looks < LOOKS {
                spin_loop();
            } else if let Ok(panic) = self.panics.try_recv() {
                resume_unwind(panic);
            } else {
                thread::yield_now();
            }
        }
    }

    /// The message that a terminal sends next, if it does so at time `now`. Its path is to be [taken](Self::give_paths).
    #[inline(always)]
    pub(crate) fn draw(&mut self, sources: &mut Sources, source: TerminalId, now: f64) -> Option<Drawn> {
        let serial = sources.due(source, now)?;
        if !self.shared.board.place(source.0).has(serial) {
            self.wait_for(source.0, serial);
        }
        sources.take(source, &self.shared.board.place(source.0).foreseen())
    }

    /// Gives messages that have been drawn their paths; or to none of them a path if one lacks it.
    pub(crate) fn give_paths(&mut self, walks: &mut [Walk]) -> bool {
        let mut have_all = true;
        for walk in &mut *walks {
            let place = self.shared.board.place(walk.request.source.0);
            walk.channels.extend(place.path());
            have_all &= !walk.channels.is_empty();
            if place.following() != u64::MAX {
                self.want(walk.request.source.0);
            }
        }
        if !have_all {
            walks.iter_mut().for_each(|walk| walk.channels.clear());
        }
        have_all
    }

    /// Says that a terminal's next message will be drawn soon.
    pub(crate) fn fetch(&self, terminal: u32) {
        fetch_ahead(&self.shared.board.lines, terminal as usize * self.shared.board.lines_of_place);
    }
}

impl Drop for Scouts {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

/// Terminals of each of so many scouts.
fn share(terminals: u32, scouts: usize) -> u32 {
    terminals.div_ceil(scouts as u32)
}

/// Is a scout worth a core that has nothing else to do?
pub(crate) fn are_worth_it(scenario: &Scenario) -> bool {
    may_look_ahead(scenario) && scenario.network.terminal_count() >= WORTH_A_CORE
}

/// How many scouts may go ahead of a scenario.
fn most(scenario: &Scenario) -> usize {
    if may_look_ahead(scenario) { (scenario.network.terminal_count() / LEAST_TERMINALS) as usize } else { 0 }
}

/// Lets scouts go ahead of some work: as many as are worth it, and as there are threads beside the one that does the work. None if the system
/// does not give them.
pub(crate) fn with_scouts<R>(scenario: &Scenario, threads: &Threads, work: impl FnOnce(Option<Scouts>) -> R) -> R {
    let count = (threads.count - 1).min(most(scenario));
    if count == 0 {
        return work(None);
    }
    let terminals = scenario.network.terminal_count();
    let share = share(terminals, count);
    let shared = Arc::new(Shared { board: Board::new(scenario), is_over: AtomicBool::new(false) });
    thread::scope(|scope| {
        let (panic, panics) = channel();
        let start = |number: usize| {
            let (queue, lists) = channel();
            let (begin, panic, Threads { at_begin, at_end, .. }) = (number as u32 * share, panic.clone(), threads.clone());
            let shared = Arc::clone(&shared);
            let serve = move || {
                at_begin(number + 1);
                let range = begin.min(terminals)..(begin + share).min(terminals);
                let served = catch_unwind(AssertUnwindSafe(|| Scout::new(scenario, range).serve(&lists, &shared)));
                if let Err(payload) = served {
                    // Nobody hears it if all is over.
                    let _ = panic.send(payload);
                }
                at_end();
            };
            thread::Builder::new().name(format!("kasuri-scout-{number}")).spawn_scoped(scope, serve).map(|_| queue)
        };
        let queues: Result<Vec<_>, _> = (0..count).map(start).collect();
        work(queues.ok().map(|queues| Scouts::new(scenario, Arc::clone(&shared), queues, panics)))
    })
}
