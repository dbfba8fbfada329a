//! Reports exhausted memory in one line and exits with the status of a failed machine.
//!
//! A Rust program would otherwise abort, dump a core as large as its memory, and give no advice. The run store needs no care: its files
//! appear whole or not at all.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Arguments;
use std::io::Write;

/// The system's allocator; ends the process when memory is exhausted.
#[derive(Debug)]
pub struct OomReportingAllocator;

// SAFETY: all requests and answers pass unchanged to and from the system's allocator.
unsafe impl GlobalAlloc for OomReportingAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the promises of this function.
        check_allocation(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        check_allocation(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`.
        check_allocation(unsafe { System.realloc(memory, layout, size) }, size)
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// The requested memory, if there was any.
#[inline]
fn check_allocation(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        end(format_args!("{bytes} bytes"))
    }
    memory
}

/// Ends the process for lack of memory, at once: an orderly end might request memory again. `lacking`: the missing resource.
#[cold]
pub(crate) fn end(lacking: Arguments<'_>) -> ! {
    let mut text = [0; 400];
    let mut rest = &mut text[..];
    let _ = writeln!(
        rest,
        "error: out of memory: cannot allocate {lacking}; all finished runs are kept; run the same command again with more \
         memory, or with --jobs 1; `kasuri check FILE` says how much a run takes"
    );
    let length = 400 - rest.len();
    // SAFETY: the text is in memory up to this length; ending the process has no conditions.
    unsafe {
        libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), length);
        libc::_exit(1)
    }
}
