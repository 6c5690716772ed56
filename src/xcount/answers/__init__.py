"""From a counter's tally to what users get: a count, a measure, a witness."""
