#!/usr/bin/env python3
"""Makes the extract in `reference/` from a folder with all of BookSim's tables: `extract.py FOLDER`.

Whole curves up to the last stable load, and single configurations of the other suites, chosen so that every topology, routing,
pattern, pipeline and allocator occurs; of the columns, those that the comparison needs.
"""

import csv
import fnmatch
import pathlib
import sys

from compare import HERE, QUANTITIES, RESULTS

CHOSEN = {
    "a_curves": [
        "mesh8_2_uniform_v2b4_p5_*",
        "mesh8_2_transpose_v4b8_p1_*",
        "mesh4_3_uniform_v2b4_p1_*",
        "torus8_2_uniform_v4b8_p1_*",
        "torus8_2_tornado_v2b4_p5_*",
        "fattree4_3_uniform_v2b4_p5_*",
        "fattree4_3_transpose_v2b4_p1_*",
        "fly4_3_uniform_v4b8_p1_*",
    ],
    "b_saturation": [
        "mesh[2348]_2_uniform_v1b2_p40*",
        "mesh4_2_t*_v1b8_p40*",
        "torus[34]_2_*_v2b2_p40*",
        "torus8_2_uniform_v2b[28]_p[14]0*",
        "fattree[248]_2_*_v1b2_p[14]0*",
    ],
    "c_zeroload": ["mesh*", "torus8_2*", "fattree4_3*", "fly4_3*", "cmesh4_default_p1*"],
    "d_sens": ["*_islip_*", "*_islip-2_*", "*_separable_*_first_*", "mesh8_2_loa_*"],
    "e_batch": ["fattree[2-6]_3_b10_p40*", "fattree4_3_b10_p10.cfg", "fattree4_3_b10_p100.cfg"],
}


def main() -> None:
    """Writes the extract."""
    source = pathlib.Path(sys.argv[1])
    for suite, patterns in CHOSEN.items():
        with (source / f"{suite}.csv").open(newline="") as stream:
            runs = [run for run in csv.DictReader(stream) if any(fnmatch.fnmatch(run["config"], pattern) for pattern in patterns)]
        unstable = {run["config"] for run in runs if run["status"] == "unstable"}
        runs = [run for run in runs if run["config"] not in unstable]
        options = [column for column in runs[0] if column not in RESULTS]
        kept = ["config", "seed", *options, "status", *QUANTITIES]
        columns = [column for column in kept if any(run[column] for run in runs)]
        with (HERE / "reference" / f"{suite}.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(runs)
        print(f"{suite}: {len({run['config'] for run in runs})} configurations, {len(runs)} runs")


if __name__ == "__main__":
    main()
