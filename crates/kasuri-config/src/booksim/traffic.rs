//! `[traffic]`.

use super::{Rules, Translator};
use kasuri_formats::booksim::syntax::{elements, function};
use kasuri_formats::booksim::{BookSimError, options};
use toml::{Table, Value as Toml};

/// BookSim's traffic patterns.
const PATTERNS: &[&str] = &[
    "uniform",
    "bitcomp",
    "bitrev",
    "shuffle",
    "transpose",
    "tornado",
    "neighbor",
    "randperm",
    "diagonal",
    "asymmetric",
    "taper64",
    "hotspot",
    "background",
    "bad_dragon",
    "badperm_yarc",
];

/// A class in the experiment file's words, and the flits that each terminal offers in it per cycle.
struct Class {
    table: Table,
    load: f64,
}

/// Requests and their answers, by the beginning of their options' names.
const KINDS: [&str; 2] = ["read", "write"];

impl Translator<'_> {
    pub(super) fn traffic(&mut self) -> Result<Table, BookSimError> {
        let classes = self.integer("classes", 1, 255)? as usize;
        if self.text("sim_type") == "batch" {
            return self.batch(classes);
        }
        let mut translated = Vec::new();
        for class in 0..classes {
            self.open_class(class, &mut translated)?;
        }
        self.limit_load(&mut translated);
        for class in &mut translated {
            class.table.insert("load".to_owned(), class.load.into());
        }
        if translated.len() == 1 {
            return Ok(translated.remove(0).table);
        }
        let list = translated.into_iter().map(|class| Toml::Table(class.table)).collect();
        Ok(Table::from_iter([("class".to_owned(), Toml::Array(list))]))
    }

    /// A run that ends when each terminal has sent its packets.
    fn batch(&mut self, classes: usize) -> Result<Table, BookSimError> {
        let mut traffic = self.pattern_and_sizes(0)?.0;
        traffic.insert("process".to_owned(), "batch".into());
        traffic.insert("batch_packets".to_owned(), self.integer("batch_size", 1, i64::from(u32::MAX))?.into());
        if classes > 1 {
            self.refuse("classes", "a batch of several classes");
        }
        let window = self.integer("max_outstanding_requests", i64::MIN, i64::from(u32::MAX))?;
        if window > 0 {
            traffic.insert("outstanding_packets".to_owned(), window.into());
        }
        if self.integer("batch_count", 1, i64::MAX)? != 1 {
            self.note("batch_count", "each batch begins in an empty network, so one is like all others");
        }
        if self.class_integer("use_read_write", 0, i64::MIN, i64::MAX)? == 0 {
            return Ok(traffic);
        }
        if self.class_real("write_fraction", 0)? != 0.5 {
            self.note("write_fraction", "in a batch BookSim draws reads and writes with equal probability");
        }
        traffic.insert("counts_answers".to_owned(), true.into());
        traffic.insert("shares_coins".to_owned(), true.into());
        let class = |kind: &str| self.requests_and_answers(&traffic, kind, 0).map(|(table, _)| Toml::Table(table));
        Ok(Table::from_iter([("class".to_owned(), Toml::Array(vec![class("read")?, class("write")?]))]))
    }

    /// A class of requests of a kind with their answers, and the flits of a request.
    fn requests_and_answers(&self, traffic: &Table, kind: &str, class: usize) -> Result<(Table, i64), BookSimError> {
        let mut of_kind = traffic.clone();
        let size = |end: &str| self.class_integer(&format!("{kind}_{end}_size"), class, 1, 65_535);
        let (request, reply) = (size("request")?, size("reply")?);
        of_kind.insert("packet_flits".to_owned(), request.into());
        of_kind.insert("virtual_channels".to_owned(), self.channels_of(kind, "request")?);
        let answer = [("packet_flits", reply.into()), ("virtual_channels", self.channels_of(kind, "reply")?)];
        // What arrives is answered after its cycle.
        let delay = (self.rules == Rules::BookSim).then(|| ("delay", 1.into()));
        let answer = answer.into_iter().chain(delay).map(|(key, value)| (key.to_owned(), value));
        of_kind.insert("reply".to_owned(), Toml::Table(answer.collect()));
        Ok((of_kind, request))
    }

    /// One class of BookSim's: one of ours, or two where it has reads and writes.
    fn open_class(&mut self, class: usize, classes: &mut Vec<Class>) -> Result<(), BookSimError> {
        let (mut table, mean) = self.pattern_and_sizes(class)?;
        self.process(class, &mut table)?;
        let rate = self.class_real("injection_rate", class)?;
        let packet_rate = if self.flag("injection_rate_uses_flits")? { rate / mean } else { rate };
        if !(packet_rate > 0.0 && packet_rate <= 1.0) {
            let problem = format!("asks for {packet_rate} packets per terminal and cycle; it must be above 0 and at most 1");
            return Err(self.wrong("injection_rate", problem));
        }
        let packet_rate = self.limit_bursts(&mut table, packet_rate);
        if self.class_integer("use_read_write", class, i64::MIN, i64::MAX)? == 0 {
            classes.push(Class { table, load: packet_rate * mean });
            return Ok(());
        }
        let shares_coins = self.integer("classes", 1, 255)? == 1;
        if table.get("process").and_then(Toml::as_str) == Some("on-off") && !shares_coins {
            self.refuse("injection_process", "bursts in which reads and writes of several classes mix");
        }
        let writes = self.class_real("write_fraction", class)?;
        if !(0.0..=1.0).contains(&writes) {
            return Err(self.wrong("write_fraction", "must be 0 to 1".to_owned()));
        }
        for (kind, part) in KINDS.into_iter().zip([1.0 - writes, writes]).filter(|&(_, part)| part > 0.0) {
            let (mut of_kind, request) = self.requests_and_answers(&table, kind, class)?;
            // One coin says whether there is a request, a second one of which kind.
            if shares_coins && writes > 0.0 && writes < 1.0 {
                of_kind.insert("shares_coins".to_owned(), true.into());
            }
            classes.push(Class { table: of_kind, load: packet_rate * part * request as f64 });
        }
        Ok(())
    }

    /// A rate while on that comes to more than 1 is 1: then each cycle of a burst creates a packet. Returns the packets of a terminal and
    /// cycle that are left.
    fn limit_bursts(&mut self, traffic: &mut Table, packet_rate: f64) -> f64 {
        let number = |key: &str| traffic.get(key).and_then(Toml::as_float);
        let (Some(alpha), Some(beta), None) = (number("alpha"), number("beta"), number("on_rate")) else { return packet_rate };
        let on_rate = packet_rate * (alpha + beta) / alpha;
        if !(alpha > 0.0 && on_rate > 1.0) {
            return packet_rate;
        }
        traffic.remove("beta");
        traffic.insert("on_rate".to_owned(), 1.0.into());
        let left = alpha / (alpha + beta);
        let place = self.place("injection_rate");
        self.notes.push(format!(
            "{place}: injection_rate asks for {on_rate:.3} packets in a cycle of a burst; one is the most, as in BookSim 2, which makes \
             {left:.4} packets a cycle of {packet_rate:.4}"
        ));
        left
    }

    /// The virtual channels of a kind of packet.
    fn channels_of(&self, kind: &str, end: &str) -> Result<Toml, BookSimError> {
        let [begin, end] = self.channel_range(kind, end)?;
        Ok(vec![begin, end].into())
    }

    /// The first of the virtual channels of a kind of packet, and one past the last: below 0 stands for the lower half of requests, the
    /// upper half of replies.
    fn channel_range(&self, kind: &str, end: &str) -> Result<[i64; 2], BookSimError> {
        let channels = self.integer("num_vcs", 1, 256)?;
        let (begin, last) = (format!("{kind}_{end}_begin_vc"), format!("{kind}_{end}_end_vc"));
        let half = if end == "request" { [0, channels / 2 - 1] } else { [channels / 2, channels - 1] };
        let given = [self.integer(&begin, i64::MIN, i64::MAX)?, self.integer(&last, i64::MIN, i64::MAX)?];
        if let Some(place) = given.iter().position(|&vc| vc >= channels) {
            let problem = format!(
                "is not a virtual channel where num_vcs = {channels}; give at most {}, or -1 for {begin} and {last}: a half of them",
                channels - 1
            );
            return Err(self.wrong([&begin, &last][place], problem));
        }
        let [begin_vc, end_vc] = [0, 1].map(|place| if given[place] < 0 { half[place] } else { given[place] });
        if end_vc < begin_vc {
            return Err(self.wrong(&last, format!("is below {begin} = {begin_vc}; there is no virtual channel between them")));
        }
        Ok([begin_vc, end_vc + 1])
    }

    /// Do two kinds of packets share a part of their virtual channels only, as by BookSim's defaults? Then what is the lower half of the
    /// one may be the upper half of the other.
    pub(super) fn channels_overlap(&self) -> Result<bool, BookSimError> {
        let classes = self.integer("classes", 1, 255)? as usize;
        let of_class = |class| Ok(self.class_integer("use_read_write", class, i64::MIN, i64::MAX)? != 0);
        if !(0..classes).map(of_class).collect::<Result<Vec<_>, BookSimError>>()?.contains(&true) {
            return Ok(false);
        }
        let ranges = KINDS.into_iter().flat_map(|kind| ["request", "reply"].map(|end| self.channel_range(kind, end)));
        let ranges: Vec<_> = ranges.collect::<Result<_, _>>()?;
        let overlap = |one: &[i64; 2], other: &[i64; 2]| one != other && one[0] < other[1] && other[0] < one[1];
        Ok(ranges.iter().any(|one| ranges.iter().any(|other| overlap(one, other))))
    }

    /// A terminal sends a flit a cycle at most: what is beyond is taken away, from all classes in equal parts.
    fn limit_load(&mut self, classes: &mut [Class]) {
        let load: f64 = classes.iter().map(|class| class.load).sum();
        if load > 1.0 {
            let place = self.place("injection_rate");
            self.notes
                .push(format!("{place}: injection_rate offers {load} flits a cycle; a terminal sends 1 at most, which is taken instead"));
            classes.iter_mut().for_each(|class| class.load /= load);
        }
    }

    fn process(&mut self, class: usize, traffic: &mut Table) -> Result<(), BookSimError> {
        let text = self.class_text("injection_process", class);
        let (name, arguments) = function(&text);
        match name {
            "bernoulli" => {
                traffic.insert("process".to_owned(), "bernoulli".into());
            }
            "on_off" => {
                traffic.insert("process".to_owned(), "on-off".into());
                let mut given = 0;
                for (place, (key, option)) in
                    [("alpha", "burst_alpha"), ("beta", "burst_beta"), ("on_rate", "burst_r1")].into_iter().enumerate()
                {
                    let value = match arguments.get(place) {
                        Some(argument) => self.leading_number("injection_process", argument)?,
                        None => self.real(option)?,
                    };
                    if value >= 0.0 {
                        given += 1;
                        traffic.insert(key.to_owned(), value.into());
                    }
                }
                if given != 2 {
                    let problem = "on_off({alpha,beta,r1}) needs two of them, the third below 0; what is left out has the value of \
                                   burst_alpha, burst_beta or burst_r1";
                    return Err(self.wrong("injection_process", problem.to_owned()));
                }
            }
            name => {
                let known = ["bernoulli", "on_off"].into_iter();
                let suggestion = options::nearest(name, known);
                return Err(self.wrong(
                    "injection_process",
                    format!("BookSim has no such process{suggestion} (bernoulli, on_off({{alpha,beta,r1}}))"),
                ));
            }
        }
        Ok(())
    }

    /// An argument as a number. Of several outside braces BookSim reads the first.
    fn leading_number(&mut self, option: &str, argument: &str) -> Result<f64, BookSimError> {
        let first = argument.split(',').next().unwrap_or_default();
        if first.len() < argument.len() {
            let place = self.place(option);
            self.notes.push(format!(
                "{place}: of {option}(…{argument}…) only the first argument counts, as in BookSim 2; several are written in braces: ({{{argument}}})"
            ));
        }
        first.parse().map_err(|_| self.wrong(option, format!("invalid number `{first}`")))
    }

    /// The keys that all processes share, and the mean length of a packet.
    fn pattern_and_sizes(&mut self, class: usize) -> Result<(Table, f64), BookSimError> {
        let mut traffic = Table::new();
        self.pattern(class, &mut traffic)?;
        let (sizes, mean) = self.packet_sizes(class)?;
        traffic.insert("packet_flits".to_owned(), sizes);
        traffic.insert("include_self".to_owned(), true.into());
        Ok((traffic, mean))
    }

    fn pattern(&mut self, class: usize, traffic: &mut Table) -> Result<(), BookSimError> {
        let text = self.class_text("traffic", class);
        let (name, arguments) = function(&text);
        let pattern = match name {
            "bitcomp" => "bit-complement",
            "bitrev" => "bit-reverse",
            "uniform" | "shuffle" | "transpose" | "diagonal" | "asymmetric" => name,
            "tornado" | "neighbor" => {
                self.digits(&arguments, traffic)?;
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
                self.notes.push("traffic = randperm: the permutation is not BookSim's of the same seed".to_owned());
                "random-permutation"
            }
            "hotspot" => {
                self.hot_spots(&arguments, traffic)?;
                "hotspot"
            }
            "background" => {
                let excluded = self.whole_numbers("traffic", arguments.first().copied().unwrap_or_default())?;
                if excluded.is_empty() || excluded.iter().any(|&terminal| terminal < 0) {
                    return Err(self.wrong("traffic", "background({{terminals}}) needs the terminals that receive nothing".to_owned()));
                }
                traffic.insert("excluded".to_owned(), excluded.into());
                "background"
            }
            "taper64" => {
                if self.terminals().is_some_and(|terminals| terminals != 64) {
                    return Err(self.wrong("traffic", "taper64 needs 64 terminals; BookSim aborts otherwise".to_owned()));
                }
                traffic.insert("row".to_owned(), 8.into());
                "taper"
            }
            "bad_dragon" => {
                let radix = self.argument_or("k", arguments.first().copied())?;
                traffic.insert("group_terminals".to_owned(), (2 * radix * radix).into());
                "next-group"
            }
            "badperm_yarc" => {
                let (radix, row) = (self.argument_or("k", arguments.first().copied())?, self.argument_or("xr", arguments.get(2).copied())?);
                traffic.insert("side".to_owned(), (radix * row).into());
                "row-to-column"
            }
            name => {
                let suggestion = options::nearest(name, PATTERNS.iter().copied());
                return Err(self.wrong("traffic", format!("BookSim has no such pattern{suggestion}")));
            }
        };
        traffic.insert("pattern".to_owned(), pattern.into());
        Ok(())
    }

    /// A pattern's argument, or the option that stands in for it.
    fn argument_or(&self, option: &str, argument: Option<&str>) -> Result<i64, BookSimError> {
        let Some(argument) = argument else { return self.integer(option, 1, 1 << 16) };
        let number = argument.parse().ok().filter(|number| (1..=1 << 16).contains(number));
        number.ok_or_else(|| {
            self.wrong("traffic", format!("invalid argument `{argument}` for {option}; expected a whole number from 1 to 65536"))
        })
    }

    /// The digits of tornado and neighbor: n of radix xr k, from the arguments ({k,n,xr}) or the options.
    fn digits(&mut self, arguments: &[&str], traffic: &mut Table) -> Result<(), BookSimError> {
        let [radix, count, row] =
            [("k", 0), ("n", 1), ("xr", 2)].map(|(option, place)| self.argument_or(option, arguments.get(place).copied()));
        let (radix, count) = (radix? * row?, count?);
        let product = u32::try_from(count).ok().and_then(|count| (radix as u64).checked_pow(count)).unwrap_or(u64::MAX);
        if let Some(terminals) = self.terminals().filter(|&terminals| terminals < product) {
            let problem = format!(
                "has {count} digits of radix {radix} (xr times k), which name {product} terminals of {terminals}; BookSim aborts, give \
                 ({{k,n,xr}}) that fit"
            );
            return Err(self.wrong("traffic", problem));
        }
        traffic.insert("digits".to_owned(), vec![radix; count as usize].into());
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
            self.refuse("traffic", "a hot spot that BookSim draws before it sets its seed; name it, as in hotspot(0)");
        }
        if terminals.is_empty() || weights.iter().any(|&weight| weight <= 0) {
            return Err(self.wrong("traffic", "hotspot({{terminals},{rates}}) needs terminals and rates above 0".to_owned()));
        }
        traffic.insert("terminals".to_owned(), Toml::Array(terminals.into_iter().map(Toml::Integer).collect()));
        traffic.insert("weights".to_owned(), Toml::Array(weights.into_iter().map(|weight| Toml::Float(weight as f64)).collect()));
        Ok(())
    }

    /// The lengths of a class's packets as the experiment file has them, and their mean.
    fn packet_sizes(&mut self, class: usize) -> Result<(Toml, f64), BookSimError> {
        // One element for each class; within it one length, or several with their frequencies.
        let of_class = self.class_text("packet_size", class);
        let sizes = self.whole_numbers("packet_size", &of_class)?;
        if sizes.is_empty() || sizes.iter().any(|size| !(1..=65_535).contains(size)) {
            return Err(self.wrong("packet_size", "a packet has 1 to 65535 flits".to_owned()));
        }
        if let [size] = sizes[..] {
            return Ok((size.into(), size as f64));
        }
        let of_class = self.class_text("packet_size_rate", class);
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

    pub(super) fn whole_numbers(&self, name: &str, text: &str) -> Result<Vec<i64>, BookSimError> {
        elements(text)
            .into_iter()
            .map(|element| match element.parse::<i64>() {
                Ok(value) if value.unsigned_abs() <= u64::from(u32::MAX) => Ok(value),
                _ => Err(self.wrong(name, format!("invalid element `{element}`; expected a whole number within 32 bits"))),
            })
            .collect()
    }
}
