//! The schemas of sections and members, made once for all points of an experiment, and only where one is asked for: making one takes longer than
//! checking by it.

use schemars::Schema;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Schemas by the function that makes them.
#[derive(Debug, Default)]
pub(super) struct Schemas(RefCell<BTreeMap<usize, Rc<Schema>>>);

impl Schemas {
    /// The schema that this function makes.
    pub(super) fn get(&self, make: fn() -> Schema) -> Rc<Schema> {
        // Functions that the compiler has found to be equal share an address; they make equal schemas.
        let known = self.0.borrow().get(&(make as usize)).cloned();
        known.unwrap_or_else(|| {
            let schema = Rc::new(make());
            self.0.borrow_mut().insert(make as usize, Rc::clone(&schema));
            schema
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
                let schema = schemas.get(entry.schema);
                assert_eq!(*schema, (entry.schema)());
                assert!(Rc::ptr_eq(&schema, &schemas.get(entry.schema)));
            }
        }
    }
}
