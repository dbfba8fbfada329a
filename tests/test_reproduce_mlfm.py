"""Each verdict on right counts and curves, and on wrong ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import kasuri
from kasuri.errors import ConfigError
from kasuri_papers import PAPERS, counts, experiments, mlfm, mlfm_studies, runs
from kasuri_papers.figure import Table

Rows = list[dict[str, Any]]
Judge = Callable[[Table], Any]
DEGREES = (2, 3, 4, 5)


def networks(
    series: str, terminals: Callable[[int], int], routers: Callable[[int], int], links: Callable[[int], int] | None = None
) -> Rows:
    return [
        {
            "series": series,
            "d": d,
            "terminals": terminals(d),
            "routers": routers(d),
            "links": links(d) if links else 0,
            "leaf_ports": [2 * d],
            "spine_ports": [2 * d],
        }
        for d in DEGREES
    ]


ONE_SIDED = networks("one-sided", lambda d: d * d, lambda d: 2 * d)
TWO_SIDED = networks("two-sided", lambda d: 2 * d * d, lambda d: 3 * d)
TWO = networks("two-levels", lambda d: 2 * d * d, lambda d: 3 * d, lambda d: 2 * d * d)
THREE = networks("three-levels", lambda d: 2 * d**3, lambda d: 5 * d * d)
MLFM = networks("mlfm", lambda d: d * d * (d + 1), lambda d: 3 * d * (d + 1) // 2, lambda d: d * d * (d + 1))
EXPERIMENT = {"series": "mlfm", "terminals": 32, "leaves": 16, "spines": 6, "leaf_ports": [5], "spine_ports": [8]}
OFT = [{"series": "oft", "q": d - 1, "terminals": 2 * d * (d * d - d + 1)} for d in (3, 4, 5)]
OFT_ONE_SIDED = [{"series": "oft-one-sided", "q": d - 1, "terminals": d * (d * d - d + 1)} for d in (3, 4, 5)]


def changed(rows: Rows, place: int, **values: Any) -> Rows:
    return [{**row, **values} if number == place else row for number, row in enumerate(rows)]


def schedule(series: str = "shift", terminals: int = 16, **more: Any) -> dict[str, Any]:
    row = {"series": series, "terminals": terminals, "phases": terminals - 1, "max_load": 1, "complete": True, "loads": {}}
    return {**row, **more}


def parts(d: int, **more: Any) -> dict[str, Any]:
    other = {"position+position.other": [1] * d * d, "layer+position+position.other": [1] * d * d * (d - 1)}
    return schedule("mlfm", d * d * (d + 1), d=d, loads={"": [1] * (d - 1), "layer": [1] * d * (d - 1), **other}, **more)


def with_load(row: dict[str, Any], kind: str, load: int) -> dict[str, Any]:
    loads = row["loads"]
    return {**row, "loads": {**loads, kind: [load, *loads[kind][1:]]}}


SETS = [schedule(d=d, seed=seed) for d in (4, 8) for seed in range(100)]


def times(new: float = 0.99, ratios: dict[int, float] | None = None, flits: int = 4096) -> Rows:
    made: Rows = []
    for ranks, ratio in (ratios or {8: 0.7, 16: 0.68, 32: 0.67}).items():
        for engine in ("flit", "flow"):
            for series, rate in ((f"{engine}-new", new), (f"{engine}-shift", new * ratio)):
                made.append({"series": series, "P": ranks, "flits": flits, "completion_time": (ranks - 1) * flits / rate})
    return made


NODES = (8, 16, 32)


def ran(series: str, time: float, **more: Any) -> dict[str, Any]:
    return {"series": series, "completion_time": time, **more}


def hosts(memory_four: float = 4400.0, exchange_four: float = 100.0, ports: int = 32) -> Rows:
    alone = [ran("exchange-one", 100.0), ran("exchange-four", exchange_four), ran("memory-one", 1100.0), ran("memory-four", memory_four)]
    return [*alone, {"series": "network", "terminals": 32, "terminal_ports": ports}]


def ft(gain: float = 0.11, overall: float = 0.01, nodes: tuple[int, ...] = NODES) -> Rows:
    both = {"communication": gain, "whole": overall}
    return [
        row
        for series, part in both.items()
        for P in nodes
        for row in (ran(f"shift-{series}", 100.0, P=P), ran(f"new-{series}", 100.0 * (1 - part), P=P))
    ]


def engines(flit: float = 102.0, nodes: tuple[int, ...] = NODES) -> Rows:
    times = (("flow", 100.0), ("flit", flit))
    return [ran(f"{engine}-{kind}-{P}", time) for engine, time in times for kind in ("new", "shift") for P in nodes]


def shares(parts: dict[int, float]) -> Rows:
    return [
        row
        for letter in mlfm.FT
        for P, part in parts.items()
        for kind in ("new", "shift")
        for row in (ran(f"{kind}-communication", part, letter=letter, P=P), ran(f"{kind}-whole", 1.0, letter=letter, P=P))
    ]


def several_threads(compute: float = 12.0, shift: float = 1.12, slow: int = 0) -> Rows:
    """Communication takes 1, by the shift `shift`, computing `compute` over the threads (with `slow` threads: as one)."""
    made: Rows = []
    for letter, nodes, (threads, host) in itertools.product(mlfm.FT, NODES, mlfm.THREADS.items()):
        for kind, time in (("new", 1.0), ("shift", shift)):
            where = {"letter": letter, "P": nodes, "threads": threads}
            made.append(ran(f"{kind}-communication-{host}", time, **where))
            made.append(ran(f"{kind}-whole-{host}", time + compute / (1 if threads == slow else threads), **where))
    return made


def inside(part: float = 0.4, alone: float = 1.0, letters: str = "BCD") -> Rows:
    made = [ran("alone", (P - 1) * 4096 / alone, P=P, flits=4096) for P in NODES]
    for letter in letters:
        array, exchanges = mlfm.FT[letter]
        made += [ran("new-communication", exchanges * (P - 1) * array / P**2 / 64 / part, letter=letter, P=P) for P in NODES]
    return made


def machines(one: float = 1.0, four: float = 1.6, imb_four: float = 1.0) -> Rows:
    array, exchanges = mlfm.FT["C"]
    ideal = exchanges * 7 * array / 64 / 64
    alone = {"physical": 1.0, "one": 1.0, "four": imb_four}
    made = [ran("physical", ideal), ran("one", ideal * one), ran("four", ideal * four)]
    return made + [ran(f"imb-{name}", 7 * 4096 * time, P=8, flits=4096) for name, time in alone.items()]


def levels(three: int = 22, mesh: int = 14, mean: float = 19.0) -> list[dict[str, Any]]:
    found = {"two-levels": (14, 12.0), "three-levels": (three, mean), "mlfm": (mesh, 13.6)}
    return [
        {"series": name, "d": d, "packet_latency_max": most, "packet_latency_mean": average}
        for name, (most, average) in found.items()
        for d in (3, 4)
    ]


def transforms(*, right: bool = True, by_schedule: int = 8, message: str = "ft: class D needs 9 bytes of memory") -> list[dict[str, Any]]:
    done = {"exit": 0, "right": right, "by_schedule": by_schedule, "message": ""}
    made = [{"series": name, "points": points, **done} for name in ("library", "shift", "new") for points in "SWA"]
    return made + [{"series": "large", "points": points, "exit": 2, "message": message} for points in "DE"]


RIGHT: list[tuple[Judge, Rows]] = [
    (mlfm.two_level_fat_tree, ONE_SIDED + TWO_SIDED),
    (mlfm.shifts_do_not_collide, [schedule()]),
    (mlfm.third_level_costs, TWO + THREE),
    (mlfm.full_mesh_of_layers, MLFM),
    (mlfm.other_positions_do_not_collide, [parts(2), parts(3)]),
    (mlfm.same_positions_do_not_collide, [parts(2), parts(3)]),
    (mlfm.all_to_all_is_free, [schedule("degree"), schedule("shape"), schedule("oft")]),
    (mlfm.parts_of_a_tree_are_free, SETS),
    (mlfm.sizes, TWO + THREE + MLFM),
    (mlfm.experiment_network, [EXPERIMENT]),
    (mlfm.reaches_the_limit, times()),
    (mlfm.orthogonal_is_larger, OFT + OFT_ONE_SIDED + MLFM),
    (mlfm.four_on_a_host, hosts()),
    (mlfm.gains, ft()),
    (mlfm.gains_with_flits, ft() + engines()),
    (mlfm.share_rises, shares({8: 0.09, 16: 0.095, 32: 0.1})),
    (mlfm.inside_the_application, inside()),
    (mlfm.only_four_are_slow, machines()),
    (mlfm.threads_make_communication_the_bottleneck, several_threads()),
    (mlfm.third_level_raises_latency, levels()),
    (mlfm.the_measured_program, transforms()),
]
WRONG: list[tuple[Judge, Rows]] = [
    (mlfm.third_level_raises_latency, []),
    (mlfm.third_level_raises_latency, levels(three=20)),
    (mlfm.third_level_raises_latency, levels(mesh=15)),
    (mlfm.third_level_raises_latency, levels(mean=13.5)),
    (mlfm.the_measured_program, []),
    (mlfm.the_measured_program, transforms(right=False)),
    (mlfm.the_measured_program, transforms(by_schedule=0)),
    (mlfm.the_measured_program, transforms(message="usage: ft S|W|A|B|C")),
    (mlfm.two_level_fat_tree, ONE_SIDED + changed(TWO_SIDED, 1, routers=10)),
    (mlfm.two_level_fat_tree, ONE_SIDED),
    (mlfm.shifts_do_not_collide, [schedule(max_load=2)]),
    (mlfm.shifts_do_not_collide, [schedule(complete=False)]),
    (mlfm.shifts_do_not_collide, [schedule(phases=16)]),
    (mlfm.shifts_do_not_collide, []),
    (mlfm.third_level_costs, TWO + changed(THREE, 1, routers=46)),
    (mlfm.full_mesh_of_layers, changed(MLFM, 2, spine_ports=[9])),
    (mlfm.full_mesh_of_layers, changed(MLFM, 2, terminals=81)),
    (mlfm.other_positions_do_not_collide, [with_load(parts(3), "position+position.other", 2)]),
    (mlfm.other_positions_do_not_collide, [parts(2), with_load(parts(3), "layer+position+position.other", 2)]),
    (mlfm.other_positions_do_not_collide, [{**parts(3), "loads": {"mixed": [1] * 35}}]),
    (mlfm.same_positions_do_not_collide, [with_load(parts(3), "layer", 2)]),
    (mlfm.same_positions_do_not_collide, []),
    (mlfm.all_to_all_is_free, [schedule("degree"), schedule("shape", max_load=2), schedule("oft")]),
    (mlfm.all_to_all_is_free, [schedule("degree"), schedule("shape"), schedule("oft", phases=16)]),
    (mlfm.all_to_all_is_free, [schedule("degree"), schedule("shape")]),
    (mlfm.all_to_all_is_free, [schedule("degree")]),
    (mlfm.parts_of_a_tree_are_free, changed(SETS, 7, max_load=2)),
    (mlfm.parts_of_a_tree_are_free, SETS[:150]),
    (mlfm.sizes, TWO + THREE + changed(MLFM, 1, links=35)),
    (mlfm.sizes, TWO + THREE + changed(MLFM, 1, terminals=35)),
    (mlfm.experiment_network, [{**EXPERIMENT, "spine_ports": [7, 8]}]),
    (mlfm.experiment_network, []),
    (mlfm.reaches_the_limit, times(new=0.94)),
    (mlfm.reaches_the_limit, times(ratios={8: 0.7, 16: 0.68, 32: 0.99})),
    (mlfm.reaches_the_limit, [row for row in times() if row["series"] != "flow-new"]),
    (mlfm.reaches_the_limit, times(ratios={8: 0.7, 16: 0.68})),
    (mlfm.reaches_the_limit, times(flits=2048)),
    (mlfm.orthogonal_is_larger, changed(OFT, 1, terminals=80) + OFT_ONE_SIDED + MLFM),
    (mlfm.orthogonal_is_larger, OFT + changed(OFT_ONE_SIDED, 0, terminals=32) + MLFM),
    (mlfm.orthogonal_is_larger, OFT + MLFM),
    (mlfm.four_on_a_host, hosts(memory_four=1100.0)),
    (mlfm.four_on_a_host, hosts(exchange_four=400.0)),
    (mlfm.four_on_a_host, hosts(ports=8)),
    (mlfm.four_on_a_host, []),
    (mlfm.gains, ft(gain=0.13)),
    (mlfm.gains, ft(gain=0.1)),
    (mlfm.gains, ft(overall=-0.01)),
    (mlfm.gains, ft(overall=0.02)),
    (mlfm.gains, ft(nodes=(8, 16))),
    (mlfm.gains_with_flits, ft() + engines(flit=107.0)),
    (mlfm.gains_with_flits, ft() + engines(nodes=(8, 16))),
    (mlfm.gains_with_flits, ft(gain=0.13) + engines()),
    (mlfm.share_rises, shares({8: 0.1, 16: 0.1, 32: 0.1})),
    (mlfm.share_rises, shares({8: 0.09, 16: 0.11, 32: 0.1})),
    (mlfm.share_rises, shares({8: 0.09, 16: 0.12, 32: 0.16})),
    (mlfm.share_rises, shares({8: 0.09, 32: 0.1})),
    (mlfm.inside_the_application, inside(part=0.96)),
    (mlfm.inside_the_application, inside(alone=0.9)),
    (mlfm.inside_the_application, inside(letters="BC")),
    (mlfm.only_four_are_slow, machines(one=1.1)),
    (mlfm.only_four_are_slow, machines(four=1.02)),
    (mlfm.only_four_are_slow, machines(imb_four=1.2)),
    (mlfm.threads_make_communication_the_bottleneck, []),
    (mlfm.threads_make_communication_the_bottleneck, several_threads(compute=30.0)),
    (mlfm.threads_make_communication_the_bottleneck, several_threads(compute=2.0)),
    (mlfm.threads_make_communication_the_bottleneck, several_threads(slow=6)),
    (mlfm.threads_make_communication_the_bottleneck, several_threads(shift=1.0)),
    (mlfm.only_four_are_slow, []),
]


@pytest.mark.parametrize(("judge", "table"), RIGHT, ids=lambda value: getattr(value, "__name__", ""))
def test_the_right_counts_pass(judge: Judge, table: Rows) -> None:
    assert judge(Table(table)).verdict == "pass", judge(Table(table)).measured


@pytest.mark.parametrize(("judge", "table"), WRONG, ids=lambda value: getattr(value, "__name__", ""))
def test_wrong_counts_fail_and_say_what_does_not_hold(judge: Judge, table: Rows) -> None:
    verdict = judge(Table(table))
    assert verdict.verdict == "fail"
    assert verdict.measured.startswith("NOT: ")


def test_every_judge_sees_right_and_wrong_counts() -> None:
    judges = {figure.judge for figure in PAPERS["mlfm"].figures if figure.engine != "none" and figure.kind != "S"} - {mlfm.recorded}
    assert judges == {judge for judge, _ in RIGHT} == {judge for judge, _ in WRONG}


def test_what_has_no_criterion_is_reported() -> None:
    assert mlfm.recorded(Table([EXPERIMENT])).verdict == "report"


def test_the_rows_of_the_paper_are_complete() -> None:
    expected = [*(f"F{number}" for number in range(1, 17)), *(f"C{number}" for number in range(1, 7)), "T1-3", "S1", "S2", "S3"]
    assert sorted(figure.number for figure in PAPERS["mlfm"].figures) == sorted(expected)


def test_every_figure_has_its_file() -> None:
    folder = experiments.find(None) / "mlfm"
    assert all(experiments.read(folder, figure.number).points for figure in PAPERS["mlfm"].figures if figure.engine != "none")


# --- counts ---


def test_a_network_is_counted_as_built() -> None:
    row = counts.network({"network": {"topology": "mlfm", "layers": 4, "positions": 4, "terminals_per_leaf": 2}})
    assert row["links"] == 4 * 4 * 3
    assert row["terminal_ports"] == 32
    assert {key: row[key] for key in EXPERIMENT if key != "series"} == {key: value for key, value in EXPERIMENT.items() if key != "series"}


def test_phases_are_told_apart_by_the_labels_in_which_their_messages_differ() -> None:
    # Terminals 0 and 1 share a router of the mesh, 2 and 3 the one beside it.
    built = kasuri.Network.from_topology("mesh", dimensions=[2, 2], concentration=2)
    counted = {
        "terminals": [0, 1, 2, 3],
        "phases": [[1, 0, 3, 2], [2, 3, 0, 1], [1, 2, None, None]],
        "loads": [1, 2, 3],
        "complete": True,
        "max_load": 3,
        "message_times": 6,
        "lower_bound": 3,
    }
    assert counts.schedule(counted, built)["loads"] == {"": [1], "coordinate.0": [2], "mixed": [3]}


def test_random_leaves_are_whole_and_differ_by_seed() -> None:
    built = kasuri.Network.from_topology("fat-tree", up=4, down=4, levels=2)
    chosen = [counts.terminals_of_random_leaves(built, seed) for seed in range(20)]
    assert all(len(terminals) % 4 == 0 and {t - t % 4 for t in terminals} == set(terminals[::4]) for terminals in chosen)
    assert len({tuple(terminals) for terminals in chosen}) > 5


@pytest.mark.parametrize(
    ("asked", "problem"),
    [({"seed": 1}, r"schedule\.seed: is unknown"), ({"ranks": 2, "leaves_seed": 1}, r"schedule\.leaves_seed: conflicts with ranks")],
)
def test_a_wrong_question_is_refused(asked: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        counts.arguments(asked, kasuri.Network.from_topology("mesh", dimensions=[2, 2]))


def test_an_unknown_count_is_refused(tmp_path: Any) -> None:
    (tmp_path / "machine.toml").write_text("")
    (tmp_path / "F1.toml").write_text('[series.a]\ncount = "phases"\n')
    with pytest.raises(ConfigError, match=r"series\.a\.count: is 'phases'; it must be one of network, .*schedule"):
        experiments.read(tmp_path, "F1")


def test_a_schedule_is_counted_by_the_command(tmp_path: Any) -> None:
    experiment = {
        "network": {"topology": "mlfm", "layers": 2, "positions": 3, "terminals_per_leaf": 1},
        "routing": {"algorithm": "minimal", "tie": "destination"},
        "schedule": {"name": "mlfm"},
    }
    (row,) = runs.Runner(jobs=1).table([experiments.Point("mlfm", {}, experiment, count="schedule")], tmp_path).rows
    assert (row["phases"], row["max_load"], row["complete"], row["message_times"]) == (5, 1, True, 5)


def test_the_study_of_hosts_prints_throughput_and_placements() -> None:
    table = [ran("map", 7 * 4096 / 0.5, P=8, flits=4096, copies=1, V=4, H=59.2), ran("across", 7 * 4096, P=8, flits=4096)]
    verdict = mlfm.why_machines_slow_the_exchange(Table(table))
    assert verdict.verdict == "report"
    assert "1 copies, 4 on a host, of the limit over Gbyte/s: 59.2: 0.50" in verdict.measured
    assert "8 ranks across: 8: 1.000 of the limit" in verdict.measured


# --- the studies of other networks, and of fewer all-to-alls ---


def four_networks() -> Rows:
    made: Rows = []
    for network in mlfm_studies.NETWORKS:
        made.append({"series": f"{network}-size", "terminals": 41, "routers": 20, "links": 82})
        fixed = "nca" if network == "fat-tree" else "minimal"
        for place, routing in enumerate((fixed, *mlfm_studies.DYNAMIC)):
            by = {"routing.algorithm": routing}
            made += [
                {"series": f"{network}-{traffic}", "accepted_throughput_mean": 0.2 + place / 10, **by} for traffic in ("uniform", "worst")
            ]
            for schedule in dict.fromkeys(("shift", mlfm_studies.OWN[network])):
                if schedule != "general" or routing == fixed:
                    made.append(ran(f"{network}-all-to-all", 40 * 256 / (0.9 - place / 10), **by, **{"workload.schedule": schedule}))
    return made


def test_the_study_of_networks_prints_sizes_and_throughputs() -> None:
    verdict = mlfm_studies.dynamic_routing(Table(four_networks()))
    assert verdict.verdict == "report"
    for fact in (
        "dragonfly: 41 terminals, for each 0.488 switches and 2.000 links",
        "oft, worst: minimal: 0.200, valiant: 0.300, ugal: 0.400, minimal-adaptive: 0.500 flits",
        "fat-tree, all-to-all by shift: nca: 0.900, valiant: 0.800, ugal: 0.700, minimal-adaptive: 0.600 of",
        "dragonfly, all-to-all by general: minimal: 0.900 of",
    ):
        assert fact in verdict.measured


@pytest.mark.parametrize(
    ("series", "routing", "problem"),
    [
        ("oft-size", None, "oft: its size is missing"),
        ("mlfm-worst", "ugal", "mlfm, worst: ugal missing"),
        ("fat-tree-uniform", "nca", "fat-tree, uniform: fixed paths missing"),
        ("dragonfly-all-to-all", "minimal", "dragonfly, all-to-all by general: fixed paths missing"),
    ],
)
def test_the_study_of_networks_says_what_is_missing(series: str, routing: str | None, problem: str) -> None:
    rows = [row for row in four_networks() if (row["series"], row.get("routing.algorithm")) != (series, routing)]
    verdict = mlfm_studies.dynamic_routing(Table(rows))
    assert verdict.verdict == "fail"
    assert f"NOT: {problem}" in verdict.measured


def test_the_worst_permutation_is_bad_for_fixed_paths_and_not_for_others(tmp_path: Any) -> None:
    points = [point for point in experiments.read(experiments.find(None) / "mlfm", "S1").points if point.series.endswith("-worst")]
    table = runs.Runner(jobs=2).table(points, tmp_path)
    for network in mlfm_studies.NETWORKS:
        accepted = table.of(f"{network}-worst").curve("accepted_throughput_mean", "routing.algorithm")
        (fixed,) = (accepted[routing] for routing in mlfm_studies.FIXED if routing in accepted)
        # All terminals of a leaf leave it by one channel of three; on the dragonfly all six of a group by one.
        assert fixed == pytest.approx(1 / 6 if network == "dragonfly" else 1 / 3, rel=0.06)
        assert accepted["valiant"] > 1.1 * fixed
        assert accepted["ugal"] > 1.1 * fixed


def transposes(*, fewer: float = 1 / 3, schedule: float = 0.9, letters: tuple[str, ...] = mlfm_studies.LETTERS) -> Rows:
    return [
        ran(f"{kind}-{part}", time * (1.0 if count == 3 else fewer) + rest, letter=letter, P=P, transposes=count)
        for letter in letters
        for P in NODES
        for kind, time in (("shift", 1.0), ("new", schedule))
        for count in (1, 3)
        for part, rest in (("communication", 0.0), ("whole", 4.0))
    ]


def test_the_study_of_transposes_prints_each_gain_and_both() -> None:
    verdict = mlfm_studies.fewer_transposes(Table(transposes()))
    assert verdict.verdict == "report"
    for fact in (
        "communication, class B, gain of schedule: 8: 0.100",
        "communication, class C, gain of fewer: 8: 0.667",
        "communication, class D, gain of both: 8: 0.700",
        "whole, class B, gain of both: 8: 0.140",
    ):
        assert fact in verdict.measured


def test_the_study_of_transposes_says_what_is_missing() -> None:
    for rows in (transposes(letters=("B", "C")), [row for row in transposes() if (row["transposes"], row["P"]) != (3, 16)]):
        verdict = mlfm_studies.fewer_transposes(Table(rows))
        assert verdict.verdict == "fail"
        assert "nodes missing" in verdict.measured


def test_fewer_transposes_take_less_communication_and_the_same_computing() -> None:
    folder = experiments.find(None) / "mlfm"
    points = {
        (point.series, point.variables["transposes"]): point for point in experiments.read(folder, "S3").points if point.variables["P"] == 8
    }

    def time(series: str, count: int) -> float:
        point = points[series, count].experiment
        return float(kasuri.run(point | {"workload": {**point["workload"], "class": "S"}})[0]["completion_time"])

    for kind in ("new", "shift"):
        assert time(f"{kind}-communication", 3) == pytest.approx(3 * time(f"{kind}-communication", 1), rel=1e-6)
        computing = [time(f"{kind}-whole", count) - time(f"{kind}-communication", count) for count in (1, 3)]
        assert computing[0] > 0
        assert computing[1] == pytest.approx(computing[0], rel=1e-3)


def test_a_file_that_a_figure_names_lies_beside_its_own(tmp_path: Any) -> None:
    (tmp_path / "machine.toml").write_text("")
    (tmp_path / "F1.toml").write_text('[series.a]\ntraffic = { pattern = "permutation", path = "to.txt" }\n')
    (point,) = experiments.read(tmp_path, "F1").points
    assert point.experiment["traffic"]["path"] == str((tmp_path / "to.txt").resolve())
