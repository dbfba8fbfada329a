//! `kasuri run`: computes the missing runs of an experiment, all or a part of them, here or on a cluster.

use super::python::Python;
use super::running::{Format, Running, Texts, say};
use super::slurm::{self, Job, Site};
use super::{Exit, Failure};
use crate::archive::{Archive, is_archive};
use crate::estimate::Costs;
use crate::input::{FolderFiles, KNOWN, read_experiment, read_text};
use crate::listing::{Listing, Shard, check_version, keys_and_numbers};
use crate::plan::{Plan, RunError};
use crate::results::RunRow;
use crate::store::{Access, Store, StoredRun};
use clap::Args;
use kasuri_config::Document;
use serde::Deserialize;
use std::env;
use std::io::{self, Read, Write};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(super) struct Run {
    /// The experiment file, or an archive that `kasuri pack` made
    file: PathBuf,
    /// Sets a key of the file, for example traffic.load=0.3
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Where to compute: local, dask (processes of this machine), dask:tcp://HOST:PORT, slurm, or an executor file
    #[arg(long, value_name = "EXECUTOR", default_value = LOCAL_EXECUTOR)]
    executor: String,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    running: Running,
    /// End at once if the process with this number, which has started this one, ends
    #[arg(long, hide = true, value_name = "PID")]
    owned_by: Option<u32>,
}

// Options of workers that share the runs of an experiment; hidden from `--help`. A doc comment would replace the command's description.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct Part {
    /// Compute only the run with this key; its first characters are enough if no other key begins with them
    #[arg(long, value_name = "KEY")]
    point: Option<String>,
    /// Compute only part I of N: parts of about equal cost, the first is 1/N
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Compute only the runs of a list, as --plan prints it [- is standard input]
    #[arg(long, value_name = "FILE")]
    points_from: Option<PathBuf>,
    /// Compute nothing: list the runs (key, number, seconds of processor time, MiB, swept values) and keep the list for `kasuri collect`
    #[arg(long)]
    plan: bool,
    /// As --plan, but list only runs that are not finished
    #[arg(long)]
    missing: bool,
    /// Compute nothing: print a job array for Slurm's sbatch, for the site of the executor file
    #[arg(long)]
    slurm_script: bool,
}

/// An executor file of the kind `local`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LocalExecutor {
    #[serde(rename = "kind")]
    _kind: String,
    /// Runs at the same time.
    jobs: Option<NonZeroU16>,
}

/// The executor without further programs.
const LOCAL_EXECUTOR: &str = "local";

impl Run {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        if let Some(owner) = self.owned_by {
            die_with(owner)?;
        }
        if is_archive(&self.file) {
            return self.run_archive(out);
        }
        let (document, text) = read_experiment(&self.file, &self.set)?;
        let files = FolderFiles::next_to(&self.file).with_copies_of(&document)?;
        let part = &self.part;
        if part.plan || part.missing || part.slurm_script {
            return self.list(&document, &files, text, out);
        }
        if let Some(shard) = part.shard {
            let listing = Listing::of(&document, &files, &Costs::default())?;
            listing.keep(&self.open(&text)?)?;
            let plan = Plan::prepare_some(&document, &files, &listing.shard(shard))?;
            return self.running.run_plan(&plan, &self.name(), text, out);
        }
        if let Some(file) = &part.points_from {
            let plan = listed(&document, &files, &read_list(file)?)?;
            check_version(&self.open(&text)?)?;
            return self.running.run_plan(&plan, &self.name(), text, out);
        }
        let running = if part.point.is_some() { Some(self.running.clone()) } else { self.local()? };
        match running {
            Some(running) => running.run(&document, &files, &self.name(), text, part.point.as_deref(), out),
            None => self.become_executor(),
        }
    }

    /// Repeats the experiments of an archive of `kasuri pack`, and compares the rows with those in it.
    fn run_archive(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let part = &self.part;
        let is_part = part.point.is_some() || part.shard.is_some() || part.points_from.is_some();
        if is_part || part.plan || part.missing || part.slurm_script || !self.set.is_empty() || self.executor != LOCAL_EXECUTOR {
            let problem =
                "is an archive, which is run as a whole and as it is; for other options unpack it (tar xf) and run its effective.toml";
            return Err(Failure::Input(format!("{}: {problem}", self.file.display())));
        }
        let archive = Archive::read(&self.file)?;
        say(&archive.other_version().into_iter().collect::<Vec<_>>());
        let folder = self.out();
        archive.unpack_files(&Store::open(&folder, Access::Point).map_err(RunError::from)?)?;
        let (mut rows, mut exit) = (Vec::new(), 0);
        for text in &archive.experiments {
            let document = Document::parse_for(*KNOWN, &format!("{}: effective.toml", self.file.display()), text)?;
            let files = FolderFiles::new(&folder).with_copies_of(&document)?;
            let texts = Texts { input: text.clone(), origin: Some(archive.experiments.concat()), joins: archive.experiments.len() > 1 };
            let summary = self.running.compute(&document, &files, &self.name(), texts, None)?;
            exit = exit.max(summary.exit_status());
            if summary.interrupted.is_some() {
                return Ok(Exit(exit));
            }
            rows.retain(|row: &RunRow| summary.rows.iter().all(|new| new.key() != row.key()));
            rows.extend(summary.rows);
        }
        self.running.print(&rows, &self.name(), out)?;
        let (lines, is_same) = archive.compare(&rows);
        say(&lines);
        Ok(Exit(exit.max(u8::from(!is_same))))
    }

    /// The name of the folder of results, where none is given.
    fn name(&self) -> String {
        let stem = self.file.file_stem().map_or("experiment".to_owned(), |stem| stem.to_string_lossy().into_owned());
        stem.strip_suffix(".tar").map_or(stem.clone(), str::to_owned)
    }

    fn out(&self) -> PathBuf {
        self.running.out_folder(&self.name())
    }

    /// Opens the folder of results for a part of the runs.
    fn open(&self, text: &str) -> Result<Store, Failure> {
        let store = Store::open(&self.out(), Access::Point).map_err(RunError::from)?;
        store.keep_input(text).map_err(RunError::from)?;
        Ok(store)
    }

    /// Lists the runs, or prints the script of a job array for them.
    fn list(&self, document: &Document, files: &FolderFiles, text: String, out: &mut dyn Write) -> Result<Exit, Failure> {
        let costs = Costs::of_this_machine();
        let listing = Listing::of(document, files, &costs)?;
        let store = self.open(&text)?;
        listing.keep(&store)?;
        if self.part.slurm_script {
            return self.print_script(&listing, &costs, out);
        }
        for run in listing.runs() {
            let run = run?;
            if self.part.missing {
                match store.find(&run.key).map_err(RunError::from)? {
                    StoredRun::Run(_) => continue,
                    StoredRun::SetAside(message) => say(&[message]),
                    StoredRun::Nothing => {}
                }
            }
            let (seconds, memory) = (costs.seconds(&run.work), costs.memory_mib(&run.work));
            write!(out, "{}\t{}\t{seconds:.6}\t{memory:.1}", run.key, run.number)?;
            if !run.assignments.is_empty() {
                write!(out, "\t{}", run.assignments)?;
            }
            writeln!(out)?;
        }
        Ok(Exit::DONE)
    }

    fn print_script(&self, listing: &Listing<'_>, costs: &Costs, out: &mut dyn Write) -> Result<Exit, Failure> {
        let site = if matches!(self.executor.as_str(), LOCAL_EXECUTOR | "slurm") {
            Site::default()
        } else {
            Site::read(Path::new(&self.executor))?
        };
        let absolute = |path: &Path| std::path::absolute(path).map_err(|error| Failure::Other(format!("{}: {error}", path.display())));
        let program = env::current_exe().map_err(|error| Failure::Other(format!("this program does not know where it is: {error}")))?;
        let (folder, results) = (absolute(Path::new("."))?, absolute(&self.out())?);
        let words = [program.as_path(), Path::new("run"), &absolute(&self.file)?, Path::new("--out"), &results];
        let mut command: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        command.extend(self.set.iter().flat_map(|assignment| ["--set".to_owned(), assignment.clone()]));
        if self.running.paranoid {
            command.push("--paranoid".to_owned());
        }
        if let Some(threads) = self.running.threads() {
            command.extend(["--threads".to_owned(), threads.to_string()]);
        }
        let jobs = self.running.jobs.map_or_else(|| slurm::jobs(&listing.total(costs), &site), u32::from);
        let job = Job { name: &self.name(), out: &results, folder: &folder, command: &command, jobs };
        write!(out, "{}", slurm::script(&site, &job)?)?;
        Ok(Exit::DONE)
    }

    /// The options with which this process computes, if it does: an executor file may set them.
    fn local(&self) -> Result<Option<Running>, Failure> {
        let path = Path::new(&self.executor);
        if self.executor == LOCAL_EXECUTOR {
            return Ok(Some(self.running.clone()));
        }
        if path.extension().is_none_or(|extension| extension != "toml") {
            return Ok(None);
        }
        let wrong = |problem: String| Failure::Input(format!("{}: {problem}", path.display()));
        let text = read_text(path, "an executor file is TOML")?;
        let table: toml::Table = toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        if table.get("kind").and_then(toml::Value::as_str) != Some(LOCAL_EXECUTOR) {
            return Ok(None);
        }
        let here: LocalExecutor = toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        let mut running = self.running.clone();
        running.jobs = running.jobs.or(here.jobs.map(NonZeroU16::get));
        Ok(Some(running))
    }

    /// Hands the experiment to the Python package with the executors; it starts this program again on other machines.
    fn become_executor(&self) -> Result<Exit, Failure> {
        if let Some(threads) = self.running.threads() {
            let problem =
                format!("--threads {threads}: a worker of an executor has one core for each run; leave it out, or run without --executor");
            return Err(Failure::Input(problem));
        }
        let program = env::current_exe().map_err(|error| Failure::Other(format!("this program does not know where it is: {error}")))?;
        Python::find().become_module("kasuri.executor", |command| {
            command.arg(&self.file).arg("--executor").arg(&self.executor).arg("--out").arg(self.out()).arg("--command").arg(program);
            command.args(["--format", Format::name(self.running.format)]);
            self.set.iter().for_each(|assignment| {
                command.args(["--set", assignment]);
            });
            if let Some(jobs) = self.running.jobs {
                command.args(["--jobs", &jobs.to_string()]);
            }
            if self.running.paranoid {
                command.arg("--paranoid");
            }
        })
    }
}

/// Only the runs of a list.
fn listed<'a>(document: &'a Document, files: &'a FolderFiles, list: &str) -> Result<Plan<'a>, RunError> {
    let Some(runs) = keys_and_numbers(list) else {
        return Plan::prepare_some(document, files, &Listing::of(document, files, &Costs::default())?.numbers(list)?);
    };
    let planned = document.sweep()?.count();
    let problem = |key: &str, number: usize, found: &str| RunError::Listed {
        document: document.name().to_owned(),
        problem: format!(
            "--points-from: the list says that run {number} has the key `{key}`, but {found}; has the experiment changed since?"
        ),
    };
    if let Some((key, number)) = runs.iter().find(|(_, number)| *number >= planned) {
        return Err(problem(key, *number, &format!("there are {planned} runs")));
    }
    let plan = Plan::prepare_some(document, files, &runs.iter().map(|&(_, number)| number).collect::<Vec<_>>())?;
    let other = runs.iter().zip(plan.keys()).find(|((key, _), own)| **key != *own.to_string());
    other.map_or(Ok(()), |((key, number), own)| Err(problem(key, *number, &format!("it has `{own}`"))))?;
    Ok(plan)
}

fn read_list(file: &Path) -> Result<String, Failure> {
    if file != Path::new("-") {
        return Ok(read_text(file, "a list of runs is text")?);
    }
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text).map_err(|error| Failure::Input(format!("-: cannot be read: {error}")))?;
    Ok(text)
}

/// Asks the system to kill this process when the process `owner` ends: another worker then computes its run.
fn die_with(owner: u32) -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).map_err(|error| Failure::Other(format!("--owned-by: {error}")))?;
    if std::os::unix::process::parent_id() != owner {
        return Err(Failure::Other(format!("--owned-by: process {owner} has not started this one, or has ended")));
    }
    Ok(())
}
