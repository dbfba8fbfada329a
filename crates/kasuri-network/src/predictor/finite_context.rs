//! Finite context: each input port has a table, indexed by its last outputs, two unless `predictor_history` says otherwise, of what
//! followed them.
//!
//! As in hardware the table is small: the context is hashed to one of 64 lines, or of `predictor_entries`. A line holds a port and a
//! counter of two bits; a wrong guess lowers the counter, and at 0 the line takes the new port.

use super::contract::{Built, Predictor, PredictorEntry, inputs};
use super::options::Options;
use crate::id::Port;
use crate::network::{MAX_PORTS, Network};

/// Lines of an input port's table, and outputs that are its index, unless others are asked for.
const LINES: u32 = 64;
const HISTORY: u32 = 2;

/// The counter's greatest value.
const SURE: u16 = 3;

/// A port and a counter in two bytes, since all lines together are the largest part of what a simulated network touches.
#[derive(Clone, Copy, Default)]
struct Line(u16);

impl Line {
    /// The bits of the port.
    const PORT: u16 = (1 << 14) - 1;

    fn new(port: Port, confidence: u16) -> Self {
        const { assert!(MAX_PORTS <= Line::PORT as usize + 1) };
        Self(confidence << 14 | port)
    }

    fn port(self) -> Port {
        self.0 & Self::PORT
    }

    /// 0: nothing known yet, or about to be replaced.
    fn confidence(self) -> u16 {
        self.0 >> 14
    }
}

struct FiniteContext<const OUTPUTS: usize> {
    lines: Vec<Line>,
    /// Lines of each input port.
    entries: u32,
    /// The last output of each input port and those before it, counted from 1; 0 is none.
    last: Vec<[Port; OUTPUTS]>,
}

/// Its line of the table.
pub(super) const ENTRY: PredictorEntry = PredictorEntry {
    name: "finite-context",
    summary: "what followed the last two outputs of the input port before",
    source: "Sazeides and Smith, The predictability of data values (MICRO 1997), finite context method of order 2",
    takes: &["predictor_entries", "predictor_history"],
    build,
};

fn build(network: &Network, options: &Options) -> Built {
    let (inputs, entries) = (inputs(network), options.entries.unwrap_or(LINES));
    Ok(match options.history.unwrap_or(HISTORY) {
        1 => FiniteContext::<1>::boxed(inputs, entries),
        2 => FiniteContext::<2>::boxed(inputs, entries),
        3 => FiniteContext::<3>::boxed(inputs, entries),
        _ => FiniteContext::<4>::boxed(inputs, entries),
    })
}

impl<const OUTPUTS: usize> FiniteContext<OUTPUTS> {
    fn boxed(inputs: usize, entries: u32) -> Box<dyn Predictor> {
        Box::new(Self { lines: vec![Line::default(); inputs * entries as usize], entries, last: vec![[0; OUTPUTS]; inputs] })
    }

    fn line(&self, input: usize) -> usize {
        // 37 is odd, so with 64 lines for up to 64 ports each pair with the same last output has a line of its own.
        let context = self.last[input].into_iter().fold(0u32, |context, output| context * 37 + u32::from(output));
        input * self.entries as usize + (context % self.entries) as usize
    }
}

impl<const OUTPUTS: usize> Predictor for FiniteContext<OUTPUTS> {
    fn predict(&self, input: usize) -> Option<Port> {
        let line = self.lines[self.line(input)];
        (line.confidence() > 0).then_some(line.port())
    }

    fn learn(&mut self, input: usize, output: Port) {
        let place = self.line(input);
        let line = &mut self.lines[place];
        let confidence = line.confidence();
        *line = if confidence > 0 && line.port() == output {
            Line::new(output, (confidence + 1).min(SURE))
        } else if confidence > 1 {
            Line::new(line.port(), confidence - 1)
        } else {
            Line::new(output, 1)
        };
        let last = &mut self.last[input];
        last.rotate_right(1);
        last[0] = output + 1;
    }
}
