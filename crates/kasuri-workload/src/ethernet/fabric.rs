//! A fabric of two or three tiers: hosts, switches below them (ToR), aggregation switches or spines, cores.

/// Hosts that a fabric may have.
pub const MAX_HOSTS: u32 = 1 << 20;

/// Links in one direction that a fabric may have.
pub const MAX_LINKS: u64 = 1 << 25;

/// The highest rate of a link, Gbit/s: one picosecond a byte.
pub const MAX_RATE_GBPS: u32 = 8000;

/// One tier of switches, with its links down to the tier below (of tier 0: to the hosts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Rate of each link down, Gbit/s, at least 1; both directions the same.
    pub rate_gbps: u32,
    /// Propagation of each link down, nanoseconds, at least 1.
    pub link_latency_ns: u64,
    /// From a packet's last bit in to its joining the queue of its output, nanoseconds.
    pub switch_latency_ns: u64,
    /// Links down from one switch.
    pub down: u32,
    /// Links up from one switch; 0 in the highest tier.
    pub up: u32,
    /// Parallel links between a switch and one of the tier below; 1 in tier 0.
    pub bundle: u32,
}

impl Tier {
    /// Whole picoseconds that a byte occupies a link, rounded down.
    pub fn picoseconds_per_byte(&self) -> u64 {
        u64::from(MAX_RATE_GBPS / self.rate_gbps.max(1))
    }
}

/// A fabric whose numbers agree with each other. Hosts, switches of each tier and their links are numbered from 0.
///
/// Host h is below ToR h / `tiers[0].down`, in pod h / `pod_hosts`. A ToR has its links to each aggregation switch of its pod. Aggregation
/// switch a stands at place p = a mod `aggregations_per_pod()`; its bundle l leads to core p + l · `aggregations_per_pod()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    /// Hosts.
    pub hosts: u32,
    /// Hosts of a pod; all in a fabric of two tiers.
    pub pod_hosts: u32,
    /// Two or three, the ToRs first.
    pub tiers: Vec<Tier>,
}

/// What the switches of each tier are called.
pub const TIER_NAMES: [&str; 3] = ["tor", "aggregation", "core"];

impl Fabric {
    /// Pods; 1 in a fabric of two tiers.
    pub fn pods(&self) -> u32 {
        self.hosts / self.pod_hosts
    }

    /// ToRs of a pod.
    pub fn tors_per_pod(&self) -> u32 {
        self.pod_hosts / self.tiers[0].down
    }

    /// Aggregation switches of a pod; the spines of a fabric of two tiers.
    pub fn aggregations_per_pod(&self) -> u32 {
        self.tiers[0].up / self.tiers[1].bundle
    }

    /// Switches of each tier.
    pub fn switches(&self) -> Vec<u32> {
        let aggregations = self.pods() * self.aggregations_per_pod();
        let cores = self.tiers.get(2).map(|top| self.tiers[1].up / top.bundle * self.aggregations_per_pod());
        [self.pods() * self.tors_per_pod(), aggregations].into_iter().chain(cores).collect()
    }

    /// The ToR of a host.
    pub fn tor(&self, host: u32) -> u32 {
        host / self.tiers[0].down
    }

    /// The pod of a host.
    pub fn pod(&self, host: u32) -> u32 {
        host / self.pod_hosts
    }

    /// How many tiers up packets between two hosts go: 1 below one ToR, 2 within a pod, 3 over a core.
    pub fn height(&self, source: u32, destination: u32) -> usize {
        if self.tor(source) == self.tor(destination) {
            1
        } else if self.pod(source) == self.pod(destination) {
            2
        } else {
            3
        }
    }

    /// Does every packet between these hosts have only one path?
    pub fn has_one_path(&self, source: u32, destination: u32) -> bool {
        let height = self.height(source, destination);
        let up = self.tiers[..height - 1].iter().all(|tier| tier.up == 1);
        up && self.tiers[1..height].iter().all(|tier| tier.bundle == 1)
    }

    /// Latency of all links and switches between two hosts, in picoseconds.
    pub fn latency_ps(&self, source: u32, destination: u32) -> u64 {
        let tiers = &self.tiers[..self.height(source, destination)];
        let links: u64 = tiers.iter().map(|tier| 2 * tier.link_latency_ns).sum();
        let switches: u64 = tiers.iter().map(|tier| 2 * tier.switch_latency_ns).sum();
        let top = tiers.last().map_or(0, |tier| tier.switch_latency_ns);
        1000 * (links + switches - top)
    }

    /// Picoseconds a byte of each link between two hosts, in the order of the path.
    pub fn picoseconds_per_byte(&self, source: u32, destination: u32) -> Vec<u64> {
        let up = self.tiers[..self.height(source, destination)].iter().map(Tier::picoseconds_per_byte);
        up.clone().chain(up.rev()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tier(rate_gbps: u32, link_latency_ns: u64, switch_latency_ns: u64, [down, up, bundle]: [u32; 3]) -> Tier {
        Tier { rate_gbps, link_latency_ns, switch_latency_ns, down, up, bundle }
    }

    #[test]
    fn switches_paths_and_latencies_follow_from_the_tiers() {
        let tiers = vec![tier(100, 300, 400, [4, 4, 1]), tier(100, 500, 500, [4, 2, 1]), tier(200, 2000, 600, [4, 0, 1])];
        let fabric = Fabric { hosts: 64, pod_hosts: 16, tiers };
        assert_eq!((fabric.pods(), fabric.tors_per_pod(), fabric.aggregations_per_pod()), (4, 4, 4));
        assert_eq!(fabric.switches(), [16, 16, 8]);
        assert_eq!([fabric.height(0, 3), fabric.height(0, 4), fabric.height(0, 63)], [1, 2, 3]);
        assert_eq!(fabric.latency_ps(0, 3), 1_000_000);
        assert_eq!(fabric.latency_ps(0, 4), 2_900_000);
        assert_eq!(fabric.latency_ps(0, 63), 2 * 2_800_000 + 2 * 900_000 + 600_000);
        assert_eq!(fabric.picoseconds_per_byte(0, 63), [80, 80, 40, 40, 80, 80]);
        assert!(fabric.has_one_path(0, 3) && !fabric.has_one_path(0, 4));
    }
}
