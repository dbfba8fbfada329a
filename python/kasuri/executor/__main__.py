"""``python -m kasuri.executor``: the program behind ``kasuri run --executor``."""

from __future__ import annotations

import argparse
import logging
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from kasuri.errors import KasuriError
from kasuri.executor import store
from kasuri.executor.executors import choose, connected
from kasuri.executor.packing import Point
from kasuri.executor.progress import say
from kasuri.executor.sweep import LostSchedulerError, Outcome, Sweep
from kasuri.executor.task import Experiment


class EndedError(Exception):
    """The native command has ended with a status that says it all."""


class Terminated(KeyboardInterrupt):
    """SIGTERM has come."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give its exit status: 0 done, 1 some run came to no result, 2 bad input, 130 and 143 after signals."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _terminate)
    # Dask, and asyncio below it, log every worker that goes, and tracebacks where a cluster is stopped while it starts. What matters of
    # it is said in one line.
    logging.disable(logging.CRITICAL)
    try:
        return _run(options)
    except EndedError as ended:
        return int(ended.args[0])
    except KasuriError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (LostSchedulerError, OSError) as error:
        print(f"error: {error}; {_how_to_go_on(options.out)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interrupt:
        say(f"stopped: {_how_to_go_on(options.out)}")
        return 143 if isinstance(interrupt, Terminated) else 130


def _run(options: argparse.Namespace) -> int:
    executor = choose(options.executor, options.jobs)
    points = _missing(options)
    outcome = Outcome()
    if points:
        with store.locked(options.out), store.token(options.out) as token, connected(executor, options.out) as client:
            workers = len(client.scheduler_info(n_workers=-1)["workers"])
            say(f"{len(points)} runs for {workers} workers; the Dask dashboard: {client.dashboard_link}")
            outcome = Sweep(client, _experiment(options, token), points, _finished(options.out, points)).run()
        if outcome.stopped:
            print(f"error: {outcome.stopped}; {_how_to_go_on(options.out)}", file=sys.stderr)
            return 1
    _note(options.out, outcome)
    table = [options.command, "collect", str(options.out), "--format", options.format]
    status = subprocess.run(table, check=False).returncode
    for key, reason in outcome.set_aside.items():
        say(f"set aside: run {key} {reason}")
    say(f"computed {outcome.computed} runs; {len(outcome.failed)} failed, {len(outcome.set_aside)} set aside")
    return max(status, 1) if outcome.set_aside else status


def _missing(options: argparse.Namespace) -> list[Point]:
    """Let the native command check the experiment and list the unfinished runs."""
    command = [options.command, "run", str(options.file), "--out", str(options.out), "--missing", *_assignments(options)]
    points = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            key, number, seconds, memory = line.rstrip("\n").split("\t")[:4]
            points.append(Point(key, int(number), float(seconds), float(memory)))
    if process.returncode != 0:
        raise EndedError(process.returncode)
    return points


def _finished(out: Path, missing: list[Point]) -> int:
    with (out / "plan.jsonl").open() as file:
        return sum(1 for _ in file) - 1 - len(missing)


def _experiment(options: argparse.Namespace, token: str) -> Experiment:
    identity = subprocess.run([options.command, "identity"], capture_output=True, text=True, check=True).stdout.strip()
    file, out = (str(path.resolve()) for path in (options.file, options.out))
    return Experiment(options.command, identity, file, out, token, tuple(options.set), options.paranoid)


def _assignments(options: argparse.Namespace) -> list[str]:
    return [word for assignment in options.set for word in ("--set", assignment)]


def _note(out: Path, outcome: Outcome) -> None:
    """Leave word of the points that were set aside, for the table."""
    import json

    reasons = {f"failed/{key}.json": {"message": reason, "refused": False} for key, reason in outcome.set_aside.items()}
    store.write(out, {name: json.dumps(reason).encode() for name, reason in reasons.items()})


def _how_to_go_on(out: Path) -> str:
    finished = len(list((out / "runs").glob("*.json")))
    return f"{finished} finished runs are kept in {out}; run the same command again to compute the rest"


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kasuri run", description="Runs an experiment file on a Dask cluster.")
    parser.add_argument("file", type=Path, metavar="FILE", help="the experiment file")
    parser.add_argument("--executor", required=True, help="dask, dask:tcp://HOST:PORT, slurm, or an executor file")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="sets a key of the file")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder for results")
    parser.add_argument("--jobs", type=int, metavar="N", help="worker processes, or jobs of the batch system")
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table")
    parser.add_argument("--paranoid", action="store_true")
    parser.add_argument("--command", required=True, metavar="FILE", help="the program kasuri")
    return parser


if __name__ == "__main__":
    sys.exit(main())
