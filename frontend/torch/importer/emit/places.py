"""Where in the user's code the ops of a program come from."""

from __future__ import annotations

from torch import fx
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

from ..errors import location


class Places(dict[fx.Node | None, FileLineColLoc | None]):
    """The place of each node of an FX graph, looked up once; None where it remembers none."""

    def __missing__(self, node: fx.Node | None) -> FileLineColLoc | None:
        where = location(node)
        if where is None:
            self[node] = None
        else:
            file, line = where.rsplit(":", 1)
            self[node] = FileLineColLoc(StringAttr(file), IntAttr(int(line)), IntAttr(0))
        return self[node]
