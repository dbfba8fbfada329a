"""What the paper of the multi-layer full mesh leaves to others: other networks under dynamic routing, and fewer all-to-alls."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

from kasuri_papers import curves
from kasuri_papers.figure import Figure, Findings, Plot, Table, Verdict

#: The networks of one radix, and their routings: that of fixed paths is the fat tree's own on the fat tree.
NETWORKS = ("mlfm", "oft", "fat-tree", "dragonfly")
FIXED = ("minimal", "nca")
DYNAMIC = ("valiant", "ugal", "minimal-adaptive")
#: The schedule that belongs to each network.
OWN = {"mlfm": "mlfm", "oft": "oft", "fat-tree": "shift", "dragonfly": "general"}
#: Flits of a message of the all-to-alls: the part `short-exchange` of machine.toml.
MESSAGE_FLITS = 256

#: Classes of NPB FT, and numbers of its ranks.
LETTERS = ("B", "C", "D")
RANKS = (8, 16, 32)


def dynamic_routing(table: Table) -> Verdict:
    """Print, for each network, its size and what it accepts under each routing; nobody judges it, but all of it has to be there."""
    found = Findings()
    for network in NETWORKS:
        terminals = _report_size(found, table, network)
        _report_loads(found, table, network)
        _report_exchanges(found, table, network, terminals)
    return found.study()


def _report_size(found: Findings, table: Table, network: str) -> int:
    """Print terminals, switches and links; give the terminals."""
    sizes = table.of(f"{network}-size").rows
    if not sizes:
        found.must(False, f"{network}: its size is missing")
        return 0
    terminals, routers, links = (sizes[0][key] for key in ("terminals", "routers", "links"))
    found.report(f"{network}: {terminals} terminals, for each {routers / terminals:.3f} switches and {links / terminals:.3f} links")
    return int(terminals)


def _report_loads(found: Findings, table: Table, network: str) -> None:
    """Print what is accepted of all that terminals can offer."""
    for traffic in ("uniform", "worst"):
        rows = table.of(f"{network}-{traffic}")
        accepted = rows.curve("accepted_throughput_mean", "routing.algorithm")
        accepted = {routing: accepted[routing] for routing in (*FIXED, *DYNAMIC) if routing in accepted}
        found.report(f"{network}, {traffic}: {curves.text(accepted)} flits a cycle and terminal")
        _must_have_all(found, accepted, f"{network}, {traffic}")


def _report_exchanges(found: Findings, table: Table, network: str, terminals: int) -> None:
    """Print what each terminal sends in an all-to-all over what its channel carries: by the shift, and by the network's schedule."""
    rows = Table([*table.of(f"{network}-all-to-all"), *table.of(f"{network}-own")])
    for schedule in dict.fromkeys(("shift", OWN[network])):
        of_schedule = Table(row for row in rows if row.get("workload.schedule") == schedule)
        times = {row["routing.algorithm"]: row["completion_time"] for row in of_schedule}
        rates = {routing: (terminals - 1) * MESSAGE_FLITS / times[routing] for routing in (*FIXED, *DYNAMIC) if times.get(routing)}
        found.report(f"{network}, all-to-all by {schedule}: {curves.text(rates)} of what a channel carries")
        # Phases are searched for on fixed paths alone.
        _must_have_all(found, rates, f"{network}, all-to-all by {schedule}", () if schedule == "general" else DYNAMIC)


def _must_have_all(found: Findings, of_routing: curves.Curve, what: str, dynamic: Iterable[str] = DYNAMIC) -> None:
    missing = [routing for routing in dynamic if routing not in of_routing]
    missing += [] if any(routing in of_routing for routing in FIXED) else ["fixed paths"]
    if missing:
        found.must(False, f"{what}: {', '.join(missing)} missing")


def fewer_transposes(table: Table) -> Verdict:
    """Print what the schedule, fewer all-to-alls and both gain over shifts with three for each transform; nobody judges it."""
    found = Findings()
    for part, letter in itertools.product(("communication", "whole"), LETTERS):
        times = {
            (kind, count): table.of(f"{kind}-{part}", letter=letter, transposes=count).curve("completion_time", "P")
            for kind in ("shift", "new")
            for count in (3, 1)
        }
        slowest = times["shift", 3]
        for name, place in (("schedule", ("new", 3)), ("fewer", ("shift", 1)), ("both", ("new", 1))):
            gain = {ranks: 1 - times[place][ranks] / slowest.get(ranks, math.nan) for ranks in RANKS if ranks in times[place]}
            found.report(f"{part}, class {letter}, gain of {name}: {curves.text(gain)}")
            missing = [ranks for ranks in RANKS if not math.isfinite(gain.get(ranks, math.nan))]
            if missing:
                found.must(False, f"{part}, class {letter}, {name}: {', '.join(map(str, missing))} nodes missing")
    return found.study()


FIGURES = (
    Figure(
        "002-S1",
        "S",
        "dynamic routing and dragonflies, future work",
        "none: throughput, switches and links for each node, on four networks of equal radix",
        "derived",
        "built network, flit",
        dynamic_routing,
        notes=(
            "all networks are complete and of radix 6: 36 to 54 terminals, within 20 % of 45",
            "the worst permutation is one for fixed paths: all terminals of a leaf, of the dragonfly of a group, leave it by one channel",
            "a schedule is searched for on fixed paths alone, so that of the dragonfly is run with these alone",
        ),
    ),
    Figure(
        "002-S3",
        "S",
        "fewer all-to-alls together with better ones",
        "none: the gain of each, and of both",
        "derived",
        "flow",
        fewer_transposes,
        Plot("P", "completion_time", "nodes", "time (cycles)", ("letter", "transposes")),
        (
            "six all-to-alls for a transform forward and one back become two; FT by slabs has two of itself, so the six are three for each "
            "of its transforms, with a third of its computing before each",
            "what the algorithm with two computes more is not in the text, and left out",
        ),
    ),
)
