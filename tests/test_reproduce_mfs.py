"""Each verdict on a right curve, and on wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kasuri.errors import ConfigError
from kasuri_papers import PAPERS, experiments, mfs
from kasuri_papers.figure import Table

Rows = list[dict[str, Any]]
FPP = "traffic.packet_flits"


def rows(series: str, values: dict[int, float], y: str = "atr", **more: Any) -> Rows:
    extra = {key.replace("__", "."): value for key, value in more.items()}
    return [{"series": series, "k": k, y: value, **extra} for k, value in values.items()]


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


def table_1(flow: float = 1340.0, flit: float = 1330.0, seconds: float = 0.1, memory: float = 12.0) -> Rows:
    both = {"process_seconds": seconds, "peak_memory_mib": memory}
    return (
        rows("flow", dict.fromkeys(mfs.TABLE_1, flow), "completion_time", completion_time_ns=25 * flow, **both)
        + rows("flit", dict.fromkeys(mfs.TABLE_1, flit), "completion_time", process_seconds=1.0, peak_memory_mib=20.0)
        + rows("booksim", {16: 1500.0}, "completion_time", process_seconds=45.0, peak_memory_mib=237.0)
    )


def three_networks(y: str, flow: float, flits: dict[int, float], *, flow_by_length: bool = False) -> Rows:
    made: Rows = []
    for network in ("fat-tree", "mesh", "torus"):
        for length, value in flits.items():
            made += rows(f"flit-{network}", {4: value, 8: value}, y, traffic__packet_flits=length)
            if flow_by_length:
                made += rows(f"flow-{network}", {4: flow, 8: flow}, y, traffic__packet_flits=length)
        if not flow_by_length:
            made += rows(f"flow-{network}", {4: flow, 8: flow}, y)
    return made


Judge = Callable[[Table], Any]
RIGHT: list[tuple[Judge, Rows]] = [
    (mfs.two_flows_share, [{"series": "flow", "atr": 0.5, "completion_time": 2000}]),
    (mfs.uniform_falls, uniform(FALLING, *LENGTHS)),
    (mfs.lengths_agree, uniform(FALLING, *LENGTHS)),
    (mfs.transpose_on_fat_tree, rows("flow", MESH) + rows("flit", {k: 0.95 * rate for k, rate in MESH.items()})),
    (mfs.transpose_on_mesh, rows("flow", MESH) + rows("flit", {k: 0.95 * rate for k, rate in MESH.items()})),
    (mfs.transpose_on_torus, rows("flow", {4: 0.75}) + rows("flit", {4: 0.713})),
    (mfs.tornado_on_mesh, rows("flow", TORNADO) + rows("flit-vc1", VC1) + rows("flit-voq", VOQ)),
    (mfs.tornado_on_torus, rows("flow", TORNADO) + rows("flit-vc2", VC2) + rows("flit-voq", VOQ)),
    (mfs.never_contends, rows("flow", dict.fromkeys(range(2, 17), 1.0))),
    (mfs.large_fat_trees, table_1()),
    (mfs.neighbours_are_right, three_networks("completion_time", 1000, {100: 1050, 1000: 1010}, flow_by_length=True)),
    (mfs.longer_packets_are_closer, three_networks("atr", 0.6, {10: 0.5, 100: 0.55})),
]
WRONG: list[tuple[Judge, Rows]] = [
    (mfs.two_flows_share, [{"series": "flow", "atr": 1.0, "completion_time": 1000}]),
    (mfs.two_flows_share, []),
    (mfs.uniform_falls, uniform(FALLING, *[(length, FLAT) for length in mfs.LENGTHS])),
    (mfs.uniform_falls, uniform(FLAT, *LENGTHS)),
    (mfs.uniform_falls, uniform(FALLING, *LENGTHS[1:], (10, {k: 0.9 * rate for k, rate in FALLING.items()}))),
    (mfs.uniform_falls, uniform(FALLING, *LENGTHS[1:])),
    (mfs.lengths_agree, uniform(FALLING, (40, FALLING), (80, {k: 0.9 * rate for k, rate in FALLING.items()}))),
    (mfs.lengths_agree, uniform(FALLING, (40, FALLING))),
    (mfs.transpose_on_fat_tree, rows("flow", MESH) + rows("flit", {**MESH, 16: 0.15})),
    (mfs.transpose_on_fat_tree, rows("flow", MESH) + rows("flit", {2: 1.0})),
    (mfs.transpose_on_mesh, rows("flow", {**MESH, 4: 0.65}) + rows("flit", MESH)),
    (mfs.transpose_on_torus, rows("flow", {4: 0.625}) + rows("flit", {4: 0.62})),
    (mfs.transpose_on_torus, rows("flow", {4: 0.75}) + rows("flit", {4: 0.66})),
    (mfs.transpose_on_torus, rows("flow", {4: 0.75})),
    (mfs.tornado_on_mesh, rows("flow", {**TORNADO, 5: 0.5}) + rows("flit-vc1", VC1) + rows("flit-voq", VOQ)),
    (mfs.tornado_on_mesh, rows("flow", TORNADO) + rows("flit-vc1", {**VC1, 6: 0.35}) + rows("flit-voq", VOQ)),
    (mfs.tornado_on_mesh, rows("flow", TORNADO) + rows("flit-vc1", VOQ) + rows("flit-voq", VC1)),
    (mfs.tornado_on_torus, rows("flow", TORNADO) + rows("flit-vc2", VOQ) + rows("flit-voq", VC2)),
    (mfs.tornado_on_torus, rows("flow", TORNADO) + rows("flit-vc2", VC2)),
    (mfs.never_contends, rows("flow", {**dict.fromkeys(range(2, 17), 1.0), 12: 0.5})),
    (mfs.never_contends, rows("flow", {2: 1.0})),
    (mfs.large_fat_trees, table_1(flit=1000.0)),
    (mfs.large_fat_trees, table_1(flow=1700.0, flit=1700.0)),
    (mfs.large_fat_trees, table_1(seconds=5.0)),
    (mfs.large_fat_trees, table_1(memory=30.0)),
    (mfs.large_fat_trees, [row for row in table_1() if row["series"] != "booksim"]),
    (mfs.large_fat_trees, [row for row in table_1() if row["k"] != 36]),
    (mfs.neighbours_are_right, three_networks("completion_time", 1000, {100: 1200, 1000: 1010}, flow_by_length=True)),
    (mfs.longer_packets_are_closer, three_networks("atr", 0.6, {10: 0.58, 100: 0.5})),
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
    judges = {figure.judge for figure in PAPERS["mfs"].figures}
    assert judges == {judge for judge, _ in RIGHT} == {judge for judge, _ in WRONG}


def test_the_rows_of_the_paper_are_complete() -> None:
    expected = [*(f"F{number}" for number in range(1, 10)), "C1", "C2", "C3", "T1"]
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
