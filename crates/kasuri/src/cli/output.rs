//! Tables for people.

use comfy_table::{CellAlignment, Table, presets};

/// A table without frames: columns two spaces apart, the heading in capitals' stead over a rule; `right` aligns numbers.
pub(super) fn table(heading: &[&str], rows: Vec<Vec<String>>, right: &[bool]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(heading.to_vec());
    for row in rows {
        table.add_row(row);
    }
    for (number, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if right.get(number) == Some(&true) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}
