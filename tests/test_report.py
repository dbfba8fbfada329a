"""The report is one file that needs nothing else, and says what the runs say."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest

import kasuri
import synthetic
from kasuri import report
from kasuri.report import sections
from kasuri.report.__main__ import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = synthetic.folder(tmp_path_factory.mktemp("report") / "02-mesh")
    report.write(path, plots=["svg"])
    return path


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "report.html").read_text()


class Loads(HTMLParser):
    """Collects everything that a browser would load, and checks that elements close."""

    VOID = frozenset({"meta", "input", "br", "link", "img", "hr", "use", "path"})

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [value or "" for name, value in attrs if name in ("src", "srcset", "data", "poster", "xlink:href")]
        self.loaded += [value or "" for name, value in attrs if name == "href" and tag in ("link", "use", "image", "script")]
        self.ids += [value or "" for name, value in attrs if name == "id" and tag not in ("defs",)]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_a_page_that_cannot_be_written_is_an_error_of_kasuri(folder):
    with pytest.raises(kasuri.FileError, match=r"/proc/x/page\.html: cannot be written"):
        report.write(folder, "/proc/x/page.html", plots=[])


def test_nothing_is_loaded_from_anywhere(page):
    parser = Loads()
    parser.feed(page)
    assert parser.open == []
    assert [place for place in parser.loaded if not place.startswith(("#", "data:"))] == []
    styles = re.findall(r"url\(([^)]*)\)|@import\s+(\S+)", page)
    assert [one or other for one, other in styles if not (one or other).strip("'\"").startswith(("#", "data:"))] == []
    # What remains of addresses are the names of XML vocabularies, which nobody loads.
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", page))
    assert all(address.startswith("http://www.w3.org/") for address in addresses)


def test_plots_network_and_utilisation_are_drawn_inside(page):
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    # Two [[plot]]s, one network, and one map of utilisation for each of the three patterns.
    assert len(drawings) == 2 + 1 + 3
    for drawing in drawings:
        assert ElementTree.fromstring(drawing).tag.endswith("svg")


def test_every_run_and_the_input_stand_on_the_page(page):
    body = page[page.index('<table class="runs sorted">') :]
    assert body.split("<tbody>")[1].split("</tbody>")[0].count("<tr>") == len(synthetic.rows())
    assert "&#34;traffic.pattern&#34; = [&#34;uniform&#34;, &#34;transpose&#34;, &#34;tornado&#34;]" in page


def test_the_summary_names_saturation(page):
    glance = page[page.index("At a glance") : page.index('id="curves"')]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", glance)
    uniform = cells[cells.index("uniform") :][:5]
    assert uniform == ["uniform", '23.18 <span class="unit">at 0.05</span>', "0.4", "0.45", "0.42"]


def test_statuses_are_counted_and_explained(page):
    saturated = sum(row["status"] == "saturated" for row in synthetic.rows())
    assert f'<span class="chip saturated">{saturated} saturated</span>' in page
    for status in ("converged", "saturated", "completed", "deadlock", "failed"):
        assert f'<dt><span class="{status}">' in page


def test_words_from_outside_cannot_become_markup(tmp_path):
    folder = synthetic.folder(tmp_path / "x")
    for file in (folder / "runs.json", folder / "input.toml"):
        file.write_text(file.read_text().replace("An 8x8 mesh", "<script>alert(1)</script>"))
    page = report.write(folder).read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_deadlocked_run_shows_its_cycle(tmp_path):
    folder = tmp_path / "x"
    folder.mkdir()
    row = synthetic.row("uniform", 0.1) | {"status": "deadlock", "deadlock": ["channel A", "channel B"], "packet_latency_mean": None}
    (folder / "runs.json").write_text(json.dumps({"runs": [row]}))
    page = report.write(folder).read_text()
    assert "channel A\nchannel B" in page


def test_a_standstill_without_a_cycle_says_why(tmp_path):
    folder = tmp_path / "x"
    folder.mkdir()
    waits = {"message": "2 damaged packets were refused", "deadlock": ["the program of terminal 3 waits for message 7 to it"]}
    (folder / "runs.json").write_text(json.dumps({"runs": [synthetic.row("uniform", 0.1) | {"status": "deadlock"} | waits]}))
    page = report.write(folder).read_text()
    assert all(text in page for text in ("2 damaged packets were refused", "the program of terminal 3 waits for message 7 to it"))


def test_plots_and_parquet_are_written_beside(folder):
    assert [file.name for file in sorted((folder / "plots").iterdir())] == [
        "01-packet_latency_mean-over-traffic-load.svg",
        "02-accepted_throughput_mean-over-traffic-load.svg",
    ]
    assert (folder / "runs.parquet").exists()


def test_the_same_runs_give_the_same_page(folder, page, tmp_path):
    again = shutil.copytree(folder, tmp_path / "02-mesh")
    assert report.write(again).read_text() == page


def test_the_index_leads_to_every_report(folder, tmp_path):
    other = shutil.copytree(folder, tmp_path / "demo" / "other")
    page = report.index([other], tmp_path / "demo" / "index.html").read_text()
    assert 'href="other/report.html"' in page
    assert (tmp_path / "demo" / "other" / "report.html").exists()


def test_the_command_writes_where_it_is_told(run_folder, tmp_path, capsys):
    copy = shutil.copytree(run_folder, tmp_path / "copy")
    assert main([str(copy), "-o", str(tmp_path / "page.html"), "--plots", "png"]) == 0
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert capsys.readouterr().out == ""


def test_the_command_refuses_a_folder_without_results_in_one_line(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"kasuri: {tmp_path}: no results here")
    assert message.count("\n") == 1


def test_reports_do_not_touch_matplotlibs_global_state(run_folder, tmp_path):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    report.write(shutil.copytree(run_folder, tmp_path / "copy"))
    assert dict(mpl.rcParams) == before
    assert isinstance(kasuri.read(run_folder), kasuri.Results)


def test_sweeps_over_drawn_faults_have_percentiles(tmp_path: Path) -> None:
    """Eleven draws of two links: 100, 101, ... 110 cycles, so a tenth is below 101 and a tenth above 109; no link down is one number."""
    base = {"engine": "flow", "status": "completed", "title": "losses"}

    def row(count: int, seed: int) -> dict[str, object]:
        cycles = 50 if count == 0 else 100 + seed
        return base | {"key": f"{count}-{seed}", "faults.link_count": count, "faults.seed": seed, "completion_time": cycles}

    rows = [row(count, seed) for count in (0, 2) for seed in range(11)]
    spread = sections.spread_over_faults(kasuri.Results(rows))
    assert spread is not None
    assert spread["split"] == ["faults.link_count"]
    lines = {(line["values"][0], line["heads"][0]): line for line in spread["lines"]}
    assert lines["2", "completion time"]["percentiles"] == ["101", "105", "109"]
    assert lines["0", "completion time"]["percentiles"] == ["50", "50", "50"]
    assert [line["heads"][2] for line in spread["lines"]] == [11, 11]
    assert sections.spread_over_faults(kasuri.Results(rows[:1])) is None
    (tmp_path / "runs.json").write_text(json.dumps({"runs": rows}))
    page = report.write(tmp_path).read_text()
    assert "Over the drawn faults" in page and "<td>109</td>" in page


def test_times_have_the_unit_that_a_reader_expects_and_saturated_runs_no_latency() -> None:
    rows = [{"completion_time_ns": 1e8, "status": "completed"}, {"packet_latency_mean": 5256.0, "status": "saturated"}]
    table = sections.table(kasuri.Results(rows))
    names = [head[0] for head in table["heads"]]
    cells = [dict(zip(names, (cell[0] for cell in row), strict=True)) for row in table["rows"]]
    assert cells[0]["completion_time_ns"] == "100 ms"
    assert cells[1]["packet_latency_mean"] == "–"


def test_large_numbers_have_their_digits_in_groups() -> None:
    assert kasuri._columns.shown(1_123_259.0) == "1\N{NARROW NO-BREAK SPACE}123\N{NARROW NO-BREAK SPACE}259"
    assert kasuri._columns.shown(1e8) == "100\N{NARROW NO-BREAK SPACE}000\N{NARROW NO-BREAK SPACE}000"
    assert kasuri._columns.shown(2.5e-7) == "2.5e-07"
