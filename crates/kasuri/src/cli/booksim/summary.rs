//! The summary block that BookSim 2 prints at the end, with its labels, for the scripts that read them.

use super::super::Failure;
use crate::results::RunRow;
use std::fmt::Write;
use toml::{Table, Value};

/// A note on the values missing from the block.
pub(super) const NOT_MEASURED: &str = "the block has no `Fragmentation average`: it is not measured";

/// Accepts configurations with one traffic class: a row determines their summary.
///
/// # Errors
/// The configuration has several classes, which BookSim reports one by one.
pub(super) fn check(classes: u32) -> Result<(), Failure> {
    if classes > 1 {
        return Err(Failure::Input(format!(
            "--as-booksim: the configuration has {classes} traffic classes, and a run reports only their mean; leave it out, or give one class"
        )));
    }
    Ok(())
}

/// The block of one run. `table` is the experiment file that the configuration was translated to.
pub(super) fn block(row: &RunRow, table: &Table) -> String {
    if row.status() == "saturated" {
        return "Simulation unstable, ending ...\n".to_owned();
    }
    let mut text = String::new();
    if let Some(cycles) = row.number("cycles") {
        line(&mut text, &format!("Time taken is {cycles} cycles"));
    }
    line(&mut text, "====== Overall Traffic Statistics ======\n====== Traffic class 0 ======");
    for (label, column) in [("Packet", "packet_latency"), ("Network", "network_latency"), ("Flit", "flit_latency")] {
        three(&mut text, &format!("{label} latency"), ["mean", "min", "max"].map(|end| row.number(&format!("{column}_{end}"))));
    }
    let size = mean_packet_flits(table);
    let injected = ["injected_load", "injected_load_min", "injected_load_max"].map(|column| row.number(column));
    let accepted = ["mean", "min", "max"].map(|end| row.number(&format!("accepted_throughput_{end}")));
    if let Some(size) = size {
        three(&mut text, "Injected packet rate", injected.map(|rate| rate.map(|rate| rate / size)));
        three(&mut text, "Accepted packet rate", accepted.map(|rate| rate.map(|rate| rate / size)));
    }
    three(&mut text, "Injected flit rate", injected);
    three(&mut text, "Accepted flit rate", accepted);
    if let Some(size) = size {
        one(&mut text, "Injected packet size average", Some(size));
        one(&mut text, "Accepted packet size average", Some(size));
    }
    one(&mut text, "Hops average", row.number("hops_mean"));
    // BookSim gives the least, the mean and the greatest of its batches this one name; here there is one batch.
    for _ in 0..3 {
        one(&mut text, "Overall min batch duration", row.number("completion_time"));
    }
    text
}

/// The mean length of a packet, answers included; `None` if unknown.
fn mean_packet_flits(table: &Table) -> Option<f64> {
    let traffic = table.get("traffic")?;
    let classes = match traffic.get("class").and_then(Value::as_array) {
        Some(classes) => classes.iter().collect(),
        None => vec![traffic],
    };
    let (mut flits, mut packets) = (0.0, 0.0);
    for class in &classes {
        let request = mean_size(class.get("packet_flits")?)?;
        let reply = class.get("reply").and_then(|reply| mean_size(reply.get("packet_flits")?));
        // With a single class the rate cancels out.
        let rate = if classes.len() == 1 { 1.0 } else { number(class.get("load")?)? / request };
        flits += rate * (request + reply.unwrap_or(0.0));
        packets += rate * if reply.is_some() { 2.0 } else { 1.0 };
    }
    (packets > 0.0).then(|| flits / packets)
}

/// The mean of `packet_flits`: a number, or a mixture.
fn mean_size(value: &Value) -> Option<f64> {
    let Value::Array(sizes) = value else { return number(value) };
    let part = |size: &Value, key: &str| size.get(key).and_then(number);
    let weights: f64 = sizes.iter().map(|size| part(size, "weight").unwrap_or(1.0)).sum();
    let flits: f64 = sizes.iter().map(|size| part(size, "weight").unwrap_or(1.0) * part(size, "flits").unwrap_or(0.0)).sum();
    (weights > 0.0).then(|| flits / weights)
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64))
}

/// Mean, minimum and maximum; nothing without a mean.
fn three(text: &mut String, label: &str, [mean, least, greatest]: [Option<f64>; 3]) {
    one(text, &format!("{label} average"), mean);
    if mean.is_some() {
        one(text, "\tminimum", least);
        one(text, "\tmaximum", greatest);
    }
}

fn one(text: &mut String, label: &str, value: Option<f64>) {
    if let Some(value) = value {
        line(text, &format!("{label} = {} (1 samples)", significant(value)));
    }
}

/// Six significant digits, as BookSim's streams print.
fn significant(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let places = (5 - digits).max(0) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn line(text: &mut String, content: &str) {
    writeln!(text, "{content}").expect("writing to a text cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_six_significant_digits() {
        for (value, expected) in
            [(49.15823, "49.1582"), (0.0599521, "0.0599521"), (0.3, "0.3"), (238.0, "238"), (0.0, "0"), (100_087.4, "100087")]
        {
            assert_eq!(significant(value), expected);
        }
    }

    #[test]
    fn the_length_of_a_packet_is_the_mean_of_its_classes() {
        let length = |text: &str| mean_packet_flits(&text.parse().unwrap());
        assert_eq!(length("[traffic]\npacket_flits = 5"), Some(5.0));
        assert_eq!(length("[traffic]\npacket_flits = [{ flits = 1, weight = 3 }, { flits = 5, weight = 1 }]"), Some(2.0));
        assert_eq!(length("[traffic]\npattern = \"uniform\""), None);
        // Packets of 1 and 5 flits at rates 0.1 and 0.02, each answered by one of 3: (0.1 * 4 + 0.02 * 8) / 0.24.
        let answered = "[[traffic.class]]\nload = 0.1\npacket_flits = 1\nreply = { packet_flits = 3 }\n\
                        [[traffic.class]]\nload = 0.1\npacket_flits = 5\nreply = { packet_flits = 3 }";
        assert!((length(answered).unwrap() - 0.56 / 0.24).abs() < 1e-12);
    }

    #[test]
    fn several_classes_are_refused() {
        assert!(check(2).is_err());
        assert!(check(1).is_ok());
    }
}
