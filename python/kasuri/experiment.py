"""Running experiments: one description, from a file or a dictionary, to a table of results."""

from __future__ import annotations

import functools
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kasuri import _job, _kasuri, _progress
from kasuri._plain import as_json
from kasuri.errors import ConfigError, nearest
from kasuri.network import Network
from kasuri.results import Results, read

__all__ = ["run", "sweep"]

Experiment = str | Path | Mapping[str, Any]


def run(
    experiment: Experiment,
    *,
    out: str | Path | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    progress: _progress.ProgressOption = None,
    **overrides: Any,
) -> Results:
    """Run an experiment; finished runs are not computed again.

    Parameters
    ----------
    experiment : path-like or mapping
        The experiment file, or the same keys as a dictionary of dictionaries. The value of ``"network"`` may be a
        :class:`~kasuri.Network`.
    out : path-like, optional
        The folder of the results. Without it: ``out/<name of the file>``, as the command does; for a dictionary a temporary
        folder that goes with the results.
    jobs : int, optional
        Runs at once; without it, one per processor.
    threads : int, optional
        Threads of each run; the flow engine takes two at most, or one for each user. Without it runs get several where
        fewer runs than processors are left, as many as they are worth. The results are the same, bit for bit.
    progress : bool or callable, optional
        Show how far the runs are: a bar in a terminal or in the cell of a notebook; a function is called with the numbers of
        finished and of all runs, and an exception in it stops them. Without it, terminals and notebooks show a display.
    **overrides
        Keys that replace those of the experiment, with ``__`` for the dot: ``traffic__load=0.2``. A key that the experiment
        sweeps is taken out of the sweep. Each is a column of the results, and the folder's ``effective.toml`` has them all.

    Returns
    -------
    Results
        One row per run. A run that ends as ``max_cycles``, ``deadlock`` or ``failed`` is a row too:
        :meth:`Results.raise_for_status` raises it.

    Raises
    ------
    ConfigError
        The description is wrong; the message names the key and the remedy.
    ResultsError
        The folder cannot be written, or another process writes into it.
    KeyboardInterrupt
        Ctrl-C (in a notebook: "interrupt"). Finished runs are kept in the folder; the same call again computes the rest. As all signals
        it reaches the main thread alone; where it ends the program, experiments of other threads end with it.

    Examples
    --------
    >>> mesh = {
    ...     "network": {"topology": "mesh", "dimensions": [4, 4]},
    ...     "routing": {"algorithm": "dimension-order"},
    ...     "traffic": {"pattern": "uniform", "load": 0.1, "packet_flits": 5},
    ...     "measure": {"precision": 0.1},
    ... }
    >>> run(mesh)[0]["status"]
    'converged'
    """
    for name, count in (("jobs", jobs), ("threads", threads)):
        if count is not None and (not isinstance(count, int) or count < 1):
            raise ConfigError(f"{name}: is {count!r}; it must be a whole number, at least 1")
    if not isinstance(experiment, Mapping | str | os.PathLike):
        raise ConfigError(f"experiment: is {experiment!r}; give the path of a file, or its keys as a dictionary")
    if out is not None and not isinstance(out, str | os.PathLike):
        raise ConfigError(f"out: is {out!r}; expected the name of a folder")
    _check_overrides(overrides)
    cores = (jobs, threads)
    changes = {key.replace("__", "."): value for key, value in overrides.items()}
    display = _progress.display(progress)
    if isinstance(experiment, Mapping):
        return _run_table(experiment, changes, out, cores, display)
    path = Path(experiment)
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    folder = Path("out") / path.stem if out is None else Path(out)
    values = as_json(changes)
    keys = _job.finish(lambda: _kasuri.run_text(str(path), text, values, str(path.parent), str(folder), cores), folder, display, kept=True)
    return read(folder)._of(keys)


def sweep(
    experiment: Experiment,
    values: Mapping[str, Sequence[Any]],
    *,
    out: str | Path | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    progress: _progress.ProgressOption = None,
    **overrides: Any,
) -> Results:
    """Run an experiment for every combination of values: the ``[sweep]`` of the experiment file.

    Parameters
    ----------
    experiment : path-like or mapping
        As :func:`run` takes it. A ``[sweep]`` of its own is replaced key by key.
    values : mapping of str to sequence
        Dotted keys and their values, for example ``{"traffic.load": [0.1, 0.2], "measure.seed": [1, 2, 3]}``; the last key
        varies fastest. A value that is a dictionary is merged over the experiment's. Values that change together are listed under
        ``"case"``: ``[{"label": "mesh", "network": {...}, "routing.algorithm": ...}, ...]``.
    out, jobs, threads, progress, **overrides
        As in :func:`run`.

    Returns
    -------
    Results
        One row per combination.

    Raises
    ------
    ConfigError
        The description is wrong, or a key has no values.

    Examples
    --------
    >>> mesh = {
    ...     "network": {"topology": "mesh", "dimensions": [4, 4]},
    ...     "routing": {"algorithm": "dimension-order"},
    ...     "traffic": {"pattern": "uniform", "packet_flits": 5},
    ...     "measure": {"precision": 0.1},
    ... }
    >>> sweep(mesh, {"traffic.load": [0.1, 0.2]})["traffic.load"].tolist()
    [0.1, 0.2]
    """
    if not isinstance(values, Mapping):
        raise ConfigError(f"values: is {values!r}; give keys and their values as a dictionary, such as {{'traffic.load': [0.1, 0.2]}}")
    for key, axis in values.items():
        if isinstance(axis, str | Mapping) or not isinstance(axis, Iterable):
            raise ConfigError(f"sweep {key}: is {axis!r}; it must be a list of values, such as [{axis!r}]")
    axes = {f"sweep.{key}": list(axis) for key, axis in values.items()}
    return run(experiment, out=out, jobs=jobs, threads=threads, progress=progress, **overrides, **axes)


def _check_overrides(overrides: Mapping[str, Any]) -> None:
    """Refuse a keyword that is neither a key nor a section of the experiment file, and suggest the nearest key."""
    for name in overrides:
        if "__" in name or "." in name:
            continue  # the compiled part checks keys of sections
        sections, keys = _known_keys()
        if name not in sections:
            meant = nearest(name.replace("_", "."), keys) or nearest(name, keys) or nearest(name, [key.replace(".", "_") for key in keys])
            same = [key for key in keys if meant in (key, key.replace(".", "_"))]
            hint = f"; did you mean `{same[0].replace('.', '__')}`?" if same else f"; sections are {', '.join(sections)}"
            raise ConfigError(f"override {name}: unknown key{hint} (write `__` for the dot of a key)")


@functools.cache
def _known_keys() -> tuple[list[str], list[str]]:
    """Give the sections of the experiment file, and the dotted keys in them."""
    schema = json.loads(_kasuri.schema())
    sections = list(schema["properties"])
    keys: dict[str, None] = {}

    def collect(section: str, node: Any) -> None:
        if isinstance(node, list):
            for part in node:
                collect(section, part)
        elif isinstance(node, dict):
            keys.update(dict.fromkeys(f"{section}.{name}" for name in node.get("properties", {})))
            if "$ref" in node:
                collect(section, schema["$defs"][node["$ref"].removeprefix("#/$defs/")])
            for part in ("allOf", "anyOf", "oneOf", "then", "else"):
                collect(section, node.get(part, []))

    for section in sections:
        collect(section, schema["properties"][section])
    return sections, list(keys)


class _TemporaryFolder:
    """A folder that goes silently with this object; `tempfile.TemporaryDirectory` would warn unless it is closed by hand."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="kasuri-")
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _run_table(
    experiment: Mapping[str, Any],
    changes: Mapping[str, Any],
    out: str | Path | None,
    cores: tuple[int | None, int | None],
    display: _progress.Display,
) -> Results:
    table, texts = dict(experiment), dict[str, str]()
    network = table.get("network")
    if isinstance(network, Network):
        table["network"], texts = network.experiment_table(), network.texts
    description, values = as_json(table), as_json(changes)
    temporary = _TemporaryFolder() if out is None else None
    folder = Path(temporary.path if temporary else out or ".")
    keys = _job.finish(lambda: _kasuri.run_table(description, values, texts, str(folder), cores), folder, display, kept=temporary is None)
    results = read(folder)._of(keys)
    # The vectors live as long as the rows that they belong to.
    results._keep_alive = temporary
    return results
