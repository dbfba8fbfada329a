"""Names of routers and terminals are kept from the description of a network to everything that is said of it."""

from __future__ import annotations

import json
from pathlib import Path

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kasuri
from command_line import command, same

# Two racks with an uplink each; the names of terminals are not in the order of their routers.
EDGES = """
router leaf-a router spine latency=2
router leaf-b router spine latency=2
terminal host-3 router leaf-b
terminal host-17 router leaf-a
terminal host-4 router leaf-b
terminal host-1 router leaf-a
"""
ROUTERS = ["leaf-a", "spine", "leaf-b"]
TERMINALS = ["host-3", "host-17", "host-4", "host-1"]

# The same without the uplink of one rack.
CUT = EDGES.replace("router leaf-b router spine latency=2\n", "")

EXPERIMENT = """
[network]
topology = "file"
path = "net.txt"
[routing]
algorithm = "up-down"
[traffic]
pattern = "uniform"
load = 0.1
[measure]
warmup = 100
cycles = 2000
"""


def written(folder: Path, edges: str = EDGES, experiment: str = EXPERIMENT, **files: str) -> Path:
    (folder / "net.txt").write_text(edges)
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    (folder / "x.toml").write_text(experiment)
    return folder / "x.toml"


def rows(file: Path, *words: object) -> list[dict]:
    return json.loads(command("run", file, "--out", file.with_suffix(""), "--format", "json", *words).stdout)["runs"]


# --- ways in and out ---


def test_names_are_kept_in_the_order_of_their_numbers():
    network = kasuri.Network.from_text(EDGES)
    assert (network.router_names, network.terminal_names) == (ROUTERS, TERMINALS)


def test_names_of_a_graph_are_those_of_its_nodes():
    graph = networkx.Graph([("Tokyo 1", "Osaka #2"), ("x", "Tokyo 1"), (7, "Osaka #2")])
    graph.nodes["x"]["kind"] = graph.nodes[7]["kind"] = "terminal"
    network = kasuri.Network.from_networkx(graph)
    assert (network.router_names, network.terminal_names) == (["Tokyo 1", "Osaka #2"], ["x", "7"])
    assert set(network.to_networkx().nodes) == {"Tokyo 1", "Osaka #2", "x", "7"}


def test_two_nodes_of_one_name_are_refused():
    with pytest.raises(kasuri.ConfigError, match="two routers are called '1'"):
        kasuri.Network.from_networkx(networkx.Graph([(1, "1")]))


def exported(folder: Path, form: str, *words: str) -> Path:
    path = folder / f"net.{form}"
    path.write_text(command("topology", *words, "--export", form).stdout)
    return path


TOPOLOGIES = json.loads(command("list", "topologies", "--format", "json").stdout)["topologies"]


@pytest.mark.parametrize("topology", [entry["name"] for entry in TOPOLOGIES if entry["name"] not in ("file", "anynet")])
def test_graphml_of_every_topology_is_the_same_network(topology, tmp_path):
    example = next(entry["example"] for entry in TOPOLOGIES if entry["name"] == topology)
    words = [line.replace(" ", "") for line in example.splitlines()]
    network = kasuri.Network.from_json(exported(tmp_path, "json", topology, *words, "channel_latency=3"))
    if json.loads(network.to_json()).get("further_homes"):
        assert "--export json keeps them" in command("topology", topology, *words, "--export", "graphml", status=2).stderr
        with pytest.raises(kasuri.ConfigError, match="several ports"):
            network.edge_list()
        return
    path = exported(tmp_path, "graphml", topology, *words, "channel_latency=3")
    assert same(kasuri.Network.from_graphml(path), network)
    graph = networkx.read_graphml(path)
    assert graph.number_of_edges() == network.channels
    assert graph.number_of_nodes() == network.routers + network.terminals
    assert same(kasuri.Network.from_networkx(graph), network)
    assert same(kasuri.Network.from_networkx(network.to_networkx()), network)


names = st.lists(st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=6), min_size=2, max_size=6, unique=True)


@settings(max_examples=40, deadline=None)
@given(routers=names, terminals=names, seed=st.integers(0, 1000))
def test_any_names_and_ports_survive_every_format(routers, terminals, seed):
    draw = np.random.default_rng(seed)
    graph = networkx.MultiGraph()
    nodes = [("router", name) for name in routers], [("terminal", name) for name in terminals]
    for kind, name in (*nodes[0], *nodes[1]):
        graph.add_node((kind, name), kind=kind, name=name)
    for _ in range(8):
        one, other = draw.choice(len(routers), 2, replace=False)
        graph.add_edge(nodes[0][one], nodes[0][other], latency=int(draw.integers(0, 9)), period=int(draw.integers(1, 3)))
    for terminal in nodes[1]:
        graph.add_edge(nodes[0][draw.integers(len(routers))], terminal)
    network = kasuri.Network.from_networkx(graph)
    assert network.router_names in (routers, None)
    assert network.terminal_names in (terminals, None)
    assert same(kasuri.Network.from_text(network.edge_list()), network)
    assert same(kasuri.Network.from_json(json.loads(network.to_json())), network)
    assert same(kasuri.Network.from_networkx(network.to_networkx()), network)


def test_exports_of_a_file_show_its_names(tmp_path):
    written(tmp_path)
    path = exported(tmp_path, "graphml", "file", f"path={tmp_path / 'net.txt'}")
    assert same(kasuri.Network.from_graphml(path), kasuri.Network.from_text(EDGES))
    assert 'label="leaf-a"' in exported(tmp_path, "dot", "file", f"path={tmp_path / 'net.txt'}").read_text()


# --- what is said of a network ---


def test_the_table_of_runs_is_followed_by_the_busiest_channels(tmp_path):
    file = written(tmp_path)
    out = command("run", file, "--out", tmp_path / "out").stdout
    run = kasuri.read(tmp_path / "out")[0]
    utilisation = kasuri.read(tmp_path / "out").vector(0, "channel_utilisation")
    lines = out.split("busiest channels")[1].splitlines()[1:6]
    assert all(line.startswith(run["key"][:8]) for line in lines)
    assert [float(line.split()[-1]) for line in lines] == pytest.approx(sorted(utilisation, reverse=True)[:5], abs=5e-5)
    assert any("router leaf-" in line and "router spine" in line for line in lines)
    assert "busiest" not in command("run", file, "--out", tmp_path / "out", "--set", "sweep.measure.seed=[1,2,3,4]").stdout


def test_a_cycle_of_waiting_packets_is_told_by_name(tmp_path):
    """Packets that go two routers round a ring of five hold what the next ones need."""
    ring = "".join(f"router node-{i} router node-{(i + 1) % 5}\nterminal t-{i} router node-{i}\n" for i in range(5))
    batch = '"permutation"\npath = "p.txt"\nprocess = "batch"\nbatch_packets = 9\npacket_flits = 64'
    text = EXPERIMENT.split("[measure]")[0].replace("up-down", "minimal").replace('"uniform"\nload = 0.1', batch)
    file = written(tmp_path, ring, text, p="".join(f"t-{i} t-{(i + 2) % 5}\n" for i in range(5)))
    assert "router node-0 port" in command("check", file, status=2).stdout
    values = ("routing.allow_deadlock=true", "router.virtual_channels=1")
    words = [word for value in values for word in ("--set", value)]
    answer = command("run", file, "--out", tmp_path / "out", "--format", "json", *words, status=1)
    cycle = json.loads(answer.stdout)["runs"][0]["deadlock"]
    assert cycle
    assert all(channel.startswith(("router node-", "terminal t-")) for channel in cycle)


@pytest.mark.parametrize("verb", ["check", "run", "schedule"])
def test_every_command_names_two_that_cannot_reach_each_other(tmp_path, verb):
    file = written(tmp_path, CUT)
    words = {
        "check": ("check", file),
        "run": ("run", file, "--out", tmp_path / "o"),
        "schedule": ("schedule", "alltoall", "--network", file),
    }
    answer = command(*words[verb], status=2)
    assert "disconnected: terminal host-17 cannot reach terminal host-3" in answer.stderr
    assert "network.path" in answer.stderr


def test_a_disconnected_network_has_no_diameter(tmp_path):
    written(tmp_path, CUT)
    out = command("topology", "file", f"path={tmp_path / 'net.txt'}").stdout
    assert "disconnected, terminal host-17 cannot reach terminal host-3" in out
    metrics = kasuri.Network.from_text(CUT).metrics()
    assert (metrics["diameter"], metrics["average_distance"]) == (None, None)
    assert metrics["disconnected"] == ["host-17", "host-3"]
    assert kasuri.Network.from_text(EDGES).metrics()["disconnected"] is None


# --- where names stand ---


def test_patterns_take_names(tmp_path):
    by_name = EXPERIMENT.replace('"uniform"', '"hotspot"\nterminals = ["host-3", "host-1"]')
    by_number = EXPERIMENT.replace('"uniform"', '"hotspot"\nterminals = [0, 3]')
    named, numbered = (rows(written(tmp_path, EDGES, text))[0] for text in (by_name, by_number))
    assert named["packet_latency_mean"] == numbered["packet_latency_mean"]
    wrong = EXPERIMENT.replace('"uniform"', '"hotspot"\nterminals = ["host-9"]')
    error = command("check", written(tmp_path, EDGES, wrong), status=2).stderr
    assert "traffic.terminals" in error
    assert "`host-9` is not a terminal; they are called `host-3` to `host-1`" in error


def test_permutations_and_matrices_take_names(tmp_path):
    text = EXPERIMENT.replace('"uniform"', '"permutation"\npath = "p.txt"')
    one = rows(written(tmp_path, EDGES, text, p="host-3 host-17\nhost-1 host-4\n"))[0]
    other = rows(written(tmp_path, EDGES, text, p="0 1\n3 2\n"))[0]
    assert one["packet_latency_mean"] == other["packet_latency_mean"]
    text = EXPERIMENT.replace('"uniform"', '"matrix"\npath = "m.txt"')
    one = rows(written(tmp_path, EDGES, text, m="host-1 host-17\nhost-3 1 2\nhost-4 0 1\n"))[0]
    other = rows(written(tmp_path, EDGES, text, m="0 2 0 1\n0 0 0 0\n0 1 0 0\n0 0 0 0\n"))[0]
    assert one["packet_latency_mean"] == other["packet_latency_mean"]


def test_users_are_placed_by_name(tmp_path):
    head = EXPERIMENT.split("[traffic]")[0]
    text = (
        head
        + """
[[user]]
name = "a"
nodes = ["host-17", "host-4"]
[user.traffic]
pattern = "uniform"
load = 0.2
[[user]]
name = "b"
table = ["host-1", 0]
[user.traffic]
pattern = "uniform"
load = 0.1
[measure]
warmup = 100
cycles = 2000
"""
    )
    file = written(tmp_path, EDGES, text)
    named = rows(file)[0]
    loads = kasuri.read(file.with_suffix("")).vector(0, "injected_load")
    assert loads[[1, 2]].mean() == pytest.approx(0.2, rel=0.2)
    assert loads[[0, 3]].mean() == pytest.approx(0.1, rel=0.2)
    numbered = rows(written(tmp_path, EDGES, text.replace('"host-17", "host-4"', "1, 2").replace('"host-1", 0', "3, 0")))[0]
    assert named["packet_latency_mean"] == numbered["packet_latency_mean"]
    wrong = written(tmp_path, EDGES, text.replace("host-4", "host-5"))
    assert "user.0.nodes.1: `host-5` is not a terminal" in command("check", wrong, status=2).stderr


# --- matrices whose rows differ ---


@pytest.mark.parametrize("engine", ["flit", "flow"])
def test_rows_of_a_matrix_keep_their_sums_if_asked(tmp_path, engine):
    """Terminals offer loads in the ratio of their sums, the greatest the whole load."""
    text = f'engine = "{engine}"\n' + EXPERIMENT.replace('"uniform"', '"matrix"\npath = "m.txt"\nnormalise = false').replace(
        "2000", "40000"
    )
    file = written(tmp_path, EDGES, text, m="0 1 0 1\n0 0 0 8\n1 0 0 0\n0 0 0 0\n")
    row = rows(file)[0]
    loads = kasuri.read(file.with_suffix("")).vector(0, "injected_load")
    expected = 0.1 * np.array([2, 8, 1, 0]) / 8
    assert row["offered_load"] == pytest.approx(expected.mean())
    # Of n Bernoulli trials: four standard deviations.
    assert np.abs(loads - expected).max() < 4 * np.sqrt(0.1 / 40000)
    analysis = rows(file, "--set", "engine=analysis", "--set", "measure={}")[0]
    # The busiest channels carry 9/8 of the load to terminal 3 and 8/8 from terminal 1.
    assert analysis["static_throughput"] == pytest.approx(8 / 9)


def test_a_batch_has_no_different_sums(tmp_path):
    text = EXPERIMENT.replace('"uniform"', '"matrix"\npath = "m.txt"\nnormalise = false\nprocess = "batch"\nbatch_packets = 3')
    file = written(tmp_path, EDGES, text.replace("load = 0.1\n", ""), m="0 1 0 1\n0 0 0 8\n1 0 0 0\n0 0 0 0\n")
    assert "traffic.normalise: is false, but in a batch" in command("check", file, status=2).stderr
