"""Methods that traced code binds to an object by `function.__get__(object)`.

PyG's layers exchange methods of their own in this way where an explainer asks for it. Dynamo takes
such a method for what the object has under the function's name. Where a graph ended, or code stored
or returned the method, the program went on with what lay there before, without a word. Here it is
what it is in Python: the function, bound to the object.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from torch._dynamo.bytecode_transformation import create_call_function
from torch._dynamo.variables.functions import UserFunctionVariable, UserMethodVariable

_BIND = "tp_descr_get_impl"
"""Dynamo's `function.__get__`, which releases of torch had under other names."""


def _bound(self: UserFunctionVariable, tx: Any, obj: Any, owner: Any) -> UserMethodVariable:
    return UserMethodVariable(self.fn, obj, source_fn=self.source)


def _reconstruct(self: UserMethodVariable, codegen: Any) -> None:
    """Code that makes a method which is found nowhere."""

    def bind() -> None:
        codegen.load_import_from("types", "MethodType")

    codegen.add_push_null(bind)
    if self.source_fn is None:
        name = codegen.tx.output.install_global_by_id("_bound", self.fn)
        codegen.extend_output([codegen.create_load_global(name, add=True)])
    else:
        codegen(self.source_fn)
    codegen(self.obj)
    codegen.extend_output(create_call_function(2, False))


@contextmanager
def in_force() -> Generator[None]:
    """While it holds, traced code binds methods as Python does."""
    plain = vars(UserFunctionVariable).get(_BIND)
    if plain is None or "reconstruct" in vars(UserMethodVariable):
        yield
        return
    setattr(UserFunctionVariable, _BIND, _bound)
    UserMethodVariable.reconstruct = _reconstruct  # type: ignore[method-assign]
    try:
        yield
    finally:
        setattr(UserFunctionVariable, _BIND, plain)
        del UserMethodVariable.reconstruct
