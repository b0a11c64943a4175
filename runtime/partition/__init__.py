"""Graphs cut into parts, one a rank: who owns which node, what each rank stores, and its files.

`assign.partition` chooses owners of `edges.Edges`, `parts.make_part` makes of them what one rank
stores, and `files` keeps that.
"""
