//! Names of routers and terminals.

use super::{Network, OnRequest};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The names that a network's routers, or its terminals, have besides their numbers. Most networks have none, and then this holds nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    names: Option<Box<[String]>>,
    numbers: Numbers,
}

/// The number of each name.
type Numbers = OnRequest<(Box<str>, u32)>;

impl Names {
    /// Names by number. Names that are all just the numbers are none.
    pub fn new(names: Vec<String>) -> Self {
        let are_numbers = names.iter().enumerate().all(|(number, name)| is_number(name, number));
        Self { names: (!are_numbers).then(|| names.into()), numbers: Numbers::default() }
    }

    /// The names, if there are any.
    pub fn all(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// The name of a number, which is the number itself where there are no names.
    pub fn of(&self, number: u32) -> String {
        self.names.as_ref().map_or_else(|| number.to_string(), |names| names[number as usize].clone())
    }

    /// The number of a name. Without names, and where no name looks like a number, a number stands for itself.
    pub fn number(&self, name: &str) -> Option<u32> {
        let Some(names) = &self.names else { return name.parse().ok() };
        let sorted = self.numbers.0.get_or_init(|| {
            let all: BTreeMap<&str, u32> = names.iter().zip(0..).map(|(name, number)| (name.as_str(), number)).collect();
            all.into_iter().map(|(name, number)| (name.into(), number)).collect()
        });
        match sorted.binary_search_by(|(other, _)| (**other).cmp(name)) {
            Ok(place) => Some(sorted[place].1),
            Err(_) if names.iter().any(|name| name.parse::<u64>().is_ok()) => None,
            Err(_) => name.parse().ok().filter(|&number: &u32| (number as usize) < names.len()),
        }
    }

    /// A name that stands twice.
    pub(super) fn repeated(&self) -> Option<&str> {
        let mut sorted: Vec<&str> = self.names.iter().flat_map(|names| names.iter().map(String::as_str)).collect();
        sorted.sort_unstable();
        sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }

    /// Bytes of the names, and of the numbers by name.
    pub(super) fn bytes(&self) -> u64 {
        let of_name = |name: &String| 2 * (size_of::<String>() + name.len()) as u64;
        self.names.iter().flat_map(|names| names.iter()).map(of_name).sum()
    }

    pub(super) fn len(&self) -> Option<usize> {
        self.names.as_ref().map(|names| names.len())
    }
}

/// The terminals of a network, as users write them: by number or by name.
#[derive(Clone, Copy, Debug)]
pub struct Terminals<'a> {
    count: u32,
    names: Option<&'a Names>,
}

impl From<u32> for Terminals<'_> {
    /// So many terminals without names.
    fn from(count: u32) -> Self {
        Self { count, names: None }
    }
}

impl<'a> From<&'a Network> for Terminals<'a> {
    fn from(network: &'a Network) -> Self {
        Self { count: network.terminal_count(), names: Some(network.terminal_names()) }
    }
}

impl Terminals<'_> {
    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The terminal that a word of a file means.
    ///
    /// # Errors
    /// There is none; the message shows the word and says what would be right.
    pub fn find(&self, word: &str) -> Result<u32, String> {
        let found = self.names.map_or_else(|| word.parse().ok(), |names| names.number(word));
        found.filter(|&terminal| terminal < self.count).ok_or_else(|| format!("`{word}` is not a terminal; {}", self.right()))
    }

    /// What would be right where a terminal is asked for.
    pub fn right(&self) -> String {
        match self.names.and_then(Names::all) {
            Some([only]) => format!("the only one is called `{only}`"),
            Some([first, .., last]) => format!("they are called `{first}` to `{last}`"),
            Some([]) | None => format!("they are numbered 0 to {}", self.count.saturating_sub(1)),
        }
    }

    /// How messages call a terminal.
    pub fn name(&self, terminal: u32) -> String {
        self.names.map_or_else(|| terminal.to_string(), |names| names.of(terminal))
    }
}

/// A terminal in the experiment file: its number, or its name where the network gives its terminals names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TerminalRef {
    /// By number, from 0.
    Number(u32),
    /// By name.
    Name(String),
}

impl TerminalRef {
    /// The terminal that is meant.
    ///
    /// # Errors
    /// There is none; the message says what would be right.
    pub fn find(&self, terminals: Terminals<'_>) -> Result<u32, String> {
        match self {
            Self::Number(number) if *number < terminals.count => Ok(*number),
            Self::Number(number) => {
                Err(format!("{number} is not a terminal; they are numbered 0 to {}", terminals.count.saturating_sub(1)))
            }
            Self::Name(name) => terminals.find(name),
        }
    }
}

fn is_number(name: &str, number: usize) -> bool {
    name.parse() == Ok(number) && (name.len() == 1 || !name.starts_with(['0', '+']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Names {
        Names::new(all.iter().map(|&name| name.to_owned()).collect())
    }

    #[test]
    fn numbers_in_their_order_are_no_names() {
        assert_eq!(names(&["0", "1", "2"]), Names::default());
        for others in [&["1", "0"][..], &["00", "1"], &["0", "+1"], &["a"]] {
            assert_eq!(names(others).all().unwrap(), others);
        }
    }

    /// A number is not taken for a position where a name could be meant.
    #[test]
    fn a_word_is_a_name_and_else_a_number_where_no_name_is_one() {
        let words = names(&["host-a", "host-b"]);
        assert_eq!(["host-b", "0", "2", "host-c"].map(|word| words.number(word)), [Some(1), Some(0), None, None]);
        let from_one = names(&["1", "2", "x"]);
        assert_eq!(["1", "2", "0", "x"].map(|word| from_one.number(word)), [Some(0), Some(1), None, Some(2)]);
        assert_eq!(Names::default().number("7"), Some(7));
        assert_eq!(Names::default().number("a"), None);
    }

    #[test]
    fn a_repeated_name_is_found() {
        assert_eq!(names(&["a", "b", "a"]).repeated(), Some("a"));
        assert_eq!(names(&["a", "b"]).repeated(), None);
    }
}
