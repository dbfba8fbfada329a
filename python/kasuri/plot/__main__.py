"""``python -m kasuri.plot DIR``: the plots of the results in a folder, as SVG, PDF and PNG under ``DIR/plots``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import kasuri
from kasuri import plot
from kasuri.plot import asked, spots

#: More missing runs than these are only counted.
MAX_MISSING = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give its exit status: 0 done, 2 bad input."""
    parser = argparse.ArgumentParser(prog="python -m kasuri.plot", description="Draw the plots of the results in a folder.")
    parser.add_argument("directory", type=Path, help="a folder that `kasuri run` has written")
    parser.add_argument("--formats", default="svg,pdf,png", help="endings, with commas between them (default: %(default)s)")
    options = parser.parse_args(arguments)
    try:
        results = kasuri.read(options.directory)
        results.save_parquet()
        drawings = asked.drawings(results)
        missing = spots.missing_of(results)
        for run in missing[:MAX_MISSING]:
            print(f"kasuri: missing run: {', '.join(f'{key} = {value}' for key, value in run.items() if key != 'key')}", file=sys.stderr)
        if len(missing) > MAX_MISSING:
            print(f"kasuri: and {len(missing) - MAX_MISSING} more missing runs", file=sys.stderr)
        for drawing in drawings:
            if drawing.ax is None:
                print(f"kasuri: {drawing.problem}", file=sys.stderr)
                continue
            for ending in options.formats.split(","):
                path = plot.save(drawing.ax, options.directory / "plots" / f"{drawing.name}.{ending.strip('.')}")
                print(f"kasuri: wrote {path}", file=sys.stderr)
    except (kasuri.KasuriError, OSError) as error:
        print(f"kasuri: {error}", file=sys.stderr)
        return 2
    return 2 if any(drawing.problem for drawing in drawings) else 0


if __name__ == "__main__":
    sys.exit(main())
