"""One self-contained page about a folder of results: opens anywhere, needs no network.

The page holds the plots, the network where it is small, the channels' utilisation, every run, the input and the versions.
"""

from kasuri.report.page import index, write

__all__ = ["index", "write"]
