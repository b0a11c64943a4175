"""What differs between two runs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .runs import Run

CLOSE = {torch.float32: (1.3e-6, 1e-5), torch.float64: (1e-10, 1e-10)}
"""Relative and absolute error that always pass; those of float64 are far below what a float32
number in the wrong place makes."""


def differences(
    got: Run, own: Run, exact: Run, values: bool, needs: bool, single: bool = False
) -> list[str]:
    """What is not as in torch, whose run is `own`, and `exact` in float64; without `values` only
    shapes and dtypes are compared, without `needs` not which results require a gradient, and no
    gradient is as good as one of zeros. With `single` no number is more exact than those of
    float32."""
    if own.error is not None or got.error is not None:
        return _errors(got.error, own.error)
    if exact.error is not None:
        exact = own
    out: list[str] = []
    if len(got.results) != len(own.results):
        return [f"{len(got.results)} results, torch has {len(own.results)}"]
    if needs and got.needs != own.needs:
        out.append(f"requires_grad of {sorted(got.needs)}, torch's of {sorted(own.needs)}")
    for part in ("results", "gradients", "edited"):
        a, b, c = (getattr(r, part) for r in (got, own, exact))
        for name in b:
            if part == "gradients" and not needs and _is_nothing(a.get(name), b[name]):
                continue
            problem = different(a.get(name), b[name], c.get(name, b[name]), values, single)
            out += [f"{name}: {problem}"] if problem else []
    return out


def _is_nothing(*gradients: Tensor | None) -> bool:
    return all(g is None or not g.any() for g in gradients)


def _errors(got: Exception | None, own: Exception | None) -> list[str]:
    if own is None:
        return [f"raises {_brief(got)}"]
    if got is None:
        return [f"raises nothing, torch raises {_brief(own)}"]
    if isinstance(got, type(own)):
        return []
    return [f"raises {_brief(got)}, torch raises {_brief(own)}"]


def _brief(error: Exception | None) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0][:160] if lines else ''}"


def different(y: Any, t: Any, z: Any, values: bool = True, single: bool = False) -> str | None:
    """How y differs from torch's own t, whose value in float64 is z."""
    if not isinstance(y, Tensor) or not isinstance(t, Tensor):
        same = type(y) is type(t) and (y == t or y != y)
        return None if same else f"{_few(y)}, torch has {_few(t)}"
    if y.shape != t.shape:
        return f"shape {tuple(y.shape)}, torch has {tuple(t.shape)}"
    if y.dtype != t.dtype:
        return f"{y.dtype}, torch has {t.dtype}"
    if not values or not y.numel():
        return None
    if y.layout is not t.layout:
        return f"{y.layout}, torch has {t.layout}"
    if y.layout is not torch.strided:
        y, t, z = y.to_dense(), t.to_dense(), z.to_dense() if isinstance(z, Tensor) else z
    if y.is_complex():  # always torch's own, and half of them cannot be compared
        y, t = y.to(torch.complex128), t.to(torch.complex128)
        return None if torch.allclose(y, t, equal_nan=True) else f"{y}, torch has {t}"
    if y.dtype not in CLOSE:
        return None if torch.equal(y, t) else f"{_few(y)}, torch has {_few(t)}"
    if not isinstance(z, Tensor) or z.shape != t.shape or z.dtype not in CLOSE:
        z = t
    a, b, c = y.double(), t.double(), z.double()
    odd = ~torch.isfinite(b)
    if bool((odd & ~((a == b) | (a.isnan() & b.isnan()))).any()) or bool(a[~odd].isnan().any()):
        return f"{_few(y)}, torch has {_few(t)}"
    sane = ~odd & torch.isfinite(c)
    relative, absolute = CLOSE[torch.float32 if single else y.dtype]
    error, own = (a - c)[sane].abs(), (b - c)[sane].abs()
    floor = 2 * own.max() if own.numel() else own.new_zeros(())
    allowed = torch.maximum(absolute + relative * c[sane].abs(), floor)
    if bool((error > allowed).any()):
        return f"error {float((error - allowed).max()):.3g}: {_few(y)}, torch has {_few(t)}"
    return None


def _few(x: Any) -> str:
    """The first numbers of a tensor, or what else it is."""
    if not isinstance(x, Tensor):
        return repr(x)
    numbers = [f"{v:.6g}" if isinstance(v, float) else repr(v) for v in x.flatten()[:8].tolist()]
    return f"[{', '.join(numbers)}{', ..' if x.numel() > 8 else ''}]"
