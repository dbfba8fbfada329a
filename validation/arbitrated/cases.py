"""The cases: which network, how many virtual channels, which pattern, how many messages of how many flits.

Each terminal sends its messages one after the other. Networks, patterns and seeds are those for which the arbitrated sharing was
specified, so that the figures can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy


@dataclass(frozen=True)
class Network:
    """A network with its routing; `side` is that of the square of terminals for patterns by coordinates."""

    topology: str
    routing: str
    terminals: int
    side: int = 0


@dataclass(frozen=True)
class Case:
    """A workload on a network."""

    network: str
    virtual_channels: int
    pattern: str
    flits: int
    messages: int
    seed: int = 1
    buffer_flits: int = 8
    switching: str = "wormhole"

    @property
    def name(self) -> str:
        """As tables show it."""
        buffer = "" if self.buffer_flits == 8 else f", {self.buffer_flits} flits a buffer"
        switching = "" if self.switching == "wormhole" else ", cut-through"
        return f"{self.network}, {self.virtual_channels} VC, {self.pattern}, {self.messages} of {self.flits}{buffer}{switching}"

    def destinations(self) -> list[list[int]]:
        """By terminal: where its messages go."""
        network = NETWORKS[self.network]
        return PATTERNS[self.pattern](network, self.messages, self.seed)


ORDERED = 'algorithm = "dimension-order"'
WRAPPED = ORDERED + '\ntie = "no-wrap"'
TREE = 'algorithm = "nca"\nup_port = "d-mod-k"'
MINIMAL = 'algorithm = "minimal"'

NETWORKS = {
    "line8": Network('topology = "mesh"\ndimensions = [8]', ORDERED, 8),
    "mesh4": Network('topology = "mesh"\ndimensions = [4, 4]', ORDERED, 16, 4),
    "mesh8": Network('topology = "mesh"\ndimensions = [8, 8]', ORDERED, 64, 8),
    "torus4": Network('topology = "torus"\ndimensions = [4, 4]', WRAPPED, 16, 4),
    "torus8": Network('topology = "torus"\ndimensions = [8, 8]', WRAPPED, 64, 8),
    "tree64": Network('topology = "fat-tree"\nup = 4\ndown = 4\nlevels = 3', TREE, 64, 8),
    "full16": Network('topology = "full-mesh"\nrouters = 16\nconcentration = 4', MINIMAL, 64, 8),
    "mlfm": Network('topology = "mlfm"\ndegree = 4', MINIMAL, 80),
    "dragonfly": Network('topology = "dragonfly"\nterminals_per_router = 2\nrouters_per_group = 4\nglobal_channels = 2', MINIMAL, 72),
}

Rows = list[list[int]]


def uniform(network: Network, messages: int, seed: int) -> Rows:
    """Each message to another terminal, drawn anew."""
    drawn = numpy.random.default_rng(seed).integers(network.terminals - 1, size=(network.terminals, messages))
    return [[int(to) + (to >= source) for to in row] for source, row in enumerate(drawn)]


def hotspot(network: Network, messages: int, seed: int) -> Rows:
    """As uniform, but every fifth message goes to one terminal."""
    generator = numpy.random.default_rng(seed)
    hot = network.terminals // 2 + 1
    rows = uniform(network, messages, seed)
    return [[hot if generator.random() < 0.2 and source != hot else to for to in row] for source, row in enumerate(rows)]


def changing(network: Network, messages: int, seed: int) -> Rows:
    """Message number i of each terminal by the permutation number i."""
    generator = numpy.random.default_rng(seed)
    drawn = [generator.permutation(network.terminals) for _ in range(messages)]
    return [[int(to[source]) for to in drawn if to[source] != source] for source in range(network.terminals)]


def fixed(destination: Callable[[Network, int], list[int]]) -> Callable[[Network, int, int], Rows]:
    """All messages of a terminal to the same one; those of a terminal to itself are left out."""

    def rows(network: Network, messages: int, seed: int) -> Rows:
        return [[int(to)] * messages if to != source else [] for source, to in enumerate(destination(network, seed))]

    return rows


def shifted(network: Network, _seed: int) -> list[int]:
    """Almost half-way around in both dimensions."""
    side = network.side
    shift = (side + 1) // 2 - 1
    grid = [(terminal % side, terminal // side) for terminal in range(network.terminals)]
    return [(x + shift) % side + side * ((y + shift) % side) for x, y in grid]


PATTERNS: dict[str, Callable[[Network, int, int], Rows]] = {
    "uniform": uniform,
    "hotspot": hotspot,
    "changing": changing,
    "permutation": fixed(lambda network, seed: numpy.random.default_rng(seed).permutation(network.terminals).tolist()),
    "transpose": fixed(lambda network, _: [network.side * (t % network.side) + t // network.side for t in range(network.terminals)]),
    "tornado": fixed(shifted),
    "complement": fixed(lambda network, _: list(reversed(range(network.terminals)))),
    "shift": fixed(lambda network, _: [(t + network.terminals // 2 + 1) % network.terminals for t in range(network.terminals)]),
    "incast": fixed(lambda network, _: [0] * network.terminals),
    "parking": fixed(lambda network, _: [network.terminals - 1] * network.terminals),
    "all-to-all": lambda network, messages, _: [
        [(source + step) % network.terminals for step in range(1, messages + 1)] for source in range(network.terminals)
    ],
}

# The 43 cases with messages of 256 flits and more (and one incast with fewer), and four with shorter ones.
CASES = [
    Case("line8", 1, "parking", 256, 4),
    Case("line8", 2, "parking", 256, 4),
    Case("line8", 4, "parking", 1024, 4),
    Case("mesh4", 1, "uniform", 256, 10),
    Case("mesh4", 4, "uniform", 256, 10),
    Case("mesh4", 2, "complement", 256, 6),
    Case("mesh4", 2, "incast", 64, 6),
    Case("mesh8", 1, "uniform", 256, 10),
    Case("mesh8", 2, "uniform", 256, 10),
    Case("mesh8", 4, "uniform", 64, 10),
    Case("mesh8", 4, "uniform", 256, 10),
    Case("mesh8", 4, "uniform", 1024, 10),
    Case("mesh8", 1, "transpose", 256, 6),
    Case("mesh8", 4, "transpose", 1024, 6),
    Case("mesh8", 1, "tornado", 256, 10),
    Case("mesh8", 4, "tornado", 256, 10),
    Case("mesh8", 4, "tornado", 1024, 10),
    Case("mesh8", 2, "permutation", 256, 10, 2),
    Case("mesh8", 4, "permutation", 1024, 10, 3),
    Case("mesh8", 4, "complement", 256, 10),
    Case("mesh8", 4, "hotspot", 256, 10),
    Case("mesh8", 1, "hotspot", 1024, 6),
    Case("mesh8", 4, "uniform", 16, 20),
    Case("mesh8", 4, "changing", 256, 10),
    Case("torus4", 2, "uniform", 256, 10),
    Case("torus4", 4, "tornado", 256, 10),
    Case("torus8", 2, "uniform", 256, 10),
    Case("torus8", 4, "uniform", 256, 10),
    Case("torus8", 4, "tornado", 256, 10),
    Case("torus8", 2, "tornado", 1024, 10),
    Case("torus8", 4, "permutation", 1024, 10),
    Case("torus8", 4, "all-to-all", 256, 16),
    Case("torus8", 4, "transpose", 256, 6),
    Case("tree64", 1, "uniform", 256, 10),
    Case("tree64", 4, "uniform", 256, 10),
    Case("tree64", 4, "uniform", 1024, 10),
    Case("tree64", 4, "transpose", 256, 10),
    Case("tree64", 2, "permutation", 1024, 10),
    Case("tree64", 4, "hotspot", 256, 10),
    Case("tree64", 4, "all-to-all", 256, 16),
    Case("tree64", 4, "uniform", 16, 20),
    Case("full16", 4, "uniform", 256, 10),
    Case("full16", 4, "shift", 1024, 6),
    Case("mlfm", 4, "uniform", 256, 10),
    Case("mlfm", 4, "all-to-all", 256, 16),
    Case("dragonfly", 4, "uniform", 256, 10),
    Case("dragonfly", 4, "permutation", 1024, 10),
]

# Buffers for several packets, and packets that wait for room for all of them.
DEEP = [
    *(Case("mesh8", channels, pattern, 256, 10, 1, 64) for pattern in ("uniform", "tornado") for channels in (4, 1)),
    Case("torus8", 4, "tornado", 256, 10, 1, 64),
    *(Case(net, 4, "tornado", 256, 10, 1, 16, "virtual-cut-through") for net in ("mesh8", "torus8")),
    Case("mesh8", 1, "uniform", 256, 10, 1, 16, "virtual-cut-through"),
]
