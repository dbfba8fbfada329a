//! Finished runs survive kills, signals, second processes and damaged files: tests of the command.

use kasuri::results::COSTS;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// 200 runs of some milliseconds each.
const SWEEP: &str = r#"
[network]
topology = "mesh"
dimensions = [4, 4]
[routing]
algorithm = "dimension-order"
[traffic]
pattern = "uniform"
packet_flits = 3
[measure]
warmup = 500
cycles = 4_000
[sweep]
"traffic.load" = { from = 0.02, to = 0.40, step = 0.02 }
"measure.seed" = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
"#;

const RUNS: usize = 200;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self::of(SWEEP)
    }

    fn of(experiment: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::write(folder.file(), experiment).unwrap();
        folder
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("sweep.toml")
    }

    fn out(&self) -> PathBuf {
        self.0.path().join("out")
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kasuri"));
        command.arg("run").arg(self.file()).arg("--out").arg(self.out()).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, more: &[&str]) -> Output {
        self.command(more).output().unwrap()
    }

    /// Starts a run on `threads` threads, one point after the other, and waits until `finished` points are done.
    fn start(&self, finished: usize, threads: &str) -> Child {
        let child = self.command(&["--jobs", "1", "--threads", threads]).spawn().unwrap();
        self.wait_for(finished);
        child
    }

    /// Runs with at most `kib` KiB of address space.
    fn run_within(&self, kib: u64, threads: &str) -> Output {
        within(kib, &self.command(&["--jobs", "1", "--threads", threads]))
    }

    fn wait_for(&self, finished: usize) {
        let begin = Instant::now();
        while finished_runs(&self.out()) < finished {
            assert!(begin.elapsed() < Duration::from_secs(60), "the runs take too long");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The rows of `runs.json` without the columns that differ between equal runs.
    fn table(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.out().join("runs.json")).unwrap();
        let mut table: Value = serde_json::from_str(&text).unwrap();
        let rows = table["runs"].as_array_mut().unwrap();
        for row in rows.iter_mut() {
            COSTS.iter().for_each(|&column| row[column] = Value::Null);
        }
        std::mem::take(rows)
    }
}

/// All files in a folder of results except rows and tables, which depend on the machine: path and content.
fn other_files(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for folder in [out.to_owned(), out.join("runs"), out.join("networks"), out.join("failed")] {
        for entry in fs::read_dir(folder).into_iter().flatten().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
            let name = entry.path().strip_prefix(out).unwrap().to_str().unwrap().to_owned();
            let tells_of_the_machine = name.ends_with(".json") && !name.starts_with("networks") || name == "runs.csv";
            let content = if tells_of_the_machine { Vec::new() } else { fs::read(entry.path()).unwrap() };
            found.insert(name, content);
        }
    }
    found
}

/// Temporary files, of living or killed processes.
fn temporary_files(out: &Path) -> usize {
    other_files(out).keys().filter(|name| name.ends_with(".kasuri-tmp")).count()
}

/// Threads with which a process computes one run.
#[cfg(target_os = "linux")]
fn threads_of_run(child: &Child) -> usize {
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    1 + names.filter(|name| name.starts_with("kasuri-tile")).count()
}

fn finished_runs(out: &Path) -> usize {
    let Ok(entries) = fs::read_dir(out.join("runs")) else { return 0 };
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).filter(|name| name.ends_with(".json")).count()
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A number in `0..bound` that differs from test run to test run.
fn any_below(bound: u32) -> usize {
    let nanoseconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos();
    (nanoseconds / 1000 % bound) as usize
}

/// On one thread each run or on two: the undisturbed one has one.
#[test]
fn a_killed_sweep_continues_to_the_same_table() {
    let undisturbed = Folder::new();
    let output = undisturbed.run(&["--threads", "1"]);
    assert!(output.status.success(), "{}", message(&output));
    assert_eq!(undisturbed.table().len(), RUNS);

    let killed = Folder::new();
    let mut finished = 0;
    for threads in ["1", "2", "2"] {
        let moment = finished + 1 + any_below(50);
        let mut child = killed.start(moment, threads);
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success(), "killed after {moment} runs");
        finished = finished_runs(&killed.out());
        assert!(finished >= moment && finished < RUNS && !killed.out().join("runs.json").exists(), "killed after {moment} runs");
    }
    let output = killed.run(&["--threads", "2"]);
    assert!(output.status.success(), "{}", message(&output));
    assert!(killed.table() == undisturbed.table(), "after kills at {finished} runs the table differs");
    assert!(other_files(&killed.out()) == other_files(&undisturbed.out()), "after kills at {finished} runs the files differ");
    assert_eq!(temporary_files(&killed.out()), 0);
}

#[test]
fn signals_end_a_sweep_soon_and_keep_finished_runs() {
    for (name, status, threads) in [("INT", 130, "1"), ("INT", 130, "2"), ("TERM", 143, "1"), ("TERM", 143, "2")] {
        let folder = Folder::new();
        let child = folder.start(3, threads);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", message(&output));
        assert_eq!(temporary_files(&folder.out()), 0);
        let finished = finished_runs(&folder.out());
        let expected = format!("{finished} of {RUNS} runs are finished and kept in");
        assert!(message(&output).contains(&expected) && message(&output).contains("run the same command again"), "{}", message(&output));
    }
}

/// A run that would take hours, on a network that is worth several threads.
const LONG: &str = r#"
[network]
topology = "torus"
dimensions = [24, 24]
[routing]
algorithm = "dimension-order"
[router]
virtual_channels = 2
[traffic]
pattern = "uniform"
load = 0.2
[measure]
warmup = 100
cycles = 1_000_000_000
max_cycles = 2_000_000_000
"#;

/// True if the machine has `count` cores; with fewer, a run gets no second thread.
fn has_cores(count: usize) -> bool {
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() >= count)
}

#[test]
#[cfg(target_os = "linux")]
fn a_run_on_two_threads_is_cut_short_in_its_middle_as_one_on_one_thread_is() {
    let mut left = Vec::new();
    for threads in ["1", "2"] {
        for (name, status) in [("INT", Some(130)), ("TERM", Some(143)), ("KILL", None)] {
            let folder = Folder::of(LONG);
            let child = folder.start(0, threads);
            let expected = if has_cores(2) { threads.parse().unwrap() } else { 1 };
            let begin = Instant::now();
            while threads_of_run(&child) != expected || !folder.out().join("input.toml").exists() {
                assert!(begin.elapsed() < Duration::from_secs(60), "it has not {expected} threads");
                std::thread::sleep(Duration::from_millis(5));
            }
            // Into the run's middle.
            std::thread::sleep(Duration::from_millis(300));
            signal(&child, name);
            let begin = Instant::now();
            let output = child.wait_with_output().unwrap();
            assert!(begin.elapsed() < Duration::from_secs(20), "{name} on {threads} threads ends after {:?}", begin.elapsed());
            assert_eq!(output.status.code(), status, "{}", message(&output));
            assert!(status.is_none() || message(&output).contains("0 of 1 runs are finished"), "{}", message(&output));
            assert!(!message(&output).contains("defect"), "{}", message(&output));
            left.push(other_files(&folder.out()));
        }
    }
    assert!(left.iter().all(|files| *files == left[0]), "on two threads other files are left than on one");
}

/// The output of a command with at most `kib` KiB of address space.
fn within(kib: u64, command: &Command) -> Output {
    let words = ["-c", "ulimit -v \"$1\"; shift; exec \"$@\"", "sh", &kib.to_string()];
    Command::new("sh").args(words).arg(command.get_program()).args(command.get_args()).output().unwrap()
}

/// The least memory, in steps of some KiB, in which the program begins at all: below it the loader and Rust's own start end it, before any
/// of its code runs.
#[cfg(target_os = "linux")]
fn least_memory() -> u64 {
    let mut version = Command::new(env!("CARGO_BIN_EXE_kasuri"));
    version.arg("--version");
    (16_000..200_000).step_by(500).find(|&kib| within(kib, &version).status.success()).expect("the program begins in 200 MB")
}

/// Small networks with long runs, which come first, and one that needs more memory than there is.
const LARGE: &str = r#"
[network]
topology = "mesh"
dimensions = [4, 4]
[routing]
algorithm = "dimension-order"
[router]
virtual_channels = 4
[traffic]
pattern = "uniform"
load = 0.1
packet_flits = 4
[measure]
warmup = 100
cycles = 200_000
[sweep]
"measure.seed" = [1, 2]
[[sweep.case]]
label = "small"
[[sweep.case]]
label = "large"
network.dimensions = [96, 96]
router.buffer_flits = 16
measure.warmup = 10
measure.cycles = 20
"#;

#[test]
#[cfg(target_os = "linux")]
fn exhausted_memory_keeps_finished_runs_on_any_number_of_threads() {
    let undisturbed = Folder::of(LARGE);
    let output = undisturbed.run(&["--threads", "1"]);
    assert!(output.status.success(), "{}", message(&output));
    for threads in ["1", "2"] {
        let folder = Folder::of(LARGE);
        // More and more, until all fits: memory runs out in one place after the other.
        let (mut short, mut kept) = (0, Vec::new());
        for kib in (least_memory()..2_000_000).step_by(8_000) {
            let output = folder.run_within(kib, threads);
            if output.status.success() {
                break;
            }
            let said = message(&output);
            // Where a thread begins, the C library itself gives up.
            let is_ended_by_library = said.contains("Fatal glibc error");
            assert!(output.status.code() == Some(1) || is_ended_by_library, "{kib} KiB, {threads} threads: {said}");
            assert!(said.contains("out of memory") || said.contains("threads cannot be started"), "{kib} KiB, {threads} threads: {said}");
            assert!(!said.contains("defect"), "{kib} KiB, {threads} threads: {said}");
            short += 1;
            kept.push(finished_runs(&folder.out()));
        }
        assert!(short >= 1 && kept.contains(&2), "the small networks are never finished without the large ones: {kept:?}");
        assert!(kept.is_sorted(), "what was finished is lost: {kept:?}");
        assert!(folder.table() == undisturbed.table(), "on {threads} threads");
        assert!(other_files(&folder.out()) == other_files(&undisturbed.out()), "on {threads} threads");
    }
}

/// Each run is computed by one of the two processes, and both tables equal that of a single process.
#[test]
fn two_processes_share_the_runs_of_a_folder() {
    let undisturbed = Folder::new();
    assert!(undisturbed.run(&[]).status.success());
    let folder = Folder::new();
    let first = folder.start(1, "1");
    let second = folder.run(&[]);
    assert!(second.status.success(), "{}", message(&second));
    let first = first.wait_with_output().unwrap();
    assert!(first.status.success(), "{}", message(&first));
    assert!(folder.table() == undisturbed.table());
    assert!(other_files(&folder.out()) == other_files(&undisturbed.out()));
}

#[test]
fn damaged_and_foreign_files_cost_only_their_own_run() {
    let folder = Folder::new();
    assert!(folder.run(&[]).status.success());
    let table = folder.table();
    let path = |row: usize| folder.out().join(format!("runs/{}.json", table[row]["key"].as_str().unwrap()));
    let whole = fs::read(path(7)).unwrap();
    fs::write(path(7), &whole[..whole.len() / 2]).unwrap();
    fs::write(path(8), "{\"made\": \"by somebody else\"}").unwrap();
    let untouched = fs::metadata(path(9)).unwrap().modified().unwrap();
    let output = folder.run(&[]);
    assert!(output.status.success(), "{}", message(&output));
    for row in [7, 8] {
        let name = path(row).file_name().unwrap().to_str().unwrap().to_owned();
        assert!(message(&output).contains(&name), "{}", message(&output));
        assert!(path(row).with_extension("json.damaged").exists());
    }
    assert!(folder.table() == table);
    assert_eq!(fs::metadata(path(9)).unwrap().modified().unwrap(), untouched);
}

#[test]
fn a_foreign_folder_is_refused() {
    let folder = Folder::new();
    fs::create_dir(folder.out()).unwrap();
    fs::write(folder.out().join("runs.csv"), "theirs").unwrap();
    let output = folder.run(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(message(&output).contains("runs.csv") && message(&output).contains("--out"), "{}", message(&output));
    assert_eq!(fs::read_to_string(folder.out().join("runs.csv")).unwrap(), "theirs");
}

#[test]
fn points_of_a_batch_system_add_up_to_the_whole() {
    let whole = Folder::new();
    assert!(whole.run(&[]).status.success());
    let keys: Vec<String> = whole.table().iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect();
    let folder = Folder::new();
    let children: Vec<Child> = keys[..4].iter().map(|key| folder.command(&["--point", key]).spawn().unwrap()).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", message(&output));
    }
    assert_eq!(finished_runs(&folder.out()), 4);
    assert!(folder.run(&[]).status.success());
    assert!(folder.table() == whole.table());
}

/// Starts a process that computes all runs of a list, and leaves room for others.
fn start_with_list(folder: &Folder, list: &Path) -> Child {
    let words = ["--points-from", list.to_str().unwrap(), "--jobs", "1", "--format", "json"];
    folder.command(&words).spawn().unwrap()
}

fn list_of(folder: &Folder) -> PathBuf {
    let path = folder.file().with_file_name("list");
    fs::write(&path, folder.run(&["--plan"]).stdout).unwrap();
    path
}

/// The processor time of a run differs each time, so the process that computed the run shows another one than a process that reused it.
#[test]
fn processes_with_the_same_list_compute_no_run_twice() {
    let whole = Folder::new();
    assert!(whole.run(&[]).status.success());
    let folder = Folder::new();
    let list = list_of(&folder);
    let children: Vec<Child> = (0..3).map(|_| start_with_list(&folder, &list)).collect();
    let answers: Vec<Value> = children
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", message(&output));
            serde_json::from_slice(&output.stdout).unwrap()
        })
        .collect();
    assert_eq!(answers[0]["runs"].as_array().unwrap().len(), RUNS);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "each run was computed by one of them");
    assert!(folder.run(&[]).status.success());
    assert!(folder.table() == whole.table());
}

#[test]
fn runs_of_a_killed_process_are_taken_over_at_once() {
    let folder = Folder::new();
    let list = list_of(&folder);
    for _ in 0..3 {
        let (mut killed, other) = (start_with_list(&folder, &list), start_with_list(&folder, &list));
        let moment = finished_runs(&folder.out()) + 1 + any_below(20);
        folder.wait_for(moment);
        killed.kill().unwrap();
        killed.wait().unwrap();
        let output = other.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", message(&output));
        assert_eq!(finished_runs(&folder.out()), RUNS, "killed after {moment} runs");
        fs::remove_dir_all(folder.out().join("runs")).unwrap();
    }
}
