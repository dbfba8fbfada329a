//! Refusals: an engine's answers to scenarios that it cannot simulate.

use std::borrow::Cow;
use std::fmt;

/// One setting of the experiment file that cannot be simulated. [`crate::engine::Engine::prepare`] returns all of them, so that a file can
/// be corrected at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The dotted key to change: `router.predictor`; a section's name if all of it is meant.
    pub key: Cow<'static, str>,
    /// Its value as the file would write it: `"oracle"`, `true`. Empty where the reason names it, or where it is no single value.
    pub value: String,
    /// The conflicting setting, as the file would write it: `engine = "flow"`, `[[user]]`. Empty where the value alone is at fault.
    pub conflicts_with: String,
    /// The reason.
    pub reason: String,
    /// The suggested replacement. Empty where the reason says it.
    pub instead: String,
}

impl Refusal {
    /// A key that is refused for a reason, a phrase without a full stop.
    pub fn new(key: impl Into<Cow<'static, str>>, reason: impl Into<String>) -> Self {
        let (value, conflicts_with, instead) = (String::new(), String::new(), String::new());
        Self { key: key.into(), value, conflicts_with, reason: reason.into(), instead }
    }

    /// Adds the key's value.
    pub fn value(self, value: impl Into<String>) -> Self {
        Self { value: value.into(), ..self }
    }

    /// Adds the conflicting setting.
    pub fn conflicts_with(self, other: impl Into<String>) -> Self {
        Self { conflicts_with: other.into(), ..self }
    }

    /// Adds the suggested replacement.
    pub fn instead(self, instead: impl Into<String>) -> Self {
        Self { instead: instead.into(), ..self }
    }

    /// The refusal without its key: the value, the conflicting setting, the reason and the replacement.
    pub fn message(&self) -> String {
        let found = match (self.value.as_str(), self.conflicts_with.as_str()) {
            ("", "") => String::new(),
            (value, "") => format!("is {value}: "),
            ("", other) => format!("conflicts with {other}: "),
            (value, other) => format!("is {value}, which conflicts with {other}: "),
        };
        let instead = if self.instead.is_empty() { String::new() } else { format!("; {}", self.instead) };
        format!("{found}{}{instead}", self.reason)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.key, self.message())
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_a_fixed_order() {
        let bare = Refusal::new("router.predictor", "latest-port learns");
        assert_eq!(bare.to_string(), "router.predictor: latest-port learns");
        let whole = Refusal::new("router.hold_switch", "no router does both")
            .value("true")
            .conflicts_with("router.predictor = \"oracle\"")
            .instead("leave one of the two out");
        assert_eq!(
            whole.to_string(),
            "router.hold_switch: is true, which conflicts with router.predictor = \"oracle\": no router does both; leave one of the two out"
        );
        assert_eq!(
            Refusal::new("user", "no user has one").conflicts_with("[traffic]").message(),
            "conflicts with [traffic]: no user has one"
        );
    }
}
