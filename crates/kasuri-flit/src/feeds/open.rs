//! Open traffic and batches: when terminals create packets, and the answers to them.
//!
//! The queue of a source is unbounded but virtual: a terminal keeps the cycle in which its next packet is created and draws the packet when
//! it reaches the head of the queue. So a saturated source costs no memory, and its backlog is exact.

use crate::feeds::batch::Batch;
use crate::feeds::calendar::Calendar;
use crate::record::drawn::{Attempt, Drawn};
use crate::record::marks::{NEVER, NONE};
use crate::record::prefetch::prefetch_across;
use crate::record::tag::Tag;
use crate::state::feed::{Arrival, Ask, Backlog, Drain, EdgeMessage, Left, Moves, Naming, Next, OneQueue, PacketFeed};
use crate::state::queues::Queues;
use crate::state::share::Share;
use kasuri_model::engine::EngineError;
use kasuri_model::router::Priority;
use kasuri_model::scenario::{Joint, Scenario};
use kasuri_network::id::TerminalId;
use kasuri_network::memory::{Column, large_vec};
use kasuri_network::rng::{Purpose, Stream};
use kasuri_workload::traffic::process::Process;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// The running number of the next packet of a terminal that has no batch.
const AFTER_BATCH: u64 = u64::MAX / 2;

/// Entries of a bucket of the calendar between asking for one and its use.
const ENTRIES_AHEAD: usize = 16;

/// Up to so many entries lie near, and asking for them ahead costs more than it saves.
const NEAR_ENTRIES: usize = 4096;

/// Entries in memory of large pages: in which cycle which of them is drawn cannot be foreseen.
fn collected<T>(entries: impl Iterator<Item = T>) -> Vec<T> {
    let mut collected = large_vec(entries.size_hint().0);
    collected.extend(entries);
    collected
}

/// The creations of one class at one terminal.
#[derive(Clone, Debug)]
struct Creations {
    /// Cycle of the packet that is next to be drawn, [`NEVER`] if there is none.
    next: u64,
    /// Its running number.
    index: u64,
    /// Packets that are outstanding, where there is a window, and whether the next one waits for one of them.
    outstanding: u32,
    waits: bool,
    gaps: Stream,
    destinations: Stream,
}

impl Creations {
    /// Is the next packet created in this cycle or later?
    fn is_due_from(&self, now: u64) -> bool {
        self.next >= now && self.next != NEVER
    }
}

/// The classes of open traffic at all terminals. Many fields, because everything that decides when which packet is created stands here.
#[derive(Debug)]
pub(crate) struct OpenTraffic<'a> {
    scenario: &'a Scenario,
    /// The tile's terminals, and the number of the first one in the network.
    terminals: u32,
    first: u32,
    /// Shape `[classes, terminals]`: an entry is `class x terminals + terminal`, by the numbers in the tile.
    creations: Column<Creations>,
    /// The entries by the cycle of their next creation, as long as that is to come.
    calendar: Calendar,
    /// The next packets of entries that have left the calendar and are not drawn.
    backlog: Backlog,
    /// By terminal: the class that is asked first next time. Empty where there is one class.
    next_class: Vec<u8>,
    /// Do packets of a class of higher priority leave their source first?
    by_priority: bool,
    /// The classes that share their coins.
    joint: Vec<Joint>,
    /// By terminal: answers to send. Empty where nothing is answered.
    answers: Vec<VecDeque<Drawn>>,
    /// By block, where classes have windows, else empty: entries of which a packet has come back, and the cycles in which it did.
    returned: Vec<Vec<(u32, u64)>>,
    /// What is still to come, where all classes are batches and the run ends with them.
    batch: Option<Batch>,
    drain: Drain,
    /// While draining: entries whose next packet is created before its end.
    undrained: u64,
    /// From when on the phases that were drawn last hold.
    phases_from: u64,
    /// May a terminal be asked at any time, since others than the calendar may have something for it?
    asked_always: bool,
}

/// The first creation from cycle `from` on, by a phase that is drawn for it.
fn next_of_phase(process: &dyn Process, from: u64, stream: &mut Stream) -> u64 {
    process.next(0, None, stream).map_or(NEVER, |phase| from.saturating_add(phase))
}

impl<'a> OpenTraffic<'a> {
    /// The open traffic of a tile, in blocks of `2^block_shift` terminals. `ends_run`: does the run end with its batches?
    pub(crate) fn new(scenario: &'a Scenario, share: &Share, block_shift: u32, ends_run: bool) -> Self {
        let (terminals, first) = (share.terminals.len() as u32, share.terminals.start);
        let all = scenario.network.terminal_count();
        let classes = scenario.classes.len();
        let blocks = terminals.div_ceil(1 << block_shift) as usize;
        let entries = classes as u32 * terminals;
        // Streams are those of the entries of the whole network, whatever the tiles.
        let entity = |entry: u32| entry / terminals * all + first + entry % terminals;
        let creations = (0..entries).map(|entry| Creations {
            next: NEVER,
            index: 0,
            outstanding: 0,
            waits: false,
            gaps: scenario.streams.get(Purpose::Creation, entity(entry)),
            destinations: scenario.streams.get(Purpose::Destination, entity(entry)),
        });
        let replying = scenario.classes.iter().any(|class| class.reply.is_some());
        let has_windows = scenario.classes.iter().any(|class| !class.window.is_open());
        Self {
            scenario,
            terminals,
            first,
            creations: collected(creations).into(),
            calendar: Calendar::new(terminals, block_shift, entries as usize),
            backlog: Backlog::default(),
            next_class: vec![0; if classes > 1 { terminals as usize } else { 0 }],
            by_priority: scenario.router.priority == Priority::Class && classes > 1,
            joint: scenario.joint(),
            answers: vec![VecDeque::new(); if replying { terminals as usize } else { 0 }],
            returned: vec![Vec::new(); if has_windows { blocks } else { 0 }],
            batch: if ends_run { Batch::of(scenario, share) } else { None },
            drain: Drain::default(),
            undrained: 0,
            phases_from: 0,
            asked_always: scenario.router.class_queues,
        }
    }

    /// Bytes of such traffic of so many terminals.
    pub(crate) fn bytes(scenario: &Scenario, terminals: usize, block_shift: u32) -> usize {
        let entries = scenario.classes.len() * terminals;
        let replying = scenario.classes.iter().any(|class| class.reply.is_some());
        let answers = if replying { terminals * (size_of::<VecDeque<Drawn>>() + 4 * size_of::<Drawn>()) } else { 0 };
        entries * size_of::<Creations>() + answers + Calendar::bytes(terminals, block_shift, entries)
    }

    /// Have classes windows?
    #[inline(always)]
    fn has_windows(&self) -> bool {
        !self.returned.is_empty()
    }

    /// Is a terminal one of the tile?
    fn is_own(&self, terminal: u32) -> bool {
        (self.first..self.first + self.terminals).contains(&terminal)
    }

    /// The process by which an entry creates packets, if it does.
    fn process_of(&self, entry: u32) -> Option<&'a dyn Process> {
        let class = entry / self.terminals;
        let traffic = &self.scenario.classes[class as usize];
        match Joint::of_class(&self.joint, class) {
            Some(joint) if joint.classes[0] != class => None,
            Some(_) => traffic.joint.as_deref(),
            None => Some(traffic.process_at(TerminalId(self.first + entry % self.terminals))),
        }
    }

    /// Is a class a batch that moves from terminal to terminal?
    fn moves(&self, class: usize) -> bool {
        self.scenario.classes[class].packets_per_terminal.is_some()
            && self.scenario.users.as_ref().is_some_and(|users| users.changes(class))
    }

    /// Fills the calendar anew with all creations from cycle `now` on.
    fn fill_calendar_from(&mut self, now: u64) {
        self.calendar.clear();
        for entry in 0..self.creations.len() as u32 {
            if self.creations[entry].is_due_from(now) {
                self.schedule(entry);
            }
        }
        self.backlog = self.created_before(now);
    }

    /// The next packets that were created before a cycle, one by one.
    fn created_before(&self, now: u64) -> Backlog {
        let mut backlog = Backlog::default();
        self.creations.iter().filter(|creations| creations.next < now).for_each(|creations| backlog.add(creations.next));
        backlog
    }

    /// What has come back to terminals that have become others has come back to these.
    fn move_returned(&mut self, class: u32, moves: &Moves<'_>) {
        let first = class * self.terminals;
        let blocks = self.returned.len();
        for (entry, cycle) in std::mem::replace(&mut self.returned, vec![Vec::new(); blocks]).into_iter().flatten() {
            let is_own = (first..first + self.terminals).contains(&entry);
            let terminal = self.terminal_of(entry);
            let terminal = if is_own { moves.becomes(terminal).unwrap_or(terminal) } else { terminal };
            let entry = if is_own { first + terminal } else { entry };
            self.returned[(terminal >> self.calendar.block_shift) as usize].push((entry, cycle));
        }
    }

    /// Fetches an entry of a bucket of the calendar, if there is one. Returns the one that follows it there.
    #[inline(always)]
    fn fetch_entry(&self, entry: u32) -> u32 {
        let Some(creations) = self.creations.as_slice().get(entry as usize) else { return NONE };
        prefetch_across(creations);
        self.calendar.following(entry)
    }

    /// The terminal of an entry, by its number in the tile. Most scenarios have one class, whose entries need no division.
    #[inline(always)]
    fn terminal_of(&self, entry: u32) -> u32 {
        if entry < self.terminals { entry } else { entry % self.terminals }
    }

    /// The entry of a class at a terminal; classes that share their coins have that of the first of them.
    fn entry_of(&self, class: u8, terminal: u32) -> u32 {
        Joint::leader_of(&self.joint, u32::from(class)) * self.terminals + terminal
    }

    fn schedule(&mut self, entry: u32) {
        let next = self.creations[entry].next;
        if next != NEVER {
            let terminal = self.terminal_of(entry);
            self.calendar.schedule(entry, terminal, next);
        }
    }

    /// Takes the answer that a terminal sends next, if there is one and it may be sent.
    #[inline(always)]
    fn take_answer(&mut self, terminal: u32, now: u64) -> Option<Drawn> {
        let classes = &self.scenario.classes;
        let may_go = |answer: &Drawn| {
            let delay = classes[usize::from(answer.class)].reply.as_ref().map_or(0, |reply| reply.delay);
            answer.created + u64::from(delay) <= now
        };
        let queue = self.answers.get_mut(terminal as usize)?;
        if queue.front().is_some_and(may_go) { queue.pop_front() } else { None }
    }

    /// Draws a new packet.
    #[inline(always)]
    fn draw_new(&mut self, terminal: u32, now: u64, naming: &mut Option<&mut dyn Naming>) -> Option<Drawn> {
        if self.drain.closes {
            return None;
        }
        let classes = self.scenario.classes.len() as u32;
        let first = self.next_class.get(terminal as usize).map_or(0, |&class| u32::from(class));
        if self.by_priority {
            let mut order: Vec<u32> = (0..classes).map(|turn| (first + turn) % classes).collect();
            order.sort_by_key(|&class| Reverse(self.scenario.classes[class as usize].priority));
            return order.into_iter().find_map(|class| self.draw_of_class(terminal, class, now, naming));
        }
        let mut class = first;
        for _ in 0..classes {
            let drawn = self.draw_of_class(terminal, class, now, naming);
            if drawn.is_some() {
                return drawn;
            }
            class = if class + 1 == classes { 0 } else { class + 1 };
        }
        None
    }

    /// Draws the packet at the head of one queue of a terminal that has several, if there is one: answers go first.
    fn draw_of_queue(&mut self, terminal: u32, ask: &mut Ask<'_>, queue: OneQueue<'_>) -> Option<Drawn> {
        if self.first_answer(terminal).is_some_and(|answer| queue.has(answer.class)) {
            return self.take_answer(terminal, ask.now);
        }
        if self.drain.closes {
            return None;
        }
        let classes = 0..self.scenario.classes.len() as u8;
        classes.filter(|&class| queue.has(class)).find_map(|class| self.draw_of_class(terminal, class.into(), ask.now, &mut ask.naming))
    }

    /// The answer at the head of those that a terminal has to send.
    fn first_answer(&self, terminal: u32) -> Option<&Drawn> {
        self.answers.get(terminal as usize).and_then(VecDeque::front)
    }

    #[inline(always)]
    fn draw_of_class(&mut self, terminal: u32, class: u32, now: u64, naming: &mut Option<&mut dyn Naming>) -> Option<Drawn> {
        let entry = class * self.terminals + terminal;
        let created = self.creations[entry].next;
        if created > now || self.has_windows() && self.must_wait(entry, class) {
            return None;
        }
        let creations = &mut self.creations[entry];
        let joint = Joint::of_leader(&self.joint, class);
        let id = TerminalId(self.first + terminal);
        let own = || self.scenario.classes[class as usize].process_at(id);
        let process = joint.map_or_else(own, |joint| &*joint.process);
        let class = joint.map_or(class, |joint| joint.draw(&mut creations.destinations));
        let traffic = &self.scenario.classes[class as usize];
        let destination = match naming {
            None => traffic.pattern.destination(id, &mut creations.destinations),
            Some(naming) => naming.destination(class as usize, id.0, &mut creations.destinations),
        };
        let flits = traffic.sizes.draw(&mut creations.destinations);
        self.backlog.remove(created);
        creations.index += 1;
        let more = destination.is_some();
        creations.outstanding += u32::from(more);
        creations.next = if more { process.next(creations.index, Some(created), &mut creations.gaps).unwrap_or(NEVER) } else { NEVER };
        if created < self.phases_from && creations.next >= self.phases_from && creations.next != NEVER && process.has_phase() {
            creations.next = next_of_phase(process, self.phases_from, &mut creations.gaps);
        }
        let next = creations.next;
        if created < self.drain.before && next >= self.drain.before {
            self.undrained -= 1;
        }
        if next > now {
            self.schedule(entry);
        } else {
            self.backlog.add(next);
        }
        if let Some(following) = self.next_class.get_mut(terminal as usize) {
            let is_last = class as usize + 1 == self.scenario.classes.len();
            *following = if is_last { 0 } else { class as u8 + 1 };
        }
        let (class, tag) = (class as u8, Tag::default());
        destination.map(|destination| Drawn {
            created,
            asked: created,
            destination,
            flits,
            class,
            is_reply: false,
            again: Attempt::First,
            tag,
        })
    }

    /// Does the window keep the next packet of an entry back?
    #[cold]
    fn must_wait(&mut self, entry: u32, class: u32) -> bool {
        let creations = &mut self.creations[entry];
        let waits = self.scenario.classes[class as usize].window.outstanding.is_some_and(|most| creations.outstanding >= most);
        if waits {
            // It is created when it may go.
            self.backlog.remove(creations.next);
            (creations.waits, creations.next) = (true, NEVER);
        }
        waits
    }

    /// A packet of a terminal has arrived, or its answer. Its place in the window is free from the next cycle on.
    fn come_back(&mut self, class: u8, terminal: u32, now: u64) {
        let (entry, block) = (self.entry_of(class, terminal), terminal >> self.calendar.block_shift);
        self.returned[block as usize].push((entry, now));
    }

    /// Opens the windows of a block for what came back before cycle `now`.
    fn open_windows(&mut self, block: u32, now: u64, queues: &mut Queues) {
        let mut returned = std::mem::take(&mut self.returned[block as usize]);
        returned.retain(|&(entry, cycle)| {
            if cycle < now {
                self.creations[entry].outstanding -= 1;
                if self.end_wait(entry, now) {
                    queues.wake_own(self.terminal_of(entry));
                }
            }
            cycle == now
        });
        self.returned[block as usize] = returned;
    }

    /// The next packet of an entry is created in cycle `now`, if it has been waiting for that.
    fn end_wait(&mut self, entry: u32, now: u64) -> bool {
        let creations = &mut self.creations[entry];
        let waited = std::mem::take(&mut creations.waits);
        if waited {
            creations.next = now;
            self.backlog.add(now);
        }
        waited
    }

    /// A terminal begins to send an answer. Is that a packet beyond those of its batch?
    #[cold]
    fn begin_answer(&mut self, answer: &Drawn, terminal: u32, now: u64) -> bool {
        let entry = self.entry_of(answer.class, terminal);
        // While an answer is being sent a source looks for no other packet: one that still must wait after that is created later.
        self.end_wait(entry, now);
        let class = &self.scenario.classes[usize::from(answer.class)];
        if !class.window.counts_answers {
            return false;
        }
        // Where batches move, a terminal without one has used its own up.
        let is_silent = !self.moves(answer.class.into()) && class.pattern.is_silent(TerminalId(self.first + terminal));
        let creations = &mut self.creations[entry];
        let id = TerminalId(self.first + terminal);
        let mut has_another = |index: u64| class.process_at(id).next(index, Some(now), &mut creations.gaps).is_some();
        let is_beyond = !has_another(creations.index) || is_silent;
        creations.index += 1;
        if !has_another(creations.index) {
            if creations.next <= now {
                self.backlog.remove(creations.next);
            }
            creations.next = NEVER;
        }
        is_beyond
    }

    /// Queues the answer to a packet that has arrived.
    fn answer(&mut self, arrival: &Arrival<'_>, queues: &mut Queues) {
        let (class, terminal) = (arrival.record.class, arrival.record.destination - self.first);
        let Some(reply) = &self.scenario.classes[usize::from(class)].reply else { return };
        let stream = &mut self.creations[u32::from(class) * self.terminals + terminal].destinations;
        self.answers[terminal as usize].push_back(Drawn {
            created: arrival.now,
            asked: arrival.asked,
            destination: TerminalId(arrival.record.source),
            flits: reply.sizes.draw(stream),
            class,
            is_reply: true,
            again: Attempt::First,
            tag: Tag { access: arrival.tag.access, ..Tag::default() },
        });
        queues.wake_own(terminal);
    }
}

impl PacketFeed for OpenTraffic<'_> {
    fn start(&mut self, _queues: &mut Queues) {
        for entry in 0..self.creations.len() as u32 {
            let Some(process) = self.process_of(entry) else { continue };
            let (class, terminal) = ((entry / self.terminals) as usize, TerminalId(self.first + entry % self.terminals));
            let has_none = self.moves(class) && self.scenario.classes[class].pattern.is_silent(terminal);
            let creations = &mut self.creations[entry];
            if has_none {
                // Not even where another's batch comes to.
                creations.index = AFTER_BATCH;
            }
            creations.next = process.next(creations.index, None, &mut creations.gaps).unwrap_or(NEVER);
            self.schedule(entry);
        }
    }

    fn next_packet(&mut self, mut ask: Ask<'_>) -> Next {
        let (terminal, now) = (ask.terminal - self.first, ask.now);
        let drawn = match ask.queue {
            None => self.take_answer(terminal, now).or_else(|| self.draw_new(terminal, now, &mut ask.naming)),
            Some(queue) => self.draw_of_queue(terminal, &mut ask, queue),
        };
        Next::or_later(drawn, || self.first_answer(terminal).is_some())
    }

    fn next_answer(&mut self, terminal: u32, now: u64, queue: Option<OneQueue<'_>>) -> Option<Drawn> {
        let terminal = terminal - self.first;
        let is_other = |queue: OneQueue<'_>| self.first_answer(terminal).is_some_and(|answer| !queue.has(answer.class));
        if queue.is_some_and(is_other) { None } else { self.take_answer(terminal, now) }
    }

    fn has_pending_reply(&self, terminal: u32) -> bool {
        self.first_answer(terminal - self.first).is_some()
    }

    /// Only windows, answers and batches depend on what becomes of packets.
    fn wants_packet_events(&self) -> bool {
        self.has_windows() || !self.answers.is_empty() || self.batch.is_some()
    }

    fn began(&mut self, drawn: &Drawn, terminal: u32, now: u64) {
        if drawn.is_reply
            && self.has_windows()
            && self.begin_answer(drawn, terminal - self.first, now)
            && let Some(batch) = &mut self.batch
        {
            batch.add();
        }
    }

    fn dropped(&mut self, drawn: &Drawn, terminal: u32, now: u64) {
        if self.has_windows() {
            self.come_back(drawn.class, terminal - self.first, now);
        }
        if let Some(batch) = &mut self.batch {
            batch.drop_packet(drawn.class, terminal, self.scenario.classes[usize::from(drawn.class)].reply.is_some());
        }
    }

    fn tail_left(&mut self, left: &Left) -> bool {
        let mut classes = self.creations.as_slice()[(left.terminal - self.first) as usize..].iter().step_by(self.terminals as usize);
        self.asked_always || !self.answers.is_empty() || classes.any(|creations| creations.next <= left.now)
    }

    fn prefetch_block(&self, block: u32) {
        self.calendar.prefetch_block(block);
    }

    fn prefetch_tail_left(&self, terminal: u32) {
        if let Some(creations) = self.creations.as_slice().get((terminal - self.first) as usize) {
            prefetch_across(creations);
        }
    }

    fn packet_arrived(&mut self, arrival: &Arrival<'_>, queues: &mut Queues) {
        let record = arrival.record;
        let of_batch = self.batch.as_mut().is_some_and(|batch| batch.packet_arrived(record));
        let is_answered = !record.is_reply && self.scenario.classes[usize::from(record.class)].reply.is_some();
        let opens_window = self.has_windows() && !record.is_reply && !is_answered;
        if is_answered {
            self.answer(arrival, queues);
        } else if self.has_windows() && record.is_reply {
            self.come_back(record.class, record.destination - self.first, arrival.now);
        }
        if of_batch || opens_window {
            let message = EdgeMessage::Delivered { class: record.class, source: record.source, now: arrival.now, of_batch, opens_window };
            if self.is_own(record.source) {
                self.take_message(&message, queues);
            } else {
                queues.messages.push(message);
            }
        }
    }

    fn take_message(&mut self, message: &EdgeMessage, _queues: &mut Queues) {
        let &EdgeMessage::Delivered { class, source, now, of_batch, opens_window } = message else { return };
        if opens_window {
            self.come_back(class, source - self.first, now);
        }
        if of_batch && let Some(batch) = &mut self.batch {
            batch.delivered(class, source);
        }
    }

    fn begin_cycle(&mut self, block: u32, now: u64, queues: &mut Queues) {
        if self.has_windows() {
            self.open_windows(block, now, queues);
        }
        if self.drain.closes {
            return;
        }
        let mut entry = self.calendar.open(block, now);
        if entry == NONE {
            return;
        }
        // What few sources need is at hand without being fetched.
        let mut ahead = if self.creations.len() > NEAR_ENTRIES { entry } else { NONE };
        for _ in 0..ENTRIES_AHEAD {
            ahead = self.fetch_entry(ahead);
        }
        while entry != NONE {
            ahead = self.fetch_entry(ahead);
            let following = self.calendar.take(block, entry);
            let next = self.creations[entry].next;
            if next <= now {
                self.backlog.add(next);
                queues.wake_own(self.terminal_of(entry));
            } else {
                self.schedule(entry);
            }
            entry = following;
        }
    }

    fn nodes_moved(&mut self, moves: &Moves<'_>, queues: &mut Queues) {
        for class in moves.classes.clone() {
            if !self.moves(class) {
                continue;
            }
            for &[one, other] in moves.exchanged {
                let [one_entry, other_entry] = [one, other].map(|terminal| class as u32 * self.terminals + terminal.0);
                self.creations.swap(one_entry, other_entry);
                queues.wake(one.0);
                queues.wake(other.0);
            }
            self.move_returned(class as u32, moves);
        }
        if let Some(batch) = &mut self.batch {
            batch.moved(moves);
        }
        self.fill_calendar_from(moves.cycle);
    }

    fn next_due(&self, now: u64, limit: u64) -> Result<u64, EngineError> {
        Ok(if self.drain.closes { limit } else { self.calendar.next_filled(now, limit) })
    }

    fn is_idle(&self) -> bool {
        self.returned.iter().all(Vec::is_empty)
    }

    fn ends(&self) -> bool {
        self.batch.is_some()
    }

    fn outstanding(&self) -> i64 {
        self.batch.as_ref().map_or(0, Batch::outstanding)
    }

    fn has_first_finished(&self) -> bool {
        self.batch.as_ref().is_some_and(|batch| batch.first_finished)
    }

    fn backlog(&self, now: u64) -> Backlog {
        if self.drain.closes {
            // The calendar is not looked at any more.
            return self.created_before(now);
        }
        self.backlog
    }

    fn broken(&self, now: u64) -> Option<String> {
        let (counted, found) = (self.backlog(now), self.created_before(now));
        (counted != found).then(|| format!("the backlog of open traffic is counted as {counted:?} and is {found:?}"))
    }

    fn drain(&mut self, drain: Drain) -> u64 {
        self.drain = drain;
        self.undrained = self.creations.iter().filter(|creations| creations.next < drain.before).count() as u64;
        // An answer counts if what it answers does.
        self.answers.iter().flatten().filter(|answer| answer.asked >= drain.measured_from).count() as u64
    }

    fn undrained(&self) -> u64 {
        self.undrained
    }

    fn redraw_phases(&mut self, now: u64) {
        self.phases_from = now;
        for entry in 0..self.creations.len() as u32 {
            let Some(process) = self.process_of(entry).filter(|process| process.has_phase()) else { continue };
            let creations = &mut self.creations[entry];
            if creations.is_due_from(now) {
                creations.next = next_of_phase(process, now, &mut creations.gaps);
            }
        }
        self.fill_calendar_from(now);
    }
}
