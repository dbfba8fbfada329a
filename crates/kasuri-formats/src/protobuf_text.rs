//! Messages of Protocol Buffers in their text form, without a schema: fields with their lines.
//!
//! Source: protobuf.dev, text format language specification. Read are fields with and without a colon, `{}` and `<>`, lists, strings, words
//! and numbers, commas and semicolons between fields, comments; not extensions, `Any`, or strings in several pieces.

use crate::error::FormatError;
use crate::text::text_of;

/// A message: its fields in their order. A list is as many fields of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// The fields.
    pub(crate) fields: Vec<Field>,
}

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// Its name.
    pub(crate) name: String,
    /// Its line, from 1.
    pub(crate) line: usize,
    /// Its value.
    pub(crate) value: Value,
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A word, a number, or what stood in quotes.
    Word(String),
    /// A message.
    Message(Message),
}

/// Messages within each other, at most.
const MAX_LEVELS: usize = 64;

/// Reads a file.
///
/// # Errors
/// What is no text of this form, with the line.
pub(crate) fn parse(name: &str, bytes: &[u8]) -> Result<Message, FormatError> {
    let tokens = tokens(name, text_of(name, bytes)?)?;
    let mut reader = Reader { name, tokens: &tokens, next: 0, level: 0 };
    reader.message(None)
}

/// A piece of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    line: usize,
    text: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sign,
    Word,
    Quoted,
}

fn tokens(name: &str, text: &str) -> Result<Vec<Token>, FormatError> {
    let mut tokens = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next().filter(|first| *first != '#') {
            let (length, kind) = match first {
                '"' | '\'' => (quoted(rest, first).map_err(|problem| FormatError::new(name, number, problem))?, Kind::Quoted),
                _ if is_of_word(first) => (rest.find(|character| !is_of_word(character)).unwrap_or(rest.len()), Kind::Word),
                _ if "{}<>[]:,;".contains(first) => (1, Kind::Sign),
                _ => return Err(FormatError::new(name, number, format!("unexpected `{first}`"))),
            };
            let text = match kind {
                Kind::Quoted => unescaped(&rest[1..length - 1]),
                _ => rest[..length].to_owned(),
            };
            tokens.push(Token { line: number, text, kind });
            rest = rest[length..].trim_start();
        }
    }
    Ok(tokens)
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || "_.+-".contains(character)
}

/// The length of a text in quotes, both quotes included.
fn quoted(text: &str, quote: char) -> Result<usize, String> {
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find_map(|(place, character)| {
        let closes = character == quote && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        closes.then_some(place + 1)
    });
    end.ok_or_else(|| "the quotes are not closed in their line".to_owned())
}

/// Without the backslashes before characters: names need no others.
fn unescaped(text: &str) -> String {
    let mut characters = text.chars();
    let mut plain = String::new();
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    plain
}

struct Reader<'a> {
    name: &'a str,
    tokens: &'a [Token],
    next: usize,
    level: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    fn take(&mut self) -> Option<Token> {
        self.next += 1;
        self.tokens.get(self.next - 1).cloned()
    }

    /// Takes this sign, if it comes next.
    fn skip(&mut self, sign: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == Kind::Sign && token.text == sign);
        self.next += usize::from(found);
        found
    }

    fn error(&self, found: Option<&Token>, right: &str) -> FormatError {
        let last = self.tokens.last().map_or(1, |token| token.line);
        let line = found.map_or(last, |token| token.line);
        let shown = found.map_or("the end of the file".to_owned(), |token| format!("`{}`", crate::text::short(&token.text)));
        FormatError::new(self.name, line, format!("expected {right}, found {shown}"))
    }

    /// Fields up to the sign that closes the message, or to the end of the file.
    fn message(&mut self, close: Option<&str>) -> Result<Message, FormatError> {
        if self.level > MAX_LEVELS {
            return Err(self.error(self.peek(), "no more messages within each other"));
        }
        self.level += 1;
        let mut message = Message::default();
        loop {
            if close.is_some_and(|close| self.skip(close)) {
                break;
            }
            let token = self.take();
            match (&token, close) {
                (None, None) => break,
                (Some(field), _) if field.kind == Kind::Word => self.field(field, &mut message)?,
                (_, Some(close)) => return Err(self.error(token.as_ref(), &format!("the name of a field, or `{close}`"))),
                _ => return Err(self.error(token.as_ref(), "the name of a field")),
            }
        }
        self.level -= 1;
        Ok(message)
    }

    fn field(&mut self, name: &Token, message: &mut Message) -> Result<(), FormatError> {
        let has_colon = self.skip(":");
        let mut put = |value| message.fields.push(Field { name: name.text.clone(), line: name.line, value });
        if self.skip("[") {
            while !self.skip("]") {
                put(self.value(true)?);
                if !self.skip(",") && self.peek().is_none_or(|token| token.text != "]") {
                    return Err(self.error(self.peek(), "`,` or `]`"));
                }
            }
        } else {
            put(self.value(has_colon)?);
        }
        let _ = self.skip(",") || self.skip(";");
        Ok(())
    }

    fn value(&mut self, has_colon: bool) -> Result<Value, FormatError> {
        for (open, close) in [("{", "}"), ("<", ">")] {
            if self.skip(open) {
                return self.message(Some(close)).map(Value::Message);
            }
        }
        match self.take() {
            Some(token) if token.kind != Kind::Sign && has_colon => Ok(Value::Word(token.text)),
            token if has_colon => Err(self.error(token.as_ref(), "a value")),
            token => Err(self.error(token.as_ref(), "`:` or `{`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(message: &Message) -> String {
        let field = |field: &Field| match &field.value {
            Value::Word(word) => format!("{}={word}", field.name),
            Value::Message(message) => format!("{}({})", field.name, shown(message)),
        };
        message.fields.iter().map(field).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn fields_lists_and_messages_are_read() {
        let text = "# a\na { b: [ 1, 2 ], c: \"x \\\"y\" # z\n d < e: -1.5 >; }\na: { b: [] }\nf: WORD";
        let message = parse("t", text.as_bytes()).unwrap();
        assert_eq!(shown(&message), "a(b=1 b=2 c=x \"y d(e=-1.5)) a() f=WORD");
        assert_eq!(message.fields.iter().map(|field| field.line).collect::<Vec<_>>(), [2, 4, 5]);
    }

    #[test]
    fn what_is_wrong_is_shown_with_its_line() {
        for (text, expected) in [
            ("a {\n b: 1\n", "t:2: expected the name of a field, or `}`, found the end of the file"),
            ("a 1", "t:1: expected `:` or `{`, found `1`"),
            ("a: }", "t:1: expected a value, found `}`"),
            ("a: [1 2]", "t:1: expected `,` or `]`, found `2`"),
            ("\n\"a\": 1", "t:2: expected the name of a field, found `a`"),
            ("a: \"b", "t:1: the quotes are not closed"),
            ("a: 1 / 2", "t:1: unexpected `/`"),
        ] {
            let error = parse("t", text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        let deep = "a{".repeat(1000);
        assert!(parse("t", deep.as_bytes()).unwrap_err().to_string().contains("no more messages"));
    }
}
