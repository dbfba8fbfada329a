"""Lets a figure have the finished runs of another one: equal runs are computed once, in whichever folder they are first asked for."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import itertools
import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import kasuri

#: What marks a folder as a run store.
_MARKER = ".kasuri"


class KeptRuns:
    """The finished runs of this process, by what they were asked: their files are linked into each folder that asks for the same."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[Path, str]] = {}
        self._locks: dict[str, threading.Lock] = {}

    def run(self, experiment: Mapping[str, Any], folder: Path) -> kasuri.Results:
        """Run an experiment in a folder, or take what that folder or another one holds."""
        asked = list(asked_runs(experiment))
        with contextlib.ExitStack() as stack:
            # Who asks for a run that another thread is making waits for it. In one order for all, so that none waits for ever.
            for run in sorted(set(asked)):
                stack.enter_context(self._locks.setdefault(run, threading.Lock()))
            for run in asked:
                if run in self._places:
                    _link(*self._places[run], folder)
            results = kasuri.run(experiment, out=folder, jobs=1, progress=False)
            if len(results) == len(asked):
                for run, row in zip(asked, results, strict=True):
                    self._places.setdefault(run, (folder, row["key"]))
        return results


def asked_runs(experiment: Mapping[str, Any]) -> Iterator[str]:
    """Describe each run of an experiment, in the order of its table: equal texts are equal runs, whatever sweep they come from."""
    sweep = experiment.get("sweep", {})
    sections = {name: section for name, section in experiment.items() if name != "sweep"}
    texts = {name: json.dumps(section, sort_keys=True) for name, section in sections.items()}
    axes = [values if isinstance(values, list) else [values] for values in sweep.values()]
    for values in itertools.product(*axes):
        of_run = texts | _swept(sections, dict(zip(sweep, values, strict=True)))
        yield hashlib.sha256(json.dumps(of_run, sort_keys=True).encode()).hexdigest()


def _swept(sections: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, str]:
    """Give the text of each section that a sweep changes; a value that is no simple one of one key stands beside the sections."""
    changed: dict[str, Any] = {}
    for key, value in values.items():
        section, _, rest = key.partition(".")
        if not rest or "." in rest or isinstance(value, dict) or not isinstance(sections.get(section, {}), dict):
            changed[f"sweep {key}"] = value
            continue
        changed.setdefault(section, copy.copy(sections.get(section, {})))[rest] = value
    return {name: json.dumps(section, sort_keys=True) for name, section in changed.items()}


def _link(source: Path, key: str, folder: Path) -> None:
    """Give a folder the files of a run that another one holds; without links of the file system it computes the run itself."""
    row = source / "runs" / f"{key}.json"
    target = folder / "runs" / row.name
    if target.exists() or not row.exists():
        return
    try:
        if not (folder / _MARKER).exists():
            if folder.exists() and any(folder.iterdir()):
                return
            folder.mkdir(parents=True, exist_ok=True)
            (folder / _MARKER).touch()
        target.parent.mkdir(exist_ok=True)
        # The row last: it vouches for the vectors.
        for file in (*row.parent.glob(f"{key}.*.npy"), row):
            if not (target.parent / file.name).exists():
                os.link(file, target.parent / file.name)
    except OSError:
        return
