//! Every routing of the table on networks of random shape.

use crate::common::{network, routing, routing_variants};
use crate::random::{any_network, unstructured};
use kasuri_network::deadlock::{Coverage, EscapePath, STEP_BUDGET, Verdict, check_within};
use kasuri_network::id::{RouterId, TerminalId};
use kasuri_network::network::Endpoint;
use kasuri_network::network::metrics::Metrics;
use kasuri_network::routing::VirtualChannels;
use kasuri_network::routing::walk::{Routes, Walker};
use proptest::prelude::*;

/// Beyond, the check of a routing with detours would look at a sample only.
const MOST_ROUTERS_OF_DETOURS: u32 = 40;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// On every network that a routing accepts every packet arrives by every branch, never comes to a place twice, and cannot
    /// wait in a cycle where the routing promises so.
    #[test]
    fn routings_deliver_and_keep_their_promise(network in any_network()) {
        for (name, parameters) in routing_variants() {
            let Some(routing) = routing(name, parameters, &network) else { continue };
            // Detours over any router: as many routes as there are triples of routers.
            if ["valiant", "ugal"].contains(&name) && network.router_count() > MOST_ROUTERS_OF_DETOURS {
                continue;
            }
            let available = VirtualChannels { begin: 1, end: 1 + routing.facts().virtual_channels_required as u16 };
            // The largest tori are a little beyond the budget of the command.
            let report = check_within(&network, routing.as_ref(), &[available], EscapePath::Open, 4 * STEP_BUDGET);
            prop_assert_eq!(report.coverage, Coverage::Exact);
            prop_assert_eq!(&report.unroutable, &None, "{} on {}", name, network.name());
            prop_assert!(!routing.facts().is_deadlock_free || report.verdict == Verdict::Acyclic, "{} on {}", name, network.name());
            let mut walker = Walker::new(&network, routing.as_ref(), available);
            let mut routes = Routes::default();
            for destination in walker.destinations() {
                walker.walk(destination, &mut routes).expect("the check found no lost packet");
                prop_assert!(routes.order().is_ok(), "{} on {} goes round", name, network.name());
                let begun: f64 = routes.starts.iter().map(|start| start.probability).sum();
                prop_assert!((begun - walker.group_count() as f64).abs() < 1e-9);
                for place in 0..routes.places.len() as u32 {
                    let sum: f64 = routes.steps_of(place).iter().map(|step| step.probability).sum();
                    prop_assert!((sum - 1.0).abs() < 1e-9);
                }
            }
        }
    }

    /// Up*/down* and minimal routing accept every connected network of links.
    #[test]
    fn table_routings_accept_unstructured_networks(network in unstructured()) {
        for name in ["up-down", "minimal"] {
            prop_assert!(routing(name, "", &network).is_some());
        }
        prop_assert_eq!(Metrics::of(&network).distances.unreachable, None);
    }

    /// What the columns of a network say of each other.
    #[test]
    fn columns_agree(network in any_network()) {
        let mut used = 0;
        for router in (0..network.router_count()).map(RouterId) {
            for port in 0..network.port_count(router) as u16 {
                if let Some(channel) = network.output_channel(router, port) {
                    prop_assert_eq!(network.source(channel), Endpoint::Router(router, port));
                    used += 1;
                }
                if let Some(channel) = network.input_channel(router, port) {
                    prop_assert_eq!(network.destination(channel), Endpoint::Router(router, port));
                    used += 1;
                }
            }
        }
        // Every channel has two ends, one of which is a terminal for injection and ejection channels.
        prop_assert_eq!(used, 2 * network.channel_count() - 2 * network.terminal_count());
        for terminal in (0..network.terminal_count()).map(TerminalId) {
            prop_assert_eq!(network.source(network.injection_channel(terminal)), Endpoint::Terminal(terminal));
            prop_assert_eq!(network.destination(network.ejection_channel(terminal)), Endpoint::Terminal(terminal));
        }
        for name in network.labels().router_names() {
            prop_assert_eq!(network.labels().router(name).map(<[u32]>::len), Some(network.router_count() as usize));
        }
    }

    /// k-ary n-trees and grids have the counts of their closed forms.
    #[test]
    fn counts_follow_the_parameters(radix in 2u32..6, levels in 1u32..5) {
        let tree = network("fat-tree", &format!("up = {radix}\ndown = {radix}\nlevels = {levels}"));
        prop_assert_eq!(tree.terminal_count(), radix.pow(levels));
        prop_assert_eq!(tree.router_count(), levels * radix.pow(levels - 1));
        prop_assert_eq!(tree.router_channels().count() as u32, 2 * (levels - 1) * radix.pow(levels));
        let fly = network("butterfly", &format!("radix = {radix}\nstages = {levels}"));
        prop_assert_eq!((fly.terminal_count(), fly.router_count()), (tree.terminal_count(), tree.router_count()));
        prop_assert_eq!(fly.router_channels().count() as u32, (levels - 1) * radix.pow(levels));
        let dimensions = vec![radix; levels as usize];
        let torus = network("torus", &format!("dimensions = {dimensions:?}"));
        prop_assert_eq!(torus.router_channels().count() as u32, 2 * levels * radix.pow(levels));
        let mesh = network("mesh", &format!("dimensions = {dimensions:?}"));
        prop_assert_eq!(mesh.router_channels().count() as u32, 2 * levels * (radix - 1) * radix.pow(levels - 1));
    }
}
