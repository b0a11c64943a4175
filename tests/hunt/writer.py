"""The text of a random program while it is written: what variables there are and of what type."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from .program import Argument, Dim

Dims = tuple[Dim, ...]


@dataclass(frozen=True)
class Var:
    """A variable: its name in the text, dims, kind (float, index, integer, bool) and, of an index,
    what it points into. `fixed`: eager refuses edits with gradients on (a leaf, or a view of one).
    `shared`: several elements may lie at one place, so that no edit is possible. `memory`: the
    variable that owns the memory which it may lie in, `place`: the one that it may be, element for
    element (where it is not, it lies apart); both itself, where they are not given."""

    name: str
    dims: Dims
    kind: str = "float"
    below: Dim | None = None
    fixed: bool = False
    shared: bool = False
    memory: str = ""
    place: str = ""

    @property
    def rows(self) -> Dim | None:
        return self.dims[0] if self.dims else None

    @property
    def owner(self) -> str:
        return self.memory or self.name

    @property
    def whole(self) -> str:
        return self.place or self.name

    def itself(self, name: str) -> Var:
        """A variable of this name that is this one, or a copy."""
        return replace(self, name=name, memory=self.owner, place=self.whole)

    def apart(self, other: Var) -> bool:
        """Whether an edit of one leaves the other as it is, or edits the same of both: where they
        overlap in part, an edit of one by the other depends on the order of torch's loops."""
        return self.owner != other.owner or self.whole == other.whole


Predicate = Callable[[Var], bool]
Production = Callable[["Writer"], None]


class Nothing(Exception):
    """No variable suits: another statement has to be drawn."""


class Writer:
    """Collects the text of one program."""

    def __init__(self, draw: random.Random, module: bool) -> None:
        self.draw = draw
        self.module = module
        self.lines: list[str] = []
        self.made: list[str] = []
        """Lines of `__init__`."""
        self.arguments: dict[str, Argument] = {}
        self.vars: list[Var] = []
        self.depth = 0
        self.count = 0
        self.no_grad = False
        self.block: Callable[[int], None] = lambda n: None
        """Writes as many statements (the grammar sets it)."""

    # ------------------------------------------------------------ chance

    def chance(self, p: float) -> bool:
        return self.draw.random() < p

    def one(self, *texts: str) -> str:
        return self.draw.choice(texts)

    # ------------------------------------------------------------ variables

    def argument(self, name: str, text: str) -> Var:
        a = Argument.parse(text)
        self.arguments[name] = a
        kind = "scalar" if a.kind == "number" else a.kind
        v = Var(name, a.dims, kind, a.below, fixed="leaf" in a.flags)
        self.vars.append(v)
        return v

    def pick(self, suits: Predicate) -> Var:
        """A variable that suits, most likely a late one."""
        found = [v for v in self.vars if suits(v)]
        if not found:
            raise Nothing
        return found[-1] if self.chance(0.5) else self.draw.choice(found)

    def float(self, suits: Predicate = lambda v: True) -> Var:
        return self.pick(lambda v: v.kind == "float" and suits(v))

    def rows_of_floats(self) -> Var:
        """Floats with rows and columns of a known width."""
        return self.float(lambda v: len(v.dims) == 2 and isinstance(v.dims[1], int))

    def like(self, v: Var) -> Var:
        """Floats that broadcast to the dims of `v`."""
        return self.float(lambda w: joined(v.dims, w.dims) == v.dims)

    def editor_of(self, v: Var) -> Var:
        """Floats that `v` may be edited by: they broadcast to its dims."""
        return self.float(lambda w: joined(v.dims, w.dims) == v.dims and w.apart(v))

    def index_into(self, rows: Dim | None, of: Predicate = lambda v: True) -> Var:
        return self.pick(
            lambda v: v.kind == "index" and v.below == rows and len(v.dims) == 1 and of(v)
        )

    def mask(self, rows: Dim | None) -> Var:
        return self.pick(lambda v: v.kind == "bool" and v.dims == (rows,))

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def size(self, d: Dim) -> str:
        """Text for a size."""
        if isinstance(d, int):
            return str(d)
        found = [(v, i) for v in self.vars for i, x in enumerate(v.dims) if x == d]
        v, i = self.draw.choice(found)
        texts = [f"{v.name}.size({i})", f"{v.name}.shape[{i}]"]
        if i == 0:
            texts.append(f"len({v.name})")
        if len(v.dims) == 1:
            texts.append(f"{v.name}.numel()")
        return self.draw.choice(texts)

    # ------------------------------------------------------------ text

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def let(
        self,
        text: str,
        dims: Sequence[Dim],
        kind: str = "float",
        below: Dim | None = None,
        *,
        of: Var | None = None,
        within: Var | None = None,
        shared: bool = False,
    ) -> Var:
        """A new variable with this value; `of`: the one that it is a view of; `within`: one whose
        memory it may lie in as well, for some sizes."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        v = Var(name, tuple(dims), kind, below, shared=shared)
        if of is not None:
            v = replace(v, fixed=of.fixed, shared=shared or of.shared)
        if owner := of or within:
            v = replace(v, memory=owner.owner)
        self.vars.append(v)
        return v

    def let_same(self, text: str, of: Var, fixed: bool = False) -> Var:
        """A new variable with this value, which may be `of` itself."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        v = replace(of.itself(name), fixed=fixed)
        self.vars.append(v)
        return v

    def inner(self, v: Var) -> str:
        """The text of an operand: mostly the name, else with something small around it."""
        if v.kind != "float" or self.chance(0.85):
            return v.name
        return self.one(
            f"{v.name}.clone()",
            f"(-{v.name})",
            f"({v.name} * 0.5)",
            f"{v.name}.detach()",
            f"torch.tanh({v.name})",
        )

    def attribute(self, prefix: str, made: str) -> str:
        """A new attribute of the module, made in `__init__`."""
        if not self.module:
            raise Nothing
        name = f"{prefix}{len(self.made)}"
        self.made.append(f"self.{name} = {made}")
        return f"self.{name}"

    def weight(self, *dims: int) -> Var:
        """A parameter: of the module, or an argument that requires a gradient."""
        if not self.module:
            name = f"p{len(self.arguments)}"
            return self.argument(name, " ".join(map(str, dims)) + ", leaf")
        name = f"p{len(self.made)}"
        self.made.append(f"self.{name} = nn.Parameter(torch.randn({', '.join(map(str, dims))}))")
        v = Var(f"self.{name}", tuple(dims), fixed=True)
        self.vars.append(v)
        return v

    @contextmanager
    def inside(self, head: str) -> Iterator[None]:
        """The lines of an indented block."""
        self.line(head)
        start = len(self.lines)
        self.depth += 1
        try:
            yield
        finally:
            if len(self.lines) == start:
                self.line("pass")
            self.depth -= 1

    @contextmanager
    def without_grad(self, on: bool = True) -> Iterator[None]:
        before, self.no_grad = self.no_grad, on
        try:
            yield
        finally:
            self.no_grad = before

    def editable(self, v: Var) -> bool:
        """Whether eager edits it (rarely one that it refuses)."""
        return not v.shared and (not v.fixed or self.no_grad or self.chance(0.02))


def joined(a: Dims, b: Dims) -> Dims | None:
    """The dims of a pointwise result, or None where they do not broadcast for all sizes."""
    if len(a) < len(b):
        a, b = b, a
    out = list(a)
    for k in range(1, len(b) + 1):
        if a[-k] == 1:
            out[-k] = b[-k]
        elif b[-k] not in (1, a[-k]):
            return None
    return tuple(out)
