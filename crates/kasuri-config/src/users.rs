//! `[[user]]`, `[users]` and `[translation]`: several users on one machine.

pub(super) mod keys;

use super::context::Context;
use super::document::Part;
use super::endpoint::Model;
use super::error::ConfigError;
use super::section::Section;
use super::shown::shown;
use super::trace::is_trace;
use super::traffic::Setting;
use kasuri_formats::names::unknown;
use kasuri_model::scenario::{ClosedWorkload, TrafficClass, WorkloadPart};
use kasuri_network::fields::fields_of;
use kasuri_network::id::TerminalId;
use kasuri_network::network::{Network, NetworkError, TerminalRef, Terminals};
use kasuri_network::rng::{Purpose, Streams};
use kasuri_network::routing::regional::{NoPath, Regional};
use kasuri_network::routing::{Routing, VirtualChannels};
use kasuri_workload::endpoint::{Endpoint, EndpointContext, Interfaces, Prepared, Routers, Space, UserMachine, UserSpace};
use kasuri_workload::translation::embedding::Embedding;
use kasuri_workload::translation::logical::{LogicalNetwork, edges};
use kasuri_workload::translation::placement::{Request, place};
use kasuri_workload::translation::sharing::{Addresses, Sharing, Slices, TableWrite};
use kasuri_workload::translation::users::{MAX_USERS, Translated, User, Users, regions};
use kasuri_workload::translation::{Costs, Line, RoutedPaths, Table, TableError, Tables, annealing};
use kasuri_workload::units::Units;
use kasuri_workload::workload::combined::{CombinedWorkload, UserWorkload};
use keys::{EmbeddingKind, Isolation, Nodes, TableEntry, TableLine, TranslationSection, UserParameters, UserRouting, UsersSection};
use std::sync::Arc;
use toml::{Table as Toml, Value};

/// Users and what they send.
pub(super) struct UserTraffic {
    pub(super) users: Arc<Users>,
    pub(super) classes: Vec<TrafficClass>,
    pub(super) workload: Option<ClosedWorkload>,
    /// The machine of those who run programs on one.
    pub(super) endpoint: Option<Arc<dyn Endpoint>>,
    /// The routing that keeps users inside, if they are to stay there.
    pub(super) routing: Option<Arc<dyn Routing>>,
}

/// A user as written, with its place in the file.
struct Written<'a> {
    section: String,
    keys: UserParameters,
    sends: Sends<'a>,
}

/// What a user sends.
#[derive(Clone, Copy)]
enum Sends<'a> {
    /// Open traffic or batches: `[user.traffic]`.
    Traffic(&'a Toml),
    /// A closed workload: `[user.workload]`.
    Workload(&'a Toml),
}

impl Sends<'_> {
    fn key(self) -> &'static str {
        match self {
            Self::Traffic(_) => "traffic",
            Self::Workload(_) => "workload",
        }
    }
}

/// The users that the file describes, if it does.
pub(super) fn read(
    context: Context<'_>,
    setting: &Setting<'_>,
    model: Option<&Model>,
    units: Units,
    streams: &Streams,
) -> Result<Option<UserTraffic>, ConfigError> {
    let Some(list) = context.point.table.get("user") else {
        for section in ["users", "translation"] {
            if context.table(section)?.is_some() {
                let problem = "needs users; describe each in a [[user]] section, or leave it out";
                return Err(context.error(section, Part::Key, problem));
            }
        }
        return Ok(None);
    };
    for section in ["traffic", "workload"] {
        if context.table(section)?.is_some() {
            let problem = "conflicts with [[user]]; each user has its own in [user.traffic] or [user.workload], so leave it out";
            return Err(context.error(section, Part::Key, problem));
        }
    }
    let written = written_users(context, list)?;
    let empty = Toml::new();
    let section = Section::new(context, "users", context.table("users")?.unwrap_or(&empty));
    let common: UsersSection = section.whole()?;
    let names: Vec<&str> = written.iter().map(|user| user.keys.name.as_str()).collect();
    if let Some(alone) = common.alone().filter(|alone| !names.contains(alone)) {
        return Err(section.error("alone", unknown("user", alone, names.iter().copied())));
    }
    let (costs, addresses) = translation(context, units)?;
    Assembly { context: context, setting, model, units, streams, written: &written, common }.assemble(costs, addresses).map(Some)
}

fn translation(context: Context<'_>, units: Units) -> Result<(Costs, Addresses), ConfigError> {
    // Without the section translation is free.
    let Some(table) = context.table("translation")? else { return Ok((Costs::FREE, Addresses::default())) };
    let section = Section::new(context, "translation", table);
    let keys: TranslationSection = section.whole()?;
    let both = keys.costs(units).and_then(|costs| keys.addresses().map(|addresses| (costs, addresses)));
    both.map_err(|(key, problem)| section.error(key, problem))
}

fn written_users<'a>(context: Context<'a>, list: &'a Value) -> Result<Vec<Written<'a>>, ConfigError> {
    let wrong = || context.error("user", Part::Value, format!("is {}; users are written as [[user]], 1 to {MAX_USERS}", shown(list)));
    let list = list.as_array().filter(|list| (1..=MAX_USERS).contains(&list.len())).ok_or_else(wrong)?;
    let mut written: Vec<Written<'a>> = Vec::new();
    for (number, user) in list.iter().enumerate() {
        let table = user.as_table().ok_or_else(wrong)?;
        let name = format!("user.{number}");
        let section = Section::new(context, &name, table);
        section.refuse_unknown(&[fields_of::<UserParameters>(), &["traffic", "workload"]], "a [[user]] section")?;
        let keys: UserParameters = section.structure()?;
        if written.iter().any(|other| other.keys.name == keys.name) {
            return Err(section.error("name", format!("is \"{}\", which another user has already; give each user its own name", keys.name)));
        }
        if !(keys.share > 0.0 && keys.share.is_finite()) {
            return Err(section.error("share", format!("is {}; it must be above 0", keys.share)));
        }
        if keys.change_every == Some(0) {
            return Err(section.error("change_every", "is 0; it must be at least 1 cycle, or be left out"));
        }
        let sends = sends(&section, table)?;
        written.push(Written { section: name, keys, sends });
    }
    Ok(written)
}

/// What a user sends, as its section says.
fn sends<'a>(section: &Section<'_>, table: &'a Toml) -> Result<Sends<'a>, ConfigError> {
    let whole = |key: &'static str, value: &'a Value| {
        value.as_table().ok_or_else(|| section.error(key, format!("is {}; it must be a section: [user.{key}]", shown(value))))
    };
    match (table.get("traffic"), table.get("workload")) {
        (Some(traffic), None) => Ok(Sends::Traffic(whole("traffic", traffic)?)),
        (None, Some(workload)) => Ok(Sends::Workload(whole("workload", workload)?)),
        (Some(_), Some(_)) => {
            Err(section.error_at_key("workload", "conflicts with [user.traffic]; a user has one of both, so leave one out"))
        }
        (None, None) => {
            Err(section.error_at_key("traffic", "is missing; describe what the user sends in [user.traffic] or [user.workload]"))
        }
    }
}

/// What all users send.
#[derive(Default)]
struct Sent {
    classes: Vec<TrafficClass>,
    /// Workloads, and how their messages are sent.
    parts: Vec<(UserWorkload, WorkloadPart)>,
    /// Programs on a machine, each with its user.
    machines: Vec<(usize, UserMachine)>,
}

/// What users are put together from.
struct Assembly<'a, 'b> {
    context: Context<'a>,
    setting: &'b Setting<'b>,
    /// The model that `[endpoint]` names.
    model: Option<&'b Model>,
    units: Units,
    streams: &'b Streams,
    written: &'b [Written<'a>],
    common: UsersSection,
}

impl Assembly<'_, '_> {
    fn assemble(&self, costs: Costs, addresses: Addresses) -> Result<UserTraffic, ConfigError> {
        let network = self.setting.network;
        let nodes = self.nodes()?;
        let (mut users, mut tables) = (Vec::new(), Vec::new());
        let (mut sent, mut logical) = (Sent::default(), Vec::new());
        for (number, nodes) in nodes.into_iter().enumerate() {
            let (user, table, own) = self.user(number, nodes, &mut sent)?;
            users.push(user);
            tables.push(table);
            logical.push(own);
        }
        self.refuse_overlaps(&users)?;
        let routing = self.routing_inside(&users)?;
        for (number, logical) in logical.iter().enumerate() {
            let Some(logical) = logical else { continue };
            users[number].embedding = Some(self.embedding(number, logical, &tables[number], routing.as_deref())?);
        }
        let Sent { classes, parts, machines } = sent;
        let of_parts = parts.iter().map(|(part, _)| part.user as usize);
        let of_machines = machines.iter().map(|&(user, _)| user);
        for (place, user) in (classes.len()..).zip(of_parts.chain(of_machines)) {
            users[user].classes = place..place + 1;
        }
        let (tables, writes) = (Tables::new(tables, network.terminal_count()), self.table_writes(&users)?);
        let interfaces = self.interfaces(!parts.is_empty())?;
        let slices = self.slices(&machines)?;
        let sharing = Sharing { tables: tables.clone(), costs, addresses, slices, writes: writes.clone() };
        let endpoint = self.machine(machines, sharing)?;
        let (workloads, parts): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let workload =
            (!parts.is_empty()).then(|| ClosedWorkload { workload: Arc::new(CombinedWorkload::new(workloads)), parts, interfaces });
        let shares = self.common.isolation == Isolation::ChannelsAndShares;
        let users = Arc::new(Users { users, tables, costs, shares, writes });
        Ok(UserTraffic { users, classes, workload, endpoint, routing })
    }

    /// The routers as endpoints ask for them, of which a user has these virtual channels.
    fn routers(&self, channels: VirtualChannels) -> Routers {
        Routers { virtual_channels: channels.count().into(), ..self.setting.router.for_endpoints() }
    }

    /// The interfaces under the users' workloads, if `[endpoint]` names some and there are workloads.
    fn interfaces(&self, has_workloads: bool) -> Result<Option<Arc<dyn Interfaces>>, ConfigError> {
        let Some(model) = self.model else { return Ok(None) };
        if !self.written.iter().any(|user| matches!(user.sends, Sends::Workload(_))) {
            let what = match model.is_machine() {
                true => "is a machine that runs programs, and no user has one",
                false => "connects workloads with the network, and no user has a workload",
            };
            let problem = format!("\"{}\" {what}; give one a [user.workload], or leave it out", model.name);
            return Err(self.context.error("endpoint.model", Part::Value, problem));
        }
        if model.is_machine() || !has_workloads {
            return Ok(None);
        }
        let (network, routing) = (&**self.setting.network, self.setting.routing);
        let routers = self.routers(self.setting.all_channels());
        let with =
            EndpointContext { network, routing, routers, units: self.units, streams: self.streams, workload: &Toml::new(), space: None };
        match model.prepare(self.context, "user", &with)? {
            Prepared::Interfaces(interfaces) => Ok(Some(interfaces)),
            Prepared::Machine(_) => Ok(None),
        }
    }

    /// The machine on which users' programs run together, if there are any.
    fn machine(&self, machines: Vec<(usize, UserMachine)>, sharing: Sharing) -> Result<Option<Arc<dyn Endpoint>>, ConfigError> {
        let Some(model) = self.model.filter(|_| !machines.is_empty()) else {
            if sharing.addresses.are_global {
                let problem = "is \"global\", which the nodes of a machine translate that runs a user's program; leave it out";
                return Err(self.context.error("translation.memory", Part::Value, problem));
            }
            return Ok(None);
        };
        let parts = machines.into_iter().map(|(_, machine)| machine).collect();
        let joined = model.model.join(parts, self.setting.network, sharing, self.streams);
        joined.map(Some).map_err(|problem| {
            let problem = format!("is \"{}\", which these users cannot share: {problem}", model.name);
            self.context.error("endpoint.model", Part::Value, problem)
        })
    }

    /// How users on the same nodes take turns, if they do.
    fn slices(&self, machines: &[(usize, UserMachine)]) -> Result<Option<Slices>, ConfigError> {
        let Some(cycles) = self.common.slice_cycles else {
            if self.common.switch_cycles > 0 {
                let problem = "has no meaning without slices; give users.slice_cycles, or leave it out";
                return Err(self.context.error("users.switch_cycles", Part::Key, problem));
            }
            return Ok(None);
        };
        let wrong = |problem: &str| Err(self.context.error("users.slice_cycles", Part::Value, problem));
        if cycles == 0 {
            return wrong("is 0; it must be at least 1 cycle, or be left out");
        }
        if machines.is_empty() {
            return wrong("divides the time of processors among programs, and no user has one on a machine; leave it out");
        }
        Ok(Some(Slices { cycles, switch_cycles: self.common.switch_cycles, draining: self.common.draining }))
    }

    /// The changes of tables at given times, in their order.
    fn table_writes(&self, users: &[User]) -> Result<Vec<TableWrite>, ConfigError> {
        let terminals = Terminals::from(&**self.setting.network);
        let mut writes = Vec::new();
        for (number, user) in self.written.iter().enumerate() {
            for (place, line) in user.keys.table_writes.iter().enumerate() {
                let found = line.physical.iter().map(|written| written.find(terminals).map(TerminalId)).collect::<Result<Vec<_>, _>>();
                let wrong = |problem| self.error(number, &format!("table_writes.{place}"), problem);
                let physical = found.map_err(wrong)?;
                if let Some(&other) = physical.iter().find(|terminal| !users[number].nodes.contains(terminal)) {
                    let name = self.setting.network.terminal_name(other);
                    return Err(wrong(format!("names {name}, which is none of the user's nodes; add it to `nodes` or name one of them")));
                }
                writes.push(TableWrite { cycle: line.cycle, user: number as u16, node: line.logical, physical });
            }
        }
        writes.sort_by_key(|write| write.cycle);
        Ok(writes)
    }

    /// Changes at given times are of lines that the table has, and of users whose nodes have nothing to take along.
    fn check_table_writes(&self, number: usize, table: &Table, classes: &[TrafficClass], has_workload: bool) -> Result<(), ConfigError> {
        let keys = &self.written[number].keys;
        if keys.table_writes.is_empty() {
            return Ok(());
        }
        if let Some(place) = keys.table_writes.iter().position(|write| write.logical >= table.len()) {
            let problem = format!("changes logical node {}; the table has 0 to {}", keys.table_writes[place].logical, table.len() - 1);
            return Err(self.error(number, &format!("table_writes.{place}"), problem));
        }
        if has_workload || classes.iter().any(|class| class.packets_per_terminal.is_some()) {
            let problem =
                "is for open traffic and for programs on a machine; a rank or a batch is at one terminal and moves with change_every";
            return Err(self.error(number, "table_writes", problem));
        }
        Ok(())
    }

    /// A user's program on a machine of its own logical nodes.
    fn program(
        &self,
        number: usize,
        logical: &Network,
        table: &Table,
        described: &Toml,
        model: &Model,
    ) -> Result<UserMachine, ConfigError> {
        let channels = self.virtual_channels(number)?;
        let (routing, routers) = (self.setting.routing, self.routers(channels));
        let streams = &self.streams.of_user(number as u32);
        if !model.model.translates() {
            self.terminals_of_workload(number, table)?;
        }
        self.refuse_moves_of_machine(number)?;
        let Written { keys: UserParameters { space, supervisor, .. }, .. } = &self.written[number];
        let homes = if *space == Space::System { self.setting.network.terminal_count() } else { table.len() };
        let space_of_user = Some(UserSpace { nodes: table.len(), homes });
        let (units, workload) = (self.units, described);
        let with = EndpointContext { network: logical, routing, routers, units, streams, workload, space: space_of_user };
        let place = format!("{}.workload", self.written[number].section);
        let Prepared::Machine(machine) = model.prepare(self.context, &place, &with)? else {
            return Err(self.context.error("endpoint.model", Part::Value, "has no programs of its own"));
        };
        let (user, space, is_supervisor) = (number as u16, *space, *supervisor);
        Ok(UserMachine { machine, user, space, is_supervisor, first_channel: channels.begin })
    }

    fn error(&self, number: usize, key: &str, problem: impl Into<String>) -> ConfigError {
        self.context.error(&format!("{}.{key}", self.written[number].section), Part::Value, problem)
    }

    /// The terminals of each user; none where its table names them.
    fn nodes(&self) -> Result<Vec<Vec<TerminalId>>, ConfigError> {
        let network = self.setting.network;
        let mut given = vec![Vec::new(); self.written.len()];
        let mut requests = vec![None; self.written.len()];
        for (number, user) in self.written.iter().enumerate() {
            match &user.keys.nodes {
                Some(Nodes::List(list)) => {
                    given[number] = self.listed(number, list)?;
                }
                Some(Nodes::Count(nodes)) => {
                    let placement = user.keys.placement.unwrap_or(self.common.placement);
                    requests[number] = Some(Request { placement, nodes: *nodes });
                }
                None => given[number] = self.table(number, &[])?.map(|table| table.nodes()).unwrap_or_default(),
            }
        }
        let taken: Vec<TerminalId> = given.concat();
        let free = (0..network.terminal_count()).map(TerminalId).filter(|terminal| !taken.contains(terminal)).collect();
        let placed = place(&requests, network, free, &mut self.streams.get(Purpose::Placement, 0)).map_err(|(number, left)| {
            let asked = requests[number].map_or(0, |request: Request| request.nodes);
            self.error(number, "nodes", format!("is {asked}; {left} terminals are left for this user"))
        })?;
        given.iter_mut().zip(placed).filter(|(given, _)| given.is_empty()).for_each(|(given, placed)| *given = placed);
        Ok(given)
    }

    fn listed(&self, number: usize, list: &[TerminalRef]) -> Result<Vec<TerminalId>, ConfigError> {
        let terminals = Terminals::from(&**self.setting.network);
        let mut found: Vec<TerminalId> = Vec::new();
        for (position, written) in list.iter().enumerate() {
            let key = format!("nodes.{position}");
            let terminal = written.find(terminals).map_err(|problem| self.error(number, &key, problem))?;
            if found.contains(&TerminalId(terminal)) {
                let name = terminals.name(terminal);
                return Err(self.error(number, &key, format!("is {name}, which is in the list already; name each terminal once")));
            }
            found.push(TerminalId(terminal));
        }
        Ok(found)
    }

    /// The table of a user as written, if it is.
    fn table(&self, number: usize, nodes: &[TerminalId]) -> Result<Option<Table>, ConfigError> {
        let keys = &self.written[number].keys;
        let Some(written) = &keys.table else { return Ok(None) };
        let mut lines: Vec<Line> = Vec::new();
        let mut line_of = Vec::new();
        let at = |position: usize| format!("table.{position}");
        for (position, line) in written.iter().enumerate() {
            let next = position as u32;
            let own: Vec<(u32, u32, &TerminalRef)> = match line {
                TableLine::One(terminal) => vec![(next, 0, terminal)],
                TableLine::Aliases(all) => (0..).zip(all).map(|(key, terminal)| (next, key, terminal)).collect(),
                TableLine::Entry(TableEntry { logical, physical, key }) => vec![(*logical, *key, physical)],
            };
            let terminals = Terminals::from(&**self.setting.network);
            let found = own.into_iter().map(|(logical, key, written)| Ok((logical, key, TerminalId(written.find(terminals)?))));
            let own = found.collect::<Result<Vec<Line>, String>>().map_err(|problem| self.error(number, &at(position), problem))?;
            line_of.extend(own.iter().map(|_| position));
            lines.extend(own);
        }
        let table = Table::from_lines(&lines, keys.key_shift, self.setting.network.terminal_count())
            .map_err(|TableError { line, problem }| self.error(number, &at(line_of[line]), format!("names {problem}")))?;
        if let Some(line) = lines.iter().position(|(.., terminal)| !nodes.is_empty() && !nodes.contains(terminal)) {
            let problem = format!(
                "names {}, which is none of the user's nodes; add it there or name one of them",
                self.setting.network.terminal_name(lines[line].2)
            );
            return Err(self.error(number, &at(line_of[line]), problem));
        }
        Ok(Some(table))
    }

    /// A user without its embedding, its table, and its logical network. What it sends joins `sent`.
    fn user(&self, number: usize, nodes: Vec<TerminalId>, sent: &mut Sent) -> Result<(User, Table, Option<Arc<Network>>), ConfigError> {
        let Written { section, keys, sends } = &self.written[number];
        if nodes.is_empty() {
            let path = format!("{section}.nodes");
            return Err(self.context.error(&path, Part::Key, "is missing; give a number of terminals, a list of them, or a table"));
        }
        let channels = self.virtual_channels(number)?;
        let used = nodes.len().saturating_sub(keys.spare_nodes as usize);
        if used < 2 && keys.table.is_none() {
            let problem = format!("leaves {used} of {} nodes in the table; it must leave at least 2", nodes.len());
            return Err(self.error(number, if keys.spare_nodes > 0 { "spare_nodes" } else { "nodes" }, problem));
        }
        let written = self.table(number, &nodes)?;
        let groups = self.groups(&nodes[..used.max(1)])?;
        let logical_nodes = written.as_ref().map_or(groups.len() as u32, Table::len);
        let logical = self.logical(number, logical_nodes)?;
        let table = self.embed(number, &groups, written, logical.as_deref(), channels)?.keyed_by(keys.key);
        self.check_space(number)?;
        let plain = match &logical {
            Some(logical) => logical.clone(),
            None => LogicalNetwork::Graph { nodes: logical_nodes.max(2), links: Vec::new() }
                .build()
                .map_err(|error| self.error(number, "nodes", error.to_string()))
                .map(Arc::new)?,
        };
        let first = sent.classes.len();
        let mut patterns = Vec::new();
        if self.common.alone().is_none_or(|alone| alone == keys.name) {
            let default_channels = Some(self.default_channels(number, channels));
            let setting = Setting { network: &plain, default_channels, of_user: true, ..*self.setting };
            let path = format!("{section}.{}", sends.key());
            match *sends {
                Sends::Traffic(traffic) if is_trace(traffic) => {
                    if let Some(model) = self.model.filter(|model| model.is_machine()) {
                        let problem = format!(
                            "is a workload of its own, and the processors of endpoint.model = \"{}\" run its programs; describe the \
                             traffic by a pattern",
                            model.name
                        );
                        return Err(self.error(number, "traffic.trace", problem));
                    }
                    let (workload, part) = setting.trace_of(&path, traffic, self.units)?;
                    self.check_channels(number, part.virtual_channels, channels)?;
                    let terminals = self.terminals_of_workload(number, &table)?;
                    sent.parts.push((UserWorkload { workload, terminals, user: number as u32 }, part));
                }
                Sends::Traffic(traffic) => {
                    for class in setting.classes_of(&path, traffic)? {
                        let terminals = self.setting.network.terminal_count();
                        let pattern = Arc::new(Translated::new(Arc::clone(&class.pattern), table.clone(), terminals));
                        self.check_class(number, &class, channels)?;
                        patterns.push(class.pattern);
                        sent.classes.push(TrafficClass { pattern, ..class });
                    }
                }
                Sends::Workload(described) => match self.model.filter(|model| model.is_machine()) {
                    Some(model) => sent.machines.push((number, self.program(number, &plain, &table, described, model)?)),
                    None => {
                        let (workload, part) = setting.workload_of(&path, described, self.units)?;
                        self.check_channels(number, part.virtual_channels, channels)?;
                        let terminals = self.terminals_of_workload(number, &table)?;
                        sent.parts.push((UserWorkload { workload, terminals, user: number as u32 }, part));
                    }
                },
            }
        }
        let has_workload = matches!(sends, Sends::Workload(_)) && !self.model.is_some_and(Model::is_machine);
        self.check_table_writes(number, &table, &sent.classes[first..], has_workload)?;
        let (name, share, change_every) = (keys.name.clone(), keys.share, keys.change_every);
        let user = User { name, nodes, classes: first..sent.classes.len(), logical: patterns, share, embedding: None, change_every };
        Ok((user, table, logical))
    }

    /// The virtual channels of open traffic that names none: beside a machine those of its requests, where users share channels.
    fn default_channels(&self, number: usize, own: VirtualChannels) -> VirtualChannels {
        let are_shared = self.common.isolation == Isolation::None && self.written[number].keys.virtual_channels.is_none();
        self.model.filter(|_| are_shared).map_or(own, |model| model.model.channels_beside(own))
    }

    /// The virtual channels of a user's packets.
    fn virtual_channels(&self, number: usize) -> Result<VirtualChannels, ConfigError> {
        let (all, given) = (self.setting.all_channels(), self.written[number].keys.virtual_channels);
        let users = self.written.len() as u16;
        if self.common.isolation == Isolation::None {
            let empty = Toml::new();
            let section = Section::new(self.context, &self.written[number].section, &empty);
            return self.setting.virtual_channels(&section, "virtual_channels", given, all);
        }
        if given.is_some() {
            return Err(self.error(
                number,
                "virtual_channels",
                "conflicts with users.isolation, which divides the virtual channels; keep one",
            ));
        }
        if all.count() < users {
            let problem = format!("is {}; {users} users with virtual channels of their own need at least as many", all.count());
            return Err(self.context.error("router.virtual_channels", Part::Value, problem));
        }
        Ok(all.class(number as u16, users))
    }

    /// A class may not leave the virtual channels that isolation leaves its user.
    fn check_class(&self, number: usize, class: &TrafficClass, own: VirtualChannels) -> Result<(), ConfigError> {
        let ranges = [Some(class.virtual_channels), class.reply.as_ref().map(|reply| reply.virtual_channels)];
        ranges.into_iter().flatten().try_for_each(|range| self.check_channels(number, range, own))
    }

    fn check_channels(&self, number: usize, range: VirtualChannels, own: VirtualChannels) -> Result<(), ConfigError> {
        if self.common.isolation == Isolation::None || range.begin >= own.begin && range.end <= own.end {
            return Ok(());
        }
        let problem = format!(
            "has virtual channels {} to {}; users.isolation leaves this user {} to {}",
            range.begin,
            range.end - 1,
            own.begin,
            own.end - 1
        );
        Err(self.error(number, self.written[number].sends.key(), problem))
    }

    /// What runs on a machine stays on its nodes.
    fn refuse_moves_of_machine(&self, number: usize) -> Result<(), ConfigError> {
        if let Some(model) = self.model.filter(|_| self.written[number].keys.change_every.is_some()) {
            let problem = format!(
                "moves logical nodes, but what runs on endpoint.model = \"{}\" stays on its terminal: {}; leave it out",
                model.name,
                model.model.binds()
            );
            return Err(self.error(number, "change_every", problem));
        }
        Ok(())
    }

    /// The terminal of each of a user's logical nodes, which have one each where it has a workload.
    fn terminals_of_workload(&self, number: usize, table: &Table) -> Result<Vec<TerminalId>, ConfigError> {
        self.refuse_moves_of_machine(number)?;
        let mut terminals: Vec<TerminalId> = Vec::new();
        for node in 0..table.len() {
            let Some(&terminal) = table.physical(node).first() else {
                let problem = format!("leaves logical node {node} without a terminal; a workload runs on all of them, so give it one");
                return Err(self.error(number, "table", problem));
            };
            if let Some(other) = terminals.iter().position(|&taken| taken == terminal) {
                let problem = format!(
                    "puts logical nodes {other} and {node} on {}; a rank needs one of its own",
                    self.setting.network.terminal_name(terminal)
                );
                return Err(self.error(number, "table", problem));
            }
            terminals.push(terminal);
        }
        Ok(terminals)
    }

    fn logical(&self, number: usize, nodes: u32) -> Result<Option<Arc<Network>>, ConfigError> {
        let Some(logical) = &self.written[number].keys.logical else { return Ok(None) };
        let built = logical.build().map_err(|error| match error {
            NetworkError::Parameter { key, problem } => self.error(number, &format!("logical.{key}"), problem),
            other => self.error(number, "logical", other.to_string()),
        })?;
        if built.terminal_count() != nodes {
            let problem = format!("has {} nodes; the user's table has {nodes}, so make them equal", built.terminal_count());
            return Err(self.error(number, "logical", problem));
        }
        Ok(Some(Arc::new(built)))
    }

    /// The table, logical nodes being placed where they are asked to be.
    fn embed(
        &self,
        number: usize,
        nodes: &[Vec<TerminalId>],
        written: Option<Table>,
        logical: Option<&Network>,
        channels: VirtualChannels,
    ) -> Result<Table, ConfigError> {
        let keys = &self.written[number].keys;
        let table = written.unwrap_or_else(|| Table::new(nodes.to_vec(), keys.key_shift));
        if keys.embedding == EmbeddingKind::Given {
            return Ok(table);
        }
        let Some(logical) = logical else {
            let problem = "is \"optimised\", which needs a logical network; describe it in `logical`";
            return Err(self.error(number, "embedding", problem));
        };
        if keys.table.is_some() {
            return Err(self.error(number, "embedding", "is \"optimised\", which writes the table itself; leave one of the two out"));
        }
        let mut paths = RoutedPaths::new(self.setting.network, self.setting.routing, channels);
        let mut stream = self.streams.get(Purpose::Placement, 1 + number as u32);
        let firsts: Vec<TerminalId> = nodes.iter().map(|node| node[0]).collect();
        let found = annealing::search(table.len(), &edges(logical), &firsts, &mut paths, &mut stream);
        let of_first = |first: &TerminalId| nodes.iter().find(|node| node[0] == *first).cloned().unwrap_or_default();
        Ok(Table::new(found.iter().map(of_first).collect(), keys.key_shift))
    }

    /// The nodes that these terminals are: those of a machine may have several.
    fn groups(&self, terminals: &[TerminalId]) -> Result<Vec<Vec<TerminalId>>, ConfigError> {
        let Some(model) = self.model else { return Ok(terminals.iter().map(|&terminal| vec![terminal]).collect()) };
        let nodes = model.model.nodes(self.setting.network, terminals);
        nodes.map_err(|(key, problem)| self.context.error(&format!("endpoint.{key}"), Part::Value, problem))
    }

    /// Spaces are those of programs on a machine.
    fn check_space(&self, number: usize) -> Result<(), ConfigError> {
        let Written { keys, sends, .. } = &self.written[number];
        let has_program = matches!(sends, Sends::Workload(_)) && self.model.is_some_and(Model::is_machine);
        if has_program {
            return Ok(());
        }
        let problem = "is for programs on a machine, whose units have the table of the operating system; leave it out";
        match (keys.space, keys.supervisor) {
            (Space::System, _) => Err(self.error(number, "space", problem)),
            (_, true) => Err(self.error(number, "supervisor", problem)),
            _ => Ok(()),
        }
    }

    /// What becomes of a user's logical links, by the routing that it has.
    fn embedding(&self, number: usize, logical: &Network, table: &Table, inside: Option<&dyn Routing>) -> Result<Embedding, ConfigError> {
        let physical: Option<Vec<TerminalId>> = (0..table.len()).map(|node| table.physical(node).first().copied()).collect();
        let Some(physical) = physical else {
            let problem = "is a network of nodes of which some are not valid in the table; give each a terminal";
            return Err(self.error(number, "logical", problem));
        };
        let channels = self.virtual_channels(number)?;
        let mut paths = RoutedPaths::new(self.setting.network, inside.unwrap_or(self.setting.routing), channels);
        Ok(Embedding::of(&edges(logical), &physical, &mut paths))
    }

    /// The routing that keeps users inside, if they are to stay there.
    fn routing_inside(&self, users: &[User]) -> Result<Option<Arc<dyn Routing>>, ConfigError> {
        if self.common.routing == UserRouting::Anywhere {
            return Ok(None);
        }
        for (number, user) in users.iter().enumerate() {
            if users[..number].iter().any(|other| user.nodes.iter().any(|node| other.nodes.contains(node))) {
                let problem =
                    "shares nodes: a destination does not tell which user a packet belongs to; leave out overlap or users.routing";
                return Err(self.error(number, "overlap", problem));
            }
        }
        let network = self.setting.network;
        let terminals: Vec<&[TerminalId]> = users.iter().map(|user| user.nodes.as_slice()).collect();
        let regional = Regional::new(network, &terminals, &regions(users, network), self.common.isolation != Isolation::None);
        let regional = regional.map_err(|NoPath { user, source, destination }| {
            let [source, destination] = [source, destination].map(|terminal| network.terminal_name(terminal));
            let problem = format!(
                "has {source} and {destination}, between which every path passes routers at which only other users have nodes; choose nodes \
                 that lie together (placement = \"contiguous\"), or leave out users.routing = \"inside\""
            );
            let key = if self.written[user].keys.nodes.is_some() { "nodes" } else { "table" };
            self.error(user, key, problem)
        })?;
        Ok(Some(Arc::new(regional)))
    }

    /// Users share terminals only if one of them names the other.
    fn refuse_overlaps(&self, users: &[User]) -> Result<(), ConfigError> {
        for (number, user) in self.written.iter().enumerate() {
            let mut names = self.written.iter().map(|user| user.keys.name.as_str());
            if let Some((position, other)) = user.keys.overlap.iter().enumerate().find(|(_, other)| !names.any(|name| name == *other)) {
                let names = self.written.iter().map(|user| user.keys.name.as_str());
                return Err(self.error(number, &format!("overlap.{position}"), unknown("user", other, names)));
            }
        }
        for (number, user) in users.iter().enumerate() {
            for (before, other) in users[..number].iter().enumerate() {
                let allows = |one: usize, other: &User| self.written[one].keys.overlap.contains(&other.name);
                let is_supervisor = |one: usize| self.written[one].keys.supervisor;
                if allows(number, other) || allows(before, user) || is_supervisor(number) || is_supervisor(before) {
                    continue;
                }
                if let Some(shared) = user.nodes.iter().find(|node| other.nodes.contains(node)) {
                    let key = self.key_that_names(number, *shared);
                    let shared = self.setting.network.terminal_name(*shared);
                    let problem = format!(
                        "has {shared}, which also belongs to user \"{}\"; give each user its own, or allow it with overlap = [\"{}\"]",
                        other.name, other.name
                    );
                    return Err(self.error(number, &key, problem));
                }
            }
        }
        Ok(())
    }

    /// Where a user's section names a terminal.
    fn key_that_names(&self, number: usize, terminal: TerminalId) -> String {
        let keys = &self.written[number].keys;
        let terminals = Terminals::from(&**self.setting.network);
        let is_it = |written: &TerminalRef| written.find(terminals) == Ok(terminal.0);
        let names = |line: &TableLine| match line {
            TableLine::One(one) => is_it(one),
            TableLine::Aliases(all) => all.iter().any(is_it),
            TableLine::Entry(entry) => is_it(&entry.physical),
        };
        if let Some(position) = keys.table.as_ref().and_then(|table| table.iter().position(names)) {
            return format!("table.{position}");
        }
        match &keys.nodes {
            Some(Nodes::List(list)) => format!("nodes.{}", list.iter().position(is_it).unwrap_or_default()),
            _ => "nodes".to_owned(),
        }
    }
}
