"""`gnnc.compile`: PyG modules and functions through the compiler, drop-in."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx, nn
from xdsl.utils.exceptions import PassFailedException

from ...passes.analysis.costs import note_sizes, note_subsets
from ...passes.driver.runner import PassCrash
from ...runtime.carrier import Carrier
from ...runtime.cpu.toolchain import CompileError, NoCompiler
from ..compiler import Options, compile_module
from . import taken_options
from .calls.bound_program import BoundProgram
from .calls.first_masks import note_masks
from .calls.graphs_seen import ForGraphsSeen
from .capture.capture import dynamo_compile
from .capture.drawn_like import drawn_by_sizes
from .capture.effects import WholeInTorch, as_written, check_transforms, device_of, runner_of
from .constant_inputs import mark_constants
from .importer import Imported, Unsupported, first_shares, import_graph
from .importer.errors import BUG
from .importer.memory.effects import switches_mode
from .importer.relations import checked_first
from .libraries.pyg.bad_index import as_in_pyg
from .ranks import asked_of_all, cut_tensors, drawn_edges
from .ranks.among_ranks import among_ranks, between, compiling, one_program
from .ranks.features_of_all import features_of
from .ranks.partitioned import partitioned
from .ranks.ranked_program import RankedProgram
from .ranks.rows_of_all import note_rows_of_all, sizes_of_all
from .ranks.whole_graph import note_ends
from .report import Report, remember


def compile(target: Any = None, /, **options: Any) -> Any:
    """Compile a module, a module class or a function; as a call or as a decorator.

    A module's call is compiled in place and the module returned: its parameters, `state_dict`,
    hooks, copies and pickles stay its own. Of a class, every instance is compiled. Of a function, a
    compiled function is returned. What cannot be compiled runs in torch; `gnnc.explain` says what,
    where and why.

    Args:
        target: an `nn.Module`, a subclass of it, or a function of tensors.
        **options: see `gnnc.Options`.

    Raises:
        TypeError: `target` is neither, or an option is not known.
    """
    chosen = Options(**options)
    if target is None:
        return lambda given: compile_target(given, chosen)
    return compile_target(target, chosen)


def compile_target(target: Any, options: Options) -> Any:
    options = among_ranks(options)
    if isinstance(target, nn.Module):
        taken_options.note(target, options)
        report = Report()
        call = one_program(compiled_callable(target._call_impl, options, report))
        target._compiled_call_impl = call
        remember(target, report)
        return target
    if isinstance(target, type) and issubclass(target, nn.Module):
        return compile_class(target, options)
    if callable(target):
        report = Report()
        call = compiled_callable(target, options, report)
        remember(call, report)
        return call
    raise TypeError(
        f"gnnc.compile takes a module, a module class or a function, not {type(target).__name__}"
    )


def compile_class(cls: type[nn.Module], options: Options) -> type[nn.Module]:
    """Let every new instance of exactly this class be compiled."""
    init = cls.__init__

    @functools.wraps(init)
    def initialise(self: nn.Module, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        if type(self) is cls:
            compile_target(self, options)

    cls.__init__ = initialise  # type: ignore[method-assign]
    return cls


def compiled_callable(
    fn: Callable[..., Any], options: Options, report: Report
) -> Callable[..., Any]:
    """`fn` through Dynamo and our backend."""
    backend = functools.partial(compile_graph, options=options, report=report)
    return dynamo_compile(
        fn,
        backend,
        fullgraph=options.fullgraph,
        notice=functools.partial(report.warn, what=""),
        features=features_of(options, report.note),
    )


def compile_graph(
    graph: fx.GraphModule, examples: Sequence[Any], *, options: Options, report: Report
) -> Callable[..., Any]:
    """Dynamo's backend: a callable over the graph's placeholders."""
    run = compile_somehow(graph, examples, options, report)
    return closing_blocks(run) if any(map(switches_mode, graph.graph.nodes)) else run


def closing_blocks(run: Callable[..., Any]) -> Callable[..., Any]:
    """`run`, for a graph with `no_grad` blocks and their like: where it raises inside one, the mode
    of autograd is again what it was before, as behind a block of Python's."""

    def closing(*args: Any) -> Any:
        mode = torch.is_grad_enabled()
        try:
            return run(*args)
        except BaseException:
            torch.set_grad_enabled(mode)
            raise

    return closing


def compile_somehow(
    graph: fx.GraphModule, examples: Sequence[Any], options: Options, report: Report
) -> Callable[..., Any]:
    """What runs a graph, which is compiled now, or with rows of one rank of several when it is
    called."""
    if cut_tensors.kinds(examples):  # torch does not know the rows of other ranks
        options = replace(options, fullgraph=True)
        graph, draws = drawn_edges.apart(graph)
        run = AtFirstCall(functools.partial(compiled_timed, graph, options=options, report=report))
        return drawn_edges.before(run, draws)
    return compiled_timed(graph, examples, options, report)


class AtFirstCall:
    """A program of one rank of several, compiled when it is called: ranks agree on which one, and
    while Dynamo traces for one that is a thread the others wait for its lock."""

    def __init__(self, made: Callable[[Sequence[Any]], Callable[..., Any]]) -> None:
        self.made = made
        self.run: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        if self.run is None:
            self.run = self.made(args)
        return self.run(*args)


def compiled_timed(
    graph: fx.GraphModule, examples: Sequence[Any], options: Options, report: Report
) -> Callable[..., Any]:
    """A program for the whole graph, or for parts of it, or the graph in torch; the time that takes
    is noted."""
    start = time.perf_counter()
    try:
        with compiling(examples):
            return compile_whole(graph, examples, options, report)
    except Unsupported as error:
        if options.fullgraph:
            raise
        return compile_parts(graph, error, options, report)
    except NoCompiler as error:
        if options.fullgraph:
            raise
        return eager(graph, str(error), report)
    finally:
        report.compile_seconds += time.perf_counter() - start


def compile_whole(
    graph: fx.GraphModule, examples: Sequence[Any], options: Options, report: Report
) -> Callable[..., Any]:
    """One program for the whole graph.

    Raises:
        Unsupported: the importer has no rule for a node.
    """

    def bound(imported: Imported) -> BoundProgram:
        differentiated = any(a.placeholders for a in imported.attached)
        training = differentiated and any(r.needs_grad for r in imported.rows)
        made = bind(imported, training, options, report, graph)
        if not imported.cut:
            made.in_shared_memory = told(graph, SHARED, report)
        return made

    try:
        imported = functools.partial(imported_graph, graph, backend=options.backend)
        hoist, retired = options.hoist_inputs, report.programs.remove
        return ForGraphsSeen(imported, bound, retired, examples, hoist)
    except PassFailedException as error:
        if options.fullgraph:
            raise
        return eager(graph, f"the graph cannot be compiled: {error}", report)
    except (PassCrash, CompileError) as error:
        if options.fullgraph:
            raise
        return eager(graph, f"the graph could not be compiled: {error}. {BUG}", report)


SHARED = "a call edits an argument whose memory another argument shares: it runs in torch"


def told(graph: fx.GraphModule, reason: str, report: Report) -> Callable[..., Any]:
    """The graph in torch, which says why at the first call."""

    def run(*args: Any) -> Any:
        if reason not in report.fallbacks:
            eager(graph, reason, report)
        return in_torch(*args)

    in_torch = as_in_pyg(graph, runner_of(graph))
    return run


def imported_graph(
    graph: fx.GraphModule,
    examples: Sequence[Any],
    sizes: Mapping[str, float] | None = None,
    constants: bool = False,
    backend: str = "auto",
) -> Imported:
    """The graph as a program, with the sizes that sets have in `examples`, or with `sizes`; inputs
    are marked that may be `constants`.

    Raises:
        Unsupported: the importer has no rule for a node, or a tensor is where no program runs, or
            within a transform of torch.func.
    """
    as_written(graph)
    drawn_by_sizes(graph)
    check_transforms(graph)
    device = device_of(graph, backend)
    training = torch.is_grad_enabled()
    needs_grad = [training and isinstance(x, torch.Tensor) and x.requires_grad for x in examples]
    with asked_of_all.answered(graph, examples):
        imported = import_graph(graph, needs_grad, float_masks=False)
    note_ends(imported, examples)
    imported = replace(
        imported,
        device=device,
        cut=cut_tensors.kinds(examples),
        chunks=cut_tensors.chunks(examples),
    )
    if sizes is None:
        sizes = sizes_of_all(imported, examples)
    if imported.cut:
        # relations are of numbers of all ranks
        imported = replace(imported, relations=(), asked=asked_of_all.asked(graph))
        asked_of_all.check(imported.asked, imported.placeholders, examples)
        imported = note_rows_of_all(imported, examples, sizes)
    else:
        note_sizes(imported.function, sizes)
        note_subsets(imported.function, first_shares(imported, examples))
        note_masks(imported, examples)
    if constants:
        mark_constants(imported, examples)
    return imported


def bind(
    imported: Imported,
    training: bool,
    options: Options,
    report: Report,
    graph: fx.GraphModule | None = None,
    carrier: Carrier | None = None,
) -> BoundProgram:
    """Compile a program (it is consumed) and note it in the report; `graph` is what was imported,
    where calls are differentiated. `carrier` carries what ranks with graphs of their own add up.

    Raises:
        PassFailedException: a pass refused it.
        PassCrash, CompileError: a bug in gnnc.
    """
    chosen, ranked = options.on(imported.device), None
    if imported.cut:
        ranked = partitioned(imported, training)
        way = between(chosen, imported.chunks, report.note)
        program = compile_module(imported.module, training, chosen, way)
    else:
        way = None if carrier is None else "sums"
        program = compile_module(imported.module, training, chosen, way)
    report.graphs += 1
    report.kernels += program.kernels
    report.sources.append(str(program.path))

    def tell(message: str) -> None:
        if message not in report.fallbacks:
            report.warn(message, what="")

    if ranked is not None:
        bound: BoundProgram = RankedProgram(ranked, program, graph, tell, report.prepared)
    else:
        bound = BoundProgram(imported, program, graph, tell, imported.device, carrier)
    report.programs.append(bound)
    return bound


def compile_parts(
    graph: fx.GraphModule, error: Unsupported, options: Options, report: Report
) -> Callable[..., Any]:
    """Compile the parts of the graph that have rules; the others run in torch."""
    from .importer.parts.split import split_graph

    split = None if isinstance(error, WholeInTorch) else split_graph(graph)
    if split is None:
        return eager(graph, str(error), report)
    for message in split.reasons:
        report.warn(message)
    for part in split.parts:
        own = getattr(split.module, part.name)
        new = LatePart(own, options, report) if part.supported else TorchPart(own)
        setattr(split.module, part.name, new)
    return checked_first(graph.graph, as_in_pyg(graph, runner_of(split.module)))


class TorchPart(nn.Module):
    """A part of a split graph that runs in torch."""

    def __init__(self, graph: fx.GraphModule) -> None:
        super().__init__()
        self.forward = runner_of(graph)


class LatePart(nn.Module):
    """A part of a split graph, compiled for the arguments of its first call."""

    def __init__(self, graph: fx.GraphModule, options: Options, report: Report) -> None:
        super().__init__()
        self.graph_module = graph
        self.options, self.report = options, report
        self.made: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def forward(self, *args: Any) -> Any:
        training = torch.is_grad_enabled()
        key = tuple(training and isinstance(x, torch.Tensor) and x.requires_grad for x in args)
        if key not in self.made:
            self.made[key] = compile_somehow(self.graph_module, args, self.options, self.report)
        return self.made[key](*args)


def eager(graph: fx.GraphModule, reason: str, report: Report) -> Callable[..., Any]:
    """Run the graph in torch, and say why."""
    report.warn(reason)
    return checked_first(graph.graph, as_in_pyg(graph, runner_of(graph)))
