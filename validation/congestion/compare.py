"""Are adaptive ways better than blind ones, whatever the latency of the channels?

Closed workloads on a fat tree (`nca`) and a dragonfly (`ugal`), over channels of 1 to 1,000 cycles with buffers that keep them busy: the
time until everything has arrived, a mean over seeds. `claimed` must not be worse than random ways on the fat tree, nor than the worse of
minimal and Valiant's ways on the dragonfly, by more than noise: three standard errors of the difference, and 2 %. See README.md.
"""

import argparse
import csv
import itertools
import math
import subprocess
import sys
import tempfile
from pathlib import Path

LATENCIES = (1, 10, 30, 100, 300, 1000)
TREE = """
network = { topology = "fat-tree", up = ARITY, down = ARITY, levels = 3 }
routing = { algorithm = "nca" }
router = { virtual_channels = 1 }
measure = { max_cycles = 10_000_000 }
"""
DRAGONFLY = """
network = { topology = "dragonfly", terminals_per_router = 2, routers_per_group = 4, global_channels = 2 }
routing = { algorithm = "ugal" }
router = { virtual_channels = 6 }
measure = { max_cycles = 10_000_000 }
"""


def batch(pattern: str, packets: int, flits: int) -> str:
    """Return the section of a batch of packets."""
    return f'[traffic]\nprocess = "batch"\nbatch_packets = {packets}\npacket_flits = {flits}\n{pattern}\n'


ALL_TO_ALL = '[workload]\ncollective = "alltoall"\nschedule = "shift"\nmessage_flits = 32\npacket_flits = 8\n'
WORKLOADS = {
    "fat tree": {
        "permutation, 8 flits": batch('pattern = "random-permutation"', 64, 8),
        "permutation, 1 flit": batch('pattern = "random-permutation"', 400, 1),
        "all-to-all": ALL_TO_ALL,
    },
    "fat tree of 216": {"permutation, 64 flits": batch('pattern = "random-permutation"', 100, 64)},
    "dragonfly": {
        "permutation, 8 flits": batch('pattern = "random-permutation"', 64, 8),
        "next group, 8 flits": batch('pattern = "next-group"\ngroup_terminals = 8', 64, 8),
        "uniform, 8 flits": batch('pattern = "uniform"', 64, 8),
    },
}
TREES = {"fat tree": TREE.replace("ARITY", "4"), "fat tree of 216": TREE.replace("ARITY", "6")}
NETWORKS = {**TREES, "dragonfly": DRAGONFLY}
# By network: flits that a buffer holds beyond what keeps a channel busy.
SLACK = {"fat tree": 16, "fat tree of 216": 200, "dragonfly": 16}
# The ways up a tree and those of each network, each as keys; the blind ones first.
WAYS_UP = {
    "random": ["routing.up_port=random"],
    "credits": ["routing.up_port=adaptive", "router.congestion=credits"],
    "claimed": ["routing.up_port=adaptive", "router.congestion=claimed"],
}
WAYS = {
    **dict.fromkeys(TREES, WAYS_UP),
    "dragonfly": {
        "minimal": ["routing.algorithm=minimal"],
        "valiant": ["routing.algorithm=valiant"],
        "credits": ["router.congestion=credits"],
        "claimed": ["router.congestion=claimed"],
    },
}


def times(kasuri: str, text: str, keys: list[str], seeds: int) -> list[float]:
    """Return the completion times of a workload, one for each seed."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "experiment.toml"
        file.write_text(f'{text}\n[sweep]\n"measure.seed" = {list(range(1, seeds + 1))}\n')
        settings = list(itertools.chain.from_iterable(("--set", key) for key in keys))
        command = [kasuri, "run", str(file), "--out", str(Path(folder) / "out"), *settings]
        subprocess.run(command, check=True, capture_output=True)
        with open(Path(folder) / "out" / "runs.csv", newline="") as rows:
            return [float(row["completion_time"]) for row in csv.DictReader(rows)]


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Return a mean and its standard error."""
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
    return mean, math.sqrt(variance / len(values))


def is_worse(one: list[float], other: list[float]) -> bool:
    """Say whether the first times are longer by more than noise."""
    (first, first_error), (second, second_error) = mean_and_error(one), mean_and_error(other)
    return first - second > max(3 * math.hypot(first_error, second_error), 0.02 * second)


def main() -> int:
    """Compare and print; 1 if a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kasuri", default=".venv/bin/kasuri")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--latencies", type=int, nargs="+", default=LATENCIES)
    options = parser.parse_args()
    broken = []
    for network, workloads in WORKLOADS.items():
        for name, workload in workloads.items():
            print(f"{network}, {name}: cycles until all has arrived, mean of {options.seeds} seeds")
            for latency in options.latencies:
                keys = [f"network.channel_latency={latency}", f"router.buffer_flits={SLACK[network] + 2 * latency}"]
                text = NETWORKS[network] + workload
                found = {way: times(options.kasuri, text, keys + more, options.seeds) for way, more in WAYS[network].items()}
                print(f"  {latency:5}", *(f"{way} {mean_and_error(values)[0]:.0f}" for way, values in found.items()))
                blind = max((values for way, values in found.items() if way not in ("credits", "claimed")), key=sum)
                if is_worse(found["claimed"], blind):
                    broken.append(f"blind ways: {network}, {name}, latency {latency}")
    for line in broken:
        print("worse than", line)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
