"""How the arguments and results of an imported program meet torch's: plain data.

Placeholders are those of the FX graph, by position. A compiled program is called as
`(sets.., rows..)` in the order of `Imported.sets` and `Imported.rows`, and gives
`Imported.results` followed by `Imported.updates`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sympy
import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

if TYPE_CHECKING:
    from .relations import Relation


@functools.cache
def _compiled(text: str, names: tuple[str, ...]) -> Callable[..., int | float]:
    # text is printed from a size expression, with functions of these modules
    return eval(f"lambda {', '.join(names)}: {text}", {"math": math, "torch": torch})


@dataclass(frozen=True)
class Size:
    """A number that the placeholders give: `text` is a Python expression of names, each a dimension
    of a tensor placeholder (or, with `dim` None, the number that the placeholder is). `kind` is the
    type of the number: a mean degree is a float, a comparison a bool."""

    text: str
    names: tuple[tuple[str, int, int | None], ...] = ()
    kind: type[int | float | bool] = int

    @staticmethod
    def of(placeholder: int) -> Size:
        """The number that a placeholder is."""
        return Size("n", (("n", placeholder, None),))

    def __call__(self, args: Sequence[Any]) -> Any:
        if self.place is not None:  # most have one, and are asked for at every call
            position, dim = self.place
            return args[position] if dim is None else args[position].shape[dim]
        values = [
            args[position] if dim is None else args[position].shape[dim]
            for _, position, dim in self.names
        ]
        return self.kind(self._compute(*values))

    @functools.cached_property
    def place(self) -> tuple[int, int | None] | None:
        """The placeholder and the dimension that say it, where no more is computed."""
        is_name = self.kind is int and len(self.names) == 1 and self.text == self.names[0][0]
        return self.names[0][1:] if is_name else None

    @functools.cached_property
    def _compute(self) -> Callable[..., int | float]:
        return _compiled(self.text, tuple(n for n, _, _ in self.names))


@dataclass(frozen=True)
class MapBinding:
    """A map of a set argument: one column of an integer placeholder. With the row axis removed,
    `index` chooses the number in each other dimension, in order."""

    label: str
    codomain: str
    placeholder: int
    row_axis: int
    index: tuple[int, ...]


@dataclass(frozen=True)
class SetBinding:
    """A set argument: its size and maps, and the map by which its rows would best lie, where they
    may lie in any order (passes/analysis/edge_order.py)."""

    name: str
    size: Size
    maps: tuple[MapBinding, ...]
    order: str | None = None


@dataclass(frozen=True)
class FromTensor:
    """Rows of a placeholder, with `row_axis` moved to the front (None: one row)."""

    placeholder: int
    row_axis: int | None


@dataclass(frozen=True)
class FromSize:
    """One number computed from sizes."""

    size: Size


@dataclass(frozen=True)
class DropoutKey:
    """One i64 number that is fresh for each call in training."""


@dataclass(frozen=True)
class Asked:
    """An answer about sizes, `answer`, that Dynamo's trace has taken: `sizes` has for each symbol
    the placeholder and the dimension that it is the size of."""

    answer: sympy.Basic
    sizes: Mapping[sympy.Basic, tuple[int, int]]


@dataclass(frozen=True)
class RowsBinding:
    """A rows argument. `shape` is that of one row, `elem` one of f32 f64 i32 i64 i1."""

    name: str
    source: FromTensor | FromSize | DropoutKey
    shape: tuple[int, ...]
    elem: str
    needs_grad: bool


@dataclass(frozen=True)
class ResultBinding:
    """A result as a tensor: `dims` with -1 at the row axis; the tensor's dimension there counts
    `merge` times the set's rows, the factor the slower index, or with `within` the faster one.
    `row_axis` None: one row. `order` has
    the dimensions from the outermost in memory to the innermost, where that is not what the
    program's rows give."""

    name: str
    dims: tuple[int, ...]
    row_axis: int | None
    merge: int
    elem: str
    set: str | None
    order: tuple[int, ...] | None = None
    within: bool = False


@dataclass(frozen=True)
class UpdateBinding:
    """A result to be copied into a placeholder after the call; with `recorded` autograd is to know,
    as the edit is part of its graph."""

    placeholder: int
    argument: str
    result: ResultBinding
    recorded: bool = False


@dataclass(frozen=True)
class Result:
    """An output that is the result of this number."""

    number: int


@dataclass(frozen=True)
class Same:
    """An output that is a placeholder itself."""

    placeholder: int


@dataclass(frozen=True)
class Copy:
    """An output that is a new tensor with a placeholder's numbers, in the order of its dimensions
    or in that of the placeholder's memory."""

    placeholder: int
    contiguous: bool = True


class Hole:
    """Where the arguments of a step have the tensor that it is done on."""


@dataclass(frozen=True)
class Step:
    """A call of torch that gives a view (or several, or one of several) of what it is done on.

    `args` have one `Hole`, and `Size` where `symbolic`. `records` tells whether autograd is to
    record the step: None as it does anyhow.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    symbolic: bool
    records: bool | None

    def __call__(self, x: Any, placeholders: Sequence[Any]) -> Any:
        args = tuple(self.fill(a, x, placeholders) for a in self.args)
        kwargs = {k: self.fill(a, x, placeholders) for k, a in self.kwargs.items()}
        if self.records is None:
            return self.function(*args, **kwargs)
        with torch.set_grad_enabled(self.records):
            return self.function(*args, **kwargs)

    def fill(self, a: Any, x: Any, placeholders: Sequence[Any]) -> Any:
        if a is Hole:
            return x
        if not self.symbolic:
            return a
        if isinstance(a, Size):
            return a(placeholders)
        if isinstance(a, slice):
            return slice(*(self.fill(b, x, placeholders) for b in (a.start, a.stop, a.step)))
        if isinstance(a, tuple | list):
            return type(a)(self.fill(b, x, placeholders) for b in a)
        return a


@dataclass(frozen=True)
class View:
    """An output that lies in the memory of a result or a placeholder: `steps`, done in torch on the
    real tensor, give it."""

    of: Result | Same
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Number:
    """An output that is a number computed from sizes."""

    size: Size


@dataclass(frozen=True)
class Constant:
    """An output that is this Python value."""

    value: Any


@dataclass(frozen=True)
class Check:
    """Two sizes that have to be equal when the program runs: two tensors meet row by row."""

    left: Size
    right: Size
    message: str


@dataclass(frozen=True)
class Reads:
    """Results by their numbers: those in whose memory a backward may read (None: perhaps all), and
    those in whose memory it surely does; placeholders in whose memory it surely does, each with the
    placeholders whose gradients it does so for."""

    perhaps: frozenset[int] | None = None
    surely: frozenset[int] = frozenset()
    placeholders: Mapping[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])


@dataclass(frozen=True)
class Attached:
    """The placeholders that want the gradient of a result, and the other results that it is made
    of, by their positions: as autograd sees it. `reads` are the results that eager's backward of it
    reads, so that nobody may edit them before."""

    placeholders: frozenset[int] = frozenset()
    results: frozenset[int] = frozenset()
    reads: Reads = Reads()


@dataclass(frozen=True)
class Mask:
    """Where a node of the graph draws its mask of dropout (dialects/meaning/philox.py): the site,
    and the dimension of the tensor that counts `merge` times the rows (None: one row), as that of a
    `ResultBinding`."""

    site: int
    row_axis: int | None
    merge: int
    within: bool = False


@dataclass(frozen=True)
class Assertion:
    """A result of one number that has to hold, or `raised` is raised with `message`."""

    result: int
    message: str
    raised: type[Exception]


@dataclass(frozen=True)
class Imported:
    """An imported graph.

    `module` holds one function @main. `outputs` is the structure that the graph returns (tuples,
    lists and dicts) with `Result | Same | Copy | View | Number | Constant` leaves. `widths` are
    sizes that were made constant (Dynamo guards them). `placeholders` are their names. `attached`
    has an entry for each result and update, `nodes` the name of the node of each result that is
    returned (None: an item of one). `reread` are the placeholders that are edited though results
    are made of what they held. `masks` are those of dropout by the names of nodes, None where one
    has several. `relations` hold of the integers of every call. `device` is where the graph's
    tensors are, as torch spells it. `cut` are the placeholders that hold rows of one rank of
    several, and which (frontend/torch/ranks), and `chunks` in how many runs such rows cross.
    `of_all` are numbers of rows of all ranks together by which the program is chosen, the same on
    each (frontend/torch/ranks/rows_of_all.py), and `crossing` the sizes that follow for sets of
    edges, local ones and those that read the rows of each chunk, and for nodes that ranks read of
    others, by chunks. `asked` are answers that have to hold of the whole graph.
    """

    module: ModuleOp
    sets: tuple[SetBinding, ...]
    rows: tuple[RowsBinding, ...]
    results: tuple[ResultBinding, ...]
    updates: tuple[UpdateBinding, ...]
    outputs: Any
    checks: tuple[Check, ...]
    widths: tuple[tuple[str, int], ...]
    placeholders: tuple[str, ...]
    attached: tuple[Attached, ...] = ()
    nodes: tuple[str | None, ...] = ()
    reread: tuple[int, ...] = ()
    masks: Mapping[str, Mask | None] = field(default_factory=dict)
    assertions: tuple[Assertion, ...] = ()
    relations: tuple[Relation, ...] = ()
    device: str = "cpu"
    cut: Mapping[int, str] = field(default_factory=dict)
    chunks: int = 1
    of_all: tuple[int, ...] = ()
    crossing: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    asked: tuple[Asked, ...] = ()

    @property
    def function(self) -> FuncOp:
        """The one function of the module."""
        (func,) = self.module.ops
        assert isinstance(func, FuncOp)
        return func

    def check(self, args: Sequence[Any]) -> None:
        """Raises ValueError where sizes that have to agree do not."""
        for c in self.checks:
            left, right = c.left(args), c.right(args)
            if left != right:
                raise ValueError(f"{c.message}: {left} and {right} rows")
