//! The search for the saturation load (`measure.search = "saturation"`).
//!
//! The saturation load is the least load at which less than 0.95 of the offered load is accepted or the mean packet latency
//! exceeds three times the zero-load latency. It is found by bisection to 0.005 flits/terminal/cycle or 2 % of itself,
//! whichever is less. Each trial is a whole run under the rules of the study.
//!
//! Bisection assumes that a network which does not sustain a load sustains no greater one. That holds for the
//! definition; a network whose throughput collapses beyond saturation is still below it there.

use super::Offer;
use super::growth::MIN_ACCEPTED_SHARE;
use kasuri_model::engine::{Outcome, Status};

/// A load so small that packets do not meet, flits/terminal/cycle: the mean latency there is the zero-load latency.
pub(crate) const ZERO_LOAD: f64 = 0.001;

/// The mean latency above this multiple of the zero-load latency is saturation.
const LATENCY_FACTOR: f64 = 3.0;

/// The final width of the bracket of the bisection: absolute, and relative to the load.
const BRACKET_WIDTH: f64 = 0.005;
const RELATIVE_BRACKET_WIDTH: f64 = 0.02;

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SearchResult<T> {
    /// The saturation load, `None` if even the highest load is sustained.
    pub(crate) load: Option<f64>,
    /// The trial at that load (at the highest load if all are sustained).
    pub(crate) trial: T,
    /// The number of trials.
    pub(crate) trials: u32,
}

/// Searches between 0 and `highest`. `run` makes a trial; `is_sustained` judges it.
pub(crate) fn search<T, E>(
    highest: f64,
    mut run: impl FnMut(f64) -> Result<T, E>,
    is_sustained: impl Fn(&T) -> bool,
) -> Result<SearchResult<T>, E> {
    let (mut below, mut above) = (0.0, highest);
    let mut at_above = run(highest)?;
    let mut trials = 1;
    if is_sustained(&at_above) {
        return Ok(SearchResult { load: None, trial: at_above, trials });
    }
    while above - below > BRACKET_WIDTH.min(RELATIVE_BRACKET_WIDTH * above) {
        let middle = 0.5 * (below + above);
        let trial = run(middle)?;
        trials += 1;
        if is_sustained(&trial) {
            below = middle;
        } else {
            (above, at_above) = (middle, trial);
        }
        // A network that sustains nothing at all (a routing that starves some terminals) would be halved endlessly.
        if above < ZERO_LOAD {
            break;
        }
    }
    Ok(SearchResult { load: Some(above), trial: at_above, trials })
}

/// True if the network sustained the offered load in this run.
///
/// The comparison allows for four standard deviations of the flits of Poisson sources in the measured time: a short run at a low load may
/// well have been offered 5 % less than intended.
pub(crate) fn is_sustained(outcome: &Outcome, offer: &Offer, zero_load_latency: Option<f64>) -> bool {
    let cycles = outcome.measured_cycles as f64;
    let allowance = 4.0 * offer.deviation(cycles);
    let accepted = outcome.accepted_flits.iter().sum::<u64>() as f64;
    let is_accepted = accepted + allowance >= MIN_ACCEPTED_SHARE * offer.flits_per_cycle * cycles;
    let is_quick = match (outcome.packet_latency.mean(), zero_load_latency) {
        (Some(latency), Some(zero)) => latency <= LATENCY_FACTOR * zero,
        _ => true,
    };
    !matches!(outcome.status, Status::Saturated | Status::Deadlock) && is_accepted && is_quick
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_model::engine::Distribution;
    use std::convert::Infallible;

    fn find(saturation: f64, highest: f64) -> (Option<f64>, u32) {
        let run = |load: f64| Ok::<f64, Infallible>(load);
        let Ok(found) = search(highest, run, |&load| load < saturation);
        (found.load, found.trials)
    }

    #[test]
    fn the_load_is_found_to_its_width_from_above() {
        for saturation in [0.9, 0.5, 0.4237, 0.25, 0.1, 0.02] {
            let found = find(saturation, 1.0).0.unwrap();
            let width = BRACKET_WIDTH.min(RELATIVE_BRACKET_WIDTH * found);
            assert!((saturation..=saturation + width).contains(&found), "{saturation}: {found}");
        }
        assert!(find(0.42, 1.0).1 <= 10);
    }

    #[test]
    fn a_network_that_sustains_everything_has_no_saturation_load() {
        assert_eq!(find(2.0, 1.0), (None, 1));
        assert_eq!(find(0.6, 0.5), (None, 1));
    }

    #[test]
    fn a_network_that_sustains_nothing_ends_the_search() {
        let (found, trials) = find(0.0, 1.0);
        assert!(found.unwrap() < ZERO_LOAD && trials < 20);
    }

    #[test]
    fn an_error_ends_the_search() {
        let run = |load: f64| if load > 0.6 { Ok(load) } else { Err("stop") };
        assert_eq!(search(1.0, run, |_| false), Err("stop"));
    }

    /// 64 terminals, packets of 1 flit: 0.95 of the offered flits accepted within chance, latency up to three times zero load.
    #[test]
    fn accepted_throughput_and_latency_decide() {
        let offer = Offer { terminals: 64, sources: 64, packets_per_cycle: 32.0, flits_per_cycle: 32.0, ..Offer::default() };
        let outcome = |status, accepted: f64, latency: f64| Outcome {
            packet_latency: Distribution { count: 1000, sum: 1000.0 * latency, ..Distribution::default() },
            accepted_flits: vec![(50_000.0 * accepted) as u64; 64],
            ..Outcome::new(status).after(100_000)
        };
        let sustained = |status, accepted, latency| is_sustained(&outcome(status, accepted, latency), &offer, Some(20.0));
        assert!(sustained(Status::Converged, 1.0, 59.0));
        assert!(!sustained(Status::Converged, 1.0, 61.0));
        assert!(sustained(Status::MaxCycles, 0.96, 30.0));
        assert!(!sustained(Status::MaxCycles, 0.94, 30.0));
        assert!(!sustained(Status::Saturated, 1.0, 30.0));
    }
}
