"""Single rows of a table: what they get, what they could get, and how their groups fare."""
