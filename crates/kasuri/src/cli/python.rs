//! The Python that has the package `kasuri`: it makes plots, reports and the papers' figures, and runs sweeps on several machines.

use super::{Exit, Failure};
use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

/// The package of the extra `papers`.
pub(super) const PAPERS: &str = "kasuri_papers";

/// The interpreter that has the Python package.
pub(super) struct Python {
    program: OsString,
}

impl Python {
    /// `$KASURI_PYTHON`, else the `python3` in this program's folder, else the one on the path.
    pub(super) fn find() -> Self {
        if let Some(program) = env::var_os("KASURI_PYTHON").filter(|program| !program.is_empty()) {
            return Self { program };
        }
        let beside = env::current_exe().ok().and_then(|program| Some(program.parent()?.join("python3")));
        Self { program: beside.filter(|path| path.is_file()).map_or_else(|| "python3".into(), PathBuf::into_os_string) }
    }

    /// Runs `python -m module` with the arguments of `add`, and returns its exit status.
    pub(super) fn run(&self, module: &str, add: impl FnOnce(&mut Command)) -> Result<Exit, Failure> {
        self.check_package(module)?;
        let mut command = self.command();
        command.args(["-m", module]);
        add(&mut command);
        let status = command.status().map_err(|reason| self.cannot_start(&reason))?;
        Ok(Exit(exit_code(status)))
    }

    /// Replaces this process by `python -m module` with the arguments of `add`, so that signals reach only that one. Returns only on
    /// failure.
    pub(super) fn become_module(&self, module: &str, add: impl FnOnce(&mut Command)) -> Result<Exit, Failure> {
        self.check_package(module)?;
        let mut command = self.command();
        command.args(["-m", module]);
        add(&mut command);
        #[cfg(unix)]
        return Err(self.cannot_start(&std::os::unix::process::CommandExt::exec(&mut command)));
        #[cfg(not(unix))]
        command.status().map(|status| Exit(exit_code(status))).map_err(|reason| self.cannot_start(&reason))
    }

    /// Runs `python -m module` as `run` does, with a text on its standard input.
    pub(super) fn feed(&self, module: &str, text: &str, add: impl FnOnce(&mut Command)) -> Result<Exit, Failure> {
        self.check_package(module)?;
        let mut command = self.command();
        command.args(["-m", module]).stdin(Stdio::piped());
        add(&mut command);
        let mut child = command.spawn().map_err(|reason| self.cannot_start(&reason))?;
        if let Some(mut input) = child.stdin.take() {
            // A Python that ends before it has read all prints the reason.
            let _ = input.write_all(text.as_bytes());
        }
        Ok(Exit(exit_code(child.wait()?)))
    }

    /// A Python that imports no module from the current folder, which may be untrusted. The variable passes this on to the Pythons that it
    /// starts.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("-P").env("PYTHONSAFEPATH", "1");
        command
    }

    /// Checks that the package of a module exists, without importing it, which would take a second.
    fn check_package(&self, module: &str) -> Result<(), Failure> {
        if !self.has_package("kasuri")? {
            return Err(Failure::Other(format!(
                "{} has no package `kasuri`, which makes reports and figures and runs sweeps on several machines; install it there (pip install .), \
                 or name another Python in KASURI_PYTHON",
                self.program.display()
            )));
        }
        if module == PAPERS && !self.has_package(PAPERS)? {
            return Err(Failure::Other(format!(
                "{} has no package `{PAPERS}`, which makes the papers' figures; install it there: pip install kasuri[papers], \
                 or, in a checkout of Kasuri, pip install ./papers",
                self.program.display()
            )));
        }
        Ok(())
    }

    fn has_package(&self, name: &str) -> Result<bool, Failure> {
        let question = "import importlib.util, sys; sys.exit(0 if importlib.util.find_spec(sys.argv[1]) else 1)";
        let mut command = self.command();
        let status = command.args(["-c", question, name]).stdin(Stdio::null()).stderr(Stdio::null()).status();
        status.map(|status| status.success()).map_err(|reason| self.cannot_start(&reason))
    }

    fn cannot_start(&self, reason: &std::io::Error) -> Failure {
        Failure::Other(format!(
            "{} cannot be started: {reason}; this needs Python 3.11 or later with the package `kasuri`: name it in KASURI_PYTHON",
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
