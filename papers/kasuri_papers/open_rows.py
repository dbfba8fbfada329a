"""The rows of papers that cannot be run yet, with what each lacks: a mechanism, or its runs and judge."""

from __future__ import annotations

from kasuri_papers.figure import Figure, awaiting

CENJU4: tuple[Figure, ...] = (
    awaiting(
        "001-S2",
        "S",
        "messages with shared memory, future work",
        "none: times of one problem by messages, by shared memory and by both",
        "derived",
        "messages and shared memory in one program",
    ),
)
