"""Curves over the table of runs, latency over load above all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kasuri import _columns
from kasuri.errors import ArgumentError, ColumnError
from kasuri.plot import fit, spots, style, tips
from kasuri.plot.spots import Curve, Spot, State
from kasuri.plot.table import rows_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

#: The legend's words for saturation where the ordinate is a latency.
NO_LATENCY = "hollow triangle: saturated, no latency"
#: The words of the legend for a state.
STATE_WORDS = {
    State.LIMIT: "half-filled: max_cycles reached, estimate",
    State.SATURATED: "hollow, dotted: saturated",
    State.BROKEN: "cross: deadlock or failed",
}
# How its markers look.
_FILLS: dict[State, dict[str, Any]] = {
    State.STEADY: {},
    State.LIMIT: {"fillstyle": "bottom", "markerfacecoloralt": "none"},
    State.SATURATED: {"markerfacecolor": "none"},
    State.BROKEN: {"marker": "x"},
}


@dataclass(frozen=True)
class View:
    """The common view of several axes of one plot: abscissa, ordinate, scales, units, the cut of the ordinate, and the look of each curve.

    ``units`` are the factors and names of the units of both axes, ``missing`` the inputs of planned runs that are not there.
    """

    x: str
    y: str
    band: bool = True
    log_x: bool = False
    log_y: bool = False
    ceiling: float | None = None
    categories: Mapping[str, int] | None = None
    looks: Mapping[str, int] | None = None
    units: tuple[tuple[float, str], tuple[float, str]] | None = None
    missing: Sequence[Mapping[str, Any]] = ()


def latency_load(table: Any, *, x: str = "traffic.load", series: str | Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw mean packet latency over injection rate, the field's usual curve; see :func:`curves`.

    Parameters
    ----------
    table : Results or any tidy table
        One row per run.
    x : str, default "traffic.load"
        The column of the abscissa; ``"accepted_throughput_mean"`` shows latency over throughput.
    series : str or sequence of str, optional
        The columns that distinguish curves; without it, all that vary.
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
    log_x: bool = False,
    log_y: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw one column over another, a curve for each value of ``series`` and of every other key that varies.

    Runs that differ in ``measure.seed`` alone are averaged, nothing else: a key that varies and is neither ``x`` nor in ``series``
    sets curves apart, too. The band is the 95 % confidence interval: of the run where there is one (``*_ci95``), over the seeds where
    there are several. Places beyond saturation have hollow markers and dotted lines. A latency there grows with the length of the
    run instead of describing the network, so it is not drawn: a hollow triangle at the upper edge marks the first saturated place of
    a curve. Half-filled markers are runs that ended as ``max_cycles``: estimates. No line crosses a place with a run that is missing or has
    failed. Times are in the unit that suits them (ns, µs, ms, s). The legend is outside the axes.

    Parameters
    ----------
    table : Results or any tidy table
        One row per run.
    x, y : str
        The columns to draw, for example ``"traffic.load"`` and ``"accepted_throughput_mean"``. An ``x`` of words becomes places
        side by side.
    series : str or sequence of str, optional
        The columns that name the curves; without it, all keys that vary, seeds excepted.
    band : bool, default True
        Draw the confidence intervals.
    log_x, log_y : bool, default False
        Logarithmic axes.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Raises
    ------
    ColumnError
        A column is not in the table.
    ArgumentError
        No run has a number in ``y``, or there are more curves than can be distinguished; their keys are named.

    Examples
    --------
    >>> rows = [{"traffic.load": load, "packet_latency_mean": 20 + 30 * load} for load in (0.1, 0.2, 0.3)]
    >>> ax = curves(rows, x="traffic.load", y="packet_latency_mean")
    >>> ax.get_xlabel()
    'injection rate (flits/terminal/cycle)'
    """
    rows = rows_of(table)
    named = as_names(series)
    check_columns(rows, x, y, named)
    keys = [*named, *spots.curve_keys(rows, x, named)]
    count = len(spots.split(rows, keys))
    if count > style.MAX_CURVES:
        limit = f"a plot can distinguish {style.MAX_CURVES}"
        raise ArgumentError(f"{', '.join(keys)} make {count} curves, and {limit}; draw a part of the rows")
    return draw(rows, keys, View(x, y, band, log_x, log_y, missing=spots.missing_of(table)), ax)


def as_names(series: str | Sequence[str] | None) -> list[str]:
    """Give the columns that are named as series."""
    return [] if series is None else [series] if isinstance(series, str) else list(series)


def check_columns(rows: Sequence[Mapping[str, Any]], x: str, y: str, named: Sequence[str]) -> None:
    """Refuse columns that are not there, and an ordinate without numbers.

    Raises
    ------
    ColumnError
        A column is not in the table.
    ArgumentError
        No run has a number in ``y``.
    """
    there = _columns.names(rows)
    for name in (x, y, *named):
        if rows and name not in there:
            raise ColumnError(name, there)
    is_saturated = spots.is_latency(y) and any(spots.state(row) == State.SATURATED for row in rows)
    if rows and not is_saturated and all(math.isnan(_columns.number(row.get(y))) for row in rows):
        raise ArgumentError(f"no run has a number in `{y}`")


def draw(
    rows: Sequence[Mapping[str, Any]], keys: Sequence[str], view: View, ax: Axes | None = None, size: tuple[float, float] = (6.4, 4.0)
) -> Axes:
    """Draw one curve for each combination of the keys; see :func:`curves`."""
    grow = ax is None
    ax = style.new_axes(*size) if ax is None else ax
    places = spots.categories(rows, view.x) if view.categories is None else view.categories
    units = units_of(rows, view.x, view.y) if view.units is None else view.units
    found = [_in_units(curve, units) for curve in spots.curves_of(rows, view.x, view.y, keys, places, view.missing)]
    ceiling = cut(rows, view.y) if view.ceiling is None else view.ceiling
    ceiling = None if ceiling is None else ceiling / units[1][0]
    handles = []
    for number, curve in enumerate(found):
        look = style.identity((view.looks or {}).get(curve.name, number))
        handles.append(_draw_curve(ax, curve, look, ceiling, view, joined=places is None))
    _set_axes(ax, rows, view, ceiling, places)
    ax.set_xlabel(_columns.label(view.x, units[0][1]), parse_math=False)
    ax.set_ylabel(_columns.label(view.y, units[1][1]), parse_math=False)
    style.tidy(ax)
    fit.fit(ax)
    states = sorted({spot.state for curve in found for spot in curve.spots} - {State.STEADY})
    if keys or states:
        names = [curve.name for curve in found] if keys else []
        signs = [_sign(one, view.y) for one in states]
        heading = ", ".join(keys)
        words = [_state_words(one, view.y) for one in states]
        style.legend(ax, [*(handles if keys else []), *signs], [*names, *words], heading, grow=grow)
        if not grow:
            fit.fit(ax)  # the legend has taken room from the axes
    return ax


def units_of(rows: Sequence[Mapping[str, Any]], x: str, y: str) -> tuple[tuple[float, str], tuple[float, str]]:
    """Choose the units of both axes by the largest numbers along them."""
    numbers = [[abs(value) for row in rows if math.isfinite(value := spots.value_of(row, name))] for name in (x, y)]
    across, up = (_columns.scale(name, max(known, default=0.0)) for name, known in zip((x, y), numbers, strict=True))
    return across, up


def _in_units(curve: Curve, units: tuple[tuple[float, str], tuple[float, str]]) -> Curve:
    (across, _), (up, _) = units
    scaled = [replace(spot, x=spot.x / across, y=spot.y / up, half_width=spot.half_width / up) for spot in curve.spots]
    return replace(curve, spots=scaled, gaps=tuple(gap / across for gap in curve.gaps))


def cut(rows: Sequence[Mapping[str, Any]], y: str) -> float | None:
    """Give the upper end of the ordinate of a latency: saturated runs have a mark there and do not squash the steady part."""
    if not spots.is_latency(y):
        return None
    numbers = [(spots.state(row), spots.value_of(row, y)) for row in rows]
    known = [(worth, value) for worth, value in numbers if not math.isnan(value)]
    # Without a steady run the estimates have to do.
    best = min((worth for worth, _ in known), default=State.BROKEN)
    highest = max((value for worth, value in known if worth == best and worth <= State.LIMIT), default=math.nan)
    is_saturated = any(worth == State.SATURATED for worth, _ in numbers)
    if math.isnan(highest):
        return 1.0 if is_saturated else None
    return 1.3 * highest if is_saturated or any(value > 1.3 * highest for _, value in known) else None


def _set_axes(ax: Axes, rows: Sequence[Mapping[str, Any]], view: View, ceiling: float | None, places: Mapping[str, int] | None) -> None:
    if places is not None:
        words = {spots.token(row.get(view.x)): spots.label([row.get(view.x)]) for row in rows}
        ax.set_xticks(list(places.values()), [words.get(one, "") for one in places], parse_math=False)
        ax.set_xlim(-0.5, len(places) - 0.5)
    elif view.log_x:
        ax.set_xscale("log")
    if view.log_y:
        ax.set_yscale("log")
        if ceiling is not None:
            ax.set_ylim(top=ceiling)
    elif ceiling is not None:
        ax.set_ylim(0, ceiling)
    elif all(value >= 0 for row in rows if not math.isnan(value := spots.value_of(row, view.y))):
        ax.set_ylim(bottom=0)
    if all(math.isnan(spots.value_of(row, view.y)) for row in rows):
        ax.set_yticks([])  # all runs are saturated, so no place has a height


def _draw_curve(ax: Axes, curve: Curve, look: Mapping[str, Any], ceiling: float | None, view: View, *, joined: bool) -> Line2D:
    """Draw a curve; give its sign for the legend."""
    colour, marker = look["color"], look["marker"]
    sound = [spot for spot in curve.spots if spot.state <= State.LIMIT]
    line: dict[str, Any] = {"color": colour, "linewidth": 1.6, "linestyle": look["linestyle"] if joined else "none"}
    pieces = _with_holes(curve, sound) if joined else sound
    marked = [number for number, spot in enumerate(pieces) if spot.state == State.STEADY]
    (sign,) = ax.plot(*_columns_of(pieces), marker=marker, markersize=4.5, markevery=marked or None, label=curve.name or "_curve", **line)
    after = _beyond(curve, sound, ceiling)
    if joined and len(after) > 1:
        ax.plot(*_columns_of(after), color=colour, linewidth=1.0, linestyle=":", alpha=0.9, label="_beyond")
    shown = _mark_unsteady(ax, curve, look, ceiling, joined=joined)
    shown += [(spot, spot.y) for spot in sound if spot.state == State.STEADY]
    tips.add(ax, [(spot.x, height) for spot, height in shown], [_words(curve, spot) for spot, _ in shown])
    _draw_bands(ax, sound, colour, view.band, joined=joined)
    return sign


def _with_holes(curve: Curve, sound: Sequence[Spot]) -> list[Spot]:
    """Insert a place without a height for each run that is missing or has no valid number, so that no line crosses it."""
    if not sound:
        return []
    ends = (sound[0].x, sound[-1].x)
    holes = [Spot(x, math.nan, math.nan, State.BROKEN) for x in curve.gaps if ends[0] < x < ends[1]]
    if not holes:
        inner = [number for number, spot in enumerate(curve.spots) if spot.state <= State.LIMIT]
        part = curve.spots[inner[0] : inner[-1] + 1]
    else:
        part = sorted([*(spot for spot in curve.spots if ends[0] <= spot.x <= ends[1]), *holes], key=lambda spot: spot.x)
    return [spot if spot.state <= State.LIMIT else replace(spot, y=math.nan) for spot in part]


def _beyond(curve: Curve, sound: Sequence[Spot], ceiling: float | None) -> list[Spot]:
    """Give the places of the dotted line: from the last valid place on; of places without a height only the first, at its triangle."""
    after = [spot for spot in curve.spots if spot.state == State.SATURATED]
    if sound and after:
        after = [spot for spot in after if spot.x > sound[-1].x] or after[:0]
    heights = [replace(spot, y=ceiling) if math.isnan(spot.y) and ceiling is not None else spot for spot in after]
    if any(math.isnan(spot.y) for spot in after):
        heights = heights[:1]
    return [*sound[-1:], *heights]


def _mark_unsteady(ax: Axes, curve: Curve, look: Mapping[str, Any], ceiling: float | None, *, joined: bool) -> list[tuple[Spot, float]]:
    """Mark the places without a steady state; give them with the heights of their marks."""
    marked: list[tuple[Spot, float]] = []
    has_triangle = False
    for spot in (spot for spot in curve.spots if spot.state > State.STEADY):
        outside = ceiling is not None and (spot.y > ceiling or (math.isnan(spot.y) and spot.state == State.SATURATED))
        if outside and joined and spot.state == State.SATURATED:
            if has_triangle:
                continue  # further triangles would cover those of other curves
            has_triangle = True
        height = ceiling if outside and ceiling is not None else spot.y
        fill: dict[str, Any] = {"marker": look["marker"], **_FILLS[spot.state], **({"marker": "^"} if outside else {})}
        if not math.isnan(height):
            place: dict[str, Any] = {"markersize": 5.5, "linestyle": "none", "clip_on": False, "zorder": 3, "label": "_place"}
            ax.plot([spot.x], [height], color=look["color"], **place, **fill)
            marked.append((spot, height))
    return marked


def _draw_bands(ax: Axes, sound: Sequence[Spot], colour: str, band: bool, *, joined: bool) -> None:
    known = [spot for spot in sound if not math.isnan(spot.half_width)]
    if not band or not known:
        return
    across, up = _columns_of(known)
    if joined:
        below = [spot.y - spot.half_width for spot in known]
        above = [spot.y + spot.half_width for spot in known]
        ax.fill_between(across, below, above, color=colour, alpha=0.2, linewidth=0)
    if not joined or len(known) == 1:
        ax.errorbar(across, up, yerr=[spot.half_width for spot in known], fmt="none", ecolor=colour, elinewidth=1, capsize=2)


def _columns_of(places: Sequence[Spot]) -> tuple[list[float], list[float]]:
    return [spot.x for spot in places], [spot.y for spot in places]


def _state_words(state: State, y: str) -> str:
    return NO_LATENCY if state == State.SATURATED and spots.is_latency(y) else STATE_WORDS[state]


def _sign(state: State, y: str) -> Line2D:
    from matplotlib.lines import Line2D

    marker = "^" if state == State.SATURATED and spots.is_latency(y) else style.MARKERS[0]
    look: dict[str, Any] = {"marker": marker, "linestyle": "none", "color": style.FAINT, "markersize": 5.5}
    return Line2D([], [], **{**look, **_FILLS[state]})


def _words(curve: Curve, spot: Spot) -> str:
    spread = "" if math.isnan(spot.half_width) else f" ± {_columns.shown(spot.half_width)}"
    seeds = f", mean of {spot.runs} seeds" if spot.runs > 1 else ""
    what = {State.STEADY: "", State.LIMIT: ", ended at max_cycles", State.SATURATED: ", saturated", State.BROKEN: ", deadlock or failed"}
    name = f"{curve.name}: " if curve.name else ""
    height = "no number" if math.isnan(spot.y) else _columns.shown(spot.y)
    return f"{name}{height}{spread} at {_columns.shown(spot.x)}{seeds}{what[spot.state]}"
