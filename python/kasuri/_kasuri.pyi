"""The compiled part. Experiments and tables come and go as JSON text, columns as arrays."""

from typing import Any

__all__ = ["__version__", "edge_list", "network"]

__version__: str

def network(table: str, folder: str, texts: dict[str, str]) -> dict[str, Any]: ...
def edge_list(table: str, folder: str, texts: dict[str, str]) -> str: ...
