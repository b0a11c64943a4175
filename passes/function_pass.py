"""What most passes on `inter` are: something that is done to one function after the other."""

from __future__ import annotations

from abc import abstractmethod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass


class FunctionPass(ModulePass):
    """Does `on` to every function of a module that has a body."""

    @abstractmethod
    def on(self, func: FuncOp) -> None:
        """Changes `func` in place."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in list(op.body.block.ops):  # functions do not nest
            if isinstance(func, FuncOp) and func.body.blocks:
                self.on(func)
