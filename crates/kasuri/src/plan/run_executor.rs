//! Computing the runs of a plan: each is taken from the store, or computed by one thread and kept.

use super::binding::Binding;
use super::cores::Cores;
use super::overdue::OverdueWatch;
use super::planned::{CheckedRun, Runs};
use super::preparer::{Preparer, at_load, classes_of_terminal, greatest_load};
use super::progress::Progress;
use super::{PreparedPoint, RunError, RunOptions, seconds_of_runs, shown};
use crate::completion_bound::{completion_bound, routing_bound};
use crate::cost::Meter;
use crate::efficiency::{self, Hints};
use crate::estimate::{Costs, Kind, Work, duration};
use crate::measure::{Measurement, Offer, Report, controller, saturation};
use crate::networks::Networks;
use crate::results::{NETWORK_ID, RowHead, RunRow, Vector, vectors};
use crate::stop::{Interruptible, Stop};
use crate::store::{Failure, ForeignClaim, Store, StoredRun};
use crate::tally::Tally;
use kasuri_config::{Search, Study, Until};
use kasuri_model::engine::{Engine, EngineError, Method, Outcome, Status};
use kasuri_model::scenario::Scenario;
use kasuri_network::id::{ChannelId, Port, RouterId, TerminalId};
use rayon::prelude::*;
use std::io::{self, IsTerminal, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The longest wait for a point that another process is computing: longer than a file server keeps the locks of a dead machine (90 s by NFS
/// 4). Then the point is computed a second time, which costs time but does no harm.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(120);

/// The time between two checks of such a point.
const CLAIM_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The end of a point.
pub(super) enum RunEnd {
    /// It was in the store.
    Reused(RunRow),
    /// It was computed, on at most `threads` threads.
    Computed { row: RunRow, vectors: Vec<Vector>, threads: usize },
    /// It failed; `refused` if its input is to blame.
    Failed { row: RunRow, refused: bool },
    /// The experiment was stopped before it was finished.
    Stopped,
}

/// The end of a point, and a message on it.
pub(super) type RunReport = (RunEnd, Option<String>);

/// The data that the threads share.
pub(super) struct RunExecutor<'a> {
    runs: &'a Runs<'a>,
    paranoid: bool,
    cores: Cores,
    /// True if runs are computed one after the other, on the calling thread.
    one_by_one: bool,
    stop: Stop,
    store: Option<&'a Store>,
    networks: Networks,
    /// The first error of the store or of a changed file; it stops everything.
    failure: Mutex<Option<RunError>>,
    costs: &'a Costs,
    progress: Progress,
    /// True if overdue runs are reported on standard error.
    reports_overdue: bool,
    tally: Tally,
    hints: Hints,
}

/// The reasons why a point has no outcome.
enum NoOutcome {
    Stopped,
    Refused(String),
    Defect(String),
}

impl From<EngineError> for NoOutcome {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Unbalanced { .. } | EngineError::Program { .. } | EngineError::Standstill { .. } => {
                Self::Defect(error.to_string())
            }
            EngineError::Refused(_) => Self::Refused(error.to_string()),
        }
    }
}

impl<'a> RunExecutor<'a> {
    /// Prepares to compute some of the runs of a plan.
    pub(super) fn new(runs: &'a Runs<'a>, options: &'a RunOptions, store: Option<&'a Store>, cores: Cores, chosen: &[CheckedRun]) -> Self {
        options.tally.plan(chosen.len());
        Self {
            runs,
            paranoid: options.paranoid,
            one_by_one: cores.jobs() == 1,
            cores,
            stop: options.stop.of_experiment(),
            store,
            networks: Networks::default(),
            failure: Mutex::new(None),
            costs: &options.costs,
            progress: progress(chosen, options),
            reports_overdue: options.progress,
            hints: Hints::default(),
            tally: options.tally.clone(),
        }
    }

    /// True if several runs at a time need threads. Else the calling thread computes them.
    pub(super) fn needs_threads(&self) -> bool {
        !self.one_by_one
    }

    /// Finishes all of these runs on the threads of the current pool, if it [needs](Self::needs_threads) one; in their order.
    ///
    /// # Errors
    /// The store cannot be used, or a file that runs name has changed.
    pub(super) fn finish_all(self, runs: &[CheckedRun]) -> Result<Vec<RunReport>, RunError> {
        let all = (0..runs.len()).collect();
        let mut ends = self.longest_first(all, runs, |planned, preparer| self.finish(planned, preparer).ok());
        // Runs of other processes come last: by then most of them are in the store.
        let claimed: Vec<usize> = (0..runs.len()).filter(|&number| ends[number].is_none()).collect();
        let waited = self.longest_first(claimed.clone(), runs, |planned, preparer| self.wait_and_finish(planned, preparer));
        claimed.into_iter().zip(waited).for_each(|(number, end)| ends[number] = Some(end));
        self.progress.clear();
        match self.failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(ends.into_iter().flatten().collect()),
        }
    }

    /// The results of `finish` for the runs of some numbers, in their order. A free thread takes the longest run left, so that no long run
    /// begins when the others are about to end.
    fn longest_first<T: Send>(
        &self,
        mut numbers: Vec<usize>,
        runs: &[CheckedRun],
        finish: impl Fn(&CheckedRun, &mut Preparer<'a>) -> T + Sync,
    ) -> Vec<T> {
        numbers.sort_by(|&one, &other| runs[other].work.order(&runs[one].work).then(one.cmp(&other)));
        let finish = |preparer: &mut Preparer<'a>, number: usize| (number, finish(&runs[number], preparer));
        let mut ends: Vec<(usize, T)> = if self.one_by_one {
            let mut preparer = self.runs.preparer();
            numbers.into_iter().map(|number| finish(&mut preparer, number)).collect()
        } else {
            numbers.into_iter().par_bridge().map_init(|| self.runs.preparer(), finish).collect()
        };
        ends.sort_by_key(|&(number, _)| number);
        ends.into_iter().map(|(_, end)| end).collect()
    }

    /// Takes a run from the store or computes and keeps it.
    ///
    /// # Errors
    /// Another process is computing it.
    fn finish(&self, planned: &CheckedRun, preparer: &mut Preparer<'a>) -> Result<RunReport, ForeignClaim> {
        // Until the row is in the store.
        let _claim = self.store.map_or(Ok(None), |store| store.claim(&planned.key.to_string()))?;
        Ok(self.finish_claimed(planned, preparer))
    }

    /// Waits for the process that is computing a run and takes it from the store, or computes it if that process did not.
    fn wait_and_finish(&self, planned: &CheckedRun, preparer: &mut Preparer<'a>) -> RunReport {
        let begin = Instant::now();
        while !self.stop.is_requested() && begin.elapsed() < CLAIM_TIMEOUT {
            if let Ok(finished) = self.finish(planned, preparer) {
                return finished;
            }
            std::thread::sleep(CLAIM_POLL_INTERVAL);
        }
        self.finish_claimed(planned, preparer)
    }

    /// Takes a run from the store or computes and keeps it; with a message if a file was set aside.
    fn finish_claimed(&self, planned: &CheckedRun, preparer: &mut Preparer<'a>) -> RunReport {
        if self.stop.is_requested() {
            return (RunEnd::Stopped, None);
        }
        let point = match self.runs.prepare(planned, preparer) {
            Ok(point) => point,
            Err(error) => return (self.give_up(error), None),
        };
        let found = self.store.map_or(Ok(StoredRun::Nothing), |store| store.find(point.key()));
        let (end, message) = match found {
            Ok(StoredRun::Run(row)) => (self.reuse(&point, row), None),
            Ok(StoredRun::Nothing) => (self.compute(&point, preparer, &planned.work), None),
            Ok(StoredRun::SetAside(message)) => (self.compute(&point, preparer, &planned.work), Some(message)),
            Err(error) => (self.give_up(error), None),
        };
        let end = self.checked(end, &point);
        self.progress.finish_run(self.costs.seconds(&planned.work), !matches!(end, RunEnd::Reused(_)));
        self.tally.add();
        (end, message)
    }

    /// A finished run; one of an older store gets its network.
    fn reuse(&self, point: &PreparedPoint, row: RunRow) -> RunEnd {
        match self.networks.keep(&point.study.scenario.network, row.get(NETWORK_ID).as_str(), self.store) {
            Ok(id) => {
                let mut row = row.with_head(&point.head);
                row.set(NETWORK_ID, id);
                RunEnd::Reused(row)
            }
            Err(error) => self.give_up(error),
        }
    }

    /// Refuses a row that shows another input than its run's.
    fn checked(&self, end: RunEnd, point: &PreparedPoint) -> RunEnd {
        let (RunEnd::Reused(row) | RunEnd::Computed { row, .. } | RunEnd::Failed { row, .. }) = &end else { return end };
        match shown::check_row(row, point) {
            Ok(()) => end,
            Err(problem) => self.fail(point, format!("internal error: {problem}"), false),
        }
    }

    fn compute(&self, point: &PreparedPoint, preparer: &mut Preparer<'a>, work: &Work) -> RunEnd {
        let engine = preparer.engine(&point.study);
        let _begun = self.cores.begin_run();
        let begin = Meter::begin();
        // A panic is an internal error and does not affect the other runs. Its half-changed data dies with the run.
        let seconds = self.reports_overdue.then(|| self.costs.seconds(work));
        let notice = |sentence: String| self.progress.print(&format!("note: run {} {sentence}", point.key()));
        let trial = catch_unwind(AssertUnwindSafe(|| match point.study.measure.search {
            // Formulas know the saturation load without a search.
            None => self.trial(point.study.clone(), engine, &begin, seconds, &notice).map(|trial| trial.row(&point.head)),
            Some(Search::Saturation) if point.method() == Method::Formulas => {
                self.trial(point.study.clone(), engine, &begin, None, &notice).map(|trial| trial.row(&point.head))
            }
            Some(Search::Saturation) => self.search(point, preparer, engine, &begin),
        }));
        let (mut row, vectors) = match trial {
            Ok(Ok(finished)) => finished,
            Ok(Err(NoOutcome::Stopped)) => return RunEnd::Stopped,
            Ok(Err(NoOutcome::Refused(message))) => return self.fail(point, message, true),
            Ok(Err(NoOutcome::Defect(message))) => return self.fail(point, message, false),
            Err(payload) => return self.fail(point, format!("internal error: {}", panic_text(&*payload)), false),
        };
        begin.end(&mut row);
        // Runs for a hint do not count in the run's time.
        match self.hint(point, preparer, engine, &row) {
            Ok(hint) => row.set("hint", hint),
            Err(NoOutcome::Stopped) => return RunEnd::Stopped,
            Err(NoOutcome::Refused(_) | NoOutcome::Defect(_)) => {}
        }
        // Before the row: a row guarantees the other files.
        match self.networks.keep(&point.study.scenario.network, None, self.store) {
            Ok(id) => row.set(NETWORK_ID, id),
            Err(error) => return self.give_up(error),
        }
        let threads = begin.threads_used();
        match self.store {
            None => RunEnd::Computed { row, vectors, threads },
            Some(store) => match store.keep(&row, &vectors) {
                Ok(()) => RunEnd::Computed { row, vectors: Vec::new(), threads },
                Err(error) => self.give_up(error),
            },
        }
    }

    /// Keys that make the collective of a run faster: the same run with them has been tried.
    fn hint(
        &self,
        point: &PreparedPoint,
        preparer: &mut Preparer<'a>,
        engine: &dyn Engine,
        row: &RunRow,
    ) -> Result<Option<String>, NoOutcome> {
        let Some(suggestion) = self.hints.suggestion(preparer.preparation(), point, row) else { return Ok(None) };
        let settings = suggestion.settings(&point.point, &point.study);
        let changed = efficiency::with_settings(&point.point, &settings).filter(|_| !settings.is_empty());
        let (Some(changed), Some(completion)) = (changed, row.number("completion_time")) else { return Ok(None) };
        // Keys that cannot be set together, or a routing that can deadlock, are no hint.
        let Ok(mut study) = preparer.prepare(&changed) else { return Ok(None) };
        let most = efficiency::patience(completion).min(study.measure.max_cycles);
        (study.measure.max_cycles, study.scenario.max_cycles) = (most, most);
        let tried = catch_unwind(AssertUnwindSafe(|| self.trial(study, engine, &Meter::begin(), None, &|_| {})));
        let trial = match tried {
            Ok(trial) => trial?,
            Err(payload) => return Err(NoOutcome::Defect(panic_text(&*payload).to_owned())),
        };
        let found = completion_bound(&trial.study).zip(trial.outcome.completion_time.filter(|_| trial.outcome.status == Status::Completed));
        Ok(found.and_then(|(bound, tried)| suggestion.line(&settings, [completion, tried, bound])))
    }

    /// A run without a result. The store notes it for `kasuri collect`; the next process tries again.
    fn fail(&self, point: &PreparedPoint, message: String, refused: bool) -> RunEnd {
        let row = RunRow::failed(&point.head, &message);
        match self.store.map_or(Ok(()), |store| store.keep_failure(point.key(), &Failure { message, refused })) {
            Ok(()) => RunEnd::Failed { row, refused },
            Err(error) => self.give_up(error),
        }
    }

    /// Stops everything: further results could not be kept.
    fn give_up(&self, error: impl Into<RunError>) -> RunEnd {
        self.stop.halt();
        self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert_with(|| error.into());
        RunEnd::Stopped
    }

    /// Runs a study once, on all free threads that speed it up. `notice` gets a sentence if that takes far more than the expected seconds.
    fn trial(
        &self,
        mut study: Study,
        engine: &dyn Engine,
        meter: &Meter,
        seconds: Option<f64>,
        notice: &dyn Fn(String),
    ) -> Result<Trial, NoOutcome> {
        study.scenario.paranoid = self.paranoid;
        let mut controller = OverdueWatch::new(controller(&study), seconds, notice);
        let mut interruptible = Interruptible::new(&mut controller, &self.stop);
        let mut prepared = engine.prepare(&study.scenario).map_err(EngineError::from)?;
        let lent = self.cores.lend(prepared.useful_threads(), Kind::of(&study, engine.method()).takes_any_threads());
        let binding = Binding::of(lent.threads());
        if lent.threads() > 1 {
            prepared.use_threads(binding.bind(meter.threads(lent.threads()))).map_err(EngineError::from)?;
        }
        let outcome = prepared.run(&mut interruptible)?;
        drop(binding);
        drop(lent);
        if interruptible.is_interrupted() {
            return Err(NoOutcome::Stopped);
        }
        let report = controller.report();
        Ok(Trial { study, outcome, report })
    }

    /// Searches the saturation load of a point. A deadlock does not show the sustained load: it ends the search.
    fn search(
        &self,
        point: &PreparedPoint,
        preparer: &mut Preparer<'a>,
        engine: &dyn Engine,
        meter: &Meter,
    ) -> Result<(RunRow, Vec<Vector>), NoOutcome> {
        match self.search_load(point, preparer, engine, meter) {
            Ok(finished) => Ok(finished),
            Err(NoSaturation::NoOutcome(missing)) => Err(missing),
            Err(NoSaturation::Deadlock(trial, load)) => {
                let (mut row, vectors) = trial.row(&point.head);
                row.add_message(&format!("this ended the search, at a load of {load}"));
                Ok((row, vectors))
            }
        }
    }

    fn search_load(
        &self,
        point: &PreparedPoint,
        preparer: &mut Preparer<'a>,
        engine: &dyn Engine,
        meter: &Meter,
    ) -> Result<(RunRow, Vec<Vector>), NoSaturation> {
        let mut run = |load: f64| {
            let study = preparer
                .preparation()
                .study(&at_load(&point.point, load))
                .map_err(|error| NoSaturation::NoOutcome(NoOutcome::Refused(error.to_string())))?;
            match self.trial(study, engine, meter, None, &|_| {}).map_err(NoSaturation::NoOutcome)? {
                trial if trial.outcome.status == Status::Deadlock => Err(NoSaturation::Deadlock(Box::new(trial), load)),
                trial => Ok(trial),
            }
        };
        let highest = greatest_load(&point.study);
        let zero_load_latency = run(saturation::ZERO_LOAD)?.outcome.packet_latency.mean();
        let sustained = |trial: &Trial| saturation::is_sustained(&trial.outcome, &Offer::of(&trial.study.scenario), zero_load_latency);
        let mut found = saturation::search(highest, run, sustained)?;
        // The search has its answer, though its last trial may have been cut short.
        if found.trial.outcome.status == Status::MaxCycles {
            found.trial.outcome.status = if found.load.is_some() { Status::Saturated } else { Status::Converged };
        }
        let (mut row, vectors) = found.trial.row(&point.head);
        row.set("zero_load_latency", zero_load_latency);
        row.set("saturation_load", found.load.map(|load| load * classes_of_terminal(&point.study.scenario) as f64));
        let what = if found.load.is_some() { "the saturation load" } else { "the highest load, which the network sustains" };
        row.add_message(&format!("this row shows {what}; {} loads were tried", found.trials + 1));
        Ok((row, vectors))
    }
}

/// The reasons why a search found nothing.
enum NoSaturation {
    NoOutcome(NoOutcome),
    /// A trial deadlocked at this load.
    Deadlock(Box<Trial>, f64),
}

/// A finished run.
struct Trial {
    study: Study,
    outcome: Outcome,
    report: Report,
}

impl Trial {
    /// A note on links of several speeds at a terminal, such as a GPU with NVLink and a network card, which message-level engines do not
    /// distinguish.
    fn links_take_turns(&self) -> Option<String> {
        let scenario = &self.study.scenario;
        let network = &scenario.network;
        let period = |channel: ChannelId| network.link(channel).period;
        let differ = |router: RouterId| {
            let outputs = (0..network.port_count(router)).filter_map(|port| network.output_channel(router, port as Port));
            let mut periods = outputs.filter(|&channel| network.ejected_terminal(channel).is_none()).map(period);
            periods.next().is_some_and(|first| periods.any(|other| other != first))
        };
        let follows_messages = scenario.workload.is_some() && scenario.endpoint.is_none() && self.outcome.formulas.is_none();
        let differ_at_terminals = || (0..network.terminal_count()).any(|terminal| differ(network.injection_port(TerminalId(terminal)).0));
        let text = "a terminal sends its messages one after the other: links of different speed at its router take turns";
        (follows_messages && differ_at_terminals()).then(|| text.to_owned())
    }

    fn row(&self, head: &RowHead) -> (RunRow, Vec<Vector>) {
        let scenario = &self.study.scenario;
        // A batch has no load.
        let is_open = scenario.classes.iter().any(|class| class.packets_per_terminal.is_none());
        let offer = is_open.then(|| Offer::of(scenario));
        let mut row = RunRow::new(head, &scenario.network, offer.as_ref(), &self.outcome, &self.report);
        if let Some(offered) = scenario.workload.as_ref().and_then(|closed| closed.workload.offered_flits_per_cycle()) {
            row.set("offered_load", offered / f64::from(scenario.network.terminal_count()));
        }
        let left_out = scenario.workload.iter().flat_map(|closed| closed.workload.unmodelled()).chain(self.links_take_turns());
        row.set("not_modelled", self.outcome.not_modelled.iter().cloned().chain(left_out).collect::<Vec<_>>());
        if let Some(users) = &scenario.users {
            row.set("users", crate::users::column(users, scenario, &self.outcome));
        }
        if self.outcome.status == Status::Saturated {
            row.set_saturated();
        }
        if let Some(cycle_ns) = scenario.units.cycle_ns {
            row.set_nanoseconds(cycle_ns);
        }
        if self.study.measure.until == Until::FirstTerminal {
            row.set_throughput_rate(&scenario.network, sending_terminals(scenario), &self.outcome);
        }
        if let Some((bound, completion)) = completion_bound(&self.study).zip(self.outcome.completion_time) {
            row.set_efficiency(bound, routing_bound(&self.study, &self.outcome, bound), completion);
        }
        match self.outcome.status {
            Status::MaxCycles => row.add_message(&self.stopped_at_limit(&row)),
            Status::Deadlock if self.outcome.deadlock.is_empty() => row.add_message(&self.describe_standstill()),
            Status::Deadlock => {
                row.add_message(&format!("deadlock detected at cycle {}: packets wait for each other in a cycle", self.outcome.cycles))
            }
            Status::Converged | Status::Saturated | Status::Completed => {}
        }
        let links = scenario.users.as_deref().and_then(|users| crate::users::logical_links(users, &scenario.network));
        let vectors = vectors(&scenario.network, &self.outcome).into_iter().chain(links).collect();
        (row, vectors)
    }
}

/// Terminals that send anything.
fn sending_terminals(scenario: &Scenario) -> u32 {
    let sends = |&terminal: &u32| scenario.classes.iter().any(|class| !class.pattern.is_silent(TerminalId(terminal)));
    (0..scenario.network.terminal_count()).filter(sends).count() as u32
}

impl Trial {
    /// The reason why programs wait although the network is empty.
    fn describe_standstill(&self) -> String {
        let refused = self.outcome.link_errors.map_or(0, |errors| errors.refused_packets);
        match refused {
            0 => "programs are blocked on messages that were never sent".to_owned(),
            _ => format!("{refused} damaged packets were refused and never resent, and programs are blocked on them"),
        }
    }

    fn stopped_at_limit(&self, row: &RunRow) -> String {
        let reached = match (row.number("packet_latency_ci95"), row.number("packet_latency_mean")) {
            (Some(width), Some(mean)) if mean > 0.0 => format!(", at a precision of {:.2} %", 100.0 * width / mean),
            _ => String::new(),
        };
        let goal = if self.study.scenario.is_closed() { "completing" } else { "converging" };
        format!("stopped at measure.max_cycles = {} before {goal}{reached}", self.study.measure.max_cycles)
    }
}

/// The message of a panic.
pub(crate) fn panic_text(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("panic without a message")
}

/// The shortest time that is announced when there is no progress bar.
const ANNOUNCED_SECONDS: f64 = 60.0;

fn progress(chosen: &[CheckedRun], options: &RunOptions) -> Progress {
    // Without a progress bar no estimate is needed.
    if !options.progress {
        return Progress::hidden();
    }
    let works: Vec<Work> = chosen.iter().map(|planned| planned.work).collect();
    let expected = seconds_of_runs(&options.costs, &works, options.jobs, options.threads);
    if !io::stderr().is_terminal() {
        if expected > ANNOUNCED_SECONDS {
            let runs = if works.len() == 1 { "this run takes".to_owned() } else { format!("{} runs take", works.len()) };
            let _ = writeln!(io::stderr(), "kasuri: {runs} about {}, less what is there already", duration(expected));
        }
        return Progress::hidden();
    }
    Progress::new(works.len(), expected, works.iter().map(|work| options.costs.seconds(work)).sum())
}
