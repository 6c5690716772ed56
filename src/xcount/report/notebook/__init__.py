"""Results in a notebook: a card each, a table for pandas, a bar while a run goes on."""
