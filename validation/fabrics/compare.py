#!/usr/bin/env python3
"""Compares `kasuri topology` with a table of fabrics as they are built: counts, distances and digests of links and of ports.

The table was made by a program that shares nothing with Kasuri. Only the standard library is needed. Exit status: 0 all the same, 1 not.
"""

from __future__ import annotations

import argparse
import csv
import json
import pathlib
import subprocess
import sys
from collections import Counter

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: What says which network a row is about.
NAMES = ("topology", "parameters")


def words(parameters: str) -> list[str]:
    """Cut parameters into words; blanks within brackets belong to a word."""
    cut, depth = [""], 0
    for letter in parameters:
        depth += (letter == "[") - (letter == "]")
        if letter == " " and depth == 0:
            cut.append("")
        else:
            cut[-1] += letter
    return cut


def cell(value: object) -> str:
    """A value of the answer as the table writes it."""
    return "" if value is None else f"{value:.6f}" if isinstance(value, float) else str(value)


def faults(kasuri: str, row: dict[str, str]) -> list[str]:
    """What the command says of a row's network that the row does not."""
    command = [kasuri, "topology", row["topology"], *words(row["parameters"]), "--format", "json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        return [answer.stderr.strip()]
    found = json.loads(answer.stdout)
    columns = [column for column in row if column not in NAMES]
    return [f"{column} is {cell(found[column])}, not {row[column]}" for column in columns if cell(found[column]) != row[column]]


def main() -> int:
    """Compare all rows and print how many are the same, by topology."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kasuri", required=True, help="the command")
    parser.add_argument(
        "--table", type=pathlib.Path, default=ROOT / "tests/data/fabrics/networks.csv", help="the table (default: %(default)s)"
    )
    options = parser.parse_args()
    rows = list(csv.DictReader(options.table.open(newline="")))
    all_rows, same = Counter(row["topology"] for row in rows), Counter()
    for row in rows:
        wrong = faults(options.kasuri, row)
        same[row["topology"]] += not wrong
        for fault in wrong:
            print(f"    NOT {row['topology']} {row['parameters']}: {fault}")
    for topology, count in all_rows.items():
        print(f"{topology:20} {same[topology]:4} of {count:4} networks the same in every column")
    print(f"{'together':20} {sum(same.values()):4} of {len(rows):4}")
    return int(sum(same.values()) < len(rows))


if __name__ == "__main__":
    sys.exit(main())
