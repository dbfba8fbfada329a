#!/usr/bin/env python3
"""Draws experiments and settings, packs the folders of their results, and runs the archives elsewhere: the rows are the same."""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import random
import re
import shutil
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import drawing
import trial

ROOT = Path(__file__).resolve().parents[2]
#: What is set on the command line, each at times.
SETTINGS = (
    "measure.seed=5", "sweep.measure.seed=[3, 4]", "router.buffer_flits=12", "title='set, \"too\"'",
    "measure={precision = 0.4, max_cycles = 2000}",
)  # fmt: skip


def network_in_file(kasuri: str, text: str, folder: Path) -> str:
    """Write the network of an experiment into a file of another folder, and name that, where `kasuri topology` can."""
    table = dict(tomllib.loads(text)["network"])
    words = [f"{key}={json.dumps(value)}" for key, value in table.items() if key != "topology"]
    export = trial.attempt(kasuri, "topology", table["topology"], *words, "--export", "json", folder=folder)
    if export.returncode != 0:
        return text
    (folder / "networks").mkdir()
    (folder / "networks/a b.json").write_text(export.stdout)
    return re.sub(
        r"\[network\].*?(?=^\[)", '[network]\ntopology = "file"\npath = "../networks/a b.json"\n', text, count=1, flags=re.S | re.M
    )


def rows_of(run: Any) -> list[dict[str, Any]]:
    """Give the rows that a command has printed, without what differs between equal runs."""
    rows = json.loads(run.stdout)["runs"] if run.stdout.startswith("{") else []
    return [{name: value for name, value in row.items() if name not in trial.COSTS} for row in rows]


def examine(kasuri: str, seed: int, folder: Path) -> tuple[str | None, bool]:
    """Run, pack, and run again elsewhere; say what is wrong, and whether the experiment of the seed ran at all."""
    draw = random.Random(seed)
    here, there = folder / f"{seed}", folder / f"{seed}-elsewhere"
    (here / "files").mkdir(parents=True)
    there.mkdir()
    text = drawing.draw_experiment(draw)
    if draw.random() < 0.5 and "[network]" in text:
        text = network_in_file(kasuri, text, here)
    (here / "files/x.toml").write_text(text)
    settings = [word for setting in draw.sample(SETTINGS, draw.choice((0, 1, 1, 2))) for word in ("--set", setting)]
    common = ("--format", "json", "--jobs", "1")
    first = trial.attempt(kasuri, "run", "files/x.toml", *settings, *common, "--out", "out", folder=here)
    if first.returncode == 2:
        shutil.rmtree(here)
        return None, False
    pack = trial.attempt(kasuri, "pack", "out", "-o", str(there / "packed.tar.gz"), folder=here)
    shutil.rmtree(here)
    again = trial.attempt(kasuri, "run", "packed.tar.gz", *common, folder=there)
    with tarfile.open(there / "packed.tar.gz") as archive:
        archive.extractall(there / "unpacked", filter="data")
    moved = trial.attempt(kasuri, "run", "unpacked/out/effective.toml", *common, "--out", "third", folder=there)
    rows = rows_of(first)
    wrong = None
    if pack.returncode != 0 or not rows:
        wrong = f"it is not packed: {pack.stderr}"
    elif rows_of(again) != rows or "rows are the same" not in again.stderr:
        wrong = f"the archive gives other rows: {again.stderr}"
    elif rows_of(moved) != rows:
        wrong = f"effective.toml gives other rows: {moved.stderr}"
    elif not all(name in rows[0] for name in set_columns(settings)):
        wrong = "a key that was set is no column"
    shutil.rmtree(there)
    return wrong and f"seed {seed}: {wrong}", True


def set_columns(settings: list[str]) -> set[str]:
    """Give the keys that settings set and that rows must show."""
    keys = {setting.split("=")[0].removeprefix("sweep.") for setting in settings if "=" in setting}
    return (keys - {"title", "measure"}) | ({"measure.precision"} if "measure" in keys else set())


def main() -> int:
    """Examine many; give the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kasuri", type=trial.command, default=str(ROOT / ".venv/bin/kasuri"), help="the command")
    parser.add_argument("--count", type=int, default=300, help="experiments that run (default: %(default)s)")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kasuri-packed-"))
    ran, drawn, wrong = 0, 0, []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        while ran < options.count and drawn < 20 * options.count:
            seeds = range(options.first + drawn, options.first + drawn + min(50, options.count))
            for line, has_run in pool.map(lambda seed: examine(options.kasuri, seed, folder), seeds):
                ran += has_run
                wrong += [line] if line else []
            drawn += len(seeds)
    shutil.rmtree(folder)
    print(f"{drawn} experiments drawn, {ran} of them run and packed, {len(wrong)} gave other rows elsewhere")
    print("\n".join(wrong[:20]))
    return int(bool(wrong) or ran < options.count)


if __name__ == "__main__":
    sys.exit(main())
