"""Each verdict on right answers, and on wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kasuri_papers import virtual_network_users as users
from kasuri_papers.figure import Findings, Table, Verdict

Rows = list[dict[str, Any]]
Judge = Callable[[Table], Verdict]


def user(**changed: Any) -> dict[str, Any]:
    counts = {"accesses": 1170, "accesses_ended": 1170, "accesses_ended_wrongly": 0, "protection_faults": 480, "misdelivered_packets": 0}
    looked_up = {"tlb_hits": 480, "tlb_misses": 1170, "foreign_packets": 7}
    return {"name": "a", "nodes": 9, "dilation_max": None, "dilation_mean": None, "congestion": None} | counts | looked_up | changed


def open_traffic(table: Table) -> Verdict:
    found = Findings()
    users.translator_in_open_traffic(found, table)
    return found.verdict()


def holes(**changed: Any) -> Rows:
    return [{"series": "holes", "users": [user(**changed)]}]


def layouts(of: str = "irregular", **changed: Any) -> Rows:
    rows: Rows = []
    for name, (longest, mean, congestion) in users.LAYOUTS.items():
        right = {"dilation_max": longest, "dilation_mean": mean, "congestion": congestion, "nodes": 7 if name == "tree" else 9}
        rows.append({"series": name, "users": [user(**right | (changed if name == of else {}))]})
    return rows


def processors(**changed: Any) -> Rows:
    own = user(**{"nodes": 3, "wrong_words": 0} | changed)
    return [{"series": series, "users": [own]} for series in ("processors", "shared-memory")]


def foreign(**changed: Any) -> Rows:
    return [{"series": "irregular", "users": [user(**changed), user(name="b")]}]


def levels(short: tuple[int, ...] = (15, 26, 95), long: tuple[int, ...] = (31_264, 31_275, 31_344)) -> Rows:
    times = [(users.SHORT, short), (users.LONG, long)]
    return [
        {"series": "levels", "translation.level": level, "flits": flits, users.TIME: time}
        for flits, all_times in times
        for level, time in zip(users.LEVELS, all_times, strict=True)
    ]


@pytest.mark.parametrize(
    ("judge", "rows"),
    [
        (open_traffic, holes()),
        (users.topologies, layouts()),
        (users.virtual_processors, processors()),
        (users.foreign_packets, foreign()),
        (users.levels, levels()),
    ],
)
def test_right_answers_pass(judge: Judge, rows: Rows) -> None:
    assert judge(Table(rows)).verdict == "pass", judge(Table(rows)).measured


@pytest.mark.parametrize(
    ("judge", "rows"),
    [
        (open_traffic, []),
        (open_traffic, holes(misdelivered_packets=1)),
        (open_traffic, holes(accesses_ended=1169)),
        (open_traffic, holes(accesses_ended_wrongly=1)),
        (open_traffic, holes(protection_faults=0)),
        (open_traffic, holes(tlb_hits=700, tlb_misses=950)),
        (users.topologies, []),
        (users.topologies, layouts(dilation_max=5.0)),
        (users.topologies, layouts("compact", congestion=3.0)),
        (users.topologies, layouts("tree", nodes=6)),
        (users.topologies, layouts(misdelivered_packets=1)),
        (users.virtual_processors, []),
        (users.virtual_processors, processors(nodes=5)),
        (users.virtual_processors, processors(misdelivered_packets=2)),
        (users.virtual_processors, processors(wrong_words=1)),
        (users.virtual_processors, processors()[:1]),
        (users.foreign_packets, []),
        (users.foreign_packets, foreign(foreign_packets=0)),
        (users.foreign_packets, foreign(misdelivered_packets=1)),
        (users.levels, []),
        (users.levels, levels(short=(26, 15, 95))),
        (users.levels, levels(long=(31_264, 31_275, 33_000))),
    ],
)
def test_wrong_answers_fail(judge: Judge, rows: Rows) -> None:
    assert judge(Table(rows)).verdict == "fail", judge(Table(rows)).measured
