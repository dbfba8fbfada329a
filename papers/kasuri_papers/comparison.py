"""A router without prediction and others side by side: zero load, saturation loads by bisection, and the latencies below them.

A series with ``count = "comparison"`` describes the predicting router. Its table ``comparison`` says where to look::

    comparison = { zero_load = 0.001, zero_cycles = 1_000_000, least = 0.1, parts = [0.2, 0.4, 0.6, 0.8], seeds = [1, 2, 3] }

``least`` is a load that both routers sustain. Latencies are measured at these ``parts`` of the saturation load of the router without
prediction, or at the ``loads`` that are given in their place. Where the table has ``rivals``, each a table of keys of ``[router]`` by its
name, these routers stand in place of the one that the series describes, which is then the router without prediction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

LATENCY, ACCEPTED, LOAD = "packet_latency_mean", "accepted_throughput_mean", "traffic.load"
#: Saturation: less than this part of the offered load is accepted, or the latency is above this multiple of the zero-load latency.
ACCEPTED_PART, LATENCY_BAR = 0.95, 3.0
#: Saturation loads are found to this width or to this part of themselves, whichever is finer.
WIDTH, PART = 0.005, 0.02
#: Keys that only a router with prediction has.
OF_PREDICTION = ("predictor", "predictor_match", "predictor_fold", "on_miss", "hint_cycles", "forward_copies", "hit_saves")

#: Runs an experiment in a folder of this name and gives its rows.
Run = Callable[[Mapping[str, Any], str], Iterable[Mapping[str, Any]]]


def compare(experiment: Mapping[str, Any], run: Run) -> list[dict[str, Any]]:
    """Give the rows of both routers (``router``: normal or predicted), or of the normal one and its rivals by their names.

    ``place`` says what a row is: ``zero`` load, ``curve``, or ``saturation`` with the load in ``saturation_load``. Latencies are means over
    the seeds. One bar holds for all routers, that of the router without prediction.
    """
    asked = experiment["comparison"]
    predicted = {key: value for key, value in experiment.items() if key != "comparison"}
    normal = {**predicted, "router": {key: value for key, value in predicted["router"].items() if key not in OF_PREDICTION}}
    rivals = {name: {**normal, "router": {**normal["router"], **keys}} for name, keys in asked.get("rivals", {}).items()}
    routers = {"normal": normal, **(rivals or {"predicted": predicted})}
    sides = {name: _Side(router, asked, run, name) for name, router in routers.items()}
    zero = {name: side.at_zero_load() for name, side in sides.items()}
    bar = LATENCY_BAR * zero["normal"][LATENCY]
    saturation = {name: side.saturation_load(bar) for name, side in sides.items()}
    loads = asked.get("loads") or [part * saturation["normal"] for part in asked["parts"]]
    rows = []
    for name, side in sides.items():
        rows.append({"router": name, "place": "zero", **zero[name]})
        rows.append({"router": name, "place": "saturation", "saturation_load": saturation[name]})
        rows += [{"router": name, "place": "curve", LOAD: load, **side.at(load)} for load in loads]
    return rows


class _Side:
    """One of the routers."""

    def __init__(self, experiment: Mapping[str, Any], asked: Mapping[str, Any], run: Run, name: str) -> None:
        self.experiment, self.asked, self.run, self.name = experiment, asked, run, name

    def at_zero_load(self) -> dict[str, Any]:
        """Give the row of a load so small that packets do not meet."""
        cycles = self.asked["zero_cycles"]
        measure = {"cycles": cycles, "max_cycles": 10 * cycles, "seed": 1}
        return self._row(self._changed({"load": self.asked["zero_load"]}, measure), f"{self.name}-zero")

    def at(self, load: float) -> dict[str, Any]:
        """Give the row of a load: means over the seeds."""
        changed = self._changed({"load": load}, {})
        seeds = {"sweep": {"measure.seed": list(self.asked["seeds"])}}
        return self._row({**changed, **seeds}, f"{self.name}-{load:.6f}")

    def saturation_load(self, bar: float) -> float:
        """Find the least load that is not sustained, by bisection; infinite if even 1 is."""
        low, high = 0.0, float(self.asked["least"])
        while self._sustains(high, bar):
            if high >= 1.0:
                return math.inf
            # Without the last bit's error: a load of the curve is then the same load here.
            low, high = high, min(1.0, round(1.5 * high, 12))
        while high - low > min(WIDTH, PART * high):
            middle = (low + high) / 2
            low, high = (middle, high) if self._sustains(middle, bar) else (low, middle)
        return high

    def _sustains(self, load: float, bar: float) -> bool:
        row = self.at(load)
        return bool(row[LATENCY] <= bar and row[ACCEPTED] >= ACCEPTED_PART * load)

    def _changed(self, traffic: Mapping[str, Any], measure: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **self.experiment,
            "traffic": {**self.experiment.get("traffic", {}), **traffic},
            "measure": {**self.experiment.get("measure", {}), **measure},
        }

    def _row(self, experiment: Mapping[str, Any], folder: str) -> dict[str, Any]:
        rows = [dict(row) for row in self.run(experiment, folder)]
        values = {name: [row[name] for row in rows] for name in (LATENCY, ACCEPTED)}
        means = {name: math.fsum(column) / len(column) if None not in column else math.inf for name, column in values.items()}
        return {**rows[0], **means}
