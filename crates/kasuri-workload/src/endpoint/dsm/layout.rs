//! Which terminals are the interfaces of a node.

use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;
use schemars::JsonSchema;
use serde::Deserialize;

/// `endpoint.interfaces_at`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InterfacesAt {
    /// At one router: the terminals there in the order of their numbers.
    #[default]
    Router,
    /// At neighbouring routers: the first at the node's own router, the next at the router of the next number, round to the first.
    NextRouters,
}

/// The nodes of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// By terminal.
    pub node_of: Vec<u32>,
    /// By node: its terminals.
    pub interfaces: Vec<Vec<TerminalId>>,
}

impl Layout {
    /// Nodes with so many interfaces.
    ///
    /// # Errors
    /// The routers have not as many terminals as such nodes need.
    pub fn new(network: &Network, interfaces: u32, at: InterfacesAt) -> Result<Self, String> {
        let terminals = network.terminal_count();
        let router = |terminal: u32| network.injection_port(TerminalId(terminal)).0;
        if !terminals.is_multiple_of(interfaces) {
            return Err(format!("is {interfaces}; the network's {terminals} terminals are no multiple of it"));
        }
        let nodes = terminals / interfaces;
        let mut node_of: Vec<u32> = (0..terminals).map(|terminal| terminal / interfaces).collect();
        if let Some(node) =
            (0..nodes).find(|node| (1..interfaces).any(|next| router(node * interfaces) != router(node * interfaces + next)))
        {
            return Err(format!(
                "is {interfaces}, but terminals {} to {} stand at different routers; give each router a multiple of {interfaces} terminals \
                 (network.concentration)",
                node * interfaces,
                (node + 1) * interfaces - 1
            ));
        }
        if at == InterfacesAt::NextRouters {
            if nodes != network.router_count() {
                return Err(format!("is {interfaces}; with interfaces_at = \"next-routers\" each router needs just as many terminals"));
            }
            node_of = (0..terminals).map(|terminal| (terminal / interfaces + nodes - terminal % interfaces % nodes) % nodes).collect();
        }
        let mut of_nodes = vec![Vec::new(); nodes as usize];
        for place in 0..interfaces {
            (0..nodes).map(|router| router * interfaces + place).for_each(|terminal| {
                of_nodes[node_of[terminal as usize] as usize].push(TerminalId(terminal));
            });
        }
        Ok(Self { node_of, interfaces: of_nodes })
    }

    /// How many there are.
    pub fn nodes(&self) -> u32 {
        self.interfaces.len() as u32
    }

    /// The node of a terminal.
    pub fn node(&self, terminal: TerminalId) -> u32 {
        self.node_of[terminal.index()]
    }
}
