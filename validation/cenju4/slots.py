#!/usr/bin/env python3
"""Which network does the study of the Cenju-4's figure 9 have? An all-gather of 32 nodes in slots.

A model of its own, without anything of Kasuri's engines: in each slot a packet crosses each link whose next queue has room at the slot's
beginning; each output takes its inputs by turns; each node has some header registers and sends a packet of the first in them whose queue
has room. `slots.csv` has the utilisation of the last links that an independent program gave when the study was set up: nodes start
together, so that nothing is random and each digit tells. The network, the registers and the queues that give the same are printed with
those that do not.

Only the standard library is needed. Exit status: 0 if a network of three stages and four registers gives every figure, and nothing else
that is tried does; 1 otherwise.
"""

from __future__ import annotations

import csv
import itertools
import pathlib
import sys
from collections import deque
from dataclasses import dataclass

NODES = 32
RADIX = 4
RECORDED = pathlib.Path(__file__).parent / "slots.csv"


@dataclass(frozen=True)
class Machine:
    """The stages of the omega network whose first lines the nodes have, and the header registers of a node."""

    stages: int
    registers: int

    def way(self, source: int, destination: int) -> list[tuple[int, int, int, int]]:
        """The queues that a packet crosses: stage, switch, input, output."""
        lines = RADIX**self.stages
        line, way = source, []
        for stage in range(self.stages):
            line = line * RADIX % lines + line * RADIX // lines
            switch, entry = divmod(line, RADIX)
            output = destination // RADIX ** (self.stages - 1 - stage) % RADIX
            way.append((stage, switch, entry, output))
            line = switch * RADIX + output
        return way


def destinations(schedule: str, node: int) -> list[int]:
    """To whom a node sends, one after the other; to itself, too. A: to 0, 1, ...; B: to the next node, the one after it, ..."""
    return [(node + 1 + step) % NODES if schedule == "B" else step for step in range(NODES)]


def utilisation(machine: Machine, schedule: str, capacity: int, packets: int) -> float:
    """The part of the slots in which a last link carries something, all nodes starting together; queues hold `capacity` packets."""
    if schedule == "C":  # Every node's multicast is the only one on its way at a time.
        return NODES * packets / (NODES * packets + machine.stages)
    ways = {pair: machine.way(*pair) for pair in itertools.product(range(NODES), repeat=2)}
    queues: dict[tuple[int, int, int, int], deque] = {queue: deque() for way in ways.values() for queue in way}
    outputs = sorted({(stage, switch, output) for stage, switch, _, output in queues})
    turn = dict.fromkeys(outputs, 0)
    to_send = [deque([destination, packets] for destination in destinations(schedule, node)) for node in range(NODES)]
    registers: list[list] = [[] for _ in range(NODES)]
    missing, slots = NODES * NODES * packets, 0
    while missing:
        full = {queue for queue, held in queues.items() if len(held) >= capacity}
        moves = []
        for output in outputs:
            stage, switch, port = output
            for entry in ((turn[output] + step) % RADIX for step in range(RADIX)):
                held = queues.get((stage, switch, entry, port))
                if not held:
                    continue
                following = ways[held[0]][stage + 1] if stage + 1 < machine.stages else None
                if following not in full:
                    packet = held.popleft()
                    missing -= following is None
                    if following:
                        moves.append((following, packet))
                    turn[output] = (entry + 1) % RADIX
                    break
        for node in range(NODES):
            while to_send[node] and len(registers[node]) < machine.registers:
                registers[node].append(to_send[node].popleft())
            for parcel in registers[node]:
                first = ways[node, parcel[0]][0]
                if first not in full:
                    moves.append((first, (node, parcel[0])))
                    parcel[1] -= 1
                    if not parcel[1]:
                        registers[node].remove(parcel)
                    break
        for queue, packet in moves:
            queues[queue].append(packet)
        slots += 1
    return NODES * packets / slots


def recorded() -> list[tuple[str, int, int, str]]:
    """Schedule, queue capacity in packets, packets of a message, and the utilisation with two digits."""
    with RECORDED.open() as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return [(row["schedule"], int(row["capacity"]), int(row["packets"]), row["utilisation"]) for row in rows]


def differences(machine: Machine) -> list[tuple[str, int, int, str, str]]:
    """The recorded figures that a machine does not give, and what it gives."""
    rows = ((row, f"{utilisation(machine, *row[:3]):.2f}") for row in recorded())
    return [(*row, found) for row, found in rows if found != row[3]]


def main() -> int:
    """Prints what each machine gives."""
    ok = True
    for machine in (Machine(stages, registers) for stages in (3, 4) for registers in (1, 2, 4)):
        differ = differences(machine)
        ok &= (not differ) == (machine == Machine(3, 4))
        print(f"{machine.stages} stages, {machine.registers} registers: {len(recorded()) - len(differ)} of {len(recorded())} figures")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
