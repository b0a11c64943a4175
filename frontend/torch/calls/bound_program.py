"""A compiled program behind torch's calling convention: binds tensors to sets and rows, and results
back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, fx

from ....runtime.at_once import AtOnce, Given
from ....runtime.carrier import Carrier
from ....runtime.footprint import Footprint, footprint
from ....runtime.memo import Memo, version_key
from ....runtime.program import Buffer, OnGraph, Program
from ....runtime.sets.sets import SetData
from ....runtime.tensors import Elsewhere, prepare, run_phase
from ..capture.effects import runner_of
from ..constant_inputs import look
from ..importer.binding import DropoutKey, FromSize, FromTensor, Imported, RowsBinding, Size
from ..importer.emit.arguments import argument_name
from .arguments import SetArgument, for_structure, rows_of
from .differentiation import Differentiation, OfInferenceMode, check_for_inference
from .outputs import Outputs, is_given_as_is, tensor_of
from .refusals import RefusedCall, told_of, with_both_reasons
from .replay import Replay
from .shared_memory import SharedMemory

GRAPHS_KEPT = 64
FLOATS = ("f32", "f64")

# Dynamo's names of what modules keep; parameters, which an optimizer changes after backward, apart
_STATE = re.compile(r"^[LlGg]_(?!.*_parameters_)(self_|.*_buffers_)")


class BoundProgram:
    """Calls a program as the FX graph it was imported from. `in_shared_memory`, where it is set,
    runs that graph: for calls in which what the program edits lies in the memory of others.
    `new_graph` is told the rows of each set of a graph that was not met before. `device` is where
    the tensors of calls are, as torch spells it. `carrier` carries what ranks add up."""

    def __init__(
        self,
        imported: Imported,
        program: Program,
        graph: fx.GraphModule | None = None,
        tell: Callable[[str], None] = lambda message: None,
        device: str = "cpu",
        carrier: Carrier | None = None,
    ) -> None:
        """`graph` is what was imported; without it no call is differentiated. `tell` is told what
        runs in torch."""
        self.tell, self.carrier = tell, carrier
        self.device, self.on_host = device, device == "cpu"
        self.imported = imported
        self.program = program
        self.memo = Memo(GRAPHS_KEPT)
        self.passed_rows = self.passed()
        self.differentiation: Differentiation | None = None
        self.replay = None if graph is None else self.replay_of(graph, imported)
        if self.replay is not None and any(a.placeholders for a in imported.attached):
            self.differentiation = Differentiation(self.replay, program, self.passed_rows)
        self.names = [argument_name(p) for p in imported.placeholders]
        self.set_arguments = [SetArgument(s, self.names) for s in imported.sets]
        self.sets_with_maps = [s for s in self.set_arguments if s.columns]
        self.quick = AtOnce.of(program) if isinstance(program, Program) else None
        self.argument_names = [r.name for r in self.passed_rows]
        # arguments that are handed on as they are, which most programs have alone
        sources = [r.source for r in self.passed_rows]
        places = [s.placeholder for s in sources if isinstance(s, FromTensor) and not s.row_axis]
        self.places = places if len(places) == len(sources) else None
        results = [*imported.results, *(u.result for u in imported.updates)]
        self.result_names = [r.name for r in results]
        given = {b.name: b for b in self.outputs_of("forward")}
        self.reshaped = [
            (k, b)
            for k, b in enumerate(imported.results)
            if not is_given_as_is(b, given.get(b.name))
        ]
        structure = set(program.structure_inputs)
        prepared = program.phases.get("prepare")
        early = structure | (
            {b.name for b in prepared.inputs} if prepared is not None else set[str]()
        )
        self.early_rows = [r for r in imported.rows if r.name in early]
        read = {b.name for b in self.inputs_of("prepare")}
        self.prepared_rows = [r for r in self.early_rows if r.name in read]
        self.structure_rows_bound = [r for r in imported.rows if r.name in structure]
        maps = {m.placeholder for s in imported.sets for m in s.maps}
        rows = {r.source.placeholder for r in self.early_rows if isinstance(r.source, FromTensor)}
        related = {p for r in imported.relations for p in r.tensors}
        self.watched = sorted(maps | rows | related)
        self.sizes = [s.size for s in imported.sets]
        self.numbers = [r.source.size for r in self.early_rows if isinstance(r.source, FromSize)]
        self.numbers += [Size.of(p) for r in imported.relations for p in r.numbers]
        self.prepared_inputs = sorted(
            {
                r.source.placeholder
                for r in self.early_rows
                if isinstance(r.source, FromTensor) and r.elem in FLOATS
            }
        )
        self.copied = self.read_late()
        self.kept: dict[str, Hashable] = dict.fromkeys(self.state())
        self.in_place = self.written()
        self.updated = sorted({u.placeholder for u in imported.updates})
        self.shared = SharedMemory([u.placeholder for u in imported.updates], imported.placeholders)
        self.in_shared_memory: Callable[..., Any] | None = None
        self.new_graph: Callable[[Mapping[str, int]], None] = lambda counts: None
        self.states = 0
        self.outputs = Outputs(imported.outputs)

    def replay_of(self, graph: fx.GraphModule, imported: Imported) -> Replay:
        """What runs in torch where the program cannot."""
        return Replay(graph, imported)

    @property
    def inputs_kept(self) -> list[str]:
        """The names of the float inputs of which something is prepared."""
        return [self.names[i] for i in self.prepared_inputs]

    def passed(self) -> list[RowsBinding]:
        """The arguments of a call: not the integers that only the structure is made from, of which
        a call may have to make a copy with the rows in front."""
        read = {b.name for phase in ("forward", "backward") for b in self.inputs_of(phase)}
        # floats take part in autograd whether they are read or not
        return [r for r in self.imported.rows if r.name in read or r.elem in FLOATS]

    def inputs_of(self, phase: str) -> list[Buffer]:
        found = self.program.phases.get(phase)
        return [] if found is None else found.inputs

    def outputs_of(self, phase: str) -> list[Buffer]:
        found = self.program.phases.get(phase)
        return [] if found is None else found.outputs

    def read_by_backward(self) -> set[str]:
        return {b.name for b in self.inputs_of("backward")}

    def read_late(self) -> set[str]:
        """The arguments that @backward reads and the call itself changes: a counter, say."""
        return self.read_by_backward() & {u.argument for u in self.imported.updates}

    def state(self) -> set[str]:
        """What a module keeps besides its parameters and @backward reads. It may change before (a
        memory that is written to as soon as the loss is known)."""
        kept = {
            r.name
            for r in self.passed_rows
            if isinstance(r.source, FromTensor)
            and not r.needs_grad
            and _STATE.search(self.imported.placeholders[r.source.placeholder])
        }
        return self.read_by_backward() & kept

    def kept_for_backward(self, r: RowsBinding, x: Tensor) -> Tensor:
        """An argument, or a copy of it. What a module keeps is not copied again where it has not
        changed since the call before (features, say)."""
        if r.name in self.copied:
            return x.clone()
        if r.name in self.kept:
            before, now = self.kept[r.name], version_key(x)
            self.kept[r.name] = now
            return x.clone() if now is None or now != before else x
        return x

    def written(self) -> list[int]:
        """The placeholders that @forward writes to."""
        given = {b.name for b in self.program.phases["forward"].inputs if b.gives is not None}
        return [u.placeholder for u in self.imported.updates if u.argument in given]

    def graphs(self) -> list[OnGraph]:
        """The graphs that something is prepared for, the one used last at the end."""
        return self.memo.values()

    def footprint(self, graph: OnGraph) -> Footprint:
        """The memory that calls take on a graph."""
        d = self.differentiation
        own = () if d is None else d.signature.own
        return footprint(self.program, graph, self.result_names, own)

    # ------------------------------------------------------------ a call

    def __call__(self, *args: Any) -> Any:
        """Run on the placeholders' values.

        Raises:
            IndexError, RuntimeError: an index out of range or sizes that do not fit, naming the
                arguments: of the type that torch raises.
        """
        try:
            return self.compiled(*args)
        except (Elsewhere, OfInferenceMode) as refused:
            return self.elsewhere(args, refused)

    def compiled(self, *args: Any) -> Any:
        """Run the program, which takes tensors on the CPU; refused before anything is written."""
        if self.in_shared_memory is not None and self.shared.found(args):
            return self.in_shared_memory(*args)
        try:
            self.imported.check(args)
            graph = self.on_graph(args)
        except (IndexError, ValueError) as refused:
            return self.in_torch(args, refused)
        if self.updated and not torch.is_inference_mode_enabled():
            check_for_inference(args, self.updated, self.imported.placeholders)
        given, args = args, self.apart(args) if self.in_place else args
        if self.places is None:
            rows = [self.rows_of(r, args) for r in self.passed_rows]
        else:
            rows = [args[p].contiguous() for p in self.places]
        if self.copied or self.kept:
            pairs = zip(self.passed_rows, rows, strict=True)
            rows = [self.kept_for_backward(r, x) for r, x in pairs]
        if self.differentiation is not None and torch.is_grad_enabled():
            tensors = self.run_differentiated(graph, args, rows, given)
        else:
            tensors, updated = self.run(graph, rows)
            self.check_assertions(tensors)
            self.update_all(given, updated)
        return self.outputs.rebuild(tensors, given)

    def check_assertions(self, tensors: Sequence[Tensor]) -> None:
        """Raises what the user's code asserts of these results and does not hold."""
        for a in self.imported.assertions:
            if not tensors[a.result]:
                raise a.raised(a.message)

    def in_torch(self, args: Sequence[Any], refused: Exception) -> Any:
        """Run the graph in torch on arguments that the program refuses.

        Raises:
            RefusedCall: there is no graph.
        """
        if self.replay is None:
            raise RefusedCall(refused)
        keys = [r for r in self.passed_rows if isinstance(r.source, DropoutKey)]
        key = self.rows_of(keys[0], args) if keys else None
        try:
            out = self.replay.outputs(args, key)
        except (IndexError, RuntimeError, ValueError) as error:
            raise with_both_reasons(refused, error) from error
        self.tell(told_of(refused))
        return out

    def elsewhere(self, args: Sequence[Any], refused: Elsewhere | OfInferenceMode) -> Any:
        """Run the graph in torch, with torch's own errors: on tensors of other devices, or of
        inference mode."""
        if self.replay is None:
            raise refused
        out = runner_of(self.replay.graph)(*args)
        self.tell(f"a call runs in torch: {refused}")
        return out

    def run(self, graph: OnGraph, rows: Sequence[Tensor]) -> tuple[list[Tensor], Sequence[Tensor]]:
        """The results and the updates of @forward, without gradients."""
        values = dict(zip(self.argument_names, rows, strict=True)) | graph.rows
        out = run_phase(graph.phases["forward"], values)
        return self.split([out[n] for n in self.result_names])

    def run_differentiated(
        self, graph: OnGraph, args: Sequence[Any], rows: Sequence[Tensor], given: Sequence[Any]
    ) -> list[Tensor]:
        """The results with gradients, and `given` updated."""
        d = self.differentiation
        assert d is not None
        if self.imported.reread:
            args = [x.clone() if i in self.imported.reread else x for i, x in enumerate(args)]
        origin, results = d.call(graph, args, rows)
        tensors, updated = self.split(results)
        if self.imported.assertions:
            self.check_assertions(tensors)
        if not d.links and not updated:
            return tensors
        for k, u in enumerate(self.imported.updates):
            if not u.recorded:
                self.update(k, given, updated[k])
        first = len(tensors)
        seen = [*tensors, *(given[u.placeholder] for u in self.imported.updates)]
        for i, others in d.links:
            y = results[i]
            if others:
                y = origin.linked(i, y, [seen[k] for k in others])
            if i < first:
                seen[i] = tensor_of(self.imported.results[i], y)
            else:
                self.update(i - first, given, y)
        if d.signature.updated:
            origin.note_updates(given)
        return seen[:first]

    def split(self, results: Sequence[Tensor]) -> tuple[list[Tensor], Sequence[Tensor]]:
        """What a program gives as the tensors of the user's code, and its updates."""
        tensors = list(results[: len(self.imported.results)])
        for k, b in self.reshaped:
            tensors[k] = tensor_of(b, tensors[k])
        return tensors, results[len(tensors) :]

    def apart(self, args: Sequence[Any]) -> Sequence[Any]:
        """The arguments, with copies of those that are written to and lie in one piece of memory
        with others: what is read of these must not change meanwhile."""
        pieces: list[tuple[int, int, int]] = []
        for i, x in enumerate(args):
            if isinstance(x, Tensor) and x.numel():
                storage = x.untyped_storage()
                start = storage.data_ptr()
                pieces.append((start, start + storage.nbytes(), i))
        pieces.sort()
        overlapping: set[int] = set()
        for (_, end, i), (start, _, j) in pairwise(pieces):
            if start < end:
                overlapping |= {i, j}
        copied = overlapping.intersection(self.in_place)
        if not copied:
            return args
        return [x.detach().clone() if i in copied else x for i, x in enumerate(args)]

    def update_all(self, args: Sequence[Any], updated: Sequence[Tensor]) -> None:
        """Every update of a call without gradients. Most are written to: these are counted in one
        call, for there are four of a parameter in a step of training."""
        written: list[Tensor] = []
        for k, (u, y) in enumerate(zip(self.imported.updates, updated, strict=True)):
            x = args[u.placeholder]
            if y is x and not u.recorded:
                written.append(x)
            else:
                self.update(k, args, y)
        if written:
            torch.autograd.graph.increment_version(written)

    def update(self, number: int, args: Sequence[Any], y: Tensor) -> None:
        """Copy what the program made of a placeholder (running statistics, say) there, unless it
        wrote there."""
        u = self.imported.updates[number]
        x = args[u.placeholder]
        if u.recorded:  # also of no rows: from here on the tensor has a gradient
            x.copy_(tensor_of(u.result, y))
        elif y is x or y.data_ptr() == x.data_ptr():
            torch.autograd.graph.increment_version(x)
        else:
            with torch.no_grad():
                x.copy_(tensor_of(u.result, y))

    # ------------------------------------------------------------ arguments

    def rows_of(self, r: RowsBinding, args: Sequence[Any]) -> Tensor:
        """An argument with its row axis in front, if it has one."""
        return rows_of(r, args)

    def structure_rows(self, r: RowsBinding, args: Sequence[Any]) -> NDArray[Any]:
        """An argument as the steps of the structure take it."""
        return for_structure(r, self.rows_of(r, args))

    # ------------------------------------------------------------ structure

    def on_graph(self, args: Sequence[Any]) -> OnGraph:
        """What is prepared for the graph of these arguments, made anew when one of its tensors
        changed.

        Raises:
            Elsewhere: one of its tensors is on another device.
        """
        tensors, key = self.graph_of(args)
        return self.memo.get_for(tensors, key, lambda: self.make_graph(args, key[0]))

    def graph_of(self, args: Sequence[Any]) -> tuple[list[Tensor], tuple[Any, ...]]:
        """What tells graphs apart: the tensors, and sizes (those of the sets first) and the like.

        Raises:
            Elsewhere: one of its tensors is on another device.
        """
        sizes = tuple([size(args) for size in self.sizes])
        numbers = tuple([size(args) for size in self.numbers])
        tensors = [args[p] for p in self.watched]
        for p, x in zip(self.watched, tensors, strict=True):
            if not (x.is_cpu if self.on_host else str(x.device) == self.device):
                raise Elsewhere(self.names[p], x.device, self.device)
        seen = tuple([look(args[p]) for p in self.prepared_inputs])
        return tensors, (sizes, numbers, seen)

    def make_graph(self, args: Sequence[Any], sizes: Sequence[int]) -> OnGraph:
        for relation in self.imported.relations:
            relation.check(args)
        count = {s.name: n for s, n in zip(self.imported.sets, sizes, strict=True)}
        graph = self.at_once(args, count)
        if graph is None:
            sets, rows = self.structure_of(args, count)
            graph = self.program.on_graph(sets, rows, self.device, self.carrier)
        with torch.no_grad():
            prepare(graph, {r.name: self.rows_of(r, args).detach() for r in self.prepared_rows})
        self.note_graph(count)
        return graph

    def at_once(self, args: Sequence[Any], count: Mapping[str, int]) -> OnGraph | None:
        """The graph, of the tensors as they lie in memory; None where it takes more."""
        if self.quick is None:
            return None
        given: dict[str, Given] = {}
        for s in self.sets_with_maps:
            found = s.given(args)
            if found is None:
                return None
            given[s.name] = found
        structure = partial(self.structure_of, args, count)
        return self.quick.on_graph(count, given, structure, self.carrier)

    def structure_of(
        self, args: Sequence[Any], count: Mapping[str, int]
    ) -> tuple[dict[str, SetData], dict[str, NDArray[Any]]]:
        """The sets of a call, and the rows that sets are made of, by name."""
        rows = {r.name: self.structure_rows(r, args) for r in self.structure_rows_bound}
        return self.sets_of(args, count), rows

    def sets_of(self, args: Sequence[Any], count: Mapping[str, int]) -> dict[str, SetData]:
        """The sets of a call, whose sizes are known, by name."""
        return {s.name: s.made(count, args) for s in self.set_arguments}

    def note_graph(self, count: Mapping[str, int]) -> None:
        """One more graph, or state of inputs, for which something was prepared."""
        self.states += 1
        self.new_graph(count)

    def states_met(self) -> int:
        """For how many graphs and states of inputs something was prepared."""
        return self.states
