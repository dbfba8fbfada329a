"""The judges of the Cenju-4's interface on real runs: as the figures have them, and with what they look at switched off."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import switched
import test_reproduce_cenju4_system as machine
from kasuri.errors import ConfigError
from kasuri_papers import cenju4
from kasuri_papers import cenju4_system as system
from kasuri_papers.cenju4_system import SIZE
from kasuri_papers.figure import Table
from switched import Rows, at, judged, ran

series = partial(switched.series, "cenju4")


def joined(*parts: Rows) -> Rows:
    return [row for rows in parts for row in rows]


# --- structure --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("radix", [2, 8])
def test_switches_of_another_size_have_not_16_queues(tmp_path: Path, radix: int) -> None:
    assert judged(cenju4.crosspoints, ran(tmp_path, series("F2", "board"))) == []
    [part] = judged(cenju4.crosspoints, ran(tmp_path, series("F2", "board", network={"radix": radix})))
    assert part.startswith(f"switches with [{radix}] inputs and outputs")


@pytest.mark.parametrize(("stages", "counts"), [(1, "(1, 4)"), (3, "(48, 64)")])
def test_a_board_has_its_16_lines_by_two_stages(tmp_path: Path, stages: int, counts: str) -> None:
    assert judged(cenju4.board, ran(tmp_path, series("C2", "board"))) == []
    [part] = judged(cenju4.board, ran(tmp_path, series("C2", "board", network={"stages": stages})))
    assert part == f"switches and lines [{counts}] ((8, 16))"


def of_32(name: str, **sections: Any) -> switched.Points:
    return at(series("F1", name, **sections), n=32)


def test_all_pairs_reach_by_one_path_of_the_cabling(tmp_path: Path) -> None:
    names = ("machine", "machine-pairs", "channels")
    others = [row for row in machine.networks() if not (row["n"] == 32 and row["series"] in names)]
    usual = {name: ran(tmp_path, of_32(name), system.off_the_rule) for name in names}
    assert judged(system.networks, joined(others, *usual.values())) == []

    def told(name: str, **sections: Any) -> list[str]:
        rows = usual | {name: ran(tmp_path, of_32(name, **sections), system.off_the_rule)}
        return judged(system.networks, joined(others, *rows.values()))

    # On a machine of one cabling packets do not take the channels of the others.
    [part] = told("channels", network={"cabling": None, "cable": None})
    assert part.startswith("flits on each channel are those of one path")
    [part] = told("machine-pairs", endpoint={"flit_loss_rate": 1e-2})
    assert part.startswith("machine: data of each node has reached all others with [8, 16, 64,")
    # With half of the nodes each of the 16 machines has fewer boards.
    assert any(part.startswith("nodes, switches (8 a board)") for part in told("machine", network={"terminals": 16}))


def test_a_pure_network_of_other_switches_has_more_of_them(tmp_path: Path) -> None:
    others = [row for row in machine.networks() if (row["series"], row["n"]) != ("pure", 64)]
    assert judged(system.networks, joined(others, ran(tmp_path, at(series("F1", "pure"), n=64)))) == []
    rows = ran(tmp_path, at(series("F1", "pure", network={"radix": 2}), n=64))
    [part] = judged(system.networks, joined(others, rows))
    assert "64: (64, 192)" in part


def test_a_storm_drains_unless_flits_are_lost_and_is_refused_where_it_might_not(tmp_path: Path) -> None:
    shorter = {"repeat": 5}
    assert judged(cenju4.storm_drains, ran(tmp_path, series("C4", "storm", workload=shorter))) == []
    lossy = ran(tmp_path, series("C4", "storm", workload=shorter, endpoint={"flit_loss_rate": 1e-4}))
    assert judged(cenju4.storm_drains, lossy) == ["storm: 3 runs ended as ['deadlock']"]
    # On a torus packets wait for each other in a ring.
    ring = {"topology": "torus", "terminals": None, "dimensions": [8, 8]}
    order = {"algorithm": "dimension-order", "tie": "positive"}
    with pytest.raises(ConfigError, match="wait for each other for ever, in a cycle"):
        ran(tmp_path, series("C4", "storm", workload=shorter, network=ring, routing=order))


def test_every_packet_of_the_protocols_is_needed(tmp_path: Path) -> None:
    assert judged(cenju4.protocols, ran(tmp_path, series("T1", "protocols"))) == []
    [point] = series("T1", "protocols", endpoint={"flit_loss_rate": 1e-4}, sweep={"measure.seed": list(range(1, 41))})
    rows = ran(tmp_path, [point])
    whole = [row for row in rows if row["status"] == "completed"]
    assert 0 < len(whole) < len(rows)
    # A run ends as it should if nothing was lost, and not with one flit less.
    assert all(row["link_lost_flits"] == 0 for row in whole)
    assert not any(row["link_lost_flits"] == 0 for row in rows if row not in whole)
    assert judged(cenju4.protocols, whole) == []
    [part] = judged(cenju4.protocols, rows)
    assert part.startswith("protocols: 40 runs ended as [")


# --- switches, links and lines ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "name"),
    [("latency", "unicast"), ("multicast_latency", "multicast"), ("synchronisation_latency", "synchronisation")],
)
def test_each_kind_of_packet_has_its_own_time_in_a_switch(tmp_path: Path, key: str, name: str) -> None:
    names = ("unicast", "multicast", "synchronisation")
    assert judged(cenju4.switch_latency, ran(tmp_path, series("C1", *names))) == []
    cycles = {"latency": 10, "multicast_latency": 15, "synchronisation_latency": 16}
    for without, step in ((0, 0.0), (1, 12.5)):
        rows = ran(tmp_path, series("C1", *names, router={"crosspoint": cycles | {key: without}}))
        [part] = judged(cenju4.switch_latency, rows)
        assert part.startswith(f"{name}: [{step}, {step}, {step}] ns a switch")


@pytest.mark.parametrize(
    ("off", "rate"),
    [
        # Cycles of twice the length; headers of 12 flits before 96 of data; lines that come out of the cache.
        ({"network": {"cycle_ns": 25.0}}, 106.667),
        ({"endpoint": {"header_flits": 12}}, 213.333 * 96 / 108),
        ({"endpoint": {"cache_ns": 410.0}}, None),
    ],
)
def test_data_fills_a_link_only_where_nothing_else_does(tmp_path: Path, off: dict[str, Any], rate: float | None) -> None:
    assert judged(cenju4.link_rate, ran(tmp_path, series("C3", "data"))) == []
    [part] = judged(cenju4.link_rate, ran(tmp_path, series("C3", "data", **off)))
    measured = float(part.split()[4])
    assert measured < 0.99 * 213.333
    assert rate is None or measured == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize(("key", "nanoseconds"), [("cache_ns", 16 * 12.5), ("beat_ns", 410.0)])
def test_lines_come_faster_without_the_wait_for_the_cache_or_without_its_bus(tmp_path: Path, key: str, nanoseconds: float) -> None:
    assert judged(cenju4.read_rate, ran(tmp_path, series("C5", "read"))) == []
    parts = judged(cenju4.read_rate, ran(tmp_path, series("C5", "read", endpoint={key: 0.0})))
    assert parts[0].startswith(f"Mbyte/s: {128 / nanoseconds * 1000:.4f}")


# --- packets ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["B", "C", "D"])
def test_odd_words_cost_packets_that_even_ones_do_not(tmp_path: Path, case: str) -> None:
    usual = {name: ran(tmp_path, series("F5", name)) for name in "ABCD"}
    assert judged(cenju4.odd_words, joined(*usual.values())) == []
    even = []
    for point in series("F5", case):
        offsets = {"source_offset": point.variables["s"] // 8 * 8, "target_offset": point.variables["t"] // 8 * 8}
        workload = {**point.experiment["workload"], **offsets}
        even.append(dataclasses.replace(point, experiment={**point.experiment, "workload": workload}))
    rows = ran(tmp_path, even)
    # Both at double words, a message goes as in case A.
    for row in rows:
        assert row["flit_hops"] == 2 * cenju4.STAGES * cenju4.flits(row["s"] // 8 * 8, row["t"] // 8 * 8, row["m"])
    [part] = judged(cenju4.odd_words, joined(*(usual | {case: rows}).values()))
    assert part.startswith(f"{case}: 4 messages")


@pytest.mark.parametrize(
    ("off", "source", "target"),
    [({"target_offset": 0}, "s", None), ({"source_offset": 0}, None, "t"), ({"source_offset": 0, "target_offset": 0}, None, None)],
)
def test_packets_follow_the_places_of_source_and_target(
    tmp_path: Path, off: dict[str, int], source: str | None, target: str | None
) -> None:
    few = {"place": (0, 1, 2, 3, 4, 5)}
    assert judged(cenju4.packets_by_rule, ran(tmp_path, at(series("C7", "random"), **few))) == []
    rows = ran(tmp_path, at(series("C7", "random", workload=off), **few))
    for row in rows:
        place = (row[source] if source else 0, row[target] if target else 0)
        assert row["flit_hops"] == 2 * cenju4.STAGES * cenju4.flits(*place, row["m"])
    [part] = judged(cenju4.packets_by_rule, rows)
    assert part.startswith("random: 6 messages")


def test_packets_without_headers_are_not_those_of_the_rules(tmp_path: Path) -> None:
    few = {"place": (0, 1, 2)}
    headless = ran(tmp_path, at(series("C7", "random", endpoint={"header_flits": 0}), **few))
    assert len(judged(cenju4.packets_by_rule, headless)) == 1


# --- time -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("off", "expected"),
    [
        (("send_ns",), {"Paralib/CJ4, 8 bytes, us: 3.7", "MPI, 8 bytes, us: 7.9"}),
        (("mpi_send_ns", "mpi_receive_ns"), {"MPI, 8 bytes, us: 4.9"}),
        (("system_call_ns",), {"the system call, us: 0.0"}),
        # Data in line saves the wait for the cache; making a packet from it costs less than that.
        (("cache_ns",), {"Paralib/CJ4, 8 bytes, us: 4.4", "MPI, 8 bytes, us: 8.6", "16 bytes over 8, us: 0.0"}),
        (("packet_ns",), {"Paralib/CJ4, 8 bytes, us: 4.7", "16 bytes over 8, us: 0.4"}),
    ],
)
def test_latency_is_made_of_the_interfaces_parts(tmp_path: Path, off: tuple[str, ...], expected: set[str]) -> None:
    names, few = ("paralib", "mpi", "system-call"), {SIZE: [8, 16, 64, 1024]}
    assert judged(cenju4.latency, ran(tmp_path, series("F6", *names, sweep=few))) == []
    free = dict.fromkeys(off, 0.0)
    parts = judged(cenju4.latency, ran(tmp_path, series("F6", *names, sweep=few, endpoint=free)))
    assert {next(text for text in expected if part.startswith(text)) for part in parts} == expected


LIBRARIES = ("paralib", "mpi")


def test_throughput_hangs_on_the_optimised_read_the_line_and_the_library(tmp_path: Path) -> None:
    few = {SIZE: [1024, 65536, 524288]}

    def rows(case: str, **sections: Any) -> Rows:
        return ran(tmp_path, series("F7", *(f"{case}-{library}" for library in LIBRARIES), sweep=few, **sections))

    usual = {case: rows(case) for case in "ABC"}

    def told(**other: Rows) -> set[str]:
        return set(judged(cenju4.throughput, joined(*(usual | other).values())))

    # What does not hold of the usual runs is no matter of this test.
    known = told()
    assert not any("paralib" in part or "libraries" in part or "Kbyte" in part for part in known)
    # Without the optimised read C is B.
    parts = told(C=rows("C", workload={"reuse_line": False}))
    assert {f"C - B, {library}, {size} bytes, Mbyte/s: 0.0000 ([25, 35])" for library in LIBRARIES for size in (65536, 524288)} <= parts
    # A source that is not at a line, read as in B, is no faster than B.
    parts = told(A=rows("A", workload={"source_offset": 64, "reuse_line": False})) - known
    assert {part.partition(": ")[0] for part in parts} == {f"A >= C > B, {library}" for library in LIBRARIES}
    # A library without costs is the other one.
    free = {"mpi_send_ns": 0.0, "mpi_receive_ns": 0.0, "word_copy_ns": 0.0}
    parts = told(**{case: rows(case, endpoint=free) for case in "ABC"})
    assert {f"{case}: by 0.000 at 1 Kbyte (> 0.1)" for case in "ABC"} <= parts
    # One that copies all of a long message does not come near.
    copying = rows("A", endpoint={"mpi_eager_bytes": 1 << 20, "word_copy_ns": 25.0})
    assert any(part.startswith("A: libraries differ by 0.5") for part in told(A=copying))


def test_odd_words_are_as_slow_in_hardware_where_software_copies_for_nothing(tmp_path: Path) -> None:
    few: dict[str, Any] = {"d": (1, 3, 15, 31)}
    usual = {name: ran(tmp_path, at(series("F8", name), **few)) for name in "ABCD"}
    assert judged(cenju4.odd_throughput, joined(*usual.values())) == []

    def told(**other: Rows) -> list[str]:
        return judged(cenju4.odd_throughput, joined(*(usual | other).values()))

    free = {name: ran(tmp_path, at(series("F8", name, endpoint={"word_copy_ns": 0.0}), **few)) for name in "CD"}
    parts = told(**free)
    assert [part.partition(": ")[0] for part in parts] == ["A/C", "B/D"]
    assert all(": 0.9" in part for part in parts)
    # Without the optimised read A is B, and C is D.
    parts = told(A=[{**row, "series": "A"} for row in usual["B"]])
    assert any(part.startswith("A > B") for part in parts)
    unread = ran(tmp_path, at(series("F8", "A", workload={"reuse_line": False}), **few))
    assert told(A=unread) == parts
    unread = ran(tmp_path, at(series("F8", "C", workload={"reuse_line": False}), **few))
    assert [part.partition(": ")[0] for part in told(C=unread)] == ["C > D"]
    # Three words of difference are not like one.
    three = ran(tmp_path, at(series("F8", "A"), d=3))
    [part] = told(A=joined([row for row in usual["A"] if row["d"] != 1], [{**row, "d": 1} for row in three]))
    assert part.startswith("one word: ")


FEW_NODES = {"n": (1, 2, 4, 8, 16, 32)}


def test_barriers_take_the_time_of_their_way(tmp_path: Path) -> None:
    usual = {name: ran(tmp_path, at(series("F10", name), **FEW_NODES)) for name in "ABCDE"}
    assert judged(cenju4.barriers, joined(*usual.values())) == []

    def told(name: str, schedule: str) -> list[str]:
        rows = ran(tmp_path, at(series("F10", name, workload={"schedule": schedule}), **FEW_NODES))
        return judged(cenju4.barriers, joined(*(usual | {name: rows}).values()))

    # Without multicast D has the slope of C; a tree is not linear, and all messages to one are not like a tree.
    slopes, at_32 = told("D", "atomic-add")
    assert slopes.startswith("slopes of D and C 0.610, 0.610")
    assert at_32.startswith("at 32: D < C, D < B")
    [part] = told("A", "tree")
    assert part.startswith("A is linear: R2 0.8")
    [part] = told("C", "tree")
    assert part.startswith("C is linear: R2 0.8")
    [part] = told("B", "messages")
    assert part.startswith("B over log2 N at powers of two: R2 0.8")


@pytest.mark.parametrize(
    ("off", "expected"),
    [
        ({"workload": {"schedule": "multicast-atomic-add"}}, ["E 5.350", "E's spread", "at 32: E 11.35, D 11.35"]),
        ({"workload": {"schedule": "tree"}}, ["E 9.800", "E's spread", "at 32: E 49.00"]),
        # The library before a send; the wait of packets that come to a table together.
        ({"endpoint": {"send_ns": 0.0}}, ["E 3."]),
        ({"router": {"crosspoint": {"table_access": 16}}}, ["E 5.", "E's spread"]),
    ],
)
def test_the_switches_own_barrier_is_not_another_one(tmp_path: Path, off: dict[str, Any], expected: list[str]) -> None:
    few = {"n": (2, 4, 8, 16, 32)}
    both = [*series("F10", "D"), *series("F10", "E")]
    usual = [{**row, "figure": "F10"} for row in ran(tmp_path, at(both, **few))]
    assert judged(cenju4.barrier_of_the_switches, usual) == []
    other = [{**row, "figure": "F10"} for row in ran(tmp_path, at(series("F10", "E", **off), **few))]
    parts = judged(cenju4.barrier_of_the_switches, [*(row for row in usual if row["series"] == "D"), *other])
    assert len(parts) == len(expected)
    assert all(part.startswith(text) for part, text in zip(parts, expected, strict=True))


def test_synchronisation_is_refused_for_the_number_of_nodes_alone(tmp_path: Path) -> None:
    refused, works = ran(tmp_path, series("C6", "refused")), ran(tmp_path, series("C6", "D"))
    assert judged(cenju4.beyond_64, [*refused, *works]) == []
    for off in ({"network": {"terminals": 64}}, {"workload": {"schedule": "multicast-atomic-add"}}):
        [part] = judged(cenju4.beyond_64, [*works, *ran(tmp_path, series("C6", "refused", **off))])
        assert part == "refused: ['', '', '']"
    lossy = ran(tmp_path, series("C6", "D", endpoint={"flit_loss_rate": 1e-2}))
    assert judged(cenju4.beyond_64, [*refused, *lossy]) == ["multicast and atomic add with [] nodes"]


def test_the_nodes_of_the_machine_are_told(tmp_path: Path) -> None:
    for nodes in (32, 64):
        rows = ran(tmp_path, series("C9", "machine", network={"terminals": nodes}))
        assert cenju4.tested(Table(rows)).measured.endswith(f"the machine has [{nodes}] nodes")


# --- the machine around the interface ---------------------------------------------------------------------------------------------


def test_a_source_at_a_line_needs_no_line_from_main_memory(tmp_path: Path) -> None:
    assert judged(system.steps_in_order, [*ran(tmp_path, series("F4", "timeline")), *machine.choice()]) == []
    for off in ({"source_offset": 0}, {"reuse_line": False}):
        [part] = judged(system.steps_in_order, [*ran(tmp_path, series("F4", "timeline", workload=off)), *machine.choice()])
        assert part == "a line that was read before comes from main memory (4a)"


def test_three_tasks_switch_by_the_sets_of_control_registers(tmp_path: Path) -> None:
    usual = {name: ran(tmp_path, series("C11", name)) for name in ("tasks", "enough", "switches")}
    assert judged(system.tasks, joined(*usual.values())) == []
    for name, registers, expected in (
        ("tasks", 3, "switches {1: 0, 2: 0, 3: 0}"),
        ("enough", 2, "with a set for each of three tasks [32] switches"),
    ):
        rows = ran(tmp_path, series("C11", name, endpoint={"user_registers": registers}))
        [part] = judged(system.tasks, joined(*(usual | {name: rows}).values()))
        assert part.startswith(expected)


def test_all_to_all_hangs_on_its_order_and_on_multicast(tmp_path: Path) -> None:
    sizes: dict[str, list[int]] = {"A": [16384], "B": [1024, 16384], "C": [16384]}

    def rows(name: str, **sections: Any) -> Rows:
        return ran(tmp_path, series("F9", name, sweep={SIZE: sizes[name], "measure.seed": [1, 2]}, **sections))

    usual = {name: rows(name) for name in sizes} | {"one-to-one": ran(tmp_path, series("F9", "one-to-one", sweep={SIZE: [524288]}))}
    assert judged(system.all_to_all, joined(*usual.values())) == []
    # Staggered, A is B; without multicast, C is.
    [part] = judged(system.all_to_all, joined(*(usual | {"A": rows("A", workload={"schedule": "shift"})}).values()))
    assert part.startswith("A < B < C: B ")
    single, busy, order = judged(system.all_to_all, joined(*(usual | {"C": rows("C", workload={"schedule": "shift"})}).values()))[:3]
    assert single.startswith("16384 bytes: C ")
    assert busy.startswith("last links busy 0.")
    assert order.startswith("A < ")


# --- completeness -----------------------------------------------------------------------------------------------------------------

#: The test that switches off what a judge looks at.
ALIVE: dict[switched.Judge, Callable[..., None]] = {
    cenju4.crosspoints: test_switches_of_another_size_have_not_16_queues,
    cenju4.board: test_a_board_has_its_16_lines_by_two_stages,
    cenju4.storm_drains: test_a_storm_drains_unless_flits_are_lost_and_is_refused_where_it_might_not,
    cenju4.protocols: test_every_packet_of_the_protocols_is_needed,
    cenju4.switch_latency: test_each_kind_of_packet_has_its_own_time_in_a_switch,
    cenju4.link_rate: test_data_fills_a_link_only_where_nothing_else_does,
    cenju4.read_rate: test_lines_come_faster_without_the_wait_for_the_cache_or_without_its_bus,
    cenju4.odd_words: test_odd_words_cost_packets_that_even_ones_do_not,
    cenju4.packets_by_rule: test_packets_follow_the_places_of_source_and_target,
    cenju4.latency: test_latency_is_made_of_the_interfaces_parts,
    cenju4.throughput: test_throughput_hangs_on_the_optimised_read_the_line_and_the_library,
    cenju4.odd_throughput: test_odd_words_are_as_slow_in_hardware_where_software_copies_for_nothing,
    cenju4.barriers: test_barriers_take_the_time_of_their_way,
    cenju4.barrier_of_the_switches: test_the_switches_own_barrier_is_not_another_one,
    cenju4.beyond_64: test_synchronisation_is_refused_for_the_number_of_nodes_alone,
    cenju4.tested: test_the_nodes_of_the_machine_are_told,
    system.networks: test_all_pairs_reach_by_one_path_of_the_cabling,
    system.multicasts_arrive: machine.test_multicasts_with_lost_flits_do_not_pass,
    system.steps_in_order: machine.test_without_missing_pages_the_fourth_register_is_not_chosen_alone,
    system.protected: machine.test_refusals_that_are_masked_are_not_told,
    system.tasks: test_three_tasks_switch_by_the_sets_of_control_registers,
    system.interrupts: machine.test_an_operating_system_without_costs_delays_nothing,
    system.registered: machine.test_system_calls_without_costs_delay_no_first_use,
    system.all_to_all: test_all_to_all_hangs_on_its_order_and_on_multicast,
}


def test_what_every_judge_looks_at_is_switched_off_somewhere() -> None:
    switched.must_cover(switched.judged_in(cenju4.PAPER.figures), ALIVE)
