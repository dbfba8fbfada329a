#!/usr/bin/env python3
"""Prints how far the flow and the flit engine are from ASTRA-sim's analytical backends: clusters by algorithms by collectives.

ASTRA-sim's times are those of `kasuri astra --astra-rules`, which `compare.py` shows to be its own to the nanosecond. Each case is one
collective of 1 MiB on a cluster, in one chunk or in four that are under way at once: the time of the last NPU by flows and by flits, over
that of ASTRA-sim without and with contention. A row is the least and the most over the collectives that the algorithm has; letters say
why they differ (`CAUSES`).

Only the standard library is needed. Exit status: 0; 1 if a case without a cause differs by more than `NEAR`, if one ends before the bound
of the formulas (`--engine analysis`), or if the page of the documentation has another table.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benches"))
from training import one_collective  # noqa: E402  # of this repository

OPERATIONS = {"all-reduce": 0, "all-gather": 2, "reduce-scatter": 7, "all-to-all": 6}
ALGORITHMS = ("ring", "direct", "direct2", "halvingDoubling", "doubleBinaryTree")
CLUSTERS = {
    "FullyConnected 8": ("FullyConnected", 8),
    "Ring 8": ("Ring", 8),
    "Switch 8": ("Switch", 8),
    "Switch 8, Ring 4": ("Switch", 8, "Ring", 4),
}
SIZE = 1 << 20
# What whole nanoseconds and flits do to short messages.
NEAR = 0.01
CAUSES = {
    "c": "the backend without contention lets messages share links that take no longer for it",
    "s": "the backend with contention keeps whole messages at a switch or an NPU before it sends them on; flows and flits go through",
    "o": "the backend with contention sends one message at a time over a link, in order; flows share it equally",
    "h": "routers share links among inputs and virtual channels, not among messages: some NPUs of a ring get less than others",
}
PAGE = ROOT / "docs/explanation/astra.md"


@dataclass(frozen=True)
class Row:
    """A collective on a cluster."""

    cluster: str
    operation: str
    algorithm: str
    chunks: int

    @property
    def is_there(self) -> bool:
        """Whether ASTRA-sim has it."""
        if self.algorithm == "doubleBinaryTree":
            return self.operation == "all-reduce"
        return self.algorithm != "halvingDoubling" or self.operation != "all-to-all"

    def causes(self, engine: str, backend: str) -> str:
        """Why an engine's time is another than a backend's, in letters; nothing if it is the same."""
        topologies = CLUSTERS[self.cluster][::2]
        to_next = self.algorithm == "ring"
        over_several = "Ring" in topologies and not to_next
        # On a switch an NPU has one link for all that it sends, on a mesh one for each message.
        at_once = self.chunks > 1 or ("Switch" in topologies and self.algorithm not in ("ring", "halvingDoubling"))
        if backend == "unaware":
            letters = "c" if at_once or over_several else ""
        else:
            letters = ("s" if "Switch" in topologies or over_several else "") + ("o" if over_several else "")
        return letters + ("h" if engine == "flit" and over_several else "")


def files(row: Row, folder: pathlib.Path) -> list[str]:
    """Writes the files of a row; the words of the command that name them."""
    folder.mkdir(parents=True)
    parts = CLUSTERS[row.cluster]
    topologies, counts = parts[::2], parts[1::2]
    lines = [f"topology: [ {', '.join(topologies)} ]", f"npus_count: [ {', '.join(map(str, counts))} ]"]
    lines += [f"bandwidth: [ {', '.join(['50.0'] * len(counts))} ]", f"latency: [ {', '.join(['500.0'] * len(counts))} ]"]
    (folder / "network.yml").write_text("\n".join(lines) + "\n")
    names = [row.algorithm] * len(counts)
    system = {
        "endpoint-delay": 10,
        "active-chunks-per-dimension": row.chunks,
        "preferred-dataset-splits": row.chunks,
        **{f"{operation}-implementation": names for operation in OPERATIONS},
        "collective-optimization": "localBWAware",
        "local-mem-bw": 1600,
    }
    (folder / "system.json").write_text(json.dumps(system))
    trace = one_collective(OPERATIONS[row.operation], SIZE)
    npus = 1
    for count in counts:
        npus *= int(count)
    for npu in range(npus):
        (folder / f"t.{npu}.et").write_bytes(trace)
    return ["--workload", str(folder / "t"), "--system", str(folder / "system.json"), "--network", str(folder / "network.yml")]


def run(kasuri: str, words: list[str], how: list[str]) -> dict | None:
    """What the command answers; nothing if it refuses."""
    done = subprocess.run([kasuri, "astra", *words, *how, "--format", "json"], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def measure(kasuri: str, row: Row, folder: pathlib.Path) -> dict[str, float | None]:
    """The time of the last NPU by each model, in nanoseconds."""
    words = files(row, folder)
    rules = ["--astra-rules", "--backend"]
    models = {"unaware": [*rules, "unaware"], "aware": [*rules, "aware"], "flow": ["--engine", "flow"], "flit": ["--engine", "flit"]}
    times: dict[str, float | None] = {}
    for model, how in models.items():
        answer = run(kasuri, words, how)
        times[model] = max(npu["finish_ns"] for npu in answer["npus"]) if answer else None
    formulas = run(kasuri, words, ["--engine", "analysis"])
    times["bound"] = formulas["bound_ns"] if formulas else None
    return times


def is_right(row: Row, times: dict[str, float | None]) -> bool:
    """Print what is wrong with a case."""
    problems = [f"{model} ends before the bound" for model in ("flow", "flit") if times[model] < times["bound"] * (1 - NEAR)]
    for engine, backend in PAIRS:
        if times[backend] and not row.causes(engine, backend) and abs(times[engine] / times[backend] - 1) > NEAR:
            problems.append(f"{engine} is {times[engine]:.0f}, {backend} {times[backend]:.0f}, and nothing explains it")
    for problem in problems:
        print(f"{row}: {problem}", file=sys.stderr)
    return not problems


PAIRS = tuple(itertools.product(("flow", "flit"), ("unaware", "aware")))


def table(rows: list[Row], found: list[dict[str, float | None]]) -> list[str]:
    """The lines of the table."""
    groups: dict[tuple[str, str, int], list[tuple[Row, dict[str, float | None]]]] = {}
    for row, times in zip(rows, found, strict=True):
        groups.setdefault((row.cluster, row.algorithm, row.chunks), []).append((row, times))
    heads = [f"{engine} over {backend}" for engine, backend in PAIRS]
    lines = [f"| cluster | algorithm | chunks at once | {' | '.join(heads)} |", "|---|---|---|---|---|---|---|"]
    for (cluster, algorithm, chunks), cases in groups.items():
        cells = [cluster, f"`{algorithm}`", str(chunks)]
        for engine, backend in PAIRS:
            ratios = [times[engine] / times[backend] for _, times in cases if times[backend]]
            letters = cases[0][0].causes(engine, backend)
            least, most = (f"{of(ratios):.2f}" if ratios else "" for of in (min, max))
            cells.append(f"{least if least == most else f'{least} to {most}'} {letters}".strip() if ratios else "refused")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def each(rows: list[Row], found: list[dict[str, float | None]]) -> list[str]:
    """All cases, in nanoseconds."""
    models = ("unaware", "aware", "flow", "flit", "bound")
    lines = [f"{'CLUSTER':18}{'COLLECTIVE':16}{'ALGORITHM':18}CHUNKS" + "".join(f"{model.upper():>10}" for model in models)]
    for row, times in zip(rows, found, strict=True):
        cells = "".join(f"{'-' if times[model] is None else format(times[model], '.0f'):>10}" for model in models)
        lines.append(f"{row.cluster:18}{row.operation:16}{row.algorithm:18}{row.chunks:6}{cells}")
    return lines


def main() -> int:
    """Measure, print the table and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kasuri", default=str(ROOT / ".venv/bin/kasuri"), help="the command")
    parser.add_argument("--each", action="store_true", help="print each case in nanoseconds, too")
    parser.add_argument("--write", action="store_true", help=f"write the table to {PAGE.relative_to(ROOT)}")
    arguments = parser.parse_args()
    rows = [Row(*values) for values in itertools.product(CLUSTERS, OPERATIONS, ALGORITHMS, (1, 4))]
    rows = sorted(
        (row for row in rows if row.is_there), key=lambda row: (list(CLUSTERS).index(row.cluster), ALGORITHMS.index(row.algorithm))
    )
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda pair: measure(arguments.kasuri, pair[1], pathlib.Path(work, str(pair[0]))), enumerate(rows)))
    lines = table(rows, found)
    print("\n".join([*(each(rows, found) if arguments.each else []), *lines, *(f"{letter}: {cause}" for letter, cause in CAUSES.items())]))
    right = all([is_right(row, times) for row, times in zip(rows, found, strict=True)])
    before, _, rest = PAGE.read_text().partition(lines[0])
    after = rest[rest.index("\n\n") :] if rest else ""
    page = before + "\n".join(lines) + after
    if arguments.write:
        PAGE.write_text(page)
    elif page != PAGE.read_text():
        print(f"{PAGE.relative_to(ROOT)} has another table: write it with --write", file=sys.stderr)
        right = False
    print(f"{len(rows)} cases: {'as explained' if right else 'NOT as explained'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
