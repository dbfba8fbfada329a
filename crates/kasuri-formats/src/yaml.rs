//! YAML as values with their lines. Aliases and tags are not read: no format here needs them, and they can make a small file large.

use crate::error::FormatError;
use crate::text::text_of;
use yaml_rust2::parser::{Event, MarkedEventReceiver, Parser};
use yaml_rust2::scanner::Marker;

/// A value with its line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Value {
    /// The line, from 1; 0 of what is not there.
    pub(crate) line: usize,
    /// What it is.
    pub(crate) content: Content,
}

#[derive(Clone, Debug, Default)]
pub(crate) enum Content {
    /// An empty file.
    #[default]
    Nothing,
    /// A word or a number.
    Text(String),
    /// Values in their order.
    List(Vec<Value>),
    /// Keys with their values, in their order.
    Map(Vec<(String, Value)>),
}

/// Levels of lists and maps within each other, at most.
const MAX_LEVELS: usize = 16;

/// Puts the events of the parser together.
struct Builder {
    /// What is open, and the key of a map whose value comes next.
    open: Vec<(Value, Option<String>)>,
    whole: Option<Value>,
    problem: Option<(usize, &'static str)>,
}

impl Builder {
    fn put(&mut self, value: Value) {
        match self.open.last_mut() {
            None => self.whole = Some(value),
            Some((Value { content: Content::List(list), .. }, _)) => list.push(value),
            Some((Value { content: Content::Map(map), .. }, key)) => match (key.take(), value) {
                (Some(name), value) => map.push((name, value)),
                (None, Value { content: Content::Text(text), .. }) => *key = Some(text),
                (None, value) => self.problem = self.problem.or(Some((value.line, "has a key that is not a word"))),
            },
            Some(_) => {}
        }
    }

    fn begin(&mut self, line: usize, content: Content) {
        if self.open.len() >= MAX_LEVELS {
            self.problem = self.problem.or(Some((line, "is deeper within lists than any file of this kind")));
        }
        self.open.push((Value { line, content }, None));
    }
}

impl MarkedEventReceiver for Builder {
    fn on_event(&mut self, event: Event, place: Marker) {
        let line = place.line().max(1);
        match event {
            _ if self.problem.is_some() => {}
            Event::Scalar(text, ..) => self.put(Value { line, content: Content::Text(text) }),
            Event::SequenceStart(..) => self.begin(line, Content::List(Vec::new())),
            Event::MappingStart(..) => self.begin(line, Content::Map(Vec::new())),
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some((value, _)) = self.open.pop() {
                    self.put(value);
                }
            }
            Event::Alias(_) => self.problem = Some((line, "has an alias (`*name`), which is not read here")),
            _ => {}
        }
    }
}

/// Reads the first document of a file.
///
/// # Errors
/// No YAML, an alias, a key that is no word, or more levels than any file of a known format has; with the line.
pub(crate) fn load(name: &str, bytes: &[u8]) -> Result<Value, FormatError> {
    let mut builder = Builder { open: Vec::new(), whole: None, problem: None };
    let loaded = Parser::new_from_str(text_of(name, bytes)?).load(&mut builder, false);
    if let Some((line, problem)) = builder.problem {
        return Err(FormatError::new(name, line, problem));
    }
    loaded.map_err(|error| FormatError::new(name, error.marker().line().max(1), format!("invalid YAML: {error}")))?;
    Ok(builder.whole.unwrap_or_default())
}
