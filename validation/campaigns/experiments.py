#!/usr/bin/env python3
"""Draws experiments over all that the file can say, and runs each under `--paranoid`: `check` and `run` agree, and flits are conserved."""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import trial

ROOT = Path(__file__).resolve().parents[2]

NETWORKS = (
    'topology = "mesh"\ndimensions = [4, 4]',
    'topology = "mesh"\ndimensions = [3, 2, 2]\nconcentration = 2',
    'topology = "torus"\ndimensions = [4, 4]',
    'topology = "fat-tree"\nup = 2\ndown = 2\nlevels = 3',
    'topology = "full-mesh"\nrouters = 5\nconcentration = 2',
    'topology = "dragonfly"\nterminals_per_router = 1\nrouters_per_group = 2\nglobal_channels = 1',
    'topology = "flattened-butterfly"\ndimensions = [3, 3]\nconcentration = 1',
    'topology = "slim-fly"\norder = 3',
    'topology = "mlfm"\ndegree = 2',
    'topology = "oft"\norder = 2',
    'topology = "butterfly"\nradix = 2\nstages = 3',
)
SPEEDS = (
    "",
    "channel_latency = 0",
    "channel_latency = 7",
    "channel_period = 3",
    "terminal_channel_period = 2",
    "terminal_channel_latency = 5",
)
ROUTINGS = (
    "dimension-order", "nca", "destination-tag", "minimal", "minimal-adaptive", "up-down", "valiant", "ugal", "o1turn", "dijkstra",
)  # fmt: skip
PATTERNS = ("uniform", "bit-complement", "transpose", "tornado", "neighbor", "random-permutation", 'hotspot"\nterminals = [1, 2]\n# "')
PROCESSES = ("bernoulli", "periodic", 'on-off"\nalpha = 0.02\nbeta = 0.05\n# "', 'batch"\nbatch_packets = 3\n# "')
SIZES = ("1", "5", "9", "[{ flits = 1, weight = 0.5 }, { flits = 6, weight = 0.5 }]")
ROUTER = (
    "switching = 'virtual-cut-through'", "switching = 'store-and-forward'", "credit_delay = 3", "vc_release = 'tail-credit'",
    "speculative = true", "lookahead = true", "predictor = 'latest-port'", "predictor = 'static-straight'", "priority = 'age'",
    "switch_allocator = 'wavefront'", "switch_allocator = 'islip'", "switch_allocator = 'separable-output-first'",
    "vc_allocator = 'maximum-size'", "input_speedup = 2", "output_speedup = 2", "internal_speedup = 1.5", "output_buffer_flits = 4",
    "hold_switch = true", "congestion = 'credits'", "pipeline = ['RC', 'VSA', 'ST']", "buffer_policy = 'dynamic'",
    "architecture = 'virtual-output-queued'", "class_queues = true", "vc_per_destination = true",
)  # fmt: skip
WORKLOADS = (
    'collective = "alltoall"\nmessage_flits = 7', 'collective = "allreduce"\nmessage_flits = 16', 'collective = "barrier"',
    'collective = "broadcast"\nmessage_flits = 9\nstart_skew_cycles = 20', 'collective = "allgather"\nmessage_flits = 3',
)  # fmt: skip
MEASURES = ("precision = 0.3\nmax_cycles = 4000", "warmup = 100\ncycles = 400", "precision = 0.3\nmax_cycles = 4000\nseed = 7")


def draw_experiment(draw: random.Random) -> str:
    """Write an experiment file."""

    def one(of: Sequence[str]) -> str:
        return draw.choice(of)

    engine = draw.choice(("flit", "flit", "flit", "flow", "analysis"))
    options = draw.sample(ROUTER, draw.choice((0, 0, 1, 1, 2, 3)))
    keys: dict[str, str] = {option.split(" ")[0]: option for option in options}
    router = [f"virtual_channels = {one(('1', '2', '4', '8'))}", f"buffer_flits = {one(('2', '6', '16'))}", *keys.values()]
    lines = [
        f'engine = "{engine}"', "[network]", one(NETWORKS), one(SPEEDS), "[routing]", f'algorithm = "{one(ROUTINGS)}"',
        "[router]", *router, "[measure]", one(MEASURES),
    ]  # fmt: skip
    if draw.random() < 0.25:
        lines += ["[workload]", one(WORKLOADS)]
    else:
        process = one(PROCESSES)
        load = "" if process.startswith("batch") else f"load = {one(('0.02', '0.2', '0.9'))}"
        lines += ["[traffic]", f'pattern = "{one(PATTERNS)}"', f'process = "{process}"', f"packet_flits = {one(SIZES)}", load]
    return "\n".join(lines) + "\n"


def examine(kasuri: str, seed: int, folder: Path) -> tuple[str | None, int]:
    """Check and run the experiment of a seed; say what is wrong, and how it ended."""
    file = folder / f"{seed}.toml"
    file.write_text(draw_experiment(random.Random(seed)))
    check = trial.attempt(kasuri, "check", file.name, folder=folder)
    out = f"out-{seed}"
    run = trial.attempt(kasuri, "run", file.name, "--paranoid", "--format", "json", "--jobs", "1", "--out", out, folder=folder)
    wrong = trial.defect(check, (0, 2)) or trial.defect(run, (0, 1, 2))
    if wrong is None and check.returncode == 0 and run.returncode == 2:
        wrong = "check accepts what run refuses"
    if wrong is None and check.returncode == 2 and run.returncode != 2:
        wrong = "check refuses what run accepts"
    if wrong is None and '"status": "failed"' in run.stdout:
        wrong = "the run failed"
    shutil.rmtree(folder / out, ignore_errors=True)
    if wrong is None:
        file.unlink()
        return None, run.returncode
    return f"seed {seed}: {wrong} ({file})\n{check.stderr[-400:]}\n{run.stderr[-600:]}", run.returncode


def main() -> int:
    """Examine many; give the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kasuri", default=str(ROOT / ".venv/bin/kasuri"), help="the command")
    parser.add_argument("--count", type=int, default=1100, help="experiments that run (default: %(default)s)")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kasuri-experiments-"))
    ran, drawn, wrong = 0, 0, []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        while ran < options.count and drawn < 20 * options.count:
            seeds = range(options.first + drawn, options.first + drawn + 50)
            for line, status in pool.map(lambda seed: examine(options.kasuri, seed, folder), seeds):
                ran += status != 2
                wrong += [line] if line else []
            drawn += len(seeds)
    print(f"{drawn} experiments drawn, {ran} of them run, {drawn - ran} refused, {len(wrong)} answered wrongly")
    print("\n".join(wrong[:20]))
    if not wrong:
        shutil.rmtree(folder)
    return int(bool(wrong) or ran < options.count)


if __name__ == "__main__":
    sys.exit(main())
