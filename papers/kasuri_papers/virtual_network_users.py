"""The virtual networks of the paper: node numbers translated, logical networks on the machine, the levels of translation."""

from __future__ import annotations

from typing import Any

from kasuri_papers.figure import Figure, Findings, Table, Verdict

TIME = "completion_time"
#: Logical nodes of the table in F1, of which some are holes, and entries of its buffer.
NODES, HOLES, ENTRIES = 56, 16, 16
#: Dilation (greatest, mean) and congestion of the layouts of F3.
LAYOUTS = {"irregular": (4.0, 64 / 36, 4.0), "compact": (2.0, 4 / 3, 2.0), "tree": (1.0, 1.0, 1.0)}
LEVELS = ("hardware", "library", "os")
#: Flits of 32 bytes of a message of 8 bytes and of 1 MB.
SHORT, LONG = 1, 31_250


def _users(table: Table) -> list[dict[str, Any]]:
    return [user for row in table for user in row["users"]]


def only_own(found: Findings, name: str, user: dict[str, Any]) -> None:
    """All accesses ended once, at nodes of the user's table."""
    found.must(user["misdelivered_packets"] == 0, f"{name}: {user['misdelivered_packets']} packets at other nodes than meant")
    found.must(
        user["accesses"] == user["accesses_ended"] > 0 and user["accesses_ended_wrongly"] == 0,
        f"{name}: {user['accesses_ended']} of {user['accesses']} accesses ended, {user['accesses_ended_wrongly']} wrongly",
    )


def translator_in_open_traffic(found: Findings, table: Table) -> None:
    """Accesses go where the table says or are faults; the buffer hits as often as its size lets it."""
    users = _users(table.of("holes"))
    found.must(bool(users), f"{len(users)} users")
    for user in users:
        only_own(found, "table with holes", user)
        all_accesses = user["accesses"] + user["protection_faults"]
        share = user["protection_faults"] / all_accesses
        wanted = HOLES / (NODES - 1)
        found.must(abs(share - wanted) < 0.01, f"{share:.4f} of the accesses are faults ({wanted:.4f})")
        looked_up = user["tlb_hits"] + user["tlb_misses"]
        found.must(looked_up == all_accesses, f"{looked_up} look-ups for {all_accesses} accesses")
        hits, room = user["tlb_hits"] / looked_up, ENTRIES / (NODES - 1)
        found.must(abs(hits - room) < 0.01, f"{hits:.4f} of them hit ({room:.4f}: random accesses to {NODES - 1} nodes, {ENTRIES} entries)")


def topologies(table: Table) -> Verdict:
    """Nine scattered nodes are seen as a closed torus, seven as a tree: measures, bijection, isolation."""
    found = Findings()
    for name, (longest, mean, congestion) in LAYOUTS.items():
        rows = table.of(name).rows
        found.must(len(rows) == 1, f"{name}: {len(rows)} runs")
        for row in rows:
            user = row["users"][0]
            measures = (user["dilation_max"], user["dilation_mean"], user["congestion"])
            right = measures[0] == longest and abs(measures[1] - mean) < 1e-9 and measures[2] == congestion
            text = f"{measures[0]:g}, {measures[1]:.4f}, {measures[2]:g}"
            found.must(right, f"{name}: dilation and congestion {text} ({longest:g}, {mean:.4f}, {congestion:g})")
            nodes = 7 if name == "tree" else 9
            found.must(user["nodes"] == nodes, f"{name}: {user['nodes']} different terminals for {nodes} logical nodes")
            for each in row["users"]:
                only_own(found, f"{name}, {each['name']}", each)
    return found.verdict()


def virtual_processors(table: Table) -> Verdict:
    """Several logical nodes on one terminal: the receiver finds the one that is meant."""
    found = Findings()
    for series in ("processors", "shared-memory"):
        users = _users(table.of(series))
        found.must(bool(users), f"{series}: {len(users)} users")
        for user in users:
            found.must(user["nodes"] == 3, f"{series}: 5 logical nodes on {user['nodes']} terminals (3)")
            only_own(found, series, user)
            if series == "shared-memory":
                found.must(user["wrong_words"] == 0, f"{series}: {user['wrong_words']} words of other logical nodes")
    return found.verdict()


def foreign_packets(table: Table) -> Verdict:
    """Others' packets cross a region, and none is delivered there."""
    found = Findings()
    users = _users(table.of("irregular"))
    found.must(len(users) == 2, f"{len(users)} users")
    for user in users:
        only_own(found, user["name"], user)
    for user in users[:1]:
        found.must(user["foreign_packets"] > 0, f"{user['foreign_packets']} foreign packets at routers of the region")
    return found.verdict()


def levels(table: Table) -> Verdict:
    """In hardware a translation costs next to nothing, in a library or the operating system it makes short messages slow."""
    found = Findings()
    times = {(row["translation.level"], row["flits"]): row[TIME] for row in table}
    wanted = {(level, flits) for level in LEVELS for flits in (SHORT, LONG)}
    if not wanted <= set(times):
        found.must(False, f"runs: {sorted(times)}")
        return found.verdict()
    short, long = ([times[level, flits] for level in LEVELS] for flits in (SHORT, LONG))
    found.must(short[0] < short[1] < short[2], f"8 bytes: {short} cycles (hardware < library < os)")
    spread = max(long) / min(long) - 1
    found.must(spread < 0.02, f"1 MB: {long} cycles, {spread:.4f} apart (< 0.02)")
    return found.verdict()


FIGURES = (
    Figure(
        "004-F3",
        "D",
        "an irregular region of nine nodes is a 3 x 3 torus to its user, seven nodes are a tree",
        "dilation 4, 1.78, congestion 4; compact 2, 1.33, 2; tree 1, 1, 1; one terminal each; nothing arrives elsewhere",
        "structure",
        "flit",
        topologies,
    ),
    Figure(
        "004-C1",
        "C",
        "several logical nodes on one physical node are virtual processors",
        "three logical nodes on one terminal: every access ends at the one that is meant",
        "structure",
        "flit",
        virtual_processors,
    ),
    Figure(
        "004-C2",
        "C",
        "packets of others may cross a user's region",
        "more than 0 at the irregular region's routers, none of them delivered there",
        "structure",
        "flit",
        foreign_packets,
    ),
    Figure(
        "004-C4",
        "C",
        "translation in hardware, in the operating system, in a library",
        "time of 8 bytes: hardware < library < os; of 1 MB: within 2 %",
        "identity",
        "flit",
        levels,
    ),
)
