//! What patterns with a few weighted destinations per source share.

use super::contract::Pattern;
use kasuri_network::id::TerminalId;
use kasuri_network::rng::Stream;

/// Destinations and cumulative probabilities, source after source.
#[derive(Debug)]
pub struct Weighted {
    /// Where each source's destinations begin; one more entry than sources.
    starts: Vec<u32>,
    destinations: Vec<u32>,
    /// The last of each source is 1.
    cumulative: Vec<f64>,
    /// What each source offers of the load; empty if all offer it all.
    shares: Vec<f64>,
}

impl Weighted {
    /// A pattern of positive weights in any unit, one list per source; a source with an empty list sends nothing. A
    /// destination that stands twice gets the sum.
    pub fn pattern(rows: Vec<Vec<(u32, f64)>>) -> Box<dyn Pattern> {
        Box::new(Self::new(rows))
    }

    /// The same, but each source offers as much of the load as the sum of its weights is of the greatest sum.
    pub fn by_sums(rows: Vec<Vec<(u32, f64)>>) -> Box<dyn Pattern> {
        let sums: Vec<f64> = rows.iter().map(|row| row.iter().map(|&(_, weight)| weight).sum()).collect();
        let greatest = sums.iter().copied().fold(0.0, f64::max);
        let shares = sums.into_iter().map(|sum| if sum > 0.0 { sum / greatest } else { 0.0 }).collect();
        Box::new(Self { shares, ..Self::new(rows) })
    }

    fn new(rows: Vec<Vec<(u32, f64)>>) -> Self {
        let mut pattern = Self { starts: vec![0], destinations: Vec::new(), cumulative: Vec::new(), shares: Vec::new() };
        for mut row in rows {
            row.sort_by_key(|&(destination, _)| destination);
            let total: f64 = row.iter().map(|&(_, weight)| weight).sum();
            let mut sum = 0.0;
            for (index, &(destination, weight)) in row.iter().enumerate() {
                sum += weight / total;
                let up_to = if index + 1 == row.len() { 1.0 } else { sum };
                if index > 0 && row[index - 1].0 == destination {
                    // The same destination again: it reaches further.
                    pattern.cumulative.pop();
                    pattern.destinations.pop();
                }
                pattern.destinations.push(destination);
                pattern.cumulative.push(up_to);
            }
            pattern.starts.push(pattern.destinations.len() as u32);
        }
        pattern
    }

    fn range(&self, source: TerminalId) -> std::ops::Range<usize> {
        self.starts[source.index()] as usize..self.starts[source.index() + 1] as usize
    }
}

impl Pattern for Weighted {
    fn share(&self, source: TerminalId) -> f64 {
        self.shares.get(source.index()).copied().unwrap_or(1.0)
    }

    fn has_shares(&self) -> bool {
        !self.shares.is_empty()
    }

    fn destination(&self, source: TerminalId, stream: &mut Stream) -> Option<TerminalId> {
        let range = self.range(source);
        let (destinations, cumulative) = (&self.destinations[range.clone()], &self.cumulative[range]);
        match destinations {
            [] => None,
            [only] => Some(TerminalId(*only)),
            _ => {
                let point = stream.unit();
                Some(TerminalId(destinations[cumulative.partition_point(|&up_to| up_to <= point)]))
            }
        }
    }

    fn weights(&self, source: TerminalId) -> Vec<(TerminalId, f64)> {
        let mut below = 0.0;
        self.range(source)
            .map(|index| {
                let weight = self.cumulative[index] - below;
                below = self.cumulative[index];
                (TerminalId(self.destinations[index]), weight)
            })
            .collect()
    }

    fn is_silent(&self, source: TerminalId) -> bool {
        self.range(source).is_empty()
    }
}
