"""How Kasuri's figures look, without touching Matplotlib's global settings."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

#: Colours that people with any colour vision tell apart, and that stand on light and dark pages (after Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d46", "#7f7f7f")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
#: Text and axes. One colour that nothing else has, so that a page can replace it by its own.
INK = "#24292f"
FAINT = "#8c959f"
#: From little to much traffic; every colour of it stands on light and dark pages.
HEAT = ("#8fb0c9", "#6f9fc4", "#e0b23c", "#dd7a1f", "#b3261e")


def new_axes(width: float = 6.4, height: float = 4.0) -> Axes:
    """Make axes on a figure of their own (inches), without a window and without pyplot's global list of figures."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def heat() -> Colormap:
    """Make the colours of channel utilisation."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("kasuri-heat", HEAT)


def tidy(ax: Axes) -> None:
    """Remove what carries no information, and set ink and grid."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(INK)
    ax.tick_params(colors=INK)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)
    ax.title.set_color(INK)
    ax.grid(True, color=FAINT, alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    legend = ax.get_legend()
    if legend is not None:
        for text in legend.get_texts():
            text.set_color(INK)
        legend.get_title().set_color(INK)


def figure_of(ax: Axes) -> Figure:
    """Give the figure that the axes belong to."""
    figure = ax.get_figure(root=True)
    assert figure is not None  # axes that are drawn on belong to a figure
    return figure


def save(ax: Axes, path: str | Path, **options: Any) -> Path:
    """Save the figure of these axes; the ending of the path says how.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Axes that a function of this module has returned.
    path : path-like
        A file that ends in ``.svg``, ``.png`` or ``.pdf``. Its folder is made where it is missing.
    **options
        Passed on to Matplotlib's ``savefig``, for example ``dpi=300``.

    Returns
    -------
    pathlib.Path
        The file written. The same figure gives the same bytes: no date is stored.
    """
    import matplotlib as mpl

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    no_date = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with mpl.rc_context({"svg.hashsalt": "kasuri", "savefig.dpi": 150}):
        figure_of(ax).savefig(path, metadata=no_date.get(path.suffix), **options)
    return path


def svg_text(ax: Axes, salt: str) -> str:
    """Give the figure as the text of an ``<svg>`` element for a page: letters stay letters, ids begin from ``salt``."""
    import matplotlib as mpl

    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        figure_of(ax).savefig(buffer, format="svg", transparent=True, metadata=nothing)
    text = buffer.getvalue()
    return text[text.index("<svg") :]
