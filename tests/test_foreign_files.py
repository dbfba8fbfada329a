"""A file of another format than a command expects: the message names the format, and the command or key that reads it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from command_line import KASURI

FILES = {
    "graph.graphml": '<graphml><graph><node id="a"/><node id="b"/><edge source="a" target="b"/></graph></graphml>\n',
    "plain.txt": "0 1\n1 2\n2 0\n",
    "snap.txt": "# Directed graph\n# FromNodeId\tToNodeId\n0\t1\n0\t2\n",
    "caida.txt": "1|11537|0|bgp\n1|21616|-1|bgp\n",
    "graph.dot": "graph x {\n  a -- b;\n}\n",
    "graph.gml": "graph [\n  node [\n    id 0\n  ]\n]\n",
    "links.json": '{"directed": false, "graph": {}, "nodes": [{"id": 0}], "links": []}\n',
    "mesh.cfg": "topology = mesh;\nk = 4;\nn = 2;\n",
    "mesh.toml": 'title = "a"\n[network]\ntopology = "mesh"\ndimensions = [2, 2]\n',
    "ns3.txt": "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n",
    "topology.conf": "SwitchName=l1 Nodes=n[1-2]\n",
    "anynet.txt": "router 0 node 0 router 1\nrouter 1 node 1\n",
    "page.txt": "<!DOCTYPE html>\n<html><body>404</body></html>\n",
    "wide.txt": "router a router b\nterminal 0 router a\n",
}

TOPOLOGY = ("topology", "file", "path=FILE")
IMPORT = ("fabric", "import", "FILE", "-o", "out.json")
CHECK = ("check", "FILE")
BOOKSIM = ("booksim", "FILE", "--to-toml")
ALGORITHM = ("algorithm", "check", "FILE")


@pytest.mark.parametrize(
    ("words", "file", "message"),
    [
        (TOPOLOGY, "plain.txt", "is a plain list of edges"),
        (TOPOLOGY, "plain.txt", "Network.from_edges"),
        (TOPOLOGY, "snap.txt", "`router 0 router 1` for each link"),
        (TOPOLOGY, "caida.txt", "is a plain list of edges"),
        (TOPOLOGY, "graph.dot", "is a graph of Graphviz"),
        (TOPOLOGY, "graph.gml", "networkx.read_gml('graph.gml')"),
        (TOPOLOGY, "links.json", "networkx.node_link_graph"),
        (TOPOLOGY, "mesh.cfg", "`kasuri booksim mesh.cfg`"),
        (TOPOLOGY, "mesh.toml", "`kasuri run mesh.toml`"),
        (TOPOLOGY, "ns3.txt", "`kasuri fabric import ns3.txt -o network.json`"),
        (TOPOLOGY, "topology.conf", "`kasuri fabric slurm topology.conf --write edges`"),
        (TOPOLOGY, "anynet.txt", '`topology = "anynet"`'),
        (TOPOLOGY, "page.txt", "is a web page"),
        (IMPORT, "plain.txt", "is a plain list of edges"),
        (IMPORT, "mesh.toml", "`kasuri run mesh.toml`"),
        (IMPORT, "topology.conf", "is a topology of Slurm"),
        (IMPORT, "graph.dot", "is a graph of Graphviz"),
        (IMPORT, "mesh.cfg", "`kasuri booksim mesh.cfg`"),
        (CHECK, "mesh.cfg", "`kasuri booksim mesh.cfg`"),
        (CHECK, "graph.graphml", "is GraphML; `kasuri fabric import graph.graphml"),
        (CHECK, "ns3.txt", "is a topology of ns-3 or SimAI"),
        (BOOKSIM, "mesh.toml", "`kasuri run mesh.toml`"),
        (BOOKSIM, "graph.graphml", "is GraphML"),
        (ALGORITHM, "graph.graphml", "is GraphML"),
    ],
)
def test_the_message_says_what_the_file_is(tmp_path, words, file, message):
    (tmp_path / file).write_text(FILES[file])
    answer = run(tmp_path, *(word.replace("FILE", file) for word in words))
    assert answer.returncode == 2
    assert message in answer.stderr


@pytest.mark.parametrize("words", [TOPOLOGY, IMPORT, CHECK, BOOKSIM, ALGORITHM])
def test_utf_16_is_named_with_the_way_out(tmp_path, words):
    (tmp_path / "wide.txt").write_bytes(FILES["wide.txt"].encode("utf-16"))
    answer = run(tmp_path, *(word.replace("FILE", "wide.txt") for word in words))
    assert answer.returncode == 2
    assert "is text in UTF-16" in answer.stderr
    assert "iconv" in answer.stderr


def test_a_topology_of_several_is_chosen_and_named(tmp_path):
    tree = "  tree:\n    switches:\n      - switch: {}\n        nodes: {}\n"
    text = "- topology: ib\n  cluster_default: true\n" + tree.format("l1", "n[1-2]") + "- topology: eth\n" + tree.format("tor", "c[1-8]")
    (tmp_path / "topology.yaml").write_text(text)
    answer = run(tmp_path, "fabric", "slurm", "topology.yaml")
    assert answer.stdout == "SwitchName=l1 Nodes=n[1-2]\n"
    assert "`ib` is taken" in answer.stderr
    assert "eth" in answer.stderr
    answer = run(tmp_path, "fabric", "slurm", "topology.yaml", "--topology", "eth")
    assert (answer.stdout, answer.stderr) == ("SwitchName=tor Nodes=c[1-8]\n", "")
    assert "has no topology `x`; it has ib, eth" in run(tmp_path, "fabric", "slurm", "topology.yaml", "--topology", "x").stderr


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([KASURI, *words], cwd=folder, capture_output=True, text=True, timeout=60)
