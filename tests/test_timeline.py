"""A timeline is a file that trace viewers open: the Trace Event Format of Chrome's viewer, which Perfetto reads too.

What the viewers' importers demand of the events that Kasuri writes, complete (``X``), metadata (``M``), flow (``s``, ``f``) and counter
(``C``) ones, is written down here from Google's document "Trace Event Format".
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from command_line import command

ENDPOINTS = """
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

#: Three ranks compute and send to each other; 1 and 2 wait for 0.
WORKLOAD = """
[network]
topology = "mesh"
dimensions = [2, 2]
flit_bytes = 16
cycle_ns = 2.0

[routing]
algorithm = "dimension-order"

[workload]
trace = "program.goal"
"""

PROGRAM = """
num_ranks 3
rank 0 {
calculated: calc 1000
one: send 1600b to 1
two: send 800b to 2
one requires calculated
two requires calculated
}
rank 1 {
got: recv 1600b from 0
calculated: calc 500
calculated requires got
back: send 160b to 2
back requires calculated
}
rank 2 {
recv 800b from 0
recv 160b from 1
}
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
    "s": {"name": str, "cat": str, "id": int, "ts": NUMBER, "pid": int, "tid": int},
    "f": {"name": str, "cat": str, "id": int, "ts": NUMBER, "pid": int, "tid": int, "bp": str},
    "C": {"name": str, "ts": NUMBER, "pid": int, "args": dict},
}
METADATA = {"process_name": "name", "thread_name": "name"}


Trace = dict[str, Any]


def timeline(folder: Path, experiment: str, name: str) -> Trace:
    """Run an experiment and read its timeline."""
    (folder / "experiment.toml").write_text(experiment)
    (folder / "program.goal").write_text(PROGRAM)
    command("run", folder / "experiment.toml", "--out", folder / "out", "--timeline", folder / name)
    text = (folder / name).read_bytes()
    document: Trace = json.loads(gzip.decompress(text) if name.endswith(".gz") else text)
    return document


@pytest.fixture(scope="module")
def endpoints(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return timeline(tmp_path_factory.mktemp("endpoints"), ENDPOINTS, "trace.json")


def of_workload(engine: str, factory: pytest.TempPathFactory) -> Trace:
    """Give the timeline of the three ranks."""
    return timeline(factory.mktemp("workload"), f'engine = "{engine}"\n{WORKLOAD}', "trace.json.gz")


@pytest.fixture(scope="module", params=["flit", "flow"])
def workload(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return of_workload(request.param, tmp_path_factory)


@pytest.fixture(scope="module", params=["endpoints", "flit", "flow"])
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    if request.param == "endpoints":
        return timeline(tmp_path_factory.mktemp("endpoints"), ENDPOINTS, "trace.json")
    return of_workload(request.param, tmp_path_factory)


def test_it_has_the_fields_of_the_format(trace: Trace) -> None:
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
            assert event.get("dur", 0) >= 0


def test_events_come_in_the_order_of_their_times(trace: Trace) -> None:
    phases = [event["ph"] for event in trace["traceEvents"]]
    assert phases == sorted(phases, key=lambda phase: phase != "M"), "what names the others comes first"
    times = [event["ts"] for event in trace["traceEvents"] if event["ph"] != "M"]
    assert times == sorted(times)


def test_every_event_stands_in_a_thread_and_a_process_with_a_name(trace: Trace) -> None:
    metadata = [event for event in trace["traceEvents"] if event["ph"] == "M"]
    threads = {(event["pid"], event["tid"]) for event in metadata if event["name"] == "thread_name"}
    processes = {event["pid"] for event in metadata if event["name"] == "process_name"}
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    counters = [event for event in trace["traceEvents"] if event["ph"] == "C"]
    assert {(event["pid"], event["tid"]) for event in spans} == threads
    assert {event["pid"] for event in spans + counters} == processes


def test_events_of_a_thread_lie_apart_or_within_each_other(trace: Trace) -> None:
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
def test_each_stage_of_a_parcel_is_there_by_name(endpoints: Trace, stage: str) -> None:
    assert any(event["ph"] == "X" and event["name"] == stage for event in endpoints["traceEvents"])


def test_each_span_of_an_interface_belongs_to_a_parcel(endpoints: Trace) -> None:
    """Nothing is said of waiting nodes, whose interfaces have parts of their own: figures look parcels up."""
    assert all("parcel" in event["args"] for event in endpoints["traceEvents"] if event["ph"] == "X")


def slices(trace: Trace, part: str) -> list[tuple[int, float, float, int | None]]:
    """Give process, begin and end (microseconds) and flits of what a part did, in the order of time."""
    found = (event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] == part)
    return [(event["pid"], event["ts"], event["ts"] + event["dur"], event["args"].get("flits")) for event in found]


def test_ranks_compute_send_receive_and_wait(workload: Trace) -> None:
    computed = slices(workload, "compute")
    assert [(rank, round(end - begin, 9)) for rank, begin, end, _ in computed] == [(0, 1.0), (1, 0.5)]
    sent, received = slices(workload, "send"), slices(workload, "receive")
    assert sorted((rank, flits) for rank, _, _, flits in sent) == [(0, 50), (0, 100), (1, 10)]
    assert sorted((rank, flits) for rank, _, _, flits in received) == [(1, 100), (2, 10), (2, 50)]
    # A flit leaves in a cycle of 2 ns at most, and a terminal sends one message after the other.
    assert all(end - begin >= flits * 0.002 - 1e-9 for _, begin, end, flits in sent if flits is not None)
    first, second = (times for rank, *times, _ in sent if rank == 0)
    assert first[1] <= second[0] + 1e-9
    # Rank 1 waits for rank 0: it computes and sends afterwards.
    waits = [(begin, end) for rank, begin, end, _ in slices(workload, "wait") if rank == 1]
    assert waits[0][0] == 0
    assert waits[0][1] == pytest.approx(computed[1][1])
    assert computed[1][1] >= next(end for rank, _, end, _ in received if rank == 1) - 1e-9


def test_each_message_is_an_arrow_from_its_sending_to_its_receiving(workload: Trace) -> None:
    inside = defaultdict(list)
    for event in workload["traceEvents"]:
        if event["ph"] == "X":
            inside[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"], event["cat"], event["args"].get("message")))
    ends: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for event in workload["traceEvents"]:
        if event["ph"] in "sf":
            ends[event["id"]].append(event)
            part = "send" if event["ph"] == "s" else "receive"
            assert any(
                begin <= event["ts"] < end and name == part and message == event["id"]
                for begin, end, name, message in inside[event["pid"], event["tid"]]
            )
    assert len(ends) == 3
    for begin, end in ends.values():
        assert (begin["ph"], end["ph"], end["bp"]) == ("s", "f", "e")
        assert begin["ts"] < end["ts"]
        assert begin["pid"] != end["pid"]


def test_the_busiest_channels_are_counters_that_end_at_none(workload: Trace) -> None:
    counters = defaultdict(list)
    for event in workload["traceEvents"]:
        if event["ph"] == "C":
            counters[event["name"]].append((event["ts"], event["args"]["messages"]))
    # 0 to 1 along the first dimension, 0 to 2 along the second, 1 to 2 along both, by way of 0 and later than all others.
    assert len(counters) == 3
    for changes in counters.values():
        assert all(isinstance(count, int) and count >= 0 for _, count in changes)
        assert [count for _, count in changes][-1] == 0
        assert max(count for _, count in changes) == 1
