"""Where a failure of a call through Dynamo comes from: of tracing, or of what had run before."""

from __future__ import annotations

from types import CodeType, TracebackType

from torch import nn
from torch._dynamo import convert_frame, eval_frame
from torch._dynamo import exc as dynamo_errors
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

UNTRACEABLE = (
    dynamo_errors.InternalTorchDynamoError,
    dynamo_errors.Unsupported,
    dynamo_errors.UserError,
    dynamo_errors.TorchRuntimeError,
    dynamo_errors.FailOnRecompileLimitHit,
    GuardOnDataDependentSymNode,
)

_RESUMED = "torch_dynamo_resume_in"
"""How the names begin of what Dynamo makes of the code behind a graph break."""


def of_tracing(error: Exception) -> Exception | None:
    """A failure to trace, as one of UNTRACEABLE; None for any other. On tensors without numbers
    torch's functions may raise something else than on real ones: eager tells what is to be raised.
    """
    if isinstance(error, UNTRACEABLE):
        return error
    after = _after_entry(error)
    if after is None or not converts(after.tb_frame.f_code):
        return None
    message = f"{type(error).__name__}: {error}"
    return dynamo_errors.InternalTorchDynamoError(message).with_traceback(error.__traceback__)


def has_run(failure: BaseException) -> bool:
    """Whether a part of the call ran before it failed."""
    after = _after_entry(failure)
    return after is not None and not converts(after.tb_frame.f_code)


def nothing_has_run(failure: BaseException) -> bool:
    """Whether what failed is the first graph of a call, before which nothing of it has run: it was
    called by the user's function itself, and by no part of one behind a graph break."""
    after = _after_entry(failure)
    if after is not None and after.tb_frame.f_code is nn.Module._call_impl.__code__:
        if after.tb_frame.f_locals["self"]._forward_pre_hooks:
            return False
        after = after.tb_next
    if after is None or after.tb_frame.f_code.co_name.startswith(_RESUMED):
        return False
    graph = after.tb_next
    return graph is not None and graph.tb_frame.f_code.co_filename == eval_frame.__file__


def _after_entry(failure: BaseException) -> TracebackType | None:
    """Where a failure passed what torch.compile's wrapper calls."""
    trace = failure.__traceback__
    while trace is not None and not is_entry(trace.tb_frame.f_code):
        trace = trace.tb_next
    return None if trace is None else trace.tb_next


def is_entry(code: CodeType) -> bool:
    """Whether this is what torch.compile returns; the frame that it calls is the user's, or
    Dynamo's at work on the user's."""
    return code.co_name == "compile_wrapper" and code.co_filename == eval_frame.__file__


def converts(code: CodeType) -> bool:
    return code.co_filename == convert_frame.__file__
