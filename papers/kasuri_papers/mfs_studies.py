"""Studies of the paper on MFS: flows that know arbitration, what each mechanism explains, and where flows may be trusted."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from kasuri_papers import curves
from kasuri_papers.figure import Findings, Table, Verdict

PACKET_FLITS = "traffic.packet_flits"
#: The figures whose runs the studies look at.
STUDIED = ("F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9")


def flows_with_arbitration(table: Table) -> Verdict:
    """Print ATR and completion of arbitrated flows beside those of equal shares and of packets, with errors and times; nobody judges it."""
    found = Findings()
    errors: dict[str, list[float]] = {"arbitrated": [], "equal shares": []}
    for number in STUDIED:
        rows = Table(row for row in table if row.get("figure") == number)
        compared = {"arbitrated": table.of(f"arbitrated-{number}"), "equal shares": rows.of("flow")}
        for name, away in _beside(found, number, compared, _packets(rows), "atr").items():
            errors[name] += away.values()
    rows = Table(row for row in table if row.get("figure") == "T1")
    _beside(found, "T1", {"arbitrated": table.of("arbitrated-T1"), "equal shares": rows.of("flow")}, rows.of("flit"), "completion_time")
    means = ", ".join(f"{name} {math.fsum(values) / len(values):.3f}" for name, values in errors.items() if values)
    found.report(f"mean error of ATR over all points of figures 2 to 9: {means}")
    return Verdict("report", found.verdict().measured)


def _beside(found: Findings, number: str, compared: dict[str, Table], packets: Table, column: str) -> dict[str, dict[Any, float]]:
    """Report curves beside the packets'; give how far each is off, of the packets'."""
    truth, digits = packets.curve(column), 3 if column == "atr" else 0
    errors = {name: curves.distances(rows.curve(column), truth, truth) for name, rows in compared.items()}
    parts = [f"packets {curves.text(truth, digits)} ({_seconds(packets):.2f} s)"]
    for name, rows in compared.items():
        parts.append(f"{name} {curves.text(rows.curve(column), digits)} (off by {curves.mean(errors[name]):.3f}, {_seconds(rows):.2f} s)")
    found.report(f"{number}: {'; '.join(parts)}")
    return errors


def _seconds(rows: Table) -> float:
    """Give the processor time of the runs, as the mean over those of each place, added up over the places."""
    return math.fsum(rows.curve("cpu_seconds").values())


def explained(arbitrated: Table, packets: Table, places: Sequence[Any]) -> str:
    """Tell how far arbitrated flows are from packets, with all mechanisms and without each, over some places: |ATR - packets| / packets."""
    truth = packets.curve("atr")
    found = []
    for without in dict.fromkeys(tuple(row["flow.without"]) for row in arbitrated):
        curve = Table(row for row in arbitrated if tuple(row["flow.without"]) == without).curve("atr")
        away = {k: gap for k, gap in curves.distances(curve, truth, truth).items() if k in places}
        found.append(f"{'without ' + ', '.join(without) if without else 'all mechanisms'} {curves.mean(away):.3f}")
    return f"arbitrated flows, mean distance from packets, of them: {', '.join(found) or 'no runs'}"


def where_flows_may_be_trusted(table: Table) -> Verdict:
    """Print how the error of flows goes with the hops of packets and with the load of the fullest channel; nobody judges it."""
    points = [point for number in STUDIED for point in _errors(table, number)]
    found = Findings()
    for column, name in (("hops", "mean hops"), ("load", "1/ATR of flow, the load of the fullest channel of the mean terminal")):
        pairs = [(point[column], point["error"]) for point in points if point[column] is not None]
        found.report(f"correlation of |flit - flow|/flow with {name}: {_correlation(pairs):.2f} over {len(pairs)} points")
    for low, high in ((0.0, 3.0), (3.0, 5.0), (5.0, math.inf)):
        inside = [point for point in points if low <= (point["hops"] or 0.0) < high]
        if inside:
            found.report(f"{low:g} to {high:g} hops: {len(inside)} points, mean error {_mean(inside, 'error')}{_of_arbitrated(inside)}")
    return Verdict("report", found.verdict().measured)


def _mean(points: list[dict[str, Any]], column: str) -> str:
    return f"{math.fsum(point[column] for point in points) / len(points):.3f}"


def _of_arbitrated(points: list[dict[str, Any]]) -> str:
    known = [point for point in points if point["arbitrated"] is not None]
    return f", of arbitrated flows {_mean(known, 'arbitrated')}" if known else ""


def _errors(table: Table, number: str) -> list[dict[str, Any]]:
    """Give hops, load and errors at each k of a figure, for the packets of 40 flits with as few virtual channels as there can be."""
    rows = Table(row for row in table if row.get("figure") == number)
    packets = _packets(rows)
    flow, flit, hops = rows.of("flow").curve("atr"), packets.curve("atr"), packets.curve("hops_mean")
    arbitrated = curves.distances(table.of(f"arbitrated-{number}").curve("atr"), flit, flit)
    return [
        {"hops": hops.get(k), "load": 1 / flow[k], "error": abs(flit[k] - flow[k]) / flow[k], "arbitrated": arbitrated.get(k)}
        for k in flow
        if k in flit
    ]


def _packets(rows: Table) -> Table:
    """Keep the packets of 40 flits with as few virtual channels as there can be."""
    series = next((name for name in ("flit", "flit-vc1", "flit-vc2") if len(rows.of(name))), "flit")
    return Table(row for row in rows.of(series) if row.get(PACKET_FLITS, 40) == 40)


def _correlation(pairs: list[tuple[float, float]]) -> float:
    if len(set(pairs)) < 3:
        return math.nan
    return statistics.correlation([one for one, _ in pairs], [other for _, other in pairs])
