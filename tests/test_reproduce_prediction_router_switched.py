"""For each judge of the paper on prediction routers, runs as the figure has them and runs without what the figure looks at.

The experiments are the figures' own, at fewer places, on smaller trees or for fewer cycles. Rows of trees that are too large for a test are
those of the closed forms.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

import switched
from kasuri_papers import PAPERS
from kasuri_papers import prediction_hit_rates as hit_rates
from kasuri_papers import prediction_rivals as rivals
from kasuri_papers import prediction_router as router
from kasuri_papers import prediction_structure as structure
from kasuri_papers.experiments import Point
from kasuri_papers.figure import Table, Verdict

Rows = list[dict[str, Any]]
Judge = Callable[[Table], Verdict]
LATENCY, RATE = router.LATENCY, hit_rates.RATE

#: Judges with a test here.
JUDGES: set[Judge] = set()

#: A router without prediction, and routers with other predictors than the figure's.
NONE = {"predictor": "none", "predictor_fold": None, "predictor_match": None, "on_miss": None}
ORACLE = {"predictor": "oracle", "predictor_fold": None}
UP_PRIORITY = {"predictor": "up-priority", "predictor_fold": None}
STRAIGHT = {"predictor": "static-straight"}
#: Static-straight that never hits at the top.
NO_FOLD = {"predictor_fold": "back"}


def looks_at(judge: Judge) -> pytest.MarkDecorator:
    """Hand a judge to a test in which what the judge looks at is switched off."""
    JUDGES.add(judge)
    return pytest.mark.parametrize("judge", [judge], ids=lambda given: given.__name__)


def points(number: str, *names: str, **sections: Any) -> list[Point]:
    return [point for name in names for point in switched.points("prediction-router", number, name, **sections)]


def at(chosen: Iterable[Point], **places: Sequence[Any]) -> list[Point]:
    """Keep the points whose variables have one of the given values."""
    return [point for point in chosen if all(point.variables[name] in values for name, values in places.items())]


def on_tree(chosen: Iterable[Point], **shape: int) -> list[Point]:
    """Put another fat tree in place of a figure's."""
    return [
        dataclasses.replace(
            point,
            variables={**point.variables, **shape},
            experiment={**point.experiment, "network": {**point.experiment["network"], **shape}},
        )
        for point in chosen
    ]


def shorter(chosen: Iterable[Point], part: float) -> list[Point]:
    """Measure for a part of a figure's cycles, at least for 10 000."""
    return [
        dataclasses.replace(
            point,
            experiment={
                **point.experiment,
                "measure": {**point.experiment["measure"], "cycles": max(10_000, int(part * point.experiment["measure"]["cycles"]))},
            },
        )
        for point in chosen
    ]


def table(folder: Path, *chosen: Point, figure: str = "", columns: Any = None) -> Rows:
    rows = switched.table(folder, chosen, columns)
    return [{**row, "figure": figure} for row in rows]


def passes(judge: Judge, rows: Rows) -> str:
    verdict = judge(Table(rows))
    assert verdict.verdict == "pass", verdict.measured
    return verdict.measured


def fails(judge: Judge, rows: Rows, *parts: str) -> str:
    """Have a judge fail for these reasons, told by how their text begins."""
    verdict = judge(Table(rows))
    assert verdict.verdict == "fail", verdict.measured
    for part in parts:
        assert f"NOT: {part}" in verdict.measured, verdict.measured
    return verdict.measured


def told(judge: Judge, rows: Rows) -> str:
    """Give what a study prints."""
    verdict = judge(Table(rows))
    assert verdict.verdict == "report", verdict.measured
    return verdict.measured


def comparison(least: float, zero_cycles: int = 100_000, **where: Any) -> dict[str, Any]:
    """Give the keys with which a comparison takes half a second."""
    return {
        "comparison": {"seeds": [1], "least": least, "zero_cycles": zero_cycles, **where},
        "measure": {"warmup": 300, "cycles": 1000},
    }


# --- F1, F2: the cycles of a head in a router ----------------------------------------------------------------------------------------


@looks_at(structure.one_cycle_at_a_hit)
def test_heads_take_three_cycles_where_nothing_is_predicted(judge: Judge, tmp_path: Path) -> None:
    normal = table(tmp_path / "normal", *points("F1", "normal"))
    passes(judge, normal + table(tmp_path / "oracle", *points("F1", "oracle")))
    none = table(tmp_path / "none", *points("F1", "oracle", router=NONE))
    fails(judge, normal + none, "oracle: cycles of a head in each further router [3.0, 3.0]", "hit rate")
    # Static-straight is right on the way up alone.
    straight = table(tmp_path / "straight", *points("F1", "oracle", router=STRAIGHT))
    fails(judge, normal + straight, "oracle: cycles", "hit rate over levels 1: 0.500")


@looks_at(structure.one_cycle_at_a_hit_and_all_stages_at_a_miss)
def test_hits_save_nothing_without_an_oracle_and_an_oracle_never_misses(judge: Judge, tmp_path: Path) -> None:
    normal = table(tmp_path / "normal", *points("F2", "normal"))
    oracle = table(tmp_path / "oracle", *points("F2", "oracle"))
    straight = table(tmp_path / "straight", *points("F2", "ss"))
    passes(judge, normal + oracle + straight)
    none = table(tmp_path / "none", *points("F2", "oracle", router=NONE))
    slow = [f"{stages} stages, oracle: cycles of a head in each further router [{stages}.0, {stages}.0]" for stages in router.STAGES]
    fails(judge, normal + none + straight, *slow)
    right = [{**row, "series": "ss"} for row in oracle]
    fails(judge, normal + oracle + right, *(f"{stages} stages, [0, 0] misses" for stages in router.STAGES))


# --- F3 to F5: connections, hint bits ------------------------------------------------------------------------------------------------


@looks_at(structure.connections_are_one_to_one)
def test_without_the_fold_nothing_is_connected_at_the_top(judge: Judge, tmp_path: Path) -> None:
    def connected(name: str, **changed: Any) -> Rows:
        chosen = on_tree(at(points("F3", "ss", **changed), hot=range(8)), up=2, down=2, levels=3)
        return table(tmp_path / name, *chosen, columns=structure.connections)

    passes(judge, connected("fold"))
    # Eight routers below the top hit at all of their inputs; the four at the top at none.
    back = fails(judge, connected("back", router=NO_FOLD), "8 of 12 routers connect all inputs")
    assert "at the top:  (no input" in back
    fails(judge, connected("up", router=UP_PRIORITY), "0 of 12 routers connect all inputs")


def hinted(folder: Path, number: str, **changed: Any) -> Rows:
    """Run F4 or F5 on a (4, 4, 2) tree."""
    chosen = on_tree(at(points(number, "up", **changed), hot=range(16)), up=4, down=4)
    return table(folder, *chosen, columns=structure.hints)


@looks_at(structure.hints_tell_which_prediction_is_right)
def test_packets_that_go_down_pass_on_the_predictions_of_an_oracle(judge: Judge, tmp_path: Path) -> None:
    assert "240 pairs (all 240)" in passes(judge, hinted(tmp_path / "hint", "F4"))
    fails(judge, hinted(tmp_path / "oracle", "F4", router=ORACLE), "hint >= level exactly if the packet passed on the prediction")
    fails(judge, hinted(tmp_path / "kill", "F4", router={"on_miss": "kill"}), "hint bits [0]")


@looks_at(structure.no_wrong_packet_leaves)
def test_without_hint_bits_wrong_copies_cross_the_switch_and_leave(judge: Judge, tmp_path: Path) -> None:
    passes(judge, hinted(tmp_path / "hint", "F5"))
    # Each of 16 terminals gets packets from 3 others of its leaf, whose guesses are wrong.
    killed = fails(judge, hinted(tmp_path / "kill", "F5", router={"on_miss": "kill"}), "wrong copies that crossed a switch: 48")
    assert "wrong flits that left a port: 0 (0)" in killed
    left = hinted(tmp_path / "forward", "F5", router={"on_miss": "forward"})
    fails(judge, left, "wrong copies that crossed a switch: 48", "wrong flits that left a port: 48")
    fails(judge, hinted(tmp_path / "oracle", "F5", router=ORACLE), "wrong guesses 0")


# --- F6, T1, T2: configurations ------------------------------------------------------------------------------------------------------

#: So little traffic that nothing is sent.
SILENT = {"load": 1e-9}


@looks_at(structure.the_fat_tree)
def test_a_tree_with_two_ports_up_has_fewer_links(judge: Judge, tmp_path: Path) -> None:
    whole = shorter(points("F6", "normal"), 0.02)
    passes(judge, table(tmp_path / "whole", *whole, columns=structure.shape))
    thin = table(tmp_path / "thin", *on_tree(whole, up=2), columns=structure.shape)
    # 16 leaves have 2 links up each, and 8 routers above them: 32 + 16.
    fails(judge, thin, "normal: ports up [[2]]", "normal: links [48]", "normal: bisection links")
    silent = table(tmp_path / "silent", *shorter(points("F6", "normal", traffic=SILENT), 0.02), columns=structure.shape)
    fails(judge, silent, "normal: it runs, mean latency at zero load [None]")


@looks_at(structure.on_chip_configuration)
def test_a_tree_with_two_ports_up_has_fewer_switches(judge: Judge, tmp_path: Path) -> None:
    whole = shorter(points("T1", "normal"), 0.02)
    passes(judge, table(tmp_path / "whole", *whole))
    # 16 leaves, 8 routers above them and 4 at the top.
    fails(judge, table(tmp_path / "thin", *on_tree(whole, up=2)), "normal: routers [28]")
    silent = table(tmp_path / "silent", *shorter(points("T1", "normal", traffic=SILENT), 0.02))
    fails(judge, silent, "normal: it runs, mean latency at zero load [None]")


@looks_at(structure.system_area_configuration)
def test_half_as_many_ports_have_a_quarter_of_the_terminals(judge: Judge, tmp_path: Path) -> None:
    both = shorter(points("T2", "store-and-forward", "cut-through"), 0.1)
    whole = table(tmp_path / "whole", *both)
    passes(judge, whole)
    parts = [f"{name}: {what}" for name in ("store-and-forward", "cut-through") for what in ("terminals [64]", "routers [16]")]
    fails(judge, table(tmp_path / "half", *on_tree(both, up=8, down=8)), *parts)
    # What is not cut through waits in three routers, or one, for 3 further flits of 8 cycles each.
    [cut] = [row[LATENCY] for row in whole if row["series"] == "cut-through"]
    [stored] = table(tmp_path / "stored", *shorter(points("T2", "cut-through", router={"switching": "store-and-forward"}), 0.1))
    assert stored[LATENCY] - cut == pytest.approx(3 * 8 * (3 * 240 + 16) / 256, rel=0.02)


# --- F7, F9, F10, C6, C7: latency over load -----------------------------------------------------------------------------------------


@looks_at(router.static_straight_cuts_latency)
def test_without_static_straight_latency_and_saturation_are_those_of_the_normal_router(judge: Judge, tmp_path: Path) -> None:
    short = comparison(0.3, parts=[0.4, 0.8])
    passes(judge, table(tmp_path / "usual", *points("F7", "ss", **short)))
    none = table(tmp_path / "none", *points("F7", "ss", router=NONE, **short))
    fails(judge, none, "reduction at zero load 0.0000", "reduction up to 80 %", "saturation load")
    # Guesses on the way up are not all that it gains.
    up = table(tmp_path / "up", *points("F7", "ss", router=UP_PRIORITY, **short))
    fails(judge, up, "reduction at zero load 0.1", "reduction up to 80 %")


@looks_at(router.more_stages_gain_more)
def test_stages_cost_all_of_their_cycles_without_prediction(judge: Judge, tmp_path: Path) -> None:
    short = comparison(0.3, loads=[0.1, 0.2, 0.3])
    passes(judge, table(tmp_path / "usual", *points("F9", "ss", **short)))
    none = table(tmp_path / "none", *points("F9", "ss", router=NONE, **short))
    failed = fails(judge, none, "of that without prediction", "reductions over load: 3 stages 0.0: 0.000")
    assert "at zero load: 1.000 (< 1)" in failed


@looks_at(router.steady_reduction)
def test_without_the_wait_a_hit_saves_little_in_the_system_area_network(judge: Judge, tmp_path: Path) -> None:
    short = comparison(0.03, zero_cycles=50_000, parts=[0.4, 0.8])
    passes(judge, table(tmp_path / "usual", *points("F10", "up", **short)))
    stages = table(tmp_path / "stages", *points("F10", "up", router={"hit_saves": "stages"}, **short))
    fails(judge, stages, "reduction at zero load 0.0")
    none = table(tmp_path / "none", *points("F10", "up", router=NONE, **short))
    fails(judge, none, "reduction at zero load 0.0000")


@looks_at(router.rises_past_fifteen_percent)
def test_buffers_and_the_time_of_a_flit_on_a_link_decide_where_latency_rises(judge: Judge, tmp_path: Path) -> None:
    """The paper's buffers of one packet carry a third of the load; three carry it, but not where a flit occupies a link for 32 cycles."""

    def saturated(name: str, least: float, buffers: int, period: int = 1) -> Rows:
        links = {"channel_period": period, "terminal_channel_period": period}
        short = comparison(least, zero_cycles=50_000, loads=[0.01])
        chosen = points("F10", "up", router={"buffer_flits": buffers}, network=links, **short)
        return table(tmp_path / name, *chosen, figure="F10")

    both = ("saturation load, normal 0.0", "saturation load, predicted 0.0")
    passes(judge, saturated("three", 0.12, buffers=3))
    fails(judge, saturated("one", 0.03, buffers=1), *both)
    fails(judge, saturated("occupied", 0.03, buffers=3, period=32), *both)


@looks_at(router.wrong_copies_leave)
def test_killed_copies_leave_no_port_and_cost_nobody(judge: Judge, tmp_path: Path) -> None:
    """What copies cost shows next to saturation; saturation loads are less than a step of their search apart, and made up here."""

    def measured(name: str, series: str, saturation: float) -> Rows:
        short = {**comparison(0.45, loads=[0.45]), "measure": {"warmup": 500, "cycles": 4000}}
        rows = table(tmp_path / name, *points("C6", series, **short))
        return [{**row, "saturation_load": saturation} if row["place"] == "saturation" else row for row in rows]

    forward, kill = measured("forward", "forward", 0.5), measured("kill", "kill", 0.51)
    passes(judge, forward + kill)
    under_load = [router.Compared(Table(rows)).curve("predicted")[0.45] for rows in (forward, kill)]
    assert under_load[0] > under_load[1]
    killed = [{**row, "series": "forward"} for row in kill]
    fails(judge, killed + kill, "channel flits of dropped copies [0]", "latency 0.45")


# --- F8, C1, C2, C3, C8, C9: hit rates ----------------------------------------------------------------------------------------------


def closed(series: str, levels: Iterable[int], figure: str = "", **known: Any) -> Rows:
    """Give the hit rates of large trees by the closed form."""
    predictor = "up" if series == "up" else "ss"
    return [{"series": series, "levels": place, "figure": figure, RATE: hit_rates.hit_rate(predictor, place, **known)} for place in levels]


@looks_at(hit_rates.hit_rates_rise_and_level_off)
def test_static_straight_without_its_fold_is_no_better_on_a_single_router(judge: Judge, tmp_path: Path) -> None:
    large = closed("ss", range(6, 9)) + closed("up", range(6, 9))

    def measured(name: str, series: str, **changed: Any) -> Rows:
        return table(tmp_path / name, *shorter(at(points("F8", series, **changed), levels=range(1, 6)), 0.02))

    straight, up = measured("straight", "ss"), measured("up", "up")
    passes(judge, straight + up + large)
    fails(judge, measured("back", "ss", router=NO_FOLD) + up + large, "static-straight above up-priority at every size")
    fails(judge, measured("same", "ss", router=UP_PRIORITY) + up + large, "static-straight above up-priority at every size")
    # Where the drawn port up alone is right, rates do not rise with the levels.
    exact = measured("exact", "ss", router={"predictor_match": "exact"})
    fails(judge, exact + up + large, "ss over levels", "static-straight above up-priority at every size")


@looks_at(hit_rates.levels_of_the_hit_rates)
def test_both_rates_are_lower_where_one_port_up_alone_is_right(judge: Judge, tmp_path: Path) -> None:
    large = closed("ss", (7, 8), figure="F8") + closed("up", (7, 8), figure="F8")

    def measured(name: str, **changed: Any) -> Rows:
        return large + table(tmp_path / name, *shorter(at(points("F8", "ss", "up", **changed), levels=[6]), 0.04), figure="F8")

    passes(judge, measured("usual"))
    fails(judge, measured("exact", router={"predictor_match": "exact"}), "ss at 6 levels 0.2", "up at 6 levels 0.1")
    none = [row for row in measured("none", router=NONE) if row["series"] == "up" or row["levels"] > 6]
    fails(judge, none, "ss at 6 levels nan", "up at 6 levels nan")


@looks_at(hit_rates.more_chances_than_hits)
def test_all_chances_are_hits_with_an_oracle_and_no_predictor_has_more_than_itself(judge: Judge, tmp_path: Path) -> None:
    large = closed("ss", [6]) + closed("up", [6])

    def measured(name: str, series: str, **changed: Any) -> Rows:
        return table(tmp_path / name, *shorter(at(points("C1", series, **changed), levels=range(2, 6)), 0.02))

    def chances(text: str) -> list[float]:
        [ratios] = re.findall(r"chances, ss/up ([^;]*);", text)
        return [float(ratio) for ratio in re.findall(r": ([\d.]+)", ratios)]

    straight, up = measured("straight", "ss"), measured("up", "up")
    assert min(chances(passes(judge, straight + up + large))) > 2
    fails(judge, measured("oracle", "ss", router=ORACLE) + up + large, "hit rates, ss/up 2: 3.")
    # The ratio of the chances is told and not judged.
    same = [{**row, "series": "up"} for row in straight]
    assert chances(judge(Table(straight + same + large)).measured) == [1, 1, 1, 1]


@looks_at(hit_rates.rates_of_the_earlier_paper)
def test_rates_with_two_ports_up_are_too_high_where_either_is_right(judge: Judge, tmp_path: Path) -> None:
    large = closed("two-up", (6, 7, 8), up_chance=0.5)

    def measured(name: str, **changed: Any) -> Rows:
        return large + table(tmp_path / name, *shorter(at(points("C2", "two-up", **changed), levels=range(2, 6)), 0.05))

    passes(judge, measured("drawn"))
    fails(judge, measured("any", router={"predictor_match": "any-up"}), "(2, 4, r) over levels 2: 0.4", "spread")


@looks_at(hit_rates.rates_with_one_up_port)
def test_rates_with_one_port_up_follow_the_predictor(judge: Judge, tmp_path: Path) -> None:
    """Nothing that is known of the earlier paper gives its 40 %, so the judge fails; what it measures are the rates of the predictors."""

    def means(name: str, **changed: Any) -> dict[str, float]:
        chosen = shorter(points("C2", "one-up", "one-up-priority", **changed), 0.05)
        measured = fails(judge, table(tmp_path / name, *chosen, figure="C2"), "one of them")
        return {series: float(mean) for series, mean in re.findall(r"(one-up\S*) 2: .*?, mean ([\d.]+)", measured)}

    def expected(predictor: str, fold: bool = True) -> float:
        return sum(hit_rates.hit_rate(predictor, levels, fold=fold) for levels in range(2, 7)) / 5

    assert means("usual") == pytest.approx({"one-up": expected("ss"), "one-up-priority": expected("up")}, abs=0.01)
    assert means("back", router={**STRAIGHT, **NO_FOLD})["one-up"] == pytest.approx(expected("ss", fold=False), abs=0.01)
    same = means("same", router=UP_PRIORITY)
    assert same["one-up"] == same["one-up-priority"]


@looks_at(hit_rates.any_up_port_raises_the_rate)
def test_nothing_rises_where_the_drawn_port_up_is_the_only_right_one(judge: Judge, tmp_path: Path) -> None:
    drawn = table(tmp_path / "drawn", *shorter(points("C3", "distinct-up-ports"), 0.05))
    passes(judge, drawn + table(tmp_path / "any", *shorter(points("C3", "any-up"), 0.05)))
    exact = table(tmp_path / "exact", *shorter(points("C3", "any-up", router={"predictor_match": "exact"}), 0.05))
    fails(judge, drawn + exact, *(f"{levels} levels: higher by 0.0000" for levels in (2, 3, 4)))


# --- F11, C4, C5, C10: reductions at zero load --------------------------------------------------------------------------------------

BY_SIZE = ("", "-store-and-forward")


def by_size(folder: Path, number: str, series: str, **changed: Any) -> Rows:
    """Run the system-area network with flits of 8 to 256 bytes."""
    return table(folder, *shorter(points(number, *(f"{series}{switching}" for switching in BY_SIZE), **changed), 0.1))


@looks_at(router.reductions_by_flit_size)
def test_without_the_wait_large_flits_gain_least(judge: Judge, tmp_path: Path) -> None:
    normal = by_size(tmp_path / "normal", "F11", "normal")
    passes(judge, normal + by_size(tmp_path / "up", "F11", "up"))
    fails(judge, normal + by_size(tmp_path / "none", "F11", "up", router=NONE), "reductions 8: 0.0000", "beside the paper's")
    stages = fails(judge, normal + by_size(tmp_path / "stages", "F11", "up", router={"hit_saves": "stages"}), "reductions 8: 0.06")
    assert ", 256: 0.02" in stages


@looks_at(router.one_prediction_does_the_work_of_five)
def test_one_prediction_without_the_wait_or_five_on_the_way_up_alone_gain_less(judge: Judge, tmp_path: Path) -> None:
    normal = table(tmp_path / "normal", *shorter(points("C4", "ocn-normal", "san-normal"), 0.1))
    on_chip, system = (table(tmp_path / name, *shorter(points("C4", name), 0.1)) for name in ("ocn-ss", "san-up"))
    passes(judge, normal + on_chip + system)
    stages = table(tmp_path / "stages", *shorter(points("C4", "san-up", router={"hit_saves": "stages"}), 0.1))
    assert ", system-area 0.02" in fails(judge, normal + on_chip + stages, "reduction on chip")
    up = table(tmp_path / "up", *shorter(points("C4", "ocn-ss", router=UP_PRIORITY), 0.1))
    [lower] = re.findall(r"reduction on chip ([\d.]+)", fails(judge, normal + up + system, "reduction on chip"))
    # Each router below the turn saves two of its three cycles.
    assert float(lower) == pytest.approx(2 * (hit_rates.turn(3)[0] - 1) / router.on_chip_latency(3, False), abs=0.005)


@looks_at(router.longer_ways_gain_more)
def test_nothing_grows_without_prediction_or_without_the_wait(judge: Judge, tmp_path: Path) -> None:
    def by_stages(name: str, series: str, **changed: Any) -> Rows:
        return table(tmp_path / name, *shorter(points("C5", f"{series}-zero-load", **changed), 0.1))

    normal = by_stages("normal-stages", "normal") + by_size(tmp_path / "normal", "C5", "normal")
    straight, up = by_stages("straight", "ss"), by_size(tmp_path / "up", "C5", "up")
    passes(judge, normal + straight + up)
    fails(judge, normal + by_stages("none", "ss", router=NONE) + up, "reductions over stages: 3: 0.0000")
    stages = by_size(tmp_path / "stages", "C5", "up", router={"hit_saves": "stages"})
    fails(judge, normal + straight + stages, "reductions over bytes of a flit: 8: 0.06")


@looks_at(router.causes_of_the_gain)
def test_a_cause_that_is_switched_off_saves_nothing(judge: Judge, tmp_path: Path) -> None:
    names = ("san-normal", "san-stages", "san-wait", "san-both", "ocn-normal", "ocn-both")
    usual = table(tmp_path / "usual", *shorter(points("C10", *names), 0.1))
    # Four stages are skipped; the transfer of a flit takes 32 cycles.
    assert "san-stages 4.00, san-wait 32.00, san-both 36.00" in passes(judge, usual)

    def with_other(name: str, **changed: Any) -> Rows:
        others = [row for row in usual if row["series"] != name]
        return others + table(tmp_path / f"other-{name}", *shorter(points("C10", name, **changed), 0.1))

    stages = fails(judge, with_other("san-wait", router={"hit_saves": "stages"}), "the wait saves more than the stages")
    assert "san-stages 4.00, san-wait 4.00" in stages
    fails(judge, with_other("ocn-both", router=ORACLE), "hits of the chances on chip up: 1.000, turn: 1.000")


# --- S1 to S5: studies ---------------------------------------------------------------------------------------------------------------


@looks_at(router.what_learning_gains)
def test_learning_gains_where_destinations_recur(judge: Judge, tmp_path: Path) -> None:
    names = ("normal", "static-straight", "latest-port")
    chosen = points("S1", *names, measure={"warmup": 500, "cycles": 3000})
    text = told(judge, table(tmp_path, *at(chosen, pattern=["uniform", "neighbor"])))
    found = re.findall(r"(uniform|neighbor), (\S+): hit rate ([\d.]+), reduction ([\d.]+)", text)
    rate = {(pattern, predictor): float(hits) for pattern, predictor, hits, _ in found}
    lower = {(pattern, predictor): float(part) for pattern, predictor, _, part in found}
    for measured in (rate, lower):
        assert measured["neighbor", "latest-port"] > 1.5 * measured["neighbor", "static-straight"]
        assert measured["uniform", "latest-port"] < measured["uniform", "static-straight"]


@looks_at(router.a_predictor_for_each_level)
def test_a_predictor_gains_at_its_own_level_and_up_priority_nothing_at_the_top(judge: Judge, tmp_path: Path) -> None:
    short = {"warmup": 500, "cycles": 3000}
    chosen = at(points("S2", "levels", measure=short), **dict.fromkeys(("leaf", "middle", "top"), ("none", "up-priority")))
    text = told(judge, table(tmp_path, *points("S2", "normal", measure=short), *at(chosen, middle=["none"])))
    found = re.findall(r"(\S+), none, (\S+): hit rate ([\d.]+), reduction ([\d.]+)", text)
    values = {(leaf, top): (float(rate), float(lower)) for leaf, top, rate, lower in found}
    assert values["none", "none"] == values["none", "up-priority"] == (0, 0)
    assert values["up-priority", "none"] == values["up-priority", "up-priority"]
    assert min(values["up-priority", "none"]) > 0.05


@looks_at(router.what_hint_bits_cost)
def test_hint_bits_take_from_the_reduction_what_they_cost_on_each_link(judge: Judge, tmp_path: Path) -> None:
    rows = table(tmp_path, *shorter(at(points("S3", "normal", "up"), flit_bytes=[64]), 0.1))
    found = re.findall(r"hint bits of (\d) cycles on a link: reductions over bytes of a flit 64: (\S+?);?(?: |$)", told(judge, rows))
    lower = {int(cycles): float(value) for cycles, value in found}
    [normal] = [row[LATENCY] for row in rows if row["series"] == "normal"]
    links = 2 * hit_rates.turn(2, 16)[0] * 255 / 256 + 2 / 256
    for cycles in router.HINT_CYCLES:
        assert lower[0] - lower[cycles] == pytest.approx(cycles * links / normal, abs=0.002)


@looks_at(rivals.rivals_side_by_side)
def test_express_ways_gain_on_a_mesh_and_nothing_in_a_square(judge: Judge, tmp_path: Path) -> None:
    """Without a router between two others of a row there is no way that goes straight on."""

    def gain(side: int) -> float:
        short = comparison(0.5, loads=[0.2], rivals={"express": {"predictor": "express"}})
        chosen = points("S4", "mesh-uniform", network={"dimensions": [side, side]}, **short)
        text = told(judge, table(tmp_path / str(side), *chosen))
        [reduction] = re.findall(r"reductions at zero load by express ways: mesh-uniform: ([-\d.]+)", text)
        return float(reduction)

    assert gain(2) == 0 < 0.05 < gain(4)


@looks_at(router.in_nanoseconds)
def test_without_hits_the_slower_clock_loses_six_percent(judge: Judge, tmp_path: Path) -> None:
    short = {**comparison(0.3, loads=[0.1]), "measure": {"warmup": 100, "cycles": 200}}

    def lower(name: str, **changed: Any) -> float:
        rows = table(tmp_path / name, *at(points("F9", "ss", **changed, **short), stages=[3]), figure="F9")
        [value] = re.findall(r"over stages: 3: ([-\d.]+)", told(judge, rows))
        return float(value)

    assert lower("none", router=NONE) == pytest.approx(1 - 1 / router.CLOCK, abs=0.001)
    assert lower("straight") > 0.1


# --- all of them ---------------------------------------------------------------------------------------------------------------------


def test_every_judge_has_runs_without_what_it_looks_at() -> None:
    assert {figure.judge for figure in PAPERS["prediction-router"].figures} == JUDGES
