"""Whether a model or an optimizer can take the state that a checkpoint has for it.

`load_state_dict` of a module copies what fits before it complains of the rest, and that of an
optimizer takes the state of another class or of parameters of other shapes. So it is looked at
before.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer

from ..ranks import cut_tensors


def keeps_state(x: Any) -> bool:
    """Whether an object is saved and restored by methods of its own."""
    return all(callable(getattr(x, name, None)) for name in ("state_dict", "load_state_dict"))


def traits(x: Any) -> dict[str, Any]:
    """What the state of an object does not say, and has to be the same where it is restored."""
    if not isinstance(x, Optimizer):
        return {}
    groups = [[_form(p) for p in group["params"]] for group in x.param_groups]
    return {"class": type(x).__qualname__, "parameters": groups}


def misfit(x: Any, state: Any, told: dict[str, Any]) -> str | None:
    """Why an object cannot take a state that was saved with the traits `told`; None where it can,
    as far as is known of its class."""
    if not isinstance(state, dict):
        return f"the checkpoint has a value of type {type(state).__name__} there, and no state"
    if isinstance(x, nn.Module):
        return _misfit_of_module(x, state)
    if isinstance(x, Optimizer):
        return _misfit_of_optimizer(traits(x), told, state)
    return None


def _misfit_of_module(module: nn.Module, saved: dict[str, Any]) -> str | None:
    mine, parameters = module.state_dict(), dict(module.named_parameters(remove_duplicate=False))
    if missing := [key for key in mine if key not in saved]:
        return f"the checkpoint has no {missing[0]}{_more(missing)}"
    if surplus := [key for key in saved if key not in mine]:
        return f"the checkpoint has {surplus[0]}{_more(surplus)}, and it has not"
    for key, x in mine.items():
        y = saved[key]
        if isinstance(x, Tensor) and isinstance(y, Tensor) and not is_lazy(x):
            if (here := _form(parameters.get(key, x))) != _form(y):
                return f"{key} is {_form(y)} in the checkpoint, and {here} in it"
    return None


def _misfit_of_optimizer(
    mine: dict[str, Any], told: dict[str, Any], state: dict[str, Any]
) -> str | None:
    if not told or "param_groups" not in state:
        return "the checkpoint has no state of an optimizer there"
    if told["class"] != mine["class"]:
        return f"the checkpoint has the state of {told['class']}, and it is {mine['class']}"
    if told["parameters"] == mine["parameters"]:
        return None
    counts = [[len(group) for group in t["parameters"]] for t in (told, mine)]
    if counts[0] != counts[1]:
        return f"the checkpoint has groups of {counts[0]} parameters, and it has {counts[1]}"
    pairs = zip(sum(told["parameters"], []), sum(mine["parameters"], []), strict=True)
    k, (saved, here) = next((k, pair) for k, pair in enumerate(pairs) if pair[0] != pair[1])
    return f"parameter {k} is {saved} in the checkpoint, and {here} in it"


def _form(x: Tensor) -> str:
    """Type and shape, as `float32 [16, 8]`, of a sharded parameter those of all rows; of a
    parameter without a shape yet, no shape."""
    shape = "" if is_lazy(x) else list(cut_tensors.whole(x).shape)
    return f"{str(x.dtype).removeprefix('torch.')} {shape}"


def _more(names: list[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""
