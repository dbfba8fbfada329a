"""Sweeps on Dask: the table of ``local`` whatever dies, no finished point twice, clear words for bad input."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from command_line import COSTS, KASURI
from kasuri.executor import packing, store
from kasuri.executor.packing import Point, Queue
from kasuri.executor.sweep import Sweep
from kasuri.executor.task import Experiment

SMALL = """
[network]
topology = "mesh"
dimensions = [2, 2]
[routing]
algorithm = "dimension-order"
[traffic]
pattern = "uniform"
[measure]
warmup = 50
cycles = 200
[sweep]
"traffic.load" = { from = 0.01, to = 0.50, step = 0.01 }
"measure.seed" = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
"""

# Points of a tenth of a second, so that something can die in the middle.
LONG = """
[network]
topology = "mesh"
dimensions = [8, 8]
[routing]
algorithm = "dimension-order"
[traffic]
pattern = "uniform"
load = 0.1
[measure]
warmup = 0
cycles = 10_000
[sweep]
"measure.seed" = { from = 1, to = 24, step = 1 }
"""


@pytest.fixture(autouse=True)
def _own_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was learnt about this machine before must not decide what is packed together."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def arguments(file: Path, out: Path, *more: str) -> list[str]:
    return [str(KASURI), "run", str(file), "--out", str(out), *more]


def kasuri(file: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments(file, out, *more), capture_output=True, text=True, timeout=120)


def table(out: Path) -> list[dict[str, str]]:
    with (out / "runs.csv").open() as file:
        return [{name: value for name, value in row.items() if name not in COSTS} for row in csv.DictReader(file)]


def written(folder: Path, text: str) -> Path:
    file = folder / "sweep.toml"
    file.write_text(text)
    return file


def finished(out: Path) -> int:
    return len(list((out / "runs").glob("*.json")))


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "this does not come"
        time.sleep(0.02)


def written_rows(out: Path) -> dict[str, tuple[int, int]]:
    """Give the rows of a folder, and what tells whether each was written again."""
    status = {path.name: path.stat() for path in (out / "runs").glob("*.json")}
    return {name: (of.st_ino, of.st_mtime_ns) for name, of in status.items()}


class Watcher(threading.Thread):
    """Counts how often each row of a folder was written."""

    def __init__(self, out: Path):
        super().__init__(daemon=True)
        self.out, self.over, self.seen = out, threading.Event(), dict[str, set[tuple[int, int]]]()

    def look(self) -> None:
        for name, version in written_rows(self.out).items():
            self.seen.setdefault(name, set()).add(version)

    def run(self) -> None:
        while not self.over.wait(0.02):
            self.look()

    def __enter__(self) -> Watcher:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()
        self.look()

    def most_often(self) -> int:
        return max(len(times) for times in self.seen.values())


class Cluster:
    """A scheduler and workers as processes of their own, which can be killed."""

    def __init__(self, folder: Path):
        self.folder, self.processes, self.workers = folder, [], []
        self.file = folder / f"scheduler-{time.monotonic_ns()}.json"
        self.scheduler = self.start("scheduler", "--port", "0", "--host", "127.0.0.1", "--scheduler-file", str(self.file))
        wait_until(lambda: self.file.exists() and self.file.read_text().endswith("}"))
        self.address = json.loads(self.file.read_text())["address"]

    def start(self, *words: str, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        command = [*before, sys.executable, "-m", "dask", *words, "--no-dashboard"]
        # Kept, because it says why a worker did not come.
        with (self.folder / "dask.log").open("ab") as log:
            process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def add_worker(self, *words: str, before: Sequence[str] = ()) -> None:
        options = ["--nthreads", "1", "--no-nanny", "--death-timeout", "20", "--local-directory", str(self.folder), *words]
        self.workers.append(self.start("worker", self.address, *options, before=before))

    def end(self) -> None:
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    for _ in range(2):
        cluster.add_worker()
    yield cluster
    cluster.end()


@pytest.fixture
def client() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts sweeps that end with the test at the latest."""
    started = []

    def start(file: Path, out: Path, executor: str) -> subprocess.Popen[str]:
        words = arguments(file, out, "--executor", executor)
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        if process.returncode is None:
            process.kill()
            process.communicate()


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert kasuri(written(folder, LONG), folder / "out").returncode == 0
    return table(folder / "out")


def test_five_hundred_runs_give_the_same_table_by_local_dask_and_shards(tmp_path):
    file = written(tmp_path, SMALL)
    local, dask, parts = tmp_path / "local", tmp_path / "dask", tmp_path / "parts"
    assert kasuri(file, local).returncode == 0
    answer = kasuri(file, dask, "--executor", "dask", "--jobs", "2")
    assert answer.returncode == 0, answer.stderr
    assert "2 workers; the Dask dashboard: http://" in answer.stderr
    assert "computed 500 runs; 0 failed, 0 set aside" in answer.stderr
    for index in (3, 1, 2):
        assert kasuri(file, parts, "--shard", f"{index}/3").returncode == 0
    collected = subprocess.run([KASURI, "collect", parts], capture_output=True, text=True)
    assert collected.returncode == 0, collected.stderr
    assert len(table(local)) == 500
    assert table(dask) == table(local)
    assert table(parts) == table(local)


def test_standard_output_is_one_json_object(tmp_path):
    file = written(tmp_path, SMALL)
    answer = kasuri(file, tmp_path / "out", "--set", "traffic.load=0.1", "--executor", "dask", "--jobs", "1", "--format", "json")
    assert [row["measure.seed"] for row in json.loads(answer.stdout)["runs"]] == list(range(1, 11))


def test_a_killed_worker_costs_nothing_that_was_finished(tmp_path, cluster, client, undisturbed):
    file, out = written(tmp_path, LONG), tmp_path / "out"
    process = client(file, out, f"dask:{cluster.address}")
    with Watcher(out) as watcher:
        wait_until(lambda: finished(out) >= 3)
        cluster.workers[0].kill()
        cluster.add_worker()
        status, errors = ended(process)
    assert status == 0, errors
    assert table(out) == undisturbed
    assert watcher.most_often() == 1


def test_workers_may_come_when_the_sweep_has_begun(tmp_path, client, undisturbed):
    file, out = written(tmp_path, LONG), tmp_path / "out"
    empty = Cluster(tmp_path)
    try:
        process = client(file, out, f"dask:{empty.address}")
        wait_until(lambda: any(out.glob(".shared-*")))
        time.sleep(2)
        for _ in range(2):
            empty.add_worker()
        status, errors = ended(process)
    finally:
        empty.end()
    assert status == 0, errors
    assert table(out) == undisturbed


def test_a_killed_scheduler_leaves_what_is_finished(tmp_path, cluster, client, undisturbed):
    file, out = written(tmp_path, LONG), tmp_path / "out"
    process = client(file, out, f"dask:{cluster.address}")
    with Watcher(out) as watcher:
        wait_until(lambda: finished(out) >= 3)
        cluster.scheduler.kill()
        status, errors = ended(process)
        assert status == 1
        assert "has gone" in errors
        assert "run the same command again" in errors
        # The old workers go on for a while with what they had begun.
        assert kasuri(file, out, "--executor", "dask", "--jobs", "2").returncode == 0
    assert table(out) == undisturbed
    assert watcher.most_often() == 1


def test_a_killed_client_leaves_what_is_finished(tmp_path, client, undisturbed):
    file, out = written(tmp_path, LONG), tmp_path / "out"
    process = client(file, out, "dask")
    with Watcher(out) as watcher:
        wait_until(lambda: finished(out) >= 3)
        process.kill()
        process.communicate()
        # Its workers end with it, and their commands with them.
        wait_until(lambda: kasuri(file, out).returncode == 0)
    assert table(out) == undisturbed
    assert watcher.most_often() == 1


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_a_sweep_and_keep_what_is_finished(tmp_path, number, status, client, undisturbed):
    file, out = written(tmp_path, LONG), tmp_path / "out"
    process = client(file, out, "dask")
    wait_until(lambda: finished(out) >= 2)
    process.send_signal(number)
    ending, errors = ended(process)
    assert ending == status, errors
    assert "run the same command again to compute the rest" in errors
    assert 2 <= finished(out) < 24
    second = kasuri(file, out)
    assert second.returncode == 0, second.stderr
    assert table(out) == undisturbed


#: Stopped while the workers start: Dask's scheduler logs a traceback, and asyncio that of a task that nobody awaits any more.
STOPPED_AT_THE_START = """
import asyncio, logging, sys
from kasuri.executor import __main__ as executor

async def starting():
    raise RuntimeError("Nanny failed to start")

async def start():
    asyncio.ensure_future(starting())
    await asyncio.sleep(0.01)

def stopped(options):
    import distributed
    asyncio.run(start())
    logging.getLogger("distributed.scheduler").critical("Closed comm")
    raise KeyboardInterrupt

executor._run = stopped
sys.exit(executor.main(["sweep.toml", "--executor", "dask", "--out", "out", "--command", "kasuri"]))
"""


def test_what_dask_logs_of_its_end_reaches_no_user(tmp_path):
    stopped = subprocess.run([sys.executable, "-c", STOPPED_AT_THE_START], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert stopped.returncode == 130
    assert stopped.stderr == "kasuri: stopped: 0 finished runs are kept in out; run the same command again to compute the rest\n"


def test_a_second_client_of_a_folder_is_refused(tmp_path, client):
    # So many points that the first client is still busy when the second one has come.
    file, out = written(tmp_path, LONG.replace("to = 24", "to = 2400")), tmp_path / "out"
    process = client(file, out, "dask")
    wait_until(lambda: finished(out) >= 1)
    for executor in ("dask", "local"):
        second = kasuri(file, out, "--executor", executor)
        assert second.returncode == 2
        assert "another kasuri process is writing there" in second.stderr
    process.send_signal(signal.SIGTERM)
    ended(process)


LARGE = """
[network]
topology = "mesh"
dimensions = [4, 4]
[routing]
algorithm = "dimension-order"
[traffic]
pattern = "uniform"
load = 0.002
[measure]
warmup = 0
cycles = 2000
[sweep]
"network.dimensions" = [[4, 4], [128, 128], [8, 8]]
"""


def test_a_point_that_is_killed_for_memory_twice_is_set_aside(tmp_path):
    file, out = written(tmp_path, LARGE), tmp_path / "out"
    executor = tmp_path / "narrow.toml"
    executor.write_text('kind = "dask"\njobs = 1\nmemory = 0.035\n')
    answer = kasuri(file, out, "--executor", str(executor))
    assert answer.returncode == 1, answer.stderr
    rows = {row["network.dimensions"]: row for row in table(out)}
    assert [rows[side]["status"] for side in ("[4,4]", "[128,128]", "[8,8]")] == ["converged", "failed", "converged"]
    key = rows["[128,128]"]["key"]
    assert "killed its worker 2 times: out of memory: it had" in rows["[128,128]"]["message"]
    assert f"set aside: run {key} killed its worker 2 times: out of memory" in answer.stderr
    # With more memory the sweep is as if nothing had happened.
    assert kasuri(file, out, "--executor", "dask", "--jobs", "1").returncode == 0
    assert kasuri(file, tmp_path / "local").returncode == 0
    assert table(out) == table(tmp_path / "local")


def apart(*mounts: str) -> list[str]:
    """Words before a command that then sees these mounts, and nobody else."""
    script = " && ".join([*(f"mount {mount}" for mount in mounts), 'exec "$@"'])
    return ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-c", script, "sh"]


def hidden(out: Path, scratch: Path, size: str) -> list[str]:
    """Words before a command that then has a folder of results of its own, empty, and a scratch folder of this size."""
    out.mkdir(exist_ok=True)
    scratch.mkdir(exist_ok=True)
    return apart(f"-t tmpfs none {out}", f"-t tmpfs -o size={size} none {scratch}")


def can_hide(folder: Path) -> bool:
    return subprocess.run([*hidden(folder / "a", folder / "b", "1m"), "true"], capture_output=True).returncode == 0


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Callable[[str], Cluster]]:
    """A cluster of one worker that does not see the folder of results and has a scratch folder of some size."""
    if not can_hide(tmp_path):
        pytest.skip("this system lets nobody mount a file system of his own")
    clusters = []

    def start(size: str) -> Cluster:
        cluster = Cluster(tmp_path)
        clusters.append(cluster)
        scratch = tmp_path / "scratch"
        cluster.add_worker("--local-directory", str(scratch), before=hidden(tmp_path / "out", scratch, size))
        return cluster

    yield start
    for cluster in clusters:
        cluster.end()


def test_nothing_that_happens_after_the_subscription_is_missed(tmp_path):
    """Subscriptions that come to the scheduler a second late: what happens just then, as a worker that registers, is heard of.

    They come in the order in which they were sent, as on the one stream that carries them.
    """
    import distributed

    cluster = Cluster(tmp_path)
    timers = []
    try:
        with distributed.Client(cluster.address, set_as_default=False) as client:
            send = client._send_to_scheduler

            def send_late(message):
                if message["op"] == "subscribe-topic":
                    timers.append(threading.Timer(1.0 + 0.2 * len(timers), client.loop.add_callback, [send, message]))
                    timers[-1].start()
                else:
                    send(message)

            client._send_to_scheduler = send_late
            sweep = Sweep(client, Experiment("kasuri", "", str(tmp_path / "sweep.toml"), str(tmp_path), ""), [])
            sweep._subscribe()
            client.log_event("all", {"action": "add-worker", "worker": "tcp://here"})
            assert len(timers) == 2
            assert sweep._news.get(timeout=10) == ("event", {"action": "add-worker", "worker": "tcp://here"})
    finally:
        for timer in timers:
            timer.cancel()
        cluster.end()


def test_workers_without_the_folder_return_what_they_compute(tmp_path, far):
    file, out = written(tmp_path, SMALL), tmp_path / "out"
    few = ("--set", "traffic.load=0.2")
    answer = kasuri(file, out, *few, "--executor", f"dask:{far('64m').address}")
    assert answer.returncode == 0, answer.stderr
    assert "the workers do not see the folder of results" in answer.stderr
    assert kasuri(file, tmp_path / "local", *few).returncode == 0
    assert table(out) == table(tmp_path / "local")
    vectors = {path.name: path.read_bytes() for path in (tmp_path / "local/runs").glob("*.npy")}
    assert len(vectors) >= 10
    assert {path.name: path.read_bytes() for path in (out / "runs").glob("*.npy")} == vectors
    networks = {path.name: path.read_bytes() for path in (tmp_path / "local/networks").iterdir()}
    assert len(networks) == 1
    assert {path.name: path.read_bytes() for path in (out / "networks").iterdir()} == networks


def test_a_full_scratch_folder_ends_the_sweep_with_its_reason(tmp_path, far, undisturbed):
    file, out = written(tmp_path, LONG), tmp_path / "out"
    answer = kasuri(file, out, "--executor", f"dask:{far('48k').address}")
    assert answer.returncode == 1
    assert "the disk is full" in answer.stderr
    assert "run the same command again" in answer.stderr
    assert kasuri(file, out).returncode == 0
    assert table(out) == undisturbed


def refused(tmp_path: Path, executor: str, **environment: str) -> str:
    file = written(tmp_path, SMALL)
    command = arguments(file, tmp_path / "out", "--executor", executor)
    answer = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, timeout=60)
    assert answer.returncode == 2, answer.stderr
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
    return answer.stderr


def test_an_unknown_executor_is_refused(tmp_path):
    assert "unknown executor; did you mean `slurm`? expected local, dask, " in refused(tmp_path, "slrum")


def test_a_scheduler_that_does_not_answer_is_given_up(tmp_path):
    file = tmp_path / "nobody.toml"
    file.write_text('kind = "dask"\nscheduler = "tcp://127.0.0.1:9"\nwait = 1.5\n')
    begin = time.monotonic()
    assert "no Dask scheduler answers at tcp://127.0.0.1:9 within 1.5 s" in refused(tmp_path, str(file))
    assert time.monotonic() - begin < 30
    assert "it must be like tcp://HOST:8786" in refused(tmp_path, "dask:nowhere")


def test_a_missing_sbatch_is_named(tmp_path):
    assert "no command `sbatch`" in refused(tmp_path, "slurm", PATH=str(tmp_path), KASURI_PYTHON=sys.executable)


def test_a_wrong_executor_file_is_refused(tmp_path):
    file = tmp_path / "site.toml"
    for text, expected in [
        ('kind = "slrm"', "kind: is 'slrm'; it must be one of local, dask, slurm"),
        ('kind = "slurm"\nquue = "long"', "quue: unknown key; did you mean `queue`?"),
        ('kind = "dask"\njobs = 0', "jobs: is 0; it must be a whole number, at least 1"),
        ('kind = "local"\njobs = 0', "jobs"),
        ("kind = ", "site.toml"),
    ]:
        file.write_text(text)
        message = refused(tmp_path, str(file))
        assert expected in message
        assert "site.toml" in message


def test_a_run_folder_of_another_version_is_refused(tmp_path):
    file, out = written(tmp_path, SMALL), tmp_path / "out"
    assert kasuri(file, out, "--plan").returncode == 0
    plan = out / "plan.jsonl"
    plan.write_text(plan.read_text().replace('"results":', '"results":9', 1))
    for words in (["--executor", "dask"], ["--shard", "1/2"], ["--plan"]):
        answer = kasuri(file, out, *words)
        assert answer.returncode == 2
        assert "planned the runs of this folder, this is kasuri" in answer.stderr


def test_a_worker_of_another_version_is_refused_with_both_versions(tmp_path):
    if not can_hide(tmp_path):
        pytest.skip("this system lets nobody mount a file system of his own")
    own = subprocess.run([KASURI, "identity"], capture_output=True, text=True, check=True).stdout.strip()
    version = json.loads(own)["kasuri"]
    other = tmp_path / "kasuri"
    other.write_text(f"#!/bin/sh\necho '{own.replace(version, '9.8.7')}'\n")
    other.chmod(0o755)
    cluster = Cluster(tmp_path)
    try:
        # On the worker's side the command is the other one.
        cluster.add_worker(before=apart(f"--bind {other} {KASURI.resolve()}"))
        message = refused(tmp_path, f"dask:{cluster.address}")
    finally:
        cluster.end()
    assert "is refused" in message
    assert "has kasuri 9.8.7 (" in message
    assert f"this is kasuri {version} (" in message
    assert not list((tmp_path / "out").glob("runs/*.json"))


def another_kasuri(folder: Path, key: str, value: str) -> list[str]:
    """Words before a command for which the program is one of which a part of the identity differs."""
    own = json.loads(subprocess.run([KASURI, "identity"], capture_output=True, text=True, check=True).stdout)
    other = folder / "kasuri"
    other.write_text(f"#!/bin/sh\necho '{json.dumps(own | {key: value}, separators=(',', ':'))}'\n")
    other.chmod(0o755)
    return apart(f"--bind {other} {KASURI.resolve()}")


@pytest.mark.parametrize(("key", "value"), [("kasuri", "9.8.7"), ("build", "0123456789abcdef")])
def test_a_worker_of_another_build_is_left_out_and_the_others_go_on(tmp_path, key, value):
    if not can_hide(tmp_path):
        pytest.skip("this system lets nobody mount a file system of his own")
    file, out = written(tmp_path, SMALL), tmp_path / "out"
    few = ("--set", "traffic.load=0.2")
    cluster = Cluster(tmp_path)
    try:
        cluster.add_worker(before=another_kasuri(tmp_path, key, value))
        cluster.add_worker()
        wait_until(lambda: workers_of(cluster) == 2)
        answer = kasuri(file, out, *few, "--executor", f"dask:{cluster.address}")
    finally:
        cluster.end()
    assert answer.returncode == 0, answer.stderr
    assert len([line for line in answer.stderr.splitlines() if "is left out" in line and value in line]) == 1, answer.stderr
    assert kasuri(file, tmp_path / "local", *few).returncode == 0
    assert table(out) == table(tmp_path / "local")


def workers_of(cluster: Cluster) -> int:
    """Count the workers that have come to a scheduler."""
    import distributed

    with distributed.Client(cluster.address, set_as_default=False) as client:
        return len(client.scheduler_info(n_workers=-1)["workers"])


def test_a_worker_that_does_not_answer_is_left_out(tmp_path):
    file, out = written(tmp_path, SMALL), tmp_path / "out"
    cluster = Cluster(tmp_path)
    try:
        for _ in range(2):
            cluster.add_worker()
        wait_until(lambda: workers_of(cluster) == 2)
        cluster.workers[0].send_signal(signal.SIGSTOP)
        code = (
            "import sys, kasuri.executor.sweep as sweep; sweep.ANSWER = 1.0; "
            "from kasuri.executor.__main__ import main; sys.exit(main(sys.argv[1:]))"
        )
        words = ["--executor", f"dask:{cluster.address}", "--out", str(out), "--command", str(KASURI), "--set", "traffic.load=0.2"]
        answer = subprocess.run([sys.executable, "-c", code, str(file), *words], capture_output=True, text=True, timeout=90)
    finally:
        cluster.end()
    assert answer.returncode == 0, answer.stderr
    assert "is left out: no answer within 1 s" in answer.stderr


def test_what_listens_but_is_no_scheduler_is_given_up(tmp_path):
    """As a dashboard does: it takes the connection and waits for a request."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        file = tmp_path / "silent.toml"
        file.write_text(f'kind = "dask"\nscheduler = "{address}"\nwait = 1.5\n')
        begin = time.monotonic()
        assert f"no Dask scheduler answers at {address} within 1.5 s" in refused(tmp_path, str(file))
        assert time.monotonic() - begin < 30


def test_others_on_the_machine_cannot_command_the_local_workers(tmp_path):
    """Without the key that was made for it nobody speaks with the scheduler or a worker; the dashboard takes no commands."""
    import distributed

    from kasuri.executor.local_cluster import LocalCluster

    with LocalCluster(jobs=1).connect(tmp_path) as client:
        info = client.scheduler_info(n_workers=-1)
        addresses = [info["address"], *info["workers"]]
        assert all(address.startswith("tls://127.0.0.1:") for address in addresses)
        assert client.submit(sum, [1, 2]).result(timeout=30) == 3
        for address in addresses:
            for scheme in ("tcp", "tls"):
                with pytest.raises((OSError, TypeError, ValueError, RuntimeError)):
                    distributed.Client(address.replace("tls", scheme), timeout=2, set_as_default=False)
        dashboard = urllib.parse.urlsplit(client.dashboard_link)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://{dashboard.netloc}/api/v1/retire_workers", b"{}")


@pytest.mark.parametrize("words", [["run", "small.toml", "--executor", "dask", "--jobs", "1"], ["report", "done"], ["reproduce", "none"]])
def test_no_module_of_the_current_folder_is_run(tmp_path, words):
    folder, home = tmp_path / "someone_elses", tmp_path / "own"
    folder.mkdir()
    home.mkdir()
    (folder / "small.toml").write_text(SMALL)
    assert kasuri(folder / "small.toml", folder / "done", "--set", "traffic.load=0.2").returncode == 0
    for name in ("json", "kasuri", "distributed", "dask", "numpy", "argparse"):
        (folder / f"{name}.py").write_text(f"open({str(home / name)!r}, 'w').close()\nraise SystemExit('the module of the folder')\n")
    more = ["--set", "traffic.load=0.2"] if words[0] == "run" else []
    answer = subprocess.run([KASURI, *words, *more], cwd=folder, capture_output=True, text=True, timeout=120)
    assert "the module of the folder" not in answer.stderr
    assert list(home.iterdir()) == []
    assert words[0] == "reproduce" or answer.returncode == 0, answer.stderr


def test_what_a_killed_client_left_is_removed(tmp_path):
    (tmp_path / ".shared-of-one-that-was-killed").touch()
    with store.token(tmp_path) as name:
        assert [path.name for path in tmp_path.glob(".shared-*")] == [name]
    assert not list(tmp_path.glob(".shared-*"))


def test_collect_prints_the_table_of_a_plain_run(tmp_path):
    file, out = written(tmp_path, SMALL), tmp_path / "out"
    assert kasuri(file, out, "--set", "traffic.load=0.2").returncode == 0
    before = (out / "runs.csv").read_bytes()
    answer = subprocess.run([KASURI, "collect", out, "--format", "csv"], capture_output=True)
    assert (answer.returncode, answer.stdout) == (0, before), answer.stderr
    row = next((out / "runs").glob("*.json"))
    row.unlink()
    answer = subprocess.run([KASURI, "collect", out], capture_output=True, text=True)
    assert answer.returncode == 1
    assert f"  {row.stem}" in answer.stderr
    assert (out / "runs.csv").read_bytes() == before


def test_without_dask_the_option_says_what_to_install(tmp_path):
    code = "import sys; sys.modules['distributed'] = None; from kasuri.executor.__main__ import main; sys.exit(main(sys.argv[1:]))"
    words = [str(written(tmp_path, SMALL)), "--executor", "dask", "--out", str(tmp_path / "out"), "--command", str(KASURI)]
    answer = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert answer.returncode == 2
    assert "pip install 'kasuri[distributed]'" in answer.stderr


def points(*seconds: float) -> list[Point]:
    return [Point(f"{number:032x}", number, second, 16.0) for number, second in enumerate(seconds)]


def test_long_points_go_first_and_short_ones_together():
    queue = Queue(points(0.01, 50.0, 0.01, 30.0, *[0.01] * 96))
    assert [[point.number for point in queue.take(2)] for _ in range(2)] == [[1], [3]]
    short = queue.take(2)
    assert len(short) * 0.01 > packing.OVERHEAD / packing.PART / 2
    while group := queue.take(2):
        assert sum(point.seconds for point in group) <= packing.LONGEST
    assert queue.seconds_left == pytest.approx(0.0, abs=1e-9)


def test_packing_follows_what_points_really_take():
    queue = Queue(points(*[0.001] * 2000))
    for point in queue.take(2)[:50]:
        queue.learn(point, 100 * point.seconds)
    assert queue.factor == pytest.approx(100.0)
    assert len(queue.take(2)) * 0.1 <= packing.LONGEST + 0.1


def test_a_point_that_killed_its_worker_is_tried_alone_with_more_memory():
    queue = Queue(points(1.0, 1.0))
    point = queue.take(1)[0]
    queue.requeue(packing.alone(point, 500.0))
    assert queue.take(1) == [packing.alone(point, 500.0)]
    assert packing.alone(point, 500.0).memory == 500.0


def test_files_of_workers_appear_whole_or_not_at_all(tmp_path):
    store.write(tmp_path, {"runs/a.json": b"{}", "runs/a.x.npy": b"x"})
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["a.json", "a.x.npy"]
    (tmp_path / "runs" / "b.json").mkdir()
    with contextlib.suppress(OSError):
        store.write(tmp_path, {"runs/b.json": b"{}"})
    assert (tmp_path / "runs" / "b.json").is_dir()
