//! Which output leads where: the ports of hosts and switches.
//!
//! A port is an output with its queue and link. In this order: of each host its port to the ToR; of each ToR its ports to its hosts; of
//! each ToR its ports up; then of each aggregation switch those down, those up, and of each core those down.

use kasuri_workload::ethernet::fabric::{Fabric, MAX_RATE_GBPS};

/// Where a port leads, and over which links.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortEnd {
    /// A host, or the number of hosts and a switch.
    pub(crate) node: u32,
    /// The tier whose links down it belongs to.
    pub(crate) tier: u8,
    /// It has a quarter of that tier's rate.
    pub(crate) slow: bool,
}

impl PortEnd {
    /// Whole picoseconds that a byte occupies the port.
    pub(crate) fn picoseconds_per_byte(&self, fabric: &Fabric) -> u32 {
        MAX_RATE_GBPS * if self.slow { 4 } else { 1 } / fabric.tiers[usize::from(self.tier)].rate_gbps
    }
}

/// Ports of a switch among which a packet may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// The switches of a tier, and their ports.
#[derive(Clone, Copy, Debug)]
struct TierPorts {
    /// The first switch; the first port down and up.
    switch: u32,
    down: u32,
    up: u32,
    /// Ports of one switch.
    downs: u32,
    ups: u32,
    bundle: u32,
}

/// The fabric as numbers of ports.
#[derive(Debug)]
pub(crate) struct Wiring {
    hosts: u32,
    tiers: Vec<TierPorts>,
    switches: u32,
    tors_per_pod: u32,
    aggregations_per_pod: u32,
    /// ToR and pod of each host.
    homes: Vec<[u32; 2]>,
}

impl Wiring {
    pub(crate) fn new(fabric: &Fabric) -> Self {
        let (mut switch, mut port) = (0, fabric.hosts);
        let mut tiers = Vec::with_capacity(fabric.tiers.len());
        for (tier, count) in fabric.tiers.iter().zip(fabric.switches()) {
            let up = port + count * tier.down;
            tiers.push(TierPorts { switch, down: port, up, downs: tier.down, ups: tier.up, bundle: tier.bundle });
            (switch, port) = (switch + count, up + count * tier.up);
        }
        let homes = (0..fabric.hosts).map(|host| [fabric.tor(host), fabric.pod(host)]).collect();
        Self {
            hosts: fabric.hosts,
            tiers,
            switches: switch,
            tors_per_pod: fabric.tors_per_pod(),
            aggregations_per_pod: fabric.aggregations_per_pod(),
            homes,
        }
    }

    pub(crate) fn switches(&self) -> u32 {
        self.switches
    }

    /// The tier of a switch.
    pub(crate) fn tier_of(&self, switch: u32) -> usize {
        self.tiers.iter().rposition(|tier| tier.switch <= switch).unwrap_or(0)
    }

    /// The switches of tier 0, which are the first.
    pub(crate) fn tors(&self) -> u32 {
        self.count(0)
    }

    /// Where each port leads. `slow` links have a quarter of their rate.
    pub(crate) fn ends(&self, slow: u32) -> Vec<PortEnd> {
        let node = |tier: usize, index: u32| self.hosts + self.tiers[tier].switch + index;
        let end = |node: u32, tier: usize, slow: bool| PortEnd { node, tier: tier as u8, slow };
        let mut ends: Vec<PortEnd> = self.homes.iter().map(|&[tor, _]| end(node(0, tor), 0, false)).collect();
        ends.extend((0..self.hosts).map(|host| end(host, 0, false)));
        let top = self.tiers.len() - 1;
        for tier in 0..top {
            let bundle = self.tiers[tier + 1].bundle;
            for switch in 0..self.count(tier) {
                for link in 0..self.tiers[tier].ups {
                    let upper = self.above(tier, switch, link / bundle);
                    let is_slow = top == 1 && upper < slow;
                    ends.push(end(node(tier + 1, upper), tier + 1, is_slow));
                }
            }
            for upper in 0..self.count(tier + 1) {
                for link in 0..self.tiers[tier + 1].downs {
                    let lower = self.below(tier + 1, upper, link / bundle);
                    let is_slow = if top == 1 { upper < slow } else { tier == 1 && self.is_slow_core_link(upper, lower, slow) };
                    ends.push(end(node(tier, lower), tier + 1, is_slow));
                }
            }
        }
        ends
    }

    /// The link l of an aggregation switch a, l + a times the aggregation switches of a pod, is among the first so many.
    fn is_slow_core_link(&self, core: u32, aggregation: u32, slow: u32) -> bool {
        u64::from(core / self.aggregations_per_pod) + u64::from(aggregation) * u64::from(self.aggregations_per_pod) < u64::from(slow)
    }

    fn count(&self, tier: usize) -> u32 {
        self.tiers.get(tier + 1).map_or(self.switches, |upper| upper.switch) - self.tiers[tier].switch
    }

    /// The switch of the tier above to which a bundle leads.
    fn above(&self, tier: usize, switch: u32, bundle: u32) -> u32 {
        if tier == 0 {
            switch / self.tors_per_pod * self.aggregations_per_pod + bundle
        } else {
            switch % self.aggregations_per_pod + self.aggregations_per_pod * bundle
        }
    }

    /// The switch of the tier below to which a bundle leads.
    fn below(&self, tier: usize, switch: u32, bundle: u32) -> u32 {
        if tier == 1 {
            switch / self.aggregations_per_pod * self.tors_per_pod + bundle
        } else {
            bundle * self.aggregations_per_pod + switch % self.aggregations_per_pod
        }
    }

    /// The ports of a switch that lead to a host.
    #[inline]
    pub(crate) fn choice(&self, switch: u32, destination: u32) -> Choice {
        let [tor, pod] = self.homes[destination as usize];
        let [lowest, middle] = [self.tiers[0], self.tiers[1]];
        if switch < middle.switch {
            if tor == switch {
                return Choice { first: lowest.down + destination, count: 1 };
            }
            return Choice { first: lowest.up + switch * lowest.ups, count: lowest.ups };
        }
        match self.tiers.get(2).filter(|top| switch >= top.switch) {
            Some(top) => {
                let core = switch - top.switch;
                Choice { first: top.down + core * top.downs + pod * top.bundle, count: top.bundle }
            }
            None => {
                let aggregation = switch - middle.switch;
                if self.tiers.len() == 3 && aggregation / self.aggregations_per_pod != pod {
                    return Choice { first: middle.up + aggregation * middle.ups, count: middle.ups };
                }
                let tor = tor - pod * self.tors_per_pod;
                Choice { first: middle.down + aggregation * middle.downs + tor * middle.bundle, count: middle.bundle }
            }
        }
    }
}
