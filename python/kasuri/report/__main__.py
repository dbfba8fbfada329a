"""``python -m kasuri.report DIR [-o FILE]``: the page about the results in a folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kasuri import report
from kasuri.errors import KasuriError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give its exit status: 0 done, 2 bad input."""
    parser = argparse.ArgumentParser(prog="kasuri report", description="One self-contained page about the results in a folder.")
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIR", help="a folder that `kasuri run` has written")
    parser.add_argument("-o", "--output", type=Path, help="the page to write (one folder; default: DIR/report.html)")
    parser.add_argument("--index", type=Path, help="also write a page that leads to those of all folders")
    parser.add_argument("--plots", default="svg,pdf,png", help="write the plots next to the page in these formats (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.output and len(options.directories) > 1:
        parser.error("-o takes one folder; several folders have their pages inside them")
    try:
        endings = [ending.strip(" .") for ending in options.plots.split(",") if ending.strip(" .")]
        for directory in options.directories:
            page = report.write(directory, options.output, plots=endings)
            print(f"kasuri: wrote {page}", file=sys.stderr)
        if options.index:
            print(f"kasuri: wrote {report.index(options.directories, options.index)}", file=sys.stderr)
    except (KasuriError, OSError) as error:
        print(f"kasuri: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
