"""Channels by class (injection, ejection, from level to level, along a dimension): views of networks too large for a map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kasuri.plot import style, tips
from kasuri.plot.channels import channel_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kasuri.network import Network

#: More classes than this are no summary: then the channels between routers are one.
MAX_CLASSES = 24
#: The parts of a class's channels that are below the values that are shown.
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True)
class ChannelClass:
    """Channels that do the same in a network.

    Attributes
    ----------
    name : str
        Their function.
    count : int
        How many they are.
    mean : float
        Their mean utilisation.
    quantiles : tuple of float
        Their utilisation at :data:`QUANTILES`.
    """

    name: str
    count: int
    mean: float
    quantiles: tuple[float, ...]


def channel_classes(network: Network, utilisation: Any) -> list[ChannelClass]:
    """Sum up the utilisation of each class of channels.

    Channels of terminals are injection and ejection; those between routers are distinguished by the level or stage, by the group, or by the
    coordinates of their ends, whichever the network has.

    Parameters
    ----------
    network : Network
        The network.
    utilisation : array-like
        Utilisation of each channel in [0, 1], shape ``[channels]``: ``results.vector(run, "channel_utilisation")``.

    Returns
    -------
    list of ChannelClass
        Injection first, ejection last.

    Raises
    ------
    ArgumentError
        ``network`` is not a :class:`kasuri.Network`, or ``utilisation`` does not have one value for each channel.
    """
    values = channel_values(network, utilisation)
    terminals = network.terminals
    names, numbers = _between_routers(network)
    between = values[2 * terminals :]
    parts = [("injection", values[:terminals])]
    parts += [(name, between[numbers == number]) for number, name in enumerate(names)]
    parts.append(("ejection", values[terminals : 2 * terminals]))
    return [_sum_up(name, part) for name, part in parts if len(part)]


def utilisation_by_class(network: Network, utilisation: Any, *, highest: float | None = None, ax: Axes | None = None) -> Axes:
    """Draw how the utilisation of each class of channels is spread: a line from the least to the greatest, a box round the middle half,
    a stroke at the median.

    Parameters
    ----------
    network : Network
        The network, of any size.
    utilisation : array-like
        Utilisation of each channel in [0, 1], shape ``[channels]``.
    highest : float, optional
        The utilisation at the end of the axis, so that several figures can be compared; without it the largest value.
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
    classes = channel_classes(network, utilisation)
    ax = style.new_axes(5.4, 0.9 + 0.34 * len(classes)) if ax is None else ax
    places = np.arange(len(classes))
    spread = np.array([one.quantiles for one in classes])
    ax.hlines(places, spread[:, 0], spread[:, -1], color=style.FAINT, linewidth=1.2)
    ax.hlines(places, spread[:, 1], spread[:, -2], color=style.COLOURS[0], linewidth=2.4)
    ax.barh(places, spread[:, 4] - spread[:, 2], left=spread[:, 2], height=0.5, color=style.COLOURS[0], alpha=0.45)
    ax.scatter(spread[:, 3], places, marker="|", s=160, color=style.INK, linewidths=1.6, zorder=3)
    tips.add(ax, np.column_stack([spread[:, 3], places]), [_words(one) for one in classes])
    ax.set_yticks(places, [one.name for one in classes])
    ax.set_ylim(len(classes) - 0.5, -0.5)
    ax.set_xlim(0, 1.03 * max(float(spread.max(initial=0.0)) if highest is None else highest, 1e-9))
    ax.set_xlabel("channel utilisation")
    style.tidy(ax)
    ax.grid(False, axis="y")
    return ax


def describe_routers(network: Network) -> list[tuple[str, str]]:
    """Describe the routers of the topology: their number on each level, the groups, the size of the grid."""
    level = _level(network)
    if level is not None:
        numbers, counts = np.unique(network.labels[level], return_counts=True)
        if len(numbers) <= MAX_CLASSES:
            return [(f"routers of {level} {number}", f"{count}") for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)]
    if "group" in network.labels:
        return [("groups", str(np.unique(network.labels["group"]).size))]
    sizes = [int(column.max(initial=0)) + 1 for _, column in _coordinates(network)]
    return [("grid", " x ".join(map(str, sizes)))] if sizes else []


def _between_routers(network: Network) -> tuple[list[str], np.ndarray]:
    """Name the classes of the channels between routers, and number each channel's."""
    source, destination = network.router_edges.T
    names, numbers = ["between routers"], np.zeros(len(source), dtype=np.int64)
    level, coordinates = _level(network), _coordinates(network)
    if level is not None:
        levels, rank = np.unique(network.labels[level], return_inverse=True)
        # One number for both ends: to sort pairs takes many times as long.
        pairs, numbers = np.unique(rank[source] * len(levels) + rank[destination], return_inverse=True)
        names = [f"{level} {levels[pair // len(levels)]} to {levels[pair % len(levels)]}" for pair in pairs.tolist()]
    elif "group" in network.labels:
        groups = network.labels["group"]
        names, numbers = ["within a group", "between groups"], (groups[source] != groups[destination]).astype(np.int64)
    elif coordinates:
        differ = np.column_stack([column[source] != column[destination] for _, column in coordinates])
        numbers = np.where(differ.sum(axis=1) == 1, differ.argmax(axis=1), len(coordinates))
        names = [*(f"along dimension {name}" for name, _ in coordinates), "along several dimensions"]
    if len(names) > MAX_CLASSES:
        return ["between routers"], np.zeros(len(source), dtype=np.int64)
    return names, numbers.reshape(-1)


def _level(network: Network) -> str | None:
    """Return the label of the routers' levels, if they have levels."""
    return next((name for name in ("level", "stage") if name in network.labels), None)


def _coordinates(network: Network) -> list[tuple[str, np.ndarray]]:
    """Give the coordinates of the routers by the number of their dimension."""
    prefix = "coordinate."
    found = [(name.removeprefix(prefix), column) for name, column in network.labels.items() if name.startswith(prefix)]
    return sorted(found, key=lambda one: int(one[0]))


def _sum_up(name: str, values: np.ndarray) -> ChannelClass:
    up = values[~np.isnan(values)]  # those that are down have no utilisation
    values = up if len(up) else np.zeros(len(values))
    return ChannelClass(name, len(values), float(values.mean()), tuple(float(value) for value in np.quantile(values, QUANTILES)))


def _words(one: ChannelClass) -> str:
    least, low, _, median, _, high, most = one.quantiles
    return (
        f"{one.name}: {one.count} channels, mean {one.mean:.3g}, median {median:.3g}, "
        f"nine in ten from {low:.3g} to {high:.3g}, least {least:.3g}, greatest {most:.3g}"
    )
