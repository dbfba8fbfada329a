"""What a plot shows is what was run: nothing but seeds is averaged, curves can be told apart, and legends cover no data."""

from __future__ import annotations

import itertools
import re
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import kasuri
import synthetic
from kasuri import plot
from kasuri.plot import asked, spots, style
from kasuri.plot.__main__ import main

LATENCY = "packet_latency_mean"


def row(load: float, latency: float, **others: object) -> dict:
    keys = {key.replace("__", "."): value for key, value in others.items()}
    return {"traffic.load": load, "status": "converged", LATENCY: latency} | keys


def drawn(ax: Axes) -> dict[str, list[tuple[float, float]]]:
    """The curves by the words of the legend, and their places."""
    lines = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
    return {str(line.get_label()): list(zip(line.get_xdata(), line.get_ydata(), strict=True)) for line in lines}


def legend_words(ax: Axes) -> list[str]:
    legend = ax.get_legend()
    return [text.get_text() for text in legend.get_texts()] if legend else []


def folder(path: Path, plots: str, rows: list[dict]) -> kasuri.Results:
    import json

    path.mkdir(exist_ok=True)
    (path / "input.toml").write_text(plots)
    (path / "runs.json").write_text(json.dumps({"runs": rows}))
    return kasuri.read(path)


def wish(**keys: object) -> str:
    lines = "\n".join(f"{key} = {value!r}".replace("True", "true") for key, value in keys.items())
    return f"[[plot]]\n{lines}\n"


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_every_run_but_repeated_seeds_keeps_a_place_of_its_own(data):
    """Over random sweeps: as many places are drawn as there are runs that differ in more than their seed, at their own values."""
    pool = {"router.virtual_channels": [1, 2, 4], "network.topology": ["mesh", "torus"], "traffic.pattern": ["uniform", "tornado"]}
    keys = data.draw(st.lists(st.sampled_from(sorted(pool)), unique=True))
    series = data.draw(st.lists(st.sampled_from(keys), unique=True)) if keys else []
    seeds = data.draw(st.integers(1, 3))
    points = list(itertools.product([0.1, 0.2, 0.3], *(pool[key] for key in keys)))
    kept = data.draw(st.lists(st.sampled_from(points), min_size=1, unique=True))
    rows = [
        {"traffic.load": point[0], **dict(zip(keys, point[1:], strict=True)), "measure.seed": seed}
        | {"status": "converged", LATENCY: 100.0 * number + seed}
        for number, point in enumerate(kept)
        for seed in range(seeds)
    ]
    own = spots.curve_keys(rows, "traffic.load", series)
    curves = spots.curves_of(rows, "traffic.load", LATENCY, [*series, *own])
    heights = sorted(spot.y for curve in curves for spot in curve.spots)
    assert heights == pytest.approx([100.0 * number + (seeds - 1) / 2 for number in range(len(kept))])
    for curve in curves:
        assert len({spot.x for spot in curve.spots}) == len(curve.spots)  # a curve has one height at each place


def test_a_key_that_no_series_names_sets_curves_apart():
    rows = [row(load, 10.0, network__topology="mesh", traffic__pattern="uniform") for load in (0.1, 0.3)]
    rows += [row(load, 99.0, network__topology="torus", traffic__pattern="uniform") for load in (0.2, 0.4)]
    rows += [row(load, 50.0, network__topology="mesh", traffic__pattern="tornado") for load in (0.1, 0.3)]
    curves = drawn(plot.curves(rows, x="traffic.load", y=LATENCY, series="traffic.pattern"))
    assert curves["uniform, mesh"] == [(0.1, 10.0), (0.3, 10.0)]
    assert curves["uniform, torus"] == [(0.2, 99.0), (0.4, 99.0)]
    assert curves["tornado, mesh"] == [(0.1, 50.0), (0.3, 50.0)]


def test_engines_are_never_averaged():
    rows = [row(0.1, 10.0, engine="flit"), row(0.1, 30.0, engine="analysis")]
    assert drawn(plot.latency_load(rows)) == {"flit": [(0.1, 10.0)], "analysis": [(0.1, 30.0)]}


def test_paired_values_are_named_once_by_their_case():
    rows = [
        row(load, load, case=case, network__topology=topology, routing__algorithm=routing)
        for case, topology, routing in (("small", "mesh", "dimension-order"), ("large", "fat-tree", "nca"))
        for load in (0.1, 0.2)
    ]
    assert list(drawn(plot.latency_load(rows))) == ["small", "large"]


def test_an_answer_along_the_abscissa_mixes_no_networks():
    """Latency over size: runs of one load and several sizes are places of a curve, not one mean."""
    rows = [row(load, side + load, network__dimensions=[side, side], terminals=side**2) for side in (4, 8) for load in (0.1, 0.2)]
    curves = drawn(plot.curves(rows, x="terminals", y=LATENCY))
    assert curves == {"0.1": [(16, 4.1), (64, 8.1)], "0.2": [(16, 4.2), (64, 8.2)]}


def test_words_along_the_abscissa_become_places():
    rows = [row(0.1, 5.0, network__topology="mesh"), row(0.1, 3.0, network__topology="torus")]
    ax = plot.curves(rows, x="network.topology", y=LATENCY)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["mesh", "torus"]
    assert [(x, y) for places in ([line.get_xydata().tolist() for line in ax.get_lines()]) for x, y in places] == [(0, 5.0), (1, 3.0)]


def test_each_of_thirty_two_curves_has_its_own_look_and_more_are_refused():
    looks = [style.identity(number) for number in range(style.MAX_CURVES)]
    for pair in (("color", "linestyle"), ("color", "marker")):
        assert len({tuple(map(str, (look[part] for part in pair))) for look in looks}) == style.MAX_CURVES
    rows = [row(0.1, 1.0, router__buffer_flits=flits) for flits in range(style.MAX_CURVES + 1)]
    assert len(drawn(plot.latency_load(rows[1:]))) == style.MAX_CURVES
    with pytest.raises(ValueError, match=r"router\.buffer_flits make 33 curves, and a plot can distinguish 32"):
        plot.latency_load(rows)


def test_many_curves_become_small_multiples_with_one_scale_and_one_look_for_each_name(tmp_path):
    rows = [
        row(load, vcs + load, router__virtual_channels=vcs, network__topology=name)
        for name in ("mesh", "torus")
        for vcs in range(1, 9)
        for load in (0.1, 0.2)
    ]
    results = folder(tmp_path, wish(x="traffic.load", y=LATENCY, series="router.virtual_channels"), rows)
    plots = plot.experiment_plots(results)
    assert [ax.get_title(loc="left") for _, ax in plots] == ["network.topology = mesh", "network.topology = torus"]
    assert len({name for name, _ in plots}) == 2
    assert len({(ax.get_xlim(), ax.get_ylim()) for _, ax in plots}) == 1
    colours = [[line.get_color() for line in ax.get_lines() if not line.get_label().startswith("_")] for _, ax in plots]
    assert colours[0] == colours[1]
    assert len(colours[0]) == 8


def test_what_cannot_be_drawn_is_refused_with_its_keys(tmp_path, capsys):
    rows = [row(0.1, 1.0, a__b=one, c__d=two) for one in range(40) for two in range(40)]
    results = folder(tmp_path, wish(x="traffic.load", y=LATENCY), rows)
    with pytest.raises(kasuri.ResultsError, match=r"plot 1: a\.b, c\.d vary besides traffic\.load and make 1600 curves"):
        plot.experiment_plots(results)
    assert main([str(tmp_path)]) == 2
    assert "a.b, c.d vary besides" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"x": "traffic.laod", "y": LATENCY}, "plot 1: no column `traffic.laod`; did you mean `traffic.load`?"),
        ({"x": "traffic.load", "y": "status"}, "plot 1: no run has a number in `status`"),
        ({"x": "traffic.load", "y": LATENCY, "series": "router.vcs"}, "plot 1: no column `router.vcs`"),
    ],
)
def test_a_plot_of_what_is_not_there_is_refused(tmp_path, keys, problem):
    with pytest.raises(kasuri.ResultsError, match=re.escape(problem)):
        plot.experiment_plots(folder(tmp_path, wish(**keys), [row(0.1, 1.0)]))


def test_several_ordinates_and_logarithmic_axes_are_drawn(tmp_path):
    rows = [row(load, 100 * load, hops_mean=3.0) for load in (0.01, 0.1)]
    text = '[[plot]]\nx = "traffic.load"\ny = ["packet_latency_mean", "hops_mean"]\nlog_x = true\nlog_y = true\n'
    plots = plot.experiment_plots(folder(tmp_path, text, rows))
    assert [ax.get_ylabel() for _, ax in plots] == ["packet latency, mean (cycles)", "hops, mean (routers)"]
    assert {(ax.get_xscale(), ax.get_yscale()) for _, ax in plots} == {("log", "log")}


@pytest.mark.parametrize("size", [(6.4, 4.0), (3.4, 2.4)])
@pytest.mark.parametrize("count", [2, 9, 20])
def test_the_legend_lies_outside_of_the_axes_and_inside_of_the_figure(size, count):
    rows = [row(load, number + load, router__buffer_flits=number) for number in range(count) for load in (0.1, 0.2)]
    ax = style.new_axes(*size)
    from kasuri.plot.curves import View, draw

    ax = draw(rows, ["router.buffer_flits"], View("traffic.load", LATENCY), size=size)
    figure = style.figure_of(ax)
    FigureCanvasAgg(figure).draw()
    legend, axes = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert not legend.overlaps(axes)
    assert legend.x0 >= figure.bbox.x0
    assert legend.y0 >= figure.bbox.y0 - 1
    assert legend.x1 <= figure.bbox.x1 + 1
    assert axes.width > 0.4 * size[0] * figure.dpi
    assert axes.height > 0.4 * size[1] * figure.dpi


def test_a_run_at_its_limit_looks_otherwise_than_a_saturated_one_and_the_legend_says_so():
    rows = [row(0.1, 20.0), row(0.2, 22.0) | {"status": "max_cycles"}, row(0.3, 25.0) | {"status": "saturated"}]
    ax = plot.latency_load(rows)
    places = {float(line.get_xdata()[0]): line for line in ax.get_lines() if len(line.get_xdata()) == 1}
    assert places[0.2].get_fillstyle() == "bottom"
    assert places[0.3].get_markerfacecolor() == "none"
    assert places[0.3].get_fillstyle() == "full"
    assert legend_words(ax) == ["half-filled: max_cycles reached, estimate", "hollow triangle: saturated, no latency"]
    # The solid line joins what estimates the steady state: the saturated place is not on it.
    assert list(drawn(plot.latency_load([one | {"case": name} for one in rows for name in "ab"]))["a"]) == [(0.1, 20.0), (0.2, 22.0)]


def test_a_mean_over_seeds_is_worth_what_its_worst_run_is():
    rows = [row(0.1, 20.0, measure__seed=1), row(0.1, 90.0, measure__seed=2) | {"status": "saturated"}]
    assert spots.curves_of(rows, "traffic.load", LATENCY, [])[0].spots[0].state == spots.State.SATURATED


def test_fonts_in_pdf_are_type_42_and_so_in_postscript(tmp_path):
    ax = plot.latency_load([row(0.1, 20.0), row(0.2, 30.0)])
    text = plot.save(ax, tmp_path / "one.pdf").read_bytes()
    assert b"/CIDFontType2" in text or b"/TrueType" in text
    assert b"/Type3" not in text
    assert b"/FontType 42" in plot.save(ax, tmp_path / "one.eps").read_bytes()


@pytest.mark.parametrize(
    "title", [r"$\undefined$", "$", "a $ b $ c", r"$\frac{1}$", "$_^$", "{x}", "\x1b[31mred\x00", "a\nb", "_hidden", "x" * 500, "&<>\"'"]
)
def test_any_title_is_drawn_as_text_where_it_is_no_mathematics(tmp_path, title):
    ax = plot.latency_load([row(0.1, 20.0, case=title), row(0.1, 30.0, case="$" + title)])
    style.title(ax, title)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ending in ("svg", "pdf", "png"):
            plot.save(ax, tmp_path / f"one.{ending}")
    ElementTree.parse(tmp_path / "one.svg")
    ElementTree.fromstring(style.svg_text(ax, "salt"))


def test_mathematics_in_a_title_is_set():
    ax = plot.latency_load([row(0.1, 20.0)])
    style.title(ax, r"Load $\lambda$")
    assert "λ" in style.svg_text(ax, "salt")


def test_a_figure_of_ones_own_gets_its_legend_into_the_file(tmp_path):
    """Without a layout engine nobody makes room in the figure; the file is as large as what is drawn."""
    rows = [row(load, number, case=f"case {number}") for number in range(3) for load in (0.1, 0.2)]
    ax = plot.latency_load(rows, ax=Figure(figsize=(6.4, 4)).add_subplot())
    width, _ = ElementTree.parse(plot.save(ax, tmp_path / "one.svg")).getroot().get("viewBox").split()[2:]
    assert float(width) > 6.4 * 72


def test_the_experiment_without_wishes_shows_what_was_swept(tmp_path):
    rows = [synthetic.row("uniform", 0.1) | {"traffic.pattern": name} for name in ("uniform", "tornado")]
    names = [name for name, _ in plot.experiment_plots(folder(tmp_path, "", rows))]
    assert names == ["01-packet_latency_mean-over-traffic-pattern", "02-accepted_throughput_mean-over-traffic-pattern"]


def test_notes_say_what_was_added_and_averaged(tmp_path):
    rows = [row(0.1, 1.0, measure__seed=seed, network__topology=name, traffic__pattern="u") for seed in (1, 2) for name in ("m", "t")]
    rows += [one | {"traffic.pattern": "v"} for one in rows]
    drawing = asked.drawings(folder(tmp_path, wish(x="traffic.load", y=LATENCY, series="traffic.pattern"), rows))[0]
    assert drawing.notes == ("Also set apart by what the plot does not name: network.topology.", "Means over 2 seeds.")
