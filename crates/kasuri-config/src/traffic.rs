//! `[traffic]` and its classes.

use super::context::Context;
use super::error::ConfigError;
use super::section::Section;
use super::shown::shown;
use super::terminal_ports::ChosenPorts;
use crate::pattern::ALL_PATTERNS;
use kasuri_model::router::RouterParameters;
use kasuri_model::scenario::{Reply, TrafficClass};
use kasuri_network::fields::fields_of;
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use kasuri_network::registry::Entry;
use kasuri_network::routing::Routing;
use kasuri_network::routing::VirtualChannels;
use kasuri_network::topology::Files;
use kasuri_workload::traffic::pattern::{Pattern, PatternContext, PatternError, TrafficPattern};
use kasuri_workload::traffic::process::{ByTerminal, InjectionProcess, PROCESSES, Process, Window};
use kasuri_workload::traffic::{PacketSizes, WeightedSize};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use toml::{Table, Value};

/// The keys of a class of traffic that belong neither to its pattern nor to its process.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ClassParameters {
    /// Flits that each terminal offers per cycle, above 0 and at most 1; with a workload also 0, which means no background. Not used if the
    /// process ends by itself.
    load: Option<f64>,
    /// Length of the packets, in flits: a number, or a mixture.
    #[serde(default = "one_flit")]
    packet_flits: PacketFlits,
    /// May a terminal draw itself where the pattern draws at random?
    #[serde(default)]
    include_self: bool,
    /// The virtual channels that the packets may use: the first, and one past the last. All unless given.
    virtual_channels: Option<[u32; 2]>,
    /// Priority of the packets where `router.priority` is `class`; higher goes first.
    #[serde(default)]
    priority: i32,
    /// All classes with `true` share one process at each terminal, at the sum of their rates, and each packet is of a class drawn by the
    /// rates in packets. These classes need the same process. Other classes have a process of their own, and users share none.
    #[serde(default)]
    shares_coins: bool,
    /// Every packet that arrives makes its destination send one back.
    reply: Option<ReplyParameters>,
}

/// The keys of `reply`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReplyParameters {
    /// Length of the replies, in flits: a number, or a mixture.
    #[serde(default = "one_flit")]
    packet_flits: PacketFlits,
    /// Cycles that a terminal takes to answer; they count as latency of the reply, which is created as the request arrives.
    #[serde(default)]
    delay: u32,
    /// The virtual channels that the replies may use: the first, and one past the last. Those of the requests unless given.
    virtual_channels: Option<[u32; 2]>,
}

/// `packet_flits`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum PacketFlits {
    /// Packets of one length.
    Fixed(u32),
    /// Lengths and their relative frequencies.
    Mixture(Vec<WeightedSize>),
}

fn one_flit() -> PacketFlits {
    PacketFlits::Fixed(1)
}

impl PacketFlits {
    fn sizes(&self) -> Result<PacketSizes, String> {
        match self {
            Self::Fixed(flits) => PacketSizes::fixed(*flits),
            Self::Mixture(lines) if lines.is_empty() => Err("an empty list; give at least one { flits = 1, weight = 1.0 }".to_owned()),
            Self::Mixture(lines) => PacketSizes::mixture(lines),
        }
    }
}

/// What traffic is prepared for.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) context: Context<'a>,
    /// Its terminals send and receive, whatever ports they have.
    pub(super) network: &'a Arc<Network>,
    /// The ports of terminals with several.
    pub(super) ports: Option<&'a ChosenPorts>,
    pub(super) routing: &'a dyn Routing,
    pub(super) router: &'a RouterParameters,
    pub(super) files: &'a dyn Files,
    /// A search chooses the load, so the file need not.
    pub(super) optional_load: bool,
    /// The virtual channels of classes that name none; all unless given.
    pub(super) default_channels: Option<VirtualChannels>,
    /// Is it one user's, on a network of its logical nodes?
    pub(super) of_user: bool,
    /// Is it open traffic beside a closed workload or a machine?
    pub(super) is_background: bool,
}

/// When a class creates its packets.
struct Creation {
    process: Arc<dyn Process>,
    packets_per_terminal: Option<u64>,
    window: Window,
    load: f64,
}

/// Rounding may put a sum of loads this far above 1.
const ROUNDING: f64 = 1e-9;

impl Setting<'_> {
    /// The classes that `[traffic]` describes.
    pub(super) fn classes(&self, table: &Table) -> Result<Vec<TrafficClass>, ConfigError> {
        self.classes_of("traffic", table)
    }

    /// The classes that a section of this name describes.
    pub(super) fn classes_of(&self, name: &str, table: &Table) -> Result<Vec<TrafficClass>, ConfigError> {
        let whole = Section::new(self.context, name, table);
        let Some(list) = table.get("class") else {
            return Ok(vec![self.class(&whole)?]);
        };
        let written = list.as_array().filter(|list| !list.is_empty());
        let wrong = || whole.error("class", format!("is {}; classes are written as [[{name}.class]], at least one", shown(list)));
        let mut base = table.clone();
        base.remove("class");
        let (mut classes, mut sharing) = (Vec::new(), Vec::new());
        for (number, class) in written.ok_or_else(wrong)?.iter().enumerate() {
            let class = class.as_table().ok_or_else(wrong)?;
            let (merged, own_name) = (inherit(&base, class), format!("{name}.class.{number}"));
            classes.push(self.class(&Section::inheriting(self.context, &own_name, name, &merged))?);
            if classes[number].joint.is_some() {
                sharing.push((number, merged));
            }
        }
        if let Some((terminal, total)) = self.overloaded(&classes) {
            let problem = format!("offers a load of {total} in all at terminal {terminal}; a terminal sends at most 1 flit per cycle");
            return Err(whole.error("class", problem));
        }
        self.join_processes(&whole, &mut classes, &sharing)?;
        Ok(classes)
    }

    /// The first terminal that would have to send more than its channel carries, and how much: classes may have different sources.
    fn overloaded(&self, classes: &[TrafficClass]) -> Option<(TerminalId, f64)> {
        let all: f64 = classes.iter().map(|class| class.load).sum();
        if all <= 1.0 + ROUNDING {
            return None;
        }
        let of = |terminal: TerminalId| classes.iter().filter(|class| !class.pattern.is_silent(terminal)).map(|class| class.load).sum();
        let terminals = (0..self.sender_count()).map(TerminalId);
        terminals.map(|terminal| (terminal, of(terminal))).find(|&(_, total): &(_, f64)| total > 1.0 + ROUNDING)
    }

    /// Gives the classes that share their coins one process at the sum of their rates. `sharing` has their numbers and keys.
    fn join_processes(&self, whole: &Section<'_>, classes: &mut [TrafficClass], sharing: &[(usize, Table)]) -> Result<(), ConfigError> {
        let Some(((_, first), others)) = sharing.split_first() else { return Ok(()) };
        let wrong = |problem: String| Err(whole.error("class", format!("has classes with shares_coins, {problem}")));
        let mut keys = member_keys(PROCESSES, first.get("process")).iter().chain(&["process"]);
        if keys.any(|&key| others.iter().any(|(_, other)| other.get(key) != first.get(key))) {
            return wrong("but different processes; give them the same one".to_owned());
        }
        let answered = |&(number, _): &(usize, Table)| classes[number].reply.is_some();
        let is_batch = classes[sharing[0].0].packets_per_terminal.is_some();
        if is_batch && sharing.iter().any(|class| answered(class) != answered(&sharing[0])) {
            return wrong("of which some have answers, in one batch; give a reply to all of them or to none".to_owned());
        }
        let section = Section::new(self.context, whole.name, first);
        let process = section.parse(section.member(PROCESSES, "process", Some("bernoulli"))?, "process")?;
        let rate = sharing.iter().map(|&(number, _)| classes[number].packet_rate()).sum();
        match process.compile(rate) {
            Ok(compiled) => {
                let joint: Arc<dyn Process> = Arc::from(compiled);
                sharing.iter().for_each(|&(number, _)| classes[number].joint = Some(Arc::clone(&joint)));
                Ok(())
            }
            Err(problem) => wrong(format!("but {problem}")),
        }
    }

    fn class(&self, section: &Section<'_>) -> Result<TrafficClass, ConfigError> {
        let pattern = section.member(ALL_PATTERNS, "pattern", None)?;
        let process = section.member(PROCESSES, "process", Some("bernoulli"))?;
        let known = [&["pattern", "process"], fields_of::<ClassParameters>(), pattern.keys(), process.keys()];
        section.refuse_unknown(&known, &format!("pattern `{}`, process `{}`", pattern.name, process.name))?;
        let parameters: ClassParameters = section.structure()?;
        let sizes = parameters.packet_flits.sizes().map_err(|problem| section.error("packet_flits", format!("is {problem}")))?;
        let virtual_channels = self.virtual_channels(
            section,
            "virtual_channels",
            parameters.virtual_channels,
            self.default_channels.unwrap_or(self.all_channels()),
        )?;
        let pattern = self.pattern(section, pattern, parameters.include_self)?;
        if pattern.has_shares() && (self.of_user || parameters.shares_coins) {
            let (key, problem) = match section.boolean("normalise", true)? {
                false => ("normalise", "is false, but terminals of users, and classes with shares_coins, offer equal loads; leave it out"),
                true => (
                    "shares_coins",
                    "is true, but the ports of a terminal that each destination has chosen do not offer equal loads; take \
                     routing.terminal_ports = \"by-packet\", or leave it out",
                ),
            };
            return Err(section.error(key, problem));
        }
        let Creation { process, packets_per_terminal, window, load } = self.process(section, process, &parameters, &sizes, &*pattern)?;
        let reply = parameters.reply.as_ref().map(|reply| self.reply(section, reply, virtual_channels)).transpose()?;
        if window.counts_answers && reply.is_none() {
            return Err(section.error("counts_answers", "is true, but nothing is answered; give a reply, or leave it out".to_owned()));
        }
        // Of one class its own process; of several see `join_processes`.
        let joint = parameters.shares_coins.then(|| Arc::clone(&process));
        let priority = parameters.priority;
        Ok(TrafficClass { pattern, process, joint, packets_per_terminal, window, load, sizes, virtual_channels, priority, reply })
    }

    fn pattern(
        &self,
        section: &Section<'_>,
        entry: &Entry<dyn TrafficPattern>,
        include_self: bool,
    ) -> Result<Arc<dyn Pattern>, ConfigError> {
        let context = PatternContext { network: self.network, include_self, files: self.files };
        let compiled = section.parse(entry, "pattern")?.compile(&context).map(Arc::from).map_err(|error| match error {
            PatternError::Parameter { key, problem } => section.error(&key, problem),
            other => section.error("pattern", other.to_string()),
        })?;
        Ok(self.ports.iter().fold(compiled, |pattern, chosen| chosen.pattern(pattern)))
    }

    /// Terminals, or ports of terminals with several: each creates packets by itself.
    fn sender_count(&self) -> u32 {
        self.ports.map_or(self.network.terminal_count(), |chosen| chosen.ports.port_count())
    }

    fn process(
        &self,
        section: &Section<'_>,
        entry: &Entry<dyn InjectionProcess>,
        parameters: &ClassParameters,
        sizes: &PacketSizes,
        pattern: &dyn Pattern,
    ) -> Result<Creation, ConfigError> {
        let process = section.parse(entry, "process")?;
        let (packets_per_terminal, window) = (process.packets_per_terminal(), process.window());
        let load = match parameters.load {
            Some(load) if load > 0.0 && load <= 1.0 => load,
            // Nobody sends, at whatever rate.
            Some(0.0) if self.is_background => 0.0,
            Some(load) => {
                return Err(section.error("load", format!("is {load}; it must be above 0 and at most 1 flit per terminal and cycle")));
            }
            None if packets_per_terminal.is_some() => 0.0,
            None if self.optional_load => 1.0,
            None => {
                let message = "is missing; give the flits that each terminal offers per cycle, above 0 and at most 1";
                return Err(section.error_at_key("load", message));
            }
        };
        let rate = load / sizes.mean();
        let compiled = if !pattern.has_shares() {
            process.compile(rate).map(Arc::from)
        } else if packets_per_terminal.is_some() && self.ports.is_some() {
            let problem = "is a batch, of which every port sends as much; terminals with several ports send unequal parts by their ports where \
                 terminal_ports is \"by-destination\" and where ports are cut off: take another process, or a [workload]";
            return Err(section.error("process", problem));
        } else if packets_per_terminal.is_some() {
            let problem = "is false, but in a batch every terminal sends as many packets; leave it out, or give an open process";
            return Err(section.error("normalise", problem));
        } else {
            let shares = (0..self.sender_count()).map(|terminal| pattern.share(TerminalId(terminal)));
            // Who sends nothing has no rate.
            let shares = shares.map(|share| if share > 0.0 { share } else { 1.0 });
            ByTerminal::new(&*process, rate, shares).map(|all| Arc::new(all) as Arc<dyn Process>)
        };
        let process = compiled.map_err(|problem| {
            // A process says which of its keys is wrong by beginning with it.
            let key = entry.keys().iter().find(|&&key| problem.split_whitespace().next() == Some(key));
            match key {
                Some(key) => section.error(key, problem[key.len()..].trim_start()),
                None => section.error("process", problem),
            }
        })?;
        Ok(Creation { process, packets_per_terminal, window, load })
    }

    fn reply(&self, section: &Section<'_>, reply: &ReplyParameters, requests: VirtualChannels) -> Result<Reply, ConfigError> {
        let sizes = reply.packet_flits.sizes().map_err(|problem| section.error("reply.packet_flits", format!("is {problem}")))?;
        let virtual_channels = self.virtual_channels(section, "reply.virtual_channels", reply.virtual_channels, requests)?;
        Ok(Reply { sizes, delay: reply.delay, virtual_channels })
    }

    /// All virtual channels that there are.
    pub(super) fn all_channels(&self) -> VirtualChannels {
        // `RouterParameters::check` has held the number to 256.
        VirtualChannels { begin: 0, end: self.router.virtual_channels as u16 }
    }

    /// A range of virtual channels that exists.
    pub(super) fn virtual_channels(
        &self,
        section: &Section<'_>,
        key: &str,
        given: Option<[u32; 2]>,
        default: VirtualChannels,
    ) -> Result<VirtualChannels, ConfigError> {
        let available = self.router.virtual_channels;
        match given {
            Some([begin, end]) if begin < end && end <= available => Ok(VirtualChannels { begin: begin as u16, end: end as u16 }),
            Some([begin, end]) => {
                let problem = format!("is [{begin}, {end}]; it must be [first, one past the last] within [0, {available}]");
                Err(section.error(key, problem))
            }
            None => Ok(default),
        }
    }
}

/// A class with the keys that it leaves out taken from `[traffic]`; another pattern or process does not inherit the keys of
/// the one that it replaces.
fn inherit(base: &Table, class: &Table) -> Table {
    let mut merged = base.clone();
    for (key, keys) in
        [("pattern", member_keys(ALL_PATTERNS, base.get("pattern"))), ("process", member_keys(PROCESSES, base.get("process")))]
    {
        if class.contains_key(key) && class.get(key) != base.get(key) {
            for &inherited in keys {
                merged.remove(inherited);
            }
        }
    }
    merged.extend(class.clone());
    merged
}

fn member_keys<F: ?Sized>(table: &[Entry<F>], name: Option<&Value>) -> &'static [&'static str] {
    let name = name.and_then(Value::as_str).unwrap_or_default();
    kasuri_network::registry::find(table, name).map(Entry::keys).unwrap_or_default()
}
