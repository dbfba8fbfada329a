//! Lists of hosts as Slurm writes them: `n[01-18],login,r[1-2]n[3,5]`.
//!
//! Several brackets in a name multiply; leading zeros of the lower bound are kept. Source: Slurm, hostlist expressions.

/// More names than any machine has hosts are refused before they are written out.
const MAX_NAMES: u64 = 1 << 22;

/// All names of a list, in its order.
///
/// # Errors
/// A bracket without its other half, what is no number or range within, a list of more than 4 million names.
pub fn parse(text: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for part in split(text)? {
        if !part.is_empty() {
            let mut these = vec![String::new()];
            expand(part, &mut these, names.len() as u64)?;
            names.append(&mut these);
        }
    }
    Ok(names)
}

/// The parts between the commas outside of brackets.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut begin, mut is_inside) = (Vec::new(), 0, false);
    for (place, character) in text.char_indices() {
        match character {
            '[' if is_inside => return Err(format!("`{text}` has a bracket within a bracket")),
            '[' => is_inside = true,
            ']' if !is_inside => return Err(format!("`{text}` closes a bracket that it has not opened")),
            ']' => is_inside = false,
            ',' if !is_inside => {
                parts.push(text[begin..place].trim());
                begin = place + 1;
            }
            _ => {}
        }
    }
    if is_inside {
        return Err(format!("`{text}` does not close its bracket"));
    }
    parts.push(text[begin..].trim());
    Ok(parts)
}

/// Appends all that a part means to each of the names so far.
fn expand(part: &str, names: &mut Vec<String>, before: u64) -> Result<(), String> {
    let Some((plain, rest)) = part.split_once('[') else {
        names.iter_mut().for_each(|name| name.push_str(part));
        return Ok(());
    };
    let (list, rest) = rest.split_once(']').ok_or_else(|| format!("`{part}` does not close its bracket"))?;
    let mut ranges = Vec::new();
    let mut count = 0u64;
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let wrong = || format!("invalid range `{range}` in `{part}`; expected e.g. 3 or 01-18");
        let number = |digits: &str| digits.trim().parse::<u64>().map_err(|_| wrong());
        let (from, to, width) = (number(first)?, number(last)?, first.trim().len());
        if from > to {
            return Err(format!("`{range}` in `{part}` ends before it begins"));
        }
        count = count.saturating_add((to - from).saturating_add(1));
        ranges.push((from, to, width));
    }
    if count.saturating_mul(names.len() as u64).saturating_add(before) > MAX_NAMES {
        return Err(format!("`{part}` means more than {MAX_NAMES} names"));
    }
    let mut longer = Vec::new();
    for name in names.iter() {
        for &(from, to, width) in &ranges {
            longer.extend((from..=to).map(|number| format!("{name}{plain}{number:0width$}")));
        }
    }
    *names = longer;
    expand(rest, names, before)
}

/// The text before a number, its number of digits, and the ranges of such numbers.
type Group<'a> = (&'a str, usize, Vec<(u64, u64)>);

/// Writes names as a list: consecutive numbers of one width behind the same text become a range.
pub fn write(names: &[String]) -> String {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for name in names {
        let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
        // More digits than a number has are text.
        let number = name[digits..].parse::<u64>().ok().filter(|_| name.len() - digits < 19);
        let (head, width) = (&name[..digits], name.len() - digits);
        match (groups.last_mut(), number) {
            (Some((last, same, ranges)), Some(number)) if *last == head && *same == width => match ranges.last_mut() {
                Some((_, end)) if *end + 1 == number => *end = number,
                _ => ranges.push((number, number)),
            },
            (_, Some(number)) => groups.push((head, width, vec![(number, number)])),
            (_, None) => groups.push((name, 0, Vec::new())),
        }
    }
    let shown = |(head, width, ranges): &Group<'_>| {
        let width = *width;
        let range = |&(from, to): &(u64, u64)| if from == to { format!("{from:0width$}") } else { format!("{from:0width$}-{to:0width$}") };
        match ranges.as_slice() {
            [] => (*head).to_owned(),
            [(from, to)] if from == to => format!("{head}{from:0width$}"),
            ranges => format!("{head}[{}]", ranges.iter().map(range).collect::<Vec<_>>().join(",")),
        }
    };
    groups.iter().map(shown).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_multiply_and_keep_their_zeros() {
        assert_eq!(parse("n[08-10],login, r[1-2]n[3,5]s").unwrap(), ["n08", "n09", "n10", "login", "r1n3s", "r1n5s", "r2n3s", "r2n5s"]);
        for wrong in ["n[1", "n1]", "n[[1]]", "n[a]", "n[3-1]", "n[1-2", "n[1-99999999]", "n[1-4000][1-4000]"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let names = |text: &str| parse(text).unwrap();
        for (text, written) in [("n08,n09,n10,n12,x", "n[08-10,12],x"), ("n9,n10", "n9,n10"), ("a1", "a1"), ("rack", "rack")] {
            assert_eq!(write(&names(text)), written);
            assert_eq!(names(written), names(text));
        }
    }
}
