"""Runs of a paper's figures with some of their keys changed: for tests in which what a figure looks at is switched off."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kasuri_papers import experiments, runs
from kasuri_papers.figure import Judge, Table, Verdict

KASURI = Path(sys.executable).with_name("kasuri")

Rows = list[dict[str, Any]]


def points(paper: str, number: str, series: str, **sections: Mapping[str, Any]) -> list[experiments.Point]:
    """The points of a figure's series, with some keys of the experiment's sections changed; `None` takes a key away."""
    found = [point for point in experiments.read(experiments.find(None) / paper, number).points if point.series == series]
    assert found, f"figure {number} of {paper} has no series {series!r}"
    return [dataclasses.replace(point, experiment=_changed(point.experiment, sections)) for point in found]


def _changed(experiment: Mapping[str, Any], sections: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    changed = dict(experiment)
    for name, keys in sections.items():
        section = {**experiment.get(name, {}), **keys}
        changed[name] = {key: value for key, value in section.items() if value is not None}
    return changed


def table(folder: Path, chosen: Sequence[experiments.Point], columns: Any = None) -> Rows:
    """The rows of these points' runs, which are kept in a folder."""
    return runs.Runner(jobs=1, command=str(KASURI)).table(list(chosen), folder, columns).rows


def failures(verdict: Verdict) -> list[str]:
    """What a verdict says does not hold."""
    return [part.removeprefix("NOT: ") for part in verdict.measured.split("; ") if part.startswith("NOT: ")]


def passes(judge: Judge, made: Rows) -> None:
    verdict = judge(Table(made))
    assert verdict.verdict == "pass", verdict.measured


def fails_in(judge: Judge, made: Rows, *parts: str) -> None:
    """The judge fails, and says these things and no others do not hold."""
    told = failures(judge(Table(made)))
    assert len(told) == len(parts) and all(part in text for part, text in zip(parts, told, strict=True)), told
