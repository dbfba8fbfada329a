"""Each verdict on a right curve, and on wrong ones; the independent count of packets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kasuri_papers import cenju4
from kasuri_papers.cenju4 import SIZE, TIME
from kasuri_papers.figure import Table, Verdict

Rows = list[dict[str, Any]]
Judge = Callable[[Table], Verdict]
SIZES = (8, 16, 64, 1024, 65536, 524288)


def rows(series: str, values: dict[Any, float], x: str = SIZE, **more: Any) -> Rows:
    return [{"series": series, x: place, TIME: value, "status": "completed", **more} for place, value in values.items()]


def latencies(**changed: float) -> Rows:
    first = {"paralib": 4.9, "mpi": 9.1, "system-call": 17.9} | {key.replace("_", "-"): value for key, value in changed.items()}
    step = changed.get("step", 0.3)
    return [
        row
        for name, base in first.items()
        if name != "step"
        for row in rows(name, {8: 2000 * base, 16: 2000 * (base + step), 1024: 2000 * (base + 7)})
    ]


def throughputs(a: float = 189.6, b: float = 139.9, c: float = 169.8, extra: float = 10_000.0) -> Rows:
    table: Rows = []
    for case, rate in (("A", a), ("B", b), ("C", c)):
        for library, fixed in (("paralib", 4900.0), ("mpi", 4900.0 + extra)):
            table += rows(f"{case}-{library}", {size: 2 * (fixed + size / rate * 1000) for size in SIZES[3:]})
    return table


def odd(ratio: float = 2.0, one: float = 150.0) -> Rows:
    rates = {"A": 160.0, "B": 135.0, "C": 160.0 / ratio, "D": 135.0 / ratio}
    table: Rows = []
    for name, rate in rates.items():
        for d in range(1, 32, 2):
            real = one if name == "A" and d in (1, 31) else rate
            table += rows(name, {d: 2 * 524288 / real * 1000}, "d", **{SIZE: 524288})
    return table


def barriers(e: float = 5200.0, e_slope: float = 0.0, d_slope: float = 200.0) -> Rows:
    nodes = range(1, 33)
    return [
        *rows("A", {n: 4900 + 600 * (n - 1) for n in nodes}, "n"),
        *rows("B", {n: 9800 * (n - 1).bit_length() for n in nodes}, "n"),
        *rows("C", {n: 4900 + 600 * (n - 1) for n in nodes}, "n"),
        *rows("D", {n: 5300 + d_slope * (n - 1) for n in nodes}, "n"),
        *rows("E", {n: e + e_slope * n for n in nodes}, "n"),
    ]


def switches(unicast: float = 125.0) -> Rows:
    steps = {"unicast": 2 * unicast, "multicast": 187.5, "synchronisation": 200.0}
    return [row for name, step in steps.items() for row in rows(name, {stages: 4000 + step * stages for stages in range(1, 5)}, "stages")]


def boundary(refused: str = "at most 64 nodes", works: tuple[int, ...] = (128, 256)) -> Rows:
    return [{"series": "refused", "refused": refused}, *({"series": "D", "n": n, "status": "completed"} for n in works)]


def message(case: str, flits: int = 0, status: str = "completed") -> Rows:
    return [{"series": case, "s": 0, "t": 0, "m": 1000, "status": status, "flit_hops": 8 * (4 * 12 + 375 + flits)}]


def ends(series: str, status: str = "completed") -> Rows:
    return [{"series": series, "status": status}]


def link(rate: float = 640 / 3) -> Rows:
    return rows("data", {size: 9800 + 2 * size / rate * 1000 for size in (8192, 16384)})


def lines(time: float = 0.61) -> Rows:
    return [{"series": "read", "cache_us": [time, time]}]


def of_board(routers: int = 8, ports: int = 4) -> Rows:
    return [{"series": "board", "routers": routers, "terminals": 16, "leaf_ports": [ports], "spine_ports": []}]


RIGHT: list[tuple[Judge, Rows]] = [
    (cenju4.crosspoints, of_board()),
    (cenju4.board, of_board()),
    (cenju4.storm_drains, ends("storm")),
    (cenju4.protocols, ends("protocols")),
    (cenju4.switch_latency, switches()),
    (cenju4.packets_by_rule, message("random")),
    (cenju4.odd_words, [row for case in "ABCD" for row in message(case)]),
    (cenju4.latency, latencies()),
    (cenju4.throughput, throughputs()),
    (cenju4.odd_throughput, odd()),
    (cenju4.barriers, barriers()),
    (cenju4.barrier_of_the_switches, [{"figure": "F10", **row} for row in barriers()]),
    (cenju4.beyond_64, boundary()),
    (cenju4.link_rate, link()),
    (cenju4.read_rate, lines()),
]

WRONG: list[tuple[Judge, Rows]] = [
    *((judge, []) for judge, _ in RIGHT),
    (cenju4.crosspoints, of_board(ports=5)),
    (cenju4.board, of_board(9)),
    (cenju4.storm_drains, ends("storm", "deadlock")),
    (cenju4.protocols, ends("protocols", "failed")),
    (cenju4.switch_latency, switches(125.1)),
    (cenju4.packets_by_rule, message("random", 12)),
    (cenju4.odd_words, [row for case in "ABC" for row in message(case)]),
    (cenju4.latency, latencies(paralib=5.1)),
    (cenju4.latency, latencies(mpi=9.4)),
    (cenju4.latency, latencies(step=0.4)),
    (cenju4.throughput, throughputs(c=150.0)),
    (cenju4.throughput, throughputs(a=160.0)),
    (cenju4.throughput, throughputs(extra=100.0)),
    (cenju4.odd_throughput, odd(ratio=2.5)),
    (cenju4.odd_throughput, odd(one=165.0)),
    (cenju4.barriers, barriers(d_slope=-1.0)),
    (cenju4.barrier_of_the_switches, [{"figure": "F10", **row} for row in barriers(e=6000.0)]),
    (cenju4.barrier_of_the_switches, [{"figure": "F10", **row} for row in barriers(e_slope=20.0)]),
    (cenju4.barrier_of_the_switches, [{"figure": "F10", **row} for row in barriers(d_slope=-20.0)]),
    (cenju4.barriers, barriers(d_slope=400.0)),
    (cenju4.beyond_64, boundary(refused="")),
    (cenju4.beyond_64, boundary(works=(128,))),
    (cenju4.link_rate, link(210.0)),
    (cenju4.read_rate, lines(0.62)),
]


@pytest.mark.parametrize(("judge", "table"), RIGHT)
def test_the_right_curve_passes(judge: Judge, table: Rows) -> None:
    verdict = judge(Table(table))
    assert verdict.verdict == "pass", verdict.measured


@pytest.mark.parametrize(("judge", "table"), WRONG)
def test_a_wrong_curve_fails_and_says_what_does_not_hold(judge: Judge, table: Rows) -> None:
    verdict = judge(Table(table))
    assert verdict.verdict == "fail"
    assert verdict.measured.startswith("NOT: ")


def test_every_judge_sees_right_and_wrong_curves() -> None:
    judges = {figure.judge for figure in cenju4.PAPER.figures if figure.engine != "none" and figure.judge.__module__ == cenju4.__name__}
    assert judges == {judge for judge, _ in RIGHT} == {judge for judge, _ in WRONG}


def test_the_rows_of_the_paper_are_complete() -> None:
    expected = {*(f"F{number}" for number in range(1, 11)), "T1", *(f"C{number}" for number in range(1, 14)), "S1", "S2", "S3"}
    assert {figure.number for figure in cenju4.PAPER.figures} == expected


def test_packets_are_cut_at_lines_and_pages() -> None:
    assert cenju4.packets(0, 0, 600) == [256, 256, 88]
    assert cenju4.packets(0, 64, 600) == [192, 256, 152]
    assert cenju4.packets(4080, 0, 300) == [16, 240, 44]
    # At an odd word the last double word of a page takes its half of the next one along.
    assert cenju4.packets(4084, 0, 300) == [16, 240, 44]
