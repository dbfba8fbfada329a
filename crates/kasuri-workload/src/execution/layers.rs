//! A training step as a table of layers: how long each computes forward and backward, and what its NPUs exchange then.
//!
//! The table becomes a program for each NPU. Layers run forward one after the other, then backward: the gradient of a layer's input, then that
//! of its weights. Who exchanges what depends on the parallelism, and so does who waits: NPUs that share a layer (tensor parallel) wait for
//! each other, gradients of weights are exchanged beside what follows. Source: the loops of ASTRA-sim 1.0 and of SimAI (cef83f9), in both of
//! which times are nanoseconds.

use super::cluster::{Cluster, Groups, System};
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
    /// GPUs of the whole job and stages of its pipeline, as the header counts them.
    pub job: Option<(u64, u64)>,
}

impl LayerTable {
    /// Parts of the table and of a system that are not modelled on `npus` NPUs, in words. Switches off the system's roofline, since the
    /// table has times.
    pub fn leave_out(&self, system: &mut System, npus: u32) -> Vec<String> {
        let words = self.ignored.iter().map(|word| format!("`{word}` of the table's header"));
        let roofline =
            std::mem::take(&mut system.roofline).then(|| "the roofline of the system file, since the table has times,".to_owned());
        let npus = u64::from(npus);
        let is_other = |&(all, stages): &(u64, u64)| all != npus && npus.checked_mul(stages) != Some(all);
        let others =
            self.job.filter(is_other).map(|(all, _)| format!("`all_gpus` {all} of the table's header (the network has {npus} NPUs)"));
        words.chain(roofline).chain(others).collect()
    }
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

/// When a layer has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// On the way forward.
    Forward,
    /// On the way back, for the layer before.
    InputGradient,
    /// On the way back, for the layer itself.
    WeightGradient,
}

impl Phase {
    /// All, in the order in which tables have them.
    pub const ALL: [Self; 3] = [Self::Forward, Self::InputGradient, Self::WeightGradient];

    fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::InputGradient => "input gradient",
            Self::WeightGradient => "weight gradient",
        }
    }
}

impl Layer {
    /// What it does in a phase.
    pub fn step(&self, phase: Phase) -> Step {
        match phase {
            Phase::Forward => self.forward,
            Phase::InputGradient => self.input_gradient,
            Phase::WeightGradient => self.weight_gradient,
        }
    }
}

/// What the NPUs of a group share. Groups are numbered in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shared {
    /// Each layer: every NPU has a part of it.
    Layer,
    /// The data: every NPU has the same part of each layer.
    Data,
    /// The experts of a layer: every NPU has some of them.
    Experts,
    /// The data of experts: every NPU has the same ones.
    SameExperts,
}

impl Among {
    /// What those share who take part in an exchange of this phase.
    fn shared(self, phase: Phase) -> Shared {
        match (self, phase) {
            (Self::Usual, Phase::Forward | Phase::InputGradient) => Shared::Layer,
            (Self::Usual, Phase::WeightGradient) => Shared::Data,
            (Self::Experts, _) => Shared::Experts,
            (Self::SameExperts, _) => Shared::SameExperts,
        }
    }
}

impl Exchange {
    /// As a collective operation of all NPUs.
    fn of_all(self) -> Collective {
        Collective { operation: Some(self.operation), bytes: Some(self.bytes), dimensions: None, group: 0, priority: 0 }
    }
}

/// The numbers of groups, by what their NPUs share and the place of each group among those whose NPUs share the like.
type GroupNumbers = BTreeMap<(Shared, u32), u32>;

impl Transformer {
    /// The place of an NPU's group among those whose NPUs share the like.
    fn place(&self, npu: u32, shared: Shared) -> u32 {
        let (tensor, expert) = (self.tensor, self.expert);
        let (part, data) = (npu % tensor, npu / tensor);
        match shared {
            Shared::Layer => data,
            Shared::Data => part,
            Shared::Experts => data / expert * tensor + part,
            Shared::SameExperts => data % expert * tensor + part,
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

    /// The groups whose NPUs share one of these, by their numbers, and those numbers.
    fn groups(&self, npus: u32, used: &BTreeSet<Shared>) -> (Groups, GroupNumbers) {
        let mut members: BTreeMap<(Shared, u32), Vec<u32>> = BTreeMap::new();
        for npu in 0..npus {
            for &shared in used {
                members.entry((shared, self.place(npu, shared))).or_default().push(npu);
            }
        }
        let numbers = members.keys().copied().zip(1..).collect();
        ((1..).zip(members.into_values()).collect(), numbers)
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
                transformer.groups(npus, &self.shared())
            }
            _ => (Groups::new(), GroupNumbers::new()),
        };
        let program =
            |npu: u32| Writer { table: self, cluster, groups: &groups, numbers: &numbers, npu, nodes: Vec::new(), last: None }.write();
        let traces = (0..npus).map(program).collect();
        Ok((groups, traces))
    }

    /// What those share who exchange anything.
    fn shared(&self) -> BTreeSet<Shared> {
        let of_layer = |layer: &Layer| Phase::ALL.map(|phase| layer.step(phase).exchange.map(|exchange| exchange.among.shared(phase)));
        self.layers.iter().flat_map(of_layer).flatten().collect()
    }
}

/// What a node does.
enum Does {
    /// Computes for so many nanoseconds.
    Compute(u64),
    /// Exchanges.
    Exchange(Collective),
    /// Takes in what was exchanged, for so many nanoseconds.
    Update(u64),
    /// Waits for several nodes.
    Wait,
}

/// Writes the program of an NPU.
struct Writer<'a> {
    table: &'a LayerTable,
    cluster: &'a Cluster,
    groups: &'a Groups,
    numbers: &'a GroupNumbers,
    npu: u32,
    nodes: Vec<Node>,
    /// The node for which the next one waits.
    last: Option<u64>,
}

impl Writer<'_> {
    fn write(mut self) -> Trace {
        if self.table.parallelism == Parallelism::Micro {
            self.exchange(0, Phase::WeightGradient);
        } else {
            let count = self.table.layers.len();
            for layer in 0..count {
                self.forward(layer);
            }
            for layer in (0..count).rev() {
                self.recompute(layer);
                self.backward(layer);
            }
        }
        Trace { nodes: self.nodes, unmodelled: BTreeMap::new() }
    }

    fn forward(&mut self, layer: usize) {
        self.compute(layer, Phase::Forward);
        self.exchange_and_wait(layer, Phase::Forward);
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
                self.exchange_and_wait(layer, Phase::InputGradient);
                self.compute(layer, Phase::WeightGradient);
                self.exchange(layer, Phase::WeightGradient);
            }
            _ => {
                self.compute(layer, Phase::InputGradient);
                // Nobody is before the first layer. The exchange goes on beside the gradient of the weights.
                let exchanged = if layer > 0 { self.exchange(layer, Phase::InputGradient) } else { None };
                self.compute(layer, Phase::WeightGradient);
                self.exchange(layer, Phase::WeightGradient);
                if let Some(exchanged) = exchanged {
                    let waits_for = self.last.into_iter().chain([exchanged]).collect();
                    self.last = Some(self.node(layer, Phase::InputGradient, Does::Wait, waits_for));
                }
            }
        }
    }

    fn compute(&mut self, layer: usize, phase: Phase) {
        let ns = self.table.layers[layer].step(phase).compute_ns;
        if ns > 0 {
            self.last = Some(self.node(layer, phase, Does::Compute(ns), self.last.into_iter().collect()));
        }
    }

    fn exchange_and_wait(&mut self, layer: usize, phase: Phase) {
        self.last = self.exchange(layer, phase).or(self.last);
    }

    /// Begins an exchange after all before: the node that ends it, if there is anything to exchange.
    fn exchange(&mut self, layer: usize, phase: Phase) -> Option<u64> {
        let described = &self.table.layers[layer];
        let collective = self.collective(described.step(phase).exchange?, phase)?;
        let node = self.node(layer, phase, Does::Exchange(collective), self.last.into_iter().collect());
        let update = described.update_ns;
        Some(if update > 0 { self.node(layer, phase, Does::Update(update), [node].into()) } else { node })
    }

    /// The collective operation of this NPU, if it has partners.
    fn collective(&self, exchange: Exchange, phase: Phase) -> Option<Collective> {
        use Parallelism::{Data, DataThenModel, Micro, Model, ModelThenData, Transformer};
        let dimensions = 0..self.cluster.dimensions.len();
        match (&self.table.parallelism, Among::Usual.shared(phase)) {
            (Transformer(transformer), _) => self.collective_of_group(transformer, exchange, phase),
            (Data | Micro, Shared::Data) | (Model, Shared::Layer) => Some(exchange.of_all()),
            (Data | Micro | Model, _) => None,
            (ModelThenData, Shared::Layer) | (DataThenModel, Shared::Data) => {
                Some(Collective { dimensions: Some(dimensions.map(|dimension| dimension == 0).collect()), ..exchange.of_all() })
            }
            (ModelThenData | DataThenModel, _) => (dimensions.len() > 1)
                .then(|| Collective { dimensions: Some(dimensions.map(|dimension| dimension > 0).collect()), ..exchange.of_all() }),
        }
    }

    fn collective_of_group(&self, transformer: &Transformer, exchange: Exchange, phase: Phase) -> Option<Collective> {
        let Exchange { operation, among, bytes } = exchange;
        let shared = among.shared(phase);
        let group = self.numbers[&(shared, transformer.place(self.npu, shared))];
        let members = self.groups[&group].len() as u64;
        // What all have at the end is what each contributes, times their number.
        let bytes = if operation == Operation::AllGather { bytes.div_ceil(members) } else { bytes };
        let group = if members == u64::from(self.cluster.npus()) { 0 } else { group };
        (members > 1).then(|| Collective { bytes: Some(bytes), group, ..exchange.of_all() })
    }

    fn node(&mut self, layer: usize, phase: Phase, does: Does, waits_for: Box<[u64]>) -> u64 {
        const COMPUTES: Kind = Kind::Compute { operations: None, bytes: None };
        let (verb, kind, duration_ns, on_host) = match does {
            Does::Compute(ns) => ("computes", COMPUTES, ns, false),
            Does::Exchange(collective) => ("exchanges", Kind::Collective(Box::new(collective)), 0, false),
            // It takes nothing from computations, so it is the host's.
            Does::Update(ns) => ("updates", COMPUTES, ns, true),
            Does::Wait => ("waits", Kind::Invalid, 0, false),
        };
        let name = format!("layer {layer} {}: {} {verb}", self.table.layers[layer].name, phase.name()).into();
        let id = self.nodes.len() as u64;
        self.nodes.push(Node { id, name, kind, duration_ns, on_host, waits_for });
        id
    }
}

#[cfg(test)]
mod tests;
