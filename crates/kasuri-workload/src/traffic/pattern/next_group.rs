//! Everybody sends to the group that follows.

use super::contract::{Pattern, PatternContext, PatternError, TrafficPattern};
use kasuri_network::id::TerminalId;
use kasuri_network::registry::Member;
use kasuri_network::rng::Stream;
use schemars::JsonSchema;
use serde::Deserialize;

/// Terminals form groups of g = `group_terminals`; s sends to any terminal of the next group: to
/// ((s div g + 1) g + x) mod N, x drawn from 0..g-1. On a dragonfly all packets of a group then want the same global link.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NextGroup {
    /// Terminals of a group, g.
    pub group_terminals: u32,
}

impl Member for NextGroup {
    const NAME: &'static str = "next-group";
    const SUMMARY: &'static str = "to any terminal of the next group: the worst case of a dragonfly";
    const SOURCE: &'static str = "Kim, Dally, Scott and Abts, ISCA 2008, section 4.2; as in BookSim 2 (bad_dragon)";
    const EXAMPLE: &'static str = "group_terminals = 4";
}

impl TrafficPattern for NextGroup {
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError> {
        let (terminals, group) = (context.network.terminal_count(), self.group_terminals);
        if group == 0 || group >= terminals {
            let problem = format!("is {group}; with {terminals} terminals it must be 1 to {}", terminals.saturating_sub(1));
            return Err(PatternError::Parameter { key: "group_terminals".to_owned(), problem });
        }
        Ok(Box::new(Compiled { terminals, group }))
    }
}

#[derive(Debug)]
struct Compiled {
    terminals: u32,
    group: u32,
}

impl Compiled {
    fn place(&self, source: TerminalId, drawn: u32) -> TerminalId {
        TerminalId(((source.0 / self.group + 1) * self.group + drawn) % self.terminals)
    }
}

impl Pattern for Compiled {
    fn destination(&self, source: TerminalId, stream: &mut Stream) -> Option<TerminalId> {
        Some(self.place(source, stream.below(self.group)))
    }

    fn weights(&self, source: TerminalId) -> Vec<(TerminalId, f64)> {
        let mut places: Vec<_> = (0..self.group).map(|drawn| self.place(source, drawn)).collect();
        places.sort_unstable();
        places.into_iter().map(|place| (place, 1.0 / f64::from(self.group))).collect()
    }

    fn is_silent(&self, _source: TerminalId) -> bool {
        self.group == 0
    }
}
