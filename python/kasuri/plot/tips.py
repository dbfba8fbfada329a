"""Tooltips for the points and lines of a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ATTRIBUTE = "kasuri_tips"


def add(ax: Axes, places: Any, words: Sequence[str]) -> None:
    """Remember words for points (places of shape ``[n, 2]``) or straight lines (``[n, 2, 2]``), in the data's coordinates."""
    if len(words):
        kept = getattr(ax, _ATTRIBUTE, [])
        setattr(ax, _ATTRIBUTE, [*kept, (np.asarray(places, dtype=float), list(words))])


def marks(ax: Axes) -> list[list[Any]]:
    """Give all marks of a drawn figure as ``[x, y, words]`` and ``[x, y, x, y, words]``, in points from its upper left corner."""
    figure = ax.get_figure(root=True)
    assert figure is not None  # axes that are drawn on belong to a figure
    height = figure.bbox.height
    scale = 72 / figure.dpi
    found: list[list[Any]] = []
    for one in figure.axes:
        for places, words in getattr(one, _ATTRIBUTE, []):
            shown = one.transData.transform(places.reshape(-1, 2))
            points = np.round(np.column_stack([shown[:, 0], height - shown[:, 1]]) * scale, 1).reshape(len(words), -1)
            found += [[*place, text] for place, text in zip(points.tolist(), words, strict=True) if np.isfinite(place).all()]
    return found
