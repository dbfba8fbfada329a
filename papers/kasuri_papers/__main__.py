"""``python -m kasuri_papers``: what ``kasuri reproduce`` starts."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from kasuri.errors import KasuriError
from kasuri_papers import experiments, output
from kasuri_papers.papers import PAPERS, choose
from kasuri_papers.progress import Progress, planned
from kasuri_papers.reproduction import Outcome, reproduce
from kasuri_papers.runs import Runner


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give its exit status: 0 done, 1 no result (`--strict`: or an unexpected verdict), 2 bad input."""
    options = _parser().parse_args(arguments)
    say = (lambda text: None) if options.quiet else (lambda text: print(f"kasuri: {text}", file=sys.stderr, flush=True))
    outcomes: dict[str, list[Outcome]] = {}
    try:
        chosen = choose(options.figures)
        folder = experiments.find(options.experiments)
        with Progress(0 if options.quiet else planned(chosen, folder)) as progress:
            runner = Runner(options.jobs, options.command, progress.finished)
            for paper, outcome in reproduce(chosen, folder=folder, out=options.out, runner=runner, say=say):
                outcomes.setdefault(paper.name, []).append(outcome)
                say(f"{outcome.figure.id}: {outcome.word}")
        for name, of_paper in outcomes.items():
            say(f"wrote {output.write_page(PAPERS[name], of_paper, options.out / name)}")
    except (KasuriError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    everything = [outcome for of_paper in outcomes.values() for outcome in of_paper]
    if options.format == "json":
        print(json.dumps({"figures": [outcome.as_json() for outcome in everything]}, indent=2))
        say(output.summary(everything))
        for line in output.surprises(everything):
            say(f"not as expected: {line}")
    else:
        output.print_table(everything, sys.stdout)
    failed = any(outcome.failed_runs or outcome.is_not_run or (options.strict and not outcome.is_expected) for outcome in everything)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kasuri reproduce", description="The papers' figures: data, plots, verdicts.")
    parser.add_argument("figures", nargs="*", metavar="PAPER[/FIGURE]", help=f"one of {', '.join(PAPERS)}; default: all")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--out", type=Path, default=Path("out/reproduce"), metavar="DIR")
    parser.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, metavar="N", help="runs at the same time")
    parser.add_argument("--experiments", type=Path, metavar="DIR", help="a folder like `experiments` of the repository")
    parser.add_argument("--command", metavar="FILE", help="the program kasuri, for runs in a process of their own")
    parser.add_argument("--strict", action="store_true", help="end with status 1 if a verdict is not the expected one")
    parser.add_argument("--quiet", action="store_true", help="say nothing on standard error but errors")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
