#!/usr/bin/env python3
"""Runs every configuration that BookSim 2 ships in BookSim and in Kasuri, and writes a table of both.

    BOOKSIM=…/src/booksim validation/booksim/shipped.py --kasuri KASURI

The configurations are the files of ``src/examples`` and ``runfiles`` of BookSim's own repository, to whose built program
``BOOKSIM`` (or ``--booksim``) points. Each is run as it is, and once more with each terminal offering all that it can send; the
rule of comparison stands in ``beside.py``. The table goes to ``shipped.csv`` beside this file, or to ``--table``.

Only the standard library is needed. Exit status: 0 all inside, 1 not, 2 wrong use.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

from beside import COMPARED, both, compare, finish, judge, messages, number, parser_of, prepare, told

HERE = pathlib.Path(__file__).resolve().parent

# What makes each terminal offer all that it can send, in both simulators.
OVERLOAD = ["sim_type=throughput", "injection_rate=1.0", "injection_rate_uses_flits=1"]

HEADER = [
    "configuration",
    *COMPARED,
    "booksim_cpu_s",
    "kasuri_cpu_s",
    "inside",
    "reason",
]


def shipped(booksim: pathlib.Path) -> list[pathlib.Path]:
    """The configurations of the repository in which the program was built."""
    root = booksim.resolve().parent.parent
    examples = [path for path in (root / "src" / "examples").rglob("*") if path.is_file() and path.name not in ("README", "anynet_file")]
    return sorted(examples) + sorted(path for path in (root / "runfiles").iterdir() if path.is_file())


def one(file: pathlib.Path, name: str, options: argparse.Namespace) -> list[str]:
    """The row of one configuration."""
    sides = both(options, file, [])
    if "refused" in (sides[0].status, sides[1].status):
        inside = sides[0].status == sides[1].status
        return [name, sides[0].status, sides[1].status, *[""] * 5, *[""] * 4, *[""] * 2, "yes" if inside else "no", messages(sides)]
    overloaded = both(options, file, OVERLOAD)
    saturation = compare("accepted", *overloaded, 0.03)
    accepted = sides[0].mean("accepted") if sides[0].status == "ok" else None
    verdict = judge(*sides, accepted, overloaded[0].mean("accepted"))
    same_end = sides[0].status == sides[1].status
    inside = same_end and all(one is not None and one.inside for one in (verdict, saturation))
    ends = [("as it is", sides), ("with all that terminals can send", overloaded)]
    unlike = [(what, one, other) for what, (one, other) in ends if one.status != other.status or "timeout" in (one.status, other.status)]
    reason = "; ".join(f"{what}: BookSim ends {one.status}, Kasuri {other.status}" for what, one, other in unlike)
    cpu = [number(side.mean("cpu_seconds"), 3) for side in sides]
    return [name, sides[0].status, sides[1].status, *told(verdict), *told(saturation)[1:], *cpu, "yes" if inside else "no", reason]


def main() -> int:
    """Runs what BookSim ships and writes the table."""
    parser = parser_of(__doc__, HERE / "shipped.csv", 1800.0)
    parser.add_argument("--only", nargs="*", help="parts of the names of the configurations to run")
    options = parser.parse_args()
    prepare(parser, options)
    rows = []
    for file in shipped(options.booksim):
        name = str(file.relative_to(options.booksim.parent.parent))
        if options.only and not any(part in name for part in options.only):
            continue
        rows.append(one(file, name, options))
        print("  ".join(cell for cell in rows[-1] if cell), flush=True)
    return finish(options.table, HEADER, rows)


if __name__ == "__main__":
    sys.exit(main())
