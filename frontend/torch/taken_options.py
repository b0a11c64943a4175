"""Options that hold for more than the calls of the module that was compiled with them: for a step
that trains its parameters, and for the same model layer by layer.

A program that contains a module's calls is compiled for whoever asks for the program: the options
of `gnnc.compile` and `gnnc.distribute` would say nothing there.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from ..compiler import Options

TAKEN = (
    *("march", "sanitize", "profile", "denormals", "sparse_features", "hoist_inputs"),
    *("remote_reads", "target", "backend"),
)
"""How programs are made, and not what becomes of a call that is none (`fullgraph`), or by which
passes a module's own programs are (`passes`)."""

_lock = threading.Lock()
_of_modules: weakref.WeakKeyDictionary[nn.Module, dict[str, Any]] = weakref.WeakKeyDictionary()


def note(module: nn.Module, options: Options) -> None:
    """Makes known which options a module is compiled with that are others than usual."""
    usual = Options()
    chosen = {k: getattr(options, k) for k in TAKEN if getattr(options, k) != getattr(usual, k)}
    with _lock:
        _of_modules[module] = chosen


def taken(parameters: Iterable[Tensor], given: dict[str, Any]) -> Options:
    """The options `given`, and of others those of the compiled modules that have some of these
    parameters.

    Raises:
        TypeError: an option is not known.
        ValueError: an option is out of range; or is not given, and these modules have several.
    """
    Options(**given)
    wanted = set(map(id, parameters))
    with _lock:
        known = [(m, chosen) for m, chosen in _of_modules.items() if chosen]
    out = dict(given)
    for module, chosen in known:
        if wanted.isdisjoint(map(id, module.parameters())):
            continue
        for name, value in chosen.items():
            if out.setdefault(name, value) != value and name not in given:
                raise ValueError(
                    f"{name}: modules with these parameters were compiled with {out[name]!r} and "
                    f"with {value!r}: say which it is to be"
                )
    return Options(**out)
