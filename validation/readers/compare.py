#!/usr/bin/env python3
"""Reads the files of other programs as they are, reader by reader, and prints how many are read, run and refused as they must be.

What has results to be compared with stands elsewhere: `validation/astra` (Chakra traces, MSCCL), `validation/uec`. Here are

* schedules of LogGOPSim: each binary takes the time of its text, by flows and by flits;
* ASTRA-sim's shipped networks and systems: a collective runs on each by formulas, flows and ASTRA-sim's rules; numbers that are words are
  refused with file and line;
* execution traces that cannot run: the message names the file, or the NPU and the node;
* layer tables of SimAI: each takes as long by flows as its parts alone, one that is cut off is refused with its last line;
* topologies of ns-3 and SimAI: imported, and a collective of all crosses them.

Only the standard library is needed. Exit status: 0 all as they must be, 1 not.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data"
sys.path.insert(0, str(ROOT / "benches"))
from training import one_collective  # noqa: E402  # of this repository

ALL_REDUCE = 0
MODELS = (("--engine", "analysis"), ("--engine", "flow"), ("--astra-rules", "--backend", "unaware"))


class Readers:
    """The command, where the files are, and a folder to work in."""

    def __init__(self, kasuri: str, reference: pathlib.Path | None, work: pathlib.Path):
        self.kasuri, self.reference, self.work = kasuri, reference, work
        self.right = True

    def folder(self, of_reference: str, of_data: str) -> pathlib.Path:
        """Where the files of a reader are."""
        return self.reference / of_reference if self.reference else DATA / of_data

    def run(self, *words: object) -> tuple[int, str, str]:
        """Status, what was printed, and what was said of errors."""
        done = subprocess.run([self.kasuri, *map(str, words)], capture_output=True, text=True, cwd=self.work, check=False)
        return done.returncode, done.stdout, done.stderr

    def tell(self, reader: str, files: int, problems: list[str], what: str) -> None:
        """Print how many files are as they must be."""
        print(f"{reader:28} {files - len(problems):3} of {files:3} {what}")
        for problem in problems:
            print(f"    {problem}")
        self.right &= not problems and files > 0

    def goal(self) -> None:
        """Binary schedules beside their texts."""
        problems, binaries = [], sorted(self.folder("traces/goal-generated", "goal").glob("*.bin"))
        for binary in binaries:
            times = [self.goal_time(file, engine) for file in (binary, binary.with_suffix(".goal")) for engine in ("flow", "flit")]
            if times[:2] != times[2:] or None in times:
                problems.append(f"{binary.name}: {times[:2]} by flow and flit; its text {times[2:]}")
        self.tell("LogGOPSim, binary GOAL", len(binaries), problems, "take the time of their texts, by flows and by flits")

    def goal_time(self, file: pathlib.Path, engine: str) -> str | None:
        """When a schedule is done on a mesh."""
        lines = [f'engine = "{engine}"', "[network]", 'topology = "mesh"', "dimensions = [8, 8]", "flit_bytes = 4096", "cycle_ns = 1000.0"]
        lines += [
            "[routing]",
            'algorithm = "dimension-order"',
            "[workload]",
            f'trace = "{file}"',
            "[measure]",
            "max_cycles = 1_000_000_000_000",
        ]
        (self.work / "goal.toml").write_text("\n".join(lines))
        status, printed, _ = self.run("run", "goal.toml", "--out", "out", "--format", "json")
        return json.loads(printed)["runs"][0].get("completion_time") if status == 0 else None

    def configurations(self) -> None:
        """A collective on each shipped network with the system of its name, or any."""
        shipped = self.reference is not None
        networks = sorted(self.folder("ai/upstream-configs/network", "astra/configs").glob("*.yml"))
        problems = []
        for network in networks:
            text = re.sub("#.*", "", network.read_text())
            system = network.parents[1] / "system" / f"{network.stem}.json"
            if not system.exists():
                name = "upstream-configs/system/example_Ring_4chunks" if shipped else "configs/ring_4chunks"
                system = self.folder("ai", "astra") / f"{name}.json"
            problem = self.configuration(network, system, text)
            if problem:
                problems.append(f"{network.name} with {system.name}: {problem}")
        self.tell("ASTRA-sim, configurations", len(networks), problems, "networks run by formulas, flows and rules, or name a line")

    def configuration(self, network: pathlib.Path, system: pathlib.Path, text: str) -> str | None:
        """What is wrong with a run on a network."""
        counts = re.search(r"npus_count:\s*\[([^\]]*)\]", text)
        npus = 1
        for count in counts[1].split(",") if counts else []:
            npus *= int(count)
        for npu in range(npus):
            (self.work / f"one.{npu}.et").write_bytes(one_collective(ALL_REDUCE, 1 << 20))
        for model in MODELS:
            status, printed, error = self.run(
                "astra", "--workload", "one", "--system", system, "--network", network, *model, "--format", "json"
            )
            if "tbd" in text:
                named = re.search(rf"{re.escape(network.name)}:\d+: \w+ is `tbd`", error)
                if status != 2 or not named:
                    return f"status {status}: {error.strip()}"
            elif status != 0 or len(json.loads(printed)["npus"]) != npus:
                return f"status {status}: {error.strip()}"
        return None

    def refused(self) -> None:
        """Traces that no program can run."""
        if self.reference is None:
            return
        traces, system = self.reference / "ai/traces", self.reference / "ai/configs/ring3_4chunks.json"
        with tarfile.open(traces / "feeder_tests_trace.tar.gz") as archive:
            member = next(member for member in archive.getmembers() if member.name.endswith(".et"))
            content = archive.extractfile(member)
            for npu in range(8):
                (self.work / f"pytorch.{npu}.et").write_bytes(content.read() if content and npu == 0 else one_collective(ALL_REDUCE, 1024))
        lines = ["topology: [ Ring, Ring, Ring ]", "npus_count: [ 2, 2, 2 ]", "bandwidth: [ 50, 50, 50 ]", "latency: [ 1, 1, 1 ]"]
        (self.work / "cube.yml").write_text("\n".join(lines))
        cube = traces / "artifacts-T3D-analytical"
        cases = {
            "PyTorch": (["--workload", "pytorch"], r"NPU 0: node \d+ .* waits for node \d+, which is not in the file"),
            "T3D": (["--workload", cube / "trace", "--groups", cube / "comm_group.json"], r"comm_group.json:\d+: group `0` must not be"),
        }
        problems = []
        for name, (words, message) in cases.items():
            status, _, error = self.run("astra", *words, "--system", system, "--network", "cube.yml")
            if status != 2 or not re.search(message, error):
                problems.append(f"{name}: status {status}: {error.strip()}")
        self.tell("Chakra, traces in pieces", len(cases), problems, "refused, with the node or the group")

    def layers(self) -> None:
        """Tables whose exchanges all NPUs wait for, beside their computations and the exchanges alone; tables that are cut off."""
        data = self.folder("ai", "astra")
        files = sorted(self.folder("ai/simai-workloads", "simai").glob("*.txt"))
        where = ["--system", data / "configs/ring_4chunks.json", "--network", data / "configs/Switch8_bw50_lat500.yml", "--format", "json"]
        problems = []
        for file in files:
            lines = [line.split() for line in file.read_text().splitlines() if line.strip()]
            status, printed, error = self.run("astra", "--workload", file, *where)
            if int(lines[1][0]) != len(lines) - 2:
                if status != 2 or not re.search(
                    rf"{re.escape(file.name)}:\d+: .* after {len(lines) - 2} of the {lines[1][0]} layers", error
                ):
                    problems.append(f"{file.name}: status {status}: {error.strip()}")
                continue
            expected = self.layer_times(lines[2:], where)
            times = [npu["finish_ns"] for npu in json.loads(printed)["npus"]] if status == 0 else []
            if not times or any(abs(time - expected) > 1e-3 * expected for time in times):
                problems.append(f"{file.name}: {times} ns, its parts {expected} ns: {error.strip()}")
        self.tell("SimAI, layer tables", len(files), problems, "take the time of their parts, or end too early and say so")

    def layer_times(self, layers: list[list[str]], where: list[object]) -> float:
        """The time of all computations, exchanges and updates of a table whose NPUs all share each layer."""
        total = 0
        for words in layers:
            total += sum(int(words[place]) for place in (2, 5, 8))
            for kind, size in (words[3:5], words[6:8]):
                if kind == "ALLREDUCE" and int(size) > 0:
                    for npu in range(8):
                        (self.work / f"part.{npu}.et").write_bytes(one_collective(ALL_REDUCE, int(size)))
                    _, printed, _ = self.run("astra", "--workload", "part", *where)
                    total += json.loads(printed)["npus"][0]["finish_ns"] + int(words[11])
        return total

    def topologies(self) -> None:
        """Topologies of ns-3 and SimAI, with an all-to-all over each."""
        files, problems = sorted(self.folder("ai/topologies", "ns3").glob("*.txt")), []
        for file in files:
            status, printed, error = self.run("fabric", "import", file, "-o", "fabric.json")
            if status == 0:
                workload = '[workload]\ncollective = "alltoall"\nschedule = "shift"\nmessage_flits = 4\n'
                (self.work / "fabric.toml").write_text(f'engine = "flow"\n{printed[printed.index("[network]") :]}\n{workload}')
                # A ring of hosts without virtual channels may deadlock, which flows do not.
                words = ["--set", "routing.allow_deadlock=true", "--out", "out", "--format", "json"]
                status, printed, error = self.run("run", "fabric.toml", *words)
            if status != 0 or json.loads(printed)["runs"][0]["status"] != "completed":
                problems.append(f"{file.name}: status {status}: {error.strip()}")
        self.tell("ns-3 and SimAI, topologies", len(files), problems, "imported and crossed by an all-to-all")


def main() -> int:
    """Read, print the counts and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kasuri", default=str(ROOT / ".venv/bin/kasuri"), help="the command")
    parser.add_argument("--reference", type=pathlib.Path, help="a folder with all files [default: the extracts in tests/data]")
    arguments = parser.parse_args()
    reference = arguments.reference.resolve() if arguments.reference else None
    with tempfile.TemporaryDirectory() as work:
        readers = Readers(str(pathlib.Path(arguments.kasuri).resolve()), reference, pathlib.Path(work))
        readers.goal()
        readers.configurations()
        readers.refused()
        readers.layers()
        readers.topologies()
    return 0 if readers.right else 1


if __name__ == "__main__":
    sys.exit(main())
