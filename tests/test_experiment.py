"""Running from Python: the same rows as the command's, and every mistake a KasuriError that says what would be right."""

from __future__ import annotations

import math

import pytest

import kasuri
from command_line import COSTS

MESH = {
    "network": {"topology": "mesh", "dimensions": [4, 4]},
    "routing": {"algorithm": "dimension-order"},
    "traffic": {"pattern": "uniform", "load": 0.1, "packet_flits": 5},
    "measure": {"warmup": 100, "cycles": 500},
}


def test_equal_runs_differ_in_their_costs_alone():
    first, second = (kasuri.run(MESH)[0] for _ in range(2))
    assert {name for name in first if first[name] != second[name]} <= set(COSTS)
    assert all(first[name] > 0 for name in COSTS)


def test_overrides_and_sweeps_are_the_file_s_own_keys():
    results = kasuri.sweep(MESH, {"traffic.load": [0.1, 1.0]}, measure__seed=7)
    assert results["seed"].tolist() == [7, 7]
    # Uniform traffic at full load: the terminals' channels carry a flit per cycle, so that the rate is the throughput itself.
    assert math.isnan(results["atr"][0])
    assert results["atr"][1] == pytest.approx(results["accepted_throughput_mean"][1], rel=1e-12)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"traffic__laod": 0.1}, r"traffic.laod: unknown key `laod`; did you mean `load`\?"),
        ({"traffic__load": math.nan}, "traffic.load: is nan; it must be a finite number"),
        ({"traffic__load": 2}, "traffic.load: is 2; it must be above 0 and at most 1"),
        ({"traffic__load": None}, "traffic.load: is None of type NoneType"),
        ({"traffic__load": "0.1"}, "traffic.load: is .0.1., a string; it must be a number"),
        ({"title": "\ud800"}, "title: invalid text"),
        ({"network__dimensions": [-1]}, "network.dimensions.0: is -1"),
        ({"network__dimensions": [100_000, 100_000]}, "network.topology: the network is too large"),
        ({"routing__algorithm": "nca"}, "routing `nca` does not fit mesh"),
        ({"jobs": 0}, "jobs: is 0; it must be a whole number, at least 1"),
        ({"threads": "many"}, "threads: is 'many'; it must be a whole number, at least 1"),
    ],
)
def test_mistakes_are_named_with_their_key(change, expected):
    with pytest.raises(kasuri.ConfigError, match=expected):
        kasuri.run(MESH, **change)


def test_files_and_folders_that_do_not_do_are_named(tmp_path):
    with pytest.raises(kasuri.ConfigError, match="missing.toml: cannot be read"):
        kasuri.run(tmp_path / "missing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(kasuri.ConfigError, match="binary.toml: cannot be read"):
        kasuri.run(tmp_path / "binary.toml")
    with pytest.raises(kasuri.ResultsError, match="this is a file"):
        kasuri.run(MESH, out=tmp_path / "binary.toml")
    with pytest.raises(kasuri.ConfigError, match="is a sweep over nothing"):
        kasuri.sweep(MESH, {"traffic.load": []})


def test_a_deadlock_is_refused_before_and_raised_after_a_run():
    torus = {
        "network": {"topology": "torus", "dimensions": [4, 4]},
        "routing": {"algorithm": "dimension-order"},
        "router": {"virtual_channels": 1},
        "traffic": {"pattern": "uniform", "load": 0.8, "packet_flits": 5},
    }
    with pytest.raises(kasuri.DeadlockError, match="possible deadlock: a cycle of 4 channels"):
        kasuri.run(torus)
    results = kasuri.run(torus, routing__allow_deadlock=True)
    assert results[0]["status"] == "deadlock"
    with pytest.raises(kasuri.DeadlockError) as caught:
        results.raise_for_status()
    assert len(caught.value.cycle) > 1
    assert caught.value.at_cycles == results[0]["cycles"]


@pytest.mark.parametrize("schedule", ["mlfm", "shift"])
def test_both_engines_run_an_application_alike(schedule):
    experiment = {
        "network": {
            **{"topology": "mlfm", "layers": 2, "positions": 4, "terminals_per_leaf": 2},
            **{"flit_bytes": 64, "channel_gbit_per_second": 32},
        },
        "routing": {"algorithm": "minimal", "tie": "destination"},
        "router": {"virtual_channels": 2, "buffer_flits": 64},
        "workload": {
            **{"application": "npb-ft", "class": "S", "schedule": schedule, "synchronisation": "barrier", "packet_flits": 32},
            **{"gflops_per_rank": 10.0, "terminals_per_host": 4, "host_gbyte_per_second": 40.0},
        },
    }
    flow, flit = (kasuri.run(experiment, engine=engine)[0]["completion_time"] for engine in ("flow", "flit"))
    # A cycle lasts 16 ns. In all 177.2 10^6 operations on 16 ranks, and 7 times 4 MiB through the memories of 4 hosts.
    computing = 177.2e6 / 16 / 10 / 16
    memory = 7 * (4 << 20) / 4 / 40 / 16
    messages = 7 * {"mlfm": 15, "shift": 22}[schedule] * (4 << 20) / 16**2 / 64
    assert flow == pytest.approx(computing + memory + messages, rel=0.02)
    assert flit == pytest.approx(flow, rel=0.02)
