"""The same units of work on a Dask cluster."""
