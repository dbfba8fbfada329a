//! A job on a fabric: the load of its collective on cables in each step, and its alternatives.
//!
//! The steps of a schedule follow each other: a step lasts as long as its most loaded channel needs for its bytes, with the cables of the
//! hosts. Latencies and overlapping steps are ignored, so that times compare schedules and are not a forecast.

use kasuri_config::fabric::Fabric;
use kasuri_formats::names::unknown;
use kasuri_network::id::{ChannelId, TerminalId};
use kasuri_network::network::tables::ForwardingTables;
use kasuri_network::routing::forwarding::{AddressChoice, TableRouting};
use kasuri_workload::collective::{COLLECTIVES, Collective, Least, MessageSize, Parameters};
use kasuri_workload::schedule::{self, Counted, SCHEDULES, Scheduled};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The ranks of a job and the routes between them.
#[derive(Debug)]
pub struct Job<'a> {
    fabric: &'a Fabric,
    tables: &'a Arc<ForwardingTables>,
    /// The terminal of each rank.
    terminals: Vec<TerminalId>,
    routes: Routes,
    /// Nanoseconds of a byte on each channel; 1 if rates are unknown.
    byte_time: Vec<f64>,
}

/// The channels from each router of a job to each of its terminals, all beginning with the channel behind that router.
#[derive(Debug)]
struct Routes {
    /// By rank: the position of its router among those of the job.
    home: Vec<u32>,
    /// The start of the path from each router to each rank, shape `[routers, ranks]`; one more entry.
    starts: Vec<u32>,
    channels: Vec<u32>,
}

impl Routes {
    fn of(fabric: &Fabric, tables: &ForwardingTables, terminals: &[TerminalId]) -> Result<Self, String> {
        let network = &fabric.network;
        let routers: BTreeSet<_> = terminals.iter().map(|&terminal| network.injection_port(terminal).0).collect();
        let place: BTreeMap<_, u32> = routers.iter().zip(0..).map(|(&router, number)| (router, number)).collect();
        let home = terminals.iter().map(|&terminal| place[&network.injection_port(terminal).0]).collect();
        let (mut starts, mut channels, mut path) = (vec![0], Vec::new(), Vec::new());
        for &router in &routers {
            for &to in terminals {
                let addresses = tables.addresses(to);
                let result = match addresses.is_empty() {
                    true => Err("it has no LID".to_owned()),
                    false => tables.follow(network, router, to, addresses.start, &mut path).map_err(|stray| stray.describe(network)),
                };
                match result {
                    Ok(()) => channels.extend(path.iter().map(|channel| channel.0)),
                    Err(problem) => {
                        // A terminal sends nothing to itself.
                        let from = terminals.iter().find(|&&from| from != to && network.injection_port(from).0 == router);
                        if let Some(from) = from {
                            let (from, to) = (network.terminal_names().of(from.0), network.terminal_names().of(to.0));
                            return Err(format!("a packet from {from} to {to} does not arrive: {problem}"));
                        }
                    }
                }
                starts.push(channels.len() as u32);
            }
        }
        Ok(Self { home, starts, channels })
    }

    /// The channels from the router of a rank to another rank.
    fn path(&self, from: u32, to: u32) -> &[u32] {
        let place = self.home[from as usize] as usize * self.home.len() + to as usize;
        &self.channels[self.starts[place] as usize..self.starts[place + 1] as usize]
    }
}

/// The load of a schedule on a fabric.
#[derive(Clone, Debug)]
pub struct JobCost {
    /// By step.
    pub steps: Vec<Step>,
    /// Bytes by channel, in all steps together.
    pub totals: Vec<u64>,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The time of its most loaded channel.
    pub time: f64,
    /// That channel.
    pub channel: ChannelId,
    /// Bytes on it.
    pub bytes: u64,
    /// Messages on it.
    pub messages: u32,
    /// Channels between routers with more than one message.
    pub shared: u32,
}

impl JobCost {
    /// The time of all steps one after the other.
    pub fn time(&self) -> f64 {
        self.steps.iter().map(|step| step.time).sum()
    }

    /// The step that takes the longest.
    pub fn worst(&self) -> Option<usize> {
        (0..self.steps.len()).rev().max_by(|&one, &other| self.steps[one].time.total_cmp(&self.steps[other].time))
    }
}

/// A lower bound on the time, and its channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The time.
    pub time: f64,
    /// The channel.
    pub channel: ChannelId,
}

/// An alternative for the job, and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// The algorithm or schedule.
    pub schedule: &'static str,
    /// The placement of the ranks.
    pub order: Order,
    /// The number of its steps.
    pub steps: usize,
    /// The time of all.
    pub time: f64,
}

/// The placement of ranks on the terminals of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As in the file.
    Given,
    /// By switch, then by port.
    BySwitch,
}

impl Order {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::BySwitch => "by switch",
        }
    }
}

/// A collective with the size of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobCollective<'a> {
    /// Its name.
    pub collective: &'a str,
    /// Bytes of a message: of the block for each destination in an all-to-all, of each rank's contribution in other collectives.
    pub bytes: u64,
}

impl JobCollective<'_> {
    /// Bytes per flit such that the messages of all ranks fit into 32-bit numbers.
    fn unit(self, ranks: u32) -> u32 {
        let all = self.bytes.saturating_mul(u64::from(ranks));
        all.div_ceil(1 << 31).clamp(1, u32::MAX.into()) as u32
    }

    fn parameters(self, ranks: u32) -> Parameters {
        Parameters { ranks, root: 0, size: MessageSize::of_bytes(self.bytes, self.unit(ranks)) }
    }
}

impl<'a> Job<'a> {
    /// Follows the routes between all ranks.
    ///
    /// # Errors
    /// A fabric without tables, or a pair of ranks without a route; the message says which.
    pub fn new(fabric: &'a Fabric, terminals: Vec<TerminalId>) -> Result<Self, String> {
        let tables = fabric.network.tables().ok_or("has no forwarding tables; import the dumps of `dump_lfts` or `ibroute` with it")?;
        let routes = Routes::of(fabric, tables, &terminals)?;
        let network = &fabric.network;
        let byte_time = |channel| fabric.gbit_per_second(channel).map_or_else(|| network.link(channel).period.into(), |rate| 8.0 / rate);
        let byte_time = (0..network.channel_count()).map(ChannelId).map(byte_time).collect();
        Ok(Self { fabric, tables, terminals, routes, byte_time })
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.terminals.len() as u32
    }

    /// The terminals of the ranks.
    pub fn terminals(&self) -> &[TerminalId] {
        &self.terminals
    }

    /// The routing that follows the fabric's tables.
    pub fn routing(&self) -> TableRouting {
        TableRouting::new(&self.fabric.network, Arc::clone(self.tables), AddressChoice::First)
    }

    /// The algorithm with which MPI libraries begin.
    ///
    /// # Errors
    /// An unknown collective, or sizes that do not fit.
    pub fn usual(&self, asked: JobCollective<'_>) -> Result<(&'static str, Box<dyn Collective>), String> {
        let entry = COLLECTIVES.iter().find(|entry| entry.collective == asked.collective).ok_or_else(|| {
            let mut names: Vec<&str> = COLLECTIVES.iter().map(|entry| entry.collective).collect();
            names.dedup();
            unknown("collective", asked.collective, names)
        })?;
        let schedule = entry.build(&asked.parameters(self.ranks())).map_err(|error| error.to_string())?;
        Ok((entry.schedule, schedule))
    }

    /// Counts all steps of a schedule for the ranks of these positions.
    pub fn run(&self, collective: &dyn Collective, asked: JobCollective<'_>, placed: &[u32]) -> JobCost {
        let unit = u64::from(asked.unit(self.ranks()));
        let mut counter = Counter::new(self);
        let mut steps = Vec::with_capacity(collective.rounds() as usize);
        for round in 0..collective.rounds() {
            for rank in 0..self.ranks() {
                if let Some(transfer) = collective.send(rank, round) {
                    counter.add(placed[rank as usize], placed[transfer.peer as usize], u64::from(transfer.flits) * unit);
                }
            }
            steps.extend(counter.end_step());
        }
        JobCost { steps, totals: counter.totals }
    }

    /// The messages of one step on each channel between routers with more than one, most loaded first.
    pub fn collisions(&self, collective: &dyn Collective, step: u32) -> Vec<(ChannelId, Vec<(u32, u32)>)> {
        let mut on: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
        for rank in 0..self.ranks() {
            if let Some(transfer) = collective.send(rank, step) {
                let path = self.routes.path(rank, transfer.peer);
                for &channel in &path[..path.len().saturating_sub(1)] {
                    on.entry(channel).or_default().push((rank, transfer.peer));
                }
            }
        }
        let mut shared: Vec<_> =
            on.into_iter().filter(|(_, messages)| messages.len() > 1).map(|(channel, messages)| (ChannelId(channel), messages)).collect();
        let time = |(channel, messages): &(ChannelId, Vec<(u32, u32)>)| self.byte_time[channel.index()] * messages.len() as f64;
        shared.sort_by(|one, other| time(other).total_cmp(&time(one)).then(one.0.cmp(&other.0)));
        shared
    }

    /// A lower bound on the time with these routes: the most that a host must send or receive, and in an all-to-all the total load of the
    /// busiest channel. `None` for an operation without data.
    pub fn bound(&self, asked: JobCollective<'_>) -> Option<Bound> {
        let unit = f64::from(asked.unit(self.ranks()));
        let least = Least::of(asked.collective, &self.parameters_or_none(asked)?)?;
        let network = &self.fabric.network;
        let injections = self.terminals.iter().map(|&terminal| network.injection_channel(terminal));
        let slowest = injections.max_by(|one, other| self.byte_time[one.index()].total_cmp(&self.byte_time[other.index()]))?;
        let bytes = least.sent.max(least.received) as f64 * unit;
        let of_hosts = Bound { time: bytes * self.byte_time[slowest.index()], channel: slowest };
        if asked.collective != "alltoall" {
            return Some(of_hosts);
        }
        let of_routes = self.busiest_of_all_pairs(asked.bytes);
        Some(if of_routes.time > of_hosts.time { of_routes } else { of_hosts })
    }

    /// The time of the busiest channel behind the first routers when each rank sends `bytes` to every other one.
    fn busiest_of_all_pairs(&self, bytes: u64) -> Bound {
        let mut at_home = BTreeMap::new();
        self.routes.home.iter().zip(0..).for_each(|(&home, rank)| at_home.entry(home).or_insert((rank, 0u64)).1 += 1);
        let mut messages = vec![0u64; self.byte_time.len()];
        for (&home, &(first, count)) in &at_home {
            for to in 0..self.ranks() {
                let senders = count - u64::from(self.routes.home[to as usize] == home);
                self.routes.path(first, to).iter().for_each(|&channel| messages[channel as usize] += senders);
            }
        }
        let mut busiest = Bound { time: 0.0, channel: ChannelId(0) };
        for (place, (&messages, byte_time)) in messages.iter().zip(&self.byte_time).enumerate() {
            let time = messages as f64 * bytes as f64 * byte_time;
            if time > busiest.time {
                busiest = Bound { time, channel: ChannelId(place as u32) };
            }
        }
        busiest
    }

    fn parameters_or_none(&self, asked: JobCollective<'_>) -> Option<Parameters> {
        let parameters = asked.parameters(self.ranks());
        parameters.check().is_ok().then_some(parameters)
    }

    /// The positions of the ranks in an order.
    pub fn placed(&self, order: Order) -> Vec<u32> {
        let mut placed: Vec<u32> = (0..self.ranks()).collect();
        if order == Order::BySwitch {
            placed.sort_by_key(|&rank| self.fabric.network.injection_port(self.terminals[rank as usize]));
        }
        placed
    }

    /// All algorithms of a collective in both orders of ranks, and the schedules made for a network, the fastest first; one is searched for
    /// at most `searched` ranks. `usual` is the cost of the algorithm of this name.
    pub fn alternatives(&self, asked: JobCollective<'_>, searched: u32, usual: (&'static str, &JobCost)) -> Vec<Alternative> {
        let mut found = Vec::new();
        let is_by_switch = self.placed(Order::BySwitch) == self.placed(Order::Given);
        let orders: &[Order] = if is_by_switch { &[Order::Given] } else { &[Order::Given, Order::BySwitch] };
        let mut add = |schedule: &'static str, order: &Order, outcome: &JobCost| {
            found.push(Alternative { schedule, order: *order, steps: outcome.steps.len(), time: outcome.time() });
        };
        for entry in COLLECTIVES.iter().filter(|entry| entry.collective == asked.collective) {
            // Some algorithms support only some numbers of ranks.
            let Ok(collective) = entry.build(&asked.parameters(self.ranks())) else { continue };
            if collective.is_made_for_sizes() {
                continue;
            }
            let is_too_much = collective.rounds() >= self.ranks().saturating_sub(1)
                && self.ranks() > MAX_RANKS_FOR_LONG_SCHEDULES
                && entry.schedule != "shift";
            if !is_too_much {
                for order in orders {
                    match order {
                        Order::Given if entry.schedule == usual.0 => add(entry.schedule, order, usual.1),
                        _ => add(entry.schedule, order, &self.run(collective.as_ref(), asked, &self.placed(*order))),
                    }
                }
            }
        }
        if asked.collective == "alltoall"
            && self.ranks() <= searched
            && let Ok((counted, outcome)) = self.scheduled("general", asked)
        {
            add(counted.entry.name, &Order::Given, &outcome);
        }
        found.sort_by(|one, other| one.time.total_cmp(&other.time));
        found
    }

    /// A schedule made for a network, for this job, and its cost.
    ///
    /// # Errors
    /// There is none of this name, or it does not serve these terminals.
    pub fn scheduled(&self, name: &str, asked: JobCollective<'_>) -> Result<(Counted, JobCost), String> {
        let entry = SCHEDULES
            .iter()
            .find(|entry| entry.name == name)
            .ok_or_else(|| unknown("schedule", name, SCHEDULES.iter().map(|entry| entry.name)))?;
        let job = schedule::Job::Terminals(self.terminals.clone());
        let counted = Counted::of(entry, &self.fabric.network, &self.routing(), &job).map_err(|error| error.to_string())?;
        let plan = &counted.plan;
        let position: BTreeMap<TerminalId, u32> = self.terminals.iter().zip(0..).map(|(&terminal, rank)| (terminal, rank)).collect();
        let placed: Vec<u32> = plan.terminals.iter().map(|terminal| position[terminal]).collect();
        let flits = asked.bytes.div_ceil(u64::from(asked.unit(self.ranks()))) as u32;
        let outcome = self.run(&Scheduled::new(Arc::clone(&plan.schedule), flits), asked, &placed);
        Ok((counted, outcome))
    }
}

/// With more ranks, only the first of the algorithms with a step for each rank is counted.
const MAX_RANKS_FOR_LONG_SCHEDULES: u32 = 1024;

/// The load of a channel in a step.
#[derive(Clone, Copy, Default)]
struct Load {
    bytes: u64,
    messages: u32,
}

/// Bytes on each channel, step by step.
struct Counter<'a> {
    job: &'a Job<'a>,
    load: Vec<Load>,
    touched: Vec<u32>,
    totals: Vec<u64>,
}

impl<'a> Counter<'a> {
    fn new(job: &'a Job<'a>) -> Self {
        let channels = job.byte_time.len();
        Self { job, load: vec![Load::default(); channels], touched: Vec::new(), totals: vec![0; channels] }
    }

    fn add(&mut self, from: u32, to: u32, bytes: u64) {
        let job = self.job;
        let injection = job.terminals[from as usize].0;
        for &channel in [injection].iter().chain(job.routes.path(from, to)) {
            let load = &mut self.load[channel as usize];
            if load.messages == 0 {
                self.touched.push(channel);
            }
            load.bytes += bytes;
            load.messages += 1;
        }
    }

    /// The step, if anything was sent in it.
    fn end_step(&mut self) -> Option<Step> {
        let first_between = 2 * self.job.fabric.network.terminal_count();
        let mut worst: Option<Step> = None;
        let mut shared = 0;
        for &channel in &self.touched {
            let place = channel as usize;
            let Load { bytes, messages } = std::mem::take(&mut self.load[place]);
            shared += u32::from(channel >= first_between && messages > 1);
            let time = bytes as f64 * self.job.byte_time[place];
            let is_worse = worst.is_none_or(|worst| time > worst.time || time == worst.time && channel > worst.channel.0);
            if is_worse {
                worst = Some(Step { time, channel: ChannelId(channel), bytes, messages, shared: 0 });
            }
            self.totals[place] += bytes;
        }
        self.touched.clear();
        worst.map(|worst| Step { shared, ..worst })
    }
}
