//! A fabric as a network of routers, for ordinary experiments.

use kasuri_network::id::RouterId;
use kasuri_network::network::{Link, Network, NetworkBuilder, NetworkError};
use kasuri_workload::ethernet::fabric::{Fabric, TIER_NAMES};

/// The network of a fabric: hosts are terminals `host0`, …; switches are routers `tor0`, …, `aggregation0`, …, `core0`, …, with the labels
/// `level` (tier) and `pod` (cores have the number behind the last). Ports down come first, then those up, both in the order of hosts,
/// switches and bundles.
///
/// The fastest links have the period that is given, slower ones as many times as long a one. The latencies are those that are given: how
/// many cycles a nanosecond has depends on the flits.
///
/// # Errors
/// A rate that is no whole part of the fastest, or more routers or ports than a network can have.
pub fn network(fabric: &Fabric, channel: Link, terminal: Link) -> Result<Network, NetworkError> {
    let mut builder = NetworkBuilder::new("UEC fabric");
    let counts = fabric.switches();
    let (mut levels, mut pods, mut names) = (Vec::new(), Vec::new(), Vec::new());
    let mut first = Vec::with_capacity(counts.len());
    for (level, (&count, tier)) in counts.iter().zip(&fabric.tiers).enumerate() {
        first.push(levels.len() as u32);
        let per_pod = (count / fabric.pods()).max(1);
        for switch in 0..count {
            builder.add_router((tier.down + tier.up) as usize)?;
            levels.push(level as u32);
            pods.push(if level == 2 { fabric.pods() } else { switch / per_pod });
            names.push(format!("{}{switch}", TIER_NAMES[level]));
        }
    }
    let fastest = fabric.tiers.iter().map(|tier| tier.rate_gbps).max().unwrap_or(1);
    let slowed = |tier: usize, link: Link| {
        let rate = fabric.tiers[tier].rate_gbps;
        let problem = format!("links of {rate} Gbit/s send no whole part of the flits of those of {fastest} Gbit/s");
        if fastest.is_multiple_of(rate) {
            Ok(Link { period: link.period * (fastest / rate), ..link })
        } else {
            Err(NetworkError::parameter("path", problem))
        }
    };
    let terminal = slowed(0, terminal)?;
    for host in 0..fabric.hosts {
        let port = host % fabric.tiers[0].down;
        builder.add_terminal(RouterId(fabric.tor(host)), port as u16, terminal);
    }
    for lower in 0..counts.len() - 1 {
        let (tier, upper) = (fabric.tiers[lower], fabric.tiers[lower + 1]);
        let link = slowed(lower + 1, channel)?;
        for switch in 0..counts[lower] {
            for up in 0..tier.up {
                let (above, place) = above(fabric, lower, switch, up / upper.bundle);
                let down = place * upper.bundle + up % upper.bundle;
                let ends = [(first[lower] + switch, tier.down + up), (first[lower + 1] + above, down)];
                let [one, other] = ends.map(|(router, port)| (RouterId(router), port as u16));
                builder.add_link(one, other, link);
            }
        }
    }
    builder.label_routers("level", levels);
    builder.label_routers("pod", pods);
    builder.name_routers(names);
    builder.name_terminals((0..fabric.hosts).map(|host| format!("host{host}")).collect());
    builder.finish()
}

/// The switch of the tier above to which a switch's bundle leads, and which of that one's bundles it is.
fn above(fabric: &Fabric, tier: usize, switch: u32, bundle: u32) -> (u32, u32) {
    let per_pod = fabric.aggregations_per_pod();
    if tier == 0 {
        (switch / fabric.tors_per_pod() * per_pod + bundle, switch % fabric.tors_per_pod())
    } else {
        (switch % per_pod + per_pod * bundle, switch / per_pod)
    }
}
