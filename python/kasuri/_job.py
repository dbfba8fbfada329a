"""Waiting for an experiment that is being computed, open to Ctrl-C and to whatever else raises in the waiting thread."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path

from kasuri._kasuri import Job
from kasuri._progress import Display

#: Between two looks at signals and at the progress, seconds.
POLL_INTERVAL = 0.05
#: How long an interrupted experiment may take to end while the user waits, seconds.
GRACE = 0.3

# Interrupted experiments that have not ended yet, by their folder: a run looks for a stop only now and then.
_leaving: dict[Path, Job] = {}


def finish(begin: Callable[[], Job], folder: Path, display: Display, *, kept: bool) -> list[str]:
    """Begin an experiment and wait for its end; whatever is raised meanwhile stops it.

    Parameters
    ----------
    begin : callable
        Begins it.
    folder : pathlib.Path
        Where its results go.
    display : Display
        Shows how far it is.
    kept : bool
        Whether the folder persists, for the message on an interrupt.

    Returns
    -------
    list of str
        The keys of its rows, in their order: the folder may hold others.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C; finished runs are in the folder.
    KasuriError
        The description is wrong, or the folder cannot be used.
    """
    folder = folder.absolute()
    job = None
    try:
        with display:
            _let_leave(folder)
            job = begin()
            while not job.wait(POLL_INTERVAL):
                display.show(*job.progress())
                _follow_the_program()
            display.show(*job.progress())
    except BaseException as error:
        if job is not None:
            _leave(job, folder)
            finished, planned = job.progress()
            if isinstance(error, KeyboardInterrupt) and planned:
                error.add_note(_how_to_go_on(finished, planned, folder, kept))
        raise
    job.check()
    return job.keys()


def _leave(job: Job, folder: Path) -> None:
    """Stop an experiment, and wait a moment for its end."""
    _leaving[folder] = job
    job.stop()
    if job.wait(GRACE):
        del _leaving[folder]


def _let_leave(folder: Path) -> None:
    """Wait until an interrupted experiment has left the folder."""
    job = _leaving.get(folder)
    while job is not None and not job.wait(POLL_INTERVAL):
        pass
    _leaving.pop(folder, None)


def _follow_the_program() -> None:
    """End in other threads, too, where Ctrl-C has ended the main thread: it alone sees signals, and Python would wait for this one."""
    ended_by = getattr(sys, "last_type", None)
    if not threading.main_thread().is_alive() and isinstance(ended_by, type) and issubclass(ended_by, KeyboardInterrupt):
        raise KeyboardInterrupt


def _how_to_go_on(finished: int, planned: int, folder: Path, kept: bool) -> str:
    if kept:
        return f"kasuri: {finished} of {planned} runs are finished and kept in {folder}; run the same again to compute the rest"
    return f"kasuri: {finished} of {planned} runs were finished; with out= they would have been kept"
