//! What tables of routings take, against what is said before they are made.

use crate::common::{example, networks, routing_variants};
use kasuri_network::routing::ROUTINGS;

/// Bytes of small lists beside a table.
const BESIDE: u64 = 1 << 16;

/// No routing takes more for its tables, kept or while they are made, than it says beforehand that it may.
#[test]
fn tables_take_no_more_than_they_may() {
    let mut with_tables = 0;
    for network in networks() {
        for (name, parameters) in routing_variants() {
            let entry = ROUTINGS.iter().find(|entry| entry.name == name).expect("a routing of the table");
            let algorithm = (entry.parse)(example(parameters)).expect("parameters of the routing");
            let Ok(routing) = algorithm.compile(&network) else { continue };
            let (kept, making, most) =
                (routing.facts().table_bytes, routing.facts().build_peak_bytes, algorithm.most_table_bytes(&network));
            assert!(kept <= making && making <= most + BESIDE, "{name} {parameters} on {}: {kept}, {making}, {most}", network.name());
            with_tables += u32::from(most > 0);
        }
    }
    assert!(with_tables > 100, "{with_tables} tables");
}
