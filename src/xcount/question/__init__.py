"""What is asked: the grid of cells, the change that counts, the query."""
