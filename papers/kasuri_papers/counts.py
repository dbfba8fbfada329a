"""What can be counted without a run: a built network, and the schedule of an all-to-all on it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from kasuri.errors import ConfigError
from kasuri.network import Network

#: What a schedule is asked for: its name, how many terminals take part, and the seed that chooses whole leaves at random.
ASKED = ("name", "ranks", "leaves_seed")


def network(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """Count a built network.

    Parameters
    ----------
    experiment : mapping
        An experiment; its ``network`` matters.

    Returns
    -------
    dict
        ``terminals``, ``routers``, ``links`` (between routers, both directions as one), ``leaves`` (routers with terminals),
        ``spines`` (those without), the different numbers of ports of both (``leaf_ports``, ``spine_ports``), and
        ``terminal_ports``: the different ports of routers that the terminals are at.
    """
    built = Network(experiment["network"])
    is_leaf = np.zeros(built.routers, dtype=bool)
    is_leaf[built.terminal_routers] = True
    own = slice(0, built.terminals)
    places = set(zip(built.destination_router[own].tolist(), built.destination_port[own].tolist(), strict=True))
    return {
        "terminals": built.terminals,
        "routers": built.routers,
        "links": (built.channels - 2 * built.terminals) // 2,
        "leaves": int(is_leaf.sum()),
        "spines": int((~is_leaf).sum()),
        "leaf_ports": np.unique(built.ports[is_leaf]).tolist(),
        "spine_ports": np.unique(built.ports[~is_leaf]).tolist(),
        "terminal_ports": len(places),
    }


def distances(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """Count the hops between routers of a built network, by breadth-first search.

    Parameters
    ----------
    experiment : mapping
        An experiment; its ``network`` matters. ``distances = { from = [...] }`` names the routers to begin at: all unless given, fewer
        where the network looks the same from others.

    Returns
    -------
    dict
        ``routers``, ``diameter``, and ``average``: the mean distance to the other routers.
    """
    built = Network(experiment["network"])
    edges = built.router_edges
    edges = edges[np.argsort(edges[:, 0], kind="stable")]
    first = np.searchsorted(edges[:, 0], np.arange(built.routers + 1))
    starts = experiment.get("distances", {}).get("from", range(built.routers))
    hops = np.stack([_hops(start, edges[:, 1], first) for start in starts])
    if (hops < 0).any():
        raise ConfigError("some routers do not reach each other")
    return {"routers": built.routers, "diameter": int(hops.max()), "average": float(hops.sum() / (len(hops) * (built.routers - 1)))}


def _hops(start: int, neighbours: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Give the hops from one router to each; -1 where there is no path."""
    hops = np.full(len(first) - 1, -1)
    hops[start] = 0
    frontier, distance = np.array([start]), 0
    while len(frontier):
        distance += 1
        reached = np.unique(np.concatenate([neighbours[first[router] : first[router + 1]] for router in frontier]))
        frontier = reached[hops[reached] < 0]
        hops[frontier] = distance
    return hops


def arguments(asked: Mapping[str, Any], built: Network) -> list[str]:
    """Give the arguments of ``kasuri schedule alltoall`` that ask for a schedule.

    Parameters
    ----------
    asked : mapping
        The keys of `ASKED`, none of which is needed.
    built : Network
        The network.

    Raises
    ------
    ConfigError
        Another key, or keys that exclude each other.
    """
    unknown = [key for key in asked if key not in ASKED]
    if unknown:
        raise ConfigError(f"schedule.{unknown[0]}: is unknown; it must be one of {', '.join(ASKED)}")
    if "ranks" in asked and "leaves_seed" in asked:
        raise ConfigError("schedule.leaves_seed: conflicts with ranks; both say which terminals take part, so keep one")
    given = ["--schedule", str(asked["name"])] if "name" in asked else []
    if "ranks" in asked:
        given += ["--ranks", str(asked["ranks"])]
    if "leaves_seed" in asked:
        given += ["--terminals", ",".join(map(str, terminals_of_random_leaves(built, asked["leaves_seed"])))]
    return given


def terminals_of_random_leaves(built: Network, seed: int) -> list[int]:
    """Choose some leaves at random, at least two terminals' worth, and give all their terminals, ascending."""
    draw = random.Random(seed)
    leaves = np.unique(built.terminal_routers).tolist()
    chosen = draw.sample(leaves, draw.randint(1, len(leaves)))
    terminals = np.flatnonzero(np.isin(built.terminal_routers, chosen)).tolist()
    return terminals if len(terminals) > 1 else list(range(built.terminals))


def schedule(counted: Mapping[str, Any], built: Network) -> dict[str, Any]:
    """Give the row of a schedule.

    Parameters
    ----------
    counted : mapping
        What ``kasuri schedule --export json`` has counted.
    built : Network
        The network.

    Returns
    -------
    dict
        ``terminals`` (that take part), ``phases``, ``complete`` (every ordered pair once), ``max_load`` (messages on a channel in
        a phase, at most), ``message_times``, ``lower_bound``, and ``loads``: for each kind of phase the greatest load of every
        such phase. The kind is the labels in which the routers of sender and receiver differ, joined by ``+``; ``"mixed"`` where
        the messages of a phase do not agree in that.
    """
    terminals, phases = np.asarray(counted["terminals"]), np.asarray(counted["phases"], dtype=float)
    loads: dict[str, list[int]] = {}
    for kind, load in zip(_kinds(terminals, phases, built), counted["loads"], strict=True):
        loads.setdefault(kind, []).append(load)
    return {
        "terminals": len(terminals),
        "phases": len(counted["loads"]),
        "loads": loads,
        **{key: counted[key] for key in ("complete", "max_load", "message_times", "lower_bound")},
    }


def _kinds(terminals: np.ndarray, phases: np.ndarray, built: Network) -> list[str]:
    routers = built.terminal_routers[terminals]
    names = list(built.labels)
    values = np.array([built.labels[name][routers] for name in names])
    kinds = []
    for peers in phases:
        sends = ~np.isnan(peers)
        differs = values[:, sends] != values[:, peers[sends].astype(int)]
        same_for_all = (differs == differs[:, :1]).all() if sends.any() else True
        kinds.append("+".join(name for name, one in zip(names, differs[:, :1].ravel(), strict=False) if one) if same_for_all else "mixed")
    return kinds
