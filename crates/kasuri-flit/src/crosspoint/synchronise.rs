//! Synchronisation packets in the routers' tables.

use super::{Crosspoint, Event, SYNCHRONISATIONS, Time, Waiting, bits};

impl<T: Clone> Crosspoint<T> {
    /// Enters a synchronisation packet into a router's table.
    pub(super) fn synchronise(&mut self, router: u32, input: u32, sid: u8, terminals: u64, waiting: Waiting, now: Time) {
        let cycle = self.sizes.cycle;
        let begin = now.max(self.table_free[router as usize]);
        self.table_free[router as usize] = begin + Time::from(self.sizes.parameters.table_access) * cycle;
        if let Some(outputs) = self.count(router, input, sid, terminals) {
            let mut flight = self.flights.records[waiting.flight as usize].clone().expect("what waits is alive");
            flight.copies = 1;
            let ready = begin + Time::from(self.sizes.parameters.synchronisation_latency) * cycle;
            for output in bits(outputs) {
                let copy = self.begin(flight.clone());
                let channel = self.outputs[(router * self.ports + output) as usize];
                let hops = waiting.hops + 1;
                self.channels[channel as usize].own.push_back(Waiting { flight: copy, ready, hops, ..waiting });
                self.schedule.push((ready, Event::Ready(channel)));
            }
        }
        self.end_copy(waiting.flight);
    }

    /// Notes in a router's table that a synchronisation packet has come. The outputs by which one leaves now, if it was the last.
    fn count(&mut self, router: u32, input: u32, sid: u8, terminals: u64) -> Option<u32> {
        let synchronisation = self.tables.synchronisation()?;
        let step = synchronisation.step(router, input, terminals);
        let Some(expected) = step.expected else { return Some(step.outputs) };
        let rows = &mut self.table[router as usize * SYNCHRONISATIONS + usize::from(sid)];
        let row = usize::from(rows[0] & 1 << input != 0);
        if row >= synchronisation.rows() || rows[row] & 1 << input != 0 {
            let rounds = if row < synchronisation.rows() { "three" } else { "two" };
            self.broken = Some(format!("{rounds} rounds of synchronisation {sid} meet at router {router}"));
        }
        rows[row] |= 1 << input;
        if rows[0] != expected {
            return None;
        }
        *rows = [rows[1], 0];
        Some(step.outputs)
    }
}

#[cfg(test)]
mod tests;
