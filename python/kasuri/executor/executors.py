"""The table of executors, and the choice among them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kasuri.errors import ConfigError, nearest
from kasuri.executor import address, local_cluster, settings, slurm
from kasuri.executor.settings import Source

if TYPE_CHECKING:
    from distributed import Client


class Executor(Protocol):
    """Something that provides a Dask cluster."""

    def connect(self, out: Path) -> AbstractContextManager[Client]:
        """Provide a client of a cluster; everything started for it ends with the context. `out` is the folder of results."""


#: By the ``kind`` of an executor file. ``local`` is the native command's own.
EXECUTORS = {
    "dask": local_cluster.LocalCluster,
    "dask-address": address.Address,
    "slurm": slurm.Slurm,
}

NAMES = "local, dask, dask:tcp://HOST:PORT, slurm, or an executor file with a name that ends in .toml"


def choose(text: str, jobs: int | None) -> Executor:
    """Give the executor that ``--executor`` names; `jobs` are the processes of this machine, or the jobs of the batch system.

    Raises
    ------
    ConfigError
        The executor is unknown, or its file is invalid.
    """
    if text.endswith(".toml"):
        return _of_file(Path(text), jobs)
    if text.startswith("dask:"):
        return address.Address(scheduler=text.removeprefix("dask:"))
    if text == "dask":
        return local_cluster.LocalCluster(jobs=jobs)
    if text == "slurm":
        return slurm.Slurm(jobs=jobs)
    near = nearest(text, ["local", "dask", "slurm"])
    hint = f"did you mean `{near}`? " if near else ""
    raise ConfigError(f"--executor {text}: unknown executor; {hint}expected {NAMES}")


def _of_file(path: Path, jobs: int | None) -> Executor:
    source = settings.read(path)
    kind = source.values.get("kind")
    names = ("local", "dask", "slurm")
    if kind not in names:
        raise source.wrong("kind", f"is {kind!r}; it must be one of {', '.join(names)}")
    values = dict(source.values)
    if jobs is not None:
        values["jobs"] = jobs
    name = "dask-address" if kind == "dask" and "scheduler" in values else str(kind)
    if name == "dask-address":
        values.pop("jobs", None)
    return settings.fill(EXECUTORS[name], Source(source.name, values))


@contextmanager
def connected(executor: Executor, out: Path) -> Iterator[Client]:
    """Connect to the cluster of an executor, with a clear message where Dask is not installed.

    Raises
    ------
    ConfigError
        Dask is not installed.
    """
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"{error}; an executor other than local needs Dask: pip install 'kasuri[distributed]'") from error
    with executor.connect(out) as client:
        yield client
