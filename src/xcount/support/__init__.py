"""Text and numbers of any size, and what the process holds: used by every room."""
