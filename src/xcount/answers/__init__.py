"""Results for users, made from a counter's tally: counts, measures, explanations, witnesses."""
