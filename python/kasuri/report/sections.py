"""The sections of the page: each function makes one out of the results."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kasuri import _columns
from kasuri._columns import shown
from kasuri.errors import ResultsError
from kasuri.plot import style
from kasuri.plot.asked import drawings, is_closed
from kasuri.plot.spots import SEEDS, State, is_latency, is_missing, state, value_of
from kasuri.report.figure import Figure, inline
from kasuri.report.maps import point_of
from kasuri.results import Results

#: How runs end; the sentences of the page.
STATUS_MEANINGS = {
    "converged": "The mean latency is known to the asked precision (half-width of its 95 % confidence interval).",
    "completed": "The closed workload was delivered to the last flit, or the fixed number of cycles was run.",
    "saturated": "The network accepts less than is offered: queues grow without end. This is a result; a latency would grow "
    "with the length of the run instead of describing the network, so none is given. The accepted throughput does describe it.",
    "max_cycles": "The run reached measure.max_cycles before the precision was reached. Its numbers are estimates.",
    "deadlock": "Deadlock: packets wait for each other in a cycle, or programs for messages that were never sent.",
    "failed": "The run could not be done; the message says why.",
}
#: Figures of this size (inches) can be read on a telephone and fill half of a wide page.
PAGE_SIZE = (5.2, 3.5)
#: The answers that the table shows at first, in this order.
MAIN_ANSWERS = (
    "status",
    "offered_load",
    "accepted_throughput_mean",
    "packet_latency_mean",
    "packet_latency_p99",
    "network_latency_mean",
    "hops_mean",
    "channel_utilisation_max",
    "completion_time",
    "efficiency",
    "self_share",
    "saturation_load",
    "wall_seconds",
)


#: The columns of the summary of closed workloads, where runs have them.
TIME_ANSWERS = ("completion_time", "completion_time_ns", "efficiency", "accepted_throughput_mean", "channel_utilisation_max")
#: The quantities reported for sweeps over failed links, and their percentiles.
SPREAD_ANSWERS = (
    "completion_time",
    "completion_time_ns",
    "accepted_throughput_mean",
    "packet_latency_mean",
    "saturation_load",
    "static_throughput",
)
PERCENTILES = (10, 50, 90)
#: More lines than this are no summary.
MAX_LINES = 40


def plots(
    results: Results, folder: Path | None = None, endings: Sequence[str] = (), *, salt: str = "plot", limit: int = 99
) -> list[Figure]:
    """Draw the experiment's plots; write them into ``folder`` too, with each of ``endings``."""
    figures = []
    for number, drawing in enumerate(drawings(results, PAGE_SIZE)[:limit]):
        if drawing.ax is None:
            figures.append(Figure("", f"Not drawn: {drawing.problem}."))
            continue
        # First for the page: the layout of a figure depends a little on where it was drawn before.
        figures.append(inline(drawing.ax, f"{salt}{number}", " ".join(drawing.notes)))
        for ending in endings if folder else ():
            style.save(drawing.ax, Path(folder or ".") / f"{drawing.name}.{ending}")
    return figures


def status_counts(results: Iterable[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """Count the runs by how they ended, in the order of :data:`STATUS_MEANINGS`."""
    found = [str(row.get("status")) for row in results]
    known = [status for status in STATUS_MEANINGS if status in found]
    return [(status, found.count(status)) for status in [*known, *sorted(set(found) - set(known))]]


def missing(results: Results) -> dict[str, Any] | None:
    """List the missing runs of the experiment by the keys that distinguish them; ``None`` if no run is missing."""
    try:
        runs = results.missing
    except ResultsError as error:
        return {"count": 0, "problem": str(error), "lines": [], "left_out": 0, "swept": []}
    if not runs:
        return None
    both = Results([*runs, *results])
    lines = [[shown(run.get(key)) for key in both.varying] for run in runs[:MAX_LINES]]
    return {"count": len(runs), "problem": "", "lines": lines, "left_out": max(0, len(runs) - MAX_LINES), "swept": both.varying}


def at_a_glance(results: Results) -> dict[str, Any] | None:
    """Sum up each curve of a sweep over the load: latency at the least load, highest steady load, highest throughput."""
    if "traffic.load" not in results.swept or not any("accepted_throughput_mean" in row for row in results):
        return None
    split = [key for key in results.swept if key not in ("traffic.load", *SEEDS)]
    lines = []
    for values, rows in groups(results.rows, split):
        steady = [row for row in rows if state(row) == State.STEADY]
        beyond = [_columns.number(row.get("traffic.load")) for row in rows if row.get("status") == "saturated"]
        least = min(rows, key=lambda row: _columns.number(row.get("traffic.load")))
        lines.append(
            {
                "values": [shown(value) for value in values],
                "latency": shown(value_of(least, "packet_latency_mean")),
                "least": shown(least.get("traffic.load")),
                "steady": shown(max((_columns.number(row.get("traffic.load")) for row in steady), default=None)),
                "saturated": shown(min(beyond, default=None)),
                "throughput": shown(np.nanmax([_columns.number(row.get("accepted_throughput_mean")) for row in rows] or [math.nan]).item()),
            }
        )
    return {"split": split, "lines": lines}


def times_at_a_glance(results: Results) -> dict[str, Any] | None:
    """Sum up closed workloads: the time of each, the mean over seeds, and the use of the network."""
    if not is_closed(results):
        return None
    keys = [key for key in results.swept if key not in SEEDS]
    answers = [name for name in TIME_ANSWERS if any(row.get(name) is not None for row in results)]
    lines, seeds = [], False
    for values, rows in groups(sorted(results, key=_file_order(results)), keys):
        means = [_mean(row.get(name) for row in rows) for name in answers]
        statuses = [status for status, _ in status_counts(rows)]
        times = [_time(*one) for one in zip(answers, means, strict=True)]
        lines.append({"values": [shown(value) for value in values], "answers": times, "statuses": statuses})
        seeds |= len(rows) > 1
    heads = [(name.removesuffix("_ns").replace("_", " "), "" if _is_time(name) else _columns.UNITS.get(name, "")) for name in answers]
    return {"split": keys, "heads": heads, "lines": lines[:MAX_LINES], "left_out": max(0, len(lines) - MAX_LINES), "seeds": seeds}


def spread_over_faults(results: Results) -> dict[str, Any] | None:
    """Return the 10th, 50th and 90th percentiles of each answer over the drawn faults, of runs that differ only in these."""
    if "faults.seed" not in results.swept:
        return None
    keys = [key for key in results.swept if key not in SEEDS]
    lines = []
    for values, rows in groups(sorted(results, key=_file_order(results)), keys):
        for name in SPREAD_ANSWERS:
            known = [_columns.number(row.get(name)) for row in rows if not is_missing(row.get(name))]
            if known:
                percentiles = [shown(value.item()) for value in np.percentile(known, PERCENTILES)]
                heads = (name.replace("_", " "), _columns.UNITS.get(name, ""), len(known))
                lines.append({"values": [shown(value) for value in values], "heads": heads, "percentiles": percentiles})
    return {"split": keys, "percentiles": PERCENTILES, "lines": lines[:MAX_LINES], "left_out": max(0, len(lines) - MAX_LINES)}


def _mean(values: Iterable[Any]) -> float | None:
    known = [_columns.number(value) for value in values if not is_missing(value)]
    return math.fsum(known) / len(known) if known else None


def _time(name: str, value: float | None) -> str:
    """Write an answer; a time in ns with the unit that a reader expects."""
    return shown(value) if value is None or not _is_time(name) else _columns.time_shown(value)


def table(results: Results) -> dict[str, Any]:
    """Lay out the table of runs: the swept keys and main answers first, everything else behind a switch."""
    columns = results.columns
    swept = results.swept
    main = [name for name in MAIN_ANSWERS if any(row.get(name) is not None for row in results)]
    rest = [name for name in columns if name not in swept and name not in main]
    rows = sorted(results, key=_file_order(results))
    shown_names = [*swept, *main, *rest]
    words = {name: any(isinstance(row.get(name), str | list) for row in rows) for name in shown_names}
    heads = [(name, "" if _is_time(name) else _columns.UNITS.get(name, ""), name in rest, words[name]) for name in shown_names]
    cells = [[(_cell(name, row), sort_key(row.get(name)), name in rest, words[name], name) for name in shown_names] for row in rows]
    return {"heads": heads, "rows": cells}


def _is_time(name: str) -> bool:
    return _columns.unit_of(name) == "ns"


def _cell(name: str, row: Mapping[str, Any]) -> str:
    """Write a cell of the table: a time with its unit, no latency of a saturated run."""
    if is_latency(name) and state(row) == State.SATURATED:
        return shown(None)
    number = _columns.number(row.get(name))
    return _columns.time_shown(number) if _is_time(name) and not math.isnan(number) else _columns.cell(row, name)


def deadlocks(results: Results) -> list[tuple[str, str, list[str]]]:
    """Describe the deadlocked runs: the reason, and the cycle of waiting channels or the blocked programs."""
    return [(point_of(results, row), row.get("message") or "", row["deadlock"]) for row in results if row.get("deadlock")]


def groups(rows: Sequence[dict[str, Any]], split: Sequence[str]) -> list[tuple[list[Any], list[dict[str, Any]]]]:
    """Gather rows that agree in all of ``split``, in the order of their first appearance."""
    found: dict[str, tuple[list[Any], list[dict[str, Any]]]] = {}
    for row in rows:
        values = [row.get(key) for key in split]
        found.setdefault(json.dumps(values), (values, []))[1].append(row)
    return list(found.values())


def sort_key(value: Any) -> str:
    """Return the sort key of the page's script: the number in full, or the text."""
    return repr(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _file_order(results: Results) -> Callable[[dict[str, Any]], list[tuple[int, float, str]]]:
    """Order rows by the swept keys: numbers ascending, words as they first appear (which is their order in the file)."""
    ranks: dict[str, dict[str, int]] = {key: {} for key in results.swept}
    for row in results:
        for key, rank in ranks.items():
            rank.setdefault(json.dumps(row.get(key)), len(rank))

    def order(row: dict[str, Any]) -> list[tuple[int, float, str]]:
        places = []
        for key, rank in ranks.items():
            number = _columns.number(row.get(key))
            places.append((1, float(rank[json.dumps(row.get(key))]), "") if math.isnan(number) else (0, number, ""))
        return places

    return order
