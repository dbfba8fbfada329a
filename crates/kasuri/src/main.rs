//! The command `kasuri`.

use std::process::ExitCode;

fn main() -> ExitCode {
    kasuri::cli::main(std::env::args_os())
}
