"""Sweeps on several machines, started by ``kasuri run --executor``.

The engine is Dask distributed. An executor provides a Dask cluster (one file each, the table in ``executors.py``); ``sweep.py`` hands
it the points that are missing; ``task.py`` is the worker's part: it starts the native command for some points and keeps an eye on it.
A finished point is a file of the run store before it is reported, so after any failure the same command computes the rest.
"""
