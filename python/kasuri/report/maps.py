"""The networks of the runs: drawn, with the load of their channels, or summed up where they are too large; the busiest channels by name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kasuri import _columns
from kasuri._columns import shown
from kasuri.errors import KasuriError
from kasuri.network import Network
from kasuri.plot import channel_utilisation, draw_network, utilisation_by_class
from kasuri.plot.asked import wishes
from kasuri.plot.classes import ChannelClass, channel_classes, describe_routers
from kasuri.plot.drawing import MAX_CHANNELS, MAX_ROUTERS, channel_ends, drawable
from kasuri.plot.spots import SEEDS, categories, is_missing, split, state
from kasuri.report.figure import Figure, inline
from kasuri.results import Results

#: More maps than this tire the reader; those left out are counted.
MAX_MAPS = 12
#: The largest number of mapped routers: with more, each point is the mean over thousands of pairs, mostly without a channel.
MAX_MAPPED_ROUTERS = 10_000
#: Channels of one run in the list of busy ones: of a single run, and of several.
BUSIEST_CHANNELS, BUSIEST_PER_MAP = 10, 5


def networks(results: Results, built: Built) -> list[dict[str, Any]]:
    """Describe every distinct network of the experiment, and draw those that are small."""
    found = []
    for number, rows in enumerate(_by_network(results)):
        network = built.of(rows[0])
        entry: dict[str, Any] = {"rows": len(rows), "figure": None, "facts": [], "note": ""}
        if isinstance(network, Network):
            entry["name"] = network.name
            entry["facts"] = [("terminals", network.terminals), ("routers", network.routers), ("channels", network.channels)]
            if drawable(network):
                entry["figure"] = inline(draw_network(network), f"network{number}", "", f"The network {network.name}")
            else:
                entry["facts"] += describe_routers(network)
                entry["note"] = (
                    f"not drawn, but summed up: with more than {MAX_ROUTERS} routers or {MAX_CHANNELS} channels a drawing shows nothing"
                )
        else:
            entry["name"] = str(_table(results, rows[0]).get("topology", "?"))
            entry["facts"] = [(name, rows[0][name]) for name in ("terminals", "routers", "channels") if not is_missing(rows[0].get(name))]
            entry["note"] = f"not drawn: {network}"
        found.append(entry)
    return found


def utilisation(results: Results, built: Built) -> dict[str, Any]:
    """Map the channels' utilisation, on one scale: of each curve, the run at the highest load that is not saturated.

    Of a network too large for a map, classes of channels are summed up.
    """
    chosen = [(row, values) for row in _worth_a_map(results) for values in _load(results, row, built.of(row))]
    maps = chosen[:MAX_MAPS]
    highest = max((float(np.nanmax(values, initial=0.0)) for _, values in maps), default=0.0)
    figures: list[Figure] = []
    busiest: list[dict[str, Any]] = []
    classes: list[dict[str, Any]] = []
    mapped = 0
    for number, (row, values) in enumerate(maps):
        network = built.of(row)
        assert isinstance(network, Network)  # it has channels that agree with the run's
        point = point_of(results, row)
        is_mapped = network.routers <= MAX_MAPPED_ROUTERS
        draw = draw_network if drawable(network) else channel_utilisation if is_mapped else utilisation_by_class
        ax = draw(network, utilisation=values, highest=highest)
        figures.append(inline(ax, f"map{number}", point, f"Channel utilisation, {point}"))
        busiest += _busiest(network, values, point, BUSIEST_CHANNELS if len(maps) == 1 else BUSIEST_PER_MAP)
        mapped += is_mapped
        if not is_mapped:
            classes += [_line(one, point) for one in channel_classes(network, values)]
    return {
        "figures": figures,
        "left_out": max(0, len(chosen) - MAX_MAPS),
        "busiest": busiest,
        "several": len(maps) > 1,
        "mapped": mapped,
        "classes": classes,
        "most_routers": MAX_MAPPED_ROUTERS,
    }


def _line(one: ChannelClass, point: str) -> dict[str, Any]:
    """Lay out a class of channels for the page's table."""
    least, low, _, median, _, high, most = one.quantiles
    numbers = (one.mean, least, low, median, high, most)
    return {"point": point, "name": one.name, "count": one.count, "numbers": numbers}


class Built:
    """The networks of the runs; only the last one is kept: to build one of a million terminals takes seconds and a gigabyte."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._name: str | None = None
        self._network: Network | KasuriError = KasuriError("no network yet")

    def of(self, row: Mapping[str, Any]) -> Network | KasuriError:
        """Give the network of a run, as :func:`network_of` does."""
        name = _name_of_network(self._results, row)
        if name != self._name:
            # The old one goes before the new one comes.
            self._network = KasuriError("no network yet")
            self._name, self._network = name, network_of(self._results, row)
        return self._network


def network_of(results: Results, row: Mapping[str, Any]) -> Network | KasuriError:
    """Return the network of a run: as it was kept; else built again, if it agrees with the run's columns."""
    try:
        kept = results.network(row)
        if kept is not None:
            return kept
        network = Network(_table(results, row), results.directory or ".")
    except KasuriError as error:
        return error
    for name in ("terminals", "routers", "channels"):
        if not is_missing(row.get(name)) and row[name] != getattr(network, name):
            return KasuriError(f"it was not kept, and the input describes one of {getattr(network, name)} {name}, not of {row[name]}")
    return network


def point_of(results: Results, row: Mapping[str, Any]) -> str:
    """Name a run by its swept values."""
    return ", ".join(f"{key} = {shown(row.get(key))}" for key in results.swept) or str(row.get("title") or row.get("key"))


def _busiest(network: Network, values: np.ndarray, point: str, count: int) -> list[dict[str, Any]]:
    # Channels that are down have none, and come last.
    order = np.argsort(-values, kind="stable")[: min(count, int((~np.isnan(values)).sum()))]
    ends = [channel_ends(network, int(channel)) for channel in order]
    return [
        {"point": point, "source": source, "destination": destination, "channel": int(channel), "utilisation": float(values[channel])}
        for channel, (source, destination) in zip(order, ends, strict=True)
    ]


def _load(results: Results, row: Mapping[str, Any], network: Network | KasuriError) -> list[np.ndarray]:
    """Give the utilisation of a run's channels; nothing where it does not belong to this network."""
    if not isinstance(network, Network):
        return []
    values = results.vector(row, "channel_utilisation")
    return [values] if values.shape == (network.channels,) else []


def _table(results: Results, row: Mapping[str, Any]) -> dict[str, Any]:
    """Give the [network] table of a run: that of the input with the row's own keys put in."""
    table = dict(results.input.get("network", {}))
    own = {key.removeprefix("network."): value for key, value in row.items() if key.startswith("network.") and not is_missing(value)}
    return table | own


def _by_network(results: Results) -> list[list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in results:
        found.setdefault(_name_of_network(results, row), []).append(row)
    return list(found.values())


def _name_of_network(results: Results, row: Mapping[str, Any]) -> str:
    """Return the common name of equal networks."""
    return str(row.get("network_id") or json.dumps(_table(results, row), sort_keys=True))


def _worth_a_map(results: Results) -> list[Mapping[str, Any]]:
    """Choose the run of each curve that shows most: the soundest, of those that at the highest load."""
    numbers = {wish.x for wish in wishes(results) if _columns.is_input(wish.x) and categories(results.rows, wish.x) is None}
    along = {*numbers, "traffic.load", *SEEDS}
    keys = [key for key in results.swept if key not in along]
    parts = [[row for row in rows if _has_vector(results, row)] for _, rows in split(results.rows, keys)]
    return [_soundest(rows) for rows in parts if rows]


def _soundest(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    best = min(state(row) for row in rows)
    return max((row for row in rows if state(row) == best), key=lambda row: _order(row.get("traffic.load")))


def _order(value: Any) -> tuple[int, float, str]:
    number = _columns.number(value)
    return (1, 0.0, str(value)) if np.isnan(number) else (0, number, "")


def _has_vector(results: Results, row: Mapping[str, Any]) -> bool:
    folder = results.directory
    return folder is not None and (folder / "runs" / f"{row.get('key')}.channel_utilisation.npy").exists()
