//! Names, addresses and rates of a fabric, in columns: the part of a fabric that its network does not hold.

use kasuri_network::id::ChannelId;
use kasuri_network::network::Network;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a network does not hold of a fabric. Many fields, because each is a column of its own in the network's file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Details {
    /// The GUID of each switch, `0x0002c90000001000`; of each terminal that of its port, or its node's where the port's is not told.
    pub router_guids: Vec<String>,
    /// As [`Self::router_guids`].
    pub terminal_guids: Vec<String>,
    /// The LID of each switch; 0 is none.
    pub router_lids: Vec<u32>,
    /// The first LID of each terminal; 0 is none.
    pub terminal_lids: Vec<u32>,
    /// Each terminal answers to 2^lmc LIDs.
    pub terminal_lmcs: Vec<u8>,
    /// The host of each terminal.
    pub hosts: Vec<String>,
    /// Is a terminal a host's adapter, and not a switch's own (SHARP) or a router's?
    pub is_host: Vec<bool>,
    /// Is a router a switch, and not itself a host, a GPU, a chip or a CPU? Empty where all are switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub is_switch: Vec<bool>,
    /// The rates that occur, as `ibnetdiscover` names them.
    pub rates: Vec<String>,
    /// Their payloads in Gbit/s.
    pub gbit_per_second: Vec<f64>,
    /// Which of the rates each channel has.
    pub channel_rates: Vec<u8>,
    /// Gbit/s of a channel that carries a flit in each cycle: what `[network] channel_gbit_per_second` has to be. 0 where rates are not
    /// known.
    pub channel_gbit_per_second: f64,
    /// The flit length in bytes at which latencies in seconds became cycles, if the file has such latencies: the value that
    /// `[network] flit_bytes` has to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_flit_bytes: Option<u32>,
    /// What was found that is worth a look.
    pub notes: Vec<String>,
}

impl Details {
    /// Of a network whose terminals are all hosts', and which has no addresses.
    pub fn without_addresses(network: &Network) -> Self {
        let (routers, terminals) = (network.router_count() as usize, network.terminal_count() as usize);
        let guids = |count| vec![format!("0x{:016x}", 0); count];
        Self {
            router_guids: guids(routers),
            terminal_guids: guids(terminals),
            router_lids: vec![0; routers],
            terminal_lids: vec![0; terminals],
            terminal_lmcs: vec![0; terminals],
            is_host: vec![true; terminals],
            ..Self::default()
        }
    }

    /// Of a network of which nothing more is known: terminals are hosts of their names, all channels of one rate.
    pub fn unknown(network: &Network) -> Self {
        let hosts = (0..network.terminal_count()).map(|terminal| network.terminal_names().of(terminal)).collect();
        let periods: BTreeSet<u32> = (0..network.channel_count()).map(|channel| network.link(ChannelId(channel)).period).collect();
        let place = |channel| periods.range(..network.link(ChannelId(channel)).period).count() as u8;
        let fits = periods.len() <= usize::from(u8::MAX);
        Self {
            hosts,
            rates: if fits { periods.iter().map(|period| format!("1 flit in {period} cycles")).collect() } else { Vec::new() },
            channel_rates: if fits { (0..network.channel_count()).map(place).collect() } else { Vec::new() },
            ..Self::without_addresses(network)
        }
    }

    /// Refuses columns that are not those of the network.
    pub(crate) fn check(&self, network: &Network) -> Result<(), String> {
        let (routers, terminals) = (network.router_count() as usize, network.terminal_count() as usize);
        let columns = [
            ("router_guids", self.router_guids.len(), routers),
            ("router_lids", self.router_lids.len(), routers),
            ("terminal_guids", self.terminal_guids.len(), terminals),
            ("terminal_lids", self.terminal_lids.len(), terminals),
            ("terminal_lmcs", self.terminal_lmcs.len(), terminals),
            ("hosts", self.hosts.len(), terminals),
            ("is_host", self.is_host.len(), terminals),
            // Empty where nothing is known of them.
            ("is_switch", self.is_switch.len(), if self.is_switch.is_empty() { 0 } else { routers }),
            ("channel_rates", self.channel_rates.len(), if self.rates.is_empty() { 0 } else { network.channel_count() as usize }),
            ("gbit_per_second", self.gbit_per_second.len(), if self.gbit_per_second.is_empty() { 0 } else { self.rates.len() }),
        ];
        if let Some((column, length, count)) = columns.into_iter().find(|(_, length, count)| length != count) {
            return Err(format!("`fabric.{column}` has {length} entries; {count} are needed"));
        }
        if self.channel_rates.iter().any(|&rate| usize::from(rate) >= self.rates.len()) {
            return Err("`fabric.channel_rates` names a rate that `rates` does not have".to_owned());
        }
        if self.gbit_per_second.iter().any(|rate| !(*rate > 0.0 && rate.is_finite())) {
            return Err("`fabric.gbit_per_second` has a rate that is not above 0".to_owned());
        }
        Ok(())
    }
}
