"""What a phase needs from its caller, as plain data: sizes, buffers and scratch, in the order of
the C arguments.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from ...dialects.intra import bindings, peers, rows
from ...dialects.intra.syntax import buffer_dims, element
from .c_types import ctype

Domain = tuple[str, tuple[str, ...]]


def domain_of(attribute: bindings.DomainAttr | None) -> list[Any] | None:
    """`["g", ["rel", "src"]]`, None for the single row."""
    if attribute is None:
        return None
    return [attribute.set_name.data, list(attribute.key_names)]


@dataclass
class Phase:
    """The interface of one C function.

    `required` says of domains how many rows they must have, `[["R", []], 3]`. `sizes` and `buffers`
    describe the entries of the function's `n` and `b` arrays; a buffer is a dict with `kind` one of
    input, output, temporary, index_map, pair_index, offsets, members, member_map, witness, table;
    for devices cuts, pieces, partitions (runtime/sets/shares.py); peers and places, where rows of
    other ranks lie (codegen/common/comm.h); comm, what is exchanged with other ranks
    (codegen/common/exchange_code.py). `counts` are places of tables whose lengths follow the sizes
    in `n`; one of kind chunks is a length alone, that chunks of rows there are at most
    (runtime/reserves.py). A temporary has a row for each entry of the table `rows_of`, where it
    says so; one that is `scratch` is memory of one step (scratch.py). An input of
    backward that is `passed` is no argument of forward's: what that saved, and gradients of its
    results. `workspace` is the scratch
    memory of kernels on devices, in bytes. `launches` says what each of the `kernels` does
    (codegen/common/launches.py).
    """

    name: str
    sizes: list[list[Any]] = field(default_factory=list[list[Any]])
    required: list[list[Any]] = field(default_factory=list[list[Any]])
    buffers: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    counts: list[int] = field(default_factory=list[int])
    kernels: list[str] = field(default_factory=list[str])
    launches: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    workspace: int = 0

    def data(self) -> dict[str, Any]:
        """The interface as JSON holds it."""
        return dict(vars(self))


@dataclass(frozen=True)
class Printed:
    """A source text and the interfaces of its phases. Where kernels run on a device, `device` is
    their text, `library` that of the functions they call, and `kernels` are their names in the
    order in which phases count them."""

    source: str
    phases: list[Phase]
    device: str = ""
    kernels: list[str] = field(default_factory=list[str])
    library: str = ""


def mark_passed(phases: Iterable[Phase]) -> None:
    """Say which inputs of backward are no arguments of forward, nor rows kept with the graph."""
    found = {phase.name: phase.buffers for phase in phases}
    given = {b["name"] for b in found.get("forward", ()) if b["kind"] == "input"}
    given |= {b["name"] for b in found.get("prepare", ()) if b["kind"] == "output"}
    for b in found.get("backward", ()):
        if b["kind"] == "input" and b["name"] not in given:
            b["passed"] = True


def describe(op: bindings.BindingOp | bindings.MemoryOp) -> dict[str, Any]:
    """One buffer of a phase as plain data."""
    v = op.results[0]
    if isinstance(op, bindings.InputOp | bindings.OutputOp | bindings.AllocOp | bindings.TableOp):
        c = ctype(element(v.type))
        out: dict[str, Any] = {
            "row": list(buffer_dims(v)),
            "dtype": str(element(v.type)),
            "bytes": c.bytes,
        }
        if isinstance(op, bindings.Living):
            out |= {"domain": domain_of(op.domain), "lives": op.lives}
        if isinstance(op, bindings.InputOp):
            given = {} if op.gives is None else {"gives": op.gives.data}
            return out | {"kind": "input", "name": op.buffer.data} | given
        if isinstance(op, bindings.OutputOp):
            return out | {"kind": "output", "name": op.buffer.data}
        if isinstance(op, bindings.AllocOp):
            return out | {"kind": "temporary"}
        return out | {"kind": "table", "values": [x.value.data for x in op.value]}
    assert isinstance(op, bindings.TableOfDomain)
    out = {"kind": op.name.removeprefix("intra."), "domain": domain_of(op.domain)}
    if isinstance(op, bindings.GroupOp):
        out["along"] = list(op.along_paths)
    if isinstance(op, bindings.IndexMapOp | bindings.MemberMapOp):
        out["path"] = op.path.data
    if isinstance(op, bindings.MemberPairOp):
        out["keys"] = [k.data for k in op.keys]
    return out


class Identifiers:
    """Hands out C identifiers that are not used: a name, else `name_1`, `name_2`, .."""

    def __init__(self) -> None:
        self.used: set[str] = {*RESERVED}
        self.counts: defaultdict[str, int] = defaultdict(int)
        """The last number that a name was given: a phase has thousands of temporaries."""

    def fresh(self, name: str) -> str:
        full = name
        while full in self.used:
            self.counts[name] += 1
            full = f"{name}_{self.counts[name]}"
        self.used.add(full)
        return full


def readable_name(op: object, used: Identifiers) -> str:
    """A C identifier that says what the binding is."""
    match op:
        case bindings.SizeOp():
            stem = "one" if op.domain is None else f"n_{op.domain}"
        case bindings.PiecesOp():
            stem = "pieces"
        case bindings.InputOp():  # a prefix, for the user may have named a tensor `exp` or `v12`
            stem = f"in_{op.buffer.data}"
        case bindings.OutputOp():
            stem = f"out_{op.buffer.data}"
        case bindings.IndexMapOp():
            stem = f"map_{op.domain}_{op.path.data}"
        case bindings.PairIndexOp():
            stem = f"pair_{op.domain}"
        case bindings.MemberPairOp():
            stem = f"pair_of_{op.domain}_by_{'_'.join(op.along_paths)}"
        case bindings.MemberMapOp():
            stem = f"{op.path.data}_of_{op.domain}_by_{'_'.join(op.along_paths)}"
        case peers.PeerRowsOp():
            stem = f"peers_{op.domain}"
        case peers.PeerTotalsOp():
            stem = "all_ranks"
        case bindings.GroupOp():
            kind = op.name.removeprefix("intra.")
            stem = f"{kind}_{op.domain}_{'_'.join(op.along_paths)}"
        case _:
            stem = "t"
    name = "".join(ch if ch.isalnum() else "_" for ch in stem).strip("_") or "t"
    if name[0].isdigit():
        name = f"v_{name}"
    return used.fresh(name)


RESERVED = set(
    "b n c i r f k m lo hi ws rows chunks threads i0 sum size group int chunk cuts "
    "team lane mask slab t launch kernels stream status arguments least reserved kept".split()
)


def nest_arguments(nest: rows.TraverseOp) -> list[SSAValue]:
    """Buffers and sizes that the nest reads from outside, in order of first use."""
    inside = {id(r) for op in nest.walk() for r in op.results}
    inside |= {id(a) for op in nest.walk() for g in op.regions for b in g.blocks for a in b.args}
    used = [x for op in nest.walk() for x in op.operands if id(x) not in inside]
    return list(dict.fromkeys(used))


def is_size(v: SSAValue) -> bool:
    return isinstance(v.type, IndexType)
