"""What gnnc knows of libraries on top of torch, a folder each: their functions as leaves of a graph
and the rules of these, which enter the importer's table, or as functions that can be traced.
"""

from . import dgl, pyg, running_statistics


def install() -> None:
    """Has the functions of libraries that have been imported, and a method of torch, traced as what
    gnnc knows of them."""
    running_statistics.install()
    pyg.install()
    dgl.install()
