"""Lets DGL 2.1.0, the last release on the package index, be imported beside today's torch.

Its sampling library `graphbolt` is built against one old torch and refuses any other; it asks for
`setuptools.extern`, which setuptools has dropped; and it imports pandas and torchdata, which only
graphbolt and the CSV data sets need. `install` puts empty modules in their places. The layers and
their C++ kernels, which is what we time and test against, are DGL's own.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import types
import warnings

import packaging
import packaging.version


def install() -> None:
    """To be called before the first `import dgl`; does nothing the second time."""
    if "dgl" in sys.modules or "dgl.graphbolt" in sys.modules:
        return
    # Without this DGL asks for a backend, and writes the answer to the home directory.
    os.environ.setdefault("DGLBACKEND", "pytorch")
    _empty_module("dgl.graphbolt")
    for name in ("pandas", "torchdata"):
        if importlib.util.find_spec(name) is None:
            _empty_module(name)
    if not all(map(importlib.util.find_spec, ("setuptools", "setuptools.extern"))):
        extern = types.ModuleType("setuptools.extern")
        setattr(extern, "packaging", packaging)
        sys.modules["setuptools.extern"] = extern
        sys.modules["setuptools.extern.packaging"] = packaging
        sys.modules["setuptools.extern.packaging.version"] = packaging.version


def ignore_affinity() -> None:
    """Lets DGL's loaders begin without a word on their not being bound to cores: none of ours is.
    On two cores DGL would leave one of them to training."""
    warnings.filterwarnings("ignore", "Dataloader CPU affinity")


class _EmptyModule(types.ModuleType):
    """A module in which every name is an empty class."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__module__": self.__name__})


def _empty_module(name: str) -> None:
    module = _EmptyModule(name)
    module.__path__ = []
    sys.modules[name] = module
