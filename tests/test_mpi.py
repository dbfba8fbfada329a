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
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import kasuri.mpi

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "mpi" / "build"
KASURI = Path(sys.executable).parent / "kasuri"
CASES = int(os.environ.get("KASURI_MPI_CASES", "50"))
LIBRARIES = ("openmpi", "mpich")

#: Tori of 8 and 16 terminals whose shifts meet, so that the schedules are the search's.
NETWORK = '[network]\ntopology = "torus"\ndimensions = [4, {rows}]\n[routing]\nalgorithm = "dimension-order"\ntie = "positive"\n'


def launch(
    mpi: str, ranks: int, *command: str | Path, environment: dict[str, str] | None = None, preload: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a program of ``mpi/build`` (or another) on so many ranks; only the ranks see `environment`."""
    given = dict(environment or {})
    preloaded = [given.get("LD_PRELOAD", ""), str(BUILD / mpi / "libkasuri_alltoall.so") if preload else ""]
    if mpi == "mpich":
        # There are more ranks than processors.
        preloaded.append(str(BUILD / mpi / "libpolite.so"))
    given["LD_PRELOAD"] = " ".join(filter(None, preloaded))
    if mpi == "openmpi":
        flags = ["--oversubscribe", *(word for name, value in given.items() for word in ("-x", f"{name}={value}"))]
    else:
        flags = [word for name, value in given.items() for word in ("-genv", name, value)]
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    words = [f"mpirun.{mpi}", *flags, "-np", str(ranks), *map(str, command)]
    return subprocess.run(words, env=os.environ | allowed, capture_output=True, text=True, timeout=100 + CASES, check=False)


@pytest.fixture(scope="session")
def schedule(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Give the file of a schedule for so many ranks of this machine, or for ranks by number."""
    folder = tmp_path_factory.mktemp("schedules")

    def write(ranks: int, host: str | None = None) -> Path:
        path = folder / f"{ranks}-{host}.kasuri"
        if not path.exists():
            network = folder / f"{ranks}.toml"
            network.write_text(NETWORK.format(rows=max(2, ranks // 4)))
            (folder / "hosts.txt").write_text(f"{host} 0-{ranks - 1}\n")
            which = ["--hosts", folder / "hosts.txt"] if host else ["--terminals", f"0-{ranks - 1}"]
            words = [KASURI, "schedule", "alltoall", "--network", network, "--schedule", "general", *which, "--export", "mpi"]
            path.write_bytes(subprocess.run(words, capture_output=True, check=True).stdout)
        return path

    return write


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


@pytest.mark.parametrize("program", ["calls", "calls_f08"])
def test_calls_from_fortran_go_by_the_schedule_and_are_right(mpi, program, schedule):
    environment = {"KASURI_MPI_SCHEDULE": str(schedule(8)), "KASURI_MPI_REPORT": "1"}
    found = launch(mpi, 8, BUILD / mpi / program, environment=environment)
    assert found.returncode == 0, found.stderr
    assert "fortran: 0 values are wrong" in found.stdout
    assert f"all-to-alls of rank 0: {8 if program == 'calls' else 2} by the schedule, 0 by the MPI library" in found.stderr


@pytest.mark.parametrize("mode", ["send", "handler", "truncate", "between"])
def test_errors_are_those_of_mpi(mpi, mode, schedule):
    environment = {"KASURI_MPI_SCHEDULE": str(schedule(8))}
    if mode in ("send", "handler"):
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
        return data[:8] + b"\x02" + data[9:]
    return b""


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("truncated", "is it cut off?"),
        ("checksum", "has a wrong checksum"),
        ("version", "has layout 2; this library reads layout 1"),
        ("empty", "is no schedule for MPI, or is cut off"),
        ("missing", "cannot be opened: No such file or directory"),
        ("ranks", "is for 8 ranks; the program has 4"),
        ("placement", "rank 0 runs on"),
        ("length", "a message is longer than 7 bytes, which a schedule does not send"),
        ("none", "KASURI_MPI_SCHEDULE names no schedule"),
    ],
)
def test_where_no_schedule_applies_one_line_says_why_and_the_program_runs(mpi, how, reason, schedule, tmp_path):
    file = tmp_path / "wrong.kasuri"
    environment = {"KASURI_MPI_SCHEDULE": str(file)}
    if how == "ranks":
        file.write_bytes(schedule(8).read_bytes())
    elif how == "placement":
        file.write_bytes(schedule(4, "another-host").read_bytes())
    elif how == "length":
        file.write_bytes(schedule(4).read_bytes())
        environment["KASURI_MPI_MAX_BYTES"] = "7"
    elif how == "none":
        environment = {}
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
    # Only another name of a host makes another schedule of a file: four changes of each letter, and none of a line's end.
    letters = 8 * len(host) if host else 0
    assert int(accepted[1]) <= 4 * letters


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
    schedule: Path, tmp_path: Path, environment: dict[str, str] | None = None, preload: bool = False
) -> subprocess.CompletedProcess[str]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    return launch("openmpi", 8, sys.executable, program, schedule, environment=environment, preload=preload)


def test_mpi4py_programs_can_use_a_schedule(schedule, tmp_path):
    found = run_python(schedule(8, socket.gethostname()), tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stdout == "applied 32 of 32\n"


def test_all_to_alls_of_mpi4py_itself_are_taken_over(schedule, tmp_path):
    file = schedule(8)
    found = run_python(file, tmp_path, environment={"KASURI_MPI_SCHEDULE": str(file), "KASURI_MPI_REPORT": "1"}, preload=True)
    assert found.returncode == 0, found.stderr
    assert "all-to-alls of rank 0: 4 by the schedule, 0 by the MPI library" in found.stderr


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
        *([kasuri.mpi.NOBODY] if (good.destinations == kasuri.mpi.NOBODY).any() else []),
    ]
    file = tmp_path / "wrong.kasuri"
    file.write_bytes(changed(schedule(8).read_bytes(), how))
    with pytest.raises(kasuri.ConfigError, match=r"wrong\.kasuri"):
        kasuri.mpi.read(file)
