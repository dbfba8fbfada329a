//! Collectives of users on every engine.

use kasuri_model::engine::{Outcome, Status};
use kasuri_network::rng::{Purpose, Streams};
use kasuri_workload::collective::COLLECTIVES;

/// For any collective, and however far apart the ranks of a user start, all of its messages are sent and arrive: not before the last
/// sending rank has started. A broadcast or a barrier has paths that do not meet, and is at most as late as its latest rank. A broadcast
/// and a scatter do not begin before their root, and the root of a gather and of a reduction sends nothing.
///
/// `run_of_users` runs two users of eight nodes each with these keys; its times are right to `rounding` cycles.
pub(crate) fn assert_delivered_whole_wherever_ranks_start(rounding: f64, run_of_users: impl Fn(&str) -> Outcome) {
    const SKEW: f64 = 500.0;
    for entry in COLLECTIVES {
        let keys = format!("collective = \"{}\"\nschedule = \"{}\"", entry.collective, entry.schedule);
        let run = |skew: f64| run_of_users(&format!("[user.workload]\n{keys}\nmessage_flits = 20\nstart_skew_cycles = {skew:.1}"));
        let (together, apart) = (run(0.0), run(SKEW));
        for user in 0..2 {
            let flits = |outcome: &Outcome| outcome.users[user].accepted_flits;
            assert_eq!((apart.status, flits(&apart)), (Status::Completed, flits(&together)), "{keys}");
            assert!(flits(&together) >= 7, "{keys}");
            let end = |outcome: &Outcome| outcome.users[user].completion.unwrap();
            let streams = Streams::new(1).of_user(user as u32);
            let starts: Vec<f64> = (0..8).map(|rank| streams.get(Purpose::Start, rank).unit() * SKEW).collect();
            let last = starts.iter().copied().fold(0.0, f64::max);
            if ["broadcast", "scatter"].contains(&entry.collective) {
                assert!(end(&apart) >= end(&together) + starts[0].floor() - rounding, "{keys}: {} {}", end(&apart), end(&together));
            } else {
                let is_to_root = ["gather", "reduce"].contains(&entry.collective);
                let last_sender = starts.iter().copied().skip(usize::from(is_to_root)).fold(0.0, f64::max);
                assert!(end(&apart) >= last_sender, "{keys}: {} {last_sender}", end(&apart));
            }
            if entry.collective == "barrier" || (entry.collective, entry.schedule) == ("broadcast", "binomial") {
                assert!(end(&apart) <= end(&together) + last + rounding, "{keys}: {} {}", end(&apart), end(&together));
            }
        }
    }
}
