"""Each verdict on a right curve, and on wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kasuri_papers import counts
from kasuri_papers import virtual_network_memory as memory
from kasuri_papers.figure import Table, Verdict

Rows = list[dict[str, Any]]
Judge = Callable[[Table], Verdict]

T = (138, 75, 56, 54, 52, 53, 52, 52)
NR = (0.982, 0.973, 0.944, 0.784, 0.694, 0.659, 0.649, 0.634)
NIU = (0.274, 0.502, 0.678, 0.701, 0.727, 0.720, 0.729, 0.729)


def curve(column: str, values: tuple[float, ...], unit: float = 1.0) -> Rows:
    return [
        {"series": form, "endpoint.window": window, memory.X: x, column: value * unit}
        for form in memory.FORMS
        for window in (memory.WINDOW, memory.MILDER)
        for x, value in enumerate(values, start=1)
    ]


def times(*values: float) -> Rows:
    small = curve(memory.TIME, values or T, memory.UNIT)
    return small + [{**row, "series": "queues-of-256"} for row in small if row["series"] == "queues"]


def windows(*values: float) -> Rows:
    """Figure 5's times, also with eight outstanding reads."""
    made = [{"figure": "F5", **row} for row in times(*values)]
    return made + [{**row, "endpoint.window": 8} for row in made if row["endpoint.window"] == memory.WINDOW]


def rates(routers: tuple[float, ...] = NR, interfaces: tuple[float, ...] = NIU) -> Rows:
    return curve(memory.ROUTERS, routers) + curve(memory.INTERFACES, interfaces)


def simulator(diameter: int = 5, average: float = 3.655, largest: int = 11, answered: int = 4032) -> Rows:
    return [
        {"series": "distances-16", "routers": 256, "diameter": diameter, "average": average},
        {"series": "distances-256", "routers": 65536, "diameter": largest, "average": 7.68},
        {"series": "simulator", "requests_answered": answered, memory.INTERFACES: 0.3, memory.ROUTERS: 0.9},
    ]


def reads(*beyond: float, adjacent: int = 1) -> Rows:
    table: Rows = []
    for series, more in (("cut-through", beyond), ("store-and-forward", (19.0, 38.0))):
        latencies = [(2.0, 25.0)] * adjacent + [(3.0 + place, 25.0 + cycles) for place, cycles in enumerate(more)]
        table += [{"series": series, "hops_mean": hops, "packet_latency_mean": latency} for hops, latency in latencies]
    return table


@pytest.mark.parametrize(
    ("judge", "rows"),
    [
        (memory.simulator, simulator()),
        (memory.execution_time, times()),
        (memory.the_point_is_five, windows()),
        (memory.the_point_is_five_with_eight_reads, windows()),
        (memory.work_rates, rates()),
        (memory.cost_of_hops, reads(4.0, 8.0)),
    ],
)
def test_a_right_curve_passes(judge: Judge, rows: Rows) -> None:
    verdict = judge(Table(rows))
    assert verdict.verdict == "pass", verdict.measured


@pytest.mark.parametrize(
    ("judge", "rows"),
    [
        (memory.simulator, simulator(diameter=6)),
        (memory.simulator, simulator(average=3.66)),
        (memory.simulator, simulator(largest=12)),
        (memory.simulator, simulator(answered=4031)),
        (memory.simulator, simulator()[:2]),
        (memory.execution_time, []),
        (memory.the_point_is_five, []),
        (memory.the_point_is_five, windows(138, 75, 56, 53, 52, 52, 52, 52)),
        (memory.the_point_is_five, windows(138, 75, 56, 54, 52, 51, 50, 50)),
        (memory.the_point_is_five_with_eight_reads, windows(138, 75, 56, 53, 52, 52, 52, 52)),
        # Up again at 6; too little from 1 to 5; not flat; most from 2 to 3.
        (memory.execution_time, times(138, 75, 56, 54, 52, 54, 52, 52)),
        (memory.execution_time, times(66, 60, 56, 54, 52, 52, 52, 52)),
        (memory.execution_time, times(138, 75, 56, 54, 52, 50, 49, 48)),
        (memory.execution_time, times(138, 110, 56, 54, 52, 52, 52, 52)),
        (memory.work_rates, []),
        (memory.work_rates, rates(interfaces=(0.4, *NIU[1:]))),
        (memory.work_rates, rates(routers=(*NR[:4], 0.99, *NR[5:]))),
        (memory.work_rates, rates(interfaces=(*NIU[:7], 0.76))),
        (memory.work_rates, rates(interfaces=(*NIU[:3], 0.6, *NIU[4:]))),
        (memory.work_rates, rates(routers=(0.7, *NR[1:]), interfaces=(0.2, *NIU[1:]))),
        # One form of the machine is missing.
        (memory.execution_time, [row for row in times() if row["series"] == "queues"]),
        (memory.work_rates, [row for row in rates() if row["series"] == "queues"]),
        (memory.cost_of_hops, []),
        (memory.cost_of_hops, reads(4.0, 8.5)),
        (memory.cost_of_hops, reads(4.0, 8.0, adjacent=0)),
        (memory.cost_of_hops, reads()),
    ],
)
def test_a_wrong_curve_fails(judge: Judge, rows: Rows) -> None:
    assert judge(Table(rows)).verdict == "fail"


def test_distances_are_those_of_a_ring() -> None:
    ring = {"network": {"topology": "torus", "dimensions": [8]}}
    # To the others: 1, 1, 2, 2, 3, 3, 4.
    expected = {"routers": 8, "diameter": 4, "average": pytest.approx(16 / 7)}
    assert counts.distances(ring) == expected
    assert counts.distances({**ring, "distances": {"from": [3]}}) == expected
