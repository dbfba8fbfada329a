//! Pairs of terminals: who sends to whom, a line each.

use crate::error::FormatError;
use crate::words::lines_of_words;
use kasuri_network::id::TerminalId;
use kasuri_network::network::Network;

/// Reads lines `SOURCE DESTINATION`: names of terminals, or their numbers where they have no names. A name with blanks is in double
/// quotes, `#` starts a comment; pairs may repeat.
///
/// # Errors
/// A line of another form, a terminal that is not there, a terminal that sends to itself, or no pair at all.
pub fn parse_pairs(name: &str, bytes: &[u8], network: &Network) -> Result<Vec<(TerminalId, TerminalId)>, FormatError> {
    let terminal = |word: &str| {
        let number = network.terminal_names().number(word).filter(|&terminal| terminal < network.terminal_count());
        number.map(TerminalId).ok_or_else(|| {
            let right = match network.terminal_names().all() {
                Some([first, .., last]) => format!("they are called `{first}` to `{last}`"),
                _ => format!("they are numbered 0 to {}", network.terminal_count().saturating_sub(1)),
            };
            format!("unknown terminal `{word}`; {right}")
        })
    };
    let mut pairs = Vec::new();
    for (line, words) in lines_of_words(name, bytes, false)? {
        let wrong = |problem: String| FormatError::new(name, line, problem);
        let [from, to] = &words[..] else {
            return Err(wrong(format!("has {} words; a line has two: SOURCE DESTINATION", words.len())));
        };
        let (from, to) = (terminal(&from.text).map_err(wrong)?, terminal(&to.text).map_err(wrong)?);
        if from == to {
            return Err(wrong(format!("{} sends to itself", network.terminal_name(from))));
        }
        pairs.push((from, to));
    }
    if pairs.is_empty() {
        return Err(FormatError::new(name, 1, "has no pair; a line has two words: SOURCE DESTINATION"));
    }
    Ok(pairs)
}
