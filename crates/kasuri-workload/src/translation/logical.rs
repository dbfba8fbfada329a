//! A user's own network: what its programs see.

use kasuri_network::network::{Endpoint, Link, Network, NetworkBuilder, NetworkError};
use kasuri_network::topology::torus::Torus;
use kasuri_network::topology::{BuildContext, ChannelParameters, NoFiles, Topology, mesh::Mesh};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most logical nodes of a network: enough for any machine, and an error rather than exhausted memory beyond.
const MAX_NODES: u32 = 1 << 22;

/// A logical network, one node a router with one terminal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "topology", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LogicalNetwork {
    /// A mesh.
    Mesh {
        /// Nodes in each dimension, each at least 2.
        dimensions: Vec<u32>,
    },
    /// A torus.
    Torus {
        /// Nodes in each dimension, each at least 2.
        dimensions: Vec<u32>,
    },
    /// A hypercube.
    Hypercube {
        /// The number of dimensions: `2^dimension` nodes.
        dimension: u32,
    },
    /// A tree in breadth-first order: the children of node `i` are `arity * i + 1` and the following.
    Tree {
        /// Children of a node.
        arity: u32,
        /// All nodes.
        nodes: u32,
    },
    /// Any graph.
    Graph {
        /// All nodes.
        nodes: u32,
        /// Pairs of nodes that a link joins.
        links: Vec<[u32; 2]>,
    },
}

impl LogicalNetwork {
    /// Builds the network; its router and terminal `i` are logical node `i`.
    ///
    /// # Errors
    /// Sizes that make no network, links between nodes that are not there.
    pub fn build(&self) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        match self {
            Self::Mesh { dimensions } => Mesh { dimensions: dimensions.clone(), concentration: 1 }.build(&context),
            Self::Torus { dimensions } => Torus { dimensions: dimensions.clone(), concentration: 1 }.build(&context),
            Self::Hypercube { dimension } if (1..=22).contains(dimension) => {
                Mesh { dimensions: vec![2; *dimension as usize], concentration: 1 }.build(&context)
            }
            Self::Hypercube { dimension } => Err(NetworkError::parameter("dimension", format!("is {dimension}; it must be 1 to 22"))),
            Self::Tree { arity: 0, .. } => Err(NetworkError::parameter("arity", "is 0; a node has at least 1 child")),
            Self::Tree { arity, nodes } => {
                check_nodes(*nodes)?;
                let links: Vec<[u32; 2]> = (1..*nodes).map(|node| [(node - 1) / arity, node]).collect();
                build_graph(&format!("tree of {nodes} nodes"), *nodes, &links)
            }
            Self::Graph { nodes, links } => build_graph(&format!("graph of {nodes} nodes"), *nodes, links),
        }
    }
}

fn check_nodes(nodes: u32) -> Result<(), NetworkError> {
    if (2..=MAX_NODES).contains(&nodes) {
        return Ok(());
    }
    Err(NetworkError::parameter("nodes", format!("is {nodes}; it must be 2 to {MAX_NODES}")))
}

fn build_graph(name: &str, nodes: u32, links: &[[u32; 2]]) -> Result<Network, NetworkError> {
    check_nodes(nodes)?;
    if let Some([one, other]) = links.iter().find(|[one, other]| one == other || *one >= nodes || *other >= nodes) {
        let problem = format!("joins nodes {one} and {other}; it must join two different nodes of 0 to {}", nodes - 1);
        return Err(NetworkError::parameter("links", problem));
    }
    let mut degree = vec![0usize; nodes as usize];
    links.iter().flatten().for_each(|&node| degree[node as usize] += 1);
    let mut builder = NetworkBuilder::new(name);
    let routers = degree.iter().map(|&degree| builder.add_router(degree + 1)).collect::<Result<Vec<_>, _>>()?;
    for &router in &routers {
        builder.add_terminal(router, 0, Link::default());
    }
    let mut used = vec![0u16; nodes as usize];
    let mut port = |node: u32| {
        used[node as usize] += 1;
        (routers[node as usize], used[node as usize])
    };
    for &[one, other] in links {
        builder.add_link(port(one), port(other), Link::default());
    }
    builder.finish()
}

/// The directed links between logical nodes, each pair once, in ascending order.
pub fn edges(network: &Network) -> Vec<(u32, u32)> {
    let ends = network.router_channels().filter_map(|channel| match (network.source(channel), network.destination(channel)) {
        (Endpoint::Router(from, _), Endpoint::Router(to, _)) => Some((from.0, to.0)),
        _ => None,
    });
    let mut edges: Vec<(u32, u32)> = ends.collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges_of(network: &LogicalNetwork) -> usize {
        edges(&network.build().unwrap()).len()
    }

    /// Directed links: 2 (w - 1) h + 2 w (h - 1) of a mesh, 4 w h of a torus (2 w h where a ring has 2), d 2^d of a hypercube,
    /// 2 (n - 1) of a tree.
    #[test]
    fn the_known_networks_have_as_many_links_as_formulas_say() {
        assert_eq!(edges_of(&LogicalNetwork::Mesh { dimensions: vec![4, 3] }), 2 * (3 * 3 + 4 * 2));
        assert_eq!(edges_of(&LogicalNetwork::Torus { dimensions: vec![4, 3] }), 4 * 12);
        assert_eq!(edges_of(&LogicalNetwork::Hypercube { dimension: 5 }), 5 * 32);
        assert_eq!(edges_of(&LogicalNetwork::Tree { arity: 3, nodes: 17 }), 2 * 16);
        assert_eq!(edges_of(&LogicalNetwork::Graph { nodes: 4, links: vec![[0, 1], [2, 3], [0, 1]] }), 4);
    }

    #[test]
    fn links_to_nodes_that_are_not_there_are_refused() {
        for links in [vec![[0, 4]], vec![[1, 1]]] {
            assert!(LogicalNetwork::Graph { nodes: 4, links }.build().is_err());
        }
        assert!(LogicalNetwork::Tree { arity: 0, nodes: 4 }.build().is_err());
        assert!(LogicalNetwork::Hypercube { dimension: 0 }.build().is_err());
    }
}
