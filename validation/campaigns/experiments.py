#!/usr/bin/env python3
"""Draws experiments over all that the file can say, and runs each under `--paranoid`: `check` and `run` agree, and flits are conserved."""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import drawing
import trial

ROOT = Path(__file__).resolve().parents[2]


def examine(kasuri: str, seed: int, folder: Path) -> tuple[str | None, int]:
    """Check and run the experiment of a seed; say what is wrong, and how it ended."""
    file = folder / f"{seed}.toml"
    file.write_text(drawing.draw_experiment(random.Random(seed)))
    check = trial.attempt(kasuri, "check", file.name, folder=folder)
    out = f"out-{seed}"
    run = trial.attempt(kasuri, "run", file.name, "--paranoid", "--format", "json", "--jobs", "1", "--out", out, folder=folder)
    wrong = trial.defect(check, (0, 2)) or trial.defect(run, (0, 1, 2))
    if wrong is None and check.returncode == 0 and run.returncode == 2:
        wrong = "check accepts what run refuses"
    if wrong is None and check.returncode == 2 and run.returncode != 2:
        wrong = "check refuses what run accepts"
    if wrong is None and '"status": "failed"' in run.stdout:
        wrong = "the run failed"
    shutil.rmtree(folder / out, ignore_errors=True)
    if wrong is None:
        file.unlink()
        return None, run.returncode
    return f"seed {seed}: {wrong} ({file})\n{check.stderr[-400:]}\n{run.stderr[-600:]}", run.returncode


def main() -> int:
    """Examine many; give the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kasuri", type=trial.command, default=str(ROOT / ".venv/bin/kasuri"), help="the command")
    parser.add_argument("--count", type=int, default=1100, help="experiments that run (default: %(default)s)")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kasuri-experiments-"))
    ran, drawn, wrong = 0, 0, []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        while ran < options.count and drawn < 20 * options.count:
            seeds = range(options.first + drawn, options.first + drawn + 50)
            for line, status in pool.map(lambda seed: examine(options.kasuri, seed, folder), seeds):
                ran += status != 2
                wrong += [line] if line else []
            drawn += len(seeds)
    print(f"{drawn} experiments drawn, {ran} of them run, {drawn - ran} refused, {len(wrong)} answered wrongly")
    print("\n".join(wrong[:20]))
    if not wrong:
        shutil.rmtree(folder)
    return int(bool(wrong) or ran < options.count)


if __name__ == "__main__":
    sys.exit(main())
