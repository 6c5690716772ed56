"""The paper's algorithms and the CNF counters; nothing else imports them."""
