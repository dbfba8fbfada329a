//! Traffic from files: permutations, matrices of weights, and sizes of messages.
//!
//! In all, `#` starts a comment, empty lines do not count, and words are separated by blanks or commas. Terminals stand by number, or by
//! name where the network gives them names; a name with blanks in double quotes.

use crate::error::FormatError;
use crate::text::meaningful_lines;
use crate::words::{Word, lines_of_words};
use kasuri_network::network::Terminals;

/// Reads a permutation: one destination per line for terminals 0, 1, …; or `source destination` pairs, where a terminal that no line names
/// sends nothing. The answer has the destination of each terminal.
///
/// # Errors
/// A line of another form, a word that is no terminal, a duplicate source or destination, and, without pairs, fewer lines than
/// terminals.
pub fn parse_permutation<'t>(name: &str, bytes: &[u8], terminals: impl Into<Terminals<'t>>) -> Result<Vec<Option<u32>>, FormatError> {
    let terminals = terminals.into();
    let count = terminals.count();
    let lines = lines_of_words(name, bytes, true)?;
    let (mut destinations, mut sender) = (vec![None; count as usize], vec![None; count as usize]);
    let width = lines.first().map_or(1, |(_, words)| words.len());
    for (position, (number, words)) in lines.iter().enumerate() {
        let error = |problem: String| FormatError::new(name, *number, problem);
        let found = |word: &Word<'_>| terminals.find(&word.text).map_err(error);
        let (source, destination) = match &words[..] {
            [destination] if width == 1 => (position as u32, found(destination)?),
            [source, destination] if width == 2 => (found(source)?, found(destination)?),
            _ => return Err(error(format!("has {} words; each line has 1 (destination) or each has 2 (source destination)", words.len()))),
        };
        if source >= count {
            return Err(error(format!("is one line too many: the network has {count} terminals")));
        }
        if destinations[source as usize].is_some() {
            return Err(error(format!("terminal {} already has a destination", terminals.name(source))));
        }
        if let Some(other) = sender[destination as usize].replace(source) {
            let (destination, other) = (terminals.name(destination), terminals.name(other));
            return Err(error(format!("terminal {destination} already is the destination of {other}; use pattern `matrix` for this")));
        }
        destinations[source as usize] = Some(destination);
    }
    if width == 1 && lines.len() < count as usize {
        let problem = format!("has {} destinations, but the network has {count} terminals; give `source destination` pairs", lines.len());
        return Err(FormatError::new(name, lines.last().map_or(1, |line| line.0), problem));
    }
    Ok(destinations)
}

/// Reads a matrix of weights: row `s`, column `d` is what terminal `s` sends to `d`, in any unit. The answer lists, for each source, the
/// destinations of positive weight in ascending order.
///
/// Without names the matrix is square and has all terminals in their order. With names the first line names the destinations of the columns,
/// and each line after it begins with its source; terminals that are not named send, or receive, nothing.
///
/// # Errors
/// A weight that is no number or is negative, a row of the wrong length, too many or too few rows, an unknown or duplicate name.
pub fn parse_matrix<'t>(name: &str, bytes: &[u8], terminals: impl Into<Terminals<'t>>) -> Result<Vec<Vec<(u32, f64)>>, FormatError> {
    let terminals = terminals.into();
    let lines = meaningful_lines(name, bytes)?;
    let looks_named = lines.first().is_some_and(|(_, head)| fields(head).any(|field| field.parse::<f64>().is_err()));
    if !looks_named {
        return plain_matrix(name, &lines, terminals.count());
    }
    // Quotes hold together what blanks and commas would part.
    let Some((number, head)) = lines_of_words(name, bytes, true)?.into_iter().next() else { return Ok(Vec::new()) };
    let is_name = |word: &Word<'_>| word.text.parse::<f64>().is_err() && terminals.find(&word.text).is_ok();
    match columns(&head, terminals) {
        Ok(columns) => named_matrix(name, &columns, bytes, terminals),
        Err(problem) if head.iter().any(is_name) => Err(FormatError::new(name, number, problem)),
        // Nothing there is a name: what is no number was meant to be a weight.
        Err(_) => plain_matrix(name, &lines, terminals.count()),
    }
}

/// Reads sizes of messages: row `s`, column `d` is what rank `s` has for rank `d`, a whole number. There are as many rows as columns.
///
/// # Errors
/// What is no whole number of 0 or more, a row of another length than the first, or more or fewer rows than columns.
pub fn parse_sizes(name: &str, bytes: &[u8]) -> Result<Vec<Vec<u64>>, FormatError> {
    let lines = meaningful_lines(name, bytes)?;
    let mut rows: Vec<Vec<u64>> = Vec::new();
    for &(number, line) in &lines {
        let error = |problem: String| FormatError::new(name, number, problem);
        let size = |(place, field): (usize, &str)| {
            field.parse().map_err(|_| error(format!("`{field}` in column {} is not a size; give a whole number of 0 or more", place + 1)))
        };
        let row = fields(line).enumerate().map(size).collect::<Result<Vec<u64>, _>>()?;
        let columns = rows.first().map_or(row.len(), Vec::len);
        if row.len() != columns {
            return Err(error(format!("has {} sizes; the first row has {columns}", row.len())));
        }
        if rows.len() == columns {
            return Err(error(format!("is one row too many: each row has {columns} sizes, one for each rank")));
        }
        rows.push(row);
    }
    let columns = rows.first().map_or(0, Vec::len);
    if rows.len() < columns {
        let problem = format!("the file has {} rows, but {columns} columns; each rank has one of both", rows.len());
        return Err(FormatError::new(name, lines.last().map_or(1, |line| line.0), problem));
    }
    Ok(rows)
}

/// All terminals in their order.
fn plain_matrix(name: &str, lines: &[(usize, &str)], terminals: u32) -> Result<Vec<Vec<(u32, f64)>>, FormatError> {
    let mut rows = Vec::new();
    for &(number, line) in lines {
        let mut row = Vec::new();
        let mut length = 0;
        for (column, field) in fields(line).enumerate() {
            let weight = weight(field, column + 1).map_err(|problem| FormatError::new(name, number, problem))?;
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

/// The terminals that the first line names.
fn columns(head: &[Word<'_>], terminals: Terminals<'_>) -> Result<Vec<u32>, String> {
    let mut columns = Vec::new();
    for word in head {
        let terminal = terminals.find(&word.text)?;
        if columns.contains(&terminal) {
            return Err(format!("names `{}` twice", word.text));
        }
        columns.push(terminal);
    }
    Ok(columns)
}

/// The lines after the first, each with its source.
fn named_matrix(name: &str, columns: &[u32], bytes: &[u8], terminals: Terminals<'_>) -> Result<Vec<Vec<(u32, f64)>>, FormatError> {
    let mut rows: Vec<Option<Vec<(u32, f64)>>> = vec![None; terminals.count() as usize];
    for (number, words) in lines_of_words(name, bytes, true)?.into_iter().skip(1) {
        let error = |problem: String| FormatError::new(name, number, problem);
        let source = terminals.find(&words[0].text).map_err(error)?;
        if words.len() != columns.len() + 1 {
            let (weights, named) = (words.len() - 1, columns.len());
            return Err(error(format!("has {weights} weights after `{}`, but the first line names {named} terminals", words[0].text)));
        }
        let mut row = Vec::new();
        for (place, (&destination, word)) in columns.iter().zip(&words[1..]).enumerate() {
            let weight = weight(&word.text, place + 2).map_err(error)?;
            if weight > 0.0 {
                row.push((destination, weight));
            }
        }
        row.sort_by_key(|&(destination, _)| destination);
        if rows[source as usize].replace(row).is_some() {
            return Err(error(format!("`{}` has a line already", words[0].text)));
        }
    }
    Ok(rows.into_iter().map(Option::unwrap_or_default).collect())
}

fn weight(field: &str, column: usize) -> Result<f64, String> {
    let weight = field.parse().ok().filter(|weight: &f64| weight.is_finite() && *weight >= 0.0);
    weight.ok_or_else(|| format!("`{field}` in column {column} is not a weight; give a number of 0 or more"))
}

fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split(|character: char| character.is_whitespace() || character == ',').filter(|field| !field.is_empty())
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
            ("0 1\n2\n", 2, "has 1 words"),
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
        for (text, line, part) in [
            ("0 1\n1.5 0\n", 2, "`1.5` in column 1 is not a size"),
            ("0 1\n-1 0\n", 2, "`-1` in column 1"),
            ("0, 1\n# none\n1\n", 3, "has 1 sizes; the first row has 2"),
            ("0 1\n1 0\n1 1\n", 3, "one row too many"),
            ("0 1 2\n1 0 2\n", 2, "has 2 rows, but 3 columns"),
        ] {
            let error = parse_sizes("s.csv", text.as_bytes()).unwrap_err();
            assert_eq!(error.line, line, "{text:?}");
            assert!(error.problem.contains(part), "{error}");
        }
        assert_eq!(parse_sizes("s", b"0,7 # seven\n\n8 0").unwrap(), [[0, 7], [8, 0]]);
        assert_eq!(parse_permutation("p", b"0\n\xff\n", 2).unwrap_err().to_string(), "p:2: is not text in UTF-8");
    }

    /// Three terminals on one router.
    fn named() -> kasuri_network::network::Network {
        let mut builder = kasuri_network::network::NetworkBuilder::new("named");
        let router = builder.add_router(3).unwrap();
        (0..3).for_each(|port| {
            builder.add_terminal(router, port, kasuri_network::network::Link::default());
        });
        builder.name_terminals(["a", "b", "rack 1"].map(str::to_owned).to_vec());
        builder.finish().unwrap()
    }

    #[test]
    fn terminals_stand_by_name() {
        let network = named();
        assert_eq!(parse_permutation("p", b"a b\n\"rack 1\" a\n", &network).unwrap(), [Some(1), None, Some(0)]);
        let error = parse_permutation("p", b"a b\nc a\n", &network).unwrap_err().to_string();
        assert_eq!(error, "p:2: `c` is not a terminal; they are called `a` to `rack 1`");
        let matrix = b"\"rack 1\", a # destinations\n b, 1, 2\na 3 0\n";
        assert_eq!(parse_matrix("m", matrix, &network).unwrap(), [vec![(2, 3.0)], vec![(0, 2.0), (2, 1.0)], vec![]]);
        for (text, expected) in [
            ("a b\na 1\n", "m:2: has 1 weights after `a`, but the first line names 2 terminals"),
            ("a b\na 1 2\na 1 2\n", "m:3: `a` has a line already"),
            ("a a\na 1 2\n", "m:1: names `a` twice"),
            ("a b\nc 1 2\n", "m:2: `c` is not a terminal"),
            ("a c\na 1 2\n", "m:1: `c` is not a terminal"),
            ("a b\na 1 x\n", "m:2: `x` in column 3"),
        ] {
            let error = parse_matrix("m", text.as_bytes(), &network).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_matrix_keeps_its_positive_weights() {
        assert_eq!(parse_matrix("m", b"0, 2.5\n0 0\n", 2).unwrap(), [vec![(1, 2.5)], vec![]]);
    }
}
