//! Users whose messages share no channel: the workload of each is simulated alone, those of several users on several threads.
//!
//! Users have terminals of their own, and often parts of the network of their own, too. Then nothing that one does changes anything of the
//! others, and each has a time of its own: fewer flows meet in a round of new rates, messages of a round begin and end together, and threads
//! need not wait for each other. Which channels a user's messages take shows while they are simulated: each path that is found claims its
//! channels for the user. Once two users have claimed the same channel, all are simulated together from the beginning on. Whether that
//! happens hangs neither on the number of threads nor on which of them is faster.

use super::Fluid;
use super::outcome::Finale;
use super::territory::{Claims, Territory};
use crate::paths::{Paths, Request, Walk};
use crate::statistics::Tally;
use kasuri_model::engine::{Command, Controller, Interval, Outcome, Status, Threads};
use kasuri_model::scenario::{ClosedWorkload, Scenario};
use kasuri_network::predictor;
use kasuri_workload::translation::users::Users;
use kasuri_workload::workload::Message;
use kasuri_workload::workload::agenda::Agenda;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Time between two polls of the controller by an idle thread.
const POLL_PERIOD: Duration = Duration::from_millis(5);

/// As many threads are of use as take no more than this together, bytes; two always are.
const MOST_BYTES: u64 = 1 << 29;

/// Messages for each terminal of the network, up to which all messages of a workload claim their channels ahead.
const MAX_MESSAGES_PER_TERMINAL: u64 = 16;

/// What is counted of each part for itself: sums of times, of which the order of the sum is seen, and when it ended.
struct PartCounts {
    part: usize,
    tallies: [Tally; 3],
    end: f64,
    done: f64,
    standstill: Option<String>,
}

/// Lets a part run to its end, or until nothing is to be gained any more by running parts alone.
struct ToTheEnd<'c> {
    claims: &'c Claims,
    /// Who is to be asked whether all should end; only on the thread of the run.
    outer: Option<&'c dyn Controller>,
}

impl Controller for ToTheEnd<'_> {
    fn interval_cycles(&mut self) -> u64 {
        u64::MAX
    }

    fn interval_ended(&mut self, interval: &Interval) -> Command {
        Command::End(if interval.completed { Status::Completed } else { Status::MaxCycles })
    }

    fn should_stop(&self) -> bool {
        if self.outer.is_some_and(Controller::should_stop) {
            self.claims.end();
        }
        self.claims.is_over()
    }
}

/// May the workloads of users be simulated one by one? Not if more than the channels of the network connects them.
pub(crate) fn are_possible(scenario: &Scenario) -> bool {
    let (Some(closed), Some(users)) = (&scenario.workload, &scenario.users) else { return false };
    let is_alone = scenario.classes.is_empty() && closed.interfaces.is_none() && scenario.hosts.is_none() && scenario.failure.is_none();
    // Messages of a timeline have numbers in the order in which they begin.
    let is_plain = !scenario.timeline && scenario.router.predictor == predictor::NONE && !scenario.routing.facts().observes_congestion;
    is_alone && is_plain && have_own_terminals(scenario, users)
}

/// Has each terminal at most one user of those that have workloads?
fn have_own_terminals(scenario: &Scenario, users: &Users) -> bool {
    let mut is_taken = vec![false; scenario.network.terminal_count() as usize];
    let running = users.users.iter().filter(|user| !user.classes.is_empty());
    running.flat_map(|user| &user.nodes).all(|node| !std::mem::replace(&mut is_taken[node.index()], true))
}

/// How many threads are of use, each of which takes so many bytes.
pub(crate) fn useful_threads(scenario: &Scenario, bytes: u64) -> usize {
    let parts = scenario.workload.as_ref().map_or(1, |closed| closed.parts.len());
    parts.min((MOST_BYTES / bytes.max(1)).max(2) as usize).max(1)
}

/// Simulates the workloads of users one by one, each on one of the threads. `None` if they share a channel, or if one does not come to its
/// end: then all have to be simulated together, from the beginning on.
pub(crate) fn run<'s>(
    scenario: &'s Scenario,
    threads: &Threads,
    controller: &mut dyn Controller,
    begin: &(dyn Fn() -> Fluid<'s> + Sync),
) -> Option<Outcome> {
    let closed = scenario.workload.as_ref()?;
    let until = controller.waits_until()?.min(scenario.max_cycles);
    let agendas = (0..closed.parts.len()).map(|part| scenario.agenda_of_part(part)).collect::<Option<Vec<_>>>()?;
    let claims = Arc::new(Claims::new(scenario.network.channel_count()));
    claim_ahead(scenario, closed, &agendas, &claims);
    if claims.is_over() {
        return None;
    }
    let mut parts: Vec<(usize, Agenda<'s>)> = agendas.into_iter().enumerate().collect();
    // The longest first, lest it begins when the others are done.
    parts.sort_by_key(|&(part, _)| std::cmp::Reverse(closed.parts[part].messages));
    let work = Work { parts: Mutex::new(parts.into_iter()), claims, until, begin };
    let (mut fluid, mut counts) = work.on_threads(threads, controller)?;
    counts.sort_by_key(|counts| counts.part);
    let finale = fluid.put_together(&counts);
    let interval = fluid.close_interval(0);
    let status = if let Command::End(status) = controller.interval_ended(&interval) { status } else { Status::Completed };
    Some(fluid.outcome_with(status, finale))
}

/// Claims what messages take before any is simulated: the first of each terminal, and of a workload of few messages all whose paths hang on
/// nothing else. So most users that share channels are told before anything has been done in vain.
fn claim_ahead(scenario: &Scenario, closed: &ClosedWorkload, agendas: &[Agenda<'_>], claims: &Claims) {
    let mut finder = Finder { scenario, closed, claims, paths: Paths::new(scenario), channels: Vec::new() };
    let mut has_sent = vec![false; scenario.network.terminal_count() as usize];
    let firsts = agendas.iter().flat_map(Agenda::ready);
    firsts
        .filter(|message| !std::mem::replace(&mut has_sent[message.source.index()], true))
        .for_each(|message| finder.claim(message, true));
    if closed.workload.messages() <= MAX_MESSAGES_PER_TERMINAL * u64::from(scenario.network.terminal_count()) {
        closed.workload.each_message(&mut |message| finder.claim(message, false));
    }
}

/// Finds the paths of messages ahead.
struct Finder<'f> {
    scenario: &'f Scenario,
    closed: &'f ClosedWorkload,
    claims: &'f Claims,
    paths: Paths,
    /// Memory of a path, used again and again.
    channels: Vec<u32>,
}

impl Finder<'_> {
    /// Claims the channels of a message; of one that is not the first of its terminal, if its path is not drawn.
    fn claim(&mut self, message: &Message, is_first: bool) {
        if self.claims.is_over() {
            return;
        }
        let &Message { source, destination, token, .. } = message;
        let part = self.closed.part_of(token);
        let available = self.closed.parts[part].virtual_channels;
        let request = Request { source, destination, serial: 0, available };
        let mut walk = Walk::new(request, std::mem::take(&mut self.channels));
        // What is wrong is told by a run of all of them.
        if self.paths.find(self.scenario, std::slice::from_mut(&mut walk), &|_| 0).is_err() {
            self.claims.end();
        }
        if is_first || !walk.has_drawn() {
            self.claims.claim(part, &walk.channels);
        }
        self.channels = walk.channels;
    }
}

/// The parts that are still to be simulated, and how.
struct Work<'w, 's> {
    parts: Mutex<std::vec::IntoIter<(usize, Agenda<'s>)>>,
    claims: Arc<Claims>,
    until: u64,
    begin: &'w (dyn Fn() -> Fluid<'s> + Sync),
}

/// A simulation that has been through some parts, and what each of them has counted for itself.
type Done<'s> = (Fluid<'s>, Vec<PartCounts>);

impl<'s> Work<'_, 's> {
    /// Simulates all parts. `None` if that is over before.
    fn on_threads(&self, threads: &Threads, controller: &dyn Controller) -> Option<Done<'s>> {
        let count = threads.count.min(self.waiting().len());
        let own = thread::current();
        thread::scope(|scope| {
            let spawn = |number: usize| {
                let (Threads { at_begin, at_end, .. }, own) = (threads.clone(), own.clone());
                let serve = move || {
                    at_begin(number);
                    let done = self.simulate(None);
                    at_end();
                    own.unpark();
                    done
                };
                thread::Builder::new().name(format!("kasuri-part-{number}")).spawn_scoped(scope, serve).ok()
            };
            let helpers: Vec<_> = (1..count).filter_map(spawn).collect();
            let mut done = self.simulate(Some(controller));
            while !(ToTheEnd { claims: &self.claims, outer: Some(controller) }).should_stop()
                && helpers.iter().any(|helper| !helper.is_finished())
            {
                thread::park_timeout(POLL_PERIOD);
            }
            let others: Vec<_> = helpers.into_iter().map(|helper| helper.join().unwrap_or_else(|panic| resume_unwind(panic))).collect();
            if self.claims.is_over() {
                return None;
            }
            for (fluid, counts) in others {
                done.0.absorb(fluid);
                done.1.extend(counts);
            }
            Some(done)
        })
    }

    /// Simulates one part after the other, as long as there are any.
    fn simulate(&self, outer: Option<&dyn Controller>) -> Done<'s> {
        // Whoever ends by a panic keeps no others waiting.
        let guard = EndOnPanic(&self.claims);
        let (mut fluid, mut counts) = ((self.begin)(), Vec::new());
        let controller = ToTheEnd { claims: &self.claims, outer };
        while !self.claims.is_over() {
            let Some((part, agenda)) = self.waiting().next() else { break };
            fluid.begin_part(part, agenda, Territory { claims: Arc::clone(&self.claims), part });
            match fluid.advance(self.until, &controller) {
                // What is wrong is told by a run of all of them.
                Ok(()) if fluid.is_complete() => counts.push(fluid.end_part(part)),
                _ => self.claims.end(),
            }
        }
        drop(guard);
        (fluid, counts)
    }

    /// The parts that nobody simulates yet.
    fn waiting(&self) -> MutexGuard<'_, std::vec::IntoIter<(usize, Agenda<'s>)>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the work of all threads when one of them panics.
struct EndOnPanic<'c>(&'c Claims);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end();
        }
    }
}

impl<'a> Fluid<'a> {
    /// Begins a part at time 0. None other is under way, and none that has been shares a channel or a terminal with it.
    fn begin_part(&mut self, part: usize, agenda: Agenda<'a>, territory: Territory) {
        (self.now, self.rounds) = (0.0, 0);
        self.ends.to_come = self.scenario.workload.as_ref().map(|closed| closed.parts[part].messages);
        self.rates.graph.restart();
        self.routes.territory = Some(territory);
        self.workload.begin_part(part, agenda);
    }

    /// Takes what a part that has been done has counted for itself.
    fn end_part(&mut self, part: usize) -> PartCounts {
        let agenda = self.workload.agenda.as_ref();
        let (done, standstill) = (agenda.map_or(0.0, Agenda::last_done), agenda.and_then(Agenda::standstill));
        PartCounts { part, tallies: self.counts.statistics.take_tallies(), end: self.now, done, standstill }
    }

    /// Adds what other parts have counted on another thread, all but what each has for itself.
    fn absorb(&mut self, mut other: Self) {
        self.flush_cohort_counts();
        other.flush_cohort_counts();
        self.rates.graph.add_all_carried(&other.rates.graph);
        self.counts.absorb(&other.counts);
        self.routes.paths.absorb(&other.routes.paths);
        for (last, &time) in self.ends.completion.iter_mut().zip(&other.ends.completion) {
            *last = last.max(time);
        }
        self.workload.absorb(&other.workload);
    }

    /// Adds what each part has for itself, in the order of the parts; all have been done.
    fn put_together(&mut self, counts: &[PartCounts]) -> Finale {
        let mut finale = Finale::default();
        self.now = 0.0;
        self.ends.to_come = Some(0);
        self.workload.agenda = None;
        for part in counts {
            self.now = self.now.max(part.end);
            self.counts.statistics.tallies().into_iter().zip(&part.tallies).for_each(|(sum, tally)| sum.absorb(tally));
            finale.done = finale.done.max(part.done);
            if finale.standstill.is_empty() {
                finale.standstill.extend(part.standstill.clone());
            }
        }
        finale
    }
}
