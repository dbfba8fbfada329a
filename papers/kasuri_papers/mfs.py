"""Yazaki and Ishihata, "An Evaluation of Message-flow-based Network Simulator": the flow simulator MFS beside BookSim.

In every figure the series ``flow`` is the flow engine (MFS), ``flit`` the flit engine with a router of one cycle (BookSim as the
paper must have set it), and ``flit-default-router`` the flit engine with BookSim 2's default router, which nobody judges: its
credit loop is longer than two flits, so that it cannot carry the rates that the paper shows.
"""

from __future__ import annotations

import csv
import math
import os
import re
from pathlib import Path
from typing import Any

from kasuri.errors import ConfigError
from kasuri_papers import curves
from kasuri_papers.figure import Figure, Findings, Paper, Plot, Table, Verdict
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


def uniform_falls(table: Table) -> Verdict:
    """Both simulators fall gently with k, whatever the packet length."""
    found = Findings()
    by_length = _by_length(table, "flit")
    engines = {"flow": table.of("flow"), **{f"flit FPP{length}": table.of("flit", **{PACKET_FLITS: length}) for length in by_length}}
    for name, rows in engines.items():
        curve, errors = rows.curve("atr"), rows.standard_errors("atr")
        holds = curves.never_rises(curve, 0.05) and curves.falls(curve, errors)
        found.must(holds, f"{name} {'falls' if holds else 'does not fall steadily'}: {curves.text(curve)}")
    spread = _spread(by_length, LENGTHS)
    found.must(curves.largest(spread) < 0.05, f"spread over FPP, of their mean: {curves.text(spread)} (< 0.05)")
    _report_distance(found, table)
    return found.verdict()


def lengths_agree(table: Table) -> Verdict:
    """Packets of 40 and of 80 flits have the same ATR."""
    found = Findings()
    by_length = _by_length(table, "flit")
    spread = _spread(by_length, (40, 80))
    found.must(curves.largest(spread) < 0.05, f"FPP40 and FPP80 differ, of their mean, by {curves.text(spread)} (< 0.05)")
    middle = by_length.get(40, {})
    for length in (10, 100):
        found.report(f"FPP{length} lies off FPP40 by {curves.text(curves.distances(by_length.get(length, {}), middle, middle))}")
    found.report(f"flow: {curves.text(table.of('flow').curve('atr'))}; flit FPP40: {curves.text(middle)}")
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
    """ATR 0.750 of the flow engine at k = 4, the flit engine within 0.08."""
    found = Findings()
    flow, flit = table.of("flow").curve("atr"), table.of("flit").curve("atr")
    found.must(abs(flow.get(4, math.inf) - 0.75) <= 0.001, f"flow at k = 4: {flow.get(4)} (0.750 +- 0.001)")
    gap = abs(flow.get(4, math.inf) - flit.get(4, -math.inf))
    found.must(gap <= 0.08, f"flit at k = 4: {flit.get(4, math.nan):.3f}, a gap of {gap:.3f} (<= 0.08; the paper's is 0.037)")
    found.report(f"flow {curves.text(flow)}; flit {curves.text(flit)}")
    return found.verdict()


#: 1 over the flows on the fullest channel, floor(k/2) - 1.
TORNADO_FLOW = {2: 1.0, 3: 1.0, 4: 1.0, 5: 1.0, 6: 1 / 2, 7: 1 / 2, 8: 1 / 3}


def tornado_on_mesh(table: Table) -> Verdict:
    """One virtual channel is right up to k = 7; one for each destination is closer from k = 8 on."""
    found = Findings()
    flow = _tornado_flow(found, table)
    single, own = table.of("flit-vc1").curve("atr"), table.of("flit-voq").curve("atr")
    small = {k: gap for k, gap in curves.distances(single, flow).items() if k <= 7}
    found.must(curves.largest(small) <= 0.1, f"VC1 differs for k <= 7 by {curves.text(small)} (<= 0.1)")
    gaps, own_gaps = curves.distances(single, flow), curves.distances(own, flow)
    large = [k for k in gaps if k >= 8 and k in own_gaps]
    closer = bool(large) and all(own_gaps[k] <= gaps[k] for k in large)
    found.must(closer, f"gaps for k >= 8: VC1 {_part(gaps, large)}; VOQ {_part(own_gaps, large)} (VOQ closer)")
    _report_default_routers(found, table, ("flit-vc1", "flit-voq"))
    return found.verdict()


def tornado_on_torus(table: Table) -> Verdict:
    """Two virtual channels are far below the flow engine from k = 6 on; one for each destination is closer on the mean."""
    found = Findings()
    flow = _tornado_flow(found, table)
    two, own = (curves.distances(table.of(name).curve("atr"), flow) for name in ("flit-vc2", "flit-voq"))
    large = [k for k in two if k >= 6 and k in own]
    means = [math.fsum(gaps[k] for k in large) / len(large) if large else math.inf for gaps in (own, two)]
    found.must(means[0] < means[1], f"mean gap for k >= 6: VOQ {means[0]:.3f}, VC2 {means[1]:.3f} (VOQ closer)")
    found.report(f"gaps: VC2 {_part(two, large)}; VOQ {_part(own, large)}; the paper's for VC2 at k = 6, 7 is about 0.3")
    _report_default_routers(found, table, ("flit-vc2", "flit-voq"))
    return found.verdict()


def never_contends(table: Table) -> Verdict:
    """ATR 1 for every k from 2 to 16."""
    found = Findings()
    curve = table.of("flow").curve("atr")
    complete = set(curve) >= set(range(2, 17))
    found.must(complete and all(abs(rate - 1) < 1e-9 for rate in curve.values()), f"flow: {curves.text(curve)} (1 for k = 2 to 16)")
    return found.verdict()


def longer_packets_are_closer(table: Table) -> Verdict:
    """Packets of 100 flits are not further from the flow engine than those of 10, by more than 0.02."""
    found = Findings()
    for network in ("fat-tree", "mesh", "torus"):
        flow = table.of(f"flow-{network}").curve("atr")
        gaps = {length: curves.distances(table.of(f"flit-{network}", **{PACKET_FLITS: length}).curve("atr"), flow) for length in (10, 100)}
        common = [k for k in gaps[10] if k in gaps[100]]
        holds = bool(common) and all(gaps[100][k] <= gaps[10][k] + 0.02 for k in common)
        nearer = sum(gaps[100][k] < gaps[10][k] for k in common)
        found.report(f"{network}: FPP100 is truly nearer at {nearer} of {len(common)} k")
        found.must(holds, f"{network}: gap to flow, FPP10 {curves.text(gaps[10])}; FPP100 {curves.text(gaps[100])}")
    return found.verdict()


def neighbours_are_right(table: Table) -> Verdict:
    """Completion times of the flow engine are within 10 % of the flit engine's for messages to the neighbour."""
    found = Findings()
    for network in ("fat-tree", "mesh", "torus"):
        for length in (100, 1000):
            conditions = {PACKET_FLITS: length}
            flow = table.of(f"flow-{network}", **conditions).curve("completion_time")
            flit = table.of(f"flit-{network}", **conditions).curve("completion_time")
            away = curves.distances(flow, flit, flit)
            found.must(curves.largest(away) <= 0.10, f"{network}, {length} flits: off by {curves.text(away)} (<= 0.10)")
    return found.verdict()


def large_fat_trees(table: Table) -> Verdict:
    """Completion close to the flit engine's and nearly constant, time and memory below a tenth of BookSim 2's."""
    found = Findings()
    flow, flit = table.of("flow").curve("completion_time"), table.of("flit").curve("completion_time")
    ratios = {k: flow[k] / flit[k] for k in flow if k in flit}
    inside = len(ratios) == len(TABLE_1) and all(0.85 <= ratio <= 1.2 for ratio in ratios.values())
    found.must(inside, f"flow/flit {curves.text(ratios)} ([0.85, 1.2], all of k = {', '.join(map(str, TABLE_1))})")
    micro = _microseconds(table.of("flow"))
    found.must(bool(micro) and all(28 <= time <= 40 for time in micro.values()), f"flow in us {curves.text(micro, 2)} ([28, 40])")
    flatness = max(micro.values()) / min(micro.values()) if micro else math.inf
    found.must(flatness <= 1.1, f"largest/smallest flow time {flatness:.3f} (nearly constant: <= 1.1)")
    for column, name in (("process_seconds", "time"), ("peak_memory_mib", "memory")):
        book = table.of("booksim").curve(column)
        own = {engine: table.of(engine).curve(column) for engine in ("flow", "flit")}
        parts = {k: own["flow"][k] / book[k] for k in book if k in own["flow"]}
        found.must(curves.largest(parts) < 0.1, f"{name} over BookSim 2's: {curves.text(parts, 5)} (< 0.1)")
        of_flit = {k: own["flow"][k] / own["flit"][k] for k in own["flow"] if own["flit"].get(k)}
        found.report(f"{name} of flow {curves.text(own['flow'])}, of flit {curves.text(own['flit'])}, ratio {curves.text(of_flit)}")
    found.report(f"flit in us {curves.text(_microseconds(table.of('flit')), 2)}")
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


def _report_distance(found: Findings, table: Table) -> None:
    flow = table.of("flow").curve("atr")
    flit = table.of("flit", **{PACKET_FLITS: 40}).curve("atr")
    found.report(f"flit FPP40 less flow: {curves.text({k: flit[k] - flow[k] for k in flow if k in flit})}")
    default = table.of("flit-default-router", **{PACKET_FLITS: 40}).curve("atr")
    found.report(f"default router, FPP40: {curves.text(default)}")


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
            "ATR of flow and flit falls with k (slack 5 %); spread over FPP below 5 %",
            "derived",
            "flow, flit",
            uniform_falls,
            _atr(PACKET_FLITS),
            _ROUTERS,
        ),
        Figure(
            "003-F3",
            "F",
            "uniform, mesh: the simulators differ; packet length is irrelevant",
            "ATR of flow and flit falls with k (slack 5 %); spread over FPP below 5 %",
            "derived",
            "flow, flit",
            uniform_falls,
            _atr(PACKET_FLITS),
            _ROUTERS,
        ),
        Figure(
            "003-F4",
            "F",
            "uniform, torus: FPP10 and FPP100 lie a little off FPP40 and FPP80",
            "FPP40 and FPP80 differ by less than 5 %",
            "derived",
            "flow, flit",
            lengths_agree,
            _atr(PACKET_FLITS),
            _ROUTERS,
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
            "flow at k = 4 is 0.750 +- 0.001; flit within 0.08 of it",
            "derived",
            "flow, flit",
            transpose_on_torus,
            _atr(),
            _ROUTERS,
        ),
        Figure(
            "003-F8",
            "F",
            "tornado, mesh: 1 for k <= 5, 0.5 for k = 6 and 7; from k = 8 on BookSim is lower, with VOQ less so",
            "flow 1, 1, 1, 1, 1/2, 1/2, 1/3 for k = 2 to 8; VC1 within 0.1 for k <= 7; VOQ no further off than VC1 for k >= 8",
            "derived",
            "flow, flit",
            tornado_on_mesh,
            _atr(),
            _ROUTERS,
        ),
        Figure(
            "003-F9",
            "F",
            "tornado, torus: with two virtual channels BookSim is about 0.3 lower at k = 6 and 7, with VOQ closer",
            "flow as in F8; mean distance to flow for k >= 6 less with VOQ than with VC2",
            "derived",
            "flow, flit",
            tornado_on_torus,
            _atr(),
            _ROUTERS,
        ),
        Figure(
            "003-C1",
            "C",
            "the tornado never contends on the fat tree, whatever k",
            "flow ATR = 1 for k = 2 to 16",
            "derived",
            "flow",
            never_contends,
            _atr(),
        ),
        Figure(
            "003-T1",
            "T",
            "k-ary 3-tree, ten random messages: completion 0.935 to 1.112 of BookSim's, time and memory 1 to 2 % of it",
            "flow/flit completion in [0.85, 1.2]; flow in [28, 40] us, nearly constant; time and memory below 0.1 of BookSim 2's",
            "derived",
            "flow, flit",
            large_fat_trees,
            Plot("k", "completion_time", "k", "completion time (cycles)"),
            (
                "a flit takes 25 ns (1000 bits in 40 flits at 1 Gb/s); BookSim 2's rows are those kept beside the experiments, or made "
                "anew where BOOKSIM names the program; time is the processor time and memory the peak of the whole process",
            ),
            booksim_rows,
        ),
        Figure(
            "003-C3",
            "C",
            "neighbour and stencil traffic: a flow simulation is right where little collides",
            "completion of flow within 10 % of flit for messages of at least 100 flits",
            "derived",
            "flow, flit",
            neighbours_are_right,
        ),
        Figure(
            "003-C2",
            "C",
            "uniform: more flits in a packet bring BookSim closer to MFS",
            "|FPP100 - flow| <= |FPP10 - flow| + 0.02",
            "derived",
            "flow, flit",
            longer_packets_are_closer,
        ),
    ),
)
