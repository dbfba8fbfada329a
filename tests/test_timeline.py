"""A timeline is a file that trace viewers open: the Trace Event Format of Chrome's viewer, which Perfetto reads too.

What the viewers' importers demand of the events that Kasuri writes, complete (``X``) and metadata (``M``) ones, is written down here from
Google's document "Trace Event Format".
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

EXPERIMENT = """
[network]
topology = "cenju4"
terminals = 32
cycle_ns = 12.5

[routing]
algorithm = "destination-tag"

[router]
architecture = "crosspoint"
buffer_flits = 216

[endpoint]
model = "cenju4"

[workload]
program = "ping-pong"
message_bytes = 512
source_offset = 64
"""

#: What a parcel goes through, by the names of the paper's figure 4 where it has some.
STAGES = (
    "(1) header written to the queue",
    "(2) RHM reads the header",
    "(3) SPM makes the packet header",
    "(4a) data from main memory",
    "(4b) data from the cache",
    "network",
    "Receiver looks the task up",
    "Receiver writes memory",
    "Receiver announces",
)

NUMBER = (int, float)
#: Fields of an event by its phase, and their types.
FIELDS: dict[str, dict[str, Any]] = {
    "X": {"name": str, "cat": str, "ts": NUMBER, "dur": NUMBER, "pid": int, "tid": int, "args": dict},
    "M": {"name": str, "pid": int, "args": dict},
}
METADATA = {"process_name": "name", "thread_name": "name"}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("timeline")
    (folder / "experiment.toml").write_text(EXPERIMENT)
    kasuri = Path(sys.executable).with_name("kasuri")
    arguments = ["run", folder / "experiment.toml", "--out", folder / "out", "--timeline", folder / "trace.json"]
    subprocess.run([kasuri, *arguments], check=True, capture_output=True)
    document: dict[str, Any] = json.loads((folder / "trace.json").read_text())
    return document


def test_it_has_the_fields_of_the_format(trace: dict[str, Any]) -> None:
    assert trace["displayTimeUnit"] in ("ms", "ns")
    assert trace["traceEvents"]
    for event in trace["traceEvents"]:
        fields = FIELDS[event["ph"]]
        assert all(isinstance(event.get(name), kind) for name, kind in fields.items()), event
        if event["ph"] == "M":
            assert isinstance(event["args"][METADATA[event["name"]]], str)
            assert "tid" in event or event["name"] == "process_name"
        else:
            assert event["ts"] >= 0
            assert event["dur"] >= 0


def test_every_event_stands_in_a_thread_and_a_process_with_a_name(trace: dict[str, Any]) -> None:
    metadata = [event for event in trace["traceEvents"] if event["ph"] == "M"]
    threads = {(event["pid"], event["tid"]) for event in metadata if event["name"] == "thread_name"}
    processes = {event["pid"] for event in metadata if event["name"] == "process_name"}
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert {(event["pid"], event["tid"]) for event in spans} == threads
    assert {event["pid"] for event in spans} == processes


def test_events_of_a_thread_lie_apart_or_within_each_other(trace: dict[str, Any]) -> None:
    """Importers build a tree of each thread: events that overlap in part are dropped or drawn wrongly."""
    by_thread = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            by_thread[event["pid"], event["tid"]].append((event["ts"], -event["dur"]))
    for events in by_thread.values():
        open_ends: list[float] = []
        for begin, minus_duration in sorted(events):
            while open_ends and open_ends[-1] <= begin + 1e-9:
                open_ends.pop()
            end = begin - minus_duration
            assert not open_ends or end <= open_ends[-1] + 1e-9
            open_ends.append(end)


@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_of_a_parcel_is_there_by_name(trace: dict[str, Any], stage: str) -> None:
    assert any(event["ph"] == "X" and event["name"] == stage for event in trace["traceEvents"])
