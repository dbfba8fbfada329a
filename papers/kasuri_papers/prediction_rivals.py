"""The rivals of section 5 beside the prediction router: what each gains in latency and saturation load, on a tree and on a mesh.

All routers have the same buffers and virtual channels. Latencies are in cycles of the router with three stages; the clock of a router that
does everything in one cycle is slower by a factor that nobody gives, so its latencies are told for several.
"""

from __future__ import annotations

import math
from typing import Any

from kasuri_papers import curves
from kasuri_papers.comparison import LATENCY, LOAD
from kasuri_papers.figure import Findings, Table, Verdict

#: Cycles of a router that does everything in one, in cycles of the others (section 1.7 of the models: "swept 1.0 to 1.5").
CLOCKS = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5)
ONE_CYCLE, EXPRESS = "one-cycle", "express"


def rivals_side_by_side(table: Table) -> Verdict:
    """Print the latency over load and the saturation load of each router, and what local traffic leaves of each gain; nobody judges it."""
    found = Findings()
    gains: dict[str, dict[str, float]] = {}
    for series in dict.fromkeys(str(row["series"]) for row in table):
        rows = table.of(series)
        normal = _latency(rows, "normal")
        for name in dict.fromkeys(str(row["router"]) for row in rows):
            lower = 1 - _latency(rows, name) / normal
            gains.setdefault(name, {})[series] = lower
            found.report(f"{series}, {name}: {_described(rows, name, lower)}")
    found.report(f"reductions at zero load by express ways: {curves.text(gains.get(EXPRESS, {}))}")
    return Verdict("report", found.verdict().measured)


def _described(rows: Table, name: str, lower: float) -> str:
    """Tell a router's latencies and saturation load; where its clock is not known, for each that it may have."""
    zero, load = _latency(rows, name), _saturation(rows, name)
    curve = curves.text(_place(rows, name, "curve").curve(LATENCY, LOAD), 1)
    text = f"latency at zero load {zero:.2f}, reduction {lower:.3f}; over load {curve}; saturation load {load:.3f}"
    if name != ONE_CYCLE:
        return text
    slower = {clock: 1 - (1 - lower) * clock for clock in CLOCKS}
    sooner = {clock: load / clock for clock in CLOCKS}
    return f"{text}; with a cycle so much longer, reductions {curves.text(slower)} and saturation loads {curves.text(sooner)}"


def _place(rows: Table, name: str, place: str) -> Table:
    return Table(row for row in rows if row["router"] == name and row["place"] == place)


def _latency(rows: Table, name: str) -> float:
    """Give the zero-load latency, cycles; not a number where the run is missing."""
    return _first(_place(rows, name, "zero"), LATENCY, math.nan)


def _saturation(rows: Table, name: str) -> float:
    """Give the saturation load; infinite where the router sustains every load."""
    return _first(_place(rows, name, "saturation"), "saturation_load", math.inf)


def _first(rows: Table, column: str, otherwise: float) -> float:
    values: list[Any] = [row[column] for row in rows]
    return float(values[0]) if values else otherwise
