"""Does a second pair of virtual channels pay? A comparison in Python: python examples/04-compare.py [FOLDER]."""

from __future__ import annotations

import sys
from pathlib import Path

import kasuri

MESH = {
    "title": "Virtual channels on an 8x8 mesh under transpose traffic",
    "network": {"topology": "mesh", "dimensions": [8, 8]},
    "routing": {"algorithm": "dimension-order"},
    "router": {"buffer_flits": 8},
    "traffic": {"pattern": "transpose", "packet_flits": 5},
    "measure": {"precision": 0.02},
}


def main(folder: Path) -> None:
    """Sweep, print the table, and leave a plot and a report in the folder."""
    loads = [0.02, 0.06, 0.1, 0.13, 0.16, 0.19]
    results = kasuri.sweep(MESH, {"router.virtual_channels": [1, 2, 4], "traffic.load": loads}, out=folder)
    results.show()

    best = {}
    for channels in (1, 2, 4):
        throughput = results.where(router__virtual_channels=channels)["accepted_throughput_mean"]
        best[channels] = max(throughput)
    print(f"The highest throughput with 1, 2 and 4 virtual channels: {', '.join(f'{rate:.3f}' for rate in best.values())}")

    ax = kasuri.plot.latency_load(results, series="router.virtual_channels")
    print("plot:", kasuri.plot.save(ax, folder / "plots" / "latency.pdf"))
    print("report:", kasuri.report.write(folder))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/04-compare"))
