"""Benchmarks of XCount: the paper's suite, larger models, and the pictures drawn from them.

Not part of the installed package; run the modules from the project root, for instance
``python -m benchmarks.paper --sample 50``.
"""
