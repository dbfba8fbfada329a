#!/usr/bin/env python3
"""Measures BookSim 2 where packets do not fit their buffers, and writes ``reference/f_shallow.csv``.

    BOOKSIM=…/src/booksim validation/booksim/shallow_reference.py

Every configuration runs with seeds 1 to 5; those whose name says so are unstable.

Only the standard library is needed. Exit status: 0 all ran, 1 not, 2 wrong use.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import csv
import os
import pathlib
import sys
import tempfile

from beside import measured, read_class

HERE = pathlib.Path(__file__).resolve().parent

COMMON = {"sim_type": "latency", "sample_period": "2000", "warmup_periods": "2", "max_samples": "8", "traffic": "uniform"}
MESH = {"topology": "mesh", "k": "8", "n": "2", "routing_function": "dor"}
TORUS = {"topology": "torus", "k": "8", "n": "2", "routing_function": "dim_order"}
TREE = {"topology": "fattree", "k": "4", "n": "3", "routing_function": "anca"}
TREE4 = {"topology": "tree4", "k": "4", "n": "3", "routing_function": "anca"}
HOLDS = {"hold_switch_for_packet": "1"}
SPECULATES = {"speculative": "1"}

# Name, network, virtual channels, flits of a buffer and of a packet, offered flits a terminal and cycle.
LOADS = [
    ("mesh8_2_v8b4_p16", MESH, 8, 4, 16, 0.2),
    ("mesh8_2_v4b2_p5", MESH, 4, 2, 5, 0.1),
    ("mesh8_2_v8b2_p3", MESH, 8, 2, 3, 0.15),
    ("torus8_2_v8b4_p16", TORUS, 8, 4, 16, 0.2),
    ("fattree4_3_anca_v4b4_p8", TREE, 4, 4, 8, 0.3),
]
WAYS = [("free", {}), ("held", HOLDS), ("held_spec", HOLDS | SPECULATES)]
# With the held switch, what else may run out or stand in the way.
OPTIONS = [
    ("separable", {"vc_allocator": "separable_input_first", "sw_allocator": "separable_input_first"}),
    ("max_size", {"vc_allocator": "max_size", "sw_allocator": "max_size"}),
    ("tail_credit", {"wait_for_tail_credit": "1"}),
    ("busy_when_full", {"vc_busy_when_full": "1"}),
    ("output_buffer", {"output_buffer_size": "1", "output_speedup": "2"}),
    ("input_speedup", {"input_speedup": "2"}),
    ("internal_speedup", {"internal_speedup": "1.5"}),
    ("credit_delay", {"credit_delay": "2"}),
    ("age", {"priority": "age", "vc_allocator": "select", "sw_allocator": "select"}),
]

COLUMNS = [
    *("config", "seed", "topology", "k", "n", "routing_function", "traffic", "num_vcs", "vc_buf_size", "packet_size", "injection_rate"),
    *("sim_type", "routing_delay", "speculative", "hold_switch_for_packet", "credit_delay", "internal_speedup", "input_speedup"),
    *("output_speedup", "output_buffer_size", "wait_for_tail_credit", "vc_busy_when_full", "priority", "vc_allocator", "sw_allocator"),
    *("sample_period", "warmup_periods", "max_samples", "status", "pkt_lat", "net_lat", "hops", "acc_flit_avg"),
]
SEEDS = range(1, 6)


def configurations() -> dict[str, dict[str, str]]:
    """The options of each configuration, by its name."""
    found = {}
    for name, network, channels, depth, flits, load in LOADS:
        sizes = {"num_vcs": str(channels), "vc_buf_size": str(depth), "packet_size": str(flits), "injection_rate": str(load)}
        for way, options in WAYS:
            found[f"{name}_{way}"] = COMMON | network | sizes | options
    sizes = {"num_vcs": "4", "vc_buf_size": "2", "packet_size": "5", "injection_rate": "0.1"}
    for name, options in OPTIONS:
        found[f"mesh8_2_v4b2_p5_held_{name}"] = COMMON | MESH | sizes | HOLDS | options
    # A root takes at most 1/12 flit of each terminal of tree4, where all packets up meet at one.
    for name, depth, flits, load in (("b8_p1", "8", "1", "0.05"), ("b4_p8", "4", "8", "0.05"), ("b4_p8_unstable", "4", "8", "0.12")):
        sizes = {"num_vcs": "4", "vc_buf_size": depth, "packet_size": flits, "injection_rate": load}
        found[f"tree4_anca_{name}"] = COMMON | TREE4 | sizes
    return found


def run(task: tuple[str, dict[str, str], int, pathlib.Path, pathlib.Path]) -> dict[str, str]:
    """One run of BookSim as a row."""
    name, options, seed, booksim, folder = task
    file = folder / name
    file.write_text("".join(f"{key} = {value};\n" for key, value in options.items()) + "injection_rate_uses_flits = 1;\n")
    out, _, _, _ = measured([str(booksim), file.name, f"seed={seed}"], folder, 600.0)
    rest = out.partition("====== Overall Traffic Statistics ======")[2]
    if not rest:
        return {"config": name, "seed": str(seed), "status": "unstable" if "Simulation unstable" in out else "failed", **options}
    means = read_class(rest.split("====== Traffic class ")[1])
    labels = [("pkt_lat", "Packet latency"), ("net_lat", "Network latency"), ("hops", "Hops"), ("acc_flit_avg", "Accepted flit rate")]
    return {"config": name, "seed": str(seed), "status": "ok", **options, **{key: f"{means[label]:g}" for key, label in labels}}


def main() -> int:
    """Runs BookSim and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--booksim", type=pathlib.Path, default=os.environ.get("BOOKSIM"), help="BookSim's program (default: $BOOKSIM)")
    parser.add_argument("--table", type=pathlib.Path, default=HERE / "reference/f_shallow.csv", help="where the table goes")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once (2)")
    arguments = parser.parse_args()
    if arguments.booksim is None or not arguments.booksim.is_file():
        parser.error("set BOOKSIM to the program that BookSim's `make` builds in its folder src")
    booksim = arguments.booksim.resolve()
    with tempfile.TemporaryDirectory() as folder:
        tasks = []
        for name, options in configurations().items():
            tasks += [(name, options, seed, booksim, pathlib.Path(folder)) for seed in SEEDS]
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            rows = list(pool.map(run, tasks))
    with arguments.table.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    expected = {True: "unstable", False: "ok"}
    bad = {f"{row['config']}: {row['status']}" for row in rows if row["status"] != expected["unstable" in row["config"]]}
    print(f"{len(rows)} runs" + "".join(f"\n{line}" for line in sorted(bad)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
