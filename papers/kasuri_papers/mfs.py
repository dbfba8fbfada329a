"""Yazaki and Ishihata, "An Evaluation of Message-flow-based Network Simulator": the flow simulator MFS beside BookSim.

In every figure the series ``flow`` is the flow engine (MFS), ``flit`` the flit engine with a router of one cycle (BookSim as the
paper must have set it), and ``flit-default-router`` the flit engine with BookSim 2's default router, which nobody judges: its
credit loop is longer than two flits, so that it cannot carry the rates that the paper shows.
"""

from __future__ import annotations

import csv
import itertools
import math
import os
import re
from pathlib import Path
from typing import Any

from kasuri.errors import ConfigError
from kasuri_papers import curves
from kasuri_papers.figure import Figure, Findings, Paper, Plot, Table, Verdict
from kasuri_papers.mfs_studies import STUDIED, explained, flows_with_arbitration, where_flows_may_be_trusted
from kasuri_papers.runs import measured

PACKET_FLITS = "traffic.packet_flits"
#: Lengths of packets in flits (FPP, flits per packet).
LENGTHS = (10, 40, 80, 100)

_ROUTERS = (
    "judged: series `flit`, the router of one cycle; series with `default-router` are BookSim 2's default router and are shown "
    "for comparison only",
)


def two_flows_share(table: Table) -> Verdict:
    """Two flows of L flits that share one channel have rate 1/2 each and end after 2 L cycles."""
    found = Findings()
    rates = [row["atr"] for row in table.of("flow")]
    ends = [row["completion_time"] for row in table.of("flow")]
    found.must(bool(rates) and all(abs(rate - 0.5) < 1e-9 for rate in rates), f"rate of each flow {rates}, expected 0.5")
    found.must(bool(ends) and all(end == 2000 for end in ends), f"both end after {ends} cycles, expected 2000 for 1000 flits each")
    return found.verdict()


def uniform_on_fat_tree(table: Table) -> Verdict:
    """Both simulators fall gently with k whatever the packet length, and differ at every k."""
    return _uniform_falls(table, may_meet=0)


def uniform_on_mesh(table: Table) -> Verdict:
    """As on the fat tree; the curves may meet at two k."""
    return _uniform_falls(table, may_meet=2)


def _uniform_falls(table: Table, may_meet: int) -> Verdict:
    found = Findings()
    by_length = _by_length(table, "flit")
    engines = {"flow": table.of("flow"), **{f"flit FPP{length}": table.of("flit", **{PACKET_FLITS: length}) for length in by_length}}
    for name, rows in engines.items():
        curve, errors = rows.curve("atr"), rows.standard_errors("atr")
        holds = curves.never_rises(curve, 0.05) and curves.falls(curve, errors)
        found.must(holds, f"{name} {'falls' if holds else 'does not fall steadily'}: {curves.text(curve)}")
    _must_differ(found, table, may_meet)
    spread = _spread(by_length, LENGTHS)
    found.must(curves.largest(spread) < 0.05, f"spread over FPP, of their mean: {curves.text(spread)} (< 0.05)")
    default = table.of("flit-default-router", **{PACKET_FLITS: 40}).curve("atr")
    found.report(f"default router, FPP40: {curves.text(default)}")
    return found.verdict()


def uniform_on_torus(table: Table) -> Verdict:
    """The simulators differ; packets of 40 and 80 flits agree, and those of 10 are further from 40 than those of 80."""
    found = Findings()
    by_length = _by_length(table, "flit")
    _must_differ(found, table, may_meet=2)
    spread = _spread(by_length, (40, 80))
    found.must(curves.largest(spread) < 0.05, f"FPP40 and FPP80 differ, of their mean, by {curves.text(spread)} (< 0.05)")
    middle = by_length.get(40, {})
    away = {length: curves.distances(by_length.get(length, {}), middle) for length in (10, 80, 100)}
    means = {length: curves.mean(gaps) for length, gaps in away.items()}
    found.must(means[10] > means[80], f"mean distance from FPP40: FPP10 {means[10]:.4f}, FPP80 {means[80]:.4f} (FPP10 further)")
    found.report(f"at k = 2, FPP10 is {away[10].get(2, math.nan):.3f} and FPP100 {away[100].get(2, math.nan):.3f} off FPP40")
    return found.verdict()


def _must_differ(found: Findings, table: Table, may_meet: int) -> None:
    """Judge that flow and FPP40 are further apart than 2 % of flow and three standard errors, at all k but so many."""
    flow, flit = table.of("flow"), table.of("flit", **{PACKET_FLITS: 40})
    middle, errors = flow.curve("atr"), (flow.standard_errors("atr"), flit.standard_errors("atr"))
    apart = curves.distances(flit.curve("atr"), middle)
    bars = {k: max(0.02 * middle[k], 3 * math.hypot(errors[0][k], errors[1][k])) for k in apart}
    meeting = [k for k, gap in apart.items() if gap <= bars[k]]
    allowed = f"at all k but {may_meet}" if may_meet else "at every k"
    holds = len(apart) == len(middle) > 0 and len(meeting) <= may_meet
    found.must(holds, f"|flit FPP40 - flow| {curves.text(apart)}; not apart at k = {meeting} (apart {allowed})")


def arbitration_explains(table: Table) -> Verdict:
    """A queue for each destination is closer to flow on each network; on grids, age alone closes half of the gap."""
    found = Findings()
    for network in ("fat-tree", "mesh", "torus"):
        flow = table.of(f"flow-{network}").curve("atr")
        gaps = {name: curves.distances(table.of(f"{name}-{network}").curve("atr"), flow) for name in ("rr", "age", "voq")}
        common = [k for k in flow if all(k in gap for gap in gaps.values())]
        means = {name: curves.mean({k: gap[k] for k in common}) for name, gap in gaps.items()}
        text = ", ".join(f"{name} {mean:.3f}" for name, mean in means.items())
        found.must(bool(common) and means["voq"] < means["rr"], f"{network}, mean |ATR - flow| for k = {common}: {text} (voq < rr)")
        if network != "fat-tree":
            part = means["age"] / means["rr"] if means["rr"] else math.inf
            found.must(part <= 0.5, f"{network}: age leaves {part:.2f} of the gap (<= 0.5)")
        found.report(f"{network}: {explained(table.of(f'arbitrated-{network}'), table.of(f'rr-{network}'), common)}")
    return found.verdict()


def transpose_on_fat_tree(table: Table) -> Verdict:
    """Flow and flit engine agree within 10 % of the flow engine."""
    found = Findings()
    _agree(found, table, 0.10)
    return found.verdict()


def transpose_on_mesh(table: Table) -> Verdict:
    """As on the fat tree, and the flow engine has the rates of the first interval."""
    found = Findings()
    flow = table.of("flow").curve("atr")
    expected = {2: 1.0, 4: 0.625, 8: 0.344, 16: 0.180}
    away = curves.distances(flow, expected)
    found.must(len(away) == len(expected) and curves.largest(away) <= 0.001, f"flow {curves.text(flow)}, expected {curves.text(expected)}")
    _agree(found, table, 0.10)
    return found.verdict()


def transpose_on_torus(table: Table) -> Verdict:
    """ATR 0.750 of the flow engine at k = 4, and the paper's gap of 0.037 by half."""
    found = Findings()
    flow, flit = table.of("flow").curve("atr"), table.of("flit").curve("atr")
    found.must(abs(flow.get(4, math.inf) - 0.75) <= 0.001, f"flow at k = 4: {flow.get(4)} (0.750 +- 0.001)")
    found.within(abs(flow.get(4, math.inf) - flit.get(4, math.inf)), 0.018, 0.056, "gap at k = 4 (the paper's is 0.037)")
    found.report(f"flow {curves.text(flow)}; flit, ties drawn {curves.text(flit)}")
    return found.verdict()


#: 1 over the flows on the fullest channel, floor(k/2) - 1.
TORNADO_FLOW = {2: 1.0, 3: 1.0, 4: 1.0, 5: 1.0, 6: 1 / 2, 7: 1 / 2, 8: 1 / 3}


def tornado_on_mesh(table: Table) -> Verdict:
    """Packets agree with flows up to k = 7; from k = 8 on one virtual channel is off by more than 10 %, and VOQ less."""
    found = Findings()
    flow = _tornado_flow(found, table)
    single, own = table.of("flit-vc1").curve("atr"), table.of("flit-voq").curve("atr")
    small = {k: gap for k, gap in curves.distances(single, flow, flow).items() if k <= 7}
    found.must(curves.largest(small) <= 0.05, f"VC1 differs for k <= 7, of flow, by {curves.text(small)} (<= 0.05)")
    gaps, own_gaps = curves.distances(single, flow, flow), curves.distances(own, flow, flow)
    large = [k for k in gaps if k >= 8 and k in own_gaps]
    wide = bool(large) and all(gaps[k] > 0.10 for k in large)
    found.must(wide, f"VC1 differs for k >= 8, of flow, by {_part(gaps, large)} (> 0.10)")
    found.must(bool(large) and all(own_gaps[k] < gaps[k] for k in large), f"VOQ by {_part(own_gaps, large)} (less)")
    _report_default_routers(found, table, ("flit-vc1", "flit-voq"))
    return found.verdict()


def tornado_on_torus(table: Table) -> Verdict:
    """Two virtual channels agree up to k = 5, lie about 0.3 below at k = 6 and 7, and VOQ is nearer from k = 6 on."""
    found = Findings()
    flow = _tornado_flow(found, table)
    two, own = table.of("flit-vc2").curve("atr"), table.of("flit-voq").curve("atr")
    small = {k: gap for k, gap in curves.distances(two, flow, flow).items() if k <= 5}
    found.must(curves.largest(small) <= 0.05, f"VC2 differs for k <= 5, of flow, by {curves.text(small)} (<= 0.05)")
    for k in (6, 7):
        found.within(flow.get(k, math.inf) - two.get(k, 0.0), 0.24, 0.36, f"flow less VC2 at k = {k}")
    gaps, own_gaps = curves.distances(two, flow), curves.distances(own, flow)
    large = [k for k in gaps if k >= 6 and k in own_gaps]
    closer = bool(large) and all(own_gaps[k] < gaps[k] for k in large)
    found.must(closer, f"gaps for k >= 6: VC2 {_part(gaps, large)}; VOQ {_part(own_gaps, large)} (VOQ nearer)")
    _report_default_routers(found, table, ("flit-vc2", "flit-voq"))
    return found.verdict()


def queues_close_the_gap(table: Table) -> Verdict:
    """With a queue for each destination the tornado is within 10 % of flow up to k = 8 on the mesh, 7 on the torus."""
    found = Findings()
    for network, figure, most in (("mesh", "F8", 8), ("torus", "F9", 7)):
        flow = table.of("flow", figure=figure).curve("atr")
        away = curves.distances(table.of("flit-voq", figure=figure).curve("atr"), flow, flow)
        near = {k: gap for k, gap in away.items() if k <= most}
        found.must(curves.largest(near) <= 0.10, f"{network}: VOQ differs for k <= {most}, of flow, by {curves.text(near)} (<= 0.10)")
        packets = table.of("flit-vc1" if network == "mesh" else "flit-vc2", figure=figure)
        found.report(f"{network}: {explained(table.of(f'arbitrated-{network}'), packets, [6, 7, 8, 9, 10])}")
        own, of_packets = (rows.curve("atr") for rows in (table.of(f"arbitrated-voq-{network}"), table.of("flit-voq", figure=figure)))
        found.report(f"{network}: VOQ in arbitrated flows {curves.text(own)}; in packets {curves.text(of_packets)}")
    return found.verdict()


def never_contends(table: Table) -> Verdict:
    """ATR 1 of flow and at least 0.95 of flit for every k from 2 to 16."""
    found = Findings()
    places = set(range(2, 17))
    flow, flit = table.of("flow").curve("atr"), table.of("flit").curve("atr")
    ones = set(flow) >= places and all(abs(rate - 1) < 1e-9 for rate in flow.values())
    found.must(ones, f"flow: {curves.text(flow)} (1 for k = 2 to 16)")
    found.must(set(flit) >= places and min(flit.values()) >= 0.95, f"flit: {curves.text(flit)} (>= 0.95 for k = 2 to 16)")
    return found.verdict()


def longer_packets_are_closer(table: Table) -> Verdict:
    """On the fat tree packets of 100 flits are closer to flow than those of 10, by more than 2 % and three standard errors."""
    found = Findings()
    for network in ("fat-tree", "mesh", "torus"):
        flow = table.of(f"flow-{network}")
        middle, of_flow = flow.curve("atr"), flow.standard_errors("atr")
        means, errors = {}, {}
        for length in (10, 100):
            flit = table.of(f"flit-{network}", **{PACKET_FLITS: length})
            gaps, of_flit = curves.distances(flit.curve("atr"), middle), flit.standard_errors("atr")
            means[length] = curves.mean(gaps)
            errors[length] = math.hypot(*(math.hypot(of_flow[k], of_flit[k]) for k in gaps)) / len(gaps) if gaps else math.inf
        bar = max(0.02 * means[10], 3 * math.hypot(errors[10], errors[100]))
        text = f"{network}: mean gap to flow, FPP10 {means[10]:.4f}; FPP100 {means[100]:.4f} (less by more than {bar:.4f})"
        if network == "fat-tree":
            found.must(math.isfinite(means[10]) and means[10] - means[100] > bar, text)
        else:
            found.report(text)
    return found.verdict()


def neighbours_are_right(table: Table) -> Verdict:
    """Completion times of flow are within 10 % of flit's for messages to the neighbour and for a stencil."""
    found = Findings()
    for traffic, network in itertools.product(("neighbour", "stencil"), ("fat-tree", "mesh", "torus")):
        for length in (120, 1000):
            flow, flit = (table.of(f"{engine}-{traffic}-{network}", flits=length).curve("completion_time") for engine in ("flow", "flit"))
            away = curves.distances(flow, flit, flit)
            found.must(curves.largest(away) <= 0.10, f"{traffic}, {network}, {length} flits: off by {curves.text(away)} (<= 0.10)")
    return found.verdict()


def large_fat_trees(table: Table) -> Verdict:
    """Completion as close to the flit engine's as the paper's to BookSim's, and nearly constant."""
    found = Findings()
    flow, flit = table.of("flow").curve("completion_time"), table.of("flit").curve("completion_time")
    ratios = {k: flow[k] / flit[k] for k in flow if k in flit}
    first = {k: ratio for k, ratio in ratios.items() if k <= 22}
    inside = set(first) >= {16, 18, 20, 22} and all(0.89 <= ratio <= 1.17 for ratio in first.values())
    found.must(inside, f"flow/flit {curves.text(ratios)} ([0.89, 1.17] at k = 16, 18, 20, 22)")
    micro = _microseconds(table.of("flow"))
    complete = set(micro) >= set(TABLE_1)
    found.must(complete and all(31 <= time <= 37 for time in micro.values()), f"flow in us {curves.text(micro, 2)} ([31, 37])")
    flatness = max(micro.values()) / min(micro.values()) if micro else math.inf
    found.must(flatness <= 1.1, f"largest/smallest flow time {flatness:.3f} (nearly constant: <= 1.1)")
    found.report(f"flit in us {curves.text(_microseconds(table.of('flit')), 2)}")
    return found.verdict()


def large_fat_trees_beside_booksim(table: Table) -> Verdict:
    """The completion time of flow over that of BookSim 2 itself, which draws the port up for each packet."""
    found = Findings()
    flow, book = table.of("flow").curve("completion_time"), table.of("booksim").curve("completion_time")
    ratios = {k: flow[k] / book[k] for k in flow if k in book}
    inside = bool(ratios) and all(0.89 <= ratio <= 1.17 for ratio in ratios.values())
    found.must(inside, f"flow/BookSim 2 {curves.text(ratios)} ([0.89, 1.17])")
    return found.verdict()


def time_and_memory(table: Table) -> Verdict:
    """The flow engine takes at most 2 % of BookSim 2's time and memory at every k that BookSim 2 ran."""
    found = Findings()
    for column, name in (("process_seconds", "time"), ("peak_memory_mib", "memory")):
        book, flow = table.of("booksim").curve(column), table.of("flow").curve(column)
        parts = {k: flow[k] / book[k] for k in book if k in flow}
        holds = len(parts) == len(book) > 0 and curves.largest(parts) <= 0.02
        found.must(holds, f"{name} over BookSim 2's: {curves.text(parts, 5)} (<= 0.02)")
        flit = table.of("flit").curve(column)
        found.report(f"{name} over that of our flit engine: {curves.text({k: flow[k] / flit[k] for k in flow if flit.get(k)}, 4)}")
    found.report("the kept rows of BookSim 2 are of another machine" if not os.environ.get("BOOKSIM") else "BookSim 2 ran on this machine")
    return found.verdict()


def _microseconds(table: Table) -> dict[Any, float]:
    return {k: nanoseconds / 1000 for k, nanoseconds in table.curve("completion_time_ns").items()}


#: Table 1: the paper's last row prints k = 34 with 46,656 nodes, which is 36^3.
TABLE_1 = (16, 18, 20, 22, 26, 30, 36)


def _by_length(table: Table, series: str) -> dict[int, dict[Any, float]]:
    lengths = sorted({row[PACKET_FLITS] for row in table.of(series)})
    return {length: table.of(series, **{PACKET_FLITS: length}).curve("atr") for length in lengths}


def _spread(by_length: dict[int, dict[Any, float]], lengths: tuple[int, ...]) -> dict[Any, float]:
    """Greatest less least over the lengths, over their mean, where all of them have a value."""
    chosen = [by_length.get(length, {}) for length in lengths]
    common = [k for k in chosen[0] if all(k in curve for curve in chosen)]
    values = {k: [curve[k] for curve in chosen] for k in common}
    return {k: (max(all_) - min(all_)) / (math.fsum(all_) / len(all_)) for k, all_ in values.items()}


def _agree(found: Findings, table: Table, limit: float) -> None:
    flow, flit = table.of("flow").curve("atr"), table.of("flit").curve("atr")
    away = curves.distances(flow, flit, flow)
    holds = len(away) == len(flow) and curves.largest(away) < limit
    found.must(holds, f"flow {curves.text(flow)}; flit {curves.text(flit)}; apart, of flow, by {curves.text(away)} (< {limit})")
    found.report(f"default router {curves.text(table.of('flit-default-router').curve('atr'))}")


def _tornado_flow(found: Findings, table: Table) -> dict[Any, float]:
    flow = table.of("flow").curve("atr")
    away = curves.distances(flow, TORNADO_FLOW)
    complete = len(away) == len(TORNADO_FLOW)
    found.must(complete and curves.largest(away) <= 0.001, f"flow {curves.text(flow)} (1, 1, 1, 1, 1/2, 1/2, 1/3 for k = 2 to 8)")
    return flow


def _report_default_routers(found: Findings, table: Table, series: tuple[str, ...]) -> None:
    for name in series:
        found.report(
            f"{name} {curves.text(table.of(name).curve('atr'))}; default router "
            f"{curves.text(table.of(f'{name}-default-router').curve('atr'))}"
        )


def _part(curve: dict[Any, float], places: list[Any]) -> str:
    return curves.text({place: curve[place] for place in places})


# --- BookSim 2 itself, for table 1 ------------------------------------------------------------------------------------------------


def booksim_rows(folder: Path, out: Path) -> list[dict[str, Any]]:
    """Give BookSim 2's rows of table 1: from the file kept beside the experiments, or run anew where `BOOKSIM` names the program."""
    program = os.environ.get("BOOKSIM")
    if program:
        return [_run_booksim(Path(program), folder / "booksim-fat-tree.cfg", out, k) for k in (10, 12, 16)]
    with (folder / "booksim-batch.csv").open() as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return [
            {
                "series": "booksim",
                "k": int(row["k"]),
                "status": row["status"],
                "measure.seed": int(row["seed"]),
                "completion_time": float(row["batch_time"]),
                "process_seconds": float(row["user_s"]),
                "peak_memory_mib": float(row["maxrss_mb"]),
            }
            for row in rows
        ]


def _run_booksim(program: Path, configuration: Path, out: Path, k: int) -> dict[str, Any]:
    """Run BookSim 2 under the system's `time`, which waits for it alone, and keep what both print."""
    kept = out / f"booksim-k{k}.txt"
    if not kept.exists():
        process = measured(["/usr/bin/time", "-f", "processor seconds %U + %S\npeak KiB %M", program, configuration, f"k={k}"])
        kept.parent.mkdir(parents=True, exist_ok=True)
        beside = kept.with_suffix(".part")
        beside.write_text(process.output + process.errors)
        beside.replace(kept)
    content = kept.read_text()
    patterns = (r"batch duration = ([\d.]+)", r"processor seconds ([\d.]+) \+ ([\d.]+)", r"peak KiB ([\d.]+)")
    end, seconds, memory = (re.findall(pattern, content) for pattern in patterns)
    if not (end and seconds and memory):
        raise ConfigError(f"{kept}: is not what BookSim 2 and the program `time` print; remove it, and see whether BOOKSIM names BookSim 2")
    return {
        "series": "booksim",
        "k": k,
        "status": "ok",
        "completion_time": float(end[-1]),
        "process_seconds": math.fsum(map(float, seconds[-1])),
        "peak_memory_mib": float(memory[-1]) / 1024,
    }


def _atr(*split: str) -> Plot:
    return Plot("k", "atr", "k", "average throughput rate (ATR)", split)


_DIFFER = "|flit FPP40 - flow| > 2 % of flow and three standard errors"

PAPER = Paper(
    "mfs",
    "MFS, a network simulator based on message flows, beside BookSim",
    (
        Figure(
            "003-F1",
            "D",
            "flows that share a channel share its bandwidth equally; a flow has the least share on its way",
            "two flows that share a channel get 1/2 each",
            "identity",
            "flow",
            two_flows_share,
        ),
        Figure(
            "003-F2",
            "F",
            "uniform, fat tree: both simulators fall gently with k, and differ; packet length is irrelevant",
            f"ATR of flow and flit falls with k (slack 5 %); {_DIFFER} at every k; spread over FPP below 5 %",
            "derived",
            "flow, flit",
            uniform_on_fat_tree,
            _atr(PACKET_FLITS),
            _ROUTERS,
        ),
        Figure(
            "003-F3",
            "F",
            "uniform, mesh: the simulators differ; packet length is irrelevant",
            f"ATR of flow and flit falls with k (slack 5 %); {_DIFFER} at all k but two; spread over FPP below 5 %",
            "derived",
            "flow, flit",
            uniform_on_mesh,
            _atr(PACKET_FLITS),
            _ROUTERS,
        ),
        Figure(
            "003-F4",
            "F",
            "uniform, torus: the simulators differ; FPP10 lies a little off the others, FPP40 and FPP80 agree",
            f"{_DIFFER} at all k but two; FPP40 and FPP80 differ by less than 5 %; mean |FPP10 - FPP40| > mean |FPP80 - FPP40|",
            "derived",
            "flow, flit",
            uniform_on_torus,
            _atr(PACKET_FLITS),
            _ROUTERS,
        ),
        Figure(
            "003-C4",
            "C",
            "the difference is due to arbitration: fairer arbitration brings the packets to the flows",
            "uniform, k >= 6, means over k: |voq - flow| < |rr - flow| on each network; |age - flow| <= |rr - flow|/2 on mesh and torus",
            "derived",
            "flow, flit",
            arbitration_explains,
            Plot("k", "atr", "k", "average throughput rate (ATR)"),
            ("`voq`: a virtual channel for each destination, so that no head of line blocks others; `age`: other arbiters alone",),
        ),
        Figure(
            "003-F5",
            "F",
            "transpose, fat tree: MFS and BookSim nearly equal",
            "|flit - flow|/flow < 0.10",
            "derived",
            "flow, flit",
            transpose_on_fat_tree,
            _atr(),
            _ROUTERS,
        ),
        Figure(
            "003-F6",
            "F",
            "transpose, mesh: MFS and BookSim nearly equal",
            "flow 1, 0.625, 0.344, 0.180 for k = 2, 4, 8, 16; |flit - flow|/flow < 0.10",
            "derived",
            "flow, flit",
            transpose_on_mesh,
            _atr(),
            _ROUTERS,
        ),
        Figure(
            "003-F7",
            "F",
            "transpose, torus: at k = 4 MFS has 0.750, BookSim 0.037 less",
            "flow at k = 4 is 0.750 +- 0.001; the gap of flit is in [0.018, 0.056]",
            "calibrated",
            "flow, flit",
            transpose_on_torus,
            _atr(),
            (*_ROUTERS, "the rule for ties of MFS was chosen from the paper's 0.750"),
        ),
        Figure(
            "003-F8",
            "F",
            "tornado, mesh: 1 for k <= 5, 0.5 for k = 6 and 7; from k = 8 on BookSim is lower, with VOQ less so",
            "flow 1, 1, 1, 1, 1/2, 1/2, 1/3 for k = 2 to 8; VC1 within 5 % for k <= 7, for k >= 8 off by over 10 % and more than VOQ",
            "reading",
            "flow, flit",
            tornado_on_mesh,
            _atr(),
            _ROUTERS,
        ),
        Figure(
            "003-F9",
            "F",
            "tornado, torus: with two virtual channels BookSim is about 0.3 lower at k = 6 and 7, with VOQ nearer",
            "flow as in F8; VC2 within 5 % for k <= 5, lower by [0.24, 0.36] at k = 6, 7; VOQ nearer than VC2 at every k >= 6",
            "reading",
            "flow, flit",
            tornado_on_torus,
            _atr(),
            _ROUTERS,
        ),
        Figure(
            "003-C6",
            "C",
            "with VOQ differences remain only for k >= 9 on the mesh and k >= 8 on the torus",
            "VOQ within 10 % of flow for k <= 8 (mesh) and k <= 7 (torus)",
            "derived",
            "flow, flit",
            queues_close_the_gap,
            runs_of=("F8", "F9", "C6"),
        ),
        Figure(
            "003-C1",
            "C",
            "the tornado never contends on the fat tree, whatever k, in both simulators",
            "flow ATR = 1 and flit ATR >= 0.95 for k = 2 to 16",
            "reading",
            "flow, flit",
            never_contends,
            _atr(),
        ),
        Figure(
            "003-T1",
            "T",
            "k-ary 3-tree, ten random messages: completion 0.935 to 1.112 of BookSim's, nearly constant in k",
            "flow/flit completion in [0.89, 1.17] at k = 16 to 22; flow in [31, 37] us, largest over smallest at most 1.1",
            "reading",
            "flow, flit",
            large_fat_trees,
            Plot("k", "completion_time", "k", "completion time (cycles)"),
            (
                "a flit takes 25 ns (1000 bits in 40 flits at 1 Gb/s); BookSim 2's rows are those kept beside the experiments, or made "
                "anew where BOOKSIM names the program",
            ),
            booksim_rows,
            readings={"BookSim 2's own completion time": large_fat_trees_beside_booksim},
        ),
        Figure(
            "003-C7",
            "C",
            "time and memory are each 1 to 2 % of BookSim's",
            "time and memory of flow at most 0.02 of BookSim 2's at every k that it ran",
            "derived",
            "flow, flit",
            time_and_memory,
            notes=("time is the processor time and memory the peak of the whole process",),
            beside=booksim_rows,
        ),
        Figure(
            "003-C3",
            "C",
            "neighbour and stencil traffic: a flow simulation is right where little collides",
            "completion of flow within 10 % of flit, for messages of 120 and 1000 flits, neighbour and stencil, on three networks",
            "derived",
            "flow, flit",
            neighbours_are_right,
        ),
        Figure(
            "003-C2",
            "C",
            "uniform: more flits in a packet bring BookSim closer to MFS",
            "fat tree: mean over k of |FPP100 - flow| below that of |FPP10 - flow| by more than 2 % of it and three standard errors",
            "derived",
            "flow, flit",
            longer_packets_are_closer,
        ),
        Figure(
            "003-S1",
            "S",
            "flows with arbitration, the authors' future work",
            "none: ATR beside flit and flow, error and time of each",
            "derived",
            "flow, flit",
            flows_with_arbitration,
            runs_of=("S1", *STUDIED, "T1"),
        ),
        Figure(
            "003-S2",
            "S",
            "where flows may be trusted: few hops, small error",
            "none: the error over mean hops and channel load",
            "derived",
            "flow, flit",
            where_flows_may_be_trusted,
            runs_of=(*STUDIED, "S1"),
        ),
    ),
)
