"""The nodes of the virtual-network paper that translate themselves: aliases before one memory, spaces, global addresses, users in turn.

The system of the paper as one thing: processor, unit that translates, interfaces, router and memory of each node, on its network.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kasuri_papers import curves
from kasuri_papers.figure import Figure, Findings, Plot, Table, Verdict
from kasuri_papers.virtual_network_memory import INTERFACES, ROUTERS, TIME, UNIT
from kasuri_papers.virtual_network_users import only_own, translator_in_open_traffic

#: Reads of all nodes but the busy one, in F2.
READS = 63 * 100
#: Cycles of the memory in F2, one that is judged and one beside it: it serves 3 or 4 packets in the time of one to an interface.
MEMORY, FASTER_MEMORY = 1120, 840
SYSTEM_READS = 2 * 1000


def _user(row: dict[str, Any], name: str = "") -> dict[str, Any]:
    return next(user for user in row["users"] if name in ("", user["name"]))


def _all_right(found: Findings, rows: Iterable[dict[str, Any]]) -> None:
    """All accesses ended once at the node meant, and every word that was read was the one last written."""
    ended, users = 0, 0
    for row in rows:
        for user in row["users"]:
            if not user["accesses"]:
                continue
            own = Findings()
            only_own(own, f"{row['series']}, {user['name']}", user)
            wrong = user["wrong_words"]
            own.must(wrong == 0, f"{row['series']}, {user['name']}: {wrong} words were not what was written last")
            found.failures += own.failures
            ended, users = ended + user["accesses_ended"], users + 1
    found.must(users > 0, f"{ended} accesses of {users} users of all runs ended once where they were meant to, with the right words")


def translator(table: Table) -> Verdict:
    """Tables say where accesses go, in open traffic and in nodes; an identity costs nothing, a miss what a walk costs."""
    found = Findings()
    translator_in_open_traffic(found, table)
    for form in ("", "-flits"):
        plain = table.of(f"plain{form}").curve(TIME, "endpoint.window")
        identity = table.of(f"identity{form}").curve(TIME, "endpoint.window")
        found.must(bool(plain) and plain == identity, f"identity table{form}: {curves.text(identity, 0)} cycles ({curves.text(plain, 0)})")
    times = {(row["translation.tlb_entries"], row["translation.walk_cycles"]): row for row in table.of("walks")}
    sizes = sorted({size for size, _ in times})
    found.must(bool(sizes), f"{len(sizes)} sizes of buffers")
    for size in sizes:
        later = times[size, 500][TIME] - times[size, 0][TIME]
        misses = _user(times[size, 500])["tlb_misses"]
        found.must(misses > 0 and later == 500 * misses, f"{size} entries: {later:g} cycles later with a walk of 500 ({misses} misses)")
    return found.verdict()


def aliases(table: Table) -> Verdict:
    """Interfaces of one node serve in parallel until its memory is the limit, and stand before the same words."""
    found = Findings()
    judged = 0
    for place in ("router", "next-routers"):
        free, bound, faster = (_reads(table, place, cycles) for cycles in (0, MEMORY, FASTER_MEMORY))
        memories = f"{curves.text(bound)} with a memory of {UNIT / MEMORY:g}, {curves.text(faster)} with one of {UNIT / FASTER_MEMORY:g}"
        found.report(f"interfaces at {place}: reads in a packet's time: {curves.text(free)}; {memories}")
        if place != "router":
            continue
        if not {1, 2, 8} <= set(free) or not {1, 2, 8} <= set(bound):
            found.must(False, f"runs: {sorted(free)}, {sorted(bound)}")
            continue
        judged += 1
        for name, rates in (("memory of no time", free), ("memory", bound)):
            found.must(1.8 <= rates[2] / rates[1] <= 2.0, f"{name}: two interfaces {rates[2] / rates[1]:.3f} x one (1.8 to 2.0)")
            found.must(curves.rises(rates, 0.01), f"{name}: rises with the interfaces")
        limit = UNIT / MEMORY
        found.must(abs(bound[8] / limit - 1) < 0.05, f"8 interfaces: {bound[8]:.3f} of the memory's {limit:g} (within 5 %)")
    found.must(judged == 1, "interfaces at one router are judged")
    words = table.of("words").rows
    _all_right(found, [*table.of("aliases"), *words])
    seen = {row["k"]: _user(row)["words_through_others"] for row in words}
    found.must(
        bool(seen) and all((count > 0) == (k > 1) for k, count in seen.items()),
        f"words read that another interface had written: {curves.text(seen, 0)} (none with one interface)",
    )
    return found.verdict()


def _reads(table: Table, place: str, cycles: int) -> dict[int, float]:
    """Give the reads in a packet's time over the number of interfaces."""
    times = table.of("aliases", endpoint__memory_cycles=cycles, endpoint__interfaces_at=place).curve(TIME)
    return {k: READS * UNIT / time for k, time in times.items()}


def busy_node(table: Table) -> Verdict:
    """A second interface of the busy node alone, by a table that is rewritten during the run, makes the whole faster."""
    found = Findings()
    before, after = table.of("one").curve(TIME, "measure.seed"), table.of("rewritten").curve(TIME, "measure.seed")
    found.must(bool(before) and set(before) == set(after), f"{len(before)} and {len(after)} runs")
    for seed in sorted(set(before) & set(after)):
        gain = 1 - after[seed] / before[seed]
        found.must(gain > 0.02, f"seed {seed}: completion falls by {100 * gain:.1f} % (> 2 %)")
    _all_right(found, table)
    for row in table.of("rewritten"):
        user = _user(row)
        found.must(
            user["table_changes"] == 1, f"{user['table_changes']} change of the table; accesses were held for {user['held_cycles']} cycles"
        )
    return found.verdict()


def spaces(table: Table) -> Verdict:
    """The operating system reaches every node by a table of its own, a user cannot; hits over the buffer's size and the number of users."""
    found = Findings()
    rows = table.of("system").rows
    found.must(bool(rows), f"{len(rows)} runs of the operating system")
    for row in rows:
        system = _user(row, "system")
        only_own(found, "operating system", system)
        found.must(
            system["accesses"] == SYSTEM_READS and system["protection_faults"] == 0,
            f"operating system: {system['accesses']} accesses to any of 64 nodes, {system['protection_faults']} faults",
        )
    for row in table.of("intruder"):
        intruder = _user(row, "intruder")
        found.must(
            intruder["accesses"] == 0 and intruder["protection_faults"] == SYSTEM_READS,
            f"a user in that space: {intruder['accesses']} accesses, {intruder['protection_faults']} faults",
        )
        only_own(found, "beside it", _user(row, "user"))
    found.must(bool(table.of("intruder").rows), "a user has tried")
    for users in (1, 2, 4, 8):
        rates = _hit_rates(table, users, 0)
        found.must(bool(rates) and curves.rises(rates, 0.01), f"{users} users in turn: hit rate over entries {curves.text(rates)} (rises)")
        found.report(f"{users} users, the table of the active one in the unit: {curves.text(_hit_rates(table, users, 1))}")
    return found.verdict()


def _hit_rates(table: Table, users: int, unit_tables: int) -> dict[int, float]:
    rates = {}
    for row in table.of(f"users-{users}", translation__unit_tables=unit_tables):
        hits, misses = (sum(user[name] for user in row["users"]) for name in ("tlb_hits", "tlb_misses"))
        rates[row["translation.tlb_entries"]] = hits / (hits + misses)
    return dict(sorted(rates.items()))


def global_addresses(table: Table) -> Verdict:
    """Words are found in pages anywhere, and missing pages fault at the receiver."""
    found = Findings()
    rows = [*table.of("pages"), *table.of("missing")]
    found.must({row["series"] for row in rows} == {"pages", "missing"}, f"{len(rows)} runs")
    _all_right(found, rows)
    for row in rows:
        user = _user(row)
        pages, nodes = user["page_hits"] + user["page_misses"], user["tlb_hits"] + user["tlb_misses"]
        name = f"{row['series']}, seed {row['measure.seed']}"
        found.must(
            0 < pages <= user["accesses"] <= nodes, f"{name}: {nodes} look-ups of nodes, {pages} of pages, {user['accesses']} accesses"
        )
        is_missing = row["series"] == "missing"
        found.must((user["page_faults"] > 0) == is_missing, f"{name}: {user['page_faults']} pages missing")
        if is_missing:
            found.must(
                abs(user["page_faults"] / user["accesses"] - 0.25) < 0.08,
                f"{name}: {user['page_faults'] / user['accesses']:.3f} of accesses",
            )
    return found.verdict()


def many_users(table: Table) -> Verdict:
    """Users with programs beside each other get their own answers; in turn a switch costs more the larger the machine."""
    found = Findings()
    space = {row["users.alone"]: row for row in table.of("space")}
    found.must({"", "a", "b", "c", "d"} <= set(space), f"users in space: {', '.join(sorted(space))}")
    _all_right(found, table)
    for name in (name for name in space if name):
        alone, together = _user(space[name], name), _user(space[""], name)
        found.must(
            (alone["accesses"], alone["protection_faults"]) == (together["accesses"], together["protection_faults"]),
            f"{name}: {together['accesses']} accesses with neighbours, {alone['accesses']} alone",
        )
        found.report(f"{name}: {together[TIME] / UNIT:.1f} packets' times with neighbours, {alone[TIME] / UNIT:.1f} alone")
    costs = table.of("time", users__draining="answered").curve("user_switch_cycles_mean", "n")
    in_packets = curves.text({n: cost / UNIT for n, cost in costs.items()})
    rises = len(costs) == 3 and curves.rises(costs, 0.0)
    found.must(rises, f"cost of a switch over nodes, answers awaited: {in_packets} packets' times (rises)")
    left = table.of("time", users__draining="left").curve("user_switch_cycles_mean", "n")
    found.report(f"packets left in the network: {curves.text({n: cost / UNIT for n, cost in left.items()})}")
    return found.verdict()


def true_aliases(table: Table) -> Verdict:
    """Report times and work rates with interfaces in place of the multiplier."""
    found = Findings()
    forms = [("multiplier", table.of("multiplier"))]
    forms += [(f"aliases at {place}", table.of("requester", endpoint__interfaces_at=place)) for place in ("router", "next-routers")]
    forms += [("aliases by address", table.of("address"))]
    for name, rows in forms:
        times = {x: time / UNIT for x, time in rows.curve(TIME, "x").items()}
        found.must(bool(times), f"{name}: T {curves.text(times, 1)}")
        found.report(f"{name}: NR {curves.text(rows.curve(ROUTERS, 'x'))}; NIU {curves.text(rows.curve(INTERFACES, 'x'))}")
    return found.study()


def general(table: Table) -> Verdict:
    """Report times over the multiplier of four programs on four networks."""
    found = Findings()
    for network in ("rdt", "torus", "mesh", "fat-tree"):
        for nodes in (64, 256):
            rows = table.of(f"{network}-{nodes}")
            for program in ("matrix-vector", "stencil", "random-access", "hot-spot"):
                times = {x: time / UNIT for x, time in rows.of(f"{network}-{nodes}", program=program).curve(TIME, "x").items()}
                found.must(len(times) > 1, f"{network} {nodes}, {program}: {curves.text(times, 1)}{_knee(times)}")
    return found.study()


def _knee(times: dict[int, float]) -> str:
    """Say from where on the time is within 2 % of the last one."""
    if not times:
        return ""
    last = times[max(times)]
    return f", knee {min(x for x, time in times.items() if time <= 1.02 * last)}, T(1)/T(8) {times[min(times)] / last:.2f}"


def logical_networks(table: Table) -> Verdict:
    """Report the times of a stencil on logical tori against random numberings."""
    found = Findings()
    for region in ("compact-9", "irregular-9", "random-9", "compact-16", "irregular-16", "random-16"):
        for alone, neighbours in (("stencil", "quiet"), ("", "loaded")):
            rows = table.of("stencil", region=region, users__alone=alone)
            logical = [_user(row, "stencil")[TIME] for row in rows if row["numbering"] == "logical"]
            drawn = [_user(row, "stencil")[TIME] for row in rows if row["numbering"] != "logical"]
            found.must(len(logical) == 1 and len(drawn) == 3, f"{region}, {neighbours}: {len(logical)} and {len(drawn)} runs")
            if logical and drawn:
                mean = sum(drawn) / len(drawn)
                found.report(f"{region}, {neighbours}: {logical[0]:.0f} cycles, numbered at random {mean:.0f} ({logical[0] / mean:.3f})")
    return found.study()


FIGURES = (
    Figure(
        "004-F1",
        "D",
        "access to another node through the translator, in open traffic and in nodes of a distributed shared memory",
        "accesses end at the table's nodes, others are faults; hits and misses counted; an identity table costs no cycle; "
        "a walk makes it later by the misses",
        "structure",
        "flit, flow",
        translator,
    ),
    Figure(
        "004-F2",
        "D",
        "node number alias: several physical nodes for one logical node raise its throughput",
        "k = 2 in [1.8, 2.0] of k = 1; rises with k; stops at the memory's rate (within 5 %); every read returns the one memory's word, "
        "also what another interface wrote",
        "identity",
        "flow",
        aliases,
        notes=("interfaces at one router are judged: figure 2 draws the numbers on one node; those at neighbouring routers are reported",),
    ),
    Figure(
        "004-C6",
        "C",
        "an alias of a busy node alone, by rewriting tables, helps the whole",
        "hot spot and random accesses: completion falls by more than 2 %; no access is lost or wrong while the table changes",
        "derived",
        "flow",
        busy_node,
    ),
    Figure(
        "004-C7",
        "C",
        "few tables in hardware suffice: active users and the operating system",
        "its accesses go by a table of their own and reach nodes of no user; a user's attempt faults; hit rate over the size of "
        "the buffer for 1 to 8 users",
        "structure",
        "flow",
        spaces,
    ),
    Figure(
        "004-C8",
        "C",
        "the unit serves global memory addresses, too",
        "reads and writes by node and address end at the right word for random tables; a missing page faults at the receiver; "
        "both buffers counted",
        "structure",
        "flow",
        global_addresses,
    ),
    Figure(
        "004-C9",
        "C",
        "users share the machine in space; switching in time costs more the larger it is",
        "each user's results as alone, no access to others' memory; the cost of a switch rises over 16, 64, 256 nodes",
        "derived",
        "flow",
        many_users,
    ),
    Figure(
        "004-S1",
        "S",
        "figures 5 and 6 with true aliases",
        "none: times and work rates beside those of the multiplier",
        "derived",
        "flow",
        true_aliases,
        Plot("x", TIME, "interfaces, or throughput between router and interface", "execution time (cycles)", ("endpoint.interfaces_at",)),
    ),
    Figure(
        "004-S2",
        "S",
        "more general applications and networks, section 6",
        "none: times over the multiplier for four programs on four networks of two sizes",
        "derived",
        "flow",
        general,
        Plot("x", TIME, "throughput between router and interface", "execution time (cycles)", ("program",)),
    ),
    Figure(
        "004-S3",
        "S",
        "does it backfire to optimise for a logical network, section 6",
        "none: times of a stencil on logical tori against a random numbering",
        "derived",
        "flit",
        logical_networks,
    ),
)
