"""The distributed shared memory of the virtual-network paper: its simulator, figures 5 and 6, and what more hops cost."""

from __future__ import annotations

from kasuri_papers import curves
from kasuri_papers.figure import Figure, Findings, Plot, Table, Verdict

TIME = "completion_time"
#: NIU rate: how busy interfaces are. NR rate: how long routers hold packets for their own nodes.
INTERFACES, ROUTERS = "interface_busy_mean", "interface_awaited_mean"
#: The throughput between router and interface, times that between routers.
X = "x"
#: The window that is judged, and the one that is told beside it.
WINDOW, MILDER = 64, 16
#: How far a curve may go the other way from one point to the next.
SLACK = 0.03
FORMS = ("queues", "flits")
#: Stages of a router and latency of a channel in the runs of single reads: what a hop costs a head.
HOP_CYCLES = 3 + 1
#: Cycles of a packet between routers: the unit of time.
UNIT = 4 * 840


def simulator(table: Table) -> Verdict:
    """The recursive diagonal torus has the distances of its authors, and every part of a node works."""
    found = Findings()
    for side, diameter, average in ((16, 5, 3.655), (256, 11, None)):
        rows = table.of(f"distances-{side}").rows
        values = [(row["routers"], row["diameter"], row["average"]) for row in rows]
        right = [
            (routers, longest) == (side * side, diameter) and (average is None or abs(mean - average) < 0.0005)
            for routers, longest, mean in values
        ]
        found.must(bool(right) and all(right), f"routers, diameter, average distance {values} ({side * side}, {diameter}, {average})")
    for row in table.of("simulator"):
        found.must(row["requests_answered"] == 64 * 63, f"{row['requests_answered']} reads answered (64 x 63)")
        found.must(row[INTERFACES] > 0 and row[ROUTERS] > 0, f"interfaces work {row[INTERFACES]:.3f}, routers hold {row[ROUTERS]:.3f}")
    found.must(len(table.of("simulator")) > 0, "the simulator has run")
    return found.verdict()


def _of(table: Table, form: str, column: str, window: int = WINDOW) -> dict[int, float]:
    return table.of(form, endpoint__window=window).curve(column, X)


def execution_time(table: Table) -> Verdict:
    """The time falls well up to a point and is flat after 5."""
    found = Findings()
    for form in (*FORMS, "queues-of-256"):
        curve = {x: time / UNIT for x, time in _of(table, form, TIME).items()}
        if not {1, 2, 5, 8} <= set(curve):
            found.must(False, f"{form}: the curve has points at {list(curve)}")
            continue
        found.must(curves.never_rises(curve, SLACK) and curves.falls(curve), f"{form}: {curves.text(curve, 1)} (falls, 3 % slack)")
        found.must(curve[1] / curve[5] > 1.3, f"{form}: T(1)/T(5) {curve[1] / curve[5]:.3f} (> 1.3)")
        found.must(curve[5] / curve[8] < 1.02, f"{form}: T(5)/T(8) {curve[5] / curve[8]:.3f} (< 1.02)")
        places = list(curve)
        drops = {x: curve[x] - curve[after] for x, after in zip(places, places[1:], strict=False)}
        found.must(max(drops, key=lambda x: drops[x]) == 1, f"{form}: falls by {curves.text(drops, 1)} (most from 1 to 2)")
    milder = {x: time / UNIT for x, time in _of(table, "queues", TIME, MILDER).items()}
    found.report(f"queues, window {MILDER}: {curves.text(milder, 1)}")
    return found.verdict()


def the_point_is_five(table: Table) -> Verdict:
    """Time still falls from 4 to 5, and no more from 5 to 8."""
    return _knee(table, WINDOW)


def the_point_is_five_with_eight_reads(table: Table) -> Verdict:
    """As :func:`the_point_is_five`, with eight outstanding reads."""
    return _knee(table, 8)


def _knee(table: Table, window: int) -> Verdict:
    found = Findings()
    curve = _of(Table(row for row in table if row.get("figure") == "F5"), "queues", TIME, window)
    if not {4, 5, 8} <= set(curve):
        found.must(False, f"window {window}: the curve has points at {list(curve)}")
        return found.verdict()
    found.must(curve[4] / curve[5] > 1.02, f"window {window}: T(4)/T(5) {curve[4] / curve[5]:.3f} (> 1.02)")
    found.must(curve[5] / curve[8] < 1.02, f"window {window}: T(5)/T(8) {curve[5] / curve[8]:.3f} (< 1.02)")
    return found.verdict()


def work_rates(table: Table) -> Verdict:
    """Routers hold packets far longer than interfaces work at 1; the gap narrows; interfaces are constant after 5."""
    found = Findings()
    for form in FORMS:
        routers, interfaces = _of(table, form, ROUTERS), _of(table, form, INTERFACES)
        if not {1, 5, 8} <= set(routers):
            found.must(False, f"{form}: the curves have points at {list(routers)}")
            continue
        gap = {x: abs(routers[x] - interfaces[x]) for x in routers}
        found.must(routers[1] / interfaces[1] > 2.5, f"{form}: NR(1)/NIU(1) {routers[1] / interfaces[1]:.3f} (> 2.5)")
        found.must(gap[5] < 0.35 * gap[1], f"{form}: |NR-NIU| {gap[5]:.3f} at 5, {gap[1]:.3f} at 1 (< 0.35 of it)")
        found.must(abs(interfaces[8] - interfaces[5]) < 0.02, f"{form}: |NIU(8)-NIU(5)| {abs(interfaces[8] - interfaces[5]):.4f} (< 0.02)")
        found.must(curves.rises(interfaces, SLACK), f"{form}: NIU {curves.text(interfaces)} (rises, 3 % slack)")
        found.must(curves.never_rises(routers, SLACK) and curves.falls(routers), f"{form}: NR {curves.text(routers)} (falls, 3 % slack)")
    milder = (_of(table, "queues", ROUTERS, MILDER), _of(table, "queues", INTERFACES, MILDER))
    found.report(f"queues, window {MILDER}: NR {curves.text(milder[0])}; NIU {curves.text(milder[1])}")
    return found.verdict()


def cost_of_hops(table: Table) -> Verdict:
    """With virtual cut-through, a logical link that is longer on the machine costs its further hops of the head and no more."""
    found = Findings()
    beyond = {}
    for series in ("cut-through", "store-and-forward"):
        reads = [(row["hops_mean"], row["packet_latency_mean"]) for row in table.of(series)]
        # A link between neighbours crosses their two routers.
        adjacent = [latency for hops, latency in reads if hops == 2]
        if not adjacent or len(reads) == len(adjacent):
            found.must(False, f"{series}: {len(adjacent)} links between neighbours of {len(reads)}")
            continue
        beyond[series] = {hops - 2: latency - min(adjacent) for hops, latency in sorted(reads) if hops > 2}
    for hops, cycles in beyond.get("cut-through", {}).items():
        found.must(cycles <= hops * HOP_CYCLES, f"{hops:g} hops more: {cycles:g} cycles more (<= {hops * HOP_CYCLES:g})")
    found.report(f"store-and-forward: {curves.text(beyond.get('store-and-forward', {}), 0)} cycles more")
    return found.verdict()


_CALIBRATED = (
    "the interface's time for a packet is calibrated to put the knee at 5; sizes and times are not given by the paper",
    "queues: packets through queues without bounds; flits: routers with buffers and credits",
)

FIGURES = (
    Figure(
        "004-F4",
        "D",
        "a simulator of processor, network interface, router and local memory on the recursive diagonal torus",
        "16 x 16: diameter 5, average 3.655; 2^16 routers: diameter 11; all reads are answered",
        "structure",
        "built network, flow",
        simulator,
    ),
    Figure(
        "004-F5",
        "F",
        "execution time over the throughput between router and interface: falls well up to a point, flat after 5",
        "64 reads, also 16 x 16 nodes: falls with 3 % slack; T(1)/T(5) > 1.3; T(5)/T(8) < 1.02; the largest drop is from 1 to 2",
        "derived",
        "flow, flit",
        execution_time,
        Plot(X, TIME, "throughput between router and interface", "execution time (cycles)", ("endpoint.window",)),
        _CALIBRATED,
    ),
    Figure(
        "004-C5",
        "C",
        "the point is 5: packets jam below it, and no longer above",
        "T(4)/T(5) > 1.02 and T(5)/T(8) < 1.02",
        "derived",
        "flow",
        the_point_is_five,
        readings={"8 outstanding reads": the_point_is_five_with_eight_reads},
        runs_of=("F5",),
    ),
    Figure(
        "004-F6",
        "F",
        "work rates of router and interface: the router's far above at 1, the gap narrows, the interface's constant after 5",
        "queues and flits, window 64: NR(1)/NIU(1) > 2.5; |NR-NIU| at 5 < .35 x that at 1; |NIU(8)-NIU(5)| < .02; "
        "NIU rises, NR falls with 3 % slack",
        "calibrated",
        "flow, flit",
        work_rates,
        Plot(X, ROUTERS, "throughput between router and interface", "router holds a packet for its node", ("endpoint.window",), 1.0),
        _CALIBRATED,
        runs_of=("F5",),
    ),
    Figure(
        "004-C3",
        "C",
        "with virtual cut-through more hops cost only a few clocks",
        "latency over a longer link less that over a link between neighbours <= hops more x delay of the head in a hop",
        "identity",
        "flit",
        cost_of_hops,
    ),
)
