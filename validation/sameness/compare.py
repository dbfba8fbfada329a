#!/usr/bin/env python3
"""Compares what the program gives with what is kept: results of experiments bit for bit, refusals and outputs of commands word for word,
and how many instructions the cases of `counts.py` take.

A change that means to change no result must leave every line as it is; one that mends a result names the lines that change.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import csv
import hashlib
import json
import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import commands
import counts
import strata

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "campaigns"))
import trial

HERE = Path(__file__).resolve().parent
Rows = list[dict[str, str]]

#: Columns that tell of the machine and of the program, not of the network.
ASIDE = ("key", "kasuri_version", "kasuri_commit", "schema_version", "wall_seconds", "cpu_seconds", "peak_memory_mib", "hint", "message")


def held(value: object) -> object:
    """Leave out what holds nothing, so that a new empty column changes no digest."""
    if isinstance(value, dict):
        return {key: held(part) for key, part in sorted(value.items()) if part is not None}
    return [held(part) for part in value] if isinstance(value, list) else value


def digest(out: Path, row: dict[str, object]) -> str:
    """Hash a row and its vectors."""
    content = hashlib.sha256(json.dumps(held({name: value for name, value in row.items() if name not in ASIDE})).encode())
    for vector in sorted((out / "runs").glob("*.npy")):
        content.update(vector.name.split(".")[1].encode() + vector.read_bytes())
    return content.hexdigest()[:24]


@contextlib.contextmanager
def written(name: str, text: str, files: dict[str, str]) -> Iterator[Path]:
    """Give a folder with an experiment and the files that it names."""
    folder = Path(tempfile.mkdtemp(prefix=f"kasuri-sameness-{name.split('/')[0]}-"))
    (folder / "data").symlink_to(HERE.parents[1] / "tests/data")
    for path, content in {"experiment.toml": text, **files}.items():
        (folder / path).write_text(content)
    yield folder
    shutil.rmtree(folder)


def answer(kasuri: str, name: str, tiles: int | None = None, threads: int = 1) -> dict[str, str] | str:
    """Run an experiment: its row, or the text of its refusal."""
    experiment = strata.experiment(name)
    text = experiment.text
    with contextlib.suppress(tomllib.TOMLDecodeError):
        table = tomllib.loads(text)
        if tiles and table.get("engine", "flit") == "flit" and "flit" not in table:
            text += f"\n[flit]\ntiles = {tiles}\n"
    with written(name, text, experiment.files) as folder:
        words = ("--format", "json", "--jobs", "1", "--threads", str(threads), "--out", "out")
        run = trial.attempt(kasuri, "run", "experiment.toml", *words, folder=folder)
        if run.returncode not in (0, 1):
            return run.stderr
        row = json.loads(run.stdout)["runs"][0]
        kept = {name: "" if row[name] is None else str(row[name]) for name in ("engine", "status", "cycles", "flit_hops")}
        return {"name": name, **kept, "digest": digest(folder / "out", row)}


def write(table: str, rows: Rows) -> None:
    """Write a table."""
    with (HERE / table).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read(table: str) -> Rows:
    """Read a table."""
    with (HERE / table).open(newline="") as file:
        return list(csv.DictReader(file))


def differences(what: str, kept: Rows, found: Iterable[dict[str, str] | None], alike: Callable[[dict, dict], bool] = dict.__eq__) -> int:
    """Print which rows differ from the kept ones and how; give their number."""
    number = 0
    for old, new in zip(kept, found, strict=True):
        if new is not None and alike(old, new):
            continue
        number += 1
        changes = (
            [f"{key}: {old[key] or '-'} -> {new[key] or '-'}" for key in old if old[key] != new.get(key)] if new else ["no such answer"]
        )
        print(f"{old['name']}: " + "; ".join(changes))
    print(f"{what}: {len(kept)}, {len(kept) - number} the same, {number} different", flush=True)
    return number


class Experiments:
    """Results of experiments, and the texts of refusals."""

    def __init__(self, options: argparse.Namespace, pool: concurrent.futures.Executor) -> None:
        """Take the program and how it runs."""
        self.options, self.pool = options, pool

    def answers(self, names: Iterable[str]) -> Iterator[dict[str, str] | str]:
        """Run experiments, several at a time."""
        options = self.options
        return self.pool.map(lambda name: answer(options.kasuri, name, options.tiles, options.threads), names)

    def store(self) -> None:
        """Write both tables. A refusal is kept once: other refusals with the same words but other numbers say nothing more."""
        rows: Rows = []
        refusals: dict[str, dict[str, str]] = {}
        names = strata.names()
        for name, found in zip(names, self.answers(names), strict=True):
            if isinstance(found, str):
                kind = "".join(letter for letter in found if not letter.isdigit())
                refusals.setdefault(kind, {"name": name, "text": found})
            else:
                rows.append(found)
        write("results.csv", rows)
        write("refusals.csv", list(refusals.values()))
        for (stratum, engine, status), number in sorted(
            collections.Counter((row["name"].split("/")[0], row["engine"], row["status"]) for row in rows).items()
        ):
            print(f"{number:5}  {stratum} {engine} {status}")
        print(f"{len(rows)} results, {len(refusals)} refusals")

    def compare(self) -> int:
        """Compare with the tables. Tiles and threads are no part of a refusal."""
        kept = read("results.csv")[:: self.options.every]
        if "avx512f" not in Path("/proc/cpuinfo").read_text():
            print("no AVX-512 here: rows of that layout are left out")
            kept = [row for row in kept if "avx512" not in row["name"]]
        found = ({"digest": answer} if isinstance(answer, str) else answer for answer in self.answers(row["name"] for row in kept))
        number = differences("results", kept, found)
        if self.options.tiles or self.options.threads > 1:
            return number
        kept = read("refusals.csv")[:: self.options.every]
        refused = zip(kept, self.answers(row["name"] for row in kept), strict=True)
        return number + differences(
            "refusals", kept, ({"name": row["name"], "text": answer} if isinstance(answer, str) else None for row, answer in refused)
        )


class Commands:
    """Outputs of commands on fixed inputs."""

    def __init__(self, options: argparse.Namespace, pool: concurrent.futures.Executor) -> None:
        """Take the program."""
        self.kasuri, self.pool = options.kasuri, pool

    def answers(self) -> Iterator[dict[str, str]]:
        """Run all commands, several at a time."""
        return self.pool.map(lambda command: commands.answer(self.kasuri, command), commands.COMMANDS)

    def store(self) -> None:
        """Write the table."""
        write("commands.csv", list(self.answers()))

    def compare(self) -> int:
        """Compare with the table."""
        kept = {row["name"]: row for row in read("commands.csv")}
        found = [row for row in self.answers() if row["name"] in kept]
        return differences("commands", [kept[row["name"]] for row in found], found)


class Counts:
    """Instructions of the cases of `counts.py`, which hold for one compiler and C library."""

    def __init__(self, options: argparse.Namespace, pool: concurrent.futures.Executor) -> None:
        """Take the program."""
        self.kasuri, self.pool, self.tolerance = options.kasuri, pool, options.tolerance

    def answers(self) -> Iterator[dict[str, str]]:
        """Count all cases, several at a time."""
        return self.pool.map(lambda name: {"name": name, "instructions": str(counts.count(self.kasuri, name))}, counts.CASES)

    def store(self) -> None:
        """Write the table."""
        write("counts.csv", list(self.answers()))

    def compare(self) -> int:
        """Compare with the table, within a tolerance, and print every ratio."""

        def alike(old: dict[str, str], new: dict[str, str]) -> bool:
            ratio = int(new["instructions"]) / int(old["instructions"])
            print(f"  {old['name']}: {ratio:.4f} of the kept instructions")
            return ratio <= 1 + self.tolerance

        return differences("counts", read("counts.csv"), self.answers(), alike)


PARTS = {"experiments": Experiments, "commands": Commands, "counts": Counts}


def main() -> int:
    """Store or compare; give the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kasuri", type=trial.command, default=str(strata.ROOT / ".venv/bin/kasuri"), help="the command")
    parser.add_argument("--store", action="store_true", help="write the tables instead of comparing with them")
    parser.add_argument("--only", choices=PARTS, action="append", help="these parts alone (default: all)")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth experiment alone")
    parser.add_argument("--tiles", type=int, help="cut the network of the flit engine into this many tiles, which changes no result")
    parser.add_argument("--threads", type=int, default=1, help="run each on this many threads, which changes no result either")
    parser.add_argument(
        "--tolerance", type=float, default=0.01, help="part by which a case may take more instructions (default: %(default)s)"
    )
    options = parser.parse_args()
    parts = options.only or (["experiments"] if options.tiles or options.threads > 1 else list(PARTS))
    different = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for part in map(PARTS.get, parts):
            if options.store:
                part(options, pool).store()
            else:
                different += part(options, pool).compare()
    if not options.store:
        print("all the same" if different == 0 else f"{different} different")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
