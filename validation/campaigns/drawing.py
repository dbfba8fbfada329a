"""Draws experiment files over all that they can say."""

from __future__ import annotations

import random

NETWORKS = (
    'topology = "mesh"\ndimensions = [4, 4]',
    'topology = "mesh"\ndimensions = [3, 2, 2]\nconcentration = 2',
    'topology = "torus"\ndimensions = [4, 4]',
    'topology = "fat-tree"\nup = 2\ndown = 2\nlevels = 3',
    'topology = "full-mesh"\nrouters = 5\nconcentration = 2',
    'topology = "dragonfly"\nterminals_per_router = 1\nrouters_per_group = 2\nglobal_channels = 1',
    'topology = "flattened-butterfly"\ndimensions = [3, 3]\nconcentration = 1',
    'topology = "slim-fly"\norder = 3',
    'topology = "mlfm"\ndegree = 2',
    'topology = "oft"\norder = 2',
    'topology = "butterfly"\nradix = 2\nstages = 3',
)
SPEEDS = (
    "",
    "channel_latency = 0",
    "channel_latency = 7",
    "channel_period = 3",
    "terminal_channel_period = 2",
    "terminal_channel_latency = 5",
)
ROUTINGS = (
    "dimension-order", "nca", "destination-tag", "minimal", "minimal-adaptive", "up-down", "valiant", "ugal", "o1turn", "dijkstra",
)  # fmt: skip
ANYWHERE = ("minimal", "minimal-adaptive", "up-down", "valiant", "ugal", "dijkstra")
GRIDS = ("dimension-order", "dimension-order", "o1turn", "two-phase", *ANYWHERE)

#: Routings of a topology; those of any network elsewhere.
FITTING = {
    "mesh": (*GRIDS, "planar-adaptive"), "torus": GRIDS, "fat-tree": ("nca", "nca", "nca\"\nup_port = \"adaptive", "up-down", "minimal"),
    "flattened-butterfly": ("dimension-order", "ugal-ordered", *ANYWHERE), "butterfly": ("destination-tag",),
    "dragonfly": ("dragonfly-phases", *ANYWHERE),
}  # fmt: skip
PATTERNS = ("uniform", "bit-complement", "transpose", "tornado", "neighbor", "random-permutation", 'hotspot"\nterminals = [1, 2]\n# "')
PROCESSES = ("bernoulli", "periodic", 'on-off"\nalpha = 0.02\nbeta = 0.05\n# "', 'batch"\nbatch_packets = 3\n# "')
SIZES = ("1", "5", "9", "[{ flits = 1, weight = 0.5 }, { flits = 6, weight = 0.5 }]")
ROUTER = (
    "switching = 'virtual-cut-through'", "switching = 'store-and-forward'", "credit_delay = 3", "vc_release = 'tail-credit'",
    "speculative = true", "lookahead = true", "predictor = 'latest-port'", "predictor = 'static-straight'", "priority = 'age'",
    "switch_allocator = 'wavefront'", "switch_allocator = 'islip'", "switch_allocator = 'separable-output-first'",
    "vc_allocator = 'maximum-size'", "input_speedup = 2", "output_speedup = 2", "internal_speedup = 1.5", "output_buffer_flits = 4",
    "hold_switch = true", "congestion = 'credits'", "pipeline = ['RC', 'VSA', 'ST']", "buffer_policy = 'dynamic'",
    "architecture = 'virtual-output-queued'", "class_queues = true", "vc_per_destination = true",
)  # fmt: skip
WORKLOADS = (
    'collective = "alltoall"\nmessage_flits = 7', 'collective = "allreduce"\nmessage_flits = 16', 'collective = "barrier"',
    'collective = "broadcast"\nmessage_flits = 9\nstart_skew_cycles = 20', 'collective = "allgather"\nmessage_flits = 3',
)  # fmt: skip
MEASURES = ("precision = 0.3\nmax_cycles = 30000", "warmup = 100\ncycles = 400", "precision = 0.3\nmax_cycles = 4000\nseed = 7")


MEASURES_OF_OPEN = (
    *MEASURES, *MEASURES,
    'search = "saturation"\nprecision = 0.5\nmax_cycles = 3000',
    "precision = 0.3\nmax_cycles = 4000\nrules = 'booksim'",
)  # fmt: skip
LOADS = ("0.02", "0.2", "0.9")
REPLIES = ("", "", "", "reply = { delay = 20 }", "reply = { packet_flits = 3 }")

#: What `[endpoint]` needs around it, and programs of it: Cenju-4, distributed shared memory, host adapters.
CENJU4 = """[network]
topology = "cenju4"
terminals = {terminals}
cycle_ns = 12.5
[routing]
algorithm = "destination-tag"
[router]
architecture = "crosspoint"
buffer_flits = 216
[endpoint]
model = "cenju4"
{errors}
[workload]
{program}
"""
CENJU4_PROGRAMS = (
    'program = "ping-pong"\nmessage_bytes = {bytes}',
    'program = "ping-pong"\nlibrary = "mpi"\nmessage_bytes = {bytes}', 'program = "protocols"',
    'program = "protection"', 'program = "multicast-storm"', 'collective = "alltoall"\nmessage_bytes = {bytes}',
    'collective = "allgather"\nmessage_bytes = {bytes}', 'collective = "allgather"\nschedule = "shift"\nmessage_bytes = {bytes}',
    'collective = "broadcast"\nmessage_bytes = {bytes}', 'collective = "barrier"', 'collective = "barrier"\nschedule = "atomic-add"',
)  # fmt: skip
DSM_PROGRAMS = (
    'program = "matrix-vector"', 'program = "matrix-vector"\norder = "ascending"', 'program = "stencil"\niterations = 2',
    'program = "random-access"\naccesses = 20\nwrite_fraction = 0.5', 'program = "producer-consumer"\nitems = 5',
    'program = "remote-access"\npairs = [[0, 5], [1, 2]]\naccesses = 4\nwrite_fraction = 0.2',
)  # fmt: skip
ENDPOINTS = ("", "", "interface_cycles = 11", "window = 2", "memory_cycles = 9", "data_flits = 8")

#: What stands beside users, and what they do.
ISOLATIONS = ("none", "channels", "channels-and-shares")
PLACEMENTS = ("contiguous", "random")
USERS = (
    "[user.traffic]\npattern = 'uniform'\nload = {load}\npacket_flits = 5",
    "[user.traffic]\npattern = 'uniform'\nprocess = 'batch'\nbatch_packets = 20",
    "[user.traffic]\npattern = 'random-permutation'\nload = {load}\npacket_flits = 3",
    "[user.workload]\ncollective = 'alltoall'\nmessage_flits = 12\npacket_flits = 6",
    "[user.workload]\ncollective = 'allreduce'\nmessage_flits = 12\nrepeat = 2",
)


def draw_experiment(draw: random.Random) -> str:
    """Write an experiment file."""
    kinds = (draw_traffic, draw_traffic, draw_traffic, draw_traffic, draw_workload, draw_workload, draw_users, draw_memory, draw_cenju4)
    return draw.choice(kinds)(draw)


def engine_of(draw: random.Random) -> str:
    """Choose an engine."""
    return draw.choice(("flit", "flit", "flit", "flow", "analysis"))


def machine_of(draw: random.Random, least_channels: int = 1) -> list[str]:
    """Write a network, a routing and routers."""
    options = draw.sample(ROUTER, draw.choice((0, 0, 1, 1, 2, 3)))
    keys = {option.split(" ")[0]: option for option in options}
    channels = draw.choice([count for count in (1, 2, 4, 8) if count >= least_channels])
    network = draw.choice(NETWORKS)
    fitting = FITTING.get(network.split('"')[1], ANYWHERE) if draw.random() < 0.8 else ROUTINGS
    speeds, algorithm = draw.choice(SPEEDS), draw.choice(fitting)
    # Few of the drawn routers keep its escape path open.
    allowed = ["allow_deadlock = true"] if algorithm == "minimal-adaptive" else []
    return [
        "[network]", network, speeds, "[routing]", f'algorithm = "{algorithm}"', *allowed,
        "[router]", f"virtual_channels = {channels}", f"buffer_flits = {draw.choice((2, 6, 16))}", *keys.values(),
    ]  # fmt: skip


def draw_traffic(draw: random.Random) -> str:
    """Write an experiment with open traffic."""
    process = draw.choice(PROCESSES)
    load = "" if process.startswith("batch") else f"load = {draw.choice(LOADS)}"
    traffic = [
        f'pattern = "{draw.choice(PATTERNS)}"',
        f'process = "{process}"',
        f"packet_flits = {draw.choice(SIZES)}",
        load,
        draw.choice(REPLIES),
    ]
    lines = [f'engine = "{engine_of(draw)}"', *machine_of(draw), "[measure]", draw.choice(MEASURES_OF_OPEN), "[traffic]", *traffic]
    return "\n".join(lines) + "\n"


def draw_workload(draw: random.Random) -> str:
    """Write an experiment with a collective, sometimes under host adapters."""
    lines = [f'engine = "{engine_of(draw)}"', *machine_of(draw), "[measure]", draw.choice(MEASURES), "[workload]", draw.choice(WORKLOADS)]
    if draw.random() < 0.25:
        lines[2:2] = ["flit_bytes = 64", "channel_gbit_per_second = 400"]
        lines += ["[endpoint]", 'model = "rdma"', draw.choice(("", "signalled = false", "inline_bytes = 0"))]
    return "\n".join(lines) + "\n"


def draw_users(draw: random.Random) -> str:
    """Write an experiment with two users."""
    lines = [f'engine = "{draw.choice(("flit", "flit", "flow"))}"', *machine_of(draw, 2), "[measure]", draw.choice(MEASURES)]
    lines += ["[users]", f"isolation = '{draw.choice(ISOLATIONS)}'"]
    for name, nodes in (("first", 4), ("second", draw.choice((2, 4)))):
        what = draw.choice(USERS).format(load=draw.choice(LOADS))
        lines += ["[[user]]", f"name = '{name}'", f"nodes = {nodes}", f"placement = '{draw.choice(PLACEMENTS)}'", what]
    return "\n".join(lines) + "\n"


def draw_memory(draw: random.Random) -> str:
    """Write an experiment with a machine of distributed shared memory."""
    lines = [f'engine = "{draw.choice(("flit", "flit", "flow"))}"', *machine_of(draw, 2), "[measure]", draw.choice(MEASURES), "[endpoint]"]
    lines += ['model = "dsm"', draw.choice(ENDPOINTS), "[workload]", draw.choice(DSM_PROGRAMS)]
    return "\n".join(lines) + "\n"


def draw_cenju4(draw: random.Random) -> str:
    """Write an experiment with the machine Cenju-4."""
    program = draw.choice(CENJU4_PROGRAMS).format(bytes=draw.choice((0, 4, 100, 5000)))
    errors = draw.choice(("", "", "bit_error_rate = 1e-5", "flit_loss_rate = 1e-4", "tlb_entries = 1"))
    return CENJU4.format(terminals=draw.choice((4, 16, 32)), errors=errors, program=program)
