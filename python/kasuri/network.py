"""Networks: routers, terminals and channels as columns, from Kasuri's topologies or from graphs of your own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kasuri import _kasuri
from kasuri._plain import as_json, plain
from kasuri.errors import ConfigError, FileError, package

if TYPE_CHECKING:
    import networkx
    import numpy.typing as npt

__all__ = ["Network"]


class Network:
    """An interconnection network; made by one of the ``from_`` methods.

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
        The topology's labels of each router, for example ``coordinate.0`` or ``level``; shape ``[routers]``.
    router_names, terminal_names : list of str or None
        Names by number; ``None`` if the network has no names.
    table : dict
        The ``[network]`` table of an experiment on this network.
    texts : dict of str to str
        The files that the table names and that are not on the disk, by path.

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
    router_names: list[str] | None
    terminal_names: list[str] | None
    table: dict[str, Any]
    texts: dict[str, str]

    def __init__(self, table: Mapping[str, Any], folder: str | Path = ".", *, texts: Mapping[str, str] | None = None) -> None:
        if not isinstance(table, Mapping):
            raise ConfigError(f"network: is {table!r}; give the keys of [network] as a dictionary, or use Network.from_topology")
        self.table = plain(table)
        self.texts = dict(texts or {})
        self._origin = (as_json(self.table), str(folder), self.texts)
        for name, column in _kasuri.network(*self._origin).items():
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

    @classmethod
    def from_edges(cls, edges: npt.ArrayLike, *, terminals: int | npt.ArrayLike = 1, latency: int | npt.ArrayLike | None = None) -> Network:
        """Build a network from links between routers, each in both directions.

        Parameters
        ----------
        edges : array-like of int
            Shape ``[links, 2]``: the two routers of each link, numbered from 0.
        terminals : int or array-like of int, default 1
            Terminals on every router; or, shape ``[terminals]``, the router of each terminal.
        latency : int or array-like of int, optional
            Latency of the links in cycles, one number or one per link; without it the ``channel_latency`` of the experiment.

        Raises
        ------
        ConfigError
            The array has another shape, or a number is negative.

        Examples
        --------
        >>> ring = Network.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)])
        >>> ring.routers, ring.terminals
        (4, 4)
        """
        try:
            links = np.asarray(edges)
        except ValueError as error:
            raise ConfigError(f"edges: expected whole numbers of shape [links, 2]: {error}") from error
        if links.ndim != 2 or links.shape[1] != 2 or not np.issubdtype(links.dtype, np.integer):
            raise ConfigError(f"edges: expected whole numbers of shape [links, 2], got {links.dtype} of shape {list(links.shape)}")
        count = int(links.max(initial=-1)) + 1
        homes = np.repeat(np.arange(count), terminals) if isinstance(terminals, int) else np.asarray(terminals)
        if min(links.min(initial=0), homes.min(initial=0)) < 0:
            raise ConfigError("edges: routers are numbered from 0; there is a negative number")
        delays = None if latency is None else np.asarray(latency)
        if delays is not None and delays.shape not in ((), (len(links),)):
            raise ConfigError(f"latency: has shape {list(delays.shape)}; expected one number, or one for each of the {len(links)} links")
        delays = None if delays is None else np.broadcast_to(delays, len(links))
        return cls.from_text(_edge_list(links, homes, delays))

    @classmethod
    def from_text(cls, text: str) -> Network:
        """Build a network from the text of an edge list, as topology ``file`` reads it.

        Parameters
        ----------
        text : str
            The edge list.

        Raises
        ------
        ConfigError
            A line of the text is wrong; it is named.
        """
        name = f"network-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}.txt"
        return cls({"topology": "file", "path": name}, texts={name: text})

    @classmethod
    def from_json(cls, source: str | Path | Mapping[str, Any]) -> Network:
        """Build a network from JSON, as ``kasuri topology … --export json`` prints it and folders of results keep it.

        It is the same network, with its ports, labels and names, so that every routing runs on it that ran on the first.

        Parameters
        ----------
        source : path-like or mapping
            The file, or its content.

        Raises
        ------
        ConfigError
            The file cannot be read, or holds no network.

        Examples
        --------
        >>> mesh = Network.from_topology("mesh", dimensions=[4, 4])
        >>> Network.from_json(json.loads(mesh.to_json())).name
        'mesh [4, 4]'
        """
        if isinstance(source, Mapping):
            return cls._from_json_text(json.dumps(source))
        try:
            return cls._from_json_text(Path(source).read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{source}: cannot be read: {error}") from error
        except ConfigError as error:
            raise ConfigError(f"{source}: {error}") from None

    @classmethod
    def _from_json_text(cls, text: str) -> Network:
        name = f"network-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}.json"
        return cls({"topology": "file", "path": name}, texts={name: text})

    @classmethod
    def from_networkx(cls, graph: networkx.Graph, *, terminals: int = 1) -> Network:
        """Build a network from a networkx graph.

        Parameters
        ----------
        graph : networkx.Graph or networkx.DiGraph
            Nodes with the attribute ``kind`` of ``"terminal"`` are terminals, in their order; those of kind ``"router"`` or without one are
            routers. Their names are those of the nodes, or their attributes ``name``. An edge's attribute ``latency`` is its latency in
            cycles, ``gbit`` its rate in Gbit/s, or ``period`` its period in cycles. Edges of a directed graph are single channels where
            they have no opposite.
        terminals : int, default 1
            Terminals on every router, if the graph has no terminals; a node's attribute ``terminals`` overrides it.

        Raises
        ------
        ConfigError
            A node of another kind, or with an edge to itself; a terminal that has not exactly one router; an attribute that is no whole
            number. Nodes and edges are named as in the graph.

        Examples
        --------
        >>> import networkx
        >>> Network.from_networkx(networkx.petersen_graph()).routers
        10
        """
        from kasuri import _graphs

        if not hasattr(graph, "nodes") or not hasattr(graph, "edges"):
            raise ConfigError(f"graph: expected a networkx graph, got {type(graph).__name__}")
        return cls.from_text(_graphs.edge_list_of(graph, terminals))

    @classmethod
    def from_graphml(cls, path: str | Path, *, terminals: int = 1) -> Network:
        """Build a network from a GraphML file (needs networkx); see :meth:`from_networkx` for the attributes.

        Parameters
        ----------
        path : path-like
            The file.
        terminals : int, default 1
            Terminals on every router, if the graph has no terminals.

        Raises
        ------
        ConfigError
            The file cannot be read, or is not GraphML.
        """
        import xml.etree.ElementTree

        networkx = package("networkx", "Network.from_graphml", "graph")

        from kasuri import _graphs

        try:
            graph = networkx.read_graphml(path)
        except (OSError, networkx.NetworkXError, xml.etree.ElementTree.ParseError, KeyError, ValueError) as error:
            raise ConfigError(f"{path}: cannot be read as GraphML: {error}") from error
        _graphs.add_defaults(graph, path)
        return cls.from_networkx(graph, terminals=terminals)

    # --- ways out ---

    def to_networkx(self) -> networkx.MultiDiGraph:
        """Convert to a networkx graph: one edge per channel.

        The nodes are the names of routers and terminals, or ``"router 0"``, ``"terminal 0"``, … where the network has none.

        Returns
        -------
        networkx.MultiDiGraph
            Nodes with ``kind`` and the topology's labels, edges with ``channel`` (its number), ``latency`` and ``period``.
        """
        from kasuri import _graphs

        package("networkx", "Network.to_networkx", "graph")
        return _graphs.graph_of(self)

    def to_json(self) -> str:
        """Write the network as JSON, with labels and names; :meth:`from_json` and topology ``file`` read it."""
        return _kasuri.network_json(*self._origin)

    def edge_list(self) -> str:
        """Write the network as an edge list with every port, latency and period, as topology ``file`` reads it."""
        return _kasuri.edge_list(*self._origin)

    def save(self, path: str | Path) -> Path:
        """Write the edge list into a file, for ``[network] topology = "file"``; a topology's labels are lost in it.

        Parameters
        ----------
        path : path-like
            The file to write.

        Returns
        -------
        pathlib.Path
            The file.
        """
        path = Path(path)
        try:
            path.write_text(self.edge_list())
        except OSError as error:
            raise FileError(f"{path}: cannot be written: {error}") from error
        return path

    def experiment_table(self) -> dict[str, Any]:
        """Give the ``[network]`` table for an experiment elsewhere: :attr:`table`, with its paths as seen from the working directory."""
        folder, name = Path(self._origin[1]), self.table.get("path")
        if not isinstance(name, str) or name in self.texts or folder == Path():
            return self.table
        return self.table | {"path": str(folder / name)}

    # --- properties ---

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

    def metrics(self) -> dict[str, Any]:
        """Compute counts, diameter, average distance and bisection, as ``kasuri topology`` prints them.

        In a disconnected network ``diameter`` and ``average_distance`` are ``None``, and ``disconnected`` names a terminal and one that it
        cannot reach; otherwise that is ``None``.
        """
        return dict(json.loads(_kasuri.metrics(*self._origin)))

    def __repr__(self) -> str:
        return f"<kasuri.Network {self.name}: {self.routers} routers, {self.terminals} terminals, {self.channels} channels>"


def _edge_list(links: np.ndarray, homes: np.ndarray, delays: np.ndarray | None) -> str:
    speed = [""] * len(links) if delays is None else [f" latency={delay}" for delay in delays.tolist()]
    lines = [f"terminal {number} router {router}" for number, router in enumerate(homes.tolist())]
    lines += [f"router {one} router {other}{how}" for (one, other), how in zip(links.tolist(), speed, strict=True)]
    return "\n".join(lines) + "\n"
