//! Users on one machine against lone runs of each.

use kasuri::input::KNOWN;
use kasuri::plan::{self, RunOptions};
use kasuri::results::RunRow;
use kasuri::slowdown::LoneRuns;
use kasuri_config::Document;
use kasuri_network::topology::NoFiles;

/// Users `a` and `b` on a line of four routers, together and each alone.
fn rows(a: &str, b: &str, flits: u32, work: &str) -> Vec<RunRow> {
    let text = format!(
        "engine = \"flow\"\nnetwork = {{ topology = \"mesh\", dimensions = [4] }}\nrouting = {{ algorithm = \"dimension-order\" }}\n\
         flow = {{ latency = false }}\n[sweep]\n\"users.alone\" = [\"\", \"a\", \"b\"]\n\
         [[user]]\nname = \"a\"\nnodes = {a}\n[user.workload]\ncollective = \"broadcast\"\nschedule = \"linear\"\nmessage_flits = {flits}\n\
         [[user]]\nname = \"b\"\nnodes = {b}\n{work}\n"
    );
    let document = Document::parse_for(*KNOWN, "test.toml", &text).unwrap();
    plan::run(&document, &NoFiles, &RunOptions::default()).unwrap().rows
}

const BROADCAST: &str = "[user.workload]\ncollective = \"broadcast\"\nschedule = \"linear\"\nmessage_flits = 100";

/// The messages of both cross the channel in the middle and get half of it each; apart they do not affect each other.
#[test]
fn two_jobs_on_one_channel_take_twice_as_long() {
    for (a, b, expected) in [("[0, 2]", "[1, 3]", 2.0), ("[0, 1]", "[2, 3]", 1.0)] {
        let rows = rows(a, b, 100, BROADCAST);
        let alone = LoneRuns::of(&rows);
        for user in ["a", "b"] {
            let found = alone.slowdown(&rows[0], user).unwrap();
            assert!((found - expected).abs() < 1e-9, "{user} on {a} and {b}: {found}");
        }
        assert!(rows[1..].iter().all(|row| alone.slowdown(row, "a").is_none() && alone.slowdown(row, "b").is_none()));
        assert!(LoneRuns::of(&rows[..1]).slowdown(&rows[0], "a").is_none(), "nobody has run it alone");
    }
}

/// Open traffic of another user takes its offered load from the shared channel: with f flits of the job and a quarter of the channel's
/// cycles, the job ends after f / (1 - 1/4).
#[test]
fn open_traffic_slows_a_job() {
    let open = "[user.traffic]\npattern = \"bit-complement\"\nload = 0.25\npacket_flits = 5";
    let rows = rows("[0, 2]", "[1, 3]", 20_000, open);
    let found = LoneRuns::of(&rows).slowdown(&rows[0], "a").unwrap();
    assert!((found - 4.0 / 3.0).abs() < 0.04, "{found}");
}
