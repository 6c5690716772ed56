"""The paper's algorithms and the formula counters; nothing else imports them."""
