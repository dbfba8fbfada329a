//! Source queues: when terminals create packets, and which packet stands at the head of a terminal's queue.
//!
//! The queue is unbounded but virtual: a terminal keeps the cycle in which its next packet is created and draws the packet when
//! it reaches the head of the queue. So a saturated source costs no memory, and its backlog is exact.

use crate::class_queues::ClassQueues;
use crate::state::NONE;
use crate::users::AccessId;
use kasuri_model::router::Priority;
use kasuri_model::scenario::{ClosedWorkload, Scenario, TrafficClass};
use kasuri_network::id::TerminalId;
use kasuri_network::rng::{Purpose, Stream};
use kasuri_workload::traffic::process::Process;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;

/// Never.
pub(crate) const NEVER: u64 = u64::MAX;

/// No virtual channel chosen yet.
pub(crate) const NO_VC: u16 = u16::MAX;

/// Buckets of the calendar of creations; a creation further away stays in its bucket for another turn.
const CALENDAR_BUCKETS: usize = 4096;

/// The head of a terminal's queue. What its flits need lies in [`crate::terminal::Injection`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    /// The packet at the head of the queue, or [`NONE`].
    pub(crate) packet: u32,
    /// Packets drawn so far.
    pub(crate) serial: u32,
    /// The virtual channel that it goes by, or [`NO_VC`].
    pub(crate) vc: u16,
    /// The virtual channel of the packet before.
    pub(crate) last_vc: u16,
    /// The class that is served first next time.
    pub(crate) next_class: u8,
    /// Is the terminal in its tile's list of active sources?
    pub(crate) listed: bool,
}

/// Classes whose packets come of one process. The first of them keeps its creations for all.
#[derive(Clone, Debug)]
struct Joint {
    process: Arc<dyn Process>,
    classes: Vec<u32>,
    /// Cumulative probabilities that a packet is of one of them, the last one 1.
    cumulative: Vec<f64>,
}

impl Joint {
    fn of(scenario: &Scenario) -> Option<Self> {
        let sharing = || scenario.classes.iter().zip(0u32..).filter(|(class, _)| class.joint.is_some());
        let process = Arc::clone(sharing().next()?.0.joint.as_ref()?);
        let total: f64 = sharing().map(|(class, _)| class.packet_rate()).sum();
        let equal_part = 1.0 / sharing().count() as f64;
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = sharing()
            .map(|(class, _)| {
                // Batches have no rates.
                sum += if total > 0.0 { class.packet_rate() / total } else { equal_part };
                sum
            })
            .collect();
        *cumulative.last_mut()? = 1.0;
        Some(Self { process, classes: sharing().map(|(_, number)| number).collect(), cumulative })
    }

    /// The class of the next packet.
    fn draw(&self, stream: &mut Stream) -> u32 {
        let point = stream.unit();
        let place = self.cumulative.iter().position(|&up_to| point < up_to).unwrap_or(self.classes.len() - 1);
        self.classes[place]
    }
}

/// The lists of one tile of terminals.
#[derive(Clone, Debug)]
struct SourceTile {
    /// Terminals whose next packet may be drawn or find a virtual channel.
    active: Vec<u32>,
    /// First entry (class x terminals + terminal) of each bucket of the calendar.
    calendar: Box<[u32]>,
    /// Entries in the calendar.
    scheduled: u32,
    /// Entries of which a packet has come back, and the cycles in which it did.
    returned: Vec<(u32, u64)>,
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

/// A packet that was drawn for the head of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    pub(crate) created: u64,
    /// The cycle that decides whether it is measured: `created` or, of an answer, that of the packet that it answers.
    pub(crate) asked: u64,
    pub(crate) destination: TerminalId,
    pub(crate) flits: u32,
    pub(crate) class: u8,
    pub(crate) is_reply: bool,
    /// The access that it belongs to, where there are users.
    pub(crate) access: AccessId,
    /// The record of the message that it is a part of, or [`NONE`].
    pub(crate) message: u32,
}

/// All sources.
pub(crate) struct Sources {
    terminals: u32,
    pub(crate) source: Vec<Source>,
    /// Shape `[classes, terminals]`.
    creations: Vec<Creations>,
    replies: Vec<VecDeque<Drawn>>,
    /// Do packets of a class of higher priority leave their source first?
    by_priority: bool,
    /// The classes that share their coins, if any do.
    joint: Option<Joint>,
    /// The queues of sources that have one for each class.
    pub(crate) class_queues: Option<ClassQueues>,
    /// Is any class held back by a window?
    pub(crate) has_windows: bool,
    tiles: Vec<SourceTile>,
    /// log2 of the terminals of a tile.
    tile_shift: u32,
    /// The next entry in the same bucket of the calendar, of each entry.
    calendar_next: Vec<u32>,
    /// While draining: packets created before this cycle are waited for.
    pub(crate) drain_before: u64,
    /// The same for those drawn from then on: packets created before this cycle are not.
    pub(crate) drain_from: u64,
    /// While draining: entries whose next packet is created before `drain_before`.
    pub(crate) undrained: u64,
    /// Nothing new is created any more.
    pub(crate) closed: bool,
    /// From when on the phases that were drawn last hold.
    phases_from: u64,
}

/// The first creation from cycle `from` on, by a phase that is drawn for it.
fn next_of_phase(process: &dyn Process, from: u64, stream: &mut Stream) -> u64 {
    process.next(0, None, stream).map_or(NEVER, |phase| from.saturating_add(phase))
}

/// The shortest packet of a scenario, flits. The last packet of a workload's message may have any length.
pub(crate) fn shortest_packet(scenario: &Scenario) -> u32 {
    let of_class = |class: &TrafficClass| class.reply.iter().map(|reply| reply.sizes.min()).fold(class.sizes.min(), u32::min);
    let of_endpoint = scenario.endpoint.iter().filter_map(|endpoint| endpoint.packet_flits()).map(|[shortest, _]| shortest);
    let of_workload = scenario.workload.as_ref().map(|_| 1);
    scenario.classes.iter().map(of_class).chain(of_workload).chain(of_endpoint).min().unwrap_or(1)
}

/// The longest packet of a scenario, flits.
pub(crate) fn longest_packet(scenario: &Scenario) -> u32 {
    let of_class = |class: &TrafficClass| class.reply.iter().map(|reply| reply.sizes.max()).fold(class.sizes.max(), u32::max);
    let of_endpoint = scenario.endpoint.iter().filter_map(|endpoint| endpoint.packet_flits()).map(|[_, longest]| longest);
    scenario
        .classes
        .iter()
        .map(of_class)
        .chain(scenario.workload.as_ref().map(ClosedWorkload::longest_packet))
        .chain(of_endpoint)
        .max()
        .unwrap_or(1)
}

impl Sources {
    /// Sources in tiles of `2^tile_shift` terminals.
    pub(crate) fn new(scenario: &Scenario, tile_shift: u32) -> Self {
        let terminals = scenario.network.terminal_count();
        let source = Source { packet: NONE, serial: 0, vc: NO_VC, last_vc: NO_VC, next_class: 0, listed: false };
        let tile = SourceTile {
            active: Vec::new(),
            calendar: vec![NONE; CALENDAR_BUCKETS].into_boxed_slice(),
            scheduled: 0,
            returned: Vec::new(),
        };
        let entries = scenario.classes.len() as u32 * terminals;
        let creations = (0..entries).map(|entry| Creations {
            next: NEVER,
            index: 0,
            outstanding: 0,
            waits: false,
            gaps: scenario.streams.get(Purpose::Creation, entry),
            destinations: scenario.streams.get(Purpose::Destination, entry),
        });
        let replying = scenario.classes.iter().any(|class| class.reply.is_some());
        let by_priority = scenario.router.priority == Priority::Class && scenario.classes.len() > 1;
        Self {
            terminals,
            class_queues: ClassQueues::of(scenario, by_priority),
            source: vec![source; terminals as usize],
            creations: creations.collect(),
            replies: vec![VecDeque::new(); if replying { terminals as usize } else { 0 }],
            joint: Joint::of(scenario),
            by_priority,
            has_windows: scenario.classes.iter().any(|class| !class.window.is_open()),
            tiles: vec![tile; terminals.div_ceil(1 << tile_shift) as usize],
            tile_shift,
            calendar_next: vec![NONE; entries as usize],
            drain_before: 0,
            drain_from: 0,
            undrained: 0,
            closed: false,
            phases_from: 0,
        }
    }

    /// Bytes of such sources.
    pub(crate) fn bytes(scenario: &Scenario, tile_shift: u32) -> usize {
        let terminals = scenario.network.terminal_count() as usize;
        let entries = scenario.classes.len() * terminals;
        let replying = scenario.classes.iter().any(|class| class.reply.is_some());
        let replies = if replying { terminals * (size_of::<VecDeque<Drawn>>() + 4 * size_of::<Drawn>()) } else { 0 };
        let tiles = terminals.div_ceil(1 << tile_shift) * (size_of::<SourceTile>() + 4 * CALENDAR_BUCKETS);
        // Active terminals of a tile, in a list that grows.
        terminals * (size_of::<Source>() + 8) + entries * (size_of::<Creations>() + 4) + replies + tiles
    }

    /// Draws the first creation of every terminal and class.
    pub(crate) fn start(&mut self, scenario: &Scenario) {
        for entry in 0..self.creations.len() as u32 {
            let Some(process) = self.process_of(scenario, entry) else { continue };
            let creations = &mut self.creations[entry as usize];
            creations.next = process.next(0, None, &mut creations.gaps).unwrap_or(NEVER);
            self.schedule(entry);
        }
    }

    /// The process by which an entry creates packets, if it does.
    fn process_of<'a>(&self, scenario: &'a Scenario, entry: u32) -> Option<&'a dyn Process> {
        let class = entry / self.terminals;
        let traffic = &scenario.classes[class as usize];
        match &self.joint {
            Some(joint) if joint.classes[1..].contains(&class) => None,
            Some(joint) if joint.classes[0] == class => traffic.joint.as_deref(),
            _ => Some(traffic.process_at(TerminalId(entry % self.terminals))),
        }
    }

    /// Draws the phases of sources that have one anew: what they create from cycle `now` on follows it. Packets that wait in a queue
    /// keep their creation, and the queue takes up its new phase behind them.
    pub(crate) fn redraw_phases(&mut self, scenario: &Scenario, now: u64) {
        self.phases_from = now;
        let waits_in_calendar = |creations: &Creations| creations.next >= now && creations.next != NEVER;
        for entry in 0..self.creations.len() as u32 {
            let Some(process) = self.process_of(scenario, entry).filter(|process| process.has_phase()) else { continue };
            let creations = &mut self.creations[entry as usize];
            if waits_in_calendar(creations) {
                creations.next = next_of_phase(process, now, &mut creations.gaps);
            }
        }
        for tile in &mut self.tiles {
            tile.calendar.fill(NONE);
            tile.scheduled = 0;
        }
        for entry in 0..self.creations.len() as u32 {
            if waits_in_calendar(&self.creations[entry as usize]) {
                self.schedule(entry);
            }
        }
    }

    /// The terminal of an entry. Most scenarios have one class, whose entries need no division.
    #[inline(always)]
    fn terminal_of(&self, entry: u32) -> u32 {
        if entry < self.terminals { entry } else { entry % self.terminals }
    }

    fn schedule(&mut self, entry: u32) {
        let next = self.creations[entry as usize].next;
        if next != NEVER {
            let bucket = next as usize % CALENDAR_BUCKETS;
            let terminal = self.terminal_of(entry);
            let tile = &mut self.tiles[(terminal >> self.tile_shift) as usize];
            self.calendar_next[entry as usize] = tile.calendar[bucket];
            tile.calendar[bucket] = entry;
            tile.scheduled += 1;
        }
    }

    /// Wakes the terminals of a tile that create a packet in cycle `now`.
    #[inline(always)]
    pub(crate) fn create(&mut self, tile: u32, now: u64) {
        let bucket = now as usize % CALENDAR_BUCKETS;
        let mut entry = std::mem::replace(&mut self.tiles[tile as usize].calendar[bucket], NONE);
        while entry != NONE {
            let following = self.calendar_next[entry as usize];
            self.tiles[tile as usize].scheduled -= 1;
            if self.creations[entry as usize].next <= now {
                self.wake(self.terminal_of(entry));
            } else {
                self.schedule(entry);
            }
            entry = following;
        }
    }

    /// The next cycle from `now` on in which the calendar has an entry, at most `limit`.
    pub(crate) fn next_creation(&self, now: u64, limit: u64) -> u64 {
        if self.closed {
            return limit;
        }
        let filled: Vec<&SourceTile> = self.tiles.iter().filter(|tile| tile.scheduled > 0).collect();
        let has_entry = |bucket: usize| filled.iter().any(|tile| tile.calendar[bucket] != NONE);
        let turn = if filled.is_empty() { 0 } else { CALENDAR_BUCKETS as u64 };
        let ahead = (0..turn).find(|ahead| has_entry((now + ahead) as usize % CALENDAR_BUCKETS));
        ahead.map_or(limit, |ahead| (now + ahead).min(limit))
    }

    /// Puts a terminal into its tile's list of active sources.
    #[inline(always)]
    pub(crate) fn wake(&mut self, terminal: u32) {
        let source = &mut self.source[terminal as usize];
        if !source.listed {
            source.listed = true;
            self.tiles[(terminal >> self.tile_shift) as usize].active.push(terminal);
        }
    }

    /// Is no terminal active?
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.tiles.iter().all(|tile| tile.active.is_empty() && tile.returned.is_empty())
    }

    /// Takes a tile's list of active terminals; [`Self::put_active`] gives it back.
    #[inline(always)]
    pub(crate) fn take_active(&mut self, tile: u32) -> Vec<u32> {
        std::mem::take(&mut self.tiles[tile as usize].active)
    }

    /// Gives the memory of a list of active terminals back. None may have been woken meanwhile.
    #[inline(always)]
    pub(crate) fn put_active(&mut self, tile: u32, list: Vec<u32>) {
        debug_assert!(self.tiles[tile as usize].active.is_empty());
        self.tiles[tile as usize].active = list;
    }

    /// Queues the answer to a packet; answers go before new packets.
    pub(crate) fn queue_reply(&mut self, terminal: TerminalId, reply: Drawn) {
        self.replies[terminal.index()].push_back(reply);
        self.wake(terminal.0);
    }

    /// Length of the answer to a packet of `class` that arrived at `terminal`.
    pub(crate) fn reply_flits(&mut self, terminal: TerminalId, class: u8, sizes: &kasuri_workload::traffic::PacketSizes) -> u32 {
        sizes.draw(&mut self.creations[(u32::from(class) * self.terminals + terminal.0) as usize].destinations)
    }

    /// May a terminal whose queue has lost its head in cycle `now` draw another one before the calendar wakes it?
    #[inline(always)]
    pub(crate) fn may_go_on(&self, terminal: u32, now: u64) -> bool {
        let classes = self.creations[terminal as usize..].iter().step_by(self.terminals as usize);
        !self.replies.is_empty() || classes.into_iter().any(|creations| creations.next <= now)
    }

    /// Draws the packet at the head of the queue in cycle `now`, if there is one.
    pub(crate) fn draw(&mut self, scenario: &Scenario, terminal: u32, now: u64) -> Option<Drawn> {
        self.take_reply(scenario, terminal, now).or_else(|| {
            let destination = |class: usize, stream: &mut Stream| scenario.classes[class].pattern.destination(TerminalId(terminal), stream);
            self.draw_new(scenario, terminal, now, destination)
        })
    }

    /// Takes the answer that a terminal sends next, if there is one and it may be sent.
    #[inline(always)]
    pub(crate) fn take_reply(&mut self, scenario: &Scenario, terminal: u32, now: u64) -> Option<Drawn> {
        let may_go = |reply: &Drawn| {
            let delay = scenario.classes[usize::from(reply.class)].reply.as_ref().map_or(0, |reply| reply.delay);
            reply.created + u64::from(delay) <= now
        };
        let queue = self.replies.get_mut(terminal as usize)?;
        if queue.front().is_some_and(may_go) { queue.pop_front() } else { None }
    }

    /// The answer that a terminal sends next, if there is one.
    pub(crate) fn first_reply(&self, terminal: u32) -> Option<&Drawn> {
        self.replies.get(terminal as usize).and_then(VecDeque::front)
    }

    /// Draws a new packet, of which `destination` tells where those of a class go.
    #[inline(always)]
    pub(crate) fn draw_new(
        &mut self,
        scenario: &Scenario,
        terminal: u32,
        now: u64,
        mut destination: impl FnMut(usize, &mut Stream) -> Option<TerminalId>,
    ) -> Option<Drawn> {
        if self.closed {
            return None;
        }
        let classes = scenario.classes.len() as u32;
        let first = u32::from(self.source[terminal as usize].next_class);
        if self.by_priority {
            let mut order: Vec<u32> = (0..classes).map(|turn| (first + turn) % classes).collect();
            order.sort_by_key(|&class| Reverse(scenario.classes[class as usize].priority));
            return order.into_iter().find_map(|class| self.draw_of_class(scenario, terminal, class, now, &mut destination));
        }
        let mut class = first;
        for _ in 0..classes {
            let drawn = self.draw_of_class(scenario, terminal, class, now, &mut destination);
            if drawn.is_some() {
                return drawn;
            }
            class = if class + 1 == classes { 0 } else { class + 1 };
        }
        None
    }

    #[inline(always)]
    pub(crate) fn draw_of_class(
        &mut self,
        scenario: &Scenario,
        terminal: u32,
        class: u32,
        now: u64,
        destination: &mut impl FnMut(usize, &mut Stream) -> Option<TerminalId>,
    ) -> Option<Drawn> {
        let entry = class * self.terminals + terminal;
        let created = self.creations[entry as usize].next;
        if created > now || self.has_windows && self.must_wait(scenario, entry, class) {
            return None;
        }
        let creations = &mut self.creations[entry as usize];
        let joint = self.joint.as_ref().filter(|joint| joint.classes[0] == class);
        let own = || scenario.classes[class as usize].process_at(TerminalId(terminal));
        let process = joint.map_or_else(own, |joint| &*joint.process);
        let class = joint.map_or(class, |joint| joint.draw(&mut creations.destinations));
        let traffic = &scenario.classes[class as usize];
        let destination = destination(class as usize, &mut creations.destinations);
        let flits = traffic.sizes.draw(&mut creations.destinations);
        creations.index += 1;
        let more = destination.is_some();
        creations.outstanding += u32::from(more);
        creations.next = if more { process.next(creations.index, Some(created), &mut creations.gaps).unwrap_or(NEVER) } else { NEVER };
        if created < self.phases_from && creations.next >= self.phases_from && creations.next != NEVER && process.has_phase() {
            creations.next = next_of_phase(process, self.phases_from, &mut creations.gaps);
        }
        let next = creations.next;
        if created < self.drain_before && next >= self.drain_before {
            self.undrained -= 1;
        }
        if next > now {
            self.schedule(entry);
        }
        let is_last = class as usize + 1 == scenario.classes.len();
        self.source[terminal as usize].next_class = if is_last { 0 } else { class as u8 + 1 };
        let access = AccessId::default();
        destination.map(|destination| Drawn {
            created,
            asked: created,
            destination,
            flits,
            class: class as u8,
            is_reply: false,
            access,
            message: NONE,
        })
    }

    /// The entry of a class at a terminal; classes that share their coins have that of the first of them.
    fn entry_of(&self, class: u8, terminal: u32) -> u32 {
        let joint = self.joint.as_ref().filter(|joint| joint.classes.contains(&u32::from(class)));
        joint.map_or(u32::from(class), |joint| joint.classes[0]) * self.terminals + terminal
    }

    /// Does the window keep the next packet of an entry back?
    #[cold]
    fn must_wait(&mut self, scenario: &Scenario, entry: u32, class: u32) -> bool {
        let creations = &mut self.creations[entry as usize];
        let waits = scenario.classes[class as usize].window.outstanding.is_some_and(|most| creations.outstanding >= most);
        if waits {
            // It is created when it may go.
            (creations.waits, creations.next) = (true, NEVER);
        }
        waits
    }

    /// A packet of a terminal has arrived, or its answer. Its place in the window is free from the next cycle on.
    pub(crate) fn come_back(&mut self, class: u8, terminal: u32, now: u64) {
        let entry = self.entry_of(class, terminal);
        self.tiles[(terminal >> self.tile_shift) as usize].returned.push((entry, now));
    }

    /// Opens the windows of a tile for what came back before cycle `now`.
    pub(crate) fn open_windows(&mut self, tile: u32, now: u64) {
        let mut returned = std::mem::take(&mut self.tiles[tile as usize].returned);
        returned.retain(|&(entry, cycle)| {
            if cycle < now {
                self.creations[entry as usize].outstanding -= 1;
                if self.end_wait(entry, now) {
                    self.wake(self.terminal_of(entry));
                }
            }
            cycle == now
        });
        self.tiles[tile as usize].returned = returned;
    }

    /// The next packet of an entry is created in cycle `now`, if it has been waiting for that.
    fn end_wait(&mut self, entry: u32, now: u64) -> bool {
        let creations = &mut self.creations[entry as usize];
        let waited = std::mem::take(&mut creations.waits);
        if waited {
            creations.next = now;
        }
        waited
    }

    /// A terminal begins to send an answer. Is that a packet beyond those of its batch?
    #[cold]
    pub(crate) fn begin_answer(&mut self, scenario: &Scenario, answer: &Drawn, terminal: u32, now: u64) -> bool {
        let entry = self.entry_of(answer.class, terminal);
        // While an answer is being sent a source looks for no other packet: one that still must wait after that is created later.
        self.end_wait(entry, now);
        let class = &scenario.classes[usize::from(answer.class)];
        if !class.window.counts_answers {
            return false;
        }
        let creations = &mut self.creations[entry as usize];
        let mut has_another = |index: u64| class.process_at(TerminalId(terminal)).next(index, Some(now), &mut creations.gaps).is_some();
        let is_beyond = !has_another(creations.index) || class.pattern.is_silent(TerminalId(terminal));
        creations.index += 1;
        if !has_another(creations.index) {
            creations.next = NEVER;
        }
        is_beyond
    }

    /// Does a terminal hold a packet that it cannot send?
    pub(crate) fn has_stuck_packet(&self) -> bool {
        self.source.iter().any(|source| source.packet != NONE) || self.class_queues.as_ref().is_some_and(ClassQueues::has_packet)
    }

    /// Begins to wait for the packets created before `cycle`, counting those that no source has drawn yet.
    pub(crate) fn drain(&mut self, cycle: u64) {
        self.drain_before = cycle;
        self.undrained = self.creations.iter().filter(|creations| creations.next < cycle).count() as u64;
    }

    /// Answers in queues to packets of which the decisive cycle is this one or a later one.
    pub(crate) fn answers_since(&self, cycle: u64) -> u64 {
        self.replies.iter().flatten().filter(|reply| reply.asked >= cycle).count() as u64
    }

    /// Sum over all entries of the cycles by which their next creation lies before `now`.
    pub(crate) fn backlog_cycles(&self, now: u64) -> u64 {
        self.creations.iter().map(|creations| now.saturating_sub(creations.next)).sum()
    }
}
