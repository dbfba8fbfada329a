#!/usr/bin/env python3
"""Times `kasuri fabric` on dumps of large fat trees: the import of a fabric, and the answer for a job of all its hosts.

The trees have three levels (XGFT; d-mod-k tables). Without --hosts: an import of 100,352 hosts without tables, and a job of 4,096 ranks.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]


class Tree:
    """`down` hosts a leaf and as many leaves a pod, `pods` pods; a leaf has an uplink to each of the `down` switches of its pod."""

    def __init__(self, down: int, pods: int):
        self.down, self.pods = down, pods
        self.hosts, self.leaves, self.tops = down * down * pods, down * pods, down * down
        self.switches = 2 * self.leaves + self.tops

    def lid(self, switch: int) -> int:
        """Hosts have the LIDs from 1 on, switches those behind."""
        return 1 + self.hosts + switch

    def name(self, switch: int) -> str:
        """Leaves, then middle switches, then top switches."""
        level = 0 if switch < self.leaves else 1 if switch < 2 * self.leaves else 2
        return f"{('leaf', 'middle', 'top')[level]}{switch - level * self.leaves:05}"

    def links(self, switch: int) -> Iterator[tuple[int, str, int, str, int]]:
        """Port, id of the peer, its port, its name, its LID."""
        down, leaves = self.down, self.leaves

        def other(number: int, port: int, peer: int) -> tuple[int, str, int, str, int]:
            return port, f"S-{peer + (1 << 40):016x}", number, self.name(peer), self.lid(peer)

        if switch < leaves:
            for place in range(down):
                host = switch * down + place
                yield place + 1, f"H-{host + 1:016x}", 1, f"n{host:06} HCA-1", host + 1
            pod, place = divmod(switch, down)
            for up in range(down):
                yield other(place + 1, down + 1 + up, leaves + pod * down + up)
        elif switch < 2 * leaves:
            pod, place = divmod(switch - leaves, down)
            for leaf in range(down):
                yield other(down + 1 + place, leaf + 1, pod * down + leaf)
            for up in range(down):
                yield other(pod + 1, down + 1 + up, 2 * leaves + place * down + up)
        else:
            place, up = divmod(switch - 2 * leaves, down)
            for pod in range(self.pods):
                yield other(down + 1 + up, pod + 1, leaves + pod * down + place)

    def discovery(self, path: pathlib.Path) -> None:
        """What ibnetdiscover would print."""
        with path.open("w") as file:
            for switch in range(self.switches):
                links = list(self.links(switch))
                print(f"\nvendid=0x2c9\ndevid=0xd2f2\nswitchguid=0x{switch + (1 << 40):x}", file=file)
                head = f'Switch\t{len(links)} "S-{switch + (1 << 40):016x}"\t\t# "{self.name(switch)}"'
                print(f"{head} base port 0 lid {self.lid(switch)} lmc 0", file=file)
                for port, peer, there, name, lid in links:
                    print(f'[{port}]\t"{peer}"[{there}] \t\t# "{name}" lid {lid} 4xHDR', file=file)
            for host in range(self.hosts):
                leaf, place = divmod(host, self.down)
                print(f'\nvendid=0x2c9\ndevid=0x1021\ncaguid=0x{host + 1:x}\nCa\t1 "H-{host + 1:016x}"\t\t# "n{host:06} HCA-1"', file=file)
                peer = f'"S-{leaf + (1 << 40):016x}"[{place + 1}]\t\t# lid {host + 1} lmc 0 "{self.name(leaf)}" lid {self.lid(leaf)}'
                print(f"[1]({host + 1:x}) \t{peer} 4xHDR", file=file)

    def port(self, switch: int, host: int) -> int:
        """D-mod-k."""
        down, leaves = self.down, self.leaves
        if switch < leaves:
            return 1 + host % down if host // down == switch else down + 1 + host % down
        if switch < 2 * leaves:
            within = host // (down * down) == (switch - leaves) // down
            return (1 if within else down + 1) + host // down % down
        return 1 + host // (down * down)

    def tables(self, path: pathlib.Path) -> None:
        """What `ibroute -n` would print of each switch."""
        with path.open("w") as file:
            for switch in range(self.switches):
                which = f"switch Lid {self.lid(switch)} guid 0x{switch + (1 << 40):016x} ({self.name(switch)})"
                print(f"Unicast lids [0x0-0x{self.hosts:x}] of {which}:", file=file)
                file.write("".join(f"0x{host + 1:04x} {self.port(switch, host):03}\n" for host in range(self.hosts)))
                print(f"{self.hosts} valid lids dumped ", file=file)


def timed(command: list[str]) -> str:
    """Seconds and memory of a command."""
    before = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - before
    if status:
        sys.exit(f"{' '.join(command)}: status {status}\n{output}")
    return f"{seconds:6.2f} s, {usage.ru_utime + usage.ru_stime:6.2f} s of a processor, {usage.ru_maxrss / 1024:7.0f} MiB"


def main() -> None:
    """Write the dumps and time the commands."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kasuri", default=str(ROOT / ".venv/bin/kasuri"), help="the command")
    parser.add_argument("--import-tree", nargs=2, type=int, default=(32, 98), metavar=("DOWN", "PODS"), help="DOWN * DOWN * PODS hosts")
    parser.add_argument("--job-tree", nargs=2, type=int, default=(16, 16), metavar=("DOWN", "PODS"), help="the same of the job's fabric")
    arguments = parser.parse_args()
    kasuri = str(pathlib.Path(arguments.kasuri).resolve())
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        large, small = Tree(*arguments.import_tree), Tree(*arguments.job_tree)
        large.discovery(work / "large.txt")
        size = (work / "large.txt").stat().st_size / 2**20
        command = [kasuri, "fabric", "import", str(work / "large.txt"), "-o", str(work / "large.json")]
        print(f"import of {large.hosts} hosts, {large.switches} switches, {size:.0f} MiB: {timed(command)}")
        small.discovery(work / "small.txt")
        small.tables(work / "tables.txt")
        size = (work / "tables.txt").stat().st_size / 2**20
        command = [kasuri, "fabric", "import", str(work / "small.txt"), str(work / "tables.txt"), "-o", str(work / "small.json")]
        print(f"import of {small.hosts} hosts with tables of {small.switches} switches, {size:.0f} MiB: {timed(command)}")
        (work / "hosts.txt").write_text(f"n[000000-{small.hosts - 1:06}]\n")
        for name in ("alltoall", "allreduce"):
            command = [kasuri, "fabric", "job", str(work / "small.json"), "--hosts", str(work / "hosts.txt"), "--collective", name]
            print(f"job of {small.hosts} ranks, {name}: {timed(command)}")
        print(f"audit of {small.hosts} hosts: {timed([kasuri, 'fabric', 'audit', str(work / 'small.json')])}")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
