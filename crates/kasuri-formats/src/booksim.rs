//! BookSim 2's configuration language.
//!
//! A configuration is a list of `name = value;` with `//` comments, where a value is a number, a word, a vector `{a,b}` or a
//! function `name(arguments)`. Several files and single assignments are merged in order; the last one counts; what none of
//! them sets has BookSim's default.
//!
//! Accepted beyond BookSim: a whole number where it wants a fraction, and spaces inside braces. Source: the language's
//! behaviour in BookSim 2 (Jiang et al., ISPASS 2013), commit 28f43299.

pub mod options;
pub mod syntax;

pub use options::{Kind, OPTIONS, OptionEntry, Role};

use std::collections::BTreeMap;
use std::path::Path;
use thiserror::Error;

/// The place of an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file's name, or `command line`.
    pub source: String,
    /// The line, from 1; 0 where lines make no sense.
    pub line: u32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => formatter.write_str(&self.source),
            line => write!(formatter, "{}:{line}", self.source),
        }
    }
}

/// The value of an option as written.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// A number with a fraction or an exponent.
    Real(f64),
    /// A word, a vector or a function.
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(value) => write!(formatter, "{value}"),
            Self::Real(value) => write!(formatter, "{value}"),
            Self::Text(value) => formatter.write_str(value),
        }
    }
}

/// Options and their values, each with the place where it was last set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    settings: BTreeMap<&'static str, (Value, Place)>,
}

impl Configuration {
    /// Adds the assignments of a file. `name` is how messages call it.
    ///
    /// # Errors
    /// A line that is no assignment, an unknown option, a value of the wrong type. Mend the named line.
    ///
    /// # Examples
    /// ```
    /// use kasuri_formats::booksim::{Configuration, Value};
    /// let mut configuration = Configuration::default();
    /// configuration.read("mesh.cfg", "topology = mesh; k = 4; // 4 x 4\nrouting_function = dor;").unwrap();
    /// configuration.assign("num_vcs=2").unwrap();
    /// assert_eq!(configuration.get("num_vcs").unwrap().0, Value::Integer(2));
    /// ```
    pub fn read(&mut self, name: &str, text: &str) -> Result<(), BookSimError> {
        for assignment in syntax::assignments(name, text)? {
            self.set(assignment)?;
        }
        Ok(())
    }

    /// Adds one assignment of the command line, `name=value`.
    ///
    /// # Errors
    /// As [`Configuration::read`].
    pub fn assign(&mut self, assignment: &str) -> Result<(), BookSimError> {
        let source = format!("`{assignment}`");
        for assignment in syntax::assignments(&source, &format!("{assignment};"))? {
            let place = Place { source: source.clone(), line: 0 };
            self.set(syntax::Assignment { place, ..assignment })?;
        }
        Ok(())
    }

    /// The value of an option that a file or an assignment set, with its place.
    pub fn get(&self, name: &str) -> Option<&(Value, Place)> {
        self.settings.get(name)
    }

    /// Did a file or an assignment set this option?
    pub fn is_set(&self, name: &str) -> bool {
        self.settings.contains_key(name)
    }

    /// Makes the network file's path relative to the configuration file that names it. Where only the path as written `exists`,
    /// it is left alone: BookSim 2 looks in the current folder.
    pub fn place_files(&mut self, exists: impl Fn(&str) -> bool) {
        let Some((Value::Text(path), place)) = self.settings.get_mut("network_file") else { return };
        let beside = Path::new(&place.source).parent().map(|folder| folder.join(&path).to_string_lossy().into_owned());
        if let Some(beside) = beside.filter(|beside| place.line > 0 && (exists(beside) || !exists(path))) {
            *path = beside;
        }
    }

    fn set(&mut self, assignment: syntax::Assignment) -> Result<(), BookSimError> {
        let syntax::Assignment { name, value, place } = assignment;
        let Some(option) = options::find(&name) else {
            return Err(BookSimError::Unknown { place, suggestion: options::suggestion(&name), name });
        };
        if !option.kind.accepts(&value) {
            return Err(BookSimError::Value {
                place,
                name: name.clone(),
                value: value.to_string(),
                problem: format!("`{name}` is {}", option.kind.expected()),
            });
        }
        self.settings.insert(option.name, (value, place));
        Ok(())
    }
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BookSimError {
    /// The text is not of the language. Mend the named line.
    #[error("{place}: {problem}")]
    Syntax {
        /// Where.
        place: Place,
        /// What was found and what would be right.
        problem: String,
    },
    /// BookSim has no such option. Mend the name.
    #[error("{place}: unknown option `{name}`{suggestion}")]
    Unknown {
        /// Where.
        place: Place,
        /// The name as written.
        name: String,
        /// The nearest name, as an ending of the message, or empty.
        suggestion: String,
    },
    /// The value is of the wrong type or outside its range. Change it as the message says.
    #[error("{place}: {name} = {value}: {problem}")]
    Value {
        /// Where.
        place: Place,
        /// The option.
        name: String,
        /// The value as written.
        value: String,
        /// What would be right.
        problem: String,
    },
    /// BookSim knows this, Kasuri does not yet. Each entry names an option and says what is missing.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Unsupported(Vec<Unsupported>),
}

/// An option whose value asks for what Kasuri does not have yet.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {name} = {value} is not supported yet: {reason}")]
pub struct Unsupported {
    /// Where.
    pub place: Place,
    /// The option.
    pub name: String,
    /// The value as written.
    pub value: String,
    /// What it asks for.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Configuration, BookSimError> {
        let mut configuration = Configuration::default();
        configuration.read("a.cfg", text).map(|()| configuration)
    }

    fn message(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_file_line_and_remedy() {
        for (text, wanted) in [
            ("k = 8\nn = 2;", "a.cfg:1: `;` is missing after `k = 8`"),
            ("\n\nk 8;", "a.cfg:3: `=` is missing after `k`"),
            ("k = ;", "a.cfg:1: `k` has no value"),
            ("injection_rate = {0.1,0.2;\nk = 2;", "a.cfg:1: `{` is not closed"),
            ("traffic = hotspot({0};", "a.cfg:1: `(` is not closed"),
            ("traffic = hotspot};", "a.cfg:1: `}` closes nothing"),
            ("traffic = hotspot({0)};", "a.cfg:1: `)` closes `{`"),
            ("k = \"8\";", "a.cfg:1: unexpected character `\"`"),
            ("= 8;", "a.cfg:1: expected the name of an option, found `=`"),
            ("\nnum_vc = 4;", "a.cfg:2: unknown option `num_vc`; did you mean `num_vcs`?"),
            ("k = mesh;", "a.cfg:1: k = mesh: `k` is a whole number"),
            ("topology = 4;", "a.cfg:1: topology = 4: `topology` is a word"),
            ("k = 1.5;", "a.cfg:1: k = 1.5: `k` is a whole number"),
        ] {
            assert!(message(text).starts_with(wanted), "{text:?} gives {:?}, not {wanted:?}", message(text));
        }
    }

    #[test]
    fn the_last_assignment_counts() {
        let mut configuration = read("k = 8; k = 4;\n// k = 2;\nk = 3; // k = 5;").unwrap();
        assert_eq!(configuration.settings["k"].0, Value::Integer(3));
        configuration.read("b.cfg", "k=6;").unwrap();
        configuration.assign("n=3").unwrap();
        assert_eq!(configuration.settings["k"], (Value::Integer(6), Place { source: "b.cfg".to_owned(), line: 1 }));
        assert_eq!(configuration.settings["n"].0, Value::Integer(3));
    }

    #[test]
    fn values_may_stand_on_another_line_and_hold_vectors_and_functions() {
        let configuration = read("traffic =\n  hotspot( {1, 2}, {3,4} ) ;\nlatency_thres = -1;\nlatency_thres = 1e3;").unwrap();
        assert_eq!(configuration.settings["traffic"].0, Value::Text("hotspot({1,2},{3,4})".to_owned()));
        assert_eq!(configuration.settings["latency_thres"].0, Value::Real(1000.0));
    }

    #[test]
    fn network_files_lie_beside_the_configuration_that_names_them() {
        let placed = |source: &str, exists: &[&str]| {
            let mut configuration = Configuration::default();
            configuration.read(source, "network_file = net.txt;").unwrap();
            configuration.place_files(|path| exists.contains(&path));
            configuration.settings["network_file"].0.to_string()
        };
        assert_eq!(placed("examples/a.cfg", &["examples/net.txt", "net.txt"]), "examples/net.txt");
        assert_eq!(placed("examples/a.cfg", &["net.txt"]), "net.txt");
        assert_eq!(placed("examples/a.cfg", &[]), "examples/net.txt");
        assert_eq!(placed("a.cfg", &[]), "net.txt");
        let mut configuration = read("network_file = net.txt;").unwrap();
        configuration.assign("network_file=other/net.txt").unwrap();
        configuration.place_files(|_| false);
        assert_eq!(configuration.settings["network_file"].0.to_string(), "other/net.txt");
    }
}
