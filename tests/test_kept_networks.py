"""The networks of runs are kept beside them as they were built, whoever computes the runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kasuri
from command_line import command, same

SWEEP = """
[network]
topology = "mesh"
dimensions = [2, 2]
channel_latency = 3
[routing]
algorithm = "up-down"
[traffic]
pattern = "uniform"
load = 0.1
[measure]
warmup = 10
cycles = 100
[sweep]
"network.topology" = ["mesh", "torus"]
"network.dimensions" = [[2, 2], [3, 3]]
"measure.seed" = [1, 2]
"""

NAMED = """
router leaf-a router leaf-b latency=5
terminal host-x router leaf-a
terminal host-y router leaf-b
terminal host-z router leaf-b
"""


def identical(one: kasuri.Network, other: kasuri.Network) -> bool:
    """Compare labels and the name of the topology, too."""
    labels = [{name: column.tolist() for name, column in network.labels.items()} for network in (one, other)]
    return same(one, other) and labels[0] == labels[1] and one.name == other.name


def wanted(row: dict) -> kasuri.Network:
    """Build the network that a row of the sweep says."""
    return kasuri.Network.from_topology(row["network.topology"], dimensions=row["network.dimensions"], channel_latency=3)


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    (tmp_path / "sweep.toml").write_text(SWEEP)
    return tmp_path / "sweep.toml"


def test_each_row_gives_the_network_of_its_own_values(sweep, tmp_path):
    results = kasuri.run(sweep, out=tmp_path / "out")
    assert len(results) == 8
    for row in results:
        assert identical(results.network(row), wanted(row))
    assert identical(results.network(2), wanted(results[2]))
    assert identical(results.network(results[5]["key"]), wanted(results[5]))
    assert len(list((tmp_path / "out" / "networks").iterdir())) == 4


def test_points_computed_alone_and_collected_have_their_networks(sweep, tmp_path):
    out = tmp_path / "out"
    command("run", sweep, "--out", out, "--plan")
    for key in (line.split()[0] for line in command("run", sweep, "--out", out, "--missing").stdout.splitlines()):
        command("run", sweep, "--out", out, "--point", key)
    command("collect", out)
    results = kasuri.read(out)
    assert len(results) == 8
    assert all(identical(results.network(row), wanted(row)) for row in results)


def test_a_kept_run_without_its_network_gets_it_when_it_is_used_again(sweep, tmp_path):
    out = tmp_path / "out"
    kasuri.run(sweep, out=out)
    for path in (out / "networks").iterdir():
        path.unlink()
    for path in (out / "runs").glob("*.json"):
        row = json.loads(path.read_text())
        del row["network_id"]
        path.write_text(json.dumps(row))
    results = kasuri.run(sweep, out=out)
    assert all(identical(results.network(row), wanted(row)) for row in results)


def test_names_of_an_edge_list_come_with_the_results(tmp_path):
    network = kasuri.Network.from_text(NAMED)
    assert (network.router_names, network.terminal_names) == (["leaf-a", "leaf-b"], ["host-x", "host-y", "host-z"])
    results = kasuri.run(
        {
            "network": network,
            "routing": {"algorithm": "up-down"},
            "traffic": {"pattern": "uniform", "load": 0.1},
            "measure": {"warmup": 10, "cycles": 100},
        }
    )
    assert identical(results.network(0), network)


def test_generated_networks_have_no_names():
    mesh = kasuri.Network.from_topology("mesh", dimensions=[3, 3])
    assert mesh.router_names is None
    assert mesh.terminal_names is None


def test_a_network_too_large_to_be_drawn_is_not_kept(tmp_path):
    results = kasuri.run(
        {
            "engine": "analysis",
            "network": {"topology": "full-mesh", "routers": 317, "concentration": 1},
            "routing": {"algorithm": "minimal"},
            "traffic": {"pattern": "random-permutation", "load": 0.1},
        },
        out=tmp_path / "out",
    )
    assert results[0]["channels"] == 317 * 316 + 2 * 317
    assert results.network(0) is None
    assert not (tmp_path / "out" / "networks").exists()


def test_a_damaged_network_is_named(sweep, tmp_path):
    results = kasuri.run(sweep, out=tmp_path / "out")
    path = tmp_path / "out" / "networks" / f"{results[0]['network_id']}.json"
    path.write_text(path.read_text()[:100])
    with pytest.raises(kasuri.ResultsError, match=path.name):
        results.network(0)


def test_json_reads_back_as_the_same_network_with_its_labels(tmp_path):
    path = tmp_path / "torus.json"
    path.write_text(command("topology", "torus", "dimensions=[4,3]", "concentration=2", "--export", "json").stdout)
    torus = kasuri.Network.from_topology("torus", dimensions=[4, 3], concentration=2)
    assert identical(kasuri.Network.from_json(path), torus)
    assert identical(kasuri.Network.from_json(str(path)), torus)
    assert identical(kasuri.Network.from_json(json.loads(torus.to_json())), torus)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "kasuri-network"}'])
def test_a_file_that_holds_no_network_is_named(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(kasuri.ConfigError, match=r"x\.json"):
        kasuri.Network.from_json(tmp_path / "x.json")


# Terminals with several ports: planes, switches that serve a host together, trees with several parents above a terminal.
SEVERAL_PORTS = [
    ({"topology": "planes", "planes": 2, "of": "leaf-spine", "leaves": 3, "spines": 2, "down": 3}, "minimal", {}),
    ({"topology": "planes", "planes": 3, "of": "mesh", "dimensions": [2, 3]}, "dimension-order", {}),
    ({"topology": "planes", "planes": 2, "of": "leaf-spine", "leaves": 3, "spines": 2, "down": 2}, "up-down", {"planes": [1]}),
    ({"topology": "xgft", "m": [3, 3], "w": [2, 2]}, "ecmp", {}),
    ({"topology": "xgft", "m": [3, 3], "w": [2, 2]}, "minimal", {"routers": [7]}),
    ({"topology": "hpn-pod", "segments": 2, "hosts": 3, "rails": 2, "aggregation": 2}, "ecmp", {}),
]


@pytest.mark.parametrize(("network", "routing", "faults"), SEVERAL_PORTS)
def test_a_kept_network_of_terminals_with_several_ports_gives_the_same_row(tmp_path, network, routing, faults):
    def run(network: dict, faults: dict, name: str) -> kasuri.Results:
        experiment = {
            "network": network,
            "routing": {"algorithm": routing, "allow_deadlock": True},
            "traffic": {"pattern": "uniform", "load": 0.1},
            "measure": {"warmup": 50, "cycles": 200},
            **({"faults": faults} if faults else {}),
        }
        return kasuri.run(experiment, out=tmp_path / name)

    first = run(network, faults, "first")
    (kept,) = (tmp_path / "first" / "networks").iterdir()
    again = run({"topology": "file", "path": str(kept)}, {}, "again")
    of_the_run = ("key", "wall_seconds", "cpu_seconds", "peak_memory_mib", "threads", "hint")
    left_out = {name for row in (first[0], again[0]) for name in row if name.startswith(("network.", "faults")) or name in of_the_run}
    assert {name: first[0][name] for name in first[0] if name not in left_out} == {
        name: again[0][name] for name in again[0] if name not in left_out
    }
    assert first[0]["network_id"] == again[0]["network_id"]
    # Vectors have a channel for each port, as the kept network has.
    assert len(first.vector(first[0], "channel_utilisation")) == first.network(0).channels
    if not faults:
        whole = [command("topology", "file", f"path={kept}", "--export", "json").stdout]
        words = [f"{key}={json.dumps(value) if isinstance(value, list) else value}" for key, value in network.items() if key != "topology"]
        whole.append(command("topology", network["topology"], *words, "--export", "json").stdout)
        assert json.loads(whole[0]) == json.loads(whole[1])


def test_a_network_with_failures_and_several_ports_is_read_back(tmp_path):
    words = ["planes", "planes=2", "of=leaf-spine", "leaves=3", "spines=2", "down=2", "faults.routers=[3]"]
    (tmp_path / "damaged.json").write_text(command("topology", *words, "--export", "json").stdout)
    experiment = {
        "routing": {"algorithm": "minimal"},
        "traffic": {"pattern": "uniform", "load": 0.1},
        "measure": {"warmup": 50, "cycles": 200},
    }
    network = {"topology": "planes", "planes": 2, "of": "leaf-spine", "leaves": 3, "spines": 2, "down": 2}
    whole = kasuri.run({**experiment, "network": network, "faults": {"routers": [3]}})[0]
    read = kasuri.run({**experiment, "network": {"topology": "file", "path": str(tmp_path / "damaged.json")}})[0]
    assert whole["packet_latency_mean"] == read["packet_latency_mean"]
    assert whole["network_id"] == read["network_id"]
