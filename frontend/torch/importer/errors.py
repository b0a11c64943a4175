"""What the importer says of a graph that it cannot express."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from torch import fx

BUG = "This is a bug in gnnc: please report it with the model"


class Unsupported(Exception):
    """A node has no meaning in sets and rows.

    `node` is the FX node (None: the whole graph), `reason` one clause, `where` the user's
    `file:line` when the node remembers it, `mutates` whether running the node outside would leave
    an in-place edit behind that a compiled part cannot see: then the whole graph must run in torch.
    """

    def __init__(self, node: fx.Node | None, reason: str, mutates: bool = False) -> None:
        self.node = node
        self.reason = reason
        self.where = location(node)
        self.mutates = mutates
        name = "the graph" if node is None else node_name(node)
        super().__init__(f"{name}: {reason}" + (f" ({self.where})" if self.where else ""))


class ImportCrash(Unsupported):
    """The importer failed on a node: a bug in gnnc, not in the program it was given, which can run
    in torch all the same."""

    def __init__(self, node: fx.Node | None, error: Exception, mutates: bool = False) -> None:
        what = f"gnnc failed to import it: {type(error).__name__}: {error}. {BUG}"
        super().__init__(node, what, mutates)


class NoRule(Exception):
    """Raised inside a rule, which does not know its node; the walker adds it."""


class Reject(Exception):
    """Raised inside a rule: an edit in place whose effect cannot be followed."""


def node_name(node: fx.Node) -> str:
    """The plain name of what a node calls: `add`, `gnnc.segment_reduce`, `scatter_add_`."""
    target = node.target
    if isinstance(target, str):
        return target
    text = str(target)
    if text.startswith("gnnc."):
        return text.removesuffix(".default")
    return getattr(target, "__name__", text)


_PACKAGE = str(Path(__file__).parents[3] / "frontend")
_MADE_BY_PYG = "/torch_geometric."  # modules of layers that it prints to temporary files
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def location(node: fx.Node | None) -> str | None:
    """The innermost frame of the node's Python stack outside of torch, PyG and gnnc, as
    `file:line`; with none there, that of a library."""
    trace = None if node is None else node.meta.get("stack_trace")
    if not trace:
        return None
    return own_place(_FRAME.findall(trace))


def own_place(frames: Sequence[tuple[str, str]]) -> str | None:
    """The innermost of frames, files and lines, that `location` tells; None where there are
    none."""
    return _innermost(frames, ("site-packages", _MADE_BY_PYG, "<", _PACKAGE)) if frames else None


def place_outside(trace: str) -> str:
    """The innermost frame of a Python stack that is none of gnnc's, a library's too."""
    return _innermost(_FRAME.findall(trace), (_PACKAGE,))


def _innermost(frames: Sequence[tuple[str, str]], skipped: Sequence[str]) -> str:
    """The innermost of frames whose file has none of `skipped` in its name, as `file:line`; with
    none there, the innermost that is not gnnc's, or of all."""
    own = [f for f in frames if not any(s in f[0] for s in skipped)]
    others = [f for f in frames if _PACKAGE not in f[0]]
    file, line = (own or others or frames)[-1]
    return f"{file}:{line}"


_LIBRARIES = ("torch", "torch_geometric", "torch_sparse", "dgl")


def of_library(file: str) -> bool:
    """Whether a file is of torch, of a library of graph layers, or gnnc's own."""
    if is_ours(file) or _MADE_BY_PYG in file:
        return True
    imported = (sys.modules.get(name) for name in _LIBRARIES)
    folders = (folder for module in imported for folder in getattr(module, "__path__", ()))
    return any(file.startswith(folder + os.sep) for folder in folders)


def is_ours(place: str) -> bool:
    """Whether a file is one of gnnc's own."""
    return place.startswith(_PACKAGE)
