"""The plots that an experiment asks for (``[[plot]]``), or sensible ones where it asks for none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kasuri import _columns
from kasuri.errors import ArgumentError, ResultsError
from kasuri.plot import spots, style
from kasuri.plot.curves import View, as_names, check_columns, cut, draw, units_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kasuri.results import Results

#: Of more curves than these on one pair of axes those keys that no series names become small multiples.
MAX_TOGETHER = 12
#: The largest number of small multiples that can be compared.
MAX_PANELS = 12


@dataclass(frozen=True)
class PlotRequest:
    """One plot: a ``[[plot]]`` of the file, with one column along the ordinate."""

    x: str
    y: str
    series: tuple[str, ...] = ()
    title: str = ""
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Drawing:
    """The result of a wish: axes with a file name and notes for the reader, or the reason for their absence."""

    name: str
    wish: PlotRequest
    ax: Axes | None = None
    notes: tuple[str, ...] = ()
    problem: str = ""


def experiment_plots(results: Results) -> list[tuple[str, Axes]]:
    """Draw the plots that the experiment file asks for (``[[plot]]``); without any, latency over the first swept key.

    Seeds are averaged. Every other swept key that a plot does not name sets curves apart, too; where that makes more than twelve
    curves, small multiples.

    Parameters
    ----------
    results : Results
        Results in a folder.

    Returns
    -------
    list of (str, matplotlib.axes.Axes)
        A file name without ending, and the axes.

    Raises
    ------
    ResultsError
        A plot needs a missing column, or more curves than can be distinguished; the keys are named.
    """
    found = drawings(results)
    for drawing in found:
        if drawing.problem:
            raise ResultsError(drawing.problem)
    return [(drawing.name, drawing.ax) for drawing in found if drawing.ax is not None]


def drawings(results: Results, size: tuple[float, float] = (6.4, 4.0)) -> list[Drawing]:
    """Draw all plots that can be drawn, and say of the others why not; `size` in inches is that of the axes with their labels."""
    found: list[Drawing] = []
    for number, wish in enumerate(wishes(results), start=1):
        name = f"{number:02}-{wish.y}-over-{wish.x}".replace(".", "-").replace("/", "-")
        try:
            found += _draw(results, wish, name, size)
        except (KeyError, ValueError) as error:
            found.append(Drawing(name, wish, problem=f"plot {number}: {error}"))
    return found


def wishes(results: Results) -> list[PlotRequest]:
    """Give the plots of the experiment file, or sensible ones where it has none."""
    asked = [wish for table in results.input.get("plot", []) for wish in _requests_of(table)]
    if asked:
        return asked
    keys = [key for key in results.swept if key not in spots.SEEDS]
    numeric = [key for key in keys if results.column(key).dtype != object]
    if not keys:
        return []
    x = "traffic.load" if "traffic.load" in numeric else (numeric or keys)[0]
    searched = any(row.get("saturation_load") is not None for row in results) and x != "traffic.load"
    open_loop = ["saturation_load"] if searched else ["packet_latency_mean", "accepted_throughput_mean"]
    answers = ["completion_time"] if is_closed(results) else open_loop
    there = [name for name in answers if any(row.get(name) is not None for row in results)]
    return [PlotRequest(x, name, log_x=_is_wide(results, x), log_y=is_closed(results) and _is_wide(results, name)) for name in there]


def is_closed(results: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the experiment runs a closed workload, which ends."""
    return any(row.get("completion_time") is not None for row in results)


def _is_wide(results: Results, name: str) -> bool:
    """Return whether a column of positive numbers spans so much that a linear axis would hide most of it."""
    numbers = [value for row in results if not math.isnan(value := _columns.number(row.get(name)))]
    return bool(numbers) and min(numbers) > 0 and max(numbers) >= 50 * min(numbers)


def _requests_of(table: Mapping[str, Any]) -> list[PlotRequest]:
    series, title = tuple(as_names(table.get("series"))), str(table.get("title", ""))
    log_x, log_y = bool(table.get("log_x", False)), bool(table.get("log_y", False))
    return [PlotRequest(str(table["x"]), y, series, title, log_x, log_y) for y in as_names(table["y"])]


def _draw(results: Results, wish: PlotRequest, name: str, size: tuple[float, float]) -> list[Drawing]:
    rows = results.rows
    check_columns(rows, wish.x, wish.y, wish.series)
    own = spots.curve_keys(rows, wish.x, wish.series)
    keys = [*wish.series, *own]
    panels = _panel_keys(rows, wish, own)
    inside = [key for key in keys if key not in panels]
    parts = spots.split(rows, panels)
    if len(parts) > MAX_PANELS or any(len(spots.split(part, inside)) > style.MAX_CURVES for _, part in parts):
        count = len(spots.split(rows, keys))
        hint = "sweep less, or draw a part with kasuri.plot.curves(results.where(...))"
        raise ArgumentError(f"{', '.join(keys)} vary besides {wish.x} and make {count} curves, too many to distinguish: {hint}")
    names = dict.fromkeys(spots.label(values) for values, _ in spots.split(rows, inside))
    view = View(
        wish.x,
        wish.y,
        log_x=wish.log_x,
        log_y=wish.log_y,
        ceiling=cut(rows, wish.y),
        categories=spots.categories(rows, wish.x),
        looks={one: number for number, one in enumerate(names)},
        units=units_of(rows, wish.x, wish.y),
        missing=spots.missing_of(results),
    )
    notes = _notes(rows, wish, own, len(spots.missing_of(results)))
    found = []
    for number, (values, part) in enumerate(parts, start=1):
        ax = draw(part, inside, view, size=size)
        where = ", ".join(f"{key} = {spots.label([value])}" for key, value in zip(panels, values, strict=True))
        style.title(ax, ": ".join(filter(None, [wish.title, where])))
        found.append(Drawing(f"{name}-{number:02}" if panels else name, wish, ax, notes))
    _share_limits([drawing.ax for drawing in found if drawing.ax is not None])
    return found


def _panel_keys(rows: Sequence[Mapping[str, Any]], wish: PlotRequest, own: Sequence[str]) -> list[str]:
    """Choose keys that no series names for small multiples, the fewest that leave each with few curves."""
    for count in range(len(own) + 1):
        panels = list(own[:count])
        inside = [*wish.series, *own[count:]]
        if all(len(spots.split(part, inside)) <= MAX_TOGETHER for _, part in spots.split(rows, panels)):
            return panels
    # There are many named series, as wished.
    return list(own)


def _notes(rows: Sequence[Mapping[str, Any]], wish: PlotRequest, own: Sequence[str], missing: int) -> tuple[str, ...]:
    notes = []
    if wish.series and own:
        notes.append(f"Also set apart by what the plot does not name: {', '.join(own)}.")
    seeds = {tuple(spots.token(row.get(key)) for key in spots.SEEDS) for row in rows}
    if len(seeds) > 1:
        notes.append(f"Means over {len(seeds)} seeds.")
    if missing:
        runs, place = ("run is", "its place") if missing == 1 else ("runs are", "their places")
        notes.append(f"{missing} planned {runs} missing; no line crosses {place}.")
    return tuple(notes)


def _share_limits(panels: Sequence[Axes]) -> None:
    if len(panels) < 2:
        return
    across, up = zip(*((ax.get_xlim(), ax.get_ylim()) for ax in panels), strict=True)
    for ax in panels:
        ax.set_xlim(min(low for low, _ in across), max(high for _, high in across))
        ax.set_ylim(min(low for low, _ in up), max(high for _, high in up))
