"""Functions of elements and of rows, in a reduce function that is traced."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .traced_values import Extent, Traced, operation, unsupported


@operation(
    *"abs absolute neg negative exp expm1 log log1p log2 log10 sqrt rsqrt square".split(),
    *"reciprocal sin cos tan asin acos atan sinh cosh erf sign floor ceil round trunc".split(),
    *"sigmoid tanh logsigmoid softplus softsign tanhshrink gelu clamp clip clamp_min".split(),
    *"clamp_max nan_to_num isnan isinf isfinite logical_not detach clone contiguous".split(),
    *"float double half bfloat16 long int bool to type_as".split(),
    *"zeros_like ones_like full_like".split(),
    *"add sub subtract mul multiply div divide true_divide pow rsub atan2 fmod remainder".split(),
    *"maximum minimum fmax fmin eq ne lt le gt ge where masked_fill addcmul addcdiv lerp".split(),
    *"logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_not".split(),
    *"__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __rdiv__".split(),
    *"__pow__ __rpow__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __neg__ __invert__".split(),
)
def pointwise(function: Any, *operands: Any, **options: Any) -> Traced:
    """A function of elements; operands are broadcast as torch does."""
    if any(isinstance(value, (Traced, Extent)) for value in options.values()):
        raise unsupported("a tensor that is given by name")
    operands = tuple(o.number() if isinstance(o, Extent) else o for o in operands)
    traced = [o for o in operands if isinstance(o, Traced)]
    lead = max([o.lead for o in traced])
    dims = max([o.dim() for o in traced if o.lead > 0], default=0)
    dtype = _number_type(traced)
    rows = [_aligned(o, lead, dims, dtype) for o in operands]
    return Traced(function(*rows, **options), traced[0].inbox, lead)


def _number_type(traced: list[Traced]) -> torch.dtype:
    """The type that numbers take on: that of what they are computed with."""
    types = [o.dtype for o in traced if o.lead > 0]
    if not types:
        return torch.float64
    for dtype in types:
        if dtype.is_floating_point:
            return dtype
    return types[0]


def _aligned(operand: Any, lead: int, dims: int, dtype: torch.dtype) -> Any:
    """An operand as rows that broadcast with others, of a value with `dims` dimensions."""
    if isinstance(operand, Tensor):
        if operand.dim() > dims:
            raise unsupported(f"tensors of {operand.dim()} and {dims} dimensions together")
        return _without_rows(operand, dims - lead)
    if not isinstance(operand, Traced):
        return operand
    if operand.lead == 0:
        return _number(operand, lead, dims, dtype)
    if operand.dim() != dims:
        raise unsupported(f"tensors of {operand.dim()} and {dims} dimensions together")
    return operand.values if operand.lead == lead else operand.spread().values


def _without_rows(operand: Tensor, features: int) -> Tensor:
    """A tensor that is the same for all rows, without the dimensions of these."""
    extra = operand.dim() - features
    if extra <= 0:
        return operand
    if any(size != 1 for size in operand.shape[:extra]):
        raise unsupported(f"a tensor of shape {tuple(operand.shape)} that is not of the nodes")
    return operand.reshape(operand.shape[extra:])


def _number(operand: Traced, lead: int, dims: int, dtype: torch.dtype) -> Tensor:
    if not dtype.is_floating_point:
        raise unsupported("degrees together with integers")
    rows = operand.values.to(dtype)
    if lead == 2:
        rows = rows.index_select(0, operand.inbox.index)
    return rows.reshape((-1,) + (1,) * (dims - lead)) if lead else rows


@operation("relu", "leaky_relu", "elu", "selu", "celu", "silu", "mish", "relu6", "hardtanh")
def activation(function: Any, input: Traced, *options: Any, **named: Any) -> Traced:
    """A function of elements that may be asked to work in place, which is its one flag."""
    in_place = named.pop("inplace", False) or any(o is True for o in options)
    numbers = [o for o in options if not isinstance(o, bool)]
    result = input.computed(function(input.values, *numbers, **named))
    if in_place:
        input.overwrite(result)
    return result


@operation("dropout")
def dropout(
    function: Any, input: Traced, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Traced:
    """Dropout of elements."""
    return activation(torch.nn.functional.dropout, input, p=p, training=training, inplace=inplace)


@operation("linear")
def linear(function: Any, input: Traced, weight: Tensor, bias: Tensor | None = None) -> Traced:
    """A product of each row with one weight."""
    _plain(weight, bias)
    input.feature(-1)
    return input.computed(function(input.values, weight, bias))


@operation("embedding")
def embedding(function: Any, input: Any, weight: Tensor, *how: Any, **named: Any) -> Traced:
    """A row of one table for each element."""
    _plain(weight)
    return input.computed(function(input.values, weight, *how, **named))


@operation("layer_norm")
def layer_norm(
    function: Any, input: Traced, normalized_shape: Any, *parameters: Any, **named: Any
) -> Traced:
    """Normalization of each row."""
    if len(normalized_shape) > input.features:
        raise unsupported("layer_norm of messages together")
    return input.computed(function(input.values, normalized_shape, *parameters, **named))


@operation("gru_cell", "lstm_cell", "rnn_tanh_cell", "rnn_relu_cell")
def cell(function: Any, input: Traced, state: Any, *weights: Any) -> Any:
    """A step of a recurrent network, `(nodes, features)`."""
    states = state if isinstance(state, (tuple, list)) else (state,)
    if not all(isinstance(s, Traced) and s.lead == s.features == 1 for s in (input, *states)):
        raise unsupported("a recurrent network over messages")
    rows = [s.values for s in states]
    given = rows if isinstance(state, (tuple, list)) else rows[0]
    return input.computed(function(input.values, given, *weights))


def _plain(*weights: Any) -> None:
    if any(isinstance(weight, Traced) for weight in weights):
        raise unsupported("a weight that is not the same for all nodes")
