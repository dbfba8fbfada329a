"""Draws how the flit engine computes: `python docs/images/router_cycle.py` writes router-cycle.svg and windows.svg beside itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HERE = Path(__file__).resolve().parent
#: Name of a step, what it does, and whether it runs once per flit or once per packet.
STEPS = (
    ("arrivals", "flits enter their buffers;\na new head asks for a route", "flit"),
    ("credits", "free places downstream\nare counted", "flit"),
    ("VC allocation", "heads get free\nvirtual channels", "packet"),
    ("routing", "new heads learn their output port\nand the virtual channels there", "packet"),
    ("switch allocation", "outputs grant, inputs accept", "flit"),
    ("traversal", "a flit is posted downstream,\na credit upstream", "flit"),
)
COLOURS = {"flit": "#d7e8f7", "packet": "#fbe3c8"}
EDGE = "#33414e"


def box(ax: Axes, left: float, bottom: float, width: float, height: float, colour: str) -> None:
    """A box with round corners."""
    ax.add_patch(FancyBboxPatch((left, bottom), width, height, boxstyle="round,pad=0.02", facecolor=colour, edgecolor=EDGE))


def arrow(ax: Axes, begin: tuple[float, float], end: tuple[float, float], curve: float = 0.0, colour: str = EDGE) -> None:
    """An arrow from one place to another."""
    style = f"arc3,rad={curve}"
    ax.add_patch(FancyArrowPatch(begin, end, arrowstyle="-|>", mutation_scale=14, connectionstyle=style, color=colour, linewidth=1.4))


def router_cycle() -> None:
    """The steps of a router in a cycle, one below the other."""
    figure, ax = plt.subplots(figsize=(6.4, 6.2), layout="constrained")
    for place, (name, does, once) in enumerate(STEPS):
        bottom = -place
        box(ax, 0, bottom, 4.4, 0.7, COLOURS[once])
        ax.text(0.12, bottom + 0.35, name, va="center", weight="bold", size=11)
        ax.text(1.95, bottom + 0.35, does, va="center", size=9)
        if place:
            arrow(ax, (2.2, bottom + 0.98), (2.2, bottom + 0.72))
    arrow(ax, (4.44, 0.35), (4.44, 0.35 - 5), curve=-0.3, colour="#b5432a")
    ax.text(5.3, -2.15, "a flit that is\npredicted rightly\npasses on at once", color="#b5432a", size=9, va="center", ha="left")
    for place, once in enumerate(COLOURS):
        box(ax, 0.02 + 1.8 * place, -5.75, 0.3, 0.22, COLOURS[once])
        ax.text(0.44 + 1.8 * place, -5.64, f"once per {once}", va="center", size=10)
    ax.set(xlim=(-0.1, 6.75), ylim=(-5.95, 0.9))
    ax.axis("off")
    figure.savefig(HERE / "router-cycle.svg", metadata={"Date": None})
    plt.close(figure)


def windows() -> None:
    """Blocks that run through two windows of three cycles, one after the other; a flit posted in the first arrives in the second."""
    figure, ax = plt.subplots(figsize=(5.6, 4.2), layout="constrained")
    rows = ("terminals", "routers, block 0", "routers, block 1", "routers, block 2")
    for window in range(2):
        for row, name in enumerate(rows):
            colour = "#e4efdc" if row == 0 else "#d7e8f7"
            for cycle in range(3):
                box(ax, 4 * window + 1.15 * cycle, -row, 1.0, 0.62, colour)
                ax.text(4 * window + 1.15 * cycle + 0.5, -row + 0.31, str(3 * window + cycle), ha="center", va="center", size=10)
            if window == 0:
                ax.text(-0.2, -row + 0.31, name, ha="right", va="center", size=10)
        ax.text(4 * window + 1.65, 0.95, f"window {window + 1}", ha="center", weight="bold", size=11)
        ax.text(4 * window + 1.65, -3.45, "row after row,\neach from left to right", ha="center", va="top", size=9, color=EDGE)
    arrow(ax, (2.85, -0.69), (4.45, -1.7), curve=-0.15, colour="#b5432a")
    ax.text(3.66, -0.62, "a flit", color="#b5432a", size=9, ha="center")
    ax.set(xlim=(-2.4, 7.6), ylim=(-4.3, 1.4))
    ax.axis("off")
    figure.savefig(HERE / "windows.svg", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "kasuri"
    router_cycle()
    windows()
