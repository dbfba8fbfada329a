"""The columns of the table of runs: their types and units, in one place for every conversion."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

LATENCIES = ("packet_latency", "network_latency", "flit_latency")
LATENCY_STATISTICS = ("mean", "ci95", "min", "p50", "p99", "p999", "max")

TEXT = ("key", "title", "engine", "status", "message", "kasuri_version", "kasuri_commit", "network_id", "hint")
COUNTS = (
    "schema_version",
    "seed",
    "terminals",
    "routers",
    "channels",
    "measured_packets",
    "warmup_cycles",
    "measured_cycles",
    "cycles",
    "flit_hops",
    "prediction_attempts",
    "prediction_hits",
    "prediction_refused",
    "prediction_chances_up",
    "prediction_hits_up",
    "prediction_chances_turn",
    "prediction_hits_turn",
    "prediction_chances_down",
    "prediction_hits_down",
    "prediction_speculative_traversals",
    "prediction_wasted_flits",
    "prediction_hint_bits",
)
LISTS = ("not_modelled", "deadlock")

#: Keys of the experiment file outside sections that may be swept.
TOP_LEVEL_INPUTS = ("engine", "case")

_RATE_UNIT = "flits/terminal/cycle"

UNITS: dict[str, str] = {
    **{f"{latency}_{statistic}": "cycles" for latency in LATENCIES for statistic in LATENCY_STATISTICS},
    **{f"{latency}_{statistic}_ns": "ns" for latency in LATENCIES[:2] for statistic in LATENCY_STATISTICS},
    **{f"injected_load{statistic}": _RATE_UNIT for statistic in ("", "_min", "_max")},
    **{f"accepted_throughput_{statistic}": _RATE_UNIT for statistic in ("mean", "min", "max", "ci95")},
    "offered_load": _RATE_UNIT,
    "traffic.load": _RATE_UNIT,
    "saturation_load": _RATE_UNIT,
    "zero_load_latency": "cycles",
    "packet_latency_mean_until_stop": "cycles",
    "hops_mean": "routers",
    "fairness_jain": "1",
    "channel_utilisation_mean": "1",
    "channel_utilisation_max": "1",
    "router_occupancy_mean": "flits",
    "router_occupancy_max": "flits",
    "completion_time": "cycles",
    "completion_time_ns": "ns",
    "completion_bound": "cycles",
    "routing_bound": "cycles",
    "efficiency": "1",
    "self_share": "1",
    "warmup_cycles": "cycles",
    "measured_cycles": "cycles",
    "cycles": "cycles",
    "atr": "1",
    "wall_seconds": "s",
    "cpu_seconds": "s",
    "peak_memory_mib": "MiB",
}

_LABELS = {
    "offered_load": "offered load",
    "traffic.load": "injection rate",
    "accepted_throughput_mean": "accepted throughput",
    "accepted_throughput_min": "accepted throughput, least terminal",
    "accepted_throughput_max": "accepted throughput, greatest terminal",
    "injected_load": "injected load",
    "injected_load_min": "injected load, least terminal",
    "injected_load_max": "injected load, greatest terminal",
    "atr": "average throughput rate",
    "hops_mean": "hops, mean",
    "fairness_jain": "fairness (Jain's index)",
    "channel_utilisation_mean": "channel utilisation, mean",
    "channel_utilisation_max": "channel utilisation, greatest",
    "completion_time": "completion time",
    "completion_time_ns": "completion time",
    "completion_bound": "bound of the completion time",
    "routing_bound": "bound of the completion time by this routing",
    "self_share": "share of traffic to oneself",
}


#: Units in ascending order, each with its size in the first one.
_LARGER = {
    "ns": (("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)),
    "cycles": (("cycles", 1.0), ("million cycles", 1e6)),
}


def unit_of(column: str) -> str:
    """Give the unit of a column, ``"1"`` where it has none."""
    return UNITS.get(column, "ns" if column.endswith("_ns") and not is_input(column) else "1")


def scale(column: str, largest: float) -> tuple[float, str]:
    """Choose the unit for values of up to ``largest``; give the divisor and the name of the unit."""
    unit = unit_of(column)
    steps = _LARGER.get(unit, ((unit, 1.0),))
    fitting = [step for step in steps if abs(largest) >= step[1]]
    name, factor = fitting[-1] if fitting else steps[0]
    return factor, name


def time_shown(value: float) -> str:
    """Write a time, given in ns, in the unit of its size."""
    factor, unit = scale("completion_time_ns", value)
    return f"{value / factor:.4g} {unit}"


def label(column: str, unit: str | None = None) -> str:
    """Words for an axis: ``packet_latency_mean`` becomes ``packet latency, mean (cycles)``; ``unit`` in place of the column's own."""
    words = _LABELS.get(column)
    if words is None:
        words = column.rsplit(".", 1)[-1].replace("_", " ")
        for latency in LATENCIES:
            if column.startswith(latency + "_"):
                words = f"{latency.replace('_', ' ')}, {column.removeprefix(latency + '_').removesuffix('_ns')}"
    unit = unit_of(column) if unit is None else unit
    return words if unit == "1" else f"{words} ({unit})"


def names(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """All columns of the rows, in the order of their first appearance."""
    found: dict[str, None] = {}
    for row in rows:
        found.update(dict.fromkeys(row))
    return list(found)


def is_input(column: str) -> bool:
    """Return whether a column is a key of the experiment file (those of sections are dotted) and not an answer."""
    return "." in column or column in TOP_LEVEL_INPUTS


def number(value: Any) -> float:
    """Give a number for plotting and sorting: NaN where there is none."""
    return float(value) if isinstance(value, int | float | np.number) and not isinstance(value, bool) else float("nan")


def cell(row: Mapping[str, Any], column: str) -> str:
    """Write the value of a row for a reader; a mean with the half-width of its 95 % confidence interval, where that is known."""
    half_width = row.get(column.removesuffix("_mean") + "_ci95") if column.endswith("_mean") else None
    spread = "" if half_width is None or math.isnan(number(half_width)) else f" ± {shown(half_width)}"
    return shown(row.get(column)) + spread


def shown(value: Any) -> str:
    """Write a value for a reader: at least four digits, large numbers in groups of three, a dash where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float):
        if 1000 <= abs(value) < 1e15:
            return shown(round(value))
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}".replace(",", "\u202f") if abs(value) >= 10_000 else str(value)
    return ", ".join(map(shown, value)) or "–" if isinstance(value, list) else str(value)
