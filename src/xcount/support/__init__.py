"""Helpers for all packages: numbers as text, options, records, intervals, process memory."""
