//! Guesses that a file gives (`predictor_table`).

use super::contract::{Built, Fixed, PredictorEntry, inputs};
use super::options::Options;
use crate::id::{Port, RouterId};
use crate::network::Network;

/// Its line of the table of predictors.
pub(super) const ENTRY: PredictorEntry = PredictorEntry {
    name: super::contract::TABLE,
    summary: "what the file predictor_table says: columns router, input, output",
    source: "any choice that is made in advance",
    takes: &["predictor_table"],
    build,
};

fn build(network: &Network, options: &Options) -> Built {
    let Some(table) = &options.table else { return Err("it needs a file: predictor_table".to_owned()) };
    let mut guesses: Vec<Option<Port>> = vec![None; inputs(network)];
    for &([router, input, output], line) in &table.lines {
        if router >= network.router_count() {
            let problem = format!("there is no router {router}; there are 0 to {}", network.router_count() - 1);
            return Err(table.wrong(line, &problem));
        }
        let (router, ports) = (RouterId(router), network.port_count(RouterId(router)));
        let has = |port: u32, channel: Option<_>| port < ports && channel.is_some();
        if !has(input, (input < ports).then(|| network.input_channel(router, input as Port)).flatten()) {
            return Err(table.wrong(line, &format!("router {} has no input port {input}; it has {ports} ports", router.0)));
        }
        if !has(output, (output < ports).then(|| network.output_channel(router, output as Port)).flatten()) {
            return Err(table.wrong(line, &format!("router {} has no output port {output}; it has {ports} ports", router.0)));
        }
        if guesses[network.port_index(router, input as Port)].replace(output as Port).is_some() {
            return Err(table.wrong(line, &format!("router {} has a guess for input port {input} already", router.0)));
        }
    }
    Ok(Box::new(Fixed(guesses)))
}
