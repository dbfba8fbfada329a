"""The judges of the paper on MFS on runs, and on runs in which what they look at is switched off."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import switched
from kasuri_papers import PAPERS, experiments, mfs, mfs_studies
from kasuri_papers.figure import Judge, Table, Verdict
from mfs_rows import Rows, of_figures, rows, table_1
from switched import fails_in, failures, passes

Points = list[experiments.Point]
#: Each head passes the stages of a router one after the other, so that a packet costs more than its flits.
SLOW_HEADS = {"pipeline": ["RC", "VA", "SA", "ST"]}
NETWORKS = ("fat-tree", "mesh", "torus")


def points(
    number: str, *series: str, ks: Sequence[int] = (), seeds: Sequence[int] = (1,), short: bool = True, **sections: Mapping[str, Any]
) -> Points:
    """Runs of a figure with few seeds, at some k; short ones measure a fifth of the cycles or send a quarter of the messages."""
    chosen = [point for name in series for point in switched.points("mfs", number, name, **sections)]
    chosen = [point for point in chosen if not ks or point.variables["k"] in ks]
    return [dataclasses.replace(point, experiment=_with_less(point.experiment, list(seeds), short)) for point in chosen]


def _with_less(experiment: Mapping[str, Any], seeds: list[int], short: bool) -> dict[str, Any]:
    less = dict(experiment)
    if "measure.seed" in less.get("sweep", {}):
        less["sweep"] = less["sweep"] | {"measure.seed": seeds}
    if short and "cycles" in less.get("measure", {}):
        less["measure"] = less["measure"] | {"warmup": 2000, "cycles": 8000}
    if short and less.get("traffic", {}).get("batch_packets", 0) > 500:
        less["traffic"] = less["traffic"] | {"batch_packets": 500}
    return less


def table(folder: Path, *chosen: experiments.Point) -> Rows:
    return switched.table(folder, chosen)


def curve_in(verdict: Verdict, before: str) -> dict[int, float]:
    """The curve that a verdict tells behind some words."""
    _, _, told = verdict.measured.partition(before)
    found = re.match(r"\s*(\d+: [\d.]+(, )?)+", told)
    return {int(k): float(value) for k, value in re.findall(r"(\d+): ([\d.]+)", found[0])} if found else {}


# --- uniform traffic ---------------------------------------------------------------------------------------------------------------


def test_flows_that_share_no_channel_have_all_of_it(tmp_path: Path) -> None:
    passes(mfs.two_flows_share, table(tmp_path, *points("F1", "flow")))
    alone = table(tmp_path, *points("F1", "flow", network={"concentration": 1}))
    fails_in(mfs.two_flows_share, alone, "rate of each flow [1.0]", "both end after [1000] cycles")


#: Uniform traffic that falls with k: its judge, and traffic on the same network of which no two packets want the same channel.
FALLING = [
    ("F2", mfs.uniform_on_fat_tree, {"pattern": "tornado", "shift": "floor", "include_self": None}),
    ("F3", mfs.uniform_on_mesh, {"pattern": "neighbor", "include_self": None}),
]


@pytest.mark.parametrize(("number", "judge", "apart"), FALLING)
def test_rates_do_not_fall_where_nothing_collides(tmp_path: Path, number: str, judge: Judge, apart: dict[str, Any]) -> None:
    few = (3, 4, 6)
    passes(judge, table(tmp_path / "uniform", *points(number, "flow", "flit", ks=few)))
    verdict = judge(Table(table(tmp_path / "apart", *points(number, "flow", "flit", ks=few, traffic=apart))))
    steady = [part for part in failures(verdict) if "does not fall steadily" in part]
    assert [part.partition(" does")[0] for part in steady] == ["flow", *(f"flit FPP{length}" for length in mfs.LENGTHS)]


@pytest.mark.parametrize(("number", "judge", "_"), FALLING)
def test_flows_that_know_arbitration_are_not_apart_from_packets(tmp_path: Path, number: str, judge: Judge, _: object) -> None:
    """What sets the simulators apart is how a channel is shared: with the routers' own sharing flows have the packets' rates."""
    few = (3, 4, 6)
    flit = table(tmp_path, *points(number, "flit", ks=few))
    passes(judge, [*flit, *table(tmp_path, *points(number, "flow", ks=few))])
    arbitrated = table(tmp_path, *points("S1", f"arbitrated-{number}", ks=few, short=False))
    fails_in(judge, [*flit, *({**row, "series": "flow"} for row in arbitrated)], "|flit FPP40 - flow|")


@pytest.mark.parametrize(("number", "judge", "_"), FALLING)
def test_packets_are_not_alike_where_each_head_takes_time(tmp_path: Path, number: str, judge: Judge, _: object) -> None:
    few = (3, 4, 6)
    slow = points(number, "flit", ks=few, router=SLOW_HEADS | {"buffer_flits": 8})
    fails_in(judge, table(tmp_path, *points(number, "flow", ks=few), *slow), "spread over FPP")


def test_on_the_torus_engines_and_lengths_agree_where_nothing_collides(tmp_path: Path) -> None:
    passes(mfs.uniform_on_torus, table(tmp_path / "uniform", *points("F4", "flow", "flit", ks=(4, 6, 8))))
    apart = {"pattern": "neighbor", "include_self": None}
    lengths = {"traffic.packet_flits": [10, 40, 80]}
    flow = points("F4", "flow", ks=(3, 4, 5), traffic=apart)
    flit = points("F4", "flit", ks=(3, 4, 5), traffic=apart, sweep=lengths, short=False)
    fails_in(mfs.uniform_on_torus, table(tmp_path / "apart", *flow, *flit), "|flit FPP40 - flow|", "mean distance from FPP40")


def test_on_the_torus_short_packets_are_far_off_where_each_head_takes_time(tmp_path: Path) -> None:
    few = (4, 6, 8)
    away = []
    for name, router in (("figure", {}), ("slow", SLOW_HEADS | {"buffer_flits": 8})):
        made = table(tmp_path / name, *points("F4", "flow", "flit", ks=few, router=router))
        away.append(re.findall(r"FPP10 ([\d.]+), FPP80 ([\d.]+)", mfs.uniform_on_torus(Table(made)).measured)[0])
    (short, _), (short_and_slow, long_and_slow) = (tuple(map(float, pair)) for pair in away)
    assert short_and_slow > 2 * short
    assert short_and_slow > 3 * long_and_slow


@pytest.fixture(scope="module")
def arbiters(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The claim on arbitration at one k."""
    series = [f"{name}-{network}" for network in NETWORKS for name in ("flow", "rr", "age", "voq")]
    return table(tmp_path_factory.mktemp("arbiters"), *points("C4", *series, ks=(6,)))


def without(made: Rows, kind: str) -> Rows:
    return [row for row in made if not row["series"].startswith(kind)]


def test_without_a_queue_for_each_destination_packets_are_no_closer_to_flows(tmp_path: Path, arbiters: Rows) -> None:
    # That age closes less than half of the gap is known.
    fails_in(mfs.arbitration_explains, arbiters, "mesh: age leaves", "torus: age leaves")
    shared = [
        point
        for network, channels in (("fat-tree", 1), ("mesh", 1), ("torus", 2))
        for point in points("C4", f"voq-{network}", ks=(6,), router={"vc_per_destination": None, "virtual_channels": channels})
    ]
    off = [*without(arbiters, "voq"), *table(tmp_path, *shared)]
    parts = ("fat-tree, mean |ATR - flow|", "mesh, mean", "mesh: age leaves", "torus, mean", "torus: age leaves")
    fails_in(mfs.arbitration_explains, off, *parts)


def test_age_closes_a_part_of_the_gap_that_turns_do_not(tmp_path: Path, arbiters: Rows) -> None:
    """The same allocators without priorities leave all of it."""

    def left(made: Rows) -> list[float]:
        found = re.findall(r"age leaves ([\d.]+) of the gap", mfs.arbitration_explains(Table(made)).measured)
        return [float(part) for part in found]

    in_turn = points("C4", *(f"age-{network}" for network in NETWORKS), ks=(6,), router={"priority": "none"})
    turns = [*without(arbiters, "age"), *table(tmp_path, *in_turn)]
    assert len(left(arbiters)) == 2
    assert all(by_age < 0.95 * by_turns for by_age, by_turns in zip(left(arbiters), left(turns), strict=True))


def test_arbitrated_flows_without_blocking_are_far_from_packets(tmp_path: Path, arbiters: Rows) -> None:
    few = {"sweep": {"flow.without": [[], ["blocking"]]}}
    made = [*arbiters, *table(tmp_path, *points("C4", "arbitrated-fat-tree", ks=(6,), **few))]
    told = mfs.arbitration_explains(Table(made)).measured
    [(whole, cut)] = re.findall(r"all mechanisms ([\d.]+), without blocking ([\d.]+)", told)
    assert 5 * float(whole) < float(cut)


def test_longer_packets_are_closer_where_each_head_takes_time(tmp_path: Path) -> None:
    """With the figure's router a packet costs its flits alone, and its length is no matter, which is why the row fails."""
    flow = table(tmp_path, *points("C2", "flow-fat-tree", ks=(4, 8), seeds=(1, 2, 3), short=False))

    def flit(name: str, **router: Any) -> Rows:
        return table(tmp_path / name, *points("C2", "flit-fat-tree", ks=(4, 8), seeds=(1, 2), short=False, router=router))

    fails_in(mfs.longer_packets_are_closer, [*flow, *flit("figure")], "fat-tree: mean gap to flow")
    passes(mfs.longer_packets_are_closer, [*flow, *flit("slow", **SLOW_HEADS, buffer_flits=4)])


# --- transpose ---------------------------------------------------------------------------------------------------------------------


def test_on_the_fat_tree_packets_agree_with_flows_only_on_the_same_paths(tmp_path: Path) -> None:
    few = (2, 4, 8)
    flow = table(tmp_path, *points("F5", "flow", ks=few))
    passes(mfs.transpose_on_fat_tree, [*flow, *table(tmp_path / "same", *points("F5", "flit", ks=few))])
    drawn = table(tmp_path / "drawn", *points("F5", "flit", ks=few, routing={"up_port": "random"}))
    fails_in(mfs.transpose_on_fat_tree, [*flow, *drawn], "flow 2: 1.000, 4: 0.500")


def test_on_the_mesh_packets_agree_with_flows_only_on_the_same_paths(tmp_path: Path) -> None:
    flow, flit = table(tmp_path / "flow", *points("F6", "flow")), table(tmp_path / "flit", *points("F6", "flit"))
    passes(mfs.transpose_on_mesh, [*flow, *flit])
    both = points("F6", "flit", ks=(4, 8, 16), routing={"algorithm": "o1turn"}, router={"virtual_channels": 2})
    others = [row for row in flit if row["k"] == 2]
    fails_in(mfs.transpose_on_mesh, [*flow, *others, *table(tmp_path / "both", *both)], "flow 2: 1.000, 4: 0.625")
    ring = table(tmp_path / "ring", *points("F6", "flow", network={"topology": "torus"}))
    fails_in(mfs.transpose_on_mesh, [*ring, *flit], "expected 2: 1.000", "flow 2: 1.000")


def test_on_the_torus_the_rule_for_ties_sets_the_rates(tmp_path: Path) -> None:
    """Fixed ties bring packets to flows that have them, too; with another rule flows have another rate."""
    flow, flit = table(tmp_path, *points("F7", "flow", ks=(4,))), table(tmp_path, *points("F7", "flit", ks=(4,)))

    def gap(made: Rows) -> float:
        [told] = re.findall(r"gap at k = 4 \(the paper's is 0.037\) ([\d.]+)", mfs.transpose_on_torus(Table(made)).measured)
        return float(told)

    fixed = table(tmp_path / "fixed", *points("F7", "flit", ks=(4,), routing={"tie": "no-wrap"}))
    assert gap([*flow, *fixed]) < 0.5 * gap([*flow, *flit])
    assert not [part for part in failures(mfs.transpose_on_torus(Table([*flow, *flit]))) if part.startswith("flow at k = 4")]
    positive = table(tmp_path / "positive", *points("F7", "flow", ks=(4,), routing={"tie": "positive"}))
    told = failures(mfs.transpose_on_torus(Table([*positive, *flit])))
    assert any(part.startswith("flow at k = 4: 0.625") for part in told), told


# --- tornado -----------------------------------------------------------------------------------------------------------------------


#: Figure, judge, series with few virtual channels, and their number.
TORNADOES = [("F8", mfs.tornado_on_mesh, "flit-vc1", 1), ("F9", mfs.tornado_on_torus, "flit-vc2", 2)]
#: What the judges say where queues do not bring packets closer.
NOT_CLOSER = {"F8": "VOQ by 8", "F9": "gaps for k >= 6"}
UP_TO_8 = tuple(range(2, 9))


@pytest.mark.parametrize(("number", "judge", "few_channels", "channels"), TORNADOES)
def test_without_a_queue_for_each_destination_the_tornado_is_as_far_off(
    tmp_path: Path, number: str, judge: Judge, few_channels: str, channels: int
) -> None:
    others = table(tmp_path, *points(number, "flow", few_channels, ks=UP_TO_8))
    passes(judge, [*others, *table(tmp_path / "own", *points(number, "flit-voq", ks=UP_TO_8))])
    shared = {"vc_per_destination": None, "virtual_channels": channels}
    off = table(tmp_path / "shared", *points(number, "flit-voq", ks=UP_TO_8, router=shared))
    fails_in(judge, [*others, *off], NOT_CLOSER[number])


@pytest.mark.parametrize(("number", "judge", "few_channels", "_"), TORNADOES)
def test_a_tornado_one_step_further_contends_earlier(tmp_path: Path, number: str, judge: Judge, few_channels: str, _: object) -> None:
    packets = table(tmp_path, *points(number, few_channels, "flit-voq", ks=UP_TO_8))
    further = table(tmp_path / "further", *points(number, "flow", ks=UP_TO_8, traffic={"shift": "ceil"}))
    verdict = judge(Table([*packets, *further]))
    assert failures(verdict)[0].startswith("flow 2: 1.000")
    assert curve_in(verdict, "NOT: flow")[5] == 0.5


@pytest.mark.parametrize(("number", "judge", "few_channels", "_"), TORNADOES)
def test_arbitrated_flows_are_no_upper_bound_of_packets(tmp_path: Path, number: str, judge: Judge, few_channels: str, _: object) -> None:
    """They lose what packets lose by blocking each other, so that packets with few channels are not far below."""
    packets = table(tmp_path, *points(number, few_channels, "flit-voq", ks=UP_TO_8))
    arbitrated = table(tmp_path, *points("S1", f"arbitrated-{number}", ks=UP_TO_8, short=False))
    verdict = judge(Table([*packets, *({**row, "series": "flow"} for row in arbitrated)]))
    bound = "VC1 differs for k >= 8" if number == "F8" else "flow less VC2 at k = 6"
    assert any(part.startswith(bound) for part in failures(verdict)), verdict.measured


def test_queues_close_the_more_of_the_gap_the_less_packets_meet(tmp_path: Path) -> None:
    """Streams still meet in buffers of two flits, which is why the row fails; those that hold a packet close the gap on the mesh."""

    def gaps(name: str, mesh: Mapping[str, Any], torus: Mapping[str, Any]) -> dict[str, float]:
        runs = {
            number: table(tmp_path / name / number, *points(number, "flow", ks=ks), *points(number, "flit-voq", ks=ks, router=router))
            for number, ks, router in (("F8", (6, 8), mesh), ("F9", (6, 7), torus))
        }
        verdict = mfs.queues_close_the_gap(Table(of_figures(**runs)))
        return {network: max(curve_in(verdict, f"{network}: VOQ differs for k <= {k}, of flow, by").values()) for network, k in MOST}

    figure = gaps("figure", {}, {})
    shared = gaps("shared", *({"vc_per_destination": None, "virtual_channels": channels} for channels in (1, 2)))
    roomy = gaps("roomy", {"buffer_flits": 40}, {"buffer_flits": 40})
    assert all(shared[network] > 2 * figure[network] for network, _ in MOST)
    assert roomy["mesh"] < 0.1 < figure["mesh"]
    assert roomy["torus"] < figure["torus"]


#: Up to which k queues are to close the gap.
MOST = (("mesh", 8), ("torus", 7))


def test_on_the_fat_tree_the_tornado_contends_where_the_ways_up_are_drawn(tmp_path: Path) -> None:
    few, places = (3, 4, 8), range(2, 17)
    others = [row for row in [*rows("flow", dict.fromkeys(places, 1.0)), *rows("flit", dict.fromkeys(places, 0.98))] if row["k"] not in few]
    flow, flit = (table(tmp_path / name, *points("C1", name, ks=few)) for name in ("flow", "flit"))
    passes(mfs.never_contends, [*others, *flow, *flit])
    drawn = {"up_port": "random"}
    fails_in(mfs.never_contends, [*others, *table(tmp_path / "drawn", *points("C1", "flow", ks=few, routing=drawn)), *flit], "flow: ")
    fails_in(mfs.never_contends, [*others, *flow, *table(tmp_path / "drawn", *points("C1", "flit", ks=few, routing=drawn))], "flit: ")


# --- completion, time and memory ---------------------------------------------------------------------------------------------------


def at_16(folder: Path, *series: str, **sections: Mapping[str, Any]) -> Rows:
    """Table 1 at k = 16 with one seed."""
    return table(folder, *(point for name in series for point in points("T1", name, ks=(16,), **sections)[:1]))


#: Traffic of which no two messages share a channel.
NEIGHBOURS = {"pattern": "neighbor", "include_self": None}


def test_messages_that_share_no_channel_end_after_their_own_time(tmp_path: Path) -> None:
    others = [row for row in table_1() if row["k"] != 16]
    flit = at_16(tmp_path, "flit")
    passes(mfs.large_fat_trees, [*others, *flit, *at_16(tmp_path, "flow")])
    apart = at_16(tmp_path / "apart", "flow", traffic=NEIGHBOURS)
    # Ten messages of 40 flits at 25 ns.
    fails_in(mfs.large_fat_trees, [*others, *flit, *apart], "flow/flit", "flow in us 16: 10.00", "largest/smallest flow time")


def test_flows_whose_ways_up_are_drawn_are_as_late_as_booksims_packets(tmp_path: Path) -> None:
    booksim = [row for row in mfs.booksim_rows(experiments.find(None) / "mfs", tmp_path) if row["k"] == 16]

    def ratio(flow: Rows) -> float:
        return curve_in(mfs.large_fat_trees_beside_booksim(Table([*booksim, *flow])), "flow/BookSim 2")[16]

    static = ratio(at_16(tmp_path / "static", "flow"))
    drawn = at_16(tmp_path / "drawn", "flow", routing={"up_port": "random"})
    passes(mfs.large_fat_trees_beside_booksim, [*booksim, *drawn])
    assert static < 0.95 * ratio(drawn)
    apart = at_16(tmp_path / "apart", "flow", traffic=NEIGHBOURS)
    fails_in(mfs.large_fat_trees_beside_booksim, [*booksim, *apart], "flow/BookSim 2 16: 0.2")


def test_time_grows_with_the_length_of_messages_where_flits_are_simulated(tmp_path: Path) -> None:
    """A flow costs the same however long its message is; our packets of ten times the flits take more than a fiftieth of BookSim's time."""
    booksim = [row for row in mfs.booksim_rows(experiments.find(None) / "mfs", tmp_path) if row["k"] == 10]
    long = points("C7", "flow", "flit", ks=(10,), traffic={"packet_flits": 400})
    made = table(tmp_path, *long)
    # Memory is what is known not to hold.
    fails_in(mfs.time_and_memory, [*booksim, *made], "memory over BookSim 2's")
    flits = [{**row, "series": "flow"} for row in made if row["series"] == "flit"]
    fails_in(mfs.time_and_memory, [*booksim, *flits], "time over BookSim 2's", "memory over BookSim 2's")


def near(program: str, network: str, k: int = 8, **sections: Mapping[str, Any]) -> Points:
    return points("C3", f"flow-{program}-{network}", f"flit-{program}-{network}", ks=(k,), **sections)


def test_flows_are_wrong_once_messages_to_neighbours_and_of_a_stencil_collide(tmp_path: Path) -> None:
    trees = table(tmp_path, *near("neighbour", "fat-tree"), *near("stencil", "fat-tree", 4), *near("stencil", "mesh", 4))
    neighbours = table(tmp_path / "neighbours", *near("neighbour", "mesh"), *near("neighbour", "torus"))
    brief = {"iterations": 3}
    stencil = table(tmp_path / "stencil", *near("stencil", "torus", trace=brief))
    passes(mfs.neighbours_are_right, [*trees, *neighbours, *stencil])
    uniform = {"pattern": "uniform"}
    strewn = table(tmp_path / "uniform", *near("neighbour", "mesh", traffic=uniform), *near("neighbour", "torus", traffic=uniform))
    told = [f"neighbour, {network}, {length} flits" for network in ("mesh", "torus") for length in (120, 1000)]
    fails_in(mfs.neighbours_are_right, [*trees, *strewn, *stencil], *told)
    # Ranks anywhere have their neighbours far away.
    strewn = table(tmp_path / "strewn", *near("stencil", "torus", trace=brief, workload={"placement": "random"}))
    told = [f"stencil, torus, {length} flits" for length in (120, 1000)]
    fails_in(mfs.neighbours_are_right, [*trees, *neighbours, *strewn], *told)


# --- studies -----------------------------------------------------------------------------------------------------------------------


def test_arbitrated_flows_are_closer_to_packets_for_they_know_blocking(tmp_path: Path) -> None:
    few = (4, 6, 8)
    figure = of_figures(F8=table(tmp_path, *points("F8", "flow", "flit-vc1", ks=few)))

    def errors(name: str, cut: list[str]) -> list[float]:
        own = table(tmp_path / name, *points("S1", "arbitrated-F8", ks=few, short=False, flow={"without": cut}))
        told = mfs_studies.flows_with_arbitration(Table([*figure, *of_figures(S1=own)])).measured
        return [float(error) for error in re.findall(r"F8: .*?off by ([\d.]+),.*?off by ([\d.]+),", told)[0]]

    (whole, equal), (cut, _) = errors("whole", []), errors("cut", ["blocking"])
    assert whole < 0.5 * equal
    assert cut > 2 * whole


def test_flows_are_wrong_over_many_hops_for_packets_block_each_other(tmp_path: Path) -> None:
    few = (4, 6, 7, 8)

    def far(name: str, **router: Any) -> float:
        made = table(tmp_path / name, *points("F8", "flow", ks=few), *points("F8", "flit-vc1", ks=few, router=router))
        told = mfs_studies.where_flows_may_be_trusted(Table(of_figures(F8=made))).measured
        [near_by], [far_away] = (re.findall(rf"{hops} hops: \d points, mean error ([\d.]+)", told) for hops in ("3 to 5", "5 to inf"))
        assert float(near_by) < float(far_away)
        return float(far_away)

    assert far("own", virtual_channels=None, vc_per_destination=True) < 0.5 * far("one")


# --- every judge -------------------------------------------------------------------------------------------------------------------


ALIVE: dict[Judge, Sequence[Callable[..., None]]] = {
    mfs.two_flows_share: (test_flows_that_share_no_channel_have_all_of_it,),
    **{
        judge: (
            test_rates_do_not_fall_where_nothing_collides,
            test_flows_that_know_arbitration_are_not_apart_from_packets,
            test_packets_are_not_alike_where_each_head_takes_time,
        )
        for judge in (mfs.uniform_on_fat_tree, mfs.uniform_on_mesh)
    },
    mfs.uniform_on_torus: (
        test_on_the_torus_engines_and_lengths_agree_where_nothing_collides,
        test_on_the_torus_short_packets_are_far_off_where_each_head_takes_time,
    ),
    mfs.arbitration_explains: (
        test_without_a_queue_for_each_destination_packets_are_no_closer_to_flows,
        test_age_closes_a_part_of_the_gap_that_turns_do_not,
        test_arbitrated_flows_without_blocking_are_far_from_packets,
    ),
    mfs.longer_packets_are_closer: (test_longer_packets_are_closer_where_each_head_takes_time,),
    mfs.transpose_on_fat_tree: (test_on_the_fat_tree_packets_agree_with_flows_only_on_the_same_paths,),
    mfs.transpose_on_mesh: (test_on_the_mesh_packets_agree_with_flows_only_on_the_same_paths,),
    mfs.transpose_on_torus: (test_on_the_torus_the_rule_for_ties_sets_the_rates,),
    **{
        judge: (
            test_without_a_queue_for_each_destination_the_tornado_is_as_far_off,
            test_a_tornado_one_step_further_contends_earlier,
            test_arbitrated_flows_are_no_upper_bound_of_packets,
        )
        for judge in (mfs.tornado_on_mesh, mfs.tornado_on_torus)
    },
    mfs.queues_close_the_gap: (test_queues_close_the_more_of_the_gap_the_less_packets_meet,),
    mfs.never_contends: (test_on_the_fat_tree_the_tornado_contends_where_the_ways_up_are_drawn,),
    mfs.large_fat_trees: (test_messages_that_share_no_channel_end_after_their_own_time,),
    mfs.large_fat_trees_beside_booksim: (test_flows_whose_ways_up_are_drawn_are_as_late_as_booksims_packets,),
    mfs.time_and_memory: (test_time_grows_with_the_length_of_messages_where_flits_are_simulated,),
    mfs.neighbours_are_right: (test_flows_are_wrong_once_messages_to_neighbours_and_of_a_stencil_collide,),
    mfs_studies.flows_with_arbitration: (test_arbitrated_flows_are_closer_to_packets_for_they_know_blocking,),
    mfs_studies.where_flows_may_be_trusted: (test_flows_are_wrong_over_many_hops_for_packets_block_each_other,),
}


def test_every_judge_is_seen_with_its_mechanism_switched_off() -> None:
    figures = PAPERS["mfs"].figures
    switched.must_cover({judge for figure in figures for judge in (figure.judge, *figure.readings.values())}, ALIVE)
