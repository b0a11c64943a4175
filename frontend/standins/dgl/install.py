"""Makes `import dgl` find this package where DGL is missing, or fails to import."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import logging
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from .absent import MODULES

HERE = __package__
"""The name of this package; the real one's is `dgl`."""

ALIASES = {"dgl.heterograph": "graph", "dgl.subgraph": "subgraphs"}
"""Modules of DGL that have another name here."""

log = logging.getLogger("gnnc.dgl")


def install(always: bool = False) -> bool:
    """Puts `gnnc.dgl` in the place of `dgl` unless that can be imported; tells whether it did so.

    With `always` also if it can, unless it has been imported already. To be called before the first
    `import dgl`. Where DGL can be imported but `dgl.sparse` cannot, which needs a library for each
    version of torch, that is `gnnc.dgl.sparse`.
    """
    if "dgl" in sys.modules:
        return sys.modules["dgl"] is sys.modules[HERE]
    if not always and _imports("dgl"):
        _lend_sparse()
        return False
    sys.modules["dgl"] = sys.modules[HERE]
    sys.meta_path.insert(0, Finder())
    # Where a module has the name of a function of `dgl`, importing it would hide the function.
    for name, file in ALIASES.items():
        sys.modules[name] = importlib.import_module(f"{HERE}.{file}")
    return True


def _lend_sparse() -> None:
    real = sys.modules["dgl"]
    if hasattr(real, "DGLGraph") and not _imports("dgl.sparse"):
        sys.modules["dgl.sparse"] = importlib.import_module(f"{HERE}.sparse")
        setattr(real, "sparse", sys.modules["dgl.sparse"])


def _imports(module: str) -> bool:
    # Without this DGL asks for a backend, and writes the answer to the home directory.
    os.environ.setdefault("DGLBACKEND", "pytorch")
    before = set(sys.modules)
    try:
        importlib.import_module(module)
    except Exception as error:  # DGL fails in many ways: missing files, symbols, modules, ..
        log.info("%s does not import (%s: %s)", module, type(error).__name__, error)
        for name in set(sys.modules) - before:
            if name.split(".")[0] == "dgl":
                del sys.modules[name]
        return False
    return True


class Finder(importlib.abc.MetaPathFinder):
    """Finds `dgl.x` as `gnnc.dgl.x`, one module under two names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith("dgl."):
            return None
        here = f"{HERE}{fullname.removeprefix('dgl')}"
        try:
            module = importlib.import_module(here)
        except ModuleNotFoundError as error:
            if error.name is None or not here.startswith(error.name):
                raise  # it is there, and needs something that is not
            known = fullname.split(".")[1] in MODULES
            more = ", which is out of its scope" if known else ""
            raise ModuleNotFoundError(f"gnnc.dgl has no {fullname}{more}", name=fullname) from None
        return importlib.machinery.ModuleSpec(fullname, Loader(module))


class Loader(importlib.abc.Loader):
    """Gives the module that is there already."""

    def __init__(self, module: ModuleType):
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just put the other name here; relative imports go by this one.
        module.__spec__ = self._spec
