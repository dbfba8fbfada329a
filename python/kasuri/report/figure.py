"""A drawing on the page: its SVG, its caption, and its tooltips."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kasuri.plot import style, tips


@dataclass(frozen=True)
class Figure:
    """A drawing for the page: the text of its ``<svg>``, the words under it, and marks as :func:`kasuri.plot.tips.marks` gives them."""

    svg: str
    caption: str
    marks: list[list[Any]] = field(default_factory=list)


def inline(ax: Any, salt: str, caption: str, name: str = "") -> Figure:
    """Make a figure with the ink of the page, for light and dark backgrounds; `name` is for screen readers."""
    from markupsafe import Markup, escape

    text = style.svg_text(ax, salt).replace(style.INK, "currentColor")
    width = round(style.figure_of(ax).get_figwidth() * 72)
    name = name or ax.get_title(loc="left") or f"{ax.get_ylabel()} over {ax.get_xlabel()}"
    head = f'<svg role="img" tabindex="0" aria-label="{escape(name)}" style="--width: {width}px" '
    text = text.replace("<svg ", head, 1)
    return Figure(Markup(text), caption, tips.marks(ax))  # noqa: S704  # our own drawing; the words in it are escaped
