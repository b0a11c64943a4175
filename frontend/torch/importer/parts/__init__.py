"""Cutting a graph into parts that import and parts that torch runs."""
