"""The rows of papers that cannot be run yet, with what each lacks: a mechanism, or its runs and judge."""

from __future__ import annotations

from kasuri_papers.figure import Figure, awaiting

PREDICTION_ROUTER: tuple[Figure, ...] = (
    awaiting(
        "000-S3",
        "S",
        "what hint bits cost on a link",
        "none: reduction over flit size with the time of the bits",
        "derived",
        "cycles of hint bits on a link",
    ),
    awaiting(
        "000-S4",
        "S",
        "the rivals of section 5: lookahead, speculation, one cycle, Express virtual channels, an oracle",
        "none: latency over load and saturation load of each",
        "derived",
        "Express virtual channels, and the rivals on one network",
    ),
)
CENJU4: tuple[Figure, ...] = (
    awaiting(
        "001-C11",
        "C",
        "packets of tasks that are not on the processor are received; the Sender tells when to switch",
        "all bytes right for each task; a switch only when the queue is empty and the last packet sent, at the cost of its "
        "interrupt; three tasks take longer than two by the switches",
        "structure",
        "runs with several tasks on a node, and their judge",
    ),
    awaiting(
        "001-C12",
        "C",
        "interrupts and page faults: with the help of the operating system the transfer goes on",
        "a parcel with a missing page arrives whole, later by the service; masked interrupts cost nothing, others their time",
        "structure",
        "runs with interrupts and missing pages, and their judge",
    ),
    awaiting(
        "001-C13",
        "C",
        "headers of multicast and synchronisation are registered by system call, and their offset then serves as number",
        "an unregistered offset is an error; registered, barriers D and E are unchanged, the first use later by 13 us and the "
        "write of the table",
        "structure",
        "runs with registration at first use, and their judge",
    ),
    awaiting(
        "001-S1",
        "S",
        "why B falls: meetings of rounds i and i + 1, as the paper supposes",
        "none: the loss inside rounds and between them, by cabling",
        "derived",
        "a barrier after each round of the N-to-N",
    ),
    awaiting(
        "001-S2",
        "S",
        "messages with shared memory, future work",
        "none: times of one problem by messages, by shared memory and by both",
        "derived",
        "messages and shared memory in one program",
    ),
    awaiting(
        "001-S3",
        "S",
        "a user's own program",
        "none: the times of two jobs on one machine, alone and together",
        "derived",
        "runs of two jobs on one machine, alone and together",
    ),
)
