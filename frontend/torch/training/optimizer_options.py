"""The options of torch's optimizers as runtime/standalone/optimizers.h has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch.optim import AdamW, Optimizer

_PLAIN = ("lr", "weight_decay", "momentum", "dampening", "eps", "lr_decay", "alpha")
_KINDS = {
    "sgd": "SGD",
    "momentum": "MOMENTUM",
    "nesterov": "MOMENTUM",
    "adam": "ADAM",
    "amsgrad": "ADAM",
    "adagrad": "ADAGRAD",
}


def kind_of(rule: str) -> str:
    """How the numbers of a rule of passes/inter/optimizers.py are computed."""
    if rule.startswith("rmsprop"):
        return "RMSPROP_MOMENTUM" if rule.endswith("momentum") else "RMSPROP"
    return _KINDS[rule]


def options_of(optimizer: Optimizer, group: Mapping[str, Any]) -> dict[str, float]:
    """The options of a group of parameters."""
    found = {name: float(group[name]) for name in _PLAIN if name in group}
    if "betas" in group:
        found["beta1"], found["beta2"] = (float(b) for b in group["betas"])
    found["sign"] = -1.0 if group.get("maximize") else 1.0
    decoupled = group.get("decoupled_weight_decay", isinstance(optimizer, AdamW))
    return found | {"decoupled": float(bool(decoupled))}
