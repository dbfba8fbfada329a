//! Closed workloads of terminals with several ports.

use super::{PortChoice, Way};
use crate::workload::{Action, Collective, Event, Execution, Message, Token, Workload};
use kasuri_network::id::TerminalId;
use kasuri_network::network::terminal_ports::TerminalPorts;
use kasuri_network::rng::Streams;
use std::sync::Arc;

/// A workload of terminals as one of their ports: each message becomes one, or several that are sent beside each other. It has left when all of
/// these have, and has arrived when all have.
#[derive(Debug)]
pub struct PortWorkload {
    workload: Arc<dyn Workload>,
    ports: Arc<TerminalPorts>,
    choice: PortChoice,
    packet_flits: u32,
    /// Of a collective operation: the first port of each rank's terminal.
    ranks: Box<[TerminalId]>,
}

impl PortWorkload {
    /// A workload of one part, whose messages are cut into packets of `packet_flits`.
    pub fn new(workload: Arc<dyn Workload>, ports: Arc<TerminalPorts>, choice: PortChoice, packet_flits: u32) -> Self {
        let terminals = workload.collective().map_or(&[][..], |collective| collective.terminals);
        let ranks = terminals.iter().filter_map(|&terminal| ports.ports_of(terminal).next()).collect();
        Self { workload, ports, choice, packet_flits, ranks }
    }

    /// The way of a message with network interfaces: from the sender's port of that number to the receiver's, or to any port that is joined
    /// to the sender's. `None` if it has no interfaces or its sender's port is cut off: then it is dealt out like others.
    fn way_of(&self, message: &Message, all: &mut Vec<Way>) -> Option<Way> {
        let (from, to) = self.workload.interfaces_of(message.token)?;
        let from = self.ports.ports_of(message.source).nth(from as usize)?;
        let asked = self.ports.ports_of(message.destination).nth(to as usize).map(|to| (from, to));
        asked.filter(|&(from, to)| self.ports.are_joined(from, to)).or_else(|| {
            self.ports.ways(message.source, message.destination, all);
            all.iter().copied().find(|way| way.0 == from)
        })
    }

    /// Over how many ports a message goes.
    fn pieces(&self, message: &Message, all: &mut Vec<Way>) -> usize {
        if self.choice != PortChoice::ByPacket || self.way_of(message, all).is_some() {
            return 1;
        }
        self.ports.ways(message.source, message.destination, all);
        all.len().min(message.flits.div_ceil(self.packet_flits) as usize)
    }

    /// Calls `each` with every way that a message takes and its flits there. `turn` counts what its source has dealt out to its ports.
    /// `all` is room for the ways, used again for each message.
    fn deal(&self, message: &Message, turn: &mut u32, all: &mut Vec<Way>, each: &mut dyn FnMut(Way, u32)) {
        if let Some(way) = self.way_of(message, all) {
            return each(way, message.flits);
        }
        self.ports.ways(message.source, message.destination, all);
        let count = all.len() as u32;
        if count == 0 {
            return;
        }
        let begin = *turn % count;
        match self.choice {
            PortChoice::ByDestination => each(all[PortChoice::by_hash(message.source, message.destination, all.len())], message.flits),
            PortChoice::ByMessage => {
                *turn = turn.wrapping_add(1);
                each(all[begin as usize], message.flits);
            }
            PortChoice::ByPacket => {
                let packets = message.flits.div_ceil(self.packet_flits);
                *turn = turn.wrapping_add(packets);
                // The last packet may be shorter.
                let missing = packets * self.packet_flits - message.flits;
                for number in 0..count.min(packets) {
                    let of_port = (packets - number).div_ceil(count);
                    let has_last = (packets - 1) % count == number;
                    let flits = of_port * self.packet_flits - if has_last { missing } else { 0 };
                    each(all[((begin + number) % count) as usize], flits);
                }
            }
        }
    }
}

impl Workload for PortWorkload {
    fn messages(&self) -> u64 {
        if self.choice != PortChoice::ByPacket {
            return self.workload.messages();
        }
        let (mut pieces, mut all) = (0, Vec::new());
        self.workload.each_message(&mut |message| pieces += self.pieces(message, &mut all) as u64);
        pieces
    }

    /// Whose turn it is only a run knows: what goes by several ports in turn is told in equal parts of all of them, as it is in the mean.
    fn each_message(&self, each: &mut dyn FnMut(&Message)) {
        let (mut turns, mut all) = (vec![0u32; self.ports.terminal_count() as usize], Vec::new());
        self.workload.each_message(&mut |message| {
            let mut tell = |(source, destination): Way, flits: u32| each(&Message { source, destination, flits, ..*message });
            let turn = &mut turns[message.source.index()];
            if self.choice == PortChoice::ByDestination || self.way_of(message, &mut all).is_some() {
                return self.deal(message, turn, &mut all, &mut tell);
            }
            self.ports.ways(message.source, message.destination, &mut all);
            let count = all.len() as u32;
            for number in 0..count.min(message.flits) {
                let flits = (message.flits + count - 1 - number) / count;
                tell(all[(turn.wrapping_add(number) % count) as usize], flits);
            }
            *turn = turn.wrapping_add(message.flits);
        });
    }

    fn longest_message(&self) -> u32 {
        if self.choice != PortChoice::ByPacket {
            return self.workload.longest_message();
        }
        let (mut longest, mut all) = (1, Vec::new());
        self.workload.each_message(&mut |message| self.deal(message, &mut 0, &mut all, &mut |_, flits| longest = longest.max(flits)));
        longest
    }

    /// Where all ports are up: what is left of others tells nothing of each terminal.
    fn collective(&self) -> Option<Collective<'_>> {
        let ports = self.ports.of_each().filter(|_| self.ports.are_all_up())?;
        Some(Collective { terminals: &self.ranks, ports, ..self.workload.collective()? })
    }

    fn unmodelled(&self) -> Vec<String> {
        self.workload.unmodelled()
    }

    fn offered_flits_per_cycle(&self) -> Option<f64> {
        self.workload.offered_flits_per_cycle()
    }

    fn begin(&self, streams: &Streams) -> Box<dyn Execution + '_> {
        Box::new(Pass {
            workload: self,
            execution: self.workload.begin(streams),
            turns: vec![0; self.ports.terminal_count() as usize],
            messages: Vec::new(),
            free: Vec::new(),
            actions: Vec::new(),
            all: Vec::new(),
        })
    }
}

/// A message that is under way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    token: Token,
    /// Pieces that have not left, and that have not arrived.
    to_leave: u32,
    to_arrive: u32,
}

/// Bits of a token that tell the piece of a message.
const PIECE_BITS: u32 = 16;

/// One pass.
#[derive(Debug)]
struct Pass<'a> {
    workload: &'a PortWorkload,
    execution: Box<dyn Execution + 'a>,
    /// By terminal: what it has dealt out to its ports.
    turns: Vec<u32>,
    /// Messages under way by place; the places of others are free.
    messages: Vec<UnderWay>,
    free: Vec<u32>,
    /// What the execution wants, of terminals.
    actions: Vec<Action>,
    /// Room for the ways of a message.
    all: Vec<Way>,
}

impl Pass<'_> {
    /// Passes on what the execution wants, messages piece by piece.
    fn pass_on(&mut self, actions: &mut Vec<Action>) {
        for action in std::mem::take(&mut self.actions) {
            match action {
                Action::Send(message) => self.send(&message, actions),
                other => actions.push(other),
            }
        }
    }

    fn send(&mut self, message: &Message, actions: &mut Vec<Action>) {
        let place = self.free.pop().unwrap_or(self.messages.len() as u32);
        let mut pieces = 0;
        self.workload.deal(message, &mut self.turns[message.source.index()], &mut self.all, &mut |(source, destination), flits| {
            let token = u64::from(place) << PIECE_BITS | u64::from(pieces);
            actions.push(Action::Send(Message { token, source, destination, flits }));
            pieces += 1;
        });
        let record = UnderWay { token: message.token, to_leave: pieces, to_arrive: pieces };
        match self.messages.get_mut(place as usize) {
            Some(known) => *known = record,
            None => self.messages.push(record),
        }
    }

    /// The event of a whole message that the event of a piece brings about.
    fn whole(&mut self, event: Event) -> Option<Event> {
        let (Event::Sent(piece) | Event::Arrived(piece)) = event else { return Some(event) };
        let place = (piece >> PIECE_BITS) as u32;
        let message = &mut self.messages[place as usize];
        let has_left = matches!(event, Event::Sent(_));
        let left = if has_left { &mut message.to_leave } else { &mut message.to_arrive };
        *left -= 1;
        let is_whole = *left == 0;
        let token = message.token;
        if message.to_leave == 0 && message.to_arrive == 0 {
            self.free.push(place);
        }
        match has_left {
            true => is_whole.then_some(Event::Sent(token)),
            false => (is_whole && self.execution.hears_arrivals()).then_some(Event::Arrived(token)),
        }
    }
}

impl Execution for Pass<'_> {
    fn start(&mut self, actions: &mut Vec<Action>) {
        self.execution.start(&mut self.actions);
        self.pass_on(actions);
    }

    fn happened(&mut self, event: Event, actions: &mut Vec<Action>) {
        if let Some(event) = self.whole(event) {
            self.execution.happened(event, &mut self.actions);
            self.pass_on(actions);
        }
    }

    fn computes_at(&self, computation: Token) -> Option<TerminalId> {
        let terminal = self.execution.computes_at(computation)?;
        self.workload.ports.ports_of(terminal).next()
    }

    fn standstill(&self) -> Option<String> {
        self.execution.standstill()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{COLLECTIVES, MessageSize, Parameters};
    use crate::workload::placement;
    use crate::workload::rounds::{Options, Rounds};
    use kasuri_network::registry::find;
    use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, TOPOLOGIES};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn ports(planes: u32, terminals: u32) -> Arc<TerminalPorts> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        let keys = format!("planes = {planes}\nof = \"mesh\"\ndimensions = [{terminals}]");
        let network =
            (find(TOPOLOGIES, "planes").unwrap().parse)(toml::from_str(&keys).unwrap()).unwrap().build(&context).map(Arc::new).unwrap();
        Arc::new(TerminalPorts::of(&network, &network.by_terminal_ports()))
    }

    fn collective(name: (&str, &str), ranks: u32, flits: u32) -> Arc<dyn Workload> {
        let entry = COLLECTIVES.iter().find(|entry| (entry.collective, entry.schedule) == name).unwrap();
        let collective = entry.build(&Parameters { ranks, root: 0, size: MessageSize::of_flits(flits.into()) }).unwrap();
        Arc::new(Rounds::new(collective, placement::linear(ranks), &Options::default()).unwrap())
    }

    /// Lets what is under way happen in an order that `pick` draws, a message leaving before it arrives; all that was sent.
    fn sent(workload: &dyn Workload, mut pick: impl FnMut(usize) -> usize) -> Vec<Message> {
        let mut pass = workload.begin(&Streams::new(1));
        let (mut messages, mut actions, mut due) = (Vec::new(), Vec::new(), Vec::new());
        pass.start(&mut actions);
        loop {
            for action in actions.drain(..) {
                match action {
                    Action::Send(message) => {
                        assert!(
                            !due.iter().any(|event| matches!(event, Event::Sent(token) | Event::Arrived(token) if *token == message.token))
                        );
                        messages.push(message);
                        due.push(Event::Sent(message.token));
                    }
                    Action::Compute { token, .. } => due.push(Event::Computed(token)),
                    Action::Finished(_) => {}
                }
            }
            if due.is_empty() {
                return messages;
            }
            let event = due.swap_remove(pick(due.len()));
            if let Event::Sent(token) = event {
                due.push(Event::Arrived(token));
            }
            if pass.hears_arrivals() || !matches!(event, Event::Arrived(_)) {
                pass.happened(event, &mut actions);
            }
        }
    }

    proptest! {
        /// In whatever order pieces leave and arrive, all messages are sent, each with all of its flits, between ports of one plane; by packet the
        /// ports of a message differ by one packet at most.
        #[test]
        fn the_pieces_of_messages_are_the_messages(
            planes in 2u32..5, ranks in 2u32..6, flits in 1u32..70, packet_flits in 1u32..20, order in prop::collection::vec(0usize..1000, 32), which in 0usize..3,
        ) {
            let choice = [PortChoice::ByPacket, PortChoice::ByMessage, PortChoice::ByDestination][which];
            for name in [("alltoall", "shift"), ("allreduce", "ring")] {
                let (inner, ports) = (collective(name, ranks, flits), ports(planes, ranks));
                let by_port = PortWorkload::new(Arc::clone(&inner), Arc::clone(&ports), choice, packet_flits);
                let mut count = 0;
                let pieces = sent(&by_port, |due| { count += 1; order[count % order.len()] % due });
                prop_assert_eq!(pieces.len() as u64, by_port.messages());
                let mut expected: BTreeMap<(u32, u32), u64> = BTreeMap::new();
                inner.each_message(&mut |message| *expected.entry((message.source.0, message.destination.0)).or_default() += u64::from(message.flits));
                let mut found: BTreeMap<(u32, u32), u64> = BTreeMap::new();
                let mut by_plane = vec![0u64; planes as usize];
                for piece in &pieces {
                    prop_assert_eq!(piece.source.0 % planes, piece.destination.0 % planes);
                    prop_assert!(piece.flits > 0);
                    let ends = (ports.terminal_of(piece.source).0, ports.terminal_of(piece.destination).0);
                    *found.entry(ends).or_default() += u64::from(piece.flits);
                    by_plane[(piece.source.0 % planes) as usize] += u64::from(piece.flits);
                }
                prop_assert_eq!(found, expected);
                let [least, most] = [by_plane.iter().min().unwrap(), by_plane.iter().max().unwrap()];
                // Sources deal packets in turn, so planes differ by a packet of each source, and by what its last packets lack.
                let slack = u64::from(ranks * packet_flits) + pieces.len() as u64 * u64::from(packet_flits - 1);
                prop_assert!(choice != PortChoice::ByPacket || most - least <= slack, "{:?}", by_plane);
            }
        }
    }

    /// Three packets over two ports: 16 and 5 flits by the first, 16 by the second; the next message begins at the second.
    #[test]
    fn packets_are_dealt_in_turn() {
        let by_port = PortWorkload::new(collective(("alltoall", "shift"), 2, 37), ports(2, 2), PortChoice::ByPacket, 16);
        let message = Message { token: 0, source: TerminalId(0), destination: TerminalId(1), flits: 37 };
        let mut turn = 0;
        let mut dealt = || {
            let mut pieces = Vec::new();
            by_port.deal(&message, &mut turn, &mut Vec::new(), &mut |(from, to), flits| pieces.push((from.0, to.0, flits)));
            pieces
        };
        assert_eq!(dealt(), [(0, 2, 21), (1, 3, 16)]);
        assert_eq!(dealt(), [(1, 3, 21), (0, 2, 16)]);
    }

    /// A program that names interfaces sends by the ports of these numbers, whatever the choice for others; one that names none is dealt
    /// out.
    #[test]
    fn interfaces_are_ports() {
        use crate::units::Units;
        use crate::workload::program::{Description, Kind, Operation, Program};
        let units = Units { flit_bytes: Some(1), cycle_ns: Some(1.0) };
        let operation = |rank, kind| Operation { rank, cpu: 0, kind, line: 0 };
        let send = |tag| operation(0, Kind::Send { to: 1, bytes: 40, tag });
        let receive = |tag| operation(1, Kind::Receive { from: 0, bytes: 40, tag });
        let operations = vec![send(0), send(1), send(2), receive(0), receive(1), receive(2)];
        let with = |interfaces: &[(u32, u32)]| {
            let interfaces = interfaces.iter().copied().collect();
            let description = Description { ranks: 2, operations: operations.clone(), interfaces, ..Description::default() };
            Arc::new(Program::new(&description, &placement::linear(2), units).unwrap()) as Arc<dyn Workload>
        };
        for choice in [PortChoice::ByPacket, PortChoice::ByMessage, PortChoice::ByDestination] {
            let by_port = |program: &Arc<dyn Workload>| PortWorkload::new(Arc::clone(program), ports(3, 2), choice, 8);
            // Ports of terminal 0 are 0, 1, 2, those of terminal 1 are 3, 4, 5; planes join ports of the same number.
            let named = by_port(&with(&[(1, 1), (4, 1), (2, 2), (5, 0)]));
            let mut found: Vec<_> = sent(&named, |_| 0).iter().map(|piece| (piece.source.0, piece.destination.0, piece.flits)).collect();
            found.sort_unstable();
            assert_eq!(found, [(0, 3, 40), (1, 4, 40), (2, 5, 40)], "{choice:?}");
            let mut planned = Vec::new();
            named.each_message(&mut |message| planned.push((message.source.0, message.destination.0, message.flits)));
            assert_eq!((planned, named.messages(), named.longest_message()), (found, 3, 40), "{choice:?}");
            let plain = by_port(&with(&[]));
            assert_eq!(plain.messages(), if choice == PortChoice::ByPacket { 9 } else { 3 });
        }
    }
}
