"""Calls on one rank's part of a graph: how it is cut, and programs over ranks behind torch."""
