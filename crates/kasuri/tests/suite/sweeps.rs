//! The input columns of rows: every value that a run was given, nothing else, and enough to distinguish any two runs.

use kasuri::plan::Plan;
use kasuri_config::{CASE, Document};
use kasuri_network::topology::NoFiles;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const FILE: &str = r#"
[network]
topology = "mesh"
dimensions = [2, 2]
channel_latency = 2
[routing]
algorithm = "dimension-order"
[router]
virtual_channels = 8
[traffic]
pattern = "uniform"
load = 0.125
[measure]
cycles = 500
"#;

/// Keys that may be swept, each with values that go together with all of the others'; the first value is the file's where it has one.
const KEYS: [(&str, [i64; 3]); 6] = [
    ("network.channel_latency", [2, 1, 3]),
    ("network.channel_period", [2, 3, 4]),
    ("router.virtual_channels", [8, 2, 4]),
    ("router.buffer_flits", [16, 5, 6]),
    ("traffic.packet_flits", [3, 2, 4]),
    ("measure.warmup", [60, 70, 80]),
];

/// The form in which a key is swept: not at all, as a separate entry, in tables of its section, or in cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    None,
    Own,
    Table,
    Case,
}

/// One value of an axis: some keys with their values.
type Choice = BTreeMap<&'static str, i64>;

/// The axes of a sweep, by the name of the entry.
#[derive(Clone, Debug)]
struct Axes(Vec<(String, Vec<Choice>)>);

fn forms() -> impl Strategy<Value = Vec<Form>> {
    let form = prop_oneof![Just(Form::None), Just(Form::Own), Just(Form::Table), Just(Form::Case)];
    proptest::collection::vec(form, KEYS.len())
}

/// For each key and each of up to three values of its axis: which of its values is set, if any.
fn picks() -> impl Strategy<Value = Vec<Vec<Option<usize>>>> {
    proptest::collection::vec(proptest::collection::vec(proptest::option::weighted(0.8, 0..3usize), 3), KEYS.len())
}

fn axes() -> impl Strategy<Value = Axes> {
    (forms(), picks(), 1..=3usize).prop_map(|(forms, picks, length)| {
        let mut axes: BTreeMap<String, Vec<Choice>> = BTreeMap::new();
        for (number, (key, values)) in KEYS.iter().enumerate() {
            let name = match forms[number] {
                Form::None => continue,
                Form::Own => {
                    // A key outside cases has a value everywhere.
                    axes.insert((*key).to_owned(), values[..length].iter().map(|&value| Choice::from([(*key, value)])).collect());
                    continue;
                }
                Form::Table => key.split('.').next().unwrap_or_default().to_owned(),
                Form::Case => CASE.to_owned(),
            };
            let axis = axes.entry(name).or_insert_with(|| vec![Choice::new(); length]);
            for (choice, pick) in axis.iter_mut().zip(&picks[number]) {
                pick.iter().for_each(|&pick| {
                    choice.insert(*key, values[pick]);
                });
            }
        }
        Axes(axes.into_iter().collect())
    })
}

impl Axes {
    /// The text of `[sweep]`. `nested`: write the keys of cases as tables.
    fn text(&self, nested: bool) -> String {
        let choice = |name: &str, choice: &Choice| -> String {
            let pairs = choice.iter().map(|(key, value)| match key.strip_prefix(&format!("{name}.")) {
                _ if *key == name => value.to_string(),
                Some(inner) => format!("{inner} = {value}"),
                None if nested => format!("{key} = {value}"),
                None => format!("\"{key}\" = {value}"),
            });
            let pairs = pairs.collect::<Vec<_>>().join(", ");
            if choice.contains_key(name) { pairs } else { format!("{{ {pairs} }}") }
        };
        let entry = |(name, choices): &(String, Vec<Choice>)| {
            let values: Vec<String> = choices.iter().map(|one| choice(name, one)).collect();
            format!("\"{name}\" = [{}]\n", values.join(", "))
        };
        self.0.iter().map(entry).collect()
    }

    /// The values of each run, by key, in addition to and instead of the file's; `None` if two values of an axis make the same run.
    fn runs(&self) -> Option<Vec<BTreeMap<&'static str, i64>>> {
        let file: BTreeMap<&str, i64> = [("network.channel_latency", 2), ("router.virtual_channels", 8)].into();
        let over_file = |choice: &Choice| file.iter().map(|(&key, &value)| (key, value)).chain(choice.clone()).collect::<BTreeMap<_, _>>();
        let mut runs = vec![file.clone()];
        for (_, choices) in &self.0 {
            if choices.iter().map(over_file).collect::<BTreeSet<_>>().len() < choices.len() {
                return None;
            }
            runs = runs
                .iter()
                .flat_map(|run| {
                    choices.iter().map(move |choice| run.iter().map(|(&key, &value)| (key, value)).chain(choice.clone()).collect())
                })
                .collect();
        }
        Some(runs)
    }
}

fn rows(sweep: &str) -> Result<Vec<(String, BTreeMap<String, Value>)>, String> {
    let document = Document::parse("a.toml", &format!("{FILE}[sweep]\n{sweep}")).map_err(|error| error.to_string())?;
    let plan = Plan::prepare(&document, &NoFiles).map_err(|error| error.to_string())?;
    plan.points()
        .map(|point| {
            let head = point.map_err(|error| error.to_string())?.head;
            Ok((head.key, head.inputs.into_iter().collect()))
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Whatever is swept in whatever form: a run has the values of its choices over the file's, its row shows these and nothing where
    /// a run has none, and rows that show the same are the same run.
    #[test]
    fn rows_show_the_input_of_runs_and_distinguish_them(axes in axes(), nested: bool) {
        let text = axes.text(nested);
        prop_assume!(!axes.0.is_empty());
        let Some(runs) = axes.runs() else {
            let refused = rows(&text).expect_err(&text);
            prop_assert!(refused.contains("same run") || refused.contains("duplicate value"), "{refused}\n{text}");
            return Ok(());
        };
        let rows = rows(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(rows.len(), runs.len());
        for ((_, shown), run) in rows.iter().zip(&runs) {
            for (key, _) in KEYS {
                let expected = run.get(key).map_or(Value::Null, |value| json!(value));
                let is_swept = axes.0.iter().any(|(_, choices)| choices.iter().any(|choice| choice.contains_key(key)));
                prop_assert_eq!(shown.get(key), is_swept.then_some(&expected), "{}\n{}", key, text);
            }
        }
        let keys: BTreeSet<&String> = rows.iter().map(|(key, _)| key).collect();
        prop_assert_eq!(keys.len(), rows.len());
        let inputs: BTreeSet<String> = rows.iter().map(|(_, shown)| json!(shown).to_string()).collect();
        prop_assert_eq!(inputs.len(), rows.len());
        let labels: BTreeSet<String> = rows.iter().filter_map(|(_, shown)| shown.get(CASE).map(Value::to_string)).collect();
        let cases = axes.0.iter().find(|(name, _)| name == CASE).map_or(0, |(_, cases)| cases.len());
        prop_assert_eq!(labels.len(), cases);
    }

    /// No order of the entries, and no way of writing a case, changes which runs there are.
    #[test]
    fn the_order_of_entries_changes_no_run(axes in axes()) {
        prop_assume!(!axes.0.is_empty() && axes.runs().is_some());
        let keys = |text: &str| rows(text).map(|rows| rows.into_iter().map(|(key, _)| key).collect::<BTreeSet<_>>());
        let mut turned = axes.clone();
        turned.0.reverse();
        prop_assert_eq!(keys(&axes.text(false)), keys(&turned.text(true)));
    }
}

/// A mesh and a torus, each with its routing: a setting of one of the cases is a column of all rows.
#[test]
fn networks_with_their_routings_differ_in_every_column() {
    let text = r#"
"router.buffer_flits" = [8, 16]
[[sweep.case]]
label = "mesh"
[[sweep.case]]
label = "ring of six"
network = { topology = "torus", dimensions = [6] }
routing = { algorithm = "dimension-order", tie = "random" }
"#;
    let rows = rows(text).unwrap();
    let column = |key: &str| rows.iter().map(|(_, shown)| shown[key].clone()).collect::<Vec<_>>();
    assert_eq!(column(CASE), ["mesh", "ring of six", "mesh", "ring of six"].map(Value::from));
    assert_eq!(column("network.topology"), ["mesh", "torus", "mesh", "torus"].map(Value::from));
    assert_eq!(column("network.dimensions"), [json!([2, 2]), json!([6]), json!([2, 2]), json!([6])]);
    assert_eq!(column("routing.tie"), [Value::Null, json!("random"), Value::Null, json!("random")]);
}

/// The load of a search is not a given one, and values that all classes override are not those of `[traffic]`.
#[test]
fn a_value_that_no_run_uses_is_not_shown() {
    let only = |text: &str| {
        let document = Document::parse("a.toml", text).unwrap();
        let plan = Plan::prepare(&document, &NoFiles).unwrap();
        let only = plan.points().next().unwrap().unwrap();
        only.head.inputs.into_iter().collect::<BTreeMap<_, _>>()
    };
    let search = FILE.replace("cycles = 500", "search = \"saturation\"");
    assert_eq!((&only(FILE)["traffic.load"], &only(&search)["traffic.load"]), (&json!(0.125), &Value::Null));
    let classes = format!("{FILE}[[traffic.class]]\nload = 0.25\n[[traffic.class]]\nload = 0.5\n");
    assert_eq!((&only(&classes)["traffic.load"], &only(&classes)["traffic.pattern"]), (&Value::Null, &json!("uniform")));
    for (text, expected) in [(&search, "measure.search = \"saturation\" varies it"), (&classes, "has a value of its own")] {
        let document = Document::parse("a.toml", &format!("{text}[sweep]\n\"traffic.load\" = [0.1, 0.2]")).unwrap();
        let error = Plan::prepare(&document, &NoFiles).unwrap_err().to_string();
        assert!(error.contains("traffic.load: is swept, but") && error.contains(expected), "{error}");
    }
}
