//! From the values of one point to what an engine receives.

use super::context::Context;
use super::document::{Document, Part};
use super::error::{ConfigError, ConfigErrors};
use super::known::Known;
use super::measure::{Measure, Search};
use super::point::Point;
use super::pool::Pool;
use super::recorded::Recorded;
use super::schemas::Schemas;
use super::section::Section;
use super::shown::shown;
use super::terminal_ports::{self, TERMINAL_PORTS, Wired};
use super::{endpoint, faults, host_memory, measure, network, router, shape, trace, traffic, users};
use crate::routing::ALL_ROUTINGS;
use kasuri_formats::names::unknown;
use kasuri_model::router::{Pipeline, RouterParameters};
use kasuri_model::scenario::{ClosedWorkload, Epoch, Failure, Scenario, TrafficClass, longest_packet};
use kasuri_network::network::Network;
use kasuri_network::registry::Entry;
use kasuri_network::rng::Streams;
use kasuri_network::routing::per_destination::PerDestination;
use kasuri_network::routing::{Routing, RoutingAlgorithm, RoutingError, VirtualChannels, check_survival};
use kasuri_network::topology::Files;
use kasuri_workload::endpoint::{Endpoint, EndpointContext, Prepared};
use kasuri_workload::units::Units;
use std::rc::Rc;
use std::sync::Arc;
use toml::{Table, Value};

/// One run: what is simulated, how deep, how long.
#[derive(Clone, Debug)]
pub struct Study {
    /// The name of the engine.
    pub engine: String,
    /// `title`, empty if the file has none.
    pub title: String,
    /// What is simulated.
    pub scenario: Scenario,
    /// How long a run lasts and what ends it.
    pub measure: Measure,
    /// `routing.allow_deadlock`: run although packets may come to wait for each other in a cycle.
    pub allow_deadlock: bool,
    /// The files that its traffic, workloads and users were read from, sorted.
    pub files: Vec<String>,
}

impl Study {
    /// Does the routing promise that packets cannot wait for each other in a cycle, and has it the virtual channels for that?
    /// Where it does not, the channel dependency graph tells. A promise is made to each class of traffic for itself, so that it
    /// holds for several only if they use the same virtual channels or different ones: where two overlap in part, a virtual
    /// channel may belong to other classes of the routing for one than for the other.
    pub fn promises_no_deadlock(&self) -> bool {
        let routing = &self.scenario.routing;
        let required = routing.facts().virtual_channels_required;
        let ranges = self.scenario.virtual_channel_ranges();
        let is_compatible =
            |one: &VirtualChannels, other: &VirtualChannels| one == other || one.end <= other.begin || other.end <= one.begin;
        let independent = required == 1 || ranges.iter().all(|one| ranges.iter().all(|other| is_compatible(one, other)));
        let has_channels = || ranges.iter().all(|range| u32::from(range.count()) >= required);
        // The promise is about whole networks.
        let is_whole = self.scenario.network.damage().is_none();
        is_whole && routing.facts().is_deadlock_free && independent && has_channels() && !self.scenario.closes_escape_path()
    }
}

impl Document {
    /// Builds only the network of a point, without what is down: `[network]` is all that has to be there.
    ///
    /// # Errors
    /// As [`Document::study`], about `[network]`.
    pub fn network(&self, point: &Point, files: &dyn Files) -> Result<Network, ConfigError> {
        let network = self.network_of_run(point, files)?;
        Ok(network.owners().map(|owners| Network::clone(owners)).unwrap_or(network))
    }

    /// As [`Document::network`]; but in a file kept from a run each port of a terminal with several ports remains a terminal, as in the
    /// numbers of the channels in the run's vectors.
    ///
    /// # Errors
    /// As [`Document::network`].
    pub fn network_of_run(&self, point: &Point, files: &dyn Files) -> Result<Network, ConfigError> {
        let context = Context { document: self, point, schemas: &Schemas::default() };
        let section = network::read(context)?;
        let network = section.build(files)?;
        match context.table("faults")? {
            Some(faults) => faults::damaged(context, faults, &network, section.units, files, 0),
            None => Ok(network),
        }
    }

    /// The error about a key of a point that someone else refuses, with its place.
    pub fn refusal(&self, point: &Point, key: &str, message: impl Into<String>) -> ConfigError {
        Context { document: self, point, schemas: &Schemas::default() }.error(key, Part::Value, message)
    }

    /// Checks one point and builds what an engine receives. For many points of one experiment use a [`Preparation`], which
    /// builds equal networks and routings once.
    ///
    /// # Errors
    /// All errors found; an earlier error may mask later ones.
    pub fn study(&self, point: &Point, files: &dyn Files) -> Result<Study, ConfigErrors> {
        Preparation::new(self, files, Known::default()).study(point)
    }
}

/// Turns the points of one experiment into studies; networks, routings and routers that are equal are built once and shared.
pub struct Preparation<'a> {
    document: &'a Document,
    files: &'a dyn Files,
    known: Known<'a>,
    built: Built,
    /// The last few, newest first.
    routers: Vec<(Table, RouterParameters, Pipeline)>,
    schemas: Rc<Schemas>,
}

/// The networks and routings of one experiment that several preparations share, also those of other threads: the last few, and those that
/// some study still has.
#[derive(Clone, Default)]
pub struct Built {
    networks: Arc<Pool<Table, Network>>,
    routings: Arc<Pool<(Table, Arc<Network>), dyn Routing>>,
}

impl std::fmt::Debug for Built {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Built").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Preparation<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Preparation").field("document", &self.document.name()).finish_non_exhaustive()
    }
}

/// What was found, or nothing and one more error.
fn keep<T>(found: Result<T, ConfigError>, errors: &mut Vec<ConfigError>) -> Option<T> {
    found.map_err(|error| errors.push(error)).ok()
}

/// How many distinct routers are kept.
const MAX_ROUTERS: usize = 4;

impl<'a> Preparation<'a> {
    /// Begins with nothing built. `files` reads what parameters name; `known` holds the names that only the caller knows.
    pub fn new(document: &'a Document, files: &'a dyn Files, known: Known<'a>) -> Self {
        Self::sharing(&Built::default(), document, files, known)
    }

    /// As [`Preparation::new`], with what other preparations of the same document have built and will build.
    pub fn sharing(built: &Built, document: &'a Document, files: &'a dyn Files, known: Known<'a>) -> Self {
        Self { document, files, known, built: built.clone(), routers: Vec::new(), schemas: Rc::default() }
    }

    /// Checks one point and builds its study.
    ///
    /// # Errors
    /// As [`Document::study`].
    pub fn study(&mut self, point: &Point) -> Result<Study, ConfigErrors> {
        let (study, errors) = self.examine(point);
        ConfigErrors::check(errors)?;
        Ok(study.expect("a study of which nothing is wrong"))
    }

    /// Checks one point: all that is wrong with it, and its study as far as there can be one, so that an engine can say as well what it
    /// refuses. A study with errors is not for running.
    pub fn examine(&mut self, point: &Point) -> (Option<Study>, Vec<ConfigError>) {
        let mut errors = Vec::new();
        let study = self.examined(point, &mut errors);
        (study, errors)
    }

    fn examined(&mut self, point: &Point, errors: &mut Vec<ConfigError>) -> Option<Study> {
        let schemas = Rc::clone(&self.schemas);
        let context = Context { document: self.document, point, schemas: &schemas };
        let title = keep(title(context), errors);
        let engine = keep(engine(context, self.known), errors);
        check_engine_sections(context, self.known, errors);
        let measure = keep(measure::read(context), errors).unwrap_or_default();
        let router = self.router(context).map_err(|found| errors.extend(found)).ok();
        let (wired, units) = keep(self.network(context), errors).unzip();
        if let Some(wired) = &wired {
            keep(terminal_ports::check_one_port(context, wired), errors)?;
        }
        let routing = wired.as_ref().and_then(|wired| keep(self.routing(context, wired), errors));
        let ((mut router, mut pipeline), wired, (mut routing, allow_deadlock), units) = (router?, wired?, routing?, units?);
        let (network, terminals) = (Arc::clone(&wired.network), &wired.terminals);
        let chosen = keep(terminal_ports::read(context, wired.ports.as_ref()), errors)?;
        if let Some(latency) = keep(router::latency(context, &router, units), errors).flatten() {
            pipeline = Pipeline::of_latency(latency);
        }
        let resend_after = keep(router::resend_after(context, &router, units), errors).flatten();
        if routing.facts().offers_several {
            keep(router::check_choice_of_ports(context, &router), errors);
        }
        if router.vc_per_destination {
            router.virtual_channels = keep(router::virtual_channels_of_terminals(context, &network), errors)?;
            routing = Arc::new(PerDestination::over(routing));
        }
        let failure = keep(self.failure(context, &wired, units), errors).flatten();
        let optional_load = measure.search == Some(Search::Saturation);
        let files = Recorded::new(self.files);
        let setting = traffic::Setting {
            context,
            network: terminals,
            ports: chosen.as_ref(),
            routing: routing.as_ref(),
            router: &router,
            files: &files,
            optional_load,
            default_channels: None,
            of_user: false,
            is_background: false,
        };
        let streams = Streams::new(measure.seed);
        let hosts = keep(host_memory::read(context, units), errors).flatten();
        let hosts = hosts.and_then(|hosts| keep(terminal_ports::hosts_by_ports(context, hosts, wired.ports.as_ref()), errors));
        let model = keep(endpoint::read(context), errors)?;
        let users = keep(users::read(context, &setting, model.as_ref(), units, &streams), errors)?;
        let (mut endpoint, interfaces) = match &model {
            Some(model) if users.is_none() => {
                let workload = keep(endpoint::workload(context), errors)?;
                let routers = router.for_endpoints();
                let (network, routing, streams) = (&*network, routing.as_ref(), &streams);
                let with = EndpointContext { network, routing, routers, units, streams, workload, space: None };
                match keep(endpoint::prepare(context, model, &with), errors)? {
                    Prepared::Machine(machine) => (Some(machine), None),
                    Prepared::Interfaces(interfaces) => (None, Some(interfaces)),
                }
            }
            _ => (None, None),
        };
        let (classes, workload, users) = match users {
            Some(users) => {
                endpoint = users.endpoint;
                if optional_load && (users.workload.is_some() || endpoint.is_some()) {
                    errors.push(no_search_with_workloads(context));
                }
                routing = users.routing.unwrap_or(routing);
                (users.classes, users.workload, Some(users.users))
            }
            None if endpoint.is_some() => (keep(background(context, &setting, endpoint.as_deref()), errors)?, None, None),
            None => {
                let (classes, workload) = keep(traffic_or_workload(context, &setting, units), errors)?;
                (classes, workload.map(|closed| ClosedWorkload { interfaces, ..closed }), None)
            }
        };
        let longest = longest_packet(&classes, workload.as_ref(), endpoint.as_deref()).unwrap_or(0);
        keep(router::check_packets_fit(context, &router, longest), errors);
        let shortest_of_endpoint = endpoint.as_ref().and_then(|endpoint| endpoint.packet_flits()).map(|[shortest, _]| shortest);
        let shorter = || shorter_packet(longest, &classes, workload.as_ref()).or(shortest_of_endpoint.filter(|&flits| flits < longest));
        keep(router::check_bubble(context, &router, &network, longest, &shorter), errors);
        keep(measure::check_end(context, &measure, &classes, workload.as_ref()), errors);
        let of_endpoint = endpoint.as_ref().map_or(0, |endpoint| endpoint.class_channels().len());
        let count = classes.len() + workload.as_ref().map_or(of_endpoint, |closed| closed.parts.len());
        keep(check_classes(context, count, users.is_some()), errors)?;
        // What goes by which port is decided last: the packets are the same.
        let workload = workload.map(|closed| chosen.iter().fold(closed, |closed, chosen| chosen.workload(closed)));
        let (title, engine) = (title?, engine?);
        let engine_options = keep(context.table(&engine), errors)?.cloned().unwrap_or_default();
        let scenario = Scenario {
            network,
            routing,
            router,
            pipeline,
            classes,
            workload,
            users,
            endpoint,
            hosts,
            resend_after,
            failure,
            units,
            streams,
            max_cycles: measure.max_cycles,
            engine_options,
            paranoid: false,
            timeline: false,
        };
        Some(Study { engine, title, scenario, measure, allow_deadlock, files: files.names() })
    }

    /// Builds only the network and the routing of a point: `[network]` and `[routing]` are all that has to be there.
    ///
    /// # Errors
    /// As [`Document::study`], about these two sections; terminals with several ports, which who asks here does not know.
    pub fn routed(&mut self, point: &Point) -> Result<(Arc<Network>, Arc<dyn Routing>), ConfigError> {
        let schemas = Rc::clone(&self.schemas);
        let context = Context { document: self.document, point, schemas: &schemas };
        let (wired, _) = self.network(context)?;
        if wired.ports.is_some() {
            let problem = "has terminals with several ports, and schedules know terminals with one: take one plane of it";
            return Err(context.error("network.topology", Part::Value, problem));
        }
        let (routing, _) = self.routing(context, &wired)?;
        Ok((wired.network, routing))
    }

    /// What flits and cycles are, by `[network]` of a point.
    ///
    /// # Errors
    /// A key of theirs is wrong.
    pub fn units_of(&self, point: &Point) -> Result<Units, ConfigError> {
        network::units(Context { document: self.document, point, schemas: &self.schemas })
    }

    fn router(&mut self, context: Context<'_>) -> Result<(RouterParameters, Pipeline), Vec<ConfigError>> {
        let empty = Table::new();
        let table = context.table("router").map_err(|error| vec![error])?.unwrap_or(&empty);
        if let Some((_, router, pipeline)) = self.routers.iter().find(|(known, ..)| known == table) {
            return Ok((router.clone(), *pipeline));
        }
        let (router, pipeline) = router::read(context, self.known, self.files)?;
        self.routers.insert(0, (table.clone(), router.clone(), pipeline));
        self.routers.truncate(MAX_ROUTERS);
        Ok((router, pipeline))
    }

    fn network(&self, context: Context<'_>) -> Result<(Wired, Units), ConfigError> {
        let table = network::table(context)?;
        let section = network::read(context)?;
        let units = section.units;
        let build = || section.build(self.files).map(Arc::new);
        let built = self.built.networks.get(|known| known == table, || table.clone(), build)?;
        // A file kept from a run is by ports already.
        let whole = built.owners().map_or_else(|| Arc::clone(&built), Arc::clone);
        let has_ports = whole.further_home_count() > 0;
        let is_by_ports = built.owners().is_some() || !has_ports;
        let wired = if is_by_ports { built } else { self.by_terminal_ports(table, &whole) };
        let faults = context.table("faults")?;
        let changes = faults.map(|faults| faults::read(context, faults, &wired, units, self.files)).transpose()?.unwrap_or_default();
        let network = match faults {
            // Engines know the channels of what comes up again.
            Some(faults) if !changes.mend_the_beginning() => self.without_faults(context, &wired, faults, units, 0)?,
            _ => Arc::clone(&wired),
        };
        let wired = if has_ports { Wired::by_ports(whole, wired, network) } else { Wired { whole, ..Wired::plain(network) } };
        Ok((Wired { changes, ..wired }, units))
    }

    /// The network whose terminals are the ports of the terminals of another.
    fn by_terminal_ports(&self, table: &Table, whole: &Arc<Network>) -> Arc<Network> {
        let key: Table = [("network".to_owned(), Value::Table(table.clone())), ("by_terminal_ports".to_owned(), Value::Boolean(true))]
            .into_iter()
            .collect();
        let build = || Ok::<_, std::convert::Infallible>(Arc::new(whole.by_terminal_ports()));
        match self.built.networks.get(|known| *known == key, || key.clone(), build) {
            Ok(network) => network,
        }
    }

    /// What is left of a network without what is down in a cycle; 0 is before the run.
    fn without_faults(
        &self,
        context: Context<'_>,
        whole: &Arc<Network>,
        faults: &Table,
        units: Units,
        cycle: u64,
    ) -> Result<Arc<Network>, ConfigError> {
        let table = network::table(context)?;
        let by_ports = Value::Boolean(whole.owner_count().is_some());
        let key: Table = [
            ("network", Value::Table(table.clone())),
            ("faults", Value::Table(faults.clone())),
            ("by_terminal_ports", by_ports),
            ("cycle", Value::String(cycle.to_string())),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect();
        let damage = || {
            let left = faults::damaged(context, faults, whole, units, self.files, cycle)?;
            Ok(if left.damage() == whole.damage() { Arc::clone(whole) } else { Arc::new(left) })
        };
        self.built.networks.get(|known| *known == key, || key.clone(), damage)
    }

    /// What fails, and comes up again, during the run.
    fn failure(&self, context: Context<'_>, wired: &Wired, units: Units) -> Result<Option<Arc<Failure>>, ConfigError> {
        let Some(faults) = context.table("faults")? else { return Ok(None) };
        let changes = &wired.changes;
        if changes.cycles.is_empty() {
            return Ok(None);
        }
        terminal_ports::check_no_change_of_ports(context, wired)?;
        let mut epochs = Vec::with_capacity(changes.cycles.len());
        for &cycle in &changes.cycles {
            let left = self.without_faults(context, &wired.whole, faults, units, cycle)?;
            // What is as it was at the beginning has the network, and the routing, of the beginning.
            let left = if left.damage() == wired.network.damage() { Arc::clone(&wired.network) } else { left };
            let (routing, _) = self.routing(context, &Wired::plain(Arc::clone(&left)))?;
            let damage = left.damage().cloned().unwrap_or_default();
            epochs.push(Epoch {
                cycle,
                channels: damage.channels().iter().copied().filter(|&channel| !wired.network.is_down(channel)).collect(),
                routers: damage.routers().to_vec(),
                detected: if cycle == 0 { 0 } else { cycle + changes.detect_after },
                network: left,
                routing,
            });
        }
        Ok(Some(Arc::new(Failure { epochs, resend_after: changes.resend_after })))
    }

    fn routing(&self, context: Context<'_>, wired: &Wired) -> Result<(Arc<dyn Routing>, bool), ConfigError> {
        let network = &wired.network;
        let table = context.required_table("routing", "algorithm = \"minimal\"")?;
        let section = Section::new(context, "routing", table);
        let entry = section.member(ALL_ROUTINGS, "algorithm", None)?;
        section.refuse_unknown(&[entry.keys(), &["algorithm", "allow_deadlock", TERMINAL_PORTS]], &format!("routing `{}`", entry.name))?;
        let allow_deadlock = section.boolean("allow_deadlock", false)?;
        let is_same = |(known, on): &(Table, Arc<Network>)| known == table && Arc::ptr_eq(on, network);
        let compile = || self.compile(context, &section, entry, wired);
        let routing = self.built.routings.get(is_same, || (table.clone(), Arc::clone(network)), compile)?;
        Ok((routing, allow_deadlock))
    }

    fn compile(
        &self,
        context: Context<'_>,
        section: &Section<'_>,
        entry: &Entry<dyn RoutingAlgorithm>,
        wired: &Wired,
    ) -> Result<Arc<dyn Routing>, ConfigError> {
        let network = &wired.network;
        let wrong = |error: RoutingError| match error {
            RoutingError::Parameter { key, problem } => section.error(&key, problem),
            other => section.error("algorithm", other.to_string()),
        };
        let mut algorithm = section.parse(entry, "algorithm")?;
        algorithm.read(self.files).map_err(wrong)?;
        let bytes = algorithm.most_table_bytes(network);
        if bytes > self.known.memory_bytes {
            let problem = format!(
                "the tables of routing `{}` on {} may take {bytes} bytes ({}); this machine has {} to spare: take a routing without tables \
                 (dimension-order, nca) or a smaller network",
                entry.name,
                network.name(),
                amount(bytes),
                amount(self.known.memory_bytes),
            );
            return Err(section.error("algorithm", problem));
        }
        let routing = if wired.ports.is_some() {
            terminal_ports::check_reachable(context, wired)?;
            terminal_ports::compile(&*algorithm, network).map_err(wrong)?
        } else {
            faults::check_reachable(context, network)?;
            network::check_connected(context, network)?;
            algorithm.compile(network).map_err(wrong)?
        };
        check_survival(network, &*routing).map_err(|lost| {
            let (from, to) = (network.terminal_name(lost.source), network.terminal_name(lost.destination));
            let problem = format!(
                "routing `{}` does not lead round what is down: a packet from {from} to {to}: {}; its paths follow from numbers or coordinates, \
                 take one that searches them (minimal, ecmp, up-down, valiant, ugal, dijkstra, tables)",
                entry.name, lost.problem
            );
            section.error("algorithm", problem)
        })?;
        Ok(Arc::from(routing))
    }
}

/// Bytes in a unit that fits.
fn amount(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["bytes", "KiB", "MiB", "GiB"];
    let unit = (bytes.max(1).ilog2() / 10).min(3);
    format!("{:.1} {}", bytes as f64 / f64::from(1u32 << (10 * unit)), UNITS[unit as usize])
}

fn title(context: Context<'_>) -> Result<String, ConfigError> {
    match context.point.table.get("title") {
        None => Ok(String::new()),
        Some(Value::String(title)) => Ok(title.clone()),
        Some(other) => Err(context.error("title", Part::Value, format!("is {}; it must be a string", shown(other)))),
    }
}

fn engine(context: Context<'_>, known: Known<'_>) -> Result<String, ConfigError> {
    let wrong = |message: String| Err(context.error("engine", Part::Value, message));
    match context.point.table.get("engine") {
        None => Ok(known.default_engine.to_owned()),
        Some(Value::String(name)) if known.engines.is_empty() || known.engine(name).is_some() => Ok(name.clone()),
        Some(Value::String(name)) => wrong(unknown("engine", name, known.engine_names())),
        Some(other) => {
            let names: Vec<String> = known.engine_names().map(|name| format!("\"{name}\"")).collect();
            let hint = if other.is_array() { "; list several engines in [sweep]: engine = [\"analysis\", \"flit\"]" } else { "" };
            wrong(format!("is {}; it must be {}{hint}", shown(other), names.join(" or ")))
        }
    }
}

/// Checks the sections of all engines, whichever runs.
fn check_engine_sections(context: Context<'_>, known: Known<'_>, errors: &mut Vec<ConfigError>) {
    for engine in known.engines {
        let Some(table) = keep(context.table(engine.name()), errors).flatten() else { continue };
        let schema = context.schemas.get(engine.section());
        keep(shape::check(schema.as_value(), table).map_err(|fault| context.fault(engine.name(), fault)), errors);
    }
}

/// The open traffic or the closed workload.
fn traffic_or_workload(
    context: Context<'_>,
    setting: &traffic::Setting<'_>,
    units: Units,
) -> Result<(Vec<TrafficClass>, Option<ClosedWorkload>), ConfigError> {
    match (context.table("traffic")?, context.table("workload")?) {
        (Some(table), None) if trace::is_trace(table) => {
            if setting.optional_load {
                return Err(context.error("measure.search", Part::Value, "searches a load; a trace has its own, so leave it out"));
            }
            let (workload, part) = setting.trace_of("traffic", table, units)?;
            Ok((Vec::new(), Some(ClosedWorkload { workload, parts: vec![part], interfaces: None })))
        }
        (Some(table), None) => Ok((setting.classes(table)?, None)),
        (_, Some(table)) => Ok((background(context, setting, None)?, Some(setting.workload(table, units)?))),
        (None, None) => {
            let message = "the section is missing; it begins with [traffic], for example with pattern = \"uniform\"; \
                 a closed workload belongs in [workload]";
            Err(context.error("traffic", Part::Key, message))
        }
    }
}

/// The open traffic beside a closed workload or a machine, if there is any: none with a load of 0. Unless it says otherwise, it shares
/// the virtual channels of a machine's requests: what it held of the replies' could wait for requests.
fn background(
    context: Context<'_>,
    setting: &traffic::Setting<'_>,
    machine: Option<&dyn Endpoint>,
) -> Result<Vec<TrafficClass>, ConfigError> {
    let Some(table) = context.table("traffic")? else { return Ok(Vec::new()) };
    if trace::is_trace(table) {
        let problem =
            "conflicts with [workload]: a trace is a workload of its own; describe the traffic by a pattern, or keep one of the two";
        return Err(context.error("traffic.trace", Part::Key, problem));
    }
    if setting.optional_load {
        let problem = "conflicts with [workload], which has no load to search; leave it out, or sweep traffic.load";
        return Err(context.error("measure.search", Part::Value, problem));
    }
    let default_channels = machine.and_then(|machine| Some(machine.class_channels().first()?[0]));
    let mut classes = traffic::Setting { default_channels, is_background: true, ..*setting }.classes(table)?;
    classes.retain(|class| class.load > 0.0 || class.packets_per_terminal.is_some());
    Ok(classes)
}

/// A search varies the load of all users, and a workload has none.
fn no_search_with_workloads(context: Context<'_>) -> ConfigError {
    let problem = "conflicts with [user.workload], which has no load to search; leave it out, or sweep the load of another user";
    context.error("measure.search", Part::Value, problem)
}

/// A packet names its class in a byte.
fn check_classes(context: Context<'_>, classes: usize, of_users: bool) -> Result<(), ConfigError> {
    if classes <= MAX_CLASSES {
        return Ok(());
    }
    let (key, counted) = if of_users { ("user", "the users' classes and workloads together") } else { ("traffic", "its classes") };
    let problem = format!("has too many classes of traffic: {counted} are {classes}; at most {MAX_CLASSES} are possible");
    Err(context.error(key, Part::Key, problem))
}

/// Messages of a workload whose lengths are looked at one by one.
const MAX_EXAMINED_MESSAGES: u64 = 1 << 22;

/// Flits of a packet that is shorter than the longest, if there is one.
fn shorter_packet(longest: u32, classes: &[TrafficClass], workload: Option<&ClosedWorkload>) -> Option<u32> {
    let sizes = classes.iter().flat_map(|class| [Some(&class.sizes), class.reply.as_ref().map(|reply| &reply.sizes)]).flatten();
    let of_class = sizes.map(kasuri_workload::traffic::PacketSizes::min).find(|&flits| flits < longest);
    let of_part = |closed: &ClosedWorkload| closed.parts.iter().map(|part| part.packet_flits).find(|&flits| flits < longest);
    let mut of_message = None;
    if let Some(closed) = workload.filter(|closed| closed.workload.messages() <= MAX_EXAMINED_MESSAGES) {
        closed.workload.each_message(&mut |message| {
            let last = message.flits % longest;
            of_message = of_message.or((last > 0).then_some(last));
        });
    }
    of_class.or_else(|| workload.and_then(of_part)).or(of_message)
}

/// Classes of traffic, those of workloads included.
const MAX_CLASSES: usize = 255;
