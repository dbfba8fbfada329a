#!/usr/bin/env python3
"""Runs drawn experiments over all features and compares each result, bit for bit, with the one that is kept in results.csv.

A change of the engines that means to change no result must leave every line as it is; one that mends a result names the lines that change.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import csv
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "campaigns"))
import drawing
import trial

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).resolve().with_name("results.csv")
FIELDS = ("seed", "kind", "engine", "status", "cycles", "flit_hops", "packet_latency_mean", "digest")

#: Columns that tell of the machine and of the program, not of the network.
ASIDE = ("key", "kasuri_version", "kasuri_commit", "schema_version", "wall_seconds", "cpu_seconds", "peak_memory_mib", "hint", "message")

#: Columns that came after the results were kept: they count where they hold something.
LATER = (
    "background",
    *(f"prediction_{what}_{way}" for what in ("chances", "hits") for way in ("up", "turn", "down")),
    *("interrupts", "interrupts_masked", "page_faults", "task_switches"),
    *("user_switches", "user_switch_cycles_mean"),
    *(f"packets_{what}" for what in ("sent", "arrived", "dropped", "lost", "resent", "late")),
    *("pause_frames", "queue_flits_max", "terminal_ports"),
    *("routing_bound", "packet_latency_mean_until_stop"),
)

#: The same of what is told of each user.
LATER_OF_USERS = ("page_hits", "page_misses", "page_faults", "wrong_words", "words_through_others")


def kept(name: str, value: object) -> object:
    """Leave out of the users what came later and holds nothing."""
    if name != "users" or not isinstance(value, list):
        return value
    return [{key: part for key, part in user.items() if part or key not in LATER_OF_USERS} for user in value]


def digest(out: Path, row: dict[str, object]) -> str:
    """Hash a row and its vectors."""
    names = (name for name in sorted(row) if name not in ASIDE and not (name in LATER and row[name] is None))
    content = hashlib.sha256(json.dumps({name: kept(name, row[name]) for name in names}).encode())
    for vector in sorted((out / "runs").glob("*.npy")):
        content.update(vector.name.split(".")[1].encode() + vector.read_bytes())
    return content.hexdigest()[:24]


def result(kasuri: str, seed: int, folder: Path, tiles: int | None = None, threads: int = 1) -> dict[str, str] | None:
    """Run the experiment of a seed, flit by flit in so many tiles and on so many threads; None where it is refused."""
    text = drawing.draw_experiment(random.Random(seed))
    if tiles and tomllib.loads(text).get("engine", "flit") == "flit":
        text += f"\n[flit]\ntiles = {tiles}\n"
    (folder / f"{seed}.toml").write_text(text)
    out = folder / f"out-{seed}"
    words = ("--format", "json", "--jobs", "1", "--threads", str(threads), "--out", out.name)
    run = trial.attempt(kasuri, "run", f"{seed}.toml", *words, folder=folder)
    if run.returncode not in (0, 1):
        return None
    row = json.loads(run.stdout)["runs"][0]
    kind = next(word for word in ("endpoint", "user", "workload", "traffic") if f"[{word}]" in text)
    fields = {"seed": seed, "kind": kind, "digest": digest(out, row)} | {name: row[name] for name in FIELDS[2:-1]}
    shutil.rmtree(out)
    return {name: "" if fields[name] is None else str(fields[name]) for name in FIELDS}


def store(kasuri: str, count: int, pool: concurrent.futures.Executor, folder: Path) -> int:
    """Write the table with the results of the first so many seeds that run."""
    rows: list[dict[str, str]] = []
    seed = 0
    while len(rows) < count and seed < 20 * count:
        found = pool.map(lambda seed: result(kasuri, seed, folder), range(seed, seed + 50))
        rows += [row for row in found if row is not None]
        seed += 50
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[:count])
    kinds = collections.Counter((row["kind"], row["engine"], row["status"]) for row in rows[:count])
    for names, number in sorted(kinds.items()):
        print(f"{number:5}  {' '.join(names)}")
    return int(len(rows) < count)


def compare(kasuri: str, count: int | None, tiles: int | None, threads: int, pool: concurrent.futures.Executor, folder: Path) -> int:
    """Print what differs from the table."""
    with TABLE.open(newline="") as file:
        kept = list(csv.DictReader(file))[:count]
    found = pool.map(lambda row: result(kasuri, int(row["seed"]), folder, tiles, threads), kept)
    differing = [(old, new) for old, new in zip(kept, found, strict=True) if new != old]
    for old, new in differing:
        changes = (
            ["refused"]
            if new is None
            else [f"{name} {old[name] or '-'} -> {new[name] or '-'}" for name in FIELDS if old[name] != new[name]]
        )
        print(f"seed {old['seed']} ({old['kind']}, {old['engine']}): {', '.join(changes)}")
    print(f"{len(kept)} experiments, {len(kept) - len(differing)} with the same result bit for bit, {len(differing)} with another")
    return int(bool(differing))


def main() -> int:
    """Store or compare; give the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kasuri", type=trial.command, default=str(ROOT / ".venv/bin/kasuri"), help="the command")
    parser.add_argument("--store", action="store_true", help="write results.csv instead of comparing with it")
    parser.add_argument("--count", type=int, help="experiments (default: 500 to store, all to compare)")
    parser.add_argument("--tiles", type=int, help="cut the network of the flit engine into so many tiles, which changes no result")
    parser.add_argument("--threads", type=int, default=1, help="run each on so many threads, which changes no result either")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kasuri-sameness-"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        if options.store:
            status = store(options.kasuri, options.count or 500, pool, folder)
        else:
            status = compare(options.kasuri, options.count, options.tiles, options.threads, pool, folder)
    shutil.rmtree(folder)
    return status


if __name__ == "__main__":
    sys.exit(main())
