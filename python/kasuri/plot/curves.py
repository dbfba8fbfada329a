"""Curves over the table of runs, latency over load above all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kasuri import _columns
from kasuri.plot import spots, style, tips
from kasuri.plot.spots import Curve, Spot, State
from kasuri.plot.table import rows_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

#: What the legend says of a state.
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
    """What several axes of one plot share: abscissa, ordinate, scales, the cut of the ordinate, and the look of each curve."""

    x: str
    y: str
    band: bool = True
    log_x: bool = False
    log_y: bool = False
    ceiling: float | None = None
    categories: Mapping[str, int] | None = None
    looks: Mapping[str, int] | None = None


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
    log_x: bool = False,
    log_y: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw one column over another, a curve for each value of ``series`` and of every other key that varies.

    Runs that differ in ``measure.seed`` alone are averaged, nothing else: a key that varies and is neither ``x`` nor in ``series``
    sets curves apart, too. The band is the 95 % confidence interval: of the run where there is one (``*_ci95``), over the seeds where
    there are several. Places beyond saturation have hollow markers and dotted lines: a latency there grows with the length of the
    run and is no property of the network; where they would squash the rest of the figure, the first stands as a triangle at its upper
    edge. Half-filled markers are runs that ended as ``max_cycles``: estimates. The legend stands outside of the axes.

    Parameters
    ----------
    table : Results or any tidy table
        One row per run.
    x, y : str
        The columns to draw, for example ``"traffic.load"`` and ``"accepted_throughput_mean"``. An ``x`` of words becomes places
        side by side.
    series : str or sequence of str, optional
        The columns whose values name the curves; without it, all keys that vary, seeds excepted.
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
    KeyError
        A column is not in the table.
    ValueError
        No run has a number in ``y``, or there are more curves than can be told apart; the keys that make them are named.

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
    keys = [*named, *spots.own_keys(rows, x, named)]
    count = len(spots.split(rows, keys))
    if count > style.MAX_CURVES:
        raise ValueError(f"{', '.join(keys)} make {count} curves, and {style.MAX_CURVES} can be told apart; draw a part of the rows")
    return draw(rows, keys, View(x, y, band, log_x, log_y), ax)


def as_names(series: str | Sequence[str] | None) -> list[str]:
    """Give the columns that are named as series."""
    return [] if series is None else [series] if isinstance(series, str) else list(series)


def check_columns(rows: Sequence[Mapping[str, Any]], x: str, y: str, named: Sequence[str]) -> None:
    """Refuse columns that are not there, and an ordinate without numbers.

    Raises
    ------
    KeyError
        A column is not in the table.
    ValueError
        No run has a number in ``y``.
    """
    there = _columns.names(rows)
    for name in (x, y, *named):
        if rows and name not in there:
            raise KeyError(f"no column `{name}`; there are {', '.join(there)}")
    if rows and all(math.isnan(_columns.number(row.get(y))) for row in rows):
        raise ValueError(f"no run has a number in `{y}`")


def draw(
    rows: Sequence[Mapping[str, Any]], keys: Sequence[str], view: View, ax: Axes | None = None, size: tuple[float, float] = (6.4, 4.0)
) -> Axes:
    """Draw the curves that the keys set apart; see :func:`curves`."""
    grow = ax is None
    ax = style.new_axes(*size) if ax is None else ax
    places = spots.categories(rows, view.x) if view.categories is None else view.categories
    found = spots.curves_of(rows, view.x, view.y, keys, places)
    ceiling = cut(rows, view.y) if view.ceiling is None else view.ceiling
    handles = []
    for number, curve in enumerate(found):
        look = style.identity((view.looks or {}).get(curve.name, number))
        handles.append(_draw_curve(ax, curve, look, ceiling, view, joined=places is None))
    _set_axes(ax, rows, view, ceiling, places)
    states = sorted({spot.state for curve in found for spot in curve.spots} - {State.STEADY})
    if keys or states:
        names = [curve.name for curve in found] if keys else []
        signs = [_sign(one) for one in states]
        heading = ", ".join(keys)
        style.legend(ax, [*(handles if keys else []), *signs], [*names, *(STATE_WORDS[one] for one in states)], heading, grow=grow)
    style.tidy(ax)
    return ax


def cut(rows: Sequence[Mapping[str, Any]], y: str) -> float | None:
    """Where to cut the ordinate of a latency, so that what lies beyond saturation does not squash the steady part."""
    if not y.startswith(_columns.LATENCIES):
        return None
    numbers = [(spots.state(row), _columns.number(row.get(y))) for row in rows]
    known = [(worth, value) for worth, value in numbers if not math.isnan(value)]
    # Without a steady run the estimates have to do.
    best = min((worth for worth, _ in known), default=State.BROKEN)
    highest = max((value for worth, value in known if worth == best and worth <= State.LIMIT), default=math.nan)
    if math.isnan(highest) or not any(value > 1.3 * highest for _, value in known):
        return None
    return 1.3 * highest


def _set_axes(ax: Axes, rows: Sequence[Mapping[str, Any]], view: View, ceiling: float | None, places: Mapping[str, int] | None) -> None:
    ax.set_xlabel(_columns.label(view.x), parse_math=False)
    ax.set_ylabel(_columns.label(view.y), parse_math=False)
    if places is not None:
        words = {spots.token(row.get(view.x)): spots.label([row.get(view.x)]) for row in rows}
        turned = sum(len(words.get(one, "")) for one in places) > 60
        ax.set_xticks(list(places.values()), [words.get(one, "") for one in places], parse_math=False)
        ax.tick_params("x", rotation=30 if turned else 0)
        ax.set_xlim(-0.5, len(places) - 0.5)
    elif view.log_x:
        ax.set_xscale("log")
    else:
        ax.locator_params("x", nbins=max(4, int(1.4 * style.figure_of(ax).get_figwidth())))
    if view.log_y:
        ax.set_yscale("log")
        if ceiling is not None:
            ax.set_ylim(top=ceiling)
    elif ceiling is not None:
        ax.set_ylim(0, ceiling)
    elif all(_columns.number(row.get(view.y)) >= 0 for row in rows if not math.isnan(_columns.number(row.get(view.y)))):
        ax.set_ylim(bottom=0)


def _draw_curve(ax: Axes, curve: Curve, look: Mapping[str, Any], ceiling: float | None, view: View, *, joined: bool) -> Line2D:
    """Draw a curve; give its sign for the legend."""
    colour, marker = look["color"], look["marker"]
    sound = [spot for spot in curve.spots if spot.state <= State.LIMIT]
    line: dict[str, Any] = {"color": colour, "linewidth": 1.6, "linestyle": look["linestyle"] if joined else "none"}
    marked = [spot.state == State.STEADY for spot in sound]
    (sign,) = ax.plot(*_columns_of(sound), marker=marker, markersize=4.5, markevery=marked or None, label=curve.name or "_curve", **line)
    told = []
    after = [spot for spot in curve.spots if spot.state > State.LIMIT]
    if joined and after:
        ax.plot(*_columns_of(sound[-1:] + after), color=colour, linewidth=1.0, linestyle=":", alpha=0.9, label="_beyond")
    for spot in (spot for spot in curve.spots if spot.state > State.STEADY):
        outside = ceiling is not None and spot.y > ceiling
        height = min(spot.y, math.inf if ceiling is None else ceiling)
        fill: dict[str, Any] = {"marker": marker, **_FILLS[spot.state], **({"marker": "^"} if outside else {})}
        ax.plot([spot.x], [height], color=colour, markersize=5.5, linestyle="none", clip_on=False, zorder=3, label="_place", **fill)
        told.append((spot, height))
        if outside and joined and spot.state > State.LIMIT:
            break  # one triangle says it; those of the higher loads would cover other curves'
    told += [(spot, spot.y) for spot in sound if spot.state == State.STEADY]
    tips.add(ax, [(spot.x, height) for spot, height in told], [_words(curve, spot) for spot, _ in told])
    _draw_bands(ax, sound, colour, view.band, joined=joined)
    return sign


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


def _sign(state: State) -> Line2D:
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {"marker": style.MARKERS[0], "linestyle": "none", "color": style.FAINT, "markersize": 5.5}
    return Line2D([], [], **{**look, **_FILLS[state]})


def _words(curve: Curve, spot: Spot) -> str:
    spread = "" if math.isnan(spot.half_width) else f" ± {_columns.shown(spot.half_width)}"
    seeds = f", mean of {spot.runs} seeds" if spot.runs > 1 else ""
    what = {State.STEADY: "", State.LIMIT: ", ended at max_cycles", State.SATURATED: ", saturated", State.BROKEN: ", deadlock or failed"}
    name = f"{curve.name}: " if curve.name else ""
    return f"{name}{_columns.shown(spot.y)}{spread} at {_columns.shown(spot.x)}{seeds}{what[spot.state]}"
