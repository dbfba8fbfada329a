//! Finite context of order 2: each input port has a table, indexed by its last two outputs, of what followed them.
//!
//! As in hardware the table is small: the context is hashed to one of 64 lines. A line holds a port and a counter of two bits;
//! a wrong guess lowers the counter, and at 0 the line takes the new port.

use super::{Built, Predictor, PredictorEntry, inputs};
use crate::id::Port;
use crate::network::{MAX_PORTS, Network};

/// Lines of an input port's table, a power of two.
const LINES: usize = 64;

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

struct FiniteContext {
    lines: Vec<Line>,
    /// The last output of each input port and the one before it, counted from 1; 0 is none.
    last: Vec<[Port; 2]>,
}

/// Its line of the table.
pub(super) const ENTRY: PredictorEntry = PredictorEntry {
    name: "finite-context",
    summary: "what followed the last two outputs of the input port before",
    source: "Sazeides and Smith, The predictability of data values (MICRO 1997), finite context method of order 2",
    build,
};

fn build(network: &Network) -> Built {
    let inputs = inputs(network);
    Ok(Box::new(FiniteContext { lines: vec![Line::default(); inputs * LINES], last: vec![[0; 2]; inputs] }))
}

impl FiniteContext {
    fn line(&self, input: usize) -> usize {
        let [last, before] = self.last[input];
        // 37 is odd, so for up to 64 ports each pair with the same last output has a line of its own.
        input * LINES + (usize::from(last) * 37 + usize::from(before)) % LINES
    }
}

impl Predictor for FiniteContext {
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
        self.last[input] = [output + 1, self.last[input][0]];
    }
}
