use super::super::{Graph, built};
use super::*;
use kasuri_network::network::metrics::Metrics;

/// Switches of `ports` ports at 1 each, everything else free.
fn list(ports: u64) -> PriceList {
    let text = format!(
        "date = \"2026-11-01\"\ncurrency = \"switches\"\n[terminal]\ngbit_per_second = 400\nadapter_price = 0\nadapter_watts = 10\n[[switch]]\n\
         name = \"s\"\ncages = {ports}\ngbit_per_second = 400\nbreakout = [1]\nprice = 1\nwatts = 100\n[[cable]]\nname = \"c\"\nup_to_m = 100\n\
         gbit_per_second = 400\nbase = 0\nper_m = 0\nwatts = 1\noptics = false\n[optics]\ngbit_per_second = 400\nprice = 0\nwatts = 0\n\
         [length]\nterminal_m = 1\nleaf_m = 1\ncore_m = 1\n"
    );
    PriceList::parse(&text).unwrap()
}

fn request(terminals: u64, tapers: &[f64], rails: Option<u64>) -> TreeRequest {
    TreeRequest { terminals, tapers: tapers.to_vec(), rails }
}

fn of(offer: &[PricedTree], family: Family) -> Option<&PricedTree> {
    offer.iter().find(|bought| bought.family == family)
}

/// On switches of k ports: k^2 / 2 terminals on 3 k / 2 switches of two levels, k^3 / 4 on 5 k^2 / 4 of three; half the terminals need half
/// the leaves and half the spines.
#[test]
fn full_trees_have_the_switches_of_the_textbooks() {
    for k in [8, 16, 32, 64] {
        let two = offer(&request(k * k / 2, &[1.0], None), &list(k)).unwrap();
        let tree = of(&two.exactly, Family::LeafSpine).unwrap();
        assert_eq!((tree.switches, tree.spines, tree.links, tree.free_ports), (3 * k / 2, k / 2, k * k / 2, 0), "{k}");
        assert!((tree.all_to_all - 1.0).abs() < 1e-12);
        let half = offer(&request(k * k / 4, &[1.0], None), &list(k)).unwrap();
        assert_eq!(of(&half.exactly, Family::LeafSpine).unwrap().switches, 3 * k / 4, "{k}");
        assert!(of(&two.exactly, Family::OneSwitch).is_none());
    }
    for k in [8u64, 16] {
        let three = offer(&request(k.pow(3) / 4, &[1.0], None), &list(k)).unwrap();
        let tree = of(&three.exactly, Family::ThreeLevels).unwrap();
        assert_eq!((tree.switches, tree.spines, tree.free_ports), (5 * k * k / 4, k * k / 4, 0), "{k}");
        assert!(of(&three.exactly, Family::LeafSpine).is_none());
    }
    let one = offer(&request(8, &[1.0], None), &list(8)).unwrap();
    assert_eq!((one.exactly[0].family, one.exactly[0].switches, one.exactly[0].bisection_left), (Family::OneSwitch, 1, None));
    assert!((one.exactly[0].watts - (100.0 + 8.0 * (10.0 + 1.0))).abs() < 1e-9);
}

/// A taper of 3 puts 48 terminals on a leaf of 64 ports. Of a tree that is pruned to a third the spines are a third, and ports of leaves are free.
#[test]
fn tapers_and_pruning_leave_out_links() {
    let offer = offer(&request(1536, &[3.0], None), &list(64)).unwrap();
    let tapered = of(&offer.exactly, Family::LeafSpine).unwrap();
    assert_eq!((tapered.terminals, tapered.switches, tapered.spines, tapered.free_ports), (1536, 32 + 8, 8, 0));
    assert!((tapered.taper - 3.0).abs() < 1e-9);
    // All of a leaf's 48 terminals send to others, through 16 links.
    let rate = 16.0 * 1535.0 / (48.0 * (1536.0 - 48.0));
    assert!((tapered.all_to_all - rate).abs() < 1e-12);
    let pruned = of(&offer.exactly, Family::Pruned).unwrap();
    assert!(pruned.free_ports > 0 && pruned.taper > 2.0 && pruned.taper <= 3.0 + 1e-9, "{pruned:?}");
}

/// The closed forms agree with the networks that Kasuri builds.
#[test]
fn counts_and_rates_are_those_of_the_built_networks() {
    let mut seen = BTreeMap::new();
    for (terminals, ports) in [(8, 8), (24, 8), (96, 16), (100, 16), (128, 12), (250, 12)] {
        let offer = offer(&request(terminals, &[1.0, 2.0, 3.0], Some(4)), &list(ports)).unwrap();
        for bought in offer.exactly.iter().chain(&offer.at_least) {
            let network = built(bought.topology, &bought.parameters).unwrap();
            let metrics = Metrics::of(&network);
            let counted = [u64::from(metrics.terminals), u64::from(metrics.routers), metrics.links];
            assert_eq!(counted, [bought.terminals, bought.switches, bought.links], "{bought:?}");
            assert!(u64::from(metrics.radix) <= ports && bought.terminals >= terminals, "{bought:?}");
            let graph = Graph::of(&network);
            let used: u64 = bought.terminals + 2 * bought.links;
            assert_eq!(bought.free_ports, bought.switches * ports - used);
            let measured = (f64::from(network.terminal_count() - 1) / graph.busiest_channel()).min(1.0);
            assert!((measured - bought.all_to_all).abs() < 1e-9, "{bought:?}: {measured}");
            *seen.entry(bought.family).or_insert(0) += 1;
        }
        assert!(offer.exactly.iter().all(|bought| bought.terminals == terminals));
    }
    assert_eq!(seen.len(), 6, "{seen:?}");
}

/// A leaf-spine without one spine is one of a spine less. Two planes of it lose half as much.
#[test]
fn a_failed_spine_costs_its_share() {
    let offer = offer(&request(96, &[1.0, 2.0], None), &list(16)).unwrap();
    for bought in offer.exactly.iter().filter(|bought| matches!(bought.family, Family::LeafSpine | Family::Pruned)) {
        let mut parameters = bought.parameters.clone();
        parameters.insert("spines".to_owned(), (bought.spines as i64 - 1).into());
        let network = built(bought.topology, &parameters).unwrap();
        let measured = (f64::from(network.terminal_count() - 1) / Graph::of(&network).busiest_channel()).min(1.0);
        let left = measured / bought.all_to_all;
        assert!((bought.all_to_all_left.unwrap() - left).abs() < 1e-9, "{bought:?}: {left}");
        assert!((bought.bisection_left.unwrap() - (1.0 - 1.0 / bought.spines as f64)).abs() < 1e-12);
    }
    let mut two = list(16);
    two.terminal.gbit_per_second = 800.0;
    let doubled = super::offer(&request(96, &[1.0], None), &two).unwrap();
    let single = super::offer(&request(96, &[1.0], None), &list(16)).unwrap();
    let (one, both) = (of(&single.exactly, Family::LeafSpine).unwrap(), of(&doubled.exactly, Family::LeafSpine).unwrap());
    assert_eq!((both.planes, both.switches, both.terminals, both.terminal_links), (2, 2 * one.switches, 96, 192));
    let halved = |left: Option<f64>| (1.0 + left.unwrap()) / 2.0;
    assert!((both.all_to_all_left.unwrap() - halved(one.all_to_all_left)).abs() < 1e-12);
    assert!((both.bisection_left.unwrap() - halved(one.bisection_left)).abs() < 1e-12);
}

#[test]
fn rates_that_do_not_go_together_are_refused() {
    let mut odd = list(16);
    odd.terminal.gbit_per_second = 300.0;
    assert!(offer(&request(10, &[1.0], None), &odd).unwrap_err().contains("a terminal's 300 Gbit/s are a whole multiple"));
}

/// Breaking cages out gives more ports of less speed: a terminal of 800 Gbit/s then has two planes of 400.
#[test]
fn breaking_out_makes_planes() {
    let mut list = PriceList::parse(super::super::EXAMPLE_LIST).unwrap();
    list.terminal.gbit_per_second = 800.0;
    let offer = offer(&request(8192, &[1.0], None), &list).unwrap();
    let planes: Vec<(u64, u64)> =
        offer.exactly.iter().filter(|bought| bought.family == Family::LeafSpine).map(|bought| (bought.planes, bought.ports)).collect();
    // 64 ports are too few for two levels of 8192 terminals, 128 are just enough.
    assert!(planes.contains(&(2, 128)) && !planes.iter().any(|&(planes, _)| planes == 1), "{planes:?}");
    let tree = offer.exactly.iter().find(|bought| bought.family == Family::LeafSpine && bought.planes == 2).unwrap();
    assert_eq!((tree.switches, tree.free_ports), (2 * 192, 0));
}
