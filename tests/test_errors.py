"""Every mistake in Python raises a KasuriError that names the right value."""

from __future__ import annotations

import inspect
import re
import sys

import pytest

import kasuri
from kasuri import errors, plot

MESH = {
    "network": {"topology": "mesh", "dimensions": [4, 4]},
    "routing": {"algorithm": "dimension-order"},
    "traffic": {"pattern": "uniform", "load": 0.1, "packet_flits": 5},
    "measure": {"warmup": 50, "cycles": 200},
}
ROWS = [{"key": "a", "traffic.load": 0.1, "packet_latency_mean": 20.0, "status": "converged"}]


def network() -> kasuri.Network:
    return kasuri.Network.from_topology("mesh", dimensions=[4, 4])


def results() -> kasuri.Results:
    return kasuri.Results(ROWS)


MISTAKES = {
    "override without its dot": (lambda: kasuri.run(MESH, traffic_load=0.1), "did you mean `traffic__load`?"),
    "misspelt override": (lambda: kasuri.run(MESH, traffic_lod=0.1), "did you mean `traffic__load`?"),
    "override without its section": (lambda: kasuri.run(MESH, load=0.1), "did you mean `traffic__load`?"),
    "override of no section": (lambda: kasuri.run(MESH, xyzzy=0.1), "sections are title, engine, network"),
    "override of an unknown section": (lambda: kasuri.run(MESH, trafic__load=0.1), "did you mean `traffic`?"),
    "unknown engine": (lambda: kasuri.run(MESH, engine="flits"), "did you mean `flit`?"),
    "no experiment": (lambda: kasuri.run(12), "give the path of a file, or its keys as a dictionary"),
    "no folder": (lambda: kasuri.run(MESH, out=5), "out: is 5; expected the name of a folder"),
    "sweep over a number": (lambda: kasuri.sweep(MESH, {"traffic.load": 0.1}), "sweep traffic.load: is 0.1; it must be a list"),
    "sweep over names": (lambda: kasuri.sweep(MESH, ["traffic.load"]), "give keys and their values as a dictionary"),
    "read a number": (lambda: kasuri.read(3), "expected the name of a folder"),
    "rows that are none": (lambda: kasuri.Results("out/mesh"), "kasuri.read takes the name of a folder"),
    "misspelt column": (lambda: results()["packet_latncy_mean"], "no column `packet_latncy_mean`; did you mean `packet_latency_mean`?"),
    "unknown column": (lambda: results()["xyzzy"], "no column `xyzzy`; there are key, traffic.load"),
    "column without its section": (lambda: results().where(load=0.1), "did you mean `traffic.load`?"),
    "column to show": (lambda: results().show(["lod"]), "did you mean `traffic.load`?"),
    "dimension": (lambda: results().to_xarray(["lod"]), "did you mean `traffic.load`?"),
    "row": (lambda: results()[7], "no row 7; there are 1"),
    "row of a vector": (lambda: results().vector(7, "channel_utilisation"), "no row 7"),
    "row of a network": (lambda: results().network(7), "no row 7"),
    "index": (lambda: results()[0.5], "not by 0.5"),
    "column of a plot": (lambda: plot.latency_load(ROWS, x="traffic.lod"), "did you mean `traffic.load`?"),
    "ordinate without numbers": (lambda: plot.curves(ROWS, x="traffic.load", y="status"), "no run has a number in `status`"),
    "no table": (lambda: plot.latency_load(3), "expected a table"),
    "too many curves": (
        lambda: plot.latency_load([ROWS[0] | {"router.buffer_flits": n} for n in range(40)]),
        "router.buffer_flits make 40 curves",
    ),
    "values of another network": (lambda: plot.draw_network(network(), utilisation=[0, 1]), "but the network has"),
    "values that are none": (lambda: plot.channel_utilisation(network(), "x"), "expected a number for each channel"),
    "no network": (lambda: plot.draw_network(3), "expected a kasuri.Network, got int"),
    "format": (lambda: plot.save(plot.latency_load(ROWS), "x.foo"), "no format has the ending `.foo`"),
    "place of a plot": (lambda: plot.save(plot.latency_load(ROWS), "/proc/x/y.svg"), "/proc/x/y.svg: cannot be written"),
    "place of a table": (lambda: results().save_parquet("/proc/x"), "/proc/x: cannot be written"),
    "place of a network": (lambda: network().save("/proc/x"), "/proc/x: cannot be written"),
    "topology": (lambda: kasuri.Network.from_topology("msh"), "did you mean `mesh`?"),
    "parameter": (lambda: kasuri.Network.from_topology("mesh", dimensons=[4, 4]), "did you mean `dimensions`?"),
    "ragged edges": (lambda: kasuri.Network.from_edges([[0, 1], [2]]), "expected whole numbers of shape [links, 2]"),
    "latencies": (lambda: kasuri.Network.from_edges([[0, 1]], latency=[1, 2]), "one for each of the 1 links"),
    "no graph": (lambda: kasuri.Network.from_networkx(3), "expected a networkx graph, got int"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_mistake_is_a_kasuri_error_that_says_what_would_be_right(mistake):
    make, expected = MISTAKES[mistake]
    with pytest.raises(kasuri.KasuriError, match=re.escape(expected)):
        make()


def test_all_errors_are_of_one_kind_and_of_pythons_own_kinds():
    kinds = [value for _, value in inspect.getmembers(errors, inspect.isclass) if value.__module__ == "kasuri.errors"]
    assert len(kinds) >= 8
    assert all(issubclass(kind, kasuri.KasuriError) and kind.__name__ in kasuri.__all__ for kind in kinds)
    assert all(getattr(kasuri, kind.__name__) is kind for kind in kinds)
    # Code that caught these kinds still works.
    assert issubclass(kasuri.ColumnError, KeyError)
    assert issubclass(kasuri.ArgumentError, ValueError)
    assert issubclass(kasuri.PackageError, ImportError)


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("pandas", lambda: results().to_pandas()),
        ("polars", lambda: results().to_polars()),
        ("xarray", lambda: results().to_xarray()),
        ("networkx", lambda: network().to_networkx()),
    ],
)
def test_a_missing_package_is_named_with_what_to_install(monkeypatch, name, use):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(kasuri.PackageError, match=rf"needs the package {name} .*-m pip install {name}`.*pip install 'kasuri\["):
        use()
