//! Traffic from files: permutations and matrices.
//!
//! In both, `#` starts a comment, empty lines do not count, and numbers are separated by blanks or commas.

use super::{FormatError, meaningful_lines};

/// Reads a permutation of `terminals` terminals: one destination per line for terminals 0, 1, …; or `source destination` pairs,
/// where a terminal that no line names sends nothing. The answer has the destination of each terminal.
///
/// # Errors
/// A line of another form, a terminal outside `0..terminals`, a source or a destination that stands twice, and, without pairs,
/// fewer lines than terminals.
pub fn parse_permutation(name: &str, bytes: &[u8], terminals: u32) -> Result<Vec<Option<u32>>, FormatError> {
    let lines = meaningful_lines(name, bytes)?;
    let (mut destinations, mut sender) = (vec![None; terminals as usize], vec![None; terminals as usize]);
    let width = lines.first().map_or(1, |(_, line)| fields(line).count());
    for (position, &(number, line)) in lines.iter().enumerate() {
        let values = terminals_of(name, number, line, terminals)?;
        let (source, destination) = match values[..] {
            [destination] if width == 1 => (position as u32, destination),
            [source, destination] if width == 2 => (source, destination),
            _ => {
                let problem =
                    format!("`{line}` has {} numbers; each line has 1 (destination) or each has 2 (source destination)", values.len());
                return Err(FormatError::new(name, number, problem));
            }
        };
        if source >= terminals {
            return Err(FormatError::new(name, number, format!("is one line too many: the network has {terminals} terminals")));
        }
        if destinations[source as usize].is_some() {
            return Err(FormatError::new(name, number, format!("terminal {source} already has a destination")));
        }
        if let Some(other) = sender[destination as usize].replace(source) {
            let problem = format!("terminal {destination} already is the destination of {other}; use pattern `matrix` for this");
            return Err(FormatError::new(name, number, problem));
        }
        destinations[source as usize] = Some(destination);
    }
    if width == 1 && lines.len() < terminals as usize {
        let problem =
            format!("has {} destinations, but the network has {terminals} terminals; give `source destination` pairs", lines.len());
        return Err(FormatError::new(name, lines.last().map_or(1, |line| line.0), problem));
    }
    Ok(destinations)
}

/// Reads a square matrix of weights: row `s`, column `d` is what terminal `s` sends to `d`, in any unit. The answer lists, for
/// each source, the destinations of positive weight in ascending order.
///
/// # Errors
/// A weight that is no number or is negative, a row of the wrong length, too many or too few rows.
pub fn parse_matrix(name: &str, bytes: &[u8], terminals: u32) -> Result<Vec<Vec<(u32, f64)>>, FormatError> {
    let lines = meaningful_lines(name, bytes)?;
    let mut rows = Vec::new();
    for &(number, line) in &lines {
        let mut row = Vec::new();
        let mut length = 0;
        for (column, field) in fields(line).enumerate() {
            let weight: f64 = field.parse().ok().filter(|weight: &f64| weight.is_finite() && *weight >= 0.0).ok_or_else(|| {
                FormatError::new(name, number, format!("`{field}` in column {} is not a weight; give a number of 0 or more", column + 1))
            })?;
            length = column + 1;
            if weight > 0.0 {
                row.push((column as u32, weight));
            }
        }
        if length != terminals as usize {
            let problem = format!("has {length} weights, but the network has {terminals} terminals");
            return Err(FormatError::new(name, number, problem));
        }
        rows.push(row);
    }
    if rows.len() != terminals as usize {
        let problem = format!("the file has {} rows, but the network has {terminals} terminals", rows.len());
        return Err(FormatError::new(name, lines.last().map_or(1, |line| line.0), problem));
    }
    Ok(rows)
}

fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split(|character: char| character.is_whitespace() || character == ',').filter(|field| !field.is_empty())
}

fn terminals_of(name: &str, number: usize, line: &str, terminals: u32) -> Result<Vec<u32>, FormatError> {
    fields(line)
        .map(|field| {
            field.parse().ok().filter(|&terminal: &u32| terminal < terminals).ok_or_else(|| {
                FormatError::new(name, number, format!("`{field}` is not a terminal; they are numbered 0 to {}", terminals - 1))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_permutation_are_read() {
        let lines = parse_permutation("p", b"# shift\n1\n2, # two\n\n0\n", 3).unwrap();
        assert_eq!(lines, [Some(1), Some(2), Some(0)]);
        let pairs = parse_permutation("p", b"2 0\n0,1\n", 3).unwrap();
        assert_eq!(pairs, [Some(1), None, Some(0)]);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, line, part) in [
            ("0\n3\n", 2, "`3` is not a terminal"),
            ("0\n1\n2\n0\n", 4, "one line too many"),
            ("0 1\n2\n", 2, "has 1 numbers"),
            ("0 1\n0 2\n", 2, "already has a destination"),
            ("0 1\n1 1\n", 2, "already is the destination of 0"),
            ("0\n1\n", 2, "has 2 destinations"),
        ] {
            let error = parse_permutation("p.txt", text.as_bytes(), 3).unwrap_err();
            assert_eq!(error.line, line, "{text:?}");
            assert!(error.problem.contains(part), "{error}");
        }
        for (text, line, part) in
            [("0 1\n1 x\n", 2, "`x` in column 2"), ("0 1\n1\n", 2, "has 1 weights"), ("0 1\n", 1, "has 1 rows"), ("0 -1\n", 1, "`-1`")]
        {
            let error = parse_matrix("m.txt", text.as_bytes(), 2).unwrap_err();
            assert_eq!(error.line, line, "{text:?}");
            assert!(error.problem.contains(part), "{error}");
        }
        assert_eq!(parse_permutation("p", b"0\n\xff\n", 2).unwrap_err().to_string(), "p:2: is not text in UTF-8");
    }

    #[test]
    fn a_matrix_keeps_its_positive_weights() {
        assert_eq!(parse_matrix("m", b"0, 2.5\n0 0\n", 2).unwrap(), [vec![(1, 2.5)], vec![]]);
    }
}
