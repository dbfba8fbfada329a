#!/usr/bin/env python3
"""Draws experiments and settings, packs the folders of their results, and runs the archives elsewhere: the rows are the same."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import drawing
import trial

#: Settings of the command line, drawn for each experiment.
SETTINGS = (
    "measure.seed=5", "sweep.measure.seed=[3, 4]", "router.buffer_flits=12", "title='set, \"too\"'",
    "measure={precision = 0.4, max_cycles = 2000}",
)  # fmt: skip
PRINTED = ("--format", "json", "--jobs", "1")


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


def rows_of(run: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Give the rows that a command has printed, without their costs."""
    return trial.without_costs(json.loads(run.stdout)["runs"]) if run.stdout.startswith("{") else []


def examine(kasuri: str, seed: int, folder: Path) -> tuple[str | None, bool]:
    """Run the experiment of a seed, pack it, and run it again elsewhere; give an error, and whether it ran."""
    draw = random.Random(seed)
    here, there = folder / f"{seed}", folder / f"{seed}-elsewhere"
    (here / "files").mkdir(parents=True)
    there.mkdir()
    text = drawing.draw_experiment(draw)
    if draw.random() < 0.5 and "[network]" in text:
        text = network_in_file(kasuri, text, here)
    (here / "files/x.toml").write_text(text)
    settings = [word for setting in draw.sample(SETTINGS, draw.choice((0, 1, 1, 2))) for word in ("--set", setting)]
    first = trial.attempt(kasuri, "run", "files/x.toml", *settings, *PRINTED, "--out", "out", folder=here)
    if first.returncode == 2:
        shutil.rmtree(here)
        return None, False
    wrong = repeat(kasuri, rows_of(first), here, there)
    if wrong is None and not all(name in rows_of(first)[0] for name in set_columns(settings)):
        wrong = "a key that was set is not a column"
    if wrong is None:
        shutil.rmtree(there)
    return wrong and f"seed {seed}: {wrong} ({there})", True


def repeat(kasuri: str, rows: list[dict[str, Any]], here: Path, there: Path) -> str | None:
    """Pack a folder of results, remove it, and run the archive and its experiment elsewhere; give an error."""
    pack = trial.attempt(kasuri, "pack", "out", "-o", str(there / "packed.tar.gz"), folder=here)
    if pack.returncode != 0 or not rows:
        return f"it is not packed: {pack.stderr}"
    shutil.rmtree(here)
    again = trial.attempt(kasuri, "run", "packed.tar.gz", *PRINTED, folder=there)
    if rows_of(again) != rows or "rows are the same" not in again.stderr:
        return f"the archive gives other rows: {again.stderr}"
    with tarfile.open(there / "packed.tar.gz") as archive:
        archive.extractall(there / "unpacked", filter="data")
    moved = trial.attempt(kasuri, "run", "unpacked/out/effective.toml", *PRINTED, "--out", "third", folder=there)
    return None if rows_of(moved) == rows else f"effective.toml gives other rows: {moved.stderr}"


def set_columns(settings: list[str]) -> set[str]:
    """Give the keys that settings set and that rows must show."""
    keys = {setting.split("=")[0].removeprefix("sweep.") for setting in settings if "=" in setting}
    return (keys - {"title", "measure"}) | ({"measure.precision"} if "measure" in keys else set())


def main() -> int:
    """Examine many; give the exit status."""
    given = trial.options(__doc__, 300, "experiments that run").parse_args()
    return trial.examine_drawn("packed", given, examine)


if __name__ == "__main__":
    sys.exit(main())
