//! Guesses that stand in a file (`predictor_table`): comma-separated values with the columns `router`, `input` and `output`.
//!
//! A line says which output port of a router is guessed for an input port: the number of the router, and the numbers of two of its
//! ports, as `kasuri show` lists them. Input ports without a line have no guess. Lines that begin with `#` are comments.

use super::{Built, Fixed, Options, PredictorEntry, inputs};
use crate::id::{Port, RouterId};
use crate::network::Network;

/// Its line of the table of predictors.
pub(super) const ENTRY: PredictorEntry = PredictorEntry {
    name: super::TABLE,
    summary: "what the file predictor_table says: columns router, input, output",
    source: "any choice that is made in advance",
    takes: &["predictor_table"],
    build,
};

/// The columns of the file, in this order.
const COLUMNS: [&str; 3] = ["router", "input", "output"];

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The name of the file, for messages.
    file: String,
    /// Router, input port, output port, and the number of the line.
    lines: Vec<([u32; 3], usize)>,
}

impl Table {
    /// Reads a file.
    ///
    /// # Errors
    /// The file's name, the number of the line, and what is wrong there.
    pub fn read(file: &str, text: &str) -> Result<Self, String> {
        let mut lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let head: Vec<&str> = lines.next().map(|(_, line)| fields(line)).unwrap_or_default();
        if head != COLUMNS {
            return Err(format!("{file}: begins with `{}`; the first line must be `{}`", head.join(","), COLUMNS.join(",")));
        }
        let lines: Result<_, String> = lines.map(|(number, line)| Ok((numbers(file, number, line)?, number))).collect();
        Ok(Self { file: file.to_owned(), lines: lines? })
    }

    fn wrong(&self, line: usize, problem: &str) -> String {
        format!("{}:{line}: {problem}", self.file)
    }
}

fn fields(line: &str) -> Vec<&str> {
    line.split(',').map(str::trim).collect()
}

/// The three numbers of a line.
fn numbers(file: &str, line_number: usize, line: &str) -> Result<[u32; 3], String> {
    let fields = fields(line);
    if fields.len() != COLUMNS.len() {
        return Err(format!("{file}:{line_number}: `{line}` has {} values; there must be three: {}", fields.len(), COLUMNS.join(", ")));
    }
    let mut numbers = [0; 3];
    for ((number, field), column) in numbers.iter_mut().zip(fields).zip(COLUMNS) {
        *number = field.parse().map_err(|_| format!("{file}:{line_number}: {column} is `{field}`; it must be a whole number"))?;
    }
    Ok(numbers)
}

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
