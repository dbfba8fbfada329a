#!/usr/bin/env python3
"""Runs a bench, prints what it prints, and appends its tables to a Markdown file: `record.py FILE SCRIPT ARGUMENT …`.

Lines of three or more columns, which two spaces or more separate, are a table; the first one is its head. Other lines are text.
Exit status: that of the bench.
"""

from __future__ import annotations

import os
import pathlib
import platform
import re
import subprocess
import sys


def machine() -> str:
    """Name the processor and the number of cores."""
    info = pathlib.Path("/proc/cpuinfo")
    named = re.search(r"^model name\s*: (.*)$", info.read_text(), re.MULTILINE) if info.exists() else None
    return f"{named[1] if named else platform.machine()}, {os.cpu_count()} cores"


def markdown(lines: list[str]) -> str:
    """Write lines as paragraphs and tables."""
    text, columns = [], 0
    for line in lines:
        cells = re.split(r"\s{2,}", line.strip())
        if len(cells) < 3:
            text += ["", *cells] if cells != [""] else [""]
            columns = 0
        elif columns == 0:
            columns = len(cells)
            text += ["", row(cells), row(["---"] * columns)]
        else:
            # Without a value at the end, or with a verdict behind the last column.
            first, rest = cells[: columns - 1], cells[columns - 1 :]
            text.append(row([*first, *[""] * (columns - 1 - len(first)), " ".join(rest)]))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(text)).strip("\n") + "\n"


def row(cells: list[str]) -> str:
    """Write a row of a table."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def main(words: list[str]) -> int:
    """Run the bench and return its exit status."""
    file, script = pathlib.Path(words[0]), pathlib.Path(words[1])
    lines = []
    with subprocess.Popen([sys.executable, "-u", *words[1:]], stdout=subprocess.PIPE, text=True) as bench:
        for line in bench.stdout or ():
            print(line, end="", flush=True)
            lines.append(line.rstrip("\n"))
    file.parent.mkdir(parents=True, exist_ok=True)
    head = "" if file.exists() else f"# What `make bench` has measured\n\n{machine()}.\n"
    with file.open("a") as table:
        table.write(f"{head}\n## {script.name}\n\n{markdown(lines)}")
    return bench.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
