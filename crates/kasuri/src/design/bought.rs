//! Trees of commercial switches: tapered, pruned, in planes and by rails; their prices, and the share lost with a failed spine.
//!
//! All counts are closed forms; the networks are topologies of Kasuri, and tests compare the counts with them.

use super::price_list::{Cost, PriceList, SwitchPrice};
use serde::Serialize;
use std::collections::BTreeMap;
use toml::Table;

/// The requirements.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeRequest {
    /// Terminals.
    pub terminals: u64,
    /// The allowed ratios of the rate of a leaf's, or a pod's, terminals to that of its uplinks.
    pub tapers: Vec<f64>,
    /// GPUs of a node, for rails.
    pub rails: Option<u64>,
}

/// A family of trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// One switch.
    OneSwitch,
    /// Leaves and spines; a taper puts more terminals on a leaf.
    LeafSpine,
    /// Leaves and spines; a taper leaves out spines, and the leaves' ports to them stay free.
    Pruned,
    /// Leaves and spines; the GPUs of a leaf have the same number in their nodes.
    Rails,
    /// Three levels, tapered at the leaves.
    ThreeLevels,
    /// Three levels, tapered above the second.
    TaperedCore,
}

impl Family {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::OneSwitch => "one switch",
            Self::LeafSpine => "leaf-spine",
            Self::Pruned => "leaf-spine, pruned",
            Self::Rails => "rail-optimised",
            Self::ThreeLevels => "three levels",
            Self::TaperedCore => "three levels, tapered core",
        }
    }
}

/// A tree with its price, all its planes together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PricedTree {
    /// The family.
    pub family: Family,
    /// The switch.
    pub switch: String,
    /// Ports that each cage is broken out into.
    pub breakout: u64,
    /// Ports of a switch with this breakout.
    pub ports: u64,
    /// Gbit/s of a port.
    pub gbit_per_second: f64,
    /// Equal networks in parallel; each terminal has a port in each.
    pub planes: u64,
    /// The topology of a plane in Kasuri's words.
    pub topology: &'static str,
    /// Its keys.
    pub parameters: Table,
    /// The greatest ratio of the rate of a leaf's or pod's terminals to that of its uplinks.
    pub taper: f64,
    /// Terminals.
    pub terminals: u64,
    /// Switches.
    pub switches: u64,
    /// Switches of the highest level, of all planes.
    pub spines: u64,
    /// Cables between switches.
    pub links: u64,
    /// Cables of terminals.
    pub terminal_links: u64,
    /// Unconnected ports of all switches.
    pub free_ports: u64,
    /// Price of switches, cables, optics and adapters.
    pub price: f64,
    /// Price over terminals.
    pub price_per_terminal: f64,
    /// Power of all of these, watts.
    pub watts: f64,
    /// The share of the terminals' rate that an all-to-all can reach with the best sharing of paths: at most 1.
    pub all_to_all: f64,
    /// The share of the bisection bandwidth left after the failure of a switch of the highest level; `None` with one level.
    pub bisection_left: Option<f64>,
    /// The share of the all-to-all rate left then.
    pub all_to_all_left: Option<f64>,
}

/// A plane: switches of one kind, by the numbers of its levels.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Plane {
    family: Family,
    /// Terminals of a leaf.
    down: u64,
    /// Leaves of a pod, and pods; a tree of two levels is one pod.
    leaves: u64,
    pods: u64,
    /// Switches of the second level in a pod, and links from a leaf to each.
    middle: u64,
    trunk: u64,
    /// Switches of the third level above each of the second, and links to each.
    core: u64,
    core_trunk: u64,
    /// GPUs of a node, for rails.
    rails: u64,
}

impl Plane {
    fn one_switch(terminals: u64) -> Self {
        Self { family: Family::OneSwitch, down: terminals, leaves: 1, pods: 1, middle: 0, trunk: 0, core: 0, core_trunk: 0, rails: 1 }
    }

    fn terminals(&self) -> u64 {
        self.down * self.leaves * self.pods
    }

    fn switches(&self) -> u64 {
        self.pods * (self.leaves + self.middle) + self.cores()
    }

    /// Each switch of the second level shares core switches only with those of the same position in the other pods.
    fn cores(&self) -> u64 {
        self.middle * self.core
    }

    /// Switches of the highest level.
    fn spines(&self) -> u64 {
        if self.core > 0 { self.cores() } else { self.middle * self.pods }
    }

    /// Links from the leaves, and those above them.
    fn links(&self) -> [u64; 2] {
        let lower = self.pods * self.leaves * self.middle * self.trunk;
        [lower, self.pods * self.middle * self.core * self.core_trunk]
    }

    /// The greatest taper of a level: the links below over the links above.
    fn taper(&self) -> f64 {
        let leaf = self.down as f64 / (self.middle * self.trunk) as f64;
        let pod = (self.down * self.leaves) as f64 / (self.middle * self.core * self.core_trunk) as f64;
        match (self.middle, self.core) {
            (0, _) => 1.0,
            (_, 0) => leaf,
            _ => leaf.max(pod),
        }
    }

    /// The share of the terminals' bandwidth that an all-to-all can reach with `lost` of the highest switches failed: the rate of the links
    /// that leave a leaf, and a pod, over the data that has to leave it, with the best sharing of paths.
    fn all_to_all(&self, lost: u64) -> f64 {
        let all = self.terminals();
        let rate = |below: u64, links: u64| match below * (all - below) {
            0 => 1.0,
            leaving => (links * (all - 1)) as f64 / leaving as f64,
        };
        let (leaf, pod) = match self.core {
            0 => (rate(self.down, (self.middle - lost.min(self.middle)) * self.trunk), 1.0),
            core => {
                let up = (self.middle * core - lost) * self.core_trunk;
                (rate(self.down, self.middle * self.trunk), rate(self.down * self.leaves, up))
            }
        };
        if self.middle == 0 { 1.0 } else { leaf.min(pod).min(1.0) }
    }

    fn topology(&self) -> (&'static str, Table) {
        let table = |keys: &[(&str, u64)]| keys.iter().map(|&(key, value)| (key.to_owned(), (value as i64).into())).collect();
        match self.family {
            Family::OneSwitch => {
                let lists = [("m", self.down), ("w", 1)];
                ("xgft", lists.into_iter().map(|(key, number)| (key.to_owned(), vec![number as i64].into())).collect())
            }
            Family::LeafSpine | Family::Pruned => {
                let keys = [("leaves", self.leaves), ("spines", self.middle), ("down", self.down), ("trunk", self.trunk)];
                ("leaf-spine", table(&keys))
            }
            Family::Rails => {
                let units = self.leaves / self.rails;
                let keys = [("units", units), ("nodes", self.down), ("gpus", self.rails), ("spines", self.middle), ("trunk", self.trunk)];
                ("rail-optimised", table(&keys))
            }
            Family::ThreeLevels | Family::TaperedCore => {
                let lists = [
                    ("m", [self.down, self.leaves, self.pods]),
                    ("w", [1, self.middle, self.core]),
                    ("parallel", [1, self.trunk, self.core_trunk]),
                ];
                let list = |numbers: [u64; 3]| numbers.iter().map(|&number| number as i64).collect::<Vec<_>>().into();
                ("xgft", lists.into_iter().map(|(key, numbers)| (key.to_owned(), list(numbers))).collect())
            }
        }
    }
}

/// Divisors, ascending.
fn divisors(number: u64) -> Vec<u64> {
    (1..=number).filter(|&divisor| number.is_multiple_of(divisor)).collect()
}

/// The largest divisor up to a limit.
fn largest_divisor(number: u64, most: u64) -> Option<u64> {
    (1..=most.min(number)).rev().find(|&divisor| number.is_multiple_of(divisor))
}

/// The fewest uplinks for `below` terminals and a taper.
fn uplinks(below: u64, taper: f64) -> u64 {
    (below as f64 / taper - 1e-9).ceil().max(1.0) as u64
}

/// All planes for at least the wished terminals on switches of `ports` ports.
fn planes(request: &TreeRequest, ports: u64, taper: f64) -> Vec<Plane> {
    let mut found = Vec::new();
    if request.terminals <= ports {
        found.push(Plane::one_switch(request.terminals));
    }
    for down in 1..ports {
        let up = uplinks(down, taper);
        if down + up <= ports {
            found.extend(two_levels(request, ports, down, up));
            found.extend(three_levels(request, ports, down, up, taper));
        }
        // As many terminals as without a taper, and fewer spines.
        if taper > 1.0 && 2 * down <= ports {
            let whole = two_levels(request, ports, down, down).into_iter().filter(|plane| plane.family == Family::LeafSpine);
            found.extend(whole.filter_map(|plane| {
                let keep = uplinks(plane.middle, taper);
                (keep < plane.middle).then_some(Plane { family: Family::Pruned, middle: keep, ..plane })
            }));
        }
    }
    found
}

/// Leaves of `down` terminals and `up` uplinks, on the fewest spines that have the ports.
fn two_levels(request: &TreeRequest, ports: u64, down: u64, up: u64) -> Vec<Plane> {
    let tree = |family: Family, leaves: u64, rails: u64| {
        // Parallel links to fewer spines, as long as a spine has the ports.
        let trunk = largest_divisor(up, ports / leaves)?;
        let plane = Plane { family, down, leaves, pods: 1, middle: up / trunk, trunk, core: 0, core_trunk: 0, rails };
        (leaves > 1).then_some(plane)
    };
    let leaves = request.terminals.div_ceil(down);
    let rails = request.rails.and_then(|rails| tree(Family::Rails, leaves.next_multiple_of(rails), rails));
    tree(Family::LeafSpine, leaves, 1).into_iter().chain(rails).collect()
}

/// Pods of leaves below core switches; with a taper at the leaves, and, if leaves have none, above the second level.
fn three_levels(request: &TreeRequest, ports: u64, down: u64, up: u64, taper: f64) -> Vec<Plane> {
    let mut found = Vec::new();
    let mut add = |family: Family, up: u64, core_taper: f64| {
        for trunk in divisors(up) {
            let middle = up / trunk;
            for leaves in 2..=ports / trunk {
                let pods = request.terminals.div_ceil(down * leaves);
                let above = uplinks(leaves * trunk, core_taper);
                if pods < 2 || leaves * trunk + above > ports {
                    continue;
                }
                let Some(core_trunk) = largest_divisor(above, ports / pods) else { continue };
                found.push(Plane { family, down, leaves, pods, middle, trunk, core: above / core_trunk, core_trunk, rails: 1 });
            }
        }
    };
    add(Family::ThreeLevels, up, 1.0);
    if taper > 1.0 && 2 * down <= ports {
        add(Family::TaperedCore, down, taper);
    }
    found
}

/// The trees of a price list for a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TreeOffer {
    /// For exactly the requested terminals: the cheapest tree of each family, taper and number of planes, cheapest first.
    pub exactly: Vec<PricedTree>,
    /// For at least the requested terminals.
    pub at_least: Vec<PricedTree>,
}

/// The cheapest trees for a request.
///
/// # Errors
/// No switch has ports that divide a terminal's rate evenly.
pub fn offer(request: &TreeRequest, list: &PriceList) -> Result<TreeOffer, String> {
    let mut best = [BTreeMap::new(), BTreeMap::new()];
    let mut fits = false;
    for switch in &list.switch {
        for &breakout in &switch.breakout {
            let rate = switch.gbit_per_second / breakout as f64;
            let planes_needed = list.terminal.gbit_per_second / rate;
            if planes_needed < 1.0 - 1e-9 || (planes_needed - planes_needed.round()).abs() > 1e-9 {
                continue;
            }
            fits = true;
            let ports = Ports { switch, breakout, rate, planes: planes_needed.round() as u64 };
            for &taper in &request.tapers {
                for plane in planes(request, switch.cages * breakout, taper) {
                    let key = (plane.family, (taper * 1e6) as u64, ports.planes);
                    let bought = ports.bought(&plane, list);
                    let is_exact = bought.terminals == request.terminals;
                    for (best, _) in best.iter_mut().zip([true, false]).filter(|(_, exact)| !exact || is_exact) {
                        let known: &mut PricedTree = best.entry(key).or_insert_with(|| bought.clone());
                        if (bought.price, bought.switches) < (known.price, known.switches) {
                            *known = bought.clone();
                        }
                    }
                }
            }
        }
    }
    if !fits {
        return Err(format!(
            "no switch of the list has ports of which a terminal's {} Gbit/s are a whole multiple; another breakout, or another terminal, has",
            list.terminal.gbit_per_second
        ));
    }
    let [exactly, at_least] = best.map(|mut best| {
        // Superfluous levels only cost.
        let two_levels: Vec<(u64, u64)> = best.keys().filter(|key| key.0 == Family::LeafSpine).map(|key| (key.1, key.2)).collect();
        best.retain(|key, _| !matches!(key.0, Family::ThreeLevels | Family::TaperedCore) || !two_levels.contains(&(key.1, key.2)));
        let mut all: Vec<PricedTree> = Vec::new();
        for bought in best.into_values() {
            // A family unchanged by the taper is listed once.
            if !all.contains(&bought) {
                all.push(bought);
            }
        }
        all.sort_by(|one, other| one.price.total_cmp(&other.price));
        all
    });
    Ok(TreeOffer { exactly, at_least })
}

/// A switch with its cages broken out.
struct Ports<'a> {
    switch: &'a SwitchPrice,
    breakout: u64,
    rate: f64,
    planes: u64,
}

impl Ports<'_> {
    fn bought(&self, plane: &Plane, list: &PriceList) -> PricedTree {
        let (terminals, switches, [lower, upper]) =
            (plane.terminals(), self.planes * plane.switches(), plane.links().map(|links| self.planes * links));
        let terminal_links = self.planes * terminals;
        let each = Cost { price: self.switch.price, watts: self.switch.watts };
        let adapter = Cost { price: list.terminal.adapter_price, watts: list.terminal.adapter_watts };
        let cost = [
            each.times(switches),
            adapter.times(terminals),
            list.link(list.length.terminal_m, self.rate).times(terminal_links),
            list.link(list.length.leaf_m, self.rate).times(lower),
            list.link(list.length.core_m, self.rate).times(upper),
        ];
        let cost = cost.into_iter().fold(Cost::default(), Cost::plus);
        let ports = self.switch.cages * self.breakout;
        let (topology, parameters) = plane.topology();
        let (spines, all_to_all) = (self.planes * plane.spines(), plane.all_to_all(0));
        let is_tree = plane.spines() > 0;
        // The other planes are unaffected.
        let left = |plane_left: f64| ((self.planes - 1) as f64 + plane_left) / self.planes as f64;
        PricedTree {
            family: plane.family,
            switch: self.switch.name.clone(),
            breakout: self.breakout,
            ports,
            gbit_per_second: self.rate,
            planes: self.planes,
            topology,
            parameters,
            taper: plane.taper(),
            terminals,
            switches,
            spines,
            links: lower + upper,
            terminal_links,
            free_ports: switches * ports - terminal_links - 2 * (lower + upper),
            price: cost.price,
            price_per_terminal: cost.price / terminals as f64,
            watts: cost.watts,
            all_to_all,
            bisection_left: is_tree.then(|| left(1.0 - 1.0 / plane.spines() as f64)),
            all_to_all_left: is_tree.then(|| left(plane.all_to_all(1) / all_to_all)),
        }
    }
}

#[cfg(test)]
mod tests;
