"""Prevents texts from overlapping or leaving the figure: wraps labels, rotates tick labels, measures room for legends.

All functions measure the layout of Matplotlib, so call them after everything is drawn on the axes.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Text

#: Longer tick labels are cut; the table has them in full.
MAX_TICK_WORD = 24
#: The smallest legible size of a label (points).
MIN_FONT_SIZE = 6.0


def fit(ax: Axes) -> None:
    """Make the labels and the ticks of the axes fit, and lay out the figure."""
    _lay_out(ax)
    changed = [_separate_ticks(axis) for axis in (ax.xaxis, ax.yaxis)]
    if any(changed):
        _lay_out(ax)
    box = ax.get_window_extent()
    changed = [_wrap(ax.yaxis.label, box.height), _wrap(ax.xaxis.label, box.width)]
    if any(changed):
        _lay_out(ax)
    _move_inside(ax)


def _move_inside(ax: Axes) -> None:
    """Move the label of the ordinate along its axis if the edge of the figure would cut it."""
    label, figure, axes = ax.yaxis.label, _figure(ax), ax.get_window_extent()
    box = label.get_window_extent()
    shift = max(0.0, 1 - box.y0) - max(0.0, box.y1 - figure.bbox.height + 1)
    if shift and box.height <= figure.bbox.height:
        label.set_y(label.get_position()[1] + shift / axes.height)


def axes_width(ax: Axes) -> float:
    """Measure axes that are laid out, in inches."""
    return float(ax.get_window_extent().width / _figure(ax).dpi)


def depth_below(ax: Axes) -> float:
    """Measure how far the texts of the abscissa reach below axes that are laid out, in inches."""
    words = ax.xaxis.get_tightbbox()
    return 0.0 if words is None else max(0.0, float(ax.get_window_extent().y0 - words.y0) / _figure(ax).dpi)


def legend_width(legend: Legend) -> float:
    """Measure a legend, in inches."""
    return float(legend.get_window_extent().width / _figure(legend).dpi)


def hide_overlaps(texts: Sequence[Text]) -> None:
    """Hide texts that would cover an earlier one."""
    kept: list[Any] = []
    for text in texts:
        box = text.get_window_extent().padded(1)
        if any(box.overlaps(other) for other in kept):
            text.set_visible(False)
        else:
            kept.append(box)


def _lay_out(ax: Axes) -> None:
    _figure(ax).draw_without_rendering()


def _figure(artist: Artist) -> Figure:
    figure = artist.get_figure(root=True)
    assert figure is not None  # every drawn artist belongs to a figure
    return figure


def _wrap(label: Text, length: float) -> bool:
    """Break a label into lines as long as its axis (pixels), or shrink it if a word is longer; give whether it changed."""
    words, changed = label.get_text(), False
    if not words or "$" in words:
        return False
    for _ in range(8):
        box = label.get_window_extent()
        extent = max(box.width, box.height)
        if extent <= length:
            break
        longest = max(map(len, label.get_text().splitlines()))
        lines = textwrap.wrap(words, max(8, int(longest * length / extent)), break_long_words=False)
        if "\n".join(lines) != label.get_text() and len(lines) <= 3:
            label.set_text("\n".join(lines))
        elif _points(label) > MIN_FONT_SIZE:
            label.set_fontsize(max(MIN_FONT_SIZE, 0.9 * _points(label)))
        else:
            break
        changed = True
    return changed


def _points(text: Text) -> float:
    """Give the size of a text; Matplotlib converts names of sizes to points."""
    return float(text.get_fontsize())


def _separate_ticks(axis: Axis) -> bool:
    """Separate overlapping tick labels, by fewer numbers or by rotated words; give whether they changed."""
    from matplotlib.ticker import FixedLocator, MaxNLocator, NullFormatter

    if not _labels_meet(axis):
        return False
    if isinstance(axis.get_major_locator(), FixedLocator):
        return _is_abscissa(axis) and _turn(axis)
    axis.set_minor_formatter(NullFormatter())
    for count in (6, 5, 4, 3, 2):
        if not _labels_meet(axis) or axis.get_scale() != "linear":
            break
        axis.set_major_locator(MaxNLocator(count))
    return True


def _turn(axis: Axis) -> bool:
    """Rotate the tick labels, by 90 degrees if there are many; leave out some if these would still overlap."""
    texts, figure = axis.get_ticklabels(), _figure(axis)
    # Words may be as long as a third of the figure is high.
    longest = max(8, min(MAX_TICK_WORD, int(figure.get_figheight() / 3 / 0.085)))
    words = [text.get_text() if len(text.get_text()) <= longest else text.get_text()[: longest - 1] + "…" for text in texts]
    places = list(axis.get_ticklocs())
    shown = axis.axes.transData.transform([(place, 0.0) for place in places])[:, 0]
    room = min((later - earlier for earlier, later in itertools.pairwise(shown)), default=math.inf)
    # Parallel lines of text need a line's height between them.
    line = 1.3 * max(map(_points, texts)) * figure.dpi / 72
    turn = 30 if room * math.sin(math.radians(30)) >= line else 90
    each = max(1, math.ceil(line / room)) if turn == 90 else 1
    axis.set_ticks(places[::each], words[::each], parse_math=False)
    for text in axis.get_ticklabels():
        text.set(rotation=turn, ha="right" if turn < 90 else "center", va="top", rotation_mode="anchor" if turn < 90 else "default")
    return True


def _is_abscissa(axis: Axis) -> bool:
    return axis is axis.axes.xaxis


def _labels_meet(axis: Axis) -> bool:
    """Check whether neighbouring tick labels overlap, or have less than a letter between them."""
    boxes = [text.get_window_extent() for text in _drawn_labels(axis)]
    gap = 0.4 * (boxes[0].height if boxes else 0)
    if _is_abscissa(axis):
        spans = sorted((box.x0, box.x1) for box in boxes)
    else:
        spans, gap = sorted((box.y0, box.y1) for box in boxes), 0.0
    return any(later[0] < earlier[1] + gap for earlier, later in itertools.pairwise(spans))


def _drawn_labels(axis: Axis) -> list[Text]:
    """Give the labels of the ticks in view."""
    low, high = sorted(axis.get_view_interval())
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    margin = 1e-9 * (high - low)
    seen = [tick for tick in ticks if low - margin <= tick.get_loc() <= high + margin]
    return [tick.label1 for tick in seen if tick.label1.get_visible() and tick.label1.get_text()]
