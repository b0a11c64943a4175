"""Rules of special functions."""

from ..values.tensors import Arr
from .registry import Call, rule


@rule("atan2")
def _atan2(c: Call) -> Arr:
    return c.ctx.binary("atan2", c.arg("input"), c.arg("other"))


for _name in ("log2", "erfinv"):

    @rule(_name)
    def _unary(c: Call, name: str = _name) -> Arr:
        return c.ctx.unary(name, c.x)
