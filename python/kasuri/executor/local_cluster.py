"""``dask``: worker processes of this machine."""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kasuri.errors import ConfigError
from kasuri.executor.task import MEMORY

if TYPE_CHECKING:
    from distributed import Client

#: The part of the machine's memory that workers share.
SHARE = 0.8

#: Dask profiles and watches itself many times a second, which would take more time than handing out runs does.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}


#: The pages of the dashboard. All users of the machine can read them; none must be able to command the workers.
ROUTES = "distributed.scheduler.http.routes"


@dataclass(frozen=True)
class LocalCluster:
    """Worker processes of this machine, each computing one point at a time.

    Attributes
    ----------
    jobs : int or None
        How many; one for each core without it.
    memory : float or None
        GB for each of them; a share of the machine's memory without it.
    scratch : str or None
        A folder for temporary files.
    """

    jobs: int | None = None
    memory: float | None = None
    scratch: str | None = None

    @contextmanager
    def connect(self, out: Path) -> Iterator[Client]:
        """Start the processes; they end with the context.

        Whoever reaches a scheduler can have any program run by its workers, and all users of a machine reach its ports. So this one knows
        its own by a key that is made for it, never written to a file, and forgotten with it.

        Raises
        ------
        ConfigError
            The package that makes keys is not installed.
        """
        import dask
        import distributed
        from distributed.deploy import spec

        try:
            security = distributed.Security.temporary()
        except ImportError as error:
            raise ConfigError(f"{error}; --executor dask needs cryptography: pip install 'kasuri[distributed]'") from error

        jobs = self.jobs or len(os.sched_getaffinity(0))
        mebibytes = self.memory * 1e9 / 2**20 if self.memory else SHARE * distributed.system.MEMORY_LIMIT / 2**20 / jobs
        # A cluster that is stopped while it begins cannot be closed, and would say so at the end. Its processes end with this one.
        atexit.unregister(spec.close_clusters)
        # Each point has its own process, which the task watches; Dask's own limit would only see the worker.
        with (
            dask.config.set(QUIET | {ROUTES: [route for route in dask.config.get(ROUTES) if not route.endswith(".api")]}),
            distributed.LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                processes=True,
                memory_limit=0,
                resources={MEMORY: mebibytes},
                local_directory=self.scratch,
                host="127.0.0.1",
                security=security,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
