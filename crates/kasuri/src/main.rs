//! The command `kasuri`.

use kasuri::exhaustion::OomReportingAllocator;
use std::process::ExitCode;

/// Ends the command in order where memory runs out, on whatever thread.
#[global_allocator]
static ALLOCATOR: OomReportingAllocator = OomReportingAllocator;

fn main() -> ExitCode {
    kasuri_network::memory::return_large_blocks();
    kasuri::cli::main(std::env::args_os())
}
