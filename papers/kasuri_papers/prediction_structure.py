"""The diagrams and tables of the paper on prediction routers, as tests of structure: what lone packets show of routers and trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

import kasuri
from kasuri_papers import curves
from kasuri_papers.figure import Findings, Table, Verdict

#: A function from the name of a vector to that vector of the run.
Vectors = Callable[[str], np.ndarray]
#: Columns of the vector `predictions`: heads that came by a channel, predictions tried, hits.
HEADS, HITS = 0, 2


@lru_cache
def tree(up: int, down: int, levels: int) -> kasuri.Network:
    """Make the fat tree with so many ports up and down a router and so many levels."""
    return kasuri.Network.from_topology("fat-tree", up=up, down=down, levels=levels)


def tree_of(row: Mapping[str, Any]) -> kasuri.Network:
    """Make the fat tree of a run."""
    return tree(row["up"], row["down"], row["levels"])


# --- F1, F2: the cycles of a head in a router ------------------------------------------------------------------------------------


def one_cycle_at_a_hit(table: Table) -> Verdict:
    """A lone packet that is always predicted rightly spends one cycle in each router, in place of three."""
    found = Findings()
    for series, cycles in (("normal", 3), ("oracle", 1)):
        delay = _cycles_in_router(table.of(series))
        found.must(delay == [cycles, cycles], f"{series}: cycles of a head in each further router {delay}, expected {cycles}")
    rates = table.of("oracle").curve("prediction_hit_rate", "levels")
    found.must(bool(rates) and set(rates.values()) == {1.0}, f"hit rate over levels {curves.text(rates)} (all of the empty buffers: 1)")
    return found.verdict()


def one_cycle_at_a_hit_and_all_stages_at_a_miss(table: Table) -> Verdict:
    """Heads spend one cycle in a router at a hit, and all stages at a miss and without prediction."""
    found = Findings()
    for stages in (3, 5, 7):
        runs = {series: table.of(series, stages=stages) for series in ("normal", "oracle", "ss")}
        for series, expected in (("normal", stages), ("oracle", 1)):
            delay = _cycles_in_router(runs[series])
            holds = delay == [expected, expected]
            found.must(holds, f"{stages} stages, {series}: cycles of a head in each further router {delay} ({expected})")
        cycles, misses = _cycles_at_misses(runs["normal"], runs["ss"])
        enough = bool(cycles) and min(misses, default=0) > 0
        found.must(enough and all(cycle == stages for cycle in cycles), f"{stages} stages, {misses} misses: {cycles} cycles ({stages})")
    return found.verdict()


def _cycles_in_router(table: Table) -> list[float]:
    """Cycles in a router, from one tree to the next with two more routers and two more channels of a cycle each on all paths."""
    latency, hops = table.curve("packet_latency_mean", "levels"), table.curve("hops_mean", "levels")
    levels = list(latency)
    return [
        round((latency[more] - latency[less]) / (hops[more] - hops[less]) - 1, 6) for less, more in zip(levels, levels[1:], strict=False)
    ]


def _cycles_at_misses(normal: Table, predicted: Table) -> tuple[list[float], list[int]]:
    """Cycles in a router at a miss, and misses: what is left of the routers' time when hits take one cycle each."""
    cycles, all_misses = [], []
    for row in predicted:
        for other in normal.rows:
            if other["levels"] == row["levels"] and row["levels"] > 1:
                packets = row["measured_packets"]
                crossed = round(row["hops_mean"] * packets)
                outside = packets * other["packet_latency_mean"] - crossed * row["stages"]
                misses = crossed - row["prediction_hits"]
                cycles.append(round((packets * row["packet_latency_mean"] - outside - row["prediction_hits"]) / max(misses, 1), 6))
                all_misses.append(misses)
    return cycles, all_misses


# --- F3: the connections of static-straight --------------------------------------------------------------------------------------


def connections(row: Mapping[str, Any], vector: Vectors) -> dict[str, Any]:
    """Add ``connections``: router, input port, and the outputs that its hits may have left by.

    All packets go to the terminal ``hot``. Where several outputs of a router carry packets (on the way up), the output of an
    input is one that as many heads left by.
    """
    network, counts = tree_of(row), vector("predictions")
    heads, hits = counts[:, HEADS].copy(), counts[:, HITS]
    into_hot = network.destination_terminal == row["hot"]
    last = network.source_router[into_hot]
    heads[into_hot] = heads[np.isin(network.destination_router, last)].sum()
    seen = []
    for channel in np.flatnonzero(hits):
        outputs = np.flatnonzero((network.source_router == network.destination_router[channel]) & (heads > 0))
        if len(outputs) > 1:
            outputs = outputs[heads[outputs] == heads[channel]]
        router, port = network.destination_router[channel], network.destination_port[channel]
        seen.append([int(router), int(port), network.source_port[outputs].tolist()])
    return {"connections": seen}


def connections_are_one_to_one(table: Table) -> Verdict:
    """The outputs that hits leave by are, for every router, a one-to-one map of all its inputs; the top folds back."""
    found = Findings()
    rows = table.of("ss").rows
    if not rows:
        return _nothing(found)
    network = tree_of(rows[0])
    outputs = _outputs(rows)
    level, down = network.labels["level"], rows[0]["down"]
    maps = {router: {port: left for (at, port), left in outputs.items() if at == router} for router in range(network.routers)}
    top = int(level.max())
    ambiguous = sum(len(left) != 1 for left in outputs.values())
    found.must(ambiguous == 0, f"inputs whose hits left by other than one output: {ambiguous} (0)")
    expected = {router: set(range(down if level[router] == top else network.ports[router])) for router in maps}
    left_by = {router: {port for left in own.values() for port in left} for router, own in maps.items()}
    one_to_one = [router for router, own in maps.items() if set(own) == expected[router] == left_by[router]]
    found.must(len(one_to_one) == network.routers, f"{len(one_to_one)} of {network.routers} routers connect all inputs one to one")
    back = [maps[router] for router in maps if level[router] == top]
    folds = all(port not in left for own in back for port, left in own.items())
    found.must(folds and bool(back), f"at the top: {_text(back[0]) if back else 'nothing'} (no input with its own output)")
    middle = [maps[router] for router in maps if level[router] == 2]
    found.report(f"in the middle: {_text(middle[0]) if middle else 'nothing'} (inputs 0 to {down - 1} from below)")
    return found.verdict()


def _outputs(rows: list[dict[str, Any]]) -> dict[tuple[int, int], set[int]]:
    """For each router and input the outputs that agree with all runs."""
    outputs: dict[tuple[int, int], set[int]] = {}
    for row in rows:
        for router, port, left in row["connections"]:
            outputs[router, port] = outputs.get((router, port), set(left)) & set(left)
    return outputs


def _text(connected: dict[int, set[int]]) -> str:
    return ", ".join(f"{port} to {'/'.join(map(str, sorted(left)))}" for port, left in sorted(connected.items()))


# --- F4, F5: hint bits ------------------------------------------------------------------------------------------------------------


def hints(row: Mapping[str, Any], vector: Vectors) -> dict[str, Any]:
    """Add how many pairs with the destination ``hot`` there are, and in how many the hint is right about the first router.

    The hint is the number of moves up; "up" is right in a router of level 1 if it is at least 1, and then, and only then, the
    packet has to pass on the prediction.
    """
    network, counts = tree_of(row), vector("predictions")
    sources = np.array([terminal for terminal in range(network.terminals) if terminal != row["hot"]])
    moves_up = (sources // row["down"] != row["hot"] // row["down"]).astype(int)
    heads, hits = counts[sources, HEADS], counts[sources, HITS]
    right = (heads == 1) & ((moves_up >= 1) == (hits == 1))
    return {"pairs": len(sources), "pairs_right": int(right.sum()), "pairs_up": int(moves_up.sum()), "copies": _copies(row)}


def _copies(row: Mapping[str, Any]) -> int:
    """Flits that crossed a switch on a wrong prediction; each packet has one flit."""
    return int(row["prediction_speculative_traversals"] - row["prediction_hits"])


def hints_tell_which_prediction_is_right(table: Table) -> Verdict:
    """For all pairs a packet passes on the prediction exactly if its hint is at least the router's level."""
    found = Findings()
    rows = table.of("up").rows
    if not rows:
        return _nothing(found)
    pairs, right, up = (sum(row[name] for row in rows) for name in ("pairs", "pairs_right", "pairs_up"))
    terminals = tree_of(rows[0]).terminals
    found.must(pairs == terminals * (terminals - 1), f"{pairs} pairs (all {terminals * (terminals - 1)})")
    found.must(right == pairs, f"hint >= level exactly if the packet passed on the prediction: in {right} pairs; {up} of them go up")
    bits = sorted({row["prediction_hint_bits"] for row in rows})
    found.must(bits == [1], f"hint bits {bits} (1 for two levels)")
    return found.verdict()


def no_wrong_packet_leaves(table: Table) -> Verdict:
    """With hints nothing crosses a switch wrongly, and nothing leaves a port."""
    found = Findings()
    rows = table.of("up").rows
    if not rows:
        return _nothing(found)
    wrong = sum(row["prediction_attempts"] - row["prediction_refused"] - row["prediction_hits"] for row in rows)
    found.must(wrong > 0, f"wrong guesses {wrong} (more than 0)")
    copies, wasted = sum(row["copies"] for row in rows), sum(row["prediction_wasted_flits"] for row in rows)
    found.must(copies == 0, f"wrong copies that crossed a switch: {copies} (0)")
    found.must(wasted == 0, f"wrong flits that left a port: {wasted} (0)")
    return found.verdict()


# --- F6, T1, T2: the configurations -----------------------------------------------------------------------------------------------


def shape(row: Mapping[str, Any], vector: Vectors) -> dict[str, Any]:
    """Add the tree's ports up and down, links between routers, levels and bisection."""
    network = tree_of(row)
    level = network.labels["level"]
    edges = network.router_edges
    rising = level[edges[:, 1]] > level[edges[:, 0]]
    ups = np.bincount(edges[rising, 0], minlength=network.routers)[level < level.max()]
    downs = np.bincount(network.source_router[network.source_router >= 0], minlength=network.routers)
    downs -= np.bincount(edges[rising, 0], minlength=network.routers)
    return {
        "ports_up": sorted(set(ups.tolist())),
        "ports_down": sorted(set(downs.tolist())),
        "tree_levels": len(set(level.tolist())),
        "links": len(edges) // 2,
        "bisection_links": network.metrics()["bisection_channels"] // 2,
    }


def the_fat_tree(table: Table) -> Verdict:
    """4 ports up and 4 down, 3 levels, 128 links between routers, full bisection."""
    expected = {"ports_up": [4], "ports_down": [4], "tree_levels": 3, "links": 128, "bisection_links": 32}
    return _configuration(table, "normal", expected)


def on_chip_configuration(table: Table) -> Verdict:
    """64 nodes and 48 switches."""
    return _configuration(table, "normal", {"terminals": 64, "routers": 48})


def system_area_configuration(table: Table) -> Verdict:
    """256 nodes and 32 switches, store-and-forward and virtual cut-through."""
    found = Findings()
    for series in ("store-and-forward", "cut-through"):
        _must_be(found, table, series, {"terminals": 256, "routers": 32})
    return found.verdict()


def _configuration(table: Table, series: str, expected: dict[str, Any]) -> Verdict:
    found = Findings()
    _must_be(found, table, series, expected)
    return found.verdict()


def _must_be(found: Findings, table: Table, series: str, expected: dict[str, Any]) -> None:
    rows = table.of(series).rows
    for name, value in expected.items():
        values = [row.get(name) for row in rows]
        found.must(bool(values) and all(one == value for one in values), f"{series}: {name.replace('_', ' ')} {values} ({value})")
    latencies = [row.get("packet_latency_mean") for row in rows]
    found.must(bool(latencies) and all(latencies), f"{series}: it runs, mean latency at zero load {latencies}")


def _nothing(found: Findings) -> Verdict:
    found.must(False, "there are no runs")
    return found.verdict()
