//! The command line. One file for each subcommand; the table of subcommands is the enum `Command`.

mod algorithm;
mod astra;
mod booksim;
mod check;
mod collect;
mod design;
mod explain;
mod fabric;
mod identity;
mod list;
mod output;
mod pack;
mod python;
mod report;
mod reproduce;
mod run;
mod running;
mod schedule;
mod schema;
mod slurm;
mod topology;
mod uec;

use crate::exhaustion;
use crate::input::InputError;
use crate::version::VERSION;
use clap::{Parser, Subcommand};
use kasuri_config::{ConfigError, ConfigErrors};
use kasuri_formats::names::printable;
use std::ffi::OsString;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::process::ExitCode;

/// Designs, simulates and schedules the interconnection network of a parallel computer.
#[derive(Debug, Parser)]
#[command(name = "kasuri", version = VERSION, max_term_width = 100, propagate_version = false)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

// Only the called command builds its options: building those of all took a fifth of the time of `kasuri --version`.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    /// Runs an experiment file
    Run(run::Run),
    /// Checks an experiment file without running it
    Check(check::Check),
    /// Collects the table of runs computed in parts, and lists the missing ones
    Collect(collect::Collect),
    /// Packs a folder of results into an archive that `kasuri run` can repeat anywhere
    Pack(pack::Pack),
    /// Lists the names that an experiment file may use
    List(list::List),
    /// Explains a key or a section of the experiment file: meaning, values, default
    Explain(explain::Explain),
    /// Shows a network: counts, diameter, distances, bisection
    Topology(topology::Topology),
    /// Arranges a collective in phases for a network, and counts the messages on every channel phase by phase
    Schedule(schedule::Schedule),
    /// Compares topologies for a number of terminals: routers, cables, price, diameter, all-to-all
    Design(design::Design),
    /// A real fabric: imports its dumps, audits its forwarding tables, and counts the load of a job's collective on its cables
    Fabric(fabric::Fabric),
    /// Prints the JSON Schema of the experiment file, for editors
    Schema(schema::Schema),
    /// Makes one self-contained HTML page of a folder of results
    Report(report::Report),
    /// Reproduces published figures: data, plots, and a verdict on each claim
    Reproduce(reproduce::Reproduce),
    /// Runs an execution trace of an AI cluster (Chakra) on a network and system of ASTRA-sim, and prints when each NPU finishes
    Astra(astra::Astra),
    /// Checks a collective algorithm of MSCCL (.xml, also gzipped), or writes it again
    Algorithm(algorithm::Algorithm),
    /// Runs the flows of a connection matrix on an Ethernet fabric, in the formats of UEC htsim, and prints when each is received and acknowledged
    Uec(uec::Uec),
    /// Runs a configuration of BookSim 2
    #[command(name = "booksim")]
    BookSim(booksim::BookSim),
    /// Prints version and platform as JSON
    #[command(hide = true)]
    Identity(identity::Identity),
}

impl Command {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        match self {
            Self::Run(command) => command.run(out),
            Self::Check(command) => command.run(out),
            Self::Collect(command) => command.run(out),
            Self::Pack(command) => command.run(out),
            Self::List(command) => command.run(out),
            Self::Explain(command) => command.run(out),
            Self::Topology(command) => command.run(out),
            Self::Schedule(command) => command.run(out),
            Self::Design(command) => command.run(out),
            Self::Fabric(command) => command.run(out),
            Self::Schema(command) => command.run(out),
            Self::Report(command) => command.run(),
            Self::Reproduce(command) => command.run(),
            Self::Astra(command) => command.run(out),
            Self::Algorithm(command) => command.run(out),
            Self::Uec(command) => command.run(out),
            Self::BookSim(command) => command.run(out),
            Self::Identity(command) => command.run(out),
        }
    }
}

/// The exit status of a command that did its work: 0, or a status for its finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Exit(u8);

impl Exit {
    const DONE: Self = Self(0);
    /// `kasuri fabric audit` found routes that do not arrive.
    const ROUTES_LOST: Self = Self(1);
    /// `kasuri check` found a possible deadlock.
    const DEADLOCK_POSSIBLE: Self = Self(2);
}

/// A failure of a command.
#[derive(Debug)]
enum Failure {
    /// The user's input is wrong: exit status 2.
    Input(String),
    /// All errors in the user's input, a message each: exit status 2.
    Refused(Vec<String>),
    /// Another failure: exit status 1.
    Other(String),
    /// The reader of standard output has closed it (`kasuri list topologies | head -1`): not worth a message.
    PipeClosed,
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self::Input(error.to_string())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Input(error.to_string())
    }
}

impl From<ConfigErrors> for Failure {
    fn from(errors: ConfigErrors) -> Self {
        Self::Refused(errors.iter().map(ConfigError::to_string).collect())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::PipeClosed,
            _ => Self::Other(format!("standard output cannot be written: {error}")),
        }
    }
}

/// The standard library's words for the memory needed to begin a thread.
const THREAD_STACK_ERROR: &str = "alternative stack";

/// Prints one line on an internal error. A sweep continues: only the run with the error is lost.
fn report_defect(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map_or(String::new(), |location| format!(" ({}:{})", location.file(), location.line()));
    let what = crate::plan::panic_text(panic.payload());
    // A thread that begins without memory panics before this program can catch it, and the process is aborted.
    if what.contains(THREAD_STACK_ERROR) {
        exhaustion::end(format_args!("memory for a thread"));
    }
    let _ = writeln!(io::stderr(), "error: internal error{place}: {what}; please report it with the command and its files");
}

/// Runs the command line and returns its exit status: 0 done, 1 some run failed, 2 bad input.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version go to standard output with status 0; an error of writing them cannot be shown.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    std::panic::set_hook(Box::new(report_defect));
    let mut out = io::stdout().lock();
    let run = || arguments.command.run(&mut out).and_then(|exit| Ok(out.flush().map(|()| exit)?));
    let Ok(result) = catch_unwind(AssertUnwindSafe(run)) else { return ExitCode::FAILURE };
    let (status, messages) = match result {
        Ok(exit) => (exit.0, Vec::new()),
        Err(Failure::Input(message)) => (2, vec![message]),
        Err(Failure::Refused(messages)) => (2, messages),
        Err(Failure::Other(message)) => (1, vec![message]),
        Err(Failure::PipeClosed) => (0, Vec::new()),
    };
    for message in messages {
        let _ = writeln!(io::stderr(), "error: {}", printable(&message));
    }
    ExitCode::from(status)
}
