"""The examples are right, and that of a million terminals does at a small size what it does at its own."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from pathlib import Path

import pytest

import kasuri
from command_line import KASURI, command
from kasuri import report

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
MILLION = EXAMPLES / "08-million-terminals.toml"


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.toml")), ids=lambda example: example.stem)
def test_every_example_is_right(example, tmp_path):
    assert re.search(r": OK: \d+ runs?$", command("check", example, folder=tmp_path).stdout.strip())


def test_two_threads_are_expected_to_make_a_million_terminals_faster(tmp_path, monkeypatch):
    # Nothing is known of this machine.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    [cost] = [line for line in command("check", MILLION, "--threads", "1", folder=tmp_path).stdout.splitlines() if line.startswith("cost:")]
    assert "on this machine" not in cost
    # 171 s and 1.7 GB were measured.
    seconds, unit, mib = re.search(r"about ([\d.]+) (s|min) of processor time; at most (\d+) MiB", cost).groups()
    assert 171 / 2 < float(seconds) * {"s": 1, "min": 60}[unit] < 171 * 2
    assert 1691 < int(mib) < 2 * 1691
    if len(_cores()) > 1:
        assert " on this machine" in command("check", MILLION, "--threads", "2", folder=tmp_path).stdout


def _cores() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def test_a_small_form_of_the_million_terminals_is_run_and_reported(tmp_path):
    small = [word for key in ("network.up=6", "network.down=6", "measure.cycles=300") for word in ("--set", key)]
    outs = []
    for threads in ("1", "2"):
        out = tmp_path / threads
        command("run", MILLION, *small, "--threads", threads, "--out", out, folder=tmp_path)
        outs.append(kasuri.read(out).vector(0, "channel_utilisation").tobytes())
        page = report.write(out).read_text()
        assert "A fat tree with a million terminals" in page
    assert outs[0] == outs[1]


def test_a_slower_memory_of_a_host_slows_the_stencil_down(tmp_path):
    command("run", EXAMPLES / "10-shared-memory.toml", "--out", tmp_path / "out", folder=tmp_path)
    rows, rates = kasuri.read(tmp_path / "out"), (15, 30, 60, 120)
    times = {(row["engine"], row["hosts.copies"], row["hosts.memory_gbyte_per_second"]): row["completion_time_ns"] for row in rows}
    for engine in ("flow", "flit"):
        for copies in (0, 1):
            over_rate = [times[engine, copies, rate] for rate in rates]
            # Of packets that block each other a memory that paces them may make an exchange a little shorter.
            assert all(later <= earlier * (1.0 if engine == "flow" else 1.05) for earlier, later in itertools.pairwise(over_rate))
            assert over_rate[0] > 1.1 * over_rate[-1]
        assert all(times[engine, 1, rate] >= times[engine, 0, rate] for rate in rates)
    # Where the memory is the narrowest place, both engines count the same bytes through it.
    assert times["flit", 1, 15] == pytest.approx(times["flow", 1, 15], rel=0.1)


def test_users_of_a_shared_memory_take_turns_and_find_their_words(tmp_path):
    example = EXAMPLES / "12-shared-memory-users.toml"
    never = (EXAMPLES / example.name).read_text().replace("table_writes = [{ cycle = 1000,", "table_writes = [{ cycle = 900_000_000,")
    (tmp_path / "never.toml").write_text(never)
    ends = {}
    for name, file in (("written", example), ("never", tmp_path / "never.toml")):
        command("run", file, "--out", tmp_path / name, folder=tmp_path)
        for row in kasuri.read(tmp_path / name):
            users = {user["name"]: user for user in row["users"]}
            assert set(users) == {"matrix", "stencil", "database"}
            assert all(user["accesses_ended"] == user["accesses"] > 0 for user in users.values())
            assert all(user["wrong_words"] == user["misdelivered_packets"] == 0 for user in users.values())
            assert row["user_switches"] > 3
            ends[name, row["engine"]] = users["database"]["completion_time"]
    # The second interface of the busy node is worth it.
    assert all(ends["written", engine] < 0.9 * ends["never", engine] for engine in ("flow", "flit"))


def test_a_table_of_guesses_saves_what_its_hits_save(tmp_path):
    command("run", EXAMPLES / "11-predictor-table.toml", "--out", tmp_path / "out", folder=tmp_path)
    rows = {(row["case"], row["traffic.load"]): row for row in kasuri.read(tmp_path / "out")}
    assert {row["status"] for row in rows.values()} == {"converged"}
    for load in (0.01, 0.05, 0.1):
        none, table, oracle = (rows[case, load] for case in ("none", "table", "oracle"))
        assert oracle["packet_latency_mean"] < table["packet_latency_mean"] < none["packet_latency_mean"]
        assert 0 < table["prediction_hit_rate"] < oracle["prediction_hit_rate"]
    # A hit skips two of three stages; a packet goes through 3.5 routers, and hardly meets another.
    none, table = (rows[case, 0.01] for case in ("none", "table"))
    saved = 2 * none["hops_mean"] * table["prediction_hit_rate"]
    assert none["packet_latency_mean"] - table["packet_latency_mean"] == pytest.approx(saved, rel=0.1)


def test_a_table_without_guesses_saves_nothing(tmp_path):
    for name in ("11-predictor-table.toml", "dragonfly-guesses.csv"):
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    (tmp_path / "dragonfly-guesses.csv").write_text("router,input,output\n")
    command("run", tmp_path / "11-predictor-table.toml", "--out", tmp_path / "out", folder=tmp_path)
    latency = {(row["case"], row["traffic.load"]): row["packet_latency_mean"] for row in kasuri.read(tmp_path / "out")}
    assert all(latency["table", load] == latency["none", load] for load in (0.01, 0.05, 0.1))


def test_a_program_of_ones_own_runs_and_compares_what_it_sends(tmp_path):
    example = EXAMPLES / "09-cenju4-script.toml"
    command("run", example, "--out", tmp_path / "out", folder=tmp_path)
    [row] = kasuri.read(tmp_path / "out")
    assert row["status"] == "completed"
    # Blocks are passed on twice, after 50 us each.
    assert row["completion_time_ns"] > 100_000
    # A block that was never sent is not found.
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(example.read_text().replace('action = "check", from = 16, bytes', 'action = "check", from = 17, bytes'))
    answer = subprocess.run([KASURI, "run", wrong, "--out", tmp_path / "wrong"], capture_output=True, text=True, check=False)
    assert answer.returncode != 0
    assert "is not what was sent" in answer.stdout + answer.stderr
