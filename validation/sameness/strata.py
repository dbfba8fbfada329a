"""Names the experiments whose results are kept, and draws what their names leave open.

Each stratum is a list of names, such as `topology/mesh/dimension-order/flow`; everything else is drawn from a generator that is seeded with
the name. A new topology, routing or value thus adds experiments and changes none.
"""

from __future__ import annotations

import functools
import itertools
import json
import random
import re
import sys
import tomllib
import zlib
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "campaigns"))
import drawing
import mutations

ROOT = Path(__file__).resolve().parents[2]

#: Seeds of the campaigns' drawing, of which those that run are kept.
DRAWN = 800
#: Damaged experiment files, of which those that are refused are kept.
DAMAGED = 400
#: One pair of values in this many is kept, by a checksum of its name.
PAIRS_PER_SAMPLE = 40


@dataclass
class Experiment:
    """An experiment file and the files that it names. `tests/data` is reached as `data`."""

    text: str
    files: dict[str, str] = field(default_factory=dict)


class Sections:
    """The lines of an experiment file by section; the first section has no header."""

    def __init__(self, engine: str) -> None:
        """Begin a file for an engine."""
        self.lines: dict[str, list[str]] = {"": [f'engine = "{engine}"']}

    def add(self, section: str, *lines: str) -> Sections:
        """Add lines to a section."""
        self.lines.setdefault(section, []).extend(line for line in lines if line)
        return self

    def text(self) -> str:
        """Write the file."""
        return "\n".join(line for name, lines in self.lines.items() for line in ([f"[{name}]"] if name else []) + lines) + "\n"


#: Routings of any network. Those that may deadlock are allowed to: what they then do is kept, too.
ANYWHERE = tuple(
    f'algorithm = "{name}"\nallow_deadlock = true'
    for name in ("minimal", "minimal-adaptive", "up-down", "valiant", "ugal", "dijkstra", "ecmp", 'ecmp"\npolicy = "random')
)
GRIDS = tuple(f'algorithm = "{name}"' for name in ("dimension-order", "o1turn", "two-phase"))
TREES = ('algorithm = "nca"', 'algorithm = "nca"\nup_port = "adaptive"', 'algorithm = "nca"\nup_port = "d-mod-k"')
TAGGED = ('algorithm = "destination-tag"',)

#: Of each topology its sizes and the routings that are made for it.
TOPOLOGIES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "mesh": (("dimensions = [4, 3]", "dimensions = [2, 3, 2]\nconcentration = 2"), (*GRIDS, 'algorithm = "planar-adaptive"')),
    "torus": (
        ("dimensions = [4, 3]", "dimensions = [5]", "dimensions = [3, 2, 4]"),
        (*GRIDS, 'algorithm = "dimension-order"\ntie = "random"'),
    ),
    "fat-tree": (("up = 2\ndown = 3\nlevels = 2", "up = 2\ndown = 2\nlevels = 3"), TREES),
    "full-mesh": (("routers = 5\nconcentration = 2",), ()),
    "butterfly": (("radix = 3\nstages = 2", "radix = 2\nstages = 3"), TAGGED),
    "omega": (("radix = 4\nstages = 2\nterminals = 16", "radix = 2\nstages = 3"), TAGGED),
    "cenju4": (("terminals = 16",), TAGGED),
    "mlfm": (("layers = 2\npositions = 4\nterminals_per_leaf = 2", "degree = 2"), ()),
    "oft": (("order = 2", "order = 3\nsides = 2"), ()),
    "slim-fly": (("order = 3\nconcentration = 1", "order = 4\nconcentration = 1"), ()),
    "dragonfly": (
        ("terminals_per_router = 1\nrouters_per_group = 4\nglobal_channels = 1", "p = 1\na = 2\nh = 2\ngroups = 3"),
        ('algorithm = "dragonfly-phases"', 'algorithm = "dragonfly-phases"\nadaptive = true', 'algorithm = "dragonfly-groups"'),
    ),
    "flattened-butterfly": (("dimensions = [4, 3]\nconcentration = 2", "dimensions = [5]"), (*GRIDS, 'algorithm = "ugal-ordered"')),
    "on-chip-flattened-butterfly": (("radix = 3\nfloor = [3, 3]\ncluster = [1, 2]",), (*GRIDS, 'algorithm = "ugal-ordered"')),
    "concentrated-mesh": (("radix = 2", "radix = 3"), (*GRIDS, 'algorithm = "dimension-order"\nexpress = true')),
    "tree4": (("",), TREES),
    "rdt": (("side = 8", "side = 8\nranks = 1"), ('algorithm = "vector"',)),
    "xgft": (("m = [4, 3]\nw = [1, 2]\nparallel = [1, 2]", "m = [3, 2]\nw = [2, 2]"), TREES),
    "leaf-spine": (("leaves = 3\nspines = 2\ndown = 3\ntrunk = 2",), TREES),
    "rail-optimised": (("nodes = 2\ngpus = 2\nunits = 2\nspines = 2\nhb = true", "nodes = 2\ngpus = 2\nunits = 2\nspines = 2"), TREES),
    "rail-only": (("domains = 3\ngpus = 2",), ()),
    "hpn-pod": (("segments = 2\nhosts = 2\nrails = 2\naggregation = 2",), ()),
    "planes": (
        ('planes = 2\nof = "leaf-spine"\nleaves = 2\nspines = 2\ndown = 4', 'planes = 3\nof = "full-mesh"\nrouters = 4\nconcentration = 2'),
        tuple(f'algorithm = "ecmp"\nterminal_ports = "{way}"' for way in ("by-message", "by-destination", "by-packet")),
    ),
    "dragonfly+": (("p = 2\nleaves = 2\nspines = 2\nh = 2\ngroups = 3",), ()),
    "hyperx": (("S = [3, 2]\nK = [1, 2]\nT = 2",), GRIDS),
    "twisted-torus": (('shape = "k2k"\nk = 2', 'shape = "kk2k"\nk = 2'), ('algorithm = "shortest-vector"',)),
    "cubes": (('cube = 2\narrangement = [1, 1, 2]\nshape = "twisted"',), ('algorithm = "shortest-vector"',)),
    "hxmesh": (("a = 2\nb = 3\nx = 2\ny = 2",), ('algorithm = "hxmesh-order"',)),
    "polarfly": (("q = 3\nconcentration = 1",), ()),
    "polarstar-paley": (("q = 2\npaley = 5",), ()),
    "jellyfish": (("routers = 10\ndegree = 3\nseed = 1",), ()),
    "xpander": (("degree = 4\nlift = 3\nseed = 1",), ()),
    "file": (('path = "network.txt"',), ('algorithm = "tables"\npath = "tables.csv"',)),
    "anynet": (('path = "anynet.txt"',), ()),
}

#: Six routers in a ring with two chords, unequal channels, and a terminal on each.
EDGES = ((0, 1, 1), (1, 2, 3), (2, 3, 1), (3, 4, 2), (4, 5, 1), (5, 0, 4), (0, 3, 2), (1, 4, 1))


def ring_tables() -> str:
    """Write forwarding tables of shortest paths: port 0 of a router is its terminal's, then those of its edges in turn."""
    neighbors = {node: [a + b - node for a, b, _ in EDGES if node in (a, b)] for node in range(6)}
    rows = ["router,destination,port"]
    for target in range(6):
        hops = {target: 0}
        for node in (queue := [target]):
            fresh = [other for other in neighbors[node] if other not in hops]
            hops.update(dict.fromkeys(fresh, hops[node] + 1))
            queue += fresh
        for node in range(6):
            port = 0 if node == target else 1 + next(port for port, other in enumerate(neighbors[node]) if hops[other] < hops[node])
            rows.append(f"{node},{target},{port}")
    return "\n".join(rows) + "\n"


FILES = {
    "network.txt": "".join(f"terminal {node} router {node}\n" for node in range(6))
    + "".join(f"router {a} router {b} latency={latency}\n" for a, b, latency in EDGES),
    "anynet.txt": "".join(
        f"router {node} node {node} " + " ".join(f"router {b} {latency}" for a, b, latency in EDGES if a == node) + "\n"
        for node in range(6)
    ),
    "tables.csv": ring_tables(),
}
ENGINES = ("flit", "equal-share", "max-min", "arbitrated", "analysis", "queued")
QUEUES = (
    "", 'queue = "pause"\nqueue_flits = 30\nswitching = "virtual-cut-through"', 'queue = "drop"\nqueue_flits = 30\nresend_after = 60',
    'switching = "virtual-cut-through"', "latency = 5", 'source_turns = "message"',
)  # fmt: skip
FAULTS = (
    "link_count = 1", "link_count = 2\nseed = 5", "link_fraction = 0.1", "routers = [1]",
    "link_count = 1\nat = 70\nresend_after = 40", "link_count = 2\nat = 60\nuntil = 160\ndetect_after = 30\nresend_after = 50",
    "link_count = 1\nat = 40\nuntil = 45\ndetect_after = 20\nresend_after = 25",
    "routers = [2]\nat = 80\ndetect_after = 10\nresend_after = 30",
)  # fmt: skip
LOADS = (0.02, 0.1, 0.3, 0.9)
MEASURES = ("warmup = 100\ncycles = 400", "precision = 0.3\nmax_cycles = 4000", 'search = "saturation"\nprecision = 0.5\nmax_cycles = 2000')
CLOSED = (
    'collective = "alltoall"\nmessage_flits = 7', 'collective = "allreduce"\nmessage_flits = 24\npacket_flits = 8',
    'collective = "barrier"',
    'collective = "broadcast"\nmessage_flits = 9\nstart_skew_cycles = 20', 'collective = "allgather"\nmessage_flits = 3',
    'collective = "reducescatter"\nmessage_flits = 16', 'collective = "reduce"\nmessage_flits = 9\nroot = 1',
    'collective = "gather"\nmessage_flits = 5', 'collective = "scatter"\nmessage_flits = 5\nroot = 1',
    'collective = "alltoallv"\nmatrix_flits = [[0, 5], [3, 0]]',
    'collective = "alltoall"\nschedule = "bruck"\nmessage_flits = 4\nrepeat = 2',
    'collective = "alltoall"\nmessage_flits = 40\npacket_flits = 9\nplacement = "random"',
)  # fmt: skip


def machine(draw: random.Random, engine: str, network: str, routing: str) -> Sections:
    """Write a network, a routing and routers for an engine or a sharing of flows."""
    sharing = {"equal-share", "max-min", "arbitrated"} & {engine}
    sections = Sections("flow" if sharing else "flit" if engine == "queued" else engine)
    sections.add("network", network, draw.choice(drawing.SPEEDS)).add("routing", routing)
    if engine == "queued":
        return sections.add("router", 'architecture = "output-queued"', draw.choice(QUEUES))
    options = draw.sample(drawing.ROUTER, draw.choice((0, 0, 1, 2))) if engine == "flit" else ()
    keys = {option.split(" ")[0]: option for option in options}
    sections.add("router", f"virtual_channels = {draw.choice((4, 4, 8, 16))}", f"buffer_flits = {draw.choice((6, 16, 64))}", *keys.values())
    if sharing:
        sections.add("flow", f'sharing = "{engine}"', draw.choice(("", "grain = 2", 'without = ["gap"]')) if engine == "arbitrated" else "")
    return sections


def traffic(draw: random.Random, sections: Sections) -> Sections:
    """Add open traffic, batches or a collective."""
    kind = draw.choice(("open", "open", "batch", "closed", "closed"))
    measure = draw.choice(MEASURES[:2] if "analysis" in sections.lines[""][0] else MEASURES)
    if kind == "closed":
        return sections.add("workload", draw.choice(CLOSED)).add("measure", "max_cycles = 60000", f"seed = {draw.randrange(1, 9)}")
    sections.add(
        "traffic",
        f'pattern = "{draw.choice(("uniform", "random-permutation", "neighbor"))}"',
        f"packet_flits = {draw.choice(drawing.SIZES)}",
    )
    if kind == "batch":
        return sections.add("traffic", f'process = "batch"\nbatch_packets = {draw.choice((1, 4, 20))}').add("measure", "max_cycles = 60000")
    return sections.add("traffic", f"load = {draw.choice(LOADS)}").add("measure", measure)


def drawn(name: str) -> Experiment:
    """Draw an experiment over all features: `drawn/SEED`."""
    return Experiment(drawing.draw_experiment(random.Random(int(name.split("/")[1]))))


def topologies() -> list[str]:
    """Name every topology with every routing that fits it on every engine: `topology/NAME/ROUTING/ENGINE`."""
    return [
        f"topology/{name}/{number}/{engine}"
        for name, (_, routings) in TOPOLOGIES.items()
        for number in range(len(routings + ANYWHERE))
        for engine in ENGINES
    ]


def topology(name: str) -> Experiment:
    """Write an experiment on a topology."""
    _, topology, number, engine = name.split("/")
    draw = random.Random(name)
    sizes, routings = TOPOLOGIES[topology]
    network = f'topology = "{topology}"\n{draw.choice(sizes)}'
    return Experiment(traffic(draw, machine(draw, engine, network, (routings + ANYWHERE)[int(number)])).text(), FILES)


def faults() -> list[str]:
    """Name every topology with failures before and during the run: `faults/NAME/NUMBER/ENGINE`."""
    engines = ("flit", "queued", "equal-share")
    return [f"faults/{name}/{number}/{engine}" for name, number, engine in itertools.product(TOPOLOGIES, range(len(FAULTS)), engines)]


def fault(name: str) -> Experiment:
    """Write an experiment with failures; routings lead round them."""
    _, topology, number, engine = name.split("/")
    draw = random.Random(name)
    network = f'topology = "{topology}"\n{draw.choice(TOPOLOGIES[topology][0])}'
    sections = machine(draw, engine, network, draw.choice((ANYWHERE[0], ANYWHERE[2], ANYWHERE[2], ANYWHERE[6])))
    return Experiment(traffic(draw, sections.add("faults", FAULTS[int(number)])).text(), FILES)


def program(draw: random.Random, ranks: int) -> str:
    """Write a GOAL program: rounds of permutations, each of which waits for the one before."""
    lines: list[list[str]] = [[] for _ in range(ranks)]
    for step in range(draw.randint(2, 5)):
        permutation = draw.sample(range(ranks), ranks)
        size = draw.choice((8, 100, 1000, 5000))
        for rank, target in enumerate(permutation):
            names = [f"c{step}: calc {draw.choice((0, 10, 500))}"]
            if rank != target:
                names += [
                    f"s{step}: send {size}b to {target} tag {step}",
                    f"r{step}: recv {size}b from {permutation.index(rank)} tag {step}",
                ]
                names += [f"s{step} requires c{step}"]
            if step:
                names += [
                    f"c{step} requires {kind}{step - 1}"
                    for kind in "sr"
                    if any(line.startswith(f"{kind}{step - 1}:") for line in lines[rank])
                ]
                names += [f"c{step} requires c{step - 1}"]
            lines[rank] += names
    return f"num_ranks {ranks}\n" + "".join(f"rank {rank} {{\n" + "\n".join(own) + "\n}\n" for rank, own in enumerate(lines))


UNITS = "flit_bytes = 8\nchannel_gbit_per_second = 80"
HOSTS = ("", "", "", "terminals_per_host = 2\nmemory_gbyte_per_second = 12.5\ncopies = 1")
PLACES = ("mesh", "torus", "fat-tree", "full-mesh", "leaf-spine", "dragonfly", "planes", "flattened-butterfly")


def traces(kind: str, count: int) -> list[str]:
    """Name programs in GOAL, execution traces (Chakra) and traces of open messages: `KIND/NUMBER/ENGINE`."""
    return [f"{kind}/{number}/{engine}" for number in range(count) for engine in ("flit", "equal-share", "max-min", "arbitrated", "queued")]


def place(draw: random.Random, engine: str) -> Sections:
    """Write a machine whose flits have a size and a rate, sometimes with hosts."""
    topology = draw.choice(PLACES)
    sizes, routings = TOPOLOGIES[topology]
    sections = machine(draw, engine, f'topology = "{topology}"\n{sizes[0]}\n{UNITS}', (routings or ANYWHERE)[0])
    sections.lines["network"] = [line for line in sections.lines["network"] if line not in drawing.SPEEDS]
    hosts = draw.choice(HOSTS)
    return sections.add("hosts", hosts) if hosts else sections


def goal(name: str) -> Experiment:
    """Write an experiment with a drawn program in GOAL."""
    draw = random.Random(name)
    sections = place(draw, name.split("/")[2]).add("workload", 'trace = "program.goal"', f"packet_flits = {draw.choice((8, 16, 64))}")
    return Experiment(sections.add("measure", "max_cycles = 100000").text(), {"program.goal": program(draw, draw.choice((2, 5, 8)))})


def chakra(name: str) -> Experiment:
    """Write an experiment with an execution trace of eight NPUs."""
    draw = random.Random(name)
    trace, groups = draw.choice((("pipeline", ""), ("groups_tp_dp", 'groups = "data/astra/groups/groups_8_tp4_dp2.json"')))
    systems = ("ring_4chunks", "ring_1chunk", "hd_4chunks", "dbt_4chunks", "direct_all_1chunk", "ring_16chunks_active16", "hd_1chunk")
    lines = [
        f'trace = "data/astra/traces/{trace}/t"',
        groups,
        f'system = "data/astra/configs/{draw.choice(systems)}.json"',
        "dimensions = [8]",
    ]
    sections = place(draw, name.split("/")[2]).add("workload", *lines).add("measure", "max_cycles = 300000")
    sections.lines["network"] = [line.replace("flit_bytes = 8", "flit_bytes = 2048") for line in sections.lines["network"]]
    return Experiment(sections.text())


def messages(name: str) -> Experiment:
    """Write an experiment with a trace of open messages."""
    draw = random.Random(name)
    time, lines = 0, ["time,source,destination,bytes"]
    for _ in range(draw.randint(5, 60)):
        time += draw.choice((0, 0, 1, 7, 40))
        source, destination = draw.sample(range(6), 2)
        lines.append(f"{time},{source},{destination},{draw.choice((1, 8, 100, 3000))}")
    sections = place(draw, name.split("/")[2]).add("traffic", 'trace = "messages.csv"', f"packet_flits = {draw.choice((8, 64))}")
    return Experiment(sections.add("measure", "max_cycles = 60000").text(), {"messages.csv": "\n".join(lines) + "\n"})


LAYOUTS = ("plain", "avx512", "full")
#: Keys of routers that several layouts have.
PLAIN_ROUTER = (
    "", "lookahead = true", "predictor = 'latest-port'", "predictor = 'static-straight'", "pipeline = ['RC', 'VSA', 'ST']",
    "credit_delay = 3", "switching = 'virtual-cut-through'", "hold_switch = true", "switch_allocator = 'islip'", "speculative = true",
)  # fmt: skip


def layouts() -> list[str]:
    """Name drawn machines in every layout of the flit engine: `layout/NUMBER/NAME`."""
    return [f"layout/{number}/{name}" for number in range(60) for name in LAYOUTS]


def layout(name: str) -> Experiment:
    """Write the same experiment for each layout."""
    _, number, layout = name.split("/")
    draw = random.Random(f"layout/{number}")
    topology = draw.choice([place for place in PLACES if place != "planes"])
    sizes, routings = TOPOLOGIES[topology]
    sections = Sections("flit").add("network", f'topology = "{topology}"\n{draw.choice(sizes)}', draw.choice(drawing.SPEEDS))
    sections.add("routing", (routings or ANYWHERE)[0])
    sections.add(
        "router", f"virtual_channels = {draw.choice((2, 4, 8))}", f"buffer_flits = {draw.choice((6, 16))}", draw.choice(PLAIN_ROUTER)
    )
    return Experiment(traffic(draw, sections.add("flit", f'layout = "{layout}"')).text())


@functools.cache
def matrix() -> str:
    """Read the source of the pairwise matrix."""
    return (ROOT / "crates/kasuri/tests/suite/matrix/values.rs").read_text()


def base() -> dict[str, dict[str, str]]:
    """Read the base of the matrix: the text of each key's value by section."""
    sections = tomllib.loads(re.search(r'BASE: &str = r#"(.*?)"#;', matrix(), re.DOTALL)[1])
    return {section: {key: json.dumps(value) for key, value in keys.items()} for section, keys in sections.items()}


@functools.cache
def values() -> dict[str, tuple[str, tuple[str, ...], str]]:
    """Read the values of the pairwise matrix: family, assignments and engine of each by name."""
    users = re.search(r'const TWO_USERS: &str = "(.*)";', matrix())[1]
    found = {}
    for kind, first, name, assignments in re.findall(
        r'^    (value|of_engine)\("([^"]*)", "([^"]*)", &\[(.*)\]\),$', matrix(), re.MULTILINE
    ):
        words = tuple(json.loads("[" + assignments.replace("TWO_USERS", json.dumps(users)) + "]"))
        family, engine = ("engine", first) if kind == "of_engine" else (first, "")
        found[f"{family}: {name}"] = (family, words, engine)
    return found


def pairs() -> list[str]:
    """Name a sample of the pairs of values: `pair/ENGINE/ONE & OTHER`."""
    names = [
        f"pair/{engine}/{one} & {other}"
        for (one, (family, _, own)), (other, (second, _, others)) in itertools.combinations(values().items(), 2)
        for engine in ("flit", "flow", "analysis")
        if family != second and {own, others} <= {"", engine}
    ]
    return [name for name in names if zlib.crc32(name.encode()) % PAIRS_PER_SAMPLE == 0]


def pair(name: str) -> Experiment:
    """Write the base of the matrix with two values: assignments with `?` first, `-key` takes a key out."""
    _, engine, both = name.split("/", 2)
    sections = base()
    words = [word for value in both.split(" & ") for word in values()[value][1]]
    families = [values()[value][0] for value in both.split(" & ")]
    if "users" in families or ("-traffic" in words and not any(family.startswith("traffic") for family in families)):
        del sections["traffic"]
    top: list[str] = []
    for word in sorted((word for word in words if word != "-traffic"), key=lambda word: word[0] != "?"):
        if word.startswith("-"):
            section, key = word[1:].split(".")
            sections.get(section, {}).pop(key, None)
            continue
        path, value = word.removeprefix("?").split("=", 1)
        section, _, key = path.partition(".")
        if key:
            sections.setdefault(section, {})[key] = value
        else:
            sections.pop(section, None)
            top.append(f"{section} = {value}")
    whole = {line.split(" = ")[0]: line for line in top}
    lines = [f'engine = "{engine}"', *whole.values()]
    # A section that one value writes whole takes further keys of the other one by dotted paths only where TOML allows: those are left out.
    lines += [
        f"[{section}]\n" + "\n".join(f"{key} = {value}" for key, value in keys.items())
        for section, keys in sections.items()
        if section not in whole
    ]
    return Experiment("\n".join(lines) + "\n")


def damaged(name: str) -> Experiment:
    """Damage a drawn experiment: `damaged/SEED`."""
    draw = random.Random(name)
    return Experiment(mutations.mutate(drawing.draw_experiment(draw), draw))


#: Of each stratum its names and what writes an experiment of a name.
STRATA = {
    "drawn": ([f"drawn/{seed}" for seed in range(DRAWN)], drawn),
    "topology": (topologies(), topology),
    "faults": (faults(), fault),
    "goal": (traces("goal", 12), goal),
    "chakra": (traces("chakra", 8), chakra),
    "messages": (traces("messages", 8), messages),
    "layout": (layouts(), layout),
    "pair": (pairs(), pair),
    "damaged": ([f"damaged/{seed}" for seed in range(DAMAGED)], damaged),
}


def names() -> list[str]:
    """Give the names of all experiments."""
    return [name for of_stratum, _ in STRATA.values() for name in of_stratum]


def experiment(name: str) -> Experiment:
    """Write the experiment of a name."""
    return STRATA[name.split("/")[0]][1](name)
