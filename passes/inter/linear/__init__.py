"""The rewrites of `reorder-linear`, one a file."""
