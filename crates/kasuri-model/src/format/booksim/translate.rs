//! A configuration as the table of an experiment file.

mod router;

use super::options::{self, OPTIONS, Role};
use super::syntax::{classify, elements, function};
use super::{BookSimError, Configuration, Place, Unsupported, Value};
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
}

impl Configuration {
    /// Translates to the table of an experiment file for the flit engine.
    ///
    /// # Errors
    /// A value outside its range, an unknown topology, routing, pattern or allocator, or options that Kasuri does not support
    /// yet, all of them at once.
    pub fn translate(&self, rules: Rules) -> Result<Translation, BookSimError> {
        let mut translator = Translator { configuration: self, unsupported: Vec::new(), notes: Vec::new() };
        translator.check_untranslated();
        let network = translator.network();
        let routing = translator.routing();
        let router = translator.router(rules);
        let traffic = translator.traffic();
        let measure = translator.measure(rules);
        // A wrong value first, for it stays wrong; then everything that is not supported yet.
        let (network, routing, router, traffic, measure) = (network?, routing?, router?, traffic?, measure?);
        if !translator.unsupported.is_empty() {
            return Err(BookSimError::Unsupported(translator.unsupported));
        }
        let mut table = Table::new();
        table.insert("title".to_owned(), "BookSim configuration".into());
        table.insert("engine".to_owned(), "flit".into());
        for (name, section) in [("network", network), ("routing", routing), ("router", router), ("traffic", traffic), ("measure", measure)]
        {
            table.insert(name.to_owned(), Toml::Table(section));
        }
        Ok(Translation { table, notes: translator.notes })
    }
}

struct Translator<'a> {
    configuration: &'a Configuration,
    unsupported: Vec<Unsupported>,
    notes: Vec<String>,
}

/// What BookSim has and Kasuri does not have yet.
const TOPOLOGIES_TO_COME: &[&str] = &["cmesh", "flatfly", "qtree", "tree4", "anynet", "dragonflynew"];
const PATTERNS_TO_COME: &[&str] = &["background", "taper64", "bad_dragon", "badperm_yarc"];
const ROUTINGS_TO_COME: &[&str] = &[
    "anca_fattree",
    "xy_yx_mesh",
    "adaptive_xy_yx_mesh",
    "dim_order_ni_mesh",
    "dim_order_pni_mesh",
    "dim_order_ni_torus",
    "dim_order_bal_torus",
    "romm_mesh",
    "romm_ni_mesh",
    "min_adapt_torus",
    "planar_adapt_mesh",
    "limited_adapt_mesh",
    "valiant_mesh",
    "valiant_torus",
    "valiant_ni_torus",
    "chaos_mesh",
    "chaos_torus",
];

impl Translator<'_> {
    /// Options that are not translated: complains where another value than the default asks for something, notes it where it
    /// asks for nothing.
    fn check_untranslated(&mut self) {
        let speculative = self.integer("speculative", 0, i64::MAX).is_ok_and(|value| value > 0);
        for option in OPTIONS {
            let Some((value, _)) = self.configuration.settings.get(option.name) else { continue };
            if same(&first(value), &option.default_value()) {
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

    fn network(&mut self) -> Result<Table, BookSimError> {
        let mut network = Table::new();
        let radix = self.integer("k", 1, 1 << 16)?;
        let dimensions = self.integer("n", 1, 32)?;
        let mut latency = 1;
        match self.text("topology").as_str() {
            name @ ("mesh" | "torus") => {
                network.insert("topology".to_owned(), name.into());
                network.insert("dimensions".to_owned(), Toml::Array(vec![radix.into(); dimensions as usize]));
                if name == "torus" && self.integer("use_noc_latency", i64::MIN, i64::MAX)? != 0 {
                    latency = 2;
                }
            }
            "fattree" => {
                network.insert("topology".to_owned(), "fat-tree".into());
                for (key, value) in [("up", radix), ("down", radix), ("levels", dimensions)] {
                    network.insert(key.to_owned(), value.into());
                }
            }
            "fly" => {
                network.insert("topology".to_owned(), "butterfly".into());
                network.insert("radix".to_owned(), radix.into());
                network.insert("stages".to_owned(), dimensions.into());
            }
            name if TOPOLOGIES_TO_COME.contains(&name) => self.refuse("topology", "another topology"),
            name => {
                let known = ["mesh", "torus", "fattree", "fly"].into_iter().chain(TOPOLOGIES_TO_COME.iter().copied());
                return Err(self.wrong("topology", format!("BookSim has no such topology{}", options::nearest(name, known))));
            }
        }
        network.insert("channel_latency".to_owned(), latency.into());
        network.insert("terminal_channel_latency".to_owned(), 1.into());
        Ok(network)
    }

    fn routing(&mut self) -> Result<Table, BookSimError> {
        let mut routing = Table::new();
        let topology = self.text("topology");
        let name = format!("{}_{topology}", self.text("routing_function"));
        match name.as_str() {
            "dor_mesh" | "dim_order_mesh" => {
                routing.insert("algorithm".to_owned(), "dimension-order".into());
            }
            "dim_order_torus" => {
                routing.insert("algorithm".to_owned(), "dimension-order".into());
                routing.insert("tie".to_owned(), "random".into());
                let channels = self.integer("num_vcs", 1, 256)?;
                if channels > 1 && channels % 2 == 1 {
                    // Both classes use the middle one. BookSim lets this run without a word, although it can deadlock.
                    routing.insert("share_middle".to_owned(), true.into());
                    routing.insert("allow_deadlock".to_owned(), true.into());
                }
            }
            "min_adapt_mesh" => {
                routing.insert("algorithm".to_owned(), "minimal-adaptive".into());
                routing.insert("escape".to_owned(), "dimension-order".into());
            }
            "nca_fattree" => {
                routing.insert("algorithm".to_owned(), "nca".into());
                routing.insert("up_port".to_owned(), "random".into());
            }
            "dest_tag_fly" => {
                routing.insert("algorithm".to_owned(), "destination-tag".into());
            }
            name if ROUTINGS_TO_COME.contains(&name) => self.refuse("routing_function", "another routing"),
            // The routings of these topologies come with them.
            _ if TOPOLOGIES_TO_COME.contains(&topology.as_str()) => {}
            _ => {
                let known = ["dor", "dim_order", "nca", "dest_tag"].into_iter();
                let function = self.text("routing_function");
                let suggestion = options::nearest(&function, known);
                return Err(self.wrong(
                    "routing_function",
                    format!(
                        "BookSim has no such routing for {topology}{suggestion} (mesh: dor; torus: dim_order; fattree: nca; fly: dest_tag)"
                    ),
                ));
            }
        }
        Ok(routing)
    }

    fn traffic(&mut self) -> Result<Table, BookSimError> {
        let mut traffic = Table::new();
        self.pattern(&mut traffic)?;
        let (sizes, mean) = self.packet_sizes()?;
        traffic.insert("packet_flits".to_owned(), sizes);
        traffic.insert("include_self".to_owned(), true.into());
        if self.text("sim_type") == "batch" {
            traffic.insert("process".to_owned(), "batch".into());
            traffic.insert("batch_packets".to_owned(), self.integer("batch_size", 1, i64::from(u32::MAX))?.into());
            for (option, default, reason) in
                [("batch_count", 1, "several batches in a row"), ("max_outstanding_requests", 0, "a window of outstanding packets")]
            {
                if self.integer(option, i64::MIN, i64::MAX)? != default {
                    self.refuse(option, reason);
                }
            }
            return Ok(traffic);
        }
        traffic.insert("process".to_owned(), "bernoulli".into());
        let rate = self.real("injection_rate")?;
        let uses_flits = self.integer("injection_rate_uses_flits", i64::MIN, i64::MAX)? != 0;
        let packet_rate = if uses_flits { rate / mean } else { rate };
        if !(packet_rate > 0.0 && packet_rate <= 1.0) {
            return Err(self.wrong(
                "injection_rate",
                format!("asks for {packet_rate} packets per terminal and cycle; it must be above 0 and at most 1"),
            ));
        }
        let mut load = packet_rate * mean;
        if load > 1.0 {
            let place = self.place("injection_rate");
            self.notes
                .push(format!("{place}: injection_rate offers {load} flits a cycle; a terminal sends 1 at most, which is taken instead"));
            load = 1.0;
        }
        traffic.insert("load".to_owned(), load.into());
        Ok(traffic)
    }

    fn pattern(&mut self, traffic: &mut Table) -> Result<(), BookSimError> {
        let text = self.first_text("traffic");
        let (name, arguments) = function(&text);
        let pattern = match name {
            "uniform" => "uniform",
            "bitcomp" => "bit-complement",
            "bitrev" => "bit-reverse",
            "shuffle" => "shuffle",
            "transpose" => "transpose",
            "diagonal" => "diagonal",
            "asymmetric" => "asymmetric",
            "tornado" | "neighbor" => {
                self.check_digits(&arguments)?;
                if name == "tornado" {
                    // Every digit moves on by ceil(k/2) - 1.
                    traffic.insert("shift".to_owned(), "ceil".into());
                }
                name
            }
            "randperm" => {
                let seed = match arguments.first() {
                    Some(seed) => seed.parse().map_err(|_| self.wrong("traffic", "randperm(seed) takes a whole number".to_owned()))?,
                    None => self.integer("perm_seed", 0, i64::from(u32::MAX))?,
                };
                traffic.insert("permutation_seed".to_owned(), Toml::Integer(seed));
                self.notes.push("traffic = randperm: the permutation is drawn anew; it is not BookSim's of the same seed".to_owned());
                "random-permutation"
            }
            "hotspot" => {
                self.hot_spots(&arguments, traffic)?;
                "hotspot"
            }
            name if PATTERNS_TO_COME.contains(&name) => {
                self.refuse("traffic", "another traffic pattern");
                "uniform"
            }
            name => {
                let known = [
                    "uniform",
                    "bitcomp",
                    "bitrev",
                    "shuffle",
                    "transpose",
                    "diagonal",
                    "asymmetric",
                    "tornado",
                    "neighbor",
                    "randperm",
                    "hotspot",
                ];
                let known = known.into_iter().chain(PATTERNS_TO_COME.iter().copied());
                return Err(self.wrong("traffic", format!("BookSim has no such pattern{}", options::nearest(name, known))));
            }
        };
        traffic.insert("pattern".to_owned(), pattern.into());
        Ok(())
    }

    /// The digits of tornado and neighbor must be those of the topology: radix k, n of them, one terminal a router.
    fn check_digits(&mut self, arguments: &[&str]) -> Result<(), BookSimError> {
        let wanted = [self.integer("k", 1, 1 << 16)?, self.integer("n", 1, 32)?, 1];
        let mut given = [wanted[0], wanted[1], self.integer("xr", 1, 1 << 16)?];
        for (given, argument) in given.iter_mut().zip(arguments) {
            *given = argument.parse().map_err(|_| self.wrong("traffic", "the arguments are whole numbers ({k,n,xr})".to_owned()))?;
        }
        if given != wanted {
            let option = if arguments.is_empty() { "xr" } else { "traffic" };
            self.refuse(option, "digits of another radix than the topology's");
        }
        Ok(())
    }

    fn hot_spots(&mut self, arguments: &[&str], traffic: &mut Table) -> Result<(), BookSimError> {
        let terminals = self.whole_numbers("traffic", arguments.first().copied().unwrap_or("-1"))?;
        let mut weights = match arguments.get(1) {
            Some(rates) => self.whole_numbers("traffic", rates)?,
            None => vec![1],
        };
        weights.resize(terminals.len(), weights.last().copied().unwrap_or(1));
        if terminals.iter().any(|&terminal| terminal < 0) {
            self.refuse("traffic", "a hot spot that BookSim draws by itself");
        }
        if terminals.is_empty() || weights.iter().any(|&weight| weight <= 0) {
            return Err(self.wrong("traffic", "hotspot({{terminals},{rates}}) needs terminals and rates above 0".to_owned()));
        }
        traffic.insert("terminals".to_owned(), Toml::Array(terminals.into_iter().map(Toml::Integer).collect()));
        traffic.insert("weights".to_owned(), Toml::Array(weights.into_iter().map(|weight| Toml::Float(weight as f64)).collect()));
        Ok(())
    }

    /// The lengths of packets as the experiment file has them, and their mean.
    fn packet_sizes(&mut self) -> Result<(Toml, f64), BookSimError> {
        // One element for each class; within it one length, or several with their frequencies.
        let of_class = self.first_text("packet_size");
        let sizes = self.whole_numbers("packet_size", &of_class)?;
        if sizes.is_empty() || sizes.iter().any(|size| !(1..=65_535).contains(size)) {
            return Err(self.wrong("packet_size", "a packet has 1 to 65535 flits".to_owned()));
        }
        if let [size] = sizes[..] {
            return Ok((size.into(), size as f64));
        }
        let of_class = self.first_text("packet_size_rate");
        let mut rates = self.whole_numbers("packet_size_rate", &of_class)?;
        rates.resize(sizes.len(), rates.last().copied().unwrap_or(1));
        let total: f64 = rates.iter().map(|&rate| rate as f64).sum();
        if rates.iter().any(|&rate| rate < 0) || total <= 0.0 {
            return Err(self.wrong("packet_size_rate", "the frequencies are 0 or more and not all 0".to_owned()));
        }
        let mean = sizes.iter().zip(&rates).map(|(&size, &rate)| size as f64 * rate as f64).sum::<f64>() / total;
        let lines = sizes.iter().zip(&rates).map(|(&size, &rate)| {
            Toml::Table(Table::from_iter([("flits".to_owned(), Toml::Integer(size)), ("weight".to_owned(), Toml::Float(rate as f64))]))
        });
        Ok((Toml::Array(lines.collect()), mean))
    }

    fn measure(&mut self, rules: Rules) -> Result<Table, BookSimError> {
        let mut measure = Table::new();
        if self.first_text("seed") == "time" {
            self.refuse("seed", "a seed from the clock, whose results nobody could repeat; give a number");
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
        // BookSim knows no limit; this one only stops what would never end.
        let sampled = sample_period.saturating_mul(max_samples).saturating_mul(100);
        measure.insert("max_cycles".to_owned(), sampled.max(100_000_000).into());
        if rules == Rules::BookSim {
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
            measure.insert("rules".to_owned(), "booksim".into());
            measure.insert("booksim".to_owned(), Toml::Table(booksim));
        }
        Ok(measure)
    }

    fn value(&self, name: &str) -> Value {
        match self.configuration.settings.get(name) {
            Some((value, _)) => value.clone(),
            None => options::find(name).map_or(Value::Text(String::new()), |option| option.default_value()),
        }
    }

    fn text(&self, name: &str) -> String {
        self.value(name).to_string()
    }

    /// The text of the first class's element.
    fn first_text(&self, name: &str) -> String {
        first(&self.value(name)).to_string()
    }

    fn integer(&self, name: &str, least: i64, most: i64) -> Result<i64, BookSimError> {
        match first(&self.value(name)) {
            Value::Integer(value) if (least..=most).contains(&value) => Ok(value),
            Value::Integer(_) => Err(self.wrong(name, format!("must be {least} to {most}"))),
            _ => Err(self.wrong(name, "must be a whole number".to_owned())),
        }
    }

    fn real(&self, name: &str) -> Result<f64, BookSimError> {
        match first(&self.value(name)) {
            Value::Integer(value) => Ok(value as f64),
            Value::Real(value) => Ok(value),
            Value::Text(_) => Err(self.wrong(name, "must be a number".to_owned())),
        }
    }

    fn whole_numbers(&self, name: &str, text: &str) -> Result<Vec<i64>, BookSimError> {
        elements(text)
            .into_iter()
            .map(|element| match element.parse::<i64>() {
                Ok(value) if value.unsigned_abs() <= u64::from(u32::MAX) => Ok(value),
                _ => Err(self.wrong(name, format!("`{element}` is no whole number within 32 bits"))),
            })
            .collect()
    }

    fn place(&self, name: &str) -> Place {
        match self.configuration.settings.get(name) {
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

/// The first class's element of a vector, or the value itself.
fn first(value: &Value) -> Value {
    match value {
        Value::Text(text) if text.starts_with('{') => classify(elements(text).first().copied().unwrap_or_default().to_owned()),
        other => other.clone(),
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
    use crate::router::{Pipeline, RouterParameters};

    fn translate(assignments: &str, rules: Rules) -> Result<Translation, BookSimError> {
        let mut configuration = Configuration::default();
        configuration.read("a.cfg", assignments)?;
        configuration.translate(rules)
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
        let error = translate("topology = cmesh; c = 4;\nvc_allocator = piggyback; subnets = 2; k = 4;", Rules::BookSim).unwrap_err();
        let BookSimError::Unsupported(entries) = &error else { panic!("{error}") };
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["subnets", "topology", "vc_allocator"]);
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
            ("topology = mesh; routing_function = dor; st_final_delay = 0;", "give at least 1"),
            ("topology = mesh; routing_function = dor; num_vcs = 0;", "must be 1 to 256"),
            ("topology = mesh; routing_function = dor; sim_type = speed;", "latency, throughput and batch"),
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
}
