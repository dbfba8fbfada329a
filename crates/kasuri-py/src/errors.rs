//! Errors of the compiled part as the exceptions of `kasuri.errors`.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The description is wrong: `kasuri.ConfigError`.
pub(crate) fn config(error: impl std::fmt::Display) -> PyErr {
    exception("ConfigError", error.to_string())
}

/// An exception of `kasuri.errors` by its name.
pub(crate) fn exception(name: &str, message: String) -> PyErr {
    Python::attach(|py| {
        let class = py.import("kasuri.errors").and_then(|module| module.getattr(name));
        match class.and_then(|class| class.call1((message.as_str(),))) {
            Ok(instance) => PyErr::from_value(instance),
            // Only a broken installation lacks the class; the message must not be lost even then.
            Err(_) => PyRuntimeError::new_err(message),
        }
    })
}
