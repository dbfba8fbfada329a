"""Reproduces figures: runs, verdict, spread over calibrated constants, data and plots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kasuri.errors import ConfigError
from kasuri_papers import experiments, output
from kasuri_papers.figure import Figure, Paper, Table, Verdict
from kasuri_papers.runs import Runner, failures


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
    spread : list of str
        The verdicts with each calibrated constant at half and at twice its value, or at its alternatives.
    """

    figure: Figure
    verdict: Verdict
    table: Table
    failed_runs: list[str]
    spread: list[str]

    @property
    def is_reproduced(self) -> bool:
        """Does it pass, and for a reason that was not put in?"""
        return self.verdict.verdict == "pass" and self.figure.basis == "derived"

    def as_json(self) -> dict[str, Any]:
        """Give the object that ``--format json`` prints."""
        figure = self.figure
        return {
            "id": figure.id,
            "kind": figure.kind,
            "verdict": self.verdict.verdict,
            "claim": figure.claim,
            "criterion": figure.criterion,
            "measured": self.verdict.measured,
            "basis": figure.basis,
            "engine": figure.engine,
            "runs": [row["key"] for row in self.table if row.get("key")],
            "seconds": round(sum(row.get("wall_seconds") or 0.0 for row in self.table if row.get("key")), 3),
            "spread": self.spread,
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
        for figure in figures:
            say(f"{figure.id}: {figure.claim}")
            outcome = _figure(paper, figure, folder / paper.name, out / paper.name, runner)
            output.write_data(figure, outcome.table, out / paper.name)
            output.write_plot(figure, outcome.table, out / paper.name)
            yield paper, outcome


def _figure(paper: Paper, figure: Figure, folder: Path, out: Path, runner: Runner) -> Outcome:
    if not folder.is_dir():
        raise ConfigError(f"{folder}: there is no folder with the experiments of `{paper.name}`")
    file = experiments.read(folder, figure.number)
    table = _table(figure, file, folder, out / figure.number, runner)
    failed = failures(table)
    verdict = judge(figure, table, failed)
    tried = [(constant.key, value) for constant in file.constants for value in constant.tried]
    spread = [_with(figure, file, folder, out, runner, key, value) for key, value in tried]
    return Outcome(figure, verdict, table, failed, spread)


def _table(figure: Figure, file: experiments.FigureFile, folder: Path, out: Path, runner: Runner) -> Table:
    table = runner.table(file.points, out, figure.columns)
    beside = figure.beside(folder, out) if figure.beside else []
    return Table([*table, *beside])


def judge(figure: Figure, table: Table, failed: list[str]) -> Verdict:
    """Judge a table; runs without a result fail a figure that has a criterion."""
    if failed:
        return Verdict("fail", f"NOT: {len(failed)} runs came to no result: {'; '.join(failed)}")
    return figure.judge(table)


def _with(
    figure: Figure,
    usual: experiments.FigureFile,
    folder: Path,
    out: Path,
    runner: Runner,
    key: str,
    value: Any,
) -> str:
    """Judge the figure once more with one calibrated constant changed; runs that do not depend on it are those that there are."""
    file = experiments.read(folder, figure.number, {key: value})
    place = out / figure.number / f"{key}={value}"
    same = [point for point in file.points if point in usual.points]
    other = [point for point in file.points if point not in usual.points]
    table = Table([*runner.table(same, out / figure.number, figure.columns), *runner.table(other, place, figure.columns)])
    verdict = judge(figure, table, failures(table))
    return f"{key} = {value}: {verdict.verdict}: {verdict.measured}"
