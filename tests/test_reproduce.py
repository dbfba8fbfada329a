"""The frame of the reproduction, on small tables; the figures of the papers themselves belong to `make verify`."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kasuri
from kasuri.errors import ConfigError
from kasuri_papers import PAPERS, Figure, Verdict, curves, expectations, experiments, kept, output, programs, progress, reproduction, runs
from kasuri_papers.__main__ import main
from kasuri_papers.figure import Findings, Plot, Table, awaiting
from kasuri_papers.papers import choose
from kasuri_papers.reproduction import Outcome

MACHINE = """
[[constant]]
machine = "mesh"
key = "routing.algorithm"
value = "dimension-order"
class = "G"
source = "section 1"

[[constant]]
machine = "batch"
key = "traffic.batch_packets"
value = 8
class = "C"
source = "figure 1 itself"
"""
FIGURE = """
[all]
engine = "flow"
flow = { latency = false }
traffic = { pattern = "neighbor", process = "batch", packet_flits = 4 }

[series.flow]
machine = ["mesh", "batch"]
sweep = { k = [2, 3], "measure.seed" = [1, 2] }
network = { topology = "mesh", dimensions = ["{k}", "{k}"] }
"""


def judge_completion(table: Table) -> Verdict:
    found = Findings()
    found.must(table.of("flow").curve("completion_time")[2] >= 32, "8 messages of 4 flits, which meet no others, take 32 cycles or more")
    return found.verdict()


PLOT = Plot("k", "completion_time", "k", "cycles")
F1 = Figure("009-F1", "F", "takes its time", "at least 32 cycles", "derived", "flow", judge_completion, PLOT)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "machine.toml").write_text(MACHINE)
    (tmp_path / "F1.toml").write_text(FIGURE)
    return tmp_path


# --- experiments ---


def test_variables_stand_in_the_experiment_and_dotted_keys_in_its_sweep(folder: Path) -> None:
    file = experiments.read(folder, "F1")
    assert [point.experiment["network"]["dimensions"] for point in file.points] == [[2, 2], [3, 3]]
    first = file.points[0]
    assert first.experiment["sweep"] == {"measure.seed": [1, 2]}
    assert first.experiment["routing"] == {"algorithm": "dimension-order"}
    assert first.experiment["traffic"]["batch_packets"] == 8
    assert first.folder == Path("flow/k=2")
    assert {constant.kind for constant in file.constants} == {"G", "C"}


LINKED = """
[[constant]]
machine = "mesh"
key = "{interface}"
value = 3
class = "C"
source = "figure 2"

[[constant]]
machine = "mesh"
key = "network.terminal_channel_latency"
value = "{transfer + interface}"
class = "D"
source = "a link and an interface"
"""


def test_a_plot_ends_at_its_top() -> None:
    table = Table({"series": "flow", "k": k, "completion_time": 10**k} for k in (1, 2, 3, 4))
    plot = dataclasses.replace(PLOT, top=500)
    assert output.draw(F1, plot, table).get_ylim() == (0, 500)
    assert output.draw(F1, PLOT, table).get_ylim()[1] >= 10_000


def test_variables_change_together_run_over_ranges_and_are_added(tmp_path: Path) -> None:
    (tmp_path / "machine.toml").write_text(LINKED)
    sweep = "{ size = [{ bytes = 8, transfer = 1 }, { bytes = 256, transfer = 32 }], hot = { from = 0, to = 2 } }"
    (tmp_path / "F2.toml").write_text(f'[series.a]\nmachine = ["mesh"]\ntraffic = {{ terminals = ["{{hot}}"] }}\nsweep = {sweep}\n')
    points = experiments.read(tmp_path, "F2").points
    assert [point.variables for point in points[::3]] == [{"bytes": 8, "transfer": 1, "hot": 0}, {"bytes": 256, "transfer": 32, "hot": 0}]
    assert [point.experiment["traffic"]["terminals"] for point in points[:3]] == [[0], [1], [2]]
    latencies = {point.experiment["network"]["terminal_channel_latency"] for point in points}
    assert latencies == {1 + 3, 32 + 3}
    doubled = experiments.read(tmp_path, "F2", {("mesh", "{interface}"): 6}).points
    assert {point.experiment["network"]["terminal_channel_latency"] for point in doubled} == {1 + 6, 32 + 6}
    assert "{interface}" not in doubled[0].experiment


def test_a_figure_adds_columns_from_the_vectors_of_its_runs_also_with_a_constant_changed(folder: Path, tmp_path: Path) -> None:
    def columns(row: Mapping[str, Any], vector: Callable[[str], np.ndarray]) -> dict[str, Any]:
        return {"accepted": round(float(vector("accepted_throughput").sum()), 6)}

    def judge(table: Table) -> Verdict:
        found = Findings()
        expected = [round(row["terminals"] * row["accepted_throughput_mean"], 6) for row in table]
        found.must([row["accepted"] for row in table] == expected, "the terminals' rates add up")
        return found.verdict()

    figure = dataclasses.replace(F1, columns=columns, judge=judge)
    outcome = reproduction._figure(PAPERS["mfs"], figure, folder, tmp_path / "out", runs.Runner(jobs=1))
    assert outcome.verdict.verdict == "pass", outcome.verdict.measured
    assert [tried.verdict.verdict for tried in outcome.tried] == ["pass", "pass"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("F1.toml", '["mesh", "batch"]', '["mesh", "torus"]'), "no part `torus` in machine.toml; it has mesh, batch"),
        (("F1.toml", "packet_flits = 4", "batch_packets = 4"), "`traffic.batch_packets` is a constant of the machine"),
        (("F1.toml", "[series.flow]", "[flow]"), "write [series.NAME]"),
        (("F1.toml", "[all]", "[all"), "F1.toml: "),
        (("machine.toml", 'class = "C"', 'class = "X"'), "constant 2: class is 'X'; it must be"),
        (("machine.toml", 'source = "section 1"', ""), "constant 1 has no `source`"),
    ],
)
def test_wrong_files_are_named_with_what_would_be_right(folder: Path, change: tuple[str, str, str], problem: str) -> None:
    name, old, new = change
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))
    with pytest.raises(ConfigError) as error:
        experiments.read(folder, "F1")
    assert problem in str(error.value)


def test_a_folder_of_experiments_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere: there is no such folder"):
        experiments.find(tmp_path / "nowhere")


# --- runs, verdict, spread ---


def test_runs_are_made_once_and_found_again(folder: Path, tmp_path: Path) -> None:
    points = experiments.read(folder, "F1").points
    table = runs.Runner(jobs=2).table(points, tmp_path / "out")
    assert [(row["k"], row["measure.seed"]) for row in table] == [(2, 1), (2, 2), (3, 1), (3, 2)]
    assert not runs.failures(table)
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("runs/*.json")}
    again = runs.Runner(jobs=1).table(points, tmp_path / "out")
    assert again.rows == table.rows
    assert len(files) == 4
    assert {path: path.stat().st_mtime_ns for path in files} == files


def test_equal_runs_of_two_figures_are_computed_once(folder: Path, tmp_path: Path) -> None:
    (folder / "F2.toml").write_text(FIGURE.replace("k = [2, 3]", "k = [3, 4]").replace("[1, 2]", "[2, 5]"))
    first, second = (experiments.read(folder, number).points for number in ("F1", "F2"))
    files = {}
    for name, runner in (("shared", runs.Runner(jobs=2)), ("alone", None)):
        tables = [
            (runner or runs.Runner(jobs=1)).table(points, tmp_path / name / str(place)) for place, points in enumerate((first, second))
        ]
        assert [(row["k"], row["measure.seed"]) for row in tables[1]] == [(3, 2), (3, 5), (4, 2), (4, 5)]
        files[name] = [{path.stem: path.stat().st_ino for path in (tmp_path / name / str(place)).rglob("runs/*.json")} for place in (0, 1)]
        (again,) = {row["key"] for row in tables[0]} & {row["key"] for row in tables[1]}
        numbers = [found[again] for found in files[name]]
        assert (numbers[0] == numbers[1]) == (name == "shared")
    assert [set(found) for found in files["shared"]] == [set(found) for found in files["alone"]]
    assert {len(found) for found in files["shared"]} == {4}


def test_equal_points_of_a_series_are_one_run_also_on_several_threads(folder: Path, tmp_path: Path) -> None:
    # A variable that stands nowhere, as the threads of a program of which only the communication is run.
    (folder / "F1.toml").write_text(FIGURE.replace("k = [2, 3]", "k = [2, 3], threads = [1, 2, 6]"))
    points = experiments.read(folder, "F1").points
    table = runs.Runner(jobs=4).table(points, tmp_path)
    assert [(row["k"], row["threads"], row["measure.seed"]) for row in table][:4] == [(2, 1, 1), (2, 1, 2), (2, 2, 1), (2, 2, 2)]
    files = list(tmp_path.rglob("flow/*/runs/*.json"))
    assert (len(files), len({path.stat().st_ino for path in files})) == (12, 4)


def test_what_is_given_again_is_not_even_looked_for(folder: Path, tmp_path: Path) -> None:
    points, runner = experiments.read(folder, "F1").points, runs.Runner(jobs=1)
    rows = runner.table(points, tmp_path / "out").rows
    for path in (tmp_path / "out").rglob("runs/*.json"):
        path.unlink()
    assert runner.table(points[1:], tmp_path / "out").rows == rows[2:]
    assert not list((tmp_path / "out").rglob("runs/*.json"))
    assert runner.afresh().table(points, tmp_path / "out").rows != rows  # it has computed them anew, in other seconds
    assert len(list((tmp_path / "out").rglob("runs/*.json"))) == 4


def test_a_run_is_told_by_its_values_whatever_sweep_it_comes_from() -> None:
    base = {"engine": "flow", "network": {"topology": "mesh"}, "traffic": {"load": 0.5}}
    swept = list(kept.asked_runs(base | {"sweep": {"traffic.load": [0.25, 0.5], "measure.seed": [1, 2]}}))
    assert len(set(swept)) == 4
    assert list(kept.asked_runs(base | {"measure": {"seed": 2}})) == swept[3:]
    assert list(kept.asked_runs({"measure": {"seed": 1}, **base, "traffic": {"load": 0.25}})) == swept[:1]
    assert set(kept.asked_runs(base)).isdisjoint(swept)
    # What is merged over the experiment, and what lies deeper, is told apart from all that is written out.
    merged = set(kept.asked_runs(base | {"sweep": {"network": [{"dimensions": [2]}, {"dimensions": [3]}]}}))
    deeper = set(kept.asked_runs(base | {"sweep": {"traffic.reply.load": [0.5]}}))
    assert len(merged) == 2 and len(deeper) == 1 and not merged & deeper


def test_as_many_runs_are_finished_as_were_planned_also_those_that_are_found(folder: Path, tmp_path: Path) -> None:
    paper = dataclasses.replace(PAPERS["mfs"], name=folder.name, figures=[F1])
    planned = progress.planned([(paper, [F1])], folder.parent)
    # Two networks with two seeds each, and with the calibrated constant at half and at twice its value.
    assert planned == 3 * 4
    for _ in range(2):
        finished: list[int] = []
        reproduction._figure(paper, F1, folder, tmp_path / "out", runs.Runner(2, finished=finished.append))
        assert sum(finished) == planned
    study = dataclasses.replace(F1, kind="S")
    assert progress.planned([(paper, [study])], folder.parent) == 4
    assert progress.planned([(paper, [awaiting("009-F9", "F", "", "", "derived", "all of it")])], folder.parent) == 0


def test_a_bar_stands_on_a_terminal_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.Progress(8) as unseen:
        unseen.finished(2)
    assert capsys.readouterr().err == ""
    with progress.Progress(8, shown=True) as bar:
        bar.finished(2)
        bar.finished(1)
    seen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert "3/8 runs, 0:00:0" in seen


def test_a_calibrated_constant_is_tried_at_half_and_at_twice_its_value(folder: Path, tmp_path: Path) -> None:
    outcome = reproduction._figure(PAPERS["mfs"], F1, folder, tmp_path / "out", runs.Runner(jobs=1))
    assert outcome.verdict.verdict == "pass"
    assert [(tried.what, tried.verdict.verdict) for tried in outcome.tried] == [
        ("batch: traffic.batch_packets = 4", "fail"),
        ("batch: traffic.batch_packets = 16", "pass"),
    ]
    assert outcome.basis == "calibrated", "half of the constant gives another verdict"


def test_another_reading_is_judged_and_lowers_what_it_disagrees_with(folder: Path, tmp_path: Path) -> None:
    text = (folder / "machine.toml").read_text()
    (folder / "machine.toml").write_text(text.replace('class = "C"', 'class = "A"\nreadings = [2, 12]'))
    outcome = reproduction._figure(PAPERS["mfs"], F1, folder, tmp_path / "out", runs.Runner(jobs=1))
    assert [(tried.what, tried.is_reading, tried.verdict.verdict) for tried in outcome.tried] == [
        ("batch: traffic.batch_packets = 2", True, "fail"),
        ("batch: traffic.batch_packets = 12", True, "pass"),
    ]
    assert (outcome.verdict.verdict, outcome.basis) == ("pass", "reading")
    assert not outcome.is_reproduced


def test_a_constant_may_be_a_table_whose_keys_change_together(folder: Path, tmp_path: Path) -> None:
    table = 'machine = "cut"\nkey = "flow"\nvalue = { max_rounds = 8, latency = false }\nclass = "A"\n'
    readings = 'readings = [{ max_rounds = 9, latency = true }]\nsource = "none"\n'
    (folder / "machine.toml").write_text(f"{MACHINE}\n[[constant]]\n{table}{readings}")
    text = FIGURE.replace("flow = { latency = false }\n", "").replace('"batch"]', '"batch", "cut"]')
    (folder / "F1.toml").write_text(text)
    constant = experiments.read(folder, "F1").constants[-1]
    assert constant.tried == ({"max_rounds": 9, "latency": True},)
    assert experiments.said(constant.tried[0]) == "max_rounds=9,latency=True"
    changed = experiments.read(folder, "F1", {("cut", "flow"): constant.tried[0]})
    assert changed.points[0].experiment["flow"] == {"max_rounds": 9, "latency": True}
    (folder / "F1.toml").write_text(text.replace("[all]\n", "[all]\nflow = { max_rounds = 4 }\n"))
    with pytest.raises(ConfigError, match=r"`flow.max_rounds` is a constant of the machine"):
        experiments.read(folder, "F1")


def test_fewer_runs_tell_how_much_hangs_on_a_constant_and_rows_show_what_they_are_asked_to(folder: Path, tmp_path: Path) -> None:
    lines = 'tried = { k = [2], "measure.seed" = [1] }\nshows = ["traffic.batch_packets"]\n'
    (folder / "F1.toml").write_text(f"{FIGURE}{lines}".replace("network = {", f"{lines}network = {{").removesuffix(lines))
    seen: list[list[Any]] = []

    def judge(table: Table) -> Verdict:
        seen.append([(row["k"], row["measure.seed"], row["traffic.batch_packets"]) for row in table])
        return Verdict("pass", "")

    reproduction._figure(PAPERS["mfs"], dataclasses.replace(F1, judge=judge), folder, tmp_path / "out", runs.Runner(jobs=1))
    # First with other values of the constant, and at last with its own.
    assert seen == [[(2, 1, 4)], [(2, 1, 16)], [(2, 1, 8), (2, 2, 8), (3, 1, 8), (3, 2, 8)]]
    # A series on whose verdict nothing can hang is not run again.
    (folder / "F1.toml").write_text((folder / "F1.toml").read_text().replace("shows = [", 'untried = ["traffic.batch_packets"]\nshows = ['))
    assert [constant.key for constant in experiments.read(folder, "F1").constants] == ["routing.algorithm"]
    changed = experiments.read(folder, "F1", {("batch", "traffic.batch_packets"): 4})
    assert changed.points == experiments.read(folder, "F1").points
    # A series that does not have the constant keeps all of its places.
    assert len(experiments.read(folder, "F1", {("other", "traffic.batch_packets"): 4}).points) == 2


def test_a_comparison_looks_at_fewer_places_where_a_constant_is_tried(folder: Path) -> None:
    lines = "comparison = { least = 0.1, seeds = [1, 2] }\ntried = { comparison = { seeds = [1] } }\n"
    (folder / "F1.toml").write_text(FIGURE.replace("network = {", f"{lines}network = {{"))
    usual, tried = (experiments.read(folder, "F1", other).points[0] for other in ({}, {("batch", "traffic.batch_packets"): 4}))
    assert usual.experiment["comparison"] == {"least": 0.1, "seeds": [1, 2]}
    assert tried.experiment["comparison"] == {"least": 0.1, "seeds": [1]}


def test_a_reading_of_the_claim_has_a_judge_of_its_own_on_the_same_runs(folder: Path, tmp_path: Path) -> None:
    figure = dataclasses.replace(F1, readings={"never": lambda table: Verdict("fail", f"NOT: {len(table)} rows")})
    outcome = reproduction._figure(PAPERS["mfs"], figure, folder, tmp_path / "out", runs.Runner(jobs=1))
    assert str(outcome.tried[0]) == "never: fail: NOT: 4 rows"


def test_a_figure_may_judge_the_runs_of_others(folder: Path, tmp_path: Path) -> None:
    figure = dataclasses.replace(
        F1, id="009-C1", runs_of=("F1",), judge=lambda table: Verdict("report", f"{[row['figure'] for row in table]}")
    )
    outcome = reproduction._figure(PAPERS["mfs"], figure, folder, tmp_path / "out", runs.Runner(jobs=1))
    assert outcome.verdict.measured == str(["F1"] * 4)
    assert not (tmp_path / "out" / "C1").exists()


EXPECTED = """
[F1]
verdict = "f"
cause = "messages are too short"
"""


@pytest.mark.parametrize(
    ("text", "verdict", "lacking", "expected"),
    [
        (EXPECTED, "fail", "", True),
        (EXPECTED, "pass", "", False),
        ('[F1]\nverdict = "p"\n', "pass", "", True),
        ('[F1]\nverdict = "p"\n', "fail", "", False),
        ('[F1]\nverdict = "r"\n', "report", "", True),
        ('[F1]\nverdict = "n"\n', "fail", "a mechanism", True),
        ('[F1]\nverdict = "n"\n', "fail", "", False),
        ("", "pass", "", True),
        ("", "fail", "", False),
    ],
)
def test_a_verdict_is_compared_with_the_expected_one(tmp_path: Path, text: str, verdict: Any, lacking: str, *, expected: bool) -> None:
    (tmp_path / "expected.toml").write_text(text)
    outcome = outcome_of("derived", verdict, lacking, expectations.read(tmp_path).get("F1"))
    assert outcome.is_expected == expected
    assert (output.surprises([outcome]) == []) == expected


def test_a_failure_shows_its_cause(tmp_path: Path) -> None:
    (tmp_path / "expected.toml").write_text(EXPECTED)
    outcome = outcome_of("derived", "fail", "", expectations.read(tmp_path)["F1"])
    assert outcome.word == "not reproduced: messages are too short"
    assert outcome.as_json()["cause"] == "messages are too short"


@pytest.mark.parametrize(
    ("text", "problem"),
    [('[F1]\nverdict = "x"\n', "F1: verdict is 'x'; it must be one of"), ('[F1]\nverdict = "f"\n', "a row that fails needs its `cause`")],
)
def test_wrong_expectations_are_named(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "expected.toml").write_text(text)
    with pytest.raises(ConfigError, match=problem):
        expectations.read(tmp_path)


def test_what_is_not_built_fails_without_any_run(tmp_path: Path) -> None:
    figure = awaiting("009-S1", "S", "claim", "none", "derived", "a sharing that knows arbitration")
    outcome = reproduction._figure(PAPERS["mfs"], figure, tmp_path, tmp_path / "out", runs.Runner(jobs=1))
    assert (outcome.letter, outcome.verdict.measured) == ("n", "NOT BUILT: a sharing that knows arbitration")


def test_what_lacks_something_is_run_as_far_as_it_goes(folder: Path, tmp_path: Path) -> None:
    outcome = reproduction._figure(
        PAPERS["mfs"], dataclasses.replace(F1, lacking="a memory"), folder, tmp_path / "out", runs.Runner(jobs=1)
    )
    assert outcome.verdict.verdict == "fail"
    assert outcome.verdict.measured.startswith("NOT BUILT: a memory; so far: 8 messages of 4 flits")
    assert len(outcome.table) == 4


@pytest.mark.parametrize(("periodic", "messages"), [(False, 2 * 12), (True, 4 * 9)])
def test_a_stencil_sends_a_message_to_each_neighbour_in_every_iteration(*, periodic: bool, messages: int) -> None:
    text = programs.written({"program": "stencil", "side": 3, "iterations": 4, "flits": 5, "periodic": periodic}, 8)
    sends, receives = (re.findall(rf"{what} 40b {word} \d+", text) for what, word in (("send", "to"), ("recv", "from")))
    assert len(sends) == len(receives) == 4 * messages


def test_a_stencil_waits_for_the_iteration_before(tmp_path: Path) -> None:
    network = {"topology": "torus", "dimensions": [4, 4], "flit_bytes": 8}
    times = []
    for iterations in (1, 10):
        trace = {"program": "stencil", "side": 4, "iterations": iterations, "flits": 100, "periodic": True}
        experiment = {
            "engine": "flow",
            "flow": {"latency": False},
            "network": network,
            "routing": {"algorithm": "dimension-order"},
            "trace": trace,
        }
        (row,) = kasuri.run(runs._with_program(experiment, tmp_path / str(iterations)), jobs=1)
        times.append(row["completion_time"])
    assert times == [400, 4000], "each terminal sends four messages of 100 flits an iteration, and none of the next before all are there"


def test_two_jobs_run_where_they_are_put_and_others_do_nothing() -> None:
    text = programs.written({"program": "jobs", "jobs": "exchange", "places": "turns", "iterations": 2, "flits": 4}, 3)
    ranks = re.split(r"^rank ", text, flags=re.MULTILINE)[1:]
    assert sorted(int(rank.split()[0]) for rank in ranks) == list(range(32))
    sends = {int(rank.split()[0]): [int(to) for to in re.findall(r"send 12b to (\d+)", rank)] for rank in ranks}
    assert all(sorted([rank, *to]) == list(range(0, 32, 2)) if rank % 2 == 0 else to == [] for rank, to in sends.items())
    both = programs.written({"program": "jobs", "jobs": "both", "places": "eights", "iterations": 2, "flits": 4}, 3)
    assert both.count("send 12b") == 16 * 15 + 16 * 4 * 2


def test_runs_that_do_not_depend_on_a_constant_are_made_once(folder: Path, tmp_path: Path) -> None:
    other = FIGURE.replace("[all]", "").replace("series.flow", "series.other").replace('"mesh", "batch"', '"mesh"')
    text = FIGURE + other[other.index("[series.other]") :] + "traffic = { batch_packets = 3 }\n"
    (folder / "F1.toml").write_text(text)
    reproduction._figure(PAPERS["mfs"], F1, folder, tmp_path / "out", runs.Runner(jobs=1))
    assert {path.name for path in (tmp_path / "out" / "F1").iterdir()} == {
        "flow",
        "other",
        "batch.traffic.batch_packets=4",
        "batch.traffic.batch_packets=16",
    }
    assert [path.name for path in (tmp_path / "out" / "F1" / "batch.traffic.batch_packets=4").iterdir()] == ["flow"]


def test_a_run_without_a_result_fails_the_figure(folder: Path, tmp_path: Path) -> None:
    text = (folder / "F1.toml").read_text()
    (folder / "F1.toml").write_text(text + "measure = { max_cycles = 10 }\n")
    outcome = reproduction._figure(PAPERS["mfs"], F1, folder, tmp_path / "out", runs.Runner(jobs=1))
    assert outcome.verdict.verdict == "fail"
    assert len(outcome.failed_runs) == 4
    assert "max_cycles" in outcome.verdict.measured


@pytest.mark.parametrize("missing", [lambda: 1 / 0, lambda: None < 1, lambda: min([]), lambda: {}["hits"]])  # type: ignore[operator]
def test_what_did_not_happen_in_a_figures_runs_fails_it(missing: Any) -> None:
    figure = dataclasses.replace(F1, judge=lambda _: Findings().verdict() if missing() else Verdict("pass", ""))
    verdict = reproduction.judge(figure, Table([]), [])
    assert verdict.verdict == "fail"
    assert verdict.measured.startswith("NOT: what is judged did not happen in these runs (")


def test_a_figure_whose_program_is_missing_is_not_run_and_the_others_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(programs, "BUILT", tmp_path)
    mlfm = PAPERS["mlfm"]
    figures = [figure for figure in mlfm.figures if figure.number in ("C6", "F1")]
    monkeypatch.setattr(experiments, "read", lambda folder, number, read=experiments.read: _measured_only(read(folder, number)))
    made = reproduction.reproduce([(mlfm, figures)], folder=experiments.find(None), out=tmp_path / "out", runner=runs.Runner(jobs=1))
    outcomes = {outcome.figure.number: outcome for _, outcome in made}
    assert outcomes["C6"].word == "not run"
    assert "built by `make mpi`" in outcomes["C6"].verdict.measured
    assert not outcomes["C6"].is_expected
    assert outcomes["F1"].verdict.verdict != "fail"
    assert "0 not reproduced, 0 not built, 1 not run" in output.summary(list(outcomes.values()))


def _measured_only(file: experiments.FigureFile) -> experiments.FigureFile:
    """Of a figure that measures a program, nothing else: simulations take long."""
    measured = [point for point in file.points if point.count == "mpi"]
    return dataclasses.replace(file, points=measured) if measured else file


def test_an_experiment_that_cannot_be_is_named_with_its_place(folder: Path, tmp_path: Path) -> None:
    text = (folder / "F1.toml").read_text()
    (folder / "F1.toml").write_text(text.replace('pattern = "neighbor"', 'pattern = "neighbour"'))
    with pytest.raises(ConfigError, match=r"flow/k=[23]: .*traffic\.pattern"):
        runs.Runner(jobs=1).table(experiments.read(folder, "F1").points, tmp_path / "out")


def test_toml_text_is_read_as_what_was_written() -> None:
    import tomllib

    table = {"a": {"b.c": [1, 2.5, 'x"y'], "d": True}, "e": [{"f": 1, "g": ["h"]}]}
    assert tomllib.loads(runs.as_toml(table)) == table


# --- what comes out ---


def outcome_of(basis: Any, verdict: Any, lacking: str = "", expectation: Any = None) -> Outcome:
    figure = Figure("009-F1", "F", "claim", "criterion", basis, "flow", judge_completion, lacking=lacking)
    return Outcome(figure, Verdict(verdict, "measured"), Table([]), [], [], expectation)


def test_only_derived_passes_count_as_reproduced() -> None:
    outcomes = [
        outcome_of("derived", "pass"),
        outcome_of("derived", "fail"),
        outcome_of("calibrated", "pass"),
        outcome_of("structure", "pass"),
        outcome_of("identity", "pass"),
        outcome_of("reading", "fail", "a mechanism"),
        outcome_of("derived", "report"),
    ]
    assert output.summary(outcomes) == (
        "1 of 2 derived claims reproduced; passing, but not counted: 1 with a constant chosen from the claim, 1 true by construction, "
        "1 built as drawn; 1 not reproduced, 1 not built, 1 without a criterion"
    )


@pytest.mark.parametrize(
    ("value", "kind", "alternatives", "tried"),
    [
        (4, "C", (), (2, 8)),
        ("floor", "A", ("ceil",), ("ceil",)),
        (0.5, "C", (), (0.25, 1.0)),
        (4, "C", (3,), (3,)),
        ("rotating", "C", ("fixed", "round-robin"), ("fixed", "round-robin")),
        ("rotating", "C", (), ()),
        (True, "C", (), ()),
        (4, "G", (), ()),
    ],
)
def test_a_calibrated_constant_is_tried_at_other_values(value: Any, kind: str, alternatives: Any, tried: Any) -> None:
    assert experiments.Constant("part", "router.key", value, kind, "section 1", alternatives).tried == tried


def test_data_keep_every_column_with_a_value(tmp_path: Path) -> None:
    rows = [{"series": "a", "k": 2, "atr": 0.5, "message": "", "dims": [2, 2]}, {"series": "b", "k": 3, "atr": None}]
    path = output.write_data(F1, Table(rows), tmp_path)
    with path.open() as file:
        read = list(csv.DictReader(file))
    assert read[0] == {"series": "a", "k": "2", "atr": "0.5", "dims": "[2, 2]"}
    assert read[1]["atr"] == ""


def test_papers_and_figures_are_chosen_by_name() -> None:
    assert [figure.number for figure in choose(["mfs/F6", "mfs/003-C1"])[0][1]] == ["F6", "C1"]
    for name, problem in [("cenju9", "there is no paper `cenju9`; there are: mfs"), ("mfs/F99", "has no figure `F99`; it has: F1, F2")]:
        with pytest.raises(ConfigError, match=problem):
            choose([name])


def test_a_count_is_also_tried_at_one() -> None:
    assert experiments.Constant("part", "router.key", 4, "C", "ours", (), is_count=True).tried == (1, 2, 8)
    assert experiments.Constant("part", "router.key", 1, "C", "ours", (), is_count=True).tried == (2,)


# --- curves ---


def test_a_curve_that_is_flat_does_not_fall() -> None:
    assert curves.falls({2: 1.0, 4: 0.9})
    assert not curves.falls({2: 1.0, 4: 1.0})
    assert not curves.falls({2: 1.0, 4: 0.985})
    assert curves.falls({2: 1.0, 4: 0.985}, {2: 0.003, 4: 0.003})
    assert not curves.falls({2: 1.0})


def test_slack_is_relative_to_the_point_before() -> None:
    assert curves.never_rises({2: 1.0, 4: 1.04, 8: 0.9}, 0.05)
    assert not curves.never_rises({2: 1.0, 4: 1.06, 8: 0.9}, 0.05)


def test_no_point_in_common_is_no_agreement() -> None:
    assert curves.largest(curves.distances({2: 1.0}, {4: 1.0})) == float("inf")


# --- a figure through the whole command ---


def test_a_figure_goes_through_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["mfs/F1", "--out", str(tmp_path), "--jobs", "1"]
    assert main([*arguments, "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    (figure,) = shown["figures"]
    assert set(figure) >= {"id", "verdict", "claim", "criterion", "measured", "basis", "engine", "runs", "seconds"}
    assert (figure["id"], figure["verdict"], figure["basis"], figure["engine"]) == ("003-F1", "pass", "identity", "flow")
    assert len(figure["runs"]) == 1
    assert "003-F1" in (tmp_path / "mfs/index.html").read_text()
    assert main(arguments) == 0
    assert "0 of 0 derived claims reproduced; passing, but not counted: 1 true by construction" in capsys.readouterr().out


def test_bad_input_ends_with_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cenju9", "--out", str(tmp_path)]) == 2
    assert main(["mfs", "--experiments", str(tmp_path / "nowhere"), "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("error: ") == 2


def test_every_figure_has_runs_and_an_expectation_and_every_file_a_figure() -> None:
    folder = experiments.find(None)
    for paper in PAPERS.values():
        files = {path.stem for path in (folder / paper.name).glob("*.toml")} - {"machine", "expected"}
        own = {figure.number for figure in paper.figures if not figure.runs_of or figure.number in figure.runs_of}
        assert files == {number for figure in paper.figures for number in figure.runs_of or (figure.number,)} & files
        assert own - files <= {figure.number for figure in paper.figures if figure.lacking}
        assert set(expectations.read(folder / paper.name)) == {figure.number for figure in paper.figures}
        for figure in paper.figures:
            assert figure.lacking or all(
                experiments.read(folder / paper.name, number).points for number in figure.runs_of or (figure.number,)
            )


def test_a_verdict_fail_is_a_result_unless_strict_asks_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = PAPERS["mfs"]
    wrong = dataclasses.replace(paper.figures[0], judge=lambda table: Verdict("fail", "NOT: so"))
    monkeypatch.setitem(PAPERS, "mfs", dataclasses.replace(paper, figures=(wrong,)))
    arguments = ["mfs/F1", "--out", str(tmp_path), "--jobs", "1", "--quiet"]
    assert main(arguments) == 0
    assert main([*arguments, "--strict"]) == 1
