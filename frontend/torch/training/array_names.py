"""What the arrays of a step are called: as in the program's source, the modules, the optimizer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from .program import Begun

DATA, PARAMETERS = "data", "parameters"


class ArrayNames:
    """Names of tensors with the folder of their file, by identity."""

    def __init__(self, begun: Begun) -> None:
        self.begun = begun
        self._known: dict[int, tuple[str, str]] = {}
        self._used: set[tuple[str, str]] = set()
        for name, x in begun.functions.inputs.items():
            self._note(x, DATA, name)
        modules = {n: x for n, x in begun.names.items() if isinstance(x, nn.Module)}
        for name, module in modules.items():
            front = "" if len(modules) == 1 else f"{name}."
            for own, x in (*module.named_parameters(), *module.named_buffers()):
                self._note(x, PARAMETERS, front + own)
        for name, value in begun.names.items():
            for own, x in tensors_of(name, value):
                self._note(x, PARAMETERS if x.requires_grad else DATA, own)

    def of(self, x: Tensor, hint: str) -> tuple[str, str]:
        """The folder and name of a tensor; one that has none is data, named after the placeholder."""
        if id(x) not in self._known:
            self._note(x, PARAMETERS if x.requires_grad else DATA, _clean(hint))
        return self._known[id(x)]

    def kept(self, of: Tensor, what: str) -> tuple[str, str]:
        """The folder and name of what the optimizer keeps for a parameter."""
        return PARAMETERS, f"{self._known[id(of)][1]}.{what}"

    def _note(self, x: Tensor, folder: str, name: str) -> None:
        if id(x) in self._known:
            return
        unique, k = name, 1
        while (folder, unique) in self._used:
            k += 1
            unique = f"{name}_{k}"
        self._used.add((folder, unique))
        self._known[id(x)] = (folder, unique)


def tensors_of(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a local name: itself, the items of a container, the attributes of an object."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, dict):
        for key, x in value.items():
            yield from tensors_of(f"{name}.{key}", x)
    elif isinstance(value, list | tuple):
        for i, x in enumerate(value):
            yield from tensors_of(f"{name}.{i}", x)
    elif type(value).__module__.startswith("gnnc."):
        for key, x in vars(value).items():
            if isinstance(x, Tensor):
                yield f"{name}.{key}", x


def _clean(placeholder: str) -> str:
    """A name of Dynamo's without its decoration."""
    return re.sub(r"^[LlGg]_", "", placeholder).strip("_")
