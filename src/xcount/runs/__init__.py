"""Many questions in one run: audits, comparisons, and the journal that keeps them."""
