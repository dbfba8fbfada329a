"""The tables that `make bench` writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RECORD = Path(__file__).resolve().parent.parent / "benches" / "record.py"
BENCH = """\
print(f"{'seconds':20} {'Kasuri':>9} {'ratio':>7}")
print(f"{'a tree, 10 x 40':20} {1.0:9.3f} {3.0:7.1f}  MUST NOT MET")
print()
print("import kasuri: 0.20 s")
raise SystemExit(3)
"""


def test_columns_become_tables_and_the_status_is_passed_on(tmp_path):
    bench, file = tmp_path / "bench.py", tmp_path / "out" / "bench.md"
    bench.write_text(BENCH)
    for _ in range(2):
        answer = subprocess.run([sys.executable, RECORD, file, bench], capture_output=True, text=True, check=False)
        assert answer.returncode == 3
        assert "a tree, 10 x 40          1.000     3.0  MUST NOT MET\n" in answer.stdout
    head, *sections = file.read_text().split("\n## bench.py\n\n")
    assert head.startswith("# What `make bench` has measured\n")
    table = "| seconds | Kasuri | ratio |\n| --- | --- | --- |\n| a tree, 10 x 40 | 1.000 | 3.0 MUST NOT MET |\n"
    assert sections == [f"{table}\nimport kasuri: 0.20 s\n"] * 2
