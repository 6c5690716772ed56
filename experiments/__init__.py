"""The paper's experiments, made again: suites of questions, their tables, and the pages with them.

Not part of the installed package; run the modules from the project root, for instance
``python -m experiments.paper --sample 50``. The harness is :mod:`benchmarks.harness`.
"""
