"""Draws the README's picture from examples/gallery/adaptive-mesh.toml: `python docs/images/first_picture.py` writes first-picture.svg."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt

import kasuri

HERE = Path(__file__).resolve().parent
EXPERIMENT = HERE.parent.parent / "examples" / "gallery" / "adaptive-mesh.toml"
#: Runs that are kept here are not computed again.
OUT = HERE.parent / "_build" / "gallery" / EXPERIMENT.stem
#: The highest load of the sweep that both routings of the maps sustain.
LOAD = 0.12
ROUTINGS = ("dimension-order", "minimal-adaptive")


def main() -> None:
    """Run what is missing and draw."""
    results = kasuri.run(EXPERIMENT, out=OUT)
    figure = plt.figure(figsize=(13, 4.4), layout="constrained")
    # Apart, so that the legend takes no room from the maps.
    left, right = figure.subfigures(1, 2, width_ratios=(1, 2))
    curves, maps = left.subplots(), right.subplots(1, 2)
    kasuri.plot.latency_load(results, series="routing.algorithm", ax=curves)
    curves.set_title("8x8 mesh, transpose")
    chosen = [next(row for row in results if row["routing.algorithm"] == name and row["traffic.load"] == LOAD) for name in ROUTINGS]
    loads = [results.vector(row, "channel_utilisation") for row in chosen]
    highest = max(float(load.max()) for load in loads)
    for name, row, load, ax in zip(ROUTINGS, chosen, loads, maps, strict=True):
        kasuri.plot.draw_network(results.network(row), utilisation=load, highest=highest, ax=ax)
        ax.set_title(f"{name}, load {LOAD}")
    figure.savefig(HERE / "first-picture.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
