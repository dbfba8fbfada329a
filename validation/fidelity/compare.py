#!/usr/bin/env python3
"""Compares the flow engine with the flit engine: when may flows be trusted?

Each of 64 terminals sends ten messages, one after the other, on a mesh, a torus, a fat tree and a full mesh, to where a pattern
says. Messages of 8 to 4096 flits are cut into packets of 16 flits in the flit engine. Compared are

* the completion time: (flow - flit) / flit, for both sharings;
* the completion times of the terminals: their correlation (Pearson's r), where they differ at all.

The messages stand in a GOAL program, so that both engines and both sharings send the same ones. Needs numpy (the project's own
environment has it). Exit status: 0, or 1 if a row is outside its limit (LIMITS below, with the reason).
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy

TERMINALS = 64
MESSAGES = 10
LENGTHS = (8, 32, 128, 512, 4096)

NETWORKS = {
    "mesh": ('topology = "mesh"\ndimensions = [8, 8]', 'algorithm = "dimension-order"'),
    "torus": ('topology = "torus"\ndimensions = [8, 8]', 'algorithm = "dimension-order"\ntie = "no-wrap"'),
    "fat-tree": ('topology = "fat-tree"\nup = 4\ndown = 4\nlevels = 3', 'algorithm = "nca"\nup_port = "d-mod-k"'),
    "full-mesh": ('topology = "full-mesh"\nrouters = 16\nconcentration = 4', 'algorithm = "minimal"'),
}

EXPERIMENT = """[network]
{network}
flit_bytes = 1
[routing]
{routing}
[router]
virtual_channels = 4
buffer_flits = 8
[workload]
trace = "{trace}"
packet_flits = 16
[measure]
max_cycles = 1_000_000_000
"""

SHARINGS = ("equal-share", "max-min")


def uniform(generator: numpy.random.Generator) -> list[list[int]]:
    """Each message to another terminal, drawn anew."""
    drawn = generator.integers(TERMINALS - 1, size=(TERMINALS, MESSAGES))
    return [[int(to) + (to >= source) for to in row] for source, row in enumerate(drawn)]


def fixed(destination: list[int]) -> list[list[int]]:
    """All messages of a terminal to the same one; those of a terminal to itself are left out."""
    return [[to] * MESSAGES if to != source else [] for source, to in enumerate(destination)]


def patterns() -> dict[str, list[list[int]]]:
    """The destinations of each terminal's messages, by pattern; coordinates are those of an 8 x 8 grid."""
    generator = numpy.random.default_rng(1)
    grid = [(terminal % 8, terminal // 8) for terminal in range(TERMINALS)]
    return {
        "uniform": uniform(generator),
        "transpose": fixed([8 * x + y for x, y in grid]),
        "tornado": fixed([(x + 3) % 8 + 8 * ((y + 3) % 8) for x, y in grid]),
        "neighbor": fixed([(x + 1) % 8 + 8 * ((y + 1) % 8) for x, y in grid]),
        "permutation": fixed([int(to) for to in generator.permutation(TERMINALS)]),
    }


def program(destinations: list[list[int]], flits: int) -> str:
    """The messages as a GOAL program: all sends are queued at once, in order."""
    ranks: list[list[str]] = [[] for _ in range(TERMINALS)]
    for source, row in enumerate(destinations):
        for tag, to in enumerate(row):
            ranks[source].append(f"s{tag}: send {flits}b to {to} tag {tag}")
            ranks[to].append(f"r{source}x{tag}: recv {flits}b from {source} tag {tag}")
    blocks = [f"rank {rank} {{\n" + "".join(f"{line}\n" for line in lines) + "}\n" for rank, lines in enumerate(ranks)]
    return f"num_ranks {TERMINALS}\n" + "".join(blocks)


class Comparison:
    """The command, and a folder for its files."""

    def __init__(self, kasuri: str, folder: pathlib.Path):
        self.kasuri, self.folder = kasuri, folder

    def run(self, network: str, destinations: list[list[int]], flits: int, engine: str, sharing: str) -> tuple[float, numpy.ndarray]:
        """The completion time of the whole and of each terminal, cycles."""
        (self.folder / "messages.goal").write_text(program(destinations, flits))
        topology, routing = NETWORKS[network]
        path = self.folder / "fidelity.toml"
        path.write_text(EXPERIMENT.format(network=topology, routing=routing, trace="messages.goal"))
        out = self.folder / "out"
        command = [
            self.kasuri,
            "run",
            str(path),
            "--set",
            f"engine={engine}",
            "--set",
            f"flow.sharing={sharing}",
            "--out",
            str(out),
            "--format",
            "json",
        ]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        [row] = json.loads(done.stdout)["runs"]
        if row["status"] != "completed":
            raise SystemExit(f"{network}, {flits} flits, {engine}: {row['status']}")
        vector = numpy.load(out / "runs" / f"{row['key']}.completion_cycles.npy")
        (out / "runs" / f"{row['key']}.json").unlink()  # the program's text is not part of the key's input
        return row["completion_time"], vector.astype(float)


def correlation(one: numpy.ndarray, other: numpy.ndarray) -> float | None:
    """Pearson's r of the terminals that receive anything; None where all of them end together."""
    busy = (one > 0) & (other > 0)
    if numpy.ptp(one[busy]) < 1e-3 * one.max() or numpy.ptp(other[busy]) < 1e-3 * other.max():
        return None
    return float(numpy.corrcoef(one[busy], other[busy])[0, 1])


def main() -> int:
    """Compares the engines' answers."""
    parser = argparse.ArgumentParser(description="Compares the flow engine with the flit engine.")
    parser.add_argument("--kasuri", required=True, help="the kasuri command")
    arguments = parser.parse_args()
    heads = " | ".join(f"{length}" for length in LENGTHS)
    rows, good = [], True
    with tempfile.TemporaryDirectory(prefix="kasuri-fidelity-") as folder:
        comparison = Comparison(arguments.kasuri, pathlib.Path(folder))
        for network in NETWORKS:
            for name, destinations in patterns().items():
                flit = {length: comparison.run(network, destinations, length, "flit", SHARINGS[0]) for length in LENGTHS}
                for sharing in SHARINGS:
                    errors, last = [], None
                    for length in LENGTHS:
                        time, ends = comparison.run(network, destinations, length, "flow", sharing)
                        errors.append((time - flit[length][0]) / flit[length][0])
                        last = correlation(ends, flit[length][1])
                    good &= is_inside(name, sharing, errors)
                    cells = " | ".join(f"{100 * error:+.1f}" for error in errors)
                    rows.append(f"| {network} | {name} | {sharing} | {cells} | {'-' if last is None else f'{last:.2f}'} |")
                    print(rows[-1], flush=True)
    print(f"\n| network | pattern | sharing | {heads} | r at {LENGTHS[-1]} |\n|{6 * '---|'}" + (len(LENGTHS) - 2) * "---|")
    print("\n".join(rows))
    return 0 if good else 1


def is_inside(pattern: str, sharing: str, errors: list[float]) -> bool:
    """Flows of neighbours meet nobody, so they must be right to a tenth from messages of 128 flits on."""
    return pattern != "neighbor" or all(abs(error) < 0.1 for error in errors[2:])


if __name__ == "__main__":
    sys.exit(main())
