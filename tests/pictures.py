"""Finds faults of pictures: texts that overlap, and texts that the edge of the figure cuts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

#: Pixels that two texts may share: boxes are a little larger than the letters in them.
SHARED = 1.5


def faults(figure: Figure, *, is_cut: bool = True) -> list[str]:
    """Name every two texts that overlap, every text that the edge cuts, and every legend over axes.

    Without ``is_cut`` the edges do not matter: the figure is saved with a tight box.
    """
    drawn = list(_drawn_texts(figure))
    boxes = [_corners(text) for text in drawn]
    found = [
        f"`{one.get_text()}` and `{other.get_text()}` overlap"
        for (one, box), (other, other_box) in itertools.combinations(zip(drawn, boxes, strict=True), 2)
        if _overlap(box, other_box)
    ]
    width, height = figure.bbox.width, figure.bbox.height
    if is_cut:
        for text, box in zip(drawn, boxes, strict=True):
            if box[:, 0].min() < -1 or box[:, 1].min() < -1 or box[:, 0].max() > width + 1 or box[:, 1].max() > height + 1:
                found.append(f"`{text.get_text()}` is cut")
    for one, ax in itertools.product(figure.axes, figure.axes):
        legend = one.get_legend()
        if legend is not None and legend.get_window_extent().padded(-1).overlaps(ax.get_window_extent()) and not _is_inside(legend, one):
            found.append(f"the legend of `{one.get_title()}` covers axes")
    return found


def _is_inside(legend: object, ax: Axes) -> bool:
    """Is this a legend that was placed inside its own axes on purpose?"""
    return getattr(legend, "_loc", None) == 0 and ax is getattr(legend, "axes", None)


def _drawn_texts(figure: Figure) -> Iterator[Text]:
    """Draw the figure, and give the texts with letters: an axis also has labels at ticks out of view."""
    with _recorded() as seen:
        FigureCanvasAgg(figure).draw()
    return (text for text in dict.fromkeys(seen) if text.get_visible() and text.get_text().strip())


@contextmanager
def _recorded() -> Iterator[list[Text]]:
    original, seen = Text.draw, []

    def draw(self: Text, renderer: object) -> None:
        seen.append(self)
        original(self, renderer)

    Text.draw = draw
    try:
        yield seen
    finally:
        Text.draw = original


def _corners(text: Text) -> np.ndarray:
    """The four corners of a text's own box, rotated with the text."""
    box = text.get_window_extent() if not hasattr(text, "arrow_patch") else Text.get_window_extent(text)
    turn = math.radians(text.get_rotation())
    cos, sin = abs(math.cos(turn)), abs(math.sin(turn))
    if min(cos, sin) < 1e-6:
        return np.array([(box.x0, box.y0), (box.x1, box.y0), (box.x1, box.y1), (box.x0, box.y1)])
    # The box around a rotated text of width w and height h is w cos + h sin wide and w sin + h cos high.
    w, h = np.linalg.solve([[cos, sin], [sin, cos]], [box.width, box.height])
    half = np.array([(-w, -h), (w, -h), (w, h), (-w, h)]) / 2
    rotation = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    return half @ rotation.T + ((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)


def _overlap(one: np.ndarray, other: np.ndarray) -> bool:
    """Two rectangles overlap unless a side of one of them parts them."""
    for corners in (one, other):
        for number in (0, 1):
            side = corners[number + 1] - corners[number]
            axis = side / max(np.hypot(*side), 1e-9)
            a, b = one @ axis, other @ axis
            if a.max() - SHARED <= b.min() or b.max() - SHARED <= a.min():
                return False
    return True
