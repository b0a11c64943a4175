"""The arguments and results of a function, with their attributes and names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.utils.exceptions import PassFailedException

from .attributes import NAME

Attributes = Mapping[str, Attribute]


def arg_attributes(func: FuncOp) -> list[Attributes]:
    """One dictionary an argument, empty where there is none."""
    return _dictionaries(func.arg_attrs, len(func.body.block.args))


def result_attributes(func: FuncOp) -> list[Attributes]:
    """One dictionary a result, empty where there is none."""
    return _dictionaries(func.res_attrs, len(func.function_type.outputs))


def _dictionaries(attrs: ArrayAttr[DictionaryAttr] | None, count: int) -> list[Attributes]:
    return [d.data for d in attrs] if attrs is not None else [{} for _ in range(count)]


def return_of(func: FuncOp) -> ReturnOp:
    """The function's return. Raises PassFailedException where the body does not end in one."""
    last = func.body.block.last_op
    if not isinstance(last, ReturnOp):
        raise PassFailedException(f"@{func.sym_name.data} does not end in func.return: add one")
    return last


def arguments(func: FuncOp) -> list[tuple[str, BlockArgument, Attributes]]:
    """The arguments with their names and attributes; `arg0` and so on where they have no name."""
    pairs = zip(func.body.block.args, arg_attributes(func), strict=True)
    return [(name_of(a, d, f"arg{a.index}"), a, d) for a, d in pairs]


def results(func: FuncOp) -> list[tuple[str, SSAValue, Attributes]]:
    """The results with their names and attributes; `result0` and so on where they have no name."""
    pairs = zip(return_of(func).operands, result_attributes(func), strict=True)
    return [(name_of(v, d, f"result{i}"), v, d) for i, (v, d) in enumerate(pairs)]


def is_returned(v: SSAValue) -> bool:
    """Whether a value is a result of the function, so that its type is the caller's."""
    return any(isinstance(use.operation, ReturnOp) for use in v.uses)


def body_ops(func: FuncOp) -> list[Operation]:
    """The operations of the function in order, without its return."""
    last = return_of(func)
    return [op for op in func.body.block.ops if op is not last]


def name_of(value: SSAValue, attributes: Attributes, default: str) -> str:
    """An argument's or result's name: `inter.name`, else that in the text, else `default`."""
    given = attributes.get(NAME)
    if isinstance(given, StringAttr):
        return given.data
    return value.name_hint or default


class Names:
    """Hands out names that are not taken: `hint`, else `hint_1`, `hint_2`, .."""

    def __init__(self, taken: Iterable[str] = ()):
        self._taken = set(taken)
        self._counts: dict[str, int] = {}
        """Of a hint the last number that was taken: there are thousands of names of one kind."""

    def fresh(self, hint: str) -> str:
        # a hint that ends in a number would read as another value's second name
        base = re.sub(r"_\d+$", "", hint) or hint
        name, count = hint, self._counts.get(base, 0)
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
            self._counts[base] = count
        self._taken.add(name)
        return name


def named_function(
    name: str,
    arguments: Sequence[tuple[Attribute, Attributes]],
    result_types: Sequence[Attribute],
    results: Sequence[Attributes],
    extra: Attributes,
) -> FuncOp:
    """An empty function with attributes on arguments and results; `extra` are its own."""
    types = [t for t, _ in arguments]
    func = FuncOp(
        name,
        (types, list(result_types)),
        Region(Block(arg_types=types)),
        arg_attrs=array_of(a for _, a in arguments),
        res_attrs=array_of(results),
    )
    func.attributes.update(extra)
    return func


def array_of(dictionaries: Iterable[Attributes]) -> ArrayAttr[DictionaryAttr]:
    """As a function holds the attributes of its arguments, or of its results."""
    return ArrayAttr(DictionaryAttr(d) for d in dictionaries)
