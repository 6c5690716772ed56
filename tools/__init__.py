"""Tools for those who work on XCount; not part of the installed package."""
