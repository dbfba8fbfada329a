"""Each verdict on a right curve, and on wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kasuri.errors import ConfigError
from kasuri_papers import PAPERS, experiments, mfs, mfs_studies
from kasuri_papers.figure import Table
from mfs_rows import Rows, of_figures, rows, table_1

FPP = "traffic.packet_flits"


def uniform(flow: dict[int, float], *flits: tuple[int, dict[int, float]]) -> Rows:
    return rows("flow", flow) + [row for length, values in flits for row in rows("flit", values, traffic__packet_flits=length)]


FALLING = {2: 0.9, 4: 0.8, 8: 0.7}
FLAT = {2: 0.8, 4: 0.8, 8: 0.8}
LENGTHS = [(length, FALLING) for length in mfs.LENGTHS]

MESH = {2: 1.0, 4: 0.625, 8: 0.344, 16: 0.180}
TORNADO = {2: 1.0, 3: 1.0, 4: 1.0, 5: 1.0, 6: 0.5, 7: 0.5, 8: 1 / 3, 9: 1 / 3}
VC1 = {**TORNADO, 8: 0.15, 9: 0.13}
VOQ = {**TORNADO, 8: 0.28, 9: 0.28}
VC2 = {**TORNADO, 6: 0.2, 7: 0.2, 8: 0.1, 9: 0.1}


def cost(seconds: float = 0.1, memory: float = 4.0, places: tuple[int, ...] = (10, 12, 16)) -> Rows:
    return (
        rows("flow", dict.fromkeys(places, seconds), "process_seconds", peak_memory_mib=memory)
        + rows("flit", dict.fromkeys(places, 1.0), "process_seconds", peak_memory_mib=20.0)
        + rows("booksim", {10: 40.0, 12: 42.0, 16: 45.0}, "process_seconds", peak_memory_mib=237.0)
    )


def packets_of(fat_tree: dict[int, float]) -> Rows:
    """Flows at 0.6, packets of some lengths at their rates on the fat tree and at 0.5 on the grids."""
    made: Rows = []
    for network in ("fat-tree", "mesh", "torus"):
        made += rows(f"flow-{network}", {4: 0.6, 8: 0.6})
        for length, rate in fat_tree.items():
            made += rows(f"flit-{network}", dict.fromkeys((4, 8), rate if network == "fat-tree" else 0.5), traffic__packet_flits=length)
    return made


def near_traffic(stencil: float = 1050.0) -> Rows:
    made: Rows = []
    for traffic in ("neighbour", "stencil"):
        for network in ("fat-tree", "mesh", "torus"):
            for flits in (120, 1000):
                ends = {"flow": 1000.0, "flit": stencil if traffic == "stencil" else 1010.0}
                for engine, end in ends.items():
                    made += rows(f"{engine}-{traffic}-{network}", {4: end, 8: end}, "completion_time", flits=flits)
    return made


def arbiters(age: float, voq: float = 0.36) -> Rows:
    """Flows at 0.4 and round robin at 0.3 on all networks."""
    rates = {"flow": 0.4, "rr": 0.3, "age": age, "voq": voq}
    return [
        row
        for network in ("fat-tree", "mesh", "torus")
        for name, rate in rates.items()
        for row in rows(f"{name}-{network}", dict.fromkeys((6, 8, 10), rate))
    ]


FLOW = {k: 1.2 * rate for k, rate in FALLING.items()}
#: Curves that cross at two places.
CROSSING = {2: 0.9, 4: 0.8, 6: 0.84, 8: 0.83}
FALLING_OF_FOUR = {2: 0.9, 4: 0.8, 6: 0.75, 8: 0.7}
OFF = (10, {k: 0.98 * rate for k, rate in FALLING.items()})

Judge = Callable[[Table], Any]
RIGHT: list[tuple[Judge, Rows]] = [
    (mfs.two_flows_share, [{"series": "flow", "atr": 0.5, "completion_time": 2000}]),
    (mfs.uniform_on_fat_tree, uniform(FLOW, *LENGTHS)),
    (mfs.uniform_on_mesh, uniform({**CROSSING, 6: 0.79, 8: 0.77}, *[(length, FALLING_OF_FOUR) for length in mfs.LENGTHS])),
    (mfs.uniform_on_torus, uniform(FLOW, OFF, *LENGTHS[1:])),
    (mfs.arbitration_explains, arbiters(0.36)),
    (mfs.transpose_on_fat_tree, rows("flow", MESH) + rows("flit", {k: 0.95 * rate for k, rate in MESH.items()})),
    (mfs.transpose_on_mesh, rows("flow", MESH) + rows("flit", {k: 0.95 * rate for k, rate in MESH.items()})),
    (mfs.transpose_on_torus, rows("flow", {4: 0.75}) + rows("flit", {4: 0.713})),
    (mfs.tornado_on_mesh, rows("flow", TORNADO) + rows("flit-vc1", VC1) + rows("flit-voq", VOQ)),
    (mfs.tornado_on_torus, rows("flow", TORNADO) + rows("flit-vc2", VC2) + rows("flit-voq", VOQ)),
    (mfs.queues_close_the_gap, of_figures(**dict.fromkeys(("F8", "F9"), rows("flow", TORNADO) + rows("flit-voq", {**TORNADO, 8: 0.31})))),
    (mfs.never_contends, rows("flow", dict.fromkeys(range(2, 17), 1.0)) + rows("flit", dict.fromkeys(range(2, 17), 0.98))),
    (mfs.large_fat_trees, table_1()),
    (mfs.large_fat_trees_beside_booksim, table_1()),
    (mfs.time_and_memory, cost()),
    (mfs.neighbours_are_right, near_traffic()),
    (mfs.longer_packets_are_closer, packets_of({10: 0.5, 100: 0.55})),
]
WRONG: list[tuple[Judge, Rows]] = [
    (mfs.two_flows_share, [{"series": "flow", "atr": 1.0, "completion_time": 1000}]),
    (mfs.two_flows_share, []),
    (mfs.uniform_on_fat_tree, uniform(FLOW, *[(length, FLAT) for length in mfs.LENGTHS])),
    (mfs.uniform_on_fat_tree, uniform(FLAT, *LENGTHS)),
    (mfs.uniform_on_fat_tree, uniform(FLOW, *LENGTHS[1:], (10, {k: 0.9 * rate for k, rate in FALLING.items()}))),
    (mfs.uniform_on_fat_tree, uniform(FLOW, *LENGTHS[1:])),
    (mfs.uniform_on_fat_tree, uniform({**FLOW, 4: FALLING[4]}, *LENGTHS)),
    (mfs.uniform_on_mesh, uniform(FALLING, *LENGTHS)),
    (mfs.uniform_on_torus, uniform(FLOW, (10, OFF[1]), (40, FALLING), (80, {k: 0.9 * rate for k, rate in FALLING.items()}))),
    (mfs.uniform_on_torus, uniform(FLOW, (40, FALLING))),
    (mfs.uniform_on_torus, uniform(FLOW, *LENGTHS)),
    (mfs.uniform_on_torus, uniform(FALLING, OFF, *LENGTHS[1:])),
    (mfs.arbitration_explains, arbiters(0.32)),
    (mfs.arbitration_explains, arbiters(0.36, voq=0.28)),
    (mfs.arbitration_explains, []),
    (mfs.transpose_on_fat_tree, rows("flow", MESH) + rows("flit", {**MESH, 16: 0.15})),
    (mfs.transpose_on_fat_tree, rows("flow", MESH) + rows("flit", {2: 1.0})),
    (mfs.transpose_on_mesh, rows("flow", {**MESH, 4: 0.65}) + rows("flit", MESH)),
    (mfs.transpose_on_torus, rows("flow", {4: 0.625}) + rows("flit", {4: 0.588})),
    (mfs.transpose_on_torus, rows("flow", {4: 0.75}) + rows("flit", {4: 0.69})),
    (mfs.transpose_on_torus, rows("flow", {4: 0.75}) + rows("flit", {4: 0.74})),
    (mfs.transpose_on_torus, rows("flow", {4: 0.75})),
    (mfs.tornado_on_mesh, rows("flow", {**TORNADO, 5: 0.5}) + rows("flit-vc1", VC1) + rows("flit-voq", VOQ)),
    (mfs.tornado_on_mesh, rows("flow", TORNADO) + rows("flit-vc1", {**VC1, 6: 0.35}) + rows("flit-voq", VOQ)),
    (mfs.tornado_on_mesh, rows("flow", TORNADO) + rows("flit-vc1", VOQ) + rows("flit-voq", VC1)),
    (mfs.tornado_on_mesh, rows("flow", TORNADO) + rows("flit-vc1", {**VC1, 8: 0.32}) + rows("flit-voq", {**VOQ, 8: 0.33})),
    (mfs.tornado_on_torus, rows("flow", TORNADO) + rows("flit-vc2", VOQ) + rows("flit-voq", VC2)),
    (mfs.tornado_on_torus, rows("flow", TORNADO) + rows("flit-vc2", {**VC2, 6: 0.3}) + rows("flit-voq", VOQ)),
    (mfs.tornado_on_torus, rows("flow", TORNADO) + rows("flit-vc2", {**VC2, 5: 0.9}) + rows("flit-voq", VOQ)),
    (mfs.tornado_on_torus, rows("flow", TORNADO) + rows("flit-vc2", VC2)),
    (mfs.queues_close_the_gap, of_figures(**dict.fromkeys(("F8", "F9"), rows("flow", TORNADO) + rows("flit-voq", VOQ)))),
    (mfs.queues_close_the_gap, of_figures(F8=rows("flow", TORNADO) + rows("flit-voq", TORNADO))),
    (mfs.never_contends, rows("flow", {**dict.fromkeys(range(2, 17), 1.0), 12: 0.5}) + rows("flit", dict.fromkeys(range(2, 17), 0.98))),
    (mfs.never_contends, rows("flow", dict.fromkeys(range(2, 17), 1.0)) + rows("flit", {**dict.fromkeys(range(2, 17), 0.98), 9: 0.62})),
    (mfs.never_contends, rows("flow", {2: 1.0})),
    (mfs.large_fat_trees, table_1(flit=1000.0)),
    (mfs.large_fat_trees, table_1(flow=1700.0, flit=1700.0)),
    (mfs.large_fat_trees, [row for row in table_1() if row["k"] != 36]),
    (mfs.large_fat_trees_beside_booksim, table_1(book=1600.0)),
    (mfs.large_fat_trees_beside_booksim, [row for row in table_1() if row["series"] != "booksim"]),
    (mfs.time_and_memory, cost(seconds=5.0)),
    (mfs.time_and_memory, cost(memory=12.0)),
    (mfs.time_and_memory, cost(places=(16,))),
    (mfs.neighbours_are_right, near_traffic(stencil=1200.0)),
    (mfs.neighbours_are_right, []),
    (mfs.longer_packets_are_closer, packets_of({10: 0.55, 100: 0.5})),
    (mfs.longer_packets_are_closer, packets_of({10: 0.55, 100: 0.5505})),
]


@pytest.mark.parametrize(("judge", "table"), RIGHT, ids=lambda value: getattr(value, "__name__", ""))
def test_the_right_curve_passes(judge: Judge, table: Rows) -> None:
    assert judge(Table(table)).verdict == "pass", judge(Table(table)).measured


@pytest.mark.parametrize(("judge", "table"), WRONG, ids=lambda value: getattr(value, "__name__", ""))
def test_a_wrong_curve_fails_and_says_what_does_not_hold(judge: Judge, table: Rows) -> None:
    verdict = judge(Table(table))
    assert verdict.verdict == "fail"
    assert verdict.measured.startswith("NOT: ")


def test_every_judge_sees_right_and_wrong_curves() -> None:
    figures = [figure for figure in PAPERS["mfs"].figures if not figure.lacking and figure.kind != "S"]
    judges = {judge for figure in figures for judge in (figure.judge, *figure.readings.values())}
    assert judges == {judge for judge, _ in RIGHT} == {judge for judge, _ in WRONG}


def test_the_study_of_errors_prints_its_correlations() -> None:
    flows, packets = {4: 0.5, 8: 0.4, 16: 0.25}, {4: 0.49, 8: 0.36, 16: 0.2}
    table = of_figures(F2=rows("flow", flows) + [row | {"hops_mean": float(row["k"])} for row in rows("flit", packets)])
    verdict = mfs_studies.where_flows_may_be_trusted(Table(table))
    assert verdict.verdict == "report"
    assert "with mean hops: 0.99 over 3 points" in verdict.measured


def test_the_study_of_arbitration_prints_how_far_both_sharings_are_off() -> None:
    figures = of_figures(F2=rows("flow", {4: 0.6}, cpu_seconds=0.5) + rows("flit", {4: 0.5}, cpu_seconds=2.0))
    figures += of_figures(T1=rows("flow", {16: 900.0}, "completion_time") + rows("flit", {16: 1000.0}, "completion_time"))
    own = rows("arbitrated-F2", {4: 0.49}, cpu_seconds=0.25) + rows("arbitrated-T1", {16: 1010.0}, "completion_time")
    verdict = mfs_studies.flows_with_arbitration(Table(figures + of_figures(S1=own)))
    assert verdict.verdict == "report"
    assert (
        "packets 4: 0.500 (2.00 s); arbitrated 4: 0.490 (off by 0.020, 0.25 s); equal shares 4: 0.600 (off by 0.200, 0.50 s)"
        in verdict.measured
    )
    assert "arbitrated 16: 1010 (off by 0.010" in verdict.measured
    assert "mean error of ATR over all points of figures 2 to 9: arbitrated 0.020, equal shares 0.200" in verdict.measured


def test_what_a_mechanism_explains_is_the_distance_without_it() -> None:
    made = rows("arbitrated", {6: 0.5, 8: 0.3}, flow__without=[]) + rows("arbitrated", {6: 0.5, 8: 0.15}, flow__without=["blocking"])
    text = mfs_studies.explained(Table(made), Table(rows("flit", {6: 0.5, 8: 0.3, 9: 0.1})), [6, 8])
    assert "all mechanisms 0.000, without blocking 0.250" in text


def test_the_rows_of_the_paper_are_complete() -> None:
    expected = [*(f"F{number}" for number in range(1, 10)), *(f"C{number}" for number in (1, 2, 3, 4, 6, 7)), "T1", "S1", "S2"]
    assert sorted(figure.number for figure in PAPERS["mfs"].figures) == sorted(expected)


def test_the_kept_rows_of_booksim_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BOOKSIM", raising=False)
    found = mfs.booksim_rows(experiments.find(None) / "mfs", tmp_path)
    assert sorted({row["k"] for row in found}) == [10, 12, 16]
    (first,) = (row for row in found if (row["k"], row["measure.seed"]) == (16, 1))
    assert (first["completion_time"], first["process_seconds"], first["peak_memory_mib"]) == (1590.0, 45.419, 237.2)


@pytest.mark.skipif(not Path("/usr/bin/time").exists(), reason="needs the program `time`")
def test_a_booksim_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BOOKSIM", "/bin/true")
    with pytest.raises(ConfigError, match="is not what BookSim 2 and the program `time` print"):
        mfs.booksim_rows(experiments.find(None) / "mfs", tmp_path)
