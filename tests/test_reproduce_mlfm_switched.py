"""The judges of the multi-layer full mesh on real runs and counts: as the figures have them, and with what they look at switched off."""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import kasuri
import switched
from kasuri_papers import PAPERS, counts, mlfm, programs
from kasuri_papers.figure import Table
from switched import Points, at, judged, ran
from test_reproduce_mlfm import SETS, engines, several_threads, shares, transforms

series = partial(switched.series, "mlfm")

#: Communication and whole of NPB FT, by both schedules.
FT = ("new-communication", "new-whole", "shift-communication", "shift-whole")
NEW, SHIFT = FT[:2], FT[2:]
#: Hosts whose memory limits nothing.
FREE_MEMORY = {"memory_gbyte_per_second": 1e6}


def of_one_layer(number: str) -> Points:
    """The multi-layer full meshes of a figure with one layer each: full meshes of as many positions and terminals of a leaf."""
    made = []
    for point in at(series(number, "mlfm"), d=(2, 3, 4, 5)):
        d = point.variables["d"]
        network = {"topology": "mlfm", "layers": 1, "positions": d + 1, "terminals_per_leaf": d}
        made.append(dataclasses.replace(point, experiment={**point.experiment, "network": network}))
    return made


# --- structure --------------------------------------------------------------------------------------------------------------------


def test_half_of_the_terminals_stay_where_one_side_of_the_spines_is_used(tmp_path: Path) -> None:
    judge, one_sided = mlfm.two_level_fat_tree, ran(tmp_path, series("F1", "one-sided"))
    assert judged(judge, [*one_sided, *ran(tmp_path, series("F1", "two-sided"))]) == []
    half = ran(tmp_path, series("F1", "two-sided", network={"sides": 1}))
    terminals, routers = judged(judge, [*one_sided, *half])
    assert terminals.startswith("two-sided, d = 2 to 12: terminals") and terminals.endswith(", 9 for d = 3")
    assert routers.startswith("two-sided, d = 2 to 12: routers") and routers.endswith(", 6 for d = 3")


def test_two_levels_keep_two_terminals_a_switch_and_a_third_one_costs(tmp_path: Path) -> None:
    judge, two = mlfm.third_level_costs, ran(tmp_path, series("F3", "two-levels"))
    assert judged(judge, [*two, *ran(tmp_path, series("F3", "three-levels"))]) == []
    without = ran(tmp_path, series("F3", "three-levels", network={"levels": 2}))
    assert judged(judge, [*two, *without]) == ["three-levels, d = 3: 3: 2 terminals a switch (exactly 1.2)"]


def test_one_layer_leaves_spines_with_two_ports(tmp_path: Path) -> None:
    judge = mlfm.full_mesh_of_layers
    assert judged(judge, ran(tmp_path, series("F4", "mlfm"))) == []
    terminals, routers, ports = judged(judge, ran(tmp_path, of_one_layer("F4")))
    assert terminals.endswith(", 12 for d = 3")
    assert routers.endswith(", 10 for d = 3")
    assert "3: {2, 6}" in ports


def test_sizes_follow_the_sides_of_trees_and_the_layers_of_meshes(tmp_path: Path) -> None:
    judge, trees, meshes = mlfm.sizes, ("two-levels", "three-levels"), series("F7", "mlfm")
    usual = ran(tmp_path, series("F7", *trees))
    assert judged(judge, [*usual, *ran(tmp_path, meshes)]) == []
    one_sided = judged(judge, [*ran(tmp_path, series("F7", *trees, network={"sides": 1})), *ran(tmp_path, meshes)])
    assert any(part.startswith("MLFM/tree 2: 3, 3: 4, 4: 5") for part in one_sided)
    assert any(part.startswith("three-levels: terminals a switch 2: 2/3, 3: 1") for part in one_sided)
    assert not any(part.startswith("mlfm") for part in one_sided)
    one_layer = judged(judge, [*usual, *ran(tmp_path, of_one_layer("F7"))])
    assert any(part.startswith("MLFM/tree 2: 3/4, 3: 2/3, 4: 5/8") for part in one_layer)
    assert not any(part.startswith(trees) for part in one_layer)


def test_one_layer_of_the_experiments_network_has_a_quarter_of_its_nodes(tmp_path: Path) -> None:
    assert judged(mlfm.experiment_network, ran(tmp_path, series("F9", "mlfm"))) == []
    [part] = judged(mlfm.experiment_network, ran(tmp_path, series("F9", "mlfm", network={"layers": 1})))
    assert part == "terminals 8 (32), leaves 4 (16), spines 6 (6), leaf_ports [5] ([5]), spine_ports [2] ([8])"
    for network, terminals in (({}, 32), ({"layers": 1}, 8)):
        [row] = ran(tmp_path, series("T1-3", "mlfm", network=network))
        assert f"{terminals} terminals at {terminals // 2} leaves" in mlfm.recorded(Table([row])).measured


def test_orthogonal_fat_trees_are_larger_by_their_second_side(tmp_path: Path) -> None:
    judge, other = mlfm.orthogonal_is_larger, ran(tmp_path, series("C2", "oft-one-sided", "mlfm"))
    assert judged(judge, [*other, *ran(tmp_path, series("C2", "oft"))]) == []
    terminals, larger = judged(judge, [*other, *ran(tmp_path, series("C2", "oft", network={"sides": 1}))])
    assert terminals.endswith(", 21 for d = 3")
    assert larger.startswith("orthogonal 3: 21, 4: 52")


def test_a_multi_layer_full_mesh_can_have_a_power_of_two(tmp_path: Path) -> None:
    usual = ran(tmp_path, series("C2", "oft", "mlfm"))
    layered = {"topology": "mlfm", "order": None, "layers": 4, "positions": 4, "terminals_per_leaf": 2}
    [part] = judged(mlfm.orthogonal_is_larger, [*usual, *ran(tmp_path, series("C2", "oft-one-sided", network=layered))])
    assert part.startswith("powers of two among 16 orthogonal fat trees") and "('oft-one-sided', 3): 32" in part


# --- schedules --------------------------------------------------------------------------------------------------------------------


def test_shifts_collide_where_all_take_the_same_way_up(tmp_path: Path) -> None:
    degrees = (2, 3, 4, 5)
    usual = ran(tmp_path, at(series("F2", "shift"), d=degrees))
    assert judged(mlfm.shifts_do_not_collide, usual) == []
    first = {"algorithm": "minimal", "tie": "lowest", "up_port": None}
    rows = ran(tmp_path, at(series("F2", "shift", routing=first), d=degrees))
    # All d messages of a leaf go up by its first port.
    assert {row["d"]: row["max_load"] for row in rows} == {d: d for d in degrees}
    [part] = judged(mlfm.shifts_do_not_collide, rows)
    assert part.startswith("shift: 4 schedules")


def test_shifts_among_parts_of_leaves_collide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [row for row in SETS if row["d"] == 8]
    assert judged(mlfm.parts_of_a_tree_are_free, [*others, *ran(tmp_path, at(series("C3", "shift"), d=4))]) == []

    def any_terminals(built: kasuri.Network, seed: int) -> list[int]:
        draw = random.Random(seed)
        return sorted(draw.sample(range(built.terminals), draw.randint(2, built.terminals)))

    monkeypatch.setattr(counts, "terminals_of_random_leaves", any_terminals)
    rows = ran(tmp_path, at(series("C3", "shift"), d=4))
    [part] = judged(mlfm.parts_of_a_tree_are_free, [*others, *rows])
    assert part.startswith("d = 4: 100 schedules")
    assert sum(row["max_load"] > 1 for row in rows) > 50


def test_phases_to_other_positions_collide_in_the_order_of_the_shift(tmp_path: Path) -> None:
    judge, degrees = mlfm.other_positions_do_not_collide, (2, 3, 4, 5)
    assert judged(judge, ran(tmp_path, at(series("F5", "mlfm"), d=degrees))) == []
    shifts = ran(tmp_path, at(series("F5", "mlfm", schedule={"name": "shift"}), d=degrees))
    parts = judged(judge, shifts)
    assert len(parts) == len(degrees)
    assert parts[1] == "d = 3: 7 phases (27), at most 3 messages on a channel (1)"


def test_phases_to_the_same_position_collide_where_all_take_the_first_spine(tmp_path: Path) -> None:
    judge, degrees = mlfm.same_positions_do_not_collide, (2, 3, 4, 5)
    assert judged(judge, ran(tmp_path, at(series("F6", "mlfm"), d=degrees))) == []
    first = ran(tmp_path, at(series("F6", "mlfm", routing={"tie": "lowest"}), d=degrees))
    assert judged(judge, first) == [
        f"d = {d}: {d * (d - 1)} phases ({d * (d - 1)}), at most {d} messages on a channel (1)" for d in degrees
    ]
    # Leaves at different positions have one spine in common: no choice, and the other part of the schedule stays as it is.
    assert judged(mlfm.other_positions_do_not_collide, first) == []


@pytest.mark.parametrize("name", ["degree", "shape", "oft"])
def test_the_all_to_all_by_shifts_collides(tmp_path: Path, name: str) -> None:
    places: dict[str, dict[str, Any]] = {
        "degree": {"d": (2, 3, 4)},
        "shape": {"layers": (2, 4), "positions": (4, 5)},
        "oft": {"q": (2, 3)},
    }
    usual = {part: ran(tmp_path, at(series("C1", part), **where)) for part, where in places.items()}
    assert judged(mlfm.all_to_all_is_free, [row for rows in usual.values() for row in rows]) == []
    shifts = {name: ran(tmp_path, at(series("C1", name, schedule={"name": "shift"}), **places[name]))}
    [part] = judged(mlfm.all_to_all_is_free, [row for rows in (usual | shifts).values() for row in rows])
    assert part.startswith(f"{name}: {len(usual[name])} schedules")


# --- times ------------------------------------------------------------------------------------------------------------------------


def test_without_a_third_level_nothing_takes_longer(tmp_path: Path) -> None:
    judge = mlfm.third_level_raises_latency
    usual = {name: ran(tmp_path, series("C4", name)) for name in ("two-levels", "three-levels", "mlfm")}
    assert judged(judge, [row for rows in usual.values() for row in rows]) == []
    without = ran(tmp_path, series("C4", "three-levels", network={"levels": 2}))
    parts = judged(judge, [*usual["two-levels"], *without, *usual["mlfm"]])
    assert [part for part in parts if "farthest" in part] == [
        f"d = {d}, farthest: three levels 14, two 14 cycles (more by 8)" for d in (3, 4)
    ]
    # A tree of three levels in place of the layered mesh is not like one of two.
    third = [{**row, "series": "mlfm"} for row in usual["three-levels"]]
    parts = judged(judge, [*usual["two-levels"], *usual["three-levels"], *third])
    assert "d = 3, farthest: multi-layer full mesh 22 (as two levels)" in parts


HOSTS = ("exchange-one", "exchange-four", "memory-one", "memory-four", "network")


@pytest.mark.parametrize(
    ("name", "off", "part"),
    [
        # Each terminal alone with its memory.
        ("memory-four", {"hosts": {"terminals_per_host": 1}}, "where the memory limits, four on a host take 1.0000 times"),
        # A memory that limits nothing.
        ("memory-four", {"hosts": FREE_MEMORY}, "where the memory limits, four on a host take 0.0"),
        # Ports as slow as one that four terminals share.
        ("exchange-four", {"network": {"terminal_channel_period": 4}}, "where it does not, they differ by 3 (0"),
    ],
)
def test_four_on_a_host_share_its_memory_and_no_port(tmp_path: Path, name: str, off: dict[str, Any], part: str) -> None:
    usual = {each: ran(tmp_path, series("F8", each)) for each in HOSTS}
    assert judged(mlfm.four_on_a_host, [row for rows in usual.values() for row in rows]) == []
    usual[name] = ran(tmp_path, series("F8", name, **off))
    [told] = judged(mlfm.four_on_a_host, [row for rows in usual.values() for row in rows])
    assert told.startswith(part)


def test_the_all_to_all_reaches_the_limit_by_its_schedule_alone(tmp_path: Path) -> None:
    judge, shifts = mlfm.reaches_the_limit, ran(tmp_path, series("F14", "flit-shift", "flow-shift"))
    flits, flows = (ran(tmp_path, series("F14", f"{engine}-new")) for engine in ("flit", "flow"))
    assert judged(judge, [*shifts, *flits, *flows]) == []
    by_shifts = ran(tmp_path, series("F14", "flit-new", "flow-new", workload={"schedule": "shift"}))
    parts = judged(judge, [*shifts, *by_shifts])
    assert len(parts) == 4
    assert "flow, new, of the limit: 8: 0.700, 16: 0.682, 32: 0.674 (>= 0.95)" in parts
    assert "flit, shift/new 8: 1.000, 16: 1.000, 32: 1.000 (< 0.98)" in parts
    # One virtual channel pauses for two cycles after each packet of 32 flits.
    alone = ran(tmp_path, series("F14", "flit-new", router={"virtual_channels": 1}))
    [part] = judged(judge, [*shifts, *alone, *flows])
    assert part.startswith("flit, new, of the limit: 8: 0.93")
    # Copies go through the memory that four share.
    copying = ran(tmp_path, series("F14", "flow-new", hosts={"copies": 1}))
    assert judged(judge, [*shifts, *flits, *copying])[0].startswith("flow, new, of the limit: 8: 0.")


def test_nothing_is_gained_by_shifts_and_more_without_the_limits_of_memory_and_processors(tmp_path: Path) -> None:
    usual = {name: ran(tmp_path, series("F11", name)) for name in FT}
    assert judged(mlfm.gains, [row for rows in usual.values() for row in rows]) == []

    def told(off: dict[str, Any], *names: str) -> list[str]:
        others = [row for name in FT if name not in names for row in usual[name]]
        return judged(mlfm.gains, [*others, *ran(tmp_path, series("F11", *names, **off))])

    parts = told({"workload": {"schedule": "shift"}}, *NEW)
    assert len(parts) == 4
    assert all("0.0000" in part for part in parts)
    parts = told({"hosts": FREE_MEMORY}, *FT)
    # 1 - 31/46 of 32 nodes.
    assert [part.partition(" 0.")[0] for part in parts] == ["greatest communication gain", "greatest overall gain"]
    assert parts[0].startswith("greatest communication gain 0.3261")
    # If computing takes no time, the whole gains as much as its communication.
    [part] = told({"workload": {"gflops_per_rank": 2e6}}, "new-whole", "shift-whole")
    assert part.startswith("greatest overall gain 0.11")


def test_flits_with_one_virtual_channel_take_longer_than_flows(tmp_path: Path) -> None:
    judge = mlfm.gains_with_flits
    usual = ran(tmp_path, series("F10", *FT, "flow-new-32", "flow-shift-32"))
    others = [row for row in engines() if not row["series"].endswith("-32")]
    flits = ran(tmp_path, series("F10", "flit-new-32", "flit-shift-32"))
    assert judged(judge, [*usual, *others, *flits]) == []
    alone = ran(tmp_path, series("F10", "flit-new-32", "flit-shift-32", router={"virtual_channels": 1}))
    parts = judged(judge, [*usual, *others, *alone])
    assert [part.partition(", 32: ")[2] for part in parts] == ["0.060 (<= 0.05)"] * 2
    # Collisions are not left out by either: a flow by shifts is not as fast as flits of the new schedule.
    shifts = ran(tmp_path, series("F10", "flow-new-32", workload={"schedule": "shift"}))
    [part] = judged(judge, [*(row for row in usual if row["series"] != "flow-new-32"), *shifts, *others, *flits])
    assert part.startswith("one all-to-all, new") and "32: 0.48" in part


def test_the_share_of_communication_hangs_on_memory_and_processors(tmp_path: Path) -> None:
    others = [row for row in shares({8: 0.09, 16: 0.095, 32: 0.1}) if row["letter"] != "B"]

    def told(made: Points) -> list[str]:
        return judged(mlfm.share_rises, [*others, *ran(tmp_path, made)])

    assert told(at(series("F13", *FT), letter="B")) == []
    # Where only the 8 nodes share the memory of their hosts, more nodes do not have a larger share.
    alone = at(series("F13", *FT, hosts={"terminals_per_host": 1}), letter="B", P=(16, 32))
    parts = told([*at(series("F13", *FT), letter="B", P=8), *alone])
    assert len(parts) == 2
    assert all(part.endswith("(does not rise with the nodes)") for part in parts)
    # Processors of twice the rate.
    fast = series("F13", "new-whole", "shift-whole", workload={"gflops_per_rank": 4.0})
    parts = told([*at(series("F13", "new-communication", "shift-communication"), letter="B"), *at(fast, letter="B")])
    assert parts == [f"class B, {kind}: within [0.05, 0.15]" for kind in ("new", "shift")]


def test_the_application_reaches_the_limit_without_copies(tmp_path: Path) -> None:
    judge = mlfm.inside_the_application
    alone, inside = ran(tmp_path, series("F15", "alone")), ran(tmp_path, series("F15", "new-communication"))
    assert judged(judge, [*alone, *inside]) == []
    for off in ({"copies": 0}, FREE_MEMORY):
        parts = judged(judge, [*alone, *ran(tmp_path, series("F15", "new-communication", hosts=off))])
        assert parts == [f"class {letter}, of the limit: 8: 1.000, 16: 1.000, 32: 1.000 (< 0.95)" for letter in mlfm.FT]
    copying = ran(tmp_path, series("F15", "alone", hosts={"copies": 1}))
    [part] = judged(judge, [*inside, *copying])
    assert part.startswith("alone, of the limit: 8: 0.")


@pytest.mark.parametrize(
    ("name", "off", "first"),
    [
        # Four on a host that do not share its memory, or one that limits nothing.
        ("four", {"terminals_per_host": 1}, "four on a host 1.000"),
        ("four", FREE_MEMORY, "four on a host 1.000"),
        # Four share where one did not, and a benchmark copies that did not.
        ("one", {"terminals_per_host": 4}, "of the limit: physical 1.000, one 0."),
        ("imb-four", {"copies": 1}, "IMB, of the limit: physical 1.000, one 1.000, four 0."),
    ],
)
def test_machines_are_slow_by_sharing_and_copying(tmp_path: Path, name: str, off: dict[str, Any], first: str) -> None:
    machines = ("physical", "one", "four", "imb-physical", "imb-one", "imb-four")
    usual = {each: ran(tmp_path, series("F16", each)) for each in machines}
    assert judged(mlfm.only_four_are_slow, [row for rows in usual.values() for row in rows]) == []
    usual[name] = ran(tmp_path, series("F16", name, hosts=off))
    parts = judged(mlfm.only_four_are_slow, [row for rows in usual.values() for row in rows])
    assert parts[0].startswith(first)


def test_threads_that_compute_no_faster_leave_the_share_as_it_is(tmp_path: Path) -> None:
    judge, place = mlfm.threads_make_communication_the_bottleneck, {"letter": "B", "P": 8}
    others = [row for row in several_threads() if (row["letter"], row["P"]) != ("B", 8)]
    exchanging, computing = (
        [f"{kind}-{what}-{host}" for kind in ("new", "shift") for host in ("one", "two", "four")] for what in ("communication", "whole")
    )
    communication = ran(tmp_path, at(series("C5", *exchanging), **place))
    whole = ran(tmp_path, at(series("C5", *computing), **place))
    assert judged(judge, [*others, *communication, *whole]) == []
    slow = ran(tmp_path, at(series("C5", *computing, workload={"gflops_per_rank": 2.0}), **place))
    share, part_of_six, gain = judged(judge, [*others, *communication, *slow])
    assert share.startswith("class B, 8 nodes, share over threads 1: ")
    assert "share at 6 threads 1.00 of that at 1" in part_of_six
    assert re.search(r"overall gain at 6 (0\.00\d+), at 1 \1 ", gain)
    # By the shift there is no gain at any number of threads.
    shifts = [row for row in (*communication, *whole) if row["series"].startswith("shift")]
    same = [{**row, "series": row["series"].replace("shift", "new", 1)} for row in shifts]
    [part] = judged(judge, [*others, *shifts, *same])
    assert "overall gain at 6 0.0000" in part


def test_the_program_exchanges_by_the_schedule_only_where_one_is_given(tmp_path: Path) -> None:
    [point] = at(series("C6", "new"), points="S")
    library = dataclasses.replace(point, experiment={**point.experiment, "schedule": "library"})
    others = [row for row in transforms() if (row["series"], row["points"]) != ("new", "S")]
    try:
        usual, without = ran(tmp_path, [point]), ran(tmp_path, [library])
    except programs.MissingProgramError as error:
        pytest.skip(str(error))
    assert judged(mlfm.the_measured_program, [*others, *usual]) == []
    [part] = judged(mlfm.the_measured_program, [*others, *without])
    assert part.startswith("new: all-to-alls by the schedule {") and "'S': 0" in part
    assert usual[0]["checksums"] == without[0]["checksums"] != []


# --- the study of hosts -----------------------------------------------------------------------------------------------------------


def test_the_study_of_hosts_tells_sharing_copies_and_placement(tmp_path: Path) -> None:
    few = at(series("S2", "map"), V=(1, 4), copies=(0, 1), H=(59.2,))
    told = mlfm.why_machines_slow_the_exchange(Table(ran(tmp_path, [*few, *series("S2", "by-host", "across")])))
    assert told.verdict == "report"
    for fact in (
        "0 copies, 4 on a host, of the limit over Gbyte/s: 59.2: 1.00",
        "1 copies, 1 on a host, of the limit over Gbyte/s: 59.2: 1.00",
        "1 copies, 4 on a host, of the limit over Gbyte/s: 59.2: 0.63",
        "8 ranks by-host: 8: 0.",
        "8 ranks across: 8: 1.000 of the limit",
    ):
        assert fact in told.measured


# --- completeness -----------------------------------------------------------------------------------------------------------------

#: The test that switches off what a judge looks at.
ALIVE: dict[switched.Judge, Callable[..., None]] = {
    mlfm.two_level_fat_tree: test_half_of_the_terminals_stay_where_one_side_of_the_spines_is_used,
    mlfm.shifts_do_not_collide: test_shifts_collide_where_all_take_the_same_way_up,
    mlfm.third_level_costs: test_two_levels_keep_two_terminals_a_switch_and_a_third_one_costs,
    mlfm.full_mesh_of_layers: test_one_layer_leaves_spines_with_two_ports,
    mlfm.other_positions_do_not_collide: test_phases_to_other_positions_collide_in_the_order_of_the_shift,
    mlfm.same_positions_do_not_collide: test_phases_to_the_same_position_collide_where_all_take_the_first_spine,
    mlfm.all_to_all_is_free: test_the_all_to_all_by_shifts_collides,
    mlfm.parts_of_a_tree_are_free: test_shifts_among_parts_of_leaves_collide,
    mlfm.sizes: test_sizes_follow_the_sides_of_trees_and_the_layers_of_meshes,
    mlfm.four_on_a_host: test_four_on_a_host_share_its_memory_and_no_port,
    mlfm.experiment_network: test_one_layer_of_the_experiments_network_has_a_quarter_of_its_nodes,
    mlfm.recorded: test_one_layer_of_the_experiments_network_has_a_quarter_of_its_nodes,
    mlfm.gains_with_flits: test_flits_with_one_virtual_channel_take_longer_than_flows,
    mlfm.gains: test_nothing_is_gained_by_shifts_and_more_without_the_limits_of_memory_and_processors,
    mlfm.share_rises: test_the_share_of_communication_hangs_on_memory_and_processors,
    mlfm.reaches_the_limit: test_the_all_to_all_reaches_the_limit_by_its_schedule_alone,
    mlfm.inside_the_application: test_the_application_reaches_the_limit_without_copies,
    mlfm.only_four_are_slow: test_machines_are_slow_by_sharing_and_copying,
    mlfm.orthogonal_is_larger: test_orthogonal_fat_trees_are_larger_by_their_second_side,
    mlfm.third_level_raises_latency: test_without_a_third_level_nothing_takes_longer,
    mlfm.the_measured_program: test_the_program_exchanges_by_the_schedule_only_where_one_is_given,
    mlfm.threads_make_communication_the_bottleneck: test_threads_that_compute_no_faster_leave_the_share_as_it_is,
}


def test_what_every_judge_looks_at_is_switched_off_somewhere() -> None:
    switched.must_cover(switched.judged_in(PAPERS["mlfm"].figures), ALIVE)
