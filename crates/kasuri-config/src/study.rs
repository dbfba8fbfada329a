//! From the values of one point to what an engine receives.

use super::document::{Document, Part};
use super::error::{ConfigError, ConfigErrors};
use super::measure::{Measure, MeasureSection, Search, Until};
use super::physical::{self, PhysicalLinks, told_as};
use super::pool::Pool;
use super::recorded::Recorded;
use super::schemas::Schemas;
use super::section::Section;
use super::shown::{compact, shown};
use super::sweep::Point;
use super::terminal_ports::{self, TERMINAL_PORTS, Wired};
use super::units::UnitParameters;
use super::{Known, shape, trace, traffic};
use crate::routing::ALL_ROUTINGS;
use crate::topology::ALL_TOPOLOGIES;
use crate::topology::file::{File, NeededUnits};
use kasuri_formats::names::unknown;
use kasuri_formats::text::text_of;
use kasuri_model::router::{Architecture, BufferPolicy, MAX_LATENCY, MAX_VIRTUAL_CHANNELS, Pipeline, RouterParameters, Switching};
use kasuri_model::scenario::{ClosedWorkload, Epoch, Failure, Scenario, TrafficClass, longest_packet};
use kasuri_network::fields::fields_of;
use kasuri_network::network::connectivity::separated;
use kasuri_network::network::rings::Rings;
use kasuri_network::network::{Network, NetworkError};
use kasuri_network::predictor;
use kasuri_network::registry::{Entry, Member, find};
use kasuri_network::rng::Streams;
use kasuri_network::routing::per_destination::PerDestination;
use kasuri_network::routing::{Routing, RoutingAlgorithm, RoutingError, VirtualChannels, check_survival};
use kasuri_network::topology::{BuildContext, ChannelParameters, Files};
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
        let required = routing.virtual_channels_required();
        let ranges = self.scenario.virtual_channel_ranges();
        let apart = |one: &VirtualChannels, other: &VirtualChannels| one == other || one.end <= other.begin || other.end <= one.begin;
        let independent = required == 1 || ranges.iter().all(|one| ranges.iter().all(|other| apart(one, other)));
        let has_channels = || ranges.iter().all(|range| u32::from(range.count()) >= required);
        // The promise is about whole networks.
        let is_whole = self.scenario.network.damage().is_none();
        is_whole && routing.is_deadlock_free() && independent && has_channels() && !self.scenario.closes_escape_path()
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
        let network = build_network(context, files)?;
        match context.table("faults")? {
            Some(faults) => context.damaged(faults, &network, files, 0),
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
    /// All that is unknown, of a wrong type, impossible, or at odds with another, as far as one does not hide the other.
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
const KEPT: usize = 4;

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
        let title = keep(context.title(), errors);
        let engine = keep(context.engine(self.known), errors);
        context.check_engine_sections(self.known, errors);
        let measure = keep(context.measure(), errors).unwrap_or_default();
        let router = self.router(context).map_err(|found| errors.extend(found)).ok();
        let wired = keep(self.network(context), errors);
        if let Some(wired) = &wired {
            keep(context.check_one_port(wired), errors)?;
        }
        let routing = wired.as_ref().and_then(|wired| keep(self.routing(context, wired), errors));
        let units = wired.as_ref().and_then(|_| keep(context.units(), errors));
        let ((mut router, mut pipeline), wired, (mut routing, allow_deadlock), units) = (router?, wired?, routing?, units?);
        let (network, terminals) = (Arc::clone(&wired.network), &wired.terminals);
        let chosen = keep(context.port_choice(wired.ports.as_ref()), errors)?;
        if let Some(latency) = keep(context.router_latency(&router, units), errors).flatten() {
            pipeline = Pipeline::of_latency(latency);
        }
        let resend_after = keep(context.resend_after(&router, units), errors).flatten();
        if routing.offers_several() {
            keep(context.check_choice_of_ports(&router), errors);
        }
        if router.vc_per_destination {
            router.virtual_channels = keep(context.virtual_channels_of_terminals(&network), errors)?;
            routing = Arc::new(PerDestination::over(routing));
        }
        let failure = keep(self.failure(context, &wired), errors).flatten();
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
        let hosts = keep(context.hosts(units), errors).flatten();
        let hosts = hosts.and_then(|hosts| keep(context.hosts_by_ports(hosts, wired.ports.as_ref()), errors));
        let model = keep(context.endpoint_model(), errors)?;
        let users = keep(context.users(&setting, model.as_ref(), units, &streams), errors)?;
        let (mut endpoint, interfaces) = match &model {
            Some(model) if users.is_none() => {
                let workload = keep(context.workload_of_endpoint(), errors)?;
                let routers = router.for_endpoints();
                let (network, routing, streams) = (&*network, routing.as_ref(), &streams);
                let with = EndpointContext { network, routing, routers, units, streams, workload, space: None };
                match keep(context.endpoint(model, &with), errors)? {
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
                    errors.push(context.no_search_with_workloads());
                }
                routing = users.routing.unwrap_or(routing);
                (users.classes, users.workload, Some(users.users))
            }
            None if endpoint.is_some() => (keep(context.background(&setting, endpoint.as_deref()), errors)?, None, None),
            None => {
                let (classes, workload) = keep(context.traffic(&setting, units), errors)?;
                (classes, workload.map(|closed| ClosedWorkload { interfaces, ..closed }), None)
            }
        };
        let longest = longest_packet(&classes, workload.as_ref(), endpoint.as_deref()).unwrap_or(0);
        keep(context.check_packets_fit(&router, longest), errors);
        let shortest_of_endpoint = endpoint.as_ref().and_then(|endpoint| endpoint.packet_flits()).map(|[shortest, _]| shortest);
        let shorter = || shorter_packet(longest, &classes, workload.as_ref()).or(shortest_of_endpoint.filter(|&flits| flits < longest));
        keep(context.check_bubble(&router, &network, longest, &shorter), errors);
        keep(context.check_end(&measure, &classes, workload.as_ref()), errors);
        let of_endpoint = endpoint.as_ref().map_or(0, |endpoint| endpoint.class_channels().len());
        let count = classes.len() + workload.as_ref().map_or(of_endpoint, |closed| closed.parts.len());
        keep(context.check_classes(count, users.is_some()), errors)?;
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
        let wired = self.network(context)?;
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
        Context { document: self.document, point, schemas: &self.schemas }.units()
    }

    fn router(&mut self, context: Context<'_>) -> Result<(RouterParameters, Pipeline), Vec<ConfigError>> {
        let empty = Table::new();
        let table = context.table("router").map_err(|error| vec![error])?.unwrap_or(&empty);
        if let Some((_, router, pipeline)) = self.routers.iter().find(|(known, ..)| known == table) {
            return Ok((router.clone(), *pipeline));
        }
        let (router, pipeline) = context.router(self.known, self.files)?;
        self.routers.insert(0, (table.clone(), router.clone(), pipeline));
        self.routers.truncate(KEPT);
        Ok((router, pipeline))
    }

    fn network(&self, context: Context<'_>) -> Result<Wired, ConfigError> {
        let table = context.required_table("network", "topology = \"mesh\"")?;
        let build = || build_network(context, self.files).map(Arc::new);
        let built = self.built.networks.get(|known| known == table, || table.clone(), build)?;
        // A file kept from a run is by ports already.
        let whole = built.owners().map_or_else(|| Arc::clone(&built), Arc::clone);
        let has_ports = whole.further_home_count() > 0;
        let is_by_ports = built.owners().is_some() || !has_ports;
        let wired = if is_by_ports { built } else { self.by_terminal_ports(table, &whole) };
        let faults = context.table("faults")?;
        let changes = faults.map(|faults| context.changes(faults, &wired, self.files)).transpose()?.unwrap_or_default();
        let network = match faults {
            // Engines know the channels of what comes up again.
            Some(faults) if !changes.mend_the_beginning() => self.without_faults(context, &wired, faults, 0)?,
            _ => Arc::clone(&wired),
        };
        let wired = if has_ports { Wired::by_ports(whole, wired, network) } else { Wired { whole, ..Wired::plain(network) } };
        Ok(Wired { changes, ..wired })
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
    fn without_faults(&self, context: Context<'_>, whole: &Arc<Network>, faults: &Table, cycle: u64) -> Result<Arc<Network>, ConfigError> {
        let table = context.required_table("network", "topology = \"mesh\"")?;
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
            let left = context.damaged(faults, whole, self.files, cycle)?;
            Ok(if left.damage() == whole.damage() { Arc::clone(whole) } else { Arc::new(left) })
        };
        self.built.networks.get(|known| *known == key, || key.clone(), damage)
    }

    /// What fails, and comes up again, during the run.
    fn failure(&self, context: Context<'_>, wired: &Wired) -> Result<Option<Arc<Failure>>, ConfigError> {
        let Some(faults) = context.table("faults")? else { return Ok(None) };
        let changes = &wired.changes;
        if changes.cycles.is_empty() {
            return Ok(None);
        }
        context.check_no_change_of_ports(wired)?;
        let mut epochs = Vec::with_capacity(changes.cycles.len());
        for &cycle in &changes.cycles {
            let left = self.without_faults(context, &wired.whole, faults, cycle)?;
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
            context.check_ports_reachable(wired)?;
            terminal_ports::compile(&*algorithm, network).map_err(wrong)?
        } else {
            context.check_reachable(network)?;
            context.check_connected(network)?;
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

fn build_network(context: Context<'_>, files: &dyn Files) -> Result<Network, ConfigError> {
    let section = Section::new(context, "network", context.required_table("network", "topology = \"mesh\"")?);
    let entry = section.member(ALL_TOPOLOGIES, "topology", None)?;
    let of_channels = [fields_of::<ChannelParameters>(), fields_of::<UnitParameters>(), fields_of::<PhysicalLinks>()].concat();
    let wrapped = section.wrapped(entry, ALL_TOPOLOGIES)?;
    let of_wrapped = wrapped.map(Entry::keys).unwrap_or_default();
    section.refuse_unknown(&[entry.keys(), of_wrapped, &of_channels, &["topology"]], &format!("topology `{}`", entry.name))?;
    let (channels, units) = context.channels(&section)?;
    let topology = match wrapped {
        Some(inner) => section.parse_around(entry, inner, "topology")?,
        None => section.parse(entry, "topology")?,
    };
    let built = if entry.name == File::NAME {
        let file: File = section.structure()?;
        file.content(files).and_then(|content| {
            let needed = content.needed_units(&channels);
            Ok((content.build(&channels)?, needed))
        })
    } else {
        topology.build(&BuildContext { channels: &channels, files, structure_seed: 0 }).map(|network| (network, None))
    };
    let (network, needed) = built.map_err(|error| match error {
        NetworkError::Parameter { key, problem } => section.error(told_as(section.table, &key), problem),
        other => section.error("topology", other.to_string()),
    })?;
    needed.map_or(Ok(()), |needed| check_rates(&section, &needed, units))?;
    Ok(network)
}

/// Refuses a cycle or flit length at which the links would not have the rates or latencies of the network's file.
fn check_rates(section: &Section<'_>, needed: &NeededUnits, units: Units) -> Result<(), ConfigError> {
    let (Some(flit_bytes), Some(cycle_ns)) = (units.flit_bytes, units.cycle_ns) else { return Ok(()) };
    let path = section.table.get("path").and_then(Value::as_str).unwrap_or_default();
    let (given, wanted) = (f64::from(flit_bytes) * 8.0 / cycle_ns, needed.gbit_per_second);
    let ratio = given / wanted;
    if (ratio - 1.0).abs() > RATE_TOLERANCE {
        let is_written = |key: &&str| section.table.contains_key(*key);
        let key = ["channel_gbit_per_second", "rate", "cycle_ns"].into_iter().find(is_written).unwrap_or("path");
        let problem = format!(
            "gives a channel of one cycle a flit {given} Gbit/s; with the rates of the links in `{path}` it is {wanted}: all links would \
             be {ratio:.4} times as fast as in the file; set channel_gbit_per_second = {wanted}"
        );
        return Err(section.error(key, problem));
    }
    match needed.flit_bytes {
        Some(bytes) if bytes != flit_bytes => {
            let problem =
                format!("is {flit_bytes}, and the latencies in `{path}` are cycles of flits of {bytes} bytes: set flit_bytes = {bytes}");
            Err(section.error("flit_bytes", problem))
        }
        _ => Ok(()),
    }
}

/// How much of a rate may be lost by rounding when it is written down.
const RATE_TOLERANCE: f64 = 1e-6;

/// Bytes in a unit that fits.
fn amount(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["bytes", "KiB", "MiB", "GiB"];
    let unit = (bytes.max(1).ilog2() / 10).min(3);
    format!("{:.1} {}", bytes as f64 / f64::from(1u32 << (10 * unit)), UNITS[unit as usize])
}

/// A point and the document that it comes from: where values and messages meet.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) document: &'a Document,
    pub(super) point: &'a Point,
    pub(super) schemas: &'a Schemas,
}

impl<'a> Context<'a> {
    /// Refuses a network in which a packet could not arrive by any routing. Topologies that leave labels build connected ones.
    fn check_connected(self, network: &Network) -> Result<(), ConfigError> {
        if !network.labels().is_empty() {
            return Ok(());
        }
        let Some((from, to)) = separated(network) else { return Ok(()) };
        let (from, to) = (network.terminal_name(from), network.terminal_name(to));
        let key = if self.table("network")?.is_some_and(|table| table.contains_key("path")) { "network.path" } else { "network.topology" };
        let problem = format!("the network is disconnected: {from} cannot reach {to}; add channels, or leave one of the two out");
        Err(self.error(key, Part::Value, problem))
    }

    /// An error at a key's value. A value that comes from `[sweep]` is shown there.
    pub(super) fn error(self, path: &str, part: Part, message: impl Into<String>) -> ConfigError {
        let beside = !self.document.has_place(path);
        match self.point.place_of(path, false).or_else(|| self.point.place_of(path, beside)) {
            Some(place) => self.document.error_at(self.document.locate(place, part), path, message),
            None => self.document.error(path, part, message),
        }
    }

    pub(super) fn fault(self, section: &str, fault: shape::Fault) -> ConfigError {
        let path = if fault.path.is_empty() { section.to_owned() } else { format!("{section}.{}", fault.path) };
        self.error(&path, if fault.at_key { Part::Key } else { Part::Value }, fault.message)
    }

    /// A section that may be missing.
    pub(super) fn table(self, name: &str) -> Result<Option<&'a Table>, ConfigError> {
        match self.point.table.get(name) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(table)),
            Some(other) => Err(self.error(name, Part::Value, format!("is {}; it must be a section: [{name}]", shown(other)))),
        }
    }

    pub(super) fn required_table(self, name: &str, example: &str) -> Result<&'a Table, ConfigError> {
        let missing =
            || self.error(name, Part::Key, format!("the section is missing; it begins with [{name}], for example with {example}"));
        self.table(name)?.ok_or_else(missing)
    }

    fn title(self) -> Result<String, ConfigError> {
        match self.point.table.get("title") {
            None => Ok(String::new()),
            Some(Value::String(title)) => Ok(title.clone()),
            Some(other) => Err(self.error("title", Part::Value, format!("is {}; it must be a string", shown(other)))),
        }
    }

    fn engine(self, known: Known<'_>) -> Result<String, ConfigError> {
        let wrong = |message: String| Err(self.error("engine", Part::Value, message));
        match self.point.table.get("engine") {
            None => Ok(known.default_engine.to_owned()),
            Some(Value::String(name)) if known.engines.is_empty() || known.engine(name).is_some() => Ok(name.clone()),
            Some(Value::String(name)) => wrong(unknown("engine", name, known.engine_names())),
            Some(other) => {
                let names: Vec<String> = known.engine_names().map(|name| format!("\"{name}\"")).collect();
                let hint = if other.is_array() { "; several engines stand in [sweep]: engine = [\"analysis\", \"flit\"]" } else { "" };
                wrong(format!("is {}; it must be {}{hint}", shown(other), names.join(" or ")))
            }
        }
    }

    /// Checks the sections of all engines, whichever runs.
    fn check_engine_sections(self, known: Known<'_>, errors: &mut Vec<ConfigError>) {
        for engine in known.engines {
            let Some(table) = keep(self.table(engine.name()), errors).flatten() else { continue };
            let schema = self.schemas.get(engine.section());
            keep(shape::check(schema.as_value(), table).map_err(|fault| self.fault(engine.name(), fault)), errors);
        }
    }

    fn measure(self) -> Result<Measure, ConfigError> {
        let Some(table) = self.table("measure")? else { return Ok(Measure::default()) };
        let section = Section::new(self, "measure", table);
        let measure: MeasureSection = section.whole()?;
        measure.check().map_err(|(key, problem)| section.error(key, problem))?;
        Ok(measure.measure())
    }

    fn router(self, known: Known<'_>, files: &dyn Files) -> Result<(RouterParameters, Pipeline), Vec<ConfigError>> {
        let empty = Table::new();
        let one = |error: ConfigError| vec![error];
        let section = Section::new(self, "router", self.table("router").map_err(one)?.unwrap_or(&empty));
        let mut router: RouterParameters = section.whole().map_err(one)?;
        if router.architecture == Architecture::OutputQueued {
            router.virtual_channels = 1;
            if !section.table.contains_key("switching") {
                router.switching = Switching::StoreAndForward;
            }
        }
        if let Some(file) = &router.predictor_table {
            let wrong = |problem: String| vec![section.error("predictor_table", problem)];
            let bytes = files.read(file).map_err(wrong)?;
            let text = text_of(file, &bytes).map_err(|error| wrong(error.to_string()))?;
            router.guesses = Some(Arc::new(predictor::Table::read(file, text).map_err(wrong)?));
        }
        let mut errors = Vec::new();
        let problems =
            |problems: Vec<(String, String)>| errors.extend(problems.into_iter().map(|(key, problem)| section.error(&key, problem)));
        let pipeline = router.check().map_err(problems).ok();
        errors.extend(strays(&router, &section));
        for (key, allocator) in [("vc_allocator", &router.vc_allocator), ("switch_allocator", &router.switch_allocator)] {
            if !known.allocators.contains(&allocator.name()) {
                let path = if section.table.get(key).is_some_and(Value::is_table) { format!("{key}.name") } else { key.to_owned() };
                errors.push(section.error(&path, unknown("allocator", allocator.name(), known.allocators.iter().copied())));
            }
        }
        if !predictor::names().any(|name| name == router.predictor) {
            errors.push(section.error("predictor", unknown("predictor", &router.predictor, predictor::names())));
        }
        match pipeline {
            Some(pipeline) if errors.is_empty() => Ok((router, pipeline)),
            _ => Err(errors),
        }
    }

    /// `router.latency` in cycles, if it is given.
    fn router_latency(self, router: &RouterParameters, units: Units) -> Result<Option<u32>, ConfigError> {
        let error = |problem: String| self.error("router.latency", Part::Value, problem);
        let Some(written) = &router.latency else { return Ok(None) };
        if self.table("router")?.is_some_and(|table| table.contains_key("pipeline")) {
            return Err(error("conflicts with pipeline, which says the same by stages; keep one of the two".to_owned()));
        }
        let cycles = physical::cycles_of(written, units, u64::from(MAX_LATENCY)).map_err(error)?;
        Ok(Some(cycles as u32))
    }

    /// `router.resend_after` in cycles, if it is given.
    fn resend_after(self, router: &RouterParameters, units: Units) -> Result<Option<u32>, ConfigError> {
        let cycles = router.resend_after.as_ref().map(|written| physical::cycles_of(written, units, u64::from(u32::MAX))).transpose();
        let cycles = cycles.map_err(|problem| self.error("router.resend_after", Part::Value, problem))?;
        Ok(cycles.map(|cycles| cycles as u32))
    }

    /// What flits and cycles are, by `[network]`.
    pub(super) fn units(self) -> Result<Units, ConfigError> {
        let section = Section::new(self, "network", self.required_table("network", "topology = \"mesh\"")?);
        Ok(self.channels(&section)?.1)
    }

    /// How fast channels are, and what flits and cycles are, by the keys of `[network]` in cycles and in Gbit/s and ns.
    fn channels(self, section: &Section<'_>) -> Result<(ChannelParameters, Units), ConfigError> {
        let mut channels: ChannelParameters = section.structure()?;
        let units: UnitParameters = section.structure()?;
        let links: PhysicalLinks = section.structure()?;
        let units = links.apply(section.table, &mut channels, &units);
        let wrong = |(key, problem): (String, String)| {
            if section.table.contains_key(&key) || key.contains('.') {
                section.error(&key, problem)
            } else {
                section.error_at_key(&key, problem)
            }
        };
        Ok((channels, units.map_err(wrong)?))
    }

    /// The open traffic or the closed workload.
    fn traffic(self, setting: &traffic::Setting<'_>, units: Units) -> Result<(Vec<TrafficClass>, Option<ClosedWorkload>), ConfigError> {
        match (self.table("traffic")?, self.table("workload")?) {
            (Some(table), None) if trace::is_trace(table) => {
                if setting.optional_load {
                    return Err(self.error("measure.search", Part::Value, "searches a load; a trace has its own, so leave it out"));
                }
                let (workload, part) = setting.trace_of("traffic", table, units)?;
                Ok((Vec::new(), Some(ClosedWorkload { workload, parts: vec![part], interfaces: None })))
            }
            (Some(table), None) => Ok((setting.classes(table)?, None)),
            (_, Some(table)) => Ok((self.background(setting, None)?, Some(setting.workload(table, units)?))),
            (None, None) => {
                let message = "the section is missing; it begins with [traffic], for example with pattern = \"uniform\"; \
                     a closed workload stands in [workload]";
                Err(self.error("traffic", Part::Key, message))
            }
        }
    }

    /// The open traffic beside a closed workload or a machine, if there is any: none with a load of 0. Unless it says otherwise, it shares
    /// the virtual channels of a machine's requests: what it held of the replies' could wait for requests.
    fn background(self, setting: &traffic::Setting<'_>, machine: Option<&dyn Endpoint>) -> Result<Vec<TrafficClass>, ConfigError> {
        let Some(table) = self.table("traffic")? else { return Ok(Vec::new()) };
        if trace::is_trace(table) {
            let problem =
                "conflicts with [workload]: a trace is a workload of its own; describe the traffic by a pattern, or keep one of the two";
            return Err(self.error("traffic.trace", Part::Key, problem));
        }
        if setting.optional_load {
            let problem = "conflicts with [workload], which has no load to search; leave it out, or sweep traffic.load";
            return Err(self.error("measure.search", Part::Value, problem));
        }
        let default_channels = machine.and_then(|machine| Some(machine.class_channels().first()?[0]));
        let mut classes = traffic::Setting { default_channels, is_background: true, ..*setting }.classes(table)?;
        classes.retain(|class| class.load > 0.0 || class.packets_per_terminal.is_some());
        Ok(classes)
    }

    /// `router.vc_per_destination`: as many virtual channels as terminals.
    fn virtual_channels_of_terminals(self, network: &Network) -> Result<u32, ConfigError> {
        let terminals = network.terminal_count();
        if terminals > MAX_VIRTUAL_CHANNELS {
            let problem = format!(
                "needs one virtual channel for each of {terminals} terminals; a port has at most {MAX_VIRTUAL_CHANNELS}, so the \
                 network may have at most as many terminals"
            );
            return Err(self.error("router.vc_per_destination", Part::Value, problem));
        }
        let given = self.table("router")?.and_then(|table| table.get("virtual_channels"));
        if given.is_some_and(|given| given.as_integer() != Some(i64::from(terminals))) {
            let problem = format!("must be {terminals}, the number of terminals, or be left out, with vc_per_destination = true");
            return Err(self.error("router.virtual_channels", Part::Value, problem));
        }
        Ok(terminals)
    }

    /// A routing that leaves the choice among ports to the router needs one that waits for several at once.
    fn check_choice_of_ports(self, router: &RouterParameters) -> Result<(), ConfigError> {
        let key = if [Architecture::VirtualOutputQueued, Architecture::Crosspoint].contains(&router.architecture) {
            "router.architecture"
        } else if router.vc_per_destination {
            "router.vc_per_destination"
        } else {
            return Ok(());
        };
        let problem =
            "needs a routing that chooses one port; this one leaves the choice to the router, so take another, or leave the key out";
        Err(self.error(key, Part::Value, problem))
    }

    /// A search varies the load of all users, and a workload has none.
    fn no_search_with_workloads(self) -> ConfigError {
        let problem = "conflicts with [user.workload], which has no load to search; leave it out, or sweep the load of another user";
        self.error("measure.search", Part::Value, problem)
    }

    /// A terminal that finishes is one with a batch of its own.
    fn check_end(self, measure: &Measure, classes: &[TrafficClass], workload: Option<&ClosedWorkload>) -> Result<(), ConfigError> {
        let batches = workload.is_none() && !classes.is_empty() && classes.iter().all(|class| class.packets_per_terminal.is_some());
        if measure.until == Until::FirstTerminal && !batches {
            let problem = "is \"first-terminal\", which asks for a batch of each terminal: traffic.process = \"batch\"; or leave it out";
            return Err(self.error("measure.until", Part::Value, problem));
        }
        Ok(())
    }

    /// A packet names its class in a byte.
    fn check_classes(self, classes: usize, of_users: bool) -> Result<(), ConfigError> {
        if classes <= MAX_CLASSES {
            return Ok(());
        }
        let (key, whose) = if of_users { ("user", "the users' classes and workloads together") } else { ("traffic", "its classes") };
        let problem = format!("has too many classes of traffic: {whose} are {classes}; there may be {MAX_CLASSES}");
        Err(self.error(key, Part::Key, problem))
    }

    /// Bubbles need rings, room for two packets in a buffer, and packets of one length: the room that several short ones leave together is
    /// in as many buffers.
    fn check_bubble(
        self,
        router: &RouterParameters,
        network: &Network,
        longest: u32,
        shorter: &dyn Fn() -> Option<u32>,
    ) -> Result<(), ConfigError> {
        let wrong = |key: &str, problem: String| Err(self.error(key, Part::Value, problem));
        if !router.bubble || longest == 0 {
            return Ok(());
        }
        if Rings::of(network).is_none() {
            let problem =
                format!("keeps the rings of a torus from filling up, and {} has none that are known; leave it out", network.name());
            return wrong("router.bubble", problem);
        }
        if router.buffer_flits < 2 * longest {
            let problem = format!(
                "is {}, but a packet enters a ring with a bubble only where there is room for two of {longest} flits; set buffer_flits = {} or more, \
                 or shorten the packets",
                router.buffer_flits,
                2 * longest
            );
            return wrong("router.buffer_flits", problem);
        }
        match shorter() {
            Some(flits) => {
                let problem = format!(
                    "needs packets of one length, but there are some of {longest} and of {flits} flits: what short ones leave free in several buffers \
                     is no room for a long one; give all packets one length, and messages a multiple of it"
                );
                wrong("router.bubble", problem)
            }
            None => Ok(()),
        }
    }

    /// A packet that waits as a whole needs a buffer for the whole of it.
    fn check_packets_fit(self, router: &RouterParameters, longest: u32) -> Result<(), ConfigError> {
        let switching = match router.switching {
            Switching::Wormhole => return Ok(()),
            Switching::VirtualCutThrough => "virtual-cut-through",
            Switching::StoreAndForward => "store-and-forward",
        };
        let (key, held) = router.whole_packet_flits();
        if longest <= held {
            return Ok(());
        }
        let place = if router.architecture == Architecture::OutputQueued {
            "in a queue"
        } else if router.buffer_policy == BufferPolicy::Private {
            "in a buffer"
        } else {
            "in places that a virtual channel can count on"
        };
        let message = format!(
            "is {held}, but {switching} switching keeps whole packets {place} and the longest has {longest} flits; \
             set {key} = {longest} or more, or shorten the packets"
        );
        Err(self.error(&format!("router.{key}"), Part::Value, message))
    }
}

/// Keys that mean nothing to output-queued routers.
fn strays(router: &RouterParameters, section: &Section<'_>) -> Vec<ConfigError> {
    if router.architecture != Architecture::OutputQueued {
        return Vec::new();
    }
    let is_stray = |key: &&String| !RouterParameters::OF_OUTPUT_QUEUES.contains(&key.as_str());
    let problem = "has no meaning for output-queued routers, which have one queue for each output: no virtual channels, input buffers or \
                   credits, and no switch that is allocated; leave it out";
    section.table.keys().filter(is_stray).map(|key| section.error(key, problem)).collect()
}

/// Messages of a workload whose lengths are looked at one by one.
const MANY_MESSAGES: u64 = 1 << 22;

/// Flits of a packet that is shorter than the longest, if there is one.
fn shorter_packet(longest: u32, classes: &[TrafficClass], workload: Option<&ClosedWorkload>) -> Option<u32> {
    let sizes = classes.iter().flat_map(|class| [Some(&class.sizes), class.reply.as_ref().map(|reply| &reply.sizes)]).flatten();
    let of_class = sizes.map(kasuri_workload::traffic::PacketSizes::min).find(|&flits| flits < longest);
    let of_part = |closed: &ClosedWorkload| closed.parts.iter().map(|part| part.packet_flits).find(|&flits| flits < longest);
    let mut of_message = None;
    if let Some(closed) = workload.filter(|closed| closed.workload.messages() <= MANY_MESSAGES) {
        closed.workload.each_message(&mut |message| {
            let last = message.flits % longest;
            of_message = of_message.or((last > 0).then_some(last));
        });
    }
    of_class.or_else(|| workload.and_then(of_part)).or(of_message)
}

/// Classes of traffic, those of workloads included.
const MAX_CLASSES: usize = 255;

/// A family member's name as it stands in the file, found in its table.
pub(super) fn find_member<'t, F: ?Sized>(
    section: &Section<'_>,
    table: &'t [Entry<F>],
    key: &str,
    default: Option<&str>,
) -> Result<&'t Entry<F>, ConfigError> {
    let names = || table.iter().map(|entry| entry.name);
    let name = match (section.table.get(key), default) {
        (Some(Value::String(name)), _) => name.as_str(),
        (None, Some(default)) => default,
        (None, None) => {
            let message = format!("is missing; it must be one of {}", names().collect::<Vec<_>>().join(", "));
            return Err(section.error_at_key(key, message));
        }
        (Some(other), _) => {
            let hint = if other.is_array() {
                format!("; several values stand in [sweep]: \"{}\" = {}", section.path(key), compact(other))
            } else {
                String::new()
            };
            let message = format!("is {}; it must be a string, one of {}{hint}", shown(other), names().collect::<Vec<_>>().join(", "));
            return Err(section.error(key, message));
        }
    };
    // The key `of` names a topology.
    let kind = if key == "of" { "topology" } else { key };
    find(table, name).ok_or_else(|| section.error(key, unknown(kind, name, names())))
}
