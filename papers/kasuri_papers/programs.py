"""Programs that a figure runs as a GOAL trace, by the name in ``trace.program`` of its file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

#: Offsets of the neighbours of a block.
_NEIGHBOURS = ((1, 0), (-1, 0), (0, 1), (0, -1))


def stencil(*, side: int, iterations: int, flits: int, flit_bytes: int, periodic: bool) -> str:
    """Write a two-dimensional stencil of side x side blocks, block (x, y) on rank y side + x.

    In each iteration every rank sends one message of ``flits`` flits to each of its neighbours, once those of the iteration before have
    arrived and left. ``periodic`` joins the opposite edges.
    """
    ranks = [_stencil_rank(x, y, side, iterations, flits * flit_bytes, periodic) for y in range(side) for x in range(side)]
    return "\n".join([f"num_ranks {side * side}", *ranks]) + "\n"


def _stencil_rank(x: int, y: int, side: int, iterations: int, message: int, periodic: bool) -> str:
    others = []
    for right, up in _NEIGHBOURS:
        column, row = x + right, y + up
        if periodic or (0 <= column < side and 0 <= row < side):
            others.append((row % side) * side + column % side)
    lines = []
    for iteration in range(iterations):
        labels = [f"{what}{iteration}_{place}" for what in ("s", "r") for place in range(len(others))]
        for place, other in enumerate(others):
            # On a ring of two both neighbours are the same rank: the tag tells the messages apart by their direction.
            back = place ^ 1 if periodic else place
            tags = (f"tag {iteration * 4 + place}", f"tag {iteration * 4 + back}") if periodic else (f"tag {iteration}",) * 2
            lines.append(f"s{iteration}_{place}: send {message}b to {other} {tags[0]}")
            lines.append(f"r{iteration}_{place}: recv {message}b from {other} {tags[1]}")
            if iteration:
                before = [label.replace(str(iteration), str(iteration - 1), 1) for label in labels]
                lines += [f"s{iteration}_{place} requires {label}" for label in before]
    body = "\n".join(f"  {line}" for line in lines)
    return f"rank {y * side + x} {{\n{body}\n}}"


#: Writes a program as GOAL text from the keys of a figure's ``trace``.
PROGRAMS: Mapping[str, Callable[..., str]] = {"stencil": stencil}


def written(trace: Mapping[str, Any], flit_bytes: int) -> str:
    """Write the program that a figure's ``trace`` describes."""
    keys = {key: value for key, value in trace.items() if key != "program"}
    return PROGRAMS[trace["program"]](**keys, flit_bytes=flit_bytes)
