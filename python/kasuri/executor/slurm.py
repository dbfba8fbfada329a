"""``slurm``: Dask workers as jobs of Slurm, by dask-jobqueue."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kasuri.errors import ConfigError
from kasuri.executor.task import MEMORY

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class Slurm:
    """A site's settings for jobs.

    Attributes
    ----------
    queue, account : str or None
        Slurm's partition and account; the site's defaults without them.
    wall_time : str
        The limit of a job, ``HH:MM:SS``. A point that it cuts short is computed again by another job.
    jobs : int
        Jobs, each with a Dask worker for every core.
    cores : int
        Cores of a job.
    memory : str
        Memory of a job with its unit, ``4GB``.
    environment : list of str
        Lines of shell that a job runs first: modules, virtual environments.
    directives : list of str
        More lines ``#SBATCH …``.
    scratch : str or None
        A folder of the node for temporary files.
    interface : str or None
        The network interface that workers and scheduler use, ``ib0``.
    python : str
        The Python of the nodes; the one that runs this without it.
    processes : int or None
        Worker processes of a job; one for every core without it.
    """

    queue: str | None = None
    account: str | None = None
    wall_time: str = "01:00:00"
    jobs: int | None = None
    cores: int = 1
    memory: str = "2GB"
    environment: list[str] = field(default_factory=list)
    directives: list[str] = field(default_factory=list)
    scratch: str | None = None
    interface: str | None = None
    python: str = sys.executable
    processes: int | None = None

    @contextmanager
    def connect(self, out: Path) -> Iterator[Client]:
        """Submit the jobs, with logs in the folder `slurm` of `out`; they are cancelled at the end of the context.

        Raises
        ------
        ConfigError
            dask-jobqueue or Slurm is not installed, or Slurm refuses the job.
        """
        if shutil.which("sbatch") is None:
            raise ConfigError("--executor slurm: no command `sbatch` on the path; run this where jobs are submitted to Slurm")
        try:
            import dask_jobqueue
        except ImportError as error:
            raise ConfigError(f"{error}; --executor slurm needs dask-jobqueue: pip install 'kasuri[distributed]'") from error
        import distributed
        from dask.utils import parse_bytes

        _check_names(out, self)

        processes = self.processes or self.cores
        mebibytes = parse_bytes(self.memory) / 2**20 / processes
        # A worker of several processes is a job each in Dask's eyes; memory is watched by the tasks, and by Slurm.
        with dask_jobqueue.SLURMCluster(
            queue=self.queue,
            account=self.account,
            walltime=self.wall_time,
            cores=self.cores,
            processes=processes,
            memory=self.memory,
            job_script_prologue=self.environment,
            job_extra_directives=[*self.directives, "--requeue"],
            local_directory=self.scratch,
            interface=self.interface,
            python=self.python,
            worker_extra_args=["--resources", f"{MEMORY}={mebibytes:.0f}", "--no-dashboard"],
            log_directory=str(out / "slurm"),
            scheduler_options={"dashboard_address": ":0"},
        ) as cluster:
            _check(cluster.job_script())
            cluster.scale(jobs=self.jobs or 2)
            with distributed.Client(cluster) as client:
                yield client


def _check_names(out: Path, site: Slurm) -> None:
    """Refuse names with control characters: after a line break, the rest of a directive would be a command of the job."""
    names = {"--out": str(out), **{key: value for key, value in vars(site).items() if isinstance(value, str)}}
    names |= {f"directives[{number}]": line for number, line in enumerate(site.directives)}
    for key, name in names.items():
        if any(unicodedata.category(letter) == "Cc" for letter in name):
            raise ConfigError(f"{key}: {name!r} has a line break or another control character, which would begin a command of the job")


def _check(script: str) -> None:
    """Have Slurm check a job before it is submitted: a later refusal would only be in a log."""
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
        Path(file.name).write_text(script)
        answer = subprocess.run(["sbatch", "--test-only", file.name], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        reason = " ".join(answer.stderr.split()).removeprefix("allocation failure: ")
        raise ConfigError(f"--executor slurm: Slurm refuses the job: {reason}; correct queue, account, wall_time, cores or memory")
