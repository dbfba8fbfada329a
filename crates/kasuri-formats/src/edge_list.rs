//! Edge lists: any network as a text of one line per link.
//!
//! ```text
//! # A router may be declared with its number of ports, before or after its links.
//! router a ports=4
//! # A link, that is a channel each way. Latency and period are optional: [network] says the usual ones.
//! router a router b latency=2 period=1
//! # In place of the period its rate, Gbit/s: the fastest link has the usual period (a multiple where the rates have no whole ratios).
//! router b router c gbit=400
//! # One direction only.
//! router b -> router a
//! # A terminal and its router. A terminal of a unidirectional network has a line for each direction.
//! terminal 0 router a
//! terminal 1 -> router a
//! router b -> terminal 1
//! # Ports may be told; the others are the lowest free ones, in the order of the lines.
//! router a port 3 router b port 0
//! # Terminals may be declared, too: that fixes their order.
//! terminal 0
//! ```
//!
//! Names are words or numbers; a name with blanks is in double quotes, as JSON writes it. Where all routers (or all terminals) have
//! numbers without quotes for names, they are numbered in ascending order of these; otherwise in the order in which the lines first name
//! them. `#` starts a comment.

use crate::error::FormatError;
use crate::rate::{self, Speed};
use crate::words::{Word, lines_of_words, quoted};
use kasuri_network::id::{Port, RouterId, TerminalId};
use kasuri_network::network::{Endpoint, Link, MAX_CHANNEL_CYCLES, MAX_PORTS, Names, Network, NetworkBuilder, NetworkError};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// An edge list as it was read: names have become numbers, missing latencies and ports are still missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeList {
    /// The file's name, for messages.
    pub name: String,
    /// The routers' names, by number.
    pub routers: Vec<String>,
    /// The terminals' names, by number.
    pub terminals: Vec<String>,
    /// Declared numbers of ports: (router, ports, line).
    pub ports: Vec<(u32, u32, usize)>,
    /// The links and channels in the order of the lines.
    pub edges: Vec<Edge>,
    /// Notes on parts of the file that have no effect.
    pub notes: Vec<String>,
}

/// Periods of rates.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    /// Cycles that a flit takes at each rate, in whole numbers.
    periods: BTreeMap<Speed, u32>,
    /// The greatest rate.
    fastest: Speed,
    /// Gbit/s of a channel of one cycle a flit: what `[network] channel_gbit_per_second` has to be where the usual period is 1.
    pub gbit_per_second: f64,
}

impl Rates {
    /// The period of a rate, or of the fastest one where none is told.
    fn period(&self, rate: Option<Speed>) -> u32 {
        self.periods.get(&rate.unwrap_or(self.fastest)).copied().unwrap_or(1)
    }

    /// The rate of each period.
    pub fn by_period(&self) -> BTreeMap<u32, Speed> {
        self.periods.iter().map(|(&speed, &period)| (period, speed)).collect()
    }
}

/// One link or channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Where it begins.
    pub from: Node,
    /// Where it ends.
    pub to: Node,
    /// Is there a channel back, of the same speed?
    pub both_ways: bool,
    /// Latency in cycles, if told.
    pub latency: Option<u32>,
    /// Period in cycles per flit, if told.
    pub period: Option<u32>,
    /// Rate, if told.
    pub rate: Option<Speed>,
    /// The line, from 1.
    pub line: usize,
}

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A router and, if told, its port.
    Router(u32, Option<Port>),
    /// A terminal.
    Terminal(u32),
}

/// Reads an edge list. `name` is the file's name for messages.
///
/// # Errors
/// A line of another form, a number outside its range, a link from a router to itself or between terminals.
pub fn parse(name: &str, bytes: &[u8]) -> Result<EdgeList, FormatError> {
    let mut names = Mentioned::default();
    let mut list = EdgeList { name: name.to_owned(), ..EdgeList::default() };
    let mut declared: Vec<(u32, usize)> = Vec::new();
    for (line, words) in lines_of_words(name, bytes, false)? {
        let mut words = Words { name, line, words, position: 0 };
        let from = words.node(&mut names)?;
        if words.peek().is_none_or(|word| !word.is_quoted && word.text.contains('=')) {
            let router = match from {
                Node::Router(router, None) => router,
                Node::Terminal(terminal) if words.peek().is_none() => {
                    declared.push((terminal, line));
                    continue;
                }
                _ => return Err(words.error(format!("`{}` has one end only; {BOTH_ENDS}", words.shown()))),
            };
            let attributes = words.attributes(&["ports"])?;
            list.ports.push((router, attributes[0].unwrap_or(0), line));
            continue;
        }
        let both_ways = !words.skip("->");
        let to = words.node(&mut names)?;
        match (from, to) {
            (Node::Terminal(_), Node::Terminal(_)) => return Err(words.error("links two terminals; a terminal is linked to a router")),
            (Node::Router(one, _), Node::Router(other, _)) if one == other => return Err(words.error("links a router to itself")),
            _ => {}
        }
        let rate = words.rate()?;
        let attributes = words.attributes(&["latency", "period", "gbit"])?;
        if attributes[1] == Some(0) {
            return Err(words.error("period=0; a flit occupies a channel for at least 1 cycle"));
        }
        if attributes[1].is_some() && rate.is_some() {
            return Err(words.error("gives period and gbit; each says how fast the link is"));
        }
        list.edges.push(Edge { from, to, both_ways, latency: attributes[0], period: attributes[1], rate, line });
    }
    let mut linked = vec![false; names.terminals.names.len()];
    for end in list.edges.iter().flat_map(|edge| [edge.from, edge.to]) {
        if let Node::Terminal(number) = end {
            linked[number as usize] = true;
        }
    }
    if let Some(&(terminal, line)) = declared.iter().find(|(terminal, _)| !linked[*terminal as usize]) {
        let problem = format!("`terminal {}` has one end only; {BOTH_ENDS}", names.terminals.names[terminal as usize]);
        return Err(FormatError::new(name, line, problem));
    }
    names.number(&mut list);
    Ok(list)
}

const BOTH_ENDS: &str = "give both, e.g. `terminal 0 router a`";

/// The words of one line.
struct Words<'a> {
    name: &'a str,
    line: usize,
    words: Vec<Word<'a>>,
    position: usize,
}

impl<'a> Words<'a> {
    fn shown(&self) -> String {
        self.words.iter().map(|word| &*word.text).collect::<Vec<_>>().join(" ")
    }

    fn error(&self, problem: impl Into<String>) -> FormatError {
        FormatError::new(self.name, self.line, problem)
    }

    fn peek(&self) -> Option<&Word<'a>> {
        self.words.get(self.position)
    }

    fn next(&mut self) -> Option<Word<'a>> {
        self.position += 1;
        self.words.get(self.position - 1).cloned()
    }

    fn skip(&mut self, keyword: &str) -> bool {
        let found = self.peek().is_some_and(|word| word.is(keyword));
        self.position += usize::from(found);
        found
    }

    fn node(&mut self, names: &mut Mentioned) -> Result<Node, FormatError> {
        let kind = self.next();
        let is_terminal = match &kind {
            Some(word) if word.is("router") => false,
            Some(word) if word.is("terminal") => true,
            other => {
                let found = other.as_ref().map_or("the end of the line", |word| &word.text);
                return Err(self.error(format!("expected `router NAME` or `terminal NAME`, found `{found}`")));
            }
        };
        let Some(name) = self.next().filter(|name| name.is_quoted || !name.text.contains('=') && name.text != "->") else {
            return Err(self.error(format!("`{}` without a name", if is_terminal { "terminal" } else { "router" })));
        };
        if is_terminal {
            return Ok(Node::Terminal(names.terminals.add(&name)));
        }
        let router = names.routers.add(&name);
        if !self.skip("port") {
            return Ok(Node::Router(router, None));
        }
        let word = self.next().map_or("the end of the line".into(), |word| word.text);
        match word.parse() {
            Ok(port) if usize::from(port) < MAX_PORTS => Ok(Node::Router(router, Some(port))),
            _ => Err(self.error(format!("`port {word}`; ports are numbered 0 to {}", MAX_PORTS - 1))),
        }
    }

    /// Takes `gbit=NUMBER` out of the rest of the line, which may be no whole number.
    fn rate(&mut self) -> Result<Option<Speed>, FormatError> {
        let rest = self.words.get(self.position..).unwrap_or_default();
        let Some(place) = rest.iter().position(|word| !word.is_quoted && word.text.starts_with("gbit=")) else { return Ok(None) };
        let word = self.words.remove(self.position + place).text;
        let number = word.trim_start_matches("gbit=").parse().ok().and_then(Speed::from_gbit_per_second);
        let number = number.ok_or_else(|| self.error(format!("`{word}`: expected gbit=NUMBER, Gbit/s above 0")))?;
        match self.words[self.position..].iter().any(|word| !word.is_quoted && word.text.starts_with("gbit=")) {
            true => Err(self.error("duplicate gbit")),
            false => Ok(Some(number)),
        }
    }

    /// The rest of the line: `key=number`, each of `keys` at most once, in their order.
    fn attributes(&mut self, keys: &[&str]) -> Result<Vec<Option<u32>>, FormatError> {
        let mut values = vec![None; keys.len()];
        while let Some(Word { text: word, .. }) = self.next() {
            let (key, value) = word.split_once('=').unwrap_or((&*word, ""));
            let Some(position) = keys.iter().position(|known| *known == key) else {
                return Err(self.error(format!("`{word}` is not known here; what may follow is {}=NUMBER", keys.join("=NUMBER, "))));
            };
            let number = value.parse::<u32>().ok().filter(|&number| number <= MAX_CHANNEL_CYCLES);
            let number = number.ok_or_else(|| self.error(format!("`{word}`: expected {key}=NUMBER, 0 to {MAX_CHANNEL_CYCLES}")))?;
            if values[position].replace(number).is_some() {
                return Err(self.error(format!("duplicate {key}")));
            }
        }
        Ok(values)
    }
}

/// Names in the order of their first mention.
#[derive(Default)]
struct Mentioned {
    routers: NameList,
    terminals: NameList,
}

#[derive(Default)]
struct NameList {
    names: Vec<String>,
    index: BTreeMap<String, u32>,
    /// Whether a name is in quotes; then none is a number.
    has_quotes: bool,
}

impl NameList {
    fn add(&mut self, word: &Word<'_>) -> u32 {
        self.has_quotes |= word.is_quoted;
        let name = &*word.text;
        if let Some(&number) = self.index.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.index.insert(name.to_owned(), number);
        number
    }

    /// The names in their final order, and the final number of each mention's number.
    fn order(self) -> (Vec<String>, Vec<u32>) {
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        let numbers: Option<Vec<u64>> = self.names.iter().map(|name| name.parse().ok()).collect();
        if let Some(numbers) = numbers.filter(|_| !self.has_quotes) {
            order.sort_by_key(|&mention| numbers[mention]);
        }
        let mut final_number = vec![0; order.len()];
        for (number, &mention) in order.iter().enumerate() {
            final_number[mention] = number as u32;
        }
        (order.into_iter().map(|mention| self.names[mention].clone()).collect(), final_number)
    }
}

impl Mentioned {
    fn number(self, list: &mut EdgeList) {
        let (routers, router) = self.routers.order();
        let (terminals, terminal) = self.terminals.order();
        let renumber = |node: &mut Node| match node {
            Node::Router(number, _) => *number = router[*number as usize],
            Node::Terminal(number) => *number = terminal[*number as usize],
        };
        for edge in &mut list.edges {
            renumber(&mut edge.from);
            renumber(&mut edge.to);
        }
        list.ports.iter_mut().for_each(|(number, ..)| *number = router[*number as usize]);
        (list.routers, list.terminals) = (routers, terminals);
    }
}

impl EdgeList {
    /// Builds the network; channels without a latency or period get `link` between routers and `terminal_link` at terminals.
    ///
    /// # Errors
    /// A terminal that has not exactly one channel in and one out, at the same speed; a port used twice; too many ports. Each
    /// names the line.
    pub fn network(&self, link: Link, terminal_link: Link) -> Result<Network, NetworkError> {
        let wrong = |error: FormatError| NetworkError::parameter("path", error.to_string());
        if self.terminals.is_empty() {
            return Err(wrong(FormatError::new(&self.name, 1, "has no terminals; add lines such as `terminal 0 router a`")));
        }
        let rates = self.rates();
        let link_of = |edge: &Edge, usual: Link| self.link_of(edge, usual, rates.as_ref());
        let ports = self.assign_ports().map_err(wrong)?;
        let mut builder = NetworkBuilder::new(format!("file {}", self.name));
        for (router, free) in ports.used.iter().enumerate() {
            let declared = self.ports.iter().filter(|(number, ..)| *number as usize == router).map(|(_, ports, _)| *ports as usize).max();
            builder.add_router(declared.unwrap_or(0).max(free.len()))?;
        }
        for terminal in self.attachments(&ports, |edge| link_of(edge, terminal_link)).map_err(wrong)? {
            builder.add_split_terminal(terminal.injection, terminal.ejection, terminal.link);
        }
        for (edge, &(out, into)) in self.edges.iter().zip(&ports.edges) {
            if let (Node::Router(from, _), Node::Router(to, _)) = (edge.from, edge.to) {
                let (from, to) = ((RouterId(from), out), (RouterId(to), into));
                let link = link_of(edge, link).map_err(wrong)?;
                builder.add_channel(from, to, link);
                if edge.both_ways {
                    builder.add_channel(to, from, link);
                }
            }
        }
        builder.name_routers(self.routers.clone());
        builder.name_terminals(self.terminals.clone());
        builder.finish()
    }

    /// Told ports first, then for the others the lowest ports that are free in both directions, line after line.
    fn assign_ports(&self) -> Result<Ports, FormatError> {
        let mut ports = Ports { used: vec![Vec::new(); self.routers.len()], edges: vec![(0, 0); self.edges.len()] };
        for given in [true, false] {
            for (index, edge) in self.edges.iter().enumerate() {
                for (node, outwards) in [(edge.from, true), (edge.to, false)] {
                    let Node::Router(router, port) = node else { continue };
                    if port.is_some() != given {
                        continue;
                    }
                    let directions = if edge.both_ways { [true, true] } else { [outwards, !outwards] };
                    let taken = ports.take(router, port, directions).map_err(|problem| {
                        FormatError::new(&self.name, edge.line, format!("router {}: {problem}", self.routers[router as usize]))
                    })?;
                    *(if outwards { &mut ports.edges[index].0 } else { &mut ports.edges[index].1 }) = taken;
                }
            }
        }
        Ok(ports)
    }

    /// What the rates of the lines mean, where there are some.
    pub fn rates(&self) -> Option<Rates> {
        let used: BTreeSet<Speed> = self.edges.iter().filter_map(|edge| edge.rate).collect();
        let fastest = *used.last()?;
        let mbit: Vec<u32> = used.iter().map(|speed| speed.mbit_per_second()).collect();
        let (periods, channel_mbit) = rate::periods(&mbit, MAX_CHANNEL_CYCLES);
        Some(Rates { periods: used.into_iter().zip(periods).collect(), fastest, gbit_per_second: channel_mbit / 1000.0 })
    }

    /// Latency and period of an edge; one without a rate among others that have some is as fast as the fastest.
    fn link_of(&self, edge: &Edge, usual: Link, rates: Option<&Rates>) -> Result<Link, FormatError> {
        if let (Some(rates), Some(rate)) = (rates, edge.rate)
            && rate.is_too_slow(rates.fastest)
        {
            let problem =
                format!("a link of {rate} and one of {}: the fastest may be at most {MAX_CHANNEL_CYCLES} times as fast", rates.fastest);
            return Err(FormatError::new(&self.name, edge.line, problem));
        }
        let period = match rates {
            Some(rates) if edge.period.is_none() => usual.period.saturating_mul(rates.period(edge.rate)),
            _ => edge.period.unwrap_or(usual.period),
        };
        if period > MAX_CHANNEL_CYCLES {
            let problem = format!("a flit would occupy this link for {period} cycles; at most {MAX_CHANNEL_CYCLES} are possible");
            return Err(FormatError::new(&self.name, edge.line, problem));
        }
        Ok(Link { latency: edge.latency.unwrap_or(usual.latency), period })
    }

    fn attachments(&self, ports: &Ports, link: impl Fn(&Edge) -> Result<Link, FormatError>) -> Result<Vec<Attachment>, FormatError> {
        let mut ends: Vec<Ends> = vec![[None; 2]; self.terminals.len()];
        for (edge, &(out, into)) in self.edges.iter().zip(&ports.edges) {
            let (terminal, router, inwards) = match (edge.from, edge.to) {
                (Node::Terminal(terminal), Node::Router(router, _)) => (terminal, (router, into), true),
                (Node::Router(router, _), Node::Terminal(terminal)) => (terminal, (router, out), false),
                _ => continue,
            };
            let directions: &[usize] = if edge.both_ways { &[0, 1] } else { &[usize::from(!inwards)] };
            for &direction in directions {
                let end = (RouterId(router.0), router.1, link(edge)?);
                if ends[terminal as usize][direction].replace(end).is_some() {
                    let problem = format!("terminal {} is linked twice in this direction", self.terminals[terminal as usize]);
                    return Err(FormatError::new(&self.name, edge.line, problem));
                }
            }
        }
        let line_of = |terminal: u32| {
            let mentions = |edge: &&Edge| [edge.from, edge.to].contains(&Node::Terminal(terminal));
            self.edges.iter().rfind(mentions).map_or(1, |edge| edge.line)
        };
        let attachment = |(number, ends): (usize, Ends)| {
            let error = |problem: &str| {
                FormatError::new(&self.name, line_of(number as u32), format!("terminal {} {problem}", self.terminals[number]))
            };
            match ends {
                [Some(injection), Some(ejection)] if injection.2 == ejection.2 => {
                    let link = injection.2;
                    Ok(Attachment { injection: (injection.0, injection.1), ejection: (ejection.0, ejection.1), link })
                }
                [Some(_), Some(_)] => Err(error("has channels of different latency or period; they must be equal")),
                [None, _] => Err(error("has no channel into a router")),
                [_, None] => Err(error("has no channel from a router")),
            }
        };
        ends.into_iter().enumerate().map(attachment).collect()
    }
}

/// Where a terminal's channel into a router ends, and where its channel from a router begins.
type Ends = [Option<(RouterId, Port, Link)>; 2];

struct Attachment {
    injection: (RouterId, Port),
    ejection: (RouterId, Port),
    link: Link,
}

/// The ports of each edge's two ends, and which ports of each router are used as [output, input].
struct Ports {
    used: Vec<Vec<[bool; 2]>>,
    edges: Vec<(Port, Port)>,
}

impl Ports {
    fn take(&mut self, router: u32, port: Option<Port>, directions: [bool; 2]) -> Result<Port, String> {
        let used = &mut self.used[router as usize];
        let lowest_free = || used.iter().position(|used| *used == [false; 2]).unwrap_or(used.len());
        let port = port.map_or_else(lowest_free, usize::from);
        if port >= MAX_PORTS {
            return Err(format!("more than {MAX_PORTS} ports"));
        }
        if used.len() <= port {
            used.resize(port + 1, [false; 2]);
        }
        for (used, wanted) in used[port].iter_mut().zip(directions) {
            if *used && wanted {
                return Err(format!("port {port} is used twice"));
            }
            *used |= wanted;
        }
        Ok(port as Port)
    }
}

/// Writes any network as an edge list with every port, latency and period told. Reading it back gives the same routers, ports,
/// terminals, channels and names (labels are lost).
pub fn write(network: &Network) -> String {
    let mut text = format!("# {}\n", network.name().replace(['\n', '\r'], " "));
    let mut line = |arguments: std::fmt::Arguments<'_>| text.write_fmt(arguments).expect("a string takes any text");
    let router_name = |router: RouterId| name(network.router_names(), router.0);
    for router in (0..network.router_count()).map(RouterId) {
        line(format_args!("router {} ports={}\n", router_name(router), network.port_count(router)));
    }
    for terminal in (0..network.terminal_count()).map(TerminalId) {
        let ((into, in_port), (from, out_port)) = (network.injection_port(terminal), network.ejection_port(terminal));
        let Link { latency, period } = network.link(network.injection_channel(terminal));
        let (name, speed) = (name(network.terminal_names(), terminal.0), format!("latency={latency} period={period}"));
        if (into, in_port) == (from, out_port) {
            line(format_args!("terminal {name} router {} port {in_port} {speed}\n", router_name(into)));
        } else {
            line(format_args!("terminal {name} -> router {} port {in_port} {speed}\n", router_name(into)));
            line(format_args!("router {} port {out_port} -> terminal {name} {speed}\n", router_name(from)));
        }
    }
    let mut channels = network.router_channels().peekable();
    while let Some(channel) = channels.next() {
        let (Endpoint::Router(from, out), Endpoint::Router(to, into)) = (network.source(channel), network.destination(channel)) else {
            continue;
        };
        let Link { latency, period } = network.link(channel);
        let is_way_back = |back: &kasuri_network::id::ChannelId| {
            network.source(*back) == Endpoint::Router(to, into)
                && network.destination(*back) == Endpoint::Router(from, out)
                && network.link(*back) == network.link(channel)
        };
        let arrow = if channels.next_if(is_way_back).is_some() { "" } else { "-> " };
        let (from, to) = (router_name(from), router_name(to));
        line(format_args!("router {from} port {out} {arrow}router {to} port {into} latency={latency} period={period}\n"));
    }
    text
}

/// A name, or a number where there are none.
fn name(names: &Names, number: u32) -> Cow<'_, str> {
    names.all().map_or_else(|| number.to_string().into(), |names| quoted(&names[number as usize]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Network, String> {
        let list = parse("n.txt", text.as_bytes()).map_err(|error| error.to_string())?;
        list.network(Link::default(), Link { latency: 2, period: 1 }).map_err(|error| error.to_string())
    }

    #[test]
    fn ports_follow_the_lines_and_names_their_numbers() {
        let network = read("router 9 router 4 latency=5\nterminal 1 router 4\nterminal 0 router 9 latency=7\n").unwrap();
        assert_eq!((network.router_count(), network.terminal_count(), network.channel_count()), (2, 2, 6));
        // Router 4 is the first by number; its port 0 is the link, its port 1 the terminal.
        assert_eq!(network.ejection_port(TerminalId(1)), (RouterId(0), 1));
        assert_eq!(network.link(network.injection_channel(TerminalId(0))).latency, 7);
        assert_eq!(network.link(network.injection_channel(TerminalId(1))).latency, 2);
        let link = network.output_channel(RouterId(0), 0).unwrap();
        assert_eq!((network.destination(link), network.link(link).latency), (Endpoint::Router(RouterId(1), 0), 5));
        let words = read("router b router a\nterminal x router a\nterminal w router b\n").unwrap();
        assert_eq!(words.ejection_port(TerminalId(0)), (RouterId(1), 1));
        // Names are kept; numbers that are what the routers have anyway are none.
        assert_eq!((network.router_names().of(0), network.terminal_names().all()), ("4".to_owned(), None));
        assert_eq!(words.router_names().all().unwrap(), ["b", "a"]);
    }

    #[test]
    fn quotes_hold_names_and_declarations_their_order() {
        let network = read(
            "terminal \"2\"\nterminal \"rack 1\"\nrouter \"10\" router \"9\"\nterminal \"rack 1\" router \"9\"\nterminal \"2\" router \"10\"",
        );
        let network = network.unwrap();
        assert_eq!(network.router_names().all().unwrap(), ["10", "9"]);
        assert_eq!(network.terminal_names().all().unwrap(), ["2", "rack 1"]);
        assert_eq!(network.ejection_port(TerminalId(1)).0, RouterId(1));
        let again = read(&write(&network)).unwrap();
        assert_eq!((again.router_names(), again.terminal_names()), (network.router_names(), network.terminal_names()));
    }

    /// 400 over 200 and 100 are 1, 2 and 4 cycles, 100 over 40 is 2 and 5; links that tell no rate are as fast as the fastest.
    #[test]
    fn rates_become_periods() {
        let text =
            "terminal 0 router a gbit=200\nrouter a router b gbit=100\nrouter a router b gbit=400\nrouter b router c\nterminal 1 router c";
        let network = read(text).unwrap();
        let period = |channel: u32| network.link(kasuri_network::id::ChannelId(channel)).period;
        assert_eq!([0, 1, 4, 6, 8].map(period), [2, 1, 4, 1, 1]);
        let network = read("terminal 0 router a gbit=100\nrouter a router b gbit=40").unwrap();
        assert_eq!(
            (network.link(network.injection_channel(TerminalId(0))).period, network.link(kasuri_network::id::ChannelId(2)).period),
            (2, 5)
        );
        let list = parse("n", b"terminal 0 router a gbit=100\nrouter a router b gbit=40").unwrap();
        assert_eq!(list.rates().unwrap().gbit_per_second.to_bits(), 200f64.to_bits());
    }

    #[test]
    fn errors_name_the_file_the_line_and_what_is_wrong() {
        for (text, expected) in [
            ("router a router b\nlink a b\n", "n.txt:2: expected `router NAME` or `terminal NAME`, found `link`"),
            ("router a\nrouter\n", "n.txt:2: `router` without a name"),
            ("terminal 0\n", "n.txt:1: `terminal 0` has one end only"),
            ("router a router a\n", "n.txt:1: links a router to itself"),
            ("terminal 0 terminal 1\n", "n.txt:1: links two terminals"),
            ("router a router b speed=1\n", "n.txt:1: `speed=1` is not known here"),
            ("router a router b latency=x\n", "n.txt:1: `latency=x`: expected latency=NUMBER"),
            ("router a router b latency=1 latency=1\n", "n.txt:1: duplicate latency"),
            ("router a router b period=0\n", "n.txt:1: period=0"),
            ("router a router b gbit=0\n", "n.txt:1: `gbit=0`: expected gbit=NUMBER, Gbit/s above 0"),
            ("router a router b gbit=1 gbit=2\n", "n.txt:1: duplicate gbit"),
            ("router a router b gbit=1 period=2\n", "n.txt:1: gives period and gbit"),
            (
                "terminal 0 router a\nrouter a router b gbit=4000000\nrouter a router b gbit=0.001\n",
                "n.txt:3: a link of 0.001 Gbit/s and one of 4000000 Gbit/s: the fastest may be at most 1000000 times",
            ),
            ("router a port 512 router b\n", "n.txt:1: `port 512`"),
            ("router a router b\n", "n.txt:1: has no terminals"),
            ("terminal 0 router a\nterminal 0 router a\n", "n.txt:2: terminal 0 is linked twice"),
            ("terminal 0 -> router a\n", "n.txt:1: terminal 0 has no channel from a router"),
            (
                "terminal 0 -> router a latency=1\nrouter a -> terminal 0 latency=2\n",
                "n.txt:2: terminal 0 has channels of different latency",
            ),
            ("terminal 0 router a port 1\nrouter a port 1 router b\n", "n.txt:2: router a: port 1 is used twice"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
