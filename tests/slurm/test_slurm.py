"""Sweeps on a real Slurm of two nodes on this machine: `make verify` runs these, for installing and starting it takes a while."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import test_docs
from test_executor import LONG, SMALL, Watcher, ended, finished, kasuri, table, wait_until, written

HERE = Path(__file__).resolve().parent
KASURI = Path(sys.executable).with_name("kasuri")


@pytest.fixture(scope="module", autouse=True)
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("slurm")
    subprocess.run([HERE / "cluster.sh", "start", folder], check=True)
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    yield
    subprocess.run([HERE / "cluster.sh", "stop", folder], check=True)
    os.environ.pop("SLURM_CONF")
    if before is not None:
        os.environ["SLURM_CONF"] = before


@pytest.fixture(autouse=True)
def _no_jobs_left() -> Iterator[None]:
    yield
    subprocess.run(["scancel", f"--user={os.getuid()}"], check=False)
    wait_until(lambda: queued() == [])


def slurm_command(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def queued() -> list[str]:
    return slurm_command("squeue", "--noheader", "--format=%i").split()


def script(file: Path, out: Path, jobs: int) -> str:
    answer = kasuri(file, out, "--slurm-script", "--jobs", str(jobs))
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def submit(text: str, folder: Path, *words: str) -> str:
    path = folder / "array.sh"
    path.write_text(text)
    return slurm_command("sbatch", "--parsable", *words, str(path)).strip()


def collect(out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([KASURI, "collect", out], capture_output=True, text=True)


def test_five_hundred_runs_give_the_same_table_by_an_array_and_by_dask_jobqueue(tmp_path):
    file = written(tmp_path, SMALL)
    local, array, jobqueue = tmp_path / "local", tmp_path / "array", tmp_path / "jobqueue"
    assert kasuri(file, local).returncode == 0
    submit(script(file, array, 4), tmp_path, "--wait")
    assert collect(array).returncode == 0
    answer = kasuri(file, jobqueue, "--executor", "slurm", "--jobs", "2")
    assert answer.returncode == 0, answer.stderr
    assert "computed 500 runs" in answer.stderr
    assert len(table(local)) == 500
    assert table(array) == table(local)
    assert table(jobqueue) == table(local)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert kasuri(written(folder, LONG), folder / "out").returncode == 0
    return table(folder / "out")


def test_a_cancelled_job_of_an_array_costs_only_what_it_was_computing(tmp_path, undisturbed):
    file, out = written(tmp_path, LONG), tmp_path / "out"
    with Watcher(out) as watcher:
        job = submit(script(file, out, 2), tmp_path)
        wait_until(lambda: finished(out) >= 4)
        slurm_command("scancel", f"{job}_1")
        wait_until(lambda: queued() == [])
        missing = collect(out)
        assert missing.returncode == 1
        assert "of 24 runs are missing" in missing.stderr
        assert kasuri(file, out).returncode == 0
    assert table(out) == undisturbed
    assert watcher.most_often() == 1


def test_a_cancelled_job_of_dask_workers_is_made_up_for(tmp_path, undisturbed):
    file, out = written(tmp_path, LONG), tmp_path / "out"
    command = [str(KASURI), "run", str(file), "--out", str(out), "--executor", "slurm", "--jobs", "2"]
    with Watcher(out) as watcher:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: finished(out) >= 3 and len(queued()) == 2)
        slurm_command("scancel", queued()[0])
        status, errors = ended(process)
    assert status == 0, errors
    assert "set aside" not in errors.replace("0 set aside", "")
    assert table(out) == undisturbed
    assert watcher.most_often() == 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ('queue = "nowhere"', "invalid partition specified: nowhere"),
        ('queue = "closed"', "inactive"),
        ('memory = "900GB"', "not available"),
        ('wall_time = "500:00:00"', "time limit"),
    ],
)
def test_a_queue_that_refuses_the_job_is_told_at_once(tmp_path, change, expected):
    site = tmp_path / "site.toml"
    site.write_text(f'kind = "slurm"\n{change}\n')
    begin = time.monotonic()
    answer = kasuri(written(tmp_path, SMALL), tmp_path / "out", "--executor", str(site))
    assert answer.returncode == 2
    assert "Slurm refuses the job: " in answer.stderr
    assert expected in answer.stderr
    assert time.monotonic() - begin < 30


def test_the_guide_to_slurm_does_what_it_says(tmp_path, monkeypatch):
    test_docs.follow(test_docs.SLURM, tmp_path, monkeypatch)
    tables = [table(tmp_path / "out" / name) for name in ("array", "jobs")]
    assert tables[0] == tables[1]
    assert len(tables[0]) == 6
