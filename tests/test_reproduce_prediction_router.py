"""Each verdict on a right curve, and on wrong ones; the columns that runs get from their vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

import kasuri
from kasuri_papers import PAPERS, comparison
from kasuri_papers import prediction_hit_rates as hit_rates
from kasuri_papers import prediction_rivals as rivals
from kasuri_papers import prediction_router as router
from kasuri_papers import prediction_structure as structure
from kasuri_papers.figure import Table

Rows = list[dict[str, Any]]
Judge = Callable[[Table], Any]
LATENCY = router.LATENCY


def rows(series: str, x: str, values: dict[Any, float], y: str = LATENCY, **more: Any) -> Rows:
    return [{"series": series, x: place, y: value, **more} for place, value in values.items()]


def without(table: Rows, series: str) -> Rows:
    return [row for row in table if row["series"] != series]


def changed(table: Rows, series: str, **columns: Any) -> Rows:
    return [{**row, **columns} if row["series"] == series else row for row in table]


# --- F1, F2 ------------------------------------------------------------------------------------------------------------------------


def lone(series: str, stages: int, in_router: float, misses: int = 0, miss_cycles: float = 0.0) -> Rows:
    """64 packets over 1, 3 and 5 routers, of which `misses` in all take another time."""
    made = []
    for levels, crossed in ((1, 1), (2, 3), (3, 5)):
        missed = misses if levels > 1 else 0
        total = 64 * (crossed * in_router + crossed + 6) + missed * (miss_cycles - in_router)
        row = {"levels": levels, "stages": stages, "hops_mean": crossed, "measured_packets": 64, LATENCY: total / 64}
        made.append({"series": series, **row, "prediction_hits": 64 * crossed - missed, "prediction_hit_rate": 1.0})
    return made


def all_stages(hit: float = 1, miss: float = 0, normal: float = 0) -> Rows:
    made: Rows = []
    for stages in (3, 5, 7):
        made += lone("normal", stages, stages + normal) + lone("oracle", stages, hit) + lone("ss", stages, 1, 40, stages + miss)
    return made


# --- F3 to F6, T1, T2 --------------------------------------------------------------------------------------------------------------

#: A (2, 2, 2) tree: routers 0 and 1 are leaves with ports 0, 1 down and 2, 3 up; 2 and 3 are tops.
LEAVES = [[leaf, port, [(port + 2) % 4]] for leaf in (0, 1) for port in range(4)]
MAP = [*LEAVES, *([top, port, [1 - port]] for top in (2, 3) for port in (0, 1))]
TREE = {"up": 2, "down": 2, "levels": 2}


def mapped(connections: list[list[Any]]) -> Rows:
    return [{"series": "ss", **TREE, "hot": 0, "connections": connections}]


def hinted(**columns: Any) -> Rows:
    good = {"pairs": 3, "pairs_right": 3, "pairs_up": 2, "prediction_hint_bits": 1, "copies": 0, "prediction_wasted_flits": 0}
    guesses = {"prediction_attempts": 3, "prediction_refused": 0, "prediction_hits": 2}
    return [{"series": "up", **TREE, "hot": hot, **good, **guesses, **columns} for hot in range(4)]


def tree(**columns: Any) -> Rows:
    shape = {"ports_up": [4], "ports_down": [4], "tree_levels": 3, "links": 128, "bisection_links": 32}
    return [{"series": "normal", LATENCY: 24.7, "terminals": 64, "routers": 48, **shape, **columns}]


def system(**columns: Any) -> Rows:
    return [{"series": name, LATENCY: 145.0, "terminals": 256, "routers": 32, **columns} for name in ("store-and-forward", "cut-through")]


# --- F7, F9, F10 -------------------------------------------------------------------------------------------------------------------

LOADS = (0.1, 0.2, 0.3)


def compared(
    series: str,
    zero: tuple[float, float],
    saturation: tuple[float, float] = (0.46, 0.48),
    loaded: tuple[float, float] | None = None,
    **columns: Any,
) -> Rows:
    """Compare a normal and a predicting router: latencies at zero load and, 1.2 to 2 times as high, at the loads."""
    made: Rows = []
    for side, router_ in enumerate(("normal", "predicted")):
        at_zero, under_load = zero[side], (loaded or zero)[side]
        base = {"series": series, "router": router_, **columns}
        made.append({**base, "place": "zero", LATENCY: at_zero})
        made.append({**base, "place": "saturation", "saturation_load": saturation[side]})
        made += [{**base, "place": "curve", "traffic.load": load, LATENCY: under_load * (1 + 2 * load)} for load in LOADS]
    return made


def on_chip(reduction: float = 0.2, loaded: float | None = None, saturation: tuple[float, float] = (0.46, 0.48)) -> Rows:
    return compared("ss", (25.0, 25 * (1 - reduction)), saturation, (25.0, 25 * (1 - (reduction if loaded is None else loaded))))


def system_curves(at_zero: float = 0.232, loaded: float = 0.232, saturation: tuple[float, float] = (0.4, 0.42)) -> Rows:
    return compared("up", (145.0, 145 * (1 - at_zero)), saturation, (145.0, 145 * (1 - loaded)))


STAGES = {3: 24.7, 5: 33.6, 7: 42.4}
PREDICTED_STAGES = {3: 19.9, 5: 24.0, 7: 28.0}


def stages(predicted: dict[int, float]) -> Rows:
    return rows("normal-zero-load", "stages", STAGES) + rows("ss-zero-load", "stages", predicted)


def pipelines(predicted: dict[int, float], loaded: dict[int, float] | None = None) -> Rows:
    """Routers of 3, 5, 7 stages that saturate at the same loads."""
    made: Rows = []
    for number, latency in predicted.items():
        normal = STAGES[number]
        under_load = (1.3 * normal, 1.3 * (loaded or predicted)[number])
        made += compared("ss", (normal, latency), loaded=under_load, stages=number)
    return made


def of_figure(number: str, table: Rows) -> Rows:
    return [{"figure": number, **row} for row in table]


# --- F8, F11, C1 to C6 -------------------------------------------------------------------------------------------------------------

SS = {levels: hit_rates.hit_rate("ss", levels) for levels in range(1, 9)}
UP = {levels: hit_rates.hit_rate("up", levels) for levels in range(1, 9)}


def rates(ss: dict[int, float], up: dict[int, float]) -> Rows:
    return rows("ss", "levels", ss, hit_rates.RATE) + rows("up", "levels", up, hit_rates.RATE)


def chances(of_ss: float = 1.0, rate: float = 1.0) -> Rows:
    made: Rows = []
    for levels in range(1, 7):
        crossed = 2 * hit_rates.turn(levels)[0] - 1
        for series, attempts, hits in (("ss", crossed * of_ss, SS[levels] * rate), ("up", crossed / 2.05, UP[levels])):
            attempts = attempts if levels > 1 or series == "ss" else 0.0
            row = {"levels": levels, "prediction_attempts": 1000 * attempts, "measured_packets": 1000, hit_rates.RATE: hits}
            made.append({"series": series, **row})
    return made


EARLIER = {levels: hit_rates.hit_rate("ss", levels, up_chance=0.5) for levels in range(2, 9)}


def earlier(two: dict[int, float]) -> Rows:
    return rows("two-up", "levels", two, hit_rates.RATE)


def one_up(straight: float, priority: float, spread: float = 0.0) -> Rows:
    both = {"one-up": straight, "one-up-priority": priority}
    return of_figure(
        "C2",
        [
            row
            for name, rate in both.items()
            for row in rows(name, "levels", {levels: rate + spread * (levels - 4) / 4 for levels in range(2, 7)}, hit_rates.RATE)
        ],
    )


def any_up(exact: float, noise: float = 0.001) -> Rows:
    made: Rows = []
    for name, rate in (("any-up", 0.54), ("distinct-up-ports", exact)):
        for seed in (-1, 0, 1):
            made += rows(name, "levels", dict.fromkeys((2, 3, 4), rate + seed * noise), hit_rates.RATE)
    return made


NORMAL_BYTES = {8: 56.25, 16: 59.1, 32: 64.9, 64: 76.4, 128: 99.4, 256: 145.4}


def sizes(parts: dict[int, float], normal: dict[int, float] | None = None) -> Rows:
    made: Rows = []
    for name, lower in (("normal", False), ("up", True)):
        for size, latency in (normal or NORMAL_BYTES).items():
            series = name if size < 256 else f"{name}-store-and-forward"
            made += rows(series, "flit_bytes", {size: latency * (1 - parts[size] if lower else 1)})
    return made


def four(on_chip_part: float, system_part: float) -> Rows:
    values = {"ocn-normal": 25.0, "ocn-ss": 25 * (1 - on_chip_part), "san-normal": 145.0, "san-up": 145 * (1 - system_part)}
    return [{"series": name, LATENCY: value, "prediction_hits": 2, "measured_packets": 1} for name, value in values.items()]


def leaving(forward: float = 20.0, wasted: int = 12, loaded: float = 21.0, saturation: tuple[float, float] = (0.47, 0.48)) -> Rows:
    """Wrong copies leave (and saturate at the first load), or are killed."""
    made = compared("forward", (24.7, forward), (0.46, saturation[0]), (24.7, loaded), prediction_wasted_flits=wasted)
    return made + compared("kill", (24.7, 19.9), (0.46, saturation[1]), (24.7, 20.5))


def causes(stages: float = 4.0, wait: float = 32.0, on_chip_saved: float = 2.0, down: int = 25) -> Rows:
    saved = {"san-stages": stages, "san-wait": wait, "san-both": stages + wait, "ocn-both": on_chip_saved}
    made = [{"series": name, LATENCY: 145.0} for name in ("san-normal", "ocn-normal")]
    for name, cycles in saved.items():
        ways = {f"prediction_chances_{way}": 100 for way in ("up", "turn", "down")}
        hits = {"prediction_hits_up": 100, "prediction_hits_turn": 33, "prediction_hits_down": down}
        counts = {"prediction_hits": 200, "measured_packets": 100}
        made.append({"series": name, LATENCY: 145.0 - 2 * cycles, **counts, **ways, **hits})
    return made


RIGHT: list[tuple[Judge, Rows]] = [
    (structure.one_cycle_at_a_hit, lone("normal", 3, 3) + lone("oracle", 3, 1)),
    (structure.one_cycle_at_a_hit_and_all_stages_at_a_miss, all_stages()),
    (structure.connections_are_one_to_one, mapped(MAP)),
    (structure.hints_tell_which_prediction_is_right, hinted()),
    (structure.no_wrong_packet_leaves, hinted()),
    (structure.the_fat_tree, tree()),
    (structure.on_chip_configuration, tree()),
    (structure.system_area_configuration, system()),
    (router.static_straight_cuts_latency, on_chip()),
    (hit_rates.hit_rates_rise_and_level_off, rates(SS, UP)),
    (hit_rates.levels_of_the_hit_rates, of_figure("F8", rates(SS, UP))),
    (router.more_stages_gain_more, pipelines(PREDICTED_STAGES, {3: 19.9, 5: 27.0, 7: 34.0})),
    (router.rises_past_fifteen_percent, of_figure("F10", system_curves(saturation=(0.15, 0.16)))),
    (hit_rates.rates_with_one_up_port, one_up(0.55, 0.4)),
    (router.steady_reduction, system_curves()),
    (router.reductions_by_flit_size, sizes(router.BY_FLIT_BYTES)),
    (hit_rates.more_chances_than_hits, chances()),
    (hit_rates.rates_of_the_earlier_paper, earlier(EARLIER)),
    (hit_rates.any_up_port_raises_the_rate, any_up(0.25)),
    (router.one_prediction_does_the_work_of_five, four(0.2, 0.232)),
    (router.longer_ways_gain_more, stages(PREDICTED_STAGES) + sizes(router.BY_FLIT_BYTES)),
    (router.wrong_copies_leave, leaving()),
    (router.causes_of_the_gain, causes()),
]
WRONG: list[tuple[Judge, Rows]] = [
    (structure.one_cycle_at_a_hit, lone("normal", 3, 3) + lone("oracle", 3, 2)),
    (structure.one_cycle_at_a_hit, lone("normal", 3, 4) + lone("oracle", 3, 1)),
    (structure.one_cycle_at_a_hit, changed(lone("normal", 3, 3) + lone("oracle", 3, 1), "oracle", prediction_hit_rate=0.9)),
    (structure.one_cycle_at_a_hit, []),
    (structure.one_cycle_at_a_hit_and_all_stages_at_a_miss, all_stages(hit=2)),
    (structure.one_cycle_at_a_hit_and_all_stages_at_a_miss, all_stages(miss=1)),
    (structure.one_cycle_at_a_hit_and_all_stages_at_a_miss, all_stages(normal=1)),
    (structure.one_cycle_at_a_hit_and_all_stages_at_a_miss, without(all_stages(), "ss")),
    (structure.connections_are_one_to_one, mapped(MAP[:-1])),
    (structure.connections_are_one_to_one, mapped([*MAP[1:], [0, 0, [3]]])),
    (structure.connections_are_one_to_one, mapped([*MAP[1:], [0, 0, [2, 3]]])),
    (structure.connections_are_one_to_one, mapped([*LEAVES, *([top, port, [port]] for top in (2, 3) for port in (0, 1))])),
    (structure.connections_are_one_to_one, []),
    (structure.hints_tell_which_prediction_is_right, hinted(pairs_right=2)),
    (structure.hints_tell_which_prediction_is_right, hinted()[:-1]),
    (structure.hints_tell_which_prediction_is_right, hinted(prediction_hint_bits=2)),
    (structure.hints_tell_which_prediction_is_right, []),
    (structure.no_wrong_packet_leaves, hinted(prediction_wasted_flits=1)),
    (structure.no_wrong_packet_leaves, hinted(copies=1)),
    (structure.no_wrong_packet_leaves, hinted(prediction_hits=3)),
    (structure.no_wrong_packet_leaves, []),
    (structure.the_fat_tree, tree(links=96)),
    (structure.the_fat_tree, tree(bisection_links=16)),
    (structure.on_chip_configuration, tree(routers=32)),
    (structure.on_chip_configuration, []),
    (structure.system_area_configuration, system(terminals=64)),
    (structure.system_area_configuration, system()[:1]),
    (router.static_straight_cuts_latency, on_chip(reduction=0.1)),
    (router.static_straight_cuts_latency, on_chip(reduction=0.3)),
    (router.static_straight_cuts_latency, on_chip(saturation=(0.47, 0.475))),
    (router.static_straight_cuts_latency, on_chip(loaded=0.1)),
    (router.static_straight_cuts_latency, on_chip(saturation=(0.1, 0.2))),
    (router.static_straight_cuts_latency, []),
    (hit_rates.hit_rates_rise_and_level_off, rates(SS, SS)),
    (hit_rates.hit_rates_rise_and_level_off, rates(dict.fromkeys(SS, SS[6]), UP)),
    (hit_rates.hit_rates_rise_and_level_off, rates({**SS, 3: SS[3] - 0.02}, UP)),
    (hit_rates.hit_rates_rise_and_level_off, rates({**SS, 6: SS[5] + 0.015}, UP)),
    (hit_rates.hit_rates_rise_and_level_off, rates({levels: rate for levels, rate in SS.items() if levels < 8}, UP)),
    (hit_rates.levels_of_the_hit_rates, of_figure("F8", rates(UP, UP))),
    (hit_rates.levels_of_the_hit_rates, of_figure("F8", rates({**SS, 8: SS[8] + 0.015}, UP))),
    (hit_rates.levels_of_the_hit_rates, []),
    (router.more_stages_gain_more, pipelines(PREDICTED_STAGES, {3: 19.9, 5: 21.0, 7: 22.0})),
    (router.more_stages_gain_more, pipelines({3: 19.9, 5: 19.0, 7: 28.0}, {3: 19.9, 5: 27.0, 7: 34.0})),
    (router.more_stages_gain_more, pipelines({stage: 0.79 * latency for stage, latency in STAGES.items()})),
    (router.more_stages_gain_more, pipelines({3: 19.9, 5: 24.0, 7: 38.0}, {3: 19.9, 5: 27.0, 7: 46.0})),
    (router.rises_past_fifteen_percent, of_figure("F10", system_curves(saturation=(0.04, 0.04)))),
    (router.rises_past_fifteen_percent, []),
    (hit_rates.rates_with_one_up_port, one_up(0.55, 0.3)),
    (hit_rates.rates_with_one_up_port, one_up(0.55, 0.4, spread=0.1)),
    (hit_rates.rates_with_one_up_port, []),
    (router.steady_reduction, system_curves(at_zero=0.1, loaded=0.1)),
    (router.steady_reduction, system_curves(loaded=0.1)),
    (router.steady_reduction, system_curves(saturation=(0.4, 0.2))),
    (router.steady_reduction, system_curves(saturation=(float("inf"), float("inf")))),
    (router.steady_reduction, []),
    (router.reductions_by_flit_size, sizes({**router.BY_FLIT_BYTES, 64: 0.16})),
    (router.reductions_by_flit_size, sizes({**router.BY_FLIT_BYTES, 8: 0.0, 16: 0.0})),
    (router.reductions_by_flit_size, sizes(router.BY_FLIT_BYTES, {**NORMAL_BYTES, 256: 90.0})),
    (router.reductions_by_flit_size, without(sizes(router.BY_FLIT_BYTES), "up-store-and-forward")),
    (hit_rates.more_chances_than_hits, chances(rate=1.6)),
    (hit_rates.more_chances_than_hits, without(chances(), "up")),
    (hit_rates.rates_of_the_earlier_paper, earlier({**EARLIER, 8: 0.39})),
    (hit_rates.rates_of_the_earlier_paper, earlier({**EARLIER, 2: 0.325, 8: 0.379})),
    (hit_rates.rates_of_the_earlier_paper, earlier({levels: rate for levels, rate in EARLIER.items() if levels < 8})),
    (hit_rates.any_up_port_raises_the_rate, any_up(0.538)),
    (hit_rates.any_up_port_raises_the_rate, any_up(0.4, noise=0.1)),
    (hit_rates.any_up_port_raises_the_rate, []),
    (router.one_prediction_does_the_work_of_five, four(0.2, 0.27)),
    (router.one_prediction_does_the_work_of_five, without(four(0.2, 0.2), "san-up")),
    (router.longer_ways_gain_more, stages({3: 19.9, 5: 24.0, 7: 35.0}) + sizes(router.BY_FLIT_BYTES)),
    (router.longer_ways_gain_more, stages(PREDICTED_STAGES) + sizes(dict.fromkeys(router.BY_FLIT_BYTES, 0.2))),
    (router.longer_ways_gain_more, stages(PREDICTED_STAGES)),
    (router.wrong_copies_leave, leaving(forward=24.5)),
    (router.wrong_copies_leave, leaving(loaded=24.5)),
    (router.wrong_copies_leave, leaving(wasted=0)),
    (router.wrong_copies_leave, leaving(loaded=20.5)),
    (router.wrong_copies_leave, leaving(saturation=(0.48, 0.48))),
    (router.wrong_copies_leave, []),
    (router.causes_of_the_gain, causes(stages=1.0)),
    (router.causes_of_the_gain, causes(wait=3.0)),
    (router.causes_of_the_gain, causes(down=60)),
    (router.causes_of_the_gain, []),
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
    judges = {figure.judge for figure in PAPERS["prediction-router"].figures if figure.engine != "none" and figure.kind != "S"}
    assert judges == {judge for judge, _ in RIGHT} == {judge for judge, _ in WRONG}


def test_the_rows_of_the_paper_are_complete() -> None:
    expected = [*(f"F{number}" for number in range(1, 12)), *(f"C{number}" for number in range(1, 11)), "T1", "T2"]
    expected += [f"S{number}" for number in range(1, 6)]
    assert sorted(figure.number for figure in PAPERS["prediction-router"].figures) == sorted(expected)


def test_studies_print_what_they_ask() -> None:
    row = {"pattern": "uniform", LATENCY: 25.0}
    learnt = {**row, "series": "finite-context", "entries": 16, "history": 2, LATENCY: 20.0, "prediction_hit_rate": 0.5}
    gains = router.what_learning_gains(Table([{**row, "series": "normal"}, learnt]))
    assert "uniform, finite-context 16 lines, 2 outputs: hit rate 0.500, reduction 0.200" in gains.measured
    levels = {"leaf": "latest-port", "middle": "none", "top": "none"}
    chosen = [{"series": "normal", LATENCY: 25.0}, {"series": "levels", **levels, LATENCY: 20.0, "prediction_hit_rate": 0.3}]
    best = router.a_predictor_for_each_level(Table(chosen))
    assert "latest-port, none, none: hit rate 0.300, reduction 0.200, table bits of a port 3" in best.measured
    time = router.in_nanoseconds(Table([*of_figure("F9", pipelines(PREDICTED_STAGES)), *of_figure("F10", system_curves())]))
    bits = router.what_hint_bits_cost(Table(with_bits({0: 60.0, 1: 66.0, 2: 72.0})))
    assert {gains.verdict, best.verdict, bits.verdict, time.verdict} == {"report"}
    for cycles, lower in ((0, "0.2500"), (1, "0.1750"), (2, "0.1000")):
        assert f"hint bits of {cycles} cycles on a link: reductions over bytes of a flit 64: {lower}" in bits.measured
    # 21 % in cycles are 1 - 0.79 / 0.94 in time.
    assert f"3: {1 - (19.9 / 24.7) / 0.94:.3f}" in time.measured


def with_bits(latencies: dict[int, float]) -> Rows:
    """Flits of 64 bytes without prediction, and with hint bits that take so many cycles."""
    made = rows("normal", "flit_bytes", {64: 80.0})
    return made + [row for cycles, latency in latencies.items() for row in rows("up", "flit_bytes", {64: latency}, hint_cycles=cycles)]


def test_hint_bits_cost_their_time_on_every_link() -> None:
    """A packet for another leaf crosses four links, so bits of two cycles make it later by eight."""

    def latency(hint_cycles: int) -> float:
        routers = {"predictor": "up-priority", "on_miss": "hint", "hint_cycles": hint_cycles, "pipeline": ["RC", "VSA", "ST"]}
        experiment = {
            "network": {"topology": "fat-tree", "up": 4, "down": 4, "levels": 2},
            "routing": {"algorithm": "nca", "up_port": "straight"},
            "router": routers,
            "traffic": {"pattern": "tornado", "process": "batch", "batch_packets": 1, "packet_flits": 4},
        }
        return float(kasuri.run(experiment)[0][LATENCY])

    assert [latency(cycles) - latency(0) for cycles in router.HINT_CYCLES] == [0, 4, 8]


def test_the_closed_forms_are_those_of_the_model() -> None:
    """Values of the model's tables for (4, 4, r) and (2, 4, r) trees."""
    assert [round(SS[levels], 4) for levels in (1, 2, 3, 6)] == [0.3333, 0.4872, 0.5412, 0.5887]
    assert [round(UP[levels], 4) for levels in (1, 2, 3, 6)] == [0.0, 0.3077, 0.3871, 0.4516]
    assert [round(EARLIER[levels], 3) for levels in (2, 3, 6)] == [0.333, 0.348, 0.363]
    latencies = [round(router.on_chip_latency(stages, predicted), 1) for stages in (3, 7) for predicted in (False, True)]
    assert latencies == [24.7, 19.9, 42.4, 28.0]


def test_a_comparison_finds_saturation_loads_under_one_bar_and_measures_below_them() -> None:
    """Routers whose latency is 20 / (1 - load / limit): three times 20 is reached at two thirds of the limit."""

    def run(experiment: Mapping[str, Any], name: str) -> Rows:
        load, predicted = experiment["traffic"]["load"], experiment["router"].get("predictor") is not None
        limit, zero = (0.6, 16.0) if predicted else (0.5, 20.0)
        latency = zero / (1 - load / limit) if load < limit else None
        seeds = experiment.get("sweep", {}).get("measure.seed", [1])
        return [{LATENCY: latency, "accepted_throughput_mean": load, "name": name} for _ in seeds]

    asked = {"zero_load": 1e-9, "zero_cycles": 10, "least": 0.1, "parts": [0.5, 0.8], "seeds": [1, 2]}
    experiment = {"router": {"predictor": "oracle", "on_miss": "kill"}, "comparison": asked}
    table = router.Compared(Table(comparison.compare(experiment, run)))
    # 60 = 16 / (1 - load / 0.6) at 0.44.
    for side, load in (("normal", 0.5 * 2 / 3), ("predicted", 0.44)):
        assert 0 <= table.saturation(side) - load <= 0.005
    assert table.reduction_at_zero_load() == pytest.approx(0.2)
    most = table.saturation("normal")
    assert list(table.reductions(0.8 * most)) == [0.5 * most, 0.8 * most]


def test_a_comparison_runs_each_rival_in_place_of_the_predicting_router() -> None:
    """Rivals have the keys of the normal router and their own, and one bar, that of the normal one: three times 20."""

    def run(experiment: Mapping[str, Any], name: str) -> Rows:
        load, zero = experiment["traffic"]["load"], experiment["router"].get("zero", 20.0)
        assert experiment["router"]["buffer_flits"] == 4 and "predictor" not in experiment["router"], name
        latency = zero / (1 - load) if load < 1 else None
        return [{LATENCY: latency, "accepted_throughput_mean": load, "name": name}]

    asked = {"zero_load": 1e-9, "zero_cycles": 10, "least": 0.1, "loads": [0.5], "seeds": [1], "rivals": {"fast": {"zero": 10.0}}}
    experiment = {"router": {"buffer_flits": 4, "predictor": "oracle"}, "comparison": asked}
    table = router.Compared(Table(comparison.compare(experiment, run)))
    assert [table.zero_load(name) for name in ("normal", "fast")] == pytest.approx([20.0, 10.0])
    for name, load in (("normal", 2 / 3), ("fast", 5 / 6)):
        assert 0 <= table.saturation(name) - load <= 0.005
        assert list(table.curve(name)) == [0.5]


def rival(series: str, latencies: dict[str, float], saturation: float = 0.4) -> Rows:
    made: Rows = []
    for name, latency in latencies.items():
        base = {"series": series, "router": name}
        made += [{**base, "place": "zero", LATENCY: latency}, {**base, "place": "saturation", "saturation_load": saturation}]
        made.append({**base, "place": "curve", LATENCY: 2 * latency, "traffic.load": 0.2})
    return made


def test_the_rivals_are_told_side_by_side() -> None:
    table = rival("uniform", {"normal": 20.0, "express": 15.0, "one-cycle": 10.0}) + rival("neighbor", {"normal": 20.0, "express": 19.0})
    verdict = rivals.rivals_side_by_side(Table(table))
    assert verdict.verdict == "report"
    told = "uniform, express: latency at zero load 15.00, reduction 0.250; over load 0.2: 30.0; saturation load 0.400"
    assert told in verdict.measured
    # A cycle that is half again as long: 10 cycles are 15, and a load of 0.4 is one of 0.267.
    assert "1.5: 0.250 and saturation loads" in verdict.measured
    assert "1.5: 0.267" in verdict.measured
    assert "by express ways: uniform: 0.250, neighbor: 0.050" in verdict.measured


def test_express_ways_shorten_straight_ways_alone() -> None:
    """Packets to the end of a line of four routers pass 2, 1 and 0 of them, which saves two cycles each; in a square none is."""

    def latency(predictor: str, dimensions: list[int]) -> float:
        experiment = {
            "network": {"topology": "mesh", "dimensions": dimensions},
            "routing": {"algorithm": "dimension-order"},
            "router": {"predictor": predictor, "pipeline": ["RC", "VSA", "ST"]},
            "traffic": {"pattern": "hotspot", "terminals": [3], "load": 0.0005},
            "measure": {"warmup": 100, "cycles": 400_000},
        }
        return float(kasuri.run(experiment)[0][LATENCY])

    assert latency("none", [4]) - latency("express", [4]) == pytest.approx(2, rel=0.1)
    assert latency("none", [2, 2]) == latency("express", [2, 2])


# --- columns from vectors, on runs -------------------------------------------------------------------------------------------------


def run(columns: Any, hot: int, **keys: Any) -> dict[str, Any]:
    """Run light traffic to one terminal of a (2, 2, 3) tree, and add the columns."""
    experiment = {
        "network": {"topology": "fat-tree", "up": 2, "down": 2, "levels": 3},
        "routing": {"algorithm": "nca", "up_port": "straight"},
        "router": {"pipeline": ["RC", "VSA", "ST"], "virtual_channels": 2, **keys.pop("router")},
        "traffic": {"pattern": "hotspot", "terminals": [hot], **keys},
        "measure": {"warmup": 1000, "cycles": 40_000, "seed": hot},
    }
    results = kasuri.run(experiment)
    row = {"up": 2, "down": 2, "levels": 3, "hot": hot, **results[0]}
    return {"series": "ss", **row, **columns(row, partial(results.vector, row["key"]))}


def test_connections_show_in_runs_with_static_straight_and_not_with_up_priority() -> None:
    light = {"load": 0.01, "packet_flits": 5, "process": "bernoulli"}
    straight = [run(structure.connections, hot, router={"predictor": "static-straight"}, **light) for hot in range(8)]
    verdict = structure.connections_are_one_to_one(Table(straight))
    assert verdict.verdict == "pass", verdict.measured
    assert "at the top: 0 to 1, 1 to 0" in verdict.measured
    up = [run(structure.connections, hot, router={"predictor": "up-priority"}, **light) for hot in range(8)]
    assert structure.connections_are_one_to_one(Table(up)).verdict == "fail"


def test_hints_are_right_for_every_source_of_a_run() -> None:
    one = {"packet_flits": 1, "process": "batch", "batch_packets": 1}
    row = run(structure.hints, 5, router={"predictor": "up-priority", "on_miss": "hint"}, **one)
    assert (row["pairs"], row["pairs_right"], row["pairs_up"]) == (7, 7, 6)
    assert (row["copies"], row["prediction_wasted_flits"], row["prediction_hint_bits"]) == (0, 0, 2)


def test_the_shape_of_a_tree() -> None:
    row = structure.shape({"up": 4, "down": 4, "levels": 3}, lambda name: pytest.fail(name))
    assert row == {"ports_up": [4], "ports_down": [4], "tree_levels": 3, "links": 128, "bisection_links": 32}
