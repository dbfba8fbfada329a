"""Where to draw the routers and terminals of a network: by coordinates, by level, or round a circle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kasuri.network import Network


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
        ``grid``, ``levels``, ``spring`` or ``circle``.
    """

    routers: np.ndarray
    terminals: np.ndarray | None
    kind: str


def layout(network: Network) -> Layout:
    """Place a network: meshes and tori by coordinates, trees and butterflies by level or stage, others by springs or round a circle."""
    coordinates = [network.labels[f"coordinate.{number}"] for number in _dimensions(network)]
    if coordinates:
        return Layout(_grid(coordinates), None, "grid")
    for name in ("level", "stage"):
        if name in network.labels:
            return _levels(network, network.labels[name])
    return _free(network)


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
    """Terminals in a row under the lowest routers; None where they hang on other levels too."""
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
