#!/usr/bin/env python3
"""Draws experiments over all that the file can say, and runs each under `--paranoid`: `check` and `run` agree, and flits are conserved."""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import drawing
import trial


def examine(kasuri: str, seed: int, folder: Path) -> tuple[str | None, bool]:
    """Check and run the experiment of a seed; give an error, and whether it ran."""
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
        return None, run.returncode != 2
    return f"seed {seed}: {wrong} ({file})\n{check.stderr[-400:]}\n{run.stderr[-600:]}", run.returncode != 2


def main() -> int:
    """Examine many; give the exit status."""
    given = trial.options(__doc__, 1100, "experiments that run").parse_args()
    return trial.examine_drawn("experiments", given, examine)


if __name__ == "__main__":
    sys.exit(main())
