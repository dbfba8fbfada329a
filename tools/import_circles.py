#!/usr/bin/env python3
"""List the circles of imports among the files of each crate; exit with 1 if one has more than --most files.

A file imports another if its code, without comments and unit tests, names a path (`use crate::a::b`, `super::c`, or a path that begins
with a child module) whose longest prefix that is a module lies in that file. A circle is a strongly connected component of this graph.

    tools/import_circles.py                      all crates in crates/, circles of more than 3 files
    tools/import_circles.py --most 1 crates/kasuri-flit
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

CRATES = Path(__file__).resolve().parent.parent / "crates"

Module = tuple[str, ...]
Graph = dict[Module, set[Module]]

UNIT_TESTS = re.compile(r"^#\[cfg\(test\)\]\n(?:#\[.*\n)*mod \w+ \{", re.MULTILINE)
NO_CODE = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"|\bpub\(in [\w:]+\)')
USE = re.compile(r"\buse\s+([^;]+);")
PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")
HEAD = re.compile(r"(?<![\w:])(\w+)::")


def modules(source: Path) -> dict[Module, Path]:
    """The modules of a crate by their path; the root is ()."""
    found = {}
    for file in sorted(source.rglob("*.rs")):
        parts = file.relative_to(source).with_suffix("").parts
        if parts[-1] == "tests":
            continue
        found[() if parts in (("lib",), ("main",)) else parts[:-1] if parts[-1] == "mod" else parts] = file
    return found


def code(file: Path) -> str:
    """The text of a file without unit tests, comments, strings and the paths of visibilities."""
    return NO_CODE.sub("", UNIT_TESTS.split(file.read_text(), maxsplit=1)[0])


def leaves(tree: str) -> Iterator[str]:
    """The paths of a use tree, such as `a::{b, c::{d, e}}`."""
    prefix, brace, rest = tree.partition("{")
    if not brace:
        yield tree.split(" as ")[0].strip()
        return
    depth, item = 0, ""
    for letter in rest:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if depth < 0 or (letter == "," and depth == 0):
            if item.strip():
                yield from leaves(prefix.strip() + item.strip())
            item = ""
            if depth < 0:
                return
        else:
            item += letter


def absolute(path: str, module: Module, known: dict[Module, Path]) -> Module | None:
    """A path from the root of the crate; None if it leads out of the crate."""
    parts = tuple(part for part in path.split("::") if part)
    if not parts:
        return None
    if parts[0] == "crate":
        return parts[1:]
    if parts[0] == "self":
        return module + parts[1:]
    base = module
    while parts and parts[0] == "super":
        base, parts = base[:-1], parts[1:]
    return base + parts if base != module or (*module, parts[0]) in known else None


def imports(source: Path) -> Graph:
    """Which modules each module of a crate imports."""
    known = modules(source)
    graph: Graph = {module: set() for module in known}
    for module, file in known.items():
        text = code(file)
        paths = [leaf for use in USE.findall(text) for leaf in leaves(use)]
        rest = USE.sub("", text)
        paths += PATH.findall(rest)
        paths += [first for first in HEAD.findall(rest) if (*module, first) in known]
        for path in paths:
            target = absolute(path, module, known)
            while target and target not in known:
                target = target[:-1]
            if target is not None and target != module:
                graph[module].add(target)
    return graph


def circles(graph: Graph) -> list[list[Module]]:
    """The strongly connected components of more than one module (Tarjan 1972), the largest first."""
    order: dict[Module, int] = {}
    lowest: dict[Module, int] = {}
    stack: list[Module] = []
    found: list[list[Module]] = []

    def visit(module: Module) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for target in sorted(graph[module]):
            if target not in order:
                visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in stack:
                lowest[module] = min(lowest[module], order[target])
        if lowest[module] == order[module]:
            begin = stack.index(module)
            found.append(sorted(stack[begin:]))
            del stack[begin:]

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return sorted((circle for circle in found if len(circle) > 1), key=len, reverse=True)


def main() -> int:
    """Print the circles that are too large; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--most", type=int, default=3, help="files that a circle may have (default: 3)")
    parser.add_argument("crates", nargs="*", type=Path, help="folders of crates (default: all in crates/)")
    options = parser.parse_args()
    folders = options.crates or sorted(path for path in CRATES.iterdir() if (path / "src").is_dir())
    failed = False
    for folder in folders:
        for circle in circles(imports(folder / "src")):
            if len(circle) > options.most:
                failed = True
                print(f"{folder.name}: {len(circle)} files: {' '.join('::'.join(module) or 'lib' for module in circle)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
