"""How Kasuri's figures look, without touching Matplotlib's global settings."""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kasuri.errors import ArgumentError, FileError
from kasuri.plot import fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Text

#: Colours that are distinguishable for any colour vision and visible on light and dark pages (after Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d46", "#7f7f7f")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
#: When the colours come round again, the line differs.
DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 3, 1, 1, 1)))
#: The largest number of distinguishable curves.
MAX_CURVES = len(COLOURS) * len(DASHES)
#: Text and axes. One colour that nothing else has, so that a page can replace it by its own.
INK = "#24292f"
FAINT = "#8c959f"
#: From little to much traffic; every colour is visible on light and dark pages.
HEAT = ("#8fb0c9", "#6f9fc4", "#e0b23c", "#dd7a1f", "#b3261e")

#: How every legend looks.
LEGEND: dict[str, Any] = {
    "frameon": False,
    "fontsize": "small",
    "title_fontsize": "small",
    "borderaxespad": 0,
    "alignment": "left",
    "handlelength": 3.0,
}


def new_axes(width: float = 6.4, height: float = 4.0) -> Axes:
    """Make axes on a new figure (inches), without a window and without pyplot's global list of figures."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def identity(number: int) -> dict[str, Any]:
    """Give the look of a curve: no two of :data:`MAX_CURVES` have the same colour and line, nor the same colour and marker."""
    turn = number // len(COLOURS)
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[turn % len(DASHES)],
        "marker": MARKERS[(number + turn) % len(MARKERS)],
    }


def write(text: Text, words: str) -> None:
    """Set words of a user: mathematics where Matplotlib can set it, else unchanged; without control characters."""
    from matplotlib.mathtext import MathTextParser

    words = printable(words)
    try:
        MathTextParser("path").parse(words)
    except Exception:  # noqa: BLE001  # a parser may raise anything for text that is not mathematics
        text.set_parse_math(False)
    text.set_text(words)


def printable(words: str) -> str:
    """Replace control characters, which no file format of figures can hold."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in words)


def title(ax: Axes, words: str, size: str = "large") -> None:
    """Set a title over the axes, in lines as wide as the figure, or as the axes where the figure has several."""
    figure = figure_of(ax)
    inches = figure.get_figwidth() if len(figure.axes) == 1 else fit.axes_width(ax)
    letters = int((11 if size == "large" else 14) * inches)
    lines = textwrap.wrap(words, max(20, letters), max_lines=4, placeholder=" …")
    write(ax.set_title("", color=INK, loc="left", fontsize=size), "\n".join(lines) if "$" not in words else words)


def legend(ax: Axes, handles: Sequence[Any], names: Sequence[str], heading: str, *, grow: bool) -> None:
    """Put a legend outside of the axes, where it covers nothing: to the right, below narrow axes.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The axes, with their labels.
    handles, names : sequences
        The content.
    heading : str
        Its title.
    grow : bool
        Make the figure larger by the legend; else the axes have to give the room.
    """
    figure = figure_of(ax)
    width, height = figure.get_size_inches()
    is_right = width >= 5.6 if grow else fit.axes_width(ax) >= 4.5
    # The sample line of a curve takes half an inch, a letter 0.078.
    letters = 44 if is_right else max(12, min(44, int(((width - 0.8 if grow else fit.axes_width(ax)) - 0.6) / 0.078)))
    names = [textwrap.fill(printable(name), letters) for name in names]
    heading = textwrap.fill(heading, letters)
    if is_right:
        if grow:
            lines = [line for name in [*names, heading] for line in name.splitlines()]
            figure.set_size_inches(width + 0.55 + 0.078 * max(map(len, lines), default=0), max(height, 0.5 + 0.2 * len(lines)))
        box = ax.legend(handles, names, title=heading, loc="upper left", bbox_to_anchor=(1.02, 1), **LEGEND)
    else:
        box = _legend_below(ax, handles, names, heading, grow=grow)
    _ink_legend(box)


def _legend_below(ax: Axes, handles: Sequence[Any], names: Sequence[str], heading: str, *, grow: bool) -> Legend:
    """Put a legend below the texts of the abscissa, in all columns that fit."""
    from matplotlib.transforms import ScaledTranslation

    figure = figure_of(ax)
    width, height = figure.get_size_inches()
    longest = max((len(line) for name in names for line in name.splitlines()), default=0)
    room = width - 0.8 if grow else fit.axes_width(ax)
    columns = max(1, min(len(names), int(room / (0.5 + 0.078 * longest))))
    under = ax.transAxes + ScaledTranslation(0, -0.1 - fit.depth_below(ax), figure.dpi_scale_trans)
    while True:
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, 0), "bbox_transform": under, "ncols": columns}
        box = ax.legend(handles, names, title=heading, **place, **LEGEND)
        if columns == 1 or fit.legend_width(box) <= room:
            break
        columns -= 1
    if grow:
        lines = sum(name.count("\n") + 1 for name in names)
        figure.set_size_inches(width, height + 0.3 + 0.2 * (heading.count("\n") + math.ceil(lines / columns)))
    return box


def _ink_legend(box: Legend) -> None:
    for text in (*box.get_texts(), box.get_title()):
        text.set_parse_math(False)
        text.set_color(INK)


def heat() -> Colormap:
    """Make the colours of channel utilisation."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("kasuri-heat", HEAT)


def tidy(ax: Axes) -> None:
    """Remove uninformative parts, and set ink and grid."""
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
        A file that ends in ``.svg``, ``.png``, ``.pdf`` or ``.eps``. Its folder is made where it is missing.
    **options
        Passed on to Matplotlib's ``savefig``, for example ``dpi=300``.

    Returns
    -------
    pathlib.Path
        The file written. The same figure gives the same bytes: no date is stored.

    Raises
    ------
    ArgumentError
        The ending of the path names no format.
    FileError
        The file cannot be written.
    """
    import matplotlib as mpl

    path = Path(path)
    no_date = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    figure = figure_of(ax)
    if figure.get_layout_engine() is None and any(one.get_legend() is not None for one in figure.axes):
        options.setdefault("bbox_inches", "tight")  # a legend outside of the axes may lie outside of such a figure
    # Type 42: journals refuse the Type 3 fonts that Matplotlib embeds by default.
    if path.suffix.removeprefix(".") not in figure.canvas.get_supported_filetypes():
        raise ArgumentError(f"{path}: no format has the ending `{path.suffix}`; use .svg, .pdf, .png or .eps")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context({"svg.hashsalt": "kasuri", "savefig.dpi": 150, "pdf.fonttype": 42, "ps.fonttype": 42}):
            figure.savefig(path, metadata=no_date.get(path.suffix), **options)
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error}") from error
    return path


def svg_text(ax: Axes, salt: str) -> str:
    """Give the figure as the text of an ``<svg>`` element for a page: letters stay letters, ids begin from ``salt``."""
    import matplotlib as mpl

    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # the reader's browser has more letters
        figure_of(ax).savefig(buffer, format="svg", transparent=True, metadata=nothing)
    text = buffer.getvalue()
    return text[text.index("<svg") :]
