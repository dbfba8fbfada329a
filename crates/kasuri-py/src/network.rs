//! A network as columns.

use crate::text::Sources;
use crate::{errors, text};
use kasuri_network::id::{ChannelId, RouterId};
use kasuri_network::network::metrics::{Basis, Metrics};
use kasuri_network::network::{Endpoint, Network};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;

/// Builds the network of an experiment's `[network]` table.
///
/// Parameters: the table as JSON, the folder for relative paths, and the texts of files that are not on the disk. Returns a dictionary:
/// `name`, `terminals`, `routers`; per router `ports`; per channel `source_router`, `source_port`, `source_terminal`, the same for
/// `destination`, `latency`, `period` (-1 at ends that are not a router or not a terminal); `labels`, arrays by name; `router_names` and
/// `terminal_names`, lists, or `None` if the network has no names.
#[pyfunction]
pub(crate) fn network<'py>(py: Python<'py>, table: &str, folder: &str, texts: BTreeMap<String, String>) -> PyResult<Bound<'py, PyDict>> {
    columns(py, &build(py, table, folder, texts)?)
}

/// The same network as the text of an edge list, with every port, latency and period.
#[pyfunction]
pub(crate) fn edge_list(py: Python<'_>, table: &str, folder: &str, texts: BTreeMap<String, String>) -> PyResult<String> {
    let network = build(py, table, folder, texts)?;
    if network.further_home_count() > 0 {
        return Err(errors::config(
            "an edge list has one link for each terminal, but terminals of this network have several ports; use to_json",
        ));
    }
    Ok(py.detach(|| kasuri_formats::edge_list::write(&network)))
}

/// The same network as JSON text, with labels and names.
#[pyfunction]
pub(crate) fn network_json(py: Python<'_>, table: &str, folder: &str, texts: BTreeMap<String, String>) -> PyResult<String> {
    let network = build(py, table, folder, texts)?;
    Ok(py.detach(|| kasuri_formats::network_json::write(&network)))
}

/// Counts, distances and bisection as JSON text.
#[pyfunction]
pub(crate) fn metrics(py: Python<'_>, table: &str, folder: &str, texts: BTreeMap<String, String>) -> PyResult<String> {
    let network = build(py, table, folder, texts)?;
    let metrics = py.detach(|| Metrics::of(&network));
    let distances = &metrics.distances;
    let connected = distances.unreachable.is_none();
    let answer = serde_json::json!({
        "terminals": metrics.terminals,
        "routers": metrics.routers,
        "radix": metrics.radix,
        "router_channels": metrics.router_channels,
        "links": metrics.links,
        "diameter": connected.then_some(distances.diameter),
        "average_distance": connected.then_some(distances.average),
        "disconnected": distances.unreachable.map(|(from, to)| [from, to].map(|terminal| network.terminal_names().of(terminal.0))),
        "bisection_channels": metrics.bisection.map(|cut| cut.channels),
        "bisection_is_exact": metrics.bisection.map(|cut| matches!(cut.basis, Basis::ClosedForm(_))),
    });
    Ok(answer.to_string())
}

fn build(py: Python<'_>, table: &str, folder: &str, texts: BTreeMap<String, String>) -> PyResult<Network> {
    let document = text::document_of_section("network", table)?;
    let point = text::only_point(&document)?;
    py.detach(|| document.network_of_run(&point, &Sources::new(folder, texts))).map_err(errors::config)
}

fn columns<'py>(py: Python<'py>, network: &Network) -> PyResult<Bound<'py, PyDict>> {
    let all = || (0..network.channel_count()).map(ChannelId);
    let answer = PyDict::new(py);
    answer.set_item("name", network.name())?;
    answer.set_item("terminals", network.terminal_count())?;
    answer.set_item("routers", network.router_count())?;
    let ports: Vec<i64> = (0..network.router_count()).map(|router| i64::from(network.port_count(RouterId(router)))).collect();
    answer.set_item("ports", ports.into_pyarray(py))?;
    type Side = fn(&Network, ChannelId) -> Endpoint;
    for (side, end) in [("source", Network::source as Side), ("destination", Network::destination as Side)] {
        for (part, number) in [("router", router as fn(Endpoint) -> i64), ("port", port), ("terminal", terminal)] {
            let column: Vec<i64> = all().map(|channel| number(end(network, channel))).collect();
            answer.set_item(format!("{side}_{part}"), column.into_pyarray(py))?;
        }
    }
    let latency: Vec<i64> = all().map(|channel| i64::from(network.link(channel).latency)).collect();
    let period: Vec<i64> = all().map(|channel| i64::from(network.link(channel).period)).collect();
    answer.set_item("latency", latency.into_pyarray(py))?;
    answer.set_item("period", period.into_pyarray(py))?;
    let labels = PyDict::new(py);
    for name in network.labels().router_names() {
        let column: Vec<i64> = network.labels().router(name).unwrap_or_default().iter().copied().map(i64::from).collect();
        labels.set_item(name, column.into_pyarray(py))?;
    }
    answer.set_item("labels", labels)?;
    answer.set_item("router_names", network.router_names().all())?;
    answer.set_item("terminal_names", network.terminal_names().all())?;
    Ok(answer)
}

fn router(end: Endpoint) -> i64 {
    match end {
        Endpoint::Router(router, _) => i64::from(router.0),
        Endpoint::Terminal(_) => -1,
    }
}

fn port(end: Endpoint) -> i64 {
    match end {
        Endpoint::Router(_, port) => i64::from(port),
        Endpoint::Terminal(_) => -1,
    }
}

fn terminal(end: Endpoint) -> i64 {
    match end {
        Endpoint::Router(..) => -1,
        Endpoint::Terminal(terminal) => i64::from(terminal.0),
    }
}
