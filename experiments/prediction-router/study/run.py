#!/usr/bin/env python3
"""Predictors side by side on networks that the paper does not look at: hit rates and latencies, as tables and a plot.

    python experiments/prediction-router/study/run.py --kasuri .venv/bin/kasuri --out out/prediction-study [--page]

For each network a file beside this one is run with four matrices of traffic, which are written beside a copy of it: ``uniform``;
``next``, where terminal i sends to i + 1; ``local``, where the weight of a destination falls with the square of the distance in
terminal numbers; ``hot``, where four terminals get four times the traffic of the others. The tables go to standard output. With
``--page`` they replace those of ``docs/explanation/papers/prediction-study.md``, and the plot beside it is drawn anew. What the folder holds is
not computed again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "docs" / "explanation" / "papers" / "prediction-study.md"

NETWORKS = {
    "mesh": ("8x8 mesh", 64),
    "torus": ("8x8 torus", 64),
    "butterfly": ("4-ary 3-stage butterfly", 64),
    "full-mesh": ("full mesh, 16 routers", 64),
    "tree-36": ("tree of 36-port switches", 324),
    "tree-40": ("tree of 40-port switches", 400),
    "tree-64": ("tree of 64-port switches", 1024),
}
PATTERNS = ["uniform", "next", "local", "hot"]
PREDICTORS = ["static-straight", "up-priority", "static-xy", "latest-port", "finite-context", "sampled-pattern", "oracle"]
LOADS = [0.02, 0.2]


def weight(pattern: str, terminals: int, source: int, destination: int) -> float:
    """What a terminal sends to another, in any unit."""
    if source == destination:
        return 0
    if pattern == "next":
        return float(destination == (source + 1) % terminals)
    if pattern == "local":
        return round(1 / (source - destination) ** 2, 6)
    hot = pattern == "hot" and destination % (terminals // 4) == terminals // 8
    return 4 if hot else 1


def write_matrices(folder: Path, terminals: int) -> None:
    """Write the matrices that are not there yet."""
    for pattern in PATTERNS:
        path = folder / f"{pattern}.txt"
        if not path.exists():
            rows = (" ".join(f"{weight(pattern, terminals, source, other):g}" for other in range(terminals)) for source in range(terminals))
            path.write_text("\n".join(rows) + "\n")


Key = tuple[str, str, float, str]


def run(kasuri: str, out: Path) -> dict[Key, dict]:
    """All rows, by network, pattern, load and predictor."""
    rows: dict[Key, dict] = {}
    for network, (_, terminals) in NETWORKS.items():
        folder = out / network
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / f"{network}.toml", folder / "experiment.toml")
        write_matrices(folder, terminals)
        command = [kasuri, "run", str(folder / "experiment.toml"), "--out", str(folder / "runs"), "--format", "json"]
        answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        for row in json.loads(answer.stdout)["runs"]:
            rows[network, row["traffic.path"].removesuffix(".txt"), row["traffic.load"], row["router.predictor"]] = row
    return rows


def table(rows: dict[Key, dict], value) -> str:
    """A line for each network and pattern, a column for each predictor."""
    lines = ["| network | traffic | " + " | ".join(PREDICTORS) + " |", "|---" * (2 + len(PREDICTORS)) + "|"]
    for network, (name, _) in NETWORKS.items():
        for pattern in PATTERNS:
            cells = [value(rows, network, pattern, predictor) for predictor in PREDICTORS]
            lines.append(f"| {name} | {pattern} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def hit_rate(load: float):
    """Hits over routers crossed, in percent."""

    def cell(rows: dict[Key, dict], network: str, pattern: str, predictor: str) -> str:
        row = rows.get((network, pattern, load, predictor))
        return "" if row is None else f"{100 * row['prediction_hit_rate']:.0f}"

    return cell


def reduction(load: float):
    """How much shorter the mean packet latency is than without prediction, in percent."""

    def cell(rows: dict[Key, dict], network: str, pattern: str, predictor: str) -> str:
        row, without = rows.get((network, pattern, load, predictor)), rows[network, pattern, load, "none"]
        if row is None or row["status"] != "converged" or without["status"] != "converged":
            return ""
        return f"{100 * (1 - row['packet_latency_mean'] / without['packet_latency_mean']):.0f}"

    return cell


def tables(rows: dict[Key, dict]) -> dict[str, str]:
    """The tables by their names in the page."""
    parts = {}
    for load in LOADS:
        parts[f"hit-rate-{load}"] = table(rows, hit_rate(load))
        parts[f"reduction-{load}"] = table(rows, reduction(load))
    return parts


def draw(rows: dict[Key, dict], path: Path) -> None:
    """Hit rates under uniform and local traffic, a group of bars for each network."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "kasuri"
    figure, axes = plt.subplots(2, 1, figsize=(9, 6), sharex=True, layout="constrained")
    for axis, pattern in zip(axes, ["uniform", "local"], strict=True):
        for place, predictor in enumerate(PREDICTORS):
            found = [rows.get((network, pattern, LOADS[0], predictor)) for network in NETWORKS]
            bars = [(index, row["prediction_hit_rate"]) for index, row in enumerate(found) if row is not None]
            positions = [index + (place - 3) * 0.12 for index, _ in bars]
            axis.bar(positions, [rate for _, rate in bars], width=0.11, label=predictor)
        axis.set_title(f"{pattern} traffic, load {LOADS[0]}", fontsize="medium")
        axis.set_ylabel("hits over routers crossed")
        axis.set_ylim(0, 1)
    axes[1].set_xticks(range(len(NETWORKS)), [name for name, _ in NETWORKS.values()], rotation=20, ha="right", fontsize="small")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, fontsize="small")
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    """Run what is missing and show it."""
    parser = argparse.ArgumentParser(description="Predictors side by side on several networks.")
    parser.add_argument("--kasuri", default="kasuri", help="the kasuri command")
    parser.add_argument("--out", type=Path, default=Path("out/prediction-study"), help="where the runs are kept")
    parser.add_argument("--page", action="store_true", help="write the tables and the plot of the documentation anew")
    arguments = parser.parse_args()
    rows = run(arguments.kasuri, arguments.out)
    parts = tables(rows)
    if not arguments.page:
        print("\n\n".join(f"{name}\n\n{text}" for name, text in parts.items()))
        return 0
    page = PAGE.read_text()
    for name, text in parts.items():
        begin = f"<!-- {name} -->\n"
        before, found, after = page.partition(begin)
        _, end, rest = after.partition("<!-- end -->")
        if not (found and end):
            raise SystemExit(f"{PAGE}: no table `{name}`")
        page = f"{before}{begin}\n{text}\n\n{end}{rest}"
    PAGE.write_text(page)
    draw(rows, PAGE.with_suffix(".svg"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
