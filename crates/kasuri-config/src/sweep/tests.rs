//! What a sweep makes of its entries.

use super::*;
use crate::Known;
use crate::Preparation;
use kasuri_network::topology::NoFiles;

const MESH: &str = r#"
title = "t"
[network]
topology = "mesh"
dimensions = [4, 4]
channel_latency = 2
[routing]
algorithm = "dimension-order"
[router]
virtual_channels = 8
vc_allocator = "separable-output-first"
[traffic]
pattern = "uniform"
load = 0.1
[sweep]
"#;

fn document(sweep: &str) -> Document {
    Document::parse("a.toml", &format!("{MESH}{sweep}")).unwrap_or_else(|error| panic!("{error}\n{sweep}"))
}

fn points(sweep: &str) -> Vec<Point> {
    document(sweep).points().unwrap_or_else(|error| panic!("{error}\n{sweep}"))
}

/// The error of a sweep, or of its first point that is none.
fn refused(sweep: &str) -> String {
    let document = match Document::parse("a.toml", &format!("{MESH}{sweep}")) {
        Ok(document) => document,
        Err(error) => return error.to_string(),
    };
    let checked = document.points().map_err(crate::ConfigErrors::from).and_then(|points| {
        let mut preparation = Preparation::new(&document, &NoFiles, Known::default());
        points.iter().try_for_each(|point| preparation.study(point).map(|_| ()))
    });
    checked.expect_err(sweep).to_string()
}

fn router(point: &Point) -> &Table {
    point.table["router"].as_table().unwrap()
}

fn keys(point: &Point) -> Vec<&str> {
    point.assignments.iter().map(|(key, _)| key.as_str()).collect()
}

/// A table in a sweep changes the keys that it names and no others.
#[test]
fn a_table_is_merged_over_the_files() {
    let points = points("router = [{ buffer_flits = 16 }, { buffer_flits = 4, lookahead = true }]");
    assert!(points.iter().all(|point| router(point)["virtual_channels"].as_integer() == Some(8)));
    assert_eq!(router(&points[0])["buffer_flits"].as_integer(), Some(16));
    assert!(!router(&points[0]).contains_key("lookahead"));
    assert_eq!(keys(&points[0]), ["router.buffer_flits"]);
    assert_eq!(keys(&points[1]), ["router.buffer_flits", "router.lookahead"]);
    assert_eq!(*points[0].columns, ["router.buffer_flits", "router.lookahead"].map(str::to_owned));
    let network = points_of_networks("network = [{}, { dimensions = [2, 8] }]");
    assert_eq!(network, ["[4, 4]", "[2, 8]"], "a list takes the place of a list");
}

fn points_of_networks(sweep: &str) -> Vec<String> {
    points(sweep).iter().map(|point| point.table["network"]["dimensions"].to_string()).collect()
}

/// The order of entries never decides what a run has: two that set the same key are refused, with both lines.
#[test]
fn entries_that_set_the_same_key_are_refused_with_both_places() {
    for sweep in [
        "\"router.virtual_channels\" = [2, 8]\nrouter = [{ virtual_channels = 4 }]",
        "router = [{ virtual_channels = 4 }]\n\"router.virtual_channels\" = [2, 8]",
        "\"network.dimensions\" = [[4, 4]]\n\"network.dimensions.0\" = [2, 8]",
        "network = [{ dimensions = [2, 2] }, { channel_latency = 4 }]\n\"network.dimensions\" = [[4, 4]]",
        "\"traffic.load\" = [0.1, 0.2]\ncase = [{ \"traffic.load\" = 0.3 }]",
    ] {
        let error = refused(sweep);
        let lines: Vec<bool> =
            [16, 17].iter().map(|line| error.contains(&format!(":{line}:")) || error.contains(&format!("line {line}"))).collect();
        assert_eq!(lines, [true, true], "{error}");
        assert!(error.contains("another entry of [sweep] sets too"), "{error}");
    }
    let twice = refused("\"traffic.load\" = [0.1, 0.2]\n[sweep.traffic]\nload = [0.3]");
    assert!(twice.starts_with("a.toml:18:1 sweep.traffic.load: is already set in line 16"), "{twice}");
    let apart = points("\"router.lookahead\" = [false, true]\nrouter = [{ virtual_channels = 4 }, { virtual_channels = 2 }]");
    assert_eq!(apart.len(), 4);
}

/// Where a run has another topology, the old one's parameters mean nothing, and what belongs to every network stays.
#[test]
fn parameters_of_the_files_topology_do_not_follow_into_another() {
    let sweep = "network = [{ topology = \"torus\" }, { topology = \"full-mesh\", routers = 6, concentration = 1 }]\n\
                 routing = [{ algorithm = \"minimal\" }]\n[sweep.router]\nvc_allocator = [{ name = \"islip\", iterations = 2 }]";
    let points = points(sweep);
    let network = |number: usize| points[number].table["network"].as_table().unwrap();
    assert_eq!(network(0)["dimensions"].to_string(), "[4, 4]", "a torus has dimensions, too");
    assert!(!network(1).contains_key("dimensions"));
    assert!(points.iter().all(|point| point.table["network"]["channel_latency"].as_integer() == Some(2)));
    assert_eq!(router(&points[0])["vc_allocator"]["iterations"].as_integer(), Some(2), "a table takes the place of a name");
    let document = document(sweep);
    points.iter().for_each(|point| assert!(document.study(point, &NoFiles).is_ok()));
    // What the sweep itself sets is never left out.
    let error = refused("network = [{ topology = \"full-mesh\", routers = 6, concentration = 1, dimensions = [4] }]");
    assert!(error.contains("unknown key `dimensions`") && error.starts_with("a.toml:16:"), "{error}");
    let error = refused("network = [{ topology = \"full-mesh\", routers = 6 }]\n\"network.dimensions\" = [[2, 2]]");
    assert!(error.contains("unknown key `dimensions`") && error.starts_with("a.toml:17:"), "{error}");
    // What another topology needs is asked for where that topology stands.
    let error = refused("network = [{ topology = \"full-mesh\" }]");
    assert!(error.starts_with("a.toml:16:") && error.contains("network.routers: is missing"), "{error}");
}

#[test]
fn cases_are_values_that_go_together() {
    let sweep = r#"
"traffic.load" = [0.1, 0.2]
[[sweep.case]]
"routing.algorithm" = "minimal"
[sweep.case.network]
topology = "torus"
[[sweep.case]]
label = "narrow"
"router.virtual_channels" = 2
router.buffer_flits = 16
[[sweep.case]]
network.dimensions = [2, 8]
"#;
    let points = points(sweep);
    assert_eq!(points.len(), 6);
    let labels: Vec<&str> = points.iter().map(label).collect();
    assert_eq!(labels, ["minimal", "narrow", "dimensions = [2, 8]"].repeat(2));
    assert_eq!(points[1].columns, points[0].columns);
    assert_eq!(
        *points[0].columns,
        [
            "traffic.load",
            "case",
            "routing.algorithm",
            "network.topology",
            "router.virtual_channels",
            "router.buffer_flits",
            "network.dimensions"
        ]
        .map(str::to_owned)
    );
    assert_eq!(
        (router(&points[1])["virtual_channels"].as_integer(), router(&points[2])["virtual_channels"].as_integer()),
        (Some(2), Some(8))
    );
}

fn label(point: &Point) -> &str {
    point.assignments.iter().find(|(key, _)| key == CASE).and_then(|(_, label)| label.as_str()).unwrap()
}

/// A label says as much as tells a case from the others, and no more.
#[test]
fn labels_are_made_of_what_distinguishes() {
    let labels = |cases: &str| points(&format!("case = [{cases}]")).iter().map(|point| label(point).to_owned()).collect::<Vec<_>>();
    let sizes = "{ network = { topology = \"mesh\", dimensions = [4, 4] } }, { network = { topology = \"mesh\", dimensions = [8, 8] } }, \
                 { network = { topology = \"torus\", dimensions = [4, 4] }, \"routing.algorithm\" = \"dimension-order\" }";
    assert_eq!(labels(sizes), ["mesh, dimensions = [4, 4]", "mesh, dimensions = [8, 8]", "torus"]);
    assert_eq!(labels("{}, { \"router.virtual_channels\" = 4 }"), ["default", "virtual_channels = 4"]);
    assert_eq!(labels("{ \"traffic.pattern\" = \"tornado\" }"), ["tornado"]);
    assert_eq!(labels("{ label = \"tornado\", \"traffic.load\" = 0.3 }, { \"traffic.pattern\" = \"tornado\" }"), ["tornado", "tornado'"]);
}

#[test]
fn wrong_cases_say_what_is_right() {
    for (sweep, expected) in [
        ("case = { traffic = { load = [0.1] } }", "each case begins with [[sweep.case]]"),
        ("case = 3", "is 3; a case is a table of keys"),
        ("case = [3]", "a case is a table of keys"),
        ("case = []", "is a sweep over nothing"),
        ("case = [{ label = 3 }]", "a.toml:16:19 sweep.case.0.label: is 3; a label is a string"),
        ("case = [{ label = \"a\", \"traffic.load\" = 0.1 }, { label = \"a\", \"traffic.load\" = 0.2 }]", "is the label of another case"),
        ("case = [{ label = \"a\", \"traffic.load\" = 0.1 }, { label = \"b\" }]", "`b` makes the same run as the case `a`"),
        ("case = [{ label = \"a\", title = \"x\" }, { label = \"b\" }]", "`b` makes the same run as the case `a`"),
        ("case = [{ \"trafic.load\" = 0.1 }]", "did you mean `traffic`?"),
        ("case = [{ \"traffic.load\" = { from = 0.1, to = 0.2, step = 0.1 } }]", "is a range"),
        ("case = [{ \"traffic.load\" = 0.1, traffic = { load = 0.2 } }]", "is already set in line 16"),
        ("case = [{ \"traffic.load\" = 7 }]", "a.toml:16:"),
        ("router = [{ lookahead = true }, { buffer_flits = 4 }, { lookahead = true }]", "value 3 makes the same run as value 1"),
        ("router = [{}, { virtual_channels = 8 }]", "value 2 makes the same run as value 1"),
        ("title = [\"a\", \"b\"]", "changes no run"),
    ] {
        let error = refused(sweep);
        assert!(error.contains(expected), "{sweep}: {error}");
    }
}

/// A key that is set for one call is what every run has, wherever in [sweep] it stood.
#[test]
fn a_key_that_is_set_leaves_tables_and_cases_of_the_sweep() {
    let all = |sweep: &str, set: &str| {
        let mut document = document(sweep);
        document.set_text(set).unwrap_or_else(|error| panic!("{error}"));
        document.points().unwrap_or_else(|error| panic!("{error}"))
    };
    let two = "router = [{ virtual_channels = 2, lookahead = true }, { virtual_channels = 4 }]";
    let points = all(two, "router.virtual_channels=6");
    assert_eq!(points.len(), 2);
    assert!(points.iter().all(|point| router(point)["virtual_channels"].as_integer() == Some(6)));
    assert_eq!(all("router = [{ virtual_channels = 2 }, { virtual_channels = 4 }]", "router.virtual_channels=6").len(), 1);
    assert_eq!(all(two, "router={ virtual_channels = 6 }").len(), 1);
    let cases = "case = [{ \"router.virtual_channels\" = 2, \"traffic.load\" = 0.2 }, { router = { virtual_channels = 4 } }]";
    let points = all(cases, "router.virtual_channels=6");
    assert!(points.len() == 2 && points.iter().all(|point| router(point)["virtual_channels"].as_integer() == Some(6)));
    let points = all(cases, "sweep.case.1.router.virtual_channels=7");
    assert_eq!(points.iter().map(|point| router(point)["virtual_channels"].as_integer().unwrap()).collect::<Vec<_>>(), [2, 7]);
    assert_eq!(all(cases, "sweep.case=[{ router = { virtual_channels = 3 } }]").len(), 1);
    let error = document(cases).set_text("sweep.case.2.traffic.load=0.1").unwrap_err().to_string();
    assert!(error.contains("there is no case 2; there are 2"), "{error}");
    let error = document("\"network.dimensions\" = [[4, 4], [2, 8]]").set_text("network.dimensions.0=8").unwrap_err().to_string();
    assert!(error.contains("lies in `network.dimensions`, which [sweep] varies"), "{error}");
}

#[test]
fn cases_of_a_dictionary_are_the_same() {
    let text = "case = [{ label = \"a\", \"traffic.load\" = 0.2 }, { network = { dimensions = [2, 8] } }]";
    let table: Table = toml::from_str(&format!("{MESH}{text}")).unwrap();
    let of_table = Document::from_table("dict", table).unwrap().points().unwrap();
    let of_text = points(text);
    assert!(of_table.iter().zip(&of_text).all(|(one, other)| one.table == other.table && one.assignments == other.assignments));
}
