"""What calls do besides giving a result: edits in place, and modes that they switch."""

from __future__ import annotations

from torch import fx

from ..calls.canonical import Canonical, canonical
from ..errors import node_name

GRAD_MODE = "_set_grad_enabled"
MODES = {
    *(GRAD_MODE, "_enter_autocast", "_exit_autocast"),
    *("_enter_inference_mode", "_exit_inference_mode"),
}
HISTORY = {"requires_grad_", "retain_grad"}
"""What changes no numbers of a tensor, but what autograd does with it."""

RESHAPING = {
    *("as_strided_", "resize_", "resize_as_", "set_", "squeeze_", "swapaxes_", "swapdims_"),
    *("t_", "transpose_", "unsqueeze_"),
}
"""Methods that give a tensor itself another shape. The example values of all nodes that are that
tensor have its last shape, also of those before."""

ENTRIES_DROPOUT = "gnnc.sparse_dropout"
"""The leaf that drops entries of a matrix (sparse/leaves.py)."""

EDGE_DROPOUT = "gnnc.dropout_edge"
"""The leaf that drops edges (pyg/leaves.py)."""

NEGATIVE_SAMPLING = "gnnc.negative_sampling"
"""The leaf that draws pairs that are no edges (pyg/leaves.py)."""

REQUIRE = "gnnc.require"
"""The leaf that raises where a tensor does not hold (pyg/leaves.py)."""

_ASSERTIONS = {"_assert_async", "assert_holds", REQUIRE}

RANDOM = {
    "alpha_dropout", "bernoulli", "cauchy", "dropout", "dropout1d", "dropout2d", "dropout3d",
    "exponential", "feature_alpha_dropout", "feature_dropout", "geometric", "gumbel_softmax",
    "log_normal", "multinomial", "normal", "poisson", "rand", "rand_like", "randint",
    "randint_like", "randn", "randn_like", "random", "randperm", "rrelu", "uniform",
    ENTRIES_DROPOUT, EDGE_DROPOUT, NEGATIVE_SAMPLING,
}  # fmt: skip

DROPOUTS = {"dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"}

_KEPT = "_gnnc_call"  # asked for several times, and not to be carried to copies of the node


_NOTHING = Canonical("", "")


def call_of(node: fx.Node) -> Canonical:
    """`canonical(node)`, computed once while the node stays the same call; of a node that calls
    nothing, a call of no op."""
    state, call = getattr(node, _KEPT, (None, _NOTHING))
    now = (node.op, node.target, node.args, node.kwargs)
    if state is None or any(a is not b for a, b in zip(state, now, strict=True)):
        call = canonical(node) or _NOTHING
        setattr(node, _KEPT, (now, call))
    return call


def edited(node: fx.Node) -> fx.Node | None:
    """The node of the tensor that an in-place call edits, or None."""
    call = call_of(node)
    if not written(node):
        return None
    base = call.arguments.get("input") if "input" in call.edits else None
    if call.fault is not None and node.kwargs.get("out") is None:
        base = call.edited[0]
    return base if isinstance(base, fx.Node) else None


def written(node: fx.Node) -> tuple[fx.Node, ...]:
    """The nodes of all tensors that a call writes to."""
    call = call_of(node)
    if call.op in HISTORY and isinstance(node.args[0], fx.Node):
        return (node.args[0],)
    return () if passes_on(node) is not None else call.edited


def switches_mode(node: fx.Node) -> bool:
    """Whether a node turns autograd on or off."""
    return node.op == "call_function" and node_name(node) == GRAD_MODE


def passes_on(node: fx.Node) -> fx.Node | None:
    """The operand that a dropout which drops nothing gives as it is, the very tensor."""
    call = call_of(node)
    if call.op not in DROPOUTS or call.fault is not None:
        return None
    trains = call.arguments.get("training", call.arguments.get("train", True))
    x = call.arguments.get("input")
    idle = trains is False or call.arguments.get("p") == 0
    return x if idle and isinstance(x, fx.Node) else None


def has_effect(node: fx.Node) -> bool:
    """Whether a node does more than give its result."""
    if node.op in ("placeholder", "output"):
        return True
    return bool(written(node)) or node_name(node) in MODES


def draws(node: fx.Node) -> bool:
    """Whether a call draws random numbers."""
    return call_of(node).op in RANDOM


def is_assertion(node: fx.Node) -> bool:
    """Whether a node says that a tensor has to hold. (Those on sizes are guards of Dynamo's.)"""
    return node.op == "call_function" and node_name(node) in _ASSERTIONS
