"""Parameters that have no shape yet: of lazy layers (PyG's with `in_channels=-1`, torch's
`LazyLinear`), which their first call gives one.

That call runs eagerly, and makes nothing that later calls would find. Traced, it would leave its
graph in each such layer (the hooks that give the shapes exchange the classes of parameters), and
every later call would go through those pieces.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch._dynamo import exc as dynamo_errors
from torch._dynamo.variables import nn_module
from torch._dynamo.variables.builder import VariableBuilder
from torch.nn.parameter import is_lazy

CAUSE = "it gives parameters of lazy layers their shapes; the next one is compiled"


class Shapeless(dynamo_errors.TorchRuntimeError):
    """Dynamo came upon a parameter that has no shape yet. Of this kind it ends a trace: for other
    kinds Dynamo would leave the graph there and go on behind it."""

    def __init__(self) -> None:
        super().__init__(CAUSE)


class Shapes:
    """Whether the parameters of what `gnnc.compile` was given have shapes, asked until they do.

    Of a function the module is not known, and its trace tells. That of a module would tell too
    late: a layer inside runs by itself then, since what comes in front of it has run.
    """

    def __init__(self, module: nn.Module | None) -> None:
        self.module = module

    def why_eager(self) -> str | None:
        """A reason to run a call eagerly, or None."""
        if self.module is not None:
            if any(map(is_lazy, self.module.parameters())):
                return f"runs eagerly, {CAUSE}"
            self.module = None
        return None


@contextmanager
def in_force() -> Generator[None]:
    """While it holds, a trace ends with `Shapeless` where it meets such a parameter."""
    plain, plain_layer = VariableBuilder.__call__, nn_module.initialize_lazy_module

    def call(self: VariableBuilder, value: Any) -> Any:
        if is_lazy(value):
            raise Shapeless
        return plain(self, value)

    def layer(tx: Any, module: nn.Module, args: Any, kwargs: Any) -> None:
        # torch would run the layer's hook on tensors without numbers, whose sizes are symbols
        if any(map(is_lazy, module.parameters(recurse=False))):
            raise Shapeless
        plain_layer(tx, module, args, kwargs)

    VariableBuilder.__call__ = call  # type: ignore[method-assign]
    nn_module.initialize_lazy_module = layer
    try:
        yield
    finally:
        VariableBuilder.__call__ = plain  # type: ignore[method-assign]
        nn_module.initialize_lazy_module = plain_layer
