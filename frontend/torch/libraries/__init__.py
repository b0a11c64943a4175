"""What gnnc knows of libraries on top of torch, a folder each: their functions as leaves of a graph
and the rules of these, which enter the importer's table, or as functions that can be traced.
"""

from threading import RLock

from . import dgl, pyg, running_statistics

_lock = RLock()


def install() -> None:
    """Has the functions of libraries that have been imported, and a method of torch, traced as what
    gnnc knows of them. A thread waits for another that is at it: Dynamo takes each rule once, and
    traces nothing right before all are there."""
    with _lock:
        running_statistics.install()
        pyg.install()
        dgl.install()
