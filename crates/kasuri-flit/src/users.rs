//! Users of one machine: accesses translated before they enter the network, packets checked where they arrive, tables that change.
//!
//! An access is translated when it is created, in the order of its terminal's queue, and looked up once more when it is to enter
//! the network: what it waits for is the translator's time, what it gets is the table of that moment. An access that a change of
//! the table holds waits at the head of its queue; answers pass it, so that what the change waits for can end.

use crate::source::Drawn;
use crate::state::Packet;
use kasuri_model::engine::{Counting, TranslationCounts, UserOutcome};
use kasuri_model::scenario::Scenario;
use kasuri_network::id::TerminalId;
use kasuri_network::rng::{Purpose, Stream};
use kasuri_workload::translation::users::{Users as Model, regions};
use kasuri_workload::translation::{Level, Refusal, Tables, Translator, VirtualNode};

/// The destination of a drawn packet whose terminal is no logical node at present, or whose node sends nothing.
pub(crate) const NOWHERE: TerminalId = TerminalId(u32::MAX);

/// Values of the key bits that are drawn: many more than aliases.
const KEYS: u32 = 1 << 16;

/// An access by its place and by how often that place has been used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccessId {
    place: u32,
    generation: u32,
}

/// An access that is under way.
#[derive(Clone, Copy, Debug)]
struct Access {
    generation: u32,
    user: u16,
    from: u32,
    to: u32,
}

/// An access at the head of a terminal's queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) drawn: Drawn,
    user: u16,
    from: u32,
    to: u32,
    address: u64,
    /// When its translation is there.
    ready: u64,
}

/// What becomes of an access at the head of a queue.
pub(crate) enum Decision {
    /// It goes to a terminal.
    Goes(Drawn),
    /// It waits.
    Waits,
    /// Nothing is sent.
    Dropped(Drawn),
}

/// The users of a run.
pub(crate) struct Users<'a> {
    model: &'a Model,
    tables: Tables,
    /// By class.
    user_of_class: Vec<u16>,
    answered_classes: Vec<bool>,
    /// By terminal.
    translators: Vec<Translator>,
    translator_free: Vec<u64>,
    pub(crate) waiting: Vec<Option<Waiting>>,
    keys: Vec<Stream>,
    /// The logical node for which each terminal has drawn last.
    drawn_by: Vec<u32>,
    accesses: Vec<Access>,
    free: Vec<u32>,
    /// By packet number.
    of_packet: Vec<AccessId>,
    /// By router: whose terminals stand there, and others' packets that came by, by user.
    regions: Vec<u64>,
    outcomes: Vec<UserOutcome>,
    counts: Vec<TranslationCounts>,
    next_change: Vec<u64>,
    changes: Vec<Stream>,
}

impl<'a> Users<'a> {
    /// The users of a scenario, if it has any.
    pub(crate) fn new(scenario: &'a Scenario) -> Option<Self> {
        let model: &Model = scenario.users.as_deref()?;
        let terminals = scenario.network.terminal_count() as usize;
        let users = model.users.len();
        let classes = scenario.channels_of_classes().len();
        let user_of_class = (0..classes).map(|class| model.of_class(class).unwrap_or_default() as u16).collect();
        let answers = |class: usize| scenario.classes.get(class).is_some_and(|class| class.reply.is_some());
        Some(Self {
            model,
            tables: model.tables.clone(),
            user_of_class,
            answered_classes: (0..classes).map(answers).collect(),
            translators: vec![Translator::new(model.costs); terminals],
            translator_free: vec![0; terminals],
            waiting: vec![None; terminals],
            keys: (0..terminals as u32).map(|terminal| scenario.streams.get(Purpose::Translation, terminal)).collect(),
            drawn_by: vec![0; terminals],
            accesses: Vec::new(),
            free: Vec::new(),
            of_packet: Vec::new(),
            regions: regions(&model.users, &scenario.network),
            outcomes: vec![UserOutcome::default(); users],
            counts: vec![TranslationCounts::default(); users],
            next_change: model.users.iter().map(|user| user.change_every.unwrap_or(u64::MAX)).collect(),
            changes: (0..users as u32).map(|user| scenario.streams.get(Purpose::Translation, u32::MAX - user)).collect(),
        })
    }

    /// Draws the logical destination of a class's next packet at a terminal. `None` if it will never send.
    pub(crate) fn draw(&mut self, class: usize, terminal: u32, stream: &mut Stream) -> Option<TerminalId> {
        let user = self.user_of_class[class];
        let mut here = self.tables.hosted_of(TerminalId(terminal), user);
        // A terminal or node without anything to send may change places with one that sends.
        let changes = self.model.users[usize::from(user)].change_every.is_some();
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

    /// Begins the translation of an access that was drawn, [`NOWHERE`] excepted.
    pub(crate) fn begin_translation(&mut self, terminal: u32, drawn: Drawn) {
        let user = self.user_of_class[usize::from(drawn.class)];
        let address = u64::from(self.keys[terminal as usize].below(KEYS)) << self.tables.table(user).shift();
        self.translate(terminal, drawn, address);
    }

    /// Begins the translation of a packet of a workload's message. The workload has placed its ranks; this takes the time that its
    /// naming the logical node costs.
    pub(crate) fn begin_translation_of_message(&mut self, terminal: u32, drawn: Drawn) {
        let user = self.user_of_class[usize::from(drawn.class)];
        let node = |terminal: TerminalId| self.tables.hosted_of(terminal, user).next();
        // A rank is on a terminal of its own, and no table changes under a workload.
        let (Some(from), Some(to)) = (node(TerminalId(terminal)), node(drawn.destination)) else { return };
        self.drawn_by[terminal as usize] = from;
        self.translate(terminal, Drawn { destination: TerminalId(to), ..drawn }, 0);
    }

    fn translate(&mut self, terminal: u32, drawn: Drawn, address: u64) {
        let (user, at) = (self.user_of_class[usize::from(drawn.class)], terminal as usize);
        let target = VirtualNode { user, node: drawn.destination.0 };
        let hits = self.translators[at].hits();
        let cycles = u64::from(self.translators[at].cycles(target));
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
        self.waiting[at] = Some(Waiting { drawn, user, from, to: target.node, address, ready: start + cycles });
    }

    /// Lets the access at the head of a terminal's queue into the network, if it may go.
    pub(crate) fn decide(&mut self, terminal: u32, now: u64) -> Option<Decision> {
        let waiting = self.waiting[terminal as usize]?;
        if waiting.ready > now {
            return Some(Decision::Waits);
        }
        let (user, to) = (waiting.user, waiting.to);
        let from = self.requester(terminal, &waiting);
        let decision = match from.map(|from| (from, self.tables.begin(user, from, to, waiting.address))) {
            Some((from, Ok(physical))) => {
                let access = self.open(user, from, to);
                Decision::Goes(Drawn { destination: physical, access, ..waiting.drawn })
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
        self.waiting[terminal as usize] = None;
        Some(decision)
    }

    /// Which logical node an access comes from: the terminal may have become another while it waited.
    fn requester(&self, terminal: u32, waiting: &Waiting) -> Option<u32> {
        let here = || self.tables.hosted_of(TerminalId(terminal), waiting.user);
        if here().any(|node| node == waiting.from) { Some(waiting.from) } else { here().next() }
    }

    fn open(&mut self, user: u16, from: u32, to: u32) -> AccessId {
        self.counts[usize::from(user)].accesses += 1;
        let place = self.free.pop().unwrap_or(self.accesses.len() as u32);
        if place as usize == self.accesses.len() {
            self.accesses.push(Access { generation: 0, user, from, to });
        }
        let access = &mut self.accesses[place as usize];
        *access = Access { generation: access.generation, user, from, to };
        AccessId { place, generation: access.generation }
    }

    /// A packet has got its number.
    pub(crate) fn name_packet(&mut self, packet: u32, access: AccessId) {
        if packet as usize >= self.of_packet.len() {
            self.of_packet.resize(packet as usize + 1, AccessId::default());
        }
        self.of_packet[packet as usize] = access;
    }

    /// The access of a packet.
    pub(crate) fn access_of(&self, packet: u32) -> AccessId {
        self.of_packet[packet as usize]
    }

    /// A packet's tail has arrived in cycle `now`: is it where it was meant to go, and is its access at its end?
    ///
    /// `counted`: is it measured?
    pub(crate) fn arrived(&mut self, packet: u32, record: &Packet, now: u64, counting: &Counting, counted: bool) {
        let user = self.user_of_class[usize::from(record.class)];
        let outcome = &mut self.outcomes[usize::from(user)];
        outcome.accepted_flits += u64::from(record.flits) * u64::from(counting.rates);
        if counted {
            let latency = now - record.created;
            outcome.packets += 1;
            outcome.packet_latency += latency;
            outcome.packet_latency_max = outcome.packet_latency_max.max(latency);
        }
        let id = self.of_packet[packet as usize];
        let access = self.accesses[id.place as usize];
        let counts = &mut self.counts[usize::from(user)];
        if access.generation != id.generation {
            counts.ended_wrongly += 1;
            return;
        }
        let meant = VirtualNode { user, node: if record.is_reply { access.from } else { access.to } };
        counts.misdelivered += u64::from(access.user != user || self.tables.demultiplex(TerminalId(record.destination), meant).is_none());
        if record.is_reply || !self.answered_classes[usize::from(record.class)] {
            counts.ended += 1;
            self.accesses[id.place as usize].generation += 1;
            self.free.push(id.place);
            self.tables.ended(access.user, access.from, access.to);
        }
    }

    /// A head comes to a router.
    pub(crate) fn passes(&mut self, router: u32, class: u8) {
        let region = self.regions[router as usize];
        if region & 1 << self.user_of_class[usize::from(class)] != 0 {
            return;
        }
        let mut owners = region;
        while owners != 0 {
            self.counts[owners.trailing_zeros() as usize].foreign_packets += 1;
            owners &= owners - 1;
        }
    }

    /// Changes tables when it is time, and writes the changes for which nothing is under way any more.
    pub(crate) fn proceed(&mut self, now: u64) {
        for user in 0..self.next_change.len() {
            if self.next_change[user] <= now {
                self.next_change[user] = now + self.model.users[user].change_every.unwrap_or(u64::MAX - now);
                self.change(user as u16);
            }
        }
        if self.tables.is_updating() {
            self.tables.finish_updates(|user| self.counts[usize::from(user)].changes += 1);
        }
    }

    /// The next cycle in which a table changes.
    pub(crate) fn next_change(&self) -> u64 {
        self.next_change.iter().copied().min().unwrap_or(u64::MAX)
    }

    /// Moves an entry to a spare terminal of the user or, if there is none, exchanges two entries. An entry that is being changed
    /// is left alone.
    fn change(&mut self, user: u16) {
        let (table, stream) = (self.tables.table(user), &mut self.changes[usize::from(user)]);
        let used = table.nodes();
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
            for node in nodes {
                self.translators.iter_mut().for_each(|translator| {
                    translator.invalidate(VirtualNode { user, node });
                });
            }
        }
    }

    /// Throws away what is counted while measuring.
    pub(crate) fn clear(&mut self) {
        self.outcomes.fill(UserOutcome::default());
    }

    /// Accesses at the heads of queues that were created in or after this cycle.
    pub(crate) fn waiting_since(&self, cycle: u64) -> u64 {
        self.waiting.iter().flatten().filter(|waiting| waiting.drawn.created >= cycle).count() as u64
    }

    /// Whose class it is.
    pub(crate) fn of_class(&self, class: usize) -> usize {
        usize::from(self.user_of_class[class])
    }

    /// What each user had.
    pub(crate) fn outcomes(&self) -> Vec<UserOutcome> {
        let with_counts =
            |(outcome, &counts): (&UserOutcome, &TranslationCounts)| UserOutcome { translation: Some(counts), ..outcome.clone() };
        self.outcomes.iter().zip(&self.counts).map(with_counts).collect()
    }
}
