"""Kasuri, a simulator for interconnection networks."""

from kasuri._kasuri import __version__

__all__ = ["__version__"]
