"""Networks from topologies, edges, graphs and files."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kasuri


def channels_of(network: kasuri.Network) -> list[tuple]:
    """Everything that a network is, apart from names and labels."""
    columns = ("source_router", "source_port", "source_terminal", "destination_router", "destination_port", "destination_terminal")
    return list(zip(*(getattr(network, name).tolist() for name in (*columns, "latency", "period")), strict=True))


@pytest.mark.parametrize("dimensions", [[4], [3, 5], [2, 3, 4]])
def test_a_mesh_has_the_counts_of_its_formula(dimensions):
    mesh = kasuri.Network.from_topology("mesh", dimensions=dimensions)
    routers = int(np.prod(dimensions))
    links = sum(routers // size * (size - 1) for size in dimensions)
    assert (mesh.routers, mesh.terminals, mesh.channels) == (routers, routers, 2 * routers + 2 * links)


def test_channels_of_terminals_come_first():
    mesh = kasuri.Network.from_topology("mesh", dimensions=[4, 4])
    assert mesh.source_terminal[:16].tolist() == list(range(16))
    assert mesh.destination_terminal[16:32].tolist() == list(range(16))
    assert (mesh.source_terminal[32:] == -1).all()
    assert (mesh.router_edges >= 0).all()


def test_an_unknown_topology_is_named_with_the_nearest_one():
    with pytest.raises(kasuri.ConfigError, match="mesh"):
        kasuri.Network.from_topology("mseh", dimensions=[4, 4])


@pytest.mark.parametrize("value", [float("nan"), None, object(), {1, 2}])
def test_a_value_that_no_experiment_can_hold_is_refused(value):
    with pytest.raises(kasuri.ConfigError):
        kasuri.Network.from_topology("mesh", dimensions=value)


def test_numpy_numbers_and_tuples_are_numbers_and_lists():
    one = kasuri.Network.from_topology("mesh", dimensions=(np.int64(2), np.int32(3)))
    assert one.table == {"topology": "mesh", "dimensions": [2, 3]}
    assert one.routers == 6


def test_edges_become_links_in_both_directions():
    ring = kasuri.Network.from_edges([(0, 1), (1, 2), (2, 0)], terminals=2, latency=[3, 4, 5])
    assert (ring.routers, ring.terminals, ring.channels) == (3, 6, 12 + 6)
    speeds = {tuple(edge): speed for edge, speed in zip(ring.router_edges.tolist(), ring.latency[12:].tolist(), strict=True)}
    assert speeds == {(0, 1): 3, (1, 0): 3, (1, 2): 4, (2, 1): 4, (2, 0): 5, (0, 2): 5}
    assert ring.terminal_routers.tolist() == [0, 0, 1, 1, 2, 2]


def test_terminals_hang_where_they_are_told():
    line = kasuri.Network.from_edges([(0, 1), (1, 2)], terminals=[2, 0])
    assert line.terminal_routers.tolist() == [2, 0]


@pytest.mark.parametrize("edges", [[(0, 1, 2)], [0, 1], [(0.5, 1.0)], [(-1, 0)]])
def test_edges_of_another_form_are_refused(edges):
    with pytest.raises(kasuri.ConfigError, match="edges"):
        kasuri.Network.from_edges(edges)


def test_a_line_that_is_wrong_is_named():
    with pytest.raises(kasuri.ConfigError, match=r"txt:2: .*links a router to itself"):
        kasuri.Network.from_text("terminal 0 router 0\nrouter 0 router 0\n")


def test_terminals_of_a_graph_are_kept():
    graph = networkx.Graph()
    graph.add_node("a")
    graph.add_node("b", kind="router")
    graph.add_nodes_from(["x", "y", "z"], kind="terminal")
    graph.add_edges_from([("a", "b", {"latency": 7}), ("x", "b"), ("y", "a"), ("z", "b")])
    network = kasuri.Network.from_networkx(graph)
    assert network.terminal_routers.tolist() == [1, 0, 1]
    assert network.latency[6:].tolist() == [7, 7]


def test_a_latency_that_is_no_number_is_named():
    with pytest.raises(kasuri.ConfigError, match=r"edge 'a' - 'b': latency is 'fast'"):
        kasuri.Network.from_networkx(networkx.Graph([("a", "b", {"latency": "fast"})]))


def test_graphml_reads_back_as_the_same_network(tmp_path):
    mesh = kasuri.Network.from_topology("mesh", dimensions=[3, 3], concentration=2, channel_latency=4)
    networkx.write_graphml(mesh.to_networkx(), tmp_path / "mesh.graphml")
    assert channels_of(kasuri.Network.from_graphml(tmp_path / "mesh.graphml")) == channels_of(mesh)


@pytest.mark.parametrize("text", ["", "<graphml>", "no xml", "<a/>"])
def test_a_file_that_is_no_graphml_is_named(tmp_path, text):
    (tmp_path / "x.graphml").write_text(text)
    with pytest.raises(kasuri.ConfigError, match=r"x\.graphml"):
        kasuri.Network.from_graphml(tmp_path / "x.graphml")


@pytest.mark.parametrize(
    ("kinds", "edges", "message"),
    [
        ({}, [("x", "y"), ("y", "y")], "node 'y': has an edge to itself"),
        ({"h": "host"}, [("x", "h")], "node 'h': invalid kind 'host'; expected 'router' or 'terminal'"),
        ({"x": "switch"}, [("x", "h")], "node 'x': invalid kind 'switch'"),
        ({"h": "terminal", "g": "terminal"}, [("h", "g"), ("x", "y")], "edge '[gh]' - '[gh]': joins two terminals"),
        ({"h": "terminal"}, [("x", "h"), ("y", "h"), ("x", "y")], "node 'h': is a terminal with 2 edges"),
    ],
)
@pytest.mark.parametrize("form", [networkx.Graph, networkx.DiGraph])
def test_graphs_are_refused_by_their_own_names(form, kinds, edges, message):
    graph = form(edges) if form is networkx.Graph else networkx.DiGraph([(b, a) for a, b in edges] + edges)
    networkx.set_node_attributes(graph, kinds, "kind")
    with pytest.raises(kasuri.ConfigError, match=message) as refused:
        kasuri.Network.from_networkx(graph)
    assert ".txt" not in str(refused.value)


DEFAULTS = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="k" for="node" attr.name="kind" attr.type="string"><default>terminal</default></key>
<key id="g" for="edge" attr.name="gbit" attr.type="double"><default>100</default></key>
<graph edgedefault="undirected"><node id="sw"><data key="k">router</data></node><node id="h1"/><node id="h2"/>
<edge source="h1" target="sw"/><edge source="h2" target="sw"><data key="g">50</data></edge></graph></graphml>"""


def test_defaults_of_graphml_count(tmp_path):
    """One switch with two hosts; half the rate of the fastest link is twice its period."""
    path = tmp_path / "net.graphml"
    path.write_text(DEFAULTS)
    for network in (kasuri.Network.from_graphml(path), kasuri.Network({"topology": "file", "path": str(path)})):
        assert (network.routers, network.terminals, network.terminal_names) == (1, 2, ["h1", "h2"])
        assert network.period.tolist() == [1, 2, 1, 2]
    path.write_text(DEFAULTS.replace("</graph>", '</graph><graph edgedefault="directed"/>'))
    with pytest.raises(kasuri.ConfigError, match="2 graphs"):
        kasuri.Network.from_graphml(path)


def test_rates_of_edges_become_periods(tmp_path):
    """An edge of a fourth of the fastest rate takes four cycles a flit; a GraphML file keeps the rate."""
    graph = networkx.Graph()
    graph.add_edge("a", "b", gbit=400)
    graph.add_edge("b", "c", gbit=100.0, period=7)
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    for network in (kasuri.Network.from_networkx(graph), kasuri.Network.from_graphml(tmp_path / "g.graphml")):
        assert sorted(int(period) for period in network.period) == [1] * 8 + [4] * 2
    with pytest.raises(kasuri.ConfigError, match="edge 'a' - 'b': gbit is 'fast'; expected a number of Gbit/s above 0"):
        kasuri.Network.from_networkx(networkx.Graph([("a", "b", {"gbit": "fast"})]))


def test_a_saved_network_is_the_same_network(tmp_path):
    mesh = kasuri.Network.from_topology("mesh", dimensions=[3, 4])
    path = mesh.save(tmp_path / "mesh.txt")
    again = kasuri.Network({"topology": "file", "path": path.name}, tmp_path)
    assert channels_of(again) == channels_of(mesh)


@settings(max_examples=40, deadline=None)
@given(
    edges=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=20),
    directed=st.booleans(),
)
def test_any_graph_keeps_its_edges_through_kasuri(edges, directed):
    graph = networkx.MultiDiGraph() if directed else networkx.MultiGraph()
    graph.add_nodes_from(range(8))
    graph.add_edges_from(edges)
    network = kasuri.Network.from_networkx(graph)
    expected = edges if directed else [*edges, *((other, one) for one, other in edges)]
    assert sorted(map(tuple, network.router_edges.tolist())) == sorted(expected)
    back = kasuri.Network.from_networkx(network.to_networkx())
    assert channels_of(back) == channels_of(network)


def test_metrics_of_a_mesh_follow_the_closed_forms() -> None:
    metrics = kasuri.Network.from_topology("mesh", dimensions=[4, 4]).metrics()
    # k-ary 2-mesh: diameter 2 (k - 1), 2 k (k - 1) links, bisection of k links of two channels each.
    assert (metrics["diameter"], metrics["links"], metrics["bisection_channels"]) == (6, 24, 8)


def test_channels_keep_their_numbers_whatever_the_order_of_the_graphs_nodes():
    ring = kasuri.Network.from_edges([(2, 0), (1, 2), (0, 1)])
    graph = ring.to_networkx()
    shuffled = networkx.MultiDiGraph()
    shuffled.add_nodes_from(graph.nodes(data=True))
    shuffled.add_edges_from(reversed(list(graph.edges(data=True))))
    assert channels_of(kasuri.Network.from_networkx(shuffled)) == channels_of(ring)
