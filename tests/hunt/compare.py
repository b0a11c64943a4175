"""Compares what eager and compiled calls did, and names the differences."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from .execute import Observation

ALLOWED = {torch.float32: 2e-4, torch.float64: 1e-9}
"""Error that always passes, relative to the largest number of the call's values of that family."""


@dataclass(frozen=True)
class Difference:
    """`kind` is the same for all differences that may have one cause; `detail` is for readers."""

    kind: str
    detail: str
    call: int


def compare(
    eager: Observation, got: Observation, exact: Observation | None, call: int
) -> list[Difference]:
    """The differences of one call. `exact` is the call in float64, where the program is not."""

    def difference(kind: str, detail: str) -> Difference:
        return Difference(kind, detail, call)

    if not raises_alike(eager, got):
        kind = f"raises {raised(got)}, eager {raised(eager)}"
        return [difference(kind, f"{got.message[:300]!r}; eager: {eager.message[:200]!r}")]
    if eager.raised is not None:
        return []
    if eager.facts["structure"] != got.facts["structure"]:
        return [difference("structure of results", str(got.facts["structure"])[:200])]
    out = [
        difference(f"{family(k)}: {brief(got.facts.get(k))}, eager {brief(x)}", k)
        for k, x in eager.facts.items()
        if got.facts.get(k) != x
    ]
    wrong = sorted(set(eager.values) ^ set(got.values))
    if eager.facts.get("second derivatives") != got.facts.get("second derivatives"):
        wrong = []  # said already
    out += [difference(f"{family(k)} missing on one side", k) for k in wrong]
    for name, x in eager.values.items():
        if name not in got.values:
            continue
        z = exact.values.get(name) if exact is not None and exact.raised is None else None
        found = difference_of(name, got.values[name], x, z, largest(eager.values, name))
        if found is not None:
            out.append(difference(*found))
    if any(d.kind.startswith("result") and "wrong" in d.kind for d in out):
        # what follows from wrong results is no difference of its own
        out = [d for d in out if "gradient" not in d.kind or "None" in d.kind]
    return out


def raises_alike(eager: Observation, got: Observation) -> bool:
    """Whether who catches what eager raises there also catches what the compiled call raises, or
    another of several bad indices was found first."""
    if eager.raised is None or got.raised is None:
        return eager.raised == got.raised
    if eager.raised[0] != got.raised[0]:
        return False
    return eager.raised[1] in got.caught_as or of_another_index(eager, got)


BAD_INDEX = {
    "index is out of bounds for dimension with size 0": "IndexError",
    "index out of range in self": "IndexError",
    r"index_select\(\): self indexing axis dim should be positive": "RuntimeError",
    r"index -?\d+ is out of bounds for dimension \d+ with size \d+": "RuntimeError",
}
"""What torch's ways to read rows say of an index, and the type of it."""


def of_another_index(eager: Observation, got: Observation) -> bool:
    """Whether each side has what torch itself raises at a bad index, by another function: then
    these are two places of the program, for torch runs the program's own functions. Which of them
    comes first is not promised: what nothing needs is not read, and the parts of a program run in
    the order of their data."""
    if eager.raised is None or got.raised is None:
        return False
    told = TOLD.search(got.message)
    ours = told[1] if told else got.message
    kinds = [kind_of_bad_index(eager.message), kind_of_bad_index(ours)]
    return eager.message != ours and kinds == [eager.raised[1], got.raised[1]]


def kind_of_bad_index(message: str) -> str | None:
    """The type of exception in which torch says this of an index; None where it is not said of
    one."""
    return next((kind for text, kind in BAD_INDEX.items() if re.fullmatch(text, message)), None)


TOLD = re.compile(r"\(torch: (.*)\)$")
"""How a compiled call that refuses an index tells what torch raised there."""


def raised(seen: Observation) -> str:
    return "nothing" if seen.raised is None else f"{seen.raised[1]} in {seen.raised[0]}"


def brief(x: object) -> str:
    """A fact without names and numbers."""
    if isinstance(x, list):
        return "none" if not x else "|".join(sorted({family(str(y)) for y in x}))
    return re.sub(r"\d+", "#", str(x))[:80]


def family(name: str) -> str:
    """`result ['a'] requires_grad` -> `result requires_grad`."""
    words = name.split()
    plain = {"result", "argument", "parameter", "buffer", "gradient", "first", "second", "retained"}
    kept = [w for w in words if w in plain or w in ("of", "by", "requires_grad", "overlaps")]
    if words[-1] == "derivatives":
        kept.append(words[-1])
    if "contiguous" in words:
        kept.append("contiguous")
    if words[-1] in ("is", "type"):
        kept.append(words[-1])
    return " ".join(kept) or words[0]


def largest(values: Mapping[str, Tensor | None], name: str) -> float:
    """The largest finite number among the values of the same family as `name`."""
    own = family(name)
    best = 0.0
    for k, x in values.items():
        if x is not None and x.is_floating_point() and x.numel() and family(k) == own:
            finite = x[x.isfinite()]
            best = max(best, float(finite.abs().max())) if finite.numel() else best
    return best


def difference_of(
    name: str, y: Tensor | None, x: Tensor | None, exact: Tensor | None, scale: float
) -> tuple[str, str] | None:
    """How the value `y` differs from eager's `x`."""
    what = family(name)
    if x is None or y is None:
        if x is y:
            return None
        other = y if x is None else x
        assert other is not None
        zeros = "zeros" if not bool(other.any()) else "numbers"
        return f"{what} None or {zeros}: {'None' if y is None else zeros}", name
    if y.shape != x.shape:
        return f"{what} shape", f"{name}: {tuple(y.shape)}, eager {tuple(x.shape)}"
    if y.dtype != x.dtype:
        return f"{what} dtype", f"{name}: {y.dtype}, eager {x.dtype}"
    if not x.is_floating_point():
        return None if torch.equal(x, y) else (f"{what} wrong integers", f"{name}: {y}, eager {x}")
    if not torch.equal(x.isnan(), y.isnan()):
        return f"{what} wrong NaN", f"{name}: {y}, eager {x}"
    infinite = x.isinf() | y.isinf()
    if not torch.equal(x[infinite], y[infinite]):
        return f"{what} wrong inf", f"{name}: {y}, eager {x}"
    ordinary = x.isfinite()
    error = (y[ordinary] - x[ordinary]).abs()
    allowed = ALLOWED.get(x.dtype, 1e-2) * max(scale, 0.1)
    if exact is not None and exact.shape == x.shape:
        own = (x.double() - exact)[ordinary & exact.isfinite()].abs()
        allowed = max(allowed, 4 * float(own.max()) if own.numel() else 0.0)
    if error.numel() and float(error.max()) > allowed:
        return f"{what} wrong", f"{name}: off by {float(error.max()):.3g}, scale {scale:.3g}"
    return None
