"""The machine of the Cenju-4 by its own rule: boards of 16 lines, cables between them, and the one path of each pair of nodes.

The rule is written down here a second time, apart from the simulator's networks, which are measured against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kasuri.network import Network

#: Lines of a board, and inputs or outputs of a switch.
LINES, RADIX = 16, 4


@dataclass(frozen=True)
class Rule:
    """Which outputs a packet takes: the number of nodes, how they are dealt to boards, how cables are bundled, and which one is taken."""

    nodes: int
    cabling: str = "halves-straight"
    cable: str = "destination"

    @property
    def boards(self) -> int:
        """Boards of a layer."""
        return -(-self.nodes // LINES)

    @property
    def layers(self) -> int:
        """Boards that a path crosses."""
        return 1 if self.boards == 1 else 2 if self.boards <= LINES else 3

    def place(self, node: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Give the board of a node, and its line there."""
        if self.cabling.startswith("halves"):
            return node // LINES, node % LINES
        return node % self.boards, node // self.boards

    def outputs(self, source: np.ndarray, target: np.ndarray) -> list[np.ndarray]:
        """Give the output of the board of each layer."""
        board, line = self.place(target)
        if self.layers == 1:
            return [line]
        groups = self.boards if self.layers == 2 else self.boards // LINES
        cables = LINES // groups
        numbers = {"destination": target, "destination-pair": target // 2, "source": source, "sum": source + target}
        cable = numbers[self.cable] % cables
        group = board if self.layers == 2 else board // LINES
        first = group * cables + cable if self.cabling.endswith("straight") else cable * groups + group
        return [first, line] if self.layers == 2 else [first, board % LINES, line]


def of(network: Mapping[str, Any]) -> Rule:
    """Give the rule of a ``network`` section."""
    return Rule(network["terminals"], **{key: network[key] for key in ("cabling", "cable") if key in network})


def paths(built: Network, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """Follow the rule through a built network, from each node to each.

    Returns
    -------
    (channels, reached)
        The channels of each pair's path, shape ``[stages + 1, nodes, nodes]``, with its injection channel first; -1 where the path has
        ended. And where it ends: a node for each pair, -1 if it ends at none.
    """
    leaves = np.full((built.routers, int(built.ports.max())), -1)
    from_router = np.flatnonzero(built.source_router >= 0)
    leaves[built.source_router[from_router], built.source_port[from_router]] = from_router
    source, target = np.meshgrid(np.arange(rule.nodes), np.arange(rule.nodes), indexing="ij")
    channel = source.copy()
    crossed = [channel]
    for output in rule.outputs(source, target):
        for port in (output // RADIX, output % RADIX):
            router = np.where(channel >= 0, built.destination_router[channel], -1)
            channel = np.where(router >= 0, leaves[router, port], -1)
            crossed.append(channel)
    return np.array(crossed), np.where(channel >= 0, built.destination_terminal[channel], -1)


def count(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """Count a built machine and follow the rule through it.

    Returns
    -------
    dict
        ``terminals``, ``routers``, ``stages``, ``idle`` (inputs and outputs of switches without a channel), ``pairs`` (ordered, a node and
        itself among them) whose path ends at its target, and ``bundles``: the different numbers of cables between a board of the first
        layer and a group of boards of the second.
    """
    built, rule = Network(experiment["network"]), of(experiment["network"])
    outputs = np.count_nonzero(built.source_router >= 0)
    inputs = np.count_nonzero(built.destination_router >= 0)
    _, reached = paths(built, rule)
    return {
        "terminals": built.terminals,
        "routers": built.routers,
        "stages": len(np.unique(built.labels["stage"])),
        "idle": int(2 * built.ports.sum() - outputs - inputs),
        "pairs": int((reached == np.arange(rule.nodes)).sum()),
        "bundles": _bundles(built, rule),
    }


def _bundles(built: Network, rule: Rule) -> list[int]:
    if rule.layers == 1:
        return []
    stage, board = built.labels["stage"], built.labels["board"]
    edges = built.router_edges
    cables = edges[stage[edges[:, 0]] == 1]
    groups = rule.boards if rule.layers == 2 else rule.boards // LINES
    ends = board[cables[:, 0]] * groups + board[cables[:, 1]] // (rule.boards // groups)
    return [int(number) for number in np.unique(np.bincount(ends, minlength=rule.boards * groups))]


def loads(network: Mapping[str, Any], ranks: int) -> np.ndarray:
    """Give how many paths of all pairs of the first nodes cross each channel, injection and ejection channels included."""
    built = Network(network)
    crossed, _ = paths(built, of(network))
    some = crossed[:, :ranks, :ranks]
    return np.bincount(some[some >= 0], minlength=built.channels)
