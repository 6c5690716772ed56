"""Witnesses: pairs of inputs that differ only in the sensitive features and get other outputs."""
