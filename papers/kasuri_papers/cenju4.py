"""Kano et al., "User-level Network Interface for a Parallel Computer Cenju-4": what each mechanism of the interface buys.

Every time and rate is measured by the flit engine: programs of the simulated library on simulated interfaces and routers. A message's
latency is half of the time there and back; its throughput is its size over that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from kasuri_papers import cenju4_system, curves
from kasuri_papers.cenju4_system import HEADER_FLITS, LINE, NODES, PACKET, PAGE, SIZE, TIME
from kasuri_papers.figure import Figure, Findings, Paper, Plot, Table, Verdict

#: Stages of the machine of 32 nodes.
STAGES = 4
#: Bytes of the longest parcel.
PARCEL = 512 * 1024


# --- structure --------------------------------------------------------------------------------------------------------------------


def crosspoints(table: Table) -> Verdict:
    """A 4x4 switch has 16 queues, each with one writer and one reader."""
    found = Findings()
    for row in table.of("board"):
        ports = set(row["leaf_ports"] + row["spine_ports"])
        found.must(ports == {4}, f"switches with {sorted(ports)} inputs and outputs, a queue for each pair: 16")
    found.must(len(table.of("board")) > 0, "a board was built")
    return found.verdict()


def board(table: Table) -> Verdict:
    """Two stages have 8 switches and 16 lines."""
    found = Findings()
    counts = [(row["routers"], row["terminals"]) for row in table.of("board")]
    found.must(counts == [(8, 16)], f"switches and lines {counts} ((8, 16))")
    return found.verdict()


def storm_drains(table: Table) -> Verdict:
    """A storm of multicasts on 64 nodes drains."""
    return _all_complete(table, ("storm",))


def protocols(table: Table) -> Verdict:
    """Each protocol has done to memory what it is for."""
    return _all_complete(table, ("protocols",))


def _all_complete(table: Table, names: tuple[str, ...]) -> Verdict:
    found = Findings()
    for name in names:
        ends = [row["status"] for row in table.of(name)]
        found.must(bool(ends) and set(ends) == {"completed"}, f"{name}: {len(ends)} runs ended as {sorted(set(ends))}")
    return found.verdict()


def switch_latency(table: Table) -> Verdict:
    """A switch more takes 125, 187.5 and 200 ns more."""
    found = Findings()
    for series, expected, times in (("unicast", 125.0, 2), ("multicast", 187.5, 1), ("synchronisation", 200.0, 1)):
        curve = table.of(series).curve(TIME, "stages")
        steps = [(curve[stages + 1] - curve[stages]) / times for stages in curve if stages + 1 in curve]
        exact = bool(steps) and all(abs(step - expected) < 1e-6 for step in steps)
        found.must(exact, f"{series}: {steps} ns a switch (exactly {expected})")
    return found.verdict()


# --- packets ----------------------------------------------------------------------------------------------------------------------


def packets(source: int, target: int, length: int) -> list[int]:
    """Cut a parcel into packets by the paper's rules, independently of the simulator: the bytes of each."""
    cut = []
    while length > 0:
        odd = 4 if source % 8 == 4 else 0
        size = min(length, PACKET - target % LINE, PAGE - target % PAGE, PAGE - source % PAGE + odd)
        cut.append(size)
        source, target, length = source + size, target + size, length - size
    return cut


def flits(source: int, target: int, length: int) -> int:
    """Count the flits of a message with the parcels that odd words need."""
    cut: list[int] = []
    if target % 8 == 4 and length > 4:
        cut, source, target, length = [4], source + 4, target + 4, length - 4
    while length > 0:
        parcel = min(length, PARCEL)
        cut += packets(source, target, parcel)
        if source % 8 == 4 and parcel > 8:
            first_page = (source // PAGE + 1) * PAGE
            cut += [min(4, source + parcel - page) for page in range(first_page, source + parcel, PAGE)]
        source, target, length = source + parcel, target + parcel, length - parcel
    return sum(HEADER_FLITS + 3 * math.ceil(size / 8) for size in cut)


def _must_have_flits(found: Findings, table: Table, series: str) -> None:
    """Judge that bytes arrived as they were, and that they went in the packets of the rules, there and back."""
    wrong = []
    for row in table.of(series):
        expected = 2 * STAGES * flits(row["s"], row["t"], row["m"])
        if row["status"] != "completed" or row["flit_hops"] != expected:
            wrong.append(f"({row['s']}, {row['t']}, {row['m']}): {row['status']}, {row['flit_hops']} flits x switches, expected {expected}")
    count = len(table.of(series))
    found.must(
        count > 0 and not wrong, f"{series}: {count} messages arrived as they were, in the packets of the rules; not: {wrong or 'none'}"
    )


def packets_by_rule(table: Table) -> Verdict:
    """Messages of random place and length go in packets that end on lines and cross no page."""
    found = Findings()
    _must_have_flits(found, table, "random")
    return found.verdict()


def odd_words(table: Table) -> Verdict:
    """Cases A to D: bytes equal, B and D with a parcel of one word more, the first word of each page sent again in C."""
    found = Findings()
    for case in "ABCD":
        _must_have_flits(found, table, case)
    return found.verdict()


# --- time -------------------------------------------------------------------------------------------------------------------------


def latency(table: Table) -> Verdict:
    """4.9 and 9.1 us for 8 bytes, 0.3 us less in line, 13 us more by a system call, never less for more bytes."""
    found = Findings()
    half = {
        name: {size: time / 2000 for size, time in table.of(name).curve(TIME, SIZE).items()} for name in ("paralib", "mpi", "system-call")
    }
    at = {name: curve.get(8, math.nan) for name, curve in half.items()}
    found.within(at["paralib"], 4.8, 5.0, "Paralib/CJ4, 8 bytes, us:")
    found.within(at["mpi"], 8.9, 9.3, "MPI, 8 bytes, us:")
    found.within(half["paralib"].get(16, math.nan) - at["paralib"], 0.25, 0.35, "16 bytes over 8, us:")
    found.within(at["system-call"] - at["paralib"], 12.5, 13.5, "the system call, us:")
    for name, curve in half.items():
        found.must(curves.rises(curve), f"{name} never falls: {curves.text(curve, 2)} us")
    found.report("formula: 4400 + 4 x 125 = 4900 ns; 16 bytes 410 + 2 x 12.5 - 135 = 300 ns more, and 3 flits")
    return found.verdict()


def _rates(table: Table, series: str) -> dict[Any, float]:
    """Give throughput in Mbyte/s over size."""
    return {size: size / (time / 2) * 1000 for size, time in table.of(series).curve(TIME, SIZE).items()}


def throughput(table: Table) -> Verdict:
    """The optimised read gains about 30 Mbyte/s; the libraries differ for small messages alone."""
    found = Findings()
    rates = {(case, library): _rates(table, f"{case}-{library}") for case in "ABC" for library in ("paralib", "mpi")}
    for library in ("paralib", "mpi"):
        a, b, c = (rates[case, library] for case in "ABC")
        for size in (size for size in a if size >= 65536):
            found.within(c.get(size, math.nan) - b.get(size, math.nan), 25, 35, f"C - B, {library}, {size} bytes, Mbyte/s:")
        ordered = bool(a) and all(a[size] >= c[size] > b[size] for size in a)
        found.must(ordered, f"A >= C > B, {library}: {curves.text(a, 1)}; {curves.text(c, 1)}; {curves.text(b, 1)}")
    for case in "ABC":
        paralib, mpi = rates[case, "paralib"], rates[case, "mpi"]
        apart = {size: abs(paralib[size] - mpi[size]) / paralib[size] for size in paralib if size in mpi}
        found.must(apart.get(524288, 1) < 0.03, f"{case}: libraries differ by {apart.get(524288, 1):.4f} at 512 Kbyte (< 0.03)")
        found.must(apart.get(1024, 0) > 0.1, f"{case}: by {apart.get(1024, 0):.3f} at 1 Kbyte (> 0.1)")
    found.report("formula: 256 bytes in 1350 ns on the link (A), 1830 (B) and 1507.5 ns (C) of reads: 189.6, 139.9, 169.8 Mbyte/s")
    return found.verdict()


def odd_throughput(table: Table) -> Verdict:
    """Rearranging in hardware is twice as fast as copying; a difference of one word lies between."""
    found = Findings()
    every = {name: {row["d"]: row[SIZE] / (row[TIME] / 2) * 1000 for row in table.of(name)} for name in "ABCD"}
    # With another constant some are measured at fewer places.
    rate = {name: {d: curve[d] for d in curve if all(d in other for other in every.values())} for name, curve in every.items()}
    inner = [d for d in rate["A"] if d not in (1, 31)]
    for fast, slow in (("A", "C"), ("B", "D")):
        ratios = {d: rate[fast][d] / rate[slow][d] for d in inner if d in rate[slow]}
        found.must(
            bool(ratios) and all(1.7 <= ratio <= 2.3 for ratio in ratios.values()), f"{fast}/{slow}: {curves.text(ratios)} ([1.7, 2.3])"
        )
    for high, low in (("A", "B"), ("C", "D")):
        above = bool(inner) and all(rate[high][d] > rate[low].get(d, math.inf) for d in inner)
        found.must(above, f"{high} > {low}: {curves.text(rate[high], 1)}; {curves.text(rate[low], 1)} Mbyte/s")
    one, others = rate["A"].get(1, math.nan), [rate["A"][d] for d in inner]
    most, least = max((rate["B"].get(d, math.inf) for d in inner), default=math.inf), min(others, default=-math.inf)
    found.must(most < one < least, f"one word: {one:.1f}, between {most:.1f} (B) and {least:.1f} Mbyte/s (A)")
    return found.verdict()


def barriers(table: Table) -> Verdict:
    """By multicast and atomic add the latency grows little; the others grow with N, a tree with its logarithm."""
    found = Findings()
    curve = _barriers(table)
    slope = {name: _line(curve[name])[0] for name in "ACD"}
    little = 0 < slope["D"] <= 0.5 * slope["C"]
    found.must(little, f"slopes of D and C {slope['D']:.3f}, {slope['C']:.3f} us a node (D above 0 and at most half)")
    at = {name: curve[name].get(NODES, math.nan) for name in "ABCD"}
    found.must(at["D"] < at["C"] and at["D"] < at["B"], "at 32: D < C, D < B: " + ", ".join(f"{k} {v:.2f}" for k, v in at.items()))
    for name in "AC":
        found.must(_line(curve[name])[1] > 0.99, f"{name} is linear: R2 {_line(curve[name])[1]:.4f} (> 0.99)")
    powers = {math.log2(n): time for n, time in curve["B"].items() if n & (n - 1) == 0}
    found.must(_line(powers)[1] > 0.99, f"B over log2 N at powers of two: R2 {_line(powers)[1]:.4f} (> 0.99)")
    found.report("formula: E 4.4 + 4 x 0.2 = 5.2, A and C 4.9 + 0.6 (N - 1), B 9.8 log2 N us")
    return found.verdict()


def _barriers(table: Table) -> dict[str, dict[Any, float]]:
    return {name: {n: time / 1000 for n, time in table.of(name).curve(TIME, "n").items()} for name in "ABCDE"}


def barrier_of_the_switches(table: Table) -> Verdict:
    """The switches' own barrier takes about 5 us whatever N."""
    found = Findings()
    curve = _barriers(Table(row for row in table if row.get("figure") == "F10"))
    e = curve["E"].values()
    found.must(bool(e) and min(e) >= 4.5 and max(e) <= 5.5, f"E {min(e, default=0):.3f} to {max(e, default=0):.3f} us ([4.5, 5.5])")
    spread = (max(e) - min(e)) / min(e) if e else math.inf
    found.must(spread < 0.05, f"E's spread {spread:.4f} (< 0.05)")
    at = {name: curve[name].get(NODES, math.nan) for name in "DE"}
    found.must(at["E"] < at["D"], f"at 32: E {at['E']:.2f}, D {at['D']:.2f} (E < D)")
    return found.verdict()


def _line(curve: Mapping[Any, float]) -> tuple[float, float]:
    """Fit a line: its slope, and how much of the variance it explains."""
    if len(curve) < 3:
        return math.nan, 0.0
    x, y = np.array(list(curve), dtype=float), np.array(list(curve.values()))
    slope, offset = np.polyfit(x, y, 1)
    return float(slope), float(1 - ((y - slope * x - offset) ** 2).sum() / ((y - y.mean()) ** 2).sum())


def beyond_64(table: Table) -> Verdict:
    """The switches' synchronisation is refused beyond 64 nodes, with the reason; multicast and atomic add work there."""
    found = Findings()
    refusals = [row["refused"] for row in table.of("refused")]
    found.must(bool(refusals) and all("at most 64 nodes" in text for text in refusals), f"refused: {refusals}")
    works = sorted(row["n"] for row in table.of("D") if row["status"] == "completed")
    found.must(works == [128, 256], f"multicast and atomic add with {works} nodes")
    return found.verdict()


def _rate_between(table: Table, series: str) -> float:
    """Give Mbyte/s between the smallest and the largest message, so that what each message costs once does not matter."""
    curve = table.of(series).curve(TIME, SIZE)
    sizes = list(curve)
    return (sizes[-1] - sizes[0]) / ((curve[sizes[-1]] - curve[sizes[0]]) / 2) * 1000 if len(sizes) > 1 else math.nan


def link_rate(table: Table) -> Verdict:
    """8 bytes in 3 flits of 12.5 ns."""
    found = Findings()
    found.within(_rate_between(table, "data"), 213.333 * 0.999, 213.333 * 1.001, "Mbyte/s on a link:")
    return found.verdict()


def read_rate(table: Table) -> Verdict:
    """128 bytes in 410 + 16 x 12.5 ns."""
    found = Findings()
    times = [time for row in table.of("read") for time in row["cache_us"]]
    found.must(len(times) > 1, f"{len(times)} lines came out of the cache")
    for time in times:
        found.within(LINE / time, 209.3, 210.3, "Mbyte/s:")
    return found.verdict()


def tested(table: Table) -> Verdict:
    """Say what has no figure of its own."""
    return Verdict("report", f"not measured; the machine has {[row.get('terminals') for row in table]} nodes")


_FLIT = "flit"
_CALIBRATED = ("the one-way time besides the network, MPI's part and memory's access are calibrated: docs/explanation/papers/cenju4.md",)

PAPER = Paper(
    "cenju4",
    "User-level network interface of the Cenju-4",
    (
        Figure(
            "001-F1",
            "D",
            "8 to 1024 nodes on a multistage network of 4x4 switches, in boards of 8",
            "8, 16, .., 1024 nodes: 2, 2, 4, 4, 4, 4, 6, 6 stages, 8 switches a board, every line in use from 16 nodes on, in all 16 "
            "cablings; pure networks of 16, 64, 256, 1024; all pairs reach by one fixed path",
            "structure",
            "built network, flit",
            cenju4_system.networks,
            columns=cenju4_system.off_the_rule,
            notes=("paths are followed by a rule that is written down apart from the simulator (`kasuri_papers.boards`)",),
        ),
        Figure(
            "001-F2",
            "D",
            "a 4x4 switch has 16 FIFO memories",
            "16 FIFOs a switch, one writer and one reader each",
            "structure",
            "built network",
            crosspoints,
            notes=("a unit test looks at each queue's writer and reader",),
        ),
        Figure(
            "001-F3",
            "D",
            "multicast to any subset of a group of 64",
            "random subsets, N = 32, 64, 1024: delivered set equal, each once, every byte the sender's at each receiver's own address; "
            "two multicasts at once keep apart",
            "structure",
            _FLIT,
            cenju4_system.multicasts_arrive,
            notes=("the programs themselves compare; a run in which a byte is wrong, or one too many has come, fails",),
        ),
        Figure("001-C1", "C", "a switch takes 125, 187.5, 200 + a ns", "one idle switch: exactly these", "identity", _FLIT, switch_latency),
        Figure("001-C2", "C", "a board has 8 switches and is 16 x 16", "8 switches, 16 lines", "structure", "built network", board),
        Figure(
            "001-C3",
            "C",
            "3 flits of 3 bytes at 80 MHz carry 64 bits of data and 8 of ECC",
            "213.3 MB/s within 0.1 %",
            "identity",
            _FLIT,
            link_rate,
        ),
        Figure(
            "001-C4",
            "C",
            "multicasts do not block each other for ever",
            "a random storm on 64 nodes drains completely",
            "derived",
            _FLIT,
            storm_drains,
        ),
        Figure(
            "001-F4",
            "D",
            "the Sender's steps (1) to (4) for a parcel; of four header registers it takes one whose packet finds room",
            "event order (1) to (4) in the trace of a parcel; with no room for three of four registers the fourth is chosen, and no packet "
            "exists of the others",
            "structure",
            _FLIT,
            cenju4_system.steps_in_order,
            notes=(
                "a unit test fills the three queues by hand: `a_parcel_whose_queue_has_room_is_chosen_and_no_packet_exists_of_the_others`",
            ),
        ),
        Figure("001-T1", "T", "the protocols of the interface", "each row does what it says", "structure", _FLIT, protocols),
        Figure("001-C5", "C", "reading the cache is bound to about 200 Mbyte/s", "209.8 +-0.5", "identity", _FLIT, read_rate),
        Figure(
            "001-F5",
            "D",
            "data at odd words is rearranged with one double word more",
            "bytes equal in cases A to D; one parcel of a word more in B and D; the first word of each source page again",
            "structure",
            _FLIT,
            odd_words,
            notes=("that a packet reads one double word more is the interface's definition; a unit test looks at it",),
        ),
        Figure(
            "001-F6",
            "F",
            "4.9 us (Paralib/CJ4) and 9.1 us (MPI) for 8 bytes; in-line 0.3 us less; a system call 13 us",
            "4.9 +-0.1, 9.1 +-0.2; T(16) - T(8) in [0.25, 0.35]; +13 +-0.5 us at 8 bytes; never falling",
            "calibrated",
            _FLIT,
            latency,
            Plot(SIZE, TIME, "bytes", "there and back (ns)"),
            _CALIBRATED,
        ),
        Figure(
            "001-F7",
            "F",
            "the optimised read gains about 30 Mbyte/s; both libraries converge",
            "C - B in [25, 35] from 64 KB on; A >= C > B; libraries < 3 % apart at 512 KB, > 10 % at 1 KB",
            "calibrated",
            _FLIT,
            throughput,
            Plot(SIZE, TIME, "bytes", "there and back (ns)"),
            _CALIBRATED,
        ),
        Figure(
            "001-F8",
            "F",
            "rearranging odd words is about twice as fast as copying; one word of difference lies midway",
            "A/C and B/D in [1.7, 2.3]; A > B, C > D; the 1-word point strictly between A and B",
            "calibrated",
            _FLIT,
            odd_throughput,
            Plot("d", TIME, "difference (words)", "there and back (ns)"),
        ),
        Figure(
            "001-F9",
            "F",
            "N to N on 32 nodes: in order slow, staggered loses with size, by multicast as fast as one to one",
            "from 16 KB on: C >= .95 of one to one, last links busy >= .95; A < .5 C; A < B < C; B at the largest size below .95 of its "
            "greatest and by more than three standard errors",
            "reading",
            _FLIT,
            cenju4_system.all_to_all,
            notes=("the judging cabling was fixed when it was known what this row gives with it: docs/explanation/papers/cenju4.md",),
            plot=Plot(SIZE, TIME, "bytes", "completion time (ns)"),
        ),
        Figure(
            "001-F10",
            "F",
            "barriers of N nodes: multicast and atomic add grow little",
            "slope(D) above 0 and at most half of slope(C); D < C, D < B at 32; A, C linear, B ~ log2 N",
            "calibrated",
            _FLIT,
            barriers,
            Plot("n", TIME, "nodes", "latency (ns)"),
            _CALIBRATED,
        ),
        Figure(
            "001-C10",
            "C",
            "the barrier in the switches takes about 5 us whatever the number of nodes",
            "E in [4.5, 5.5] us, spread below 5 %, E < D at 32 nodes",
            "derived",
            _FLIT,
            barrier_of_the_switches,
            notes=("the one-way time besides the network comes from figure 6",),
            runs_of=("F10",),
        ),
        Figure(
            "001-C6",
            "C",
            "synchronisation in the network up to 64 nodes; beyond, multicast and atomic add",
            "more than 64 refused; D works for 128, 256",
            "structure",
            _FLIT,
            beyond_64,
        ),
        Figure(
            "001-C7",
            "C",
            "parcels of 512 KB, packets of 256 bytes that end on destination lines and cross no page",
            "messages at random places go in exactly the packets of these rules",
            "structure",
            _FLIT,
            packets_by_rule,
            notes=("property tests look at each packet",),
        ),
        Figure(
            "001-C8",
            "C",
            "protection by tables: an offset out of range, a page beyond the segment, a fifth segment is an error",
            "unit tests; here a program that ends only if each wrong parcel is refused, for its reason, and changes nothing",
            "structure",
            _FLIT,
            cenju4_system.protected,
            notes=(
                "unit tests: `a_fifth_segment_is_an_error` (segments are the operating system's; no program asks for one), "
                "`what_the_tables_do_not_allow_is_refused`, `random_headers_change_no_other_tasks_memory_and_stop_nothing`",
            ),
        ),
        Figure("001-C9", "C", "other machines: CS-2 9 us, T3E 350 MB/s", "none", "identity", "none", tested),
        Figure(
            "001-C11",
            "C",
            "packets of tasks that are not on the processor are received; the Sender tells when to switch",
            "all bytes right for each task; a switch only when the queue is empty and the last packet sent, at the cost of its "
            "interrupt; three tasks take longer than two by the switches; the operating system's physical addresses pass, a user's do not",
            "structure",
            _FLIT,
            cenju4_system.tasks,
            notes=("that a user's parcel in supervisor mode is refused: unit test `a_task_has_no_supervisor_mode`",),
        ),
        Figure(
            "001-C12",
            "C",
            "interrupts and page faults: with the help of the operating system the transfer goes on",
            "a parcel with a missing page arrives whole, later by the service; masked interrupts cost nothing, others their time",
            "structure",
            _FLIT,
            cenju4_system.interrupts,
            notes=("the interrupt at the end of a reception: unit test `interrupts_take_time_of_the_processor_unless_they_are_masked`",),
        ),
        Figure(
            "001-C13",
            "C",
            "headers of multicast and synchronisation are registered by system call, and their offset then serves as number",
            "an unregistered offset is an error; registered, barriers D and E are unchanged, the first use later by 13 us and the "
            "write of the table",
            "structure",
            _FLIT,
            cenju4_system.registered,
            notes=("an offset that is refused and then registered: unit test `an_offset_can_be_used_once_it_is_registered`",),
        ),
        Figure(
            "001-S1",
            "S",
            "why B falls: meetings of rounds i and i + 1, as the paper supposes",
            "none: the loss inside rounds and between them, by cabling",
            "derived",
            _FLIT,
            cenju4_system.why_b_falls,
        ),
        Figure(
            "001-S3",
            "S",
            "a user's own program",
            "none: the times of two jobs on one machine, alone and together",
            "derived",
            _FLIT,
            cenju4_system.two_jobs,
            columns=cenju4_system.ends,
            notes=("as parcels of the interface, and as a GOAL trace on the same network without it",),
        ),
        Figure(
            "001-S2",
            "S",
            "messages together with shared memory, future work",
            "none: the times of one problem by messages, by shared memory and by both",
            "derived",
            _FLIT,
            cenju4_system.messages_and_memory,
            Plot("points", TIME, "words of the longer edges", "completion time (ns)", ("lines",)),
            notes=("parcels: the paper's interface; the others: an interface for a distributed shared memory on the same network",),
        ),
    ),
)
