"""The record of a run: a folder of results has the whole experiment, also when it is moved."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path

import networkx
import pytest

import kasuri
from command_line import KASURI, command, rows_of, without_costs
from kasuri import report

MESH = {
    "title": "a small mesh",
    "network": {"topology": "mesh", "dimensions": [3, 3]},
    "routing": {"algorithm": "dimension-order"},
    "traffic": {"pattern": "uniform", "load": 0.1, "packet_flits": 2},
    "measure": {"warmup": 50, "cycles": 200},
}
FILE = """title = "a small mesh"
[network]
topology = "mesh"
dimensions = [3, 3]
[routing]
algorithm = "dimension-order"
[traffic]
pattern = "uniform"
load = 0.1
packet_flits = 2
[measure]
warmup = 50
cycles = 200
"""


def run_elsewhere(out: Path, elsewhere: Path) -> list[dict]:
    """Run what a folder keeps, moved away, and give the rows."""
    elsewhere.mkdir()
    shutil.move(out, elsewhere / "moved")
    return rows_of(command("run", "moved/effective.toml", "--out", "again", "--format", "json", folder=elsewhere))


def test_settings_are_in_the_folder_the_table_and_the_report(tmp_path):
    (tmp_path / "x.toml").write_text(FILE)
    set_ = ["--set", "router.buffer_flits=3", "--set", "sweep.traffic.load=[0.05, 0.2]"]
    first = rows_of(command("run", "x.toml", *set_, "--out", "out", "--format", "json", folder=tmp_path))
    assert [(row["router.buffer_flits"], row["traffic.load"]) for row in first] == [(3, 0.05), (3, 0.2)]
    assert tomllib.loads((tmp_path / "out/effective.toml").read_text())["router"] == {"buffer_flits": 3}
    results = kasuri.read(tmp_path / "out")
    assert results.input["router"] == {"buffer_flits": 3}
    assert results.input["sweep"] == {"traffic.load": [0.05, 0.2]}
    assert "router.buffer_flits" in (tmp_path / "out/runs.csv").read_text().splitlines()[0]
    page = report.write(tmp_path / "out").read_text()
    assert "buffer_flits = 3" in page
    assert run_elsewhere(tmp_path / "out", tmp_path / "elsewhere") == first


def test_networks_overrides_and_sweeps_of_python_are_in_the_folder(tmp_path):
    network = kasuri.Network.from_networkx(networkx.petersen_graph())
    graph = {**MESH, "network": network, "routing": {"algorithm": "up-down"}}
    swept = kasuri.sweep(graph, {"traffic.load": [0.05, 0.1]}, out=tmp_path / "swept", measure__seed=7, router__buffer_flits=9)
    assert swept.input["router"] == {"buffer_flits": 9}
    assert swept["router.buffer_flits"].tolist() == [9, 9]
    # The edge list is a file of the folder, by the name that the experiment gives it.
    copies = swept.input["record"]["files"]
    (name,) = network.texts
    assert (tmp_path / "swept" / copies[name]).read_text() == network.texts[name]
    expected = without_costs(swept)
    assert run_elsewhere(tmp_path / "swept", tmp_path / "elsewhere") == expected


def test_a_file_of_a_network_is_found_from_wherever_the_network_was_made(tmp_path, monkeypatch):
    (tmp_path / "nets").mkdir()
    kasuri.Network.from_topology("mesh", dimensions=[3, 3]).save(tmp_path / "nets/mesh.txt")
    network = kasuri.Network({"topology": "file", "path": "mesh.txt"}, tmp_path / "nets")
    monkeypatch.chdir(tmp_path)
    results = kasuri.run({**MESH, "network": network, "routing": {"algorithm": "up-down"}}, out="out")
    assert results[0]["routers"] == 9
    assert len(list((tmp_path / "out/files").iterdir())) == 1


@pytest.mark.parametrize("damage", [lambda text: text[:-1], lambda text: text.replace("1", "2", 1), lambda _: ""])
def test_a_damaged_copy_of_a_file_is_named_and_never_used(tmp_path, damage):
    (tmp_path / "m.txt").write_text("\n".join(" ".join("0" if one == other else "1" for other in range(9)) for one in range(9)) + "\n")
    (tmp_path / "x.toml").write_text(FILE.replace('"uniform"', '"matrix"\npath = "m.txt"'))
    words = ["run", "x.toml", "--out", "out", "--format", "json"]
    first = rows_of(command(*words, folder=tmp_path))
    (copy,) = (tmp_path / "out/files").iterdir()
    text = copy.read_text()
    copy.write_text(damage(text))
    answer = command("run", "out/effective.toml", "--out", "again", folder=tmp_path, status=2)
    assert f"out/files/{copy.name}` cannot be read: the file is damaged (its hash differs)" in answer.stderr
    with pytest.raises(kasuri.ResultsError, match=re.escape(copy.name)):
        assert kasuri.read(tmp_path / "out").missing
    command("pack", "out", folder=tmp_path, status=2)
    # The experiment itself writes the copy again.
    assert rows_of(command(*words, folder=tmp_path)) == first
    assert copy.read_text() == text


def test_a_packed_folder_gives_the_same_rows_elsewhere(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "here").mkdir()
    matrix = "\n".join(" ".join("0" if one == other else "1" for other in range(9)) for one in range(9)) + "\n"
    (tmp_path / "data/m.txt").write_text(matrix)
    (tmp_path / "here/x.toml").write_text(FILE.replace('"uniform"', f'"matrix"\npath = "{tmp_path}/data/m.txt"'))
    words = ["run", "here/x.toml", "--out", "out", "--format", "json"]
    first = rows_of(command(*words, "--set", "measure.seed=2", folder=tmp_path))
    first += rows_of(command(*words, "--set", "measure.seed=3", folder=tmp_path))
    for own in ("runs.json", "effective.toml"):
        assert f"out/{own}: is a file of the folder" in command("pack", "out", "-o", f"out/{own}", folder=tmp_path, status=2).stderr
    command("pack", "out", folder=tmp_path)
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    shutil.move(tmp_path / "out.tar.gz", fresh)
    for gone in ("data", "here", "out"):
        shutil.rmtree(tmp_path / gone)
    again = command("run", "out.tar.gz", "--format", "json", folder=fresh)
    assert rows_of(again) == first
    assert again.stderr == "kasuri: all 2 rows are the same as in out.tar.gz\n"
    assert rows_of(command("run", "out.tar.gz", "--format", "json", folder=fresh)) == first
    assert without_costs(kasuri.read(fresh / "out/out")) == first


def replace(archive: Path, name: str, old: bytes, new: bytes) -> None:
    """Pack an archive again with another content of one file."""
    folder = archive.parent / "unpacked"
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    (path,) = folder.glob(f"*/{name}")
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new))
    with tarfile.open(archive, "w:gz") as packed:
        for top in folder.iterdir():
            packed.add(top, top.name)
    shutil.rmtree(folder)


def test_another_version_and_other_rows_are_named(tmp_path):
    (tmp_path / "x.toml").write_text(FILE)
    command("run", "x.toml", "--out", "out", folder=tmp_path)
    command("pack", "out", "-o", "p.tar.gz", folder=tmp_path)
    replace(tmp_path / "p.tar.gz", "pack.json", f'"{kasuri.__version__}"'.encode(), b'"0.0.9"')
    assert "p.tar.gz was packed by kasuri 0.0.9 (" in command("run", "p.tar.gz", folder=tmp_path).stderr
    replace(tmp_path / "p.tar.gz", "effective.toml", b"load = 0.1\n", b"load = 0.15\n")
    stderr = command("run", "p.tar.gz", "--out", "other", folder=tmp_path, status=1).stderr
    assert "runs were made, p.tar.gz has 1 rows" in stderr


@pytest.mark.parametrize("content", [b"\x1f\x8b", b"\x1f\x8b\x08\x00garbage"])
def test_a_file_that_is_not_an_archive_is_refused(tmp_path, content):
    (tmp_path / "x.tar.gz").write_bytes(content)
    assert "x.tar.gz: " in command("run", "x.tar.gz", folder=tmp_path, status=2).stderr


def test_an_archive_writes_nothing_outside_its_folder(tmp_path):
    (tmp_path / "x.toml").write_text(FILE)
    command("run", "x.toml", "--out", "out", folder=tmp_path)
    command("pack", "out", "-o", "p.tar.gz", folder=tmp_path)
    with tarfile.open(tmp_path / "p.tar.gz") as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    (tmp_path / "evil").write_text("evil")
    for place in ("out/files/../../../evil", "out/files/.x", "/files/evil", "out/files/a/b"):
        with tarfile.open(tmp_path / "e.tar.gz", "w:gz") as packed:
            packed.add(tmp_path / "unpacked/out/effective.toml", "out/effective.toml")
            header = packed.gettarinfo(tmp_path / "evil")
            header.name = place
            packed.addfile(header, io.BytesIO(b"evil"))
        (tmp_path / "deep/er").mkdir(parents=True)
        subprocess.run([KASURI, "run", "../../e.tar.gz"], cwd=tmp_path / "deep/er", capture_output=True, check=False)
        found = [path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes() == b"evil"]
        assert found == [tmp_path / "evil"], place
        shutil.rmtree(tmp_path / "deep")


def test_simultaneous_runs_are_all_kept_and_in_the_table(tmp_path):
    (tmp_path / "a.cfg").write_text("topology = mesh;\nk = 3;\nn = 2;\nrouting_function = dor;\ntraffic = uniform;\nsample_period = 100;\n")
    (tmp_path / "x.toml").write_text(FILE)
    loads = [0.01, 0.02, 0.03, 0.04]
    for words, out in ((["booksim", "a.cfg"], "b"), (["run", "x.toml"], "r")):
        set_ = (lambda load: [f"injection_rate={load}"]) if out == "b" else (lambda load: ["--set", f"traffic.load={load}"])
        processes = [
            subprocess.Popen([KASURI, *words, *set_(load), "--out", out], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for load in loads[:3]
        ]
        stderr = [process.communicate()[1] for process in processes]
        assert [process.returncode for process in processes] == [0, 0, 0], stderr
        command(*words, *set_(loads[3]), "--out", out, folder=tmp_path)
        assert sorted(kasuri.read(tmp_path / out)["traffic.load"].tolist()) == loads
        assert len((tmp_path / out / "runs.csv").read_text().splitlines()) == 5
        assert len(list((tmp_path / out / "runs").glob("*.json"))) == 4


def test_a_call_gives_only_its_own_rows_of_a_folder(tmp_path):
    (tmp_path / "x.toml").write_text(FILE)
    for load in (0.05, 0.1):
        results = kasuri.run(tmp_path / "x.toml", out=tmp_path / "out", traffic__load=load)
        assert results["traffic.load"].tolist() == [load]
    assert len(kasuri.read(tmp_path / "out")) == 2


SATURATED = {**MESH, "traffic": {**MESH["traffic"], "load": 1.0, "packet_flits": 5}, "measure": {}}


@pytest.mark.parametrize("rules", [{}, {"rules": "booksim"}])
def test_saturated_runs_have_no_latencies(tmp_path, rules):
    """A latency beyond saturation depends on the length of the run: it has a column of its own, and is nowhere else."""
    results = kasuri.run(SATURATED, out=tmp_path, measure__max_cycles=20_000, **{f"measure__{key}": value for key, value in rules.items()})
    (row,) = results
    assert row["status"] == "saturated"
    latencies = [name for name in row if re.match(r"(packet|network|flit)_latency_", name)]
    assert len(latencies) > 20
    assert {name for name in latencies if row[name] is not None} == {"packet_latency_mean_until_stop"}
    assert row["packet_latency_mean_until_stop"] > 20
    assert row["accepted_throughput_mean"] > 0.1
    assert results.to_pandas()["packet_latency_mean"].isna().all()


def test_tables_show_the_confidence_interval_of_a_mean(tmp_path):
    results = kasuri.run(MESH, out=tmp_path / "out", **{"measure": {"precision": 0.1}})
    (row,) = results
    spread = f"{row['packet_latency_mean']:.4g} ± {row['packet_latency_ci95']:.4g}"
    assert spread in results._repr_html_()
    assert spread in report.write(tmp_path / "out").read_text()
    table = command("run", tmp_path / "out/effective.toml", "--out", tmp_path / "again", folder=tmp_path).stdout
    assert f"{row['packet_latency_mean']:.4f} ± {row['packet_latency_ci95']:.4f}" in table


def test_the_missing_runs_of_an_incomplete_folder_are_listed(tmp_path):
    (tmp_path / "x.toml").write_text(FILE + '[sweep]\n"traffic.load" = [0.05, 0.1, 0.15, 0.2]\n')
    command("run", "x.toml", "--out", "out", folder=tmp_path)
    complete = kasuri.read(tmp_path / "out")
    assert complete.missing == []
    # As an interrupted sweep leaves it: no table yet.
    (tmp_path / "out/runs.json").unlink()
    gone = [row for row in complete if row["traffic.load"] in (0.1, 0.15)]
    for row in gone:
        (tmp_path / f"out/runs/{row['key']}.json").unlink()
    results = kasuri.read(tmp_path / "out")
    assert [(run["key"], run["traffic.load"]) for run in results.missing] == [(row["key"], row["traffic.load"]) for row in gone]
    page = report.write(tmp_path / "out").read_text()
    assert "2 runs of this experiment" in page
    assert "2 of 4 runs are missing" in command("pack", "out", folder=tmp_path).stderr


def test_an_interrupted_experiment_is_not_taken_for_the_one_before(tmp_path):
    (tmp_path / "x.toml").write_text(FILE)
    command("run", "x.toml", "--out", "out", folder=tmp_path)
    table = (tmp_path / "out/runs.json").read_bytes()
    command("run", "x.toml", "--set", "sweep.traffic.load=[0.05, 0.1, 0.2]", "--out", "out", folder=tmp_path)
    (row,) = (row for row in kasuri.read(tmp_path / "out") if row["traffic.load"] == 0.2)
    (tmp_path / f"out/runs/{row['key']}.json").unlink()
    (tmp_path / "out/runs.json").write_bytes(table)
    results = kasuri.read(tmp_path / "out")
    assert results["traffic.load"].tolist() == [0.05, 0.1]
    assert [run["traffic.load"] for run in results.missing] == [0.2]


def test_the_commit_is_reported_and_not_part_of_keys(tmp_path):
    printed = command("--version", folder=tmp_path).stdout
    assert re.fullmatch(rf"kasuri {re.escape(kasuri.__version__)} \((commit [0-9a-f]{{12}}(-dirty)?|of no known commit)\)\n", printed)
    commit = re.search(r"commit (\S+)\)", printed)
    assert kasuri.__commit__ == (commit[1] if commit else None)
    results = kasuri.run(MESH, out=tmp_path / "out")
    assert results[0]["kasuri_commit"] == kasuri.__commit__
    # A row that another commit computed is used again, with that commit.
    path = tmp_path / f"out/runs/{results[0]['key']}.json"
    row = json.loads(path.read_text())
    assert row["kasuri_version"] == kasuri.__version__


@pytest.mark.parametrize("link", ["runs", "networks", "files", "failed"])
def test_results_are_written_only_inside_their_folder(tmp_path, link):
    (tmp_path / "x.toml").write_text(FILE)
    (tmp_path / "elsewhere").mkdir()
    command("run", "x.toml", "--out", "out", folder=tmp_path)
    shutil.rmtree(tmp_path / "out" / link, ignore_errors=True)
    (tmp_path / "out" / link).symlink_to(tmp_path / "elsewhere")
    stderr = command("run", "x.toml", "--out", "out", folder=tmp_path, status=2).stderr
    assert f"out/{link}: is a link to another place" in stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("evil", ["x\ntouch PWNED\n#", "x\rtouch PWNED"])
@pytest.mark.parametrize("place", ["file", "folder", "out"])
def test_no_name_becomes_a_command_of_a_job(tmp_path, evil, place):
    folder = tmp_path / (evil if place == "folder" else "plain")
    folder.mkdir()
    file = folder / (f"{evil}.toml" if place == "file" else "x.toml")
    file.write_text(FILE)
    out = evil if place == "out" else "out"
    answer = command("run", file.relative_to(folder), "--out", out, "--slurm-script", folder=folder, status=2)
    assert "control character" in answer.stderr
    assert answer.stdout == ""


def test_a_damaged_experiment_is_not_believed(tmp_path):
    kasuri.run(MESH, out=tmp_path / "out")
    path = tmp_path / "out/effective.toml"
    right = path.read_text()
    path.write_text(right.replace("a small mesh", "a small mash"))
    assert kasuri.read(tmp_path / "out").input_text == right
    (tmp_path / "out/runs.json").unlink()
    with pytest.raises(kasuri.ResultsError, match=r"effective\.toml: the file is damaged"):
        _ = kasuri.read(tmp_path / "out").input_text
    assert "effective.toml: the file is damaged" in command("pack", "out", folder=tmp_path, status=2).stderr
