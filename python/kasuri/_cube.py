"""From the table of runs to a labelled cube."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from kasuri import _columns
from kasuri.errors import ResultsError

if TYPE_CHECKING:
    import xarray

    from kasuri.results import Results


def cube(results: Results, dims: list[str]) -> xarray.Dataset:
    """Spread the rows over the values of ``dims``; see :meth:`kasuri.results.Results.to_xarray`."""
    import xarray

    coordinates = {name: _values(results, name) for name in dims}
    positions = {name: {_plain(value): place for place, value in enumerate(values)} for name, values in coordinates.items()}
    places = [tuple(positions[name][_plain(row.get(name))] for name in dims) for row in results]
    _refuse_shared_places(results, dims, places)
    shape = tuple(len(values) for values in coordinates.values())
    variables = {}
    for name in results.columns:
        if name in dims or name in _columns.LISTS:
            continue
        column = results.column(name)
        filled = np.full(shape, None if column.dtype == object else np.nan, dtype=column.dtype)
        for place, value in zip(places, column, strict=True):
            filled[place] = value if not isinstance(value, list | dict) else json.dumps(value)
        units = {"units": _columns.UNITS[name]} if name in _columns.UNITS else {}
        variables[name] = (dims, filled, units)
    labels = {name: (name, values, _unit(name)) for name, values in coordinates.items()}
    return xarray.Dataset(variables, coords=labels, attrs={"title": results[0].get("title", "") if len(results) else ""})


def _unit(name: str) -> dict[str, str]:
    return {"units": _columns.UNITS[name]} if name in _columns.UNITS else {}


def _values(results: Results, name: str) -> list[Any]:
    distinct = {_plain(row.get(name)): None for row in results}
    values = list(distinct)
    return sorted(values) if all(isinstance(value, int | float) for value in values) else values


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) or value is None else value


def _refuse_shared_places(results: Results, dims: list[str], places: list[tuple[int, ...]]) -> None:
    seen: dict[tuple[int, ...], int] = {}
    for number, place in enumerate(places):
        if place in seen:
            others = [name for name in results.swept if name not in dims]
            point = ", ".join(f"{name} = {results[number].get(name)}" for name in dims)
            hint = f"add {' or '.join(others)} to dims, or select rows with where()" if others else "the run is there twice"
            raise ResultsError(f"two runs share {point or 'the only place'}: {hint}")
        seen[place] = number
