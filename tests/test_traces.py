"""Open traffic from a trace: a message is created at its time, whatever has become of those before."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import kasuri
from command_line import command

HEAD = """
engine = "{engine}"
[network]
topology = "mesh"
dimensions = [4, 4]
flit_bytes = 8
cycle_ns = 2.0
[routing]
algorithm = "dimension-order"
"""


def run(folder: Path, trace: str, *words: object, engine: str = "flit", keys: str = "") -> dict:
    (folder / "trace.csv").write_text(trace)
    (folder / "x.toml").write_text(HEAD.format(engine=engine) + f'[traffic]\ntrace = "trace.csv"\n{keys}')
    answer = command("run", folder / "x.toml", "--out", folder / "out", "--format", "json", *words)
    return json.loads(answer.stdout)["runs"][0]


def alone(folder: Path, source: int, destination: int, flits: int) -> float:
    """Give the latency of a packet alone, by formula."""
    (folder / "pair.txt").write_text(f"{source} {destination}\n")
    traffic = f'[traffic]\npattern = "permutation"\npath = "pair.txt"\nload = 0.1\npacket_flits = {flits}\n'
    (folder / "alone.toml").write_text(HEAD.format(engine="analysis") + traffic)
    answer = command("run", folder / "alone.toml", "--out", folder / "alone", "--format", "json")
    return json.loads(answer.stdout)["runs"][0]["zero_load_latency"]


@pytest.mark.parametrize("engine", ["flit", "flow"])
def test_two_messages_far_apart_take_what_each_takes_alone(tmp_path, engine):
    row = run(tmp_path, "0 0 15 40\n5000 5 6 88\n", engine=engine)
    long, short = alone(tmp_path, 0, 15, 5), alone(tmp_path, 5, 6, 11)
    assert long != short
    assert row["status"] == "completed"
    assert row["measured_packets"] == 2
    assert (row["packet_latency_min"], row["packet_latency_max"]) == pytest.approx((min(long, short), max(long, short)), abs=1)
    assert row["packet_latency_mean"] == pytest.approx((long + short) / 2, abs=0.5)
    assert row["completion_time"] == pytest.approx(5000 + short, abs=1)
    assert row["offered_load"] == pytest.approx(16 / 5001 / 16)
    if engine == "flit":
        # The cycle in which the last flit arrives is counted, too.
        assert (row["packet_latency_mean"], row["completion_time"]) == ((long + short) / 2, 5000 + short + 1)


def test_a_message_waits_for_its_channel_and_not_for_those_before_to_arrive(tmp_path):
    """The channel of a terminal carries a flit a cycle: the second of two packets of five flits waits five cycles."""
    row = run(tmp_path, "10 0 15 40\n10 0 15 40\n")
    one = alone(tmp_path, 0, 15, 5)
    assert (row["packet_latency_min"], row["packet_latency_max"]) == (one, one + 5)


def test_the_order_of_lines_and_the_units_change_nothing(tmp_path):
    plain = run(tmp_path, "100 0 5 40\n250 3 9 16\n250 4 9 8\n")
    named = run(tmp_path, "flits,destination,source,time_ns\n2,9,3,500\n1,9,4,0.5us\n5,5,0,200\n")
    for column in ("packet_latency_mean", "packet_latency_max", "completion_time", "offered_load"):
        assert plain[column] == named[column]


def test_long_messages_are_cut_into_packets(tmp_path):
    row = run(tmp_path, "0 0 1 400\n", keys="packet_flits = 20\n")
    assert row["measured_packets"] == 3  # 50 flits
    assert row["terminals"] == 16


def test_random_traces_deliver_every_flit(tmp_path):
    draw = np.random.default_rng(1)
    lines = []
    sent = np.zeros(16)
    for _ in range(300):
        source, destination = draw.choice(16, 2, replace=False)
        flits = int(draw.integers(1, 9))
        sent[source] += flits
        lines.append(f"{draw.integers(0, 4000)} {source} {destination} {8 * flits}")
    row = run(tmp_path, "\n".join(lines), "--paranoid")
    loads = kasuri.read(tmp_path / "out").vector(0, "injected_load")
    assert loads * row["measured_cycles"] == pytest.approx(sent)
    assert row["offered_load"] * 16 * (1 + max(int(line.split()[0]) for line in lines)) == pytest.approx(sent.sum())


def test_the_analysis_bounds_a_trace_by_its_channels(tmp_path):
    row = run(tmp_path, "0 0 1 800\n0 0 2 800\n", engine="analysis")
    assert row["completion_time"] >= 200  # all go over the channel of terminal 0


def test_a_user_may_have_a_trace(tmp_path):
    (tmp_path / "trace.csv").write_text("0 0 1 40\n50 1 0 40\n")
    user = '[[user]]\nname = "a"\nnodes = [5, 6]\n[user.traffic]\ntrace = "trace.csv"\n'
    (tmp_path / "x.toml").write_text(HEAD.format(engine="flit") + user)
    answer = command("run", tmp_path / "x.toml", "--out", tmp_path / "out", "--format", "json")
    row = json.loads(answer.stdout)["runs"][0]
    assert row["packet_latency_mean"] == alone(tmp_path, 5, 6, 5)


@pytest.mark.parametrize(
    ("trace", "keys", "expected"),
    [
        ("0 0 1 40\n5 0 16 8\n", "", "traffic.trace: trace.csv:2: `16` is not a terminal; they are numbered 0 to 15"),
        ("0 0 0 40\n", "", "trace.csv:1: is from `0` to itself"),
        ("0 0 1 40\n", "load = 0.1\n", "traffic.load: conflicts with trace"),
        ("0 0 1 40\n", "packet_flits = 0\n", "traffic.packet_flits: is 0"),
        ("0 0 1 40\n", '[measure]\nsearch = "saturation"\n', "measure.search: searches a load; a trace has its own"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(tmp_path, trace, keys, expected):
    (tmp_path / "trace.csv").write_text(trace)
    (tmp_path / "x.toml").write_text(HEAD.format(engine="flit") + f'[traffic]\ntrace = "trace.csv"\n{keys}')
    assert expected in command("check", tmp_path / "x.toml", status=2).stderr
