"""Plots of results and networks: tables in, ``ax=`` in, ``ax`` out.

Every function draws on the axes that it is given, or on new ones, and returns them; nothing here touches global state of
Matplotlib, and importing this module does not import it.
"""

from kasuri.plot.asked import experiment_plots
from kasuri.plot.classes import ChannelClass, channel_classes, utilisation_by_class
from kasuri.plot.curves import curves, latency_load
from kasuri.plot.drawing import draw_network
from kasuri.plot.heatmap import channel_utilisation
from kasuri.plot.style import save

__all__ = [
    "ChannelClass",
    "channel_classes",
    "channel_utilisation",
    "curves",
    "draw_network",
    "experiment_plots",
    "latency_load",
    "save",
    "utilisation_by_class",
]
