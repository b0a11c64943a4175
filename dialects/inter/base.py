"""What all ops of the dialect share: the interfaces that passes use, checks of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple, Self

from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute
from xdsl.irdl import operand_def, result_def, traits_def
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import HasCanonicalizationPatternsTrait, Pure
from xdsl.utils.exceptions import VerifyException

from ..assembly import TYPED, Braces, FormattedOp, KnownTypes
from .sets import KnowsEquations, SetEnv, Total
from .syntax import SHORT_FORMS, InterBraces
from .types import UNIT, Dom, RowsType, SetType, row_text, rows, set_type

Operands = Sequence[SSAValue | Sequence[SSAValue] | None]
"""Operands of an op in the order of its definition; None is one left out, variadic ones are
lists."""


class Row(NamedTuple):
    """The shape and element type of a row."""

    dims: tuple[int, ...]
    elem: TypeAttribute


class InterOp(FormattedOp):
    """An op written `mnemonic BODY {properties} : result-type`."""

    BRACES: ClassVar[type[Braces]] = InterBraces
    custom_directives = (KnownTypes, *SHORT_FORMS)

    def check_sets(self, env: SetEnv) -> None:
        """What can be checked only with the function's sets at hand; raises VerifyException."""

    @classmethod
    def make(
        cls,
        operands: Operands,
        props: Mapping[str, Attribute | None],
        result: Attribute,
        attributes: Mapping[str, Attribute | None] | None = None,
    ) -> Self:
        """The op with a result of the given type (`Builder` infers it)."""
        return cls.of_parts(operands, [result], props, attributes or {})


class StructureOp(InterOp, KnowsEquations):
    """An op that makes a set. Equal ones make equal sets, whatever the names of their results.

    Not `Pure`, though it has no effect: a set may be needed because a type names it, which passes
    that look at uses alone (dce, cse, canonicalize) do not see. dce-sets removes the others.
    """

    result = result_def(SetType)

    @property
    def set_type(self) -> SetType:
        """The type of the new set."""
        return set_type(self.results[0])

    def need_maps(self, want: SetType) -> None:
        """Raises VerifyException unless the result has exactly the maps of `want`, with no flag
        that `want` lacks and with its `partial`s; and no equation that `want` lacks."""
        have, need = self.set_type.map_dict(), want.map_dict()
        if list(have) != list(need) and set(have) == set(need):
            raise VerifyException(f"write the result's maps in the order {', '.join(need)}")
        for label, m in need.items():
            got = have.get(label)
            if got is None or got.codomain != m.codomain:
                text = " ".join((f"{label}: {m.codomain}", *m.flags))
                raise VerifyException(f"the result set must have the map `{text}`")
            if extra := sorted(set(got.flags) - set(m.flags)):
                raise VerifyException(
                    f"map {label} of the result is not known to be {extra[0]}: drop the word"
                )
            if ("partial" in m.flags) != ("partial" in got.flags):
                raise VerifyException(f"map {label} of the result must be declared partial")
        if unknown := [k for k in have if k not in need]:
            raise VerifyException(f"the result set has no map {unknown[0]}: drop it from its type")
        if self.set_type.part_names != want.part_names:
            parts = f"parts {' '.join(want.part_names)}" if want.part_names else "no parts"
            raise VerifyException(f"the result set must declare `{parts}`")
        known = {*want.equations, *self.known_equations()}
        for a, b in self.set_type.equations:
            if (a, b) not in known and (b, a) not in known:
                raise VerifyException(
                    f"the equation {a} = {b} does not follow from the operands: drop it"
                )


class CanonicalizationTrait(HasCanonicalizationPatternsTrait):
    """The op has the rules that canonicalize.py lists for its class."""

    def get_patterns(self, op: type[Operation]) -> tuple[RewritePattern, ...]:
        from .canonicalize import patterns_of  # which needs all ops

        return patterns_of(op)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return ()


class ValueOp(InterOp):
    """An op that makes rows."""

    result = result_def(RowsType)
    traits = traits_def(CanonicalizationTrait())

    @property
    def type(self) -> RowsType:
        """The type of the result."""
        return rows(self.results[0])

    def infer(self, env: SetEnv) -> Dom:
        """The least domain of the result. Here: the join of the operands', as for every op that
        works row by row."""
        return env.total(self, env.join(rows(x).dom for x in self.operands))

    def cap(self, env: SetEnv) -> Dom | None:
        """The finest domain the result may be stored on; None where there is no choice. Here: the
        whole set (`unit`: the value is the same everywhere, so any domain will do)."""
        d = self.infer(env)
        return d if d.set == UNIT else Dom(d.set)

    def check_sets(self, env: SetEnv) -> None:
        """Raises VerifyException where the result's type is not between `infer` and `cap`."""
        low, t = self.infer(env), self.type.dom
        env.check_type(self.type)
        high = self.cap(env)
        if high is None and t != low:
            raise VerifyException(f"the result lives on {low}, its type says {t}")
        free = high is None or high.set == UNIT
        if not env.le(low, t):
            raise VerifyException(f"the result lives on {low} or finer, its type says {t}")
        if high is not None and not free and not env.le(t, high):
            raise VerifyException(f"the result lives on {high} or coarser, its type says {t}")

    def row(self) -> Row:
        """The row of the result as the operands and properties give it; raises VerifyException
        where they do not fit."""
        cls = type(self).__name__
        raise NotImplementedError(f"{self.name} has no type for its result: define row in {cls}")

    def verify_(self) -> None:
        want = self.row()
        if self.type.dims != want.dims:
            raise VerifyException(
                f"the result's rows are {row_text(self.type.dims)}, the operands give "
                f"{row_text(want.dims)}"
            )
        if self.type.elem != want.elem:
            raise VerifyException(
                f"the result's elements are {self.type.elem}, the operands give {want.elem}: "
                "write that type, or insert inter.cast"
            )


class OneOperand(ValueOp):
    """`mnemonic %x`"""

    x = operand_def(RowsType)
    traits = traits_def(Pure(), Total())
    assembly_format = f"$x {TYPED}"


class FixedOp(ValueOp):
    """An op whose result lives on one domain only."""

    traits = traits_def(Pure(), Total())

    def cap(self, env: SetEnv) -> Dom | None:
        return None


def row_of(v: SSAValue) -> Row:
    """The row of a value."""
    t = rows(v)
    return Row(t.dims, t.elem)
