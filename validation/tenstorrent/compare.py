#!/usr/bin/env python3
"""Compares imported mesh graph descriptors with machines of Tenstorrent's chips: their tests, measured bandwidths and latencies.

By default the extract in tests/data/tenstorrent; with --reference all rows of a folder. What must hold: README.md beside this file.
Only the standard library is needed. Exit status: 0 what must hold holds, 1 not.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
from collections import Counter, deque
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data/tenstorrent"
# A prediction is met within this part of what was measured.
CLOSE = 0.10
# Of the latencies the rows of lines are fitted, those of rings and meshes predicted.
FITTED = "Linear"
KINDS = {"NOC_UNICAST_WRITE": "write", "NOC_UNICAST_SCATTER_WRITE": "scatter", "NOC_FUSED_UNICAST_ATOMIC_INC": "fused"}
Pair = tuple[int, int]


def table(path: pathlib.Path) -> list[dict[str, str]]:
    """The rows of a table, none if there is no such file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# --- descriptors ------------------------------------------------------------------------------------------------------------------


@dataclass
class Grid:
    """A mesh: chips a dimension, whether each is a ring, parallel links."""

    dims: list[int]
    rings: list[bool]
    links: int

    def chips(self) -> int:
        """How many."""
        return math.prod(self.dims)

    def neighbours(self) -> Counter[Pair]:
        """Pairs of neighbours, the lower one first, and the links between them."""
        found: Counter[Pair] = Counter()
        below = self.chips()
        for count, ring in zip(self.dims, self.rings, strict=True):
            below //= count
            for chip in range(self.chips()):
                at = chip // below % count
                if at + 1 < count:
                    found[chip, chip + below] += self.links
                elif ring and count > 2:
                    found[chip - at * below, chip] += self.links
        return found


@dataclass
class Descriptor:
    """What a descriptor builds, read by a program that shares nothing with Kasuri."""

    meshes: dict[int, Grid] = field(default_factory=dict)
    joins: list[tuple[int, int, int]] = field(default_factory=list)


def bodies(text: str, name: str) -> list[str]:
    """What stands in the braces after each occurrence of a name."""
    found = []
    for match in re.finditer(rf"\b{name}\s*:?\s*{{", text):
        depth, end = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        found.append(text[match.end() : end - 1])
    return found


def number(text: str, name: str) -> int:
    """The number of a field."""
    return int(re.search(rf"\b{name}\s*:\s*(\d+)", text)[1])


def descriptor(text: str) -> Descriptor:
    """Reads a descriptor in text of Protocol Buffers."""
    text = re.sub(r"#.*", "", text)
    kinds = {}
    for body in bodies(text, "mesh_descriptors"):
        devices = bodies(body, "device_topology")[0]
        dims = [int(word) for word in re.findall(r"\d+", re.search(r"\bdims\s*:\s*\[([^]]*)\]", devices)[1])]
        types = re.search(r"\bdim_types\s*:\s*\[([^]]*)\]", devices)
        rings = [word == "RING" for word in re.findall(r"\w+", types[1])] if types else [False] * len(dims)
        kinds[re.search(r'name\s*:\s*"([^"]*)"', body)[1]] = Grid(dims, rings, number(bodies(body, "channels")[0], "count"))
    mesh = re.compile(r'mesh_descriptor\s*:\s*"([^"]*)"\s*,?\s*mesh_id\s*:\s*(\d+)')
    found = Descriptor()
    top = bodies(text, "top_level_instance")[0]
    graphs = bodies(text, "graph_descriptors") if "graph" in top else []
    for body in graphs:
        found.meshes |= {int(id): kinds[name] for instance in bodies(body, "instances") for name, id in mesh.findall(instance)}
        for layout in bodies(body, "graph_topology"):
            count = number(bodies(layout, "channels")[0], "count")
            found.joins += [(one, other, count) for one in found.meshes for other in found.meshes if one < other]
        for connection in bodies(body, "connections"):
            (_, one), (_, other) = mesh.findall(connection)
            found.joins.append((int(one), int(other), number(bodies(connection, "channels")[0], "count")))
    if not graphs:
        name, id = mesh.search(top).groups()
        found.meshes[int(id)] = kinds[name]
    return found


def hops(grid: Grid) -> Counter[int]:
    """Ordered pairs of chips by their distance."""
    near: dict[int, list[int]] = {chip: [] for chip in range(grid.chips())}
    for one, other in grid.neighbours():
        near[one].append(other)
        near[other].append(one)
    found: Counter[int] = Counter()
    for start in near:
        distance, queue = {start: 0}, deque([start])
        while queue:
            chip = queue.popleft()
            for end in near[chip]:
                if end not in distance:
                    distance[end] = distance[chip] + 1
                    queue.append(end)
        found.update(distance.values())
    found.pop(0)
    return found


# --- traffic ----------------------------------------------------------------------------------------------------------------------


def steps(path: list[int]) -> list[Pair]:
    """A packet that each chip on its path keeps a copy of and forwards: a pair for each link."""
    return list(zip(path, path[1:], strict=False))


def lines(rows: int, columns: int) -> list[list[int]]:
    """The lines of a grid."""
    across = [[row * columns + column for column in range(columns)] for row in range(rows)]
    return [line for line in across + [list(line) for line in zip(*across, strict=True)] if len(line) > 1]


def perimeter(rows: int, columns: int) -> list[int]:
    """The ring of all chips of a grid of two rows."""
    return [*range(columns), *range(rows * columns - 1, columns - 1, -1)]


def tree(rows: int, columns: int, source: int) -> list[Pair]:
    """A multicast to all of a mesh: along the column, and from each of its chips along the rows."""
    row, column = divmod(source, columns)
    found = []
    for to in (range(row, rows), range(row, -1, -1)):
        found += steps([at * columns + column for at in to])
    for at in range(rows):
        for to in (range(column, columns), range(column, -1, -1)):
            found += steps([at * columns + other for other in to])
    return found


@dataclass
class Stream:
    """Packets of one sender: the links that they take, whether each chip on their path keeps a copy, and whether the fabric chose it."""

    source: int
    links: list[Pair]
    copies: bool = False
    is_routed: bool = False


def dimension_order(columns: int, chip: int) -> list[Pair]:
    """From the first chip along its column, then along the row."""
    row, column = divmod(chip, columns)
    return steps([at * columns for at in range(row + 1)]) + steps([row * columns + at for at in range(column + 1)])


def streams(test: str, rows: int, columns: int) -> list[Stream] | None:
    """Who sends to whom in a test, as this comparison reads its name; nothing of tests that are not known."""
    chips = range(rows * columns)
    ring = perimeter(rows, columns) if rows == 2 else []
    turned = [ring[place:] + ring[:place] for place in range(len(ring))]
    along = lines(rows, columns)
    both = [(line[place:], line[place::-1]) for line in along for place in range(len(line))]

    def copied(paths: list[list[int]]) -> list[Stream]:
        return [Stream(path[0], steps(path), copies=True) for path in paths if len(path) > 1]

    if test == "LinearMulticast":
        return copied([path for ways in both for path in ways])
    if test == "UnidirLinearMulticast":
        # Only the way that has more chips on it.
        return copied([max(ways, key=len) for ways in both])
    if test == "SingleSenderLinearUnicastAllDevices":
        lengths = ((line, length) for line in along if line[0] == 0 for length in range(2, len(line) + 1))
        return [Stream(0, steps(line[:length]), is_routed=True) for line, length in lengths]
    if test == "SingleSenderMeshUnicastAllDevices":
        return [Stream(0, dimension_order(columns, chip), is_routed=True) for chip in chips[1:]]
    if test.startswith("FullRing") and ring:
        # One way round to the last chip, by a copy for each chip or by packets for that one.
        return [Stream(path[0], steps(path), copies="Multicast" in test) for path in turned]
    if test == "HalfRingMulticast" and ring:
        half = len(ring) // 2
        return copied([path[: half + 1] for path in turned] + [path[:1] + path[:half:-1] for path in turned])
    if test in ("MeshMulticast", "MeshMulticastDynamic"):
        return [Stream(chip, tree(rows, columns, chip), copies=True) for chip in chips]
    if test == "NeighborExchangeUnicast":
        return [Stream(pair[0], [pair]) for line in along for pair in steps(line) + steps(line[::-1])]
    return None


def pairs(sent: list[Stream]) -> list[Pair]:
    """The ends of packets for which the fabric finds the path, and those of each link of the others."""
    ends = ([(stream.source, stream.links[-1][1])] if stream.is_routed else stream.links for stream in sent)
    return [pair for some in ends for pair in some]


# --- stages -----------------------------------------------------------------------------------------------------------------------

#: What a packet goes through: its sender, a router that passes it on, one that keeps a copy and passes it on.
SENDER, PASSES, COPIES = STAGES = ("sender", "passing on", "copying")


def work(sent: list[Stream]) -> dict[str, int]:
    """By stage: the packets of the busiest sender and router.

    What comes to a router that copies counts as copied, and what comes to one that only keeps is no stage.
    """
    senders: Counter[int] = Counter()
    come: Counter[Pair] = Counter()
    passed: Counter[Pair] = Counter()
    copied: Counter[Pair] = Counter()
    for stream in sent:
        starts = {start for start, _ in stream.links}
        senders[stream.source] += sum(start == stream.source for start, _ in stream.links)
        for link in stream.links:
            come[link] += 1
            if link[1] in starts:
                (copied if stream.copies else passed)[link] += 1
    return {
        SENDER: max(senders.values()),
        PASSES: max(passed.values(), default=0),
        COPIES: max((come[link] for link in copied), default=0),
    }


def slowest(of: dict[str, int]) -> str:
    """The stage by which a test is expected to be held up: copying is the most work, and else what most packets go through."""
    if of[COPIES]:
        return COPIES
    return PASSES if of[PASSES] > of[SENDER] else SENDER


# --- constants --------------------------------------------------------------------------------------------------------------------


def fit_latency(rows: list[dict[str, str]]) -> tuple[float, float] | None:
    """Time of a hop without payload (ns), and bytes that a link carries a ns: the line of least squares of relative deviations."""
    points = [(float(row["payload_size"]), float(row["per_hop_avg_ns"])) for row in rows]
    if len({size for size, _ in points}) < 2:
        return None
    weights = [1 / time**2 for _, time in points]
    total = sum(weights)
    size = sum(weight * size for weight, (size, _) in zip(weights, points, strict=True)) / total
    time = sum(weight * time for weight, (_, time) in zip(weights, points, strict=True)) / total
    over = sum(weight * (at - size) * (value - time) for weight, (at, value) in zip(weights, points, strict=True))
    slope = over / sum(weight * (at - size) ** 2 for weight, (at, _) in zip(weights, points, strict=True))
    return time - slope * size, 1 / slope


def fit_stages(tests: dict[str, dict[str, int]], rows: list[dict[str, str]]) -> dict[str, float]:
    """Time of a packet (ns) in each stage that holds one of these tests up: the geometric mean over its rows."""
    times: dict[str, list[float]] = {}
    for row in rows:
        of = tests[row["test_name"]]
        stage = slowest(of)
        times.setdefault(stage, []).append(time_of(row) / of[stage])
    return {stage: math.exp(sum(map(math.log, found)) / len(found)) for stage, found in times.items()}


def time_of(row: dict[str, str]) -> float:
    """Time in which every sender of a test has sent one packet more (ns)."""
    on_link = float(row["packet_size"]) / float(row["avg_bandwidth_gb_per_s"])
    return on_link * float(row["derived_streams_on_busiest_link"])


def chip_of(row: dict[str, str]) -> str:
    """The generation of chips of a row."""
    return "Wormhole" if "wormhole" in row["source"] else "Blackhole"


def machine_of(row: dict[str, str]) -> str:
    """The machine of a row."""
    return re.sub(r"^golden_(bandwidth_summary|latency)_|\.csv$", "", row["source"])


def descriptor_of(folder: pathlib.Path, row: dict[str, str]) -> pathlib.Path | None:
    """The descriptor of the machine of a bandwidth; nothing of machines whose tests are not known here."""
    machine = re.search(r"p150_x8|p150_x4|p300", row["source"])
    known = machine and row["derived_streams_on_busiest_link"]
    return folder / f"mesh_graph_descriptors/{machine[0]}_mesh_graph_descriptor.textproto" if known else None


def streams_of(path: pathlib.Path, test: str) -> list[Stream] | None:
    """Who sends to whom in a test on the only mesh of a descriptor."""
    (grid,) = descriptor(path.read_text()).meshes.values()
    return streams(test, *grid.dims)


class Comparison:
    """A folder of tables and descriptors, and the command."""

    def __init__(self, kasuri: str, folder: pathlib.Path, work: pathlib.Path) -> None:
        self.kasuri, self.folder, self.work = kasuri, folder, work

    def audit(self, path: pathlib.Path, *more: str) -> dict:
        """What an audit of a descriptor found."""
        command = [self.kasuri, "fabric", "audit", "--format", "json", *more, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def of_pairs(self, path: pathlib.Path, lines: list[str], *more: str) -> dict:
        """What the routes of these pairs do."""
        file = self.work / "pairs.txt"
        file.write_text("".join(f"{line}\n" for line in lines))
        return self.audit(path, "--pairs", str(file), *more)["pairs"]

    def descriptors(self) -> bool:
        """Counts and distances of each descriptor."""
        right = 0
        paths = sorted((self.folder / "mesh_graph_descriptors").glob("*.textproto"))
        for path in paths:
            wanted = descriptor(path.read_text())
            joins = [option for one, other, count in wanted.joins for option in ("--join", f"{one}:0={other}:0*{count}")]
            found = self.audit(path, *joins)
            grids = wanted.meshes.values()
            counts = (
                sum(grid.chips() for grid in grids),
                sum(sum(grid.neighbours().values()) for grid in grids) + sum(count for *_, count in wanted.joins),
            )
            same = counts == (found["other_routers"], sum(found["rates"].values())) and found["switches"] == 0
            if len(wanted.meshes) == 1:
                (grid,) = grids
                distances = {str(distance): count * grid.links for distance, count in hops(grid).items()}
                same &= distances == {distance: count for distance, count in found["tables"]["hops"].items() if count}
                same &= found["tables"]["unreachable"] == found["tables"]["not_minimal"] == 0
            right += same
            if not same:
                print(f"    NOT {path.name}: {found['other_routers']} chips, {sum(found['rates'].values())} links; {counts} by its text")
        for path in sorted((self.folder / "mesh_graph_descriptors").glob("*.yaml")):
            newer = path.with_suffix(".textproto")
            if newer.exists():
                paths.append(path)
                old, new = (self.audit(one) for one in (path, newer))
                same = old["other_routers"] == new["other_routers"] and old["tables"]["mean_hops"] == new["tables"]["mean_hops"]
                right += same
        print(f"descriptors: {right} of {len(paths)} have the chips, links and distances that their text says")
        return right == len(paths)

    def cycles(self) -> bool:
        """The cycle of channels, and the twin without one."""
        text = (self.folder / "tests/test_4x4_cycles.yaml").read_text()
        right = True
        # The chips round the cycle, by upstream's comment.
        ends = [tuple(map(int, pair)) for pair in re.findall(r"\[(\d+), (\d+)\]", re.search(r"# .*expected cycles from(.*)", text)[1])]
        text = re.sub(r"#.*", "", text)
        for part in text.split("- name: ")[1:]:
            name = part.split()[0]
            chips = [f"{mesh}:{chip}" for mesh, chip in re.findall(r"device: \[(\d+), (\d+)\]", part)]
            flows = [f"{one} {other}" for one, other in zip(chips[::2], chips[1::2], strict=True)]
            joins = ("--join", "0:12=1:0", "--join", "1:3=0:15")
            found = self.of_pairs(DATA / "two_meshes_4x4.textproto", flows, *joins)
            cycle = [tuple(re.match(r"(\d+:\d+) port \d+ -> (\d+:\d+) port", cable).groups()) for cable in found["cycle"]]
            if name == "UnicastHasCycle":
                places = [f"{mesh}:{chip}" for mesh, chip in ends]
                wanted = set(zip(places, places[1:] + places[:1], strict=True))
            else:
                wanted = set()
            same = set(cycle) == wanted and found["unreachable"] == 0
            shown = " ".join(one for one, _ in cycle) or "no cycle"
            print(f"{name}: {len(flows)} flows, {shown}{'' if same else ': NOT what upstream says'}")
            right &= same
        return right

    def streams(self, rows: list[dict[str, str]]) -> bool:
        """How many senders share the busiest link of each test."""
        right = known = 0
        for row in rows:
            path = descriptor_of(self.folder, row)
            if path is None:
                continue
            sent = streams_of(path, row["test_name"])
            if sent is None:
                print(f"    {row['test_name']}: not a test that is known here")
                continue
            found = self.of_pairs(path, [f"0:{one} 0:{other}" for one, other in pairs(sent)])["loads"]["max"]
            known += 1
            right += found == float(row["derived_streams_on_busiest_link"])
            if found != float(row["derived_streams_on_busiest_link"]):
                wanted = row["derived_streams_on_busiest_link"]
                print(f"    NOT {machine_of(row)} {row['test_name']}: {found:g} senders share the busiest link; measured {wanted}")
        print(f"senders that share the busiest link: the same in {right} of {known} rows of bandwidth")
        return right == known


def groups(rows: list[dict[str, str]], key) -> dict[tuple[str, ...], list[dict[str, str]]]:
    """Rows by what a function says of them, in their order."""
    found: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


class Predictions:
    """A table of what was measured and predicted."""

    def __init__(self, what: str) -> None:
        self.what, self.met, self.rows, self.fitted, self.largest = what, 0, 0, 0, 0.0
        heads = f"{'machine':36}{'test':36}{'kind':9}{'bytes':>6}{'measured':>10}{'predicted':>11}{'deviation':>12}"
        print(f"{what}\n{heads}")

    def row(self, row: dict[str, str], size: float, measured: float, predicted: float | None) -> None:
        """One row that was not fitted."""
        self.rows += 1
        start = f"{machine_of(row):36}{row['test_name']:36}{KINDS[row['ntype']]:9}{size:6.0f}{measured:10.2f}"
        if predicted is None:
            print(f"{start}  nothing to fit on")
            return
        off = predicted / measured - 1
        self.met += abs(off) <= CLOSE
        self.largest = max(self.largest, abs(off))
        print(f"{start}{predicted:11.2f}{100 * off:+10.1f} %{'' if abs(off) <= CLOSE else '  NOT met'}")

    def end(self) -> None:
        """The counts."""
        print(
            f"{self.what}: {self.met} of {self.rows} predicted rows within {100 * CLOSE:.0f} %, all within "
            f"{100 * self.largest:.0f} %; {self.fitted} rows were fitted\n"
        )


def predict_latency(rows: list[dict[str, str]]) -> None:
    """Fits two constants for each generation of chips and kind of packet on the rows of lines, and predicts rings and meshes."""
    shown = Predictions("latency of a hop, ns: fitted on lines")
    for (chip, kind), these in groups(rows, lambda row: (chip_of(row), row["ntype"])).items():
        fitted = [row for row in these if row["topology"] == FITTED]
        shown.fitted += len(fitted)
        found = fit_latency(fitted)
        if found:
            print(f"  {chip}, {KINDS[kind]}: {found[0]:.1f} ns a hop, {found[1]:.2f} GB/s a link")
        for row in these:
            if row["topology"] != FITTED:
                size = float(row["payload_size"])
                shown.row(row, size, float(row["per_hop_avg_ns"]), found and found[0] + size / found[1])
    shown.end()


def predict_bandwidth(folder: pathlib.Path, rows: list[dict[str, str]]) -> None:
    """Fits a packet's time in its sender, in a router that passes it on and in one that copies it, and predicts the other tests.

    These are three constants for each machine and kind of packet. Of the tests that the same stage holds up the first, third, ... are
    fitted, so that no row of a fitted test is predicted.
    """
    shown = Predictions("bandwidth, GB/s: fitted on every second test of each stage")
    for (machine, kind), all_of_kind in groups(rows, lambda row: (machine_of(row), row["ntype"])).items():
        these = [row for row in all_of_kind if descriptor_of(folder, row)]
        sent = {row["test_name"]: streams_of(descriptor_of(folder, row), row["test_name"]) for row in these}
        tests = {test: work(found) for test, found in sent.items() if found is not None}
        by_stage = {stage: [test for test, of in tests.items() if slowest(of) == stage] for stage in STAGES}
        fitted = {test for of_stage in by_stage.values() for test in of_stage[::2]}
        times = fit_stages(tests, [row for row in these if row["test_name"] in fitted])
        told = ", ".join(f"{stage} {time:.1f} ns" for stage, time in times.items()) or "its tests or its machine are not known here"
        print(f"  {machine}, {KINDS[kind]}: {told}{', from ' if fitted else ''}{', '.join(sorted(fitted))}")
        for row in these:
            if row["test_name"] in fitted:
                shown.fitted += 1
            elif row["test_name"] in tests:
                of = tests[row["test_name"]]
                slow = max(times[stage] * of[stage] for stage in times)
                size = float(row["packet_size"])
                predicted = size * float(row["derived_streams_on_busiest_link"]) / slow
                shown.row(row, size, float(row["avg_bandwidth_gb_per_s"]), predicted)
    shown.end()


def main() -> int:
    """Compare, print the tables and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kasuri", default=str(ROOT / ".venv/bin/kasuri"), help="the command")
    parser.add_argument("--reference", type=pathlib.Path, help="a folder with all rows [default: the extract in tests/data/tenstorrent]")
    arguments = parser.parse_args()
    folder = (arguments.reference or DATA).resolve()
    folder = folder / "tenstorrent" if (folder / "tenstorrent").is_dir() else folder
    if not (folder / "latency.csv").exists():
        print(f"no tables of Tenstorrent's machines in {folder}; taking the extract")
        folder = DATA
    print(f"rows of {folder}")
    latency, bandwidth = table(folder / "latency.csv"), table(folder / "bandwidth.csv")
    with tempfile.TemporaryDirectory() as work:
        comparison = Comparison(str(pathlib.Path(arguments.kasuri).resolve()), folder, pathlib.Path(work))
        results = [comparison.descriptors(), comparison.cycles(), comparison.streams(bandwidth)]
    predict_latency(latency)
    predict_bandwidth(folder, bandwidth)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
