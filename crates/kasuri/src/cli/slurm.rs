//! `kasuri run FILE --slurm-script`: a job array for Slurm. Each job computes a part of the runs into one folder; no process watches.

use super::Failure;
use crate::estimate::Total;
use crate::input::read_text;
use serde::Deserialize;
use std::fmt::Write;
use std::path::Path;

/// A site's settings for jobs: the keys of an executor file of the kind `slurm`.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Site {
    kind: String,
    /// `--partition`.
    queue: Option<String>,
    account: Option<String>,
    /// `--time`, as Slurm reads it: `HH:MM:SS`.
    wall_time: Option<String>,
    /// Cores of a job, each with one run at a time.
    cores: u16,
    /// Memory of a job, with its unit: `4GB`.
    memory: Option<String>,
    /// Lines of shell before the runs: modules, virtual environments.
    environment: Vec<String>,
    /// More lines `#SBATCH …`.
    directives: Vec<String>,
    // A key that only `kasuri run --executor` uses.
    #[serde(rename = "jobs")]
    _jobs: Option<u32>,
    #[serde(rename = "processes")]
    _processes: Option<u16>,
    #[serde(rename = "scratch")]
    _scratch: Option<String>,
    #[serde(rename = "interface")]
    _interface: Option<String>,
    #[serde(rename = "python")]
    _python: Option<String>,
    #[serde(rename = "wait")]
    _wait: Option<f64>,
}

impl Default for Site {
    fn default() -> Self {
        Self {
            kind: "slurm".to_owned(),
            queue: None,
            account: None,
            wall_time: None,
            cores: 1,
            memory: None,
            environment: Vec::new(),
            directives: Vec::new(),
            _jobs: None,
            _processes: None,
            _scratch: None,
            _interface: None,
            _python: None,
            _wait: None,
        }
    }
}

impl Site {
    /// Reads an executor file.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |problem: String| Failure::Input(format!("{}: {problem}", path.display()));
        let text = read_text(path, "an executor file is TOML")?;
        let site: Self = toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        if site.kind != "slurm" {
            return Err(wrong(format!("kind: is \"{}\"; a job array needs an executor of the kind \"slurm\"", site.kind)));
        }
        if site.cores == 0 {
            return Err(wrong("cores: is 0; it must be at least 1".to_owned()));
        }
        Ok(site)
    }
}

/// One job of the array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<'a> {
    /// A name for people.
    pub(super) name: &'a str,
    /// The folder of results, where the jobs' messages go, too.
    pub(super) out: &'a Path,
    /// The folder of all these files.
    pub(super) folder: &'a Path,
    /// The command without the part and the number of threads.
    pub(super) command: &'a [String],
    /// Jobs of the array.
    pub(super) jobs: u32,
}

/// The shortest sensible job, so that Slurm is not busy with starting jobs, s.
const MIN_JOB_SECONDS: f64 = 900.0;

/// The limit of many sites: Slurm's own default for MaxArraySize is 1001.
const MAX_JOBS: f64 = 1000.0;

/// The sensible number of jobs for a sweep.
pub(super) fn jobs(total: &Total, site: &Site) -> u32 {
    let jobs = (total.seconds / MIN_JOB_SECONDS / f64::from(site.cores)).ceil();
    jobs.clamp(1.0, MAX_JOBS.min(total.runs.max(1) as f64)) as u32
}

/// Refuses a line with a control character: the text after a line break would be a command of the job. Quotes do not help, since directives
/// are comments.
fn check_line(line: &str) -> Result<(), Failure> {
    if line.chars().any(char::is_control) {
        let problem = "a name has a line break or another control character, after which the job would run the rest as a command";
        return Err(Failure::Input(format!(
            "--slurm-script: {problem}: {line:?}; rename the file or folder, or correct the executor file"
        )));
    }
    Ok(())
}

/// The script for `sbatch`.
///
/// # Errors
/// A name has a control character.
pub(super) fn script(site: &Site, job: &Job<'_>) -> Result<String, Failure> {
    let mut text = String::from("#!/bin/bash\n");
    let mut directives = Vec::new();
    let mut directive = |line: String| directives.push(format!("#SBATCH {line}"));
    directive(format!("--job-name={}", quoted(job.name)));
    directive(format!("--array=1-{}", job.jobs));
    directive(format!("--cpus-per-task={}", site.cores));
    let options = [("partition", &site.queue), ("account", &site.account), ("time", &site.wall_time)];
    for (name, value) in options {
        if let Some(value) = value {
            directive(format!("--{name}={}", quoted(value)));
        }
    }
    if let Some(memory) = &site.memory {
        // Slurm knows K, M, G and T.
        directive(format!("--mem={}", memory.replace(' ', "").trim_end_matches(['b', 'B', 'i'])));
    }
    // A job with a failed node, or one that is preempted, starts again and skips the finished runs.
    directive("--requeue".to_owned());
    directive("--open-mode=append".to_owned());
    directive(format!("--output={}", quoted(&format!("{}/slurm-%A_%a.log", job.out.to_string_lossy().replace('%', "%%")))));
    site.directives.iter().for_each(|line| directive(line.clone()));
    let command: Vec<String> = job.command.iter().map(|word| quoted(word)).collect();
    let program = command.first().map_or("kasuri", String::as_str);
    let collect = format!("#   {program} collect {}", quoted(&job.out.to_string_lossy()));
    directives.iter().chain([&collect]).try_for_each(|line| check_line(line))?;
    text.extend(directives.iter().map(|line| format!("{line}\n")));
    let environment: String = site.environment.iter().map(|line| format!("{line}\n")).collect();
    let _ = write!(
        text,
        "\n# Each job computes the runs of its part that the folder does not hold. When all have ended:\n{collect}\n\
         cd {}\n{environment}exec {} --shard \"$SLURM_ARRAY_TASK_ID/{}\" --jobs \"${{SLURM_CPUS_PER_TASK:-1}}\" --format csv >/dev/null\n",
        quoted(&job.folder.to_string_lossy()),
        command.join(" "),
        job.jobs,
    );
    Ok(text)
}

/// A word quoted for a shell.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,%+@".contains(letter);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_script_has_the_settings_of_the_site() {
        let site: Site = toml::from_str(
            "queue = 'long'\naccount = 'a b'\nwall_time = '01:00:00'\ncores = 4\nmemory = '8 GiB'\nenvironment = ['module load x']\n\
             directives = ['--nice=100']",
        )
        .unwrap();
        let command = ["kasuri", "run", "it's.toml"].map(str::to_owned);
        let job = Job { name: "mesh", out: Path::new("/o"), folder: Path::new("/my work"), command: &command, jobs: 7 };
        let text = script(&site, &job).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for expected in [
            "#SBATCH --array=1-7",
            "#SBATCH --cpus-per-task=4",
            "#SBATCH --partition=long",
            "#SBATCH --account='a b'",
            "#SBATCH --time=01:00:00",
            "#SBATCH --mem=8G",
            "#SBATCH --nice=100",
            "cd '/my work'",
            "module load x",
        ] {
            assert!(lines.contains(&expected), "{expected}:\n{text}");
        }
        let last = r#"exec kasuri run 'it'\''s.toml' --shard "$SLURM_ARRAY_TASK_ID/7""#;
        assert!(lines.last().unwrap().starts_with(last), "{text}");
    }

    /// No name with a line break or another control character adds a line to the script.
    #[test]
    fn no_name_becomes_a_command() {
        let site = |key: &str, value: &str| toml::Table::from_iter([(key.to_owned(), value.into())]).try_into::<Site>().unwrap();
        let command = ["kasuri", "run", "x.toml"].map(str::to_owned);
        let plain = Job { name: "mesh", out: Path::new("/o"), folder: Path::new("/work"), command: &command, jobs: 7 };
        for evil in ["x\ntouch PWNED\n#", "x\rtouch PWNED", "x\u{85}touch PWNED", "x\u{1b}[2J"] {
            let program = [evil.to_owned()];
            let jobs = [Job { name: evil, ..plain }, Job { out: Path::new(evil), ..plain }, Job { command: &program, ..plain }];
            let refused = |site: &Site, job: &Job<'_>| matches!(script(site, job), Err(Failure::Input(message)) if message.contains("control character"));
            assert!(jobs.iter().all(|job| refused(&Site::default(), job)), "{evil:?}");
            for key in ["queue", "account", "wall_time", "memory"] {
                assert!(refused(&site(key, evil), &plain), "{key} = {evil:?}");
            }
        }
        // In the command and the folder, quotes make it a part of the word.
        let command = ["kasuri", "x\ntouch PWNED"].map(str::to_owned);
        let text = script(&Site::default(), &Job { command: &command, folder: Path::new("a\nb"), ..plain }).unwrap();
        assert!(text.contains("'x\ntouch PWNED'") && text.contains("cd 'a\nb'"), "{text}");
        // Slurm expands per cent signs in the name of a log.
        let text = script(&Site::default(), &Job { out: Path::new("/50%j"), ..plain }).unwrap();
        assert!(text.contains("--output=/50%%j/slurm-%A_%a.log\n"), "{text}");
    }

    #[test]
    fn a_sweep_is_worth_as_many_jobs_as_it_has_quarters_of_an_hour() {
        let total = |runs, seconds| Total { runs, seconds, shortest: 0.0, longest: 0.0, memory_mib: 0.0, known_runs: 0 };
        let site = Site { cores: 2, ..Site::default() };
        assert_eq!(jobs(&total(100, 18_000.0), &site), 10);
        assert_eq!(jobs(&total(3, 18_000.0), &site), 3);
        assert_eq!(jobs(&total(100, 1.0), &site), 1);
        assert_eq!(jobs(&total(1_000_000, 1e12), &site), 1000);
    }

    #[test]
    fn an_unknown_key_of_a_site_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("site.toml");
        for (text, expected) in [("kind = 'slurm'\nquue = 'x'", "quue"), ("kind = 'dask'", "\"dask\""), ("cores = 0", "cores")] {
            fs::write(&file, text).unwrap();
            let Err(Failure::Input(message)) = Site::read(&file) else { panic!("{text} is refused") };
            assert!(message.contains(expected) && message.contains("site.toml"), "{message}");
        }
    }
}
