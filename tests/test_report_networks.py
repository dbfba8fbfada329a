"""The report shows the networks that were run, by their names, and says in words what its drawings show."""

from __future__ import annotations

import html
import json
import re
import subprocess
import tomllib
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import kasuri
import synthetic
from command_line import KASURI
from kasuri import plot, report
from kasuri.plot.drawing import drawable
from kasuri.plot.layout import layout
from kasuri.report import maps

BASE = {
    "routing": {"algorithm": "dimension-order"},
    "router": {"virtual_channels": 2},
    "traffic": {"pattern": "uniform", "load": 0.2, "packet_flits": 5},
    "measure": {"warmup": 100, "cycles": 400},
}
MESH = {"topology": "mesh", "dimensions": [4, 4]}
NAMES = ("Kyoto", "Osaka&<Kobe>", "Nara", "Otsu")


def topologies() -> list[dict[str, Any]]:
    return json.loads(subprocess.run([KASURI, "list", "topologies", "--format", "json"], check=True, capture_output=True).stdout)[
        "topologies"
    ]


def page_of(results: kasuri.Results) -> str:
    assert results.directory is not None
    return report.write(results.directory).read_text()


def section(page: str, name: str) -> str:
    """What stands under a heading, up to the next of its rank."""
    return page[page.index(f'<h2 id="{name}">') :].split("<h2", 2)[1]


def marks(part: str) -> list[list[list[Any]]]:
    """What the drawings of a part of the page say where somebody points."""
    found = re.findall(r'<script type="application/json" class="marks">(.*?)</script>', part, re.DOTALL)
    return [json.loads(text) for text in found]


class Rows(HTMLParser):
    """The texts of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.inside = True

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.rows[-1][-1] += data.strip()


def table(page: str, name: str) -> list[list[str]]:
    parser = Rows()
    parser.feed(re.search(rf'<table class="[^"]*\b{name}\b.*?</table>', page, re.DOTALL)[0])
    return parser.rows


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of a sweep over whole networks whose file describes a third."""
    networks = [{"topology": "torus", "dimensions": [4, 4]}, MESH]
    experiment = BASE | {"network": {"topology": "mesh", "dimensions": [8, 8]}}
    return page_of(kasuri.sweep(experiment, {"network": networks}, out=tmp_path_factory.mktemp("two")))


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> kasuri.Results:
    """A ring of routers with names; its file is gone when the report is made."""
    text = "".join(
        f"router {one} router {other}\nterminal host-{one} router {one}\n" for one, other in zip(NAMES, NAMES[1:] + NAMES[:1], strict=True)
    )
    experiment = BASE | {"network": kasuri.Network.from_text(text), "routing": {"algorithm": "up-down"}}
    return kasuri.run(experiment, out=tmp_path_factory.mktemp("named"))


def test_swept_networks_are_drawn_as_they_were_run(two):
    captions = re.findall(r"<figcaption><strong>(.*?)</strong>", section(two, "network"))
    assert captions == ["torus [4, 4]", "mesh [4, 4]"]
    for drawn, stubs in zip(marks(section(two, "network")), (16, 0), strict=True):
        assert len([mark for mark in drawn if len(mark) == 3]) == 16
        # Each of the 16 ways round a torus of 4 x 4 (both directions) leaves as a stub at either side.
        assert len([mark for mark in drawn if len(mark) == 5]) == 48 + 2 * stubs


def test_maps_of_utilisation_have_one_scale(two):
    scales = [re.findall(r">(0\.\d+)</text>", svg) for svg in re.findall(r"<svg.*?</svg>", section(two, "utilisation"), re.DOTALL)]
    assert len(scales) == 2
    assert scales[0]
    assert scales[0] == scales[1]


def test_a_scale_that_is_given_is_the_end_of_the_colours():
    mesh = kasuri.Network.from_topology(**{"name": "mesh", "dimensions": [4, 4]})
    values = np.linspace(0, 0.5, mesh.channels)
    assert plot.draw_network(mesh, utilisation=values, highest=0.8).collections[0].get_clim() == (0, 0.8)
    assert plot.channel_utilisation(mesh, values, highest=0.8).get_images()[0].get_clim() == (0, 0.8)


def test_names_of_routers_stand_in_drawing_tooltips_and_table(named):
    page = page_of(named)
    svg = re.search(r"<svg.*?</svg>", section(page, "network"), re.DOTALL)[0]
    words = html.unescape(svg)
    tips = [mark[-1] for drawn in marks(section(page, "network")) for mark in drawn]
    for name in NAMES:
        assert name in words
        assert any(tip.startswith(f"{name} (") for tip in tips)
        assert any(tip.startswith(f"{name} → ") for tip in tips)
    assert "<Kobe>" not in page


def test_the_busiest_channels_are_those_of_the_vector_by_name(named):
    values = named.vector(0, "channel_utilisation")
    network = named.network(0)
    assert network is not None
    head, *body = table(page_of(named), "busiest")
    assert head == ["source", "destination", "utilisation", "channel"]
    assert [float(line[2]) for line in body] == pytest.approx(sorted(values, reverse=True)[:10], abs=1e-4)
    for source, destination, load, channel in body:
        number = int(channel)
        assert float(load) == pytest.approx(values[number], abs=1e-4)
        for shown, router in ((source, network.source_router[number]), (destination, network.destination_router[number])):
            assert (shown in NAMES) == (router >= 0)
            assert shown == NAMES[router] if router >= 0 else shown.startswith("host-")


def test_a_network_that_cannot_be_the_one_that_was_run_is_not_drawn(tmp_path):
    folder = synthetic.folder(tmp_path / "x")
    (folder / "input.toml").write_text(synthetic.MESH.replace("[8, 8]", "[4, 4]"))
    page = report.write(folder).read_text()
    assert "not drawn: it was not kept, and the input describes one of 16 terminals, not of 64" in section(page, "network")
    assert "<svg" not in section(page, "network")
    assert 'id="utilisation"' not in page


def test_a_network_too_large_for_a_map_is_summed_up_by_class(tmp_path):
    """A map of 10,100 routers would be noise: in its place stand the classes of channels, and the page says why."""
    assert maps.MAX_MAPPED_ROUTERS == 10_000
    experiment = BASE | {"network": {"topology": "torus", "dimensions": [101, 100]}, "measure": {"warmup": 20, "cycles": 60}}
    results = kasuri.run(experiment, out=tmp_path)
    page = page_of(results)
    assert len(page) < 300_000
    assert "<image" not in page
    assert "not drawn, but summed up: with more than 400 routers or 4000 channels" in section(page, "network")
    assert "<dt>grid</dt><dd>101 x 100</dd>" in section(page, "network")
    assert "No map is drawn of more than 10,000 routers" in section(page, "utilisation")
    assert "<svg" in section(page, "utilisation")
    head, *body = table(page, "classes")
    assert head == ["class", "channels", "mean", "least", "5 %", "median", "95 %", "greatest"]
    assert [line[:2] for line in body] == [
        *(["injection", "10100"], ["along dimension 0", "20200"], ["along dimension 1", "20200"], ["ejection", "10100"])
    ]
    values = results.vector(0, "channel_utilisation")
    injection = values[:10_100]
    expected = [injection.mean(), injection.min(), *np.quantile(injection, (0.05, 0.5, 0.95)), injection.max()]
    assert [float(number) for number in body[0][2:]] == pytest.approx(expected, abs=1e-4)
    assert max(float(line[-1]) for line in body) == pytest.approx(values.max(), abs=1e-4)
    assert len(table(page, "busiest")) == 11


def test_every_channel_is_in_one_class():
    for entry in topologies():
        if "path" in entry["example"]:
            continue
        network = kasuri.Network.from_topology(entry["name"], **tomllib.loads(entry["example"]))
        classes = plot.channel_classes(network, np.arange(network.channels))
        assert sum(one.count for one in classes) == network.channels, entry["name"]
        assert (classes[0].name, classes[-1].name) == ("injection", "ejection")
        # Numbered utilisations: their sum tells that none is in two classes and another in none.
        assert sum(one.count * one.mean for one in classes) == pytest.approx(network.channels * (network.channels - 1) / 2)


def test_classes_follow_levels_groups_and_dimensions():
    def counts(name: str, **parameters: Any) -> dict[str, int]:
        network = kasuri.Network.from_topology(name, **parameters)
        return {one.name: one.count for one in plot.channel_classes(network, np.zeros(network.channels))}

    ends = {"injection": 64, "ejection": 64}
    levels = {f"level {low} to {high}": 64 for low, high in ((1, 2), (2, 1), (2, 3), (3, 2))}
    assert counts("fat-tree", up=4, down=4, levels=3) == ends | levels
    # Nine groups of four routers, each connected to the three others of its group and to two of other groups.
    groups = {"within a group": 9 * 4 * 3, "between groups": 9 * 4 * 2}
    assert counts("dragonfly", terminals_per_router=2, routers_per_group=4, global_channels=2) == {"injection": 72, "ejection": 72} | groups
    grid = {"along dimension 0": 2 * 3 * 4, "along dimension 1": 2 * 4 * 3}
    assert counts("mesh", dimensions=[4, 4]) == {"injection": 16, "ejection": 16} | grid
    assert counts("full-mesh", routers=4, concentration=1) == {"injection": 4, "between routers": 12, "ejection": 4}


def test_classes_of_another_network_are_refused():
    mesh = kasuri.Network.from_topology(**{"name": "mesh", "dimensions": [4, 4]})
    with pytest.raises(ValueError, match=r"utilisation has shape \(3,\), but the network has 80 channels"):
        plot.utilisation_by_class(mesh, [0, 0, 0])


def test_every_topology_has_a_place_for_each_router_and_lines_that_end_at_them():
    checked = [entry["name"] for entry in topologies() if "path" not in entry["example"] and is_drawn_truly(entry)]
    assert len(checked) > 10


def is_drawn_truly(entry: dict[str, Any]) -> bool:
    network = kasuri.Network.from_topology(entry["name"], **tomllib.loads(entry["example"]))
    places = layout(network)
    assert places.routers.shape == (network.routers, 2)
    assert len(np.unique(places.routers.round(6), axis=0)) == network.routers, entry["name"]
    assert drawable(network), entry["name"]
    near = 0.05 * np.ptp(places.routers, axis=0).max(initial=1.0) + 0.1
    lines: dict[str, list[np.ndarray]] = {}
    for spots, words in plot.draw_network(network).kasuri_tips:
        for line, text in zip(spots, words, strict=True):
            if line.ndim == 2 and "terminal" not in text:
                lines.setdefault(text.split(",")[0], []).append(line)
    assert lines or network.routers == 1, entry["name"]
    for text, ways in lines.items():
        source, destination = (int(name.removeprefix("router ")) for name in text.split(" → "))
        begins = min(np.linalg.norm(way[0] - places.routers[source]) for way in ways)
        ends = min(np.linalg.norm(way[-1] - places.routers[destination]) for way in ways)
        assert max(begins, ends) < near, (entry["name"], text)
    return True


def test_routers_of_a_dragonfly_stand_in_their_group():
    network = kasuri.Network.from_topology("dragonfly", terminals_per_router=2, routers_per_group=4, global_channels=2)
    places = layout(network)
    centres = np.array([group.centre for group in places.groups])
    assert len(centres) == 9
    nearest = np.linalg.norm(places.routers[:, None] - centres[None], axis=2).argmin(axis=1)
    assert np.array_equal(nearest, network.labels["group"])
    words = [text.get_text() for text in plot.draw_network(network).texts]
    assert {f"group {number}" for number in range(9)} <= set(words)


def test_channels_that_pass_routers_go_round_them():
    """In a flattened butterfly a row is a complete graph: its channels are no way round a ring, and lie on one line unless they bend."""
    network = kasuri.Network.from_topology("flattened-butterfly", dimensions=[5, 5])
    assert not layout(network).wraps.any()
    torus = kasuri.Network.from_topology("torus", dimensions=[5, 3, 4])
    wraps = layout(torus).wraps
    start, end = torus.router_edges.T
    far = [np.abs(torus.labels[f"coordinate.{n}"][start] - torus.labels[f"coordinate.{n}"][end]) for n in range(3)]
    assert np.array_equal(wraps, (far[0] == 4) | (far[1] == 2) | (far[2] == 3))


def test_tooltips_of_curves_tell_the_numbers_of_their_runs(run_folder, tmp_path):
    import shutil

    page = report.write(shutil.copytree(run_folder, tmp_path / "copy")).read_text()
    latency = marks(section(page, "curves"))[0]
    row = synthetic.row("uniform", 0.05)
    assert f"uniform: {row['packet_latency_mean']:.4g} ± {row['packet_latency_ci95']:.4g} at 0.05" in [mark[-1] for mark in latency]
    width, height = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', section(page, "curves")).groups())
    for x, y, _ in latency:
        assert 0 < x < width
        assert 0 < y < height
    # All steady places, and of each pattern the first beyond saturation.
    assert len(latency) == sum(row["status"] == "converged" for row in synthetic.rows()) + 3


def test_tables_are_sorted_by_buttons_and_drawings_have_names(two):
    for part in re.findall(r'<table class="[^"]*sorted.*?</thead>', two, re.DOTALL):
        heads = re.findall(r"<th .*?</th>", part, re.DOTALL)
        assert heads
        assert all(head.count('<button type="button">') == 1 for head in heads)
    drawings = re.findall(r"<svg .*?>", two)
    assert len(drawings) == 2 + 2 + 2  # two plots over the swept words, two networks, two maps
    assert all('role="img" tabindex="0" aria-label="' in drawing for drawing in drawings)
    assert all(float(width) <= 460 for width in re.findall(r"--width: (\d+)px", two))


def test_closed_workloads_are_summed_up_by_their_times(tmp_path):
    experiment = {
        "engine": "flow",
        "network": MESH | {"flit_bytes": 16, "channel_gbit_per_second": 128},
        "routing": {"algorithm": "dimension-order"},
        "workload": {"collective": "alltoall", "schedule": "shift", "packet_flits": 5},
    }
    results = kasuri.sweep(experiment, {"workload.message_bytes": [64, 65536]}, out=tmp_path)
    page = page_of(results)
    head, *body = table(page, "times")
    assert head[:3] == ["workload.message_bytes", "completion timecycles", "completion time"]
    assert [line[0] for line in body] == ["64", "65\u202f536"]
    for line, row in zip(body, results, strict=True):
        assert float(line[1].replace("\u202f", "")) == pytest.approx(row["completion_time"], rel=1e-3)
        number, unit = line[2].split()
        assert float(number) * {"ns": 1, "µs": 1e3, "ms": 1e6}[unit] == pytest.approx(row["completion_time_ns"], rel=1e-3)
        assert line[-1] == "completed"


def test_a_plot_that_cannot_be_drawn_is_a_sentence_on_the_page(tmp_path):
    folder = synthetic.folder(tmp_path / "x")
    text = synthetic.MESH.replace('y = "packet_latency_mean"', 'y = "packet_latency"')
    (folder / "input.toml").write_text(text)
    part = section(report.write(folder).read_text(), "curves")
    assert "Not drawn: plot 1: no column `packet_latency`; did you mean `packet_latency_" in part
    assert part.count("<svg") == 1


def test_a_run_is_mapped_where_it_is_soundest():
    rows = [synthetic.row("uniform", load) for load in (0.3, 0.4, 0.45)]
    limit = rows[1] | {"status": "max_cycles"}
    assert maps._soundest([rows[0], limit, rows[2]]) == rows[0]
    assert maps._soundest([limit, rows[2]]) == limit
