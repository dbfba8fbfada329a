//! The Python extension `kasuri._kasuri`: thin functions that take text and give back text and arrays. No logic lives here.

mod errors;
mod network;
mod run;
mod text;

use pyo3::prelude::*;

/// Functions of the compiled part; `python/kasuri` wraps them and documents what users see.
#[pymodule]
mod _kasuri {
    use super::*;

    #[pymodule_export]
    use super::network::{edge_list, metrics, network, network_json};
    #[pymodule_export]
    use super::run::{Job, run_table, run_text};
    #[pymodule_export]
    use super::text::{damage, planned_runs, schema};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__commit__", kasuri::version::commit())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
