#!/usr/bin/env python3
"""Compares `kasuri fabric audit` with OpenSM's own tables, route by route, and with the verdicts of ibdmchk.

Every pair of adapters is walked here a second time, by a program that shares nothing with Kasuri. Without --reference the extract in
tests/data/ib is taken. Only the standard library is needed. Exit status: 0 all the same, 1 not.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import lzma
import pathlib
import re
import subprocess
import sys
import tempfile
from collections import Counter, deque
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[2]
Port = tuple[str, int]


def read(path: pathlib.Path) -> str:
    """The text of a file, unpacked."""
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opener(path, "rt") as file:
        return file.read()


def find(folder: pathlib.Path, name: str) -> pathlib.Path | None:
    """A file of this name, packed or not."""
    return next((path for end in ("", ".gz", ".xz") if (path := folder / (name + end)).exists()), None)


def natural(name: str) -> list[object]:
    """Digits within names are numbers."""
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split(r"(\d+)", name) if part]


@dataclass
class Fabric:
    """Nodes by their GUID (16 digits), cables, LIDs and tables."""

    names: dict[str, str] = field(default_factory=dict)
    switches: set[str] = field(default_factory=set)
    cable: dict[Port, Port] = field(default_factory=dict)
    lids: dict[str, range] = field(default_factory=dict)
    tables: dict[str, dict[int, int]] = field(default_factory=dict)

    def adapters(self) -> list[str]:
        """Those with a LID, in the order of their names."""
        return sorted((node for node in self.lids if node not in self.switches), key=lambda node: natural(self.names[node]))

    def home(self, adapter: str) -> str:
        """The switch of an adapter with one port."""
        return next(self.cable[end][0] for end in self.cable if end[0] == adapter)


def discovery(text: str) -> Fabric:
    """Either form of ibnetdiscover."""
    fabric = Fabric()
    node = ""
    for line in text.splitlines():
        if head := re.match(r'(Switch|Ca|Rt)\s+\d+ "[SHR]-([0-9a-f]+)"\s*# "(.*)"(.*)', line):
            node = head[2].zfill(16)
            fabric.names[node] = head[3]
            if head[1] == "Switch":
                fabric.switches.add(node)
        elif port := re.match(
            r'\[(\d+)\](?:\([0-9a-f]+\))?\s*"[SHR]-([0-9a-f]+)"\[(\d+)\](?:\([0-9a-f]+\))?\s*# (?:lid (\d+) lmc (\d+))?', line
        ):
            fabric.cable[node, int(port[1])] = (port[2].zfill(16), int(port[3]))
            if port[4] and int(port[4]):
                fabric.lids[node] = range(int(port[4]), int(port[4]) + 2 ** int(port[5]))
        elif flat := re.match(r"(CA|SW|RT)\s+(\d+)\s+(\d+) 0x([0-9a-f]+) \dx\s\w+ - \w+\s+\d+\s+(\d+) 0x([0-9a-f]+) \( '(.*?)' - '", line):
            node = flat[4]
            fabric.names[node] = flat[7]
            fabric.cable[node, int(flat[3])] = (flat[6], int(flat[5]))
            if flat[1] == "SW":
                fabric.switches.add(node)
            else:
                fabric.lids[node] = range(int(flat[2]), int(flat[2]) + 1)
    return fabric


def add_tables(fabric: Fabric, text: str) -> None:
    """The tables of dump_lfts, ibroute or opensm-lfts.dump."""
    table: dict[int, int] = {}
    for line in text.splitlines():
        if line.startswith("Unicast lids"):
            guid = re.search(r"guid 0x([0-9a-f]+)", line)
            table = fabric.tables.setdefault(guid[1].zfill(16), {}) if guid else {}
        elif row := re.match(r"0x([0-9a-f]+) (\d+)", line):
            table[int(row[1], 16)] = int(row[2])


def walk(fabric: Fabric, home: str, adapter: str, lid: int) -> list[Port] | None:
    """The ports by which a packet leaves switches, the last one to the adapter; nothing if it does not arrive."""
    path: list[Port] = []
    switch = home
    while len(path) <= len(fabric.switches):
        port = fabric.tables.get(switch, {}).get(lid)
        end = fabric.cable.get((switch, port)) if port is not None else None
        if end is None:
            return None
        path.append((switch, port))
        if end[0] == adapter:
            return path
        if end[0] not in fabric.switches:
            return None
        switch = end[0]
    return None


def has_cycle(edges: dict[Port, set[Port]]) -> bool:
    """Do the ports of a graph of what waits for what close a cycle?"""
    entering = Counter(end for ends in edges.values() for end in ends)
    free = deque(port for port in edges if not entering[port])
    seen = 0
    while free:
        seen += 1
        for end in edges.get(free.popleft(), ()):
            entering[end] -= 1
            if not entering[end]:
                free.append(end)
    return seen < len({*edges, *entering})


def expected(fabric: Fabric) -> dict[str, object]:
    """What an audit has to find."""
    adapters = fabric.adapters()
    homes = {adapter: fabric.home(adapter) for adapter in adapters}
    neighbours = {
        switch: {end[0] for (node, _), end in fabric.cable.items() if node == switch and end[0] in fabric.switches}
        for switch in fabric.switches
    }
    hops: Counter[int] = Counter()
    load: Counter[Port] = Counter()
    edges: dict[Port, set[Port]] = {}
    first: dict[tuple[str, str], list[Port]] = {}
    lost = pairs = detours = routes = 0
    for adapter in adapters:
        distance = {homes[adapter]: 0}
        queue = deque(distance)
        while queue:
            switch = queue.popleft()
            for end in neighbours[switch] - distance.keys():
                distance[end] = distance[switch] + 1
                queue.append(end)
        failing = set()
        for lid in fabric.lids[adapter]:
            for home in set(homes.values()):
                count = sum(source != adapter and homes[source] == home for source in adapters)
                path = walk(fabric, home, adapter, lid)
                routes += count
                if path is None:
                    lost += count
                    failing.add(home)
                    continue
                hops[len(path) - 1] += count
                detours += count * (len(path) - 1 > distance[home])
                if lid == fabric.lids[adapter][0]:
                    first[home, adapter] = path
                for place, port in enumerate(path[:-1] if count else []):
                    load[port] += count / len(fabric.lids[adapter])
                    edges.setdefault(port, set()).update(path[place + 1 : place + 2] if place + 2 < len(path) else [])
        pairs += sum(source != adapter and homes[source] in failing for source in adapters)
    shifts = []
    for shift in range(1, len(adapters)):
        on: Counter[Port] = Counter()
        for place, source in enumerate(adapters):
            on.update(first.get((homes[source], adapters[(place + shift) % len(adapters)]), [()])[:-1])
        shifts.append(max(on.values(), default=0))
    return {
        "switches": len(fabric.switches),
        "adapters": len(adapters),
        "cables": sum(end[0] in fabric.switches for (node, _), end in fabric.cable.items() if node in fabric.switches) // 2,
        "routes": routes,
        "unreachable": lost,
        "unreachable_pairs": pairs,
        "hops": {str(number): count for number, count in sorted(hops.items()) if count},
        "not_minimal": detours,
        "credit_loops": has_cycle(edges),
        "uniform": round(max(load.values(), default=0), 6),
        "shift_max": max(shifts, default=0),
        "shift_mean": round(sum(shifts) / max(len(shifts), 1), 6),
    }


def shown(audit: dict) -> dict[str, object]:
    """The same of what an audit found."""
    routes = audit["tables"]
    return {
        **{key: audit[key] for key in ("switches", "adapters", "cables")},
        **{key: routes[key] for key in ("routes", "unreachable", "unreachable_pairs", "not_minimal", "credit_loops")},
        "hops": {number: count for number, count in routes["hops"].items() if count},
        "uniform": round(routes["uniform"]["max"], 6),
        "shift_max": routes["shift"]["max"],
        "shift_mean": round(routes["shift"]["mean_of_max"], 6),
    }


class Comparison:
    """The command, and a folder for what it has to read unpacked."""

    def __init__(self, kasuri: str, work: pathlib.Path):
        self.kasuri, self.work = kasuri, work
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def unpacked(self, path: pathlib.Path) -> pathlib.Path:
        """The command reads gzip, but no xz."""
        if path.suffix != ".xz":
            return path
        plain = self.work / path.stem
        plain.write_text(read(path))
        return plain

    def audit(self, *files: pathlib.Path) -> dict | str:
        """What an audit found, or why there is none."""
        command = [self.kasuri, "fabric", "audit", "--format", "json", "--all-adapters", *map(str, files)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        # 1 says that routes do not arrive.
        return json.loads(done.stdout) if done.returncode in (0, 1) and done.stdout else f"status {done.returncode}: {done.stderr.strip()}"

    def check(self, kind: str, name: str, found: object, right: object) -> None:
        """Count one comparison."""
        self.counts[kind] += 1
        self.counts[f"{kind} the same"] += found == right
        if found != right:
            self.wrong.append(f"{kind}, {name}: {found}, not {right}")

    def case(self, folder: pathlib.Path, verdicts: dict[tuple[str, str], dict[str, str]]) -> None:
        """One fabric under one routing engine."""
        name = f"{folder.parent.name}/{folder.name}"
        nodes, tables = find(folder, "ibnetdiscover.txt"), find(folder, "opensm-lfts.dump")
        if nodes is None or tables is None:
            return
        fabric = discovery(read(nodes))
        add_tables(fabric, read(tables))
        right = expected(fabric)
        files = [nodes, self.unpacked(tables)]
        audit = self.audit(*files)
        found = audit if isinstance(audit, str) else shown(audit)
        self.check("tables walked", name, found, right)
        self.counts["routes walked"] += right["routes"]
        if isinstance(audit, str):
            return
        verdict = verdicts.get((folder.parent.name, folder.name))
        if verdict and verdict["verdict"].startswith(("credit loops", "no credit loops")):
            self.check("verdicts of ibdmchk", name, audit["tables"]["credit_loops"], verdict["verdict"].startswith("credit"))
            self.check("pairs of ibdmchk", name, audit["tables"]["routes"], int(verdict["ca_ca_paths"]))
        if lanes := find(folder, "opensm-sl2vl.dump"):
            # All packets on service level 0. Where that is mapped to one lane everywhere the answer is that of the tables alone.
            with_lanes = self.audit(*files, self.unpacked(lanes))
            if isinstance(with_lanes, dict) and with_lanes["tables"]["virtual_lanes"] == 1:
                self.check("service level 0", name, shown(with_lanes), right)
            else:
                self.check("lanes without a cycle", name, isinstance(with_lanes, dict) and with_lanes["tables"]["credit_loops"], False)
        if distances := find(folder, "opensm.fdbs"):
            self.check(
                "hops of opensm.fdbs",
                name,
                sum(int(number) * count for number, count in right["hops"].items()),
                self.sum_hops(fabric, read(distances)),
            )
        if dump := find(folder, "dump_fts.txt"):
            # rdma-core 44 leaves the greatest LID out where it is a multiple of 64: then these tables have holes that OpenSM's have not.
            same = discovery(read(nodes))
            add_tables(same, read(dump))
            other = self.audit(nodes, self.unpacked(dump))
            self.check("dumps of dump_fts", name, other if isinstance(other, str) else shown(other), expected(same))

    @staticmethod
    def sum_hops(fabric: Fabric, text: str) -> int:
        """Cables between switches from each adapter's switch to each other adapter, as OpenSM counts them: it counts the last one, too."""
        hops: dict[tuple[str, int], int] = {}
        switch = ""
        for line in text.splitlines():
            if head := re.search(r"dump_ucast_routes: Switch 0x([0-9a-f]+)", line):
                switch = head[1]
            elif row := re.match(r"0x([0-9A-F]+)\s*: (\d+)\s*: (\d+)", line):
                hops[switch, int(row[1], 16)] = int(row[3]) - 1
        adapters = fabric.adapters()
        homes = {adapter: fabric.home(adapter) for adapter in adapters}
        return sum(hops[homes[source], fabric.lids[to][0]] for source in adapters for to in adapters if source != to)

    def cluster(self, folder: pathlib.Path) -> None:
        """The dumps of a real cluster: ibnetdiscover -p, and a table of ibroute for each switch, all of which end early."""
        nodes, tables = find(folder, "ibnetdiscover-p.txt"), find(folder, "ibroutes.txt")
        routes = [tables] if tables else sorted((folder / "ibroutes").iterdir())
        fabric = discovery(read(nodes))
        for path in routes:
            add_tables(fabric, read(path))
        right = expected(fabric)
        audit = self.audit(nodes, *routes)
        self.check("tables walked", folder.name, audit if isinstance(audit, str) else shown(audit), right)
        self.counts["routes walked"] += right["routes"]
        lost = f"{right['unreachable']} of {right['routes']} routes do not arrive"
        print(f"{folder.name}: {right['adapters']} adapters, {right['switches']} switches, {lost}")


def main() -> int:
    """Compare, print the counts and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kasuri", default=str(ROOT / ".venv/bin/kasuri"), help="the command")
    parser.add_argument("--reference", type=pathlib.Path, help="a folder with ib/ and fabrics/ [default: the extract in tests/data/ib]")
    arguments = parser.parse_args()
    given = arguments.reference and next(
        (path for path in (arguments.reference / "ib", arguments.reference) if (path / "ibdmchk.csv").exists()), None
    )
    folder = given or ROOT / "tests/data/ib"
    print(f"fabrics of {folder}")
    with (folder / "ibdmchk.csv").open(newline="") as file:
        verdicts = {(row["case"], row["engine"]): row for row in csv.DictReader(file)}
    with tempfile.TemporaryDirectory() as work:
        comparison = Comparison(str(pathlib.Path(arguments.kasuri).resolve()), pathlib.Path(work))
        for path in sorted(folder.glob("*/*")):
            if path.is_dir():
                comparison.case(path, verdicts)
        for cluster in (folder / "avakas", folder.parent / "fabrics" / "avakas"):
            if cluster.is_dir():
                comparison.cluster(cluster)
    for kind in sorted(kind for kind in comparison.counts if not kind.endswith(" the same") and kind != "routes walked"):
        print(f"{kind:30} {comparison.counts[f'{kind} the same']:5} of {comparison.counts[kind]:5} the same")
    print(f"{comparison.counts['routes walked']} routes walked")
    for problem in comparison.wrong[:20]:
        print(f"    {problem}")
    return 1 if comparison.wrong or not comparison.counts["tables walked"] else 0


if __name__ == "__main__":
    sys.exit(main())
