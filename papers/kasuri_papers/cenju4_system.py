"""The machine of the Cenju-4 around its interface: networks and multicasts, the Sender's choice, tasks and operating system, N to N.

The judges of the rows of figures 1, 3, 4 and 9, of the claims about protection, tasks, interrupts and registration, and of the studies.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kasuri_papers import boards, curves, programs
from kasuri_papers.figure import Findings, Table, Verdict

SIZE = "workload.message_bytes"
TIME = "completion_time_ns"
#: Nodes of the measurements.
NODES = 32
#: Length of a cycle, in which a flit passes a link.
CYCLE_NS = 12.5
#: Flits of a packet: its header, of the part `packet-headers` of machine.toml, and 3 flits for each 8 bytes.
HEADER_FLITS, WORD_FLITS = 12, 3
#: Bytes of a page, of a line, and of the longest packet.
PAGE, LINE, PACKET = 4096, 128, 256
#: What a link carries in packets of 256 bytes, Mbyte/s.
LINK = PACKET / ((HEADER_FLITS + WORD_FLITS * PACKET // 8) * CYCLE_NS) * 1000
#: Iterations of the stencil by messages and by shared memory.
ITERATIONS = 8
#: Times of timelines, in us, are compared to half of a nanosecond.
_SLACK = 0.5e-3


# --- structure --------------------------------------------------------------------------------------------------------------------

SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)
#: Stages of the machine: two for each layer of boards.
STAGES = {8: 2, 16: 2, 32: 4, 64: 4, 128: 4, 256: 4, 512: 6, 1024: 6}
PURE = (16, 64, 256, 1024)
CABLINGS = tuple(
    itertools.product(
        ("halves-straight", "halves-interleaved", "round-robin-straight", "round-robin-interleaved"),
        ("destination", "destination-pair", "source", "sum"),
    )
)
#: Parcels of the program `protection` that are refused.
REFUSED = 7


def networks(table: Table) -> Verdict:
    """All sizes on full boards in all cablings, and as pure networks; all pairs reach, by the path of the rule alone."""
    found = Findings()
    wrong, seen = [], set()
    for row in table.of("machine"):
        n = row["n"]
        seen.add((n, row["cabling"], row["cable"]))
        expected = {
            "terminals": n,
            "routers": 4 * STAGES[n] * -(-n // 16),
            "stages": STAGES[n],
            "pairs": n * n,
            "idle": 16 if n == 8 else 0,
        }
        measured = {key: row[key] for key in expected}
        if measured != expected:
            wrong.append(f"{n}, {row['cabling']}, {row['cable']}: {measured}, expected {expected}")
    found.must(seen == {(n, *cabling) for n in SIZES for cabling in CABLINGS}, f"{len(seen)} machines of 8 sizes in 16 cablings")
    found.must(
        not wrong, f"nodes, switches (8 a board), stages, paths by the rule, and no idle line from 16 nodes on; not: {wrong or 'none'}"
    )
    pure = {row["n"]: (row["terminals"], row["routers"]) for row in table.of("pure")}
    expected_pure = {n: (n, n // 4 * round(math.log(n, 4))) for n in PURE}
    found.must(pure == expected_pure, f"pure: nodes and switches {pure}, expected {expected_pure}")
    for series, sizes in (("machine", SIZES), ("pure", PURE)):
        reached = sorted(row["n"] for row in table.of(f"{series}-pairs") if row["status"] == "completed")
        found.must(reached == list(sizes), f"{series}: data of each node has reached all others with {reached} nodes")
    apart = {(row["n"], row["cabling"], row["cable"]): row.get("off_the_rule", math.inf) for row in table.of("channels")}
    complete = set(apart) == {(n, *cabling) for n in (32, 128) for cabling in CABLINGS}
    found.must(complete, f"channels of {len(apart)} machines counted")
    most = max(apart.values(), default=math.inf)
    found.must(most == 0, f"flits on each channel are those of one path for each pair: off by at most {most} flits")
    return found.verdict()


def off_the_rule(row: Mapping[str, Any], vector: Callable[[str], np.ndarray]) -> dict[str, Any]:
    """Compare the flits on each channel with those of one packet on the path of each pair: how many flits differ, at most."""
    if row["series"] != "channels":
        return {}
    flits = vector("channel_utilisation") * row["measured_cycles"]
    network = {"topology": "cenju4", "terminals": row["n"], "cabling": row["cabling"], "cable": row["cable"]}
    expected = boards.loads(network, row["ranks"]) * (HEADER_FLITS + WORD_FLITS)
    return {"off_the_rule": float(np.abs(np.rint(flits) - expected).max())}


def multicasts_arrive(table: Table) -> Verdict:
    """Multicasts to random subsets, two at once and from all nodes at once: every byte is right on every node, and no other has changed."""
    found = Findings()
    rows = [row for series in ("pair", "large-pair") for row in table.of(series)]
    found.must({row["n"] for row in rows} == {32, 64, 1024}, f"pairs on {sorted({row['n'] for row in rows})} nodes")
    found.must({row["n"] for row in table.of("storm")} >= {32, 64}, f"storms on {sorted({row['n'] for row in table.of('storm')})} nodes")
    for row in (*rows, *table.of("storm")):
        arrived = row["status"] == "completed" and row["measured_packets"] > 0
        found.must(arrived, f"{row['series']}, {row['n']} nodes: {row['status']}, {row['measured_packets']} packets")
    return found.verdict()


STEPS = ("(1) header written to the queue", "(2) RHM reads the header", "(3) SPM makes the packet header", "(4b) data from the cache")


def steps_in_order(table: Table) -> Verdict:
    """The steps (1) to (4) follow each other; where three of four registers have no room, the fourth is chosen and no other packet made."""
    found = Findings()
    for row in table.of("timeline"):
        begins = [row["begins"].get(step) for step in STEPS]
        known = all(begin is not None for begin in begins)
        found.must(known and begins == sorted(begins), f"steps begin at {dict(zip(STEPS, begins, strict=True))} us")
        found.must("(4a) data from main memory" in row["begins"], "a line that was read before comes from main memory (4a)")
    found.must(len(table.of("timeline")) > 0, "there is a timeline")
    queues = [row["queue"] for row in table.of("choice")]
    found.must(queues == [1, 2, 4], f"three of four registers without room, with FIFO memories to the network of {queues} packets")
    made_before = set()
    for row in table.of("choice"):
        length, counts = _fourth_alone(row["spans"])
        made_before.add(tuple(made for made, _ in counts))
        # More than a FIFO memory would hold, had packets been made for it before.
        found.must(length > 8, f"FIFO memory of {row['queue']}: {length} packets of the fourth parcel after each other (> 8)")
        none = bool(counts) and all(made == entered for made, entered in counts)
        found.must(none, f"of the other three (made, entered the network) {counts}: no packet exists outside of the network")
    found.must(len(made_before) == 1, f"and as many whatever the FIFO memory holds: {sorted(made_before)}")
    return found.verdict()


def _fourth_alone(spans: Mapping[str, list[list[float]]]) -> tuple[int, list[tuple[int, int]]]:
    """Find the longest time in which node 0 makes packets of its fourth parcel alone: how many, and of the other three at its middle how
    many packets have been made and how many have entered the network.
    """
    made = [(begin, parcel) for node, parcel, begin, _ in spans[STEPS[2]] if node == 0]
    own = sorted({parcel for _, parcel in made})
    if len(own) != 4:
        return 0, []
    groups = [[begin for begin, _ in group] for parcel, group in itertools.groupby(made, key=lambda one: one[1]) if parcel == own[3]]
    longest = max(groups, key=len)
    # Not the rest after the others have ended.
    if all(begin < longest[0] for begin, parcel in made if parcel != own[3]):
        return 0, []
    middle = (longest[0] + longest[-1]) / 2
    entered = [(begin, parcel) for _, parcel, begin, _ in spans["network"]]
    until = [[sum(1 for begin, of in events if of == parcel and begin <= middle) for parcel in own[:3]] for events in (made, entered)]
    return len(longest), list(zip(*until, strict=True))


def protected(table: Table) -> Verdict:
    """What the tables do not allow is an error of which the operating system is told, once for each parcel, and changes nothing."""
    found = Findings()
    ends = [row["status"] for row in table.of("protection")]
    found.must(
        bool(ends) and set(ends) == {"completed"},
        f"{len(ends)} runs in which each wrong parcel must be refused ended as {sorted(set(ends))}",
    )
    told = [row.get("interrupts", 0) for row in table.of("protection")]
    found.must(told == [REFUSED], f"operating systems were told of {told} refusals ({REFUSED}: six by the Sender, one by the Receiver)")
    return found.verdict()


# --- tasks and operating system ----------------------------------------------------------------------------------------------------


def tasks(table: Table) -> Verdict:
    """All bytes are right for each task; a set of control registers is given on only when its task has nothing left, for an interrupt."""
    found = Findings()
    rows = {row["tasks"]: row for row in table.of("tasks")}
    ends = {count: row["status"] for count, row in rows.items()}
    found.must(
        ends == dict.fromkeys((1, 2, 3), "completed"), f"tasks, beside the operating system's parcels, end as {ends}, all bytes right"
    )
    switches = {count: row["task_switches"] for count, row in rows.items()}
    found.must(
        switches.get(1) == 0 and switches.get(2) == 0 and switches.get(3, 0) >= NODES,
        f"switches {switches} (none up to 2, one a node for 3)",
    )
    told = all(row["interrupts"] == row["task_switches"] for row in rows.values())
    found.must(told, f"one interrupt for each switch: {[row['interrupts'] for row in rows.values()]}")
    enough = [row["task_switches"] for row in table.of("enough") if row["status"] == "completed"]
    found.must(enough == [0], f"with a set for each of three tasks {enough} switches")
    times = {count: row[TIME] / 1000 for count, row in rows.items()}
    found.must(len(times) == 3 and times[1] < times[2] < times[3], f"times {curves.text(times, 1)} us")
    cost = max((row["endpoint.interrupt_ns"] for row in table.of("switches")), default=math.inf) * switches.get(3, 0) / NODES / 1000
    if len(times) == 3:
        found.must(times[3] - times[2] >= cost, f"3 tasks over 2: {times[3] - times[2]:.1f} us (at least the switches' {cost:.1f})")
    for row in table.of("switches"):
        given, early = _switches(row)
        fits = given == row["task_switches"] > 0 and not early
        found.must(fits, f"{row['bytes']} bytes: {given} of {row['task_switches']} switches seen, {early} before the last packet had left")
    found.must(len(table.of("switches")) > 0, "switches were looked at")
    return found.verdict()


def _switches(row: Mapping[str, Any]) -> tuple[int, int]:
    """Find the switches in a timeline of nodes with one set of control registers: how many, and how many were too early.

    After a switch the Sender reads a header that has waited for an interrupt's time at least, while nothing was read though a register was
    free. Then every packet of what it read before must have left.
    """
    spans, interrupt = row["spans"], row["endpoint.interrupt_ns"] / 1000
    written = {parcel: end for _, parcel, _, end in spans[STEPS[0]]}
    left: dict[float, float] = {}
    node_of = {parcel: node for node, parcel, _, _ in spans[STEPS[1]]}
    entered: dict[float, list[float]] = {}
    for _, parcel, begin, _ in spans["network"]:
        entered.setdefault(parcel, []).append(begin)
    for parcel, begins in entered.items():
        left[parcel] = max(begins) + _last_flits(int(node_of[parcel]), row["bytes"]) * CYCLE_NS / 1000
    seen = early = 0
    for node in sorted(set(node_of.values())):
        reads = sorted((begin, end, parcel) for of, parcel, begin, end in spans[STEPS[1]] if of == node)
        freed = {begin for of, _, begin, _ in spans[STEPS[2]] if of == node}
        for place, (begin, _, parcel) in enumerate(reads):
            before = reads[place - 1][1] if place else 0.0
            waited = max(before, written[parcel]) <= begin - interrupt + _SLACK
            if waited and begin not in freed:
                seen += 1
                early += any(left[earlier] > begin - interrupt + _SLACK for _, _, earlier in reads[:place])
    return seen, early


def _last_flits(rank: int, size: int) -> int:
    """Count the flits of the last packet of a rank's block in an all-gather."""
    at = rank * (-(-size // 8) * 8)
    while size > PACKET - at % LINE:
        part = PACKET - at % LINE
        at, size = at + part, size - part
    return HEADER_FLITS + WORD_FLITS * -(-size // 8)


def interrupts(table: Table) -> Verdict:
    """A parcel with missing pages arrives whole, later by their service; masked interrupts cost nothing, others their time."""
    found = Findings()
    ends = {row["status"] for row in table}
    found.must(ends == {"completed"}, f"runs that compare every byte ended as {sorted(ends)}")
    _pages(found, table.of("pages"))
    _delays(found, table, "messages", lambda row: (row["each"] > 16, bool(row["masked"])))
    _delays(found, table, "log", lambda row: (True, bool(row["masked"])))
    told = {bool(row["masked"]): (row["interrupts"], row["interrupts_masked"]) for row in table.of("refusals")}
    reached, (none, masked) = told.get(False, (0, 0))[0], told.get(True, (0, 0))
    moved = reached == REFUSED and none == 0 and masked >= REFUSED
    found.must(moved, f"refusals: (interrupts, those that do not reach the processor) {told.get(False)}, masked {told.get(True)}")
    return found.verdict()


def _pages(found: Findings, table: Table) -> None:
    base = {row["bytes"]: row[TIME] for row in table if row["source"] == row["target"] == 0}
    seen = 0
    for row in table:
        missing = row["source"] + row["target"]
        what = f"{row['bytes']} bytes, {row['source']} and {row['target']} pages of source and target missing on each side"
        found.must(row["page_faults"] == 2 * missing, f"{what}: {row['page_faults']} faults")
        later = row[TIME] - base.get(row["bytes"], math.nan)
        service = row["endpoint.page_fault_ns"]
        if missing and row["bytes"] <= PACKET:
            seen += 1
            found.must(abs(later - 2 * missing * service) < 1, f"later by {later / 1000:.1f} us ({2 * missing} x {service / 1000:g})")
        elif missing:
            seen += 1
            # Of several pages some are brought while others are waited for, on the other side.
            found.must(
                service < later <= 2 * missing * service + 1, f"later by {later / 1000:.1f} us (at most {2 * missing} x {service / 1000:g})"
            )
    found.must(seen >= 4, f"{seen} messages with missing pages")


def _delays(found: Findings, table: Table, series: str, case: Callable[[Mapping[str, Any]], tuple[bool, bool]]) -> None:
    """Judge that what fills a quarter of a buffer delays the processor by an interrupt, and not at all if that is masked."""
    rows = {case(row): row for row in table.of(series)}
    delayed, masked = rows.get((True, False)), rows.get((True, True))
    if delayed is None or masked is None:
        found.must(False, f"{series}: an interrupt, and a masked one, were measured")
        return
    later, cost = delayed[TIME] - masked[TIME], delayed["endpoint.interrupt_ns"]
    found.must(
        delayed["interrupts"] > 0 == masked["interrupts"], f"{series}: {delayed['interrupts']} interrupts, masked {masked['interrupts']}"
    )
    found.must(abs(later - cost) < 1, f"{series}: later by {later / 1000:.2f} us (the interrupt's {cost / 1000:g})")
    quiet = rows.get((False, False))
    if quiet is not None:
        found.must(masked[TIME] == quiet[TIME], f"{series}: masked, as long as without an interrupt")


def registered(table: Table) -> Verdict:
    """Registering costs a system call and a table's entry before the first use, and nothing after it; offsets of nothing are errors."""
    found = Findings()
    for series in "DE":
        at = {(row["n"], row["when"], row["warmup"]): row[TIME] for row in table.of(series)}
        nodes = sorted({n for n, _, _ in at})
        later = {n: at[n, "first-use", 0] - at[n, "before-start", 0] for n in nodes if (n, "first-use", 0) in at}
        after = {n: at[n, "first-use", 1] - at[n, "before-start", 1] for n in nodes if (n, "first-use", 1) in at}
        right = len(later) > 1 and all(13_000 < ns <= 13_250 for ns in later.values())
        found.must(right, f"{series}: the first one later by {curves.text(later, 1)} ns (13 us, and the writing of an entry)")
        found.must(len(after) > 1 and not any(after.values()), f"{series}: those after it by {curves.text(after, 1)} ns (0)")
    refusals = protected(table)
    found.must(refusals.verdict == "pass", f"offsets that are not registered: {refusals.measured}")
    return found.verdict()


# --- N to N -----------------------------------------------------------------------------------------------------------------------


def _rates(table: Table, series: str) -> tuple[dict[Any, float], dict[Any, float]]:
    """Give what a node receives in an all-gather, Mbyte/s over size, and the standard error of that."""
    rates = Table({**row, "rate": NODES * row[SIZE] / row[TIME] * 1000} for row in table.of(series))
    return rates.curve("rate", SIZE), rates.standard_errors("rate", SIZE)


#: Sizes at which the rates of figure 9 are compared, bytes.
LARGE = 16384


def all_to_all(table: Table) -> Verdict:
    """To one after the other is slow, staggered is faster but loses with size, by multicast the last link is full."""
    found = Findings()
    (a, _), (b, errors), (c, _) = (_rates(table, series) for series in "ABC")
    single = curves.largest({row[SIZE]: 2 * row[SIZE] / row[TIME] * 1000 for row in table.of("one-to-one")})
    compared = [size for size in c if size >= LARGE]
    found.must(bool(compared), f"compared at {compared} bytes")
    for size in compared:
        rate = {name: curve.get(size, math.nan) for name, curve in zip("ABC", (a, b, c), strict=True)}
        found.must(rate["C"] >= 0.95 * single, f"{size} bytes: C {rate['C']:.1f}, one to one {single:.1f} Mbyte/s (>= 0.95 of it)")
        link = min(row["accepted_throughput_min"] for row in table.of("C") if row[SIZE] == size)
        found.must(link >= 0.95, f"last links busy {link:.4f} of the time (>= 0.95)")
        found.must(rate["A"] < 0.5 * rate["C"], f"A {rate['A']:.1f} (< half of C)")
        found.must(rate["A"] < rate["B"] < rate["C"], f"A < B < C: B {rate['B']:.1f}")
    _must_fall(found, b, errors)
    for series, what in (
        ("B-together", "all start together"),
        ("B-alone", "lines 0 to 31 of 256, a node and an output on each first switch"),
    ):
        found.report(f"B, {what}: {curves.text(_rates(table, series)[0], 1)}")
    found.report("not simulated: Sender and Receiver that wait for each other's memory, and packets made before a register is chosen")
    return found.verdict()


def _must_fall(found: Findings, b: Mapping[Any, float], errors: Mapping[Any, float]) -> None:
    places = list(b)
    if len(places) < 2:
        found.must(False, f"B at several sizes: {curves.text(b, 1)}")
        return
    top, last = max(places, key=lambda size: b[size]), places[-1]
    noise = math.hypot(errors[top], errors[last])
    falls = b[last] < 0.95 * b[top] and b[top] - b[last] > 3 * noise
    part = f"{b[last] / b[top]:.3f} of it (< 0.95), standard error {noise:.2f}"
    text = f"B falls from {b[top]:.1f} at {top} bytes to {b[last]:.1f} at {last}, {part}"
    found.must(falls, f"{text}: {curves.text(b, 1)}")


# --- studies ----------------------------------------------------------------------------------------------------------------------


def why_b_falls(table: Table) -> Verdict:
    """Say how much of B's time is lost inside rounds and how much between them, by cabling.

    With a barrier after each round, what the parcels of all nodes need beyond those of one node alone is lost inside rounds. Of what B
    itself needs beyond a full link the rest is lost between rounds; it is negative where rounds that overlap make up for each other.
    """
    found = Findings()
    alone = table.of("alone").curve(TIME, "bytes")
    lost: dict[Any, list[tuple[float, float]]] = {}
    for cabling, cable in CABLINGS:
        for size in sorted({row[SIZE] for row in table.of("B")}):
            of = {"cabling": cabling, "cable": cable}
            whole = table.of("B", **of).curve(TIME, SIZE).get(size, math.nan)
            inside = table.of("rounds", **of).curve(TIME, "bytes").get(size, math.nan) - alone.get(size, math.nan)
            full = NODES * size / LINK * 1000
            between = whole - full - inside
            lost.setdefault(size, []).append((inside / whole, between / whole))
            shares = f"{full / whole:.0%} a full link, {inside / whole:.0%} lost inside rounds, {between / whole:.0%} between them"
            found.report(f"{cabling}, {cable}, {size} bytes: B {NODES * size / whole * 1000:.1f} Mbyte/s; of its time {shares}")
    for size, parts in lost.items():
        means = [sum(part) / len(parts) for part in zip(*parts, strict=True)]
        found.report(f"{size} bytes, mean of the cablings: {means[0]:.0%} inside rounds, {means[1]:.0%} between them")
    cables = [max(k, 16 - k) / 8 for k in (min(step, NODES - step) for step in range(1, NODES + 1))]
    found.report(
        f"formula: the nodes of a board share 8 cables; a round takes {sum(max(1, share) for share in cables) / NODES:.2f} times as long"
    )
    return Verdict("report", found.verdict().measured)


def ends(row: Mapping[str, Any], vector: Callable[[str], np.ndarray]) -> dict[str, Any]:
    """Give when the last packet of each job has arrived, ns."""
    cycles = vector("completion_cycles")
    return {f"end_{job}": float(cycles[list(ranks)].max()) * CYCLE_NS for job, ranks in programs.PLACES[row["places"]].items()}


def two_jobs(table: Table) -> Verdict:
    """Say how long two jobs take on one machine, each alone and both together."""
    found = Findings()
    for series, places in itertools.product(("parcels", "goal"), programs.PLACES):
        rows = {row["jobs"]: row for row in table.of(series, places=places)}
        for job in programs.PLACES[places]:
            if job in rows and "both" in rows:
                alone, together = (rows[which][f"end_{job}"] / 1000 for which in (job, "both"))
                times = f"alone {alone:.1f} us, together {together:.1f} us, {together / alone:.3f} times"
                found.report(f"{series}, in {places}, {job}: {times}")
    return Verdict("report", found.verdict().measured)


#: The ways of the stencil, and how each is told.
WAYS = {"parcels": "by parcels", "accesses": "by accesses", "messages": "by messages of the shared memory", "both": "by both"}


def messages_and_memory(table: Table) -> Verdict:
    """Say how long an iteration of one stencil takes by messages, by accesses to shared memory and by both, over its edges' lengths."""
    found = Findings()
    edges = sorted({(row["points"], row["lines"]) for row in table.rows})
    for points, lines in edges:
        times = {
            way: row["completion_time"] * CYCLE_NS / 1000 / ITERATIONS for way in WAYS for row in table.of(way, points=points, lines=lines)
        }
        told = ", ".join(f"{WAYS[way]} {time:.1f}" for way, time in times.items())
        found.report(f"edges of {lines} and {points} words: us an iteration: {told}")
    return Verdict("report", found.verdict().measured)
