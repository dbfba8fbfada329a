//! A thread that draws messages and finds their paths before they begin.
//!
//! What a terminal of a batch sends, and by which path, hangs on nothing that happens. So a *scout* goes ahead of the event loop, by one
//! message of each terminal. Each terminal has a place on a board, which the scout writes and the event loop reads, in turns: whose message
//! has been taken is put on a list, and a full list goes to the scout through a queue without locks. The event loop waits only where it needs
//! a message that is not there yet. It takes every message at the same moment as without a scout: nothing else is different.

use crate::path_prefetch::may_look_ahead;
use crate::paths::{Paths, Request, Walk};
use kasuri_model::engine::Threads;
use kasuri_model::scenario::Scenario;
use kasuri_model::sources::{Forecast, ForecastMessage, SourceMessage, Sources};
use kasuri_network::id::TerminalId;
use kasuri_network::memory::{fetch_ahead, large_vec};
use kasuri_network::network::metrics::hops_from;
use std::any::Any;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Terminals on a full list: to fill one takes the event loop about a hundred times as long as to wake a scout.
const FULL: usize = 256;

/// Terminals of a network that is worth a scout: a million take 0.8 of the time, 262,144 nine tenths at best.
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
    fn put(self, serial: u32, foreseen: &ForecastMessage, path: &[u32]) {
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

    fn foreseen(self) -> ForecastMessage {
        let destination = self.word(DESTINATION);
        let message = (destination != NOBODY).then(|| (TerminalId(destination), self.word(FLITS)));
        ForecastMessage { message, following: self.following() }
    }

    fn path(self) -> impl Iterator<Item = u32> {
        (PATH..PATH + self.word(CHANNELS) as usize).map(move |index| self.word(index))
    }
}

/// What both threads see.
#[derive(Debug)]
struct Shared {
    board: Board,
    /// Does nobody want messages any more?
    is_over: AtomicBool,
}

/// What the thread needs that goes ahead.
struct Scout<'s> {
    scenario: &'s Scenario,
    forecast: Forecast,
    paths: Paths,
    walks: Vec<Walk>,
    foreseen: Vec<(u32, ForecastMessage)>,
    unused: Vec<Vec<u32>>,
}

impl<'s> Scout<'s> {
    fn new(scenario: &'s Scenario) -> Self {
        let (forecast, paths) = (Forecast::new(scenario), Paths::new(scenario));
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
        // A path that is not found is looked for again by who needs it, and says what is wrong: in the same order as without a scout.
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

/// The scout, as the event loop sees it.
#[derive(Debug)]
pub(crate) struct Scouted {
    shared: Arc<Shared>,
    /// A list that is not full, and the queue of those that are.
    open: Vec<u32>,
    lists: Sender<Vec<u32>>,
    /// What the scout has said if it has panicked.
    panic: Receiver<Box<dyn Any + Send>>,
}

impl Scouted {
    fn new(scenario: &Scenario, shared: Arc<Shared>, lists: Sender<Vec<u32>>, panic: Receiver<Box<dyn Any + Send>>) -> Self {
        let mut scouted = Self { shared, open: Vec::with_capacity(FULL), lists, panic };
        (0..scenario.network.terminal_count()).for_each(|terminal| scouted.want(terminal));
        scouted
    }

    /// Wants a terminal's next message.
    fn want(&mut self, terminal: u32) {
        self.open.push(terminal);
        if self.open.len() >= FULL {
            self.send();
        }
    }

    /// Sends the list, full or not.
    fn send(&mut self) {
        // A scout that is gone has said why, and who waits for its messages hears it.
        let _ = self.lists.send(std::mem::replace(&mut self.open, Vec::with_capacity(FULL)));
    }

    /// Waits until the message of a terminal that has this running number is there.
    #[cold]
    fn wait_for(&mut self, terminal: u32, serial: u32) {
        self.send();
        let mut looks = 0;
        while !self.shared.board.place(terminal).has(serial) {
            looks += 1;
            if looks < LOOKS {
                spin_loop();
            } else if let Ok(panic) = self.panic.try_recv() {
                resume_unwind(panic);
            } else {
                thread::yield_now();
            }
        }
    }

    /// The message that a terminal sends next, if it does so at time `now`. Its path is to be [taken](Self::give_paths).
    #[inline(always)]
    pub(crate) fn draw(&mut self, sources: &mut Sources, source: TerminalId, now: f64) -> Option<SourceMessage> {
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

impl Drop for Scouted {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

/// Is a scout worth a core that has nothing else to do?
pub(crate) fn is_worth_it(scenario: &Scenario) -> bool {
    may_look_ahead(scenario) && scenario.network.terminal_count() >= WORTH_A_CORE
}

/// Lets a scout go ahead of some work, if messages may be looked ahead at and there is a thread beside the one that does the work; none if the
/// system does not give it.
pub(crate) fn with_scout<R>(scenario: &Scenario, threads: &Threads, work: impl FnOnce(Option<Scouted>) -> R) -> R {
    if threads.count < 2 || !may_look_ahead(scenario) {
        return work(None);
    }
    let shared = Arc::new(Shared { board: Board::new(scenario), is_over: AtomicBool::new(false) });
    thread::scope(|scope| {
        let ((lists, wanted), (say, panic)) = (channel(), channel());
        let (board, Threads { at_begin, at_end, .. }) = (Arc::clone(&shared), threads.clone());
        let serve = move || {
            at_begin(1);
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| Scout::new(scenario).serve(&wanted, &board))) {
                // Nobody hears it if all is over.
                let _ = say.send(payload);
            }
            at_end();
        };
        let scout = thread::Builder::new().name("kasuri-scout".to_owned()).spawn_scoped(scope, serve);
        work(scout.ok().map(|_| Scouted::new(scenario, shared, lists, panic)))
    })
}
