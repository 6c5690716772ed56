"""Runs of many counts: audits, comparisons, and the journal that keeps their results."""
