//! The words of a line: separated by blanks, or by commas too; a name with blanks is in double quotes, as JSON writes it.

use crate::error::FormatError;
use std::borrow::Cow;

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// The word, without its quotes.
    pub text: Cow<'a, str>,
    /// Is it a name for certain, whatever it looks like?
    pub is_quoted: bool,
}

impl Word<'_> {
    /// Is it this keyword?
    pub fn is(&self, keyword: &str) -> bool {
        !self.is_quoted && self.text == keyword
    }
}

/// The lines of a text that say something: number (from 1) and words. `#` outside quotes starts a comment.
///
/// # Errors
/// The bytes are not UTF-8, or quotes are not closed; the line is named.
pub fn lines_of_words<'a>(name: &str, bytes: &'a [u8], commas: bool) -> Result<Vec<(usize, Vec<Word<'a>>)>, FormatError> {
    let text = crate::text::text_of(name, bytes)?;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words = words(line, commas).map_err(|problem| FormatError::new(name, number, problem))?;
        if !words.is_empty() {
            lines.push((number, words));
        }
    }
    Ok(lines)
}

/// The words of one line, its comment left out.
///
/// # Errors
/// Quotes that are not closed, or hold what JSON does not know.
pub fn words(line: &str, commas: bool) -> Result<Vec<Word<'_>>, String> {
    let is_between = |character: char| character.is_whitespace() || commas && character == ',';
    let mut words = Vec::new();
    let mut rest = line.trim_start_matches(is_between);
    while !rest.is_empty() && !rest.starts_with('#') {
        let (word, after) = if rest.starts_with('"') {
            let end = end_of_quotes(rest).ok_or_else(|| format!("`{rest}`: the quotes are not closed"))?;
            let text: String = serde_json::from_str(&rest[..end]).map_err(|error| format!("`{}`: {error}", &rest[..end]))?;
            (Word { text: text.into(), is_quoted: true }, &rest[end..])
        } else {
            let end = rest.find(|character| is_between(character) || character == '#').unwrap_or(rest.len());
            (Word { text: rest[..end].into(), is_quoted: false }, &rest[end..])
        };
        words.push(word);
        rest = after.trim_start_matches(is_between);
    }
    Ok(words)
}

/// One past the closing quotes.
fn end_of_quotes(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().skip(1).find_map(|(place, character)| {
        let closes = character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        closes.then_some(place + 1)
    })
}

/// A name as a word, in quotes where it could be taken for something else.
pub fn quoted(name: &str) -> Cow<'_, str> {
    let is_plain = |character: char| character.is_alphanumeric() || "._-+:/@()[]".contains(character);
    let is_word = !name.is_empty() && name.chars().all(is_plain) && name.parse::<u64>().is_err() && name != "->";
    if is_word { name.into() } else { serde_json::Value::from(name).to_string().into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(line: &str, commas: bool) -> Vec<String> {
        words(line, commas).unwrap().into_iter().map(|word| word.text.into_owned()).collect()
    }

    #[test]
    fn words_are_separated_and_quotes_hold_them_together() {
        assert_eq!(texts("  router \"rack 1 # \\\"a\\\"\" x#y z", false), ["router", "rack 1 # \"a\"", "x"]);
        assert_eq!(texts("1,2 ,\"a,b\",,3", true), ["1", "2", "a,b", "3"]);
        assert!(words("a \"b", false).unwrap_err().contains("not closed"));
    }

    proptest! {
        #[test]
        fn any_name_is_read_as_it_was_written(name in any::<String>(), other in "[a-z0-9 ]{0,6}") {
            let line = format!("{} {}", quoted(&name), quoted(&other));
            prop_assert_eq!(texts(&line, true), [name, other]);
        }
    }
}
