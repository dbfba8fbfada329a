//! A truth value that a file may also write as a word.

use schemars::JsonSchema;
use serde::Deserialize;

/// `true` or `false`, or "yes" or "no".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum YesNo {
    /// As a truth value.
    Truth(bool),
    /// As a word.
    Word(Word),
}

/// The words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// True.
    Yes,
    /// False.
    No,
}

impl Default for YesNo {
    fn default() -> Self {
        Self::Truth(false)
    }
}

impl YesNo {
    /// Is it true?
    pub fn is_yes(self) -> bool {
        matches!(self, Self::Truth(true) | Self::Word(Word::Yes))
    }
}
