"""What several tests share."""

from __future__ import annotations

import signal
from pathlib import Path

import hypothesis
import pytest

import kasuri
import synthetic

# A shell that runs tests in the background has them ignore Ctrl-C, and so would all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same random cases every time, so that a failure tells of the change at hand.
hypothesis.settings.register_profile("same", derandomize=True)
hypothesis.settings.load_profile("same")

# They install and start a Slurm: `make verify` asks for them by name.
collect_ignore_glob = ["slurm/*"]


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep of 27 runs; do not write into it."""
    return synthetic.folder(tmp_path_factory.mktemp("finished") / "02-mesh")


@pytest.fixture
def results(run_folder: Path) -> kasuri.Results:
    return kasuri.read(run_folder)
