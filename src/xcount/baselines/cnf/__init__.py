"""The question as a propositional formula, and the model counters that solve it."""
