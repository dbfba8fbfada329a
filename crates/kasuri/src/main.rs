//! The command `kasuri`.

use std::process::ExitCode;

fn main() -> ExitCode {
    kasuri_model::memory::return_large_blocks();
    kasuri::cli::main(std::env::args_os())
}
