//! The column `users` of a row: the results of each user.

use crate::results::{Numbers, Vector};
use kasuri_model::engine::{Outcome, TranslationCounts, UserOutcome};
use kasuri_model::scenario::Scenario;
use kasuri_network::network::Network;
use kasuri_workload::translation::embedding::Embedding;
use kasuri_workload::translation::users::{User, Users};
use serde_json::{Map, Value, json};

/// One object for each user, in the order of the file. Values unknown to the engine are `null`.
pub(crate) fn column(users: &Users, scenario: &Scenario, outcome: &Outcome) -> Value {
    let of_user = |(number, user): (usize, &User)| {
        let mut row = Map::new();
        row.insert("name".to_owned(), json!(user.name));
        row.insert("nodes".to_owned(), json!(user.nodes.len()));
        row.insert("runs".to_owned(), json!(!user.classes.is_empty()));
        row.insert("offered_load".to_owned(), json!(offered(user, scenario)));
        set_rates(&mut row, user, outcome.users.get(number), outcome.measured_cycles);
        set_embedding(&mut row, user.embedding.as_ref());
        set_translation(&mut row, outcome.users.get(number).and_then(|outcome| outcome.translation));
        Value::Object(row)
    };
    users.users.iter().enumerate().map(of_user).collect()
}

/// The offered load of a user, over all its terminals; `None` for a batch or a workload.
fn offered(user: &User, scenario: &Scenario) -> Option<f64> {
    let of_class = |class: usize| {
        let class = scenario.classes.get(class)?;
        let senders = user.nodes.iter().filter(|&&node| !class.pattern.is_silent(node)).count();
        let replies = class.reply.as_ref().map_or(0.0, |reply| reply.sizes.mean() / class.sizes.mean());
        class.packets_per_terminal.is_none().then(|| class.load * (1.0 + replies) * senders as f64 / user.nodes.len() as f64)
    };
    user.classes.clone().map(of_class).sum::<Option<f64>>().map(f64::abs)
}

/// The logical links over each channel, shape `[users, channels]`, if some user has a logical network.
pub(crate) fn logical_links(users: &Users, network: &Network) -> Option<Vector> {
    let channels = network.channel_count() as usize;
    let mut values = vec![0.0; users.users.len() * channels];
    for (user, row) in users.users.iter().zip(values.chunks_mut(channels)) {
        user.embedding.iter().flat_map(|embedding| &embedding.loads).for_each(|&(channel, links)| row[channel.index()] = links);
    }
    let is_any = users.users.iter().any(|user| user.embedding.is_some());
    is_any.then(|| Vector { name: "logical_links", shape: vec![users.users.len(), channels], values: Numbers::Real(values) })
}

fn set_rates(row: &mut Map<String, Value>, user: &User, outcome: Option<&UserOutcome>, cycles: u64) {
    let rate = outcome.filter(|_| cycles > 0).map(|outcome| outcome.accepted_flits as f64 / cycles as f64 / user.nodes.len() as f64);
    row.insert("accepted_throughput".to_owned(), json!(rate));
    let measured = outcome.filter(|outcome| outcome.packets > 0);
    row.insert("packets".to_owned(), json!(outcome.map(|outcome| outcome.packets)));
    row.insert("packet_latency_mean".to_owned(), json!(measured.map(|outcome| outcome.packet_latency as f64 / outcome.packets as f64)));
    row.insert("packet_latency_max".to_owned(), json!(measured.map(|outcome| outcome.packet_latency_max)));
    row.insert("completion_time".to_owned(), json!(outcome.and_then(|outcome| outcome.completion)));
}

fn set_embedding(row: &mut Map<String, Value>, embedding: Option<&Embedding>) {
    row.insert("dilation_max".to_owned(), json!(embedding.map(Embedding::dilation_max)));
    row.insert("dilation_mean".to_owned(), json!(embedding.map(Embedding::dilation_mean)));
    row.insert("congestion".to_owned(), json!(embedding.map(Embedding::congestion)));
}

fn set_translation(row: &mut Map<String, Value>, counts: Option<TranslationCounts>) {
    type Count = fn(&TranslationCounts) -> u64;
    let columns: [(&str, Count); 15] = [
        ("accesses", |counts| counts.accesses),
        ("accesses_ended", |counts| counts.ended),
        ("accesses_ended_wrongly", |counts| counts.ended_wrongly),
        ("protection_faults", |counts| counts.faults),
        ("tlb_hits", |counts| counts.hits),
        ("tlb_misses", |counts| counts.misses),
        ("misdelivered_packets", |counts| counts.misdelivered),
        ("table_changes", |counts| counts.changes),
        ("held_cycles", |counts| counts.held_cycles),
        ("foreign_packets", |counts| counts.foreign_packets),
        ("page_hits", |counts| counts.page_hits),
        ("page_misses", |counts| counts.page_misses),
        ("page_faults", |counts| counts.page_faults),
        ("wrong_words", |counts| counts.wrong_words),
        ("words_through_others", |counts| counts.words_through_others),
    ];
    for (name, count) in columns {
        row.insert(name.to_owned(), json!(counts.as_ref().map(count)));
    }
}
