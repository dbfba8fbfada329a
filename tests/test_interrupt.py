"""Ctrl-C ends an experiment in Python at once and loses nothing that is finished; meanwhile a display says how far it is."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

import kasuri
from kasuri import _progress

RUNS = 40
MESH = {
    "network": {"topology": "mesh", "dimensions": [4, 4]},
    "routing": {"algorithm": "dimension-order"},
    "traffic": {"pattern": "uniform", "load": 0.1, "packet_flits": 5},
    "measure": {"warmup": 100, "cycles": 20_000},
}
SEEDS = {"measure.seed": list(range(RUNS))}

IN_THE_MAIN_THREAD = f"""
import kasuri, sys
kasuri.sweep({MESH}, {SEEDS}, out=sys.argv[1], jobs=1)
"""
IN_ANOTHER_THREAD = f"""
import kasuri, sys, threading
thread = threading.Thread(target=lambda: kasuri.sweep({MESH}, {SEEDS}, out=sys.argv[1], jobs=1))
thread.start()
threading.Event().wait()
"""
# One run that would take hours, in which nothing asks for a stop for long.
ONE_LONG_RUN = f"""
import kasuri, sys
kasuri.run({MESH}, measure__cycles=10**11, measure__max_cycles=10**12, out=sys.argv[1])
"""


def finished(folder: Path) -> dict[str, int]:
    """The runs in a folder and when their files were written."""
    return {file.name: file.stat().st_mtime_ns for file in (folder / "runs").glob("*.json")}


def interrupt(program: str, folder: Path, when: int) -> tuple[str, float]:
    """Start a program, send SIGINT when so many runs are in the folder; what it said, and how long it took to end."""
    child = subprocess.Popen([sys.executable, "-c", program, folder], stderr=subprocess.PIPE, text=True)
    begin = time.monotonic()
    while len(finished(folder)) < when or not (folder / "input.toml").exists():
        assert child.poll() is None, child.communicate()[1]
        assert time.monotonic() - begin < 120
        time.sleep(0.005)
    child.send_signal(signal.SIGINT)
    begin = time.monotonic()
    said = child.communicate(timeout=120)[1]
    return said, time.monotonic() - begin


@pytest.mark.parametrize("program", [IN_THE_MAIN_THREAD, IN_ANOTHER_THREAD], ids=["main thread", "another thread"])
def test_ctrl_c_ends_a_sweep_at_once_and_the_next_call_computes_only_the_rest(tmp_path, program):
    said, seconds = interrupt(program, tmp_path / "out", when=2)
    assert seconds < 2  # a tenth of that on an idle machine; all runs would take longer
    assert "KeyboardInterrupt" in said
    kept = finished(tmp_path / "out")
    assert 2 <= len(kept) < RUNS
    assert "runs are finished and kept in" in said
    told = []
    results = kasuri.sweep(MESH, SEEDS, out=tmp_path / "out", progress=lambda *state: told.append(state))
    assert len(results) == RUNS
    assert told[-1] == (RUNS, RUNS)
    after = finished(tmp_path / "out")
    assert len(after) == RUNS
    assert {name: after[name] for name in kept} == kept


def test_ctrl_c_ends_a_single_long_run_at_once(tmp_path):
    said, seconds = interrupt(ONE_LONG_RUN, tmp_path / "out", when=0)
    assert seconds < 2
    assert "KeyboardInterrupt" in said
    assert finished(tmp_path / "out") == {}


def test_a_signal_without_an_exception_ends_nothing(tmp_path):
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(True))
    try:
        results = kasuri.sweep(MESH, {"measure.seed": [1, 2, 3]}, progress=lambda *_: seen or os.kill(os.getpid(), signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen
    assert len(results) == 3


class EnoughError(Exception):
    """Raised by a display."""


def test_what_the_display_raises_stops_the_runs_and_the_folder_can_be_used_at_once(tmp_path):
    def stop(finished: int, planned: int) -> None:
        assert planned == RUNS
        if finished:
            raise EnoughError

    with pytest.raises(EnoughError):
        kasuri.sweep(MESH, SEEDS, out=tmp_path, jobs=1, progress=stop)
    kept = finished(tmp_path)
    assert 1 <= len(kept) < RUNS
    assert len(kasuri.sweep(MESH, SEEDS, out=tmp_path)) == RUNS
    assert kept.items() <= finished(tmp_path).items()


def test_nothing_is_shown_where_nobody_looks(capfd):
    kasuri.run(MESH)
    assert capfd.readouterr() == ("", "")


def test_a_wrong_wish_is_named():
    with pytest.raises(kasuri.ConfigError, match="progress: is 'yes'; it must be true, false, or a function"):
        kasuri.run(MESH, progress="yes")


def test_the_bar_of_a_terminal_counts_the_runs(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    kasuri.sweep(MESH, {"measure.seed": [1, 2, 3]}, progress=True)
    assert "3/3 runs" in stream.getvalue()


def test_the_bar_of_a_notebook_counts_the_runs_and_goes(monkeypatch):
    shown: list[str] = []
    handle = types.SimpleNamespace(update=shown.append)

    def display(html: str, display_id: bool) -> types.SimpleNamespace:
        assert display_id
        shown.append(html)
        return handle

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.HTML, ipython.display.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    monkeypatch.setattr(_progress, "MIN_SHOWN_SECONDS", 0)
    kasuri.sweep(MESH, {"measure.seed": [1, 2, 3]})
    assert '<progress value="3" max="3"' in shown[-2]
    assert "3 of 3 runs" in shown[-2]
    assert shown[-1] == ""
