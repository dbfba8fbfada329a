"""``dask:tcp://HOST:PORT``: an existing Dask cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kasuri.errors import ConfigError

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class Address:
    """The scheduler of a running cluster.

    Attributes
    ----------
    scheduler : str
        Its address, ``tcp://HOST:PORT``.
    wait : float
        Seconds after which a scheduler that does not answer is given up.
    """

    scheduler: str = ""
    wait: float = 15.0

    @contextmanager
    def connect(self, out: Path) -> Iterator[Client]:
        """Connect to the scheduler.

        Raises
        ------
        ConfigError
            The address is invalid, or there is no answer.
        """
        import distributed

        if "://" not in self.scheduler:
            raise ConfigError(f"the scheduler's address is {self.scheduler!r}; it must be like tcp://HOST:8786")
        try:
            asyncio.run(asyncio.wait_for(_greet(self.scheduler, self.wait), self.wait + 1))
            client = distributed.Client(self.scheduler, timeout=self.wait, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise ConfigError(
                f"no Dask scheduler answers at {self.scheduler} within {self.wait:g} s; start one (dask scheduler), or correct the address "
                "(that of the scheduler, not of its dashboard)"
            ) from error
        except ValueError as error:
            raise ConfigError(f"the scheduler's address {self.scheduler!r} cannot be used: {error}") from error
        with client:
            yield client


async def _greet(scheduler: str, wait: float) -> None:
    """See whether a scheduler answers. A client waits for minutes for something else that listens there, such as the dashboard."""
    from distributed import Security
    from distributed.comm import connect

    link = await connect(scheduler, timeout=wait, **Security().get_connection_args("client"))
    await link.close()
