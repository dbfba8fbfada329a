#!/usr/bin/env python3
"""Damages experiment files in every way that hands and disks can, and asks `kasuri check` about each."""

from __future__ import annotations

import concurrent.futures
import os
import random
import re
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import trial

#: Values that stand where others were.
VALUES = (
    "0", "-1", "1", "65536", "4294967295", "4294967296", "9223372036854775807", "1e308", "-0.0", "nan", "inf", "0.1", "true", '""',
    '"mesh"', '"\\u0000"', "[]", "[[]]", "[1, 2]", "{}", "{ from = 0.1, to = 0.2, step = 0.1 }", "1979-05-27", '"../../.."', '"/dev/zero"',
)  # fmt: skip


def originals() -> list[str]:
    """Give the experiments of the examples and of the documentation."""
    # To check a network of a million terminals takes seconds and a gigabyte, and larger ones that digits make of it more.
    files = sorted(file for file in trial.ROOT.glob("examples/*.toml") if "million" not in file.name)
    texts = [file.read_text() for file in files]
    for page in sorted(trial.ROOT.glob("docs/**/*.md")):
        texts += re.findall(r"^```toml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [text for text in texts if "[network]" in text]


def mutate(text: str, draw: random.Random) -> str:
    """Change a text in one to four places."""
    lines = text.splitlines()
    for _ in range(draw.randint(1, 4)):
        if not lines:
            break
        line = draw.randrange(len(lines))
        match draw.randrange(9):
            case 0:
                del lines[line]
            case 1:
                lines.insert(line, lines[line])
            case 2:
                other = draw.randrange(len(lines))
                lines[line], lines[other] = lines[other], lines[line]
            case 3 | 4:
                lines[line] = re.sub(r"=.*", lambda _: "= " + draw.choice(VALUES), lines[line], count=1)
            case 5:
                letters = list(lines[line])
                if letters:
                    letters[draw.randrange(len(letters))] = chr(draw.choice((0, 9, 27, 34, 44, 46, 61, 91, 93, 123, 233, 0x1F600)))
                lines[line] = "".join(letters)
            case 6:
                lines = lines[:line]
            case 7:
                lines[line] = re.sub(r"\d+", lambda found: found[0] * draw.choice((0, 2, 5, 9)), lines[line])
            case 8:
                lines.insert(line, f"[{draw.choice(('network', 'router', 'sweep', 'plot', 'users', 'nobody', 'traffic.class'))}]")
    return "\n".join(lines)


def examine(kasuri: str, seed: int, folder: Path, texts: list[str]) -> str | None:
    """Check the mutation of a seed; say what is wrong with the answer."""
    draw = random.Random(seed)
    file = folder / f"{seed}.toml"
    file.write_text(mutate(draw.choice(texts), draw))
    answer = trial.attempt(kasuri, "check", file.name, folder=folder)
    wrong = trial.defect(answer, (0, 2))
    if wrong is None:
        file.unlink()
        return None
    return f"seed {seed}: {wrong} ({file})\n{answer.stderr[-600:]}"


def main() -> int:
    """Examine many; give the exit status."""
    options = trial.options(__doc__, 9000, "mutated files").parse_args()
    texts = originals()
    folder = Path(tempfile.mkdtemp(prefix="kasuri-mutations-"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        seeds = range(options.first, options.first + options.count)
        wrong = [line for line in pool.map(lambda seed: examine(options.kasuri, seed, folder, texts), seeds) if line]
    print(f"{options.count} mutated files, {len(wrong)} answered wrongly")
    print("\n".join(wrong[:20]))
    if not wrong:
        shutil.rmtree(folder)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
