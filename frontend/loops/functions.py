"""The functions of the language on values that are read already."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from .scope import Scope
from .values import Site, Value
from .widths import contracted, joined, product, shown, width

POINTWISE = "exp log log1p expm1 sqrt rsqrt abs sin cos tanh sigmoid relu gelu softplus erf".split()
"""Functions of one number, under the names that the vocabulary of dialects/pointwise has."""
PARAMETERS = {"leaky_relu": ("slope", 0.01), "elu": ("alpha", 1.0)}
"""Functions with one parameter: its name, and its default as in torch."""
PAIRS = ("maximum", "minimum")
ROW_FOLDS = ("sum", "mean", "max", "min")
"""Of a value the fold of its last width; of a loop over edges that of its values (statements)."""
FUNCTIONS = (
    *POINTWISE,
    *PARAMETERS,
    *PAIRS,
    *ROW_FOLDS,
    *("dot", "where", "flatten", "concat", "edge_softmax", "width"),
)


class Functions:
    """Makes values of calls."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    # ------------------------------------------------------------ pointwise

    def pointwise(
        self, name: str, args: Sequence[Value], at: ast.AST, **parameters: float
    ) -> Value:
        """A function of numbers, on values that meet by the names of their widths."""
        shape, site = args[0].shape, args[0].site
        for x in args[1:]:
            wide = joined(shape, x.shape)
            if wide is None:
                raise self.scope.error(
                    at,
                    f"widths do not fit: {shown(shape)} meets {shown(x.shape)} (they meet by name: "
                    "declare equal widths by one name, or project with @)",
                )
            shape, site = wide, site if x.site is Site.ONE else x.site
        attrs = {"fn": name, "parameters": parameters}
        return Value("pointwise", tuple(args), site, shape, at, attrs)

    def numbers(self, args: Sequence[Value], at: ast.AST) -> None:
        """Raises ProgramError where an operand is a comparison."""
        if any(x.boolean for x in args):
            raise self.scope.error(
                at, "a comparison is no number: where(condition, 1.0, 0.0) makes it one"
            )

    def matmul(self, x: Value, w: Value, at: ast.AST) -> Value:
        """`x @ w`."""
        self.numbers((x, w), at)
        found = contracted(x.shape, w.shape)
        if found is None:
            hint = "its first width has to be the last one of the left"
            if len(x.shape) > 1 and w.shape[:1] == (product(x.shape),):
                hint = "flatten(..) the left"
            raise self.scope.error(
                at, f"widths do not fit: {shown(x.shape)} @ {shown(w.shape)}: {hint}"
            )
        shared, shape = found
        site = w.site if x.site is Site.ONE else x.site
        return Value("matmul", (x, w), site, shape, at, {"shared": shared})

    # ------------------------------------------------------------ calls

    def call(
        self, name: str, args: Sequence[Value], numbers: Sequence[float], at: ast.AST
    ) -> Value:
        """A call of a function of `FUNCTIONS` with values, and numbers for its parameters."""
        if name != "where":
            self.numbers(args, at)
        if name in POINTWISE:
            return self.pointwise(name, self._take(name, args, 1, at), at)
        if name in PARAMETERS:
            parameter, default = PARAMETERS[name]
            value = numbers[0] if numbers else default
            return self.pointwise(name, self._take(name, args, 1, at), at, **{parameter: value})
        if name in PAIRS:
            return self.pointwise(name, self._take(name, args, 2, at), at)
        if name in ROW_FOLDS:
            return self._fold(name, self._take(name, args, 1, at)[0], at)
        others: dict[str, tuple[int, Callable[[str, Sequence[Value], ast.AST], Value]]] = {
            "dot": (2, self._dot),
            "where": (3, self._where),
            "flatten": (1, self._flatten),
            "edge_softmax": (1, self._edge_softmax),
        }
        if name == "concat":
            return self._concat(args, at)
        count, make = others[name]
        return make(name, self._take(name, args, count, at), at)

    def _take(self, name: str, args: Sequence[Value], count: int, at: ast.AST) -> Sequence[Value]:
        if len(args) != count:
            raise self.scope.error(at, f"{name} takes {count} values, it is given {len(args)}")
        return args

    def _fold(self, name: str, x: Value, at: ast.AST) -> Value:
        if not x.shape:
            raise self.scope.error(
                at,
                f"{name} of one number: of edges it is {name}(.. for e in n.incoming_edges()), of "
                "two numbers maximum or minimum",
            )
        return Value("fold", (x,), x.site, x.shape[:-1], at, {"kind": name, "width": x.shape[-1]})

    def _dot(self, name: str, args: Sequence[Value], at: ast.AST) -> Value:
        wide, narrow = args
        if len(narrow.shape) > len(wide.shape):
            wide, narrow = narrow, wide
        count = len(narrow.shape)
        if not count or wide.shape[-count:] != narrow.shape:
            raise self.scope.error(
                at,
                f"widths do not fit: dot of {shown(args[0].shape)} and {shown(args[1].shape)}: "
                "both end in the widths of the shorter one",
            )
        site = args[1].site if args[0].site is Site.ONE else args[0].site
        return Value("dot", (wide, narrow), site, wide.shape[:-1], at)

    def _where(self, name: str, args: Sequence[Value], at: ast.AST) -> Value:
        if not args[0].boolean:
            raise self.scope.error(at, "where takes a condition first: where(x > 0.0, x, y)")
        self.numbers(args[1:], at)
        return self.pointwise(name, args, at)

    def _flatten(self, name: str, args: Sequence[Value], at: ast.AST) -> Value:
        (x,) = args
        return Value("flatten", (x,), x.site, (product(x.shape),), at)

    def _concat(self, args: Sequence[Value], at: ast.AST) -> Value:
        if len(args) < 2 or any(len(x.shape) != 1 for x in args):
            raise self.scope.error(at, "concat takes two vectors or more: flatten(..) others")
        shape = tuple(x.shape[0] for x in args)
        if len(set(shape)) > 1 or width(shape[0]) is None:
            raise self.scope.error(
                at, f"concat takes vectors of one width, not {', '.join(shape)}: project with @"
            )
        site = next((x.site for x in args if x.site is not Site.ONE), Site.ONE)
        return Value("concat", tuple(args), site, (f"{len(args)}*{shape[0]}",), at)

    def _edge_softmax(self, name: str, args: Sequence[Value], at: ast.AST) -> Value:
        (x,) = args
        row = self.scope.row
        if row is None or row.site is not Site.EDGE:
            raise self.scope.error(
                at, "edge_softmax is over the incoming edges of a node: use it in a loop over edges"
            )
        return Value("softmax", (x,), Site.EDGE, x.shape, at)
