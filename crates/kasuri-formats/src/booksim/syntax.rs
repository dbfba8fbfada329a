//! Text to assignments: `name = value;` with `//` comments.

use super::{BookSimError, Place, Value};

/// One assignment as written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) value: Value,
    pub(super) place: Place,
}

/// All assignments of a text, in order.
pub(super) fn assignments(source: &str, text: &str) -> Result<Vec<Assignment>, BookSimError> {
    let mut scanner = Scanner { source, rest: text, line: 1 };
    let mut assignments = Vec::new();
    loop {
        scanner.skip_blank();
        if scanner.rest.is_empty() {
            return Ok(assignments);
        }
        assignments.push(scanner.assignment()?);
    }
}

struct Scanner<'a> {
    source: &'a str,
    rest: &'a str,
    line: u32,
}

impl Scanner<'_> {
    fn assignment(&mut self) -> Result<Assignment, BookSimError> {
        let name = self.word()?;
        if name.is_empty() {
            let found = self.rest.chars().next().unwrap_or(' ');
            return Err(self.wrong(self.line, format!("expected the name of an option, found `{found}`")));
        }
        let line = self.line;
        self.skip_blank();
        if !self.take('=') {
            return Err(self.wrong(line, format!("`=` is missing after `{name}`; an assignment is `name = value;`")));
        }
        self.skip_blank();
        let text = self.word()?;
        let line = self.line;
        if text.is_empty() {
            return Err(self.wrong(line, format!("`{name}` has no value; an assignment is `name = value;`")));
        }
        self.skip_blank();
        if !self.take(';') {
            return Err(self.wrong(line, format!("`;` is missing after `{name} = {text}`")));
        }
        Ok(Assignment { name, value: classify(text), place: Place { source: self.source.to_owned(), line } })
    }

    /// A word, which ends at a blank, `=`, `;` or comment outside braces. Blanks inside braces are dropped.
    fn word(&mut self) -> Result<String, BookSimError> {
        let mut word = String::new();
        let mut open: Vec<(char, u32)> = Vec::new();
        while let Some(character) = self.rest.chars().next() {
            match character {
                '=' | ';' => break,
                '/' if self.rest.starts_with("//") => break,
                _ if character.is_whitespace() => {
                    if open.is_empty() {
                        break;
                    }
                    self.skip_blank();
                    continue;
                }
                '{' | '(' => open.push((character, self.line)),
                '}' | ')' => self.close(character, open.pop())?,
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '+' | '.' | '/' | ',' => {}
                _ => return Err(self.wrong(self.line, format!("unexpected character `{character}`"))),
            }
            word.push(character);
            self.rest = &self.rest[character.len_utf8()..];
        }
        match open.pop() {
            Some((bracket, line)) => Err(self.wrong(line, format!("`{bracket}` is not closed in `{word}`"))),
            None => Ok(word),
        }
    }

    fn close(&self, closing: char, opened: Option<(char, u32)>) -> Result<(), BookSimError> {
        match (opened, closing) {
            (Some(('{', _)), '}') | (Some(('(', _)), ')') => Ok(()),
            (Some((opening, _)), _) => Err(self.wrong(self.line, format!("`{closing}` closes `{opening}`"))),
            (None, _) => Err(self.wrong(self.line, format!("`{closing}` closes nothing"))),
        }
    }

    fn skip_blank(&mut self) {
        loop {
            let trimmed = self.rest.trim_start();
            let skipped = &self.rest[..self.rest.len() - trimmed.len()];
            self.line = self.line.saturating_add(skipped.matches('\n').count() as u32);
            self.rest = trimmed;
            if !trimmed.starts_with("//") {
                return;
            }
            self.rest = trimmed.find('\n').map_or("", |end| &trimmed[end..]);
        }
    }

    fn take(&mut self, wanted: char) -> bool {
        self.rest.strip_prefix(wanted).is_some_and(|rest| {
            self.rest = rest;
            true
        })
    }

    fn wrong(&self, line: u32, problem: String) -> BookSimError {
        BookSimError::Syntax { place: Place { source: self.source.to_owned(), line }, problem }
    }
}

/// A number if it reads as one, else text.
pub fn classify(text: String) -> Value {
    if let Ok(value) = text.parse::<i64>() {
        return Value::Integer(value);
    }
    let numeric = text.starts_with(|first: char| first.is_ascii_digit() || first == '-' || first == '.');
    match text.parse::<f64>() {
        Ok(value) if numeric && value.is_finite() => Value::Real(value),
        _ => Value::Text(text),
    }
}

/// The elements of a vector `{a,{b,c}}`, or the text itself as the only one. Empty elements and what follows the closing brace
/// are dropped, as BookSim does.
pub fn elements(text: &str) -> Vec<&str> {
    let Some(inside) = text.strip_prefix('{') else {
        return if text.is_empty() { Vec::new() } else { vec![text] };
    };
    let mut depth = 1i32;
    let end = inside.find(|character: char| {
        depth += nesting(character);
        depth == 0
    });
    split_at_commas(&inside[..end.unwrap_or(inside.len())])
}

/// The element of a traffic class: the last one serves the classes that have none of their own. A value that is no vector serves
/// all.
pub fn class_element(value: &Value, class: usize) -> Value {
    match value {
        Value::Text(text) if text.starts_with('{') => {
            let elements = elements(text);
            classify(elements.get(class).or(elements.last()).copied().unwrap_or_default().to_owned())
        }
        other => other.clone(),
    }
}

/// A word or a function: its name and its arguments, of which there is more than one only in braces: `name({1,2})`.
pub fn function(text: &str) -> (&str, Vec<&str>) {
    match text.split_once('(') {
        None => (text, Vec::new()),
        Some((name, rest)) => (name, elements(rest.strip_suffix(')').unwrap_or(rest))),
    }
}

fn split_at_commas(text: &str) -> Vec<&str> {
    let mut depth = 0;
    text.split(|character: char| {
        depth += nesting(character);
        character == ',' && depth == 0
    })
    .filter(|element| !element.is_empty())
    .collect()
}

fn nesting(character: char) -> i32 {
    match character {
        '{' | '(' => 1,
        '}' | ')' => -1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BookSim 2 sends everything to terminal 1 here: run with 16 terminals, only that one accepts flits.
    #[test]
    fn only_the_first_vector_of_a_function_counts() {
        assert_eq!(function("hotspot({1,2},{3,4})"), ("hotspot", vec!["1", "2"]));
    }

    #[test]
    fn vectors_and_functions_split_at_their_own_commas() {
        assert_eq!(elements("{1,{2,3},4}"), ["1", "{2,3}", "4"]);
        assert_eq!(elements("uniform"), ["uniform"]);
        assert_eq!(elements(""), Vec::<&str>::new());
        assert_eq!(function("hotspot({{1,2},{3,4}})"), ("hotspot", vec!["{1,2}", "{3,4}"]));
        assert_eq!(function("islip"), ("islip", vec![]));
    }
}
