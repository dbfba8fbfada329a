//! An engine of one's own is a type and its place in the list of engines: experiments reach it through the same gate as all others.

use kasuri::engines::ENGINES;
use kasuri::input::KNOWN;
use kasuri::plan::{Plan, RunOptions};
use kasuri_config::{Document, Known, json_schema};
use kasuri_model::engine::{Controller, Distribution, Engine, EngineError, Feature, Method, Outcome, Prepared, Status};
use kasuri_model::refusal::Refusal;
use kasuri_model::scenario::Scenario;
use kasuri_network::id::TerminalId;
use kasuri_network::network::metrics::hops_from;
use kasuri_network::routing::extents::Extents;
use kasuri_network::topology::NoFiles;
use schemars::{JsonSchema, Schema, schema_for};
use serde::Deserialize;

/// Answers with the mean number of routers on shortest paths from the first terminal, times the cycles of a router.
#[derive(Debug)]
struct Distances;

/// `[distances]`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Options {
    /// Cycles of a router.
    router_cycles: f64,
}

impl Engine for Distances {
    fn name(&self) -> &'static str {
        "distances"
    }

    fn summary(&self) -> &'static str {
        "shortest paths"
    }

    fn section(&self) -> fn() -> Schema {
        || schema_for!(Options)
    }

    fn method(&self) -> Method {
        Method::Formulas
    }

    fn features(&self) -> Vec<Feature> {
        vec![Feature { name: "closed workloads".to_owned(), key: "workload", support: vec![("distances", "no")] }]
    }

    fn prepare<'s>(&'s self, scenario: &'s Scenario) -> Result<Box<dyn Prepared + 's>, Vec<Refusal>> {
        let mut refusals = Vec::new();
        if scenario.workload.is_some() {
            refusals.push(Refusal::new("workload", "paths have no messages").conflicts_with("engine = \"distances\""));
        }
        if scenario.router.predictor != "none" {
            refusals.push(Refusal::new("router.predictor", "paths have nothing to predict").conflicts_with("engine = \"distances\""));
        }
        let options: Result<Options, _> = scenario.engine_options.clone().try_into();
        match options {
            Ok(options) if refusals.is_empty() => Ok(Box::new(Ready { scenario, options })),
            Ok(_) => Err(refusals),
            Err(error) => {
                refusals.push(Refusal::new("distances", error.message()));
                Err(refusals)
            }
        }
    }
}

struct Ready<'s> {
    scenario: &'s Scenario,
    options: Options,
}

impl Prepared for Ready<'_> {
    fn memory_bytes(&self, _extents: &mut Extents) -> u64 {
        0
    }

    fn run(self: Box<Self>, _controller: &mut dyn Controller) -> Result<Outcome, EngineError> {
        let network = &self.scenario.network;
        let terminals = network.terminal_count();
        let hops = hops_from(network, network.injection_port(TerminalId(0)).0);
        let routers_to = |terminal: u32| f64::from(hops[network.ejection_port(TerminalId(terminal)).0.index()].unwrap_or(0) + 1);
        let mean = (1..terminals).map(routers_to).sum::<f64>() / f64::from(terminals - 1);
        let latency = mean * self.options.router_cycles;
        let distribution = |mean: f64| Distribution { count: 1, sum: mean, ..Distribution::default() };
        let packets = [latency, latency, latency, mean].map(distribution);
        let [packet_latency, network_latency, flit_latency, hops] = packets;
        let (cycles, measured_cycles) = (1, 1);
        let empty = Outcome::empty(Status::Converged, network);
        Ok(Outcome { cycles, measured_cycles, packet_latency, network_latency, flit_latency, hops, ..empty })
    }
}

const FILE: &str = r#"
engine = "distances"
[distances]
router_cycles = 2.0
[network]
topology = "full-mesh"
routers = 6
concentration = 1
[routing]
algorithm = "minimal"
[traffic]
pattern = "uniform"
load = 0.1
"#;

/// This program's engines and the one above.
fn with_own(run: impl FnOnce(Known<'_>)) {
    let engines: Vec<&dyn Engine> = ENGINES.iter().copied().chain([&Distances as &dyn Engine]).collect();
    run(Known { engines: &engines, ..*KNOWN });
}

/// Every other router of a full mesh is one channel away, so a packet crosses two.
#[test]
fn an_experiment_runs_on_it() {
    with_own(|known| {
        let text = format!("{FILE}[sweep]\n\"distances.router_cycles\" = [2, 5]\nengine = [\"distances\", \"analysis\"]\n");
        let document = Document::parse_for(known, "own.toml", &text).unwrap();
        let summary = Plan::prepare_for(known, &document, &NoFiles).unwrap().run(&RunOptions::default()).unwrap();
        assert_eq!(summary.exit_status(), 0);
        let answers: Vec<(&str, Option<f64>)> =
            summary.rows.iter().map(|row| (row.text("engine"), row.number("packet_latency_mean"))).collect();
        assert_eq!((answers[0], answers[2]), (("distances", Some(4.0)), ("distances", Some(10.0))));
        assert_eq!((answers[1].0, answers[1].1), ("analysis", answers[3].1));
        let schema = json_schema(known);
        assert_eq!(schema["properties"]["distances"]["properties"]["router_cycles"]["type"], "number");
        assert_eq!(schema["properties"]["engine"]["enum"][3], "distances");
    });
}

/// Its refusals are in one list, each with its place in the file, together with the errors of the file.
#[test]
fn its_refusals_are_listed_with_their_places() {
    with_own(|known| {
        let text = FILE.replace("[routing]", "[router]\npredictor = \"oracle\"\n[measure]\nuntil = \"first-terminal\"\n[routing]");
        let document = Document::parse_for(known, "own.toml", &text.replace("router_cycles", "router_cycle")).unwrap();
        let error = Plan::prepare_for(known, &document, &NoFiles).unwrap_err();
        assert_eq!(error.exit_status(), 2);
        let lines: Vec<String> = error.to_string().lines().map(str::to_owned).collect();
        let expected = [
            "own.toml:4:1 distances.router_cycle: unknown key `router_cycle`; did you mean `router_cycles`?",
            "own.toml:12:9 measure.until: is \"first-terminal\"",
            "own.toml:10:13 router.predictor: conflicts with engine = \"distances\": paths have nothing to predict",
        ];
        assert_eq!(lines.len(), expected.len(), "{lines:#?}");
        assert!(lines.iter().zip(expected).all(|(line, expected)| line.starts_with(expected)), "{lines:#?}");
    });
}

/// A program that does not have it knows neither its name nor its section.
#[test]
fn elsewhere_it_is_unknown() {
    let error = Document::parse_for(*KNOWN, "own.toml", FILE).unwrap_err().to_string();
    assert!(error.contains("unknown key `distances`"), "{error}");
}
