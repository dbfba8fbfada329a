"""Tidy tables of any make, as rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kasuri.errors import ArgumentError


def rows_of(table: Any) -> list[dict[str, Any]]:
    """Give the rows of a table.

    Parameters
    ----------
    table : Results, pandas.DataFrame, polars.DataFrame, pyarrow.Table, mapping of columns, or iterable of mappings
        The table.

    Raises
    ------
    ArgumentError
        It is none of these.
    """
    if hasattr(table, "to_pylist"):  # pyarrow
        return list(table.to_pylist())
    if hasattr(table, "to_dicts"):  # polars
        return list(table.to_dicts())
    if hasattr(table, "to_dict") and hasattr(table, "columns"):  # pandas
        return list(table.to_dict(orient="records"))
    if isinstance(table, Mapping):
        names = list(table)
        return [dict(zip(names, values, strict=True)) for values in zip(*(table[name] for name in names), strict=True)]
    if isinstance(table, Iterable):
        rows = list(table)
        if all(isinstance(row, Mapping) for row in rows):
            return [dict(row) for row in rows]
    raise ArgumentError(f"expected a table (Results, a data frame, an Arrow table, or rows), got {type(table).__name__}")
