//! A training step as a table of layers: how long each computes forward and backward, and what its NPUs exchange then.
//!
//! The table becomes a program for each NPU. Layers run forward one after the other, then backward: the gradient of a layer's input, then that
//! of its weights. Who exchanges what depends on the parallelism, and so does who waits: NPUs that share a layer (tensor parallel) wait for
//! each other, gradients of weights are exchanged beside what follows. Source: the loops of ASTRA-sim 1.0 and of SimAI (cef83f9), in both of
//! which times are nanoseconds.

use super::cluster::{Cluster, Groups};
use super::trace::{Collective, Kind, Node, Operation, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// A training step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerTable {
    /// How the work is shared out.
    pub parallelism: Parallelism,
    /// In the order in which data goes forward.
    pub layers: Vec<Layer>,
    /// Words of the header that mean nothing here.
    pub ignored: Vec<String>,
}

/// How NPUs share the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parallelism {
    /// Each NPU has the whole model: gradients of weights are exchanged among all.
    Data,
    /// Each has a part of each layer: forward and input gradients are exchanged among all.
    Model,
    /// Model parallel in the first dimension of the network, data parallel in the others.
    ModelThenData,
    /// Data parallel in the first dimension of the network, model parallel in the others.
    DataThenModel,
    /// Only the exchange of the weights of the first layer, among all.
    Micro,
    /// A transformer.
    Transformer(Transformer),
}

/// The groups of a transformer's NPUs, of which neighbours are tensor parallel, as Megatron-LM numbers them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transformer {
    /// NPUs that share each layer.
    pub tensor: u32,
    /// Data-parallel NPUs that share the experts of a layer.
    pub expert: u32,
    /// Layers whose input is kept for the way back.
    pub checkpoints: BTreeSet<usize>,
    /// Layers before whose way back the layers from the last checkpoint on run forward once more.
    pub recomputations: BTreeSet<usize>,
}

/// A layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Its name, for messages.
    pub name: Box<str>,
    /// On the way forward.
    pub forward: Step,
    /// The gradient of its input.
    pub input_gradient: Step,
    /// The gradient of its weights.
    pub weight_gradient: Step,
    /// After each exchange, in nanoseconds.
    pub update_ns: u64,
}

/// A computation and the exchange behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// In nanoseconds.
    pub compute_ns: u64,
    /// What is exchanged, if anything.
    pub exchange: Option<Exchange>,
}

/// A collective operation of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Which.
    pub operation: Operation,
    /// Who takes part.
    pub among: Among,
    /// Bytes of the buffer; of a transformer's all-gather what all have together at its end.
    pub bytes: u64,
}

/// Who takes part in an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Among {
    /// Those who share the layer, for forward and input gradients; those who share the data, for weights.
    Usual,
    /// Those who share the experts.
    Experts,
    /// Those who have the same experts.
    SameExperts,
}

/// The steps of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Forward,
    InputGradient,
    WeightGradient,
}

/// Sets of NPUs of a transformer, each of which has groups of its own.
const SETS: u32 = 4;

impl Transformer {
    /// The group of an NPU for an exchange.
    fn group(&self, npu: u32, among: Among, phase: Phase) -> (u32, u32) {
        let (tensor, expert) = (self.tensor, self.expert);
        let (place, data) = (npu % tensor, npu / tensor);
        match (among, phase) {
            (Among::Usual, Phase::Forward | Phase::InputGradient) => (0, data),
            (Among::Usual, Phase::WeightGradient) => (1, place),
            (Among::Experts, _) => (2, data / expert * tensor + place),
            (Among::SameExperts, _) => (3, data % expert * tensor + place),
        }
    }

    /// # Errors
    /// The NPUs cannot be divided so.
    fn check(&self, npus: u32) -> Result<(), String> {
        if self.tensor == 0 || !npus.is_multiple_of(self.tensor) {
            return Err(format!("has model_parallel_NPU_group {}, which must divide the {npus} NPUs of the network", self.tensor));
        }
        let data = npus / self.tensor;
        if self.expert == 0 || !data.is_multiple_of(self.expert) {
            let problem =
                format!("{data} NPUs ({npus} of the network / {} that share a layer) have the same part of the model", self.tensor);
            return Err(format!("has ep {}, which must divide the number of those that share the data: {problem}", self.expert));
        }
        Ok(())
    }

    /// All groups of more than one NPU, by their numbers, and the number of each set's group.
    fn groups(&self, npus: u32, used: &BTreeSet<(Among, bool)>) -> (Groups, BTreeMap<(u32, u32), u32>) {
        let mut members: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for npu in 0..npus {
            for &(among, is_weights) in used {
                let phase = if is_weights { Phase::WeightGradient } else { Phase::Forward };
                let group = members.entry(self.group(npu, among, phase)).or_default();
                if group.last() != Some(&npu) {
                    group.push(npu);
                }
            }
        }
        let mut groups = Groups::new();
        let mut numbers = BTreeMap::new();
        for (key, npus) in members {
            debug_assert!(key.0 < SETS, "a set of groups has a number of its own");
            let number = groups.len() as u32 + 1;
            numbers.insert(key, number);
            groups.insert(number, npus);
        }
        (groups, numbers)
    }
}

impl LayerTable {
    /// What each NPU of a cluster does, and the groups that exchange.
    ///
    /// # Errors
    /// The NPUs cannot be divided as the table says.
    pub fn programs(&self, cluster: &Cluster) -> Result<(Groups, Vec<Trace>), String> {
        let npus = cluster.npus();
        let (groups, numbers) = match &self.parallelism {
            Parallelism::Transformer(transformer) => {
                transformer.check(npus)?;
                transformer.groups(npus, &self.sets())
            }
            _ => (Groups::new(), BTreeMap::new()),
        };
        let program =
            |npu: u32| Writer { table: self, cluster, groups: &groups, numbers: &numbers, npu, nodes: Vec::new(), last: None }.write();
        let traces = (0..npus).map(program).collect();
        Ok((groups, traces))
    }

    /// The sets of groups that exchange anything; are these weights?
    fn sets(&self) -> BTreeSet<(Among, bool)> {
        let of_layer = |layer: &Layer| {
            let usual = [(layer.forward, false), (layer.input_gradient, false), (layer.weight_gradient, true)];
            usual.map(|(step, is_weights)| step.exchange.map(|exchange| (exchange.among, is_weights)))
        };
        self.layers.iter().flat_map(of_layer).flatten().collect()
    }
}

/// Writes the program of an NPU.
struct Writer<'a> {
    table: &'a LayerTable,
    cluster: &'a Cluster,
    groups: &'a Groups,
    numbers: &'a BTreeMap<(u32, u32), u32>,
    npu: u32,
    nodes: Vec<Node>,
    /// The node for which the next one waits.
    last: Option<u64>,
}

impl Writer<'_> {
    fn write(mut self) -> Trace {
        let count = self.table.layers.len();
        if self.table.parallelism == Parallelism::Micro {
            self.exchange(0, Phase::WeightGradient);
            return self.trace();
        }
        for layer in 0..count {
            self.forward(layer);
        }
        for layer in (0..count).rev() {
            self.recompute(layer);
            self.backward(layer);
        }
        self.trace()
    }

    fn trace(self) -> Trace {
        Trace { nodes: self.nodes, unmodelled: BTreeMap::new() }
    }

    fn forward(&mut self, layer: usize) {
        self.compute(layer, Phase::Forward);
        self.last = self.exchange(layer, Phase::Forward);
    }

    /// The layers from the last checkpoint on run forward once more where the way back asks for it.
    fn recompute(&mut self, layer: usize) {
        let Parallelism::Transformer(Transformer { checkpoints, recomputations, .. }) = &self.table.parallelism else { return };
        if recomputations.contains(&layer) {
            let from = checkpoints.range(..=layer).next_back().copied().unwrap_or(0);
            (from..layer).for_each(|layer| self.forward(layer));
        }
    }

    fn backward(&mut self, layer: usize) {
        match self.table.parallelism {
            Parallelism::Data => {
                self.compute(layer, Phase::WeightGradient);
                self.exchange(layer, Phase::WeightGradient);
                if layer > 0 {
                    self.compute(layer, Phase::InputGradient);
                }
            }
            Parallelism::Transformer(_) => {
                self.compute(layer, Phase::InputGradient);
                self.last = self.exchange(layer, Phase::InputGradient);
                self.compute(layer, Phase::WeightGradient);
                self.exchange(layer, Phase::WeightGradient);
            }
            _ => {
                self.compute(layer, Phase::InputGradient);
                // Nobody is before the first layer. The exchange goes on beside the gradient of the weights.
                let before = self.last;
                let exchanged =
                    if layer > 0 { self.exchange(layer, Phase::InputGradient).filter(|node| Some(*node) != before) } else { None };
                self.compute(layer, Phase::WeightGradient);
                self.exchange(layer, Phase::WeightGradient);
                if let Some(exchanged) = exchanged {
                    self.join(layer, exchanged);
                }
            }
        }
    }

    fn compute(&mut self, layer: usize, phase: Phase) {
        let (name, ns) = (self.name(layer, phase, "computes"), self.step(layer, phase).compute_ns);
        if ns > 0 {
            let waits_for = self.last.into_iter().collect();
            self.last = Some(self.node(name, Kind::Compute { operations: None, bytes: None }, ns, false, waits_for));
        }
    }

    /// Begins an exchange after all before: the node that ends it, the last one so far if there is nothing to exchange.
    fn exchange(&mut self, layer: usize, phase: Phase) -> Option<u64> {
        let Some(exchange) = self.step(layer, phase).exchange else { return self.last };
        let Some(collective) = self.collective(exchange, phase) else { return self.last };
        let waits_for = self.last.into_iter().collect();
        let name = self.name(layer, phase, "exchanges");
        let node = self.node(name, Kind::Collective(Box::new(collective)), 0, false, waits_for);
        let update = self.table.layers[layer].update_ns;
        if update == 0 {
            return Some(node);
        }
        // It takes nothing from computations, so it is the host's.
        let name = self.name(layer, phase, "updates");
        Some(self.node(name, Kind::Compute { operations: None, bytes: None }, update, true, [node].into()))
    }

    /// Who goes on waits for this node, too.
    fn join(&mut self, layer: usize, node: u64) {
        let waits_for = self.last.into_iter().chain([node]).collect();
        let name = self.name(layer, Phase::InputGradient, "waits");
        self.last = Some(self.node(name, Kind::Invalid, 0, false, waits_for));
    }

    /// The collective operation of this NPU, if it has partners.
    fn collective(&self, exchange: Exchange, phase: Phase) -> Option<Collective> {
        let Exchange { operation, among, bytes } = exchange;
        let shares_model = phase != Phase::WeightGradient;
        let all = |dimensions: Option<Box<[bool]>>| Collective {
            operation: Some(operation),
            bytes: Some(bytes),
            dimensions,
            group: 0,
            priority: 0,
        };
        let count = self.cluster.dimensions.len();
        let first = |inside: bool| Some((0..count).map(|dimension| (dimension == 0) == inside).collect());
        match &self.table.parallelism {
            Parallelism::Data | Parallelism::Micro => (!shares_model).then(|| all(None)),
            Parallelism::Model => shares_model.then(|| all(None)),
            Parallelism::ModelThenData => (shares_model || count > 1).then(|| all(first(shares_model))),
            Parallelism::DataThenModel => (!shares_model || count > 1).then(|| all(first(!shares_model))),
            Parallelism::Transformer(transformer) => {
                let group = self.numbers[&transformer.group(self.npu, among, phase)];
                let members = self.groups[&group].len() as u64;
                // What all have at the end is what each contributes, times their number.
                let bytes = if operation == Operation::AllGather { bytes.div_ceil(members) } else { bytes };
                let group = if members == u64::from(self.cluster.npus()) { 0 } else { group };
                (members > 1).then(|| Collective { bytes: Some(bytes), group, ..all(None) })
            }
        }
    }

    fn step(&self, layer: usize, phase: Phase) -> Step {
        let Layer { forward, input_gradient, weight_gradient, .. } = self.table.layers[layer];
        match phase {
            Phase::Forward => forward,
            Phase::InputGradient => input_gradient,
            Phase::WeightGradient => weight_gradient,
        }
    }

    fn name(&self, layer: usize, phase: Phase, does: &str) -> Box<str> {
        let way = match phase {
            Phase::Forward => "forward",
            Phase::InputGradient => "input gradient",
            Phase::WeightGradient => "weight gradient",
        };
        format!("layer {layer} {}: {way} {does}", self.table.layers[layer].name).into()
    }

    fn node(&mut self, name: Box<str>, kind: Kind, duration_ns: u64, on_host: bool, waits_for: Box<[u64]>) -> u64 {
        let id = self.nodes.len() as u64;
        self.nodes.push(Node { id, name, kind, duration_ns, on_host, waits_for });
        id
    }
}

#[cfg(test)]
mod tests;
