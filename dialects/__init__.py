"""The vocabulary of gnnc's intermediate representation, dialect by dialect."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Dialect


def get_all_dialects() -> dict[str, Callable[[], Dialect]]:
    """Every dialect by name, loaded when asked for."""

    def get_inter() -> Dialect:
        from .inter import Inter

        return Inter

    def get_intra() -> Dialect:
        from .intra import Intra

        return Intra

    return {"inter": get_inter, "intra": get_intra}
