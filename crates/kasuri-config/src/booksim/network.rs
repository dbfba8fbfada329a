//! `[network]` and `[routing]`.

use super::{Rules, Translator};
use kasuri_formats::booksim::{BookSimError, options};
use toml::{Table, Value as Toml};

/// BookSim's topologies.
const TOPOLOGIES: &[&str] = &["mesh", "torus", "cmesh", "fly", "fattree", "flatfly", "dragonflynew", "qtree", "tree4", "anynet"];

/// BookSim's routing functions, by topology.
const ROUTINGS: &[(&str, &[&str])] = &[
    (
        "mesh",
        &[
            "dor",
            "dim_order",
            "dim_order_ni",
            "dim_order_pni",
            "xy_yx",
            "adaptive_xy_yx",
            "romm",
            "romm_ni",
            "min_adapt",
            "planar_adapt",
            "valiant",
            "chaos",
        ],
    ),
    ("torus", &["dim_order", "dim_order_ni", "dim_order_bal", "min_adapt", "valiant", "valiant_ni", "chaos"]),
    ("cmesh", &["dor", "dor_no_express", "xy_yx", "xy_yx_no_express"]),
    ("fly", &["dest_tag"]),
    ("fattree", &["nca", "anca"]),
    ("flatfly", &["ran_min", "xyyx", "adaptive_xyyx", "valiant", "ugal", "ugal_xyyx", "ugal_pni"]),
    ("dragonflynew", &["min", "ugal"]),
    ("qtree", &["nca"]),
    ("tree4", &["nca", "anca"]),
    ("anynet", &["min"]),
];

/// A table of `[routing]`.
struct Routing(Table);

impl Routing {
    fn new(algorithm: &str) -> Self {
        Self(Table::new()).with("algorithm", algorithm)
    }

    fn with(mut self, key: &str, value: impl Into<Toml>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// BookSim lets this run without a word, although it can deadlock.
    fn that_can_deadlock(self, can: bool) -> Self {
        if can { self.with("allow_deadlock", true) } else { self }
    }
}

impl Translator<'_> {
    pub(super) fn network(&mut self) -> Result<Table, BookSimError> {
        let latencies = [("channel_latency", 1.into()), ("terminal_channel_latency", 1.into())];
        Ok(latencies.into_iter().chain(self.shape()?).map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// The keys of the topology.
    fn shape(&mut self) -> Result<Vec<(&'static str, Toml)>, BookSimError> {
        let (radix, dimensions) = (self.integer("k", 1, 1 << 16)?, self.integer("n", 1, 32)?);
        Ok(match self.text("topology").as_str() {
            "mesh" => vec![("topology", "mesh".into()), ("dimensions", vec![radix; dimensions as usize].into())],
            "torus" => {
                let latency = if self.flag("use_noc_latency")? { 2 } else { 1 };
                let dimensions = vec![radix; dimensions as usize];
                vec![("topology", "torus".into()), ("dimensions", dimensions.into()), ("channel_latency", latency.into())]
            }
            "fattree" => fat_tree(radix, radix, dimensions),
            "fly" => vec![("topology", "butterfly".into()), ("radix", radix.into()), ("stages", dimensions.into())],
            "qtree" => {
                self.must_be(&[("k", 4), ("n", 3)])?;
                fat_tree(1, 4, 3)
            }
            "tree4" => {
                self.must_be(&[("k", 4), ("n", 3)])?;
                vec![("topology", "tree4".into())]
            }
            "cmesh" => self.concentrated_mesh(radix)?,
            "flatfly" => self.flattened_butterfly(radix, dimensions)?,
            "dragonflynew" => {
                self.must_be(&[("n", 1)])?;
                vec![
                    ("topology", "dragonfly".into()),
                    ("terminals_per_router", radix.into()),
                    ("routers_per_group", (2 * radix).into()),
                    ("global_channels", radix.into()),
                    ("arrangement", "consecutive".into()),
                    ("channel_latency", vec![10, 100].into()),
                ]
            }
            "anynet" => vec![("topology", "anynet".into()), ("path", self.network_file()?.into())],
            name => {
                let suggestion = options::nearest(name, TOPOLOGIES.iter().copied());
                return Err(self.wrong("topology", format!("BookSim has no such topology{suggestion}")));
            }
        })
    }

    fn concentrated_mesh(&self, radix: i64) -> Result<Vec<(&'static str, Toml)>, BookSimError> {
        self.must_be(&[("n", 2), ("c", 4), ("xr", 2), ("yr", 2)])?;
        self.must_be_equal("x", "y")?;
        if radix % 2 == 1 {
            return Err(self.wrong("k", "topology = cmesh needs an even k; its express links are half as long".to_owned()));
        }
        let latency = if self.has_wire_latency()? { vec![2, radix] } else { vec![1, 1] };
        Ok(vec![("topology", "concentrated-mesh".into()), ("radix", radix.into()), ("channel_latency", latency.into())])
    }

    fn flattened_butterfly(&self, radix: i64, dimensions: i64) -> Result<Vec<(&'static str, Toml)>, BookSimError> {
        self.must_be_equal("x", "y")?;
        self.must_be_equal("xr", "yr")?;
        let (cluster, columns) = (self.integer("xr", 1, 1 << 8)?, self.integer("x", 1, 1 << 12)?);
        self.must_be(&[("c", cluster * cluster), ("n", dimensions.min(4))])?;
        let distance = self.has_wire_latency()?;
        let floor = self.floor(radix.checked_pow(dimensions as u32), columns, cluster == 1, distance)?;
        Ok(vec![
            ("topology", "on-chip-flattened-butterfly".into()),
            ("radix", radix.into()),
            ("dimensions", dimensions.into()),
            ("floor", floor.into()),
            ("cluster", vec![cluster; 2].into()),
            ("distance", distance.into()),
        ])
    }

    /// Columns and rows of routers. BookSim requires y = x and then reads x alone: routers fill rows of x, and terminals the grid of their
    /// clusters, in which a last row that is not full has numbers outside the network. Single terminals have the numbers of their routers.
    fn floor(&self, routers: Option<i64>, columns: i64, is_single: bool, has_distance: bool) -> Result<Vec<i64>, BookSimError> {
        match routers {
            Some(routers) if routers % columns == 0 => Ok(vec![columns, routers / columns]),
            Some(routers) if is_single && (routers < columns || !has_distance) => Ok(vec![routers, 1]),
            _ => Err(self.wrong("x", "topology = flatfly needs k^n routers that fill rows of x".to_owned())),
        }
    }

    /// Does a wire's latency depend on its length? (BookSim compares with 1 here, with 0 on tori.)
    fn has_wire_latency(&self) -> Result<bool, BookSimError> {
        Ok(self.integer("use_noc_latency", i64::MIN, i64::MAX)? == 1)
    }

    fn network_file(&self) -> Result<String, BookSimError> {
        let path = self.text("network_file");
        if path.is_empty() {
            return Err(self.wrong("network_file", "topology = anynet needs the file of its network".to_owned()));
        }
        Ok(path)
    }

    /// BookSim aborts unless these options have these values.
    fn must_be(&self, wanted: &[(&str, i64)]) -> Result<(), BookSimError> {
        match wanted.iter().find(|(name, value)| self.integer(name, i64::MIN, i64::MAX).ok() != Some(*value)) {
            Some((name, value)) => {
                Err(self.wrong(name, format!("topology = {} needs {name} = {value}; BookSim aborts otherwise", self.text("topology"))))
            }
            None => Ok(()),
        }
    }

    fn must_be_equal(&self, one: &str, other: &str) -> Result<(), BookSimError> {
        self.must_be(&[(one, self.integer(other, i64::MIN, i64::MAX)?)])
    }

    /// How many terminals there are, where the options tell it.
    pub(super) fn terminals(&self) -> Option<u64> {
        let number = |name: &str| self.integer(name, 1, 1 << 16).ok().map(|value| value as u64);
        let radix = number("k")?;
        let routers = radix.checked_pow(u32::try_from(number("n")?).ok()?)?;
        match self.text("topology").as_str() {
            "anynet" => None,
            "cmesh" | "flatfly" => routers.checked_mul(number("c")?),
            "dragonflynew" => Some(2 * radix * radix * (2 * radix * radix + 1)),
            _ => Some(routers),
        }
    }

    pub(super) fn routing(&mut self) -> Result<Table, BookSimError> {
        let (topology, function) = (self.text("topology"), self.text("routing_function"));
        let Some((_, known)) = ROUTINGS.iter().find(|(name, _)| *name == topology) else { return Ok(Table::new()) };
        if !known.contains(&function.as_str()) {
            let suggestion = options::nearest(&function, known.iter().copied());
            let problem = format!("BookSim has no such routing for {topology}{suggestion} ({topology}: {})", known.join(", "));
            return Err(self.wrong("routing_function", problem));
        }
        let channels = self.integer("num_vcs", 1, 256)?;
        let routing = match topology.as_str() {
            "mesh" => self.on_mesh(&function, channels)?,
            "torus" => self.on_torus(&function, channels)?,
            "cmesh" => self.on_concentrated_mesh(&function, channels)?,
            "flatfly" => self.on_flattened_butterfly(&function, channels)?,
            "dragonflynew" => Some(self.on_dragonfly(&function, channels)?),
            "fattree" | "qtree" => Some(Routing::new("nca").with("up_port", if function == "anca" { "better-of-two" } else { "random" })),
            "tree4" => Some(self.on_tree4(&function)),
            "fly" => Some(Routing::new("destination-tag")),
            _ => Some(Routing::new("dijkstra").that_can_deadlock(true)),
        };
        Ok(routing.map_or_else(Table::new, |routing| routing.0))
    }

    fn refuse_routing(&mut self, reason: &'static str) -> Option<Routing> {
        self.refuse("routing_function", reason);
        None
    }

    /// `anca` offers all ports up at once, of which BookSim's set of outputs, with one entry for each priority, keeps the lowest.
    fn on_tree4(&mut self, function: &str) -> Routing {
        let drawn = Routing::new("minimal").with("tie", "random").with("classes", "none");
        if function == "nca" {
            return drawn;
        }
        let is_booksims = self.rules == Rules::BookSim;
        let here = if is_booksims { "as here" } else { "here all are offered, as its text says" };
        self.notes.push(format!(
            "{}: routing_function = anca: of the ports up, which have the same priority, BookSim 2 keeps the lowest alone ({here}); all \
             packets meet at the first root, which uniform traffic saturates at 1/12 flit a terminal and cycle: beyond, BookSim is unstable",
            self.place("routing_function")
        ));
        drawn.with("ports_up", if is_booksims { "lowest" } else { "all" })
    }

    fn on_mesh(&mut self, function: &str, channels: i64) -> Result<Option<Routing>, BookSimError> {
        Ok(match function {
            "dim_order_ni" => Some(self.isolated(Routing::new("dimension-order").with("isolation", "destination"), true)?),
            "dim_order_pni" => Some(self.isolated(Routing::new("dimension-order").with("isolation", "coordinate"), false)?),
            "xy_yx" | "adaptive_xy_yx" => Some(self.in_two_orders(function.starts_with("adaptive"), false, channels)?),
            "romm" | "valiant" => {
                let intermediate = if function == "romm" { "between" } else { "anywhere" };
                Some(self.in_halves(Routing::new("two-phase").with("intermediate", intermediate), channels)?)
            }
            "romm_ni" => {
                let routing = Routing::new("two-phase").with("intermediate", "between").with("isolated", true).that_can_deadlock(true);
                Some(self.isolated(routing, true)?)
            }
            "min_adapt" => Some(self.minimal_adaptive().that_can_deadlock(self.closes_escape_path()?)),
            "planar_adapt" => Some(self.with_one_port(Routing::new("planar-adaptive"))),
            "chaos" => self.refuse_routing(CHAOS),
            _ => Some(Routing::new("dimension-order")),
        })
    }

    fn on_torus(&mut self, function: &str, channels: i64) -> Result<Option<Routing>, BookSimError> {
        let routing = Routing::new("dimension-order").with("tie", "random");
        Ok(match function {
            "dim_order" if channels == 1 => Some(routing),
            "dim_order" => Some(self.in_halves(routing, channels)?),
            "dim_order_bal" => Some(self.in_halves(routing.with("balanced", true), channels)?),
            "dim_order_ni" => Some(self.isolated(routing.with("isolation", "destination"), true)?),
            "valiant" => Some(self.in_quarters(Routing::new("two-phase"), channels)?),
            "valiant_ni" => self.refuse_routing("a routing whose phases BookSim 2 mixes up with the halves of its rings"),
            "min_adapt" => {
                self.at_least_channels(2)?;
                if channels == 3 {
                    let problem = "routing_function = min_adapt on a torus takes the fourth virtual channel, or none beside two";
                    return Err(self.wrong("num_vcs", format!("{problem}; BookSim aborts with 3")));
                }
                let adaptive = self.minimal_adaptive().that_can_deadlock(self.channels_overlap()? || self.closes_escape_path()?);
                // BookSim takes one virtual channel of four or more.
                Some(if self.rules == Rules::BookSim { adaptive.with("adaptive_channels", vec![3, 4]) } else { adaptive })
            }
            _ => self.refuse_routing(CHAOS),
        })
    }

    /// Do heads get virtual channels without room? Then they wait for these alone, and no longer for the escape path; BookSim runs all the
    /// same.
    fn closes_escape_path(&self) -> Result<bool, BookSimError> {
        let waits = self.integer("wait_for_tail_credit", 0, i64::MAX)? > 0 || self.integer("vc_busy_when_full", 0, i64::MAX)? > 0;
        Ok(!waits)
    }

    fn minimal_adaptive(&self) -> Routing {
        self.with_one_port(Routing::new("minimal-adaptive").with("escape", "dimension-order"))
    }

    /// BookSim's set of outputs keeps one entry for each priority.
    fn with_one_port(&self, routing: Routing) -> Routing {
        if self.rules == Rules::BookSim { routing.with("ports", "lowest") } else { routing }
    }

    fn on_concentrated_mesh(&mut self, function: &str, channels: i64) -> Result<Option<Routing>, BookSimError> {
        let express = !function.ends_with("no_express");
        if function.starts_with("dor") {
            return Ok(Some(Routing::new("dimension-order").with("express", express)));
        }
        if express && self.integer("k", 1, 1 << 16)? > 4 {
            return Ok(self.refuse_routing(
                "a routing that takes the express links back and forth for ever on more than 4 x 4 routers in BookSim 2; take \
                 xy_yx_no_express",
            ));
        }
        Ok(Some(self.in_two_orders(false, express, channels)?))
    }

    fn on_flattened_butterfly(&mut self, function: &str, channels: i64) -> Result<Option<Routing>, BookSimError> {
        Ok(Some(match function {
            "ran_min" => Routing::new("dimension-order"),
            "xyyx" | "adaptive_xyyx" => self.in_two_orders(function.starts_with("adaptive"), false, channels)?,
            "valiant" => self.in_halves(Routing::new("two-phase").with("ends_early", true), channels)?,
            "ugal_xyyx" => self.in_quarters(Routing::new("ugal-ordered").with("both_orders", true), channels)?,
            _ => {
                if channels % 2 == 1 {
                    return Ok(self.refuse_routing(ODD_HALVES));
                }
                let routing = Routing::new("ugal-ordered");
                if function == "ugal" {
                    routing
                } else {
                    let radix = self.integer("k", 1, 1 << 16)?;
                    self.must_be(&[("c", radix)])?;
                    self.at_least_channels(2 * radix)?;
                    routing.with("isolated", true)
                }
            }
        }))
    }

    fn on_dragonfly(&mut self, function: &str, channels: i64) -> Result<Routing, BookSimError> {
        let mut routing = Routing::new("dragonfly-phases");
        if self.rules == Rules::BookSim {
            routing = routing.with("redraw_entry", true);
        }
        if function == "min" {
            self.at_least_channels(2)?;
            return Ok(routing.with("adaptive", false));
        }
        if channels != 3 {
            return Err(self.wrong("num_vcs", "ugal on dragonflynew needs 3 virtual channels; BookSim aborts otherwise".to_owned()));
        }
        Ok(routing.with("adaptive", true).that_can_deadlock(true))
    }

    /// A routing whose halves of the virtual channels share the middle one of an odd number.
    fn in_halves(&self, routing: Routing, channels: i64) -> Result<Routing, BookSimError> {
        self.at_least_channels(2)?;
        let share = channels % 2 == 1;
        let routing = if share { routing.with("share_middle", true) } else { routing };
        Ok(routing.that_can_deadlock(share || self.channels_overlap()?))
    }

    fn in_two_orders(&self, adaptive: bool, express: bool, channels: i64) -> Result<Routing, BookSimError> {
        let choose = if adaptive { "adaptive" } else { "random" };
        self.in_halves(Routing::new("o1turn").with("choose", choose).with("express", express), channels)
    }

    /// A routing with four classes of virtual channels, which in BookSim 2 overlap unless their number is divisible by 4.
    fn in_quarters(&mut self, routing: Routing, channels: i64) -> Result<Routing, BookSimError> {
        self.at_least_channels(4)?;
        if channels % 4 != 0 {
            self.refuse("num_vcs", "four classes of virtual channels that overlap; give a number that is divisible by 4");
        }
        Ok(routing.that_can_deadlock(self.channels_overlap()?))
    }

    /// A routing with a part of the virtual channels for each terminal, or for each coordinate.
    fn isolated(&self, routing: Routing, by_terminal: bool) -> Result<Routing, BookSimError> {
        let parts = if by_terminal { self.terminals().unwrap_or(u64::MAX) } else { self.integer("k", 1, 1 << 16)? as u64 };
        self.at_least_channels(i64::try_from(parts).unwrap_or(i64::MAX))?;
        Ok(routing)
    }

    fn at_least_channels(&self, least: i64) -> Result<(), BookSimError> {
        let function = self.text("routing_function");
        if self.integer("num_vcs", 1, 256)? < least {
            return Err(self.wrong("num_vcs", format!("routing_function = {function} needs at least {least}; BookSim aborts otherwise")));
        }
        Ok(())
    }
}

fn fat_tree(up: i64, down: i64, levels: i64) -> Vec<(&'static str, Toml)> {
    vec![("topology", "fat-tree".into()), ("up", up.into()), ("down", down.into()), ("levels", levels.into())]
}

const CHAOS: &str = "a routing for BookSim's chaos router";
const ODD_HALVES: &str = "two halves of an odd number of virtual channels; give an even num_vcs";
