#!/usr/bin/env python3
"""Writes the Chakra traces of a training loop, and the network, system and communicator groups that go with them.

A transformer on 64 NPUs in 8 nodes of 8: tensor parallel within a node, 4 pipeline stages (or as many as you say) of 2 data-parallel
replicas. A step has 8 microbatches, which go forward through the stages and then back: a stage receives the activations of the stage
before (or the gradients of the one behind), works on its 6 layers, and sends on, while it goes on with the next. A layer is six
computations, an all-gather before the first and a reduce-scatter behind the last (sequence parallel). At the end of a step the gradients
are all-reduced among replicas, in every second step as a reduce-scatter and an all-gather with the optimiser between them. Computations
of one NPU take up to a tenth longer than those of another.

Only the standard library is needed.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
from dataclasses import dataclass

RANKS, TENSOR = 64, 8
# Bytes: activations of a microbatch, a rank's share of them, gradients of a stage.
ACTIVATIONS = 8 << 20
SHARE = ACTIVATIONS // TENSOR
GRADIENTS = 96 << 20
# Microseconds, forward.
KERNELS = ((b"norm", 18), (b"project", 150), (b"attention", 208), (b"combine", 62), (b"expand", 196), (b"contract", 191))
ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER = 0, 2, 7
COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7


def varint(value: int) -> bytes:
    """A number of protobuf."""
    encoded = b""
    while value >= 0x80:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


def field(number: int, content: int | bytes) -> bytes:
    """A field of protobuf: a number or bytes."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(name: str, value: int) -> bytes:
    """An attribute of a node."""
    return field(10, field(1, name.encode()) + field(13, value))


ON_ACCELERATOR = field(10, field(1, b"is_cpu_op") + field(27, 0))


@dataclass(frozen=True)
class Job:
    """How the model is dealt to the ranks, and what a step has."""

    stages: int = 4
    microbatches: int = 8
    layers: int = 6

    @property
    def replicas(self) -> int:
        """Data-parallel replicas of each stage."""
        return RANKS // TENSOR // self.stages


class Rank:
    """The trace of one rank. Each node waits for the one before, as kernels of one stream do; nothing waits for a send."""

    def __init__(self, rank: int, job: Job):
        self.rank, self.job, self.nodes, self.last, self.state = rank, job, 0, -1, 88172645463325252 + rank
        self.stage = rank // (TENSOR * job.replicas)
        self.tensor_group = 1 + rank // TENSOR
        self.replica_group = 1 + RANKS // TENSOR + self.stage * TENSOR + rank % TENSOR
        metadata = field(1, b"0.0.4")
        self.pieces = [varint(len(metadata)) + metadata]

    def add(self, name: bytes, kind: int, rest: bytes) -> None:
        """Add a node; `rest` is what follows the dependency."""
        content = field(1, self.nodes) + field(2, name) + field(3, kind)
        content += (field(4, self.last) if self.last >= 0 else b"") + rest + ON_ACCELERATOR
        self.pieces.append(varint(len(content)) + content)
        if kind != SEND:
            self.last = self.nodes
        self.nodes += 1

    def compute(self, name: bytes, duration: int) -> None:
        """Add a kernel of so many microseconds or up to a tenth more (Marsaglia, Xorshift RNGs, 2003)."""
        mask = (1 << 64) - 1
        self.state ^= self.state << 13 & mask
        self.state ^= self.state >> 7
        self.state ^= self.state << 17 & mask
        self.add(name, COMPUTE, field(7, duration + self.state % (duration // 10 + 1)))

    def collective(self, name: bytes, operation: int, size: int, group: int) -> None:
        """Add a collective of a group."""
        self.add(name, COLLECTIVE, collective_attributes(operation, size, group))

    def message(self, kind: int, stages: int, tag: int) -> None:
        """Add a message to or from the same place in another stage."""
        other = self.rank + stages * TENSOR * self.job.replicas
        source, destination = (self.rank, other) if kind == SEND else (other, self.rank)
        ends = attribute("comm_src", source) + attribute("comm_dst", destination)
        self.add(b"send" if kind == SEND else b"receive", kind, ends + attribute("comm_size", SHARE) + attribute("comm_tag", tag))

    def layers(self, factor: int) -> None:
        """Add the layers of the stage; backward they take twice as long."""
        for _ in range(self.job.layers):
            self.collective(b"gather_activations", ALL_GATHER, SHARE, self.tensor_group)
            for name, duration in KERNELS:
                self.compute(name, factor * duration)
            self.collective(b"scatter_activations", REDUCE_SCATTER, ACTIVATIONS, self.tensor_group)

    def step(self, number: int) -> None:
        """Add a step: all microbatches forward, all of them back, and the gradients."""
        for direction, first, last in ((1, 0, self.job.stages - 1), (-1, self.job.stages - 1, 0)):
            for microbatch in range(self.job.microbatches):
                tag = 2 * microbatch + (direction < 0)
                if self.stage != first:
                    self.message(RECEIVE, -direction, tag)
                self.layers(1 if direction > 0 else 2)
                if self.stage != last:
                    self.message(SEND, direction, tag)
        if number % 2:
            self.collective(b"scatter_gradients", REDUCE_SCATTER, GRADIENTS, self.replica_group)
            self.compute(b"optimiser", 900)
            self.collective(b"gather_weights", ALL_GATHER, GRADIENTS // self.job.replicas, self.replica_group)
        else:
            self.collective(b"reduce_gradients", ALL_REDUCE, GRADIENTS, self.replica_group)
            self.compute(b"optimiser", 1800)


@functools.cache
def collective_attributes(operation: int, size: int, group: int) -> bytes:
    """What a collective's node says of it; group 0 is that of all."""
    name = field(10, field(1, b"pg_name") + field(29, str(group).encode())) if group else b""
    return attribute("comm_type", operation) + attribute("comm_size", size) + name


def one_collective(operation: int, size: int) -> bytes:
    """A trace with one collective of all NPUs."""
    rank = Rank(0, Job())
    rank.collective(b"one", operation, size, 0)
    return b"".join(rank.pieces)


def groups(job: Job) -> dict[str, list[int]]:
    """The communicator groups: tensor-parallel ones first, then those of replicas."""
    tensor = [list(range(first, first + TENSOR)) for first in range(0, RANKS, TENSOR)]
    of_stage = TENSOR * job.replicas
    replicas = [
        list(range(first, first + of_stage, TENSOR))
        for stage in range(job.stages)
        for first in range(stage * of_stage, stage * of_stage + TENSOR)
    ]
    return {str(number): members for number, members in enumerate(tensor + replicas, 1)}


NETWORK = """topology: [ Switch, Switch ]
npus_count: [ 8, 8 ]
bandwidth: [ 400.0, 50.0 ]
latency: [ 500.0, 1000.0 ]
"""
SYSTEM = {
    "scheduling-policy": "LIFO",
    "endpoint-delay": 10,
    "active-chunks-per-dimension": 1,
    "preferred-dataset-splits": 1,
    **{f"{name}-implementation": ["ring", "ring"] for name in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")},
    "collective-optimization": "localBWAware",
    "local-mem-bw": 1600,
}


def write(folder: pathlib.Path, nodes: int, job: Job | None = None) -> int:
    """Write whole steps, as many as it takes for so many nodes in all, and the other files; the answer is how many nodes there are."""
    job = job or Job()
    (folder / "network.yml").write_text(NETWORK)
    (folder / "system.json").write_text(json.dumps(SYSTEM, indent=1))
    (folder / "groups.json").write_text(json.dumps(groups(job)))
    one = [Rank(rank, job) for rank in range(RANKS)]
    for rank in one:
        rank.step(0)
    steps, written = -(-nodes // sum(rank.nodes for rank in one)), 0
    for rank in one:
        for number in range(1, steps):
            rank.step(number)
        (folder / f"training.{rank.rank}.et").write_bytes(b"".join(rank.pieces))
        written += rank.nodes
        rank.pieces = []
    return written


def main() -> None:
    """Write the files that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "folder", type=pathlib.Path, help="where to write training.0.et and so on, network.yml, system.json and groups.json"
    )
    parser.add_argument("--nodes", type=int, default=1_000_000, help="nodes of all traces, at least [default: %(default)s]")
    parser.add_argument("--stages", type=int, choices=(1, 2, 4, 8), default=Job.stages, help="pipeline stages [default: %(default)s]")
    parser.add_argument("--microbatches", type=int, default=Job.microbatches, help="microbatches of a step [default: %(default)s]")
    parser.add_argument("--layers", type=int, default=Job.layers, help="layers of a stage [default: %(default)s]")
    arguments = parser.parse_args()
    job = Job(arguments.stages, arguments.microbatches, arguments.layers)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    print(f"{write(arguments.folder, arguments.nodes, job)} nodes of {RANKS} ranks")


if __name__ == "__main__":
    main()
