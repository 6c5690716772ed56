"""The same model with other leaf values, so that a limit on its sensitivity is proved."""
