//! Names: messages about unknown ones with the nearest known name, and suffixes for duplicate ones.

use std::collections::{BTreeMap, BTreeSet};

/// Keys that have another name since the last release: before and now.
const RENAMED: &[(&str, &str)] = &[("ways", "ports"), ("ways_up", "ports_up")];

/// Says that a name is unknown, which known name is nearest, and which are known.
///
/// `what` is the kind of thing: `key`, `topology`, `stage`.
pub fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let mut message = format!("unknown {what} `{name}`");
    let renamed = RENAMED.iter().find(|(old, new)| what == "key" && *old == name && known.contains(new));
    if let Some((_, new)) = renamed {
        message.push_str(&format!("; it is called `{new}` now;"));
    } else if let Some(nearest) = nearest(name, &known) {
        message.push_str(&format!("; did you mean `{nearest}`?"));
    } else {
        message.push(';');
    }
    let kinds = match what {
        "key" => "keys".to_owned(),
        other if other.ends_with('s') => format!("{other}es"),
        other => other.strip_suffix('y').map_or_else(|| format!("{other}s"), |stem| format!("{stem}ies")),
    };
    message.push_str(&format!(" known {kinds}: {}", if known.is_empty() { "none".to_owned() } else { known.join(", ") }));
    message
}

/// The longest word of a message that is printed whole, and what is left of a longer one, characters.
const MAX_WORD_CHARACTERS: usize = 200;
const SHORTENED_WORD_CHARACTERS: usize = 60;

/// The longest message, characters.
const MAX_MESSAGE_BYTES: usize = 20_000;

/// A text from outside as it may be printed: control characters are escaped, so that no file can command a terminal; words that nobody
/// reads to their end are cut short, and so is a text without end.
pub fn printable(text: &str) -> String {
    let mut short = String::new();
    for (number, line) in text.split('\n').enumerate() {
        short.push_str(if number > 0 { "\n" } else { "" });
        for word in line.split_inclusive(' ') {
            let length = word.chars().take(MAX_WORD_CHARACTERS + 1).count();
            let shown = if length > MAX_WORD_CHARACTERS { SHORTENED_WORD_CHARACTERS } else { length };
            for letter in word.chars().take(shown) {
                if letter.is_control() { short.extend(letter.escape_default()) } else { short.push(letter) }
            }
            if length > MAX_WORD_CHARACTERS {
                short.push_str(&format!("… ({} characters) ", word.trim_end().chars().count()));
            }
        }
        if short.len() > MAX_MESSAGE_BYTES {
            let end = (0..=MAX_MESSAGE_BYTES).rev().find(|&end| short.is_char_boundary(end)).unwrap_or(0);
            short.truncate(end);
            short.push('…');
            return short;
        }
    }
    short
}

/// Appends a suffix to duplicate names: what differs between them, and a number where that is the same as well.
pub fn distinguish<T>(named: &mut [(String, T)], difference: impl Fn(&T) -> String) {
    let mut count: BTreeMap<String, u32> = BTreeMap::new();
    named.iter().for_each(|(name, _)| *count.entry(name.clone()).or_default() += 1);
    for (name, what) in named.iter_mut().filter(|(name, _)| count[name] > 1) {
        *name = format!("{name} ({})", difference(what));
    }
    let mut taken: BTreeSet<String> = named.iter().map(|(name, _)| name.clone()).collect();
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    for (name, _) in named {
        let times = times.entry(name.clone()).or_default();
        *times += 1;
        while *times > 1 {
            let numbered = format!("{name} #{times}");
            if taken.insert(numbered.clone()) {
                *name = numbered;
                break;
            }
            *times += 1;
        }
    }
}

/// Names longer than this are no misspelt ones: to compare them takes time that grows with their square.
const MAX_NAME_BYTES: usize = 100;

/// The known name that a misspelt one most likely means: at most a third of its letters (at least one, and one more for
/// exchanged neighbours) differ.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let written_alike = |text: &str| text.to_lowercase().replace('_', "-");
    let name = written_alike(name);
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&name, &written_alike(candidate)), *candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Differences follow equal names, then numbers, of which none makes a name that is there already.
    #[test]
    fn duplicate_names_become_different() {
        let names = [("a", 1), ("b", 1), ("a", 2), ("b", 1), ("b (1) #2", 3), ("b", 1)];
        let mut named = names.map(|(name, number)| (name.to_owned(), number));
        distinguish(&mut named, i32::to_string);
        assert_eq!(named.map(|(name, _)| name), ["a (1)", "b (1)", "a (2)", "b (1) #3", "b (1) #2", "b (1) #4"]);
    }

    #[test]
    fn what_is_printed_commands_no_terminal_and_has_an_end() {
        assert_eq!(printable("a\u{1b}[2Jb\tc\r\nd é"), "a\\u{1b}[2Jb\\tc\\r\nd é");
        let long = "x".repeat(10_000_000);
        let short = printable(&format!("unknown key `{long}` here"));
        assert!(short.len() < 200 && short.ends_with("… (10000002 characters) here"), "{short}");
        assert!(printable(&"word ".repeat(1_000_000)).chars().count() <= MAX_MESSAGE_BYTES + 1);
        assert!(unknown("key", &long, ["virtual_channels"]).contains("known keys"));
    }

    #[test]
    fn the_nearest_name_is_offered_and_a_far_one_is_not() {
        let known = ["virtual_channels", "buffer_flits"];
        assert_eq!(
            unknown("key", "virtual_chanels", known),
            "unknown key `virtual_chanels`; did you mean `virtual_channels`? known keys: virtual_channels, buffer_flits"
        );
        assert_eq!(unknown("key", "ways", ["escape", "ports"]), "unknown key `ways`; it is called `ports` now; known keys: escape, ports");
        assert_eq!(unknown("topology", "star", ["mesh", "torus"]), "unknown topology `star`; known topologies: mesh, torus");
        assert_eq!(
            unknown("routing", "dimension_order", ["dimension-order"]),
            "unknown routing `dimension_order`; did you mean `dimension-order`? known routings: dimension-order"
        );
    }
}
