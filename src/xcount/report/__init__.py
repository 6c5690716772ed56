"""Results -> text, plots, one HTML file. Nothing in here counts."""
