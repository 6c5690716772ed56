"""Counting on a Dask cluster, in the same units of work."""
