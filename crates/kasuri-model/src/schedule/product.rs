//! Jobs that are a product: some of the outer blocks, in each the same of the inner ones, and so on.

use crate::id::TerminalId;

/// The digits of all terminals of a job, if the job holds every combination of them.
///
/// `radices` are those of a terminal's number, the fastest first; the last digit is not bounded. The result lists for each
/// digit the values that occur, ascending.
pub(super) fn factors(terminals: &[TerminalId], radices: &[u32]) -> Option<Vec<Vec<u32>>> {
    let mut digits = vec![Vec::new(); radices.len()];
    for terminal in terminals {
        let mut rest = terminal.0;
        for (index, (&radix, values)) in radices.iter().zip(&mut digits).enumerate() {
            let last = index + 1 == radices.len();
            values.push(if last { rest } else { rest % radix });
            rest /= radix;
        }
    }
    for values in &mut digits {
        values.sort_unstable();
        values.dedup();
    }
    // Different terminals have different digits: as many as there are combinations are all of them.
    let combinations: usize = digits.iter().map(Vec::len).product();
    (combinations == terminals.len()).then_some(digits)
}

/// The terminals whose digits are among the first so many of each, ascending.
pub(super) fn corner(radices: &[u32], counts: &[u32]) -> Vec<TerminalId> {
    let mut terminals = vec![0];
    let strides = radices.iter().scan(1, |stride, radix| Some(std::mem::replace(stride, *stride * radix)));
    for (stride, &count) in strides.zip(counts) {
        terminals = (0..count).flat_map(|digit| terminals.iter().map(move |low| low + digit * stride)).collect();
    }
    terminals.into_iter().map(TerminalId).collect()
}
