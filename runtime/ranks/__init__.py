"""Ranks: processes, or threads of one process, that train one model together, and what they say to
each other. Nothing here knows the IR. docs/distributed.md explains it.
"""
