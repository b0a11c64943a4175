"""Printers: intra IR -> source text. `get_all_targets` gives gnn-opt's targets without importing
them.
"""

from collections.abc import Callable

from xdsl.utils.target import Target


def get_all_targets() -> dict[str, Callable[[], type[Target]]]:
    """Target name -> factory of its class."""

    def openmp() -> type[Target]:
        from .openmp.printer import OpenMPTarget

        return OpenMPTarget

    return {"openmp": openmp}
