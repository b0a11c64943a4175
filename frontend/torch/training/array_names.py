"""What the arrays of a step are called: as in the program's source, the modules, the optimizer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from ..sparse.features import entries_of
from .data import GraphArrays
from .program import Begun

DATA, PARAMETERS = "data", "parameters"
PARTS = ("row", "col", "value")


@dataclass(frozen=True)
class Entry:
    """A part of the entries of a dense array, with a name."""

    of: Tensor
    part: str
    name: str


class ArrayNames:
    """Names of tensors with the folder of their file, by identity."""

    def __init__(self, begun: Begun) -> None:
        self.begun = begun
        self._known: dict[int, tuple[Tensor, tuple[str, str]]] = {}
        self._used: set[tuple[str, str]] = set()
        self._entries: dict[int, Entry] = {}
        for value in begun.names.values():
            for own, x in arrays_of(value):
                self._note(x, DATA, own)
        modules = {n: x for n, x in begun.names.items() if isinstance(x, nn.Module)}
        for name, module in modules.items():
            front = "" if len(modules) == 1 else f"{name}."
            for own, x in (*module.named_parameters(), *module.named_buffers()):
                self._note(x, PARAMETERS, front + own)
        for name, x in begun.functions.inputs.items():
            self._note(x, DATA, name)
        for name, value in begun.names.items():
            for own, x in tensors_of(name, value):
                self._note(x, PARAMETERS if x.requires_grad else DATA, own)

    def of(self, x: Tensor, hint: str) -> tuple[str, str]:
        """The folder and name of a tensor; one that has none is data, named as the placeholder."""
        if id(x) not in self._known:
            self._note(x, PARAMETERS if x.requires_grad else DATA, _clean(hint))
        return self._known[id(x)][1]

    def shown(self, x: Any, hint: str) -> str:
        """What messages call an argument of the step."""
        known = self._known.get(id(x))
        return _clean(hint) if known is None else known[1][1]

    def entry(self, x: Tensor) -> Entry | None:
        """What a tensor is of a dense array that is taken as sparse, if it is."""
        if not self._entries:
            for dense, (_, name) in list(self._known.values()):
                found = entries_of(dense)
                for part in PARTS if found is not None else ():
                    self._entries[id(getattr(found, part))] = Entry(dense, part, f"{name}.{part}")
        return self._entries.get(id(x))

    def kept(self, of: Tensor, what: str) -> tuple[str, str]:
        """The folder and name of what the optimizer keeps for a parameter."""
        return PARAMETERS, f"{self._known[id(of)][1][1]}.{what}"

    def _note(self, x: Tensor, folder: str, name: str) -> None:
        if id(x) in self._known:
            return
        unique, k = name, 1
        while (folder, unique) in self._used:
            k += 1
            unique = f"{name}_{k}"
        self._used.add((folder, unique))
        self._known[id(x)] = (x, (folder, unique))


def arrays_of(value: Any) -> Iterator[tuple[str, Tensor]]:
    """The arrays of what holds those of a graph: `gnnc.load` gives it, or PyG's `Data`."""
    if isinstance(value, GraphArrays):
        yield from ((name, value[name]) for name in value)
    elif hasattr(value, "edge_attrs") and hasattr(value, "to_dict"):
        yield from ((n, x) for n, x in value.to_dict().items() if isinstance(x, Tensor))


def tensors_of(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a local name: itself, items of a container, attributes of an object."""
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
    return re.sub(r"^[LlGg]_(loss_closure_\d+_cell_contents_)?", "", placeholder).strip("_")
