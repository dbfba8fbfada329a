"""Networks: routers, terminals and channels as columns, from Kasuri's topologies or from graphs of your own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kasuri import _kasuri
from kasuri._plain import as_json, plain

__all__ = ["Network"]


class Network:
    """An interconnection network; made by :meth:`from_topology`.

    The channels are numbered as in the results' vectors: the injection channel of terminal ``t`` is channel ``t``, its ejection
    channel is ``terminals + t``, the channels between routers follow.

    Attributes
    ----------
    name : str
        The one-line form of the topology.
    terminals, routers, channels : int
        Counts; channels are single directions, injection and ejection channels included.
    ports : numpy.ndarray
        Ports of each router, shape ``[routers]``.
    source_router, source_port, source_terminal : numpy.ndarray
        Where each channel begins, shape ``[channels]``; -1 where it begins at no router or no terminal.
    destination_router, destination_port, destination_terminal : numpy.ndarray
        Where each channel ends, likewise.
    latency, period : numpy.ndarray
        Cycles, shape ``[channels]``: a flit is seen ``latency + 1`` cycles after sending and occupies the channel for ``period``.
    labels : dict of str to numpy.ndarray
        What the topology says of each router, for example ``coordinate.0`` or ``level``; shape ``[routers]``.
    table : dict
        The ``[network]`` table of an experiment on this network.

    Examples
    --------
    >>> mesh = Network.from_topology("mesh", dimensions=[8, 8])
    >>> mesh.terminals, mesh.routers, mesh.channels
    (64, 64, 352)
    """

    name: str
    terminals: int
    routers: int
    ports: np.ndarray
    source_router: np.ndarray
    source_port: np.ndarray
    source_terminal: np.ndarray
    destination_router: np.ndarray
    destination_port: np.ndarray
    destination_terminal: np.ndarray
    latency: np.ndarray
    period: np.ndarray
    labels: dict[str, np.ndarray]
    table: dict[str, Any]

    def __init__(self, table: Mapping[str, Any], folder: str | Path = ".") -> None:
        self.table = plain(table)
        self._folder = str(folder)
        for name, column in _kasuri.network(as_json(self.table), self._folder).items():
            setattr(self, name, column)

    # --- ways in ---

    @classmethod
    def from_topology(cls, name: str, **parameters: Any) -> Network:
        """Build one of Kasuri's topologies.

        Parameters
        ----------
        name : str
            A name of ``kasuri list topologies``, for example ``"fat-tree"``.
        **parameters
            The keys of the ``[network]`` section, for example ``up=4, down=4, levels=3``.

        Raises
        ------
        ConfigError
            An unknown name or key, or a value that cannot be.

        Examples
        --------
        >>> Network.from_topology("mesh", dimensions=[4, 4]).routers
        16
        """
        return cls({"topology": name, **parameters})

    # --- what it is ---

    @property
    def channels(self) -> int:
        """The number of channels, injection and ejection channels included."""
        return len(self.latency)

    @property
    def terminal_routers(self) -> np.ndarray:
        """The router that each terminal injects into, shape ``[terminals]``."""
        return self.destination_router[: self.terminals]

    @property
    def router_edges(self) -> np.ndarray:
        """Router and router of each channel between routers, shape ``[channels - 2 terminals, 2]``."""
        between = slice(2 * self.terminals, None)
        return np.column_stack([self.source_router[between], self.destination_router[between]])

    def __repr__(self) -> str:
        return f"<kasuri.Network {self.name}: {self.routers} routers, {self.terminals} terminals, {self.channels} channels>"
