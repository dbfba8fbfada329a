//! Guesses that stand in a file (`predictor_table`): comma-separated values with the columns `router`, `input` and `output`.
//!
//! A line says which output port of a router is guessed for an input port: the number of the router, and the numbers of two of its
//! ports, as `kasuri show` lists them. Input ports without a line have no guess. Lines that begin with `#` are comments.

/// The columns of the file, in this order.
const COLUMNS: [&str; 3] = ["router", "input", "output"];

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The name of the file, for messages.
    file: String,
    /// Router, input port, output port, and the number of the line.
    pub(super) lines: Vec<([u32; 3], usize)>,
}

impl Table {
    /// Reads a file.
    ///
    /// # Errors
    /// The file's name, the number of the line, and what is wrong there.
    pub fn read(file: &str, text: &str) -> Result<Self, String> {
        let mut lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let head: Vec<&str> = lines.next().map(|(_, line)| fields(line)).unwrap_or_default();
        if head != COLUMNS {
            return Err(format!("{file}: begins with `{}`; the first line must be `{}`", head.join(","), COLUMNS.join(",")));
        }
        let lines: Result<_, String> = lines.map(|(number, line)| Ok((numbers(file, number, line)?, number))).collect();
        Ok(Self { file: file.to_owned(), lines: lines? })
    }

    pub(super) fn wrong(&self, line: usize, problem: &str) -> String {
        format!("{}:{line}: {problem}", self.file)
    }
}

fn fields(line: &str) -> Vec<&str> {
    line.split(',').map(str::trim).collect()
}

/// The three numbers of a line.
fn numbers(file: &str, line_number: usize, line: &str) -> Result<[u32; 3], String> {
    let fields = fields(line);
    if fields.len() != COLUMNS.len() {
        return Err(format!("{file}:{line_number}: `{line}` has {} values; there must be three: {}", fields.len(), COLUMNS.join(", ")));
    }
    let mut numbers = [0; 3];
    for ((number, field), column) in numbers.iter_mut().zip(fields).zip(COLUMNS) {
        *number = field.parse().map_err(|_| format!("{file}:{line_number}: {column} is `{field}`; it must be a whole number"))?;
    }
    Ok(numbers)
}
