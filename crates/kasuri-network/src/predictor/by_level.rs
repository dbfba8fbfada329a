//! A predictor for each level of a fat tree: `predictor_levels` names them, the leaves' first.

use super::contract::{Built, NONE, Predictor, PredictorEntry, inputs};
use super::options::Options;
use super::tree::Tree;
use crate::id::{Port, RouterId};
use crate::network::Network;

/// Its line of the table.
pub(super) const fn entry(build: fn(&Network, &Options) -> Built) -> PredictorEntry {
    PredictorEntry {
        name: super::contract::BY_LEVEL,
        summary: "fat trees: a predictor for each level of routers, by predictor_levels",
        source: "routers on the way up and down ask for different predictors: Matsutani et al. (HPCA 2009) compare one for all",
        takes: &["predictor_levels"],
        build,
    }
}

/// Stands for a level without a predictor.
const NOBODY: u8 = u8::MAX;

struct ByLevel {
    parts: Vec<Box<dyn Predictor>>,
    /// Which of them guesses for each input port, [`NOBODY`] for none.
    part: Vec<u8>,
    is_fixed: bool,
}

/// Builds the predictor of each level by its line of the table, which `find` gives.
pub(super) fn build(network: &Network, options: &Options, find: fn(&str) -> Result<&'static PredictorEntry, String>) -> Built {
    let Some(tree) = Tree::of(network) else { return Err("it knows fat trees only".to_owned()) };
    let names = options.levels.as_deref().unwrap_or_default();
    if names.len() != tree.levels as usize {
        return Err(format!("predictor_levels has {} predictors, and there are {} levels", names.len(), tree.levels));
    }
    let mut of_level = Vec::new();
    let mut kinds: Vec<&str> = Vec::new();
    let mut parts = Vec::new();
    for name in names.iter().map(String::as_str) {
        if name == NONE {
            of_level.push(NOBODY);
            continue;
        }
        let known = kinds.iter().position(|kind| *kind == name);
        of_level.push(known.unwrap_or(parts.len()) as u8);
        if known.is_none() {
            parts.push((find(name)?.build)(network, options).map_err(|problem| format!("{name}: {problem}"))?);
            kinds.push(name);
        }
    }
    let mut part = vec![NOBODY; inputs(network)];
    for router in (0..network.router_count()).map(RouterId) {
        for input in 0..network.port_count(router) as Port {
            part[network.port_index(router, input)] = of_level[tree.level(router) as usize - 1];
        }
    }
    let is_fixed = parts.iter().all(|part| part.is_fixed());
    Ok(Box::new(ByLevel { parts, part, is_fixed }))
}

impl Predictor for ByLevel {
    fn predict(&self, input: usize) -> Option<Port> {
        self.parts.get(usize::from(self.part[input]))?.predict(input)
    }

    fn learn(&mut self, input: usize, output: Port) {
        if let Some(part) = self.parts.get_mut(usize::from(self.part[input])) {
            part.learn(input, output);
        }
    }

    fn is_fixed(&self) -> bool {
        self.is_fixed
    }
}
