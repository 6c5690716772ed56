"""XCount's own benchmarks: speed, limits, and how close measures come to people.

Not part of the installed package; run the modules from the project root, for instance
``python -m benchmarks.corner_sums``. :mod:`experiments` has the paper's tables.
"""
