"""Explanations: who is affected, in which direction, how much, and where."""
