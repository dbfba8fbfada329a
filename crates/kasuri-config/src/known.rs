//! Names and limits that only the program knows that reads an experiment file.

use kasuri_model::engine::Engine;

/// What only the program knows that reads an experiment file.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// Its engines: `engine` names them, and each has a section of its name. Where there are none, any name is accepted
    /// there, and the section of that name is passed on unchecked.
    pub engines: &'a [&'a dyn Engine],
    /// The engine of a file that names none.
    pub default_engine: &'a str,
    /// The names of allocators.
    pub allocators: &'a [&'a str],
    /// Bytes that tables may take: what asks for more is refused before it is made.
    pub memory_bytes: u64,
}

impl Default for Known<'_> {
    fn default() -> Self {
        let allocators = &["islip", "separable-input-first", "separable-output-first"];
        Self { engines: &[], default_engine: "", allocators, memory_bytes: u64::MAX }
    }
}

impl std::fmt::Debug for Known<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let engines: Vec<&str> = self.engine_names().collect();
        formatter.debug_struct("Known").field("engines", &engines).field("allocators", &self.allocators).finish_non_exhaustive()
    }
}

impl<'a> Known<'a> {
    /// The engine of this name.
    pub fn engine(&self, name: &str) -> Option<&'a dyn Engine> {
        self.engines.iter().copied().find(|engine| engine.name() == name)
    }

    /// The names of the engines, in their order.
    pub fn engine_names(&self) -> impl Iterator<Item = &'static str> {
        self.engines.iter().map(|engine| engine.name())
    }
}
