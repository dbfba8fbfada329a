"""Reproduces figures: runs, verdict, other values of calibrated constants, other readings, data and plots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kasuri.errors import ConfigError
from kasuri_papers import expectations, experiments, output, progress
from kasuri_papers.expectations import Expectation
from kasuri_papers.figure import Figure, Judge, Paper, Table, Verdict
from kasuri_papers.programs import MissingProgramError
from kasuri_papers.runs import Runner, failures

#: How the finding of a figure begins that could not be run here.
NOT_RUN = "NOT RUN: "


@dataclass(frozen=True)
class Tried:
    """The verdict with something changed.

    Attributes
    ----------
    what : str
        What is changed: a constant with its other value, or the reading by its name.
    is_reading : bool
        Is it another reading of the text? Else it is a calibrated constant at another value.
    verdict : Verdict
        What the judge finds then.
    """

    what: str
    is_reading: bool
    verdict: Verdict

    def __str__(self) -> str:
        """Give one line: what, verdict, measured."""
        return f"{self.what}: {self.verdict.verdict}: {self.verdict.measured}"


@dataclass(frozen=True)
class Outcome:
    """A reproduced figure.

    Attributes
    ----------
    figure : Figure
        What was reproduced.
    verdict : Verdict
        What the judge found.
    table : Table
        What the judge saw.
    failed_runs : list of str
        Runs that came to no result.
    tried : list of Tried
        The verdicts with each calibrated constant at half and at twice its value, or at its alternatives, and with each other reading.
    expectation : Expectation, optional
        What it is expected to give.
    """

    figure: Figure
    verdict: Verdict
    table: Table
    failed_runs: list[str]
    tried: list[Tried] = field(default_factory=list)
    expectation: Expectation | None = None

    @property
    def basis(self) -> str:
        """On what a pass rests, lowered where something that was tried gives another verdict; ``"none"`` for what does not pass."""
        if self.verdict.verdict != "pass":
            return "none"
        others = [tried for tried in self.tried if tried.verdict.verdict != "pass"]
        if self.figure.basis != "derived" or not others:
            return self.figure.basis
        return "reading" if all(tried.is_reading for tried in others) else "calibrated"

    @property
    def is_reproduced(self) -> bool:
        """Does it pass, and for a reason that was not put in?"""
        return self.basis == "derived"

    @property
    def is_not_run(self) -> bool:
        """Was a program missing that the figure measures?"""
        return self.verdict.measured.startswith(NOT_RUN)

    @property
    def is_expected(self) -> bool:
        """Is the verdict the expected one? Where nothing is expected, every verdict is but a failure."""
        if self.expectation is None:
            return self.verdict.verdict != "fail"
        return self.expectation.verdict == self.letter

    @property
    def letter(self) -> str:
        """The verdict as expectations write it: p passes, f fails, r reports, n is not built yet."""
        return "n" if self.figure.lacking else self.verdict.verdict[0]

    @property
    def word(self) -> str:
        """The verdict in words, with the cause of a failure."""
        if self.figure.lacking:
            return "not built"
        if self.verdict.verdict != "fail":
            return self.verdict.verdict
        if self.is_not_run:
            return "not run"
        cause = self.expectation.cause if self.expectation and self.is_expected else ""
        return "not reproduced" + (f": {cause}" if cause else "")

    def as_json(self) -> dict[str, Any]:
        """Give the object that ``--format json`` prints."""
        figure = self.figure
        return {
            "id": figure.id,
            "kind": figure.kind,
            "verdict": self.verdict.verdict,
            "expected": self.expectation.verdict if self.expectation else None,
            "as_expected": self.is_expected,
            "cause": self.expectation.cause if self.expectation else "",
            "claim": figure.claim,
            "criterion": figure.criterion,
            "measured": self.verdict.measured,
            "basis": self.basis,
            "declared_basis": figure.basis,
            "engine": figure.engine,
            "runs": [row["key"] for row in self.table if row.get("key")],
            "seconds": round(sum(row.get("wall_seconds") or 0.0 for row in self.table if row.get("key")), 3),
            "spread": [str(tried) for tried in self.tried if not tried.is_reading],
            "readings": [str(tried) for tried in self.tried if tried.is_reading],
            "notes": list(figure.notes),
        }


def reproduce(
    chosen: list[tuple[Paper, list[Figure]]],
    *,
    folder: Path,
    out: Path,
    runner: Runner,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[Paper, Outcome]]:
    """Reproduce figures one after the other.

    Parameters
    ----------
    chosen : list of (Paper, list of Figure)
        What to reproduce.
    folder : pathlib.Path
        The folder ``experiments``.
    out : pathlib.Path
        The folder of the results, with a folder for each paper.
    runner : Runner
        Makes the runs.
    say : callable, optional
        Is told what begins.

    Yields
    ------
    (Paper, Outcome)
        As soon as a figure is done; its data and plot are written then.

    Raises
    ------
    ConfigError
        A file of the experiments is missing or wrong.
    """
    for paper, figures in chosen:
        of_paper = runner.afresh()
        for figure in figures:
            say(f"{figure.id}: {figure.claim}")
            outcome = _figure(paper, figure, folder / paper.name, out / paper.name, of_paper)
            output.write_data(figure, outcome.table, out / paper.name)
            output.write_plot(figure, outcome.table, out / paper.name)
            yield paper, outcome


def _figure(paper: Paper, figure: Figure, folder: Path, out: Path, runner: Runner) -> Outcome:
    if not folder.is_dir():
        raise ConfigError(f"{folder}: there is no folder with the experiments of `{paper.name}`")
    expectation = expectations.read(folder).get(figure.number)
    if figure.lacking and not (folder / f"{figure.number}.toml").exists():
        return Outcome(figure, figure.judge(Table([])), Table([]), [], [], expectation)
    numbers = figure.runs_of or (figure.number,)
    usual = {number: experiments.read(folder, number) for number in numbers}
    try:
        rows = {number: runner.table(file.points, out / number, figure.columns) for number, file in usual.items()}
    except MissingProgramError as error:
        return Outcome(figure, Verdict("fail", f"{NOT_RUN}{error}"), Table([]), [], [], expectation)
    beside = figure.beside(folder, out) if figure.beside else []
    table = _joined(figure, rows, beside)
    failed = failures(table)
    if figure.lacking:
        so_far = judge(figure, table, failed).measured
        return Outcome(figure, Verdict("fail", f"NOT BUILT: {figure.lacking}; so far: {so_far}"), table, failed, [], expectation)
    tried = [Tried(name, True, judge(figure, table, failed, other)) for name, other in figure.readings.items()]
    constants = progress.tried(figure, list(usual.values()))
    tried += [_with(figure, folder, out, runner, usual, beside, constant, value) for constant in constants for value in constant.tried]
    return Outcome(figure, judge(figure, table, failed), table, failed, tried, expectation)


def _joined(figure: Figure, rows: Mapping[str, Table], beside: list[dict[str, Any]]) -> Table:
    """Put the rows of all files together; where there are several, each says which one it is of."""
    named = [{"figure": number, **row} if figure.runs_of else row for number, table in rows.items() for row in table]
    return Table([*named, *beside])


def judge(figure: Figure, table: Table, failed: list[str], by: Judge | None = None) -> Verdict:
    """Judge a table, by the figure's judge or another one; runs without a result fail a figure that has a criterion.

    With constants that somebody has changed, what is judged may never happen: nothing is predicted, say, so a share has no whole.
    """
    if failed:
        return Verdict("fail", f"NOT: {len(failed)} runs came to no result: {'; '.join(failed)}")
    try:
        return (by or figure.judge)(table)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        return Verdict("fail", f"NOT: what is judged did not happen in these runs ({type(error).__name__}: {error})")


def _with(
    figure: Figure,
    folder: Path,
    out: Path,
    runner: Runner,
    usual: Mapping[str, experiments.FigureFile],
    beside: list[dict[str, Any]],
    constant: experiments.Constant,
    value: Any,
) -> Tried:
    """Judge the figure once more with one constant changed; runs that do not depend on it are those that there are."""
    rows = {}
    for number, file in usual.items():
        changed = experiments.read(folder, number, {(constant.machine, constant.key): value})
        place = out / number / f"{constant.machine}.{constant.key}={experiments.said(value)}"
        before = {point.identity for point in file.points}
        same = [point for point in changed.points if point.identity in before]
        other = [point for point in changed.points if point.identity not in before]
        kept, made = runner.table(same, out / number, figure.columns), runner.table(other, place, figure.columns)
        rows[number] = Table([*kept, *made])
    table = _joined(figure, rows, beside)
    what = f"{constant.machine}: {constant.key} = {experiments.said(value)}"
    return Tried(what, constant.kind == "A", judge(figure, table, failures(table)))
