"""Runs of a paper's figures with some of their keys changed: for tests in which what a figure looks at is switched off."""

from __future__ import annotations

import dataclasses
import inspect
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from command_line import KASURI
from kasuri_papers import experiments, runs
from kasuri_papers.figure import Figure, Table, Verdict

Rows = list[dict[str, Any]]
Points = list[experiments.Point]
Judge = Callable[[Table], Verdict]


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


def series(paper: str, number: str, *names: str, **sections: Any) -> Points:
    """The points of several series of a figure, with some keys of the experiments' sections changed."""
    return [point for name in names for point in points(paper, number, name, **sections)]


def at(chosen: Points, /, **places: Any) -> Points:
    """The points at these places: each variable has the given value, or one of a given tuple."""
    allowed = {name: values if isinstance(values, tuple) else (values,) for name, values in places.items()}
    found = [point for point in chosen if all(point.variables[name] in values for name, values in allowed.items())]
    assert found, f"no point at {places}"
    return found


def ran(folder: Path, chosen: Points, columns: Any = None) -> Rows:
    """The rows of these points, made afresh in a folder of their own."""
    return table(Path(tempfile.mkdtemp(dir=folder)), chosen, columns)


def judged(judge: Judge, rows: Rows) -> list[str]:
    """What a judge says does not hold; nothing where it passes."""
    verdict = judge(Table(rows))
    parts = failures(verdict)
    assert verdict.verdict == ("fail" if parts else "pass"), verdict
    return parts


def must_cover(judges: Iterable[Judge], tests: Mapping[Judge, Callable[..., None] | tuple[Callable[..., None], ...]]) -> None:
    """Check that each of these judges has its tests, and that one of them names it or is handed it."""
    assert set(judges) == set(tests)
    for judge, found in tests.items():
        several = found if isinstance(found, tuple) else (found,)
        handed = [value for test in several for mark in getattr(test, "pytestmark", []) for case in mark.args[1] for value in _values(case)]
        named = any(re.search(rf"\b{judge.__name__}\b", inspect.getsource(test)) for test in several)
        assert named or judge in handed, f"{several[0].__name__} does not ask {judge.__name__}"


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)


def judged_in(figures: Iterable[Figure]) -> set[Judge]:
    """The judges of these figures, but of the studies."""
    return {figure.judge for figure in figures if figure.kind != "S"}
