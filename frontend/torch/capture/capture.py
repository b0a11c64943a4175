"""Capture: one call of a user's function becomes FX graphs that a backend of ours receives.

Dynamo traces with settings that hold while it compiles for us and not otherwise; every one was
found by a failure (scalar outputs captured, or GCN breaks into five graphs; floats specialised, or
`eps` becomes a tensor; no duck shapes, or a first call with as many nodes as edges merges the two
for good; sizes that may be 0 or 1, or tiny graphs are compiled again: `asked_sizes`; recurrent
layers allowed, or what calls one runs eagerly).
A call that Dynamo cannot trace runs eagerly, and says so once.
"""

import functools
import inspect
import logging
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

import torch
import torch._dynamo
import torch.utils._pytree as pytree
from torch import Tensor, fx
from torch._dynamo import convert_frame, trace_rules
from torch._dynamo import exc as dynamo_errors
from torch._guards import CompileContext
from torch.fx.experimental import _config as fx_config

from .. import libraries
from ..dense.graphs import on_rows
from ..importer.errors import Unsupported
from ..importer.relations import SizesDiffer
from ..importer.values.sizes import tensors_in
from ..libraries.active import activated
from ..libraries.dgl.graphs import calls as dgl_calls
from ..sparse import (
    created,
    held,  # noqa: F401  (has matrices exchanged)
)
from ..sparse.features import Features
from ..sparse.graphs import NotByEntries, on_entries
from ..sparse.matrix import as_matrix, holds_scipy, is_sparse, tell_layouts
from ..sparse.scipy_calls import ScipyCalls
from . import (
    asked_sizes,
    buffers,
    exchanged,
    foreign,
    graph_breaks,
    methods,
    numpys,
    recomputed,
    scipys,
    shapeless,
)
from .devices import argument_with
from .eager_calls import why_eager
from .effects import runner_of
from .failures import converts, has_run, is_entry, nothing_has_run, of_tracing
from .hooks import Watched
from .settings import setter
from .untraced import leave

log = logging.getLogger("gnnc")
_dynamo_log = logging.getLogger(convert_frame.__name__)

Backend = Callable[[fx.GraphModule, Sequence[Any]], Callable[..., Any]]
Notice = Callable[[str], None]

# marks for a profiler around what the code that Dynamo makes does before the graph: they cost each
# call as much as its guards
_MARKS = "record_runtime_overhead"
_NO_MARKS: dict[str, Any] = {_MARKS: False} if hasattr(torch._dynamo.config, _MARKS) else {}
# Dynamo asks for its limits before it compiles; beyond them (8 by default, and 256 for all
# callables of one code) it would run eagerly without a word. The limit of one callable is counted
# here
_VARIANTS, _OF_ALL = 64, 2**14
_LIMITS: dict[str, Any] = {
    "accumulated_recompile_limit": 2**20,
    "fail_on_recompile_limit_hit": True,
}
_PARAMETERS = inspect.signature(torch.compile).parameters
_LIMIT: dict[str, Any] = {}
if "recompile_limit" in _PARAMETERS:
    _LIMIT["recompile_limit"] = _OF_ALL
else:
    _LIMITS["recompile_limit"] = _OF_ALL
# Where torch can, what is made of a callable lies apart from what others make of the same code,
# another user of torch.compile too. Which callable is at hand it keeps in a variable that threads
# share, so calls of several threads would find nothing: those have it with all others
_APART: dict[str, Any] = {"isolate_recompiles": True} if "isolate_recompiles" in _PARAMETERS else {}
_MAIN = threading.main_thread().ident
_limited = setter(**_LIMITS, suppress_errors=False)
"""Sets the limits, and that a failure to trace is raised."""
# keys of the cache of fake tensors compare symbolic sizes, which costs more than it saves
_DYNAMO = torch._dynamo.config.patch(
    capture_scalar_outputs=True,
    capture_dynamic_output_shape_ops=True,
    specialize_float=True,
    fake_tensor_cache_enabled=False,
    allow_rnn=True,
    **_NO_MARKS,
)
_GUARDED_HOOKS = torch._dynamo.config.patch(skip_nnmodule_hook_guards=False)
_NO_DUCK_SHAPES = fx_config.patch(use_duck_shape=False)


@dataclass
class _Call:
    """A call of one of our callables, while it runs."""

    any_size: bool
    hooks: bool
    fullgraph: bool
    tell: Notice
    raising: graph_breaks.Raising
    matrices: created.Attempt


class _Thread(threading.local):
    """What a thread is doing: its innermost call, and the settings in force for a compilation."""

    def __init__(self) -> None:
        self.call: _Call | None = None
        self.in_force: list[ExitStack] = []


_here = _Thread()


def _settings_on(_: object) -> None:
    """Entering the settings for each call would cost as much as Dynamo's guards."""
    if _here.call is not None:
        stack = ExitStack()
        stack.enter_context(_DYNAMO)
        stack.enter_context(_NO_DUCK_SHAPES)
        if _here.call.hooks:
            stack.enter_context(_GUARDED_HOOKS)
        if _here.call.any_size:
            stack.enter_context(asked_sizes.answered())
        stack.enter_context(graph_breaks.told(_here.call.tell, _here.call.raising))
        stack.enter_context(buffers.of_any_size())
        stack.enter_context(exchanged.in_force())
        stack.enter_context(foreign.in_force())
        stack.enter_context(methods.in_force())
        stack.enter_context(numpys.in_force())
        stack.enter_context(scipys.in_force())
        stack.enter_context(shapeless.in_force())
        _here.in_force.append(stack)
        _fall_back_by_frame(_here.call)


def _settings_off(_: object) -> None:
    while _here.in_force:
        _here.in_force.pop().close()


def _fall_back_by_frame(call: _Call) -> None:
    """Once a part of the call has run it must not run again: then a frame that cannot be traced
    runs eagerly by itself, until the call ends."""
    frame = sys._getframe()
    while frame.f_back is not None and not is_entry(frame.f_back.f_code):
        frame = frame.f_back
    if not call.fullgraph and not converts(frame.f_code):
        torch._dynamo.config.suppress_errors = True


def _frame_fell_back(record: logging.LogRecord) -> bool:
    """A filter: what Dynamo logs of a frame that runs eagerly becomes a notice of ours."""
    call = _here.call
    if call is None or record.levelno != logging.WARNING:
        return True
    failure = record.exc_info[1] if record.exc_info else None
    if failure is None:  # the limit is hit, the failure comes next
        _fall_back_by_frame(call)
        return "hit config" not in record.msg
    call.tell(f"a part runs eagerly, {_cause(failure)}")
    return False


def _watch_compilations() -> None:
    """Registers the above; `torch._dynamo.reset()` forgets the callbacks."""
    if _frame_fell_back not in _dynamo_log.filters:
        _dynamo_log.addFilter(_frame_fell_back)
    handler = torch._dynamo.callback.callback_handler
    if _settings_on not in handler.start_callbacks:
        handler.register_start_callback(_settings_on)
        handler.register_end_callback(_settings_off)


def dynamo_compile(
    fn: Callable[..., Any],
    backend: Backend,
    *,
    fullgraph: bool = False,
    eager_calls: bool | None = None,
    notice: Notice | None = None,
    features: Features | None = None,
) -> Callable[..., Any]:
    """A callable that behaves as `fn` and runs through what `backend` makes of its graphs.

    `fn` is a function or a module; `backend(graph_module, example_inputs)` is called once for each
    graph and each specialisation, and returns a callable over the graph's placeholders. Row counts
    stay symbolic. `notice` receives, once for each cause, why a call ran eagerly; it defaults to a
    warning of the logger "gnnc".
    `features` tells which dense arguments that are mostly zeros are taken as sparse where `fn` does
    no more with them than products. `eager_calls`: whether a call that cannot be compiled as it is
    (with tensors on another device, say) may run eagerly, which with `fullgraph` it may not if
    nothing is said; then it raises `RunsEagerly`.
    Raises what `fn` raises, and what `backend` raises unwrapped.
    """

    may_be_eager = not fullgraph if eager_calls is None else eager_calls
    answers = asked_sizes.Answers()
    variants, enough = Counter[Any](), False

    def checked(graph: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        nonlocal enough
        try:
            part, too_many = _part_at_hand(), answers.too_many()
            variants[part] += 1
            if too_many is None and variants[part] > _VARIANTS:
                enough, too_many = True, f"runs eagerly, {_ENOUGH}"
                if fullgraph:
                    raise RunsEagerly(too_many)
            if too_many is None:
                return backend(graph, examples)
            tell(too_many)
            return runner_of(graph)
        except Exception:
            torch._dynamo.config.suppress_errors = False  # no failure to trace: it must get out
            raise

    created.install()
    takes = recomputed.within(on_entries(on_rows(checked), features or Features()))

    @functools.cache
    @torch._dynamo.disable  # behind a graph break of a caller it runs, and is nothing to compile
    def compiled(hooks: bool, main: bool) -> Callable[..., Any]:
        """With and without guards on hooks, for the main thread and for others; Dynamo keeps what
        it made apart by backend."""
        # within a call of another callable that fails by frame, which torch refuses beside a limit
        set_back = _limited()
        try:
            return torch.compile(
                _framed(fn),
                backend=functools.partial(takes),
                dynamic=True,
                fullgraph=fullgraph,
                **_LIMIT,
                **(_APART if main else {}),
            )
        finally:
            set_back()

    watched, raising, matrices = Watched(fn), graph_breaks.Raising(), created.Attempt()
    shapes = shapeless.Shapes(watched.module)
    told: set[str] = set()

    def tell(message: str) -> None:
        if message not in told:
            told.add(message)
            (notice or log.warning)(message)

    on_scipy = ScipyCalls(fn, may_be_eager, tell)

    @functools.wraps(fn.forward if isinstance(fn, torch.nn.Module) else fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        libraries.install()
        _watch_compilations()
        if holds_scipy((args, kwargs)):
            return on_scipy(call, args, kwargs)
        given_args, given_kwargs = listed(args, kwargs)
        tensors = tensors_in((given_args, given_kwargs))
        reason = shapes.why_eager()
        reason = reason or why_eager(tensors, lambda x: argument_with(fn, args, kwargs, x))
        if reason is not None:
            if not may_be_eager:
                raise RunsEagerly(reason)
            tell(reason)
            return fn(*args, **kwargs)
        any_size, hooks = True, watched.may_have_hooks()
        plain_args, plain_kwargs = unwrap((given_args, given_kwargs), tensors)
        while True:
            settings = _Call(any_size, hooks, fullgraph, tell, raising, matrices)
            try:
                made = compiled(hooks, threading.get_ident() == _MAIN)
                if not enough:
                    return _traced(made, settings, plain_args, plain_kwargs)
                with _kept():
                    return _traced(made, settings, plain_args, plain_kwargs)
            except NotByEntries as reason:
                if fullgraph:
                    raise
                if matrices.failed():
                    continue
                cause = str(reason)
            except SizesDiffer as differ:
                # one that only running tells has turned out to be another, perhaps a 1
                if fullgraph or not nothing_has_run(differ):
                    raise
                cause = str(differ)
            except _Untraced as untraced:
                failure = untraced.failure
                limit = isinstance(failure, dynamo_errors.FailOnRecompileLimitHit)
                first = isinstance(failure, shapeless.Shapeless)
                if first and not may_be_eager:
                    raise RunsEagerly(f"runs eagerly, {shapeless.CAUSE}") from None
                if fullgraph and not first and (limit or not any_size):
                    raise failure from None
                if has_run(failure):  # only a limit, with Dynamo's warnings switched off
                    raise untraced.error from None
                if matrices.failed():
                    continue
                if any_size and not limit and not first:
                    any_size = False
                    continue
                cause = _cause(failure)
            tell(f"runs eagerly, {cause}")
            return fn(*args, **kwargs)

    # where it is called by what is traced it is traced as `fn`, not as this machinery
    call._torchdynamo_inline = fn  # type: ignore[attr-defined]
    leave(call)  # behind a graph break of a caller it runs
    return call


def _framed(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, or what calls it, where that is a module of torch's own: Dynamo compiles no frame of
    torch's files, but follows calls into them."""
    module = getattr(fn, "__self__", None)
    if not isinstance(module, torch.nn.Module) or not trace_rules.check(module.forward):
        return fn
    return lambda *args, **kwargs: fn(*args, **kwargs)


def _part_at_hand() -> Any:
    """Which function, or part of one behind a graph break, is being compiled."""
    number = CompileContext.current_compile_id()
    return None if number is None else number.frame_id


def _kept() -> AbstractContextManager[Any]:
    """While this holds, calls find what was compiled and trace nothing else."""
    return torch.compiler.set_stance("eager_on_recompile")


class RunsEagerly(Unsupported):
    """A call that was to be one compiled graph can only run eagerly."""

    def __init__(self, reason: str) -> None:
        super().__init__(None, reason)
        self.args = (f"the call {reason} (fullgraph=True was asked for)",)


class _Untraced(Exception):
    """Dynamo could not trace a call: its `error`, as one of `UNTRACEABLE` its `failure`."""

    def __init__(self, error: Exception, failure: Exception) -> None:
        super().__init__(str(failure))
        self.error, self.failure = error, failure


def _traced(
    compiled: Callable[..., Any], settings: _Call, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """A call of what torch.compile gave. Raises what the call raises, what our backend raises
    unwrapped, and `_Untraced`."""
    try:
        with _Tracing(settings):
            return dgl_calls.given_back(compiled(*args, **kwargs))
    except dynamo_errors.BackendCompilerFailed as failure:
        raise failure.inner_exception from None
    except Exception as error:
        failure = of_tracing(error)
        if failure is None:
            raise
        raise _Untraced(error, failure) from None


class _Tracing:
    """What holds while a compiled callable runs, and perhaps compiles. Entered at each call."""

    def __init__(self, call: _Call) -> None:
        self.call = call

    def __enter__(self) -> None:
        self.before, _here.call = _here.call, self.call
        activated.__enter__()
        dgl_calls.__enter__()
        self.matrices = self.call.matrices.begin()
        self.set_back = _limited()

    def __exit__(self, *raised: object) -> None:
        if self.call.raising.seen:
            self.call.raising.ended(raised[0] is not None)
        self.set_back()
        self.call.matrices.end(self.matrices)
        dgl_calls.__exit__(*raised)
        activated.__exit__()
        _here.call = self.before


_VIEWS = frozenset(map(type, ({}.keys(), {}.values(), {}.items())))


def listed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments with what views of dicts show (`data.edge_index_dict.values()`) as tuples: Dynamo
    follows those that a function makes, and takes in none."""
    if not any(type(x) in _VIEWS for x in (*args, *kwargs.values())):
        return args, kwargs
    shown = tuple(tuple(x) if type(x) in _VIEWS else x for x in args)
    return shown, {k: tuple(x) if type(x) in _VIEWS else x for k, x in kwargs.items()}


def unwrap(tree: Any, tensors: Sequence[Tensor]) -> Any:
    """`tree` (of these tensors) with sparse matrices as their entries, and empty indices with
    torch's own strides."""
    # looked for first: to map a tree takes ten times as long, at every call
    if all(type(x) is Tensor and x.layout is torch.strided and x.numel() for x in tensors):
        return tree
    if any(is_sparse(x) for x in tensors):
        tell_layouts()
        tree = pytree.tree_map(lambda x: as_matrix(x) if is_sparse(x) else x, tree)
        tensors = [x for x in tensors if not is_sparse(x)]
    if any(_has_odd_strides(x) for x in tensors):
        tree = pytree.tree_map_only(_has_odd_strides, _with_usual_strides, tree)
    return tree


def _has_odd_strides(x: object) -> bool:
    """Whether this is an index without columns (2 x 0) that NumPy has made: with strides that no
    tensor of another size has, and another layout to Dynamo."""
    return (
        isinstance(x, Tensor) and x.numel() == 0 and not x.is_floating_point() and 0 in x.stride()
    )


def _with_usual_strides(x: Tensor) -> Tensor:
    return x.as_strided(x.shape, torch.empty(x.shape, device="meta").stride())


_ENOUGH = (
    f"Dynamo has compiled {_VARIANTS} variants of it: an argument or attribute that is no tensor "
    "changes from call to call (TORCH_LOGS=recompiles tells which)"
)


def _cause(failure: BaseException) -> str:
    if isinstance(failure, dynamo_errors.FailOnRecompileLimitHit):
        return _ENOUGH
    if isinstance(failure, shapeless.Shapeless):
        return shapeless.CAUSE
    if isinstance(failure, dynamo_errors.BackendCompilerFailed):
        # what the graph of entries has no form for
        return graph_breaks.first_line(failure.inner_exception)
    return f"Dynamo cannot trace it: {graph_breaks.first_line(failure)}"
