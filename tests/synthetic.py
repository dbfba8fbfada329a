"""Run folders in the format of `kasuri run`, with invented numbers: for tests of what reads them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

MESH = """\
title = "An 8x8 mesh under three patterns"
engine = "flit"

[network]
topology = "mesh"
dimensions = [8, 8]

[routing]
algorithm = "dimension-order"

[router]
virtual_channels = 2

[traffic]
packet_flits = 5
process = "bernoulli"

[sweep]
"traffic.pattern" = ["uniform", "transpose", "tornado"]
"traffic.load" = { from = 0.05, to = 0.45, step = 0.05 }

[[plot]]
x = "traffic.load"
y = "packet_latency_mean"
series = "traffic.pattern"

[[plot]]
x = "traffic.load"
y = "accepted_throughput_mean"
series = "traffic.pattern"
"""

CAPACITY = {"uniform": 0.42, "transpose": 0.22, "tornado": 0.3}
ROUTERS, TERMINALS, CHANNELS = 64, 64, 352


def row(pattern: str, load: float, seed: int = 1) -> dict:
    """One row: latency grows as in a queue with a capacity that the pattern decides."""
    capacity = CAPACITY[pattern]
    saturated = load >= capacity
    accepted = min(load, capacity)
    latency = 22 + 8 * load / max(capacity - load, 0.02) + 0.1 * seed if not saturated else 4000.0 * load
    columns: dict = {
        "key": f"{list(CAPACITY).index(pattern):08x}{int(load * 1e6):016x}{seed:08x}",
        "title": "An 8x8 mesh under three patterns",
        "engine": "flit",
        "status": "saturated" if saturated else "converged",
        "message": "",
        "kasuri_version": "0.2.0",
        "schema_version": 2,
        "network.topology": "mesh",
        "routing.algorithm": "dimension-order",
        "traffic.pattern": pattern,
        "traffic.load": load,
        "measure.seed": seed,
        "terminals": TERMINALS,
        "routers": ROUTERS,
        "offered_load": load,
    }
    for rate, mean in (("injected_load", "injected_load"), ("accepted_throughput", "accepted_throughput_mean")):
        columns |= {mean: accepted, f"{rate}_min": 0.9 * accepted, f"{rate}_max": 1.1 * accepted}
    for name, factor in (("packet_latency", 1.0), ("network_latency", 0.9), ("flit_latency", 0.8)):
        mean = latency * factor
        columns |= {f"{name}_mean": mean, f"{name}_ci95": None if saturated else 0.02 * mean, f"{name}_min": 9}
        columns |= {f"{name}_p50": int(mean), f"{name}_p99": int(3 * mean), f"{name}_p999": int(4 * mean), f"{name}_max": int(6 * mean)}
    columns |= {"hops_mean": 6.3, "fairness_jain": 0.99, "channel_utilisation_mean": accepted, "channel_utilisation_max": 1.6 * accepted}
    columns |= {"router_occupancy_mean": 3.0 * accepted, "router_occupancy_max": 9.0 * accepted, "completion_time": None}
    columns |= {"measured_packets": 100_000, "warmup_cycles": 1000, "measured_cycles": 20_000, "cycles": 21_500, "flit_hops": 10_000_000}
    return columns | {"not_modelled": [], "deadlock": [], "wall_seconds": 0.25, "cpu_seconds": 0.24, "peak_memory_mib": 12.5}


def rows(seeds: tuple[int, ...] = (1,)) -> list[dict]:
    """The whole sweep."""
    loads = [round(0.05 * step, 2) for step in range(1, 10)]
    return [row(pattern, load, seed) for pattern in CAPACITY for load in loads for seed in seeds]


def folder(path: Path, seeds: tuple[int, ...] = (1,), interrupted: bool = False) -> Path:
    """Write a run folder; an interrupted one has no consolidated table."""
    generator = np.random.default_rng(1)
    runs = path / "runs"
    runs.mkdir(parents=True)
    (path / "input.toml").write_text(MESH)
    table = rows(seeds)
    for one in table:
        (runs / f"{one['key']}.json").write_text(json.dumps(one))
        used = one["channel_utilisation_mean"] * generator.uniform(0.4, 1.6, CHANNELS)
        vectors = {
            "channel_utilisation": used,
            "router_occupancy": generator.uniform(0, 2, ROUTERS),
            "accepted_throughput": np.full(TERMINALS, one["accepted_throughput_mean"]),
            "injected_load": np.full(TERMINALS, one["injected_load"]),
            "packet_latency_histogram": np.array([[20, 50], [40, 30], [80, 5]]),
        }
        for name, values in vectors.items():
            np.save(runs / f"{one['key']}.{name}.npy", values)
    if not interrupted:
        (path / "runs.json").write_text(json.dumps({"runs": table}))
    return path
