"""Sato and Tanaka, "Virtual Network System and its Preliminary Evaluation": node numbers translated in hardware, shared memory on top.

The figures stand in a file for each group of them: the simulator and its measurements in `virtual_network_memory`, tables and logical
networks in `virtual_network_users`, nodes that translate themselves in `virtual_network_nodes`.
"""

from __future__ import annotations

from kasuri_papers import virtual_network_memory, virtual_network_nodes, virtual_network_users
from kasuri_papers.figure import Paper

PAPER = Paper(
    "virtual-network",
    "Virtual networks: node numbers translated in hardware",
    (*virtual_network_users.FIGURES, *virtual_network_memory.FIGURES, *virtual_network_nodes.FIGURES),
)
