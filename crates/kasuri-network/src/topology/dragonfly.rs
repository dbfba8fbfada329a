//! Dragonfly: groups of fully meshed routers, any two groups joined by the same number of links.

use super::contract::{BuildContext, Topology};
use super::sizes;
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Groups of a = `routers_per_group` routers, each linked to the others of its group, with p = `terminals_per_router` terminals
/// and h = `global_channels` links to other groups each. Of g = `groups` groups any two are joined by e = (a h) div (g - 1) links; unless given
/// otherwise g = a h + 1 and e = 1. Balanced: a = 2 p = 2 h. The keys may be called p, a and h.
///
/// Router r of group i is number i a + r. Ports: 0..p-1 terminals; then the other routers of the group in ascending order, once for each of
/// `local` parallel links; then the global links. Global link C of a group is port C mod h of router C div h and belongs to copy C div (g - 1);
/// `arrangement` says where link C mod (g - 1) leads, at the same copy. The a h - e (g - 1) links that remain are not connected.
///
/// Between groups the routings take one global link, and at most a local hop before and after it. With `channel_latency` a list of two numbers the first is that
/// of the local links, the second that of the global ones.
///
/// Labels: routers `group`, `position` (r); attributes `dragonfly` = [p, a, h] of a whole one (g = a h + 1, `local` = 1, all routers and
/// terminals), `dragonfly_groups` = [p, a, h, g, e, local], `terminal_digits` = [p, a, groups] with all terminals, `hops_per_class`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dragonfly {
    /// Terminals on each router, p.
    pub terminals_per_router: Option<u32>,
    /// Routers in each group, a.
    pub routers_per_group: Option<u32>,
    /// Links of each router to other groups, h.
    pub global_channels: Option<u32>,
    /// Another name of `terminals_per_router`.
    pub p: Option<u32>,
    /// Another name of `routers_per_group`.
    pub a: Option<u32>,
    /// Another name of `global_channels`.
    pub h: Option<u32>,
    /// Groups, g: from 2 to a h + 1, which it is unless given.
    pub groups: Option<u32>,
    /// Parallel links between two routers of a group; 1 unless given.
    pub local: Option<u32>,
    /// Which global link of a group leads where.
    pub arrangement: Arrangement,
    /// Routers of the last group, if it has fewer than the others; links to those that are missing are missing.
    pub routers_in_last_group: Option<u32>,
    /// Terminals in all, if they are fewer than p on each router.
    pub terminals: Option<u32>,
    /// Which routers have them then.
    pub fill: Fill,
}

/// Where the global link k of group i leads, of g groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrangement {
    /// To group (i - k - 1) mod g, arriving at its link g - 2 - k.
    #[default]
    PalmTree,
    /// As `palm-tree`.
    #[serde(rename = "palmtree")]
    Palmtree,
    /// To the other groups in ascending order: to group k if k < i, else to k + 1.
    Consecutive,
    /// As `consecutive`.
    Absolute,
    /// To group (i + k + 1) mod g, arriving at its link g - 2 - k.
    Relative,
    /// To i + k/2 + 1 (k even) or i - (k + 1)/2 (k odd) mod g, arriving at k with its last bit changed; for an even g link g - 2 joins antipodes.
    Circulant,
}

/// Which routers have terminals where not all have p.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// The first ones, p each.
    #[default]
    Packed,
    /// All in turn: terminal t on router t mod the number of routers.
    Spread,
}

impl Arrangement {
    /// The group that link `link` of group `group` leads to, and the link of that group at which it arrives.
    fn other_end(self, group: u32, link: u32, groups: u32) -> (u32, u32) {
        let ahead = |steps: u32| (group + steps) % groups;
        match self {
            Self::PalmTree | Self::Palmtree => (ahead(groups - link - 1), groups - 2 - link),
            Self::Consecutive | Self::Absolute => {
                let other = link + u32::from(link >= group);
                (other, group - u32::from(group > other))
            }
            Self::Relative => (ahead(link + 1), groups - 2 - link),
            Self::Circulant if groups.is_multiple_of(2) && link == groups - 2 => (ahead(groups / 2), link),
            Self::Circulant if link.is_multiple_of(2) => (ahead(link / 2 + 1), link ^ 1),
            Self::Circulant => (ahead(groups - link.div_ceil(2)), link ^ 1),
        }
    }
}

/// The global links of groups that have so many places for them: which places are joined.
#[derive(Clone, Copy, Debug)]
pub(super) struct GlobalLinks {
    groups: u32,
    /// Links between any two groups.
    pub(super) copies: u32,
    arrangement: Arrangement,
}

impl GlobalLinks {
    /// Of `groups` groups with `places` places each.
    ///
    /// # Errors
    /// Fewer than 2 groups, or more than one place can lead to each.
    pub(super) fn new(groups: u32, places: u32, arrangement: Arrangement) -> Result<Self, NetworkError> {
        if !(2..=places.saturating_add(1)).contains(&groups) {
            let most = places.saturating_add(1);
            let problem = format!("is {groups}; a group has {places} links to others, so that it must be from 2 to {most}");
            return Err(NetworkError::parameter("groups", problem));
        }
        Ok(Self { groups, copies: places / (groups - 1), arrangement })
    }

    /// Each link once, as the group and place of both ends, that of the lower group first.
    pub(super) fn ends(self) -> impl Iterator<Item = [(u32, u32); 2]> {
        let Self { groups, copies, arrangement } = self;
        let of_group = move |group: u32| (0..copies * (groups - 1)).map(move |place| (group, place));
        (0..groups).flat_map(of_group).filter_map(move |(group, place)| {
            let (copy, link) = (place / (groups - 1), place % (groups - 1));
            let (other, back) = arrangement.other_end(group, link, groups);
            (other > group).then_some([(group, place), (other, copy * (groups - 1) + back)])
        })
    }
}

impl Member for Dragonfly {
    const NAME: &'static str = "dragonfly";
    const SUMMARY: &'static str = "groups of fully meshed routers, equally many links between any two groups";
    const SOURCE: &'static str = "Kim, Dally, Scott and Abts, Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008; palm tree \
                                  arrangement: Camarero, Vallejo and Beivide, ACM Trans. Archit. Code Optim. 11 (2014); the others: Hastings et \
                                  al., Comparing Global Link Arrangements for Dragonfly Networks, CLUSTER 2015, section III";
    const EXAMPLE: &'static str = "terminals_per_router = 2\nrouters_per_group = 4\nglobal_channels = 2";
}

impl Topology for Dragonfly {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let shape = self.shape()?;
        // One number for all links, or one for the local and one for the global ones.
        context.channels.check(2)?;
        shape.build(context)
    }
}

/// A dragonfly whose numbers have been checked.
#[derive(Debug)]
struct Shape {
    p: u32,
    a: u32,
    h: u32,
    groups: u32,
    local: u32,
    links: GlobalLinks,
    arrangement: Arrangement,
    routers: u32,
    terminals: u32,
    fill: Fill,
}

impl Dragonfly {
    /// A whole dragonfly: a h + 1 groups, one link between any two.
    pub fn whole(p: u32, a: u32, h: u32, arrangement: Arrangement) -> Self {
        Self { terminals_per_router: Some(p), routers_per_group: Some(a), global_channels: Some(h), arrangement, ..Self::default() }
    }

    fn shape(&self) -> Result<Shape, NetworkError> {
        let p = number("terminals_per_router", self.terminals_per_router, "p", self.p)?;
        let a = number("routers_per_group", self.routers_per_group, "a", self.a)?;
        let h = number("global_channels", self.global_channels, "h", self.h)?;
        let local = sizes::positive("local", self.local.unwrap_or(1))?;
        if local > 1 << 10 {
            return Err(NetworkError::TooLarge(format!("local = {local}; the limit is 2^10")));
        }
        let groups = self.groups.unwrap_or(a * h + 1);
        let links = GlobalLinks::new(groups, a * h, self.arrangement)?;
        let last = self.routers_in_last_group.unwrap_or(a);
        if !(1..=a).contains(&last) {
            return Err(NetworkError::parameter("routers_in_last_group", format!("is {last}; it must be from 1 to {a}")));
        }
        let routers = sizes::product("routers", &[groups, a])? - (a - last);
        let most = sizes::product("terminals", &[routers, p])?;
        let terminals = self.terminals.unwrap_or(most);
        if !(1..=most).contains(&terminals) {
            let problem = format!("is {terminals}; {routers} routers with {p} terminals each have 1 to {most}");
            return Err(NetworkError::parameter("terminals", problem));
        }
        Ok(Shape { p, a, h, groups, local, links, arrangement: self.arrangement, routers, terminals, fill: self.fill })
    }
}

/// A number that has two names.
fn number(key: &str, value: Option<u32>, short: &str, other: Option<u32>) -> Result<u32, NetworkError> {
    let (key, number) = match (value, other) {
        (Some(_), Some(_)) => {
            return Err(NetworkError::parameter(short, format!("conflicts with {key}, which means the same; keep one of the two")));
        }
        (Some(number), None) => (key, number),
        (None, Some(number)) => (short, number),
        (None, None) => {
            return Err(NetworkError::parameter(key, format!("is missing; it must be a whole number of at least 1, also as {short}")));
        }
    };
    // The ports of a router are far fewer; what is refused here would overflow before a router is added.
    if number > 1 << 10 {
        return Err(NetworkError::TooLarge(format!("{key} = {number}; the limit is 2^10")));
    }
    sizes::positive(key, number)
}

impl Shape {
    /// Has it all that the parameters p, a and h allow, and one link between any two routers or groups?
    fn is_whole(&self) -> bool {
        self.groups == self.a * self.h + 1 && self.local == 1 && self.is_full()
    }

    /// Has it all routers and terminals?
    fn is_full(&self) -> bool {
        self.routers == self.groups * self.a && self.terminals == self.routers * self.p
    }

    fn name(&self) -> String {
        let Self { p, a, h, groups, local, routers, terminals, arrangement, .. } = self;
        let mut name = format!("dragonfly ({p}, {a}, {h})");
        let word = match arrangement {
            Arrangement::PalmTree | Arrangement::Palmtree | Arrangement::Consecutive | Arrangement::Absolute => "",
            Arrangement::Relative => " relative",
            Arrangement::Circulant => " circulant",
        };
        name.push_str(word);
        if !self.is_whole() {
            name.push_str(&format!(", {groups} groups, local {local}"));
        }
        if !self.is_full() {
            name.push_str(&format!(", {terminals} terminals on {routers} routers"));
        }
        name
    }

    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let Self { p, a, h, groups, local, routers, .. } = *self;
        let first_global = p + local * (a - 1);
        let mut builder = NetworkBuilder::new(self.name());
        for _ in 0..routers {
            builder.add_router((first_global + h) as usize)?;
        }
        for group in 0..groups {
            let router = |position: u32| RouterId(group * a + position);
            for (low, high) in
                (0..a).flat_map(|low| (low + 1..a).map(move |high| (low, high))).filter(|&(_, high)| router(high).0 < routers)
            {
                for base in (0..local).map(|copy| p + copy * (a - 1)) {
                    // Each skips itself: the higher router is one place earlier in the lower one's list.
                    let ends = ((router(low), (base + high - 1) as Port), (router(high), (base + low) as Port));
                    builder.add_link(ends.0, ends.1, context.channels.link(0));
                }
            }
        }
        for ends in self.links.ends() {
            let [one, other] = ends.map(|(group, place)| (RouterId(group * a + place / h), (first_global + place % h) as Port));
            if one.0.0 < routers && other.0.0 < routers {
                builder.add_link(one, other, context.channels.link(1));
            }
        }
        for terminal in 0..self.terminals {
            let (router, port) = match self.fill {
                Fill::Packed => (terminal / p, terminal % p),
                Fill::Spread => (terminal % routers, terminal / routers),
            };
            builder.add_terminal(RouterId(router), port as Port, context.channels.terminal_link());
        }
        builder.label_routers("group", (0..routers).map(|router| router / a).collect());
        builder.label_routers("position", (0..routers).map(|router| router % a).collect());
        if self.is_whole() {
            builder.set_attribute("dragonfly", vec![p, a, h]);
        }
        builder.set_attribute("dragonfly_groups", vec![p, a, h, groups, self.links.copies, local]);
        if self.is_full() {
            builder.set_attribute("terminal_digits", vec![p, a, groups]);
        }
        builder.set_attribute("hops_per_class", vec![1]);
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Endpoint;
    use crate::network::metrics::Metrics;
    use crate::topology::{ChannelParameters, NoFiles, PerDimension};

    fn build(p: u32, a: u32, h: u32) -> Result<Network, NetworkError> {
        arranged(p, a, h, Arrangement::PalmTree)
    }

    fn arranged(p: u32, a: u32, h: u32, arrangement: Arrangement) -> Result<Network, NetworkError> {
        let channel_latency = PerDimension::Each(vec![3, 20]);
        let channels = ChannelParameters { channel_latency, ..ChannelParameters::default() };
        let context = BuildContext { channels: &channels, files: &NoFiles, structure_seed: 0 };
        Dragonfly::whole(p, a, h, arrangement).build(&context)
    }

    /// N = a p (a h + 1) terminals, radix p + a + h - 1, diameter 3 (local, global, local; 1 with one router a group).
    #[test]
    fn counts_and_diameter_follow_the_closed_forms() {
        for (p, a, h) in [(2, 4, 2), (1, 2, 1), (3, 3, 1), (1, 3, 3), (4, 8, 4), (1, 1, 5)] {
            let network = build(p, a, h).unwrap();
            let groups = a * h + 1;
            let metrics = Metrics::of(&network);
            assert_eq!((metrics.terminals, metrics.routers), (a * p * groups, a * groups));
            assert_eq!(metrics.links, u64::from(groups * a * (a - 1) / 2 + groups * (groups - 1) / 2));
            assert_eq!(metrics.radix, p + a + h - 1);
            assert_eq!(metrics.distances.diameter, if a == 1 { 1 } else { 3 });
            for router in (0..network.router_count()).map(RouterId) {
                assert!((0..network.port_count(router)).all(|port| network.output_channel(router, port as Port).is_some()));
            }
        }
    }

    /// One link between any two groups, and it is a global one.
    #[test]
    fn any_two_groups_share_one_link() {
        for arrangement in [Arrangement::PalmTree, Arrangement::Consecutive] {
            check_links_between_groups(&arranged(2, 4, 2, arrangement).unwrap(), 4, 9);
        }
    }

    fn check_links_between_groups(network: &Network, a: u32, groups: u32) {
        let mut links = vec![0; (groups * groups) as usize];
        for channel in network.router_channels() {
            let (Endpoint::Router(from, _), Endpoint::Router(to, _)) = (network.source(channel), network.destination(channel)) else {
                panic!("a terminal's channel among those between routers");
            };
            links[(from.0 / a * groups + to.0 / a) as usize] += 1;
            assert_eq!(network.link(channel).latency, if from.0 / a == to.0 / a { 3 } else { 20 });
        }
        for (one, other) in (0..groups).flat_map(|one| (0..groups).map(move |other| (one, other))) {
            assert_eq!(links[(one * groups + other) as usize], if one == other { a * (a - 1) } else { 1 });
        }
    }

    /// The palm tree: global link 0 of router 0 in group 0 leads to the last group, the last link of the last router to group 1.
    #[test]
    fn global_links_lead_to_ever_lower_groups() {
        let (p, a, h) = (2, 4, 2);
        let network = build(p, a, h).unwrap();
        let end = |router, port: u32| network.destination(network.output_channel(RouterId(router), port as Port).unwrap());
        assert_eq!(end(0, p + a - 1), Endpoint::Router(RouterId(8 * a + 3), (p + a) as Port));
        assert_eq!(end(3, p + a), Endpoint::Router(RouterId(a), (p + a - 1) as Port));
    }

    /// Consecutive: global link 5 of group 3 leads to group 6, where link 3 leads back; link 2 leads to group 2, by its link 2 back.
    #[test]
    fn consecutive_links_lead_to_the_other_groups_in_order() {
        let (p, a, h) = (2, 4, 2);
        let network = arranged(p, a, h, Arrangement::Consecutive).unwrap();
        let end = |group: u32, link: u32| {
            let output = network.output_channel(RouterId(group * a + link / h), (p + a - 1 + link % h) as Port).unwrap();
            network.destination(output)
        };
        assert_eq!(end(3, 5), Endpoint::Router(RouterId(6 * a + 1), (p + a) as Port));
        assert_eq!(end(3, 2), Endpoint::Router(RouterId(2 * a + 1), (p + a - 1) as Port));
    }

    fn parsed(text: &str) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        toml::from_str::<Dragonfly>(text).unwrap().build(&context)
    }

    /// (a h) div (g - 1) links between any two groups by every arrangement, each place used once; l links between two routers of a group.
    #[test]
    fn fewer_groups_share_the_links_equally() {
        for (a, h, groups, local) in [(4, 2, 5, 1), (4, 2, 3, 2), (6, 3, 7, 1), (8, 4, 10, 1), (4, 4, 2, 1), (1, 6, 4, 1), (2, 3, 6, 3)] {
            for arrangement in ["absolute", "relative", "palmtree", "circulant"] {
                let text = format!("p = 1\na = {a}\nh = {h}\ngroups = {groups}\nlocal = {local}\narrangement = \"{arrangement}\"");
                let network = parsed(&text).unwrap();
                let mut links = vec![0u32; (groups * groups) as usize];
                for channel in network.router_channels() {
                    let (Endpoint::Router(from, _), Endpoint::Router(to, _)) = (network.source(channel), network.destination(channel))
                    else {
                        panic!("a terminal's channel among those between routers");
                    };
                    links[(from.0 / a * groups + to.0 / a) as usize] += 1;
                }
                for (one, other) in (0..groups).flat_map(|one| (0..groups).map(move |other| (one, other))) {
                    let wanted = if one == other { local * a * (a - 1) } else { a * h / (groups - 1) };
                    assert_eq!(links[(one * groups + other) as usize], wanted, "{text}");
                }
            }
        }
    }

    /// A last group of 2 routers of 4, and terminals on the first routers or on all in turn.
    #[test]
    fn a_part_of_the_routers_and_terminals() {
        let shape = "p = 2\na = 4\nh = 2\nrouters_in_last_group = 2";
        let network = parsed(shape).unwrap();
        assert_eq!((network.router_count(), network.terminal_count()), (34, 68));
        let missing = 2 + 3; // Links between routers of the last group: 1 of 6 is left, and 4 of its 8 global links.
        assert_eq!(Metrics::of(&network).links, 9 * 6 + 36 - missing - 4);
        let packed = parsed(&format!("{shape}\nterminals = 10")).unwrap();
        let spread = parsed(&format!("{shape}\nterminals = 40\nfill = \"spread\"")).unwrap();
        assert_eq!(packed.ejection_port(crate::id::TerminalId(9)), (RouterId(4), 1));
        assert_eq!(spread.ejection_port(crate::id::TerminalId(39)), (RouterId(5), 1));
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (p, a, h, key) in [(0, 4, 2, "terminals_per_router"), (2, 0, 2, "routers_per_group"), (2, 4, 0, "global_channels")] {
            assert!(matches!(build(p, a, h), Err(NetworkError::Parameter { key: found, .. }) if found == key));
        }
        for (text, key) in [
            ("a = 4\nh = 2", "terminals_per_router"),
            ("p = 2\na = 4\nh = 2\nterminals_per_router = 2", "p"),
            ("p = 2\na = 4\nh = 2\ngroups = 1", "groups"),
            ("p = 2\na = 4\nh = 2\ngroups = 10", "groups"),
            ("p = 2\na = 4\nh = 2\nlocal = 0", "local"),
            ("p = 2\na = 4\nh = 2\nrouters_in_last_group = 0", "routers_in_last_group"),
            ("p = 2\na = 4\nh = 2\nrouters_in_last_group = 5", "routers_in_last_group"),
            ("p = 2\na = 4\nh = 2\nterminals = 73", "terminals"),
            ("p = 2\na = 4\nh = 2\nterminals = 0", "terminals"),
        ] {
            assert!(matches!(parsed(text), Err(NetworkError::Parameter { key: found, .. }) if found == key), "{text}");
        }
        assert!(matches!(build(2, u32::MAX, u32::MAX), Err(NetworkError::TooLarge(_))));
        assert!(matches!(build(500, 500, 500), Err(NetworkError::TooLarge(_))));
    }
}
