#!/usr/bin/env python3
"""Reads public files of other programs in bulk, and counts by format how many are read right, rightly refused, and wrong.

`campaign.csv` names repositories, commits and paths; the files themselves are not in this repository. `--repositories DIR` holds a clone of
each repository, bare or not, named OWNER+NAME; `--clone` makes what is missing there. What a file means is counted a second time by code
that shares nothing with Kasuri: by networkx, by BookSim's grammar, by headers and lines.

A file is *read right* if the command accepts it and both counts agree, *rightly refused* if `refused.csv` names it, with the reason, and
the message contains the text that is expected there; anything else is *wrong*. Exit status: 0 nothing wrong, 1 something, 2 a repository
or file is missing.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Iterator

import networkx

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
LIMIT_SECONDS = 120.0


@dataclasses.dataclass(frozen=True)
class Sample:
    """One file of a repository."""

    format: str
    repository: str
    path: str
    file: pathlib.Path

    @property
    def text(self) -> str:
        """Its characters, without a byte-order mark."""
        return self.file.read_bytes().decode("utf-8-sig", "replace")


class Command:
    """The command `kasuri` in a folder to work in."""

    def __init__(self, kasuri: str, work: pathlib.Path):
        self.kasuri, self.work = kasuri, work

    def run(self, *words: object) -> tuple[int, str, str]:
        """Status, standard output and standard error; status 124 at the time limit."""
        try:
            done = subprocess.run(
                [self.kasuri, *map(str, words)], capture_output=True, text=True, cwd=self.work, check=False, timeout=LIMIT_SECONDS
            )
        except subprocess.TimeoutExpired:
            return 124, "", f"not done after {LIMIT_SECONDS:g} s"
        return done.returncode, done.stdout, done.stderr


@dataclasses.dataclass(frozen=True)
class Answer:
    """What Kasuri made of a file, and what was counted otherwise. `counts` is empty where the file was refused."""

    status: int
    message: str
    counts: tuple[object, ...] = ()
    expected: tuple[object, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether the file was accepted and both counts agree."""
        return self.status == 0 and self.counts == self.expected


def network_of(command: Command) -> dict:
    """The network that was imported last."""
    return json.loads((command.work / "o.json").read_text())


def imported(command: Command, sample: Sample, *options: object) -> tuple[int, str, str]:
    """Answer of `kasuri fabric import`, which leaves o.json."""
    return command.run("fabric", "import", sample.file, "-o", "o.json", *options)


def between_routers(network: dict) -> int:
    """Channels between two routers."""
    return sum(a >= 0 and b >= 0 for a, b in zip(network["source_router"], network["destination_router"], strict=True))


# --- one function a format -------------------------------------------------------------------------------------------------------


def graphml(command: Command, sample: Sample) -> Answer:
    """Nodes and edges, as networkx counts them; an edge without direction is two channels."""
    status, _, error = imported(command, sample)
    if "--link-rate" in error:
        status, _, error = imported(command, sample, "--link-rate", 10)
    if status:
        return Answer(status, error)
    network = network_of(command)
    return Answer(0, error, (network["routers"], between_routers(network)), graph_counts(sample.file))


def graph_counts(file: pathlib.Path) -> tuple[int, int]:
    """Nodes that are not hosts, and channels between them: by networkx, or by elements where networkx fails on an attribute's value."""
    try:
        graph = networkx.read_graphml(file)
    except (KeyError, ValueError, TypeError):
        root = ElementTree.parse(file).getroot()
        nodes, edges = (len(root.findall(f"{{*}}graph//{{*}}{name}")) for name in ("node", "edge"))
        return nodes, edges * (1 if root.find("{*}graph").get("edgedefault") == "directed" else 2)
    channels = 1 if graph.is_directed() else 2
    hosts = {node for node, data in graph.nodes(data=True) if data.get("kind") in ("terminal", "host")}
    edges = sum(a not in hosts and b not in hosts for a, b in graph.edges())
    return graph.number_of_nodes() - len(hosts), edges * channels


def booksim(command: Command, sample: Sample) -> Answer:
    """Each assignment of BookSim's grammar that Kasuri takes over names a key of BookSim; the translation is a valid experiment."""
    status, printed, error = command.run("booksim", sample.file, "--to-toml")
    if status:
        return Answer(status, error)
    (command.work / "booksim.toml").write_text(printed)
    status, printed, error = command.run("check", "booksim.toml")
    shape = assignments(sample.text)
    terminals = re.search(r": (\d+) terminals", printed)
    expected = booksim_terminals(shape)
    if "network_file" in shape and shape.get("topology") == "anynet":
        expected = len(set(re.findall(r"\bnode\s+(\d+)", (sample.file.parent / shape["network_file"]).read_text())))
    return Answer(status, error, (int(terminals[1]) if terminals else None,), (expected,))


def assignments(text: str) -> dict[str, str]:
    """The last value of each key of a BookSim configuration."""
    text = re.sub(r"//[^\n]*", "", text)
    return {key: value.strip() for key, value in re.findall(r"(\w+)\s*=\s*([^;]*);", text)}


def booksim_terminals(keys: dict[str, str]) -> int | None:
    """Terminals by BookSim's own formulas (its src/networks)."""
    k, n, c = (int(keys.get(key, default)) for key, default in (("k", "8"), ("n", "2"), ("c", "1")))
    topology = keys.get("topology", "torus")
    if topology in ("mesh", "torus", "fly", "fattree", "qtree", "tree4", "fat_tree"):
        return k**n
    if topology in ("cmesh", "flatfly"):
        return c * k**n
    if topology == "dragonflynew":
        return 2 * k * k * (2 * k * k + 1)
    return None


def msccl(command: Command, sample: Sample) -> Answer:
    """GPUs and steps of an algorithm that is proved."""
    status, printed, error = command.run("algorithm", "check", sample.file)
    if status:
        return Answer(status, error)
    algorithm = ElementTree.fromstring(sample.text)
    gpus, steps = len(algorithm.findall("gpu")), len(algorithm.findall("gpu/tb/step"))
    found = re.search(r": OK: \w+ of (\d+) GPUs?\n\d+ threadblocks?, (\d+) steps?", printed)
    return Answer(0, printed, tuple(map(int, found.groups())) if found else (None,), (gpus, steps))


def htsim_topology(command: Command, sample: Sample) -> Answer:
    """The tiers and hosts of the header; one flow between the first and the last host is delivered."""
    hosts = int(re.search(r"^\s*Nodes\s+(\d+)", sample.text, re.MULTILINE | re.IGNORECASE)[1])
    (command.work / "one.cm").write_text(f"Nodes {hosts}\nConnections 1\n0->{hosts - 1} id 1 start 0 size 4086\n")
    status, printed, error = command.run("uec", "--topo", sample.file, "--cm", "one.cm", "--format", "json", "--engine", "analysis")
    return Answer(status, error, (len(json.loads(printed)["flows"]) if status == 0 else None,), (1,))


def htsim_matrix(command: Command, sample: Sample) -> Answer:
    """The connections of the header, on a fabric of as many hosts."""
    header = dict(re.findall(r"^\s*(Nodes|Connections)\s+(\d+)", sample.text, re.MULTILINE))
    (command.work / "matrix.topo").write_text(leaf_spine(int(header["Nodes"])))
    status, printed, error = command.run("uec", "--topo", "matrix.topo", "--cm", sample.file, "--format", "json", "--engine", "analysis")
    flows = len(re.findall(r"^\s*\d+\s*->\s*\d+", sample.text, re.MULTILINE))
    return Answer(status, error, (len(json.loads(printed)["flows"]) if status == 0 else None,), (flows,))


def leaf_spine(hosts: int) -> str:
    """A fabric of two tiers: leaves of the greatest power of two that divides the hosts, of 128 at most, with as many spines."""
    down = min(hosts & -hosts, 128)
    tier = "Downlink_speed_Gbps 100\nDownlink_Latency_ns 1000\nSwitch_Latency_ns 0\n"
    tiers = f"Tier 0\n{tier}Radix_Down {down}\nRadix_Up {down}\nTier 1\n{tier}Radix_Down {hosts // down}\n"
    return f"Nodes {hosts}\nTiers 2\nPodsize {hosts}\n{tiers}"


def ns3(command: Command, sample: Sample) -> Answer:
    """Hosts, switches and links between switches, as header and lines say."""
    lines = [line.split() for line in sample.text.splitlines() if line.strip()]
    nodes, switch_numbers, first = ns3_header(lines)
    links = lines[first:]
    among_switches = sum(set(words[:2]) <= switch_numbers for words in links if len(words) >= 5)
    status, printed, error = imported(command, sample)
    found = dict(re.findall(r"^(switches|hosts|adapters|cables between switches)\s+(\d+)", printed, re.MULTILINE))
    counts = tuple(int(found.get(key, -1)) for key in ("adapters", "switches", "cables between switches"))
    return Answer(status, error, counts, (nodes - len(switch_numbers), len(switch_numbers), among_switches))


def ns3_header(lines: list[list[str]]) -> tuple[int, set[str], int]:
    """Nodes, the numbers of the switches, and the line of the first link."""
    header = lines[0]
    is_simai = len(header) > 5 and header[5][0].isalpha()
    switches = int(header[2]) + int(header[3]) if is_simai else int(header[1])
    numbers, first = [], 1
    while len(numbers) < switches:
        numbers += lines[first]
        first += 1
    return int(header[0]), set(numbers[:switches]), first


def nccl(command: Command, sample: Sample) -> Answer:
    """GPUs and network interfaces of a node, of their elements or, where a cloud's template leaves them out, of PCI classes."""
    status, printed, error = imported(command, sample)
    if "--link-rate" in error:
        status, printed, error = imported(command, sample, "--link-rate", 100)
    system = ElementTree.fromstring(sample.text)
    gpus, interfaces = len(system.findall(".//gpu")), len(system.findall(".//net"))
    classes = Counter(pci.get("class", "") for pci in system.iter("pci"))
    if gpus == 0:
        gpus = classes["0x030200"] + classes["0x0302"] + classes["0x038000"]
    if interfaces == 0:
        interfaces = classes["0x020000"] + classes["0x0207"] + classes["0x020700"]
    network = network_of(command) if status == 0 else {}
    return Answer(status, error, (network.get("terminals"),), (gpus + interfaces,))


def slurm(command: Command, sample: Sample) -> Answer:
    """Names of hosts, of lists such as n[01-18]."""
    status, printed, error = command.run("fabric", "slurm", sample.file, "--write", "edges")
    hosts = {host for line in re.findall(r"\bNodes\s*=\s*(\S+)", uncommented(sample.text), re.IGNORECASE) for host in hostlist(line)}
    if sample.file.suffix in (".yaml", ".yml"):
        hosts = {host for line in re.findall(r"\bnodes:\s*(\S+)", uncommented(sample.text)) for host in hostlist(line.strip("\"'"))}
    return Answer(status, error, (len(set(re.findall(r'^terminal "?([^"\s]+)', printed, re.MULTILINE))),), (len(hosts),))


def uncommented(text: str) -> str:
    """The text without comments after a number sign."""
    return re.sub(r"#[^\n]*", "", text)


def hostlist(words: str) -> Iterator[str]:
    """The names of a Slurm list with at most one pair of brackets a name."""
    for name in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", words):
        before, bracket, rest = name.partition("[")
        numbers, _, after = rest.partition("]")
        if not bracket:
            yield name
            continue
        for part in numbers.split(","):
            first, _, last = part.partition("-")
            for number in range(int(first), int(last or first) + 1):
                yield f"{before}{number:0{len(first)}d}{after}"


def ibnetdiscover(command: Command, sample: Sample) -> Answer:
    """Switches and connected ports of adapters, as their records count."""
    status, printed, error = imported(command, sample)
    if "--unknown-rate" in error:
        status, printed, error = imported(command, sample, "--unknown-rate", "4xHDR")
    found = dict(re.findall(r"^(switches|adapters)\s+(\d+)", printed, re.MULTILINE))
    switches = len(re.findall(r"^switchguid=", sample.text, re.MULTILINE))
    # A port of an adapter is a line such as [1](guid), below the line of its node.
    nodes = re.split(r"^(?=(?:Switch|Ca|Rt)\s)", sample.text, flags=re.MULTILINE)
    hosts = (node for node in nodes if node.startswith("Ca") and "Aggregation Node" not in node.splitlines()[0])
    ports = sum(len(re.findall(r"^\[\d+\]", node, re.MULTILINE)) for node in hosts)
    counts = tuple(int(found.get(key, -1)) for key in ("switches", "adapters"))
    return Answer(status, error, counts, (switches, ports))


FORMATS: dict[str, Callable[[Command, Sample], Answer]] = {
    "booksim": booksim,
    "graphml": graphml,
    "htsim-matrix": htsim_matrix,
    "htsim-topology": htsim_topology,
    "ibnetdiscover": ibnetdiscover,
    "msccl": msccl,
    "nccl": nccl,
    "ns3": ns3,
    "slurm": slurm,
}


# --- the files -------------------------------------------------------------------------------------------------------------------


def git(repository: pathlib.Path, *words: str) -> bytes:
    """What git prints of a repository, bare or not."""
    folder = repository / ".git" if (repository / ".git").exists() else repository
    return subprocess.run(["git", "--git-dir", str(folder), *words], capture_output=True, check=True).stdout


def samples(rows: list[dict[str, str]], repositories: pathlib.Path, work: pathlib.Path, clone: bool) -> Iterator[Sample]:
    """Each file that `campaign.csv` names, written into a folder of its own under its own name."""
    for number, row in enumerate(rows):
        repository = repositories / row["repository"].replace("/", "+")
        if not repository.exists() and clone:
            subprocess.run(
                ["git", "clone", "--quiet", "--bare", f"https://github.com/{row['repository']}.git", str(repository)], check=True
            )
        for path in row["paths"].split("|"):
            file = work / "files" / str(number) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(git(repository, "show", f"{row['commit']}:{path}"))
            if row["format"] == "booksim":
                write_named(repository, row["commit"], path, file)
            yield Sample(row["format"], row["repository"], path, file)


def write_named(repository: pathlib.Path, commit: str, path: str, file: pathlib.Path) -> None:
    """Write the network file of a BookSim configuration next to it, if the repository has it there."""
    named = assignments(file.read_text(errors="replace")).get("network_file", "")
    source = str(pathlib.PurePosixPath(path).parent / named)
    if named and "/" not in named and git(repository, "ls-tree", commit, source):
        (file.parent / named).write_bytes(git(repository, "show", f"{commit}:{source}"))


def main() -> int:
    """Read all files, print the counts and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kasuri", default=str(ROOT / ".venv/bin/kasuri"), help="the command")
    parser.add_argument("--repositories", type=pathlib.Path, required=True, help="a folder of clones, named OWNER+NAME")
    parser.add_argument("--clone", action="store_true", help="clone the repositories that are missing there")
    parser.add_argument("--format", choices=sorted(FORMATS), action="append", help="only files of this format; may be repeated")
    parser.add_argument("--list", type=pathlib.Path, help="a CSV file to write, with a line for each file")
    arguments = parser.parse_args()
    formats = arguments.format or sorted(FORMATS)
    with (HERE / "campaign.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["format"] in formats]
    with (HERE / "refused.csv").open(newline="") as file:
        refusals = {(row["format"], row["repository"], row["path"]): row["message"] for row in csv.DictReader(file)}
    counts, wrong, lines = Counter(), [], []
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        command = Command(str(pathlib.Path(arguments.kasuri).resolve()), work)
        try:
            for sample in samples(rows, arguments.repositories, work, arguments.clone):
                verdict, answer = judge(command, sample, refusals.get((sample.format, sample.repository, sample.path)))
                counts[sample.format, verdict] += 1
                lines.append((sample.format, sample.repository, sample.path, verdict, answer))
                if verdict == "wrong":
                    wrong.append(f"{sample.format}: {sample.repository} {sample.path}: {answer}")
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            print(f"cannot read a repository: {error}; clone it into {arguments.repositories}, or give --clone", file=sys.stderr)
            return 2
    if arguments.list:
        with arguments.list.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([("format", "repository", "path", "verdict", "answer"), *lines])
    for problem in wrong:
        print(problem)
    print(f"{'format':16} {'files':>6} {'read right':>11} {'rightly refused':>16} {'wrong':>6}")
    for name in [*formats, "all"]:
        of = [sum(n for (kind, verdict), n in counts.items() if name in ("all", kind) and verdict == which) for which in VERDICTS]
        print(f"{name:16} {sum(of):6} {of[0]:11} {of[1]:16} {of[2]:6}")
    return 1 if wrong else 0


VERDICTS = ("read", "refused", "wrong")


def judge(command: Command, sample: Sample, refusal: str | None) -> tuple[str, str]:
    """The verdict on a file, and a message about it."""
    answer = FORMATS[sample.format](command, sample)
    if refusal is not None:
        if answer.status == 2 and refusal in answer.message:
            return "refused", answer.message.strip()
        return "wrong", f"must be refused with {refusal!r}; status {answer.status}: {answer.message.strip()[:300]}"
    if answer.is_right:
        return "read", ""
    return "wrong", f"status {answer.status}: counted {answer.counts}, expected {answer.expected}: {answer.message.strip()[:300]}"


if __name__ == "__main__":
    sys.exit(main())
