#!/usr/bin/env python3
"""Measures what users of one machine take from each other, and what isolation gives back.

Two users share a fat tree, a torus and a recursive diagonal torus of 64 terminals, 32 each, placed in four ways. The first is well
behaved: uniform traffic at a load of 0.3. The second saturates the network: all of his terminals send all they can, to one of them
(``hotspot``) or to all (``uniform``). The first is measured alone, beside the second without isolation, and beside him with virtual
channels of his own and with shares of the switches' outputs besides.

Printed is, for each case, what is left of the first user's throughput and by what his packets' latency has grown, over those of the run
in which he is alone without isolation. With ``--out DIR`` the runs are kept there, and the table and a plot of it are written.

Needs matplotlib for the plot. Exit status: 0, or 1 if with channels and shares less than 90 % of the throughput is left on the fat tree.
On other networks such a case names the channel that is busiest, what it carries, and the throughput that its capacity leaves.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

import numpy

NETWORKS = {
    "fat-tree": ('topology = "fat-tree"\nup = 4\ndown = 4\nlevels = 3', 'algorithm = "nca"\nup_port = "random"'),
    "torus": ('topology = "torus"\ndimensions = [4, 4]\nconcentration = 4', 'algorithm = "dimension-order"'),
    "rdt": ('topology = "rdt"\nside = 8\nranks = 1', 'algorithm = "vector"'),
}
SECOND = {
    "hotspot": 'pattern = "hotspot"\nterminals = [0]\nweights = [1.0]\nload = 1.0\npacket_flits = 4',
    "uniform": 'pattern = "uniform"\nload = 1.0\npacket_flits = 4',
}
PLACEMENTS = ("contiguous", "random", "round-robin", "by-switch")
ISOLATIONS = ("none", "channels", "channels-and-shares")
#: What of the first user's throughput alone must be left.
KEPT = 0.9

EXPERIMENT = """[network]
{network}
[routing]
{routing}
[router]
virtual_channels = 8
buffer_flits = 8
pipeline = ["RC", "VA", "SA", "ST"]
[users]
placement = "contiguous"
[[user]]
name = "first"
nodes = 32
[user.traffic]
pattern = "uniform"
load = {load}
packet_flits = 4
[[user]]
name = "second"
nodes = 32
[user.traffic]
{second}
[measure]
warmup = 20_000
cycles = 20_000
[sweep]
"users.placement" = {placements}
"users.isolation" = {isolations}
"users.alone" = ["", "first"]
"""


def run(kasuri: str, network: str, second: str, load: float, out: pathlib.Path) -> list[dict[str, Any]]:
    """Run all cases of a network and of a second user."""
    shape, routing = NETWORKS[network]
    lists = {"placements": json.dumps(PLACEMENTS), "isolations": json.dumps(ISOLATIONS)}
    folder = out / f"{network}-{second}"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "experiment.toml"
    file.write_text(EXPERIMENT.format(network=shape, routing=routing, second=SECOND[second], load=load, **lists))
    done = subprocess.run(  # noqa: S603 - the command that the caller names
        [kasuri, "run", str(file), "--out", str(folder / "runs"), "--format", "json"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{file}: {done.stderr}")
    return [row | {"folder": folder / "runs"} for row in json.loads(done.stdout)["runs"]]


def limit(row: dict[str, Any]) -> str:
    """Name the channel that is busiest, what it carries, and what its capacity leaves of the first user's throughput.

    The channel carries a fraction of its capacity; were it full, the throughput of those whose packets cross it could be greater by that
    factor, no more, with these ways and this mix of packets.
    """
    found = list(row["folder"].rglob(f"{row['key']}*channel_utilisation.npy"))
    if not found:
        return "no channel is known"
    busy = numpy.load(found[0])[2 * row["terminals"] :]
    channel = int(busy.argmax())
    first = row["users"][0]["accepted_throughput"]
    name = f"channel {channel + 2 * row['terminals']}"
    return f"{name} is busy {busy[channel]:.3f}; full it bounds the first user to {first / busy[channel]:.3f}"


def cases(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Compare each case with the first user alone, without isolation, at the same terminals."""
    alone = {row["users.placement"]: row["users"][0] for row in rows if row["users.alone"] and row["users.isolation"] == "none"}
    compared = []
    for row in rows:
        if row["users.alone"]:
            continue
        first, solo = row["users"][0], alone[row["users.placement"]]
        kept = first["accepted_throughput"] / solo["accepted_throughput"]
        latency = first["packet_latency_mean"]
        compared.append(
            {
                "placement": row["users.placement"],
                "isolation": row["users.isolation"],
                "kept": kept,
                "slowdown": latency / solo["packet_latency_mean"] if latency else None,
                "second": row["users"][1]["accepted_throughput"],
                "foreign": first["foreign_packets"],
                "limit": limit(row) if kept < KEPT and row["users.isolation"] == ISOLATIONS[-1] else "",
            }
        )
    return compared


def table(answers: dict[tuple[str, str], list[dict[str, Any]]]) -> str:
    """Write the cases as a table in Markdown."""
    lines = ["| network | second user | placement | isolation | throughput kept | latency, times | foreign packets | limit |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for (network, second), compared in answers.items():
        for case in compared:
            slow = "-" if case["slowdown"] is None else f"{case['slowdown']:.2f}"
            cells = (network, second, case["placement"], case["isolation"], f"{case['kept']:.3f}", slow, case["foreign"], case["limit"])
            lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def draw(answers: dict[tuple[str, str], list[dict[str, Any]]], path: pathlib.Path) -> None:
    """Draw what is left of the first user's throughput."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "kasuri"
    figure, axes = plt.subplots(len(SECOND), len(NETWORKS), figsize=(11, 5), sharey=True, squeeze=False)
    for (network, second), compared in answers.items():
        axis = axes[list(SECOND).index(second)][list(NETWORKS).index(network)]
        for number, isolation in enumerate(ISOLATIONS):
            kept = [case["kept"] for case in compared if case["isolation"] == isolation]
            axis.bar([place + 0.27 * (number - 1) for place in range(len(kept))], kept, 0.25, label=isolation)
        axis.axhline(KEPT, color="black", linewidth=0.6, linestyle=":")
        axis.set_title(f"{network}, beside {second}", fontsize=9)
        axis.set_xticks(range(len(PLACEMENTS)), PLACEMENTS, fontsize=7)
        axis.set_ylim(0, 1.1)
    axes[0][0].set_ylabel("throughput kept")
    axes[0][0].legend(fontsize=7, loc="lower left")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    """Run the study and judge the fat tree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kasuri", default="kasuri", help="the command")
    parser.add_argument("--load", type=float, default=0.3, help="the first user's load")
    parser.add_argument("--out", type=pathlib.Path, help="keep runs, table and plot in this folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = arguments.out or pathlib.Path(scratch)
        pairs = [(network, second) for network in NETWORKS for second in SECOND]
        answers = {pair: cases(run(arguments.kasuri, *pair, arguments.load, out)) for pair in pairs}
        text = table(answers)
        sys.stdout.write(text)
        if arguments.out:
            (out / "interference.md").write_text(text)
            draw(answers, out / "interference.svg")
    judged = [case for (network, _), all_cases in answers.items() if network == "fat-tree" for case in all_cases]
    missed = [case for case in judged if case["isolation"] == ISOLATIONS[-1] and case["kept"] < KEPT]
    for case in missed:
        sys.stderr.write(f"fat tree, {case['placement']}: {case['kept']:.3f} of the throughput is left (>= {KEPT})\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
