//! On-off injection: bursts.

use super::contract::{InjectionProcess, Process};
use kasuri_network::registry::Member;
use kasuri_network::rng::Stream;
use schemars::JsonSchema;
use serde::Deserialize;

/// A terminal is on or off. In every cycle it goes on with probability `alpha` if it was off, off with `beta` if it was on, and
/// then creates a packet with probability `on_rate` if it is on. It begins on with the probability that it has in the long run,
/// alpha / (alpha + beta).
///
/// The mean rate is `on_rate` alpha / (alpha + beta) packets a cycle: give two of the three, the load gives the third.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    /// Probability of going on, above 0 and at most 1.
    #[serde(default)]
    pub alpha: Option<f64>,
    /// Probability of going off, 0 to 1.
    #[serde(default)]
    pub beta: Option<f64>,
    /// Packets a cycle while on, above 0 and at most 1.
    #[serde(default)]
    pub on_rate: Option<f64>,
}

impl Member for OnOff {
    const NAME: &'static str = "on-off";
    const SUMMARY: &'static str = "bursts: packets in some states of a two-state Markov chain only";
    const SOURCE: &'static str =
        "Dally and Towles (2004), section 24.2.2; BookSim 2 (on_off), which begins on or off with equal probability";
    const EXAMPLE: &'static str = "alpha = 0.1\nbeta = 0.05";
}

impl InjectionProcess for OnOff {
    fn compile(&self, packet_rate: f64) -> Result<Box<dyn Process>, String> {
        let (alpha, beta, on_rate) = match (self.alpha, self.beta, self.on_rate) {
            (Some(alpha), Some(beta), None) => (alpha, beta, packet_rate * (alpha + beta) / alpha),
            (None, Some(beta), Some(on_rate)) => (beta * packet_rate / (on_rate - packet_rate), beta, on_rate),
            (Some(alpha), None, Some(on_rate)) => (alpha, alpha * (on_rate - packet_rate) / packet_rate, on_rate),
            _ => return Err("needs two of alpha, beta and on_rate; the load gives the third".to_owned()),
        };
        for (key, value, least) in [("alpha", alpha, f64::MIN_POSITIVE), ("beta", beta, 0.0), ("on_rate", on_rate, 0.0)] {
            if !(least..=1.0).contains(&value) {
                let given = if least > 0.0 { "above 0 and at most 1" } else { "0 to 1" };
                return Err(format!("{key} comes to {value} at {packet_rate} packets a cycle; it must be {given}"));
            }
        }
        Ok(Box::new(Compiled::new(alpha, beta, on_rate)))
    }
}

/// A state is left, and a packet created, after times of the geometric law: drawn as such they cost no coin in every cycle.
#[derive(Debug)]
struct Compiled {
    on_rate: f64,
    /// While on, a cycle ends the wait with a packet or by going off with this probability, and then is one of a packet with the
    /// other.
    log_no_event: f64,
    is_packet: f64,
    log_stays_off: f64,
    /// In the long run.
    is_on: f64,
    burst_cycles: Option<f64>,
    never: bool,
}

impl Compiled {
    fn new(alpha: f64, beta: f64, on_rate: f64) -> Self {
        let packet = (1.0 - beta) * on_rate;
        let event = packet + beta;
        Self {
            on_rate,
            log_no_event: (-event).ln_1p(),
            is_packet: packet / event,
            log_stays_off: (-alpha).ln_1p(),
            is_on: alpha / (alpha + beta),
            burst_cycles: (beta > 0.0).then(|| 1.0 / alpha + 1.0 / beta),
            never: on_rate == 0.0 || event == 0.0,
        }
    }
}

impl Process for Compiled {
    fn next(&self, _index: u64, previous: Option<u64>, stream: &mut Stream) -> Option<u64> {
        if self.never {
            return None;
        }
        // Who has created a packet is on. Cycles are counted from the one before the first that may have it.
        let mut on = previous.is_some() || stream.unit() < self.is_on;
        let mut waited = 0u64;
        loop {
            if on {
                waited = waited.saturating_add(stream.trials(self.log_no_event));
                if stream.unit() < self.is_packet {
                    break;
                }
            }
            waited = waited.saturating_add(stream.trials(self.log_stays_off));
            on = true;
            if stream.unit() < self.on_rate {
                break;
            }
            if waited >= 1 << 62 {
                return None;
            }
        }
        Some(previous.map_or(waited - 1, |cycle| cycle.saturating_add(waited)))
    }

    fn burst_cycles(&self) -> Option<f64> {
        self.burst_cycles
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_network::rng::{Purpose, Streams};

    /// The rate is the one asked for, and the gaps follow the law of the chain: P(gap = 1) = (1 - beta) on_rate, P(gap = 2) =
    /// ((1 - beta)^2 (1 - on_rate) + beta alpha) on_rate. Bounds: six standard deviations, for the rate with the variance of
    /// the gaps drawn.
    #[test]
    fn gaps_follow_the_chain() {
        let (alpha, beta, rate) = (0.1, 0.05, 0.2);
        let on_rate = rate * (alpha + beta) / alpha;
        let process = OnOff { alpha: Some(alpha), beta: Some(beta), on_rate: None }.compile(rate).unwrap();
        let mut stream = Streams::new(3).get(Purpose::Creation, 0);
        const GAPS: usize = 200_000;
        let mut last = process.next(0, None, &mut stream);
        let mut gaps = Vec::new();
        for index in 1..=GAPS as u64 {
            let next = process.next(index, last, &mut stream);
            gaps.push((next.unwrap() - last.unwrap()) as f64);
            last = next;
        }
        let mean = gaps.iter().sum::<f64>() / GAPS as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / GAPS as f64;
        assert!((mean - 1.0 / rate).abs() < 6.0 * (variance / GAPS as f64).sqrt(), "{mean}");
        let second = ((1.0 - beta) * (1.0 - beta) * (1.0 - on_rate) + beta * alpha) * on_rate;
        for (gap, probability) in [(1.0, (1.0 - beta) * on_rate), (2.0, second)] {
            let seen = gaps.iter().filter(|&&seen| seen == gap).count() as f64 / GAPS as f64;
            assert!((seen - probability).abs() < 6.0 * (probability * (1.0 - probability) / GAPS as f64).sqrt(), "{gap}: {seen}");
        }
    }

    /// A source is in its stationary state from the first cycle on: over 20,000 sources the packets of the first 100 cycles, and of 100
    /// later ones, are as many as the rate says, though a source changes its state once in 100,000 cycles. Bound: six standard
    /// deviations of the number of sources that are on (binomial).
    #[test]
    fn sources_begin_in_their_stationary_state() {
        let (alpha, beta, rate) = (1e-6, 1e-5, 0.05);
        let process = OnOff { alpha: Some(alpha), beta: Some(beta), on_rate: None }.compile(rate).unwrap();
        let (sources, cycles) = (20_000u32, 1_000);
        let mut packets = [0u32; 2];
        for source in 0..sources {
            let mut stream = Streams::new(7).get(Purpose::Creation, source);
            let (mut index, mut at) = (0, process.next(0, None, &mut stream));
            while let Some(cycle) = at.filter(|&cycle| cycle < cycles) {
                packets[usize::from(cycle >= cycles / 2)] += 1;
                index += 1;
                at = process.next(index, at, &mut stream);
            }
        }
        let is_on = alpha / (alpha + beta);
        let deviation = ((1.0 - is_on) / is_on / f64::from(sources)).sqrt();
        for seen in packets {
            let of_rate = f64::from(seen) / (rate * f64::from(sources) * cycles as f64 / 2.0);
            assert!((of_rate - 1.0).abs() < 6.0 * deviation, "{of_rate} of the rate; standard deviation {deviation}");
        }
        assert!((process.burst_cycles().unwrap() - 1.1e6).abs() < 1.0);
    }

    #[test]
    fn two_of_three_parameters_give_the_third() {
        let compile = |alpha, beta, on_rate| OnOff { alpha, beta, on_rate }.compile(0.2);
        for (alpha, beta, on_rate) in [(Some(0.1), Some(0.05), None), (None, Some(0.05), Some(0.3)), (Some(0.1), None, Some(0.3))] {
            assert!(compile(alpha, beta, on_rate).is_ok());
        }
        for (alpha, beta, on_rate, wanted) in [
            (Some(0.1), None, None, "needs two"),
            (Some(0.1), Some(0.1), Some(0.5), "needs two"),
            (Some(0.1), Some(0.9), None, "on_rate comes to 2"),
            (Some(0.1), None, Some(0.1), "beta comes to -0.05"),
            (Some(0.0), Some(0.1), None, "alpha comes to 0"),
        ] {
            assert!(compile(alpha, beta, on_rate).unwrap_err().starts_with(wanted));
        }
    }
}
