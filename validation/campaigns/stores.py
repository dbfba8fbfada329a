#!/usr/bin/env python3
"""Damages folders of results, and asks for them again: the same answer, or an error that names the file, and never another answer."""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import trial

import kasuri

SWEEP = """\
[network]
topology = "mesh"
[routing]
algorithm = "dimension-order"
[router]
predictor = "latest-port"
[traffic]
pattern = "uniform"
[measure]
warmup = 50
cycles = 300
[sweep]
"network.dimensions" = [[2, 2], [3, 2]]
"traffic.load" = [0.1, 0.3]
[[plot]]
x = "traffic.load"
y = "packet_latency_mean"
"""
#: One trial in so many asks for the report, which takes seconds.
REPORTS = 12
#: Notes that `collect` has said which runs are missing.
PARTIAL = ".partial"

Rows = list[dict[str, Any]]


class Answers:
    """What an undamaged folder answers."""

    def __init__(self, folder: Path) -> None:
        results = kasuri.read(folder)
        self.rows = {row["key"]: row for row in trial.without_costs(results)}
        names = {key: sorted(file.name.split(".")[1] for file in (folder / "runs").glob(f"{key}.*.npy")) for key in self.rows}
        self.vectors = {(key, name): results.vector(key, name).tobytes() for key in names for name in names[key]}
        self.networks = {key: network_of(results, key) for key in self.rows}
        self.input = results.input_text

    def differ(self, rows: Rows, whole: bool) -> str | None:
        """Say in what rows differ from the right ones; ``whole`` if none may be missing."""
        found = {row["key"]: row for row in trial.without_costs(rows)}
        if whole and found.keys() != self.rows.keys():
            return f"{len(found)} of {len(self.rows)} rows"
        for key, row in found.items():
            right = self.rows.get(key)
            if right is None or any(row.get(column) != value for column, value in right.items()):
                return f"another row of {key}"
        return None


def network_of(results: kasuri.Results, key: str) -> str | None:
    """Give the text of a run's network."""
    network = results.network(key)
    return network and network.to_json()


# --- damages: each takes the content of a file, gives another one ---


def flip(content: bytes, draw: random.Random) -> bytes:
    """Change one to three bits."""
    changed = bytearray(content)
    for _ in range(draw.randint(1, 3) if changed else 0):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def change_digit(content: bytes, draw: random.Random) -> bytes:
    """Make another digit of one: the file stays readable, and says something else."""
    places = [place for place, byte in enumerate(content) if 48 <= byte <= 57]
    changed = bytearray(content)
    if places:
        place = draw.choice(places)
        changed[place] = 48 + (changed[place] - 48 + draw.randint(1, 9)) % 10
    return bytes(changed)


def append(content: bytes, draw: random.Random) -> bytes:
    """Add what does not belong there."""
    return content + draw.choice((b"\0", b"{}", b"\n\n", content[:100], draw.randbytes(20)))


DAMAGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "bits": flip,
    "digit": change_digit,
    "cut": lambda content, draw: content[: draw.randrange(len(content) or 1)],
    "more": append,
    "empty": lambda _, __: b"",
}


def damage(folder: Path, draw: random.Random) -> list[str]:
    """Damage one to three files of a folder; say what was done."""
    done = []
    for _ in range(draw.choice((1, 1, 2, 3))):
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        file, other = draw.choice(files), draw.choice(files)
        kind = draw.choice((*DAMAGES, "gone", "swapped", "folder"))
        done.append(f"{kind} {file.relative_to(folder)}")
        if kind == "gone":
            file.unlink()
        elif kind == "folder":
            file.unlink()
            file.mkdir()
        elif kind == "swapped":
            # Mostly with one of its kind, which is the harder case.
            alike = [one for one in files if one.parent == file.parent and one.suffix == file.suffix]
            other = draw.choice(alike) if draw.random() < 0.8 else other
            done[-1] += f" {other.relative_to(folder)}"
            one, another = file.read_bytes(), other.read_bytes()
            file.write_bytes(another)
            other.write_bytes(one)
        else:
            file.write_bytes(DAMAGES[kind](file.read_bytes(), draw))
    return done


# --- what is asked, and what may be answered ---


def names_a_file(text: str, folder: Path) -> bool:
    """Tell whether a message says where in a folder something is wrong."""
    return str(folder.name) in text and any(
        name in text for name in ("runs", "networks", "input", "plan", ".kasuri", "failed", folder.name + ":")
    )


def ask_run(kasuri_: str, folder: Path, answers: Answers, _: random.Random) -> str | None:
    """Run the experiment again: what is damaged is computed again."""
    answer = trial.attempt(kasuri_, "run", "sweep.toml", "--out", folder.name, "--jobs", "1", "--format", "json", folder=folder.parent)
    wrong = trial.defect(answer, (0, 1, 2))
    if wrong or answer.returncode:
        return wrong or (None if names_a_file(answer.stderr, folder) else f"an error that names no file: {answer.stderr}")
    wrong = answers.differ(json.loads(answer.stdout)["runs"], whole=True)
    # Once it has run, everything is sound.
    return wrong or ask_read(kasuri_, folder, answers, random.Random(0), sound=True)


def ask_collect(kasuri_: str, folder: Path, answers: Answers, _: random.Random) -> str | None:
    """Collect the table: what is damaged is missing, and that is said."""
    answer = trial.attempt(kasuri_, "collect", folder.name, "--format", "json", folder=folder.parent)
    wrong = trial.defect(answer, (0, 1, 2))
    if wrong:
        return wrong
    if answer.returncode == 2 or not answer.stdout:
        return None if names_a_file(answer.stderr, folder) else f"an error that names no file: {answer.stderr}"
    wrong = answers.differ(json.loads(answer.stdout)["runs"], whole=answer.returncode == 0)
    if answer.returncode == 1:
        # The table that it leaves lacks them.
        (folder / PARTIAL).touch()
    return wrong or (None if answer.returncode == 0 or "missing" in answer.stderr else "runs are missing without a word")


def ask_read(_: str, folder: Path, answers: Answers, __: random.Random, *, sound: bool = False) -> str | None:
    """Read it in Python: rows, vectors, networks, input. With ``sound`` nothing may be refused or missing."""
    try:
        results = kasuri.read(folder)
    except kasuri.ResultsError as error:
        return None if names_a_file(str(error), folder) and not sound else f"refused: {error}"
    # Without the table those rows count that are there.
    has_table = (folder / "runs.json").exists()
    wrong = answers.differ(list(results), whole=sound or (has_table and not (folder / PARTIAL).exists()))
    if wrong:
        return wrong
    asked: list[tuple[str, Callable[[], Any], Any]] = [("input", lambda: results.input_text, answers.input)] if has_table else []
    keys = {row["key"] for row in results}
    for key, name in answers.vectors:
        if key in keys:
            asked.append((f"{key} {name}", lambda key=key, name=name: results.vector(key, name).tobytes(), answers.vectors[key, name]))
    asked += [(f"network of {key}", lambda key=key: network_of(results, key), answers.networks[key]) for key in keys]
    for what, question, right in asked:
        try:
            found = question()
        except kasuri.ResultsError as error:
            if sound or not (names_a_file(str(error), folder) or "has no vector" in str(error)):
                return f"{what}: refused: {error}"
            continue
        is_gone = found is None and what.startswith("network") and not sound
        if found != right and not is_gone:
            return f"{what}: another answer"
    return None


def ask_report(kasuri_: str, folder: Path, _: Answers, __: random.Random) -> str | None:
    """Make the page: it is made, or the file that hinders is named."""
    answer = trial.attempt(kasuri_, "report", folder.name, "-o", "page.html", folder=folder.parent, limited=False)
    wrong = trial.defect(answer, (0, 2))
    if wrong is None and "Traceback" in answer.stderr:
        wrong = "a traceback"
    if wrong is None and answer.returncode and not (names_a_file(answer.stderr, folder) or "has no vector" in answer.stderr):
        wrong = f"an error that names no file: {answer.stderr}"
    return wrong


QUESTIONS = {"run": ask_run, "collect": ask_collect, "read": ask_read, "report": ask_report}


def examine(kasuri_: str, seed: int, original: Path, answers: Answers) -> tuple[str | None, str]:
    """Damage a copy of a folder and ask; say what is wrong, and what was asked."""
    draw = random.Random(seed)
    place = original.parent / str(seed)
    folder = place / f"out-{seed}"
    shutil.copytree(original, folder)
    shutil.copy(original.parent / "sweep.toml", place)
    if draw.random() < 0.5:
        (folder / "plan.jsonl").unlink()
    done = damage(folder, draw)
    asked = ["report"] if seed % REPORTS == 0 else draw.sample(["run", "collect", "read"], draw.randint(1, 3))
    for name in asked:
        try:
            wrong = QUESTIONS[name](kasuri_, folder, answers, draw)
        except Exception as error:  # noqa: BLE001  # whatever comes instead of an answer is what this looks for
            wrong = f"{type(error).__name__}: {error}"
        if wrong:
            return f"seed {seed}, {', '.join(done)}; {' '.join(asked)}: {name}: {wrong} ({folder})", name
    shutil.rmtree(place)
    return None, asked[-1]


def prepare(kasuri_: str, place: Path) -> tuple[Path, Answers]:
    """Compute a folder of results with everything that one can hold."""
    (place / "sweep.toml").write_text(SWEEP)
    for words in (["run", "sweep.toml", "--out", "whole", "--plan"], ["run", "sweep.toml", "--out", "whole"], ["collect", "whole"]):
        answer = trial.attempt(kasuri_, *words, folder=place)
        assert answer.returncode == 0, answer.stderr
    return place / "whole", Answers(place / "whole")


def main() -> int:
    """Examine many; give the exit status."""
    options = trial.options(__doc__, 2000, "damaged folders").parse_args()
    place = Path(tempfile.mkdtemp(prefix="kasuri-stores-"))
    original, answers = prepare(options.kasuri, place)
    found = [examine(options.kasuri, seed, original, answers) for seed in range(options.first, options.first + options.count)]
    wrong = [line for line, _ in found if line]
    asked = ", ".join(f"{count} {name}" for name, count in sorted(Counter(name for _, name in found).items()))
    print(f"{options.count} damaged folders ({asked}), {len(wrong)} answered wrongly")
    print("\n".join(wrong[:20]))
    if not wrong:
        shutil.rmtree(place)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
