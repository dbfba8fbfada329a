"""A sample of the campaigns with hostile hands; `make verify` runs them whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from command_line import KASURI

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("campaign", "options"),
    [
        ("mutations", ["--count", "200"]),
        ("experiments", ["--count", "30"]),
        ("stores", ["--count", "10"]),
        ("packed", ["--count", "8"]),
        ("interruptions", ["--count", "2"]),
        ("interruptions", ["--count", "2", "--first", "101", "--threads", "2"]),
    ],
)
def test_hostile_hands_are_answered(campaign, options):
    """Damaged files are refused with a word, drawn experiments run as `check` says, a damaged folder of results gives the same answer or
    names the file, a folder that is packed gives the same rows elsewhere, an interrupted sweep loses nothing and computes nothing twice,
    on any number of threads, and nothing ends in a defect.
    """
    words = [sys.executable, ROOT / "validation/campaigns" / f"{campaign}.py", "--kasuri", KASURI, *options]
    found = subprocess.run(words, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
