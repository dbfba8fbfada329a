//! A fabric: `.topo`.

use super::shown;
use crate::error::FormatError;
use crate::text::text_of;
use kasuri_workload::ethernet::fabric::{Fabric, MAX_HOSTS, MAX_LINKS, MAX_RATE_GBPS, Tier};
use std::collections::BTreeMap;

/// The keys of a tier, in lower case, and from which value on a second line is refused.
const TIER_KEYS: [(&str, u64); 9] = [
    ("downlink_speed_gbps", 0),
    ("downlink_latency_ns", 0),
    ("radix_down", 0),
    ("radix_up", 0),
    ("queue_up", 0),
    ("queue_down", 0),
    // A value that is also the default may be followed by another.
    ("switch_latency_ns", 1),
    ("oversubscribed", 2),
    ("bundle", 2),
];

/// A whole number of the file and its line.
#[derive(Clone, Copy, Debug)]
struct Entry {
    value: u64,
    line: usize,
}

/// One tier as it is written.
#[derive(Debug, Default)]
struct Part {
    /// The line that opens it.
    line: usize,
    entries: BTreeMap<&'static str, Entry>,
}

impl Part {
    fn or(&self, key: &str, default: u64) -> Entry {
        self.entries.get(key).copied().unwrap_or(Entry { value: default, line: self.line })
    }
}

/// A fabric of two or three tiers.
///
/// # Errors
/// A line that is no `key value`, an unknown or duplicate key, one that is missing, and numbers that do not agree.
pub fn fabric(name: &str, bytes: &[u8]) -> Result<Fabric, FormatError> {
    let mut file = File { name, header: BTreeMap::new(), parts: BTreeMap::new(), open: None };
    for (number, line) in (1..).zip(text_of(name, bytes)?.split('\n')) {
        file.line(number, line)?;
    }
    file.fabric()
}

/// What has been read.
struct File<'a> {
    name: &'a str,
    header: BTreeMap<&'static str, Entry>,
    parts: BTreeMap<u64, Part>,
    open: Option<u64>,
}

impl File<'_> {
    fn error(&self, line: usize, problem: impl Into<String>) -> FormatError {
        FormatError::new(self.name, line.max(1), problem)
    }

    fn line(&mut self, number: usize, line: &str) -> Result<(), FormatError> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let mut words = line.split(' ');
        let key = words.next().unwrap_or_default().to_ascii_lowercase();
        let value = words.next().unwrap_or_default().trim_end_matches('\r');
        match (key.as_str(), self.open) {
            ("tier", _) => self.open_tier(number, value),
            (_, None) => self.header_line(number, &key, value),
            (_, Some(tier)) => self.tier_line(number, tier, &key, value),
        }
    }

    fn open_tier(&mut self, number: usize, value: &str) -> Result<(), FormatError> {
        let tier = self.whole(number, "Tier", value)?;
        if tier > 2 {
            let problem = format!("Tier {tier}: there are only 0 (ToR), 1 (aggregation, or spine of two tiers) and 2 (core)");
            return Err(self.error(number, problem));
        }
        self.parts.entry(tier).or_insert_with(|| Part { line: number, ..Part::default() });
        self.open = Some(tier);
        Ok(())
    }

    /// Keys that a header does not know mean nothing.
    fn header_line(&mut self, number: usize, key: &str, value: &str) -> Result<(), FormatError> {
        let known = ["nodes", "tiers", "podsize"].into_iter().find(|known| *known == key);
        if let Some(key) = known {
            let value = self.whole(number, key, value)?;
            self.header.insert(key, Entry { value, line: number });
        }
        Ok(())
    }

    fn tier_line(&mut self, number: usize, tier: u64, key: &str, value: &str) -> Result<(), FormatError> {
        let Some((key, again_from)) = TIER_KEYS.into_iter().find(|(known, _)| *known == key) else {
            let problem = if key.trim().is_empty() {
                "a line inside a tier must begin with a key and one blank; empty lines hold nothing, not even a carriage return".to_owned()
            } else {
                let known: Vec<&str> = TIER_KEYS.iter().map(|(key, _)| *key).collect();
                format!("unknown key `{}` of a tier; known keys: {}", shown(key.trim_end()), known.join(", "))
            };
            return Err(self.error(number, problem));
        };
        if tier == 2 && (key == "radix_up" || key == "queue_up") {
            return Err(self.error(number, format!("{key}: the switches of tier 2 have no links up; leave it out")));
        }
        let value = self.whole(number, key, value)?;
        let before = self.parts.get(&tier).and_then(|part| part.entries.get(key)).copied();
        if let Some(before) = before.filter(|before| before.value >= again_from) {
            return Err(self.error(number, format!("duplicate key {key} in tier {tier}; the first is on line {}", before.line)));
        }
        if let Some(part) = self.parts.get_mut(&tier) {
            part.entries.insert(key, Entry { value, line: number });
        }
        Ok(())
    }

    /// A whole number; a fraction is cut off.
    fn whole(&self, line: usize, key: &str, value: &str) -> Result<u64, FormatError> {
        let digits = value.split_once('.').map_or(value, |(whole, _)| whole);
        let fraction = value.split_once('.').map_or("", |(_, fraction)| fraction);
        let is_number = !digits.is_empty() && digits.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
        let parsed = if is_number { digits.parse::<u64>().ok().filter(|&value| value < 1 << 32) } else { None };
        parsed.ok_or_else(|| {
            let right = "a whole number below 2^32 after one blank, such as `Radix_Up 8`";
            self.error(line, format!("{key}: `{}` is not {right}", shown(value)))
        })
    }

    fn required(&self, key: &'static str) -> Result<Entry, FormatError> {
        let missing = || self.error(1, format!("{key} is missing before the first `Tier` line, or separated from its value by no blank"));
        self.header.get(key).copied().ok_or_else(missing)
    }

    fn fabric(&self) -> Result<Fabric, FormatError> {
        let nodes = self.required("nodes")?;
        if nodes.value == 0 || nodes.value > u64::from(MAX_HOSTS) {
            return Err(self.error(nodes.line, format!("nodes: {} hosts; there may be 1 to {MAX_HOSTS}", nodes.value)));
        }
        let count = self.required("tiers")?;
        if !(2..=3).contains(&count.value) {
            return Err(self.error(count.line, format!("tiers: {} is neither 2 (leaf-spine) nor 3 (fat tree)", count.value)));
        }
        let pod = self.required("podsize")?;
        if pod.value == 0 || !nodes.value.is_multiple_of(pod.value) {
            return Err(self.error(pod.line, format!("podsize: the {} hosts do not fill pods of {}", nodes.value, pod.value)));
        }
        if count.value == 2 && pod.value != nodes.value {
            let problem = format!("podsize: a fabric of two tiers is one pod, so it is {}, not {}", nodes.value, pod.value);
            return Err(self.error(pod.line, problem));
        }
        (0..count.value).try_for_each(|tier| self.part(tier, count.value).map(drop))?;
        let tiers = (0..count.value).map(|tier| self.tier(tier, count.value)).collect::<Result<Vec<Tier>, _>>()?;
        let fabric = Fabric { hosts: nodes.value as u32, pod_hosts: pod.value as u32, tiers };
        self.check(&fabric)?;
        Ok(fabric)
    }

    fn part(&self, tier: u64, tiers: u64) -> Result<&Part, FormatError> {
        let missing = || self.error(1, format!("`Tier {tier}` is missing; a fabric of {tiers} tiers has Tier 0 to Tier {}", tiers - 1));
        self.parts.get(&tier).ok_or_else(missing)
    }

    fn tier(&self, tier: u64, tiers: u64) -> Result<Tier, FormatError> {
        let part = self.part(tier, tiers)?;
        let positive = |key: &str| match part.or(key, 0) {
            Entry { value: 0, line } => Err(self.error(line, format!("{key} of tier {tier} is missing or 0"))),
            entry => Ok(entry),
        };
        let rate = positive("downlink_speed_gbps")?;
        if rate.value > u64::from(MAX_RATE_GBPS) {
            let problem = format!("downlink_speed_gbps: {} is more than {MAX_RATE_GBPS}, of which a byte takes one picosecond", rate.value);
            return Err(self.error(rate.line, problem));
        }
        let bundle = part.or("bundle", 1);
        if bundle.value == 0 || tier == 0 && bundle.value != 1 {
            return Err(
                self.error(bundle.line, format!("bundle: {} links; hosts have one link to their ToR, switches at least one", bundle.value))
            );
        }
        let down = positive("radix_down")?;
        let up = if tier + 1 == tiers { Entry { value: 0, line: part.line } } else { positive("radix_up")? };
        if !down.value.is_multiple_of(bundle.value) {
            return Err(
                self.error(down.line, format!("radix_down: {} links are not a multiple of the bundle {}", down.value, bundle.value))
            );
        }
        Ok(Tier {
            rate_gbps: rate.value as u32,
            link_latency_ns: positive("downlink_latency_ns")?.value,
            switch_latency_ns: part.or("switch_latency_ns", 0).value,
            down: down.value as u32,
            up: up.value as u32,
            bundle: bundle.value as u32,
        })
    }

    /// Sizes that follow from what the file says must be what it says elsewhere.
    fn check(&self, fabric: &Fabric) -> Result<(), FormatError> {
        let tiers = &fabric.tiers;
        if !fabric.pod_hosts.is_multiple_of(tiers[0].down) {
            let problem =
                format!("podsize: the {} hosts of a pod do not fill ToRs of {} (Radix_Down of tier 0)", fabric.pod_hosts, tiers[0].down);
            return Err(self.error(self.required("podsize")?.line, problem));
        }
        let mut uplinks = u64::from(fabric.hosts);
        for lower in 0..tiers.len() - 1 {
            uplinks = self.uplinks(fabric, lower, uplinks)?;
            self.check_upper_switches(fabric, lower, uplinks)?;
        }
        let switches = fabric.switches();
        let ends = switches.iter().zip(tiers).map(|(&count, tier)| u64::from(count) * u64::from(tier.down)).sum::<u64>();
        if 2 * ends > MAX_LINKS {
            return Err(self.error(1, format!("the fabric has {} links, counted in both directions; the limit is {MAX_LINKS}", 2 * ends)));
        }
        Ok(())
    }

    /// Links up from a tier in all, by its rates and oversubscription.
    fn uplinks(&self, fabric: &Fabric, lower: usize, below: u64) -> Result<u64, FormatError> {
        let part = &self.parts[&(lower as u64)];
        let over = part.or("oversubscribed", 1);
        let (tier, upper) = (fabric.tiers[lower], fabric.tiers[lower + 1]);
        if over.value == 0 {
            return Err(self.error(over.line, "oversubscribed: 0; it is 1 where no tier is oversubscribed"));
        }
        if lower == 0 && u64::from(tier.down / tier.up) != over.value {
            let found = tier.down / tier.up;
            let problem = format!("oversubscribed: {}, but Radix_Down {} over Radix_Up {} is {found}", over.value, tier.down, tier.up);
            return Err(self.error(over.line, problem));
        }
        let rates = u64::from(upper.rate_gbps) * over.value;
        Ok(below * u64::from(tier.rate_gbps) / rates)
    }

    /// The switches of a tier for so many links from below must be those to which the bundles lead.
    fn check_upper_switches(&self, fabric: &Fabric, lower: usize, links: u64) -> Result<(), FormatError> {
        let (tier, upper) = (fabric.tiers[lower], fabric.tiers[lower + 1]);
        let number = lower + 1;
        let (part, lower_part) = (&self.parts[&(number as u64)], &self.parts[&(lower as u64)]);
        let up_line = lower_part.or("radix_up", 0).line;
        if !tier.up.is_multiple_of(upper.bundle) {
            let problem = format!("radix_up: {} links are not a multiple of {} (Bundle of tier {number})", tier.up, upper.bundle);
            return Err(self.error(up_line, problem));
        }
        // Aggregation switches of a pod, or cores in all.
        let pods = if lower == 0 { fabric.pods() } else { 1 };
        let count = links / (u64::from(pods) * u64::from(upper.down));
        // Each switch of the tier below has one bundle to each switch here, or to each core of its own place in the pod.
        let sharing = if lower == 0 { 1 } else { u64::from(fabric.aggregations_per_pod()) };
        let from_counts = if count.is_multiple_of(sharing) { count / sharing * u64::from(upper.bundle) } else { 0 };
        if count == 0 || from_counts != u64::from(tier.up) {
            let which = if lower == 0 { "in each pod" } else { "in all" };
            let fit =
                (u64::from(tier.up) * sharing).checked_div(count).filter(|fit| *fit > 0 && fit * count == u64::from(tier.up) * sharing);
            let advice = fit.map_or(String::new(), |fit| format!("; a Bundle of {fit} would fit"));
            let problem = format!(
                "radix_up: the rates and radices make {count} switches {which} on tier {number}, to which bundles of {} lead, but tier \
                 {lower} has {} links up{advice}",
                upper.bundle, tier.up
            );
            return Err(self.error(up_line, problem));
        }
        let joined = if lower == 0 { fabric.tors_per_pod() } else { fabric.pods() };
        if u64::from(joined) * u64::from(upper.bundle) != u64::from(upper.down) {
            let what = if lower == 0 { "ToRs of a pod" } else { "pods" };
            let problem = format!(
                "radix_down: {} links, but a switch of tier {number} has bundles of {} to each of {joined} {what}",
                upper.down, upper.bundle
            );
            return Err(self.error(part.or("radix_down", 0).line, problem));
        }
        Ok(())
    }
}
