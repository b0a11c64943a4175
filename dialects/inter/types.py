"""The two types of the inter-operator level: finite sets with named maps, and rows over them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import (
    ArrayAttr,
    Float32Type,
    Float64Type,
    IntAttr,
    StringAttr,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..limits import need_short_row

UNIT = "unit"
FLAGS = ("mono", "onto", "partial")
ELEMENT_TYPES = (f32, f64, i32, i64, i1)


class Dom(NamedTuple):
    """Where a value lives: `set[keys]`. No keys: the whole set; the set "unit": a single row."""

    set: str
    keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.set}[{', '.join(self.keys)}]" if self.keys else self.set


ONE = Dom(UNIT)


class Map(NamedTuple):
    """One map of a set: where it goes and what is known of it (`mono`, `onto`, `partial`)."""

    codomain: str
    flags: tuple[str, ...] = ()


def strs(xs: Iterable[str]) -> ArrayAttr[StringAttr]:
    """Strings as an attribute."""
    return ArrayAttr(StringAttr(x) for x in xs)


def unstrs(a: Iterable[StringAttr]) -> tuple[str, ...]:
    """The strings of such an attribute."""
    return tuple(x.data for x in a)


def row_text(dims: Sequence[int]) -> str:
    """A row shape for messages: `8x64`, or `scalars`."""
    return "x".join(map(str, dims)) or "scalars"


@irdl_attr_definition
class MapAttr(ParametrizedAttribute):
    """One map inside a set type: `src: N`, `parent: g0 mono`."""

    name = "inter.map"
    label: StringAttr
    codomain: StringAttr
    flags: ArrayAttr[StringAttr]

    @staticmethod
    def get(label: str, map: Map) -> MapAttr:
        return MapAttr(StringAttr(label), StringAttr(map.codomain), strs(sorted(map.flags)))


@irdl_attr_definition
class SetType(ParametrizedAttribute, TypeAttribute):
    """`!inter.set<g, src: N, dst: N, rel: R, parts g1 l, eq src.tag = rel.st, pairs (rel, src)>`

    A finite set named `g` with maps into other sets. `mono`: no two rows have the same image;
    `onto`: every row of the codomain is an image; `partial`: some rows have none (-1). `parts`: the
    sets it is the disjoint union of, in order. `eq`: two paths of maps that agree on every row.
    `pairs`: combinations of maps whose distinct tuples the graph keeps a table of.
    """

    name = "inter.set"
    set_name: StringAttr
    maps: ArrayAttr[MapAttr]
    parts: ArrayAttr[StringAttr]
    eqs: ArrayAttr[ArrayAttr[StringAttr]]
    pairs: ArrayAttr[ArrayAttr[StringAttr]]

    @staticmethod
    def get(
        name: str,
        maps: Mapping[str, Map | tuple[str, Sequence[str]] | str] | None = None,
        parts: Sequence[str] = (),
        eqs: Iterable[Sequence[str]] = (),
        pairs: Iterable[Sequence[str]] = (),
    ) -> SetType:
        """A set type from plain data; a map is `"N"`, `("N", ("mono",))` or a `Map`."""
        attrs: list[MapAttr] = []
        for label, m in (maps or {}).items():
            full = Map(m) if isinstance(m, str) else Map(m[0], tuple(m[1]))
            attrs.append(MapAttr.get(label, full))
        return SetType(
            StringAttr(name),
            ArrayAttr(attrs),
            strs(parts),
            ArrayAttr(strs(e) for e in eqs),
            ArrayAttr(strs(sorted(p)) for p in pairs),
        )

    @property
    def label(self) -> str:
        """The set's name."""
        return self.set_name.data

    def map_dict(self) -> dict[str, Map]:
        """The maps by label, in order."""
        return {m.label.data: Map(m.codomain.data, unstrs(m.flags)) for m in self.maps}

    @property
    def part_names(self) -> tuple[str, ...]:
        return unstrs(self.parts)

    @property
    def equations(self) -> tuple[tuple[str, str], ...]:
        return tuple((e.data[0].data, e.data[1].data) for e in self.eqs)

    @property
    def pair_keys(self) -> tuple[tuple[str, ...], ...]:
        return tuple(unstrs(p) for p in self.pairs)

    def renamed(self, names: Mapping[str, str]) -> SetType:
        """The same type with set names replaced."""
        return SetType.get(
            names.get(self.label, self.label),
            {
                k: Map(names.get(m.codomain, m.codomain), m.flags)
                for k, m in self.map_dict().items()
            },
            [names.get(p, p) for p in self.part_names],
            self.equations,
            self.pair_keys,
        )

    def verify(self) -> None:
        labels = [m.label.data for m in self.maps]
        if self.label == UNIT:
            raise VerifyException("`unit` is the one-row domain and cannot name a set: rename it")
        if len(set(labels)) != len(labels):
            raise VerifyException(f"set {self.label} declares a map twice: {', '.join(labels)}")
        for m in self.maps:
            if "." in m.label.data:
                raise VerifyException(
                    f"map {m.label.data!r} of set {self.label}: a map's name has no dot, dots "
                    "join the steps of a path"
                )
            for flag in unstrs(m.flags):
                if flag not in FLAGS:
                    raise VerifyException(
                        f"map {m.label.data}: unknown property {flag!r}, expected one of "
                        f"{', '.join(FLAGS)}"
                    )
        for e in self.eqs:
            if len(e) != 2:
                raise VerifyException(f"an equation of set {self.label} relates two paths")
        paths = [("pairs", k) for p in self.pair_keys for k in p]
        paths += [("eq", k) for e in self.equations for k in e]
        for what, path in paths:
            if path.split(".")[0] not in labels:
                raise VerifyException(
                    f"{what} of set {self.label} names {path!r}, which is no map of it; it has "
                    f"{', '.join(labels) or 'none'}"
                )
        for p in self.pair_keys:
            if len(set(p)) < 2:
                raise VerifyException(
                    f"pairs ({', '.join(p)}) of set {self.label}: name two different maps or more"
                )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        maps: dict[str, Map] = {}
        parts: list[str] = []
        eqs: list[tuple[str, str]] = []
        pairs: list[list[str]] = []
        with parser.in_angle_brackets():
            name = parser.parse_identifier(" for the set's name")
            while parser.parse_optional_punctuation(","):
                key = parser.parse_identifier(" (a map, `parts`, `eq` or `pairs`)")
                if parser.parse_optional_punctuation(":"):
                    if key in maps:
                        parser.raise_error(f"map {key} is declared twice")
                    codomain = parser.parse_identifier(" for the map's codomain")
                    maps[key] = Map(codomain, tuple(_words(parser)))
                elif key == "parts":
                    parts += _words(parser)
                elif key == "eq":
                    left = parser.parse_identifier(" for a path of maps")
                    parser.parse_punctuation("=")
                    eqs.append((left, parser.parse_identifier(" for a path of maps")))
                elif key == "pairs":
                    while (
                        pair := parser.parse_optional_comma_separated_list(
                            parser.Delimiter.PAREN, parser.parse_identifier
                        )
                    ) is not None:
                        pairs.append(pair)
                else:
                    parser.raise_error(
                        "expected `:` and a codomain after a map's name, or one of `parts`, `eq`, "
                        "`pairs`"
                    )
        return SetType.get(name, maps, parts, eqs, pairs).parameters

    def print_parameters(self, printer: Printer) -> None:
        out = [self.label]
        out += [" ".join((f"{k}: {m.codomain}", *m.flags)) for k, m in self.map_dict().items()]
        if self.parts.data:
            out.append("parts " + " ".join(self.part_names))
        out += [f"eq {a} = {b}" for a, b in self.equations]
        if self.pairs.data:
            out.append("pairs " + " ".join(f"({', '.join(p)})" for p in self.pair_keys))
        printer.print_string(f"<{', '.join(out)}>")


def _words(parser: AttrParser) -> list[str]:
    out: list[str] = []
    while (word := parser.parse_optional_identifier()) is not None:
        out.append(word)
    return out


@irdl_attr_definition
class RowsType(ParametrizedAttribute, TypeAttribute):
    """`!inter.rows<g[rel, src], 8x64xf32>`: one 8x64 block per row of `g`, the same wherever the
    keys `rel` and `src` agree, and stored once per key."""

    name = "inter.rows"
    set_name: StringAttr
    keys: ArrayAttr[StringAttr]
    shape: ArrayAttr[IntAttr]
    element_type: TypeAttribute

    @staticmethod
    def get(dom: Dom, shape: Iterable[int], elem: TypeAttribute) -> RowsType:
        return _rows_type(dom, tuple(shape), elem)

    @property
    def dom(self) -> Dom:
        return Dom(self.set_name.data, unstrs(self.keys))

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(d.data for d in self.shape)

    @property
    def elem(self) -> TypeAttribute:
        return self.element_type

    def on(self, dom: Dom) -> RowsType:
        """The same rows on another domain."""
        return RowsType.get(dom, self.dims, self.element_type)

    def renamed(self, names: Mapping[str, str]) -> RowsType:
        """The same type with set names replaced."""
        return self.on(Dom(names.get(self.dom.set, self.dom.set), self.dom.keys))

    def verify(self) -> None:
        d = self.dom
        if d.set == UNIT and d.keys:
            raise VerifyException("rows<unit, ..> has no keys: it is a single row")
        if list(d.keys) != sorted(set(d.keys)):
            fixed = Dom(d.set, tuple(sorted(set(d.keys))))
            raise VerifyException(f"keys are not sorted and distinct: write rows<{fixed}, ..>")
        if any(n <= 0 for n in self.dims):
            raise VerifyException(
                f"row dimensions are positive constants, not {row_text(self.dims)}"
            )
        need_short_row(self.dims)
        if self.element_type not in ELEMENT_TYPES:
            raise VerifyException(
                f"rows of {self.element_type}: element types are f32, f64, i32, i64 and i1"
            )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            name = parser.parse_identifier(" for a set, or `unit`")
            keys = parser.parse_optional_comma_separated_list(
                parser.Delimiter.SQUARE, parser.parse_identifier
            )
            parser.parse_punctuation(",")
            shape, elem = parser.parse_ranked_shape()
        return (
            StringAttr(name),
            strs(keys or ()),
            ArrayAttr(IntAttr(d) for d in shape),
            elem,
        )

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.dom}, {''.join(f'{d}x' for d in self.dims)}")
        printer.print_attribute(self.element_type)
        printer.print_string(">")


@functools.lru_cache(1 << 14)
def _rows_type(dom: Dom, dims: tuple[int, ...], elem: TypeAttribute) -> RowsType:
    """A type is made, and verified, once: types never change."""
    return RowsType(StringAttr(dom.set), strs(dom.keys), ArrayAttr(map(IntAttr, dims)), elem)


def rows(v: SSAValue) -> RowsType:
    """The type of a value that is rows (an op's operand constraints say so)."""
    if not isinstance(v.type, RowsType):
        raise VerifyException(f"expected rows, got a value of type {v.type}")
    return v.type


def set_type(v: SSAValue) -> SetType:
    """The type of a value that is a set."""
    if not isinstance(v.type, SetType):
        raise VerifyException(f"expected a set, got a value of type {v.type}")
    return v.type


def set_name(v: SSAValue) -> str:
    """The name of a value that is a set."""
    return set_type(v).label


def sets_of(t: Attribute) -> list[str]:
    """The sets that a type names."""
    if isinstance(t, SetType):
        return [t.label, *(m.codomain for m in t.map_dict().values()), *t.part_names]
    return [t.dom.set] if isinstance(t, RowsType) and t.dom.set != UNIT else []


def is_float(elem: Attribute) -> bool:
    """Whether numbers of this type have derivatives."""
    return isinstance(elem, Float32Type | Float64Type)


def is_bool(elem: Attribute) -> bool:
    """Whether this is i1."""
    return elem == i1


def is_integer(elem: Attribute) -> bool:
    """Whether this is i32 or i64 (not i1)."""
    return elem in (i32, i64)
