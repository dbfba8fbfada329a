"""Between networkx graphs and Kasuri's edge lists."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from kasuri.errors import ConfigError

if TYPE_CHECKING:
    import networkx

    from kasuri.network import Network

# The edge attributes that an edge list knows, in the order of its lines.
_SPEED = ("latency", "period")


def edge_list_of(graph: networkx.Graph, terminals: int) -> str:
    """Write a graph as an edge list; see :meth:`kasuri.Network.from_networkx`."""
    kinds = {node: _kind(node, data) for node, data in graph.nodes(data=True)}
    _check_ends(graph, kinds)
    routers = {node: number for number, node in enumerate(node for node, kind in kinds.items() if kind != "terminal")}
    ends = [node for node, kind in kinds.items() if kind == "terminal"]
    words = _words(graph, "router", list(routers)) | _words(graph, "terminal", ends)
    lines = [_router_line(words[router], graph.nodes[router]) for router in routers]
    # The order of the nodes is that of the numbers, whatever the edges name first.
    lines += [words[terminal] for terminal in ends]
    if not ends:
        lines += _own_terminals(graph, words, routers, terminals)
    lines += _directed_lines(graph, words) if graph.is_directed() else _link_lines(graph, words)
    return "\n".join(lines) + "\n"


def _kind(node: Hashable, data: Mapping[str, Any]) -> str:
    kind = data.get("kind", "router")
    if kind not in ("router", "terminal"):
        raise ConfigError(f"node {node!r}: invalid kind {kind!r}; expected 'router' or 'terminal'")
    return str(kind)


def _check_ends(graph: networkx.Graph, kinds: Mapping[Hashable, str]) -> None:
    """Refuse edges that an edge list cannot have, with the names of the graph."""
    for one, other in graph.edges():
        if one == other:
            raise ConfigError(f"node {one!r}: has an edge to itself; a link joins two routers, or a router and a terminal")
        if kinds[one] == kinds[other] == "terminal":
            raise ConfigError(f"edge {one!r} - {other!r}: joins two terminals; a terminal is joined to a router")
    for node, kind in kinds.items():
        if kind == "terminal":
            ways = [graph.in_degree(node), graph.out_degree(node)] if graph.is_directed() else [graph.degree(node)]
            if any(count != 1 for count in ways):
                raise ConfigError(f"node {node!r}: is a terminal with {_counts(ways)}; it must have one, to its router")


def _counts(ways: list[int]) -> str:
    return f"{ways[0]} edges" if len(ways) == 1 else f"{ways[0]} edges to it and {ways[1]} from it"


def _words(graph: networkx.Graph, kind: str, nodes: list[Hashable]) -> dict[Hashable, str]:
    """Return the words that name nodes in lines: their attribute ``name``, else themselves; numbers where they have no names."""
    names = [str(graph.nodes[node].get("name", node)) for node in nodes]
    if all(name in (str(number), f"{kind} {number}", f"{kind[0]}{number}") for number, name in enumerate(names)):
        return {node: f"{kind} {number}" for number, node in enumerate(nodes)}
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ConfigError(f"two {kind}s are called {twice!r}; give each a name of its own")
    return {node: f"{kind} {json.dumps(name, ensure_ascii=False)}" for node, name in zip(nodes, names, strict=True)}


def graph_of(network: Network) -> networkx.MultiDiGraph:
    """Make a graph with one edge per channel; see :meth:`kasuri.Network.to_networkx`."""
    import networkx

    graph = networkx.MultiDiGraph(name=network.name)
    names = {"router": network.router_names, "terminal": network.terminal_names}
    shared = set(names["router"] or ()) & set(names["terminal"] or ())

    def node(kind: str, number: int) -> str:
        own = names[kind]
        return f"{kind} {number}" if own is None else f"{kind} {own[number]}" if own[number] in shared else own[number]

    def called(kind: str, number: int) -> dict[str, str]:
        own = names[kind]
        return {} if own is None else {"name": own[number]}

    for router in range(network.routers):
        labels = {name: int(column[router]) for name, column in network.labels.items()}
        graph.add_node(node("router", router), kind="router", ports=int(network.ports[router]), **called("router", router), **labels)
    for terminal in range(network.terminals):
        graph.add_node(node("terminal", terminal), kind="terminal", **called("terminal", terminal))
    for channel in range(network.channels):
        ends: list[str] = []
        ports: dict[str, int] = {}
        for side in ("source", "destination"):
            router, terminal, port = (int(getattr(network, f"{side}_{part}")[channel]) for part in ("router", "terminal", "port"))
            ends.append(node("router", router) if router >= 0 else node("terminal", terminal))
            ports |= {f"{side}_port": port} if router >= 0 else {}
        speed = {"latency": int(network.latency[channel]), "period": int(network.period[channel])}
        graph.add_edge(*ends, channel=channel, **speed, **ports)
    return graph


def _router_line(name: str, data: Mapping[str, Any]) -> str:
    return f"{name} ports={_number(data, 'ports', name)}" if "ports" in data else name


def _own_terminals(graph: networkx.Graph, words: Mapping[Hashable, str], routers: Iterable[Hashable], terminals: int) -> list[str]:
    """Give each router its terminals, since the graph has none."""
    homes = []
    for node in routers:
        data = graph.nodes[node]
        count = _number(data, "terminals", f"node {node!r}") if "terminals" in data else terminals
        homes += [words[node]] * count
    return [f"terminal {terminal} {router}" for terminal, router in enumerate(homes)]


def _link_lines(graph: networkx.Graph, names: Mapping[Hashable, str]) -> list[str]:
    return [f"{names[one]} {names[other]}{_speed(data, one, other)}" for one, other, data in graph.edges(data=True)]


def _directed_lines(graph: networkx.DiGraph, names: Mapping[Hashable, str]) -> list[str]:
    """Join opposite channels of one speed to links (they share their ports); the others, and those with given ports, stay single."""
    lines: list[str] = []
    waiting: dict[tuple[str, str], list[int]] = {}
    edges = list(graph.edges(data=True))
    if all("channel" in data for *_, data in edges):
        edges.sort(key=lambda edge: _number(edge[2], "channel", "an edge"))  # numbers survive the way through networkx and back
    for one, other, data in edges:
        speed = _speed(data, one, other)
        from_port, to_port = _port(data, "source_port"), _port(data, "destination_port") or _port(data, "target_port")
        if from_port or to_port:
            lines.append(f"{names[one]}{from_port} -> {names[other]}{to_port}{speed}")
            continue
        back = waiting.get((f"{names[other]} -> {names[one]}", speed))
        if back:
            place = back.pop(0)
            lines[place] = lines[place].replace(" -> ", " ", 1)
        else:
            link = f"{names[one]} -> {names[other]}"
            waiting.setdefault((link, speed), []).append(len(lines))
            lines.append(link + speed)
    return lines


def _speed(data: Mapping[str, Any], one: Hashable, other: Hashable) -> str:
    what = f"edge {one!r} - {other!r}"
    # A rate says more than a period.
    keys = [key for key in _SPEED if key in data and not (key == "period" and "gbit" in data)]
    return "".join(f" {key}={_number(data, key, what)}" for key in keys) + (f" gbit={_rate(data, what)}" if "gbit" in data else "")


def _rate(data: Mapping[str, Any], what: str) -> str:
    try:
        value = float(data["gbit"])
    except (TypeError, ValueError):
        value = 0.0
    if not 0 < value < 4e6:
        raise ConfigError(f"{what}: gbit is {data['gbit']!r}; expected a number of Gbit/s above 0")
    return f"{value:.12g}"


def add_defaults(graph: networkx.Graph, path: str | Path) -> None:
    """Give the ``<default>`` of each GraphML key to nodes and edges without data for it, which networkx leaves out."""
    import networkx

    # As networkx opens it: packed or not.
    root = networkx.utils.open_file(0, "rb")(lambda file: ElementTree.parse(file).getroot())(path)
    graphs = [element for element in root if _local(element) == "graph"]
    if len(graphs) > 1:
        raise ConfigError(f"{path}: has {len(graphs)} graphs; a network is one graph")
    for key in (element for element in root if _local(element) == "key"):
        default = next(("".join(element.itertext()).strip() for element in key if _local(element) == "default"), None)
        name, of = key.get("attr.name", key.get("id")), key.get("for", "all")
        for kind, parts in (("node", graph.nodes(data=True)), ("edge", graph.edges(data=True))):
            if default is not None and of in (kind, "all"):
                for *_, data in parts:
                    data.setdefault(name, default)


def _local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _port(data: Mapping[str, Any], key: str) -> str:
    # Files of older versions have -1 at a terminal.
    return f" port {_number(data, key, 'an edge')}" if data.get(key, -1) != -1 else ""


def _number(data: Mapping[str, Any], key: str, what: str) -> int:
    try:
        value = int(data[key])
    except (TypeError, ValueError):
        value = -1
    if value < 0 or value != float(data[key]):
        raise ConfigError(f"{what}: {key} is {data[key]!r}; expected a whole number, 0 or more")
    return value
