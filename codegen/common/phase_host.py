"""The part of a phase outside its steps: a local variable for each size and buffer, and what the
caller must know of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ...dialects.intra import bindings, peers
from ...dialects.intra.remote import is_remote
from ...dialects.intra.rows import TraverseOp
from ...dialects.intra.syntax import buffer_dims
from .host import Identifiers, Phase, describe, domain_of, readable_name
from .launches import describe_nest, summary
from .scalars import ctype_of
from .scratch import CHUNKS, RESERVED, ROWS, SUMS, Chunks, Scratch, rows_of_nest
from .shared_functions import Functions, Parameters
from .writer import Writer

Given = tuple[list[tuple[str, str]], dict[str, str]]
"""Parameters, and what a call gives for them."""


def pointer(v: SSAValue) -> str:
    """The C type of a buffer."""
    return f"{ctype_of(v).memory} *"


PEERS = "peers"
"""The kind of a table with an address for each rank."""


def places_name(peers: str) -> str:
    """The C name of the table of places beside that of peers."""
    return f"{peers}_places"


class PhaseHost:
    """Names and lines for what the host-level ops of a phase bind; `functions` are those of the
    module so far."""

    def __init__(self, func: FuncOp, functions: Functions | None = None) -> None:
        self.functions = functions or Functions()
        self.phase = Phase(func.sym_name.data)
        self.names: dict[SSAValue, str] = {}
        self.places: dict[SSAValue, int] = {}
        """Where tables and buffers lie in the caller's array."""
        self.out = Writer(1)
        used = Identifiers()
        for op in func.body.block.ops:
            if not isinstance(op, bindings.BindingOp | bindings.MemoryOp):
                continue
            v = op.results[0]
            if is_remote(v):
                self.rows_of_others(v, used)
                continue
            self.names[v] = readable_name(op, used)
            if isinstance(op, bindings.ViewOp) and (required := op.required()) is not None:
                self.phase.required.append([domain_of(required[0]), required[1]])
            kind = pointer(v) if isinstance(op, _BUFFERS) else "const int64_t "
            self.out.line(f"{kind}{self.names[v]} = {self.value(op)};")

    def rows_of_others(self, v: SSAValue, used: Identifiers) -> None:
        """A table of addresses, and one of places where ranks have other rows (comm.h); views know
        the same."""
        op = v.owner
        if not isinstance(op, bindings.PeerOp):
            self.names[v] = self.names[bindings.root(v)]
            return
        name = self.names[v] = readable_name(op, used)
        self.phase.buffers.append({"kind": PEERS})
        self.out.line(f"void **{name} = b[{len(self.phase.buffers) - 1}];")
        if isinstance(op, peers.PeerRowsOp):
            self.phase.buffers.append({"kind": "places", "domain": domain_of(op.domain)})
            self.out.line(f"uint64_t *{places_name(name)} = b[{len(self.phase.buffers) - 1}];")

    def ranks(self) -> str:
        """How many ranks there are, in a phase that reads what others have."""
        kinds = [b["kind"] for b in self.phase.buffers]
        return self.count(kinds.index(PEERS))

    def scratch(self, nest: TraverseOp, wanted: Iterable[Scratch], step: int) -> Given:
        """Memory for one step alone: parameters, and what the call gives."""
        parameters, given = list[tuple[str, str]](), dict[str, str]()
        wanted = list(wanted)
        each = (r for r in wanted if r.chunks is not None and r.kind != ROWS)
        of_chunk = sum(room.count * room.c.bytes for room in each)
        for room in wanted:
            described = {"kind": "temporary", "domain": None, "row": [room.count]}
            described |= {"bytes": room.c.bytes, "lives": [step, step], "scratch": True}
            if room.chunks is not None:
                described["rows_of"] = self.chunks(nest, room.kind, room.chunks, of_chunk, step)
                for kind in (CHUNKS, ROWS) if room.kind == SUMS else (room.kind,):
                    table = self.chunks(nest, kind, room.chunks, of_chunk, step)
                    given[RESERVED[kind]] = self.count(table)
            self.phase.buffers.append(described)
            given[room.name] = f"b[{len(self.phase.buffers) - 1}]"
            parameters.append((f"{room.c.name} *", room.name))
        parameters += [("const int64_t ", name) for name in RESERVED.values() if name in given]
        return parameters, given

    def chunks(self, nest: TraverseOp, kind: str, chunks: Chunks, of_chunk: int, step: int) -> int:
        """The place of the number of what there is of a kind, in a nest whose chunks take so many
        bytes each."""
        work = None if chunks.offsets is None else domain_of(chunks.offsets.domain)
        numbers = {"row_cost": chunks.row_cost, "grain": chunks.grain, "chunks": chunks.most}
        numbers |= {"bytes": of_chunk, "step": step}
        numbers |= {"block": chunks.block, "round": chunks.round}
        found = {"kind": "chunks", "of": kind, **rows_of_nest(nest.size), "work": work}
        found |= numbers
        if found not in self.phase.buffers:
            self.phase.buffers.append(found)
        return self.phase.buffers.index(found)

    def step(
        self,
        nest: TraverseOp,
        parameters: Parameters,
        body: str,
        calls: Writer,
        given: Mapping[str, str],
    ) -> str:
        """The function of a nest, empty where an earlier one does the same; its call goes to
        `calls`, and what the caller must know of it to the phase. `given` is what the call gives
        for parameters that are called otherwise there.
        """
        phase = self.phase
        name = f"{phase.name}_{len(phase.kernels)}{summary(nest)}"
        known = self.functions.same(name, parameters, body)
        calls.line(f"{known}({', '.join(given.get(name, name) for _, name in parameters)});")
        calls.line(f"LAP({phase.name}, {len(phase.kernels)});")
        phase.kernels.append(name)
        phase.launches.append(describe_nest(name, nest))
        head = f"static void {name}({', '.join(map(''.join, parameters))})"
        return f"{head}\n{{\n{body}}}\n" if known == name else ""

    def count(self, table: int) -> str:
        """The length of a table that the caller makes, given its place."""
        counts = self.phase.counts
        if table not in counts:
            counts.append(table)
        return f"n[{len(self.phase.sizes) + counts.index(table)}]"

    def value(self, op: bindings.IntraOp) -> str:
        """What a binding is in C; sizes and buffers take the next place of the caller's arrays."""
        match op:
            case bindings.SizeOp(domain=None):
                return "1"
            case bindings.SizeOp():
                self.phase.sizes.append(domain_of(op.domain) or [])
                return f"n[{len(self.phase.sizes) - 1}]"
            case bindings.PiecesOp():
                return str(op.count.data)
            case bindings.SumSizesOp():
                return f"{self.names[op.left]} + {self.names[op.right]}"
            case bindings.ViewOp():
                return self.names[op.buffer]
            case bindings.ColumnsOp():
                return f"{self.names[op.buffer]} + {op.first.data}"
            case bindings.PartOp():
                offset = "0" if op.offset is None else self.names[op.offset]
                return f"{self.names[op.buffer]} + {offset} * {math.prod(buffer_dims(op.result))}"
            case bindings.BindingOp() | bindings.AllocOp():
                self.phase.buffers.append(describe(op))
                self.places[op.results[0]] = len(self.phase.buffers) - 1
                return f"b[{len(self.phase.buffers) - 1}]"
            case _:
                raise AssertionError(op)


_BUFFERS = (
    bindings.NamedBuffer,
    bindings.AllocOp,
    bindings.TableOp,
    bindings.TableOfDomain,
    bindings.ViewOp,
    bindings.ColumnsOp,
    bindings.PartOp,
)
