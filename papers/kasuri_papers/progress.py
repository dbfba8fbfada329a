"""How many runs are done of how many, and about how long the others take: a bar on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from kasuri_papers import experiments
from kasuri_papers.figure import Figure, Paper

#: Over so many seconds of finished runs the time of the others is estimated.
ESTIMATED_OVER = 600.0


def planned(chosen: list[tuple[Paper, list[Figure]]], folder: Path) -> int:
    """Count the runs that reproducing asks for: those of each figure, once more for each other value of a constant that is tried.

    Raises
    ------
    ConfigError
        A file of the experiments is missing or wrong.
    """
    return sum(_planned(figure, folder / paper.name) for paper, figures in chosen for figure in figures)


def _planned(figure: Figure, folder: Path) -> int:
    if figure.lacking and not (folder / f"{figure.number}.toml").exists():
        return 0
    files = [experiments.read(folder, number) for number in figure.runs_of or (figure.number,)]
    return sum(point.runs for file in files for point in file.points) * (1 + sum(len(constant.tried) for constant in tried(figure, files)))


def tried(figure: Figure, files: list[experiments.FigureFile]) -> list[experiments.Constant]:
    """Give the constants at whose other values a figure is judged as well. A study sweeps what it wants to know."""
    if figure.lacking or figure.kind == "S":
        return []
    constants: list[experiments.Constant] = []
    for file in files:
        constants += [constant for constant in file.constants if constant not in constants]
    return constants


class Progress:
    """Shows how many of the planned runs are done; a context manager that takes its bar away at the end.

    Parameters
    ----------
    runs : int
        How many there are.
    shown : bool, optional
        Show a bar? Without it: if standard error is a terminal.
    """

    def __init__(self, runs: int, *, shown: bool | None = None) -> None:
        self._runs = runs
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._bar: Any = None

    def __enter__(self) -> Progress:
        """Show the bar, beside which lines can still be printed."""
        if self._shown and self._runs:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (BarColumn(), MofNCompleteColumn(), TextColumn("runs,"), TimeElapsedColumn(), TextColumn("elapsed, about"))
            ends = (TimeRemainingColumn(), TextColumn("left"))
            self._bar = Bar(
                *columns, *ends, console=Console(stderr=True, force_terminal=True), transient=True, speed_estimate_period=ESTIMATED_OVER
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=self._runs)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def finished(self, runs: int) -> None:
        """Move on by so many runs; any thread may call."""
        if self._bar is not None:
            self._bar.advance(self._task, runs)
