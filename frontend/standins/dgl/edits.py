"""Methods that change a graph in place."""

from __future__ import annotations


class Edits:
    """Methods of a graph that add and remove."""
