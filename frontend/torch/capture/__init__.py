"""Capture: a user's function becomes graphs, and what torch does with them otherwise."""
