"""Twelve cases of all engines, small enough to count their instructions under valgrind's callgrind."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import strata

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "campaigns"))
import trial

MESH = '[network]\ntopology = "mesh"\ndimensions = [{k}, {k}]\n[routing]\nalgorithm = "dimension-order"\n'
ROUTER = "[router]\nvirtual_channels = 4\nbuffer_flits = 8\n"
OPEN = '[traffic]\npattern = "uniform"\nload = {load}\npacket_flits = {flits}\n[measure]\nwarmup = 500\ncycles = {cycles}\n'
ALL_TO_ALL = '[workload]\ncollective = "alltoall"\nschedule = "shift"\nmessage_flits = {flits}\npacket_flits = 16\n'
TREE = '[network]\ntopology = "fat-tree"\nup = {k}\ndown = {k}\nlevels = {levels}\n[routing]\nalgorithm = "nca"\n'
DRAGONFLY = (
    '[network]\ntopology = "dragonfly"\nterminals_per_router = 2\nrouters_per_group = 4\nglobal_channels = 2\n'
    '[routing]\nalgorithm = "dragonfly-phases"\nadaptive = true\nallow_deadlock = true\n'
)
LEAVES = '[network]\ntopology = "leaf-spine"\nleaves = 4\nspines = 4\ndown = 8\n[routing]\nalgorithm = "ecmp"\n'
CENJU4 = (
    '[network]\ntopology = "cenju4"\nterminals = 64\ncycle_ns = 12.5\n[routing]\nalgorithm = "destination-tag"\n'
    '[router]\narchitecture = "crosspoint"\nbuffer_flits = 216\n[endpoint]\nmodel = "cenju4"\n'
    '[workload]\ncollective = "allgather"\nmessage_bytes = 1000\n'
)
USERS = "".join(
    f'[[user]]\nname = "{name}"\nnodes = 24\nplacement = "random"\n[user.traffic]\npattern = "uniform"\nload = 0.1\npacket_flits = 5\n'
    for name in ("first", "second")
)
UEC = "uec --topo tests/data/uec/topologies/own/ls16.topo --cm tests/data/uec/matrices/own/a2a_16_262144.cm --spray random"

#: An experiment file, or the words of a command.
CASES = {
    "mesh at load 0.3": MESH.format(k=8) + ROUTER + OPEN.format(load=0.3, flits=5, cycles=2500),
    "large mesh at load 0.02": MESH.format(k=24) + ROUTER + OPEN.format(load=0.02, flits=5, cycles=1500),
    "mesh, packets of one flit": MESH.format(k=8) + ROUTER + OPEN.format(load=0.3, flits=1, cycles=2500),
    "mesh, predictions": MESH.format(k=8) + ROUTER + 'predictor = "latest-port"\n' + OPEN.format(load=0.1, flits=5, cycles=2500),
    "dragonfly, adaptive": DRAGONFLY + ROUTER + OPEN.format(load=0.2, flits=5, cycles=2500),
    "fat tree, all-to-all of flits": TREE.format(k=4, levels=3) + ROUTER + ALL_TO_ALL.format(flits=16),
    "two users": MESH.format(k=8) + ROUTER + USERS + "[measure]\nwarmup = 500\ncycles = 2000\n",
    "output-queued routers": LEAVES + '[router]\narchitecture = "output-queued"\n' + ALL_TO_ALL.format(flits=320),
    "Cenju-4, all-gather": CENJU4,
    "fat tree, all-to-all of flows": 'engine = "flow"\n' + TREE.format(k=6, levels=3) + ROUTER + ALL_TO_ALL.format(flits=64),
    "mesh, arbitrated flows": 'engine = "flow"\n'
    + MESH.format(k=8)
    + ROUTER
    + ALL_TO_ALL.format(flits=64)
    + '[flow]\nsharing = "arbitrated"\n',
    "Ethernet fabric": UEC,
}


def count(kasuri: str, name: str) -> int:
    """Count the instructions of a case, on one thread; fail if it fails."""
    case = CASES[name]
    with tempfile.TemporaryDirectory(prefix="kasuri-counts-") as folder:
        words = case.split()
        if "\n" in case:
            (Path(folder) / "case.toml").write_text(case)
            words = f"run {folder}/case.toml --jobs 1 --threads 1 --out {folder}/out".split()
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/counts", trial.command(kasuri), *words]
        run = subprocess.run(command, cwd=strata.ROOT, capture_output=True, text=True, check=False)
        if run.returncode not in (0, 1):
            raise SystemExit(f"{name}: {run.stderr[-600:]}")
        return int(re.search(r"Collected : (\d+)", run.stderr)[1])
