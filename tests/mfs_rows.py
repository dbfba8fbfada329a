"""Invented rows of the paper on MFS: for tests of its judges."""

from __future__ import annotations

from typing import Any

from kasuri_papers import mfs

Rows = list[dict[str, Any]]


def rows(series: str, values: dict[int, float], y: str = "atr", **more: Any) -> Rows:
    extra = {key.replace("__", "."): value for key, value in more.items()}
    return [{"series": series, "k": k, y: value, **extra} for k, value in values.items()]


def table_1(flow: float = 1340.0, flit: float = 1330.0, book: float = 1400.0) -> Rows:
    return (
        rows("flow", dict.fromkeys(mfs.TABLE_1, flow), "completion_time", completion_time_ns=25 * flow)
        + rows("flit", dict.fromkeys(mfs.TABLE_1, flit), "completion_time")
        + rows("booksim", {16: book}, "completion_time")
    )


def of_figures(**figures: Rows) -> Rows:
    return [{"figure": number, **row} for number, table in figures.items() for row in table]
