"""Numbers of the channels of a network, checked before they are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from kasuri.errors import ArgumentError
from kasuri.network import Network


def check_network(network: object) -> Network:
    """Refuse an argument that is not a network.

    Raises
    ------
    ArgumentError
        It is something else.
    """
    if not isinstance(network, Network):
        raise ArgumentError(f"network: expected a kasuri.Network, got {type(network).__name__}")
    return network


def channel_values(network: Network, utilisation: Any) -> np.ndarray:
    """Give the utilisation of each channel as numbers.

    Raises
    ------
    ArgumentError
        It is none of this network's.
    """
    try:
        values = np.asarray(utilisation, dtype=float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"utilisation: expected a number for each channel: {error}") from error
    if values.shape != (check_network(network).channels,):
        raise ArgumentError(f"utilisation has shape {values.shape}, but the network has {network.channels} channels")
    return values
