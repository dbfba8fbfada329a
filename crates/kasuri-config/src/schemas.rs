//! The schemas of sections and members, made once for all points of an experiment: making one takes longer than checking by it.

use super::study::shape_keys;
use schemars::Schema;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A schema, and the keys of the structure that it describes.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) schema: Schema,
    pub(super) keys: Vec<String>,
}

/// Schemas by the function that makes them.
#[derive(Debug, Default)]
pub(super) struct Schemas(RefCell<BTreeMap<usize, Rc<Known>>>);

impl Schemas {
    /// The schema that this function makes.
    pub(super) fn get(&self, make: fn() -> Schema) -> Rc<Known> {
        // Functions that the compiler has found to be equal share an address; they make equal schemas.
        let known = self.0.borrow().get(&(make as usize)).cloned();
        known.unwrap_or_else(|| {
            let schema = make();
            let keys = shape_keys(&schema);
            let known = Rc::new(Known { schema, keys });
            self.0.borrow_mut().insert(make as usize, Rc::clone(&known));
            known
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::ALL_TOPOLOGIES;

    #[test]
    fn a_schema_is_made_once_and_is_that_of_its_member() {
        let schemas = Schemas::default();
        for _ in 0..2 {
            for entry in ALL_TOPOLOGIES {
                let known = schemas.get(entry.schema);
                assert_eq!((&known.schema, &known.keys), (&(entry.schema)(), &entry.keys()));
                assert!(Rc::ptr_eq(&known, &schemas.get(entry.schema)));
            }
        }
    }
}
