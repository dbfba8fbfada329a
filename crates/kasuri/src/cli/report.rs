//! `kasuri report`: one HTML page of a folder of results, made by the Python package.

use super::{Exit, Failure};
use clap::Args;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

/// Makes one self-contained HTML page of a folder of results
#[derive(Debug, Args)]
pub(super) struct Report {
    /// The folder that `kasuri run` wrote
    directory: PathBuf,
    /// The page to write [default: DIRECTORY/report.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Report {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        if !self.directory.is_dir() {
            return Err(Failure::Input(format!("{}: is no folder; give the folder that `kasuri run` wrote", self.directory.display())));
        }
        let python = Python::find();
        python.check_package()?;
        let output = self.output.clone().unwrap_or_else(|| self.directory.join("report.html"));
        let mut command = Command::new(&python.program);
        command.args(["-m", "kasuri.report"]).arg(&self.directory).arg("-o").arg(output);
        let status = command.status().map_err(|reason| python.cannot_start(&reason))?;
        Ok(Exit(exit_code(status)))
    }
}

/// The interpreter that has the Python package.
struct Python {
    program: OsString,
}

impl Python {
    /// `$KASURI_PYTHON`, else the `python3` beside this program, else the one on the path.
    fn find() -> Self {
        if let Some(program) = env::var_os("KASURI_PYTHON").filter(|program| !program.is_empty()) {
            return Self { program };
        }
        let beside = env::current_exe().ok().and_then(|program| Some(program.parent()?.join("python3")));
        Self { program: beside.filter(|path| path.is_file()).map_or_else(|| "python3".into(), PathBuf::into_os_string) }
    }

    /// Asks for the package without importing it, which would take a second.
    fn check_package(&self) -> Result<(), Failure> {
        let question = "import importlib.util, sys; sys.exit(0 if importlib.util.find_spec('kasuri') else 1)";
        let mut command = Command::new(&self.program);
        let status = command.args(["-c", question]).stdin(Stdio::null()).stderr(Stdio::null()).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(_) => Err(Failure::Other(format!(
                "{} has no package `kasuri`, which makes the report; install it there (pip install .), \
                 or name another Python in KASURI_PYTHON",
                self.program.display()
            ))),
            Err(reason) => Err(self.cannot_start(&reason)),
        }
    }

    fn cannot_start(&self, reason: &std::io::Error) -> Failure {
        Failure::Other(format!(
            "{} cannot be started: {reason}; a report needs Python 3.11 or later with the package `kasuri`: name it in KASURI_PYTHON",
            self.program.display()
        ))
    }
}

/// A shell's convention: 128 + signal for a program that a signal ended.
fn exit_code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(1);
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
