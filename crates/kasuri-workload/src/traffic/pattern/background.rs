//! Uniform traffic that spares some terminals.

use super::contract::{Pattern, PatternContext, PatternError, TrafficPattern};
use kasuri_network::id::TerminalId;
use kasuri_network::network::TerminalRef;
use kasuri_network::registry::Member;
use kasuri_network::rng::Stream;
use schemars::JsonSchema;
use serde::Deserialize;

/// Every destination but the `excluded` ones with the same probability. Excluded terminals send like all others.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Terminals that receive nothing, by number or name.
    pub excluded: Vec<TerminalRef>,
}

impl Member for Background {
    const NAME: &'static str = "background";
    const SUMMARY: &'static str = "every terminal but a few with the same probability";
    const SOURCE: &'static str = "As in BookSim 2 (background)";
    const EXAMPLE: &'static str = "excluded = [0, 5]";
}

impl TrafficPattern for Background {
    fn compile(&self, context: &PatternContext<'_>) -> Result<Box<dyn Pattern>, PatternError> {
        let terminals = context.network.terminal_count();
        let wrong = |problem: String| PatternError::Parameter { key: "excluded".to_owned(), problem };
        let find = |terminal: &TerminalRef| terminal.find(context.network.into()).map_err(|problem| wrong(format!("holds {problem}")));
        let excluded: Vec<u32> = self.excluded.iter().map(find).collect::<Result<_, _>>()?;
        let open: Vec<u32> = (0..terminals).filter(|terminal| !excluded.contains(terminal)).collect();
        if open.is_empty() {
            return Err(wrong(format!("holds all {terminals} terminals; leave one out")));
        }
        Ok(Box::new(Compiled { open, include_self: context.include_self }))
    }
}

#[derive(Debug)]
struct Compiled {
    /// Who may receive, ascending.
    open: Vec<u32>,
    include_self: bool,
}

impl Compiled {
    /// Where in `open` the source stands, if it may not draw itself there.
    fn barred(&self, source: TerminalId) -> Option<usize> {
        if self.include_self { None } else { self.open.binary_search(&source.0).ok() }
    }
}

impl Pattern for Compiled {
    fn destination(&self, source: TerminalId, stream: &mut Stream) -> Option<TerminalId> {
        let barred = self.barred(source);
        let choices = self.open.len() - usize::from(barred.is_some());
        if choices == 0 {
            return None;
        }
        let drawn = stream.below(choices as u32) as usize;
        // Those from the source on move up by one.
        Some(TerminalId(self.open[drawn + usize::from(barred.is_some_and(|place| drawn >= place))]))
    }

    fn weights(&self, source: TerminalId) -> Vec<(TerminalId, f64)> {
        let barred = self.barred(source);
        let choices = self.open.len() - usize::from(barred.is_some());
        let others = self.open.iter().enumerate().filter(|&(place, _)| Some(place) != barred);
        others.map(|(_, &terminal)| (TerminalId(terminal), 1.0 / choices as f64)).collect()
    }

    fn is_silent(&self, source: TerminalId) -> bool {
        self.open.len() == usize::from(self.barred(source).is_some())
    }
}
