"""The judges of the Cenju-4's machine on right and on wrong curves, and on runs in which what they look at is switched off."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kasuri
import switched
from kasuri_papers import boards, cenju4, experiments, programs
from kasuri_papers import cenju4_system as system
from kasuri_papers.cenju4_system import SIZE, STEPS, TIME
from kasuri_papers.figure import Table, Verdict

Rows = list[dict[str, Any]]
Judge = Callable[[Table], Verdict]
FOLDER = experiments.find(None) / "cenju4"
ROOT = Path(__file__).resolve().parent.parent
KASURI = switched.KASURI


def changed(table: Rows, series: str, **columns: Any) -> Rows:
    return [{**row, **columns} if row["series"] == series else row for row in table]


def without(table: Rows, series: str) -> Rows:
    return [row for row in table if row["series"] != series]


# --- right curves ------------------------------------------------------------------------------------------------------------------


def networks(**wrong: Any) -> Rows:
    table: Rows = []
    for n in system.SIZES:
        for cabling, cable in system.CABLINGS:
            counted = {"terminals": n, "routers": 4 * system.STAGES[n] * max(1, n // 16), "stages": system.STAGES[n], "pairs": n * n}
            place = {"n": n, "cabling": cabling, "cable": cable}
            table.append({"series": "machine", **place, **counted, "idle": 16 * (n == 8), **(wrong if n == 512 else {})})
            if n in (32, 128):
                table.append({"series": "channels", **place, "off_the_rule": 0.0})
        table.append({"series": "machine-pairs", "n": n, "status": "completed"})
    for n, switches in ((16, 8), (64, 48), (256, 256), (1024, 1280)):
        table.append({"series": "pure", "n": n, "terminals": n, "routers": switches})
        table.append({"series": "pure-pairs", "n": n, "status": "completed"})
    return table


def multicasts() -> Rows:
    places = (("pair", 32), ("pair", 64), ("large-pair", 1024), ("storm", 32), ("storm", 64))
    return [{"series": series, "n": n, "status": "completed", "measured_packets": 9} for series, n in places]


def timeline(order: tuple[float, ...] = (1.0, 2.0, 3.0, 3.1)) -> Rows:
    begins = dict(zip(STEPS, order, strict=True)) | {"(4a) data from main memory": 5.0}
    return [{"series": "timeline", "begins": begins}]


def choice(alone: int = 10, unsent: int = 0, more: int = 0) -> Rows:
    """Two packets of each of four parcels, then `alone` of the fourth, then one of the others; `unsent` of them wait outside."""
    table: Rows = []
    for queue in (1, 2, 4):
        order = [0, 1, 2, 3] * 2 + [0] * (more * queue) + [3] * alone + [0, 1, 2]
        made = [[0, parcel, float(at), at + 0.5] for at, parcel in enumerate(order)]
        late = [at for at, parcel in enumerate(order[:8]) if parcel == 1][:unsent]
        entered = [[9, parcel, at + (100.0 if at in late else 0.1), at + 200.0] for at, parcel in enumerate(order)]
        table.append({"series": "choice", "queue": queue, "spans": {STEPS[2]: made, "network": entered}})
    return table


def protection(**columns: Any) -> Rows:
    return [{"series": "protection", "status": "completed", "interrupts": 7, **columns}]


def several_tasks() -> Rows:
    times, switches = {1: 300e3, 2: 600e3, 3: 900e3}, {1: 0, 2: 0, 3: 32}
    table = [
        {"series": "tasks", "tasks": n, "status": "completed", TIME: times[n], "interrupts": switches[n], "task_switches": switches[n]}
        for n in times
    ]
    return [*table, {"series": "enough", "tasks": 3, "status": "completed", "task_switches": 0}, one_switch()]


def one_switch(second: float = 10.0, **columns: Any) -> dict[str, Any]:
    """A Sender reads a header at 1 us; its packet of 15 flits leaves from 3 us on; another task's is read 5 us later and more."""
    spans = {
        STEPS[0]: [[0, 0, 0.5, 1.0], [0, 1, 1.0, 2.0]],
        STEPS[1]: [[0, 0, 1.0, 1.5], [0, 1, second, second + 0.5]],
        STEPS[2]: [[0, 0, 1.5, 2.0], [0, 1, second + 0.5, second + 1.0]],
        "network": [[1, 0, 3.0, 4.0], [1, 1, second + 2.0, second + 3.0]],
    }
    return {"series": "switches", "bytes": 8, "endpoint.interrupt_ns": 5000.0, "task_switches": 1, "spans": spans, **columns}


def operating_system() -> Rows:
    def of(series: str, time: float, masked: bool, count: int, **more: Any) -> dict[str, Any]:
        marks = {"masked": ["buffer-quarter"] if masked else [], "interrupts": count, "endpoint.interrupt_ns": 5000.0}
        return {"series": series, "status": "completed", TIME: time, **marks, **more}

    pages = [(16, 0, 0, 0.0), (16, 1, 0, 1e5), (16, 0, 1, 1e5), (16, 1, 1, 2e5), (50000, 0, 0, 0.0), (50000, 5, 7, 1e6)]
    table = [
        {
            **{"series": "pages", "status": "completed", "bytes": size, "source": source, "target": target, TIME: 11_300 + later},
            **{"page_faults": 2 * (source + target), "endpoint.page_fault_ns": 50_000.0},
        }
        for size, source, target, later in pages
    ]
    table += [of("messages", 1e6, False, 0, each=16), of("messages", 1e6, True, 0, each=17), of("messages", 1e6 + 5000, False, 1, each=17)]
    table += [of("log", 2e7 + 5000, False, 32), of("log", 2e7, True, 0)]
    refusals = [{**of("refusals", 1e4, masked, 0 if masked else 7), "interrupts_masked": 8 if masked else 4} for masked in (False, True)]
    return [*table, *refusals]


def registrations(first: float = 13_112.5, after: float = 0.0) -> Rows:
    table: Rows = []
    for series in "DE":
        for n in (2, 32):
            for warmup, later in ((0, first), (1, after)):
                place = {"series": series, "n": n, "warmup": warmup}
                table += [{**place, "when": "before-start", TIME: 5000.0}, {**place, "when": "first-use", TIME: 5000.0 + later}]
    return [*table, *protection()]


def n_to_n(a: float = 40.0, b: float = 92.0, b_most: float = 117.0, c: float = 188.0, busy: float = 0.99, noise: float = 1.0) -> Rows:
    def of(rates: dict[int, float], series: str) -> Rows:
        return [
            {"series": series, SIZE: size, TIME: 32 * size / (rate + away) * 1000, "accepted_throughput_min": busy}
            for size, rate in rates.items()
            for away in (-noise, 0.0, noise)
        ]

    single = {"series": "one-to-one", SIZE: 524288, TIME: 2 * 524288 / 187.5 * 1000}
    return [
        *of({1024: 60.0, 16384: a, 65536: a}, "A"),
        *of({256: 90.0, 1024: b_most, 16384: b, 65536: b}, "B"),
        *of({1024: 180.0, 16384: c, 65536: c}, "C"),
        single,
    ]


RIGHT: list[tuple[Judge, Rows]] = [
    (system.networks, networks()),
    (system.multicasts_arrive, multicasts()),
    (system.steps_in_order, [*timeline(), *choice()]),
    (system.protected, protection()),
    (system.tasks, several_tasks()),
    (system.interrupts, operating_system()),
    (system.registered, registrations()),
    (system.all_to_all, n_to_n()),
]

WRONG: list[tuple[Judge, Rows]] = [
    *((judge, []) for judge, _ in RIGHT),
    (system.networks, networks(routers=700)),
    (system.networks, networks(stages=5)),
    (system.networks, networks(idle=4)),
    (system.networks, networks(pairs=512 * 512 - 1)),
    (system.networks, changed(networks(), "channels", off_the_rule=15.0)),
    (system.networks, without(networks(), "channels")),
    (system.networks, changed(networks(), "machine-pairs", status="deadlock")),
    (system.multicasts_arrive, changed(multicasts(), "pair", status="deadlock")),
    (system.multicasts_arrive, without(multicasts(), "large-pair")),
    (system.multicasts_arrive, without(multicasts(), "storm")),
    (system.steps_in_order, [*timeline((1.0, 3.0, 2.0, 4.0)), *choice()]),
    (system.steps_in_order, timeline()),
    (system.steps_in_order, [*timeline(), *choice(alone=3)]),
    (system.steps_in_order, [*timeline(), *choice(unsent=1)]),
    (system.steps_in_order, [*timeline(), *choice(more=1)]),
    (system.protected, protection(status="failed")),
    (system.protected, protection(interrupts=6)),
    (system.tasks, [{**row, "status": "deadlock"} if row.get("tasks") == 2 else row for row in several_tasks()]),
    (system.tasks, [{**row, TIME: 602e3} if row.get("tasks") == 3 else row for row in several_tasks()]),
    (system.tasks, [{**row, "interrupts": 40} if row.get("tasks") == 3 else row for row in several_tasks()]),
    (system.tasks, changed(several_tasks(), "enough", task_switches=2)),
    (system.tasks, [*without(several_tasks(), "switches"), one_switch(7.5)]),
    (system.tasks, [*without(several_tasks(), "switches"), one_switch(task_switches=2)]),
    (system.interrupts, [{**row, TIME: 60_000.0} if row.get("source") == 1 else row for row in operating_system()]),
    (system.interrupts, [{**row, "page_faults": 1} if row.get("target") == 7 else row for row in operating_system()]),
    (
        system.interrupts,
        [{**row, TIME: 1e6 + 2500} if row["series"] == "messages" and row["masked"] else row for row in operating_system()],
    ),
    (system.interrupts, [{**row, TIME: 2e7} if row["series"] == "log" else row for row in operating_system()]),
    (system.interrupts, changed(operating_system(), "refusals", interrupts=7)),
    (system.interrupts, changed(operating_system(), "pages", status="deadlock")),
    (system.registered, registrations(first=0.0)),
    (system.registered, registrations(first=14_000.0)),
    (system.registered, registrations(after=100.0)),
    (system.registered, changed(registrations(), "protection", interrupts=5)),
    (system.all_to_all, n_to_n(a=95.0)),
    (system.all_to_all, n_to_n(a=93.0, b=92.0)),
    (system.all_to_all, n_to_n(b_most=95.0)),
    (system.all_to_all, n_to_n(b_most=110.0, noise=20.0)),
    (system.all_to_all, n_to_n(b=190.0)),
    (system.all_to_all, n_to_n(c=170.0)),
    (system.all_to_all, n_to_n(busy=0.9)),
]


@pytest.mark.parametrize(("judge", "table"), RIGHT)
def test_the_right_curve_passes(judge: Judge, table: Rows) -> None:
    verdict = judge(Table(table))
    assert verdict.verdict == "pass", verdict.measured


@pytest.mark.parametrize(("judge", "table"), WRONG)
def test_a_wrong_curve_fails_and_says_what_does_not_hold(judge: Judge, table: Rows) -> None:
    verdict = judge(Table(table))
    assert verdict.verdict == "fail"
    assert verdict.measured.startswith("NOT: ")


def test_every_judge_sees_right_and_wrong_curves() -> None:
    judges = {figure.judge for figure in cenju4.PAPER.figures if figure.judge.__module__ == system.__name__ and figure.kind != "S"}
    assert judges == {judge for judge, _ in RIGHT} == {judge for judge, _ in WRONG}


# --- runs in which it is switched off ------------------------------------------------------------------------------------------------


points = partial(switched.points, "cenju4")


def table(tmp_path: Path, *chosen: experiments.Point, columns: Any = None) -> Rows:
    return switched.table(tmp_path, chosen, columns)


def test_the_flits_on_channels_tell_another_cable(tmp_path: Path) -> None:
    one, other = (
        next(point for point in points("F1", "channels") if point.variables["n"] == 32 and point.variables["cable"] == cable)
        for cable in ("destination", "sum")
    )
    [right] = table(tmp_path / "right", one, columns=system.off_the_rule)
    assert right["off_the_rule"] == 0
    mixed = dataclasses.replace(one, experiment=other.experiment)
    [wrong] = table(tmp_path / "wrong", mixed, columns=system.off_the_rule)
    assert wrong["off_the_rule"] > 0


def test_each_cabling_loads_the_channels_in_its_own_way() -> None:
    networks = [{"topology": "cenju4", "terminals": 32, "cabling": cabling, "cable": cable} for cabling, cable in system.CABLINGS]
    assert len({boards.loads(network, 21).tobytes() for network in networks}) == 16


def test_the_rule_finds_lines_that_lead_elsewhere() -> None:
    rule = boards.Rule(32, "halves-interleaved", "source")
    built = kasuri.Network({"topology": "cenju4", "terminals": 32, "cabling": "halves-interleaved", "cable": "source"})
    _, reached = boards.paths(built, rule)
    assert (reached == np.arange(32)).all()
    # On a machine with other bundles the same outputs lead to other nodes.
    _, elsewhere = boards.paths(kasuri.Network({"topology": "cenju4", "terminals": 32}), rule)
    assert 0 < (elsewhere == np.arange(32)).mean() < 1


def test_multicasts_with_lost_flits_do_not_pass(tmp_path: Path) -> None:
    [first, *_] = points("F3", "pair")
    [lossy, *_] = points("F3", "pair", endpoint={"flit_loss_rate": 1e-4})
    assert {row["status"] for row in table(tmp_path / "whole", first)} == {"completed"}
    rows = table(tmp_path / "lossy", lossy)
    assert {row["status"] for row in rows} == {"deadlock"}
    others = [row for row in multicasts() if (row["series"], row["n"]) != ("pair", 32)]
    assert system.multicasts_arrive(Table([*others, *rows])).verdict == "fail"


def test_without_missing_pages_the_fourth_register_is_not_chosen_alone(tmp_path: Path) -> None:
    stopped = table(tmp_path / "stopped", *points("F4", "choice"))
    verdict = system.steps_in_order(Table([*timeline(), *stopped]))
    assert verdict.verdict == "pass", verdict.measured
    free = table(tmp_path / "free", *points("F4", "choice", workload={"missing_target_pages": 0}))
    verdict = system.steps_in_order(Table([*timeline(), *free]))
    assert verdict.verdict == "fail"
    assert "packets of the fourth parcel after each other" in verdict.measured.partition(";")[0]


def test_refusals_that_are_masked_are_not_told(tmp_path: Path) -> None:
    assert system.protected(Table(table(tmp_path / "told", *points("C8", "protection")))).verdict == "pass"
    masked = table(tmp_path / "masked", *points("C8", "protection", endpoint={"masked_interrupts": ["error"]}))
    assert system.protected(Table(masked)).verdict == "fail"


def test_with_a_set_for_each_task_there_are_no_switches(tmp_path: Path) -> None:
    others = without(several_tasks(), "switches")
    shared = table(tmp_path / "shared", *points("C11", "switches"))
    verdict = system.tasks(Table([*others, *shared]))
    assert verdict.verdict == "pass", verdict.measured
    alone = table(tmp_path / "alone", *points("C11", "switches", endpoint={"user_registers": 3}))
    assert [row["task_switches"] for row in alone] == [0, 0, 0]
    assert system.tasks(Table([*others, *alone])).verdict == "fail"


def test_an_operating_system_without_costs_delays_nothing(tmp_path: Path) -> None:
    names = ("pages", "messages", "log", "refusals")
    usual = table(tmp_path / "usual", *(point for name in names for point in points("C12", name)))
    verdict = system.interrupts(Table(usual))
    assert verdict.verdict == "pass", verdict.measured
    free = {"interrupt_ns": 0.0, "page_fault_ns": 0.0}
    rows = table(tmp_path / "free", *(point for name in names[:3] for point in points("C12", name, endpoint=free)))
    failures = [part for part in system.interrupts(Table(rows)).measured.split("; ") if part.startswith("NOT: ")]
    assert any("messages: later by 0.00 us" in part for part in failures)
    assert any("log: later by 0.00 us" in part for part in failures)
    assert sum("later by 0.0 us" in part for part in failures) == 4


def test_system_calls_without_costs_delay_no_first_use(tmp_path: Path) -> None:
    chosen = [point for series in "DE" for point in points("C13", series) if point.variables["n"] < 32]
    free = [point for series in "DE" for point in points("C13", series, endpoint={"system_call_ns": 0.0}) if point.variables["n"] < 32]
    rows = table(tmp_path / "usual", *chosen)
    assert system.registered(Table([*rows, *protection()])).verdict == "pass"
    verdict = system.registered(Table([*table(tmp_path / "free", *free), *protection()]))
    assert verdict.verdict == "fail"
    assert "the first one later by 2: 112.5" in verdict.measured


def test_b_falls_on_full_boards_and_not_where_a_first_switch_has_one_output(tmp_path: Path) -> None:
    few = {"sweep": {SIZE: [1024, 16384], "measure.seed": [1, 2]}}
    others = [row for row in n_to_n() if row["series"] != "B" and row.get(SIZE) != 65536]
    verdicts = []
    for series in ("B", "B-alone"):
        [point] = points("F9", series, **few)
        rows = [{**row, "series": "B"} for row in table(tmp_path / series, point)]
        verdicts.append(system.all_to_all(Table([*others, *rows])))
    assert [verdict.verdict for verdict in verdicts] == ["pass", "fail"], verdicts
    assert verdicts[1].measured.startswith("NOT: B falls")


def test_the_study_tells_loss_inside_rounds_from_loss_between_them(tmp_path: Path) -> None:
    place = {"cabling": "halves-straight", "cable": "destination"}
    chosen = [
        point
        for name in ("B", "rounds", "alone")
        for point in points("S1", name)
        if place.items() >= {key: point.variables.get(key) for key in place if key in point.variables}.items()
    ]
    few = [
        dataclasses.replace(
            point, experiment={**point.experiment, "sweep": {key: values[:1] for key, values in point.experiment["sweep"].items()}}
        )
        for point in chosen
    ]
    rows = table(tmp_path, *few)
    verdict = system.why_b_falls(Table(rows))
    assert verdict.verdict == "report"
    [text] = re.findall(r"halves-straight, destination, 1024 bytes: B [\d.]+ Mbyte/s; of its time (.*?) between them", verdict.measured)
    full, inside, between = (int(part) for part in re.findall(r"(-?\d+)%", text))
    assert full + inside + between == pytest.approx(100, abs=1)
    # 16 nodes share 8 cables: a round takes half as long again in the mean; the rest is lost between rounds, or won.
    assert inside > 20
    # One node's parcels meet no others: nothing is lost inside rounds then.
    alone = [row for row in rows if row["series"] == "alone"]
    same = [row for row in rows if row["series"] != "rounds"] + [{**row, "series": "rounds", **place} for row in alone]
    assert "0% lost inside rounds" in system.why_b_falls(Table(same)).measured


def test_jobs_that_share_cables_delay_each_other_and_others_do_not(tmp_path: Path) -> None:
    rows = table(tmp_path, *points("S3", "parcels"), columns=system.ends)
    verdict = system.two_jobs(Table(rows))
    assert verdict.verdict == "report"
    times = {(places, job): float(ratio) for places, job, ratio in re.findall(r"in (\w+), (\w+): .*?, ([\d.]+) times", verdict.measured)}
    assert times["eights", "stencil"] > 1.02
    assert times["turns", "stencil"] == times["turns", "exchange"] == 1


#: Words of the edges up and down, and of those to the left and right.
EDGES = ((4, 4), (64, 4))


def test_edges_of_sixteen_words_and_more_go_as_messages_and_shorter_ones_word_by_word(tmp_path: Path) -> None:
    few = [point for way in system.WAYS for point in points("S2", way) if (point.variables["points"], point.variables["lines"]) in EDGES]
    verdict = system.messages_and_memory(Table(table(tmp_path, *few)))
    assert verdict.verdict == "report"
    times = {
        (int(lines), int(words)): [float(time) for time in re.findall(r"[\d.]+", told)]
        for lines, words, told in re.findall(r"edges of (\d+) and (\d+) words: us an iteration: ([^;\n]*)", verdict.measured)
    }
    assert set(times) == {(4, 4), (4, 64)}
    _, accesses, messages, both = times[4, 4]
    assert both == accesses != messages
    _, accesses, messages, both = times[4, 64]
    assert messages < both < accesses


# --- constants and sources ------------------------------------------------------------------------------------------------------------


def test_the_interface_has_the_machines_constants_by_default() -> None:
    """Rows whose verdict does not hang on a constant leave it out; they measure the same machine."""
    constants = [constant for part in experiments._read_machine(FOLDER / "machine.toml").values() for constant in part]
    for constant in constants:
        if (
            constant.machine in ("no-packet-headers", "instant-memory", "shared-memory", "messages-of-memory")
            or not constant.key.startswith("endpoint.")
            or constant.key == "endpoint.model"
        ):
            continue
        text = subprocess.run([KASURI, "explain", constant.key], capture_output=True, text=True, check=True).stdout
        found = re.search(r"of model = cenju4\).*?default: (\S+)", text, re.DOTALL)
        assert found, text
        value = found[1].strip('"')
        assert value == constant.value if isinstance(constant.value, str) else float(value) == constant.value, constant.key


def test_one_cabling_judges_and_fifteen_are_read() -> None:
    [cables] = [constant for constant in experiments.read(FOLDER, "F9").constants if constant.machine == "cables"]
    every = {(value["cabling"], value["cable"]) for value in (cables.value, *cables.tried)}
    assert every == set(system.CABLINGS)
    assert tuple(cables.value.values()) == system.CABLINGS[0]


def test_unit_tests_that_notes_name_are_there() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "crates").rglob("*.rs"))
    named = {name for figure in cenju4.PAPER.figures for note in figure.notes for name in re.findall(r"`([a-z_0-9]{20,})`", note)}
    assert named
    for name in named:
        assert f"fn {name}(" in sources, name


def test_programs_of_parcels_send_what_they_receive() -> None:
    for script in (
        programs.rounds(nodes=8, senders=8, bytes=64),
        programs.parcel_jobs(jobs="both", places="eights", iterations=2, bytes=64),
    ):
        sent: dict[int, int] = {}
        for part in script:
            for step in part["steps"]:
                if step["action"] == "put":
                    sent[step["to"]] = sent.get(step["to"], 0) + 1
        received = {part["ranks"][0]: sum(step.get("count", 1) for step in part["steps"] if step["action"] == "receive") for part in script}
        assert sent == received


def test_columns_of_other_series_stay_out() -> None:
    assert system.off_the_rule({"series": "machine-pairs"}, partial(pytest.fail, "no vector is asked for")) == {}
