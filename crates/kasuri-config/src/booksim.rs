//! A configuration of BookSim as the table of an experiment file, so that everything behind the experiment file is shared.

mod network;
mod router;
mod traffic;

use kasuri_formats::booksim::options::{self, OPTIONS, Role};
use kasuri_formats::booksim::syntax::{class_element, classify, elements};
use kasuri_formats::booksim::{BookSimError, Configuration, Place, Unsupported, Value};
use toml::{Table, Value as Toml};

/// By whose rules a run is measured and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// Kasuri's own: warm-up truncation and the precision asked for.
    Kasuri,
    /// BookSim's: sample periods and thresholds.
    BookSim,
}

/// A configuration in the words of an experiment file.
#[derive(Clone, Debug, PartialEq)]
pub struct Translation {
    /// The experiment file's table.
    pub table: Table,
    /// What was set and has no effect, a sentence each.
    pub notes: Vec<String>,
    /// BookSim's traffic classes; one that reads and writes is two in the table.
    pub classes: u32,
}

/// Translates a configuration to the table of an experiment file for the flit engine.
///
/// # Errors
/// A value outside its range, an unknown topology, routing, pattern or allocator, or options that Kasuri does not support
/// yet, all of them at once.
pub fn translate(configuration: &Configuration, rules: Rules) -> Result<Translation, BookSimError> {
    let mut translator = Translator { configuration, rules, unsupported: Vec::new(), notes: Vec::new() };
    translator.check_untranslated();
    let network = translator.network();
    let routing = translator.routing();
    let router = translator.router();
    let traffic = translator.traffic();
    let measure = translator.measure();
    // A wrong value first, for it stays wrong; then everything that is not supported yet.
    let (network, routing, router, traffic, measure) = (network?, routing?, router?, traffic?, measure?);
    if !translator.unsupported.is_empty() {
        return Err(BookSimError::Unsupported(translator.unsupported));
    }
    let mut table = Table::new();
    table.insert("title".to_owned(), "BookSim configuration".into());
    table.insert("engine".to_owned(), "flit".into());
    for (name, section) in [("network", network), ("routing", routing), ("router", router), ("traffic", traffic), ("measure", measure)] {
        table.insert(name.to_owned(), Toml::Table(section));
    }
    let classes = translator.integer("classes", 1, 255)? as u32;
    Ok(Translation { table, notes: translator.notes, classes })
}

struct Translator<'a> {
    configuration: &'a Configuration,
    rules: Rules,
    unsupported: Vec<Unsupported>,
    notes: Vec<String>,
}

impl Translator<'_> {
    /// Options that are not translated: complains where another value than the default asks for something, notes it where it
    /// asks for nothing.
    fn check_untranslated(&mut self) {
        let speculative = self.integer("speculative", 0, i64::MAX).is_ok_and(|value| value > 0);
        for option in OPTIONS {
            let Some((value, _)) = self.configuration.get(option.name) else { continue };
            let default = option.default_value();
            if every_element(value, &|element| same(element, &default)) {
                continue;
            }
            match option.role {
                Role::Used => {}
                Role::DefaultOnly(reason) => self.refuse(option.name, reason),
                Role::DefaultOnlyIfSpeculative(reason) if speculative => self.refuse(option.name, reason),
                Role::DefaultOnlyIfSpeculative(_) => self.note(option.name, "it belongs to speculative"),
                Role::NoEffect(reason) => self.note(option.name, reason),
            }
        }
    }

    fn measure(&mut self) -> Result<Table, BookSimError> {
        let mut measure = Table::new();
        if self.first_text("seed") == "time" {
            self.refuse("seed", "a seed from the clock, which makes runs irreproducible; give a number");
        } else {
            measure.insert("seed".to_owned(), self.integer("seed", 0, i64::MAX)?.into());
        }
        let sim_type = self.text("sim_type");
        if !["latency", "throughput", "batch"].contains(&sim_type.as_str()) {
            return Err(self.wrong("sim_type", "the types are latency, throughput and batch".to_owned()));
        }
        let sample_period = self.integer("sample_period", 1, 1 << 40)?;
        let warmup_periods = self.integer("warmup_periods", 0, 1 << 20)?;
        let max_samples = self.integer("max_samples", 1, 1 << 20)?;
        // BookSim has no limit; this one only stops runs that would never end. By BookSim's rules a run ends after `max_samples`; by
        // Kasuri's rules a load near saturation is measured up to the limit.
        let sampled = sample_period.saturating_mul(max_samples).saturating_mul(100);
        let least = if self.rules == Rules::BookSim { 100_000_000 } else { 10_000_000 };
        measure.insert("max_cycles".to_owned(), sampled.max(least).into());
        if self.rules == Rules::BookSim {
            let mut booksim = Table::new();
            booksim.insert("sim_type".to_owned(), sim_type.into());
            for (key, value) in [("sample_period", sample_period), ("warmup_periods", warmup_periods), ("max_samples", max_samples)] {
                booksim.insert(key.to_owned(), value.into());
            }
            for (key, option) in [
                ("latency_threshold", "latency_thres"),
                ("warmup_threshold", "warmup_thres"),
                ("acc_warmup_threshold", "acc_warmup_thres"),
                ("stopping_threshold", "stopping_thres"),
                ("acc_stopping_threshold", "acc_stopping_thres"),
            ] {
                // Below 0 it is never passed.
                let threshold = self.real(option)?;
                booksim.insert(key.to_owned(), if threshold < 0.0 { f64::MAX } else { threshold }.into());
            }
            booksim.insert("count_waiting".to_owned(), true.into());
            measure.insert("rules".to_owned(), "booksim".into());
            measure.insert("booksim".to_owned(), Toml::Table(booksim));
        }
        Ok(measure)
    }

    fn value(&self, name: &str) -> Value {
        match self.configuration.get(name) {
            Some((value, _)) => value.clone(),
            None => options::find(name).map_or(Value::Text(String::new()), |option| option.default_value()),
        }
    }

    fn text(&self, name: &str) -> String {
        self.value(name).to_string()
    }

    /// The text of the first class's element.
    fn first_text(&self, name: &str) -> String {
        self.class_text(name, 0)
    }

    /// The element of a class: the last one serves the classes that have none of their own.
    fn of_class(&self, name: &str, class: usize) -> Value {
        class_element(&self.value(name), class)
    }

    fn class_text(&self, name: &str, class: usize) -> String {
        self.of_class(name, class).to_string()
    }

    fn integer(&self, name: &str, least: i64, most: i64) -> Result<i64, BookSimError> {
        self.class_integer(name, 0, least, most)
    }

    fn class_integer(&self, name: &str, class: usize, least: i64, most: i64) -> Result<i64, BookSimError> {
        match self.of_class(name, class) {
            Value::Integer(value) if (least..=most).contains(&value) => Ok(value),
            Value::Integer(_) => Err(self.wrong(name, format!("must be {least} to {most}"))),
            _ => Err(self.wrong(name, "must be a whole number".to_owned())),
        }
    }

    /// Is an option that means yes or no set to another number than 0?
    fn flag(&self, name: &str) -> Result<bool, BookSimError> {
        Ok(self.integer(name, i64::MIN, i64::MAX)? != 0)
    }

    fn real(&self, name: &str) -> Result<f64, BookSimError> {
        self.class_real(name, 0)
    }

    fn class_real(&self, name: &str, class: usize) -> Result<f64, BookSimError> {
        match self.of_class(name, class) {
            Value::Integer(value) => Ok(value as f64),
            Value::Real(value) => Ok(value),
            Value::Text(_) => Err(self.wrong(name, "must be a number".to_owned())),
        }
    }

    fn place(&self, name: &str) -> Place {
        match self.configuration.get(name) {
            Some((_, place)) => place.clone(),
            None => Place { source: "BookSim's default".to_owned(), line: 0 },
        }
    }

    fn wrong(&self, name: &str, problem: String) -> BookSimError {
        BookSimError::Value { place: self.place(name), name: name.to_owned(), value: self.text(name), problem }
    }

    fn refuse(&mut self, name: &str, reason: &str) {
        let (place, value) = (self.place(name), self.text(name));
        self.unsupported.push(Unsupported { place, name: name.to_owned(), value, reason: reason.to_owned() });
    }

    fn note(&mut self, name: &str, reason: &str) {
        let (place, value) = (self.place(name), self.text(name));
        self.notes.push(format!("{place}: {name} = {value} has no effect: {reason}"));
    }
}

/// Do all elements of a vector, however deep, fulfil this? A value that is no vector is the only one.
fn every_element(value: &Value, fulfils: &dyn Fn(&Value) -> bool) -> bool {
    match value {
        Value::Text(text) if text.starts_with('{') => {
            elements(text).into_iter().all(|element| every_element(&classify(element.to_owned()), fulfils))
        }
        value => fulfils(value),
    }
}

fn same(one: &Value, other: &Value) -> bool {
    let number = |value: &Value| match value {
        Value::Integer(value) => Some(*value as f64),
        Value::Real(value) => Some(*value),
        Value::Text(_) => None,
    };
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kasuri_model::router::{Pipeline, RouterParameters};
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Configuration, BookSimError> {
        let mut configuration = Configuration::default();
        configuration.read("a.cfg", text).map(|()| configuration)
    }

    fn translate(assignments: &str, rules: Rules) -> Result<Translation, BookSimError> {
        super::translate(&read(assignments)?, rules)
    }

    fn table(assignments: &str) -> Table {
        translate(assignments, Rules::Kasuri).unwrap().table
    }

    const MESH: &str = "topology = mesh; routing_function = dor;";

    fn pipeline(assignments: &str) -> Pipeline {
        let table = table(&format!("{MESH}{assignments}"));
        let router: RouterParameters = table["router"].clone().try_into().unwrap();
        router.check().unwrap()
    }

    #[test]
    fn topologies_keep_their_shape_and_latency() {
        let torus = "topology = torus; k = 4; n = 3; routing_function = dim_order;";
        let network = &table(torus)["network"];
        assert_eq!(network["dimensions"].as_array().unwrap().len(), 3);
        assert_eq!(network["channel_latency"].as_integer(), Some(2));
        assert_eq!(table(&format!("{torus} use_noc_latency = 0;"))["network"]["channel_latency"].as_integer(), Some(1));
        assert_eq!(table(MESH)["network"]["channel_latency"].as_integer(), Some(1));
        let tree = &table("topology = fattree; k = 4; n = 3; routing_function = nca;")["network"];
        assert_eq!((tree["up"].as_integer(), tree["down"].as_integer(), tree["levels"].as_integer()), (Some(4), Some(4), Some(3)));
    }

    #[test]
    fn other_topologies_are_ours_of_the_same_shape() {
        let section = |assignments: &str| table(assignments)["network"].clone();
        let tree = section("topology = qtree; k = 4; n = 3; routing_function = nca;");
        assert_eq!((tree["up"].as_integer(), tree["down"].as_integer(), tree["levels"].as_integer()), (Some(1), Some(4), Some(3)));
        let cluster = "c = 4; xr = 2; yr = 2; x = 4; y = 4; k = 4; n = 2;";
        let cmesh = section(&format!("topology = cmesh; {cluster} routing_function = dor;"));
        assert_eq!((cmesh["radix"].as_integer(), &cmesh["channel_latency"]), (Some(4), &Toml::from(vec![2, 4])));
        let flatfly = section(&format!("topology = flatfly; {cluster} routing_function = ran_min;"));
        assert_eq!((&flatfly["floor"], &flatfly["cluster"]), (&Toml::from(vec![4, 4]), &Toml::from(vec![2, 2])));
        // BookSim's x and y are 8 unless they are given; it reads x alone, the columns.
        let floor = |more: &str| section(&format!("topology = flatfly; routing_function = ran_min; {more}"))["floor"].clone();
        for (more, columns, rows) in [
            ("k = 8; n = 1; c = 4; xr = 2; yr = 2;", 8, 1),
            ("k = 8; n = 1; c = 4; xr = 2; yr = 2; x = 4; y = 4;", 4, 2),
            ("k = 4; n = 2; c = 4; xr = 2; yr = 2;", 8, 2),
            ("k = 2; n = 3; c = 1; x = 2; y = 2;", 2, 4),
            ("k = 4; n = 1; c = 1;", 4, 1),
            ("k = 5; n = 1; c = 1; x = 3; y = 3; use_noc_latency = 0;", 5, 1),
        ] {
            assert_eq!(floor(more), Toml::from(vec![columns, rows]), "{more}");
        }
        for more in ["k = 4; n = 1; c = 4; xr = 2; yr = 2;", "k = 5; n = 1; c = 1; x = 3; y = 3;"] {
            let text = format!("topology = flatfly; routing_function = ran_min; {more}");
            assert!(translate(&text, Rules::Kasuri).unwrap_err().to_string().contains("fill rows of x"), "{more}");
        }
        let dragonfly = section("topology = dragonflynew; k = 3; n = 1; routing_function = min;");
        let keys = ["terminals_per_router", "routers_per_group", "global_channels"];
        assert_eq!(keys.map(|key| dragonfly[key].as_integer()), [Some(3), Some(6), Some(3)]);
        let anynet = section("topology = anynet; network_file = net.txt; routing_function = min;");
        assert_eq!((anynet["topology"].as_str(), anynet["path"].as_str()), (Some("anynet"), Some("net.txt")));
    }

    /// Every routing that the table translates is one of ours that fits the network it comes with.
    #[test]
    fn every_routing_fits_its_network() {
        use crate::Document;
        use kasuri_network::topology::NoFiles;
        let cluster = "c = 4; xr = 2; yr = 2; x = 4; y = 4; k = 4; n = 2; num_vcs = 8;";
        for (topology, shape, routings) in [
            (
                "mesh",
                "k = 2; n = 2; num_vcs = 5;",
                "dor dim_order dim_order_ni dim_order_pni xy_yx adaptive_xy_yx romm romm_ni valiant min_adapt planar_adapt",
            ),
            ("torus", "k = 4; n = 2; num_vcs = 16;", "dim_order dim_order_ni dim_order_bal valiant min_adapt"),
            ("cmesh", cluster, "dor dor_no_express xy_yx xy_yx_no_express"),
            ("fly", "k = 4; n = 2;", "dest_tag"),
            ("fattree", "k = 4; n = 2;", "nca anca"),
            ("flatfly", cluster, "ran_min xyyx adaptive_xyyx valiant ugal ugal_xyyx ugal_pni"),
            ("dragonflynew", "k = 1; n = 1; num_vcs = 3;", "min ugal"),
            ("qtree", "k = 4; n = 3;", "nca"),
            ("tree4", "k = 4; n = 3;", "nca anca"),
        ] {
            for routing in routings.split(' ') {
                let table = table(&format!("topology = {topology}; {shape} routing_function = {routing};"));
                let document = Document::from_table("a.cfg", table).unwrap();
                let point = &document.points().unwrap()[0];
                let study = document.study(point, &NoFiles);
                assert!(study.is_ok(), "{topology} {routing}: {:?}", study.err());
            }
        }
    }

    #[test]
    fn reads_and_writes_are_classes_with_answers() {
        let text =
            format!("{MESH} use_read_write = 1; write_fraction = 0.25; injection_rate = 0.1; read_reply_size = 5; write_request_size = 5;");
        let Translation { table, classes, .. } = translate(&text, Rules::Kasuri).unwrap();
        assert_eq!(classes, 1);
        let list = table["traffic"]["class"].as_array().unwrap();
        assert_eq!(list.len(), 2);
        let load = |class: usize| list[class]["load"].as_float().unwrap();
        // Three quarters of 0.1 packets of one flit, one quarter of five.
        assert!((load(0) - 0.075).abs() < 1e-12 && (load(1) - 0.125).abs() < 1e-12);
        assert_eq!(list[0]["reply"]["packet_flits"].as_integer(), Some(5));
        // One coin for both; by BookSim's rules what arrives is answered in the next cycle.
        assert!(list.iter().all(|class| class["shares_coins"].as_bool() == Some(true) && class["reply"].get("delay").is_none()));
        let by_rules = translate(&text, Rules::BookSim).unwrap().table["traffic"]["class"].as_array().unwrap()[1].clone();
        assert_eq!(by_rules["reply"]["delay"].as_integer(), Some(1));
        assert_eq!((&list[1]["virtual_channels"], &list[1]["reply"]["virtual_channels"]), (&vec![2, 8].into(), &vec![10, 16].into()));
        let halves = translate(
            &format!(
                "{text} num_vcs = 4; read_request_begin_vc = -1; read_request_end_vc = -1; read_reply_begin_vc = -1; \
             read_reply_end_vc = -1; write_request_end_vc = 3; write_reply_begin_vc = 3; write_reply_end_vc = 3;"
            ),
            Rules::Kasuri,
        );
        let reads = &halves.unwrap().table["traffic"]["class"].as_array().unwrap()[0].clone();
        assert_eq!((&reads["virtual_channels"], &reads["reply"]["virtual_channels"]), (&vec![0, 2].into(), &vec![2, 4].into()));
    }

    /// BookSim's default ranges of virtual channels overlap, so that the halves of one kind of packet are not those of another.
    #[test]
    fn overlapping_ranges_of_channels_run_without_a_promise() {
        let allows = |text: &str| {
            let torus = "topology = torus; k = 4; n = 2; routing_function = dim_order; num_vcs = 16;";
            let table = table(&format!("{torus} {text}"));
            table["routing"].get("allow_deadlock").and_then(Toml::as_bool)
        };
        assert_eq!(allows("use_read_write = 1;"), Some(true));
        assert_eq!(allows("use_read_write = 1; write_request_begin_vc = 0; write_request_end_vc = 5;"), Some(true));
        let equal = "write_request_begin_vc = 0; write_request_end_vc = 5; write_reply_begin_vc = 8; write_reply_end_vc = 13;";
        assert_eq!([allows(&format!("use_read_write = 1; {equal}")), allows("")], [None, None]);
    }

    #[test]
    fn a_batch_of_reads_and_writes_is_one_of_two_classes() {
        let text =
            format!("{MESH} sim_type = batch; batch_size = 50; use_read_write = 1; max_outstanding_requests = 4; write_fraction = 0.9;");
        let Translation { table, notes, .. } = translate(&text, Rules::BookSim).unwrap();
        let list = table["traffic"]["class"].as_array().unwrap();
        for class in list {
            assert_eq!([class["batch_packets"].as_integer(), class["outstanding_packets"].as_integer()], [Some(50), Some(4)]);
            assert_eq!([class["counts_answers"].as_bool(), class["shares_coins"].as_bool()], [Some(true), Some(true)]);
        }
        assert_eq!(list.len(), 2);
        assert!(notes.iter().any(|note| note.contains("write_fraction") && note.contains("equal probability")), "{notes:?}");
    }

    #[test]
    fn classes_take_the_elements_of_vectors() {
        let text =
            format!("{MESH} classes = 3; injection_rate = {{0.1,0.2}}; packet_size = {{1,2,{{1,3}}}}; traffic = {{uniform,bitcomp}};");
        let Translation { table, classes, .. } = translate(&text, Rules::Kasuri).unwrap();
        let list = table["traffic"]["class"].as_array().unwrap();
        assert_eq!((classes, list.len()), (3, 3));
        let pattern = |class: usize| list[class]["pattern"].as_str().unwrap();
        assert_eq!([0, 1, 2].map(pattern), ["uniform", "bit-complement", "bit-complement"]);
        // 0.1, 0.4 and 0.4 flits a cycle: less than 1 in all.
        let loads = [0, 1, 2].map(|class| list[class]["load"].as_float().unwrap());
        assert!(loads.iter().zip([0.1, 0.4, 0.4]).all(|(load, expected)| (load - expected).abs() < 1e-12), "{loads:?}");
    }

    #[test]
    fn bursts_have_two_of_three_parameters() {
        let traffic = |process: &str| translate(&format!("{MESH} injection_process = {process};"), Rules::Kasuri);
        let table = traffic("on_off({0.1,0.3})").unwrap().table["traffic"].clone();
        assert_eq!((table["alpha"].as_float(), table["beta"].as_float(), table.get("on_rate")), (Some(0.1), Some(0.3), None));
        let table = traffic("on_off({-1,0.3,0.8})").unwrap().table["traffic"].clone();
        assert_eq!((table.get("alpha"), table["on_rate"].as_float()), (None, Some(0.8)));
        // Outside braces only the first argument counts: beta is burst_beta.
        let translation = traffic("on_off(0.1,0.3)").unwrap();
        assert_eq!(translation.table["traffic"]["beta"].as_float(), Some(0.5));
        assert!(translation.notes[0].contains("only the first argument counts"));
        assert!(traffic("on_off({0.1,0.3,0.5})").unwrap_err().to_string().contains("needs two of them"));
        assert!(traffic("poisson").unwrap_err().to_string().contains("no such process"));
    }

    /// 0.2 packets a cycle with alpha = 0.1 and beta = 0.3 would be 0.8 in each cycle of a burst, 0.4 would be 1.6: there BookSim's coin
    /// always falls for a packet, which leaves alpha / (alpha + beta) = 0.25.
    #[test]
    fn a_burst_has_a_packet_in_each_cycle_at_most() {
        let text = format!("{MESH} injection_process = on_off({{0.1,0.3}}); burst_r1 = -1.0; injection_rate =");
        let below = translate(&format!("{text} 0.2;"), Rules::BookSim).unwrap();
        assert_eq!((below.table["traffic"].get("on_rate"), below.notes.len()), (None, 0));
        let above = translate(&format!("{text} 0.4;"), Rules::BookSim).unwrap();
        let traffic = &above.table["traffic"];
        assert_eq!((traffic["on_rate"].as_float(), traffic["load"].as_float(), traffic.get("beta")), (Some(1.0), Some(0.25), None));
        assert!(above.notes[0].contains("asks for 1.600 packets in a cycle of a burst"), "{:?}", above.notes);
    }

    #[test]
    fn entries_to_dragonflies_are_drawn_anew_by_booksims_rules_alone() {
        let redraws = |rules| {
            let translation = translate("topology = dragonflynew; k = 1; n = 1; num_vcs = 2; routing_function = min;", rules).unwrap();
            translation.table["routing"].get("redraw_entry").is_some()
        };
        assert!(redraws(Rules::BookSim) && !redraws(Rules::Kasuri));
    }

    #[test]
    fn digits_are_those_of_the_arguments_or_of_the_options() {
        let cmesh = "topology = cmesh; routing_function = dor; c = 4; xr = 2; yr = 2; x = 4; y = 4; k = 4; n = 2;";
        let digits = |text: &str| table(text)["traffic"]["digits"].clone();
        assert_eq!(digits(&format!("{cmesh} traffic = tornado;")), vec![8, 8].into());
        assert_eq!(digits(&format!("{cmesh} traffic = neighbor({{16,1,1}});")), vec![16].into());
        let beyond = translate(&format!("{MESH} traffic = tornado; xr = 2;"), Rules::Kasuri).unwrap_err().to_string();
        assert!(beyond.contains("which name 256 terminals of 64"), "{beyond}");
    }

    /// P = routing + vc_alloc + sw_alloc + st, less one of the allocations if they are speculative.
    #[test]
    fn head_cycles_are_those_of_the_delays() {
        assert_eq!(pipeline("").head_cycles(), 4);
        assert_eq!(pipeline("routing_delay = 0;").head_cycles(), 3);
        assert_eq!(pipeline("routing_delay = 2; st_prepare_delay = 2;").head_cycles(), 7);
        assert_eq!(pipeline("speculative = 1;").head_cycles(), 3);
        assert_eq!(pipeline("speculative = 1; routing_delay = 0; st_prepare_delay = 1;").head_cycles(), 3);
    }

    #[test]
    fn rates_of_packets_become_rates_of_flits() {
        let load = |assignments: &str| table(&format!("{MESH}{assignments}"))["traffic"]["load"].as_float().unwrap();
        assert_eq!(load("injection_rate = 0.05; packet_size = 4;"), 0.2);
        assert_eq!(load("injection_rate = 0.25; packet_size = 4; injection_rate_uses_flits = 1;"), 0.25);
        assert_eq!(load("injection_rate = 0.5; packet_size = 4;"), 1.0);
        // A third of the packets has 1 flit, two thirds have 4: 3 in the mean.
        assert!((load("injection_rate = 0.1; packet_size = {{1,4}}; packet_size_rate = {{1,2}};") - 0.3).abs() < 1e-12);
    }

    #[test]
    fn booksim_rules_carry_its_defaults() {
        let rules = translate(&format!("{MESH} latency_thres = 100;"), Rules::BookSim).unwrap().table["measure"]["booksim"].clone();
        assert_eq!(rules["sample_period"].as_integer(), Some(1000));
        assert_eq!(rules["warmup_periods"].as_integer(), Some(3));
        assert_eq!(rules["max_samples"].as_integer(), Some(10));
        assert_eq!(rules["latency_threshold"].as_float(), Some(100.0));
        assert_eq!(rules["stopping_threshold"].as_float(), Some(0.05));
        assert!(table(MESH)["measure"].get("booksim").is_none());
    }

    #[test]
    fn what_is_not_supported_yet_is_named_all_at_once() {
        let error = translate("topology = mesh; routing_function = chaos;\nvc_allocator = piggyback; subnets = 2; k = 4;", Rules::BookSim)
            .unwrap_err();
        let BookSimError::Unsupported(entries) = &error else { panic!("{error}") };
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["subnets", "routing_function", "vc_allocator"]);
        assert!(error.to_string().contains("a.cfg:2: subnets = 2 is not supported yet: "));
    }

    #[test]
    fn options_without_effect_are_noted_once_they_differ_from_the_default() {
        let notes = translate(&format!("{MESH} print_activity = 1; viewer_trace = 0; alloc_iters = 2;"), Rules::Kasuri).unwrap().notes;
        assert_eq!(notes.len(), 2);
        assert!(notes[0].contains("alloc_iters = 2"));
        assert!(notes[1].contains("print_activity = 1"));
    }

    #[test]
    fn wrong_values_say_what_is_right() {
        for (assignments, wanted) in [
            ("topology = mehs;", "did you mean `mesh`?"),
            ("topology = mesh; routing_function = nca;", "mesh: dor"),
            ("topology = mesh; routing_function = dor; traffic = bitcmp;", "did you mean `bitcomp`?"),
            ("topology = mesh; routing_function = dor; vc_allocator = islp;", "did you mean `islip`?"),
            ("topology = mesh; routing_function = dor; vc_allocator = islip(0);", "islip(n) does n iterations, at least 1"),
            ("topology = mesh; routing_function = dor; sw_allocator = separable_input_first(matrx);", "did you mean `matrix`?"),
            ("topology = mesh; routing_function = dor; sw_allocator = separable_output_first(tree(0,matrix));", "tree(groups,arbiter)"),
            ("topology = mesh; routing_function = dor; internal_speedup = 0.5;", "must be 1 to 64"),
            ("topology = mesh; routing_function = dor; input_speedup = 0;", "must be 1 to 256"),
            ("topology = mesh; routing_function = dor; injection_rate = 1.5;", "above 0 and at most 1"),
            ("topology = torus; routing_function = min_adapt; num_vcs = 3;", "BookSim aborts with 3"),
            ("topology = mesh; routing_function = dor; st_final_delay = 0;", "give at least 1"),
            ("topology = mesh; routing_function = dor; num_vcs = 0;", "must be 1 to 256"),
            ("topology = mesh; routing_function = dor; sim_type = speed;", "latency, throughput and batch"),
            (
                "topology = mesh; routing_function = dor; use_read_write = 1; num_vcs = 8;",
                "read_reply_begin_vc = 8: is not a virtual channel",
            ),
            ("k = 8;", "BookSim's default: routing_function = none"),
        ] {
            let message = translate(assignments, Rules::BookSim).unwrap_err().to_string();
            assert!(message.contains(wanted), "{assignments} gives {message}");
        }
    }

    #[test]
    fn hot_spots_read_as_booksim_reads_them() {
        let traffic = table(&format!("{MESH} traffic = hotspot({{{{1,2}},{{3,4}}}});"))["traffic"].clone();
        assert_eq!(traffic["terminals"].as_array().unwrap().len(), 2);
        assert_eq!(traffic["weights"].as_array().unwrap()[1].as_float(), Some(4.0));
    }

    /// The seeds of the fuzzer: each is read and translated, and none of their beginnings makes the parser panic.
    #[test]
    fn the_corpus_is_read() {
        for text in [
            include_str!("../../../fuzz/corpus/booksim/batch.cfg"),
            include_str!("../../../fuzz/corpus/booksim/classes.cfg"),
            include_str!("../../../fuzz/corpus/booksim/vectors.cfg"),
        ] {
            translate(text, Rules::BookSim).unwrap();
            for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
                if let Ok(configuration) = read(&text[..end]) {
                    let _ = super::translate(&configuration, Rules::BookSim);
                }
            }
        }
    }

    proptest! {
        /// The fuzz entry point: no text makes the parser or the translation panic.
        #[test]
        fn no_text_panics(text in "([a-z_]{1,12} ?=? ?[-+0-9a-z_.(){},]{0,12};?[ \n/\"é]{0,2}){0,6}|\\PC*") {
            if let Ok(configuration) = read(&text) {
                let _ = super::translate(&configuration, Rules::BookSim);
            }
        }

        #[test]
        fn no_assignment_of_a_known_option_panics(
            settings in prop::collection::vec((0..OPTIONS.len(), "-?[0-9]{1,20}|[0-9]\\.[0-9]|[a-z]{1,9}(\\([0-9,{}]{0,9}\\))?|\\{[0-9,.]{0,9}\\}"), 0..6),
            topology in prop::sample::select(vec!["mesh", "torus", "cmesh", "fattree", "fly", "flatfly", "dragonflynew", "qtree", "tree4", "anynet"]),
        ) {
            let mut configuration = Configuration::default();
            configuration.assign(&format!("topology={topology}")).unwrap();
            for (option, value) in settings {
                let _ = configuration.assign(&format!("{}={value}", OPTIONS[option].name));
            }
            // What is written as text reads as the same experiment.
            if let Ok(translation) = super::translate(&configuration, Rules::BookSim) {
                let text = toml::to_string(&translation.table).unwrap();
                prop_assert_eq!(text.parse::<toml::Table>().unwrap(), translation.table);
            }
        }
    }
}
