"""Channel utilisation as a heat map: from router to router."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kasuri.plot import fit, style
from kasuri.plot.channels import channel_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kasuri.network import Network

#: More routers than this are gathered in blocks, since a screen has no more points.
MAX_CELLS = 256


def channel_utilisation(network: Network, utilisation: Any, *, highest: float | None = None, ax: Axes | None = None) -> Axes:
    """Draw the utilisation of the channels between routers as a matrix: from (row) to (column).

    Parallel channels between two routers, and the routers of a block where there are more than 256, are averaged.

    Parameters
    ----------
    network : Network
        The network.
    utilisation : array-like
        Utilisation of each channel in [0, 1], shape ``[channels]``: ``results.vector(run, "channel_utilisation")``.
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
    from matplotlib.ticker import MaxNLocator

    values = channel_values(network, utilisation)
    block = -(-network.routers // MAX_CELLS)
    matrix = _matrix(network, values, block)
    ax = style.new_axes(5.4, 4.4) if ax is None else ax
    image = ax.imshow(matrix, cmap=style.heat(), vmin=0, vmax=highest, interpolation="nearest")
    bar = style.figure_of(ax).colorbar(image, ax=ax, shrink=0.9)
    bar.set_label("channel utilisation", color=style.INK)
    bar.ax.tick_params(colors=style.INK)
    bar.outline.set_visible(False)  # type: ignore[operator]
    unit = "router" if block == 1 else f"block of {block} routers"
    ax.set_xlabel(f"to {unit}")
    ax.set_ylabel(f"from {unit}")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator("auto", integer=True))
    style.tidy(ax)
    ax.grid(False)
    fit.fit(ax)
    return ax


def _matrix(network: Network, values: np.ndarray, block: int) -> np.ndarray:
    between = np.arange(2 * network.terminals, network.channels)
    between = between[~np.isnan(values[between])]  # without those that are down
    cells = -(-network.routers // block)
    place = (network.source_router[between] // block, network.destination_router[between] // block)
    total, count = np.zeros((cells, cells)), np.zeros((cells, cells))
    np.add.at(total, place, values[between])
    np.add.at(count, place, 1)
    with np.errstate(invalid="ignore"):
        return np.where(count > 0, total / count, np.nan)
