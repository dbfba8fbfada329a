"""Each verdict on nodes that translate themselves: on right answers, on wrong ones, and on those of a machine without the mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kasuri_papers import virtual_network_nodes as nodes
from kasuri_papers.figure import Table, Verdict

Rows = list[dict[str, Any]]
Judge = Callable[[Table], Verdict]

COUNTS = {
    "accesses": 1000,
    "accesses_ended": 1000,
    "accesses_ended_wrongly": 0,
    "protection_faults": 0,
    "misdelivered_packets": 0,
    "wrong_words": 0,
    "words_through_others": 0,
    "tlb_hits": 900,
    "tlb_misses": 100,
    "page_hits": 0,
    "page_misses": 0,
    "page_faults": 0,
    "table_changes": 0,
    "held_cycles": 0,
}


def row(
    series: str, place: dict[str, Any] | None = None, *, time: float = 1.0, users: tuple[str, ...] = ("all",), **changed: Any
) -> dict[str, Any]:
    own = [{"name": name, "completion_time": time} | COUNTS | changed for name in users]
    return {"series": series, "completion_time": time, "users": own} | (place or {})


def holes() -> Rows:
    faults = 1650 * 16 // 55
    hits = 1650 * 16 // 55
    return [
        row("holes", accesses=1650 - faults, accesses_ended=1650 - faults, protection_faults=faults, tlb_hits=hits, tlb_misses=1650 - hits)
    ]


def translations(identity: float = 100.0, walk: float = 500.0) -> Rows:
    rows = holes()
    for form in ("", "-flits"):
        for name, time in (("plain", 100.0), ("identity", identity)):
            rows += [row(name + form, {"endpoint.window": window}, time=time) for window in (16, 64)]
    for size, misses in ((16, 40), (64, 20)):
        for cycles, time in ((0, 1000.0), (500, 1000.0 + walk * misses)):
            rows.append(row("walks", {"translation.tlb_entries": size, "translation.walk_cycles": cycles}, time=time, tlb_misses=misses))
    return rows


def aliases(two: float = 1.97, most: float = 2.95, through: int = 7, **changed: Any) -> Rows:
    rows = []
    for place in ("router", "next-routers"):
        for cycles, rates in ((0, (1.0, two, 3.9, 7.0)), (nodes.MEMORY, (1.0, two, 2.9, most))):
            for k, rate in zip((1, 2, 4, 8), rates, strict=True):
                where = {"k": k, "endpoint.memory_cycles": cycles, "endpoint.interfaces_at": place}
                rows.append(row("aliases", where, time=nodes.READS * nodes.UNIT / rate, **changed))
    return rows + [row("words", {"k": k}, words_through_others=through if k > 1 else 0) for k in (1, 2, 4)]


def busy(after: float = 80.0, **changed: Any) -> Rows:
    rows = [row("one", {"measure.seed": seed}, time=100.0) for seed in (1, 2)]
    return rows + [row("rewritten", {"measure.seed": seed}, time=after, **{"table_changes": 1} | changed) for seed in (1, 2)]


def spaces(reached: int = nodes.SYSTEM_READS, passed: int = 0, most: int = 900) -> Rows:
    system = row("system", users=("user", "system"), accesses=reached, accesses_ended=reached)
    intruder = row("intruder", users=("user", "intruder"), accesses=passed, accesses_ended=passed, protection_faults=nodes.SYSTEM_READS)
    intruder["users"][0] |= {"accesses": 10, "accesses_ended": 10}
    rows = [system, intruder]
    for users in (1, 2, 4, 8):
        for entries, hits in ((8, 300), (64, 600), (256, most)):
            where = {"translation.tlb_entries": entries, "translation.unit_tables": 0}
            rows.append(row(f"users-{users}", where, tlb_hits=hits, tlb_misses=1000 - hits))
    return rows


def pages(faults: int = 250, looked_up: int = 1000, **changed: Any) -> Rows:
    own = {"page_hits": looked_up, "page_misses": 0} | changed
    return [row("pages", {"measure.seed": 1}, **own), row("missing", {"measure.seed": 1}, **own | {"page_faults": faults})]


def many(costs: tuple[float, ...] = (20_000, 30_000, 40_000), **changed: Any) -> Rows:
    rows = [row("space", {"users.alone": alone}, users=("a", "b", "c", "d")) for alone in ("", "a", "b", "c", "d")]
    rows[0]["users"][0] |= changed
    for draining, all_costs in (("answered", costs), ("left", (10_000, 10_000, 10_000))):
        for n, cost in zip((16, 64, 256), all_costs, strict=True):
            rows.append(row("time", {"users.draining": draining, "n": n, "user_switch_cycles_mean": cost}, users=("a", "b")))
    return rows


@pytest.mark.parametrize(
    ("judge", "rows"),
    [
        (nodes.translator, translations()),
        (nodes.aliases, aliases()),
        (nodes.busy_node, busy()),
        (nodes.spaces, spaces()),
        (nodes.global_addresses, pages()),
        (nodes.many_users, many()),
    ],
)
def test_right_answers_pass(judge: Judge, rows: Rows) -> None:
    verdict = judge(Table(rows))
    assert verdict.verdict == "pass", verdict.measured


@pytest.mark.parametrize(
    ("judge", "rows"),
    [
        (nodes.translator, holes()),
        (nodes.translator, translations(identity=101.0)),
        # Walks that take no time, or more than they do.
        (nodes.translator, translations(walk=0.0)),
        (nodes.translator, translations(walk=510.0)),
        (nodes.aliases, []),
        # The second interface is none; it is a second memory; the memory is no limit.
        (nodes.aliases, aliases(two=1.0)),
        (nodes.aliases, aliases(two=2.05)),
        (nodes.aliases, aliases(most=7.0)),
        (nodes.aliases, aliases(through=0)),
        (nodes.aliases, aliases(wrong_words=1)),
        (nodes.busy_node, []),
        (nodes.busy_node, busy(after=99.0)),
        (nodes.busy_node, busy(table_changes=0)),
        (nodes.busy_node, busy(accesses_ended=999)),
        (nodes.busy_node, busy(wrong_words=1)),
        (nodes.spaces, []),
        (nodes.spaces, spaces(reached=1999)),
        (nodes.spaces, spaces(passed=1)),
        # A larger buffer does not help.
        (nodes.spaces, spaces(most=300)),
        (nodes.global_addresses, []),
        (nodes.global_addresses, pages(faults=0)),
        (nodes.global_addresses, pages(looked_up=0)),
        (nodes.global_addresses, pages(wrong_words=1)),
        (nodes.many_users, []),
        (nodes.many_users, many(costs=(20_000, 20_000, 20_000))),
        (nodes.many_users, many(costs=(20_000, 40_000, 30_000))),
        (nodes.many_users, many(misdelivered_packets=1)),
        (nodes.many_users, many(accesses=900, accesses_ended=900)),
    ],
)
def test_wrong_answers_fail(judge: Judge, rows: Rows) -> None:
    assert judge(Table(rows)).verdict == "fail", judge(Table(rows)).measured


@pytest.mark.parametrize("judge", [nodes.true_aliases, nodes.general, nodes.logical_networks])
def test_studies_without_runs_say_what_they_lack(judge: Judge) -> None:
    verdict = judge(Table([]))
    assert verdict.verdict == "fail"
    assert "NOT: " in verdict.measured
