//! The command `kasuri`.

use std::process::ExitCode;

fn main() -> ExitCode {
    kasuri_network::memory::return_large_blocks();
    kasuri::cli::main(std::env::args_os())
}
