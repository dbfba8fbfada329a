"""Schedules in real MPI: the preloaded library, the benchmark and ``kasuri.mpi`` under Open MPI and MPICH on this machine.

``make mpi`` installs the MPI libraries and builds the programs. KASURI_MPI_CASES says how many random all-to-alls are compared.
"""

from __future__ import annotations

import csv
import os
import re
import socket
import subprocess
import sys
import types
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import kasuri.mpi
from command_line import KASURI

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "mpi" / "build"
CASES = int(os.environ.get("KASURI_MPI_CASES", "50"))
LIBRARIES = ("openmpi", "mpich")

#: Tori of 8 and 16 terminals whose shifts meet, so that the schedules are the search's.
NETWORK = '[network]\ntopology = "torus"\ndimensions = [4, {rows}]\n[routing]\nalgorithm = "dimension-order"\ntie = "positive"\n'


def launch(
    mpi: str,
    ranks: int,
    *command: str | Path,
    environment: dict[str, str] | None = None,
    preload: bool = True,
    hosts: dict[str, int] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program of ``mpi/build`` (or another) on so many ranks; only the ranks see `environment`.

    With `hosts` the ranks of each are told that this is their host.
    """
    # By the schedule whatever is faster here, unless a test says otherwise.
    given = {"KASURI_MPI_MIN_BYTES": "0"} | (environment or {})
    given.pop(given.pop("KASURI_TEST_UNSET", ""), None)
    preloaded = [given.get("LD_PRELOAD", ""), str(BUILD / mpi / "libkasuri_alltoall.so") if preload else ""]
    if mpi == "mpich":
        # There are more ranks than processors.
        preloaded.append(str(BUILD / mpi / "libpolite.so"))
    given["LD_PRELOAD"] = " ".join(filter(None, preloaded))
    words = [f"mpirun.{mpi}", *(["--oversubscribe"] if mpi == "openmpi" else [])]
    for host, count in (hosts or {"": ranks}).items():
        here = given | ({"KASURI_MPI_HOST": host} if host else {})
        # The next words belong to the ranks of the next host.
        words += [":"] if "-np" in words else []
        if mpi == "openmpi":
            words += [word for name, value in here.items() for word in ("-x", f"{name}={value}")]
        else:
            words += [word for name, value in here.items() for word in ("-env", name, value)]
        words += ["-np", str(count), *map(str, command)]
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return subprocess.run(words, env=os.environ | allowed, capture_output=True, text=True, timeout=100 + CASES, check=False)


@pytest.fixture(scope="session")
def schedule(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Give the file of a schedule for so many ranks of this machine, or for ranks by number."""
    folder = tmp_path_factory.mktemp("schedules")

    def write(ranks: int, host: str | None = None, *options: str) -> Path:
        path = folder / f"{ranks}-{host}{''.join(options)}.kasuri"
        if not path.exists():
            network = folder / f"{ranks}.toml"
            network.write_text(NETWORK.format(rows=max(2, ranks // 4)))
            (folder / "hosts.txt").write_text(f"{host} 0-{ranks - 1}\n")
            which = ["--hosts", folder / "hosts.txt"] if host else ["--terminals", f"0-{ranks - 1}"]
            words = [KASURI, "schedule", "alltoall", "--network", network, "--schedule", "general", *which, *options, "--export", "mpi"]
            path.write_bytes(subprocess.run(words, capture_output=True, check=True).stdout)
        return path

    return write


#: The collectives besides the all-to-all, in the order of their numbers in files, and what the library calls them.
OTHERS = {"allgather": "all-gather", "reducescatter": "reduce-scatter", "allreduce": "all-reduce"}


def write_for(folder: Path, collective: str, places: list[str], *options: str) -> Path:
    """Write the schedule of a collective for hosts, of which terminal i of a torus is that of place i."""
    network = folder / f"{len(places)}.toml"
    network.write_text(
        f'[network]\ntopology = "torus"\ndimensions = [{len(places)}]\n[routing]\nalgorithm = "dimension-order"\ntie = "positive"\n'
    )
    hosts = folder / "hosts.txt"
    hosts.write_text("".join(f"{host} {place}\n" for place, host in enumerate(places)))
    path = folder / f"{collective}-{len(places)}.kasuri"
    words = [KASURI, "schedule", collective, "--network", network, "--hosts", hosts, *options, "--export", "mpi"]
    path.write_bytes(subprocess.run(words, capture_output=True, check=True).stdout)
    return path


@pytest.fixture(params=LIBRARIES)
def mpi(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    assert (BUILD / name / "libkasuri_alltoall.so").exists(), "`make mpi` builds what this test runs"
    return name


@pytest.mark.parametrize("ranks", [8, 16])
def test_random_all_to_alls_are_those_of_the_mpi_library(mpi, ranks, schedule):
    file = schedule(ranks, socket.gethostname())
    found = launch(mpi, ranks, BUILD / mpi / "compare", str(CASES), "1", environment={"KASURI_MPI_SCHEDULE": str(file)})
    assert found.returncode == 0, found.stderr
    assert f"{CASES} cases, {CASES} of them by the schedule on rank 0: no difference" in found.stdout


def check_reductions(found: subprocess.CompletedProcess[str], cases: int) -> None:
    """Every element is the MPI library's, and each collective has gone by its schedule a good part of the time."""
    assert found.returncode == 0, found.stderr
    counts = re.search(rf"{cases} cases, by the schedule on rank 0: (\d+) (\d+) (\d+): no difference", found.stdout)
    assert counts is not None, found.stdout
    assert all(int(count) > cases // 20 for count in counts.groups()), counts.groups()


@pytest.mark.parametrize("ranks", [8, 6])
def test_random_reductions_and_all_gathers_are_those_of_the_mpi_library(mpi, ranks, tmp_path):
    """Of 8 ranks the halves are of another order than the ranks; of 6 no algorithm may ask for a power of two."""
    files = [write_for(tmp_path, collective, [socket.gethostname()] * ranks) for collective in OTHERS]
    environment = {"KASURI_MPI_SCHEDULE": ":".join(map(str, files))}
    check_reductions(launch(mpi, ranks, BUILD / mpi / "reduce", str(2 * CASES), "1", environment=environment), 2 * CASES)


@pytest.mark.parametrize("algorithm", ["recursive-doubling", "rabenseifner"])
def test_random_all_reduces_by_other_algorithms_are_those_of_the_mpi_library(mpi, algorithm, tmp_path):
    """Of five ranks, one is folded in and out."""
    file = write_for(tmp_path, "allreduce", [socket.gethostname()] * 5, "--schedule", algorithm)
    found = launch(mpi, 5, BUILD / mpi / "reduce", str(CASES), "3", environment={"KASURI_MPI_SCHEDULE": str(file)})
    assert found.returncode == 0, found.stderr
    counts = re.search(r": 0 0 (\d+): no difference", found.stdout)
    assert counts is not None and int(counts[1]) > CASES // 20, found.stdout


#: Ranks of each host that share its terminals, in other numbers on each, and the host of each terminal.
UNEVEN = ({"n2": 3, "n0": 2, "n3": 1, "n1": 2}, ["n0", "n1", "n2", "n3"])


@pytest.mark.parametrize("gathered", ["0", "1000000"])
@pytest.mark.parametrize(("hosts", "places"), [UNEVEN, ({"n0": 5, "n1": 3}, ["n0", "n1", "n0"])])
def test_random_all_to_alls_of_several_ranks_a_terminal_are_those_of_the_mpi_library(mpi, hosts, places, gathered, tmp_path):
    environment = {"KASURI_MPI_SCHEDULE": str(write_for(tmp_path, "alltoall", places)), "KASURI_MPI_REPORT": "1"}
    environment |= {"KASURI_MPI_GATHER_BYTES": gathered}
    found = launch(mpi, 8, BUILD / mpi / "compare", str(CASES), "1", environment=environment, hosts=hosts)
    assert found.returncode == 0, found.stderr
    assert f"{CASES} cases, {CASES} of them by the schedule on rank 0: no difference" in found.stdout
    counted = re.search(r"of those by the schedule (\d+) were gathered within the hosts", found.stderr)
    assert (counted is not None and int(counted[1]) >= CASES // 10) == (gathered != "0"), found.stderr


def test_random_reductions_of_several_ranks_a_terminal_are_those_of_the_mpi_library(mpi, tmp_path):
    hosts, places = UNEVEN
    environment = {"KASURI_MPI_SCHEDULE": ":".join(str(write_for(tmp_path, collective, places)) for collective in OTHERS)}
    found = launch(mpi, 8, BUILD / mpi / "reduce", str(2 * CASES), "1", environment=environment, hosts=hosts)
    check_reductions(found, 2 * CASES)


@pytest.mark.parametrize("hosts", [None, UNEVEN])
def test_random_calls_that_do_not_wait_are_those_of_the_mpi_library(mpi, hosts, schedule, tmp_path):
    """The program asks for no threads. Half its ranks wait for messages of others, which wait for the calls."""
    places = [socket.gethostname()] * 8
    files = [write_for(tmp_path, "alltoall", hosts[1])] if hosts else [schedule(8), *(write_for(tmp_path, name, places) for name in OTHERS)]
    environment = {"KASURI_MPI_SCHEDULE": ":".join(map(str, files)), "KASURI_MPI_NONBLOCKING": "1", "KASURI_MPI_REPORT": "1"}
    words = [BUILD / mpi / "nonblocking", str(CASES), "1", "all"]
    found = launch(mpi, 8, *words, environment=environment, hosts=hosts[0] if hosts else None)
    assert found.returncode == 0, found.stderr
    counted = re.search(rf"{CASES} cases, calls by the schedule on rank 0: (\d+) (\d+) (\d+) (\d+): no difference", found.stdout)
    assert counted is not None, found.stdout
    counts = list(map(int, counted.groups()))
    assert counts[0] > CASES, counts
    # The others' schedules are for the whole world, and for a rank a terminal.
    assert all(count == 0 if hosts else count > CASES // 20 for count in counts[1:]), counts
    assert f"kasuri: non-blocking all-to-alls of rank 0: {counts[0]} by the schedule, 0 by the MPI library\n" in found.stderr


@pytest.mark.parametrize("why", ["set", "short"])
def test_other_calls_that_do_not_wait_are_the_mpi_librarys(mpi, why, schedule):
    """Unless the user asks for them, and where messages are short."""
    environment = {"KASURI_MPI_SCHEDULE": str(schedule(8)), "KASURI_MPI_REPORT": "1"}
    if why == "short":
        environment |= {"KASURI_MPI_NONBLOCKING": "1", "KASURI_MPI_MIN_BYTES": "10000000"}
    found = launch(mpi, 8, BUILD / mpi / "nonblocking", str(CASES), "1", environment=environment)
    assert found.returncode == 0, found.stderr
    assert f"{CASES} cases," in found.stdout and "no difference" in found.stdout
    counts = re.search(r"non-blocking all-to-alls of rank 0: (\d+) by the schedule, (\d+) by the MPI library(.*)", found.stderr)
    assert counts is not None, found.stderr
    assert int(counts[2]) > CASES // 4
    # No rank knows the lengths of all messages of an MPI_Ialltoallv, so those do not decide.
    assert (int(counts[1]) > 0, counts[3]) == ((True, "") if why == "short" else (False, ": KASURI_MPI_NONBLOCKING is not set"))


@pytest.mark.parametrize(
    ("hosts", "reason"),
    [
        ({"n0": 4}, "no rank of the communicator is at place 1 of the 4 of the schedule; all-reduces need all"),
        ({"n0": 2, "other": 2}, "rank 2 runs on other, where the schedule has no place for it"),
    ],
)
def test_where_no_all_reduce_applies_one_line_says_why(mpi, hosts, reason, tmp_path):
    environment = {"KASURI_MPI_SCHEDULE": str(write_for(tmp_path, "allreduce", ["n0", "n1", "n2", "n3"]))}
    found = launch(mpi, 4, BUILD / mpi / "reduce", "20", "1", environment=environment, hosts=hosts)
    assert found.returncode == 0, found.stderr
    assert lines_of(found) == [f"kasuri: the MPI library's own all-reduce is used: {reason}"]


@pytest.mark.parametrize("program", ["calls", "calls_f08"])
def test_calls_from_fortran_go_by_the_schedule_and_are_right(mpi, program, schedule, tmp_path):
    others = [write_for(tmp_path, collective, [socket.gethostname()] * 8) for collective in OTHERS]
    environment = {"KASURI_MPI_SCHEDULE": ":".join(map(str, [schedule(8), *others])), "KASURI_MPI_REPORT": "1"}
    environment |= {"KASURI_MPI_NONBLOCKING": "1"}
    found = launch(mpi, 8, BUILD / mpi / program, environment=environment)
    assert found.returncode == 0, found.stderr
    assert "fortran: 0 values are wrong" in found.stdout
    expected = (
        {"all-to-all": 10, "non-blocking all-to-all": 4, "all-reduce": 1}
        if program == "calls"
        else {"all-to-all": 2, "non-blocking all-to-all": 2, "non-blocking all-reduce": 1, "non-blocking reduce-scatter": 2}
        | {"non-blocking all-gather": 1, "all-reduce": 1, "reduce-scatter": 2, "all-gather": 1}
    )
    for name, count in expected.items():
        assert f"{name}s of rank 0: {count} by the schedule, 0 by the MPI library" in found.stderr


@pytest.mark.parametrize(("program", "seen", "scheduled"), [("ft", 8, 8), ("calls", 6, 10)])
def test_a_tool_that_wraps_calls_sees_them_and_they_go_by_the_schedule(mpi, program, seen, scheduled, schedule, tmp_path):
    """The tool knows `MPI_Alltoall`, `MPI_Allreduce`, `MPI_Ialltoall` and `MPI_Waitall`; of the Fortran program's ten all-to-alls four are
    others. It has two of its four that do not wait in one `MPI_Waitall` on rank 0."""
    reduction = write_for(tmp_path, "allreduce", [socket.gethostname()] * 8)
    environment = {"KASURI_MPI_SCHEDULE": f"{schedule(8)}:{reduction}", "KASURI_MPI_REPORT": "1"}
    environment |= {"LD_PRELOAD": str(BUILD / mpi / "libtool.so"), "KASURI_MPI_NONBLOCKING": "1"}
    found = launch(mpi, 8, BUILD / mpi / program, *(["S"] if program == "ft" else []), environment=environment)
    assert found.returncode == 0, found.stderr
    sums = 1 if program == "calls" else 0
    later = 2 if program == "calls" else 0
    assert f"tool: {seen} all-to-alls, {sums} all-reduces, {later} non-blocking all-to-alls, {later} waits for all" in found.stderr
    assert f"non-blocking all-to-alls of rank 0: {2 * later} by the schedule, 0 by the MPI library" in found.stderr or not later
    assert f"all-to-alls of rank 0: {scheduled} by the schedule, 0 by the MPI library" in found.stderr
    assert f"all-reduces of rank 0: {sums} by the schedule, 0 by the MPI library" in found.stderr


@pytest.mark.parametrize("mode", ["send", "handler", "truncate", "later", "between", "reduce"])
def test_errors_are_those_of_mpi(mpi, mode, schedule, tmp_path):
    reduction = write_for(tmp_path, "allreduce", [socket.gethostname()] * 8, "--schedule", "ring")
    environment = {"KASURI_MPI_SCHEDULE": f"{schedule(8)}:{reduction}", "KASURI_MPI_NONBLOCKING": "1"}
    if mode in ("send", "handler", "reduce"):
        environment |= {"KASURI_TEST_FAIL": "3", "LD_PRELOAD": str(BUILD / mpi / "libfail_send.so")}
    found = launch(mpi, 8, BUILD / mpi / "errors", mode, environment=environment)
    assert found.returncode == 0, found.stderr
    assert f"{mode}: as it should be" in found.stdout


def changed(data: bytes, how: str) -> bytes:
    """Give a schedule file that is wrong in one way."""
    if how == "truncated":
        return data[:-5]
    if how == "checksum":
        return data[:-6] + bytes([data[-6] ^ 1]) + data[-5:]
    if how == "version":
        return data[:8] + b"\x09" + data[9:]
    return b""


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("truncated", "it may be truncated"),
        ("checksum", "has a wrong checksum"),
        ("version", "has layout 9; this library reads layouts 2 (all-to-alls) and 3"),
        ("empty", "is not a schedule for MPI, or truncated"),
        ("missing", "cannot be opened: No such file or directory"),
        ("ranks", "is for 8 ranks; the program has 4"),
        ("hosts", "the schedule is for 2 ranks or hosts; the program has 4 ranks on 1 host"),
        ("placement", "rank 0 runs on"),
        ("length", "a message is longer than 7 bytes, which a schedule does not send"),
        ("none", "KASURI_MPI_SCHEDULE names no schedule"),
        ("MAX_BYTES", "KASURI_MPI_MAX_BYTES is `abc`; it must be a number of bytes, 1 to 2147483647"),
        ("MIN_BYTES", "KASURI_MPI_MIN_BYTES is `abc`; it must be a number of bytes, 0 to 2147483647"),
    ],
)
def test_where_no_schedule_applies_one_line_says_why_and_the_program_runs(mpi, how, reason, schedule, tmp_path):
    file = tmp_path / "wrong.kasuri"
    environment = {"KASURI_MPI_SCHEDULE": str(file)}
    if how == "ranks":
        file.write_bytes(schedule(8).read_bytes())
    elif how == "hosts":
        file.write_bytes(schedule(2).read_bytes())
    elif how == "placement":
        file.write_bytes(schedule(4, "another-host").read_bytes())
    elif how == "length":
        file.write_bytes(schedule(4).read_bytes())
        environment["KASURI_MPI_MAX_BYTES"] = "7"
    elif how == "none":
        environment = {}
    elif how in ("MAX_BYTES", "MIN_BYTES"):
        file.write_bytes(schedule(4).read_bytes())
        environment[f"KASURI_MPI_{how}"] = "abc"
    elif how != "missing":
        file.write_bytes(changed(schedule(4).read_bytes(), how))
    found = launch(mpi, 4, BUILD / mpi / "ft", "S", environment=environment)
    assert found.returncode == 0, found.stderr
    assert "right: differs from a serial transform" in found.stdout
    lines = [line for line in found.stderr.splitlines() if line.startswith("kasuri:")]
    assert len(lines) == 1, found.stderr
    assert lines[0].startswith("kasuri: the MPI library's own all-to-all is used: ")
    assert reason in lines[0]


@pytest.mark.parametrize("host", [None, "node01"])
def test_no_damage_to_a_file_misleads_its_reader(host, schedule, tmp_path):
    words = [BUILD / "damage", schedule(8, host), tmp_path / "damaged.kasuri"]
    # The sanitizer that it is built with must be the first library; somebody may have preloaded another one.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    found = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    accepted = re.fullmatch(r"0 damaged files accepted; with a right checksum (\d+)\n", found.stdout)
    assert accepted is not None, found.stdout
    # Only another name of a host, or another shortest message, makes another schedule of a file: four changes of each letter (and none of a
    # line's end), and of each of the four bytes of that number.
    letters = 8 * len(host) if host else 0
    assert int(accepted[1]) <= 4 * (letters + 4)


@pytest.mark.parametrize("collective", OTHERS)
def test_no_damage_to_the_file_of_another_collective_misleads_its_reader(collective, tmp_path):
    found = subprocess.run(
        [BUILD / "damage", write_for(tmp_path, collective, ["a", "b", "c"]), tmp_path / "damaged.kasuri"],
        env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    accepted = re.fullmatch(r"0 damaged files accepted; with a right checksum (\d+)\n", found.stdout)
    assert accepted is not None, found.stdout
    # Four changes of each letter of a host, and of each of the four bytes of the shortest message.
    assert int(accepted[1]) <= 4 * (3 + 4)


def test_python_refuses_the_file_of_another_collective_and_finds_the_all_to_all_among_several(tmp_path, schedule, monkeypatch):
    other = write_for(tmp_path, "allreduce", ["a", "b"])
    with pytest.raises(kasuri.ConfigError, match="is not a schedule of all-to-alls; the preloaded library runs those of other collectives"):
        kasuri.mpi.read(other)
    assert kasuri.mpi._all_to_all_of(f"{other}:{schedule(8)}") == str(schedule(8))


def test_a_class_that_does_not_fit_into_memory_says_what_it_needs(mpi):
    found = launch(mpi, 4, BUILD / mpi / "ft", "E", "--no-check", preload=False)
    assert found.returncode == 2
    # Five arrays of 4096 x 2048 x 2048 complex numbers.
    assert f"class E needs {5 * 2**34 * 16} bytes of memory for 4 ranks of one host; " in found.stderr


@pytest.mark.parametrize("grid", ["S", "W"])
@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_the_transform_has_the_same_checksums_with_and_without_the_schedule(mpi, grid, ranks, schedule):
    environment = {"KASURI_MPI_SCHEDULE": str(schedule(ranks, socket.gethostname())), "KASURI_MPI_REPORT": "1"}
    runs = [
        launch(mpi, ranks, BUILD / mpi / "ft", grid, environment=environment),
        launch(mpi, ranks, BUILD / mpi / "ft", grid, preload=False),
    ]
    for run in runs:
        assert run.returncode == 0, run.stderr
        assert "right: differs from a serial transform" in run.stdout
    sums = [re.findall(r"^checksum .*$", run.stdout, re.MULTILINE) for run in runs]
    assert len(sums[0]) == 6
    assert sums[0] == sums[1]
    assert "8 by the schedule, 0 by the MPI library" in runs[0].stderr


def published(grid: str, ranks: int) -> list[tuple[str, int]]:
    """Give the calls of a rank of the NAS Parallel Benchmarks' own FT and the bytes of a message of each."""
    lines = (ROOT / "tests/data/mpi/npb-ft-calls.csv").read_text().splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    calls = [row for row in rows if (row["class"], row["ranks"]) == (grid, str(ranks))]
    return [(row["call"], int(row["count"]) * int(row["type_bytes"])) for row in calls]


def sent(program: str) -> list[list[Counter[tuple[int, int]]]]:
    """Give, by rank and call, how many messages of how many bytes go to each rank. A computation begins each call."""
    ranks: list[list[Counter[tuple[int, int]]]] = []
    for line in program.splitlines():
        if line.startswith("rank "):
            ranks.append([])
        elif " calc " in line:
            ranks[-1].append(Counter())
        elif found := re.search(r" send (\d+)b to (\d+) ", line):
            ranks[-1][-1][int(found[2]), int(found[1])] += 1
    return ranks


@pytest.mark.parametrize(("grid", "ranks"), [("S", 8), ("S", 16), ("W", 8)])
@pytest.mark.parametrize("scheduled", [True, False])
def test_the_trace_has_the_messages_of_the_published_benchmark_and_is_replayed(grid, ranks, scheduled, schedule, tmp_path):
    trace = tmp_path / "ft.goal"
    environment = {"KASURI_MPI_TRACE": str(trace)} | ({"KASURI_MPI_SCHEDULE": str(schedule(ranks))} if scheduled else {})
    found = launch("openmpi", ranks, BUILD / "openmpi" / "ft", grid, "--no-check", environment=environment)
    assert found.returncode == 0, found.stderr
    expected = published(grid, ranks)
    messages = sent(trace.read_text())
    assert len(messages) == ranks
    assert [len(calls) for calls in messages] == [len(expected)] * ranks
    for number, (call, size) in enumerate(expected):
        if call == "alltoall":
            for rank in range(ranks):
                assert messages[rank][number] == Counter({(peer, size): 1 for peer in range(ranks) if peer != rank})
        elif call in ("bcast", "reduce"):
            sizes = Counter(size for calls in messages for _, size in calls[number])
            assert sizes == {size: ranks - 1}
    for engine in ("flow", "flit"):
        assert replay(trace, ranks, engine) == "completed"


def messages_of(program: str, verb: str) -> Counter[tuple[int, int, int, int]]:
    """Give how many messages go from and to a rank, of how many bytes and with which tag, as the senders or the receivers say."""
    found: Counter[tuple[int, int, int, int]] = Counter()
    rank = -1
    for line in program.splitlines():
        if line.startswith("rank "):
            rank = int(line.split()[1])
        elif match := re.search(rf" {verb} (\d+)b (?:to|from) (\d+) tag (\d+)", line):
            size, peer, tag = (int(number) for number in match.groups())
            found[(rank, peer, size, tag) if verb == "send" else (peer, rank, size, tag)] += 1
    return found


def expected_messages(program: str, ranks: int) -> Counter[tuple[int, int, int, int]]:
    """Give what the test programs say that they send. The trace has the program's tags and 1."""
    all_ranks = range(ranks)
    if program == "messages_f":
        ring = [((rank, (rank + 1) % ranks, 12, 2), (rank, (rank - 1) % ranks, 8, 3)) for rank in all_ranks]
        return Counter([message for pair in ring for message in pair] + [(rank, 0, 4, 4) for rank in all_ranks[1:]])
    return Counter(
        [(rank, (rank + 1) % ranks, 400, 2) for rank in all_ranks]
        + [(rank, (rank - 1) % ranks, 80, 3) for rank in all_ranks]
        + [(rank, 0, 4 * rank, 4) for rank in all_ranks[1:]]
        + [(rank, rank ^ 1, 0, 5) for rank in all_ranks]
        + [(rank, (rank + 2) % ranks, 7, 6) for rank in all_ranks]
        + [(rank, rank ^ 1, 4, 7) for rank in all_ranks]
    )


@pytest.mark.parametrize("program", ["messages", "messages_f"])
def test_single_messages_are_recorded_and_replayed(mpi, program, tmp_path):
    trace = tmp_path / "messages.goal"
    found = launch(mpi, 4, BUILD / mpi / program, environment={"KASURI_MPI_TRACE": str(trace)})
    assert found.returncode == 0, found.stderr
    text = trace.read_text()
    assert messages_of(text, "send") == messages_of(text, "recv") == expected_messages(program, 4)
    for engine in ("flow", "flit"):
        assert replay(trace, 4, engine) == "completed"


@pytest.mark.parametrize("how", ["schedule", "hosts", "library"])
def test_all_reduces_are_recorded_and_replayed(mpi, how, tmp_path):
    """What is sent is received. By a ring each of 8 ranks sends an eighth of the vector 7 times for the sums, and 7 times the sums."""
    hosts, places = UNEVEN if how == "hosts" else (None, [socket.gethostname()] * 8)
    trace = tmp_path / "collectives.goal"
    environment = {"KASURI_MPI_TRACE": str(trace)}
    if how != "library":
        environment["KASURI_MPI_SCHEDULE"] = str(write_for(tmp_path, "allreduce", places, "--schedule", "ring"))
    found = launch(mpi, 8, BUILD / mpi / "often", "1", "800", "reduce", environment=environment, hosts=hosts)
    assert found.returncode == 0, found.stderr
    text = trace.read_text()
    sent = messages_of(text, "send")
    assert sent == messages_of(text, "recv")
    if how == "schedule":
        assert Counter({key: count for key, count in sent.items() if key[2] == 100}) == Counter(
            {(rank, (rank + 1) % 8, 100, 0): 14 for rank in range(8)}
        )
    assert replay(trace, 8, "flow") == "completed"


def replay(trace: Path, ranks: int, engine: str) -> str:
    """Simulate a recorded program and give how the run ended."""
    network = NETWORK.format(rows=max(2, ranks // 4)).replace("[routing]", "flit_bytes = 1024\ncycle_ns = 100\n[routing]")
    experiment = trace.with_suffix(f".{engine}.toml")
    experiment.write_text(f'engine = "{engine}"\n{network}\n[workload]\ntrace = "{trace.name}"\n[measure]\nmax_cycles = 1_000_000_000\n')
    found = kasuri.run(experiment, out=str(trace.parent / engine))
    return str(found.to_pandas()["status"].iloc[0])


@pytest.mark.parametrize(("grid", "ranks", "points"), [("W", 32, 128 * 128 * 32), ("A", 8, 256 * 256 * 128), ("A", 32, 256 * 256 * 128)])
def test_published_all_to_alls_are_of_as_many_bytes_as_the_grid_says(grid, ranks, points):
    assert published(grid, ranks) == [("alltoall", points // ranks**2 * 16)] * 8


def lines_of(found: subprocess.CompletedProcess[str]) -> list[str]:
    """Give what the library has said."""
    return [line for line in found.stderr.splitlines() if line.startswith("kasuri:")]


def test_a_job_whose_groups_have_no_schedule_says_so_once(mpi, tmp_path):
    """Each half of the ranks has a first all-to-all of its own, and both are without a schedule."""
    found = launch(mpi, 8, BUILD / mpi / "often", "1", "1", environment={"KASURI_MPI_SCHEDULE": str(tmp_path / "missing")})
    assert found.returncode == 0, found.stderr
    assert len(lines_of(found)) == 1, found.stderr


@pytest.mark.parametrize("mode", ["merge", "connect"])
def test_processes_of_several_worlds_exchange_what_they_do_without_us(mpi, mode, schedule):
    """Debian's MPICH can spawn no process; then it cannot with the library either."""
    native = launch(mpi, 4, BUILD / mpi / "spawn", mode, preload=False)
    assert native.stdout == f"{mode}: {'as it should be' if mpi == 'openmpi' else 'cannot'}\n", native.stderr
    for hosts in (None, socket.gethostname()):
        found = launch(mpi, 4, BUILD / mpi / "spawn", mode, environment={"KASURI_MPI_SCHEDULE": str(schedule(4, hosts))})
        assert (found.returncode, found.stdout) == (native.returncode, native.stdout), found.stderr
        assert mpi == "mpich" or ["processes of several worlds" in line for line in lines_of(found)] == [True], found.stderr


def test_a_program_has_as_many_communicators_as_without_us(mpi, schedule):
    """MPICH has some 2,000. Those that get a second one for messages are few."""
    environment = {"KASURI_MPI_SCHEDULE": str(schedule(2)), "KASURI_MPI_REPORT": "1"}
    found = launch(mpi, 2, BUILD / mpi / "many", "1800", environment=environment)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "1800 communicators: as it should be" in found.stdout
    assert "128 communicators have a schedule already" in found.stderr
    assert "129 by the schedule, 1672 by the MPI library" in found.stderr


@pytest.mark.parametrize("least", [None, "1", "0"])
@pytest.mark.parametrize("hosts", [None, {"n0": 3, "n1": 1}])
def test_all_ranks_decide_the_same(mpi, least, hosts, tmp_path):
    """By trial, from the length in the file on. A rank that decides otherwise than the others waits for ever."""
    options = ["--min-bytes", least] if least else []
    places = list(hosts) if hosts else [socket.gethostname()] * 4
    files = [write_for(tmp_path, collective, places, *options) for collective in ("alltoall", *OTHERS)]
    environment = {"KASURI_MPI_SCHEDULE": ":".join(map(str, files)), "KASURI_TEST_UNSET": "KASURI_MPI_MIN_BYTES"}
    found = launch(mpi, 4, BUILD / mpi / "agree", environment=environment, hosts=hosts)
    assert (found.returncode, found.stdout) == (0, "as it should be\n"), found.stderr


def outcomes(mpi: str, ranks: int, cases: int, environment: dict[str, str], preload: bool) -> list[str]:
    """Give a line for each case of calls with wrong arguments, those that end the program included."""
    lines: list[str] = []
    while len(lines) < cases:
        words = [BUILD / mpi / "wrong", str(len(lines)), str(cases - len(lines))]
        found = launch(mpi, ranks, *words, environment=environment, preload=preload)
        lines += re.findall(r"^\d+: .*$", found.stdout, re.MULTILINE)
        if len(lines) < cases:
            assert found.returncode != 0
            lines.append(f"{len(lines)}: ends the program")
    return lines


def test_random_wrong_arguments_do_what_they_do_without_us(mpi, schedule, tmp_path):
    """The same class of error and the same data, or the same end. The mistakes come in turns, their sizes and calls by chance."""
    cases = max(51, CASES // 4)
    files = [schedule(4), *(write_for(tmp_path, collective, [socket.gethostname()] * 4) for collective in OTHERS)]
    native = outcomes(mpi, 4, cases, {}, preload=False)
    assert native == outcomes(mpi, 4, cases, {"KASURI_MPI_SCHEDULE": ":".join(map(str, files))}, preload=True)
    assert sum("error class 0" in line for line in native) > cases // 10
    assert sum("error class" in line and "class 0" not in line for line in native) > cases // 3


@pytest.mark.parametrize("slow", ["schedule", "library"])
@pytest.mark.parametrize(("collective", "size"), [("alltoall", "16384"), ("allreduce", "65536")])
def test_the_faster_way_is_found_by_trial(mpi, slow, collective, size, tmp_path):
    """Of 100 calls the slower way gets what it is tried for: 8 of the first 16, and 4 later. The halves' short messages are never tried."""
    file = write_for(tmp_path, collective, [socket.gethostname()] * 4, *(["--schedule", "ring"] if collective == "allreduce" else []))
    environment = {"KASURI_MPI_SCHEDULE": str(file), "KASURI_MPI_REPORT": "1", "KASURI_TEST_SLOW": slow}
    environment |= {"LD_PRELOAD": str(BUILD / mpi / "libslow.so"), "KASURI_TEST_UNSET": "KASURI_MPI_MIN_BYTES"}
    found = launch(mpi, 4, BUILD / mpi / "often", "100", size, *(["reduce"] if collective == "allreduce" else []), environment=environment)
    assert found.returncode == 0, found.stderr
    counts = {"schedule": (12, 89), "library": (88, 13)}[slow]
    name = OTHERS.get(collective, "all-to-all")
    assert f"{name}s of rank 0: {counts[0]} by the schedule, {counts[1]} by the MPI library" in found.stderr


@pytest.mark.parametrize(("least", "by_schedule"), [(None, 0), ("1024", 0), ("1000", 3), ("0", 4)])
def test_short_messages_are_left_to_the_mpi_library(mpi, least, by_schedule, schedule):
    """Three calls of 1000 bytes and one of 1. A schedule's file asks for as many bytes as a channel carries in a microsecond."""
    environment = {"KASURI_MPI_SCHEDULE": str(schedule(4)), "KASURI_MPI_REPORT": "1"}
    environment |= {"KASURI_TEST_UNSET": "KASURI_MPI_MIN_BYTES"} if least is None else {"KASURI_MPI_MIN_BYTES": least}
    found = launch(mpi, 4, BUILD / mpi / "often", "3", "1000", environment=environment)
    assert found.returncode == 0, found.stderr
    assert f"{by_schedule} by the schedule, {4 - by_schedule} by the MPI library" in found.stderr


@pytest.mark.parametrize("call", ["", "--vector", "--allgather", "--reduce-scatter", "--allreduce"])
def test_the_benchmark_compares_size_by_size(mpi, call, tmp_path):
    """With KASURI_MPI_BENCH=PAIRS, which a quiet machine needs, also: no all-to-all is more than a tenth slower than without us."""
    pairs = os.environ.get("KASURI_MPI_BENCH", "")
    collective = call.removeprefix("--").replace("-", "") if call not in ("", "--vector") else "alltoall"
    # The messages of a ring are parts; those of other algorithms may have several of them.
    ring = ["--schedule", "ring"] if collective in OTHERS else []
    file = write_for(tmp_path, collective, [socket.gethostname()] * 4, *ring)
    environment = {"KASURI_MPI_SCHEDULE": str(file), "KASURI_TEST_UNSET": "KASURI_MPI_MIN_BYTES"}
    found = launch(mpi, 4, BUILD / mpi / "bench", "--pairs", pairs or "3", *filter(None, [call]), environment=environment)
    assert found.returncode == 0, found.stderr
    rows = list(csv.DictReader(found.stdout.splitlines()))
    assert [row["bytes"] for row in rows] == [str(8 * 4**i) for i in range(8)]
    assert [row["by"] for row in rows] == ["library" if int(row["bytes"]) < 12_500 else "either" for row in rows]
    if pairs and collective == "alltoall":
        assert all(min(float(row["ratio"]), float(row["median_ratio"])) <= 1.1 for row in rows), found.stdout


PROGRAM = """
import sys
import numpy as np
from mpi4py import MPI
import kasuri.mpi

applied = []
for comm in (MPI.COMM_WORLD, MPI.COMM_WORLD.Split(MPI.COMM_WORLD.Get_rank() % 2)):
    rank, size = comm.Get_rank(), comm.Get_size()
    for dtype in (np.int32, np.float64):
        sent = (1000 * rank + np.arange(3 * size)).astype(dtype)
        ours, theirs = np.zeros_like(sent), np.zeros_like(sent)
        applied.append(kasuri.mpi.alltoall(comm, sent, ours, sys.argv[1]))
        comm.Alltoall(sent, theirs)
        assert (ours == theirs).all(), (ours, theirs)
answers = MPI.COMM_WORLD.gather(applied)
if MPI.COMM_WORLD.Get_rank() == 0:
    print("applied", sum(map(sum, answers)), "of", sum(map(len, answers)))
"""


def run_python(
    schedule: Path,
    tmp_path: Path,
    environment: dict[str, str] | None = None,
    preload: bool = False,
    text: str = PROGRAM,
    mpi: str = "openmpi",
) -> subprocess.CompletedProcess[str]:
    program = tmp_path / "program.py"
    program.write_text(text)
    given = {"MPI4PY_MPIABI": mpi} | (environment or {})
    if mpi == "mpich":
        # mpi4py looks for MPICH's library under the name that MPICH itself gives it; Debian's has another.
        found = subprocess.run(["ldd", BUILD / mpi / "ft"], capture_output=True, text=True, check=True).stdout
        (tmp_path / "libmpi.so.12").symlink_to(re.findall(r"libmpich\.so\.\d+ => (\S+)", found)[0])
        given["LD_LIBRARY_PATH"] = f"{tmp_path}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    return launch(mpi, 8, sys.executable, program, schedule, environment=given, preload=preload)


def test_mpi4py_programs_can_use_a_schedule(schedule, tmp_path):
    found = run_python(schedule(8, socket.gethostname()), tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stdout == "applied 32 of 32\n"


def test_all_to_alls_of_mpi4py_itself_are_taken_over(mpi, schedule, tmp_path):
    """Under an MPI library of MPI 4, such as MPICH here, mpi4py makes the calls with long counts."""
    file = schedule(8)
    found = run_python(file, tmp_path, environment={"KASURI_MPI_SCHEDULE": str(file), "KASURI_MPI_REPORT": "1"}, preload=True, mpi=mpi)
    assert found.returncode == 0, found.stderr
    assert "all-to-alls of rank 0: 4 by the schedule, 0 by the MPI library" in found.stderr


BETWEEN_GROUPS = """
import sys
import numpy as np
from mpi4py import MPI
import kasuri.mpi

world = MPI.COMM_WORLD
rank, half = world.Get_rank(), world.Get_size() // 2
group = world.Split(rank < half and 1 or 2, rank)
between = group.Create_intercomm(0, world, half if rank < half else 0)
sent = 100 * rank + np.arange(2 * half)
received = np.zeros_like(sent)
assert not kasuri.mpi.alltoall(between, sent, received, sys.argv[1])
others = np.arange(half) + (half if rank < half else 0)
assert (received.reshape(half, 2) == 100 * others[:, None] + 2 * (rank % half) + [0, 1]).all(), received
small = np.zeros(2 * world.Get_size(), dtype=np.int8)
assert not kasuri.mpi.alltoall(world, small, small.copy(), sys.argv[1])
if rank == 0:
    print("as it should be")
"""


def test_between_groups_and_for_short_blocks_it_is_the_librarys_call(mpi, schedule, tmp_path):
    found = run_python(schedule(8), tmp_path, environment={"KASURI_MPI_MIN_BYTES": "3"}, text=BETWEEN_GROUPS, mpi=mpi)
    assert (found.returncode, found.stdout) == (0, "as it should be\n"), found.stderr


MERGED = """
import sys
import numpy as np
from mpi4py import MPI
import kasuri.mpi

parent = MPI.Comm.Get_parent()
if parent == MPI.COMM_NULL:
    link = MPI.COMM_WORLD.Spawn(sys.executable, [__file__, sys.argv[1]], MPI.COMM_WORLD.Get_size())
both = (link if parent == MPI.COMM_NULL else parent).Merge(parent != MPI.COMM_NULL)
rank, size = both.Get_rank(), both.Get_size()
sent = 100 * rank + np.arange(size)
received = np.zeros_like(sent)
applied = kasuri.mpi.alltoall(both, sent, received, sys.argv[1])
right = both.allreduce(bool((received == 100 * np.arange(size) + rank).all()), MPI.LAND)
if rank == 0:
    print(size, applied, right)
both.Free()
(link if parent == MPI.COMM_NULL else parent).Disconnect()
"""


def test_mpi4py_programs_that_spawn_others_fall_back(schedule, tmp_path):
    found = run_python(schedule(8), tmp_path, text=MERGED)
    assert (found.returncode, found.stdout) == (0, "16 False True\n"), found.stderr


#: What `kasuri.mpi` asks a communicator before it looks at the buffers.
TWO_RANKS = types.SimpleNamespace(Is_inter=lambda: False, Get_size=lambda: 2)


@pytest.mark.parametrize(
    ("received", "problem"),
    [
        (np.zeros(4, dtype=np.int32), "recvbuf: has type int32 and sendbuf float64"),
        (np.zeros(6), "recvbuf: has 6 elements and sendbuf 4"),
        (np.zeros(3), "recvbuf: must be a NumPy array in C order"),
        (np.array([None] * 4), "recvbuf: holds Python objects"),
        (np.broadcast_to(0.0, (0, 4)).copy(), "recvbuf: has 0 elements"),
    ],
)
def test_buffers_that_do_not_fit_together_are_refused_in_python(received, problem):
    with pytest.raises(kasuri.ConfigError, match=problem):
        kasuri.mpi.alltoall(TWO_RANKS, np.zeros(4), received, "unread")


def test_one_buffer_for_both_is_refused_in_python():
    numbers = np.zeros(6)
    with pytest.raises(kasuri.ConfigError, match="overlaps"):
        kasuri.mpi.alltoall(TWO_RANKS, numbers[:4], numbers[2:], "unread")


def test_mpi4py_programs_fall_back(schedule, tmp_path):
    found = run_python(schedule(16), tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stdout == "applied 0 of 32\n"
    assert "the schedule is for 16 ranks; the program has 8" in found.stderr


@pytest.mark.parametrize("how", ["truncated", "checksum", "version", "empty"])
def test_wrong_files_are_refused_in_python(how, schedule, tmp_path):
    good = kasuri.mpi.read(schedule(8, "node1"))
    assert (good.ranks, good.hosts) == (8, ("node1",) * 8)
    assert sorted(np.unique(good.destinations)) == [
        *range(8),
        *([kasuri.mpi.NO_RANK] if (good.destinations == kasuri.mpi.NO_RANK).any() else []),
    ]
    file = tmp_path / "wrong.kasuri"
    file.write_bytes(changed(schedule(8).read_bytes(), how))
    with pytest.raises(kasuri.ConfigError, match=r"wrong\.kasuri"):
        kasuri.mpi.read(file)
