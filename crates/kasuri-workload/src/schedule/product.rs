//! Jobs within a product: some of the outer blocks, in each the same of the inner ones, and so on.

use super::contract::Schedule;
use super::part::Part;
use kasuri_network::id::TerminalId;

/// For each digit of a terminal's number the values that occur in a job, ascending.
///
/// `radices` are those of a terminal's number, the fastest first; the last digit is not bounded.
pub(super) fn digits(terminals: &[TerminalId], radices: &[u32]) -> Vec<Vec<u32>> {
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
    digits
}

/// The terminals with every combination of these digits, ascending.
pub(super) fn combinations(radices: &[u32], digits: &[Vec<u32>]) -> Vec<TerminalId> {
    let mut terminals = vec![0];
    let strides = radices.iter().scan(1, |stride, radix| Some(std::mem::replace(stride, *stride * radix)));
    for (stride, values) in strides.zip(digits) {
        terminals = values.iter().flat_map(|digit| terminals.iter().map(move |low| low + digit * stride)).collect();
    }
    terminals.into_iter().map(TerminalId).collect()
}

/// The terminals whose digits are among the first so many of each, ascending.
pub(super) fn corner(radices: &[u32], counts: &[u32]) -> Vec<TerminalId> {
    combinations(radices, &counts.iter().map(|&count| (0..count).collect()).collect::<Vec<_>>())
}

/// The schedule of a product for a job that lies in it: the schedule itself if the job is all of it, else its part.
///
/// `product` is ascending, and so is the job.
pub(super) fn within(schedule: Box<dyn Schedule>, product: &[TerminalId], job: &[TerminalId]) -> Box<dyn Schedule> {
    if product.len() == job.len() {
        return schedule;
    }
    // All of the job are found: their digits are among those of the product.
    let whole = job.iter().filter_map(|terminal| Some(product.binary_search(terminal).ok()? as u32)).collect();
    Box::new(Part::new(schedule, product.len() as u32, whole))
}
