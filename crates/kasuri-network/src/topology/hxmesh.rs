//! HammingMesh: boards of accelerators in a mesh, joined by switches along rows and columns.

use super::contract::{BuildContext, Topology};
use super::sizes;
use crate::id::{Port, RouterId};
use crate::network::{Network, NetworkBuilder, NetworkError};
use crate::registry::Member;
use schemars::JsonSchema;
use serde::Deserialize;

/// HxMesh(a, b; x, y): boards of `a` columns and `b` rows of accelerators in a mesh, `x` boards in a row and `y` in a column. The west and east
/// edges of an accelerator row meet in a switch of that row, the south and north edges of a column in a switch of that column.
///
/// The accelerator in column C and row R of the whole is router R a x + C with one terminal; ports 0 east, 1 west, 2 north (row + 1), 3 south,
/// 4 the terminal. Behind the N accelerators follow the row switches, N + R, port 2 board = the board's west end, 2 board + 1 its east end, and
/// the column switches, N + b y + C, port 2 board = the south end, 2 board + 1 the north end.
///
/// With `channel_latency` a list of three numbers they are those of the links on boards, to row switches and to column switches.
///
/// Labels: routers `role` (0 accelerator, 1 row switch, 2 column switch), `coordinate.0` (column), `coordinate.1` (row); switches stand beyond
/// the boards, those of rows in column a x and those of columns in row b y. Attributes `hxmesh` = [a, b, x, y], `terminal_digits`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HxMesh {
    /// Columns of accelerators on a board.
    pub a: u32,
    /// Rows of accelerators on a board.
    pub b: u32,
    /// Boards in a row.
    pub x: u32,
    /// Boards in a column.
    pub y: u32,
}

impl Member for HxMesh {
    const NAME: &'static str = "hxmesh";
    const SUMMARY: &'static str = "HammingMesh: boards of accelerators in a mesh, rows and columns of boards by switches";
    const SOURCE: &'static str = "Hoefler et al., HammingMesh: A Network Topology for Large-Scale Deep Learning, SC22, section III";
    const EXAMPLE: &'static str = "a = 2\nb = 3\nx = 2\ny = 2";
}

impl Topology for HxMesh {
    fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let (columns, rows) = self.check()?;
        context.channels.check(3)?;
        let Self { a, b, x, y } = *self;
        let accelerators = columns * rows;
        let mut builder = NetworkBuilder::new(format!("hxmesh ({a}, {b}; {x}, {y})"));
        let kinds = [(accelerators, 5), (rows, 2 * x), (columns, 2 * y)];
        for (count, ports) in kinds {
            for _ in 0..count {
                builder.add_router(ports as usize)?;
            }
        }
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
            let here = row * columns + column;
            let at = |port: Port| (RouterId(here), port);
            let (row_switch, column_switch) = (RouterId(accelerators + row), RouterId(accelerators + rows + column));
            let (in_row, in_column) = (2 * (column / a), 2 * (row / b));
            if column % a + 1 < a {
                builder.add_link(at(0), (RouterId(here + 1), 1), context.channels.link(0));
            } else {
                builder.add_link(at(0), (row_switch, in_row as Port + 1), context.channels.link(1));
            }
            if column % a == 0 {
                builder.add_link(at(1), (row_switch, in_row as Port), context.channels.link(1));
            }
            if row % b + 1 < b {
                builder.add_link(at(2), (RouterId(here + columns), 3), context.channels.link(0));
            } else {
                builder.add_link(at(2), (column_switch, in_column as Port + 1), context.channels.link(2));
            }
            if row % b == 0 {
                builder.add_link(at(3), (column_switch, in_column as Port), context.channels.link(2));
            }
            builder.add_terminal(RouterId(here), 4, context.channels.terminal_link());
        }
        let all = 0..accelerators + rows + columns;
        let place = |router: u32| match router.checked_sub(accelerators) {
            None => (0, router % columns, router / columns),
            Some(row) if row < rows => (1, columns, row),
            Some(switch) => (2, switch - rows, rows),
        };
        builder.label_routers("role", all.clone().map(|router| place(router).0).collect());
        builder.label_routers("coordinate.0", all.clone().map(|router| place(router).1).collect());
        builder.label_routers("coordinate.1", all.map(|router| place(router).2).collect());
        builder.set_attribute("hxmesh", vec![a, b, x, y]);
        let digits: Vec<u32> = [columns, rows].into_iter().filter(|&radix| radix > 1).collect();
        builder.set_attribute("terminal_digits", if digits.is_empty() { vec![1] } else { digits });
        builder.finish()
    }
}

impl HxMesh {
    /// Columns and rows of accelerators.
    fn check(&self) -> Result<(u32, u32), NetworkError> {
        for (key, number) in [("a", self.a), ("b", self.b), ("x", self.x), ("y", self.y)] {
            sizes::positive(key, number)?;
        }
        let columns = sizes::product("columns", &[self.a, self.x])?;
        let rows = sizes::product("rows", &[self.b, self.y])?;
        sizes::product("accelerators", &[columns, rows])?;
        Ok((columns, rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::metrics::Summary;
    use crate::topology::{ChannelParameters, NoFiles};

    fn build(a: u32, b: u32, x: u32, y: u32) -> Result<Network, NetworkError> {
        let context = BuildContext { channels: &ChannelParameters::default(), files: &NoFiles, structure_seed: 0 };
        HxMesh { a, b, x, y }.build(&context)
    }

    /// Links: x y (b (a - 1) + a (b - 1)) on boards, 2 x b y to row switches, 2 y a x to column switches; diameter
    /// 2 ((a - 1) div 2 + 1) + 2 ((b - 1) div 2 + 1) for x, y >= 2.
    #[test]
    fn counts_and_diameter_follow_the_closed_forms() {
        for (a, b, x, y) in [(1, 1, 3, 2), (2, 2, 2, 2), (4, 4, 2, 2), (2, 3, 4, 3), (5, 1, 2, 3)] {
            let summary = Summary::of(&build(a, b, x, y).unwrap());
            assert_eq!(summary.terminals, a * b * x * y);
            assert_eq!(summary.routers, a * b * x * y + b * y + a * x);
            assert_eq!(summary.links, u64::from(x * y * (b * (a - 1) + a * (b - 1)) + 2 * x * b * y + 2 * y * a * x));
            assert_eq!(summary.diameter_terminals, Some(2 * ((a - 1) / 2 + 1) + 2 * ((b - 1) / 2 + 1)));
        }
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (shape, key) in [([0, 1, 1, 1], "a"), ([1, 0, 1, 1], "b"), ([1, 1, 0, 1], "x"), ([1, 1, 1, 0], "y")] {
            let [a, b, x, y] = shape;
            assert!(matches!(build(a, b, x, y), Err(NetworkError::Parameter { key: found, .. }) if found == key));
        }
        for [a, b, x, y] in [[u32::MAX, 1, u32::MAX, 1], [1 << 14, 1 << 14, 1, 1], [1, 1, 300, 1]] {
            assert!(matches!(build(a, b, x, y), Err(NetworkError::TooLarge(_))));
        }
    }
}
