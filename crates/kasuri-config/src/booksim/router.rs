//! The router: delays, buffers, speed-ups, allocators and their arbiters.

use super::{BookSimError, Rules, Translator};
use kasuri_formats::booksim::options;
use kasuri_formats::booksim::syntax::function;
use toml::{Table, Value as Toml};

/// BookSim's allocators: its name, ours, and what stands in parentheses behind it.
const ALLOCATORS: &[(&str, &str, Argument)] = &[
    ("islip", "islip", Argument::Iterations),
    ("pim", "pim", Argument::Iterations),
    ("select", "select", Argument::Iterations),
    ("separable_input_first", "separable-input-first", Argument::Arbiter),
    ("separable_output_first", "separable-output-first", Argument::Arbiter),
    ("wavefront", "wavefront", Argument::None),
    ("rr_wavefront", "round-robin-wavefront", Argument::None),
    ("max_size", "maximum-size", Argument::None),
    ("loa", "loa", Argument::None),
];

/// What an allocator takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Argument {
    None,
    Iterations,
    Arbiter,
}

/// How the names of BookSim's routings begin that compare the congestion of outputs: its routers know credits.
const ADAPTIVE: [&str; 3] = ["adaptive", "ugal", "anca"];

const ARBITERS: [(&str, &str); 2] = [("round_robin", "round-robin"), ("matrix", "matrix")];

/// BookSim's priorities and ours.
const PRIORITIES: &[(&str, &str)] = &[
    ("none", "none"),
    ("class", "class"),
    ("age", "age"),
    ("network_age", "network-age"),
    ("local_age", "local-age"),
    ("hop_count", "hop-count"),
    ("queue_length", "queue-length"),
    ("sequence", "sequence"),
];

impl Translator<'_> {
    pub(super) fn router(&mut self) -> Result<Table, BookSimError> {
        let mut router = Table::new();
        router.insert("switching".to_owned(), "wormhole".into());
        router.insert("first_after_change".to_owned(), true.into());
        if self.rules == Rules::BookSim && self.integer("classes", 1, 255)? > 1 && self.text("sim_type") != "batch" {
            router.insert("class_queues".to_owned(), true.into());
        }
        self.buffers(&mut router)?;
        self.stages(&mut router)?;
        let function = self.text("routing_function");
        if ADAPTIVE.iter().any(|adaptive| function.starts_with(adaptive)) {
            router.insert("congestion".to_owned(), "credits".into());
        }
        router.insert("credit_delay".to_owned(), self.integer("credit_delay", 0, 1 << 20)?.into());
        let release = if self.integer("wait_for_tail_credit", 0, i64::MAX)? > 0 { "tail-credit" } else { "tail" };
        router.insert("vc_release".to_owned(), release.into());
        self.switch(&mut router)?;
        self.priority(&mut router)?;
        for (key, option) in [("vc_allocator", "vc_allocator"), ("switch_allocator", "sw_allocator")] {
            if let Some(allocator) = self.allocator(option)? {
                router.insert(key.to_owned(), allocator);
            }
        }
        Ok(router)
    }

    /// The buffer of a port is `buf_size` where that is given, else `vc_buf_size` for each virtual channel.
    fn buffers(&mut self, router: &mut Table) -> Result<(), BookSimError> {
        let channels = self.integer("num_vcs", 1, 256)?;
        let (whole, of_channel) = (self.integer("buf_size", i64::MIN, 1 << 24)?, self.integer("vc_buf_size", 1, 1 << 20)?);
        router.insert("virtual_channels".to_owned(), channels.into());
        let policy = self.text("buffer_policy");
        if policy == "private" {
            let each = if whole > 0 { whole / channels } else { of_channel };
            if each == 0 {
                return Err(
                    self.wrong("buf_size", format!("leaves nothing for each of {channels} virtual channels; give at least {channels}"))
                );
            }
            router.insert("buffer_flits".to_owned(), each.into());
            return Ok(());
        }
        const SHARED: [&str; 4] = ["shared", "limited", "dynamic", "shifting"];
        const BY_ROUND_TRIPS: [&str; 2] = ["feedback", "simplefeedback"];
        if BY_ROUND_TRIPS.contains(&policy.as_str()) {
            self.refuse("buffer_policy", "buffers limited by measured round trips");
            return Ok(());
        }
        if !SHARED.contains(&policy.as_str()) {
            let known = SHARED.into_iter().chain(BY_ROUND_TRIPS).chain(["private"]);
            return Err(self.wrong("buffer_policy", format!("BookSim has no such policy{}", options::nearest(&policy, known))));
        }
        let whole = if whole < 0 { channels * of_channel } else { whole };
        let own = self.integer("private_buf_size", i64::MIN, 1 << 20)?;
        let parts = self.integer("private_bufs", i64::MIN, 1 << 20)?;
        let ends = [self.integer("private_buf_start_vc", i64::MIN, 255)?, self.integer("private_buf_end_vc", i64::MIN, 255)?];
        if (parts >= 0 && parts != channels) || ends.iter().any(|&end| end >= 0) {
            self.refuse("private_bufs", "places that a group of virtual channels has for itself");
        }
        if own == 0 {
            self.refuse("private_buf_size", "virtual channels without a place of their own, which can wait for each other for ever");
        }
        router.insert("buffer_flits".to_owned(), of_channel.into());
        router.insert("buffer_policy".to_owned(), policy.as_str().into());
        router.insert("port_buffer_flits".to_owned(), whole.into());
        router.insert("private_flits".to_owned(), if own < 0 { whole / channels } else { own }.into());
        let most = self.integer("max_held_slots", i64::MIN, 1 << 24)?;
        if policy == "limited" && most >= 0 {
            router.insert("most_held_flits".to_owned(), most.into());
        }
        Ok(())
    }

    fn stages(&mut self, router: &mut Table) -> Result<(), BookSimError> {
        let route = self.integer("routing_delay", 0, 1000)?;
        let traversal = self.integer("st_prepare_delay", 0, 500)? + self.integer("st_final_delay", 0, 500)?;
        if traversal == 0 {
            return Err(self.wrong(
                "st_final_delay",
                "with st_prepare_delay = 0 the switch takes no time; BookSim aborts, give at least 1".to_owned(),
            ));
        }
        let mut pipeline = vec![stage("RC", route.max(1))];
        for (name, option) in [("VA", "vc_alloc_delay"), ("SA", "sw_alloc_delay")] {
            pipeline.push(stage(name, self.integer(option, 1, 1000)?));
        }
        pipeline.push(stage("ST", traversal));
        router.insert("pipeline".to_owned(), Toml::Array(pipeline));
        router.insert("lookahead".to_owned(), (route == 0).into());
        let speculative = self.integer("speculative", 0, i64::MAX)? > 0;
        router.insert("speculative".to_owned(), speculative.into());
        // BookSim puts speculative bids among the real ones, at the lowest priority.
        if self.rules == Rules::BookSim && speculative {
            router.insert("speculation".to_owned(), "together".into());
        }
        if self.rules == Rules::BookSim && route == 0 {
            router.insert("lookahead_decides".to_owned(), "on-departure".into());
        }
        // BookSim's stages of several cycles work in batches.
        if self.rules == Rules::BookSim && (route > 1 || traversal > 1) {
            router.insert("long_stages".to_owned(), "batched".into());
        }
        Ok(())
    }

    fn switch(&mut self, router: &mut Table) -> Result<(), BookSimError> {
        for option in ["input_speedup", "output_speedup"] {
            let speedup = self.integer(option, 1, 256)?;
            if speedup > 1 {
                router.insert(option.to_owned(), speedup.into());
            }
        }
        let internal = self.real("internal_speedup")?;
        if !(1.0..=64.0).contains(&internal) {
            return Err(self.wrong("internal_speedup", "must be 1 to 64".to_owned()));
        }
        if internal > 1.0 {
            router.insert("internal_speedup".to_owned(), internal.into());
        }
        // Below 0 it has no bounds; with 0 BookSim's router would send nothing.
        let places = self.integer("output_buffer_size", i64::MIN, i64::from(u32::MAX))?;
        match places {
            0 => {
                return Err(self.wrong(
                    "output_buffer_size",
                    "nothing leaves a router whose outputs have no place; give -1, or at least 1".to_owned(),
                ));
            }
            1.. => {
                router.insert("output_buffer_flits".to_owned(), places.into());
            }
            _ => {}
        }
        for (option, key) in [
            ("hold_switch_for_packet", "hold_switch"),
            ("vc_busy_when_full", "vc_busy_when_full"),
            ("vc_prioritize_empty", "vc_prefer_empty"),
        ] {
            if self.integer(option, i64::MIN, i64::MAX)? != 0 {
                router.insert(key.to_owned(), true.into());
            }
        }
        Ok(())
    }

    fn priority(&mut self, router: &mut Table) -> Result<(), BookSimError> {
        let text = self.text("priority");
        let Some(&(_, ours)) = PRIORITIES.iter().find(|(theirs, _)| *theirs == text) else {
            let known = PRIORITIES.iter().map(|&(theirs, _)| theirs);
            return Err(self.wrong("priority", format!("BookSim has no such priority{}", options::nearest(&text, known))));
        };
        if ours != "none" {
            router.insert("priority".to_owned(), ours.into());
        }
        Ok(())
    }

    fn allocator(&mut self, option: &'static str) -> Result<Option<Toml>, BookSimError> {
        let text = self.text(option);
        let name = function(&text).0;
        // An arbiter may have parentheses of its own.
        let inside = text.split_once('(').map(|(_, rest)| rest.strip_suffix(')').unwrap_or(rest));
        let Some(&(_, ours, argument)) = ALLOCATORS.iter().find(|(theirs, ..)| *theirs == name) else {
            if name == "piggyback" {
                self.refuse(option, "virtual channels that are taken by the winners of the switch");
                return Ok(None);
            }
            let known = ALLOCATORS.iter().map(|&(theirs, ..)| theirs);
            return Err(self.wrong(option, format!("BookSim has no such allocator{}", options::nearest(name, known))));
        };
        let parameter = match (argument, inside) {
            (_, None | Some("")) | (Argument::None, _) => None,
            (Argument::Iterations, Some(iterations)) => match iterations.parse::<u32>() {
                Ok(1) => None,
                Ok(iterations @ 2..) => Some(("iterations", i64::from(iterations).into())),
                _ => return Err(self.wrong(option, format!("{name}(n) does n iterations, at least 1"))),
            },
            (Argument::Arbiter, Some("round_robin")) => None,
            (Argument::Arbiter, Some(arbiter)) => Some(("arbiter", self.arbiter(option, arbiter)?)),
        };
        // BookSim's PIM begins at a random input and takes the first that asks.
        let draw = (self.rules == Rules::BookSim && ours == "pim").then(|| ("draw", "random-start".into()));
        // Its maximum-size matching begins at the next input after each cycle in which anybody waits.
        let turns = (self.rules == Rules::BookSim && ours == "maximum-size").then(|| ("turns", "waiting".into()));
        let parameters: Table = parameter.into_iter().chain(draw).chain(turns).map(|(key, value)| (key.to_owned(), value)).collect();
        if parameters.is_empty() {
            return Ok(Some(ours.into()));
        }
        Ok(Some(Toml::Table(Table::from_iter([("name".to_owned(), ours.into())]).into_iter().chain(parameters).collect())))
    }

    /// `round_robin`, `matrix`, or `tree(groups,arbiter)`.
    fn arbiter(&self, option: &str, text: &str) -> Result<Toml, BookSimError> {
        let single = |name: &str| ARBITERS.iter().find(|(theirs, _)| *theirs == name).map(|&(_, ours)| ours);
        let inside = text.strip_prefix("tree(").and_then(|rest| rest.strip_suffix(')'));
        if let Some((groups, of)) = inside.and_then(|inside| inside.trim_matches(['{', '}']).split_once(',')) {
            return match (groups.trim().parse::<u32>(), single(of.trim())) {
                (Ok(groups @ 1..), Some(of)) => {
                    Ok(Toml::Table(Table::from_iter([("groups".to_owned(), i64::from(groups).into()), ("of".to_owned(), of.into())])))
                }
                _ => Err(self.wrong(option, "tree(groups,arbiter) has at least 1 group, of round_robin or matrix arbiters".to_owned())),
            };
        }
        single(text).map(Toml::from).ok_or_else(|| {
            let known = ARBITERS.iter().map(|&(theirs, _)| theirs).chain(["tree"]);
            self.wrong(option, format!("BookSim has no such arbiter{}", options::nearest(text, known)))
        })
    }
}

fn stage(name: &str, cycles: i64) -> Toml {
    match cycles {
        1 => name.into(),
        cycles => Toml::Table(Table::from_iter([("stage".to_owned(), name.into()), ("cycles".to_owned(), Toml::Integer(cycles))])),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Configuration, Rules, translate};
    use kasuri_model::router::{
        AllocatorParameters, Arbiter, ArbiterParameters, BufferPolicy, Draw, LongStages, Priority, RouterParameters, Speculation, Turns,
    };

    fn router_by(assignments: &str, rules: Rules) -> RouterParameters {
        let mut configuration = Configuration::default();
        configuration.read("a.cfg", &format!("topology = mesh; routing_function = dor;{assignments}")).unwrap();
        translate(&configuration, rules).unwrap().table["router"].clone().try_into().unwrap()
    }

    fn router(assignments: &str) -> RouterParameters {
        router_by(assignments, Rules::Kasuri)
    }

    /// Routers of BookSim's know of congestion what credits tell, by either rules; other routings do not ask.
    #[test]
    fn adaptive_routings_look_at_credits() {
        let table = |assignments: &str, rules| {
            let mut configuration = Configuration::default();
            configuration.read("a.cfg", assignments).unwrap();
            translate(&configuration, rules).unwrap().table["router"].get("congestion").cloned()
        };
        for rules in [Rules::Kasuri, Rules::BookSim] {
            for adaptive in
                ["topology = fattree; k = 4; n = 3; routing_function = anca;", "routing_function = adaptive_xy_yx; num_vcs = 4;"]
            {
                assert_eq!(table(&format!("topology = mesh; {adaptive}"), rules), Some("credits".into()), "{adaptive}");
            }
            assert_eq!(table("topology = mesh; routing_function = dor;", rules), None);
        }
    }

    #[test]
    fn speedups_and_the_held_switch_are_ours() {
        let faster = router("internal_speedup = 1.7; input_speedup = 2; output_speedup = 3; hold_switch_for_packet = 1;");
        assert_eq!((faster.internal_speedup, faster.input_speedup, faster.output_speedup, faster.hold_switch), (1.7, 2, 3, true));
        assert_eq!(router("output_buffer_size = 4;").output_buffer_flits, Some(4));
        assert!(router("output_buffer_size = -1; input_speedup = 1; internal_speedup = 1.0;").extensions().next().is_none());
    }

    #[test]
    fn allocators_come_with_their_iterations_and_arbiters() {
        for (theirs, ours) in
            [("max_size", "maximum-size"), ("rr_wavefront", "round-robin-wavefront"), ("loa", "loa"), ("select", "select")]
        {
            assert_eq!(router(&format!("vc_allocator = {theirs};")).vc_allocator, AllocatorParameters::Name(ours.to_owned()));
        }
        assert_eq!(router("sw_allocator = pim(3);").switch_allocator.iterations(), 3);
        let arbiter = |text: &str| router(&format!("sw_allocator = separable_input_first({text});")).switch_allocator.arbiter();
        assert_eq!(arbiter("matrix"), ArbiterParameters::Single(Arbiter::Matrix));
        assert_eq!(arbiter("round_robin"), ArbiterParameters::default());
        assert_eq!(arbiter("tree({5,matrix})"), ArbiterParameters::Tree { groups: 5, of: Arbiter::Matrix });
    }

    /// 16 flits for 4 channels are 4 for each, or 1 for each and a pool of 12.
    #[test]
    fn buffers_are_private_or_shared() {
        let private = router("num_vcs = 4; buf_size = 18;");
        assert_eq!((private.buffer_flits, private.buffer_policy), (4, BufferPolicy::Private));
        let shared = router("num_vcs = 4; vc_buf_size = 4; buffer_policy = limited; max_held_slots = 6;");
        assert_eq!((shared.channel_depth(), shared.private_flits, shared.most_held_flits), (16, 1, Some(6)));
        assert_eq!(router("buffer_policy = dynamic; buf_size = 64; private_buf_size = 2;").channel_depth(), 64);
        assert!(shared.check().is_ok());
    }

    #[test]
    fn priorities_have_our_names() {
        assert_eq!(router("priority = network_age;").priority, Priority::NetworkAge);
        assert_eq!(router("").priority, Priority::None);
    }

    /// By our own rules a random draw is uniform, by BookSim's it begins at a random place; other allocators do not draw.
    #[test]
    fn random_starts_are_booksims_alone() {
        let drawn = |text: &str, rules| router_by(&format!("sw_allocator = {text};"), rules).switch_allocator;
        assert_eq!(drawn("pim", Rules::BookSim).draw(), Draw::RandomStart);
        assert_eq!((drawn("pim(3)", Rules::BookSim).draw(), drawn("pim(3)", Rules::BookSim).iterations()), (Draw::RandomStart, 3));
        assert_eq!(drawn("pim", Rules::Kasuri), AllocatorParameters::Name("pim".to_owned()));
        assert_eq!(drawn("islip", Rules::BookSim).draw(), Draw::Uniform);
    }

    #[test]
    fn matchings_turn_while_heads_wait_by_booksims_rules_alone() {
        let turns = |text: &str, rules| router_by(&format!("vc_allocator = {text};"), rules).vc_allocator.turns();
        assert_eq!(turns("max_size", Rules::BookSim), Turns::Waiting);
        assert_eq!((turns("max_size", Rules::Kasuri), turns("wavefront", Rules::BookSim)), (Turns::Requested, Turns::Requested));
    }

    /// By our own rules real bids for the switch go first, by BookSim's all are in one allocation.
    #[test]
    fn speculative_bids_stand_among_real_ones_by_booksims_rules_alone() {
        assert_eq!(router_by("speculative = 1;", Rules::BookSim).speculation, Speculation::Together);
        assert_eq!(router_by("", Rules::BookSim).speculation, Speculation::Separate);
        assert_eq!(router("speculative = 1;").speculation, Speculation::Separate);
    }

    /// By our own rules a routing decides when a head has come, and a source has one queue.
    #[test]
    fn early_decisions_and_queues_of_classes_are_booksims_alone() {
        let decides = |text: &str, rules| router_by(text, rules).decides_on_departure();
        assert!(decides("routing_delay = 0;", Rules::BookSim) && !decides("routing_delay = 1;", Rules::BookSim));
        assert!(!decides("routing_delay = 0;", Rules::Kasuri));
        let queues = |text: &str, rules| router_by(text, rules).class_queues;
        assert!(queues("classes = 2;", Rules::BookSim) && !queues("", Rules::BookSim) && !queues("classes = 2;", Rules::Kasuri));
    }

    /// By our own rules stages are pipelined, by BookSim's they work in batches, where that can make a difference.
    #[test]
    fn long_stages_are_batched_by_booksims_rules_alone() {
        assert_eq!(router_by("routing_delay = 2;", Rules::BookSim).long_stages, LongStages::Batched);
        assert_eq!(router_by("st_final_delay = 2;", Rules::BookSim).long_stages, LongStages::Batched);
        assert_eq!(router_by("vc_alloc_delay = 2;", Rules::BookSim).long_stages, LongStages::Pipelined);
        assert_eq!(router("routing_delay = 2;").long_stages, LongStages::Pipelined);
    }
}
