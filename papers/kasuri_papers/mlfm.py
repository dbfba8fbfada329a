"""Fewer switches without collisions: the multi-layer full mesh and its all-to-all beside fat trees and the shift schedule.

The rows of structure and schedule are counted: on the built network, and phase by phase over the routes in use. Those of time are
measured by the engine that they name.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from kasuri_papers import curves, mlfm_studies
from kasuri_papers.figure import Figure, Findings, Paper, Plot, Table, Verdict

#: The part `infiniband` of machine.toml.
FLIT_BYTES = 64

#: Message times of the best all-to-all over those of shifts, on 1, 2 and 4 layers of the experiment's network.
PREDICTED = {8: 7 / 10, 16: 15 / 22, 32: 31 / 46}


# --- structure --------------------------------------------------------------------------------------------------------------------


def two_level_fat_tree(table: Table) -> Verdict:
    """One-sided d^2 terminals (9 for d = 3), two-sided 2 d^2 (18) on 3 d switches."""
    found = Findings()
    _must_count(found, table, "one-sided", "terminals", lambda d: d * d)
    _must_count(found, table, "two-sided", "terminals", lambda d: 2 * d * d)
    _must_count(found, table, "two-sided", "routers", lambda d: 3 * d)
    return found.verdict()


def shifts_do_not_collide(table: Table) -> Verdict:
    """Every phase of the shift on the two-level tree has one message on a channel at most."""
    found = Findings()
    _must_be_free(found, table.of("shift"))
    return found.verdict()


def third_level_costs(table: Table) -> Verdict:
    """Degree 3: 2 terminals a switch with two levels, 1.2 with three."""
    found = Findings()
    for series, expected in (("two-levels", Fraction(2)), ("three-levels", Fraction(6, 5))):
        ratios = _per_switch(table.of(series))
        found.must(ratios.get(3) == expected, f"{series}, d = 3: {_fractions(ratios)} terminals a switch (exactly {float(expected)})")
    return found.verdict()


def full_mesh_of_layers(table: Table) -> Verdict:
    """d^2 (d + 1) terminals on 3 d (d + 1) / 2 switches of 2 d ports each."""
    found = Findings()
    _must_count(found, table, "mlfm", "terminals", lambda d: d * d * (d + 1))
    _must_count(found, table, "mlfm", "routers", lambda d: 3 * d * (d + 1) // 2)
    wrong = {row["d"]: ports for row in table.of("mlfm") if (ports := set(row["leaf_ports"] + row["spine_ports"])) != {2 * row["d"]}}
    found.must(not wrong and len(table) > 0, f"switches with other than 2 d ports: {wrong or 'none'}")
    return found.verdict()


def other_positions_do_not_collide(table: Table) -> Verdict:
    """K (m - 1) p phases go to leaves at another position, with one message on a channel at most."""
    found = Findings()
    _must_have_phases(found, table, lambda kind: "position" in kind, lambda row: row["d"] ** 3)
    return found.verdict()


def same_positions_do_not_collide(table: Table) -> Verdict:
    """(K - 1) p phases go to leaves at the same position of another layer, with one message on a channel at most."""
    found = Findings()
    _must_have_phases(found, table, lambda kind: kind == ["layer"], lambda row: (row["d"] - 1) * row["d"])
    return found.verdict()


def all_to_all_is_free(table: Table) -> Verdict:
    """N - 1 phases serve all pairs once, with one message on a channel at most, for every shape with p <= m - 1 and every plane."""
    found = Findings()
    for series in ("degree", "shape", "oft"):
        _must_be_free(found, table.of(series), series)
    return found.verdict()


def parts_of_a_tree_are_free(table: Table) -> Verdict:
    """Shifts among any whole leaves of a two-level tree never collide."""
    found = Findings()
    for d in (4, 8):
        rows = table.of("shift", d=d)
        found.must(len({row["seed"] for row in rows}) >= 100, f"d = {d}: {len(rows)} random sets of leaves (100)")
        _must_be_free(found, rows, f"d = {d}")
    return found.verdict()


def sizes(table: Table) -> Verdict:
    """Terminals, terminals a switch and links over the degree are the formulas, and MLFM is (d + 1)/2 times the two-level tree."""
    found = Findings()
    for series, terminals, switches in (
        ("two-levels", lambda d: 2 * d**2, lambda d: 3 * d),
        ("three-levels", lambda d: 2 * d**3, lambda d: 5 * d**2),
        ("mlfm", lambda d: d**2 * (d + 1), lambda d: 3 * d * (d + 1) // 2),
    ):
        _must_count(found, table, series, "terminals", terminals)
        _must_count(found, table, series, "routers", switches)
    _must_count(found, table, "two-levels", "links", lambda d: 2 * d**2)
    _must_count(found, table, "mlfm", "links", lambda d: d**2 * (d + 1))
    two, layered = (table.of(series).curve("terminals", "d") for series in ("two-levels", "mlfm"))
    ratios = {d: Fraction(int(layered[d]), int(two[d])) for d in layered if d in two}
    found.must(bool(ratios) and all(ratio == Fraction(d + 1, 2) for d, ratio in ratios.items()), f"MLFM/tree {_fractions(ratios)}")
    for series, expected in (("two-levels", Fraction(2, 3)), ("mlfm", Fraction(2, 3)), ("three-levels", Fraction(2, 5))):
        per_switch = _per_switch(table.of(series))
        holds = bool(per_switch) and all(ratio == expected * d for d, ratio in per_switch.items())
        found.must(holds, f"{series}: terminals a switch {_fractions(per_switch)} ({expected} d)")
    return found.verdict()


def experiment_network(table: Table) -> Verdict:
    """32 terminals, 16 leaves of 5 ports and 6 spines of 8."""
    found = Findings()
    expected = {"terminals": 32, "leaves": 16, "spines": 6, "leaf_ports": [5], "spine_ports": [8]}
    for row in table.of("mlfm"):
        found.must(
            all(row[key] == value for key, value in expected.items()), ", ".join(f"{key} {row[key]} ({expected[key]})" for key in expected)
        )
    found.must(len(table) == 1, f"{len(table)} networks (1)")
    return found.verdict()


def orthogonal_is_larger(table: Table) -> Verdict:
    """The orthogonal fat tree has more terminals than the MLFM of its degree for d >= 3, and never a power of two."""
    found = Findings()
    table = Table({"d": row["q"] + 1, **row} if "q" in row else row for row in table)
    _must_count(found, table, "oft", "terminals", lambda d: 2 * d * (d * d - d + 1))
    orthogonal, layered = (table.of(series).curve("terminals", "d") for series in ("oft", "mlfm"))
    common = [d for d in orthogonal if d in layered and d >= 3]
    larger = bool(common) and all(orthogonal[d] > layered[d] for d in common)
    found.must(larger, f"orthogonal {_part(orthogonal, common)}; MLFM {_part(layered, common)} (orthogonal has more)")
    both = {(series, row["d"]): row["terminals"] for series in ("oft", "oft-one-sided") for row in table.of(series)}
    powers = {place: number for place, number in both.items() if number & (number - 1) == 0}
    complete = {series for series, _ in both} == {"oft", "oft-one-sided"}
    found.must(complete and not powers, f"powers of two among {len(both)} orthogonal fat trees: {powers or 'none'}")
    return found.verdict()


# --- times ------------------------------------------------------------------------------------------------------------------------


def reaches_the_limit(table: Table) -> Verdict:
    """By flits and by flows the new schedule is near the limit, and faster than the shift."""
    found = Findings()
    for engine in ("flit", "flow"):
        new, shift = (_rates(table.of(f"{engine}-{name}")) for name in ("new", "shift"))
        complete = set(new) >= set(PREDICTED) and set(shift) >= set(PREDICTED)
        found.must(complete and min(new.values()) >= 0.95, f"{engine}, new, of the limit: {curves.text(new)} (>= 0.95)")
        ratios = {ranks: shift[ranks] / new[ranks] for ranks in new if ranks in shift}
        found.must(complete and max(ratios.values()) < 0.98, f"{engine}, shift/new {curves.text(ratios)} (< 0.98)")
        away = curves.distances(ratios, PREDICTED, PREDICTED)
        found.report(f"{engine}: off 7/10, 15/22, 31/46 by {curves.text(away)}")
    sizes_ = {row["flits"] for row in table}
    found.must(bool(sizes_) and min(sizes_) >= 4096, f"messages of {sorted(sizes_)} flits (>= 4096)")
    return found.verdict()


def _rates(rows: Table) -> dict[Any, float]:
    """What each terminal sends over what its channel carries: N - 1 messages over the time that they took."""
    return {ranks: 1 / time for ranks, time in Table(_with_rate(rows)).curve("cycles_a_flit", "P").items()}


def _with_rate(rows: Table) -> Iterable[dict[str, Any]]:
    for row in rows:
        yield {**row, "cycles_a_flit": row["completion_time"] / ((row["P"] - 1) * row["flits"])}


def recorded(table: Table) -> Verdict:
    """Tables 1 to 3 have no criterion: the constants taken from them stand in machine.toml."""
    found = Findings()
    for row in table:
        found.report(f"{row['terminals']} terminals at {row['leaves']} leaves; server, software and InfiniBand as machine.toml says")
    return Verdict("report", found.verdict().measured)


def four_on_a_host(table: Table) -> Verdict:
    """Four terminals share the memory of their host and nothing else: each has a port of its own."""
    found = Findings()
    ports = [(row["terminals"], row["terminal_ports"]) for row in table.of("network")]
    found.must(ports == [(32, 32)], f"terminals and the ports that they are at: {ports} (32, 32)")
    times = {name: _time(table, name) for name in ("exchange-one", "exchange-four", "memory-one", "memory-four")}
    ratio = times["memory-four"] / times["memory-one"]
    found.must(abs(ratio - 4) <= 1e-3, f"where the memory limits, four on a host take {ratio:.4f} times as long as one (4)")
    same = abs(times["exchange-four"] / times["exchange-one"] - 1)
    found.must(same <= 1e-6, f"where it does not, they differ by {same:.2g} (0: each has its port)")
    return found.verdict()


#: NPB FT: bytes of the array and all-to-alls (one for each iteration and one before).
FT = {"B": (512 << 20, 21), "C": (2048 << 20, 21), "D": (32768 << 20, 26)}
_NODES = (8, 16, 32)


def gains(table: Table) -> Verdict:
    """The new schedule is faster; communication gains at most about 11.4 %, the whole about 1 %."""
    found = Findings()
    _gains(found, table)
    return found.verdict()


def gains_with_flits(table: Table) -> Verdict:
    """As `gains`, and one all-to-all of class B takes the flit engine as long as the flow engine, within 5 %."""
    found = Findings()
    for kind in ("new", "shift"):
        away = {}
        for ranks in _NODES:
            flow, flit = (_time(table, f"{engine}-{kind}-{ranks}") for engine in ("flow", "flit"))
            away[ranks] = abs(flow / flit - 1)
        # A missing run gives no number, which is not within anything.
        found.must(
            all(part <= 0.05 for part in away.values()), f"one all-to-all, {kind}: flow and flit differ by {curves.text(away)} (<= 0.05)"
        )
    _gains(found, table)
    return found.verdict()


def share_rises(table: Table) -> Verdict:
    """The share of communication rises with the number of nodes for each class and schedule, and is 5 to 15 %."""
    found = Findings()
    for letter, kind in itertools.product(FT, ("new", "shift")):
        share = _shares(table, kind, letter)
        rises = set(share) >= set(_NODES) and curves.never_rises(_reversed(share)) and curves.falls(_reversed(share))
        found.must(rises, f"class {letter}, {kind}: {curves.text(share)} ({'rises' if rises else 'does not rise'} with the nodes)")
        found.must(bool(share) and all(0.05 <= part <= 0.15 for part in share.values()), f"class {letter}, {kind}: within [0.05, 0.15]")
    return found.verdict()


#: Threads of a rank, and the ranks that share a server of 24 cores.
THREADS = {1: "four", 2: "four", 6: "four", 12: "two", 24: "one"}


def threads_make_communication_the_bottleneck(table: Table) -> Verdict:
    """The share of communication rises with the threads to more than a half; at 6 share and gain are three times those of one."""
    found = Findings()
    for letter, ranks in itertools.product(FT, _NODES):
        times = {
            (kind, threads): [_of_threads(table, kind, what, letter, ranks, threads) for what in ("communication", "whole")]
            for kind in ("new", "shift")
            for threads in THREADS
        }
        share = {threads: times["new", threads][0] / times["new", threads][1] for threads in THREADS}
        rises = curves.rises(share)
        found.must(
            rises and share[24] > 0.5, f"class {letter}, {ranks} nodes, share over threads {curves.text(share)} (rises, > 0.5 at 24)"
        )
        found.must(
            share[6] >= 3 * share[1], f"class {letter}, {ranks} nodes: share at 6 threads {share[6] / share[1]:.2f} of that at 1 (>= 3)"
        )
        gain = {threads: 1 - times["new", threads][1] / times["shift", threads][1] for threads in (1, 6)}
        found.must(
            gain[6] >= 3 * gain[1] > 0, f"class {letter}, {ranks} nodes: overall gain at 6 {gain[6]:.4f}, at 1 {gain[1]:.4f} (>= 3 times)"
        )
    return found.verdict()


def _of_threads(table: Table, kind: str, what: str, letter: str, ranks: int, threads: int) -> float:
    times = table.of(f"{kind}-{what}-{THREADS[threads]}", letter=letter, P=ranks, threads=threads).curve("completion_time", "P")
    return times.get(ranks, math.nan)


def inside_the_application(table: Table) -> Verdict:
    """FT's all-to-all stays below 0.95 of the limit; the same all-to-all alone reaches it."""
    found = Findings()
    for letter in FT:
        rate = {ranks: _ft_rate(letter, ranks, time) for ranks, time in _of_class(table, "new-communication", letter).items()}
        complete = set(rate) >= set(_NODES)
        found.must(complete and all(part < 0.95 for part in rate.values()), f"class {letter}, of the limit: {curves.text(rate)} (< 0.95)")
    alone = _rates(table.of("alone"))
    found.must(set(alone) >= set(_NODES) and min(alone.values()) >= 0.95, f"alone, of the limit: {curves.text(alone)} (>= 0.95)")
    return found.verdict()


def only_four_are_slow(table: Table) -> Verdict:
    """Inside FT only four virtual machines on a host are slow; in IMB none is."""
    found = Findings()
    names = ("physical", "one", "four")
    rate = {name: _ft_rate("C", 8, _time(table, name)) for name in names}
    text = ", ".join(f"{name} {value:.3f}" for name, value in rate.items())
    found.must(min(rate["physical"], rate["one"]) >= 0.95, f"of the limit: {text} (physical and one on a host >= 0.95)")
    slow = rate["four"] < 0.95 and rate["four"] < 0.98 * min(rate["physical"], rate["one"])
    found.must(slow, f"four on a host {rate['four']:.3f} (< 0.95, and below the others by more than 2 %)")
    alone = {name: next(iter(_rates(table.of(f"imb-{name}")).values()), math.nan) for name in names}
    found.must(
        all(value >= 0.95 for value in alone.values()),
        f"IMB, of the limit: {', '.join(f'{k} {v:.3f}' for k, v in alone.items())} (>= 0.95)",
    )
    return found.verdict()


def why_machines_slow_the_exchange(table: Table) -> Verdict:
    """Print throughput over terminals of a host, memory and copies, and of two placements; nobody judges it."""
    found = Findings()
    for copies, terminals in itertools.product((0, 1, 2), (1, 2, 4, 8)):
        rows = Table(_with_rate(table.of("map", copies=copies, V=terminals)))
        rates = {rate: 1 / cycles for rate, cycles in rows.curve("cycles_a_flit", "H").items()}
        if rates:
            found.report(f"{copies} copies, {terminals} on a host, of the limit over Gbyte/s: {curves.text(rates, 2)}")
    for name in ("by-host", "across"):
        found.report(f"8 ranks {name}: {curves.text(_rates(table.of(name)))} of the limit")
    return Verdict("report", found.verdict().measured)


def _gains(found: Findings, table: Table) -> None:
    for series, name, least, most in (("communication", "communication", 0.103, 0.125), ("whole", "overall", 0.005, 0.015)):
        new, shift = (table.of(f"{kind}-{series}").curve("completion_time", "P") for kind in ("new", "shift"))
        gain = {ranks: (shift[ranks] - new[ranks]) / shift[ranks] for ranks in new if ranks in shift}
        complete = set(gain) >= set(_NODES)
        found.must(complete and min(gain.values()) > 0, f"{name} gain {curves.text(gain, 4)} (> 0)")
        found.must(
            complete and least <= max(gain.values()) <= most,
            f"greatest {name} gain {max(gain.values(), default=0):.4f} ([{least}, {most}])",
        )


def _time(table: Table, series: str) -> float:
    """Give the cycles of the only run of a series; not a number if it is not there."""
    times = [float(row["completion_time"]) for row in table.of(series)]
    return times[0] if len(times) == 1 else math.nan


def _of_class(table: Table, series: str, letter: str) -> dict[Any, float]:
    return table.of(series, letter=letter).curve("completion_time", "P")


def _shares(table: Table, kind: str, letter: str) -> dict[Any, float]:
    part, whole = (_of_class(table, f"{kind}-{series}", letter) for series in ("communication", "whole"))
    return {ranks: part[ranks] / whole[ranks] for ranks in part if ranks in whole}


def _reversed(curve: dict[Any, float]) -> dict[Any, float]:
    return dict(reversed(curve.items()))


def _ft_rate(letter: str, ranks: int, cycles: float) -> float:
    """What each rank of FT sends over what its channel carries."""
    array, exchanges = FT[letter]
    flits = exchanges * (ranks - 1) * array / ranks**2 / FLIT_BYTES
    return flits / cycles


# --- what the judges share --------------------------------------------------------------------------------------------------------


def _must_count(found: Findings, table: Table, series: str, column: str, formula: Any) -> None:
    measured = {row["d"]: row[column] for row in table.of(series)}
    wrong = {d: f"{value} (not {formula(d)})" for d, value in measured.items() if value != formula(d)}
    span = f"d = {min(measured)} to {max(measured)}" if measured else "no network"
    found.must(bool(measured) and not wrong, f"{series}, {span}: {column} {wrong or 'as they must be'}, {measured.get(3, '-')} for d = 3")


def _must_be_free(found: Findings, rows: Table, name: str = "shift") -> None:
    wrong = [
        {key: row[key] for key in ("terminals", "phases", "max_load", "complete")}
        for row in rows
        if not (row["complete"] and row["max_load"] == 1 and row["phases"] == row["terminals"] - 1)
    ]
    largest = max((row["terminals"] for row in rows), default=0)
    fact = f"{name}: {len(rows)} schedules of up to {largest} terminals, N - 1 phases, all pairs once, 1 message on a channel"
    found.must(len(rows) > 0 and not wrong, f"{fact}; except {wrong[:3]}" if wrong else fact)


def _must_have_phases(found: Findings, table: Table, wanted: Any, expected: Any) -> None:
    rows = table.of("mlfm")
    for row in rows:
        loads = [load for kind, each in row["loads"].items() if wanted(kind.split("+")) for load in each]
        holds = len(loads) == expected(row) and max(loads, default=0) == 1 and row["complete"]
        found.must(
            holds, f"d = {row['d']}: {len(loads)} phases ({expected(row)}), at most {max(loads, default=0)} messages on a channel (1)"
        )
    found.must(len(rows) > 0, f"{len(rows)} schedules")


def _per_switch(rows: Table) -> dict[int, Fraction]:
    return {row["d"]: Fraction(row["terminals"], row["routers"]) for row in rows}


def _fractions(ratios: dict[int, Fraction]) -> str:
    return ", ".join(f"{d}: {ratio}" for d, ratio in ratios.items())


def _part(curve: dict[Any, float], places: list[Any]) -> str:
    return ", ".join(f"{place}: {curve[place]:.0f}" for place in places)


#: Cycles of a router and of a channel in the runs of lone flits.
ROUTER_CYCLES, CHANNEL_CYCLES = 3, 1


def third_level_raises_latency(table: Table) -> Verdict:
    """To the farthest terminal a third level adds two routers and two channels; the multi-layer full mesh is like two levels."""
    found = Findings()
    series = ("two-levels", "three-levels", "mlfm")
    farthest, mean = ({name: table.of(name).curve(f"packet_latency_{what}", "d") for name in series} for what in ("max", "mean"))
    for d in (3, 4):
        two, three, mesh = (farthest[name].get(d, math.nan) for name in series)
        more = 2 * ROUTER_CYCLES + 2 * CHANNEL_CYCLES
        found.must(three - two == more, f"d = {d}, farthest: three levels {three:g}, two {two:g} cycles (more by {more})")
        found.must(mesh == two, f"d = {d}, farthest: multi-layer full mesh {mesh:g} (as two levels)")
        means = [mean[name].get(d, math.nan) for name in series]
        found.must(means[1] > max(means[0], means[2]), f"d = {d}, mean: {means[0]:.2f}, {means[1]:.2f}, {means[2]:.2f} (three levels most)")
    return found.verdict()


def the_measured_program(table: Table) -> Verdict:
    """The MPI program has right checksums with both schedules, and its largest classes are refused only for memory."""
    found = Findings()
    for name in ("library", "shift", "new"):
        rows = {row["points"]: row for row in table.of(name)}
        right = set(rows) == set("SWA") and all(row["exit"] == 0 and row["right"] for row in rows.values())
        found.must(right, f"{name}: checksums of classes {', '.join(rows)} {'right' if right else 'not all right'} on 8 processes")
        if name != "library":
            exchanges = {points: row["by_schedule"] for points, row in rows.items()}
            found.must(bool(exchanges) and min(exchanges.values()) > 0, f"{name}: all-to-alls by the schedule {exchanges}")
    for row in table.of("large"):
        needed = row["exit"] == 0 or "bytes of memory" in row["message"]
        found.must(needed, f"class {row['points']}: {row['message'] or 'it ran'}")
    found.must({row["points"] for row in table.of("large")} == set("DE"), "classes D and E are accepted")
    found.report("classes B and C take minutes on two cores and are not run here")
    return found.verdict()


# --- the figures ------------------------------------------------------------------------------------------------------------------

_COUNTED = "built network"
_SCHEDULE = "built network, schedule counted phase by phase"
_FT = (
    "the memory of a host is a channel that all its messages share while they flow: once for IMB, three times for a program that copies "
    "once at either end; its rate is chosen from the greatest gain of communication, the rate of computing from that of the whole",
)

PAPER = Paper(
    "mlfm",
    "Switch-saving topologies: multi-layer full mesh, Latin-square fat tree, all-to-all without contention",
    (
        Figure(
            "002-F1",
            "D",
            "two-level fat tree of degree 3: 9 nodes, and twice as many where both sides of the spines are used",
            "N = 9 (18 two-sided), 2 d^2 nodes on 3 d switches",
            "structure",
            _COUNTED,
            two_level_fat_tree,
        ),
        Figure(
            "002-F2",
            "D",
            "shift pattern: phase i sends from S to (S + i) mod N, without contention on the fat tree",
            "greatest channel load 1 in every phase (two-level tree, d-mod-k, N = d^2)",
            "derived",
            _SCHEDULE,
            shifts_do_not_collide,
        ),
        Figure(
            "002-F3",
            "D",
            "a third level costs: at degree 3 nodes per switch fall from 2 to 1.2",
            "2 d^2 / 3 d = 2 and 2 d^3 / 5 d^2 = 1.2 exactly",
            "structure",
            _COUNTED,
            third_level_costs,
        ),
        Figure(
            "002-F4",
            "D",
            "multi-layer full mesh: d^2 (d + 1) nodes with switches of the same radix",
            "N = d^2 (d + 1), 3 d (d + 1) / 2 switches, every radix 2 d",
            "structure",
            _COUNTED,
            full_mesh_of_layers,
        ),
        Figure(
            "002-F5",
            "D",
            "phases to leaves at another position, all layers together, are free of contention",
            "part 2 of the schedule: greatest channel load 1",
            "derived",
            _SCHEDULE,
            other_positions_do_not_collide,
        ),
        Figure(
            "002-F6",
            "D",
            "phases to leaves at the same position of other layers are free of contention",
            "part 3 of the schedule: greatest channel load 1",
            "derived",
            _SCHEDULE,
            same_positions_do_not_collide,
        ),
        Figure(
            "002-C1",
            "C",
            "the all-to-all on the multi-layer full mesh, and on the orthogonal fat tree, is free of contention",
            "N - 1 phases, all pairs once, greatest channel load 1: shapes with p <= m - 1, orders up to 11 one- and two-sided",
            "derived",
            _SCHEDULE,
            all_to_all_is_free,
        ),
        Figure(
            "002-C3",
            "C",
            "shifts on part of a machine: any whole leaves of a two-level tree",
            "100 random sets of leaves, d = 4 and 8: greatest channel load 1 in every phase",
            "derived",
            _SCHEDULE,
            parts_of_a_tree_are_free,
        ),
        Figure(
            "002-F7",
            "F",
            "nodes over degree: the multi-layer full mesh has many more than the two-level tree",
            "2 d^2, 2 d^3, d^2 (d + 1) exactly; ratio (d + 1)/2; nodes per switch 2 d/3, 2 d/5; links 2 d^2, d^2 (d + 1) as built",
            "structure",
            _COUNTED,
            sizes,
            Plot("d", "terminals", "degree d", "terminals"),
        ),
        Figure(
            "002-F8",
            "D",
            "a server holds four virtual machines and has four network ports",
            "four terminals with a network port each on one host",
            "identity",
            "built network, flow",
            four_on_a_host,
        ),
        Figure(
            "002-F9",
            "D",
            "the network of the experiment: 32 nodes, 4 layers of 4 leaves, 6 spines",
            "32 nodes; leaves of 5 ports, spines of 8",
            "structure",
            _COUNTED,
            experiment_network,
        ),
        Figure(
            "002-T1-3",
            "T",
            "server, software, InfiniBand",
            "none: the constants are recorded",
            "identity",
            _COUNTED,
            recorded,
        ),
        *(
            Figure(
                f"002-F{number}",
                "F",
                f"NPB FT, class {letter}, on 8, 16, 32 nodes: communication up to 11.4 % faster with the new schedule, overall about 1 %",
                "gains above 0 in every case; the greatest of communication in [10.3 %, 12.5 %], of the whole in [0.5 %, 1.5 %]",
                "calibrated",
                "flow, flit" if letter == "B" else "flow",
                judge,
                Plot("P", "completion_time", "nodes", "time (cycles)"),
                _FT,
            )
            for number, letter, judge in ((10, "B", gains_with_flits), (11, "C", gains), (12, "D", gains))
        ),
        Figure(
            "002-F13",
            "F",
            "NPB FT: the share of communication rises with the number of nodes",
            "both schedules, each class: never falls by more than 1 % in P and rises from 8 to 32; 5 to 15 %",
            "calibrated",
            "flow",
            share_rises,
            Plot("P", "completion_time", "nodes", "time (cycles)", ("letter",)),
            _FT,
        ),
        Figure(
            "002-F14",
            "F",
            "IMB all-to-all on 8, 16, 32 nodes: the new schedule is faster than the shift and near the limit of 3717 MiB/s",
            "by flits and by flows: new >= 0.95 of the limit, and above the shift by more than 2 %",
            "reading",
            "flit, flow",
            reaches_the_limit,
            Plot("P", "completion_time", "nodes", "completion time (cycles)"),
            ("with one virtual channel two cycles pass between packets of 32 flits, and no channel carries more than 32/34",),
        ),
        Figure(
            "002-F15",
            "F",
            "throughput of the all-to-all inside NPB FT stays below the limit of the ping-pong",
            "FT's all-to-all stays below 0.95 of the limit, which the all-to-all alone reaches with the same constants",
            "calibrated",
            "flow",
            inside_the_application,
            notes=_FT,
        ),
        Figure(
            "002-F16",
            "F",
            "8 nodes: physical servers, one and four virtual machines on a host: only four on a host are slow",
            "physical and one >= 0.95 of the limit, four below that and below them by more than 2 %; IMB >= 0.95 in all three",
            "calibrated",
            "flow",
            only_four_are_slow,
            notes=_FT,
        ),
        Figure(
            "002-C2",
            "C",
            "orthogonal fat trees connect still more nodes, but suit powers of two badly",
            "two-sided N of OFT(q) > N of MLFM(d = q + 1) for d >= 3; no full N is a power of two",
            "structure",
            _COUNTED,
            orthogonal_is_larger,
        ),
        Figure(
            "002-C4",
            "C",
            "a third level raises latency; the multi-layer full mesh keeps that of two",
            "one flit to the farthest terminal: three levels above two by exactly two routers and two channels, the mesh equal to two; "
            "the mean of three levels above both",
            "derived",
            "flit",
            third_level_raises_latency,
        ),
        Figure(
            "002-C6",
            "C",
            "the measured program: sizes up to D, with both schedules",
            "checksums of classes S, W, A right on 8 processes with both schedules; D and E refused only for memory, with its bytes",
            "structure",
            "MPI program",
            the_measured_program,
        ),
        Figure(
            "002-C5",
            "C",
            "several threads make communication the bottleneck",
            "its share rises with the threads; above a half at 24; at 6 at least three times that of one, and the overall gain likewise",
            "calibrated",
            "flow",
            threads_make_communication_the_bottleneck,
            notes=_FT,
        ),
        Figure(
            "002-S2",
            "S",
            "why virtual machines slow FT, future work",
            "none: throughput over copies, terminals of a host, memory and placement",
            "derived",
            "flow",
            why_machines_slow_the_exchange,
            Plot("V", "completion_time", "machines on a host", "completion time (cycles)", ("copies", "H")),
        ),
        *mlfm_studies.FIGURES,
    ),
)
