//! Open traffic beside a machine: when a terminal sends of it, and what follows its arrival.

use super::flights::{Flight, Load};
use super::{Event, Packets};
use kasuri_model::engine::EngineError;
use kasuri_model::scenario::Scenario;
use kasuri_model::sources::{SourceMessage, Sources};
use kasuri_network::id::TerminalId;

/// The open traffic of a scenario; none where it has no classes.
#[derive(Debug)]
pub(super) struct OpenTraffic {
    sources: Sources,
    /// By terminal: does open traffic go before the machine's parcels next time? Empty where there is none.
    goes_first: Vec<bool>,
    /// By terminal: when it is looked at anyway.
    awaited: Vec<u64>,
}

impl OpenTraffic {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let terminals = if scenario.classes.is_empty() { 0 } else { scenario.network.terminal_count() as usize };
        Self { sources: Sources::new(scenario), goes_first: vec![false; terminals], awaited: vec![u64::MAX; terminals] }
    }

    /// The terminal whose injection channel this is, if it has open traffic: injection channels have the terminals' numbers.
    pub(super) fn at(&self, channel: u32) -> Option<TerminalId> {
        ((channel as usize) < self.goes_first.len()).then_some(TerminalId(channel))
    }
}

impl Packets<'_> {
    pub(super) fn start_open_traffic(&mut self) {
        (0..self.open.goes_first.len() as u32).for_each(|terminal| self.await_next(TerminalId(terminal)));
    }

    /// The next packet of a terminal: an answer of the open traffic, then the machine and open traffic in turn.
    pub(super) fn next_of(&mut self, terminal: TerminalId) -> Result<Option<u32>, EngineError> {
        let now = self.now as f64;
        if let Some(answer) = self.open.sources.draw_answer(terminal, now) {
            self.open.sources.begin_answer(self.scenario, &answer, terminal, self.now);
            return self.begin_open(terminal, answer).map(Some);
        }
        let has_parcel = !self.channels[terminal.index()].queue.is_empty();
        if (self.open.goes_first[terminal.index()] || !has_parcel)
            && let Some(drawn) = self.open.sources.draw_new(self.scenario, terminal, now)
        {
            self.open.goes_first[terminal.index()] = false;
            return self.begin_open(terminal, drawn).map(Some);
        }
        self.open.goes_first[terminal.index()] |= has_parcel;
        if !has_parcel {
            self.await_next(terminal);
        }
        Ok(self.channels[terminal.index()].queue.pop_front())
    }

    fn begin_open(&mut self, source: TerminalId, drawn: SourceMessage) -> Result<u32, EngineError> {
        let class = &self.scenario.classes[usize::from(drawn.class)];
        let of_answer = class.reply.as_ref().filter(|_| drawn.is_reply).map(|reply| reply.virtual_channels);
        let path = self.path([source, drawn.destination], of_answer.unwrap_or(class.virtual_channels))?;
        Ok(self.flights.begin(Flight::new(Load::Open { source, drawn }, drawn.created as u64, path, drawn.flits)))
    }

    /// Looks at a terminal again when it has open traffic to send.
    fn await_next(&mut self, terminal: TerminalId) {
        let Some(next) = self.open.sources.next(terminal) else { return };
        let next = (next as u64).max(self.now);
        let awaited = &mut self.open.awaited[terminal.index()];
        if *awaited > next || *awaited < self.now {
            *awaited = next;
            self.events.note(next, Event::Created(terminal.0));
        }
    }

    /// A terminal may have open traffic to send now.
    pub(super) fn created(&mut self, terminal: TerminalId) -> Result<(), EngineError> {
        self.open.awaited[terminal.index()] = u64::MAX;
        self.transfer(self.scenario.network.injection_channel(terminal).0)
    }

    /// A packet of the open traffic has arrived: it is answered, or has its place in the window back from the next cycle on.
    pub(super) fn open_arrived(&mut self, name: u32, source: TerminalId, drawn: &SourceMessage) {
        self.counts.background.count(drawn.flits, true, Some(self.now - drawn.created as u64));
        self.counts.of_user(self.scenario, drawn.class.into(), &self.flights[name], self.now);
        self.flights.end(name);
        let (sources, now) = (&mut self.open.sources, self.now);
        let is_answered = !drawn.is_reply && self.scenario.classes[usize::from(drawn.class)].reply.is_some();
        let waiting = if is_answered || drawn.is_reply { drawn.destination } else { source };
        if is_answered {
            sources.reply(self.scenario, waiting, source, drawn.class, now, drawn.asked);
        } else if sources.has_windows() {
            sources.release_slot(drawn.class, waiting, now + 1);
        }
        self.await_next(waiting);
    }
}
