//! Communicator groups: `{"1": [0, 1, 2, 3], …}`.

use super::{line_of, object, shown};
use crate::error::FormatError;
use kasuri_workload::execution::cluster::Groups;
use serde_json::Value;
use std::collections::BTreeSet;

/// Reads the groups of a cluster with so many NPUs. The order of a list is that of the ring.
///
/// # Errors
/// A number that is none or 0, an NPU that does not exist or is twice in a group, an empty group.
pub fn groups(name: &str, bytes: &[u8], npus: u32) -> Result<Groups, FormatError> {
    let mut groups = Groups::new();
    for (key, value) in object(name, bytes, "a file of communicator groups")? {
        let error = |problem: String| FormatError::new(name, line_of(bytes, &key), format!("group `{key}` {problem}"));
        let number: u32 = key.parse().map_err(|_| error("has no number for a name; write \"1\", \"2\", …".to_owned()))?;
        if number == 0 {
            return Err(error("must not be defined: 0 means all NPUs; number the groups from 1".to_owned()));
        }
        let Value::Array(items) = &value else { return Err(error(format!("is {}; it must be a list of NPUs", shown(&value)))) };
        let mut members = Vec::with_capacity(items.len());
        let mut seen = BTreeSet::new();
        for item in items {
            let npu = item.as_u64().and_then(|npu| u32::try_from(npu).ok()).filter(|&npu| npu < npus);
            let npu = npu.ok_or_else(|| error(format!("has the member {}; the NPUs are 0 to {}", shown(item), npus - 1)))?;
            if !seen.insert(npu) {
                return Err(error(format!("has NPU {npu} twice")));
            }
            members.push(npu);
        }
        if members.is_empty() {
            return Err(error("is empty; it must have at least one NPU".to_owned()));
        }
        if groups.insert(number, members).is_some() {
            return Err(error("is defined twice".to_owned()));
        }
    }
    Ok(groups)
}
