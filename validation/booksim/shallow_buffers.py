#!/usr/bin/env python3
"""Draws configurations whose packets do not fit their buffers, runs them in BookSim 2 and in Kasuri, and writes a table of both.

    BOOKSIM=…/src/booksim validation/booksim/shallow_buffers.py --kasuri KASURI

As ``random_configurations.py``, but every packet is longer than the buffer of a virtual channel, so that flits and credits run out
while a packet crosses a router, and half of the configurations hold the switch for a packet. Drawn are buffers of 1 to 8 flits,
packets of up to 16, virtual channels, speculation, allocators, speed-ups, output buffers, delays, priorities and when virtual
channels are free. The networks are small, so that many can be run. The table goes to ``shallow_buffers.csv`` beside this file.

Only the standard library is needed. Exit status: 0 all inside, 1 not, 2 wrong use.
"""

from __future__ import annotations

import pathlib
import random
import sys
import tempfile

from beside import finish, parser_of, prepare
from random_configurations import ALLOCATORS, HEADER, Drawn, one

HERE = pathlib.Path(__file__).resolve().parent

SHAPES: list[tuple[dict[str, str], dict[str, tuple[int, ...]]]] = [
    ({"topology": "mesh", "k": "4", "n": "2"}, {"dor": (1, 2, 4, 8), "xy_yx": (2, 4), "min_adapt": (2, 4)}),
    ({"topology": "torus", "k": "4", "n": "2"}, {"dim_order": (2, 4, 8), "min_adapt": (4,)}),
    ({"topology": "fly", "k": "2", "n": "3"}, {"dest_tag": (1, 2, 4, 8)}),
    ({"topology": "fattree", "k": "2", "n": "3"}, {"nca": (1, 2, 4, 8), "anca": (1, 2, 4, 8)}),
    ({"topology": "tree4", "k": "4", "n": "3"}, {"nca": (2, 4), "anca": (2, 4)}),
]

# BookSim heeds priorities in these.
WITH_PRIORITIES = ["separable_input_first", "separable_output_first", "wavefront", "select"]
PRIORITIES = ["age", "network_age", "local_age", "hop_count", "queue_length", "sequence"]


def draw(number: int) -> Drawn:
    """Configuration ``number``."""
    dice = random.Random(f"shallow {number}")
    drawn = Drawn()
    options = drawn.options
    shape, routings = SHAPES[number % len(SHAPES)]
    options.update(shape)
    options["routing_function"] = dice.choice(sorted(routings))
    options["num_vcs"] = str(dice.choice(routings[options["routing_function"]]))
    depth = dice.choice([1, 2, 2, 3, 4, 4, 8])
    options["vc_buf_size"] = str(depth)
    drawn.flits = float(dice.choice([flits for flits in (2, 3, 5, 9, 16) if flits > depth]))
    options["packet_size"] = str(int(drawn.flits))
    options["hold_switch_for_packet"] = str(number // len(SHAPES) % 2)
    draw_options(dice, options)
    options.update(traffic=dice.choice(["uniform", "uniform", "neighbor", "hotspot({{1,6},{1,2}})"]), injection_rate_uses_flits="0")
    drawn.part = round(dice.uniform(0.3, 0.75), 2)
    options.update(latency_thres="5000.0", sample_period="2000")
    return drawn


def draw_options(dice: random.Random, options: dict[str, str]) -> None:
    """Two or three of the router's options besides its allocators."""
    options["routing_delay"] = dice.choice("011")
    for option in ("vc_allocator", "sw_allocator"):
        options[option] = dice.choice(["islip", *ALLOCATORS])
    choices = {
        "speculative": "1",
        "wait_for_tail_credit": "1",
        "vc_busy_when_full": "1",
        "vc_prioritize_empty": "1",
        "credit_delay": dice.choice("12"),
        "output_buffer_size": dice.choice("124"),
        "input_speedup": "2",
        "output_speedup": "2",
        "internal_speedup": dice.choice(["1.5", "2.0"]),
        "st_final_delay": "2",
        "priority": dice.choice(PRIORITIES),
    }
    for option in dice.sample(sorted(choices), dice.choice([0, 1, 2, 3])):
        options[option] = choices[option]
    if "priority" in options:
        for option in ("vc_allocator", "sw_allocator"):
            options[option] = dice.choice(WITH_PRIORITIES)
    # What BookSim cannot run: its max_size comes to a standstill on a switch that is not square; flits under way may overflow the output
    # buffer, and a stage of two cycles begins within a cycle, on which it aborts.
    if options.get("input_speedup") != options.get("output_speedup") and options["sw_allocator"] == "max_size":
        options["sw_allocator"] = "islip"
    if "internal_speedup" in options:
        options.pop("output_buffer_size", None)
        options.pop("st_final_delay", None)


def main() -> int:
    """Draws the configurations, runs them and writes the table."""
    parser = parser_of(__doc__, HERE / "shallow_buffers.csv", 600.0)
    parser.add_argument("--numbers", type=int, nargs="*", default=range(1, 41), help="which configurations (default: 1 to 40)")
    parser.add_argument("--show", type=int, help="only print this configuration")
    options = parser.parse_args()
    if options.show is not None:
        drawn = draw(options.show)
        print(drawn.text() + "".join(f"{setting.replace('=', ' = ')};" for setting in drawn.at(0.25)))
        return 0
    prepare(parser, options)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number in options.numbers:
            drawn = draw(number)
            file = pathlib.Path(folder) / f"{number}.cfg"
            file.write_text(drawn.text())
            rows.append(one(number, drawn, file, options))
            print("  ".join(cell for cell in rows[-1] if cell), flush=True)
    return finish(options.table, HEADER, rows)


if __name__ == "__main__":
    sys.exit(main())
