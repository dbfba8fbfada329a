//! Putting the values of a sweep into the file's.

use super::family::Families;
use super::setting::Setting;
use crate::path::{assign, at_mut};
use toml::{Table, Value};

/// Puts settings into a table; a table of the file that gets another member of its family loses the keys of the old one.
///
/// # Errors
/// The place of a key that lies under a value which is no table, and a sentence.
pub(super) fn apply(table: &mut Table, settings: &[&Setting], families: &Families) -> Result<(), (String, String)> {
    families.leave(table, settings);
    for setting in settings {
        make_way(table, setting);
        assign(table, &setting.key, setting.value.clone()).map_err(|message| (setting.place.to_string(), message))?;
    }
    Ok(())
}

/// A table that is merged over a value which is none takes its place: `{ name = "islip" }` over `"pim"`.
fn make_way(table: &mut Table, setting: &Setting) {
    let key = &setting.key;
    for (dot, _) in key.match_indices('.').filter(|&(dot, _)| dot >= setting.written) {
        let next = key[dot + 1..].split('.').next().unwrap_or_default();
        match at_mut(table, &key[..dot]) {
            Some(Value::Table(_)) | None => {}
            Some(Value::Array(_)) if next.parse::<usize>().is_ok() => {}
            Some(other) => *other = Value::Table(Table::new()),
        }
    }
}
