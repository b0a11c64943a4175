"""Packages that take the place of others: `gnnc.dgl` is found here.

A folder of the name `dgl` in the repository's root would hide the real one from scripts that run
there, so the root's `__path__` leads here instead.
"""
