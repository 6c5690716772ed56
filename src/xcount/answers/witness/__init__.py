"""Pairs of inputs that differ in the sensitive features alone, and change."""
