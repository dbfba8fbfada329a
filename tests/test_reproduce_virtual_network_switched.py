"""The judges of the virtual networks on runs, and on runs in which what they look at is switched off."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import switched
from kasuri_papers import PAPERS, experiments
from kasuri_papers import virtual_network_memory as memory
from kasuri_papers import virtual_network_nodes as nodes
from kasuri_papers import virtual_network_users as users
from kasuri_papers.figure import Judge, Table
from switched import Rows, fails_in, failures, passes

Points = list[experiments.Point]
#: The eightfold channel between router and interface.
FAST = {"terminal_channel_period": 105}


def points(number: str, *series: str, **sections: Mapping[str, Any]) -> Points:
    return [point for name in series for point in switched.points("virtual-network", number, name, **sections)]


def with_users(chosen: Sequence[experiments.Point], only: str = "", **keys: Any) -> Points:
    """Change keys of all users, or of one; `None` takes a key away."""

    def changed(user: Mapping[str, Any]) -> dict[str, Any]:
        changes = keys if only in ("", user["name"]) else {}
        return {key: value for key, value in {**user, **changes}.items() if value is not None}

    return [
        dataclasses.replace(point, experiment={**point.experiment, "user": [changed(user) for user in point.experiment["user"]]})
        for point in chosen
    ]


def table(folder: Path, *chosen: experiments.Point) -> Rows:
    return switched.table(folder, chosen)


# --- the simulator and its measurements --------------------------------------------------------------------------------------------


def test_a_torus_without_its_upper_tori_has_other_distances(tmp_path: Path) -> None:
    others = points("F4", "distances-256", "simulator")
    passes(memory.simulator, table(tmp_path, *points("F4", "distances-16"), *others))
    plain = {"topology": "torus", "side": None, "dimensions": [16, 16]}
    fails_in(memory.simulator, table(tmp_path, *points("F4", "distances-16", network=plain), *others), "(256, 16, 8.03")


def test_an_interface_that_takes_no_time_never_works(tmp_path: Path) -> None:
    idle = points("F4", "simulator", endpoint={"interface_cycles": 0})
    rows = table(tmp_path, *points("F4", "distances-16", "distances-256"), *idle)
    fails_in(memory.simulator, rows, "interfaces work 0.000")


#: The places that the judges of figures 5 and 6 ask for.
PLACES = (1, 2, 5, 8)


def throughputs(series: str, places: Sequence[int] = PLACES, **sections: Mapping[str, Any]) -> Points:
    """Figure 5 at some throughputs, with the windows that are judged."""
    windows = {"endpoint.window": [memory.WINDOW, 8] if series == "queues" else [memory.WINDOW]}
    return [point for point in points("F5", series, sweep=windows, **sections) if point.variables[memory.X] in places]


@pytest.fixture(scope="module")
def flits(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return table(tmp_path_factory.mktemp("flits"), *throughputs("flits"))


def always_fast(rows: Rows) -> Rows:
    """What rows would be with the eightfold channel everywhere: those of x = 8, which have it."""
    return [{**row, memory.X: x} for row in rows for x in PLACES if row[memory.X] == 8]


def test_without_the_slow_channel_to_the_interface_the_time_is_flat(tmp_path: Path, flits: Rows) -> None:
    rows = [*flits, *table(tmp_path / "slow", *throughputs("queues"), *throughputs("queues-of-256"))]
    passes(memory.execution_time, rows)
    fast = [*always_fast(flits), *table(tmp_path / "fast", *throughputs("queues", network=FAST))]
    fast += always_fast([row for row in rows if row["series"] == "queues-of-256"])
    parts = [part for form in ("queues", "flits", "queues-of-256") for part in (f"{form}: 1: ", f"{form}: T(1)/T(5) 1.000")]
    fails_in(memory.execution_time, fast, *parts)


def test_without_the_slow_channel_to_the_interface_routers_hold_no_packets_for_it(tmp_path: Path, flits: Rows) -> None:
    passes(memory.work_rates, [*flits, *table(tmp_path / "slow", *throughputs("queues"))])
    fast = [*always_fast(flits), *table(tmp_path / "fast", *throughputs("queues", network=FAST))]
    verdict = memory.work_rates(Table(fast))
    for form in memory.FORMS:
        told = [part for part in failures(verdict) if part.startswith(f"{form}: ")]
        assert [part.split()[1] for part in told] == ["NR(1)/NIU(1)", "|NR-NIU|", "NIU", "NR"], verdict.measured
        # Once packets do not wait for the channel, the router holds one for less time than the interface works on it.
        assert float(told[0].split()[2]) < 1


#: Channels between routers that are no limit.
FAST_NETWORK = {"channel_period": 210}
KNEE = (4, 5, 8)


@pytest.mark.parametrize("judge", [memory.the_point_is_five, memory.the_point_is_five_with_eight_reads])
def test_the_point_is_where_the_interface_is_the_limit(tmp_path: Path, judge: Judge) -> None:
    """An interface that works a fifth of a packet's time: five packets' times pass, and no more; without it, more and more."""

    def runs(name: str, **sections: Mapping[str, Any]) -> Rows:
        return [{"figure": "F5", **row} for row in table(tmp_path / name, *throughputs("queues", KNEE, **sections))]

    passes(judge, runs("interface", network=FAST_NETWORK))
    fails_in(judge, runs("no interface", network=FAST_NETWORK, endpoint={"interface_cycles": 0}), "T(5)/T(8) 1.")
    fails_in(judge, runs("no channel", network=FAST_NETWORK | FAST), "T(4)/T(5) 1.000")


def test_the_network_of_the_figure_sets_the_point_before_five(tmp_path: Path) -> None:
    """The cause of the row that fails: with faster channels between routers the time still falls from 4 to 5."""
    ratios = []
    for name, network in (("figure", {}), ("fast", FAST_NETWORK)):
        times = Table(table(tmp_path / name, *throughputs("queues", KNEE, network=network))).of("queues", endpoint__window=memory.WINDOW)
        curve = times.curve(memory.TIME, memory.X)
        ratios.append(curve[4] / curve[5])
    assert ratios[0] < 1.02 < 1.1 < ratios[1]


def test_hops_of_packets_that_are_stored_cost_their_whole_length(tmp_path: Path) -> None:
    passes(memory.cost_of_hops, table(tmp_path, *points("C3", "cut-through", "store-and-forward")))
    stored = points("C3", "cut-through", router={"switching": "store-and-forward"})
    rows = table(tmp_path, *stored, *points("C3", "store-and-forward"))
    # 15 more flits of each packet of 16 have to come in at every router.
    fails_in(memory.cost_of_hops, rows, *(f"{hops} hops more: {hops * (memory.HOP_CYCLES + 15)} cycles more" for hops in (1, 2, 3)))


# --- users and their tables --------------------------------------------------------------------------------------------------------


def test_nodes_that_are_strewn_are_no_compact_torus(tmp_path: Path) -> None:
    passes(users.topologies, table(tmp_path, *points("F3", "irregular", "compact", "tree")))
    strewn = with_users(points("F3", "irregular", "compact"), "torus", table=None, nodes=[25, 18, 17, 11, 10, 9, 8, 2, 1])
    rows = table(tmp_path, *strewn, *points("F3", "tree"))
    fails_in(users.topologies, rows, "compact: dilation and congestion 4, 1.7778, 4")
    rows = table(tmp_path, *points("F3", "irregular", "compact"), *with_users(points("F3", "tree"), table=[45, 44, 46, 36, 52, 38, 38]))
    fails_in(users.topologies, rows, "tree: dilation and congestion ", "tree: 6 different terminals")


def test_a_table_of_five_terminals_has_no_virtual_processors(tmp_path: Path) -> None:
    chosen = points("C1", "processors", "shared-memory")
    passes(users.virtual_processors, table(tmp_path, *chosen))
    rows = table(tmp_path, *with_users(chosen, table=[7, 8, 9, 20, 21]))
    fails_in(users.virtual_processors, rows, "processors: 5 logical nodes on 5", "shared-memory: 5 logical nodes on 5")
    # Virtual processors of one terminal wait for each other at its interface.
    together, apart = (rows[-1][users.TIME] for rows in (table(tmp_path, *chosen), rows))
    assert together > 1.2 * apart


def test_no_packets_of_others_cross_a_region_that_they_go_round(tmp_path: Path) -> None:
    passes(users.foreign_packets, table(tmp_path, *points("C2", "irregular")))
    rows = table(tmp_path, *points("C2", "irregular", users={"routing": "inside"}))
    fails_in(users.foreign_packets, rows, "0 foreign packets")


@pytest.mark.parametrize(("free", "slow"), [("os_call_ns", "os"), ("library_reads", "library")])
def test_a_level_that_costs_nothing_is_the_fastest(tmp_path: Path, free: str, slow: str) -> None:
    passes(users.levels, table(tmp_path, *points("C4", "levels")))
    rows = table(tmp_path, *points("C4", "levels", translation={free: 0}))
    fails_in(users.levels, rows, "8 bytes: ")
    short = {row["translation.level"]: row[users.TIME] for row in rows if row["flits"] == users.SHORT}
    assert min(short, key=lambda level: short[level]) == slow


def test_a_call_as_long_as_the_message_is_seen_in_long_ones_too(tmp_path: Path) -> None:
    fails_in(users.levels, table(tmp_path, *points("C4", "levels", translation={"os_call_ns": 1e6})), "1 MB: ")


# --- nodes that translate themselves -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Figure 1; the runs of flits with one window."""
    chosen = points("F1", "holes", "plain", "identity", "walks")
    chosen += points("F1", "plain-flits", "identity-flits", sweep={"endpoint.window": [16]})
    return table(tmp_path_factory.mktemp("translated"), *chosen)


def test_the_figure_of_the_translator_passes(translated: Rows) -> None:
    passes(nodes.translator, translated)


@pytest.mark.parametrize(
    ("series", "off", "parts"),
    [
        # All entries are valid; the buffer holds all of them; a translation costs a cycle; the unit has the whole table.
        ("holes", lambda: with_users(points("F1", "holes"), table=None, nodes=users.NODES), ["0.0000 of the accesses are faults"]),
        ("holes", lambda: points("F1", "holes", translation={"tlb_entries": 64}), ["of them hit"]),
        ("identity", lambda: points("F1", "identity", translation={"hit_cycles": 1}), ["identity table: "]),
        (
            "identity-flits",
            lambda: points("F1", "identity-flits", translation={"hit_cycles": 1}, sweep={"endpoint.window": [16]}),
            ["identity table-flits: "],
        ),
        (
            "walks",
            lambda: points("F1", "walks", translation={"unit_tables": 1}),
            [f"{size} entries: 0 cycles later with a walk of 500 (0 misses)" for size in (16, 64)],
        ),
    ],
    ids=["valid", "large-buffer", "slow", "slow-flits", "whole-table"],
)
def test_a_translator_of_another_kind_is_seen(
    tmp_path: Path, translated: Rows, series: str, off: Callable[[], Points], parts: list[str]
) -> None:
    rows = [row for row in translated if row["series"] != series]
    fails_in(nodes.translator, [*rows, *table(tmp_path, *off())], *parts)


def aliases() -> Points:
    """Figure 2 with interfaces at one router, and a memory of no time or of the judged one."""
    return points("F2", "aliases", sweep={"endpoint.memory_cycles": [0, nodes.MEMORY], "endpoint.interfaces_at": ["router"]})


def test_a_table_of_first_interfaces_alone_makes_no_node_faster(tmp_path: Path) -> None:
    words = table(tmp_path, *points("F2", "words"))
    passes(nodes.aliases, [*words, *table(tmp_path / "aliases", *aliases())])
    first = [
        changed
        for point in aliases()
        for changed in with_users([point], nodes=None, placement=None, table=[[point.variables["k"] * node] for node in range(64)])
    ]
    told = [
        *(part for name in ("memory of no time", "memory") for part in (f"{name}: two interfaces 1.000 x one", f"{name}: rises")),
        "8 interfaces: ",
    ]
    fails_in(nodes.aliases, [*words, *table(tmp_path / "first", *first)], *told)


def test_a_memory_of_no_time_is_no_limit(tmp_path: Path) -> None:
    free = [row for row in table(tmp_path, *aliases()) if row["endpoint.memory_cycles"] == 0]
    instant = [{**row, "endpoint.memory_cycles": nodes.MEMORY} for row in free]
    rows = [*free, *instant, *table(tmp_path / "words", *points("F2", "words"))]
    fails_in(nodes.aliases, rows, "8 interfaces: ")


def test_an_address_that_always_has_the_same_interface_is_read_through_no_other(tmp_path: Path) -> None:
    by_address = with_users(points("F2", "words"), key="address")
    rows = table(tmp_path, *aliases(), *by_address)
    fails_in(nodes.aliases, rows, "words read that another interface had written: 1: 0, 2: 0, 4: 0")


def test_a_table_that_is_not_rewritten_makes_no_busy_node_faster(tmp_path: Path) -> None:
    one = table(tmp_path, *points("C6", "one"))
    passes(nodes.busy_node, [*one, *table(tmp_path, *points("C6", "rewritten"))])
    same = table(tmp_path / "same", *with_users(points("C6", "rewritten"), table_writes=[]))
    fails_in(nodes.busy_node, [*one, *same], *(f"seed {seed}: completion falls by 0.0 %" for seed in (1, 2, 3)), *3 * ["0 change of"])


#: Buffers of figure C7 that hold a part of a user's nodes, all of them, and all of eight users'.
BUFFERS = {"translation.tlb_entries": [8, 32, 256], "translation.unit_tables": [0]}
IN_TURN = ("users-1", "users-2", "users-4", "users-8")


@pytest.fixture(scope="module")
def in_turn(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return table(tmp_path_factory.mktemp("in-turn"), *points("C7", *IN_TURN, sweep=BUFFERS))


def test_the_table_of_the_operating_system_is_for_supervisors_alone(tmp_path: Path, in_turn: Rows) -> None:
    system, intruder = points("C7", "system"), points("C7", "intruder")
    passes(nodes.spaces, [*in_turn, *table(tmp_path / "usual", *system, *intruder)])
    # Without that right it shares no nodes either.
    lowered = with_users(system, "system", supervisor=False, nodes=[40, 41])
    rows = table(tmp_path / "lowered", *lowered, *intruder)
    fails_in(nodes.spaces, [*in_turn, *rows], "operating system: 0 of 0 accesses", "operating system: 0 accesses to any of 64 nodes, 2000")
    raised = with_users(intruder, "intruder", supervisor=True)
    rows = table(tmp_path / "raised", *system, *raised)
    fails_in(nodes.spaces, [*in_turn, *rows], "a user in that space: 2000 accesses, 0 faults")


def test_with_whole_tables_in_the_unit_the_buffer_is_no_matter(tmp_path: Path) -> None:
    others = table(tmp_path, *points("C7", "system", "intruder"))
    whole = table(tmp_path / "whole", *points("C7", *IN_TURN, sweep={**BUFFERS, "translation.unit_tables": [8]}))
    rows = [*others, *({**row, "translation.unit_tables": 0} for row in whole)]
    fails_in(nodes.spaces, rows, *(f"{users} users in turn: hit rate over entries 8: 1.000, 32: 1.000" for users in (1, 2, 4, 8)))


def hit_rates(rows: Rows) -> dict[int, float]:
    """What the judge of figure C7 measures with buffers for one user's nodes, over the number of users."""
    told = nodes.spaces(Table(rows)).measured
    return {int(count): float(rate) for count, rate in re.findall(r"(\d) users in turn: hit rate over entries .*?32: ([\d.]+)", told)}


def test_users_who_do_not_take_turns_do_not_drive_each_other_out_of_the_buffer(tmp_path: Path, in_turn: Rows) -> None:
    turns = hit_rates(in_turn)
    one_by_one = hit_rates(table(tmp_path, *points("C7", *IN_TURN, sweep=BUFFERS, users={"slice_cycles": 1_000_000_000})))
    assert turns[1] == one_by_one[1]
    assert turns[8] < 0.5 * turns[1]
    assert one_by_one[8] == pytest.approx(one_by_one[1], rel=0.02)


def test_pages_that_are_all_there_do_not_fault(tmp_path: Path) -> None:
    pages = table(tmp_path, *points("C8", "pages"))
    passes(nodes.global_addresses, [*pages, *table(tmp_path / "missing", *points("C8", "missing"))])
    there = table(tmp_path / "there", *points("C8", "missing", translation={"missing_pages": 0.0}))
    parts = [part for seed in (1, 2, 3) for part in (f"missing, seed {seed}: 0 pages", f"missing, seed {seed}: 0.000 of accesses")]
    fails_in(nodes.global_addresses, [*pages, *there], *parts)


def test_addresses_of_a_node_itself_are_not_looked_up(tmp_path: Path) -> None:
    own = points("C8", "pages", translation={"memory": "none", "page_bytes": None})
    rows = table(tmp_path, *own, *points("C8", "missing"))
    fails_in(nodes.global_addresses, rows, *3 * ["look-ups of nodes, 0 of pages"])


def switches(draining: str) -> Points:
    return points("C9", "time", sweep={"users.draining": [draining]})


def test_switches_that_leave_packets_in_the_network_cost_the_same_on_all_machines(tmp_path: Path) -> None:
    space = table(tmp_path, *points("C9", "space"))
    passes(nodes.many_users, [*space, *table(tmp_path, *switches("answered"))])
    left = [{**row, "users.draining": "answered"} for row in table(tmp_path, *switches("left"))]
    fails_in(nodes.many_users, [*space, *left], "cost of a switch over nodes, answers awaited: ")


def times_in_space(rows: Rows) -> dict[str, tuple[float, float]]:
    """Of each user what the judge of figure C9 reports: its time with neighbours and alone."""
    told = nodes.many_users(Table(rows)).measured
    found = re.findall(r"(\w): ([\d.]+) packets' times with neighbours, ([\d.]+) alone", told)
    return {name: (float(together), float(alone)) for name, together, alone in found}


def test_users_are_undisturbed_where_their_nodes_are_blocks_and_not_where_they_are_strewn(tmp_path: Path) -> None:
    blocks = times_in_space(table(tmp_path / "blocks", *points("C9", "space")))
    assert set(blocks) == set("abcd")
    assert all(together == alone for together, alone in blocks.values())
    strewn = times_in_space(table(tmp_path / "strewn", *with_users(points("C9", "space"), nodes=16, placement="random")))
    assert max(together / alone for together, alone in strewn.values()) > 1.1


# --- studies -----------------------------------------------------------------------------------------------------------------------


def reported_times(told: str, name: str) -> dict[int, float]:
    """A curve of packets' times over the throughput or the interfaces."""
    [curve] = re.findall(rf"(?:^|; ){name}: ((?:T )?[\d:., ]+)", told)
    return {int(x): float(time) for x, time in re.findall(r"(\d): ([\d.]+)", curve)}


def test_aliases_are_as_good_as_a_faster_channel_if_the_table_names_them(tmp_path: Path) -> None:
    chosen = [point for point in points("S1", "multiplier", "address") if point.variables["x"] in (1, 2, 4)]
    named = [point for point in points("S1", "requester") if point.variables["x"] in (1, 2, 4)]
    told = nodes.true_aliases(Table(table(tmp_path, *chosen, *named))).measured
    channel, interfaces = (reported_times(told, name) for name in ("multiplier", "aliases at router"))
    assert interfaces == pytest.approx(channel, rel=0.05)
    first = [
        changed
        for point in named
        for changed in with_users([point], nodes=None, placement=None, table=[[point.variables["x"] * node] for node in range(64)])
    ]
    told = nodes.true_aliases(Table(table(tmp_path / "first", *chosen, *first))).measured
    alone = reported_times(told, "aliases at router")
    assert alone[1] == interfaces[1]
    assert alone[4] == pytest.approx(alone[1], rel=0.05)


def test_the_study_of_networks_sees_what_the_multiplier_does(tmp_path: Path) -> None:
    few = [point for point in points("S2", "rdt-64", "mesh-64") if point.variables["x"] in (1, 8)]
    told = nodes.general(Table(table(tmp_path, *few))).measured
    fast = [point for point in points("S2", "rdt-64", network=FAST) if point.variables["x"] in (1, 8)]
    constant = nodes.general(Table(table(tmp_path / "fast", *fast))).measured
    for program in ("matrix-vector", "stencil", "random-access", "hot-spot"):
        times = reported_times(told, f"rdt 64, {program}")
        always = reported_times(constant, f"rdt 64, {program}")
        assert times[1] > 1.3 * times[8] == 1.3 * always[8] == 1.3 * always[1]
        # The channels of the mesh are themselves the limit.
        mesh = reported_times(told, f"mesh 64, {program}")
        assert mesh[1] / mesh[8] < times[1] / times[8]


def test_numbering_by_the_logical_network_helps_where_distance_counts(tmp_path: Path) -> None:
    """Where all nodes are neighbours of each other, less of the gain of a logical numbering is left."""
    all_neighbours = {
        "network": {"topology": "full-mesh", "dimensions": None, "routers": 64, "concentration": 1},
        "routing": {"algorithm": "minimal", "tie": None},
    }
    parts = []
    for name, sections in (("torus", {}), ("full", all_neighbours)):
        chosen = points("S3", "stencil", sweep={"users.alone": ["stencil"]}, **sections)
        few = [point for point in chosen if point.variables["region"] == "compact-16"]
        told = nodes.logical_networks(Table(table(tmp_path / name, *few))).measured
        parts += [float(part) for part in re.findall(r"compact-16, quiet: .*?numbered at random \d+ \(([\d.]+)\)", told)]
    torus, full = parts
    assert torus < 0.9 < full


# --- every judge -------------------------------------------------------------------------------------------------------------------


ALIVE: dict[Judge, Sequence[Callable[..., None]]] = {
    memory.simulator: (test_a_torus_without_its_upper_tori_has_other_distances, test_an_interface_that_takes_no_time_never_works),
    memory.execution_time: (test_without_the_slow_channel_to_the_interface_the_time_is_flat,),
    memory.the_point_is_five: (
        test_the_point_is_where_the_interface_is_the_limit,
        test_the_network_of_the_figure_sets_the_point_before_five,
    ),
    memory.the_point_is_five_with_eight_reads: (test_the_point_is_where_the_interface_is_the_limit,),
    memory.work_rates: (test_without_the_slow_channel_to_the_interface_routers_hold_no_packets_for_it,),
    memory.cost_of_hops: (test_hops_of_packets_that_are_stored_cost_their_whole_length,),
    users.topologies: (test_nodes_that_are_strewn_are_no_compact_torus,),
    users.virtual_processors: (test_a_table_of_five_terminals_has_no_virtual_processors,),
    users.foreign_packets: (test_no_packets_of_others_cross_a_region_that_they_go_round,),
    users.levels: (
        test_a_level_that_costs_nothing_is_the_fastest,
        test_a_call_as_long_as_the_message_is_seen_in_long_ones_too,
    ),
    nodes.translator: (test_the_figure_of_the_translator_passes, test_a_translator_of_another_kind_is_seen),
    nodes.aliases: (
        test_a_table_of_first_interfaces_alone_makes_no_node_faster,
        test_a_memory_of_no_time_is_no_limit,
        test_an_address_that_always_has_the_same_interface_is_read_through_no_other,
    ),
    nodes.busy_node: (test_a_table_that_is_not_rewritten_makes_no_busy_node_faster,),
    nodes.spaces: (
        test_the_table_of_the_operating_system_is_for_supervisors_alone,
        test_with_whole_tables_in_the_unit_the_buffer_is_no_matter,
        test_users_who_do_not_take_turns_do_not_drive_each_other_out_of_the_buffer,
    ),
    nodes.global_addresses: (test_pages_that_are_all_there_do_not_fault, test_addresses_of_a_node_itself_are_not_looked_up),
    nodes.many_users: (
        test_switches_that_leave_packets_in_the_network_cost_the_same_on_all_machines,
        test_users_are_undisturbed_where_their_nodes_are_blocks_and_not_where_they_are_strewn,
    ),
    nodes.true_aliases: (test_aliases_are_as_good_as_a_faster_channel_if_the_table_names_them,),
    nodes.general: (test_the_study_of_networks_sees_what_the_multiplier_does,),
    nodes.logical_networks: (test_numbering_by_the_logical_network_helps_where_distance_counts,),
}


def test_every_judge_is_seen_with_its_mechanism_switched_off() -> None:
    figures = PAPERS["virtual-network"].figures
    switched.must_cover({judge for figure in figures for judge in (figure.judge, *figure.readings.values())}, ALIVE)
