"""Kasuri reads all files that it writes as the same, and so do other programs: networkx always, slurmctld where it is installed.

``make verify-writers`` draws many more cases (``KASURI_WRITERS``) and installs Slurm.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import time
import zlib
from pathlib import Path

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kasuri
from command_line import KASURI, command, same

CASES = int(os.environ.get("KASURI_WRITERS", "5"))

RUN = """
[routing]
algorithm = "up-down"
[traffic]
pattern = "uniform"
load = 0.1
[measure]
warmup = 10
cycles = 50
"""


def printed(*words: object) -> str:
    return command(*words).stdout


@st.composite
def edge_lists(draw: st.DrawFn) -> str:
    """Draw a connected network of named switches and hosts with trunks, rates and latencies."""
    switches = draw(st.integers(1, 7))
    hosts = draw(st.integers(2, 9))
    # Names that end in numbers of several widths, and names that need quotes.
    stem = draw(st.sampled_from(["s", "leaf-0", "MF0;spine", "a b", "rack:1/U", 'q"', "ü"]))
    host = draw(st.sampled_from(["n", "node0", "gpu-a.b_", "h 1 "]))
    switch_names = [json.dumps(f"{stem}{number}", ensure_ascii=False) for number in range(switches)]
    lines = []
    for number in range(1, switches):
        other = draw(st.integers(0, number - 1))
        for _ in range(draw(st.integers(1, 2))):
            lines.append(f"router {switch_names[number]} router {switch_names[other]}{_speed(draw)}")
    for _ in range(draw(st.integers(0, 4)) if switches > 1 else 0):
        one, other = draw(st.lists(st.integers(0, switches - 1), min_size=2, max_size=2, unique=True))
        lines.append(f"router {switch_names[one]} router {switch_names[other]}{_speed(draw)}")
    for number in range(hosts):
        at = draw(st.integers(0, switches - 1))
        lines.append(f'terminal "{host}{number:02}" router {switch_names[at]}{_speed(draw)}')
    return "\n".join(lines) + "\n"


def _speed(draw: st.DrawFn) -> str:
    latency = draw(st.sampled_from(["", " latency=0", " latency=7"]))
    return latency + draw(st.sampled_from([" gbit=100", " gbit=200", " gbit=400"]))


@settings(max_examples=CASES, deadline=None, derandomize="KASURI_WRITERS" not in os.environ)
@given(text=edge_lists())
def test_networks_and_fabrics_are_read_back(text):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "edges.txt").write_text(text)
        network = kasuri.Network.from_text(text)
        assert same(kasuri.Network.from_text(network.edge_list()), network)
        for form in ("json", "graphml", "dot"):
            (folder / f"net.{form}").write_text(printed("topology", "file", f"path={folder}/edges.txt", "--export", form))
        for form in ("json", "graphml"):
            assert same(kasuri.Network({"topology": "file", "path": f"{folder}/net.{form}"}), network), form
        graph = networkx.read_graphml(folder / "net.graphml", force_multigraph=True)
        assert (graph.number_of_nodes(), graph.number_of_edges()) == (network.routers + network.terminals, network.channels)
        # DOT: each node in a line of its own; an edge with two heads is two channels.
        dot = (folder / "net.dot").read_text()
        assert len(re.findall(r"^  [rt]\d+ \[", dot, re.MULTILINE)) == network.routers + network.terminals
        assert 2 * dot.count("[dir=both") + dot.count("[dir=forward") == network.channels

        fabric = folder / "fabric.json"
        command("fabric", "import", folder / "edges.txt", "-o", fabric)
        read = kasuri.Network.from_json(fabric)
        assert (read.routers, read.terminals, read.channels) == (network.routers, network.terminals, network.channels)
        found = json.loads(printed("fabric", "audit", fabric, "--format", "json"))
        assert (found["switches"], found["adapters"]) == (network.routers, network.terminals)
        command("fabric", "import", fabric, "-o", folder / "again.json")
        assert json.loads((folder / "again.json").read_text()) == json.loads(fabric.read_text())
        check_slurm(fabric, network, folder)


def check_slurm(fabric: Path, network: kasuri.Network, folder: Path) -> None:
    """Check the rules of slurmctld: each host is at one switch that has no switch below it; each switch is below at most one."""
    takes_names = all(re.fullmatch(r"[\w.-]+", name) for name in network.terminal_names or [])
    if not takes_names:
        command("fabric", "slurm", fabric, status=2)
        return
    conf, yaml, edges = folder / "topology.conf", folder / "topology.yaml", folder / "slurm.txt"
    conf.write_text(printed("fabric", "slurm", fabric))
    yaml.write_text(printed("fabric", "slurm", fabric, "--write", "yaml"))
    edges.write_text(printed("fabric", "slurm", fabric, "--write", "edges"))
    assert not any("Nodes=" in line and "Switches=" in line for line in conf.read_text().splitlines())
    for source in (conf, yaml):
        assert printed("fabric", "slurm", source) == conf.read_text()
        assert printed("fabric", "slurm", source, "--write", "edges") == edges.read_text()
    skeleton = kasuri.Network({"topology": "file", "path": str(edges)})
    assert sorted(skeleton.terminal_names or []) == sorted(network.terminal_names or [])
    assert json.loads(printed("topology", "file", f"path={edges}", "--format", "json"))["components"] == 1
    if "KASURI_WRITERS" in os.environ:
        loaded_by_slurmctld(conf, network.terminal_names or [], folder)


def loaded_by_slurmctld(conf: Path, nodes: list[str], folder: Path) -> None:
    """Start slurmctld with this topology.conf, and let scontrol print the topology that it read."""
    if shutil.which("slurmctld") is None:
        pytest.skip("slurmctld is not installed")
    host = os.uname().nodename.split(".")[0]
    state = folder / "state"
    state.mkdir()
    port = 20000 + time.monotonic_ns() % 20000
    (folder / "slurm.conf").write_text(
        f"ClusterName=kasuri\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={port}\nSlurmctldPidFile={folder}/pid\nSlurmUser=root\n"
        f"StateSaveLocation={state}\nAuthType=auth/none\nCryptoType=crypto/none\nCredType=cred/none\nProctrackType=proctrack/linuxproc\n"
        f"TaskPlugin=task/none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nTopologyPlugin=topology/tree\n"
        f"NodeName={','.join(nodes)} CPUs=1 State=CLOUD\nPartitionName=debug Nodes=ALL Default=YES\n"
    )
    environment = {**os.environ, "SLURM_CONF": f"{folder}/slurm.conf"}
    log = folder / "slurmctld.log"
    with log.open("w") as output:
        daemon = subprocess.Popen(["slurmctld", "-D", "-f", f"{folder}/slurm.conf"], stdout=output, stderr=output, env=environment)
    try:
        shown = ""
        for _ in range(100):
            if daemon.poll() is not None:
                break
            answer = subprocess.run(["scontrol", "show", "topology"], capture_output=True, text=True, env=environment, timeout=30)
            shown = answer.stdout
            if answer.returncode == 0 and shown:
                break
            time.sleep(0.1)
        assert daemon.poll() is None, log.read_text()
        assert "SwitchName=" in shown, log.read_text()
    finally:
        daemon.terminate()
        daemon.wait(timeout=30)
    (folder / "shown.conf").write_text(shown)
    lines = printed("fabric", "slurm", folder / "shown.conf").splitlines()
    assert sorted(lines) == sorted(conf.read_text().splitlines())


@settings(max_examples=CASES, deadline=None, derandomize="KASURI_WRITERS" not in os.environ)
@given(
    collective=st.sampled_from(["alltoall", "allgather", "reducescatter", "allreduce", "broadcast"]),
    shape=st.sampled_from(["[4]", "[3, 2]", "[2, 2, 2]"]),
    topology=st.sampled_from(["mesh", "torus"]),
)
def test_schedules_are_read_by_those_for_whom_they_are_written(collective, shape, topology):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        network = f'[network]\ntopology = "{topology}"\ndimensions = {shape}\nflit_bytes = 16\n'
        routing = '[routing]\nalgorithm = "dimension-order"\ntie = "positive"\n[router]\nvirtual_channels = 4\n'
        (folder / "net.toml").write_text(network + routing)
        terminals = int(np.prod(json.loads(shape)))

        def write(form: str, ending: str) -> Path:
            path = folder / f"schedule.{ending}"
            words = ["schedule", collective, "--network", folder / "net.toml", "--export", form]
            answer = subprocess.run([KASURI, *map(str, words)], capture_output=True, timeout=120)
            assert answer.returncode == 0, answer.stderr
            path.write_bytes(answer.stdout)
            return path

        # A program of messages: Kasuri runs it, each rank at its terminal.
        program = write("goal", "goal")
        (folder / "run.toml").write_text(f'{network}{routing}[workload]\ntrace = "{program.name}"\n')
        row = json.loads(printed("run", folder / "run.toml", "--out", folder / "out", "--format", "json"))["runs"][0]
        assert row["status"] in ("completed", "converged")
        whole = json.loads(write("json", "json").read_text())
        lines = write("csv", "csv").read_text().splitlines()
        assert len(lines) > 1
        assert write("ranks", "ranks").read_text().split() == [str(terminal) for terminal in whole["terminals"]]
        assert sorted(whole["terminals"]) == list(range(terminals))
        if collective != "alltoall":
            algorithm = write("msccl", "xml")
            assert ": OK: " in printed("algorithm", "check", algorithm)
            (folder / "again.xml").write_text(printed("algorithm", "write", algorithm))
            assert ": OK: " in printed("algorithm", "check", folder / "again.xml")
            assert printed("algorithm", "write", folder / "again.xml") == (folder / "again.xml").read_text()
        if collective != "broadcast":
            packed = write("mpi", "kasuri").read_bytes()
            # docs/reference/file-formats.md: the last word is the CRC-32 of what is before it.
            assert struct.unpack("<I", packed[-4:])[0] == zlib.crc32(packed[:-4])


def test_an_imported_fabric_runs_and_its_kept_network_is_read_back(tmp_path):
    (tmp_path / "edges.txt").write_text(
        "router a router b gbit=400\nrouter b router c gbit=100\nterminal h0 router a gbit=100\nterminal h1 router c gbit=100\n"
    )
    command("fabric", "import", tmp_path / "edges.txt", "-o", tmp_path / "f.json")
    (tmp_path / "e.toml").write_text('[network]\ntopology = "file"\npath = "f.json"\n' + RUN)
    (first,) = json.loads(printed("run", tmp_path / "e.toml", "--out", tmp_path / "one", "--format", "json"))["runs"]
    (kept,) = (tmp_path / "one" / "networks").iterdir()
    (tmp_path / "again.toml").write_text(f'[network]\ntopology = "file"\npath = "{kept}"\n' + RUN)
    (again,) = json.loads(printed("run", tmp_path / "again.toml", "--out", tmp_path / "two", "--format", "json"))["runs"]
    assert first["packet_latency_mean"] == again["packet_latency_mean"]
    assert first["network_id"] == again["network_id"]
