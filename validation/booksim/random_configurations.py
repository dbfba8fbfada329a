#!/usr/bin/env python3
"""Draws configurations over the options that Kasuri supports, runs them in BookSim 2 and in Kasuri, and writes a table of both.

    BOOKSIM=…/src/booksim validation/booksim/random_configurations.py --kasuri KASURI

Each number of ``--numbers`` (1 to 40) is the seed of one configuration: the same number always gives the same one. First each
terminal offers all that it can send, which tells the saturation; then the configuration runs at its own part of it. The rule of
comparison stands in ``beside.py``. The table goes to ``random_configurations.csv`` beside this file, or to ``--table``;
``--show N`` prints configuration N at a quarter of its full load and runs nothing.

``randperm`` is not drawn, since its permutation is another one here; and what BookSim 2 aborts on is not drawn.

Only the standard library is needed. Exit status: 0 all inside, 1 not, 2 wrong use.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import sys
import tempfile
from dataclasses import dataclass, field

from beside import COMPARED, both, compare, finish, judge, messages, parser_of, prepare, told

HERE = pathlib.Path(__file__).resolve().parent

HEADER = [
    "number",
    "configuration",
    *COMPARED,
    "inside",
    "reason",
]

# Topologies with their options, the number of their terminals, and their routings with the virtual channels that these need. BookSim
# aborts on `valiant` on a torus.
Routings = dict[str, tuple[int, ...]]
EVEN, QUARTERS, ANY = (2, 4, 8), (4, 8), (1, 2, 3, 4, 8)
SHAPES: list[tuple[str, dict[str, int], int, Routings]] = [
    ("mesh", {"k": 4, "n": 2}, 16, {"dor": ANY, "dim_order_pni": (4, 8), "dim_order_ni": (16,), "romm_ni": (16,)}),
    ("mesh", {"k": 8, "n": 2}, 64, {"dor": ANY, "xy_yx": EVEN, "adaptive_xy_yx": EVEN, "romm": EVEN, "valiant": EVEN}),
    ("mesh", {"k": 3, "n": 3}, 27, {"dor": ANY, "romm": (2, 3, 4), "valiant": EVEN, "xy_yx": EVEN}),
    ("torus", {"k": 8, "n": 2}, 64, {"dim_order": (2, 4, 8), "dim_order_bal": EVEN}),
    ("torus", {"k": 5, "n": 2}, 25, {"dim_order": (2, 3, 4), "dim_order_bal": EVEN}),
    ("torus", {"k": 4, "n": 2}, 16, {"dim_order_ni": (16,), "dim_order_bal": EVEN}),
    (
        "cmesh",
        {"k": 4, "n": 2, "c": 4, "xr": 2, "yr": 2, "x": 4, "y": 4},
        64,
        {"dor": ANY, "dor_no_express": ANY, "xy_yx": EVEN, "xy_yx_no_express": EVEN},
    ),
    ("fly", {"k": 4, "n": 3}, 64, {"dest_tag": ANY}),
    ("fly", {"k": 2, "n": 4}, 16, {"dest_tag": ANY}),
    ("fattree", {"k": 4, "n": 3}, 64, {"nca": ANY, "anca": ANY}),
    ("fattree", {"k": 2, "n": 4}, 16, {"nca": ANY, "anca": ANY}),
    (
        "flatfly",
        {"k": 4, "n": 2, "c": 4, "xr": 2, "yr": 2, "x": 4, "y": 4},
        64,
        {
            "ran_min": ANY,
            "xyyx": EVEN,
            "adaptive_xyyx": EVEN,
            "valiant": EVEN,
            "ugal": EVEN,
            "ugal_xyyx": QUARTERS,
            "ugal_pni": (8, 16),
        },
    ),
    ("dragonflynew", {"k": 2, "n": 1}, 72, {"min": (2, 3, 4), "ugal": (3,)}),
    ("qtree", {"k": 4, "n": 3}, 64, {"nca": ANY}),
    ("tree4", {"k": 4, "n": 3}, 64, {"nca": ANY}),
    ("anynet", {}, 8, {"min": ANY}),
]

# A tree of routers, so that no virtual channels are needed against deadlock; two of its channels are slow.
NETWORK_FILE = """\
router 0 router 1 router 2 3 router 3
router 1 node 0 node 1 node 2
router 2 node 3 node 4 router 0 2
router 3 node 5 node 6 node 7
"""

ALLOCATORS = [
    "islip",
    "islip(2)",
    "separable_input_first",
    "separable_output_first",
    "separable_input_first(matrix)",
    "wavefront",
    "rr_wavefront",
    "pim",
    "loa",
    "select",
    "max_size",
]


@dataclass
class Drawn:
    """A configuration, and how its load is set."""

    options: dict[str, str] = field(default_factory=dict)
    part: float = 0.5
    """The part of saturation at which it runs."""
    flits: float = 1.0
    """Flits of a packet and its answer, in the mean."""
    classes: int = 1
    reads_and_writes: bool = False

    def text(self) -> str:
        """The configuration file."""
        return "".join(f"{name} = {value};\n" for name, value in self.options.items())

    def at(self, load: float) -> list[str]:
        """The settings for a load of so many flits a terminal and cycle."""
        rate = f"{load / self.flits / self.classes:.6f}"
        return [f"injection_rate={{{','.join([rate] * self.classes)}}}" if self.classes > 1 else f"injection_rate={rate}"]

    def overload(self) -> list[str]:
        """Each terminal offers all that it can send, by coins."""
        load = 0.999 * self.classes if self.reads_and_writes is False else 0.5 * self.flits
        return ["sim_type=throughput", "injection_process=bernoulli", *self.at(load)]


def draw(number: int, allocators: list[str]) -> Drawn:
    """Configuration ``number``."""
    dice = random.Random(number)
    drawn = Drawn()
    # The first go through all topologies; then they are drawn.
    topology, shape, terminals, routings = SHAPES[number - 1] if number <= len(SHAPES) else dice.choice(SHAPES)
    routing = dice.choice(sorted(routings))
    channels = dice.choice(routings[routing])
    options = drawn.options
    options.update(topology=topology, **{name: str(value) for name, value in shape.items()})
    options.update(routing_function=routing, num_vcs=str(channels))
    if topology == "anynet":
        options["network_file"] = "network"
    if topology in ("torus", "cmesh", "flatfly"):
        options["use_noc_latency"] = dice.choice("01")
    draw_router(dice, options, allocators)
    options["traffic"] = dice.choice(patterns(topology, shape, terminals, dice))
    draw_packets(dice, drawn, routing, channels)
    options["injection_rate_uses_flits"] = "0"
    drawn.part = round(dice.uniform(0.3, 0.8), 2)
    kind = dice.random()
    if kind < 0.1 and drawn.classes == 1:
        options.update(sim_type="batch", batch_count="1", batch_size=str(dice.choice([100, 300])))
        options["max_outstanding_requests"] = random.Random(f"window {number}").choice("00148")
    elif kind < 0.25 and not drawn.reads_and_writes:
        options["injection_process"] = dice.choice(["on_off({0.1,0.1})", "on_off({0.05,0.2})"])
        options["burst_r1"] = "-1.0"
        drawn.part = min(drawn.part, 0.5)
    elif kind < 0.35:
        options["sim_type"] = "throughput"
    options.update(latency_thres="5000.0", sample_period="2000")
    return drawn


def draw_router(dice: random.Random, options: dict[str, str], allocators: list[str]) -> None:
    """Buffers, delays and allocators."""
    options["vc_buf_size"] = str(dice.choice([2, 4, 8, 16]))
    options["routing_delay"] = dice.choice("01")
    options["credit_delay"] = dice.choice("012")
    options["wait_for_tail_credit"] = dice.choice("001")
    options["speculative"] = dice.choice("0001")
    options["vc_allocator"] = dice.choice(allocators)
    options["sw_allocator"] = dice.choice(allocators)


def draw_packets(dice: random.Random, drawn: Drawn, routing: str, channels: int) -> None:
    """Lengths of packets, classes, reads and writes."""
    options = drawn.options
    kind = dice.random()
    plain = not routing.endswith("ni") and routing not in ("min", "ugal", "ugal_xyyx", "valiant", "dim_order", "dim_order_bal")
    if kind < 0.15 and channels >= 4 and plain:
        drawn.reads_and_writes = True
        request, reply = dice.choice([(1, 5), (1, 1), (2, 4)])
        options.update(use_read_write="1", write_fraction=dice.choice(["0.5", "0.25"]))
        for end in ("read_request", "write_request", "read_reply", "write_reply"):
            options.update({f"{end}_begin_vc": "-1", f"{end}_end_vc": "-1"})
        options.update(read_request_size=str(request), write_reply_size=str(request))
        options.update(read_reply_size=str(reply), write_request_size=str(reply))
        drawn.flits = float(request + reply)
    elif kind < 0.3:
        drawn.classes = 2
        options.update(classes="2", packet_size="{2,2}")
        drawn.flits = 2.0
    elif kind < 0.5:
        options.update(packet_size="{{1,5}}", packet_size_rate="{{3,1}}")
        drawn.flits = 2.0
    else:
        drawn.flits = float(dice.choice([1, 1, 2, 5, 8]))
        options["packet_size"] = str(int(drawn.flits))


def patterns(topology: str, shape: dict[str, int], terminals: int, dice: random.Random) -> list[str]:
    """The patterns that this network allows."""
    spots = sorted(dice.sample(range(terminals), 4))
    allowed = ["uniform", "uniform", f"background({{{{{spots[0]},{spots[1]}}}}})", "diagonal"]
    allowed.append(f"hotspot({{{{{','.join(map(str, spots))}}},{{1,2,3,2}}}})")
    if topology != "anynet":
        allowed += ["tornado", "neighbor"]
    if terminals % 2 == 0:
        allowed.append("asymmetric")
    if terminals & (terminals - 1) == 0:
        allowed += ["bitcomp", "bitrev", "shuffle"]
    if terminals in (16, 64, 256):
        allowed.append("transpose")
    if terminals == 64:
        allowed.append("taper64")
    if topology == "dragonflynew":
        allowed = ["uniform", "bad_dragon", "diagonal", "asymmetric"]
    if topology in ("flatfly", "cmesh"):
        allowed.append("badperm_yarc")
    return allowed


def one(number: int, drawn: Drawn, file: pathlib.Path, options: argparse.Namespace) -> list[str]:
    """The row of one configuration."""
    is_batch = drawn.options.get("sim_type") == "batch"
    overloaded = None if is_batch else both(options, file, drawn.overload())
    saturation = overloaded[0].mean("accepted") if overloaded else None
    load = drawn.part * (saturation or 0.2)
    settings = [] if is_batch else drawn.at(load)
    run = both(options, file, settings)
    text = "; ".join([*(f"{name} = {value}" for name, value in drawn.options.items()), *settings]).replace("=", " = ").replace("  ", " ")
    verdict = judge(*run, load, saturation)
    whole = compare("accepted", *overloaded, 0.03) if overloaded else None
    compared = [verdict] if is_batch else [verdict, whole]
    inside = run[0].status == run[1].status and all(one is not None and one.inside for one in compared)
    cells = [*told(verdict), *told(whole)[1:]]
    return [str(number), text, run[0].status, run[1].status, *cells, "yes" if inside else "no", messages(run)]


def main() -> int:
    """Draws the configurations, runs them and writes the table."""
    parser = parser_of(__doc__, HERE / "random_configurations.csv", 600.0)
    parser.add_argument("--numbers", type=int, nargs="*", default=range(1, 41), help="which configurations (default: 1 to 40)")
    parser.add_argument("--allocators", nargs="*", default=ALLOCATORS, help="from which allocators to draw")
    parser.add_argument("--show", type=int, help="only print this configuration")
    options = parser.parse_args()
    if options.show is not None:
        drawn = draw(options.show, options.allocators)
        print(drawn.text() + "".join(f"{setting.replace('=', ' = ')};" for setting in drawn.at(0.25)))
        return 0
    prepare(parser, options)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "network").write_text(NETWORK_FILE)
        for number in options.numbers:
            drawn = draw(number, options.allocators)
            file = pathlib.Path(folder) / f"{number}.cfg"
            file.write_text(drawn.text())
            rows.append(one(number, drawn, file, options))
            print("  ".join(cell for cell in rows[-1] if cell), flush=True)
    return finish(options.table, HEADER, rows)


if __name__ == "__main__":
    sys.exit(main())
