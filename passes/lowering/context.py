"""What the rules of lower-to-intra share: where values lie, and how a nest reads them."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects.inter import shapes, values
from ...dialects.inter.types import ONE, Dom, RowsType, rows, set_name
from ...dialects.intra import rows as intra
from ...dialects.intra.bindings import InputOp
from ..analysis.costs import Sizes
from ..targets import Target
from .nests import Host, Nest

INLINE = (values.ConstOp, values.IotaOp, values.IndexOp, values.SizeOp)
"""Values that are made where they are read, and need no buffer."""


def viewed(v: SSAValue) -> SSAValue | None:
    """The single row of which a value is another shape, and so the same memory."""
    op = v.owner
    if not isinstance(op, shapes.ReshapeOp) or not op.type.dom == ONE == rows(op.x).dom:
        return None
    return op.x


class Lowering:
    """Lowers the rows ops of one function into a host block, for a target."""

    def __init__(self, host: Host, sizes: Sizes, target: Target) -> None:
        self.host = host
        self.sizes = sizes
        self.target = target
        self.env = host.env
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.moved: dict[SSAValue, SSAValue] = {}
        """Where temporaries lie that are no more, which `buffers` still names."""

    # ------------------------------------------------------------ reading values

    def buffer(self, v: SSAValue) -> SSAValue:
        """The buffer of a value; inline values get one here, and views."""
        if v not in self.buffers and (x := viewed(v)) is not None:
            self.buffers[v] = self.host.view(self.buffer(x), ONE, rows(v).dims)
        if v not in self.buffers:
            if not isinstance(v.owner, INLINE):
                raise PassFailedException(
                    f"lower-to-intra: no buffer for {v}: is it defined before its use?"
                )
            self.buffers[v] = self.copied(v, rows(v).dom)
        return self.moved.get(self.buffers[v], self.buffers[v])

    def read(self, nest: Nest, v: SSAValue) -> SSAValue:
        """A value at the row of a nest."""
        t = rows(v)
        if isinstance(v.owner, INLINE):
            return self.inline(nest, v.owner)
        if not self.is_handed_on(v) and (x := viewed(v)) is not None:
            return nest.reshape(self.read(nest, x), t.dims)
        return nest.load(self.buffer(v), nest.index(t.dom))

    def is_handed_on(self, v: SSAValue) -> bool:
        """Whether another phase has made a value."""
        return v in self.buffers and isinstance(self.buffers[v].owner, InputOp)

    def inline(self, nest: Nest, op: Operation) -> SSAValue:
        t = rows(op.results[0])
        match op:
            case values.ConstOp():
                return nest.const(op.number, t.elem, t.dims)
            case values.IotaOp():
                row = nest.index(t.dom)
            case values.IndexOp():
                row = nest.along(op.path.data)
            case values.SizeOp():
                size = self.host.size(Dom(set_name(op.set)))
                return nest.emit(intra.CountOp.make([size], [i64]))
            case _:
                raise AssertionError(op)
        return nest.emit(intra.PositionOp.make([row], [i64]))

    def alias(self, op: Operation, buffer: SSAValue) -> None:
        """The result lies where another value lies."""
        self.buffers[op.results[0]] = buffer

    def rowwise(self, op: Operation, compute: Callable[[Nest], SSAValue]) -> None:
        """A result whose rows are computed one by one over its own domain."""
        v = op.results[0]
        self.alias(op, self.stored(rows(v), rows(v).dom, compute))

    def copied(self, v: SSAValue, dom: Dom) -> SSAValue:
        """The buffer of a value as it is read at the rows of `dom`."""
        return self.stored(rows(v), dom, lambda nest: self.read(nest, v))

    def stored(self, t: RowsType, dom: Dom, compute: Callable[[Nest], SSAValue]) -> SSAValue:
        """A new buffer of what is computed at each row of `dom`."""
        out = self.host.buffer(dom, t.dims, t.elem)
        nest = self.host.nest(dom)
        nest.store(compute(nest), out)
        return out

    # ------------------------------------------------------------ groups

    def group_of(self, over: Dom, along: tuple[str, ...]) -> tuple[Dom, tuple[str, ...]]:
        """The stored rows of `over` and the paths from them that make the groups."""
        if len(along) > 1:
            along = self.env.along(over.set, along).keys or ("",)
        if len(over.keys) != 1:
            return over, along
        at = self.host.storage(over)
        paths = [self.env.determines(over.set, over.keys[0], k) for k in along]
        if any(p is None for p in paths):
            raise PassFailedException(f"lower-to-intra: along {along} is not determined by {over}")
        return at, tuple(p or "" for p in paths)

    def in_group(
        self, nest: Nest, over: Dom, along: tuple[str, ...], x: SSAValue, kind: str
    ) -> SSAValue:
        """`x` reduced over the rows of `over` that belong to the group of the nest's row."""
        return self.reduced_group(nest, over, along, lambda n: self.read(n, x), kind)

    def reduced_group(
        self,
        nest: Nest,
        over: Dom,
        along: tuple[str, ...],
        member: Callable[[Nest], SSAValue],
        kind: str,
    ) -> SSAValue:
        """What `member` computes at each row of `over` that belongs to the group, reduced."""
        at, paths = self.group_of(over, along)
        if paths == ("",):  # the groups are the stored rows themselves
            return self.on_rows(nest, over, member)
        loop = nest.segment(at, paths)
        return loop.reduce([self.on_rows(loop, over, member)], [kind])[0]

    @staticmethod
    def on_rows(nest: Nest, over: Dom, member: Callable[[Nest], SSAValue]) -> SSAValue:
        """What `member` computes in a nest whose rows are those of `over`, however it calls
        them.
        """
        before, nest.dom = nest.dom, over
        value = member(nest)
        nest.dom = before
        return value

    def group_size(
        self, nest: Nest, over: Dom, along: tuple[str, ...], elem: Attribute
    ) -> SSAValue:
        at, paths = self.group_of(over, along)
        if paths == ("",):
            return nest.const(1, elem)
        offsets, _ = self.host.group(at, paths)
        n = nest.emit(intra.LengthOp.make([offsets, nest.row], [i64]))
        return nest.cast(n, elem)
