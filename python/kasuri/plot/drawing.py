"""Drawings of networks, with the load of every channel where it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kasuri.plot import style
from kasuri.plot.layout import Layout, layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kasuri.network import Network

#: Above these a drawing is a blot.
MAX_ROUTERS = 400
MAX_CHANNELS = 4000


def drawable(network: Network) -> bool:
    """Tell whether the network is small enough for a drawing."""
    return network.routers <= MAX_ROUTERS and network.channels - 2 * network.terminals <= MAX_CHANNELS


def draw_network(network: Network, *, utilisation: Any = None, ax: Axes | None = None) -> Axes:
    """Draw a network: meshes and tori by coordinates, trees by level, others round a circle or by springs.

    Parameters
    ----------
    network : Network
        The network.
    utilisation : array-like, optional
        Utilisation of each channel in [0, 1], shape ``[channels]``: the two directions of a link are drawn side by side, each
        in the colour of its load (right-hand traffic, seen in its own direction), routers in that of their ejection channels.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Raises
    ------
    ValueError
        ``utilisation`` has another length than the network has channels.
    """
    places = layout(network)
    ax = style.new_axes(*_size(places)) if ax is None else ax
    values = None if utilisation is None else np.asarray(utilisation, dtype=float)
    if values is not None and values.shape != (network.channels,):
        raise ValueError(f"utilisation has shape {values.shape}, but the network has {network.channels} channels")
    _draw_channels(ax, network, places, values)
    _draw_nodes(ax, network, places, values)
    ax.set_aspect("equal" if places.kind != "levels" else "auto")
    ax.margins(0.06)
    ax.axis("off")
    return ax


def _size(places: Layout) -> tuple[float, float]:
    if places.kind == "levels":
        spread = places.routers if places.terminals is None else np.vstack([places.routers, places.terminals])
        return (min(12.0, max(5.0, len(spread) / 12)), min(6.0, 1.0 + 1.1 * np.ptp(spread[:, 1])))
    width, height = np.ptp(places.routers, axis=0) + 1
    scale = 5.2 / max(width, height)
    return (max(2.0, width * scale) + 0.8, max(1.4, height * scale))


def _draw_channels(ax: Axes, network: Network, places: Layout, values: np.ndarray | None) -> None:
    from matplotlib.collections import LineCollection

    between = np.arange(2 * network.terminals, network.channels)
    start = places.routers[network.source_router[between]]
    end = places.routers[network.destination_router[between]]
    if places.terminals is not None:
        injection = np.arange(network.terminals)
        ejection = injection + network.terminals
        start = np.vstack([places.terminals, places.routers[network.source_router[ejection]], start])
        end = np.vstack([places.routers[network.destination_router[injection]], places.terminals, end])
        between = np.concatenate([injection, ejection, between])
    segments, owners = _segments(start, end, places.kind)
    if values is None:
        ax.add_collection(LineCollection(list(segments), colors=style.FAINT, linewidths=0.8, zorder=1))
        return
    shifted = _to_the_right(segments, ax, places)
    order = np.argsort(values[between][owners], kind="stable")  # the busiest on top
    lines = LineCollection(list(shifted[order]), cmap=style.heat(), linewidths=_width(len(order)), zorder=1, capstyle="butt")
    lines.set_array(values[between][owners][order])
    lines.set_clim(0, max(float(values.max(initial=0.0)), 1e-9))
    ax.add_collection(lines)
    bar = style.figure_of(ax).colorbar(lines, ax=ax, shrink=0.8, pad=0.01)
    bar.set_label("channel utilisation", color=style.INK)
    bar.ax.tick_params(colors=style.INK)
    bar.outline.set_visible(False)  # type: ignore[operator]


def _width(count: int) -> float:
    return 2.6 if count <= 300 else 1.6 if count <= 1000 else 0.9


def _segments(start: np.ndarray, end: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Straight lines, except that the long way back of a ring leaves as a stub at either side of a grid."""
    owners = np.arange(len(start))
    if kind != "grid" or not len(start):
        return np.stack([start, end], axis=1), owners
    step = end - start
    length = np.linalg.norm(step, axis=1)
    wraps = length > 1.5 * np.median(length) + 1e-9
    direction = step / np.maximum(length, 1e-9)[:, None]
    # The way out of the grid is opposite to the straight line between both ends.
    out = np.stack([start, start - 0.45 * direction], axis=1)[wraps]
    into = np.stack([end + 0.45 * direction, end], axis=1)[wraps]
    straight = np.stack([start, end], axis=1)[~wraps]
    return np.concatenate([straight, out, into]), np.concatenate([owners[~wraps], owners[wraps], owners[wraps]])


def _to_the_right(segments: np.ndarray, ax: Axes, places: Layout) -> np.ndarray:
    """Shift every line to its right, so that the two directions of a link lie side by side."""
    step = segments[:, 1] - segments[:, 0]
    extent = np.ptp(places.routers, axis=0) + 1e-9
    if places.kind == "levels":
        # Both axes are stretched differently there: shift horizontally, by a hair of the width.
        shift = np.where(step[:, 1:2] >= 0, 1.0, -1.0) * np.array([[0.002 * extent[0], 0.0]])
    else:
        normal = np.column_stack([step[:, 1], -step[:, 0]])
        normal /= np.maximum(np.linalg.norm(normal, axis=1), 1e-9)[:, None]
        shift = normal * 0.07 * _spacing(places.routers)
    return segments + shift[:, None, :]


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
    if network.routers <= 64:
        for router, place in enumerate(places.routers):
            ax.text(place[0], place[1], str(router), ha="center", va="center", color="white", fontsize=6.5, zorder=3)
    if places.terminals is not None:
        across, up = places.terminals.T
        dots = float(np.clip(2500 / max(network.terminals, 1), 4, 30))
        ax.scatter(across, up, s=dots, color=shades[1], linewidths=0, zorder=2)
