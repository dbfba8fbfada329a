"""What stands on the page: each function makes one section out of the results."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kasuri import _columns
from kasuri._columns import shown
from kasuri.errors import KasuriError
from kasuri.network import Network
from kasuri.plot import channel_utilisation, draw_network, style
from kasuri.plot.asked import drawings, wishes
from kasuri.plot.drawing import drawable
from kasuri.plot.spots import State, state
from kasuri.results import Results

#: How runs end; the sentences of the page.
STATUS_MEANINGS = {
    "converged": "The mean latency is known to the asked precision (half-width of its 95 % confidence interval).",
    "completed": "The closed workload was delivered to the last flit, or the fixed number of cycles was run.",
    "saturated": "The network accepts less than is offered: queues grow without end. This is a result; a latency measured here grows "
    "with the length of the run and is no property of the network. The accepted throughput is.",
    "max_cycles": "The run reached measure.max_cycles before the precision was reached. Its numbers are estimates.",
    "deadlock": "Packets wait for each other in a circle; nothing moves any more.",
    "failed": "The run could not be done; the message says why.",
}
#: Figures of this size (inches) can be read on a telephone and fill half of a wide page.
PAGE_SIZE = (5.2, 3.5)
#: More maps than this tire the reader; those left out are counted.
MAX_MAPS = 12
#: The answers that the table shows at first, in this order.
MAIN_ANSWERS = (
    "status",
    "offered_load",
    "accepted_throughput_mean",
    "packet_latency_mean",
    "packet_latency_ci95",
    "packet_latency_p99",
    "network_latency_mean",
    "hops_mean",
    "channel_utilisation_max",
    "completion_time",
    "saturation_load",
    "wall_seconds",
)


@dataclass(frozen=True)
class Figure:
    """A drawing for the page: the text of its ``<svg>`` and the words under it."""

    svg: str
    caption: str


def inline(ax: Any, salt: str, caption: str) -> Figure:
    """Make a figure that takes its ink from the page, so that it stands on light and dark."""
    from markupsafe import Markup

    text = style.svg_text(ax, salt).replace(style.INK, "currentColor")
    return Figure(Markup(text), caption)  # noqa: S704  # our own drawing; the words in it were escaped by Matplotlib


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


def status_counts(results: Results) -> list[tuple[str, int]]:
    """Count the runs by how they ended, in the order of :data:`STATUS_MEANINGS`."""
    found = [str(row.get("status")) for row in results]
    known = [status for status in STATUS_MEANINGS if status in found]
    return [(status, found.count(status)) for status in [*known, *sorted(set(found) - set(known))]]


def at_a_glance(results: Results) -> dict[str, Any] | None:
    """Sum up each curve of a sweep over the load: latency at the least load, highest steady load, highest throughput."""
    if "traffic.load" not in results.swept or not any("accepted_throughput_mean" in row for row in results):
        return None
    split = [key for key in results.swept if key not in ("traffic.load", "measure.seed")]
    lines = []
    for values, rows in groups(results.rows, split):
        steady = [row for row in rows if state(row) <= State.LIMIT]
        beyond = [_columns.number(row.get("traffic.load")) for row in rows if row.get("status") == "saturated"]
        least = min(rows, key=lambda row: _columns.number(row.get("traffic.load")))
        lines.append(
            {
                "values": [shown(value) for value in values],
                "latency": shown(least.get("packet_latency_mean")),
                "least": shown(least.get("traffic.load")),
                "steady": shown(max((_columns.number(row.get("traffic.load")) for row in steady), default=None)),
                "saturated": shown(min(beyond, default=None)),
                "throughput": shown(np.nanmax([_columns.number(row.get("accepted_throughput_mean")) for row in rows] or [math.nan]).item()),
            }
        )
    return {"split": split, "lines": lines}


def networks(results: Results) -> list[dict[str, Any]]:
    """Describe every distinct network of the experiment, and draw those that are small."""
    found = []
    for number, (table, rows) in enumerate(_distinct_networks(results)):
        network = _build(results, table)
        entry: dict[str, Any] = {"table": table, "rows": len(rows), "figure": None, "facts": []}
        if isinstance(network, Network):
            entry["name"] = network.name
            entry["facts"] = [("terminals", network.terminals), ("routers", network.routers), ("channels", network.channels)]
            if drawable(network):
                entry["figure"] = inline(draw_network(network), f"network{number}", "")
        else:
            entry["name"] = str(table.get("topology", "?"))
            entry["note"] = f"not drawn: {network}"
        found.append(entry)
    return found


def utilisation(results: Results) -> dict[str, Any]:
    """Map the channels' utilisation: of each curve, the run at the highest load that is not saturated."""
    chosen = _worth_a_map(results)
    figures = []
    for number, row in enumerate(chosen[:MAX_MAPS]):
        network = _build(results, _network_table(results, row))
        if not isinstance(network, Network):
            continue
        values = results.vector(row, "channel_utilisation")
        if values.shape != (network.channels,):
            continue
        ax = draw_network(network, utilisation=values) if drawable(network) else channel_utilisation(network, values)
        figures.append(inline(ax, f"map{number}", _point(results, row)))
    return {"figures": figures, "left_out": max(0, len(chosen) - MAX_MAPS)}


def table(results: Results) -> dict[str, Any]:
    """Lay out the table of runs: the swept keys and main answers first, everything else behind a switch."""
    columns = results.columns
    swept = results.swept
    main = [name for name in MAIN_ANSWERS if any(row.get(name) is not None for row in results)]
    rest = [name for name in columns if name not in swept and name not in main]
    rows = sorted(results, key=_file_order(results))
    shown_names = [*swept, *main, *rest]
    words = {name: any(isinstance(row.get(name), str | list) for row in rows) for name in shown_names}
    heads = [(name, _columns.UNITS.get(name, ""), name in rest, words[name]) for name in shown_names]
    cells = [[(shown(row.get(name)), sort_key(row.get(name)), name in rest, words[name], name) for name in shown_names] for row in rows]
    return {"heads": heads, "rows": cells}


def deadlocks(results: Results) -> list[tuple[str, list[str]]]:
    """List the circles of waiting channels of the runs that came to a standstill."""
    return [(_point(results, row), row["deadlock"]) for row in results if row.get("deadlock")]


def groups(rows: Sequence[dict[str, Any]], split: Sequence[str]) -> list[tuple[list[Any], list[dict[str, Any]]]]:
    """Gather rows that agree in all of ``split``, in the order of their first appearance."""
    found: dict[str, tuple[list[Any], list[dict[str, Any]]]] = {}
    for row in rows:
        values = [row.get(key) for key in split]
        found.setdefault(json.dumps(values), (values, []))[1].append(row)
    return list(found.values())


def sort_key(value: Any) -> str:
    """Give what the page's script sorts by: the number in full, or the text."""
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


def _order(value: Any) -> tuple[int, float, str]:
    number = _columns.number(value)
    return (1, 0.0, str(value)) if math.isnan(number) else (0, number, "")


def _point(results: Results, row: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {shown(row.get(key))}" for key in results.swept) or str(row.get("title") or row.get("key"))


def _network_table(results: Results, row: dict[str, Any]) -> dict[str, Any]:
    """Give the [network] table of a run: that of the input with the row's own keys put in."""
    table = dict(results.input.get("network", {}))
    for key, value in row.items():
        if key.startswith("network."):
            table[key.removeprefix("network.")] = value
    return table


def _distinct_networks(results: Results) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    found: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {}
    for row in results:
        table = _network_table(results, row)
        found.setdefault(json.dumps(table, sort_keys=True), (table, []))[1].append(row)
    return list(found.values())


def _build(results: Results, table: dict[str, Any]) -> Network | KasuriError:
    try:
        return Network(table, results.directory or ".")
    except KasuriError as error:
        return error


def _worth_a_map(results: Results) -> list[dict[str, Any]]:
    """Choose the run of each curve that shows most: the highest load that is steady, else the highest."""
    asked = wishes(results)
    along = {wish.x for wish in asked if _columns.is_input(wish.x)} | {"traffic.load", "measure.seed"}
    split = [key for key in results.swept if key not in along]
    chosen = []
    for _, rows in groups(results.rows, split):
        with_vector = [row for row in rows if _has_vector(results, row)]
        steady = [row for row in with_vector if state(row) <= State.LIMIT]
        if with_vector:
            chosen.append(max(steady or with_vector, key=lambda row: _order(row.get("traffic.load"))))
    return chosen


def _has_vector(results: Results, row: dict[str, Any]) -> bool:
    folder = results.directory
    return folder is not None and (folder / "runs" / f"{row.get('key')}.channel_utilisation.npy").exists()
