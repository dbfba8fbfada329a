"""Plots draw what the table says, on the axes given, and become files."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from matplotlib.figure import Figure

import kasuri
import synthetic
from kasuri import plot
from kasuri.plot import design as plot_design

MAGIC = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.fixture(scope="module")
def mesh() -> kasuri.Network:
    return kasuri.Network.from_topology("mesh", dimensions=[8, 8])


def test_axes_go_in_and_come_out(results):
    ax = Figure().add_subplot()
    assert plot.latency_load(results, ax=ax) is ax
    assert ax.get_xlabel() == "injection rate (flits/terminal/cycle)"
    assert ax.get_ylabel() == "packet latency, mean (cycles)"


def test_each_value_of_the_series_is_one_curve_with_its_steady_runs(results):
    ax = plot.curves(results, x="traffic.load", y="packet_latency_mean", series="traffic.pattern")
    curves = {line.get_label(): line for line in ax.get_lines() if not str(line.get_label()).startswith("_")}
    assert list(curves) == ["uniform", "transpose", "tornado"]
    for pattern, line in curves.items():
        steady = [row for row in results if row["traffic.pattern"] == pattern and row["status"] == "converged"]
        assert list(line.get_xdata()) == [row["traffic.load"] for row in steady]
        assert list(line.get_ydata()) == [row["packet_latency_mean"] for row in steady]


def test_saturated_latencies_do_not_squash_the_steady_ones(results):
    steady = max(row["packet_latency_mean"] for row in results if row["status"] == "converged")
    assert plot.latency_load(results).get_ylim()[1] == pytest.approx(1.3 * steady)


def test_the_first_unsteady_place_of_each_curve_is_hollow(results):
    ax = plot.latency_load(results, series="traffic.pattern")
    hollow = [line for line in ax.get_lines() if line.get_markerfacecolor() == "none"]
    assert sorted(float(line.get_xdata()[0]) for line in hollow) == [0.25, 0.3, 0.45]


def test_the_band_is_the_confidence_interval(results):
    part = results.where(traffic__pattern="uniform", status="converged")
    ax = plot.latency_load(part)
    corners = ax.collections[0].get_paths()[0].vertices
    for row in part:
        heights = corners[np.isclose(corners[:, 0], row["traffic.load"]), 1]
        assert heights.min() == pytest.approx(row["packet_latency_mean"] - row["packet_latency_ci95"])
        assert heights.max() == pytest.approx(row["packet_latency_mean"] + row["packet_latency_ci95"])


def test_repeated_seeds_are_averaged_with_students_interval():
    rows = [{"traffic.load": 0.1, "measure.seed": seed, "status": "converged", "packet_latency_mean": 10.0 + seed} for seed in (1, 2, 3)]
    ax = plot.latency_load(rows)
    assert list(ax.get_lines()[0].get_ydata()) == [12.0]
    heights = ax.collections[0].get_paths()[0].vertices[:, 1]
    # Mean 12, standard deviation 1, three values: half-width 4.303 / sqrt(3).
    assert heights.max() - 12 == pytest.approx(4.303 / 3**0.5)


def test_any_table_gives_the_same_curve(results):
    expected = plot.latency_load(results).get_lines()[0].get_ydata()
    for table in (results.to_pandas(), results.to_polars(), results.to_arrow(), list(results)):
        assert list(plot.latency_load(table).get_lines()[0].get_ydata()) == list(expected)


def test_an_unknown_column_is_named(results):
    with pytest.raises(KeyError, match="no column `latency`"):
        plot.curves(results, x="traffic.load", y="latency")


@pytest.mark.parametrize("ending", MAGIC)
def test_saving_gives_a_file_of_that_kind_and_the_same_bytes_again(results, tmp_path, ending):
    first = plot.save(plot.latency_load(results), tmp_path / "a" / f"one.{ending}").read_bytes()
    second = plot.save(plot.latency_load(results), tmp_path / f"two.{ending}").read_bytes()
    assert first.startswith(MAGIC[ending])
    assert first == second


def test_the_experiments_own_plots_are_drawn_in_its_order(results):
    names = [name for name, _ in plot.experiment_plots(results)]
    assert names == ["01-packet_latency_mean-over-traffic-load", "02-accepted_throughput_mean-over-traffic-load"]


def test_the_heat_map_holds_each_channel_at_its_routers(mesh):
    values = np.linspace(0, 1, mesh.channels)
    shown = plot.channel_utilisation(mesh, values).get_images()[0].get_array()
    for channel in range(2 * mesh.terminals, mesh.channels):
        assert shown[mesh.source_router[channel], mesh.destination_router[channel]] == pytest.approx(values[channel])
    assert np.ma.count(np.ma.masked_invalid(shown)) == mesh.channels - 2 * mesh.terminals


def test_a_vector_of_another_network_is_refused(mesh):
    with pytest.raises(ValueError, match=r"shape \(3,\), but the network has 352 channels"):
        plot.channel_utilisation(mesh, [0, 0, 0])
    with pytest.raises(ValueError, match="352 channels"):
        plot.draw_network(mesh, utilisation=[0, 0, 0])


def test_a_mesh_is_drawn_by_its_coordinates(mesh):
    ax = plot.draw_network(mesh)
    places = ax.collections[-1].get_offsets()
    assert np.array_equal(places[:, 0], mesh.labels["coordinate.0"])
    assert np.array_equal(places[:, 1], mesh.labels["coordinate.1"])


def test_every_topology_of_the_examples_is_drawn(mesh, tmp_path):
    used = np.linspace(0, 1, mesh.channels)
    assert plot.save(plot.draw_network(mesh, utilisation=used), tmp_path / "used.png").stat().st_size > 10_000


def test_synthetic_rows_agree_with_the_mesh(mesh):
    assert (mesh.routers, mesh.terminals, mesh.channels) == (synthetic.ROUTERS, synthetic.TERMINALS, synthetic.CHANNELS)


LARGEST = [
    {"ports_at_most": ports, "family": family, "terminals": terminals}
    for ports in (4, 8, 16)
    for family, terminals in (("fat tree, 2 levels", ports**2 // 2), ("multi-layer full mesh", (ports // 2) ** 2 * (ports // 2 + 1)))
]


def test_sizes_of_topologies_are_curves_over_ports():
    ax = plot_design.design({"largest": LARGEST})
    curves = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in ax.get_lines()}
    assert curves == {"fat tree, 2 levels": ([4, 8, 16], [8, 32, 128]), "multi-layer full mesh": ([4, 8, 16], [12, 80, 576])}


def test_prices_of_topologies_are_bars_and_those_above_the_budget_are_hatched():
    rows = [
        {"network": "cheap", "price": 10.0, "terminals": 5, "routers": 3, "all_to_all": 1.0},
        {"network": "dear", "price": 40.0, "terminals": 10, "routers": 4, "all_to_all": 0.5},
    ]
    ax = plot_design.design({"currency": "francs", "budget": 20.0, "designs": rows})
    assert [bar.get_width() for bar in ax.patches] == [4.0, 2.0]
    assert [bar.get_hatch() for bar in ax.patches] == ["///", None]
    assert "francs" in ax.get_xlabel()


def test_a_design_is_drawn_from_standard_input(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"largest": LARGEST})))
    assert plot_design.main([str(tmp_path / "sizes.svg")]) == 0
    assert (tmp_path / "sizes.svg").read_bytes().startswith(MAGIC["svg"])
