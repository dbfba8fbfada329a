"""Prints an index of the sources: the first sentence of each folder's `//!` comment, docstring or README.

`make map` prints all folders, `make map IN=crates/kasuri-flow/src/fluid` each file of one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("crates", "python", "papers", "validation", "benches", "fuzz", "mpi", "tests", "experiments", "examples", "tools")
WIDTH = 48


def first_sentence(text: str) -> str:
    """Give a paragraph up to the first full stop that ends a sentence."""
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    sentence = re.match(r"(.+?\.)(?= [A-Z`[]|$)", paragraph)
    return sentence[1] if sentence else paragraph


def says(file: Path) -> str:
    """Give the first sentence of what a file says of itself, empty where it says nothing."""
    text = file.read_text(errors="replace")
    if file.suffix == ".rs":
        lines = re.match(r"(?://!.*\n)+", text)
        return first_sentence(re.sub(r"(?m)^//! ?", "", lines[0])) if lines else ""
    if file.suffix == ".md":
        return first_sentence(re.sub(r"\A# .*\n+", "", text))
    found = re.match(r'(?:#.*\n)*"""(.*?)"""' if file.suffix == ".py" else r"/\*\s*(.*?)\*/", text, re.DOTALL)
    return first_sentence(re.sub(r"(?m)^ *\* ?", "", found[1])) if found else ""


def speaker(folder: Path) -> Path | None:
    """Find the file that speaks for a folder."""
    names = [folder / name for name in ("mod.rs", "lib.rs", "main.rs", "__init__.py", "README.md")]
    return next((name for name in [*names, folder.with_suffix(".rs")] if name.is_file()), None)


def folders(root: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the folders that something speaks for, with the file that does, in the order of their paths."""
    for name in FOLDERS:
        for folder in sorted([root / name, *(path for path in (root / name).rglob("*") if path.is_dir())]):
            file = speaker(folder)
            if file and not {"target", "__pycache__", "build", "data"}.intersection(folder.relative_to(root).parts):
                yield folder, file


def line(path: str, sentence: str) -> str:
    """Write a line of the index."""
    return f"{path:{WIDTH}} {sentence}".rstrip()


def main(words: list[str]) -> int:
    """Print the index, or that of the files of one folder."""
    if words:
        folder = (ROOT / words[0]).resolve()
        files = sorted(file for file in folder.rglob("*") if file.suffix in (".rs", ".py", ".c", ".h"))
        print("\n".join(line(file.relative_to(folder).as_posix(), says(file)) for file in files))
        return 0 if files else 2
    for folder, file in folders(ROOT):
        print(line(f"{folder.relative_to(ROOT).as_posix()}/", says(file)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
