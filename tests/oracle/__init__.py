"""torch's operator database as an oracle: every op with a rule, on every sample it comes with."""
