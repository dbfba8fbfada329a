//! Users of one machine: accesses translated before they enter the network, packets checked where they arrive, tables that change.
//!
//! An access is translated when it is created, in the order of its terminal's queue, and looked up once more when it is to enter
//! the network: what it waits for is the translator's time, what it gets is the table of that moment. An access that a change of
//! the table holds waits at the head of its queue; answers pass it, so that what the change waits for can end. When the change is
//! written, what ranks of a workload and batches have not sent goes with their logical nodes.

use crate::feeds::accesses::Accesses;
use crate::feeds::waiting::{Heads, Waiting};
use crate::record::drawn::Drawn;
use crate::record::event::HeadAtRouter;
use crate::record::tag::Tag;
use crate::state::class_queues::ClassQueues;
use crate::state::feed::{
    Arrival, Ask, Backlog, Completions, Drain, EdgeMessage, Left, Moves, Naming, Next, PacketFeed, Report, SendRequest,
};
use crate::state::queues::Queues;
use kasuri_model::engine::{EngineError, TranslationCounts, UserOutcome};
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{RouterId, TerminalId};
use kasuri_network::rng::{Purpose, Stream};
use kasuri_workload::translation::users::{User, Users as Model, regions};
use kasuri_workload::translation::{Level, Refusal, Tables, Translator, VirtualNode, Written};

/// The destination of a drawn packet whose terminal is no logical node at present, or whose node sends nothing.
const NOWHERE: TerminalId = TerminalId(u32::MAX);

/// Values of the key bits that are drawn: many more than aliases.
const KEYS: u32 = 1 << 16;

/// What becomes of an access at the head of a queue.
enum Decision {
    /// It goes to a terminal.
    Goes(Drawn),
    /// It waits.
    Waits,
    /// Nothing is sent.
    Dropped(Drawn),
}

/// Feeds whose packets belong to users: what they draw is translated on its way into the network.
pub(crate) struct Translated<'a> {
    inner: Box<dyn PacketFeed + 'a>,
    users: Users<'a>,
    drain: Drain,
    /// Accesses at the heads of queues, and those that draining waits for.
    held: u64,
    undrained: u64,
}

/// The users of a run.
struct Users<'a> {
    model: &'a Model,
    tables: Tables,
    classes: Classes,
    /// By terminal.
    translators: Vec<Translator>,
    translator_free: Vec<u64>,
    heads: Heads,
    keys: Vec<Stream>,
    /// The logical node for which each terminal has drawn last.
    drawn_by: Vec<u32>,
    accesses: Accesses,
    /// By router: whose terminals stand there, and others' packets that came by, by user.
    regions: Vec<u64>,
    outcomes: Vec<UserOutcome>,
    counts: Vec<TranslationCounts>,
    /// By user.
    changes: Vec<Changes>,
    /// The next change at a given time.
    next_write: usize,
}

/// The classes of packets.
struct Classes {
    /// By class: whose it is, and whether its packets are answered.
    users: Vec<u16>,
    are_answered: Vec<bool>,
    /// So many are open traffic; the others are workloads, or parts of a machine.
    open: usize,
    /// Do the nodes of a machine translate what its programs access?
    has_machine: bool,
}

impl Classes {
    fn new(scenario: &Scenario, model: &Model) -> Self {
        let classes = scenario.channels_of_classes().len();
        let is_answered = |class: usize| scenario.classes.get(class).is_some_and(|class| class.reply.is_some());
        Self {
            users: (0..classes).map(|class| model.of_class(class).unwrap_or_default() as u16).collect(),
            are_answered: (0..classes).map(is_answered).collect(),
            open: scenario.classes.len(),
            has_machine: scenario.endpoint.is_some(),
        }
    }

    fn user(&self, class: u8) -> u16 {
        self.users[usize::from(class)]
    }

    /// Does this class belong to a machine whose nodes have translated its packets?
    fn is_of_machine(&self, class: u8) -> bool {
        self.has_machine && usize::from(class) >= self.open
    }
}

/// The changes of a user's table.
struct Changes {
    /// When the next one begins.
    next: u64,
    stream: Stream,
    /// Do ranks of a workload or batches move with the nodes?
    moves: bool,
}

impl<'a> Users<'a> {
    /// The users of a scenario, if it has any.
    fn new(scenario: &'a Scenario) -> Option<Self> {
        let model: &Model = scenario.users.as_deref()?;
        let terminals = scenario.network.terminal_count() as usize;
        let users = model.users.len();
        let queues = ClassQueues::of(scenario, 0).map_or(1, |queues| queues.queues());
        let has_end = |class: usize| scenario.classes.get(class).is_none_or(|class| class.packets_per_terminal.is_some());
        let changes = |(number, user): (u32, &User)| Changes {
            next: user.change_every.unwrap_or(u64::MAX),
            stream: scenario.streams.get(Purpose::Translation, u32::MAX - number),
            moves: user.change_every.is_some() && user.classes.clone().any(has_end),
        };
        Some(Self {
            model,
            tables: model.tables.clone(),
            classes: Classes::new(scenario, model),
            translators: vec![Translator::new(model.costs); terminals],
            translator_free: vec![0; terminals],
            heads: Heads::new(terminals, queues),
            keys: (0..terminals as u32).map(|terminal| scenario.streams.get(Purpose::Translation, terminal)).collect(),
            drawn_by: vec![0; terminals],
            accesses: Accesses::default(),
            regions: regions(&model.users, &scenario.network),
            outcomes: vec![UserOutcome::default(); users],
            counts: vec![TranslationCounts::default(); users],
            changes: (0..).zip(&model.users).map(changes).collect(),
            next_write: 0,
        })
    }

    /// Begins the translation of an access that was drawn. False if nobody can be meant: [`NOWHERE`].
    fn begin_translation(&mut self, place: usize, terminal: u32, drawn: Drawn) -> bool {
        if drawn.destination == NOWHERE {
            return false;
        }
        if usize::from(drawn.class) >= self.classes.open {
            return self.begin_translation_of_message(place, terminal, drawn);
        }
        let user = self.classes.user(drawn.class);
        let address = u64::from(self.keys[terminal as usize].below(KEYS)) << self.tables.table(user).shift();
        self.translate(place, terminal, drawn, address);
        true
    }

    /// Begins the translation of a packet of a workload's message. It has placed its ranks; this takes the time that its naming the logical
    /// node costs.
    fn begin_translation_of_message(&mut self, place: usize, terminal: u32, drawn: Drawn) -> bool {
        let user = self.classes.user(drawn.class);
        // A workload calls a rank by the terminal on which it began.
        let (from, to) = (self.tables.rank_at(TerminalId(terminal), user), self.model.tables.rank_at(drawn.destination, user));
        let (Some(from), Some(to)) = (from, to) else { return false };
        self.drawn_by[terminal as usize] = from;
        self.translate(place, terminal, Drawn { destination: TerminalId(to), ..drawn }, 0);
        true
    }

    /// Begins the translation of an access whose node has come here, if there is one.
    fn resume(&mut self, place: usize, terminal: u32, now: u64) -> bool {
        let Some(Waiting { drawn, from, address, .. }) = self.heads.take_moved(place) else { return false };
        self.drawn_by[terminal as usize] = from;
        self.translator_free[terminal as usize] = self.translator_free[terminal as usize].max(now);
        self.translate(place, terminal, drawn, address);
        true
    }

    fn translate(&mut self, place: usize, terminal: u32, drawn: Drawn, address: u64) {
        let (user, at) = (self.classes.user(drawn.class), terminal as usize);
        let target = VirtualNode { user, node: drawn.destination.0 };
        let hits = self.translators[at].hits();
        let rank = self.tables.rank_of_user(TerminalId(terminal), user);
        let cycles = u64::from(self.translators[at].cycles(target, rank));
        let is_hit = self.translators[at].hits() > hits;
        let counts = &mut self.counts[usize::from(user)];
        if self.model.costs.level == Level::Hardware {
            counts.hits += u64::from(is_hit);
            counts.misses += u64::from(!is_hit);
        }
        let start = drawn.created.max(self.translator_free[at]);
        // Hits follow each other every cycle; whatever else is looked up keeps the translator for its whole time.
        self.translator_free[at] = start + if is_hit { cycles.min(1) } else { cycles };
        let from = self.drawn_by[at];
        self.heads.first[place] = Some(Waiting { drawn, user, from, to: target.node, address, ready: start + cycles });
    }

    /// Lets the access at the head of a terminal's queue into the network, if it may go.
    fn decide(&mut self, place: usize, terminal: u32, now: u64) -> Option<Decision> {
        let waiting = self.heads.first[place]?;
        if waiting.ready > now {
            return Some(Decision::Waits);
        }
        let (user, to) = (waiting.user, waiting.to);
        let from = self.requester(terminal, &waiting);
        let decision = match from.map(|from| (from, self.tables.begin(user, from, to, waiting.address))) {
            Some((from, Ok(physical))) => {
                self.counts[usize::from(user)].accesses += 1;
                let access = self.accesses.begin(user, from, to);
                Decision::Goes(Drawn { destination: physical, tag: Tag { access, ..waiting.drawn.tag }, ..waiting.drawn })
            }
            Some((_, Err(Refusal::Held))) => {
                self.counts[usize::from(user)].held_cycles += 1;
                return Some(Decision::Waits);
            }
            Some((_, Err(Refusal::Fault(_)))) => {
                self.counts[usize::from(user)].faults += 1;
                Decision::Dropped(waiting.drawn)
            }
            None => Decision::Dropped(waiting.drawn),
        };
        self.heads.first[place] = None;
        Some(decision)
    }

    /// Which logical node an access comes from: the terminal may have become another while it waited.
    fn requester(&self, terminal: u32, waiting: &Waiting) -> Option<u32> {
        let here = || self.tables.hosted_of(TerminalId(terminal), waiting.user);
        if here().any(|node| node == waiting.from) { Some(waiting.from) } else { here().next() }
    }

    /// A packet's tail has arrived: is it where it was meant to go, and is its access at its end?
    fn arrived(&mut self, arrival: &Arrival<'_>) {
        let (record, id) = (arrival.record, arrival.tag.access);
        let user = self.classes.user(record.class);
        let outcome = &mut self.outcomes[usize::from(user)];
        outcome.accepted_flits += u64::from(record.flits) * u64::from(arrival.rates);
        if arrival.counted {
            let latency = arrival.now - record.created;
            outcome.packets += 1;
            outcome.packet_latency += latency;
            outcome.packet_latency_max = outcome.packet_latency_max.max(latency);
        }
        if self.classes.is_of_machine(record.class) {
            return;
        }
        let counts = &mut self.counts[usize::from(user)];
        let Some(access) = self.accesses.find(id) else {
            counts.ended_wrongly += 1;
            return;
        };
        let meant = VirtualNode { user, node: if record.is_reply { access.from } else { access.to } };
        counts.misdelivered += u64::from(access.user != user || self.tables.demultiplex(TerminalId(record.destination), meant).is_none());
        if record.is_reply || !self.classes.are_answered[usize::from(record.class)] {
            counts.ended += 1;
            self.accesses.end(id);
            self.tables.ended(access.user, access.from, access.to);
        }
    }

    /// A head comes to a router.
    fn passes(&mut self, router: RouterId, class: u8) {
        let region = self.regions[router.index()];
        if region & 1 << self.classes.user(class) != 0 {
            return;
        }
        let mut owners = region;
        while owners != 0 {
            self.counts[owners.trailing_zeros() as usize].foreign_packets += 1;
            owners &= owners - 1;
        }
    }

    /// Changes tables when it is time, and writes the changes for which nothing is under way any more. Returns those with which ranks or
    /// batches move.
    fn change_tables(&mut self, now: u64) -> Vec<Written> {
        for user in 0..self.changes.len() {
            if self.changes[user].next <= now {
                self.changes[user].next = now + self.model.users[user].change_every.unwrap_or(u64::MAX - now);
                self.change(user as u16);
            }
        }
        self.begin_writes(now);
        let mut moved = Vec::new();
        if self.tables.is_updating() {
            self.tables.finish_updates(|written| {
                let user = usize::from(written.user);
                self.counts[user].changes += 1;
                if self.changes[user].moves {
                    moved.push(written);
                }
            });
        }
        moved
    }

    /// Begins the changes whose time has come, but for those of a machine's users.
    fn begin_writes(&mut self, now: u64) {
        while let Some(write) = self.model.writes.get(self.next_write).filter(|write| write.cycle <= now) {
            let is_of_machine =
                self.model.users[usize::from(write.user)].classes.clone().any(|class| self.classes.is_of_machine(class as u8));
            let entry = (write.node, write.physical.clone());
            if !is_of_machine && self.tables.begin_update(write.user, vec![entry]).is_err() {
                // The change before it is not written yet.
                return;
            }
            self.forget(VirtualNode { user: write.user, node: write.node });
            self.next_write += 1;
        }
    }

    /// All units forget an entry.
    fn forget(&mut self, target: VirtualNode) {
        self.translators.iter_mut().for_each(|translator| {
            translator.invalidate(target);
        });
    }

    /// The next cycle in which a table changes.
    fn next_change(&self) -> u64 {
        let written = self.model.writes.get(self.next_write).map(|write| write.cycle);
        self.changes.iter().map(|changes| changes.next).chain(written).min().unwrap_or(u64::MAX)
    }

    /// Moves an entry to a spare terminal of the user or, if there is none, exchanges two entries. An entry that is being changed
    /// is left alone.
    fn change(&mut self, user: u16) {
        let Changes { stream, moves, .. } = &mut self.changes[usize::from(user)];
        let table = self.tables.table(user);
        let mut used = table.nodes();
        if *moves {
            // Two ranks do not move to one terminal.
            used.extend(self.tables.promised(user));
        }
        let spare: Vec<TerminalId> =
            self.model.users[usize::from(user)].nodes.iter().copied().filter(|node| !used.contains(node)).collect();
        let valid: Vec<u32> = table.valid().map(|(node, _)| node).collect();
        let mut any = |count: usize| stream.below(count as u32) as usize;
        let entries = if !spare.is_empty() && !valid.is_empty() {
            let node = valid[any(valid.len())];
            let mut physical = table.physical(node).to_vec();
            let alias = any(physical.len());
            physical[alias] = spare[any(spare.len())];
            vec![(node, physical)]
        } else if valid.len() > 1 {
            let (one, step) = (any(valid.len()), 1 + any(valid.len() - 1));
            let (one, other) = (valid[one], valid[(one + step) % valid.len()]);
            vec![(one, table.physical(other).to_vec()), (other, table.physical(one).to_vec())]
        } else {
            return;
        };
        let nodes: Vec<u32> = entries.iter().map(|&(node, _)| node).collect();
        if self.tables.begin_update(user, entries).is_ok() {
            nodes.into_iter().for_each(|node| self.forget(VirtualNode { user, node }));
        }
    }

    /// What each user had: of the classes that are workloads when they were done, of those of a machine what its nodes have translated.
    fn outcomes(&self, report: &Report) -> Vec<UserOutcome> {
        let with_counts =
            |(outcome, &counts): (&UserOutcome, &TranslationCounts)| UserOutcome { translation: Some(counts), ..outcome.clone() };
        let mut outcomes: Vec<UserOutcome> = self.outcomes.iter().zip(&self.counts).map(with_counts).collect();
        for &(class, end) in &report.class_ends {
            outcomes[usize::from(self.classes.users[class])].completion = end.map(|end| end as f64);
        }
        for &(class, counts) in &report.translations {
            let user = usize::from(self.classes.users[class]);
            let foreign_packets = self.counts[user].foreign_packets;
            outcomes[user].translation = Some(TranslationCounts { foreign_packets, ..counts });
        }
        outcomes
    }
}

impl Naming for Users<'_> {
    /// Draws the logical destination of a class's next packet.
    fn destination(&mut self, class: usize, terminal: u32, stream: &mut Stream) -> Option<TerminalId> {
        let user = self.classes.users[class];
        let mut here = self.tables.hosted_of(TerminalId(terminal), user);
        // A terminal or node without anything to send may change places with one that sends.
        let changes = self.model.is_written(usize::from(user));
        let Some(first) = here.next() else { return changes.then_some(NOWHERE) };
        let more = here.count() as u32;
        let node = match more {
            0 => first,
            _ => self.tables.hosted_of(TerminalId(terminal), user).nth(stream.below(more + 1) as usize).unwrap_or(first),
        };
        self.drawn_by[terminal as usize] = node;
        let drawn = self.model.logical(class)?.destination(TerminalId(node), stream);
        drawn.or(changes.then_some(NOWHERE))
    }
}

impl<'a> Translated<'a> {
    /// Feeds whose packets belong to the users of a scenario, if it has any; else the feeds as they are.
    pub(crate) fn over(inner: Box<dyn PacketFeed + 'a>, scenario: &'a Scenario) -> Box<dyn PacketFeed + 'a> {
        match Users::new(scenario) {
            None => inner,
            Some(users) => Box::new(Self { inner, users, drain: Drain::default(), held: 0, undrained: 0 }),
        }
    }

    /// An access comes to the head of its queue, or leaves it.
    fn hold(&mut self, drawn: &Drawn) {
        self.held += 1;
        self.undrained += u64::from(self.drain.covers(drawn));
    }

    fn release(&mut self, drawn: &Drawn) {
        self.held -= 1;
        self.undrained -= u64::from(self.drain.covers(drawn));
    }
}

impl PacketFeed for Translated<'_> {
    fn start(&mut self, queues: &mut Queues) {
        self.inner.start(queues);
    }

    /// Brings an access to the head of a terminal's queue, once it is translated.
    fn next_packet(&mut self, ask: Ask<'_>) -> Next {
        let Ask { terminal, now, queue, .. } = ask;
        let place = self.users.heads.place(terminal, queue);
        loop {
            if let Some(answer) = self.inner.next_answer(terminal, now, queue) {
                return Next::Packet(answer);
            }
            match self.users.decide(place, terminal, now) {
                Some(Decision::Waits) => return self.inner.next_passing(terminal, queue).map_or(Next::Later, Next::Packet),
                Some(Decision::Goes(drawn)) => {
                    self.release(&drawn);
                    return Next::Packet(drawn);
                }
                Some(Decision::Dropped(drawn)) => {
                    self.release(&drawn);
                    self.inner.dropped(&drawn, terminal, now);
                }
                None if self.users.resume(place, terminal, now) => {}
                None => match self.inner.next_packet(Ask { terminal, now, queue, naming: Some(&mut self.users) }) {
                    Next::Packet(answer) if answer.is_reply || self.users.classes.is_of_machine(answer.class) => {
                        return Next::Packet(answer);
                    }
                    Next::Packet(drawn) if self.users.begin_translation(place, terminal, drawn) => self.hold(&drawn),
                    Next::Packet(drawn) => self.inner.dropped(&drawn, terminal, now),
                    none => return none,
                },
            }
        }
    }

    fn has_pending_reply(&self, terminal: u32) -> bool {
        self.inner.has_pending_reply(terminal)
    }

    fn began(&mut self, drawn: &Drawn, terminal: u32, now: u64) {
        self.inner.began(drawn, terminal, now);
    }

    fn tail_left(&mut self, left: &Left) -> bool {
        self.inner.tail_left(left);
        true
    }

    fn on_head_at_router(&mut self, head: &HeadAtRouter) {
        self.users.passes(head.router, head.class);
        self.inner.on_head_at_router(head);
    }

    fn wants_head_events(&self) -> bool {
        true
    }

    fn packet_arrived(&mut self, arrival: &Arrival<'_>, queues: &mut Queues) {
        self.users.arrived(arrival);
        self.inner.packet_arrived(arrival, queues);
    }

    fn begin_cycle(&mut self, block: u32, now: u64, queues: &mut Queues) {
        self.inner.begin_cycle(block, now, queues);
    }

    fn take_message(&mut self, message: &EdgeMessage, queues: &mut Queues) {
        match message {
            EdgeMessage::HeadAtRouter(head) => self.on_head_at_router(head),
            EdgeMessage::Delivered { .. } => self.inner.take_message(message, queues),
        }
    }

    fn take_request(&mut self, order: &SendRequest, queues: &mut Queues) {
        self.inner.take_request(order, queues);
    }

    fn report_completions(&mut self, into: &mut Completions) {
        self.inner.report_completions(into);
    }

    fn proceeds(&self) -> bool {
        true
    }

    fn proceed(&mut self, now: u64, queues: &mut Queues) {
        self.inner.proceed(now, queues);
        for written in self.users.change_tables(now) {
            let user = written.user;
            let exchanged = self.users.tables.exchanged(&written);
            let classes = self.users.model.users[usize::from(user)].classes.clone();
            let table = self.users.tables.table(user);
            let moves = Moves { classes, exchanged: &exchanged, table, cycle: now };
            self.inner.nodes_moved(&moves, queues);
            self.users.heads.follow(&written, &moves, queues);
        }
    }

    fn next_due(&self, now: u64, limit: u64) -> Result<u64, EngineError> {
        let due = self.inner.next_due(now, limit)?;
        Ok(due.min(self.users.next_change().clamp(now, limit.max(now))))
    }

    fn is_idle(&self) -> bool {
        self.inner.is_idle()
    }

    fn will_free_sink(&self) -> bool {
        self.inner.will_free_sink()
    }

    fn ends(&self) -> bool {
        self.inner.ends()
    }

    fn outstanding(&self) -> i64 {
        self.inner.outstanding()
    }

    fn has_first_finished(&self) -> bool {
        self.inner.has_first_finished()
    }

    fn backlog(&self, now: u64) -> Backlog {
        self.inner.backlog(now)
    }

    fn drain(&mut self, drain: Drain) -> u64 {
        self.drain = drain;
        self.undrained = self.users.heads.all().filter(|drawn| drain.covers(drawn)).count() as u64;
        self.inner.drain(drain)
    }

    fn undrained(&self) -> u64 {
        self.undrained + self.inner.undrained()
    }

    fn held(&self) -> u64 {
        self.held + self.inner.held()
    }

    fn redraw_phases(&mut self, now: u64) {
        self.inner.redraw_phases(now);
    }

    fn clear(&mut self) {
        self.users.outcomes.fill(UserOutcome::default());
        self.inner.clear();
    }

    fn held_flits(&self, slots: usize) -> Option<Vec<u32>> {
        self.inner.held_flits(slots)
    }

    fn broken(&self, now: u64) -> Option<String> {
        self.inner.broken(now)
    }

    fn report(&mut self, report: &mut Report) {
        self.inner.report(report);
        report.users = self.users.outcomes(report);
    }
}
