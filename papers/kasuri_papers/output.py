"""What comes out: data as CSV, plots, the table for people, the page."""

from __future__ import annotations

import collections
import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from kasuri_papers.expectations import LETTERS
from kasuri_papers.figure import Figure, Paper, Plot, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kasuri_papers.reproduction import Outcome

#: What a pass rests on that does not count as reproduced.
BASES = {
    "calibrated": "with a constant chosen from the claim",
    "reading": "by one of several readings",
    "identity": "true by construction",
    "structure": "built as drawn",
}
_MARKS = {"pass": "green", "fail": "red", "report": "yellow"}


def write_data(figure: Figure, table: Table, folder: Path) -> Path:
    """Write the rows of a figure as CSV; columns without any value are left out, lists and tables are JSON text."""
    names = list(dict.fromkeys(name for row in table for name, value in row.items() if value not in (None, "", [])))
    path = folder / f"{figure.number}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([_cell(row.get(name)) for name in names] for row in table)
    return path


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


def write_plot(figure: Figure, table: Table, folder: Path) -> list[Path]:
    """Write the figure's plot as SVG and PDF."""
    from kasuri.plot import style

    if figure.plot is None or not len(table):
        return []
    axes = draw(figure, figure.plot, table)
    return [Path(style.save(axes, folder / f"{figure.number}.{ending}")) for ending in ("svg", "pdf")]


def draw(figure: Figure, plot: Plot, table: Table) -> Axes:
    """Draw a figure: a curve for each series and each value of what splits them."""
    from kasuri.plot import curves, fit, style

    rows = [
        {"place.x": row[plot.x], "value": row[plot.y], "series": _series(row, plot)}
        for row in table
        if row.get(plot.x) is not None and row.get(plot.y) is not None
    ]
    axes = curves(rows, x="place.x", y="value", series="series")
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)
    if plot.top is not None:
        axes.set_ylim(0, plot.top)
    style.title(axes, f"{figure.id}: {figure.claim}", size="small")
    fit.fit(axes)  # the labels were set after the curves had been drawn
    return axes


def _series(row: dict[str, Any], plot: Plot) -> str:
    parts = [f"{key.rpartition('.')[2]} {row[key]}" for key in plot.split if row.get(key) is not None]
    return ", ".join([str(row["series"]), *parts])


def summary(outcomes: Sequence[Outcome]) -> str:
    """Count the figures: only passes that follow from given facts count as reproduced."""
    passing = collections.Counter(outcome.basis for outcome in outcomes if outcome.verdict.verdict == "pass")
    judged = sum(outcome.figure.basis == "derived" and outcome.verdict.verdict != "report" for outcome in outcomes)
    lacking = sum(bool(outcome.figure.lacking) for outcome in outcomes)
    not_run = sum(outcome.is_not_run for outcome in outcomes)
    failing = sum(outcome.verdict.verdict == "fail" for outcome in outcomes) - lacking - not_run
    reports = sum(outcome.verdict.verdict == "report" for outcome in outcomes)
    apart = ", ".join(f"{passing[basis]} {meaning}" for basis, meaning in BASES.items() if passing[basis])
    text = f"{passing['derived']} of {judged} derived claims reproduced"
    text += f"; passing, but not counted: {apart}" if apart else ""
    missing = f"{not_run} not run, " if not_run else ""
    return f"{text}; {failing} not reproduced, {lacking} not built, {missing}{reports} without a criterion"


def surprises(outcomes: Sequence[Outcome]) -> list[str]:
    """Describe the verdicts that are not the expected ones."""
    return [
        f"{outcome.figure.id}: {LETTERS[outcome.letter]}; expected: "
        f"{LETTERS[outcome.expectation.verdict] if outcome.expectation else 'not a failure'}: {outcome.verdict.measured}"
        for outcome in outcomes
        if not outcome.is_expected
    ]


def tried_lines(outcome: Outcome) -> list[str]:
    """Describe what was tried: each reading, each constant that changes the verdict, and in one line those that do not."""
    lines = [f"reading:  {tried}" for tried in outcome.tried if tried.is_reading]
    constants = [tried for tried in outcome.tried if not tried.is_reading]
    lines += [f"spread:   {tried}" for tried in constants if tried.verdict.verdict != outcome.verdict.verdict]
    same = [tried.what for tried in constants if tried.verdict.verdict == outcome.verdict.verdict]
    return lines + ([f"spread:   {outcome.verdict.verdict} as well with {'; '.join(same)}"] if same else [])


def print_table(outcomes: Sequence[Outcome], file: TextIO) -> None:
    """Print the verdicts: a table on a terminal that is wide enough, else a paragraph for each figure."""
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console(file=file, highlight=False)
    if console.is_terminal and console.width >= 100:
        table = RichTable("figure", "verdict", "claim", "measured", "basis", show_lines=True)
        for outcome in outcomes:
            colour = _MARKS[outcome.verdict.verdict]
            claim, measured = outcome.figure.claim, outcome.verdict.measured
            table.add_row(outcome.figure.id, f"[{colour}]{outcome.word}[/]", claim, measured, outcome.basis)
        console.print(table)
    else:
        for outcome in outcomes:
            print(f"{outcome.figure.id}  {outcome.word}  ({outcome.basis})", file=file)
            print(f"    claim:    {outcome.figure.claim}", file=file)
            print(f"    measured: {outcome.verdict.measured}", file=file)
            for line in tried_lines(outcome):
                print(f"    {line}", file=file)
    print(summary(outcomes), file=file)
    for line in surprises(outcomes):
        print(f"not as expected: {line}", file=file)


def write_page(paper: Paper, outcomes: Sequence[Outcome], folder: Path) -> Path:
    """Write ``index.html``: every figure with its verdict, claim, criterion, measured text and plot."""
    from kasuri.report import page
    from kasuri.report.figure import inline

    entries = []
    for number, outcome in enumerate(outcomes):
        figure = outcome.figure
        plot = None
        if figure.plot is not None and len(outcome.table):
            plot = inline(draw(figure, figure.plot, outcome.table), f"figure{number}", figure.claim)
        entries.append({"outcome": outcome, "plot": plot, "tried": tried_lines(outcome)})
    text = page.render(
        "reproduce.html.j2", home="kasuri_papers", paper=paper, entries=entries, summary=summary(outcomes), versions=page.versions()
    )
    return page.replace(folder / "index.html", text)
