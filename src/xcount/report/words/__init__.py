"""Results in words: numbers and sentences that every kind of report shares."""
