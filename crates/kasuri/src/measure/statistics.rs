//! Estimating a mean from a correlated series: warm-up truncation, batch means, confidence intervals.
//!
//! Sources: White (1997), "An effective truncation heuristic for bias reduction in simulation output", Simulation 69(6), and
//! Franklin and White (2008), "Stationarity tests and MSER-5", Winter Simulation Conference, for the warm-up; Law (2015),
//! "Simulation Modeling and Analysis", section 9.5, for batch means.

/// Observations that make one mean of MSER-5.
const MSER_GROUP: usize = 5;

/// The beginning of the stationary part of a series by MSER-5: the number of leading observations to drop.
///
/// The series is reduced to means of five; the truncation point minimises the squared standard error of the mean of the rest. The last five
/// means are excluded, because a handful of values may lie close together by chance and would then win. `None`: the series has fewer than
/// ten means, too few to judge.
pub(crate) fn mser5(series: &[f64]) -> Option<usize> {
    let means: Vec<f64> = series.chunks_exact(MSER_GROUP).map(mean).collect();
    if means.len() < 10 {
        return None;
    }
    let centre = mean(&means);
    let (mut sum, mut squares, mut best) = (0.0, 0.0, (f64::INFINITY, 0));
    for (start, value) in means.iter().enumerate().rev() {
        sum += value - centre;
        squares += (value - centre) * (value - centre);
        let left = (means.len() - start) as f64;
        let score = (squares - sum * sum / left) / (left * left);
        if means.len() - start >= MSER_GROUP && score <= best.0 {
            best = (score, start);
        }
    }
    Some(best.1 * MSER_GROUP)
}

/// The arithmetic mean; 0 for nothing.
pub(crate) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The variance of the values' mean, taking the values as independent. Needs two values.
fn variance_of_mean(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre) * (value - centre)).sum();
    squares / (values.len() - 1) as f64 / values.len() as f64
}

/// The lag-1 autocorrelation of a series; 0 for a constant one.
pub(crate) fn lag1_autocorrelation(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre) * (value - centre)).sum();
    if squares == 0.0 {
        return 0.0;
    }
    values.windows(2).map(|pair| (pair[0] - centre) * (pair[1] - centre)).sum::<f64>() / squares
}

/// The lag-1 autocorrelation without its bias, which is about -1/n for a short series.
fn correlation(batches: &[f64]) -> f64 {
    lag1_autocorrelation(batches) + 1.0 / batches.len() as f64
}

/// [`half_width_95`], widened for the remaining correlation: by sqrt((1 + r) / (1 - r)), exact for an AR(1) series.
fn corrected_half_width(batches: &[f64]) -> Option<f64> {
    let r = correlation(batches).clamp(0.0, 0.9);
    half_width_95(batches).map(|width| width * ((1.0 + r) / (1.0 - r)).sqrt())
}

/// Half-width of the 95 % confidence interval of the mean of independent values, by Student's t. `None` for fewer than two.
pub(crate) fn half_width_95(values: &[f64]) -> Option<f64> {
    (values.len() >= 2).then(|| student_t_975(values.len() - 1) * variance_of_mean(values).sqrt())
}

/// The 97.5 % point of Student's t distribution: its value is exceeded in absolute value with probability 5 %.
///
/// From ten degrees of freedom by the expansion of Abramowitz and Stegun 26.7.5 (error below 0.0005), tabulated below.
pub(crate) fn student_t_975(degrees: usize) -> f64 {
    const SMALL: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];
    const Z: f64 = 1.959_963_984_540_054;
    debug_assert!(degrees >= 1);
    if let Some(&value) = SMALL.get(degrees.saturating_sub(1)) {
        return value;
    }
    let v = degrees as f64;
    let power = |exponent: i32| Z.powi(exponent);
    Z + (power(3) + Z) / (4.0 * v)
        + (5.0 * power(5) + 16.0 * power(3) + 3.0 * Z) / (96.0 * v * v)
        + (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * Z) / (384.0 * v * v * v)
}

/// The contribution of an interval to a ratio: `sum` over `weight`, for example packet latency over packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// Numerator.
    pub(crate) sum: f64,
    /// Denominator.
    pub(crate) weight: f64,
}

/// The least and the greatest number of batches from which precision is judged (Law recommends 20 to 40).
const BATCHES: std::ops::Range<usize> = 20..40;

/// The allowed excess of the correlation of half-length batches: of an AR(1) series, full batches then correlate by less than half of it.
const FINER_ALLOWANCE: f64 = 0.1;

/// The least number of the longer batches that bound the interval from below.
const LONGER_BATCHES: usize = 6;

/// A slope of more standard errors than this is a trend.
const TREND_ERRORS: f64 = 3.0;

/// Batches of latencies are made longer if neighbours correlate more than this.
pub(crate) const LATENCY_CORRELATION: f64 = 0.2;

/// The same for rates. Throughput wanders a little around its mean instead of making excursions upwards as latency does, and the widening
/// of the interval for the remaining correlation suffices.
pub(crate) const RATE_CORRELATION: f64 = 0.5;

/// Batch means of a ratio, sequentially: batches grow with the series until neighbours no longer correlate.
///
/// Traps and remedies: (1) Latencies of neighbouring intervals correlate, the more the nearer to saturation: taking them as independent
/// would give confidence intervals that are far too narrow; hence batches, and no interval while their means correlate. (2) Intervals hold
/// different numbers of packets: a batch's value is a ratio of sums, so that packets weigh the same. (3) Checking after every interval and
/// stopping at the first narrow moment stops too early: the series is checked only when it has grown by a fifth since the last check, by a
/// half since one that found it precise, never with fewer than 20 batches, and two checks must agree. (4) Twenty batches overlook a
/// correlation of one half more often than not: batches of half the length, twice as many, must not correlate either, and the interval is
/// no narrower than one from batches three times as long. (5) Latencies are skewed to the right, so that intervals miss the mean from below
/// far more often than from above: skewness widens them.
#[derive(Clone, Debug)]
pub(crate) struct BatchMeans {
    samples: Vec<Sample>,
    max_correlation: f64,
    /// True if the samples are independent by construction.
    are_replications: bool,
    per_batch: usize,
    next_look: usize,
    /// The last check: its number of samples and its half-width.
    judged: Option<(usize, f64)>,
    /// True if the last check found the mean precise.
    was_precise: bool,
}

/// The result of a check of the batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PrecisionCheck {
    /// The check is not due, there are too few batches, or they correlate, or their mean is not precise enough.
    Undecided,
    /// The relative half-width of the 95 % confidence interval is within the target, in two successive checks.
    Precise,
    /// The first quarter lies significantly below the rest, and by more than the requested precision: the series had not settled when it
    /// began.
    Drifting,
}

impl BatchMeans {
    /// An empty series. Batches that correlate more than `max_correlation` are made longer.
    pub(crate) fn new(max_correlation: f64) -> Self {
        // Two intervals to a batch at least: from 20 single ones a correlation of one half is too easily overlooked.
        Self {
            samples: Vec::new(),
            max_correlation,
            are_replications: false,
            per_batch: 2,
            next_look: 2 * BATCHES.start,
            judged: None,
            was_precise: false,
        }
    }

    /// The same for samples that are replications: each may be a batch.
    pub(crate) fn of_replications(max_correlation: f64) -> Self {
        Self { are_replications: true, per_batch: 1, next_look: BATCHES.start, ..Self::new(max_correlation) }
    }

    /// Postpones the first check until there are `samples` samples.
    pub(crate) fn wait_for(&mut self, samples: usize) {
        self.next_look = self.next_look.max(samples);
    }

    /// The mean of all samples; `None` without weight.
    pub(crate) fn mean(&self) -> Option<f64> {
        let weight = self.weight();
        (weight > 0.0).then(|| self.samples.iter().map(|sample| sample.sum).sum::<f64>() / weight)
    }

    /// Adds an interval.
    pub(crate) fn push(&mut self, sample: Sample) {
        self.samples.push(sample);
    }

    /// The sum of all weights, for example the number of packets.
    pub(crate) fn weight(&self) -> f64 {
        self.samples.iter().map(|sample| sample.weight).sum()
    }

    /// Checks the series if it is due. `precision`: the target for the relative half-width.
    pub(crate) fn look(&mut self, precision: f64) -> PrecisionCheck {
        if self.samples.len() < self.next_look {
            return PrecisionCheck::Undecided;
        }
        self.next_look = self.samples.len() + self.samples.len().div_ceil(5);
        while self.samples.len() / self.per_batch >= BATCHES.end {
            self.per_batch *= 2;
        }
        let Some(batches) = self.batches(self.per_batch).filter(|batches| batches.len() >= BATCHES.start) else {
            return PrecisionCheck::Undecided;
        };
        let tolerance = precision * mean(&batches).abs();
        if drifts_up(&batches, tolerance) {
            return PrecisionCheck::Drifting;
        }
        let width = if self.correlate(self.per_batch, &batches) {
            // No t interval holds; batches grow longer as the series does. But if all batches lie within the tolerance, their correlation
            // does no harm: the throughput of a saturated network may creep to its limit endlessly in steps of a millionth.
            range(&batches)
        } else {
            self.cautious_half_width(self.per_batch, &batches).unwrap_or(f64::INFINITY)
        };
        self.judged = Some((self.samples.len(), width));
        let is_precise = width <= tolerance;
        let confirmed = is_precise && self.was_precise;
        self.was_precise = is_precise;
        if is_precise && !confirmed {
            // Means that are low by chance come with low deviations, and so look precise too soon. Later values are not chosen by chance.
            self.next_look = self.samples.len() + self.samples.len().div_ceil(2);
        }
        if confirmed { PrecisionCheck::Precise } else { PrecisionCheck::Undecided }
    }

    /// The half-width of the 95 % confidence interval from all samples, and whether its batches still correlate.
    ///
    /// `None` for fewer than ten batches.
    pub(crate) fn half_width(&self) -> Option<(f64, bool)> {
        if let Some((_, width)) = self.judged.filter(|(samples, _)| *samples == self.samples.len()) {
            return Some((width, false));
        }
        let mut per_batch = (self.samples.len() / (BATCHES.end - 1)).max(self.per_batch.min(self.samples.len() / BATCHES.start)).max(1);
        loop {
            let longer = self.samples.len() / (2 * per_batch) >= 10;
            match self.batches(per_batch) {
                Some(batches) if batches.len() >= 10 => {
                    let correlated = self.correlate(per_batch, &batches);
                    if !correlated || !longer {
                        return self.cautious_half_width(per_batch, &batches).map(|width| (width, correlated));
                    }
                }
                _ if longer => {}
                _ => return None,
            }
            per_batch *= 2;
        }
    }

    /// True if batches of this length correlate, or those of half the length.
    fn correlate(&self, per_batch: usize, batches: &[f64]) -> bool {
        let finer = if self.are_replications && per_batch == 1 { None } else { self.batches((per_batch / 2).max(1)) };
        correlation(batches) > self.max_correlation
            || finer.is_some_and(|finer| per_batch > 1 && correlation(&finer) > self.max_correlation + FINER_ALLOWANCE)
    }

    /// The half-width by these batches, at least that by batches three times as long.
    fn cautious_half_width(&self, per_batch: usize, batches: &[f64]) -> Option<f64> {
        // Replications overlook nothing: the carry-over from one to the next is short.
        let longer = self.batches(3 * per_batch).filter(|longer| longer.len() >= LONGER_BATCHES && !self.are_replications);
        let by_longer = longer.and_then(|longer| half_width_95(&longer)).unwrap_or(0.0);
        corrected_half_width(batches).map(|width| width.max(by_longer) * widening(batches))
    }

    /// True if the values rise along a straight line, by more than `tolerance` from the first to the last batch and by more than three
    /// standard errors of the slope, widened for their correlation.
    pub(crate) fn rises(&self, tolerance: f64) -> bool {
        let per_batch = (self.samples.len() / BATCHES.start).max(1);
        self.batches(per_batch).filter(|batches| batches.len() >= BATCHES.start).is_some_and(|batches| {
            let (slope, error) = slope(&batches);
            slope > TREND_ERRORS * error && slope * (batches.len() - 1) as f64 > tolerance
        })
    }

    /// The values of the full batches; `None` if one of them has no weight. An incomplete last batch is left out.
    fn batches(&self, per_batch: usize) -> Option<Vec<f64>> {
        let ratio = |samples: &[Sample]| {
            let weight: f64 = samples.iter().map(|sample| sample.weight).sum();
            (weight > 0.0).then(|| samples.iter().map(|sample| sample.sum).sum::<f64>() / weight)
        };
        self.samples.chunks_exact(per_batch).map(ratio).collect()
    }
}

/// True if the first quarter lies below the rest by more than `tolerance` and by more than four standard errors of the difference.
///
/// One-sided, because a network starts empty and its latency settles from below. The errors are those of the rest about a straight line,
/// widened for its correlation.
fn drifts_up(batches: &[f64], tolerance: f64) -> bool {
    let (early, late) = batches.split_at(batches.len() / 4);
    let rise = mean(late) - mean(early);
    let (_, variance) = line(late);
    let both = variance * (1.0 / early.len() as f64 + 1.0 / late.len() as f64);
    early.len() >= 2 && rise > tolerance && rise > 4.0 * both.sqrt()
}

/// The widening of an interval by skewness to the right: the leading term of Johnson's modified t (1978), taken on both sides.
fn widening(batches: &[f64]) -> f64 {
    let (count, centre) = (batches.len() as f64, mean(batches));
    let moment = |power: i32| batches.iter().map(|value| (value - centre).powi(power)).sum::<f64>() / count;
    let variance = moment(2);
    if batches.len() < 2 || variance <= 0.0 {
        return 1.0;
    }
    let skewness = (moment(3) / variance.powf(1.5)).max(0.0);
    1.0 + skewness * student_t_975(batches.len() - 1) / (6.0 * count.sqrt())
}

/// The slope per step of a straight line through equidistant values, and its standard error if the residuals are an AR(1) series.
fn slope(values: &[f64]) -> (f64, f64) {
    let (slope, variance) = line(values);
    let count = values.len() as f64;
    (slope, (variance / (count * (count * count - 1.0) / 12.0)).sqrt())
}

/// The slope per step of a straight line through equidistant values, and the variance of the residuals, multiplied for an AR(1) series by
/// the variance of a mean of many values over that of independent ones.
fn line(values: &[f64]) -> (f64, f64) {
    let (count, centre, middle) = (values.len() as f64, mean(values), (values.len() - 1) as f64 / 2.0);
    let places = || (0..values.len()).map(|place| place as f64 - middle);
    let squares: f64 = places().map(|place| place * place).sum();
    let slope = places().zip(values).map(|(place, value)| place * (value - centre)).sum::<f64>() / squares;
    let residuals: Vec<f64> = places().zip(values).map(|(place, value)| value - centre - slope * place).collect();
    let variance = residuals.iter().map(|residual| residual * residual).sum::<f64>() / (count - 2.0);
    let r = correlation(&residuals).clamp(0.0, 0.9);
    (slope, variance * (1.0 + r) / (1.0 - r))
}

/// Greatest less least value.
fn range(values: &[f64]) -> f64 {
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    greatest - values.iter().copied().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_network::rng::{Purpose, Stream, Streams};

    fn stream(seed: u64) -> Stream {
        Streams::new(seed).get(Purpose::Structure, 0)
    }

    /// A standard normal number: twelve uniform ones less six (Irwin and Hall).
    fn normal(stream: &mut Stream) -> f64 {
        (0..12).map(|_| stream.unit()).sum::<f64>() - 6.0
    }

    /// Two-sided 95 % points as every table prints them.
    #[test]
    fn student_t_agrees_with_the_table() {
        for (degrees, value) in [(1, 12.706), (9, 2.262), (10, 2.228), (15, 2.131), (19, 2.093), (30, 2.042), (39, 2.023), (120, 1.980)] {
            assert!((student_t_975(degrees) - value).abs() < 6e-4, "{degrees}: {}", student_t_975(degrees));
        }
    }

    /// A series that climbs to its level within 100 observations and stays: the cut lies near 100.
    #[test]
    fn mser5_cuts_the_transient() {
        let mut cuts = Vec::new();
        for seed in 0..50 {
            let mut stream = stream(seed);
            let series: Vec<f64> = (0..1000).map(|i| 50.0 * (f64::from(i) / 100.0).min(1.0) + normal(&mut stream)).collect();
            cuts.push(mser5(&series).unwrap() as f64);
        }
        let cut = mean(&cuts);
        assert!((85.0..160.0).contains(&cut), "mean cut {cut}");
    }

    #[test]
    fn mser5_puts_the_cut_of_a_growing_series_at_its_end() {
        let series: Vec<f64> = (0..500).map(f64::from).collect();
        assert!(mser5(&series).unwrap() > 250);
    }

    #[test]
    fn mser5_keeps_all_of_a_constant_series_and_judges_no_short_one() {
        assert_eq!(mser5(&[7.0; 200]), Some(0));
        assert_eq!(mser5(&[7.0; 49]), None);
    }

    /// The autocorrelation of an AR(1) series x' = a x + noise at lag 1 is a.
    #[test]
    fn lag1_autocorrelation_of_ar1_is_its_coefficient() {
        let mut stream = stream(1);
        let mut value = 0.0;
        let series: Vec<f64> = (0..50_000)
            .map(|_| {
                value = 0.6 * value + normal(&mut stream);
                value
            })
            .collect();
        assert!((lag1_autocorrelation(&series) - 0.6).abs() < 0.02);
    }

    /// Coverage over 400 AR(1) series of known mean: a sequential rule loses a little of the nominal 95 %; below 90 % it would
    /// be broken, and above 99 % it would waste cycles. The standard error of the observed share is 1.1 %.
    #[test]
    fn sequential_confidence_intervals_cover_the_true_mean() {
        for coefficient in [0.0, 0.5, 0.9, 0.97_f64] {
            let mut covered = 0;
            for seed in 0..400 {
                let mut stream = stream(1000 + seed);
                let mut value = 0.0;
                let mut batches = BatchMeans::new(LATENCY_CORRELATION);
                loop {
                    value = coefficient * value + (1.0_f64 - coefficient * coefficient).sqrt() * normal(&mut stream);
                    batches.push(Sample { sum: 100.0 * (20.0 + value), weight: 100.0 });
                    if batches.look(0.02) == PrecisionCheck::Precise {
                        break;
                    }
                }
                let (width, _) = batches.half_width().unwrap();
                let mean = batches.samples.iter().map(|s| s.sum).sum::<f64>() / batches.weight();
                covered += u32::from((mean - 20.0).abs() <= width);
            }
            let share = f64::from(covered) / 400.0;
            assert!((0.90..0.995).contains(&share), "coefficient {coefficient}: {share}");
        }
    }

    /// A stationary AR(1) series of this coefficient with standard deviation 1 about a mean.
    fn wandering(coefficient: f64, mean: f64, count: usize, seed: u64) -> Vec<f64> {
        let mut stream = stream(seed);
        let mut value = normal(&mut stream);
        let step = |_| {
            value = coefficient * value + (1.0 - coefficient * coefficient).sqrt() * normal(&mut stream);
            mean + value
        };
        (0..count).map(step).collect()
    }

    /// Correlation raises the odds that a quarter lies low: a wandering series without a trend is seldom mistaken for a settling one.
    #[test]
    fn wandering_is_not_drifting() {
        let alarms = (0..1000).filter(|&seed| drifts_up(&wandering(0.7, 10.0, 40, seed), 0.0)).count();
        assert!(alarms <= 20, "{alarms} of 1000");
    }

    #[test]
    fn packets_weigh_the_same_in_a_batch() {
        let mut batches = BatchMeans::new(LATENCY_CORRELATION);
        for i in 0..20 {
            let (packets, latency) = if i % 2 == 0 { (1.0, 100.0) } else { (99.0, 10.0) };
            batches.push(Sample { sum: packets * latency, weight: packets });
        }
        assert_eq!(batches.batches(2).unwrap(), vec![(100.0 + 990.0) / 100.0; 10]);
    }

    #[test]
    fn a_series_that_still_climbs_is_drifting() {
        let mut stream = stream(3);
        let climbing: Vec<f64> = (0..32).map(|i| 10.0 + 5.0 * (1.0 - (-f64::from(i) / 6.0).exp()) + 0.1 * normal(&mut stream)).collect();
        assert!(drifts_up(&climbing, 0.1));
        assert!(!drifts_up(&climbing, 10.0));
        let flat = || (0..32).map(|_| 10.0 + normal(&mut stream)).collect::<Vec<f64>>();
        let false_alarms = std::iter::repeat_with(flat).take(1000).filter(|batches| drifts_up(batches, 0.0)).count();
        assert!(false_alarms <= 10, "{false_alarms} of 1000");
    }
}
