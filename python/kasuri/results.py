"""Results: one row and some vectors for each run, and conversions to pandas, polars, Arrow, xarray and Parquet.

The truth is one JSON file per finished run (``runs/<key>.json``) with its vectors (``runs/<key>.<vector>.npy``); everything
here is derived from those files.
"""

from __future__ import annotations

import io
import json
import os
import tomllib
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from kasuri import _columns, _files, _kasuri
from kasuri.errors import ArgumentError, ColumnError, ConfigError, DeadlockError, ResultsError, RowError, RunError, package
from kasuri.network import Network

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    import xarray

__all__ = ["Results", "read"]

#: The experiment as it was run, in the folder of its results.
EFFECTIVE = "effective.toml"

#: The vectors of a run, and the meaning of their positions.
VECTORS = {
    "channel_utilisation": "channels",
    "router_occupancy": "routers",
    "accepted_throughput": "terminals",
    "injected_load": "terminals",
    "completion_cycles": "terminals",
    "packet_latency_histogram": "buckets, 2",
    "predictions": "channels, 3",
    "predictions_by_level": "levels, 3, 2",
}


class Results(Sequence[dict[str, Any]]):
    """The rows of an experiment's runs; a sequence of dictionaries that converts to any table.

    Parameters
    ----------
    rows : sequence of mappings
        One per run: the swept keys under their dotted names, then the answers.
    directory : path-like, optional
        The folder of the runs; without it there are no vectors, no input text and no plots.

    Attributes
    ----------
    rows : list of dict
        The rows.
    directory : pathlib.Path or None
        The folder of the runs.

    Examples
    --------
    >>> results = Results([{"traffic.load": 0.1, "status": "converged", "packet_latency_mean": 20.5}])
    >>> results["packet_latency_mean"].tolist()
    [20.5]
    >>> len(results.where(status="saturated"))
    0
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]], directory: str | Path | None = None) -> None:
        if isinstance(rows, str | Mapping) or not isinstance(rows, Iterable):
            raise ArgumentError(f"rows: expected a list of rows, got {type(rows).__name__}; kasuri.read takes the name of a folder")
        self.rows: list[dict[str, Any]] = [dict(row) for row in rows]
        self.directory: Path | None = None if directory is None else Path(directory)
        self._keep_alive: object = None
        self._input: str | None = None
        self._missing: list[dict[str, Any]] | None = None
        #: The results and the values that these are a part of.
        self._part_of: tuple[Results, dict[str, Any]] | None = None

    # --- a sequence of rows, and columns by name ---

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Results: ...
    @overload
    def __getitem__(self, index: str) -> np.ndarray: ...
    def __getitem__(self, index: int | slice | str) -> dict[str, Any] | Results | np.ndarray:
        if isinstance(index, str):
            return self.column(index)
        if isinstance(index, slice):
            return self._with(self.rows[index])
        return self._row(index)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __repr__(self) -> str:
        where = f" in {self.directory}" if self.directory else ""
        return f"<kasuri.Results: {len(self)} runs{where}; swept: {', '.join(self.swept) or 'nothing'}>"

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return _columns.names(self.rows)

    @property
    def varying(self) -> list[str]:
        """The columns of the experiment's input that differ between the rows."""
        inputs = filter(_columns.is_input, self.columns)
        return [key for key in inputs if len({json.dumps(row.get(key)) for row in self.rows}) > 1]

    @property
    def swept(self) -> list[str]:
        """The swept keys: :attr:`varying`, except that the column ``case`` of an experiment with cases replaces the keys of the cases."""
        varying = self.varying
        if "case" not in varying:
            return varying
        cases = len({json.dumps(row.get("case")) for row in self.rows})
        together = {key: {json.dumps([row.get("case"), row.get(key)]) for row in self.rows} for key in varying}
        return [key for key in varying if key == "case" or len(together[key]) > cases]

    def column(self, name: str) -> np.ndarray:
        """Give one column as an array: numbers as float64 with NaN where there is none, anything else as objects.

        Parameters
        ----------
        name : str
            The column, for example ``"packet_latency_mean"`` or ``"traffic.load"``.

        Raises
        ------
        ColumnError
            No row has this column.
        """
        if name not in self.columns:
            raise ColumnError(name, self.columns)
        values = [row.get(name) for row in self.rows]
        if any(value is not None and not _is_number(value) for value in values):
            column = np.empty(len(values), dtype=object)
            column[:] = values
            return column
        return np.array([_columns.number(value) for value in values])

    def where(self, **conditions: Any) -> Results:
        """Keep the rows with these values in their columns; write ``__`` for the dot of a key.

        Parameters
        ----------
        **conditions
            Columns and values; a list, tuple or set accepts any of its members.

        Examples
        --------
        >>> results = Results([{"traffic.pattern": "uniform"}, {"traffic.pattern": "tornado"}])
        >>> len(results.where(traffic__pattern="uniform"))
        1
        """
        wanted = {key.replace("__", "."): value for key, value in conditions.items()}
        for key in wanted:
            if self.rows and key not in self.columns:
                raise ColumnError(key, self.columns)
        part = self._with([row for row in self.rows if all(_matches(row.get(key), value) for key, value in wanted.items())])
        part._missing, part._part_of = None, (self, wanted)
        return part

    def raise_for_status(self) -> Results:
        """Raise the error of the first run that ended as a deadlock, by failing, or without an answer in time.

        Returns
        -------
        Results
            These results, for chained calls.

        Raises
        ------
        DeadlockError
            A run came to a standstill.
        RunError
            A run failed or reached ``max_cycles``.
        """
        for row in self.rows:
            if row.get("status") in ("deadlock", "failed", "max_cycles"):
                point = ", ".join(f"{key} = {row.get(key)}" for key in self.swept) or row.get("title") or row.get("key")
                error = DeadlockError if row["status"] == "deadlock" else RunError
                raise error(f"{row['status']} at {point}: {row.get('message') or 'no message'}", row)
        return self

    # --- the content of the folder ---

    @property
    def input_text(self) -> str | None:
        """The experiment as it was run, with all settings, if the results have a folder; the last one of several.

        Raises
        ------
        ResultsError
            The file cannot be read.
        """
        if self._input is not None:
            return self._input
        # Older folders have only the file as it was read.
        names = (EFFECTIVE, "input.toml") if self.directory else ()
        path = next((self.directory / name for name in names if self.directory and (self.directory / name).exists()), None)
        try:
            text = path.read_text() if path else None
        except (OSError, UnicodeDecodeError) as error:
            raise _damaged(Path(path or "."), error) from error
        if path and text is not None and path.name == EFFECTIVE and (problem := _kasuri.damage(EFFECTIVE, text.encode())):
            raise _damaged(path, problem)
        return text

    @property
    def input(self) -> dict[str, Any]:
        """The experiment as it was run, as a dictionary; empty if it is unknown."""
        text = self.input_text
        try:
            return tomllib.loads(text) if text else {}
        except tomllib.TOMLDecodeError as error:
            raise _damaged(Path(self.directory or ".") / EFFECTIVE, error) from error

    @property
    def missing(self) -> list[dict[str, Any]]:
        """The runs of the experiment without a result: the ``key`` of each, and the columns of its input.

        Empty if no run is missing, if the results have no folder, and if an older Kasuri wrote the folder.

        Raises
        ------
        ResultsError
            The experiment that the folder keeps can no longer be read.
        """
        if self._missing is None:
            self._missing = self._find_missing()
        return self._missing

    def _find_missing(self) -> list[dict[str, Any]]:
        if self._part_of:
            whole, wanted = self._part_of
            return [run for run in whole.missing if all(_matches(run[key], value) for key, value in wanted.items() if key in run)]
        runs = _planned(self.directory) if self.directory else []
        # The keys of another version differ from those of the plan.
        is_known = any(run["is_finished"] for run in runs) or not self.rows
        return [{"key": run["key"], **run["inputs"]} for run in runs if is_known and not run["is_finished"]]

    def vector(self, run: int | str | Mapping[str, Any], name: str) -> np.ndarray:
        """Read a vector of one run.

        Parameters
        ----------
        run : int, str or row
            The row's position, its key, or the row itself.
        name : str
            ``channel_utilisation`` [channels], ``router_occupancy`` [routers], ``accepted_throughput`` and ``injected_load``
            [terminals], ``completion_cycles`` [terminals], ``packet_latency_histogram`` [buckets, 2],
            ``predictions`` [channels, 3], ``predictions_by_level`` [levels, 3 (up, turn, down), 2 (chances, hits)].

        Raises
        ------
        ResultsError
            The results lie in no folder, that run has no such vector, or the file is damaged.
        """
        key = run if isinstance(run, str) else self._row(run).get("key", "without a key")
        if self.directory is None:
            raise ResultsError(f"the vector `{name}` of run {key} is not here: these results lie in no folder")
        path = self.directory / "runs" / f"{key}.{name}.npy"
        if not path.exists():
            there = sorted(file.name.split(".")[1] for file in path.parent.glob(f"{key}.*.npy"))
            raise ResultsError(f"run {key} has no vector `{name}`; it has {', '.join(there) or 'none'}")
        try:
            content = path.read_bytes()
            known = self._vector_checksums(key).get(name)
            if known not in (None, f"{zlib.crc32(content):08x}"):
                raise _damaged(path, "the file is damaged (its checksum differs)")
            return np.load(io.BytesIO(content), allow_pickle=False)
        except (OSError, ValueError, EOFError, SyntaxError) as error:
            raise _damaged(path, error) from error

    def _vector_checksums(self, key: str) -> Mapping[str, str]:
        """Give the checksums that a run's row holds of its vectors; none where it is of an older Kasuri."""
        path = Path(self.directory or ".") / "runs" / f"{key}.json"
        return _read_json(path, f"runs/{path.name}").get("vector_checksums") or {}

    def network(self, run: int | str | Mapping[str, Any]) -> Network | None:
        """Give the network that a run was made on, as it was built.

        Parameters
        ----------
        run : int, str or row
            The row's position, its key, or the row itself.

        Returns
        -------
        Network or None
            ``None`` where the network was not kept: it has more than 100,000 channels, the run failed, the results are of an older
            Kasuri, or they lie in no folder.

        Raises
        ------
        ResultsError
            The run does not exist, or the file is damaged.
        """
        name = self._row(run).get("network_id")
        if self.directory is None or not name:
            return None
        path = self.directory / "networks" / f"{name}.json"
        if not path.exists():
            return None
        try:
            problem = _kasuri.damage(f"networks/{name}.json", path.read_bytes())
            if problem:
                raise _damaged(path, problem)
            return Network.from_json(path)
        except OSError as error:
            raise _damaged(path, error) from error
        except ConfigError as error:
            raise ResultsError(f"{error}; remove the file and run the experiment again") from error

    # --- conversions ---

    def to_arrow(self) -> pyarrow.Table:
        """Convert to an Arrow table; each field carries its ``unit`` in the metadata.

        Returns
        -------
        pyarrow.Table
            One row per run. Values that are lists or tables in the experiment file are JSON text.
        """
        import pyarrow as pa

        fields, arrays = [], []
        for name in self.columns:
            array = _arrow_array(name, [row.get(name) for row in self.rows])
            metadata = {"unit": _columns.UNITS[name]} if name in _columns.UNITS else None
            fields.append(pa.field(name, array.type, metadata=metadata))
            arrays.append(array)
        text = self.input_text
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata={"input.toml": text} if text else None))

    def to_pandas(self) -> pandas.DataFrame:
        """Convert to a pandas data frame (needs pandas: ``pip install kasuri[analysis]``).

        Raises
        ------
        PackageError
            pandas is not installed.
        """
        package("pandas", "Results.to_pandas", "analysis")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Convert to a polars data frame (needs polars: ``pip install kasuri[analysis]``).

        Raises
        ------
        PackageError
            polars is not installed.
        """
        package("polars", "Results.to_polars", "analysis")
        import polars as pl

        frame = pl.from_arrow(self.to_arrow())
        assert isinstance(frame, pl.DataFrame)  # a table never becomes a series
        return frame

    def to_xarray(self, dims: Sequence[str] | None = None) -> xarray.Dataset:
        """Convert to a labelled cube (needs xarray: ``pip install kasuri[analysis]``).

        Parameters
        ----------
        dims : sequence of str, optional
            The keys that span the cube, for example ``["traffic.load", "routing.algorithm"]``; the last part of a name
            suffices where it is unique (``"load"``). Without it: all swept keys.

        Returns
        -------
        xarray.Dataset
            Every answer as a variable over ``dims``, with its unit in ``attrs["units"]``; NaN where no run was made.

        Raises
        ------
        ResultsError
            A dimension is unknown, or two runs share a place in the cube (name more dimensions, or select rows first).
        PackageError
            xarray is not installed.
        """
        package("xarray", "Results.to_xarray", "analysis")
        from kasuri._cube import cube

        return cube(self, self.swept if dims is None else [self._full_name(name) for name in dims])

    def save_parquet(self, path: str | Path | None = None) -> Path:
        """Write the table as Parquet.

        Parameters
        ----------
        path : path-like, optional
            The file; without it ``runs.parquet`` in the results' folder.

        Returns
        -------
        pathlib.Path
            The file written.
        """
        import pyarrow.parquet as pq

        if path is None:
            if self.directory is None:
                raise ResultsError("say where to write: these results lie in no folder")
            path = self.directory / "runs.parquet"
        return _files.replace(Path(path), lambda temporary: pq.write_table(self.to_arrow(), temporary))

    def show(self, columns: Sequence[str] | None = None) -> None:
        """Print the table to the terminal: all inputs that vary and the main answers, or the given columns."""
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        names = list(columns or self._main_columns())
        unknown = next((name for name in names if self.rows and name not in self.columns), None)
        if unknown is not None:
            raise ColumnError(unknown, self.columns)
        table = Table()
        for name in names:
            table.add_column(Text(name))
        for row in self.rows:
            table.add_row(*(Text(_columns.cell(row, name)) for name in names))
        Console().print(table)

    def _repr_html_(self) -> str:
        """Show a compact table in a notebook: all inputs that vary and the main answers."""
        from kasuri import _html

        return _html.table(self, self._main_columns())

    def _main_columns(self) -> list[str]:
        """The inputs that vary, and those main answers that some row has."""
        main = ["saturation_load", "offered_load", "accepted_throughput_mean", "packet_latency_mean"]
        main += ["completion_time", "efficiency", "status"]
        return [*self.varying, *(name for name in main if any(row.get(name) is not None for row in self.rows))]

    def _row(self, run: int | str | Mapping[str, Any]) -> dict[str, Any]:
        """Find a row by its position, its key, or itself."""
        if isinstance(run, Mapping):
            return dict(run)
        if isinstance(run, str):
            found = next((row for row in self.rows if row.get("key") == run), None)
            if found is None:
                raise ResultsError(f"no run has the key `{run}`")
            return found
        try:
            return self.rows[run]
        except IndexError:
            raise RowError(f"no row {run}; there are {len(self)}, counted from 0") from None
        except TypeError:
            raise ArgumentError(f"a run is named by its position, its key or its row, not by {run!r}") from None

    def _full_name(self, name: str) -> str:
        matches = [name] if name in self.columns else [column for column in self.columns if column.endswith("." + name)]
        if len(matches) != 1:
            raise ResultsError(f"`{name}` may be {' or '.join(matches)}: write it in full") if matches else ColumnError(name, self.columns)
        return matches[0]

    def _of(self, keys: Sequence[str]) -> Results:
        """Give the rows of these runs, in this order."""
        rows = {row.get("key"): row for row in self.rows}
        return self._with([rows[key] for key in keys if key in rows])

    def _with(self, rows: list[dict[str, Any]]) -> Results:
        part = Results(rows, self.directory)
        part._keep_alive, part._input, part._missing = self._keep_alive, self._input, []
        return part


def read(directory: str | Path) -> Results:
    """Read the results in a folder that ``kasuri run`` has written.

    Parameters
    ----------
    directory : path-like
        The folder, for example ``out/02-mesh``.

    Returns
    -------
    Results
        The table of the last run; where it was interrupted, all runs that were finished.

    Raises
    ------
    ResultsError
        The folder does not exist, holds no runs, or a file in it is damaged (it is named).
    """
    if not isinstance(directory, str | os.PathLike):
        raise ArgumentError(f"directory: is {directory!r}; expected the name of a folder")
    directory = Path(directory)
    table = directory / "runs.json"
    if table.exists():
        content = _read_json(table, table.name)
        rows = content["runs"]
        if _is_older(directory, content):
            unfinished = _unfinished(directory)
            if unfinished is not None:
                return Results(unfinished, directory)
        results = Results(rows, directory)
        results._input = content.get("input")
        return results
    files = sorted((directory / "runs").glob("*.json"))
    if not files:
        raise ResultsError(f"{directory}: no results here (expected runs.json or runs/*.json, as `kasuri run` writes them)")
    results = Results([_read_json(file, f"runs/{file.name}") for file in files], directory)
    results.rows.sort(key=lambda row: [_order(row.get(key)) for key in results.swept])
    return results


def _planned(directory: Path) -> list[dict[str, Any]]:
    """Give the runs of the last experiment of a folder: ``key``, ``inputs``, ``is_finished``."""
    return list(json.loads(_kasuri.planned_runs(str(directory))))


def _is_older(directory: Path, table: Mapping[str, Any]) -> bool:
    """Check whether a table is older than the last experiment of its folder, which was interrupted."""
    try:
        last = (directory / EFFECTIVE).read_text()
    except (OSError, UnicodeDecodeError):
        return False
    if _kasuri.damage(EFFECTIVE, last.encode()):
        return False
    return "input" in table and last not in (table["input"], *table.get("experiments", []))


def _unfinished(directory: Path) -> list[dict[str, Any]] | None:
    """Give the finished rows of an interrupted experiment; ``None`` if there are none, or if the experiment cannot be read."""
    try:
        runs = [run for run in _planned(directory) if run["is_finished"]]
    except ResultsError:
        return None
    files = [(run, directory / "runs" / f"{run['key']}.json") for run in runs]
    rows = [_read_json(path, f"runs/{path.name}") | run["inputs"] for run, path in files if path.exists()]
    return rows or None


def _read_json(path: Path, name: str) -> dict[str, Any]:
    """Read a table or a row, of this name in the folder of results, that is not damaged."""
    try:
        content = path.read_bytes()
        problem = _kasuri.damage(name, content)
        if problem:
            raise _damaged(path, problem)
        return json.loads(content)
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, problem: object) -> ResultsError:
    return ResultsError(f"{path}: {problem}; remove the file and run the experiment again")


def _order(value: Any) -> tuple[int, float, str]:
    return (0, _columns.number(value), "") if _is_number(value) else (1, 0.0, json.dumps(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _matches(value: Any, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, list | tuple | set | frozenset) else value == wanted


def _arrow_array(name: str, values: list[Any]) -> pyarrow.Array:
    import pyarrow as pa

    if name in _columns.LISTS:
        return pa.array([value or [] for value in values], pa.list_(pa.string()))
    if name in _columns.COUNTS:
        return pa.array(values, pa.int64())
    if name in _columns.TEXT:
        return pa.array(values, pa.string())
    known = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in known) and known:
        return pa.array(values, pa.bool_())
    if _columns.is_input(name) and known and all(isinstance(value, int) for value in known):
        return pa.array(values, pa.int64())
    if all(_is_number(value) for value in known):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([value if isinstance(value, str | None) else json.dumps(value) for value in values], pa.string())
