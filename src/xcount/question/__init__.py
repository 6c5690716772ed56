"""The question: the grid of cells, the change that counts, the query."""
