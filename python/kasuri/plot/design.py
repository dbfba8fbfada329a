"""Plots of the output of `kasuri design`; ``python -m kasuri.plot.design FILE`` reads its JSON from standard input."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kasuri.plot import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def design(answer: Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Draw the answer of ``kasuri design --format json``.

    Parameters
    ----------
    answer : mapping
        With ``designs``: price of each topology over its terminals, as bars; the part above the budget is hatched. With
        ``largest``: terminals over the ports of a router, a curve for each topology.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.
    """
    return _sizes(answer["largest"], ax) if "largest" in answer else _prices(answer, ax)


def _sizes(instances: Sequence[Mapping[str, Any]], ax: Axes | None) -> Axes:
    ax = ax or style.new_axes(7.2, 4.8)
    families = list(dict.fromkeys(instance["family"] for instance in instances))
    for number, family in enumerate(families):
        curve = [(row["ports_at_most"], row["terminals"]) for row in instances if row["family"] == family]
        # Colours come round again; then the line differs.
        again = number // len(style.COLOURS)
        ax.plot(
            *zip(*curve, strict=True),
            label=family,
            color=style.COLOURS[number % len(style.COLOURS)],
            linestyle=("-", "--")[again % 2],
            marker=style.MARKERS[number % len(style.MARKERS)],
            markersize=3,
            linewidth=1.2,
        )
    ax.set(xlabel="ports of a router", ylabel="terminals, at most", yscale="log")
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter("{x:.0f}")
    ax.set_xlim(left=min((instance["ports_at_most"] for instance in instances), default=1))
    ax.legend(frameon=False, fontsize="small")
    style.tidy(ax)
    return ax


def _prices(answer: Mapping[str, Any], ax: Axes | None) -> Axes:
    designs = sorted(answer["designs"], key=lambda row: row["price"] / row["terminals"], reverse=True)
    ax = ax or style.new_axes(7.2, 1.2 + 0.32 * len(designs))
    budget = answer.get("budget")
    bars = ax.barh([row["network"] for row in designs], [row["price"] / row["terminals"] for row in designs], color=style.COLOURS[0])
    for bar, row in zip(bars, designs, strict=True):
        if budget is not None and row["price"] > budget:
            bar.set(hatch="///", facecolor="none", edgecolor=style.COLOURS[0])
        note = f" {row['routers']} routers, all-to-all {row['all_to_all']:.2f}"
        ax.annotate(note, (bar.get_width(), bar.get_y() + bar.get_height() / 2), va="center", fontsize="x-small", color=style.INK)
    ax.set_xlabel(f"price of a terminal's share ({answer['currency']})")
    ax.margins(x=0.35)
    style.tidy(ax)
    return ax


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw to the file that is named; give the exit status: 0 done, 2 bad input."""
    path = (sys.argv[1:] if arguments is None else list(arguments))[0]
    try:
        saved = style.save(design(json.load(sys.stdin)), path)
    except (OSError, ValueError) as error:
        print(f"kasuri: {path}: {error}", file=sys.stderr)
        return 2
    print(f"kasuri: wrote {saved}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
