"""The paper's own algorithms on decision diagrams, with its errors corrected (docs/errata.md)."""
