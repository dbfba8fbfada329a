//! `[faults]`: what of the network is down, from the beginning of a run on or from a time on.

use super::context::Context;
use super::document::Part;
use super::error::ConfigError;
use super::physical;
use super::section::Section;
use kasuri_formats::FormatError;
use kasuri_formats::router_name::find_router;
use kasuri_formats::words::{Word, lines_of_words, words};
use kasuri_model::time::CyclesOrTime;
use kasuri_network::id::{Port, RouterId, TerminalId};
use kasuri_network::network::connectivity::separated;
use kasuri_network::network::{Cable, Endpoint, Network, cables, drawn};
use kasuri_network::topology::Files;
use kasuri_workload::units::Units;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Table;

/// Links and routers that are down. The network is damaged before anything is computed on it: routers, terminals and channels keep their
/// numbers and names, no packet takes what is down, and a routing that searches its paths leads round it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FaultsSection {
    /// Links that are down in both directions, each in one of the forms `A.p` (the link at port p of router A), `A B` (the only link between
    /// two routers) and `A B copy c` (the c-th of several, counted from 0 by the ports of A). Routers by number or name; a name with blanks
    /// stands in double quotes.
    links: Vec<String>,
    /// Routers that are down, with all their links: numbers or names.
    routers: Vec<RouterRef>,
    /// Planes that are down, of networks with planes, from 0: all their routers.
    planes: Vec<u32>,
    /// So many links that are drawn beside those that are named.
    link_count: Option<u32>,
    /// Instead of `link_count`: the part of all links between routers that is drawn, from 0 to 1, rounded half up.
    link_fraction: Option<f64>,
    /// The seed of the draw: of all links in the order in which the topology adds them, the first after a shuffle of Fisher and Yates by
    /// SplitMix64.
    seed: u64,
    /// A file of lines `link A.p`, `link A B copy c`, `router A`, `plane i`, relative to the experiment file; `#` starts a comment. Behind each may
    /// stand `at TIME` and `until TIME`, cycles or a time such as `20us`, in place of those of the section.
    path: Option<String>,
    /// When all this fails, in the flit engine: a cycle, at least 1, or a time such as `"20 us"`. Without it, it is down from the
    /// beginning on.
    at: Option<CyclesOrTime>,
    /// When it is all up again: a cycle after `at`, or a time. Without it, it stays down.
    until: Option<CyclesOrTime>,
    /// How long after each change routers go on as before, and lose what they send to dead links; then all route by what is up. 0 unless given.
    detect_after: Option<CyclesOrTime>,
    /// How long after the loss of a packet its source may send it again, before all others: the time-out, or the notice. Without it what is lost
    /// stays lost, which only open traffic can bear.
    resend_after: Option<CyclesOrTime>,
}

/// It stays down.
const NEVER: u64 = u64::MAX;

/// The latest cycle of a failure, and the longest delay behind it.
const MAX_CYCLES: u64 = 1 << 40;

/// From which cycle on something is down, 0 for the beginning, and from which on it is up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    from: u64,
    until: u64,
}

impl Span {
    fn holds(self, cycle: u64) -> bool {
        (self.from..self.until).contains(&cycle)
    }
}

/// What changes during the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// The cycles in which something fails or comes up again, ascending; 0 where something is down at the beginning that comes up again.
    pub(super) cycles: Vec<u64>,
    /// Cycles from a change until routers know of it.
    pub(super) detect_after: u64,
    pub(super) resend_after: Option<u32>,
}

impl Changes {
    /// Is something down at the beginning that comes up again?
    pub(super) fn mend_the_beginning(&self) -> bool {
        self.cycles.first() == Some(&0)
    }
}

impl Default for FaultsSection {
    fn default() -> Self {
        Self {
            links: Vec::new(),
            routers: Vec::new(),
            planes: Vec::new(),
            link_count: None,
            link_fraction: None,
            seed: 1,
            path: None,
            at: None,
            until: None,
            detect_after: None,
            resend_after: None,
        }
    }
}

/// A router in the experiment file: its number, or its name where the network gives its routers names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum RouterRef {
    /// By number, from 0.
    Number(u32),
    /// By name.
    Name(String),
}

/// What is down, as far as it was read.
struct Down<'a> {
    network: &'a Network,
    all: Vec<Cable>,
    cables: Vec<(Cable, Span)>,
    routers: Vec<(RouterId, Span)>,
    /// That of what has no times of its own.
    span: Span,
    units: Units,
}

/// The network without what `[faults]` says is down in a cycle; 0 is before the run.
pub(super) fn damaged(
    context: Context<'_>,
    table: &Table,
    network: &Network,
    units: Units,
    files: &dyn Files,
    cycle: u64,
) -> Result<Network, ConfigError> {
    let down = down(context, table, network, units, files)?;
    let (cables, routers) = (down_in(&down.cables, cycle), down_in(&down.routers, cycle));
    Ok(network.clone().without(&cables, &routers))
}

/// All that `[faults]` says is down at some time.
fn down<'n>(context: Context<'_>, table: &Table, network: &'n Network, units: Units, files: &dyn Files) -> Result<Down<'n>, ConfigError> {
    let section = Section::new(context, "faults", table);
    let keys: FaultsSection = section.whole()?;
    let span = keys.span(units).map_err(|(key, problem)| section.error(key, problem))?;
    let mut down = Down { network, all: cables(network), cables: Vec::new(), routers: Vec::new(), span, units };
    for (place, link) in keys.links.iter().enumerate() {
        let cable = words(link, false).and_then(|words| down.cable(&words));
        down.cables.push((cable.map_err(|problem| section.error(&format!("links.{place}"), problem))?, span));
    }
    for (place, router) in keys.routers.iter().enumerate() {
        let found = match router {
            RouterRef::Number(number) if *number < network.router_count() => Ok(RouterId(*number)),
            RouterRef::Number(number) => find_router(network, &number.to_string()),
            RouterRef::Name(name) => find_router(network, name),
        };
        down.routers.push((found.map_err(|problem| section.error(&format!("routers.{place}"), problem))?, span));
    }
    for (place, &plane) in keys.planes.iter().enumerate() {
        down.add_plane(plane, span).map_err(|problem| section.error(&format!("planes.{place}"), problem))?;
    }
    let count = keys.drawn_links(down.all.len()).map_err(|(key, problem)| section.error(key, problem))?;
    down.cables.extend(drawn(&down.all, count, keys.seed).into_iter().map(|cable| (cable, span)));
    if let Some(path) = &keys.path {
        let bytes = files.read(path).map_err(|problem| section.error("path", problem))?;
        down.read(path, &bytes).map_err(|error| section.error("path", error.to_string()))?;
    }
    Ok(down)
}

/// What of `[faults]` fails, or comes up again, during the run.
pub(super) fn read(
    context: Context<'_>,
    table: &Table,
    network: &Network,
    units: Units,
    files: &dyn Files,
) -> Result<Changes, ConfigError> {
    let section = Section::new(context, "faults", table);
    let keys: FaultsSection = section.whole()?;
    // A large network is not looked through for each point of a sweep if nothing has a time.
    let has_times = keys.at.is_some() || keys.until.is_some() || keys.path.is_some();
    let mut cycles = if has_times { cycles_of_changes(context, table, network, units, files)? } else { Vec::new() };
    cycles.sort_unstable();
    cycles.dedup();
    if cycles.is_empty() && keys.at.is_none() {
        let given = [("detect_after", keys.detect_after.is_some()), ("resend_after", keys.resend_after.is_some())];
        if let Some((key, _)) = given.into_iter().find(|&(_, given)| given) {
            return Err(section.error(key, "is about what changes during the run; say when with at, or leave it out"));
        }
    }
    let in_cycles = |key: &str, written: &Option<CyclesOrTime>, most: u64| {
        let cycles = written.as_ref().map(|written| physical::cycles_of(written, units, most)).transpose();
        cycles.map_err(|problem| section.error(key, problem))
    };
    let detect_after = in_cycles("detect_after", &keys.detect_after, MAX_CYCLES)?.unwrap_or(0);
    let resend_after = in_cycles("resend_after", &keys.resend_after, u64::from(u32::MAX))?.map(|cycles| cycles as u32);
    Ok(Changes { cycles, detect_after, resend_after })
}

/// The cycles in which something fails or comes up again, in any order, 0 as in [`Changes::cycles`].
fn cycles_of_changes(
    context: Context<'_>,
    table: &Table,
    network: &Network,
    units: Units,
    files: &dyn Files,
) -> Result<Vec<u64>, ConfigError> {
    let down = down(context, table, network, units, files)?;
    let spans = down.cables.iter().map(|&(_, span)| span).chain(down.routers.iter().map(|&(_, span)| span));
    let changes = spans.filter(|span| (span.from, span.until) != (0, NEVER));
    Ok(changes.flat_map(|span| [span.from, span.until]).filter(|&cycle| cycle != NEVER).collect())
}

/// Refuses a damaged network in which a packet could not arrive by any routing.
pub(super) fn check_reachable(context: Context<'_>, network: &Network) -> Result<(), ConfigError> {
    let Some(damage) = network.damage() else { return Ok(()) };
    let of_network = context.table("faults")?.is_none();
    let key = if of_network { "network" } else { "faults" };
    let error = |problem: String| Err(context.error(key, Part::Key, problem));
    let served = |router: RouterId| {
        (0..network.terminal_count())
            .map(TerminalId)
            .filter(move |&terminal| network.ejection_port(terminal).0 == router || network.injection_port(terminal).0 == router)
    };
    for &router in damage.routers() {
        let lost: Vec<String> = served(router).map(|terminal| network.terminal_name(terminal)).collect();
        if let [first, rest @ ..] = lost.as_slice() {
            let more = rest.last().map_or(String::new(), |last| format!(" to {last}, {} in all", lost.len()));
            return error(format!(
                "{} is down, and with it {first}{more}, which cannot be reached; leave the router up, or take its terminals out of the network",
                network.router_name(router)
            ));
        }
    }
    match separated(network) {
        None => Ok(()),
        Some((from, to)) => error(format!(
            "cut the network: {}, and {} cannot reach {} by any path; take fewer, others or another seed",
            damage.describe(network),
            network.terminal_name(from),
            network.terminal_name(to)
        )),
    }
}

/// Those that are down in a cycle, each once.
fn down_in<T: Copy>(all: &[(T, Span)], cycle: u64) -> Vec<T> {
    all.iter().filter(|(_, span)| span.holds(cycle)).map(|&(one, _)| one).collect()
}

/// The span from one written time to another.
fn span_of(at: Option<&CyclesOrTime>, until: Option<&CyclesOrTime>, units: Units) -> Result<Span, (&'static str, String)> {
    let cycles = |key: &'static str, written: Option<&CyclesOrTime>| {
        let cycles = written.map(|written| physical::cycles_of(written, units, MAX_CYCLES)).transpose();
        cycles.map_err(|problem| (key, problem))
    };
    let (from, until) = (cycles("at", at)?, cycles("until", until)?);
    match (from, until) {
        (Some(0), _) => Err(("at", "is 0; leave it out for what is down from the beginning on".to_owned())),
        (from, Some(until)) if until <= from.unwrap_or(0) => {
            Err(("until", format!("is cycle {until}; it must be after at, cycle {}", from.unwrap_or(0))))
        }
        (from, until) => Ok(Span { from: from.unwrap_or(0), until: until.unwrap_or(NEVER) }),
    }
}

impl FaultsSection {
    /// When what has no times of its own is down.
    fn span(&self, units: Units) -> Result<Span, (&'static str, String)> {
        span_of(self.at.as_ref(), self.until.as_ref(), units)
    }

    /// How many of all links are drawn.
    fn drawn_links(&self, all: usize) -> Result<usize, (&'static str, String)> {
        match (self.link_count, self.link_fraction) {
            (None, None) => Ok(0),
            (Some(_), Some(_)) => Err(("link_fraction", "conflicts with link_count; keep one of the two".to_owned())),
            (Some(count), None) if count as usize <= all => Ok(count as usize),
            (Some(count), None) => Err(("link_count", format!("is {count}; the network has {all} links between routers"))),
            (None, Some(part)) if (0.0..=1.0).contains(&part) => Ok((part * all as f64 + 0.5).floor() as usize),
            (None, Some(part)) => Err(("link_fraction", format!("is {part}; it must be from 0 to 1"))),
        }
    }
}

/// A line without the time behind this keyword, if it ends with one.
fn split_time<'l, 'w>(line: &'l [Word<'w>], keyword: &str) -> Result<(&'l [Word<'w>], Option<CyclesOrTime>), String> {
    match line {
        [rest @ .., word, time] if word.is(keyword) && !rest.is_empty() => {
            let written = time.text.parse().map_or_else(|_| CyclesOrTime::Time(time.text.clone().into_owned()), CyclesOrTime::Cycles);
            Ok((rest, Some(written)))
        }
        [rest @ .., word] if word.is(keyword) && rest.len() > 1 => {
            Err(format!("`{keyword}` has no time behind it; give cycles, or a time such as 20us"))
        }
        _ => Ok((line, None)),
    }
}

impl Down<'_> {
    /// Reads a file of faults.
    fn read(&mut self, name: &str, bytes: &[u8]) -> Result<(), FormatError> {
        for (number, line) in lines_of_words(name, bytes, false)? {
            self.add(&line).map_err(|problem| FormatError::new(name, number, problem))?;
        }
        Ok(())
    }

    /// Takes one line of a file.
    fn add(&mut self, line: &[Word<'_>]) -> Result<(), String> {
        let (line, until) = split_time(line, "until")?;
        let (line, at) = split_time(line, "at")?;
        let span = match (at, until) {
            (None, None) => self.span,
            (at, until) => span_of(at.as_ref(), until.as_ref(), self.units).map_err(|(key, problem)| format!("{key} {problem}"))?,
        };
        match line {
            [kind, rest @ ..] if kind.is("link") => self.cables.push((self.cable(rest)?, span)),
            [kind, router] if kind.is("router") => self.routers.push((find_router(self.network, &router.text)?, span)),
            [kind, plane] if kind.is("plane") => {
                let number = plane.text.parse().map_err(|_| format!("invalid plane `{}`; expected its number", plane.text))?;
                self.add_plane(number, span)?;
            }
            _ => {
                let words: Vec<&str> = line.iter().map(|word| &*word.text).collect();
                let right = "a line is `link A.p`, `link A B`, `link A B copy c`, `router A` or `plane i`, and may end with `at TIME` and `until TIME`";
                return Err(format!("invalid fault `{}`; {right}", words.join(" ")));
            }
        }
        Ok(())
    }

    /// The link that these words mean.
    fn cable(&self, words: &[Word<'_>]) -> Result<Cable, String> {
        match words {
            [place] => {
                let split = place.text.rsplit_once('.').filter(|(_, port)| port.parse::<Port>().is_ok());
                let (router, port) = split.ok_or_else(|| format!("invalid link `{}`; {LINK_FORMS}", place.text))?;
                self.at_port(find_router(self.network, router)?, port)
            }
            [router, word, port] if word.is("port") => self.at_port(find_router(self.network, &router.text)?, &port.text),
            [one, other] => self.between(&one.text, &other.text, None),
            [one, other, word, copy] if word.is("copy") => self.between(&one.text, &other.text, Some(&copy.text)),
            _ => {
                let words: Vec<&str> = words.iter().map(|word| &*word.text).collect();
                Err(format!("invalid link `{}`; {LINK_FORMS}", words.join(" ")))
            }
        }
    }

    /// The link at a port of a router.
    fn at_port(&self, router: RouterId, port: &str) -> Result<Cable, String> {
        let name = self.network.router_name(router);
        let ports = self.network.port_count(router);
        let found = port.parse().ok().filter(|&port: &Port| u32::from(port) < ports);
        let port = found.ok_or_else(|| format!("`{port}` is not a port of {name}, which has {ports} ports"))?;
        let here = Endpoint::Router(router, port);
        let ends = |cable: &&Cable| [self.network.source(cable.first), self.network.destination(cable.first)].contains(&here);
        self.all.iter().find(ends).copied().ok_or_else(|| {
            let channel = self.network.output_channel(router, port).or_else(|| self.network.input_channel(router, port));
            let what = match channel.map(|channel| (self.network.source(channel), self.network.destination(channel))) {
                Some((Endpoint::Terminal(terminal), _) | (_, Endpoint::Terminal(terminal))) => {
                    format!(
                        "leads to {}, which no other path serves: only links between routers can be down",
                        self.network.terminal_name(terminal)
                    )
                }
                _ => "has no link".to_owned(),
            };
            format!("port {port} of {name} {what}")
        })
    }

    /// The link between two routers, or one of several.
    fn between(&self, one: &str, other: &str, copy: Option<&str>) -> Result<Cable, String> {
        let (one, other) = (find_router(self.network, one)?, find_router(self.network, other)?);
        let by_port: BTreeMap<Port, Cable> =
            self.all.iter().filter_map(|&cable| Some((self.port_between(cable, one, other)?, cable))).collect();
        let [first, second] = [one, other].map(|router| self.network.router_name(router));
        let count = by_port.len();
        if count == 0 {
            return Err(format!("no link joins {first} and {second}"));
        }
        let number = match copy {
            None if count == 1 => 0,
            None => return Err(format!("{count} links join {first} and {second}; say which: copy 0 to copy {}", count - 1)),
            Some(copy) => copy.parse().ok().filter(|&copy: &usize| copy < count).ok_or_else(|| {
                format!("copy `{copy}` is none of the {count} links between {first} and {second}, which are numbered from 0")
            })?,
        };
        Ok(*by_port.values().nth(number).expect("a number below the count"))
    }

    /// The port of `one` at which a cable to `other` begins or ends.
    fn port_between(&self, cable: Cable, one: RouterId, other: RouterId) -> Option<Port> {
        match (self.network.source(cable.first), self.network.destination(cable.first)) {
            (Endpoint::Router(from, port), Endpoint::Router(to, _)) if from == one && to == other => Some(port),
            (Endpoint::Router(from, _), Endpoint::Router(to, port)) if from == other && to == one => Some(port),
            _ => None,
        }
    }

    fn add_plane(&mut self, plane: u32, span: Span) -> Result<(), String> {
        let Some(column) = self.network.labels().router("plane") else {
            return Err(format!("{} has no planes", self.network.name()));
        };
        let planes = column.iter().max().map_or(0, |last| last + 1);
        if plane >= planes {
            return Err(format!("{plane} is none of the {planes} planes, which are numbered from 0"));
        }
        self.routers
            .extend(column.iter().zip(0..).filter(|(of_router, _)| **of_router == plane).map(|(_, router)| (RouterId(router), span)));
        Ok(())
    }
}

/// How links are named.
const LINK_FORMS: &str = "name it as `A.p` (router and port), `A B` (two routers) or `A B copy c`";

#[cfg(test)]
mod tests;
