"""The commands whose outputs are kept, on the inputs of `tests/data` and on the networks of `strata.py`."""

from __future__ import annotations

import gzip
import hashlib
import re
import sys
import tempfile
from pathlib import Path

import strata

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "campaigns"))
import trial

DATA = "tests/data"
UEC = [
    "--spray one", "--spray hash", "--spray random --seed 3", "--spray round-robin --seed 3", "--engine flow", "--engine analysis",
    "--spray hash --link-speed 200000 --mtu 4096",
]  # fmt: skip
COLLECTIVES = ("alltoall", "allreduce", "allgather", "reducescatter", "broadcast")
ASTRA = [
    ("pipeline", "ring_4chunks", "Ring8_bw50_lat500"), ("pipeline", "hd_4chunks", "Switch8_bw50_lat500"),
    ("pipeline", "direct_all_1chunk", "FullyConnected8_bw50_lat500"), ("pipeline", "ring_16chunks_active16", "Ring8_bw50_lat500"),
    ("groups_tp_dp", "ring_4chunks", "Ring8_bw50_lat500"), ("groups_tp_dp", "ring_1chunk", "Switch8_bw400_lat936.25"),
]  # fmt: skip
ENGINES = ("--engine flow", "--engine analysis", "--engine flit --flit-bytes 1024", "--astra-rules", "--astra-rules --backend unaware")
FABRICS = (
    "ib/avakas/ibnetdiscover-p.txt.gz {data}/ib/avakas/ibroutes.txt.gz", "ns3/ns3_T1D-ns3.txt", "ns3/Spectrum-X_32g_8gps_400Gbps_H100.txt",
    "ns3/DCN-SingleToR_64g_8gps_400Gbps_H100.txt", "nccl/topo_3p_pcie.xml", "nccl/topo_8p_940.xml", "tenstorrent/two_meshes_4x4.textproto",
    "tenstorrent/mesh_graph_descriptors/t3k_mesh_graph_descriptor.textproto",
    "tenstorrent/mesh_graph_descriptors/tg_mesh_graph_descriptor.textproto",
)  # fmt: skip
REFERENCE = (
    "list", "list topologies --format json", "list routings --format json", "list patterns", "list allocators", "list predictors",
    "list schedules", "list engines", "schema", "explain network.topology", "explain routing.algorithm", "explain router",
    "explain measure",
    "explain traffic.lode", "topology mesch", "topology mesh dimensions=[0,3]", "design --example-prices", "design --example-price-list",
)  # fmt: skip
DESIGNS = (
    "--ports 8", "--ports 16", "--ports 24 --terminals 200", "--terminals 100 --ports 12 --budget 100000",
    "--terminals 8",
)  # fmt: skip


def matrices() -> list[str]:
    """Name connection matrices with the topologies that have their hosts."""
    topologies = {16: "ls16", 64: "ft64"}
    found = []
    for path in sorted((strata.ROOT / DATA / "uec/matrices/own").glob("*.cm")):
        hosts = re.search(r"_(16|64)_", path.name)
        if hosts:
            fabric = next((strata.ROOT / DATA / "uec/topologies").rglob(f"{topologies[int(hosts[1])]}*.topo"))
            found.append(f"--topo {fabric.relative_to(strata.ROOT)} --cm {path.relative_to(strata.ROOT)}")
    return found[::3]


def networks() -> list[tuple[str, str]]:
    """Give topologies with their keys as words of the command line."""
    return [
        (name, " ".join(line.replace(" ", "") for line in sizes[0].split("\n")))
        for name, (sizes, _) in strata.TOPOLOGIES.items()
        if name not in ("file", "anynet", "cenju4")
    ]


def algorithms() -> list[str]:
    """Name algorithms of MSCCL, whole and damaged."""
    return [str(path.relative_to(strata.ROOT)) for path in sorted((strata.ROOT / DATA / "msccl").rglob("*.xml*"))]


def fabrics() -> list[str]:
    """Name real fabrics with their forwarding tables."""
    tables = [
        " ".join(
            "{data}" + str(file).removeprefix(str(strata.ROOT / DATA))
            for file in sorted(folder.iterdir())
            if "fdbs" not in file.name and "dump_fts" not in file.name
        )
        for folder in sorted((strata.ROOT / DATA / "ib").glob("*/*"))
        if folder.is_dir() and (folder / "ibnetdiscover.txt.gz").exists()
    ]
    return [*("{data}/" + words for words in FABRICS), *tables]


def hosts(words: str) -> list[str]:
    """Give the first hosts of the fabric that a command reads."""
    dumps = [path for path in words.split() if "ibnetdiscover" in path]
    text = gzip.decompress((strata.ROOT / dumps[0]).read_bytes()).decode() if dumps else ""
    return sorted(set(re.findall(r'^Ca\t.*# "([\w-]+)"', text, re.MULTILINE) or re.findall(r"\( '(\w+) HCA", text)))[:12]


#: Every command, as words after `kasuri`; `{network}` is a file with the network of the name after `#`, `{hosts}` a list of hosts.
COMMANDS = [
    *REFERENCE,
    *(f"design {words} --format {form}" for words in DESIGNS for form in ("table", "json")),
    *(
        f"uec {files} {options} --format json"
        for number, files in enumerate(matrices())
        for options in (UEC[number % 7], UEC[(number + 3) % 7])
    ),
    *(
        f"astra --workload {DATA}/astra/traces/{trace}/t --system {DATA}/astra/configs/{system}.json "
        f"--network {DATA}/astra/configs/{network}.yml "
        f"{options} --format json" + (f" --groups {DATA}/astra/groups/groups_8_tp4_dp2.json" if trace == "groups_tp_dp" else "")
        for trace, system, network in ASTRA
        for options in ENGINES
    ),
    *(f"topology {name} {keys} --format json" for name, keys in networks()),
    *(f"topology {name} {keys}" for name, keys in networks()[::3]),
    *(f"topology {name} {keys} --export {form}" for name, keys in networks()[::4] for form in ("dot", "graphml", "json")),
    *(
        f"schedule {collective} --network {{network}} # {name}"
        for name, _ in networks()
        for collective in COLLECTIVES[:: 1 if name in strata.PLACES else 4]
    ),
    *(
        f"schedule {collective} --network {{network}} --export {form} # mesh"
        for collective in COLLECTIVES
        for form in ("csv", "goal", "json", "msccl")
    ),
    *(f"check {{network}} # {name}" for name, _ in networks()),
    *(f"algorithm check {path}" for path in algorithms()),
    *(f"algorithm write {path}" for path in algorithms()[::3]),
    *(f"fabric {command} {dump.format(data=DATA)}" for dump in fabrics() for command in ("audit --format json", "slurm", "audit")),
    *(
        f"fabric job {dump.format(data=DATA)} --hosts {{hosts}} --collective {name} --size 65536"
        for dump in fabrics()
        if "ibnetdiscover" in dump
        for name in ("alltoall", "allreduce", "allgather", "broadcast", "barrier")
    ),
]


def answer(kasuri: str, command: str) -> dict[str, str]:
    """Run a command: its status, and the words that it prints, hashed."""
    words, _, network = command.partition(" # ")
    with tempfile.TemporaryDirectory(prefix="kasuri-sameness-") as folder:
        if network:
            sections = strata.Sections("flow").add("network", f'topology = "{network}"', strata.TOPOLOGIES[network][0][0])
            sections.add("routing", 'algorithm = "minimal"\ntie = "destination"\nallow_deadlock = true').add(
                "traffic", 'pattern = "uniform"\nload = 0.1'
            )
            (Path(folder) / "network.toml").write_text(sections.text())
        (Path(folder) / "job.hosts").write_text("\n".join(hosts(words)) + "\n")
        run = trial.attempt(
            kasuri, *words.format(network=f"{folder}/network.toml", hosts=f"{folder}/job.hosts").split(), folder=strata.ROOT
        )
        # Costs are estimated by the finished runs of the machine.
        text = re.sub(r"^cost: .*$", "cost", (run.stdout + run.stderr).replace(folder, "FOLDER"), flags=re.MULTILINE)
    return {
        "name": command,
        "status": str(run.returncode),
        "lines": str(text.count("\n")),
        "digest": hashlib.sha256(text.encode()).hexdigest()[:24],
    }
