//! Keys and values of a network as a table of networks writes them: `kk2k k=2`, `planes=2 of leaf-spine leaves=4`, `hb=yes`.

/// The assignments `key=value` that the arguments of a command mean.
///
/// An argument that is one assignment is taken as it is. All others are read as one text: lists may be written with spaces; a word without `=`
/// is the value of `shape`; a word behind `of` is that of `of`; words behind `permutations` are that of `permutations`; what follows a colon
/// is a remark.
///
/// # Examples
/// ```
/// use kasuri_config::words::assignments;
///
/// let arguments = ["kk2k", "k=2"].map(str::to_owned);
/// assert_eq!(assignments(&arguments), ["shape=kk2k", "k=2"]);
/// let arguments = ["m=[4, 4] w=[1, 4]".to_owned()];
/// assert_eq!(assignments(&arguments), ["m=[4, 4]", "w=[1, 4]"]);
/// ```
pub fn assignments(arguments: &[String]) -> Vec<String> {
    let (mut found, mut text) = (Vec::new(), String::new());
    for argument in arguments {
        if is_one_assignment(argument) {
            read(&text, &mut found);
            text.clear();
            found.push(argument.clone());
        } else {
            text.push(' ');
            text.push_str(argument);
        }
    }
    read(&text, &mut found);
    found
}

/// Does the argument begin with `key=`, hold no other ` key=` and end within no bracket? A number or a list has no words behind it.
fn is_one_assignment(argument: &str) -> bool {
    let words = split(argument);
    let Some((_, value)) = words.first().filter(|word| is_assignment(word)).and_then(|word| word.split_once('=')) else { return false };
    let is_whole = value.starts_with('[') || value.parse::<f64>().is_ok();
    (words.len() == 1 || !is_whole) && words[1..].iter().all(|word| !is_assignment(word)) && open_brackets(argument) == 0
}

fn is_assignment(word: &str) -> bool {
    let is_key = |key: &str| !key.is_empty() && key.chars().all(|letter| letter.is_alphanumeric() || "_-.".contains(letter));
    word.split_once('=').is_some_and(|(key, _)| is_key(key.trim_end()))
}

fn open_brackets(text: &str) -> i64 {
    text.chars().map(|letter| i64::from("[{".contains(letter)) - i64::from("]}".contains(letter))).sum()
}

/// The words of a text: white space within brackets and quotes does not part them.
fn split(text: &str) -> Vec<String> {
    let (mut words, mut word, mut depth, mut quote) = (Vec::new(), String::new(), 0i64, None);
    for letter in text.chars() {
        match letter {
            '"' | '\'' if quote.is_none() => quote = Some(letter),
            _ if quote == Some(letter) => quote = None,
            _ if quote.is_some() => {}
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            _ => {}
        }
        if letter.is_whitespace() && depth <= 0 && quote.is_none() {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        } else {
            word.push(letter);
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// Reads a text of several assignments and words.
fn read(text: &str, found: &mut Vec<String>) {
    let words = split(text);
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if is_assignment(word) {
            found.push(word.clone());
            continue;
        }
        let mut following = |most: usize| {
            let mut taken = Vec::new();
            while taken.len() < most
                && let Some(next) = words.next_if(|next| !is_assignment(next))
            {
                taken.push(next.as_str());
            }
            taken.join(" ")
        };
        match word.strip_suffix(':').unwrap_or(word) {
            "of" => found.push(format!("of={}", following(1))),
            "permutations" => found.push(format!("permutations={}", following(usize::MAX))),
            other => found.push(format!("shape={other}")),
        }
        if word.ends_with(':') {
            following(usize::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(arguments: &[&str]) -> Vec<String> {
        assignments(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn tables_of_networks_are_read_as_they_stand() {
        for (arguments, read) in [
            (&["m=[4, 4] w=[1, 4] parallel=[1, 1]"][..], &["m=[4, 4]", "w=[1, 4]", "parallel=[1, 1]"][..]),
            (&["m=[4,", "4]", "w=[1,4]"], &["m=[4, 4]", "w=[1,4]"]),
            (&["planes=2 of xgft m=[4, 4]"], &["planes=2", "of=xgft", "m=[4, 4]"]),
            (&["planes=2", "of", "mesh", "dimensions=[2]"], &["planes=2", "of=mesh", "dimensions=[2]"]),
            (
                &["cube=2 arrangement=[1, 1, 2] twisted: every + face leads to the other cube"],
                &["cube=2", "arrangement=[1, 1, 2]", "shape=twisted"],
            ),
            (&["cube=2 permutations q+1, q+2, q+3 mod 6"], &["cube=2", "permutations=q+1, q+2, q+3 mod 6"]),
            (&["k2k", "k=5"], &["shape=k2k", "k=5"]),
            (&["dimensions=[4, 6] twist=[[0, 2], [0, 0]]"], &["dimensions=[4, 6]", "twist=[[0, 2], [0, 0]]"]),
        ] {
            assert_eq!(read_all(arguments), read);
        }
    }

    /// What was one argument stays one, also with spaces in it.
    #[test]
    fn one_assignment_is_taken_as_it_is() {
        for argument in ["path=my networks/a b.json", "dimensions=[8, 8]", "name=\"a b=c\"", "twist=None"] {
            assert_eq!(read_all(&[argument]), [argument]);
        }
        assert_eq!(read_all(&[]), [""; 0]);
    }
}
