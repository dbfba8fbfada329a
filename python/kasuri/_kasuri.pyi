"""The compiled part. Experiments and tables come and go as JSON text, columns as arrays."""

from typing import Any

__all__ = ["__version__", "network"]

__version__: str

def network(table: str, folder: str) -> dict[str, Any]: ...
