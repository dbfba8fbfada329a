#!/usr/bin/env python3
"""Compares `kasuri astra --astra-rules` with runs of ASTRA-sim, NPU by NPU, and checks MSCCL's algorithms.

With --engine it prints by how much the times of Kasuri's own network model differ from ASTRA-sim's instead, by topology and algorithm.

Without --reference the extracts in tests/data are taken. Only the standard library is needed. Exit status: 0 all the same, 1 not.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLES = ("micro", "sizes", "multidim", "workload", "others", "speed")
KEY = ("case", "backend", "network", "system", "workload", "queues")


def folder_of(reference: pathlib.Path | None) -> pathlib.Path | None:
    """The folder in which the tables lie."""
    for folder in (reference, reference / "ai") if reference else ():
        if (folder / "results").is_dir() and (folder / "configs").is_dir():
            return folder
    return None


def table(path: pathlib.Path) -> list[dict[str, str]]:
    """The rows of a file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


class Comparison:
    """The command, the folder of references, and where its traces lie."""

    def __init__(self, kasuri: str, folder: pathlib.Path, traces: pathlib.Path):
        self.kasuri, self.folder, self.traces = kasuri, folder, traces
        index = folder / "groups" / "index.csv"
        self.groups = {row["workload"]: folder / "groups" / row["groups"] for row in table(index)} if index.exists() else {}
        for archive in sorted((folder / "traces").glob("*.tgz")):
            with tarfile.open(archive) as file:
                file.extractall(traces, filter="data")

    def prefix(self, workload: str) -> pathlib.Path | None:
        """What stands before `.0.et` in the names of a workload's files, if they are there."""
        for first in sorted((self.traces / workload).glob("*.0.et")):
            return first.with_name(first.name.removesuffix(".0.et"))
        return None

    def run(self, row: dict[str, str], engine: str | None = None) -> list[int] | str:
        """The finish time of every NPU by ASTRA-sim's rules or an engine of Kasuri, or why there is none."""
        how = ["--engine", engine] if engine else ["--backend", row["backend"], "--astra-rules"]
        configs = self.folder / "configs"
        command = [
            self.kasuri,
            "astra",
            "--workload",
            str(self.prefix(row["workload"])),
            "--system",
            str(configs / f"{row['system']}.json"),
            "--network",
            str(configs / f"{row['network']}.yml"),
            "--queues",
            row["queues"],
            *how,
            "--format",
            "json",
        ]
        if row["workload"] in self.groups:
            command += ["--groups", str(self.groups[row["workload"]])]
        # A collective that is a trace is named relative to the working directory: that of the traces.
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.traces.parent, check=False)
        if done.returncode != 0:
            return f"status {done.returncode}: {done.stderr.strip()}"
        return [npu["finish_ns"] for npu in json.loads(done.stdout)["npus"]]

    def difference(self, row: dict[str, str], each: dict[int, int]) -> str | None:
        """What is not as in the row."""
        found = self.run(row)
        if row["status"] == "timeout":
            return None if isinstance(found, list) else found
        if not row["status"].startswith("ok"):
            return None if isinstance(found, str) and found.startswith("status 2") else f"has times, but ASTRA-sim stops ({row['status']})"
        if isinstance(found, str):
            return found
        if (len(found), min(found), max(found)) != (int(row["npus"]), int(row["finish_min_ns"]), int(row["finish_max_ns"])):
            return f"{min(found)} to {max(found)} ns, not {row['finish_min_ns']} to {row['finish_max_ns']}"
        wrong = [npu for npu, time in each.items() if found[npu] != time]
        return f"NPU {wrong[0]} ends at {found[wrong[0]]} ns, not {each[wrong[0]]}" if wrong else None

    def compare(self, name: str) -> bool:
        """A table; prints how many rows are the same."""
        rows = table(self.folder / "results" / f"{name}.csv")
        there = [row for row in rows if self.prefix(row["workload"])]
        absent, rows = len(rows) - len(there), there
        each: dict[tuple[str, ...], dict[int, int]] = {}
        path = self.folder / "results" / f"{name}_per_npu.csv"
        for row in table(path) if path.exists() else []:
            each.setdefault(tuple(row[key] for key in KEY), {})[int(row["npu"])] = int(row["finish_ns"])
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(lambda row: self.difference(row, each.get(tuple(row[key] for key in KEY), {})), rows))
        wrong = [(row, problem) for row, problem in zip(rows, found, strict=True) if problem]
        print(
            f"{name:12} {len(rows) - len(wrong):5} of {len(rows):5} rows the same{f'; {absent} more have no trace here' if absent else ''}"
        )
        for row, problem in wrong[:5]:
            print(f"    {', '.join(row[key] for key in KEY)}: {problem}")
        return not wrong


def algorithms(kasuri: str, folder: pathlib.Path, work: pathlib.Path) -> bool:
    """MSCCL's algorithms: verdicts, counts, and written again."""
    rows, wrong = table(folder / "index.csv"), []
    for row in rows:
        path = next(path for path in (folder / f"{row['file']}.xml", folder / f"{row['file']}.xml.gz") if path.exists())
        done = subprocess.run([kasuri, "algorithm", "check", str(path)], capture_output=True, text=True, check=False)
        if (done.returncode == 0) != (row["verdict"] == "correct") or done.returncode not in (0, 2):
            wrong.append(f"{row['file']}: status {done.returncode}: {done.stderr.strip()}")
        if done.returncode:
            continue
        counts = f"{row['threadblocks']} threadblocks, {row['steps']} steps, {row['sends']} messages of {row['chunks_sent']} chunks"
        again = work / "again.xml"
        again.write_bytes(subprocess.run([kasuri, "algorithm", "write", str(path)], capture_output=True, check=True).stdout)
        second = subprocess.run([kasuri, "algorithm", "check", str(again)], capture_output=True, text=True, check=False)
        if counts not in done.stdout or f"{row['slots_needed']} of a connection's" not in done.stdout:
            wrong.append(f"{row['file']}: {done.stdout.strip()}; expected {counts}, {row['slots_needed']} slots")
        if second.stdout.split("\n")[1:] != done.stdout.split("\n")[1:]:
            wrong.append(f"{row['file']}: written again it is another: {second.stdout}{second.stderr}")
    print(f"{'msccl':12} {len(rows) - len(wrong):5} of {len(rows):5} algorithms as expected")
    for problem in wrong:
        print(f"    {problem}")
    return not wrong


def implementations(comparison: Comparison, row: dict[str, str]) -> str:
    """The algorithm of a row's collective, as its system file names it."""
    name = row["case"].replace("_", "-")
    system = json.loads((comparison.folder / "configs" / f"{row['system']}.json").read_text())
    return "+".join(dict.fromkeys(system.get(f"{name}-implementation", ["program"])))


def differences(comparison: Comparison, engine: str, tables: list[str]) -> bool:
    """By how much an engine's last NPU is later than ASTRA-sim's, by backend, topology, collective and algorithm."""
    rows = [row for name in tables for row in table(comparison.folder / "results" / f"{name}.csv")]
    rows = [row for row in rows if row["status"].startswith("ok") and comparison.prefix(row["workload"])]
    # Thousands of NPUs cycle by cycle take hours.
    rows = [row for row in rows if engine != "flit" or int(row["npus"]) <= 32]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda row: comparison.run(row, engine), rows))
    ratios: dict[tuple[str, ...], list[float]] = {}
    failed = []
    for row, times in zip(rows, found, strict=True):
        if isinstance(times, str):
            failed.append((row, times))
            continue
        topology = "+".join(part.rstrip("0123456789") for part in row["network"].split("_bw")[0].split("_"))
        key = (row["backend"], topology, row["case"], implementations(comparison, row))
        ratios.setdefault(key, []).append(max(times) / max(int(row["finish_max_ns"]), 1))
    print(f"{engine} over ASTRA-sim, time of the last NPU: {len(rows) - len(failed)} rows")
    print(f"{'BACKEND':8} {'TOPOLOGY':28} {'COLLECTIVE':18} {'ALGORITHM':24} ROWS  LEAST  MEDIAN    MOST")
    for key, values in sorted(ratios.items()):
        values.sort()
        low, middle, high = values[0], values[len(values) // 2], values[-1]
        print(f"{key[0]:8} {key[1]:28} {key[2]:18} {key[3]:24} {len(values):4} {low:6.3f}  {middle:6.3f}  {high:6.3f}")
    for row, problem in failed:
        print(f"    {', '.join(row[name] for name in KEY)}: {problem}")
    return not failed


def main() -> int:
    """Compare, print the counts and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kasuri", default=str(ROOT / ".venv/bin/kasuri"), help="the command")
    parser.add_argument("--reference", type=pathlib.Path, help="a folder with all rows [default: the extract in tests/data/astra]")
    parser.add_argument(
        "--engine", choices=("analysis", "flow", "flit"), help="print how far an engine of Kasuri is from ASTRA-sim instead"
    )
    parser.add_argument("tables", nargs="*", default=TABLES, help="only these tables")
    arguments = parser.parse_args()
    kasuri = str(pathlib.Path(arguments.kasuri).resolve())
    given = folder_of(arguments.reference.resolve() if arguments.reference else None)
    folder = given or ROOT / "tests/data/astra"
    msccl = given / "msccl" if given else ROOT / "tests/data/msccl"
    print(f"rows of {folder}")
    with tempfile.TemporaryDirectory() as work:
        traces = pathlib.Path(work, "traces")
        traces.mkdir()
        # The custom collective is found beside the unpacked traces, or among those of the folder.
        for name in (folder / "traces").iterdir():
            if name.is_dir():
                (traces / name.name).symlink_to(name)
        comparison = Comparison(kasuri, folder, traces)
        if arguments.engine:
            return 0 if differences(comparison, arguments.engine, arguments.tables) else 1
        results = [comparison.compare(name) for name in arguments.tables]
        if (msccl / "index.csv").exists():
            results.append(algorithms(kasuri, msccl, pathlib.Path(work)))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
