"""Where to draw the routers and terminals of a network: by coordinates, by level, by group, or round a circle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kasuri.network import Network


@dataclass(frozen=True)
class Group:
    """A circle round routers that belong together."""

    name: str
    centre: tuple[float, float]
    radius: float


@dataclass(frozen=True)
class Layout:
    """Places in a plane.

    Attributes
    ----------
    routers : numpy.ndarray
        Shape ``[routers, 2]``.
    terminals : numpy.ndarray or None
        Shape ``[terminals, 2]``, or None where terminals are better not drawn.
    kind : str
        ``grid``, ``levels``, ``groups``, ``spring`` or ``circle``.
    wraps : numpy.ndarray or None
        Of each channel between routers: is it the long way back of a ring?
    groups : tuple of Group
        Routers that belong together.
    """

    routers: np.ndarray
    terminals: np.ndarray | None
    kind: str
    wraps: np.ndarray | None = None
    groups: tuple[Group, ...] = ()


def layout(network: Network) -> Layout:
    """Place a network: by coordinates, by level or stage, by group; else by springs or round a circle."""
    coordinates = [network.labels[f"coordinate.{number}"] for number in _dimensions(network)]
    if coordinates:
        if "subgraph" in network.labels:  # two grids side by side
            part = network.labels["subgraph"]
            coordinates[0] = coordinates[0] + part * (coordinates[0].max() + 2)
            return Layout(_grid(coordinates), None, "grid")
        return Layout(_grid(coordinates), None, "grid", _ring_closures(network, coordinates))
    for name in ("level", "stage"):
        if name in network.labels:
            return _levels(network, network.labels[name])
    if "group" in network.labels and np.unique(network.labels["group"]).size > 1:
        return _groups(network.labels["group"])
    return _free(network)


def _ring_closures(network: Network, coordinates: list[np.ndarray]) -> np.ndarray:
    """Find the channels that close a ring: those from end to end of a dimension in which all others lead to a neighbour."""
    start, end = network.router_edges.T
    steps = np.array([np.abs(coordinate[end] - coordinate[start]) for coordinate in coordinates]).reshape(len(coordinates), -1)
    alone = (steps > 0).sum(axis=0) == 1
    wraps = np.zeros(len(start), dtype=bool)
    for coordinate, step in zip(coordinates, steps, strict=True):
        longest = coordinate.max(initial=0)
        if longest > 1 and np.isin(step[alone], (0, 1, longest)).all():
            wraps |= alone & (step == longest)
    return wraps


def _groups(group: np.ndarray) -> Layout:
    """Groups round a circle, the routers of each round a small one."""
    names = np.unique(group)
    distance = max(1.35 / math.sin(math.pi / len(names)), 2.2)
    places = np.zeros((len(group), 2))
    circles = []
    for number, name in enumerate(names):
        members = np.flatnonzero(group == name)
        turn = 2 * math.pi * number / len(names)
        centre = distance * np.array([math.sin(turn), math.cos(turn)])
        angle = turn + 2 * math.pi * (np.arange(len(members)) + 0.5) / len(members)
        radius = 0.72 if len(members) > 1 else 0.0
        places[members] = centre + radius * np.column_stack([np.sin(angle), np.cos(angle)])
        circles.append(Group(f"group {name}", (float(centre[0]), float(centre[1])), 1.0))
    return Layout(places, None, "groups", groups=tuple(circles))


def _dimensions(network: Network) -> list[int]:
    return sorted(int(name.split(".")[1]) for name in network.labels if name.startswith("coordinate."))


def _grid(coordinates: list[np.ndarray]) -> np.ndarray:
    """Fold the dimensions into the plane: 0, 2, 4, … to the right, 1, 3, 5, … upwards, each with room for those before."""
    places = np.zeros((len(coordinates[0]), 2))
    room = [1.0, 1.0]
    for number, coordinate in enumerate(coordinates):
        axis = number % 2
        places[:, axis] += room[axis] * coordinate
        room[axis] *= (coordinate.max() + 1) * 1.0
        room[axis] += 1.0
    return places


def _levels(network: Network, level: np.ndarray) -> Layout:
    places = np.zeros((network.routers, 2))
    width = max(np.bincount(level).max(), 1)
    for height in np.unique(level):
        members = np.flatnonzero(level == height)
        places[members, 0] = (np.arange(len(members)) + 0.5) * width / len(members)
        places[members, 1] = height
    terminals = _beneath(network, places) if network.terminals <= 256 else None
    return Layout(places, terminals, "levels")


def _beneath(network: Network, places: np.ndarray) -> np.ndarray | None:
    """Terminals in a row under the lowest routers; None if other levels have terminals, too."""
    home = network.terminal_routers
    if np.unique(places[home, 1]).size != 1:
        return None
    order = np.argsort(places[home, 0], kind="stable")
    spread = np.empty((network.terminals, 2))
    width = places[:, 0].max() + places[:, 0].min()
    spread[order, 0] = (np.arange(network.terminals) + 0.5) * width / network.terminals
    spread[:, 1] = places[home[0], 1] - 0.45
    return spread


def _free(network: Network) -> Layout:
    if network.routers <= 200:
        try:
            import networkx
            import scipy  # noqa: F401  # the spring layout needs it
        except ImportError:
            pass
        else:
            graph = networkx.Graph(network.router_edges.tolist())
            graph.add_nodes_from(range(network.routers))
            if graph.number_of_edges() * 4 < network.routers * (network.routers - 1):  # dense graphs are clearer round a circle
                found = networkx.kamada_kawai_layout(graph) if networkx.is_connected(graph) else networkx.spring_layout(graph, seed=1)
                return Layout(np.array([found[router] for router in range(network.routers)]), None, "spring")
    angle = 2 * math.pi * np.arange(network.routers) / max(network.routers, 1)
    return Layout(np.column_stack([np.sin(angle), np.cos(angle)]), None, "circle")
