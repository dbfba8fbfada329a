"""The table of runs and its conversions."""

from __future__ import annotations

import json
import math
import pickle
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import kasuri
import synthetic

SMALL = {
    "network": {"topology": "mesh", "dimensions": [2, 2]},
    "routing": {"algorithm": "dimension-order"},
    "traffic": {"pattern": "uniform", "load": 0.2},
    "measure": {"warmup": 20, "cycles": 200},
}


def test_reading_gives_every_run_in_the_order_of_the_table(results):
    assert [row["key"] for row in results] == [row["key"] for row in synthetic.rows()]


def test_an_interrupted_run_is_read_from_its_finished_runs_in_order(tmp_path):
    folder = synthetic.folder(tmp_path / "x", interrupted=True)
    results = kasuri.read(folder)
    assert {row["key"] for row in results} == {row["key"] for row in synthetic.rows()}
    uniform = results.where(traffic__pattern="uniform")["traffic.load"]
    assert list(uniform) == sorted(uniform)


def test_swept_keys_are_those_that_differ(results):
    assert results.swept == ["traffic.pattern", "traffic.load"]


def test_columns_are_numbers_with_nan_for_what_is_missing(results):
    ci95 = results["packet_latency_ci95"]
    saturated = results["status"] == "saturated"
    assert ci95.dtype == float
    assert np.isnan(ci95[saturated]).all()
    assert not np.isnan(ci95[~saturated]).any()


def test_where_keeps_the_rows_that_agree(results):
    part = results.where(traffic__pattern=["uniform", "tornado"], status="converged")
    expected = [row for row in synthetic.rows() if row["traffic.pattern"] != "transpose" and row["status"] == "converged"]
    assert [row["key"] for row in part] == [row["key"] for row in expected]


def test_a_part_of_results_can_be_sent_to_another_process(results):
    part = results.where(traffic__pattern="uniform")
    sent = pickle.loads(pickle.dumps(part))
    assert list(sent) == list(part)
    assert sent.missing == part.missing


def test_vectors_belong_to_their_run(results):
    vector = results.vector(0, "accepted_throughput")
    assert vector.shape == (synthetic.TERMINALS,)
    assert np.allclose(vector, results[0]["accepted_throughput_mean"])
    assert np.array_equal(vector, results.vector(results[0], "accepted_throughput"))


def test_a_missing_vector_is_named_with_those_that_are_there(results):
    with pytest.raises(kasuri.ResultsError, match="no vector `queue`; it has accepted_throughput, channel_utilisation"):
        results.vector(0, "queue")


def test_arrow_keeps_values_types_and_units(results):
    table = results.to_arrow()
    assert table.num_rows == len(results)
    assert table.column_names == results.columns
    assert table.schema.field("packet_latency_mean").metadata == {b"unit": b"cycles"}
    assert str(table.schema.field("cycles").type) == "int64"
    # A workload of flows may end within a cycle.
    assert str(table.schema.field("completion_time").type) == "double"
    assert table.column("packet_latency_mean").to_pylist() == [row["packet_latency_mean"] for row in results]
    assert table.schema.metadata[b"input.toml"].decode() == synthetic.MESH


def test_pandas_and_polars_hold_the_same_numbers(results):
    pandas, polars = results.to_pandas(), results.to_polars()
    assert len(pandas) == len(polars) == len(results)
    assert (
        pandas["accepted_throughput_mean"].tolist()
        == polars["accepted_throughput_mean"].to_list()
        == results["accepted_throughput_mean"].tolist()
    )


def test_xarray_puts_every_run_at_its_place(results):
    cube = results.to_xarray(dims=["load", "traffic.pattern"])
    assert dict(cube.sizes) == {"traffic.load": 9, "traffic.pattern": 3}
    assert cube["packet_latency_mean"].attrs["units"] == "cycles"
    for row in results:
        place = {"traffic.load": row["traffic.load"], "traffic.pattern": row["traffic.pattern"]}
        assert float(cube["accepted_throughput_mean"].sel(place)) == row["accepted_throughput_mean"]


def test_xarray_refuses_two_runs_at_one_place(tmp_path):
    results = kasuri.Results(synthetic.rows(seeds=(1, 2)))
    with pytest.raises(kasuri.ResultsError, match=r"add measure\.seed to dims"):
        results.to_xarray(dims=["traffic.load", "traffic.pattern"])


def test_parquet_reads_back_as_written(results, tmp_path):
    path = results.save_parquet(tmp_path / "runs.parquet")
    assert pyarrow.parquet.read_table(path).equals(results.to_arrow())


def test_lists_among_the_inputs_become_text(tmp_path):
    rows = [{"network.dimensions": [4, 4], "deadlock": []}, {"network.dimensions": [8, 8], "deadlock": ["a", "b"]}]
    results = kasuri.Results(rows)
    assert results.to_arrow().column("network.dimensions").to_pylist() == ["[4, 4]", "[8, 8]"]
    assert results.to_arrow().column("deadlock").to_pylist() == [[], ["a", "b"]]
    assert results.to_xarray()["network.dimensions"].values.tolist() == ["[4, 4]", "[8, 8]"]


@pytest.mark.parametrize("text", ['{"runs": [', '{"rows": []}', "[1]", "\udcff"])
def test_a_damaged_table_is_an_error_that_names_the_file(tmp_path, text):
    (tmp_path / "runs.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(kasuri.ResultsError, match="runs.json"):
        kasuri.read(tmp_path)


@pytest.mark.parametrize("name", ["runs.json", "runs/*.json", "runs/*.channel_utilisation.npy", "networks/*.json"])
def test_a_file_that_says_something_else_is_named_and_not_shown(tmp_path, name):
    """One digit is another one: the file is as readable as before."""
    kasuri.run(SMALL, out=tmp_path)
    if name == "runs/*.json":
        (tmp_path / "runs.json").unlink()
    file = next(tmp_path.glob(name))
    content = bytearray(file.read_bytes())
    content[-5 if file.suffix == ".npy" else content.rindex(b"2")] ^= 1
    file.write_bytes(content)
    with pytest.raises(kasuri.ResultsError, match=file.name):
        results = kasuri.read(tmp_path)
        results.vector(0, "channel_utilisation")
        results.network(0)


def test_a_folder_without_results_is_an_error_that_says_what_was_expected(tmp_path):
    with pytest.raises(kasuri.ResultsError, match=r"no results here \(expected runs.json"):
        kasuri.read(tmp_path / "nowhere")


def test_a_deadlock_is_raised_with_its_cycle():
    cycle = ["router 0 port 1 -> router 1 port 0, virtual channel 0", "router 1 port 1 -> router 0 port 0, virtual channel 0"]
    results = kasuri.Results([{"status": "converged"}, {"status": "deadlock", "message": "no progress", "deadlock": cycle, "cycles": 812}])
    with pytest.raises(kasuri.DeadlockError, match="no progress") as caught:
        results.raise_for_status()
    assert caught.value.cycle == cycle
    assert caught.value.at_cycles == 812


def test_saturation_is_a_result_and_raises_nothing(results):
    assert results.raise_for_status() is results


def test_every_error_is_a_kasuri_error():
    for error in (kasuri.ConfigError, kasuri.ResultsError, kasuri.RunError, kasuri.DeadlockError):
        assert issubclass(error, kasuri.KasuriError)
    assert issubclass(kasuri.ConfigError, ValueError)


def test_show_prints_a_line_for_each_run(results, capsys):
    results.show(["traffic.load", "status"])
    assert capsys.readouterr().out.count("converged") == sum(row["status"] == "converged" for row in results)


def test_json_rows_keep_missing_numbers_apart_from_zero(tmp_path: Path):
    (tmp_path / "runs.json").write_text(json.dumps({"runs": [{"packet_latency_mean": None}, {"packet_latency_mean": 0.0}]}))
    column = kasuri.read(tmp_path)["packet_latency_mean"]
    assert math.isnan(column[0])
    assert column[1] == 0.0


def test_times_keep_their_parts_of_cycles():
    results = kasuri.Results([{"key": "a", "status": "completed", "completion_time": 833.4, "cycles": 834}])
    assert results.to_arrow().to_pydict()["completion_time"] == [833.4]
    assert results.to_pandas()["completion_time"].tolist() == [833.4]


class Cells(HTMLParser):
    """The texts of a table's cells, row by row; every element must close."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def cells(results: kasuri.Results) -> list[list[str]]:
    parser = Cells()
    parser.feed(results._repr_html_())
    assert parser.open == []
    return parser.rows


def test_a_notebook_shows_the_swept_keys_and_main_answers(results):
    head, *body = cells(results.where(traffic__pattern="uniform"))
    assert head[:3] == ["traffic.load", "offered_load", "accepted_throughput_mean"]
    assert [line[0] for line in body] == [f"{0.05 * step:.4g}" for step in range(1, 10)]
    assert {len(line) for line in body} == {len(head)}


def test_a_notebook_shows_the_ends_of_a_long_table(results):
    body = cells(results)[1:]
    assert len(body) == 21
    assert body[10] == ["… 7 more …"]
    assert body[-1][:2] == ["tornado", "0.45"]


def test_words_of_rows_become_no_markup_in_a_notebook_or_terminal(capsys):
    results = kasuri.Results([{"case": "<b>&[red]", "status": "converged"}, {"case": "[/]", "status": "saturated"}], "out/<i>")
    assert [line[0] for line in cells(results)] == ["case", "<b>&[red]", "[/]"]
    assert "<b>" not in results._repr_html_()
    assert "<i>" not in results._repr_html_()
    results.show()
    shown = capsys.readouterr().out
    assert "<b>&[red]" in shown
    assert "[/]" in shown


def test_cases_stand_for_the_keys_that_follow_them():
    """Keys that have one value in each case are no axes of their own; every column that varies is shown."""
    rows = [
        {"case": case, "network.topology": topology, "router.virtual_channels": channels, "traffic.load": load}
        for case, topology, channels in (("a", "mesh", 1), ("b", "torus", 2), ("c", "torus", 4))
        for load in (0.1, 0.2)
    ]
    results = kasuri.Results(rows)
    assert results.swept == ["case", "traffic.load"]
    assert results.varying == ["case", "network.topology", "router.virtual_channels", "traffic.load"]
    assert results.where(case="b").swept == ["traffic.load"]
    assert results.to_xarray().sizes == {"case": 3, "traffic.load": 2}


def test_a_swept_engine_counts_as_swept():
    results = kasuri.Results([{"engine": "flit", "traffic.load": 0.1}, {"engine": "analysis", "traffic.load": 0.1}])
    assert results.swept == ["engine"]
