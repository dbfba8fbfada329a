//! Families of interchangeable parts, each a table written out by hand.
//!
//! A member of a family (a topology, a routing, a pattern, …) is a parameter structure in a file of its own that implements
//! [`Member`] and the family's trait. One line in the family's table makes it known to the experiment file, to
//! `kasuri list`, to the JSON Schema, to the reference pages and to the tests that run over the whole family.

use crate::fields::fields_of;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;

/// What each member of a family says of itself.
pub trait Member: DeserializeOwned + JsonSchema {
    /// The name in the experiment file.
    const NAME: &'static str;
    /// One line for `kasuri list`.
    const SUMMARY: &'static str;
    /// Where the definition stands: a paper and section, a book and chapter, or a formula.
    const SOURCE: &'static str;
    /// A valid set of parameters for the tests that run over the whole family and for the reference pages, as TOML.
    const EXAMPLE: &'static str;
    /// The key whose value names another member of the family, if there is one: that member's keys stand beside this one's.
    const WRAPS: Option<&'static str> = None;

    /// The names of its parameters.
    fn keys() -> &'static [&'static str] {
        fields_of::<Self>()
    }
}

/// A line of a family's table. `F` is the family's trait object.
pub struct Entry<F: ?Sized> {
    /// The name in the experiment file.
    pub name: &'static str,
    /// One line for `kasuri list`.
    pub summary: &'static str,
    /// Where the definition stands.
    pub source: &'static str,
    /// A valid set of parameters, as TOML.
    pub example: &'static str,
    /// The key whose value names another member of the family, whose keys stand beside this one's.
    pub wraps: Option<&'static str>,
    /// The names of the parameters, without the time that the schema takes.
    pub keys: fn() -> &'static [&'static str],
    /// The parameters: names, types, defaults, descriptions.
    pub schema: fn() -> Schema,
    /// Reads the parameters. The table holds only this member's own keys; unknown keys and wrong types are errors.
    pub parse: fn(toml::Table) -> Result<Box<F>, toml::de::Error>,
}

impl<F: ?Sized> Clone for Entry<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: ?Sized> Copy for Entry<F> {}

impl<F: ?Sized> std::fmt::Debug for Entry<F> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<F: ?Sized> Entry<F> {
    /// The names of the parameters that this member declares.
    pub fn keys(&self) -> &'static [&'static str] {
        (self.keys)()
    }
}

/// Finds a member by its name.
pub fn find<'a, F: ?Sized>(table: &'a [Entry<F>], name: &str) -> Option<&'a Entry<F>> {
    table.iter().find(|entry| entry.name == name)
}

/// Two parts of a family's table, one after the other.
pub const fn joined<F: ?Sized, const COUNT: usize>(first: &[Entry<F>], second: &[Entry<F>]) -> [Entry<F>; COUNT] {
    assert!(first.len() + second.len() == COUNT);
    let mut all = [first[0]; COUNT];
    let mut place = 1;
    while place < COUNT {
        all[place] = if place < first.len() { first[place] } else { second[place - first.len()] };
        place += 1;
    }
    all
}

/// Writes a family's table: `registry!(pub TOPOLOGIES: dyn Topology = [mesh::Mesh, torus::Torus]);`
///
/// A crate above adds its own members to those of a table: `registry!(pub ALL_TOPOLOGIES: dyn Topology = [..TOPOLOGIES, file::File]);`
#[macro_export]
macro_rules! registry {
    ($(#[$doc:meta])* pub $table:ident: dyn $family:path = [..$first:path, $($member:ty),* $(,)?]) => {
        $(#[$doc])*
        pub static $table: &[$crate::registry::Entry<dyn $family>] = {
            $crate::registry!(pub OWN: dyn $family = [$($member),*]);
            &$crate::registry::joined::<dyn $family, { $first.len() + OWN.len() }>($first, OWN)
        };
    };
    ($(#[$doc:meta])* pub $table:ident: dyn $family:path = [$($member:ty),* $(,)?]) => {
        $(#[$doc])*
        pub static $table: &[$crate::registry::Entry<dyn $family>] = &[$($crate::registry::Entry {
            name: <$member as $crate::registry::Member>::NAME,
            summary: <$member as $crate::registry::Member>::SUMMARY,
            source: <$member as $crate::registry::Member>::SOURCE,
            example: <$member as $crate::registry::Member>::EXAMPLE,
            wraps: <$member as $crate::registry::Member>::WRAPS,
            keys: <$member as $crate::registry::Member>::keys,
            schema: || schemars::schema_for!($member),
            parse: |table| table.try_into::<$member>().map(|member| Box::new(member) as Box<dyn $family>),
        }),*];
    };
}
