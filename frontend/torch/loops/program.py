"""`gnnc.program`: a function in the loop language as a layer on tensors, compiled at its calls."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from xdsl.dialects.builtin import ModuleOp, f32, f64
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from ....passes.analysis.costs import note_sizes
from ....passes.driver.runner import PassCrash, module_text
from ....runtime.cpu.toolchain import CompileError, NoCompiler
from ...compiler import Options
from ...loops.emit import Form, emit
from ...loops.fitting import check_numbers, fit
from ...loops.statements import read_program
from ...loops.widths import names
from ..calls.bound_program import BoundProgram
from ..calls.graphs_seen import ForGraphsSeen
from ..compile import bind
from ..constant_inputs import mark_constants
from ..importer import Imported, first_sizes
from ..importer.errors import BUG
from ..report import Report, remember
from .as_torch import as_graph, torch_functions
from .binding import flat, imported
from .graph import Graph

ELEMENTS = {torch.float32: f32, torch.float64: f64}


def program(function: Any = None, /, **options: Any) -> Any:
    """Read a function as a program of the loop language; as a decorator or a call.

    The result is called with a `Graph` and tensors and gives tensors, with gradients. It is
    compiled at the first call, and again for other widths, types of numbers, or arguments whose
    gradients are wanted; not for other graphs.

    Args:
        function: loops over edges and nodes, as docs/loops.md has them.
        **options: see `gnnc.Options`.

    Raises:
        ProgramError: the function is no program, with file, line, column and a suggestion.
        TypeError: its source is not to be had, or an option is not known.
    """
    chosen = Options(**options)
    if function is None:
        return lambda given: LoopProgram(given, chosen)
    return LoopProgram(function, chosen)


class LoopProgram:
    """A program of the loop language, called as the function it was written as."""

    def __init__(self, function: Any, options: Options) -> None:
        self.read = read_program(function)
        self.options = options
        self.signature = inspect.signature(function)
        self.in_torch, self.called_in_torch = torch_functions(self.read)
        self.report = Report()
        self.compiled: dict[Any, Callable[..., Any]] = {}
        self.__qualname__: str
        functools.update_wrapper(self, function)
        remember(self, self.report)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on a graph and tensors; in a model that is compiled it is a part of that.

        Raises:
            TypeError, ValueError: an argument that does not fit, by its name.
            ProgramError: numbers of two types meet, at the place where they do.
        """
        if torch.compiler.is_compiling():
            return self.called_in_torch(*args, **kwargs)
        graph, tensors = self.bound(args, kwargs)
        given = flat(graph, list(tensors.values()))
        key = self.key(graph, tensors)
        if key not in self.compiled:
            self.compiled[key] = self.compile(self.form(graph, tensors), given)
        else:
            self.check_rows(graph, tensors)
        return self.compiled[key](*given)

    def __reduce__(self) -> str:
        """Copied and pickled as a function is: by its name."""
        return self.__qualname__

    # ------------------------------------------------------------ arguments

    def bound(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Graph, dict[str, Tensor]]:
        """The graph and the tensors of a call, in the order of the signature."""
        given = dict(self.signature.bind(*args, **kwargs).arguments)
        graph = given.pop(self.read.graph)
        if not isinstance(graph, Graph):
            raise TypeError(f"{self.read.graph} is a gnnc.Graph, not {type(graph).__name__}")
        for name, x in given.items():
            if not isinstance(x, Tensor):
                raise TypeError(f"{name} is a tensor, not {type(x).__name__}")
            if x.dtype not in ELEMENTS:
                raise TypeError(f"{name} has float32 or float64 numbers, not {x.dtype}")
            if x.device.type != "cpu":
                raise ValueError(f"{name} is on {x.device}, programs run on the CPU")
        self.check_graph(graph)
        return graph, {n: given[n] for n in self.read.arguments}

    def check_graph(self, graph: Graph) -> None:
        name = self.read.graph
        if graph.two_kinds and self.read.one_kind:
            raise ValueError(
                f"{name} has two sets of nodes, the program is over nodes of one: use SrcNodes, "
                "DstNodes, src_nodes() and dst_nodes() in it"
            )
        if self.read.etypes and graph.edge_type is None:
            raise ValueError(f"{name} has no edge_type, which the program reads")
        if self.read.ntypes and graph.src_type is None:
            raise ValueError(f"{name} has no node_type, which the program reads")

    def key(self, graph: Graph, tensors: Mapping[str, Tensor]) -> Any:
        """What a compiled program depends on."""
        training, out = torch.is_grad_enabled(), []
        for name, x in tensors.items():
            rows = self.read.arguments[name].kind != "Weights"
            out.append((x.shape[rows:], x.dtype, training and x.requires_grad))
        return graph.two_kinds, tuple(out)

    @staticmethod
    def counts(graph: Graph) -> dict[str, int]:
        return {
            "Nodes": graph.num_src,
            "SrcNodes": graph.num_src,
            "DstNodes": graph.num_dst,
            "Edges": graph.num_edges,
            "etype": graph.num_edge_types,
            "ntype": graph.num_node_types,
        }

    def check_rows(self, graph: Graph, tensors: Mapping[str, Tensor]) -> None:
        """Raises ValueError where a tensor has not the rows of this graph."""
        fit(self.read, {n: x.shape for n, x in tensors.items()}, self.counts(graph))

    def form(self, graph: Graph, tensors: Mapping[str, Tensor]) -> Form:
        """What the program is compiled for in a call."""
        kinds = {n: str(x.dtype).removeprefix("torch.") for n, x in tensors.items()}
        check_numbers(self.read, kinds)
        widths = fit(self.read, {n: x.shape for n, x in tensors.items()}, self.counts(graph))
        training = torch.is_grad_enabled()
        dtype = next((x.dtype for x in tensors.values()), torch.get_default_dtype())
        return Form(
            widths,
            graph.num_edge_types,
            graph.num_node_types,
            ELEMENTS[dtype],
            graph.two_kinds,
            frozenset(n for n, x in tensors.items() if training and x.requires_grad),
        )

    # ------------------------------------------------------------ compilation

    def compile(self, form: Form, given: Sequence[Any]) -> Callable[..., Any]:
        """What a call of this form runs: a compiled program, or torch where there is none."""
        start = time.perf_counter()

        def make(
            args: Sequence[Any], sizes: Mapping[str, float] | None, constants: bool
        ) -> Imported:
            made = imported(self.read, form)
            note_sizes(made.function, first_sizes(made, args) if sizes is None else sizes)
            if constants:
                mark_constants(made, args)
            return made

        def bound(made: Imported) -> BoundProgram:
            graph = as_graph(self.in_torch, made)
            training = any(a.placeholders for a in made.attached)
            return bind(made, training, self.options, self.report, graph)

        try:
            retired = self.report.programs.remove
            return ForGraphsSeen(make, bound, retired, given, self.options.hoist_inputs)
        except (DiagnosticException, PassCrash, CompileError, NoCompiler) as error:
            if self.options.fullgraph:
                raise
            bug = (
                f". {BUG}" if isinstance(error, PassCrash | CompileError | VerifyException) else ""
            )
            self.report.warn(f"{self.read.name} cannot be compiled: {error}{bug}")
            return self.in_torch
        finally:
            self.report.compile_seconds += time.perf_counter() - start

    # ------------------------------------------------------------ IR

    def module(
        self,
        widths: Mapping[str, int] | None = None,
        *,
        types: int = 4,
        dtype: torch.dtype = torch.float32,
        two_kinds: bool = False,
        needs_grad: bool = True,
    ) -> ModuleOp:
        """The `inter` module of the program, for these widths by name (16 where none is given) and
        `types` of edges and of nodes."""
        known = {w: 16 for a in self.read.arguments.values() for w in names(a.shape)}
        wanted = frozenset(self.read.arguments if needs_grad else ())
        form = Form({**known, **(widths or {})}, types, types, ELEMENTS[dtype], two_kinds, wanted)
        return emit(self.read, form)

    def ir(self, widths: Mapping[str, int] | None = None, **form: Any) -> str:
        """The text of `module`, which `gnn-opt` reads."""
        return module_text(self.module(widths, **form))
