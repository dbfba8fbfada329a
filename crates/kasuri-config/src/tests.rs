//! Wrong descriptions, each with the message that answers it; and right ones.

use super::*;
use kasuri_model::engine::{Engine, Method, Prepared};
use kasuri_model::refusal::Refusal;
use kasuri_model::scenario::Scenario;
use kasuri_network::topology::{Files, NoFiles};
use proptest::prelude::*;
use std::sync::Arc;
use toml::Value;

/// A right description of every section.
const EXPERIMENT: &str = r#"title = "A mesh"
engine = "flit"

[network]
topology = "mesh"
dimensions = [4, 4]
channel_latency = 2

[routing]
algorithm = "dimension-order"
tie = "positive"

[router]
virtual_channels = 4
buffer_flits = 8
pipeline = ["RC", { stage = "VA", cycles = 2 }, "SA", "ST"]

[traffic]
pattern = "uniform"
load = 0.25
packet_flits = 5

[measure]
seed = 7
precision = 0.02
"#;

/// An engine that has a name and a section without keys, and simulates nothing.
#[derive(Debug)]
struct Named(&'static str);

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoKeys {}

impl Engine for Named {
    fn name(&self) -> &'static str {
        self.0
    }

    fn summary(&self) -> &'static str {
        "nothing"
    }

    fn section(&self) -> fn() -> schemars::Schema {
        || schemars::schema_for!(NoKeys)
    }

    fn method(&self) -> Method {
        Method::Cycles
    }

    fn prepare<'s>(&'s self, _scenario: &'s Scenario) -> Result<Box<dyn Prepared + 's>, Vec<Refusal>> {
        Err(vec![Refusal::new("engine", "simulates nothing")])
    }
}

/// A program with three engines.
fn known() -> Known<'static> {
    Known { engines: &[&Named("analysis"), &Named("flow"), &Named("flit")], default_engine: "flit", ..Known::default() }
}

fn studies(text: &str) -> Result<Vec<Study>, ConfigErrors> {
    let document = Document::parse_for(known(), "a.toml", text)?;
    let mut preparation = Preparation::new(&document, &NoFiles, known());
    document.points()?.iter().map(|point| preparation.study(point)).collect()
}

/// The message about a text that differs from [`EXPERIMENT`] in one place.
fn message(from: &str, to: &str) -> String {
    assert!(EXPERIMENT.contains(from), "{from}");
    studies(&EXPERIMENT.replacen(from, to, 1)).err().map_or_else(|| "no error".to_owned(), |error| error.to_string())
}

#[test]
fn a_right_description_becomes_a_study() {
    let study = &studies(EXPERIMENT).unwrap()[0];
    assert_eq!((study.engine.as_str(), study.title.as_str()), ("flit", "A mesh"));
    assert_eq!(study.scenario.network.terminal_count(), 16);
    assert_eq!(study.scenario.network.link(kasuri_network::id::ChannelId(40)).latency, 2);
    assert_eq!(study.scenario.router.virtual_channels, 4);
    assert_eq!(study.scenario.pipeline.head_cycles(), 5);
    assert_eq!(study.scenario.classes.len(), 1);
    assert_eq!(study.scenario.classes[0].sizes.max(), 5);
    assert_eq!(study.scenario.classes[0].virtual_channels.count(), 4);
    assert_eq!(study.measure, Measure { seed: 7, precision: 0.02, ..Measure::default() });
}

#[test]
fn each_mistake_is_named_with_its_place_and_what_would_be_right() {
    let mut differences = String::new();
    for (from, to, expected) in [
        // Unknown names.
        (
            "virtual_channels = 4",
            "virtual_chanels = 4",
            "a.toml:14:1 router.virtual_chanels: unknown key `virtual_chanels`; did you mean `virtual_channels`? known keys: switching, virtual_channels,",
        ),
        ("[router]", "[ruoter]", "a.toml:13:2 ruoter: unknown key `ruoter`; did you mean `router`? known keys: title, engine, network"),
        ("dimensions = [4, 4]", "dimension = [4, 4]", "a.toml:6:1 network.dimension: unknown key `dimension`; did you mean `dimensions`?"),
        (
            "tie =",
            "up_port =",
            "a.toml:11:1 routing.up_port: unknown key `up_port`; known keys: tie, dateline, share_middle, balanced, express, isolation, algorithm, allow_deadlock, terminal_ports (with routing `dimension-order`)",
        ),
        ("load = 0.25", "laod = 0.25", "a.toml:20:1 traffic.laod: unknown key `laod`; did you mean `load`?"),
        ("seed = 7", "sed = 7", "a.toml:24:1 measure.sed: unknown key `sed`; did you mean `seed`?"),
        ("\"mesh\"", "\"mash\"", "a.toml:5:12 network.topology: unknown topology `mash`; did you mean `mesh`? known topologies: mesh"),
        (
            "\"dimension-order\"",
            "\"dimension_order\"",
            "a.toml:10:13 routing.algorithm: unknown algorithm `dimension_order`; did you mean `dimension-order`?",
        ),
        ("\"uniform\"", "\"unifrom\"", "a.toml:19:11 traffic.pattern: unknown pattern `unifrom`; did you mean `uniform`?"),
        (
            "load = 0.25",
            "load = 0.25\nprocess = \"bernouli\"",
            "a.toml:21:11 traffic.process: unknown process `bernouli`; did you mean `bernoulli`? known processes:",
        ),
        ("\"flit\"", "\"flits\"", "a.toml:2:10 engine: unknown engine `flits`; did you mean `flit`? known engines: analysis, flow, flit"),
        ("\"positive\"", "\"up\"", "a.toml:11:7 routing.tie: unknown value `up`; known values: positive, no-wrap, random"),
        (
            "buffer_flits = 8",
            "vc_allocator = \"islp\"",
            "a.toml:15:16 router.vc_allocator: unknown allocator `islp`; did you mean `islip`?",
        ),
        (
            "buffer_flits = 8",
            "vc_allocator = { name = \"pim\", iterations = 2 }",
            "a.toml:15:25 router.vc_allocator.name: unknown allocator `pim`; known allocators: islip,",
        ),
        (
            "buffer_flits = 8",
            "predictor = \"static-strait\"",
            "a.toml:15:13 router.predictor: unknown predictor `static-strait`; did you mean `static-straight`? known predictors: none,",
        ),
        ("\"ST\"", "\"TS\"", "a.toml:16:12 router.pipeline: unknown stage `TS`"),
        (
            "virtual_channels = 4",
            "virtual_channels = 4\nvc_per_destination = true",
            "a.toml:14:20 router.virtual_channels: must be 16, the number of terminals, or be left out, with vc_per_destination = true",
        ),
        (
            "seed = 7",
            "until = \"first-terminal\"",
            "a.toml:24:9 measure.until: is \"first-terminal\", which asks for a batch of each terminal: traffic.process = \"batch\"; or leave it out",
        ),
        // Wrong types.
        (
            "virtual_channels = 4",
            "virtual_channels = \"4\"",
            "a.toml:14:20 router.virtual_channels: is \"4\", a string; it must be a whole number, 0 or more, without quotes",
        ),
        ("load = 0.25", "load = \"much\"", "a.toml:20:8 traffic.load: is \"much\", a string; it must be a number"),
        ("load = 0.25", "load = [0.1, 0.2]", "a.toml:20:8 traffic.load: is [0.1, 0.2], a list; it must be a number"),
        ("buffer_flits = 8", "buffer_flits = 8.5", "a.toml:15:16 router.buffer_flits: is 8.5; it must be a whole number"),
        ("buffer_flits = 8", "buffer_flits = 8\nspeculative = 1", "a.toml:16:15 router.speculative: is 1; it must be true or false"),
        ("dimensions = [4, 4]", "dimensions = 4", "a.toml:6:14 network.dimensions: is 4; it must be a list, each element a whole number"),
        (
            "dimensions = [4, 4]",
            "dimensions = [4, \"x\"]",
            "a.toml:6:18 network.dimensions.1: is \"x\", a string; it must be a whole number",
        ),
        (
            "channel_latency = 2",
            "channel_latency = true",
            "a.toml:7:19 network.channel_latency: is true, a truth value; it must be a whole number, 0 or more, or a list, each",
        ),
        (
            "cycles = 2",
            "cycle = 2",
            "a.toml:16:35 router.pipeline.1.cycle: unknown key `cycle`; did you mean `cycles`? known keys: stage, cycles",
        ),
        ("title = \"A mesh\"", "title = 3", "a.toml:1:9 title: is 3; it must be a string"),
        (
            "engine = \"flit\"",
            "engine = [\"flit\"]",
            "a.toml:2:10 engine: is [\"flit\"], a list; it must be \"analysis\" or \"flow\" or \"flit\"; list several engines in [sweep]",
        ),
        ("\"mesh\"", "[\"mesh\"]", "a.toml:5:12 network.topology: is [\"mesh\"], a list; it must be a string, one of mesh"),
        (
            "tie = \"positive\"",
            "allow_deadlock = \"yes\"",
            "a.toml:11:18 routing.allow_deadlock: is \"yes\", a string; it must be true or false",
        ),
        // Impossible values.
        ("load = 0.25", "load = 1.5", "a.toml:20:8 traffic.load: is 1.5; it must be above 0 and at most 1 flit per terminal and cycle"),
        ("load = 0.25", "load = 0", "a.toml:20:8 traffic.load: is 0; it must be above 0"),
        ("load = 0.25", "load = nan", "a.toml:20:8 traffic.load: is nan; it must be a number"),
        ("load = 0.25\n", "", "a.toml:18:2 traffic.load: is missing; give the flits that each terminal offers per cycle"),
        ("packet_flits = 5", "packet_flits = 0", "a.toml:21:16 traffic.packet_flits: is a packet of 0 flits; it must have 1 to 65535"),
        ("packet_flits = 5", "packet_flits = -5", "a.toml:21:16 traffic.packet_flits: is -5; it must be a whole number"),
        ("packet_flits = 5", "packet_flits = []", "a.toml:21:16 traffic.packet_flits: is an empty list"),
        (
            "packet_flits = 5",
            "packet_flits = [{ flits = 1, wieght = 1 }]",
            "a.toml:21:30 traffic.packet_flits.0.wieght: unknown key `wieght`; did you mean `weight`? known keys: flits, weight",
        ),
        (
            "packet_flits = 5",
            "packet_flits = 5\nprocess = \"batch\"\nbatch_packets = 0",
            "a.toml:23:17 traffic.batch_packets: is 0; give at least 1 packet per terminal",
        ),
        (
            "packet_flits = 5",
            "packet_flits = 5\nprocess = \"batch\"",
            "a.toml:18:2 traffic.batch_packets: is missing; it must be a whole number, 0 or more; an example: batch_packets = 10",
        ),
        ("virtual_channels = 4", "virtual_channels = -4", "a.toml:14:20 router.virtual_channels: is -4; it must be a whole number"),
        (
            "virtual_channels = 4",
            "virtual_channels = 0",
            "a.toml:14:20 router.virtual_channels: is 0; a port has 1 to 256 virtual channels",
        ),
        (
            "buffer_flits = 8",
            "buffer_flits = 4\nswitching = \"store-and-forward\"",
            "a.toml:15:16 router.buffer_flits: is 4, but store-and-forward switching keeps whole packets in a buffer and the longest has 5 flits; set buffer_flits = 5 or more",
        ),
        (
            "buffer_flits = 8",
            "private_flits = 4\nbuffer_policy = \"shared\"\nswitching = \"virtual-cut-through\"",
            "a.toml:15:17 router.private_flits: is 4, but virtual-cut-through switching keeps whole packets in places that a virtual channel can count on and the longest has 5 flits; set private_flits = 5 or more, or shorten the packets",
        ),
        ("dimensions = [4, 4]", "dimensions = []", "a.toml:6:14 network.dimensions: is empty"),
        (
            "dimensions = [4, 4]",
            "dimensions = [4, 0]",
            "a.toml:6:14 network.dimensions: [4, 0] holds 0; each dimension needs at least 2 routers",
        ),
        (
            "dimensions = [4, 4]\n",
            "",
            "a.toml:4:2 network.dimensions: is missing; it must be a list, each element a whole number, 0 or more; an example: dimensions = [4, 3]",
        ),
        ("dimensions = [4, 4]", "dimensions = [60000, 60000]", "a.toml:5:12 network.topology: the network is too large"),
        (
            "channel_latency = 2",
            "channel_latency = [1, 2, 3]",
            "a.toml:7:19 network.channel_latency: has 3 numbers, but the network has 2 dimensions",
        ),
        (
            "channel_latency = 2",
            "channel_period = 0",
            "a.toml:7:18 network.channel_period: is 0; a flit occupies a channel for at least 1 cycle",
        ),
        ("precision = 0.02", "precision = 0.0", "a.toml:25:13 measure.precision: is 0; it must be above 0 and below 1"),
        ("precision = 0.02", "max_cycles = 0", "a.toml:25:14 measure.max_cycles: is 0; it must be at least 1 cycle"),
        (
            "precision = 0.02",
            "cycles = 900_000\nwarmup = 200_000",
            "a.toml:25:10 measure.cycles: lets the run last 1100000 cycles (warm-up included), more than max_cycles = 1000000",
        ),
        ("precision = 0.02", "booksim = { max_samples = 0 }", "a.toml:25:27 measure.booksim.max_samples: is 0"),
        ("seed = 7", "seed = -7", "a.toml:24:8 measure.seed: is -7; it must be a whole number, 0 or more"),
        // Classes and virtual channels.
        (
            "packet_flits = 5",
            "virtual_channels = [2, 6]",
            "a.toml:21:20 traffic.virtual_channels: is [2, 6]; it must be [first, one past the last] within [0, 4]",
        ),
        ("packet_flits = 5", "virtual_channels = [2]", "a.toml:21:20 traffic.virtual_channels: is [2], a list; it must be a list"),
        ("packet_flits = 5", "reply = { virtual_channels = [3, 3] }", "a.toml:21:30 traffic.reply.virtual_channels: is [3, 3]; it must be"),
        (
            "packet_flits = 5",
            "class = []",
            "a.toml:21:9 traffic.class: is [], a list; classes are written as [[traffic.class]], at least one",
        ),
        (
            "packet_flits = 5",
            "[[traffic.class]]\nload = 0.8\n[[traffic.class]]",
            "a.toml:21:1 traffic.class: offers a load of 1.05 in all at terminal 0",
        ),
        ("packet_flits = 5", "[[traffic.class]]\nload = 2", "a.toml:22:8 traffic.class.0.load: is 2; it must be above 0"),
        ("load = 0.25", "load = 25\n[[traffic.class]]", "a.toml:20:8 traffic.load: is 25; it must be above 0"),
        // Sections.
        ("[router]", "[endpoint]", "a.toml:13:2 endpoint.model: is missing; it must be one of cenju4"),
        ("engine = \"flit\"", "router = 4", "duplicate key `router`"),
        ("[network]", "[network", "a.toml:4:9: this is not TOML: "),
        ("seed = 7", "seed = 7\nseed = 8", "a.toml:25:1: duplicate key `seed`"),
        (
            "[measure]",
            "[[plot]]\nx = \"traffic.load\"\ny = \"hops_mean\"\nserie = \"engine\"\n[measure]",
            "a.toml:26:1 plot.0.serie: unknown key `serie`; did you mean `series`?",
        ),
        ("[measure]", "[[plot]]\ny = \"hops_mean\"\n[measure]", "a.toml:23:1 plot.0.x: is missing; it must be a string"),
        // Sweeps.
        ("[measure]", "[sweep]\n\"traffic.load\" = []\n[measure]", "a.toml:24:18 sweep.traffic.load: is a sweep over nothing"),
        ("[measure]", "[sweep]\n[measure]", "a.toml:23:1 sweep: is a sweep over nothing"),
        (
            "[measure]",
            "[sweep]\ntraffic.load = { from = 0.5, to = 0.1, step = 0.1 }\n[measure]",
            "a.toml:24:35 sweep.traffic.load.to: is 0.1, below from = 0.5: a sweep over nothing",
        ),
        (
            "[measure]",
            "[sweep]\ntraffic.load = { from = 0.5, to = 0.9, step = 0 }\n[measure]",
            "a.toml:24:47 sweep.traffic.load.step: is 0; it must be above 0",
        ),
        ("[measure]", "[sweep]\n\"traffic.load\" = 0.5\n[measure]", "a.toml:24:18 sweep.traffic.load: is 0.5; it must be a list of values"),
        (
            "[measure]",
            "[sweep]\n\"trafic.load\" = [0.5]\n[measure]",
            "a.toml:24:1 sweep.trafic.load: unknown key `trafic`; did you mean `traffic`?",
        ),
        ("[measure]", "[sweep]\n\"traffic.laod\" = [0.5]\n[measure]", "a.toml:24:1 traffic.laod: unknown key `laod`; did you mean `load`?"),
        ("[measure]", "[sweep]\n\"traffic.load\" = [0.5, 1.5]\n[measure]", "a.toml:24:18 traffic.load: is 1.5; it must be above 0"),
        ("[measure]", "[sweep]\n\"traffic.load\" = [0.5, 0.5]\n[measure]", "a.toml:24:24 sweep.traffic.load.1: duplicate value 0.5"),
        (
            "[measure]",
            "[sweep]\n\"traffic.load.x\" = [0.5]\n[measure]",
            "a.toml:24:1 sweep.traffic.load.x: `load` is 0.25; it has no key `x`",
        ),
        ("[measure]", "[sweep]\nplot = [1]\n[measure]", "a.toml:24:1 sweep.plot: [plot] itself cannot be swept"),
    ] {
        let message = message(from, to);
        if !message.contains(expected) {
            differences.push_str(&format!("{to}\n   is: {message}\n  not: {expected}\n"));
        }
    }
    assert_eq!(differences, "");
}

#[test]
fn a_missing_section_is_named() {
    for (section, expected) in [
        ("network", "a.toml:1:1 network: the section is missing; it begins with [network]"),
        ("routing", "a.toml:1:1 routing: the section is missing"),
        ("traffic", "a.toml:1:1 traffic: the section is missing"),
    ] {
        let mut table: toml::Table = toml::from_str(EXPERIMENT).unwrap();
        table.remove(section);
        let message = studies(&toml::to_string(&table).unwrap()).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_sweep_is_the_product_in_the_order_of_the_file() {
    let text = format!(
        "{EXPERIMENT}[sweep]\n\"network.dimensions\" = [[4, 4], [2, 2, 2]]\nengine = [\"analysis\", \"flit\"]\n\
         traffic.load = {{ from = 0.1, to = 0.3, step = 0.1 }}\n"
    );
    let document = Document::parse("a.toml", &text).unwrap();
    let points = document.points().unwrap();
    assert_eq!(points.len(), 2 * 2 * 3);
    let sweep = document.sweep().unwrap();
    assert_eq!((sweep.count(), sweep.point(7).unwrap()), (12, points[7].clone()));
    let keys: Vec<&str> = points[0].assignments.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["network.dimensions", "engine", "traffic.load"]);
    let loads: Vec<&Value> = points.iter().take(4).map(|point| &point.assignments[2].1).collect();
    assert_eq!(loads, [0.1, 0.2, 0.3, 0.1].map(Value::Float).iter().collect::<Vec<_>>());
    assert!(points.iter().all(|point| !point.table.contains_key("sweep")));
    let mut preparation = Preparation::new(&document, &NoFiles, Known::default());
    let studies: Vec<Study> = points.iter().map(|point| preparation.study(point).unwrap()).collect();
    assert_eq!(studies[0].engine, "analysis");
    assert_eq!(studies[11].scenario.network.terminal_count(), 8);
    // Equal descriptions share one network and one routing.
    assert!(Arc::ptr_eq(&studies[0].scenario.network, &studies[5].scenario.network));
    assert!(Arc::ptr_eq(&studies[0].scenario.routing, &studies[5].scenario.routing));
    assert!(!Arc::ptr_eq(&studies[5].scenario.network, &studies[6].scenario.network));
}

#[test]
fn a_key_that_is_set_replaces_the_file_and_its_sweep() {
    let text = format!("{EXPERIMENT}[sweep]\n\"traffic.load\" = [0.1, 0.2]\n\"measure.seed\" = [1, 2]\n");
    let mut document = Document::parse("a.toml", &text).unwrap();
    document.set_text("traffic.load=0.5").unwrap();
    document.set_text("sweep.measure.seed = [4, 5, 6]").unwrap();
    document.set_text("network.topology=mesh").unwrap();
    let points = document.points().unwrap();
    assert_eq!(points.len(), 3);
    let study = document.study(&points[2], &NoFiles).unwrap();
    assert_eq!((study.scenario.classes[0].load, study.measure.seed), (0.5, 6));

    document.set_text("traffic.load=5").unwrap();
    let error = document.study(&document.points().unwrap()[0], &NoFiles).unwrap_err().to_string();
    assert!(error.starts_with("--set traffic.load=5 traffic.load: is 5; it must be above 0"), "{error}");
    for (assignment, expected) in [
        ("traffic.load", "--set traffic.load: there is no `=`"),
        ("=1", "--set =1: there is no key"),
        ("trafic.load=1", "--set trafic.load=1 trafic: unknown key `trafic`; did you mean `traffic`?"),
        ("title.x=1", "--set title.x=1 title.x: `title` is \"A mesh\", a string; it has no key `x`"),
        ("traffic..load=1", "has an empty part"),
    ] {
        let error = document.clone().set_text(assignment).unwrap_err().to_string();
        assert!(error.starts_with(expected) || error.contains(expected), "{error}");
    }
}

#[test]
fn a_routing_promises_no_deadlock_only_with_its_virtual_channels() {
    let promises = |text: &str| studies(text).unwrap()[0].promises_no_deadlock();
    let torus = EXPERIMENT.replace("\"mesh\"", "\"torus\"");
    assert!(promises(&torus));
    assert!(promises(&EXPERIMENT.replace("virtual_channels = 4", "virtual_channels = 1")));
    assert!(!promises(&torus.replace("virtual_channels = 4", "virtual_channels = 1")));
    assert!(!promises(&torus.replace("packet_flits = 5", "reply = { virtual_channels = [3, 4] }")));
    assert!(!promises(&torus.replace("\"dimension-order\"", "\"dimension-order\"\nshare_middle = true")));
    // Virtual channel 1 would serve the second half of the requests' rings and the first of the replies'.
    let ranges = |requests: &str, replies: &str| {
        torus.replace("packet_flits = 5", &format!("virtual_channels = {requests}\nreply = {{ virtual_channels = {replies} }}"))
    };
    assert!(promises(&ranges("[0, 2]", "[2, 4]")) && promises(&ranges("[0, 4]", "[0, 4]")));
    assert!(!promises(&ranges("[0, 2]", "[1, 3]")));
}

#[test]
fn a_key_that_is_set_leaves_the_sweep_and_the_last_one_ends_it() {
    let mut document = Document::parse("a.toml", &format!("{EXPERIMENT}\n[sweep]\n\"traffic.load\" = [0.1, 0.2]\n")).unwrap();
    assert_eq!(document.points().unwrap().len(), 2);
    document.set_text("traffic.load=0.3").unwrap();
    let points = document.points().unwrap();
    assert_eq!((points.len(), points[0].table["traffic"]["load"].as_float()), (1, Some(0.3)));
}

#[test]
fn a_table_without_text_is_named_in_messages() {
    let mut table: toml::Table = toml::from_str(EXPERIMENT).unwrap();
    table["traffic"].as_table_mut().unwrap().insert("load".to_owned(), Value::Integer(3));
    let mut document = Document::from_table("dict", table).unwrap();
    let error = document.study(&document.points().unwrap()[0], &NoFiles).unwrap_err();
    assert_eq!(error.first().location, Location::Table);
    assert!(error.to_string().starts_with("dict traffic.load: is 3; it must be above 0"), "{error}");
    document.set("traffic.load", Value::Float(0.5)).unwrap();
    assert!(document.study(&document.points().unwrap()[0], &NoFiles).is_ok());
}

#[test]
fn classes_inherit_from_the_section_around_them() {
    let text = EXPERIMENT.replace(
        "packet_flits = 5",
        "packet_flits = 5\nprocess = \"batch\"\nbatch_packets = 3\n[[traffic.class]]\nvirtual_channels = [0, 2]\n\
         reply = { packet_flits = 9, virtual_channels = [2, 4] }\n[[traffic.class]]\nprocess = \"bernoulli\"\nload = 0.5\n\
         packet_flits = [{ flits = 1, weight = 3 }, { flits = 5, weight = 1 }]",
    );
    let classes = &studies(&text).unwrap()[0].scenario.classes;
    assert_eq!(classes.len(), 2);
    assert_eq!((classes[0].packets_per_terminal, classes[0].sizes.max()), (Some(3), 5));
    assert_eq!(classes[0].virtual_channels.end, 2);
    let reply = classes[0].reply.as_ref().unwrap();
    assert_eq!((reply.sizes.min(), reply.virtual_channels.begin), (9, 2));
    // The keys of the batch process are not inherited by the other process. Mean length: (3 * 1 + 1 * 5) / 4.
    assert_eq!((classes[1].packets_per_terminal, classes[1].load, classes[1].sizes.mean()), (None, 0.5, 2.0));
}

/// Classes of 0.2 flits a cycle in packets of 1 and of 4 flits create 0.2 and 0.05 packets a cycle, together 0.25.
#[test]
fn classes_that_share_their_coins_have_one_process() {
    let text = |more: &str| {
        let classes = format!("[[traffic.class]]\nload = 0.2\npacket_flits = 1\n[[traffic.class]]\nload = 0.2\npacket_flits = 4\n{more}");
        EXPERIMENT.replace("packet_flits = 5", &format!("process = \"periodic\"\nshares_coins = true\n{classes}"))
    };
    let scenario = |more: &str| studies(&text(more)).map(|studies| studies[0].scenario.clone());
    let classes = scenario("").unwrap().classes;
    assert_eq!([0, 1].map(|class| (classes[class].packet_rate() * 100.0).round()), [20.0, 5.0]);
    let mut stream = kasuri_network::rng::Streams::new(1).get(kasuri_network::rng::Purpose::Creation, 0);
    for class in &classes {
        let joint = class.joint.as_ref().unwrap();
        assert_eq!(joint.next(1, Some(100), &mut stream), Some(104));
    }
    let apart = scenario("shares_coins = false").unwrap().classes;
    assert!(apart[0].joint.is_some() && apart[1].joint.is_none());
    let mixed = scenario("process = \"bernoulli\"").unwrap_err().to_string();
    assert!(mixed.contains("different processes"), "{mixed}");
}

#[test]
fn windows_belong_to_batches() {
    let study = |more: &str| studies(&EXPERIMENT.replace("packet_flits = 5", &format!("packet_flits = 5\nprocess = \"batch\"\n{more}")));
    let scenario = study("batch_packets = 9\noutstanding_packets = 2\ncounts_answers = true\nreply = {}").unwrap()[0].scenario.clone();
    assert_eq!(scenario.classes[0].window, kasuri_workload::traffic::process::Window { outstanding: Some(2), counts_answers: true });
    let two = "batch_packets = 9\nshares_coins = true\n[[traffic.class]]\n[[traffic.class]]\n";
    let scenario = study(two).unwrap()[0].scenario.clone();
    assert_eq!(scenario.batches().map(|(_, packets)| packets).collect::<Vec<_>>(), [9]);
    for (more, wanted) in [
        ("batch_packets = 9\noutstanding_packets = 0", "outstanding_packets"),
        ("batch_packets = 9\ncounts_answers = true", "give a reply, or leave it out"),
        (&format!("{two}reply = {{}}"), "give a reply to all of them or to none"),
    ] {
        let message = study(more).unwrap_err().to_string();
        assert!(message.contains(wanted), "{more} gives {message}");
    }
    let open = studies(&EXPERIMENT.replace("packet_flits = 5", "packet_flits = 5\noutstanding_packets = 2")).unwrap_err().to_string();
    assert!(open.contains("outstanding_packets"), "{open}");
}

#[test]
fn every_example_of_a_family_is_accepted() {
    for entry in crate::topology::ALL_TOPOLOGIES.iter().filter(|entry| !["file", "anynet"].contains(&entry.name)) {
        let text = format!("[network]\ntopology = \"{}\"\n{}", entry.name, entry.example);
        let document = Document::parse("a.toml", &text).unwrap();
        let network = document.network(&document.points().unwrap()[0], &NoFiles).unwrap();
        assert!(network.terminal_count() > 0, "{}", entry.name);
    }
}

/// A topology that wraps another one takes the keys of both, refuses those of neither, and says which value is wrong.
#[test]
fn keys_of_a_wrapped_topology_stand_beside_its_own() {
    let network = |keys: &str| {
        let document = Document::parse("a.toml", &format!("[network]\ntopology = \"planes\"\nplanes = 2\n{keys}")).unwrap();
        document.network(&document.points().unwrap()[0], &NoFiles).map_err(|error| error.to_string())
    };
    let built = network("of = \"mesh\"\ndimensions = [3]\nchannel_latency = 4").unwrap();
    assert_eq!((built.router_count(), built.terminal_count(), built.further_home_count()), (6, 3, 3));
    for (keys, wanted) in [
        ("of = \"mesh\"\ndimensions = 3", "a.toml:5:14 network.dimensions: is 3; it must be a list"),
        ("of = \"mesh\"\ndimensions = [3]\nleaves = 2", "a.toml:6:1 network.leaves: unknown key `leaves`"),
        ("of = \"mash\"\ndimensions = [3]", "a.toml:4:6 network.of: unknown topology `mash`"),
        ("dimensions = [3]", "network.of: is missing"),
    ] {
        let problem = network(keys).unwrap_err();
        assert!(problem.contains(wanted), "{problem}");
    }
}

#[test]
fn an_engine_that_is_not_there_and_a_wrong_engine_section_are_refused() {
    let flit_alone = Known { engines: &[&Named("flit")], ..known() };
    let document = Document::parse_for(flit_alone, "a.toml", &EXPERIMENT.replace("\"flit\"", "\"flow\"")).unwrap();
    let points = document.points().unwrap();
    let error = Preparation::new(&document, &NoFiles, flit_alone).study(&points[0]).unwrap_err().to_string();
    assert_eq!(error, "a.toml:2:10 engine: unknown engine `flow`; known engines: flit");
    // The section of an engine that does not run is checked as well.
    let message = studies(&format!("{EXPERIMENT}[flow]\nsharing = 1\n")).unwrap_err().to_string();
    assert_eq!(message, "a.toml:27:1 flow.sharing: unknown key `sharing`; known keys: none");
    // Where no engine is known, the one that the file names may have a section.
    let passed = Document::parse("a.toml", &format!("{EXPERIMENT}[flit]\nlayout = \"plain\"\n")).unwrap();
    let study = passed.study(&passed.points().unwrap()[0], &NoFiles).unwrap();
    assert_eq!(study.scenario.engine_options["layout"].as_str(), Some("plain"));
    assert!(Document::parse("a.toml", &format!("{EXPERIMENT}[flow]\nsharing = 1\n")).is_err());
}

/// What is wrong in one section hides nothing in another, and of what does not go together everything is said.
#[test]
fn all_that_is_wrong_is_said_at_once() {
    let text = EXPERIMENT
        .replace("seed = 7", "sed = 7")
        .replace("buffer_flits = 8", "buffer_flits = 0\ncredit_delay = 70000\noutput_buffer_flits = 0")
        .replace("dimensions = [4, 4]", "dimensions = [4, 4]\nflit_bytes = 0");
    let errors = studies(&text).unwrap_err();
    let keys: Vec<&str> = errors.iter().map(|error| error.key.as_str()).collect();
    assert_eq!(keys, ["measure.sed", "router.buffer_flits", "router.output_buffer_flits", "network.flit_bytes"]);
    assert_eq!(errors.to_string().lines().count(), 4);
    let text = EXPERIMENT
        .replace("buffer_flits = 8", "buffer_flits = 2\nswitching = \"store-and-forward\"")
        .replace("seed = 7", "seed = 7\nuntil = \"first-terminal\"");
    let errors = studies(&text).unwrap_err();
    let keys: Vec<&str> = errors.iter().map(|error| error.key.as_str()).collect();
    assert_eq!(keys, ["router.buffer_flits", "measure.until"]);
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*") {
        let _ = studies(&text);
    }

    /// Any piece of a right file replaced by any other piece or by odd characters gives studies or an error with a message.
    #[test]
    fn no_mutation_makes_the_checks_panic(
        start in 0..EXPERIMENT.len(),
        length in 0..40usize,
        from in 0..EXPERIMENT.len(),
        copied in 0..40usize,
        odd in "[-\\[\\]{}=\"'.0-9a-z\n#_e]{0,6}",
    ) {
        let piece = |start: usize, length: usize| &EXPERIMENT[start..(start + length).min(EXPERIMENT.len())];
        let after = (start + length).min(EXPERIMENT.len());
        let text = format!("{}{odd}{}{}", &EXPERIMENT[..start], piece(from, copied), &EXPERIMENT[after..]);
        // A network of millions of routers is right but would make the test slow.
        prop_assume!(!text.lines().any(|line| line.starts_with("dimensions") && line.len() > 22));
        if let Err(error) = studies(&text) {
            prop_assert!(!error.first().message.is_empty());
        }
    }
}

/// [`EXPERIMENT`] with a closed workload in place of its traffic.
fn with_workload(keys: &str) -> String {
    let (before, rest) = EXPERIMENT.split_once("[traffic]").unwrap();
    let (_, after) = rest.split_once("[measure]").unwrap();
    format!("{before}[workload]\n{keys}\n[measure]{after}")
}

#[test]
fn a_workload_takes_the_place_of_traffic() {
    let text = with_workload("collective = \"alltoall\"\nmessage_bytes = 100\npacket_flits = 4\nvirtual_channels = [1, 3]");
    let text = text.replace("[routing]", "flit_bytes = 16\nchannel_gbit_per_second = 32\n[routing]");
    let scenario = &studies(&text).unwrap()[0].scenario;
    assert!(scenario.classes.is_empty() && scenario.is_closed());
    let closed = scenario.workload.as_ref().unwrap();
    // 16 ranks, and 100 bytes are 7 flits of 16.
    assert_eq!((closed.workload.messages(), closed.workload.longest_message(), closed.parts[0].packet_flits), (16 * 15, 7, 4));
    let expected = kasuri_network::routing::VirtualChannels { begin: 1, end: 3 };
    assert_eq!(scenario.virtual_channel_ranges(), [expected]);
    // 128 bits at 32 bits per ns.
    assert_eq!(scenario.units, kasuri_workload::units::Units { flit_bytes: Some(16), cycle_ns: Some(4.0) });
}

/// [`with_workload`] of an application, a flit of 64 bytes in each nanosecond.
fn with_application(keys: &str) -> String {
    with_workload(&format!("application = \"npb-ft\"\n{keys}")).replace("[routing]", "flit_bytes = 64\ncycle_ns = 1.0\n[routing]")
}

#[test]
fn an_application_sends_the_blocks_of_its_class() {
    let workload = |keys: &str| studies(&with_application(keys)).unwrap().remove(0).scenario.workload.unwrap().workload;
    // Class S on 16 ranks: 7 all-to-alls of 16 KiB for each pair.
    let whole = workload("class = \"S\"");
    assert_eq!((whole.messages(), whole.longest_message()), (7 * 16 * 15, 16 * 1024 / 64));
    let part = workload("class = \"A\"\nranks = 8\nschedule = \"pairwise\"\ngflops_per_rank = 1.5\nterminals_per_host = 4");
    assert_eq!((part.messages(), part.longest_message()), (7 * 8 * 7, (2 << 20) / 64));
    // With three all-to-alls for each transform, three times as many of the same size.
    let often = workload("class = \"S\"\ntransposes = 3");
    assert_eq!((often.messages(), often.longest_message()), (3 * whole.messages(), whole.longest_message()));
}

#[test]
fn applications_that_cannot_be_are_refused() {
    let problem = |keys: &str| studies(&with_application(keys)).unwrap_err().to_string();
    for (keys, expected) in [
        ("ranks = 8", "workload.class: is missing"),
        ("class = \"F\"", "workload.class: is \"F\"; it must be one of S, W, A, B, C, D, E"),
        ("class = \"S\"\nranks = 3", "workload.ranks: are 3; of class S they must divide 64 planes and 64 rows into equal parts"),
        ("class = \"S\"\nrepeat = 2", "workload.repeat: conflicts with application"),
        ("class = \"S\"\nmessage_flits = 2", "workload.message_flits: conflicts with application"),
        ("class = \"S\"\nterminals_per_host = 0", "workload.terminals_per_host: is 0; a host has at least 1 terminal"),
        ("class = \"S\"\ntransposes = 0", "workload.transposes: is 0; a transform has at least 1 all-to-all"),
        ("class = \"S\"\ntransposes = 4294967295", "workload.transposes: is 4294967295, which makes too many all-to-alls"),
        ("class = \"S\"\ngflops_per_rank = 0.0", "workload.gflops_per_rank: is 0; it must be above 0"),
        ("class = \"S\"\nhost_gbyte_per_second = -1.0", "workload.host_gbyte_per_second: is -1; it must be above 0"),
    ] {
        let problem = problem(keys);
        assert!(problem.contains(expected), "{problem}");
    }
    let unknown = studies(&with_application("class = \"S\"").replace("npb-ft", "npb-fft")).unwrap_err().to_string();
    assert!(unknown.contains("npb-ft"), "{unknown}");
    let unitless = studies(&with_application("class = \"S\"").replace("flit_bytes = 64\n", "")).unwrap_err().to_string();
    assert!(unitless.contains("workload.application: counts bytes and seconds"), "{unitless}");
    let stray = studies(&with_workload("collective = \"barrier\"\nclass = \"S\"")).unwrap_err().to_string();
    assert!(stray.contains("workload.class: has a meaning only for an application"), "{stray}");
}

#[test]
fn ranks_stand_on_the_terminals_that_the_placement_says() {
    let sources = |keys: &str| {
        let text = with_workload(&format!("collective = \"broadcast\"\nschedule = \"linear\"\nmessage_flits = 1\n{keys}"));
        let mut ends = Vec::new();
        let workload = studies(&text).unwrap().remove(0).scenario.workload.unwrap().workload;
        workload.each_message(&mut |message| ends.push((message.source.0, message.destination.0)));
        ends
    };
    assert_eq!(sources("ranks = 3"), [(0, 1), (0, 2)]);
    assert_eq!(sources("placement = [9, 4, 7]"), [(9, 4), (9, 7)]);
    assert_eq!(sources("placement = [9, 4, 7]\nroot = 2"), [(7, 9), (7, 4)]);
    assert_eq!(sources("placement = \"cyclic\"\nplacement_stride = 6\nranks = 5"), [(0, 6), (0, 12), (0, 1), (0, 7)]);
    assert_eq!(sources("placement = \"cyclic\"\nplacement_stride = 99"), sources(""));
    assert_eq!(sources("placement = \"random\"").len(), 15);
    assert_ne!(sources("placement = \"random\""), sources("placement = \"random\"\nplacement_seed = 1"));
}

/// On a hypercube all pairs of a phase differ in the same bits.
#[test]
fn an_all_to_all_may_go_by_the_network() {
    let text = |schedule: &str, keys: &str| {
        let keys = format!("collective = \"alltoall\"\nschedule = \"{schedule}\"\nmessage_flits = 8\n{keys}");
        with_workload(&keys).replace("dimensions = [4, 4]", "dimensions = [2, 2, 2, 2]")
    };
    let partners = |keys: &str| {
        let workload = studies(&text("hypercube", keys)).unwrap().remove(0).scenario.workload.unwrap().workload;
        let mut differences: Vec<Vec<u32>> = Vec::new();
        workload.each_message(&mut |message| {
            let round = (message.token >> 32) as usize;
            differences.resize(differences.len().max(round + 1), Vec::new());
            differences[round].push(message.source.0 ^ message.destination.0);
        });
        assert!(differences.iter().all(|round| round.iter().all(|&bits| bits == round[0] && bits > 0)));
        (differences.len(), workload.messages())
    };
    assert_eq!(partners(""), (15, 16 * 15));
    assert_eq!(partners("ranks = 8"), (7, 8 * 7));
    assert_eq!(partners("placement = [8, 9, 10, 11]"), (3, 4 * 3));
    let problem = studies(&text("mlfm", "")).unwrap_err().to_string();
    assert!(problem.starts_with("a.toml:20:12 workload.schedule: schedule `mlfm` does not fit mesh [2, 2, 2, 2]"), "{problem}");
    // Terminals in no cube of their own: one phase for each of 3, 4, 9, 7, 10 and 13, by which pairs of them differ.
    assert_eq!(partners("placement = [0, 3, 4, 9]"), (6, 4 * 3));
    let problem = studies(&text("hypercube", "placement = [3]")).unwrap_err().to_string();
    assert!(problem.starts_with("a.toml:22:13 workload.placement: schedule `hypercube` cannot serve"), "{problem}");
}

/// An all-to-all with a size for each pair.
const VARIED: &str = "collective = \"alltoallv\"\nmatrix_flits = [[9, 5, 0], [1, 9, 2], [7, 0, 0]]";

#[test]
fn an_alltoallv_sends_what_its_matrix_says() {
    struct Matrix;
    impl Files for Matrix {
        fn read(&self, _path: &str) -> Result<Vec<u8>, String> {
            Ok(b"9, 33, 0\n1, 9, 16 # two of\n100 0 0\n".to_vec())
        }
    }
    let sent = |keys: &str| {
        let text = with_workload(keys).replace("[routing]", "flit_bytes = 16\n[routing]");
        let document = Document::parse("a.toml", &text).unwrap();
        let study = document.study(&document.points().unwrap()[0], &Matrix).unwrap_or_else(|error| panic!("{error}"));
        let mut messages = Vec::new();
        let workload = study.scenario.workload.unwrap().workload;
        workload.each_message(&mut |message| messages.push((message.source.0, message.destination.0, message.flits)));
        messages.sort_unstable();
        (messages, study.files)
    };
    let in_flits = |ranks: [u32; 3]| {
        let mut all = vec![(ranks[0], ranks[1], 5), (ranks[1], ranks[0], 1), (ranks[1], ranks[2], 2), (ranks[2], ranks[0], 7)];
        all.sort_unstable();
        (all, Vec::<String>::new())
    };
    assert_eq!(sent(VARIED), in_flits([0, 1, 2]));
    assert_eq!(sent(&format!("{VARIED}\nschedule = \"general\"")), in_flits([0, 1, 2]));
    assert_eq!(sent(&format!("{VARIED}\nplacement = [9, 4, 7]")), in_flits([9, 4, 7]));
    let bytes = (vec![(0, 1, 3), (1, 0, 1), (1, 2, 1), (2, 0, 7)], vec!["m.csv".to_owned()]);
    assert_eq!(sent("collective = \"alltoallv\"\nmatrix_bytes = \"m.csv\""), bytes);
}

/// A trace that is there and damaged is an error; one that is not there ends an algorithm.
#[test]
fn a_damaged_trace_of_an_algorithm_is_refused() {
    struct Traces(&'static str);
    impl Files for Traces {
        fn read(&self, path: &str) -> Result<Vec<u8>, String> {
            let is_algorithm = path.starts_with("ring.");
            match path {
                "s.json" => Ok(br#"{"all-gather-implementation-custom": ["ring"]}"#.to_vec()),
                _ if is_algorithm && path == self.0 => Ok(b"\x00\x06\x08".to_vec()),
                "t.0.et" | "t.1.et" | "t.2.et" | "ring.0.et" | "ring.1.et" => Ok(b"\x00".to_vec()),
                _ => Err(format!("`{path}` is not there")),
            }
        }
    }
    let text = with_workload("trace = \"t\"\nsystem = \"s.json\"\ndimensions = [3]")
        .replace("[routing]", "flit_bytes = 8\ncycle_ns = 1.0\n[routing]");
    let document = Document::parse("a.toml", &text).unwrap();
    let study = |damaged| document.study(&document.points().unwrap()[0], &Traces(damaged)).map(|study| study.files);
    assert_eq!(study("none").unwrap(), ["ring.0.et", "ring.1.et", "s.json", "t.0.et", "t.1.et", "t.2.et"]);
    for damaged in ["ring.0.et", "ring.1.et", "ring.2.et"] {
        let problem = study(damaged).unwrap_err().to_string();
        assert!(problem.contains("workload.system") && problem.contains(damaged) && problem.contains("cut off"), "{problem}");
    }
}

#[test]
fn each_mistake_of_a_workload_is_named_with_its_place_and_what_would_be_right() {
    let right = "collective = \"alltoall\"\nmessage_flits = 8";
    for (keys, expected) in [
        (
            "message_flits = 8",
            "a.toml:18:2 workload.collective: is missing; it must be one of alltoall, alltoallv, allreduce, allgather, broadcast, reducescatter, reduce, \
             gather, scatter, barrier",
        ),
        ("collective = \"all-to-all\"", "a.toml:19:14 workload.collective: unknown collective `all-to-all`; did you mean `alltoall`?"),
        (
            &format!("{right}\nschedule = \"shfit\""),
            "a.toml:21:12 workload.schedule: unknown schedule `shfit`; did you mean `shift`? known schedules: shift, pairwise, ring, bruck, weighted, mlfm, oft, full-mesh, hypercube, torus, general (of `alltoall`)",
        ),
        (
            &format!("{right}\nschedule = \"pairwise\"\nranks = 12"),
            "a.toml:22:9 workload.ranks: is 12; the schedule `pairwise` needs a power of two, the schedule `shift` takes any number",
        ),
        (&format!("{right}\nranks = 17"), "a.toml:21:9 workload.ranks: asks for 17 ranks; the network has 16 terminals"),
        (&format!("{right}\nranks = 1"), "a.toml:21:9 workload.ranks: is 1; a collective needs at least 2"),
        (
            &format!("{right}\nschedule = \"ring\"\nsynchronisation = \"none\""),
            "a.toml:22:19 workload.synchronisation: is \"none\", but with this schedule a rank passes on what it has received",
        ),
        (
            &format!("{right}\nsynchronisation = \"barier\""),
            "a.toml:21:19 workload.synchronisation: unknown value `barier`; did you mean `barrier`?",
        ),
        (&format!("{right}\nmessage_bytes = 8"), "a.toml:21:17 workload.message_bytes: conflicts with message_flits"),
        (
            "collective = \"alltoall\"\nmessage_bytes = 8",
            "a.toml:20:17 workload.message_bytes: cannot be turned into flits; say with network.flit_bytes",
        ),
        ("collective = \"alltoall\"", "a.toml:18:2 workload.message_flits: is missing"),
        ("collective = \"alltoall\"\nmessage_flits = 0", "a.toml:20:17 workload.message_flits: is 0"),
        ("collective = \"alltoall\"\nmessage_flits = 4294967295", "a.toml:20:17 workload.message_flits: is too large"),
        (
            &format!("{right}\nmatrix_flits = [[0, 1], [1, 0]]"),
            "a.toml:21:1 workload.matrix_flits: has a meaning with collective = \"alltoallv\" alone",
        ),
        ("collective = \"alltoallv\"", "a.toml:18:2 workload.matrix_flits: is missing; give what each rank has for each other one"),
        (&format!("{VARIED}\nmessage_flits = 8"), "a.toml:21:1 workload.message_flits: has no meaning for `alltoallv`"),
        (&format!("{VARIED}\nmatrix_bytes = [[0]]"), "a.toml:21:16 workload.matrix_bytes: conflicts with matrix_flits"),
        (&format!("{VARIED}\nranks = 4"), "a.toml:21:9 workload.ranks: is 4, but matrix_flits has 3 rows, one for each rank"),
        (&format!("{VARIED}\nplacement = [0, 1]"), "a.toml:21:13 workload.placement: lists 2 terminals; there are 3 ranks"),
        (
            &format!("{VARIED}\nschedule = \"bruck\""),
            "a.toml:21:12 workload.schedule: is \"bruck\", in which ranks pass on blocks of others; with a size for each pair",
        ),
        (
            "collective = \"alltoallv\"\nmatrix_bytes = [[0, 1], [1, 0]]",
            "a.toml:20:16 workload.matrix_bytes: cannot be turned into flits; say with network.flit_bytes",
        ),
        (
            "collective = \"alltoallv\"\nmatrix_flits = [[0, 1], [1]]",
            "a.toml:20:16 workload.matrix_flits: has 1 numbers for rank 1; there are 2 rows",
        ),
        ("collective = \"alltoallv\"\nmatrix_flits = \"m.csv\"", "a.toml:20:16 workload.matrix_flits: `m.csv` cannot be read here"),
        (
            &format!("collective = \"alltoallv\"\nmatrix_flits = {:?}", vec![vec![1; 17]; 17]),
            "a.toml:20:16 workload.matrix_flits: has 17 rows, one for each rank; the network has 16 terminals",
        ),
        (&format!("{right}\nroot = 1"), "a.toml:21:1 workload.root: has no meaning: the schedule `shift` has no root"),
        ("collective = \"broadcast\"\nmessage_flits = 1\nroot = 16", "a.toml:21:8 workload.root: is 16; with 16 ranks it must be 0 to 15"),
        (&format!("{right}\nplacement = \"linaer\""), "a.toml:21:13 workload.placement: unknown value `linaer`; did you mean `linear`?"),
        (&format!("{right}\nplacement = \"cyclic\""), "a.toml:21:13 workload.placement: is \"cyclic\", which needs a placement_stride"),
        (
            &format!("{right}\nplacement_stride = 2"),
            "a.toml:21:20 workload.placement_stride: has a meaning with placement = \"cyclic\" alone",
        ),
        (
            &format!("{right}\nplacement = \"cyclic\"\nplacement_stride = 0"),
            "a.toml:22:20 workload.placement_stride: is 0; it must be 1 or more",
        ),
        (&format!("{right}\nplacement = [1, 2, 1]"), "a.toml:21:13 workload.placement: puts ranks 0 and 2 on terminal 1"),
        (
            &format!("{right}\nplacement = [1, 16]"),
            "a.toml:21:13 workload.placement: puts rank 1 where there is none: 16 is not a terminal; they are numbered 0 to 15",
        ),
        (&format!("{right}\nplacement = [1, 2]\nranks = 3"), "a.toml:21:13 workload.placement: lists 2 terminals; there are 3 ranks"),
        (&format!("{right}\nstart_skew_cycles = -1.0"), "a.toml:21:21 workload.start_skew_cycles: is -1; it must be 0 or more cycles"),
        (&format!("{right}\njitter_cycles = -1.0"), "a.toml:21:17 workload.jitter_cycles: is -1; it must be 0 or more cycles"),
        (&format!("{right}\nrepeat = 0"), "a.toml:21:10 workload.repeat: is 0; it must be 1 to"),
        (&format!("{right}\npacket_flits = 0"), "a.toml:21:16 workload.packet_flits: is 0"),
        (&format!("{right}\nload = 0.1"), "a.toml:21:1 workload.load: unknown key `load`"),
        (&format!("{right}\nvirtual_channels = [2, 5]"), "a.toml:21:20 workload.virtual_channels: is [2, 5]; it must be"),
    ] {
        let found = studies(&with_workload(keys)).err().map_or_else(|| "no error".to_owned(), |error| error.to_string());
        assert!(found.starts_with(expected), "{keys}\n   is: {found}\n  not: {expected}");
    }
}

#[test]
fn a_message_that_is_shorter_than_a_packet_needs_only_a_buffer_for_itself() {
    let buffers = |message: u32| {
        let text = with_workload(&format!("collective = \"alltoall\"\nmessage_flits = {message}"));
        studies(&text.replace("[router]", "[router]\nswitching = \"virtual-cut-through\"")).map_err(|error| error.to_string())
    };
    assert!(buffers(8).is_ok());
    let problem = buffers(9).unwrap_err();
    assert!(
        problem.starts_with("a.toml:16:16 router.buffer_flits: is 8, but virtual-cut-through switching keeps whole packets"),
        "{problem}"
    );
}

#[test]
fn wrong_units_are_refused() {
    for (keys, expected) in [
        ("flit_bytes = 0", "a.toml:8:14 network.flit_bytes: is 0"),
        ("cycle_ns = 0", "a.toml:8:12 network.cycle_ns: is 0; it must be above 0"),
        (
            "channel_gbit_per_second = 100",
            "a.toml:8:27 network.channel_gbit_per_second: does not give the length of a cycle without flit_bytes",
        ),
        ("cycle_ns = 1\nchannel_gbit_per_second = 100", "a.toml:9:27 network.channel_gbit_per_second: conflicts with cycle_ns"),
        ("rate = \"fast\"\nflit_bytes = 64", "a.toml:8:8 network.rate: is \"fast\"; a rate is a number above 0 and Mbit/s, Gbit/s"),
        ("rate = \"400 Gbit/s\"\nflit_bytes = 64\nlatency = \"600 ns\"", "a.toml:10:11 network.latency: conflicts with channel_latency"),
        ("rate = [\"400 Gbit/s\", \"9\", \"9\"]\nflit_bytes = 64", "a.toml:8:23 network.rate.1: is \"9\"; a rate is"),
        (
            "rate = [\"1 Gbit/s\", \"9 Gbit/s\", \"3 Gbit/s\"]\nflit_bytes = 64",
            "a.toml:8:8 network.rate: has 3 numbers, but the network has 2",
        ),
    ] {
        let found = message("channel_latency = 2", &format!("channel_latency = 2\n{keys}"));
        assert!(found.starts_with(expected), "{found}");
    }
}

/// Keys of thousands of parts would be tables in tables in tables; a number such as 1.2.3.4 is none of them.
#[test]
fn keys_that_nobody_can_mean_are_refused_before_they_are_followed() {
    let deep = vec!["a"; 20_000].join(".");
    for text in [format!("[network]\n{deep} = 1"), format!("[{deep}]"), format!("title = {{ {deep} = 1 }}")] {
        let problem = Document::parse("a.toml", &text).unwrap_err().to_string();
        assert!(problem.contains("more than 32 parts") && problem.len() < 500, "{problem}");
    }
    let mut document = Document::parse("a.toml", "title = \"1.2.3.4.5 ... and ../../x\"").unwrap();
    assert!(document.set(&format!("network.{deep}"), toml::Value::Integer(1)).unwrap_err().to_string().contains("more than 32 parts"));
    let swept = Document::parse("a.toml", &format!("[sweep]\n\"network.{deep}\" = [1, 2]")).and_then(|document| document.points());
    assert!(swept.is_err());
}

#[test]
fn a_key_that_stands_twice_is_named() {
    let problem = Document::parse("a.toml", "[network]\ntopology = \"mesh\"\ntopology = \"torus\"").unwrap_err().to_string();
    assert!(problem.starts_with("a.toml:3:1: duplicate key `topology`"), "{problem}");
}

/// A list of a hundred thousand values in one line: each has its column, counted on from the one before.
#[test]
fn values_of_a_long_line_have_their_columns() {
    let values = vec!["é1"; 100_000].iter().map(|value| format!("\"{value}\"")).collect::<Vec<_>>().join(", ");
    let document = Document::parse("a.toml", &format!("[sweep]\n\"traffic.pattern\" = [{values}]")).unwrap();
    let problem = document.points().unwrap_err().to_string();
    assert!(problem.starts_with("a.toml:2:28"), "{}", &problem[..100.min(problem.len())]);
}

#[test]
fn classes_may_have_queues_whatever_sends() {
    let queues = |text: &str| studies(&text.replace("[router]", "[router]\nclass_queues = true"));
    assert!(queues(EXPERIMENT).is_ok());
    assert!(queues(&with_workload("collective = \"barrier\"")).is_ok());
}
