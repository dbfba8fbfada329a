//! Extended generalised fat trees: for each level its own number of links down and up, and parallel links.

use super::contract::{BuildContext, Topology};
use super::sizes;
use crate::id::{Port, RouterId, TerminalId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// The tree PGFT(h; m; w; p): h levels of routers above the terminals, level 0. A node of level l has m_l links down to different nodes and
/// one of level l - 1 has w_l links up, each p_l times.
///
/// Node (l; a_h … a_1) has a_i below w_i for i <= l and below m_i for i > l; its number within the level has a_1 as the digit that varies
/// fastest. Routers of level 1 come first, then those of level 2, and so on. (l; a) and (l + 1; b) are linked if a and b agree in all digits
/// but the one of place l + 1. Up port q of (l; a) leads to b = q mod w, copy q div w, and arrives at down port a + copy x m of that place;
/// on a router the ports down come first. With w_1 or p_1 above 1 a terminal has several ports.
///
/// With `channel_latency` a list the numbers are those of the links from level 1 to 2, from 2 to 3, and so on.
///
/// Labels: routers `level`, `first_terminal` (the least terminal below); attributes `xgft` = [h, m…, w…, p…], `terminal_digits` = m,
/// `hops_per_class`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Xgft {
    /// Nodes below a router, for each level from the terminals upwards.
    pub m: Vec<u32>,
    /// Routers above a node, for each level; the first is that of a terminal.
    pub w: Vec<u32>,
    /// Parallel links for each level; 1 unless given.
    #[serde(default)]
    pub parallel: Option<Vec<u32>>,
}

impl Member for Xgft {
    const NAME: &'static str = "xgft";
    const SUMMARY: &'static str = "extended generalised fat tree: arities down and up and parallel links for each level";
    const SOURCE: &'static str = "Ohring, Ibel, Das and Kumar, On generalized fat trees, IPPS 1995; parallel links and ports: Zahavi, J. Parallel \
                                  Distrib. Comput. 72 (2012)";
    const EXAMPLE: &'static str = "m = [4, 3, 2]\nw = [1, 2, 2]\nparallel = [1, 2, 1]";
}

impl Topology for Xgft {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let shape = self.shape()?;
        context.channels.check((shape.m.len() - 1).max(1))?;
        let name = format!("xgft {:?} up {:?} x {:?}", shape.m, shape.w, shape.p);
        shape.build(name, context)
    }
}

impl Xgft {
    fn shape(&self) -> Result<Shape, NetworkError> {
        let p = self.parallel.clone().unwrap_or_else(|| vec![1; self.m.len()]);
        for (key, list) in [("m", &self.m), ("w", &self.w), ("parallel", &p)] {
            sizes::all_at_least(key, list, 1)?;
            if list.len() != self.m.len() {
                let problem = format!("has {} numbers, but m has {}; give one for each level", list.len(), self.m.len());
                return Err(NetworkError::parameter(key, problem));
            }
        }
        if self.m.len() > 16 {
            return Err(NetworkError::parameter("m", format!("has {} levels; the limit is 16", self.m.len())));
        }
        Shape { m: self.m.clone(), w: self.w.clone(), p }.checked()
    }
}

/// Arities down and up, and parallel links, by level.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) m: Vec<u32>,
    pub(super) w: Vec<u32>,
    pub(super) p: Vec<u32>,
}

impl Shape {
    /// Refuses more nodes or links than a network has.
    pub(super) fn checked(self) -> Result<Self, NetworkError> {
        sizes::product("terminals", &self.m)?;
        let mut routers = 0u32;
        for level in 1..=self.m.len() {
            let factors: Vec<u32> = self.w[..level].iter().chain(&self.m[level..]).copied().collect();
            let here = sizes::product("routers in a level", &factors)?;
            routers = sizes::sum("routers", &[routers, here])?;
            let down = sizes::product("links down of a router", &[self.m[level - 1], self.p[level - 1]])?;
            sizes::product("links below a level", &[here, down])?;
        }
        Ok(self)
    }

    /// Nodes of a level; 0 is that of the terminals.
    fn nodes(&self, level: usize) -> u32 {
        self.w[..level].iter().chain(&self.m[level..]).product()
    }

    fn down_ports(&self, level: usize) -> u32 {
        self.m[level - 1] * self.p[level - 1]
    }

    fn up_ports(&self, level: usize) -> u32 {
        if level == self.m.len() { 0 } else { self.w[level] * self.p[level] }
    }

    /// Where up port `port` of a node leads: the number within the next level, and the down port there.
    fn above(&self, level: usize, node: u32, port: u32) -> (u32, Port) {
        let width: u32 = self.w[..level].iter().product();
        let (m, w) = (self.m[level], self.w[level]);
        let (low, digit, high) = (node % width, node / width % m, node / width / m);
        let (b, copy) = (port % w, port / w);
        (low + width * (b + w * high), (digit + copy * m) as Port)
    }

    /// Builds the tree. Links from level l to the next are of class l - 1.
    pub(super) fn build(&self, name: String, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let levels = self.m.len();
        let mut builder = NetworkBuilder::new(name);
        let (mut bases, mut level_of, mut first_terminal) = (vec![0], Vec::new(), Vec::new());
        for level in 1..=levels {
            let width: u32 = self.w[..level].iter().product();
            let below: u32 = self.m[..level].iter().product();
            for node in 0..self.nodes(level) {
                builder.add_router((self.down_ports(level) + self.up_ports(level)) as usize)?;
                level_of.push(level as u32);
                first_terminal.push(node / width * below);
            }
            bases.push(level_of.len() as u32);
        }
        for terminal in 0..self.nodes(0) {
            let home = |port: u32| {
                let (router, port) = self.above(0, terminal, port);
                (RouterId(router), port)
            };
            let (router, port) = home(0);
            builder.add_terminal(router, port, context.channels.terminal_link());
            for (router, port) in (1..self.w[0] * self.p[0]).map(home) {
                builder.add_home(TerminalId(terminal), router, port);
            }
        }
        for level in 1..levels {
            let link = context.channels.link(level - 1);
            for (node, up) in (0..self.nodes(level)).flat_map(|node| (0..self.up_ports(level)).map(move |up| (node, up))) {
                let (above, down) = self.above(level, node, up);
                let from = (RouterId(bases[level - 1] + node), (self.down_ports(level) + up) as Port);
                builder.add_link(from, (RouterId(bases[level] + above), down), link);
            }
        }
        builder.label_routers("level", level_of);
        builder.label_routers("first_terminal", first_terminal);
        let attribute = std::iter::once(levels as u32).chain(self.m.iter().chain(&self.w).chain(&self.p).copied());
        builder.set_attribute("xgft", attribute.collect());
        builder.set_attribute("terminal_digits", digits(&self.m));
        // Up and then down: shortest paths cannot close a cycle.
        builder.set_attribute("hops_per_class", vec![(2 * (levels as u32 - 1)).max(1)]);
        builder.finish()
    }
}

/// The digits of a number to mixed radices, those that are always 0 left out.
fn digits(radices: &[u32]) -> Vec<u32> {
    let several: Vec<u32> = radices.iter().copied().filter(|&radix| radix > 1).collect();
    if several.is_empty() { vec![1] } else { several }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::metrics::Summary;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build(m: &[u32], w: &[u32], parallel: Option<&[u32]>) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        Xgft { m: m.to_vec(), w: w.to_vec(), parallel: parallel.map(<[u32]>::to_vec) }.build(&context)
    }

    /// N = prod m; links of level l + 1: N / M_l x W_l x w_{l+1} x p_{l+1}; mean = sum of 2 (l - 1) (M_l - M_{l-1}) / (N - 1).
    #[test]
    fn counts_and_the_mean_distance_follow_the_closed_forms() {
        for (m, w, p) in [
            ([4, 4, 4], [1, 4, 4], [1, 1, 1]),
            ([3, 5, 2], [1, 2, 3], [1, 2, 1]),
            ([2, 2, 2], [2, 1, 2], [1, 1, 3]),
            ([6, 1, 4], [1, 3, 1], [2, 1, 1]),
        ] {
            let summary = Summary::of(&build(&m, &w, Some(&p)).unwrap());
            let product = |list: &[u32]| list.iter().map(|&number| u64::from(number)).product::<u64>();
            let terminals = product(&m);
            let of_level = |level: usize| terminals / product(&m[..level]) * product(&w[..=level]) * u64::from(p[level]);
            assert_eq!(u64::from(summary.terminals), terminals);
            assert_eq!(summary.links, of_level(1) + of_level(2));
            assert_eq!(summary.terminal_links, of_level(0));
            let pairs = |level: usize| terminals * (product(&m[..level]) - product(&m[..level - 1]));
            assert_eq!(summary.sum_hops, Some(2 * pairs(2) + 4 * pairs(3)), "{m:?} {w:?}");
        }
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (m, w, p, key) in [
            (&[][..], &[][..], None, "m"),
            (&[4, 0], &[1, 2], None, "m"),
            (&[4, 4], &[1], None, "w"),
            (&[4, 4], &[1, 0], None, "w"),
            (&[4, 4], &[1, 2], Some(&[1][..]), "parallel"),
            (&[2; 17], &[1; 17], None, "m"),
        ] {
            assert!(matches!(build(m, w, p), Err(NetworkError::Parameter { key: found, .. }) if found == key), "{m:?} {w:?}");
        }
        for (m, w) in
            [(&[u32::MAX; 3][..], &[1, 2, 3][..]), (&[2; 16], &[1 << 14; 16]), (&[600, 2], &[1, 1]), (&[2, 2], &[1 << 20, 1 << 20])]
        {
            assert!(matches!(build(m, w, None), Err(NetworkError::TooLarge(_))), "{m:?} {w:?}");
        }
    }
}
