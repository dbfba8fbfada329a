"""Sweeps beyond one machine: what ``kasuri run --executor`` starts.

The engine is Dask distributed. An executor provides a Dask cluster (one file each, the table in ``executors.py``); ``sweep.py`` hands
it the points that are missing; ``task.py`` is what a worker does: it starts the native command for some points and keeps an eye on it.
A finished point is a file of the run store before anybody hears of it, so whatever dies, the same command again computes the rest.
"""
