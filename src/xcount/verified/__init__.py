"""The verified counter: questions written for it, and how it is run."""
