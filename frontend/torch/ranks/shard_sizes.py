"""Parameters with any number of rows, while a call is traced.

Dynamo takes the sizes of parameters for constants: ranks would make other programs, and a row would
be no row of a set. A parameter with a row a node has them here as the tensors of a graph have.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from torch import Tensor
from torch._dynamo.variables import builder

_lock = threading.Lock()
_known: dict[int, weakref.ref[Tensor]] = {}
_plain: dict[str, Any] = {}
"""Torch's own function."""


def of_any_size(x: Tensor) -> None:
    """Lets calls be traced for any number of rows of a parameter, for as long as it lives."""
    asked: Any = builder
    with _lock:
        if asked.tensor_always_has_static_shape is not _static:
            _plain["static"] = asked.tensor_always_has_static_shape
            asked.tensor_always_has_static_shape = _static
    key = id(x)
    _known[key] = weakref.ref(x, lambda _: _known.pop(key, None))


def _static(tensor: Any, *others: Any, **named: Any) -> Any:
    """Whether the shape of a tensor is a constant, and why."""
    found = _known.get(id(tensor))
    if found is not None and found() is tensor:
        return False, None
    return _plain["static"](tensor, *others, **named)
