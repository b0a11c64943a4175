"""Cutting a graph for which there is no program as a whole.

In goes the graph with the nodes that have no meaning; out come the parts that import and the parts
that torch runs.
"""
