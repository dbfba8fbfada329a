//! BookSim 2's options: name, type, default, and what Kasuri makes of them.

use super::Value;
use super::syntax::classify;

/// An option of the language.
#[derive(Clone, Copy, Debug)]
pub struct OptionEntry {
    /// Its name.
    pub name: &'static str,
    /// The type of its value.
    pub kind: Kind,
    /// BookSim's default as it would be written; empty for no text.
    pub default: &'static str,
    /// What Kasuri makes of it.
    pub role: Role,
}

/// The type of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Integer,
    /// A number.
    Real,
    /// A word, a vector or a function.
    Text,
    /// A whole number, or a vector of them.
    Integers,
    /// A number, or a vector of them.
    Reals,
}

/// What Kasuri makes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is translated.
    Used,
    /// Only the default is translated. The text says what another value asks for.
    DefaultOnly(&'static str),
    /// Only the default is translated where `speculative` is on; elsewhere it has no effect.
    DefaultOnlyIfSpeculative(&'static str),
    /// It has no effect on the results. The text says why.
    NoEffect(&'static str),
}

impl OptionEntry {
    /// The default as a value.
    pub fn default_value(&self) -> Value {
        classify(self.default.to_owned())
    }
}

impl Kind {
    pub(super) fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Integer => matches!(value, Value::Integer(_)),
            Self::Real => matches!(value, Value::Integer(_) | Value::Real(_)),
            Self::Text => matches!(value, Value::Text(_)),
            Self::Integers => matches!(value, Value::Integer(_) | Value::Text(_)),
            Self::Reals => true,
        }
    }

    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Integer => "a whole number",
            Self::Real => "a number",
            Self::Text => "a word",
            Self::Integers => "a whole number or a vector of them",
            Self::Reals => "a number or a vector of them",
        }
    }
}

/// The option of this name.
pub fn find(name: &str) -> Option<&'static OptionEntry> {
    OPTIONS.iter().find(|option| option.name == name)
}

/// The end of a message about an unknown name.
pub(super) fn suggestion(name: &str) -> String {
    nearest(name, OPTIONS.iter().map(|option| option.name))
}

/// `; did you mean …?` if one of the names is near enough, else nothing.
pub fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> String {
    known
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .filter(|&(distance, known)| distance <= 1 + known.len() / 4)
        .min()
        .map_or(String::new(), |(_, known)| format!("; did you mean `{known}`?"))
}

use Kind::{Integer, Integers, Real, Reals, Text};
use Role::{DefaultOnly, DefaultOnlyIfSpeculative, NoEffect, Used};

const fn option(name: &'static str, kind: Kind, default: &'static str, role: Role) -> OptionEntry {
    OptionEntry { name, kind, default, role }
}

const SUBNETS: Role = NoEffect("it belongs to several networks side by side");
const OUTPUT: Role = NoEffect("it only asks for more output");
const POWER: Role = NoEffect("it belongs to the power model");
const UNREAD: Role = NoEffect("BookSim 2 reads it nowhere in the input-queued router");

/// All options of BookSim 2, by subject.
pub const OPTIONS: &[OptionEntry] = &[
    // Network.
    option("topology", Text, "torus", Used),
    option("routing_function", Text, "none", Used),
    option("k", Integer, "8", Used),
    option("n", Integer, "2", Used),
    option("use_noc_latency", Integer, "1", Used),
    option("xr", Integer, "1", Used),
    option("c", Integer, "1", Used),
    option("x", Integer, "8", Used),
    option("y", Integer, "8", Used),
    option("yr", Integer, "1", Used),
    option("subnets", Integer, "1", DefaultOnly("several networks side by side")),
    option("link_failures", Integer, "0", DefaultOnly("failed links")),
    option("fail_seed", Integers, "0", NoEffect("no link fails")),
    option("channel_file", Text, "", UNREAD),
    option("network_file", Text, "", Used),
    option("in_ports", Integer, "5", UNREAD),
    option("out_ports", Integer, "5", UNREAD),
    // Router.
    option("router", Text, "iq", DefaultOnly("another router than the input-queued one")),
    option("num_vcs", Integer, "16", Used),
    option("vc_buf_size", Integer, "8", Used),
    option("routing_delay", Integer, "1", Used),
    option("vc_alloc_delay", Integer, "1", Used),
    option("sw_alloc_delay", Integer, "1", Used),
    option("st_prepare_delay", Integer, "0", Used),
    option("st_final_delay", Integer, "1", Used),
    option("credit_delay", Integer, "0", Used),
    option("speculative", Integer, "0", Used),
    option("wait_for_tail_credit", Integer, "0", Used),
    option("vc_allocator", Text, "islip", Used),
    option("sw_allocator", Text, "islip", Used),
    option("arb_type", Text, "round_robin", NoEffect("BookSim 2 does not hand it to the allocators; write allocator(arbiter)")),
    option("alloc_iters", Integer, "1", NoEffect("BookSim 2 does not hand it to the allocators; write allocator(iterations)")),
    option("internal_speedup", Real, "1.0", Used),
    option("input_speedup", Integer, "1", Used),
    option("output_speedup", Integer, "1", Used),
    option("output_buffer_size", Integer, "-1", Used),
    option("hold_switch_for_packet", Integer, "0", Used),
    option("noq", Integer, "0", DefaultOnly("one virtual channel for each next output")),
    option("buf_size", Integer, "-1", Used),
    option("buffer_policy", Text, "private", Used),
    option("private_bufs", Integer, "-1", Used),
    option("private_buf_size", Integers, "1", Used),
    option("private_buf_start_vc", Integers, "-1", Used),
    option("private_buf_end_vc", Integers, "-1", Used),
    option("max_held_slots", Integer, "-1", Used),
    option("feedback_aging_scale", Integer, "1", NoEffect("it belongs to buffers limited by measured round trips")),
    option("feedback_offset", Integer, "0", NoEffect("it belongs to buffers limited by measured round trips")),
    option("vc_busy_when_full", Integer, "0", Used),
    option("vc_prioritize_empty", Integer, "0", Used),
    option("vc_priority_donation", Integer, "0", DefaultOnly("priorities that are passed on")),
    option("vc_shuffle_requests", Integer, "0", DefaultOnly("another order of the virtual-channel allocator's inputs")),
    option("spec_check_elig", Integer, "1", DefaultOnlyIfSpeculative("speculative bids without a free virtual channel")),
    option("spec_check_cred", Integer, "1", DefaultOnlyIfSpeculative("speculative bids without credit")),
    option("spec_mask_by_reqs", Integer, "0", DefaultOnlyIfSpeculative("bids, not grants, that mask speculative grants")),
    option("spec_sw_allocator", Text, "prio", DefaultOnlyIfSpeculative("a second allocator for speculative bids")),
    option("vct", Integer, "0", UNREAD),
    option("output_delay", Integer, "0", UNREAD),
    // Traffic.
    option("traffic", Text, "uniform", Used),
    option("injection_rate", Reals, "0.1", Used),
    option("injection_rate_uses_flits", Integer, "0", Used),
    option("packet_size", Integers, "1", Used),
    option("packet_size_rate", Integers, "1", Used),
    option("perm_seed", Integers, "0", Used),
    option("injection_process", Text, "bernoulli", Used),
    option("burst_alpha", Real, "0.5", Used),
    option("burst_beta", Real, "0.5", Used),
    option("burst_r1", Real, "-1.0", Used),
    option("classes", Integer, "1", Used),
    option("priority", Text, "none", Used),
    option("class_priority", Integers, "0", Used),
    option("use_read_write", Integers, "0", Used),
    option("write_fraction", Reals, "0.5", Used),
    option("read_request_begin_vc", Integer, "0", Used),
    option("read_request_end_vc", Integer, "5", Used),
    option("write_request_begin_vc", Integer, "2", Used),
    option("write_request_end_vc", Integer, "7", Used),
    option("read_reply_begin_vc", Integer, "8", Used),
    option("read_reply_end_vc", Integer, "13", Used),
    option("write_reply_begin_vc", Integer, "10", Used),
    option("write_reply_end_vc", Integer, "15", Used),
    option("read_request_subnet", Integer, "0", SUBNETS),
    option("read_reply_subnet", Integer, "0", SUBNETS),
    option("write_request_subnet", Integer, "0", SUBNETS),
    option("write_reply_subnet", Integer, "0", SUBNETS),
    option("read_request_size", Integers, "1", Used),
    option("write_request_size", Integers, "1", Used),
    option("read_reply_size", Integers, "1", Used),
    option("write_reply_size", Integers, "1", Used),
    option("batch_size", Integer, "1000", Used),
    option("batch_count", Integer, "1", Used),
    option("max_outstanding_requests", Integer, "0", Used),
    // Measurement.
    option("sim_type", Text, "latency", Used),
    option("seed", Integers, "0", Used),
    option("sample_period", Integer, "1000", Used),
    option("warmup_periods", Integer, "3", Used),
    option("max_samples", Integer, "10", Used),
    option("latency_thres", Reals, "500.0", Used),
    option("warmup_thres", Reals, "0.05", Used),
    option("acc_warmup_thres", Reals, "0.05", Used),
    option("stopping_thres", Reals, "0.05", Used),
    option("acc_stopping_thres", Reals, "0.05", Used),
    option("measure_stats", Integers, "1", DefaultOnly("traffic that is not measured")),
    option("include_queuing", Integer, "1", DefaultOnly("packet latency without the wait at the source")),
    option("sim_count", Integer, "1", DefaultOnly("repetitions; run with several seeds instead")),
    // Output and power.
    option("pair_stats", Integer, "0", OUTPUT),
    option("print_activity", Integer, "0", OUTPUT),
    option("print_csv_results", Integer, "0", OUTPUT),
    option("deadlock_warn_timeout", Integer, "256", OUTPUT),
    option("viewer_trace", Integer, "0", OUTPUT),
    option("watch_file", Text, "", OUTPUT),
    option("watch_flits", Integers, "", OUTPUT),
    option("watch_packets", Integers, "", OUTPUT),
    option("watch_transactions", Integers, "", OUTPUT),
    option("watch_out", Text, "", OUTPUT),
    option("stats_out", Text, "", OUTPUT),
    option("injected_flits_out", Text, "", OUTPUT),
    option("received_flits_out", Text, "", OUTPUT),
    option("stored_flits_out", Text, "", OUTPUT),
    option("sent_flits_out", Text, "", OUTPUT),
    option("outstanding_credits_out", Text, "", OUTPUT),
    option("ejected_flits_out", Text, "", OUTPUT),
    option("active_packets_out", Text, "", OUTPUT),
    option("used_credits_out", Text, "", OUTPUT),
    option("free_credits_out", Text, "", OUTPUT),
    option("max_credits_out", Text, "", OUTPUT),
    option("sent_packets_out", Text, "", OUTPUT),
    option("sim_power", Integer, "0", POWER),
    option("power_output_file", Text, "pwr_tmp", POWER),
    option("tech_file", Text, "", POWER),
    option("channel_width", Integer, "128", POWER),
    option("channel_sweep", Integer, "0", POWER),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_defaults_fit_their_type() {
        for (number, option) in OPTIONS.iter().enumerate() {
            assert!(OPTIONS[..number].iter().all(|other| other.name != option.name), "{}", option.name);
            assert!(option.default.is_empty() || option.kind.accepts(&option.default_value()), "{}", option.name);
        }
    }
}
