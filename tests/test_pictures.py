"""No picture has texts that overlap or that its edge cuts: README, how-to guides, examples and reports.

What overlaps is measured on what Matplotlib has drawn (``pictures.py``); that the measure finds something is tested here, too.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import runpy
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import kasuri
import pictures
from command_line import KASURI
from kasuri import plot
from kasuri.plot import asked, style
from kasuri.plot.__main__ import main
from kasuri.plot.drawing import drawable
from kasuri.report import sections

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.toml")) + sorted((ROOT / "examples" / "gallery").glob("*.toml"))
#: These take less than a second; `make verify-docs` draws all.
QUICK = ("06-rdma", "13-arbitrated-flows", "14-ethernet-incast")
#: Of the million terminals some hundreds will do.
SMALLER = {"08-million-terminals": ["network.up=6", "network.down=6", "measure.cycles=300"]}
LATENCY = "packet_latency_mean"


def faults_of(ax: Axes) -> list[str]:
    return pictures.faults(style.figure_of(ax))


def test_the_measure_finds_overlaps_and_cut_texts():
    ax = Figure(figsize=(3, 2)).add_subplot()
    ax.set_xticks([0, 1, 2], ["a long word at a tick"] * 3)
    ax.set_ylabel("far too long a label for the axes of this figure, of two inches")
    found = pictures.faults(ax.figure)
    assert any("overlap" in fault for fault in found)
    assert any("label for the axes of this figure, of two inches` is cut" in fault for fault in found)
    ax.legend(ax.plot([0, 1], [0, 1]), ["curve"], loc="upper left")
    assert "the legend of `` covers axes" in pictures.faults(ax.figure)
    turned = Figure(figsize=(6, 3), layout="constrained").add_subplot()
    turned.set_xticks(range(5), ["a word"] * 5, rotation=30, ha="right", rotation_mode="anchor")
    assert pictures.faults(turned.figure) == []


def test_the_first_picture_of_the_readme(tmp_path, monkeypatch):
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: figures.append(self))
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = runpy.run_path(str(ROOT / "docs" / "images" / "first_picture.py"))
    monkeypatch.setitem(names["main"].__globals__, "OUT", tmp_path / "out")
    if not os.environ.get("KASURI_ALL_DOCS"):
        # The same number of points, of fewer cycles: the places are the same.
        short = names["EXPERIMENT"].read_text().replace("precision = 0.05", "precision = 0.5\nmax_cycles = 600")
        (tmp_path / "short.toml").write_text(short)
        monkeypatch.setitem(names["main"].__globals__, "EXPERIMENT", tmp_path / "short.toml")
    names["main"]()
    assert [pictures.faults(figure) for figure in figures] == [[]]


def test_the_figures_of_the_guide_to_plots(tmp_path, monkeypatch):
    """Its program runs as printed, and what it saves has no fault."""
    text = (ROOT / "docs" / "how-to" / "plots-for-a-paper.md").read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{KASURI.parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "paper.toml").write_text(re.search(r"```toml\n(.*?)```", text, re.DOTALL)[1])
    saved: dict[str, list[str]] = {}
    original = plot.save

    def save(ax: Axes, path: str, **options: object) -> Path:
        saved[str(path)] = faults_of(ax)
        return original(ax, path, **options)

    monkeypatch.setattr(plot, "save", save)
    names: dict[str, object] = {}
    for body in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(body, "plots-for-a-paper.md", "exec"), names)
    assert len(saved) >= 2
    assert {name: faults for name, faults in saved.items() if faults} == {}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_the_plots_of_an_example(example, tmp_path):
    if example.stem not in QUICK and not os.environ.get("KASURI_ALL_DOCS"):
        pytest.skip("slow: KASURI_ALL_DOCS=1 or make verify-docs draws it")
    settings = [word for change in SMALLER.get(example.stem, []) for word in ("--set", change)]
    subprocess.run([KASURI, "run", example, "--out", tmp_path, *settings], check=False, capture_output=True)
    results = kasuri.read(tmp_path)
    for size in ((6.4, 4.0), sections.PAGE_SIZE):
        for drawing in asked.drawings(results, size):
            assert drawing.ax is not None, drawing.problem
            assert faults_of(drawing.ax) == [], (drawing.name, size)


def test_the_plots_of_a_report(results):
    for drawing in asked.drawings(results, sections.PAGE_SIZE):
        assert faults_of(drawing.ax) == []


def test_a_figure_of_a_paper_with_a_long_claim_and_long_labels():
    from kasuri_papers import output

    claim = "with as many virtual channels as there are hops, the adaptive routing accepts twice what the deterministic one does, " * 2
    labels = {
        "x_label": "injection rate of each terminal, in flits in a cycle",
        "y_label": "mean latency of the packets that arrived in the end",
    }
    wished = SimpleNamespace(x="load", y="latency", split=["routing.algorithm"], top=None, **labels)
    rows = [{"load": load, "latency": 10 * load, "series": "measured", "routing.algorithm": name} for load in (1, 2) for name in "ab"]
    assert faults_of(output.draw(SimpleNamespace(id="paper/F1", claim=claim), wished, rows)) == []


def sweep(name: str, values: list[object], answer: str, numbers: list[float], **others: object) -> list[dict]:
    keys = {key.replace("__", "."): value for key, value in others.items()}
    return [{name: value, answer: number, "status": "converged"} | keys for value, number in zip(values, numbers, strict=True)]


WORDS = ["minimal-adaptive", "dimension-order", "planar-adaptive", "valiant", "o1turn", "two-phase", "romm", "dragonfly-groups"]
SWEEPS = {
    "many small loads": ("traffic.load", [round(0.01 * n, 2) for n in range(1, 31)], LATENCY, [20.0 + n for n in range(30)]),
    "large numbers": (
        "workload.message_bytes",
        [n * 10_000_000 for n in range(1, 9)],
        "completion_time_ns",
        [1e8 * n for n in range(1, 9)],
    ),
    "words": ("routing.algorithm", WORDS, "completion_time", [1e7 * n for n in range(1, 9)]),
    "long words": ("traffic.path", [f"a/very/long/path/to/a/matrix-{n}.txt" for n in range(6)], LATENCY, [1.0 * n for n in range(6)]),
    "many words": ("network.topology", [f"topology-{n}" for n in range(24)], "accepted_throughput_mean", [0.1 * n for n in range(24)]),
    "powers": ("workload.message_flits", [2**n for n in range(20)], "completion_time_ns", [2.0**n for n in range(20)]),
    "narrow logarithm": ("workload.message_flits", [100, 200, 300, 700], "completion_time_ns", [3e5, 4e5, 5e5, 7e5]),
    "tiny": ("measure.precision", [1e-7 * n for n in range(1, 9)], LATENCY, [1e-6 * n for n in range(1, 9)]),
}


@pytest.mark.parametrize("size", [(6.4, 4.0), (3.4, 2.2)])
@pytest.mark.parametrize("name", SWEEPS)
def test_curves_of_many_kinds_in_figures_of_many_sizes(name, size):
    x, values, y, numbers = SWEEPS[name]
    if isinstance(values[0], str):
        size = (size[0], size[1] + 1)  # rotated words need more room
    rows = [row for case in ("small", "a case with a longer name") for row in sweep(x, values, y, numbers, case=case)]
    is_log = name in ("powers", "narrow logarithm")
    ax = plot.curves(rows, x=x, y=y, log_x=is_log, log_y=is_log, ax=Figure(figsize=size, layout="constrained").add_subplot())
    assert faults_of(ax) == []


def test_several_axes_of_one_figure(results):
    figure = Figure(figsize=(12, 4), layout="constrained")
    for ax, pattern in zip(figure.subplots(1, 3), ("uniform", "transpose", "tornado"), strict=True):
        plot.latency_load(results.where(traffic__pattern=pattern), ax=ax)
        ax.set_title(pattern)
    assert pictures.faults(figure) == []


TOPOLOGIES = {
    entry["name"]: tomllib.loads(entry["example"])
    for entry in json.loads(subprocess.run([KASURI, "list", "topologies", "--format", "json"], capture_output=True, check=True).stdout)[
        "topologies"
    ]
    if "path" not in entry["example"]
}


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_the_drawings_of_a_topology(name):
    if name not in ("fat-tree", "dragonfly", "mlfm") and not os.environ.get("KASURI_ALL_DOCS"):
        pytest.skip("slow: KASURI_ALL_DOCS=1 or make verify-docs draws it")
    network = kasuri.Network.from_topology(name, **TOPOLOGIES[name])
    used = np.linspace(0, 1, network.channels)
    drawings = [plot.utilisation_by_class(network, used), plot.channel_utilisation(network, used)]
    drawings += [plot.draw_network(network), plot.draw_network(network, utilisation=used)] if drawable(network) else []
    assert [faults_of(ax) for ax in drawings] == [[]] * len(drawings)


def test_networks_with_long_names(tmp_path):
    import networkx

    graph = networkx.random_regular_graph(4, 40, seed=3)
    graph = networkx.relabel_nodes(graph, {node: f"a-switch-in-row-{node // 8}-rack-{node}" for node in graph})
    network = kasuri.Network.from_networkx(graph)
    assert faults_of(plot.draw_network(network)) == []
    assert faults_of(plot.draw_network(network, utilisation=np.linspace(0, 1, network.channels))) == []


# --- units, saturation, holes, legends ---


@pytest.mark.parametrize(("largest", "unit", "factor"), [(800.0, "ns", 1), (5e4, "µs", 1e3), (1e8, "ms", 1e6), (3e9, "s", 1e9)])
def test_a_time_is_in_the_unit_that_suits_it(largest, unit, factor):
    rows = sweep("traffic.load", [0.1, 0.2], "completion_time_ns", [largest / 2, largest])
    ax = plot.curves(rows, x="traffic.load", y="completion_time_ns")
    assert ax.get_ylabel() == f"completion time ({unit})"
    assert list(ax.get_lines()[0].get_ydata()) == pytest.approx([largest / 2 / factor, largest / factor])
    ax.figure.draw_without_rendering()
    assert ax.yaxis.get_offset_text().get_text() == ""


def test_panels_share_their_unit(tmp_path):
    rows = [
        {
            "router.buffer_flits": n,
            "case": case,
            "network.topology": topology,
            "completion_time_ns": 10.0**exponent * n,
            "status": "completed",
        }
        for exponent, topology in ((3, "mesh"), (7, "torus"))
        for case in "abcdefgh"
        for n in (1, 2)
    ]
    (tmp_path / "input.toml").write_text('[[plot]]\nx = "router.buffer_flits"\ny = "completion_time_ns"\nseries = "case"\n')
    (tmp_path / "runs.json").write_text(json.dumps({"runs": rows}))
    labels = {ax.get_ylabel() for _, ax in plot.experiment_plots(kasuri.read(tmp_path))}
    assert labels == {"completion time (ms)"}


@pytest.mark.parametrize("is_empty", [False, True])
def test_a_saturated_run_has_no_latency_whatever_its_column_holds(is_empty):
    """Two seeds gave 5,256 and 1,551 cycles for one saturated network: the height means nothing, so there is none."""
    rows = sweep("traffic.load", [0.1, 0.2, 0.3, 0.4], LATENCY, [20.0, 25.0, 5256.0, 1551.0])
    for row in rows[2:]:
        row |= {"status": "saturated"} | ({LATENCY: None} if is_empty else {})
    ax = plot.latency_load(rows)
    heights = [float(height) for line in ax.get_lines() for height in line.get_ydata()]
    # The edge, at 1.3 times the greatest steady latency, holds the triangle.
    assert sorted(set(heights)) == pytest.approx([20.0, 25.0, 32.5])
    marks = [line for line in ax.get_lines() if line.get_marker() == "^"]
    assert [float(mark.get_xdata()[0]) for mark in marks] == [0.3]


def test_axes_without_a_steady_run_have_no_numbers():
    rows = sweep("traffic.load", [0.3, 0.4], LATENCY, [5256.0, 1551.0])
    ax = plot.latency_load([row | {"status": "saturated"} for row in rows])
    assert list(ax.get_yticks()) == []
    assert [float(line.get_xdata()[0]) for line in ax.get_lines() if line.get_marker() == "^"] == [0.3]


def test_a_saturation_load_is_a_steady_point():
    rows = sweep("router.virtual_channels", [1, 2, 4], "saturation_load", [0.2, 0.3, 0.35])
    ax = plot.curves([row | {"status": "saturated"} for row in rows], x="router.virtual_channels", y="saturation_load")
    assert ax.get_legend() is None
    [line] = ax.get_lines()
    assert line.get_linestyle() == "-"
    assert line.get_markerfacecolor() == line.get_color()


def pieces(ax: Axes) -> list[list[float]]:
    """The abscissas that each unbroken piece of the solid lines joins."""
    found = []
    for line in ax.get_lines():
        if line.get_linestyle() == "-":
            whole = [(float(x), not np.isnan(y)) for x, y in line.get_xydata()]
            found += [[x for x, _ in group] for there, group in itertools.groupby(whole, key=lambda place: place[1]) if there]
    return found


SMALL_SWEEP = """\
[network]
topology = "mesh"
dimensions = [4, 4]

[routing]
algorithm = "dimension-order"

[traffic]
packet_flits = 1

[measure]
warmup = 50
cycles = 200

[sweep]
"traffic.pattern" = ["uniform", "tornado"]
"traffic.load" = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3]
"""


def incomplete(folder: Path, missing: set[float]) -> kasuri.Results:
    """A folder of a sweep that was interrupted: runs at some loads of one pattern are missing."""
    file = folder.with_suffix(".toml")
    file.write_text(SMALL_SWEEP)
    for row in kasuri.run(file, out=folder):
        if row["traffic.pattern"] == "uniform" and row["traffic.load"] in missing:
            (folder / "runs" / f"{row['key']}.json").unlink()
    (folder / "runs.json").unlink()
    return kasuri.read(folder)


def test_no_line_crosses_a_run_that_is_missing(tmp_path, capsys):
    results = incomplete(tmp_path / "out", {0.15, 0.2})
    assert [(run["traffic.pattern"], run["traffic.load"]) for run in results.missing] == [("uniform", 0.15), ("uniform", 0.2)]
    ax = plot.latency_load(results.where(traffic__pattern="uniform"))
    assert pieces(ax) == [[0.05, 0.1], [0.25, 0.3]]
    assert results.where(traffic__pattern="tornado").missing == []
    # Two curves, one with a hole.
    assert sorted(map(len, pieces(plot.latency_load(results)))) == [2, 2, 6]
    assert "2 planned runs are missing; no line crosses their places." in asked.drawings(results)[0].notes
    assert main([str(tmp_path / "out"), "--formats", "svg"]) == 0
    assert "kasuri: missing run: " in capsys.readouterr().err


def test_a_folder_with_an_experiment_that_cannot_be_read_is_drawn(tmp_path):
    incomplete(tmp_path / "out", {0.15})
    (tmp_path / "out" / "effective.toml").write_text("[network\n")
    results = kasuri.read(tmp_path / "out")
    assert pieces(plot.latency_load(results.where(traffic__pattern="uniform"))) == [[0.05, 0.1, 0.2, 0.25, 0.3]]
    with pytest.raises(kasuri.ResultsError, match=r"effective\.toml"):
        assert results.where(traffic__pattern="uniform").missing


def test_a_whole_folder_misses_nothing(results):
    assert results.missing == []
    assert results[:3].missing == []


def test_no_line_crosses_a_run_that_failed():
    rows = sweep("traffic.load", [0.1, 0.2, 0.3, 0.4], LATENCY, [20.0, 21.0, 22.0, 23.0])
    rows[1] |= {"status": "failed", LATENCY: None}
    assert pieces(plot.latency_load(rows)) == [[0.1], [0.3, 0.4]]


def test_a_legend_names_no_parameters_that_the_topology_decides():
    rows = []
    for topology, own in (("mesh", {"dimensions": [4, 4]}), ("fat-tree", {"up": 2, "down": 2, "levels": 3}), ("dragonfly", {"a": 4})):
        keys = {f"network.{key}": value for key, value in own.items()}
        rows += [row | keys for row in sweep("traffic.load", [0.1, 0.2], LATENCY, [1.0, 2.0], network__topology=topology)]
    ax = plot.latency_load(rows)
    assert ax.get_legend().get_title().get_text() == "network.topology"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["mesh", "fat-tree", "dragonfly"]


def test_places_that_are_cases_need_no_legend_of_their_keys():
    keys = [f"router.key_{number}" for number in range(15)]
    rows = [{"case": f"case {n}", "completion_time": 10.0 * n, "status": "completed"} | dict.fromkeys(keys, n) for n in range(1, 5)]
    ax = plot.curves(rows, x="case", y="completion_time")
    assert ax.get_legend() is None
    assert [text.get_text() for text in ax.get_xticklabels()] == ["case 1", "case 2", "case 3", "case 4"]
