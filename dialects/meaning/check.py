"""Whether a module means the same before and after a pass: both are interpreted on random
multigraphs and the results compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func, FuncOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import InterpretationError

from ..attributes import GRAD, SAVED
from ..inter import Inter
from ..intra import Intra
from ..signature import result_attributes
from ..verify import verify_module
from .graphs import random_arguments
from .inter import run
from .lowered import is_lowered, random_values, results_by_name
from .phases import PHASES, argument_names, functions, run_function
from .world import SetVal

TOLERANCE = 1e-9


class MeaningChanged(Exception):
    """A pass changed a result: the message says which one, and on which graph."""


def parse_module(text: str) -> ModuleOp:
    """A verified module from its text."""
    ctx = Context()
    for dialect in (Builtin, Func, Inter, Intra):
        ctx.load_dialect(dialect)
    module = Parser(ctx, text).parse_module()
    verify_module(module)
    return module


def gives_gradients(func: FuncOp) -> bool:
    """Whether any result is a gradient."""
    return any(GRAD in attrs for attrs in result_attributes(func))


def phase_results(module: ModuleOp, given: Mapping[str, Any]) -> list[Any]:
    """Runs @prepare, @forward and @backward (those that exist) on arguments by name. Returns the
    results that the caller sees in their order, gradients last; without cotangents there are no
    gradients."""
    funcs, known, out = functions(module), dict(given), list[Any]()
    for phase in (p for p in PHASES if p in funcs):
        func = funcs[phase]
        if phase == "backward" and not set(argument_names(func)) <= set(known):
            break
        results = run_function(module, phase, known)
        known |= results
        for attrs, value in zip(result_attributes(func), results.values(), strict=True):
            if phase != "prepare" and SAVED not in attrs:
                out.append(value)
    return out


def _order(func: FuncOp) -> list[int]:
    """Results with gradients last, as the phases give them."""
    attrs = result_attributes(func)
    return sorted(range(len(attrs)), key=lambda i: GRAD in attrs[i])


def results_of(module: ModuleOp, like: FuncOp, args: Sequence[Any]) -> list[Any]:
    """What the module gives for the arguments of `like`: from its function of that name, or from
    the phases that it was split into."""
    name = like.sym_name.data
    func = functions(module).get(name)
    if func is not None:
        return list(run(module, name, *args[: len(func.body.block.args)]))
    results = phase_results(module, dict(zip(argument_names(like), args, strict=True)))
    return [x for _, x in sorted(zip(_order(like), results, strict=False), key=lambda p: p[0])]


def same(a: Any, b: Any, tolerance: float = TOLERANCE) -> bool:
    """Whether two results are equal: sets exactly, numbers within a relative and absolute
    tolerance, nan to nan."""
    if isinstance(a, SetVal) or isinstance(b, SetVal):
        if not (isinstance(a, SetVal) and isinstance(b, SetVal)) or a.n != b.n:
            return False
        return all(np.array_equal(a.maps[k], b.maps[k]) for k in a.maps.keys() & b.maps.keys())
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return False
    if a.dtype != np.float64 or b.dtype != np.float64:
        return bool(np.array_equal(a, b))
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True))


def describe(args: Iterable[Any], names: Iterable[str]) -> str:
    """The sets among the arguments, for messages."""
    lines: list[str] = []
    for name, a in zip(names, args, strict=True):
        if isinstance(a, SetVal):
            maps = "".join(f", {k}={m.tolist()}" for k, m in a.maps.items())
            lines.append(f"  {name}: {a.n} rows{maps}")
    return "\n".join(lines)


def same_meaning(
    before: ModuleOp,
    after: ModuleOp,
    *,
    seeds: Iterable[int] = range(4),
    sizes: Mapping[str, int] | None = None,
    values: Mapping[str, Any] | None = None,
    tolerance: float = TOLERANCE,
) -> None:
    """Raises MeaningChanged unless every function of `before` gives the same results in `after`, on
    a random multigraph per seed.

    A function of `after` may have more arguments and results at the end (autodiff), updates of
    arguments in the place of gradients (update-parameters), or be split into @prepare, @forward and
    @backward. `sizes` and `values` are those of `random_arguments`.
    Raises InterpretationError where this cannot be found out: an op has no meaning in NumPy, or no
    random arguments suit the program (integers that are computed with before they become a map).

    Where `after` is lowered to nests, `before` is too or consists of phases, and the rows that the
    phases give are compared by name.
    """
    if is_lowered(after):
        return same_lowered(before, after, seeds, sizes, tolerance)
    new = functions(after)
    for name, func in functions(before).items():
        if not func.body.blocks:  # declared only
            continue
        longest = new.get(name, func)
        if len(longest.body.block.args) < len(func.body.block.args):
            longest = func
        compared = False
        for seed in seeds:
            args = random_arguments(longest, np.random.default_rng(seed), sizes, values)
            try:
                want = run(before, name, *args[: len(func.body.block.args)])
            except (ValueError, IndexError):  # these arguments do not suit the program
                continue
            where = f"@{name} on the graph of seed {seed}"
            try:
                got = results_of(after, func if name not in new else longest, args)
                if name in new and gives_gradients(func) and not gives_gradients(new[name]):
                    want = [
                        x
                        for x, a in zip(want, result_attributes(func), strict=True)
                        if GRAD not in a
                    ]
                _compare(want, got, name in new, tolerance)
            except (ValueError, IndexError, KeyError) as error:
                graph = describe(args, argument_names(longest))
                raise MeaningChanged(f"{where}: {error}\n{graph}") from error
            compared = True
        if not compared:
            raise InterpretationError(f"@{name}: no random arguments suit the program")


def same_lowered(
    before: ModuleOp,
    after: ModuleOp,
    seeds: Iterable[int],
    sizes: Mapping[str, int] | None,
    tolerance: float,
) -> None:
    """`same_meaning` for a lowered module and the phases, lowered or not, that it comes from."""
    compared = False
    for seed in seeds:
        values = random_values([before, after], np.random.default_rng(seed), sizes)
        try:
            want = results_by_name(before, values)
        except (ValueError, IndexError):  # these arguments do not suit the program
            continue
        try:
            got = results_by_name(after, values)
            for name, a in want.items():
                if name not in got:
                    raise ValueError(f"{name} is given no more")
                if not same(a, got[name], tolerance):
                    raise ValueError(f"{name} differs\nbefore:\n{a}\nafter:\n{got[name]}")
        except (ValueError, IndexError, KeyError) as error:
            graph = describe(values.values(), values.keys())
            raise MeaningChanged(f"the graph of seed {seed}: {error}\n{graph}") from error
        compared = True
    if not compared:
        raise InterpretationError("no random arguments suit the program")


def _compare(want: Sequence[Any], got: Sequence[Any], all_of_them: bool, tolerance: float) -> None:
    """Raises ValueError where two lists of results differ; `got` may be longer, and shorter unless
    it must give `all_of_them`."""
    if all_of_them and len(got) < len(want):
        raise ValueError(f"gave {len(want)} results and gives {len(got)} now")
    for i, (a, b) in enumerate(zip(want, got, strict=False)):
        if not same(a, b, tolerance):
            raise ValueError(f"result {i} differs\nbefore:\n{a}\nafter:\n{b}")
