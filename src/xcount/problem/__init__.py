"""The question in integers: leaves, trees laid on the grid, masks and subproblems."""
