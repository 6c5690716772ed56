"""Measures: what regions weigh, and the share of that weight that is sensitive."""
