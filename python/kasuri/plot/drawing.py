"""Drawings of networks, with the load of every channel where it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kasuri.plot import fit, style, tips
from kasuri.plot.channels import channel_values, check_network
from kasuri.plot.layout import Layout, layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kasuri.network import Network

#: Above these a drawing is a blot.
MAX_ROUTERS = 400
MAX_CHANNELS = 4000
#: The largest number of lines with tooltips: more make the page large and are too small to hit.
MAX_TIPS = 1500


def drawable(network: Network) -> bool:
    """Return whether the network is small enough for a drawing."""
    return network.routers <= MAX_ROUTERS and network.channels - 2 * network.terminals <= MAX_CHANNELS


def draw_network(network: Network, *, utilisation: Any = None, highest: float | None = None, ax: Axes | None = None) -> Axes:
    """Draw a network: meshes and tori by coordinates, trees by level, dragonflies by group, others round a circle or by springs.

    Parameters
    ----------
    network : Network
        The network. Names of routers are below them, as far as there is room.
    utilisation : array-like, optional
        Utilisation of each channel in [0, 1], shape ``[channels]``: the two directions of a link are drawn side by side, each
        in the colour of its load (right-hand traffic, seen in its own direction).
    highest : float, optional
        The utilisation at the end of the colours, so that several maps can be compared; without it the largest value.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Raises
    ------
    ArgumentError
        ``network`` is not a :class:`kasuri.Network`, or ``utilisation`` does not have one value for each channel.
    """
    values = None if utilisation is None else channel_values(network, utilisation)
    places = layout(check_network(network))
    ax = style.new_axes(*_size(places)) if ax is None else ax
    _draw_groups(ax, places)
    _draw_channels(ax, network, places, values, highest)
    ax.set_aspect("equal" if places.kind != "levels" else "auto")
    ax.margins(0.06)
    ax.axis("off")
    _draw_nodes(ax, network, places, values)
    return ax


def _size(places: Layout) -> tuple[float, float]:
    if places.kind == "levels":
        spread = places.routers if places.terminals is None else np.vstack([places.routers, places.terminals])
        return (min(12.0, max(5.0, len(spread) / 12)), min(6.0, 1.0 + 1.1 * np.ptp(spread[:, 1])))
    width, height = np.ptp(places.routers, axis=0) + 1
    scale = 5.2 / max(width, height)
    return (max(2.0, width * scale) + 0.8, max(1.4, height * scale))


def _draw_groups(ax: Axes, places: Layout) -> None:
    from matplotlib.patches import Circle

    for group in places.groups:
        ax.add_patch(Circle(group.centre, group.radius, facecolor=style.FAINT, edgecolor=style.FAINT, alpha=0.18, zorder=0))
        outward = np.asarray(group.centre) * (1 + 1.28 / max(np.hypot(*group.centre), 1e-9))
        ax.text(float(outward[0]), float(outward[1]), group.name, ha="center", va="center", color=style.INK, fontsize=7)


def _draw_channels(ax: Axes, network: Network, places: Layout, values: np.ndarray | None, highest: float | None) -> None:
    from matplotlib.collections import LineCollection

    between = np.arange(2 * network.terminals, network.channels)
    start = places.routers[network.source_router[between]]
    end = places.routers[network.destination_router[between]]
    wraps = np.zeros(len(between), dtype=bool) if places.wraps is None else places.wraps
    if places.terminals is not None:
        injection = np.arange(network.terminals)
        ejection = injection + network.terminals
        start = np.vstack([places.terminals, places.routers[network.source_router[ejection]], start])
        end = np.vstack([places.routers[network.destination_router[injection]], places.terminals, end])
        between = np.concatenate([injection, ejection, between])
        wraps = np.concatenate([np.zeros(2 * network.terminals, dtype=bool), wraps])
    lines, owners = _lines(start, end, wraps, places)
    channels = between[owners]
    if values is None:
        ax.add_collection(LineCollection(lines, colors=style.FAINT, linewidths=0.8, zorder=1))
    else:
        order = np.argsort(values[channels], kind="stable")  # the busiest on top
        lines, channels = [lines[number] for number in order], channels[order]
        drawn = LineCollection(lines, cmap=style.heat(), linewidths=_width(len(order)), zorder=1, capstyle="butt")
        drawn.set_array(values[channels])
        drawn.set_clim(0, max(float(np.nanmax(values, initial=0.0)) if highest is None else highest, 1e-9))
        ax.add_collection(drawn)
        bar = style.figure_of(ax).colorbar(drawn, ax=ax, shrink=0.8, pad=0.01)
        bar.set_label("channel utilisation", color=style.INK)
        bar.ax.tick_params(colors=style.INK)
        bar.outline.set_visible(False)  # type: ignore[operator]
    if len(lines) <= MAX_TIPS:
        words = channel_words(network, channels, values)
        for points in sorted({len(line) for line in lines}):
            some = [number for number, line in enumerate(lines) if len(line) == points]
            tips.add(ax, [lines[number] for number in some], [words[number] for number in some])


def channel_words(network: Network, channels: np.ndarray, values: np.ndarray | None) -> list[str]:
    """Say of channels from where to where they lead, how long they take, and how busy they are."""
    words = []
    for channel in channels.tolist():
        source, destination = channel_ends(network, channel)
        load = "" if values is None else ": down" if np.isnan(values[channel]) else f": utilisation {values[channel]:.3g}"
        latency, period = int(network.latency[channel]), int(network.period[channel])
        speed = f", latency {latency}" + (f", a flit in {period} cycles" if period != 1 else "")
        words.append(f"{source} → {destination}{load}{speed}")
    return words


def channel_ends(network: Network, channel: int) -> tuple[str, str]:
    """Name the two ends of a channel."""
    ends = []
    for side in ("source", "destination"):
        router, terminal = (int(getattr(network, f"{side}_{part}")[channel]) for part in ("router", "terminal"))
        ends.append(router_name(network, router) if router >= 0 else terminal_name(network, terminal))
    return ends[0], ends[1]


def router_name(network: Network, router: int) -> str:
    """Name a router: as its file does, else by its number."""
    return f"router {router}" if network.router_names is None else network.router_names[router]


def terminal_name(network: Network, terminal: int) -> str:
    """Name a terminal: as its file does, else by its number."""
    return f"terminal {terminal}" if network.terminal_names is None else network.terminal_names[terminal]


def _width(count: int) -> float:
    return 2.6 if count <= 300 else 1.6 if count <= 1000 else 0.9


def _lines(start: np.ndarray, end: np.ndarray, wraps: np.ndarray, places: Layout) -> tuple[list[np.ndarray], np.ndarray]:
    """Draw every channel at the right of its path: straight; as a stub at either side where it closes a ring; around obstacles.

    Returns
    -------
    lines : list of numpy.ndarray
        Shape ``[points, 2]`` each.
    owners : numpy.ndarray
        The channel of each line.
    """
    step = end - start
    length = np.linalg.norm(step, axis=1)
    direction = step / np.maximum(length, 1e-9)[:, None]
    normal = np.column_stack([direction[:, 1], -direction[:, 0]])
    unit = _spacing(places.routers)
    if places.kind == "levels":
        # Both axes are stretched differently there: shift horizontally, by a hair of the width.
        width = np.ptp(places.routers[:, 0]) + 1e-9
        shift = np.where(step[:, 1:2] >= 0, 1.0, -1.0) * np.array([[0.002 * width, 0.0]])
    else:
        shift = normal * min(0.07 * unit, 0.012 * float(np.ptp(places.routers, axis=0).max(initial=0.0)) + 1e-9)
    lines, owners = [], []
    for channel in range(len(start)):
        if wraps[channel]:
            # The way out of the grid is opposite to the straight line between both ends.
            stub = 0.45 * direction[channel]
            ways = [np.array([start[channel], start[channel] - stub]), np.array([end[channel] + stub, end[channel]])]
        elif places.kind == "grid" and np.min(np.abs(step[channel])) < 1e-9 and length[channel] > 1.5 * unit:
            along = np.linspace(0, 1, 9)[:, None]
            bulge = min(0.12 * length[channel], 0.42 * unit) * np.sin(np.pi * along) * normal[channel]
            ways = [start[channel] + along * step[channel] + bulge]
        else:
            ways = [np.array([start[channel], end[channel]])]
        lines += [way + shift[channel] for way in ways]
        owners += [channel] * len(ways)
    return lines, np.array(owners, dtype=int)


def _spacing(points: np.ndarray) -> float:
    """The distance between neighbours, roughly."""
    if len(points) < 2:
        return 1.0
    near = points[: min(len(points), 50)]
    distance = np.linalg.norm(near[:, None] - points[None], axis=2)
    distance[distance < 1e-9] = np.inf
    return float(np.median(distance.min(axis=1)))


def _draw_nodes(ax: Axes, network: Network, places: Layout, values: np.ndarray | None) -> None:
    shades = style.COLOURS[:2] if values is None else (style.FAINT, style.FAINT)
    size = float(np.clip(9000 / max(network.routers, 1), 12, 160))
    across, up = places.routers.T
    ax.scatter(across, up, s=size, marker="s", color=shades[0], linewidths=0, zorder=2)
    tips.add(ax, places.routers, _router_words(network))
    if network.routers <= 64 and network.router_names is not None:
        names = []
        for name, place in zip(network.router_names, places.routers, strict=True):
            short = name if len(name) <= 18 else name[:17] + "…"
            words = ax.annotate("", place, xytext=(0, -4 - size**0.5 / 2), textcoords="offset points", ha="center", va="top", zorder=4)
            words.set(color=style.INK, fontsize=9 if network.routers <= 20 else 7)
            words.set_parse_math(False)
            words.set_text(style.printable(short))
            names.append(words)
        _lay_out_names(ax, names)
    elif network.routers <= 64:
        for router, place in enumerate(places.routers):
            ax.text(place[0], place[1], str(router), ha="center", va="center", color="white", fontsize=6.5, zorder=3)
    if places.terminals is not None:
        across, up = places.terminals.T
        dots = float(np.clip(2500 / max(network.terminals, 1), 4, 30))
        ax.scatter(across, up, s=dots, color=shades[1], linewidths=0, zorder=2)
        tips.add(ax, places.terminals, [terminal_name(network, terminal) for terminal in range(network.terminals)])


def _lay_out_names(ax: Axes, names: list[Any]) -> None:
    """Hide names that would cover others; tips of a page still show them."""
    style.figure_of(ax).draw_without_rendering()
    fit.hide_overlaps(names)


def _router_words(network: Network) -> list[str]:
    """Name each router, its terminals and its labels."""
    homes: dict[int, list[str]] = {}
    for terminal, router in enumerate(network.terminal_routers.tolist()):
        homes.setdefault(router, []).append(terminal_name(network, terminal))
    words = []
    for router in range(network.routers):
        labels = ", ".join(f"{name} {int(column[router])}" for name, column in network.labels.items())
        here = homes.get(router, [])
        more = f" and {len(here) - 3} more" if len(here) > 3 else ""
        what = "; ".join(filter(None, [labels, ", ".join(here[:3]) + more]))
        words.append(router_name(network, router) + (f" ({what})" if what else ""))
    return words
