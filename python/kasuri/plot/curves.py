"""Curves over the table of runs, latency over load above all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kasuri import _columns
from kasuri.plot import style
from kasuri.plot.table import rows_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kasuri.results import Results

#: Statuses whose latency is no steady-state mean: it grows with the length of the run.
UNSTEADY = frozenset({"saturated", "max_cycles", "deadlock", "failed"})
#: Answers that lose their meaning beyond saturation, by the beginning of their names.
_LATENCIES = _columns.LATENCIES

# Student's t, 97.5 %, by degrees of freedom 1 to 30 (then the normal distribution's 1.96): half-widths over repeated seeds.
_STUDENT = (
    (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
    + (2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086)
    + (2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)
)


@dataclass(frozen=True)
class Spot:
    """One place of a curve: the mean over its runs, the half-width of the 95 % interval, and whether it is steady."""

    x: float
    y: float
    half_width: float
    steady: bool


def latency_load(table: Any, *, x: str = "traffic.load", series: str | Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw mean packet latency over injection rate, the field's usual curve; see :func:`curves`.

    Parameters
    ----------
    table : Results or any tidy table
        One row per run.
    x : str, default "traffic.load"
        The column of the abscissa; ``"accepted_throughput_mean"`` shows latency over throughput.
    series : str or sequence of str, optional
        The columns whose values make curves of their own; without it, all that vary.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.
    """
    return curves(table, x=x, y="packet_latency_mean", series=series, ax=ax)


def curves(
    table: Any,
    *,
    x: str,
    y: str,
    series: str | Sequence[str] | None = None,
    band: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw one column over another, a curve for each value of ``series``.

    Runs that differ in their seed alone are averaged. The band is the 95 % confidence interval: of the run where there is one
    (``*_ci95``), over the seeds where there are several. Places beyond saturation have hollow markers and dashed lines: a
    latency there grows with the length of the run and is no property of the network; where they would squash the
    rest of the figure, the first stands as a triangle at its upper edge.

    Parameters
    ----------
    table : Results or any tidy table
        One row per run.
    x, y : str
        The columns to draw, for example ``"traffic.load"`` and ``"accepted_throughput_mean"``.
    series : str or sequence of str, optional
        The columns whose values make curves of their own; without it, all dotted columns that vary, seeds excepted.
    band : bool, default True
        Draw the confidence intervals.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Raises
    ------
    KeyError
        A column is not in the table.

    Examples
    --------
    >>> rows = [{"traffic.load": load, "packet_latency_mean": 20 + 30 * load} for load in (0.1, 0.2, 0.3)]
    >>> ax = curves(rows, x="traffic.load", y="packet_latency_mean")
    >>> ax.get_xlabel()
    'injection rate (flits/terminal/cycle)'
    """
    rows = rows_of(table)
    split = _series_columns(rows, x, series)
    for name in (x, y, *split):
        if rows and name not in _columns.names(rows):
            raise KeyError(f"no column `{name}`; there are {', '.join(_columns.names(rows))}")
    ax = style.new_axes() if ax is None else ax
    ceiling = _ceiling(rows, y)
    for number, (name, part) in enumerate(_groups(rows, split)):
        _draw_curve(ax, _spots(part, x, y), number, name, ceiling, band)
    ax.set_xlabel(_columns.label(x))
    ax.set_ylabel(_columns.label(y))
    if ceiling is not None:
        ax.set_ylim(0, ceiling)
    elif all(_columns.number(row.get(y)) >= 0 for row in rows if not math.isnan(_columns.number(row.get(y)))):
        ax.set_ylim(bottom=0)
    if split:
        ax.legend(title=", ".join(split), frameon=False, fontsize="small", title_fontsize="small")
    style.tidy(ax)
    return ax


def experiment_plots(results: Results) -> list[tuple[str, Axes]]:
    """Draw the plots that the experiment file asks for (``[[plot]]``); without any, latency over the first swept key.

    Parameters
    ----------
    results : Results
        Results in a folder.

    Returns
    -------
    list of (str, matplotlib.axes.Axes)
        A file name without ending, and the axes.
    """
    plots = []
    for number, wish in enumerate(wishes(results), start=1):
        ax = curves(results, x=wish["x"], y=wish["y"], series=wish.get("series"))
        ax.set_title(wish.get("title", ""), color=style.INK, loc="left")
        plots.append((f"{number:02}-{wish['y']}-over-{wish['x']}".replace(".", "-"), ax))
    return plots


def wishes(results: Results) -> list[dict[str, Any]]:
    """Give the ``[[plot]]`` tables that can be drawn from these rows, or sensible ones where the experiment has none."""
    asked = results.input.get("plot", [])
    columns = set(results.columns)
    if asked:
        return [wish for wish in asked if {wish.get("x"), wish.get("y")} <= columns]
    numeric = [key for key in results.swept if key != "measure.seed" and results.column(key).dtype != object]
    if not numeric:
        return []
    x = "traffic.load" if "traffic.load" in numeric else numeric[0]
    closed = any(row.get("completion_time") is not None for row in results)
    return [{"x": x, "y": name} for name in (["completion_time"] if closed else ["packet_latency_mean", "accepted_throughput_mean"])]


def _series_columns(rows: list[dict[str, Any]], x: str, series: str | Sequence[str] | None) -> list[str]:
    if series is not None:
        return [series] if isinstance(series, str) else list(series)
    keys = [name for name in _columns.names(rows) if _columns.is_input(name) and name not in (x, "measure.seed")]
    if x != "traffic.load" and not _columns.is_input(x):
        # An answer as abscissa (latency over throughput): the load moves along the curve.
        keys = [name for name in keys if name != "traffic.load"]
    return [name for name in keys if len({str(row.get(name)) for row in rows}) > 1]


def _groups(rows: Iterable[dict[str, Any]], split: Sequence[str]) -> list[tuple[str, list[dict[str, Any]]]]:
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(_name(row.get(column)) for column in split), []).append(row)
    return [(", ".join(values), part) for values, part in groups.items()]


def _name(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_name(part) for part in value) + "]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _spots(rows: Iterable[dict[str, Any]], x: str, y: str) -> list[Spot]:
    """Average the runs of each place (they differ in their seed), in ascending order of x."""
    # Runs are gathered by their injection rate where x is an answer, since answers differ from seed to seed.
    anchor = x if _columns.is_input(x) or not any("traffic.load" in row for row in rows) else "traffic.load"
    places: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        if not math.isnan(_columns.number(row.get(x))) and not math.isnan(_columns.number(row.get(y))):
            places.setdefault(row.get(anchor), []).append(row)
    spots = [_spot(part, x, y) for part in places.values()]
    return sorted(spots, key=lambda spot: spot.x) if _columns.is_input(x) else spots


def _spot(rows: list[dict[str, Any]], x: str, y: str) -> Spot:
    values = [_columns.number(row.get(y)) for row in rows]
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        half_width = _columns.number(rows[0].get(y.removesuffix("_mean") + "_ci95")) if y.endswith("_mean") else math.nan
    else:
        variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
        student = _STUDENT[len(values) - 2] if len(values) - 2 < len(_STUDENT) else 1.96
        half_width = student * math.sqrt(variance / len(values))
    place = math.fsum(_columns.number(row.get(x)) for row in rows) / len(rows)
    return Spot(place, mean, half_width, not any(row.get("status") in UNSTEADY for row in rows))


def _ceiling(rows: list[dict[str, Any]], y: str) -> float | None:
    """Where to cut the ordinate of a latency, so that what lies beyond saturation does not squash the steady part."""
    if not y.startswith(_LATENCIES):
        return None
    steady = [_columns.number(row.get(y)) for row in rows if row.get("status") not in UNSTEADY]
    unsteady = [_columns.number(row.get(y)) for row in rows if row.get("status") in UNSTEADY]
    highest = max((value for value in steady if not math.isnan(value)), default=math.nan)
    if math.isnan(highest) or not any(value > 1.3 * highest for value in unsteady):
        return None
    return 1.3 * highest


def _draw_curve(ax: Axes, spots: list[Spot], number: int, name: str, ceiling: float | None, band: bool) -> None:
    colour = style.COLOURS[number % len(style.COLOURS)]
    marker = style.MARKERS[number % len(style.MARKERS)]
    steady = [spot for spot in spots if spot.steady]
    unsteady = [spot for spot in spots if not spot.steady]
    line: dict[str, Any] = {"color": colour, "linewidth": 1.6}
    ax.plot([spot.x for spot in steady], [spot.y for spot in steady], marker=marker, markersize=4, label=name or None, **line)
    if not steady and name:
        ax.plot([], [], marker=marker, markersize=4, markerfacecolor="none", label=name, linestyle="--", **line)
    tail = steady[-1:] + unsteady
    ax.plot([spot.x for spot in tail], [spot.y for spot in tail], linestyle="--", alpha=0.8, **line)
    for spot in unsteady:
        outside = ceiling is not None and spot.y > ceiling
        height = min(spot.y, math.inf if ceiling is None else ceiling)
        shape = "^" if outside else marker
        ax.plot([spot.x], [height], shape, color=colour, markersize=5, markerfacecolor="none", clip_on=False, zorder=3)
        if outside:
            break  # one triangle says it; those of the higher loads would cover other curves'
    known = [spot for spot in steady if not math.isnan(spot.half_width)]
    if band and known:
        below = [spot.y - spot.half_width for spot in known]
        above = [spot.y + spot.half_width for spot in known]
        ax.fill_between([spot.x for spot in known], below, above, color=colour, alpha=0.2, linewidth=0)
