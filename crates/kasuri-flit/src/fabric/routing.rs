//! Routing: where the heads at the fronts of buffers go next, once per packet and router.

use crate::fabric::congestion::RouterView;
use crate::fabric::vc_allocation::PREFETCH_DISTANCE;
use crate::record::event::{Event, HeadAtRouter};
use crate::record::list::List;
use crate::record::prefetch::prefetch;
use crate::record::vc_mask::VcMask;
use crate::state::blocks::Block;
use crate::state::layout::RouterState;
use crate::state::route_memo::{Asked, Known, Watched};
use crate::state::routing::Route;
use crate::state::tile::Tile;
use crate::state::wiring::RouterPlace;
use kasuri_network::id::{RouterId, TerminalId};
use kasuri_network::routing::{Candidate, Choice, HashedChoice, Hop, NoView, packet_key};

impl<L: RouterState> Tile<'_, L> {
    /// Routes the new heads: each asks for virtual channels of one output port.
    #[inline(always)]
    pub(crate) fn route_heads(&mut self, now: u64, lists: &mut Block) {
        if self.routing.claims.is_some() {
            lists.heads.sort();
        }
        if self.parameters.fetches {
            self.route_heads_ahead(now, lists);
        } else {
            for position in 0..lists.heads.len() {
                let slot = lists.heads.at(position);
                let port = self.route_head(slot);
                self.begin_request(slot, port, now, lists);
            }
        }
        lists.heads.clear();
    }

    /// The same in two passes, first the ports, then the requests: meanwhile the ports' records are fetched.
    fn route_heads_ahead(&mut self, now: u64, lists: &mut Block) {
        self.prefetch_first_heads(&lists.heads);
        for position in 0..lists.heads.len() {
            self.prefetch_head(&lists.heads, position);
            let slot = lists.heads.at(position);
            let port = self.route_head(slot);
            self.wiring.links[port].prefetch();
            self.layout.input_slot_mut(slot).request_next = port;
        }
        for position in 0..lists.heads.len() {
            let slot = lists.heads.at(position);
            let port = self.layout.input_slot(slot).request_next;
            self.begin_request(slot, port, now, lists);
        }
    }

    /// A head asks for virtual channels of a port from the cycle on in which its route computation is over.
    #[inline(always)]
    fn begin_request(&mut self, slot: u32, port: u32, now: u64, lists: &mut Block) {
        match self.parameters.route_cycles {
            0 => {
                self.request(slot, port);
                self.list_for_allocation(port, &mut lists.allocate);
            }
            1 => {
                self.request(slot, port);
                self.list_for_allocation(port, &mut lists.allocate_next);
            }
            cycles => {
                debug_assert!(cycles > 1);
                self.layout.input_slot_mut(slot).request_next = port;
                lists.delayed(now).push(slot);
            }
        }
    }

    /// Fetches what routing later heads of a list will look at: first the slot, then its packet.
    #[inline(always)]
    pub(crate) fn prefetch_head(&self, heads: &List, position: usize) {
        self.prefetch_slot_of(heads, position + 2 * PREFETCH_DISTANCE);
        self.prefetch_packet_of(heads, position + PREFETCH_DISTANCE);
    }

    /// Fetches what the first heads of a list will need, which no head before them does.
    #[inline(always)]
    pub(crate) fn prefetch_first_heads(&self, heads: &List) {
        (0..heads.len().min(2 * PREFETCH_DISTANCE)).for_each(|position| self.prefetch_slot_of(heads, position));
        (0..heads.len().min(PREFETCH_DISTANCE)).for_each(|position| self.prefetch_packet_of(heads, position));
    }

    #[inline(always)]
    fn prefetch_slot_of(&self, heads: &List, position: usize) {
        if position < heads.len() {
            let slot = heads.at(position);
            self.layout.prefetch_input(slot);
            prefetch(&self.wiring.router_of_port[slot >> L::Mask::SHIFT]);
        }
    }

    #[inline(always)]
    fn prefetch_packet_of(&self, heads: &List, position: usize) {
        if position < heads.len() {
            self.packets.prefetch_for_routing(self.front_packet(heads.at(position)));
        }
    }

    /// Heads whose route computation of several cycles ends now begin to bid.
    #[inline(always)]
    pub(crate) fn post_delayed_requests(&mut self, now: u64, lists: &mut Block) {
        if self.parameters.route_cycles > 1 {
            self.post_requests_due(now, lists);
        }
    }

    /// The part of [`Self::post_delayed_requests`] for routers that take several cycles.
    fn post_requests_due(&mut self, now: u64, lists: &mut Block) {
        let mut due = std::mem::take(lists.delayed(now));
        for &slot in &due {
            let port = self.layout.input_slot(slot).request_next;
            self.request(slot, port);
            self.list_for_allocation(port, &mut lists.allocate);
        }
        due.clear();
        *lists.delayed(now) = due;
    }

    /// Puts a head at the front of a port's list of requests.
    #[inline(always)]
    fn request(&mut self, slot: u32, port: u32) {
        let first = &mut self.wiring.links[port].request_head;
        self.layout.input_slot_mut(slot).request_next = std::mem::replace(first, slot);
    }

    /// Asks the routing for the output port of a head, and notes the virtual channels that it may take there.
    #[inline(always)]
    fn route_head(&mut self, slot: u32) -> u32 {
        let packet = self.front_packet(slot);
        let known = self.prediction.as_mut().and_then(|unit| unit.take_route(slot));
        let Route { candidate, state } = known.unwrap_or_else(|| self.find_route(slot, packet));
        let flits = self.enter_router(slot, packet, state);
        debug_assert!(candidate.virtual_channels.count() > 0);
        let input = self.layout.input_slot_mut(slot);
        input.request_first = candidate.virtual_channels.begin as u8;
        input.request_last = (candidate.virtual_channels.end - 1) as u8;
        input.length = flits;
        self.claim(slot, &candidate, flits);
        let input_port = slot >> L::Mask::SHIFT;
        if let Some(unit) = &mut self.prediction {
            let counted = self.packets.counts_predictions(&self.statistics.counting, packet);
            unit.note_head(slot, input_port, candidate.port, counted, false);
        }
        self.wiring.router_at(input_port).first_port + u32::from(candidate.port)
    }

    /// A head that has been routed claims its output.
    #[inline(always)]
    pub(crate) fn claim(&mut self, slot: u32, candidate: &Candidate, flits: u16) {
        if let Some(claims) = &mut self.routing.claims {
            let port = self.wiring.router_at(slot >> L::Mask::SHIFT).first_port + u32::from(candidate.port);
            claims.make(slot, port << L::Mask::SHIFT | u32::from(candidate.virtual_channels.begin), u32::from(flits));
        }
    }

    /// Where a head stands, and its routing state.
    #[inline(always)]
    pub(crate) fn hop(&self, slot: u32, packet: u32) -> (Hop, u32) {
        let record = &self.packets[packet];
        let input_port = slot >> L::Mask::SHIFT;
        let RouterPlace { router, first_port } = self.wiring.router_at(input_port);
        let available = self.routing.channels_of_class[usize::from(record.class)][usize::from(record.is_reply)];
        let hop = Hop {
            router: RouterId(router),
            input: (input_port - first_port) as u16,
            virtual_channel: (slot & (L::Mask::BITS - 1)) as u16,
            source: TerminalId(record.source),
            destination: TerminalId(record.destination),
            available,
        };
        (hop, record.route_state)
    }

    /// Where a head goes next, by the routing. Changes nothing that a result depends on, so it may be asked again.
    #[inline(always)]
    pub(crate) fn find_route(&mut self, slot: u32, packet: u32) -> Route {
        let Some(memo) = &self.routing.memo else { return self.compute_route(slot, packet).0 };
        let router = self.wiring.router_of_port[slot >> L::Mask::SHIFT];
        let question = memo.question(router, slot, &self.packets[packet]);
        match memo.known(&question) {
            Known::Answer(candidate, state) => return Route { candidate, state },
            Known::Draw(draw) => {
                let record = &self.packets[packet];
                let key = packet_key(self.routing.seed, record.source, record.serial);
                let drawn = HashedChoice::at_hop(key, u32::from(record.hops) + 1, NoView).uniform(draw.alternatives);
                if let Some((candidate, state)) = memo.answer_to_draw(draw, drawn) {
                    return Route { candidate, state };
                }
            }
            Known::Nothing => {}
        }
        let (route, asked) = self.compute_route(slot, packet);
        if let Some(memo) = &mut self.routing.memo {
            memo.keep(&question, asked, route.candidate, route.state);
        }
        route
    }

    /// Asks the routing for the only candidate. Returns what it has left to its choice, too.
    #[inline(never)]
    fn compute_route(&mut self, slot: u32, packet: u32) -> (Route, Asked) {
        let (state, asked) = self.find_candidates(slot, packet);
        debug_assert_eq!(self.routing.candidates.len(), 1, "routings that offer several ports have routers in the full layout");
        (Route { candidate: self.routing.candidates[0], state }, asked)
    }

    /// Asks the routing wherever a head may go: into `candidates`. Returns its routing state after that, and what the routing has left to its
    /// choice.
    pub(crate) fn find_candidates(&mut self, slot: u32, packet: u32) -> (u32, Asked) {
        let (hop, mut state) = self.hop(slot, packet);
        let record = &self.packets[packet];
        let (source, serial, hops, flits) = (record.source, record.serial, record.hops + 1, record.flits);
        let mut candidates = std::mem::take(&mut self.routing.candidates);
        candidates.clear();
        let view = RouterView { tile: self, base: self.wiring.first_port(hop.router.0), flits };
        let mut choice = Watched::new(HashedChoice::at_hop(packet_key(self.routing.seed, source, serial), u32::from(hops), view));
        self.routing.function.route(&hop, &mut state, &mut choice, &mut candidates);
        let asked = choice.asked;
        self.routing.candidates = candidates;
        (state, asked)
    }

    /// A feed wants to know that a head has come to its router.
    #[cold]
    fn note_head(&mut self, slot: u32, packet: u32) {
        let (router, record) = (self.wiring.router_at(slot >> L::Mask::SHIFT).router, &self.packets[packet]);
        let (router, destination) = (RouterId(router), TerminalId(record.destination));
        self.in_flight.events.list.push(Event::Head(HeadAtRouter { router, class: record.class, destination, now: self.cycle }));
    }

    /// Counts a head in at the router that it stands at, with its routing state there. Returns its length.
    #[inline(always)]
    pub(crate) fn enter_router(&mut self, slot: u32, packet: u32, state: u32) -> u16 {
        let record = &mut self.packets[packet];
        record.hops += 1;
        record.route_state = state;
        let flits = record.flits;
        self.layout.set_left(slot, flits);
        if self.in_flight.events.wants_heads {
            self.note_head(slot, packet);
        }
        flits
    }
}
