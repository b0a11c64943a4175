"""C for the steps of a phase that have to do with other ranks: calls of the functions in the
`gnnc_comm` (comm.h) that is the last of the phase's buffers.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from xdsl.ir import SSAValue

from ...dialects.intra.bindings import known_domain
from ...dialects.intra.exchange import AllReduceOp, MoveStartOp, MoveWaitOp
from ...dialects.intra.publication import BeginOp, PublicationOp, PublishOp
from ...dialects.intra.syntax import buffer_dims, element
from .host import domain_of
from .phase_host import PhaseHost, places_name
from .writer import Writer

Exchange = MoveStartOp | MoveWaitOp | AllReduceOp | PublicationOp
EXCHANGE = (MoveStartOp, MoveWaitOp, AllReduceOp, PublicationOp)
TOTALS = "totals"
"""What a publication of whole buffers is called."""
PARAMETER = ("gnnc_comm *", "comm")
"""What a nest that polls takes."""


class ExchangeCode:
    """The messages of one phase so far. `described` is what the caller must know of them:

    ```
    {"kind": "comm",
     "moves": [{"plan": "halo", "row": [8], "dtype": "f32", "from": ["R", []], "to": ["H", []]}],
     "reductions": [{"kind": "sum", "buffers": [{"row": [], "dtype": "f32", "at": None}]}],
     "publications": [{"plan": "R to H", "buffers": [{"row": [8], "dtype": "f32", "at": ["N", []]}],
                       "sent": {"from": ["N", []], "through": 3}}]}
    ```
    `sent` are the rows that a plan sends, of which `through` is the place of an index map among the
    buffers, or None; of whole buffers it is None. The target calls only where `goes_on` holds, and
    has `after` behind each call.
    """

    def __init__(self, host: PhaseHost, goes_on: str = "!comm->failed", after: str = "") -> None:
        self.names, self.places = host.names, host.places
        self.goes_on, self.after = goes_on, after
        self.publications: list[dict[str, Any]] = []
        self.published: dict[frozenset[SSAValue], int] = {}
        self.moves: list[dict[str, Any]] = []
        self.reductions: list[dict[str, Any]] = []
        self.under_way: dict[str, int] = {}

    @property
    def described(self) -> dict[str, Any]:
        return {
            "kind": "comm",
            "moves": self.moves,
            "reductions": self.reductions,
            "publications": self.publications,
        }

    @property
    def polls(self) -> bool:
        """Whether a message is under way."""
        return bool(self.under_way)

    def step(self, op: Exchange, out: Writer) -> None:
        """The call of a step."""
        match op:
            case MoveStartOp():
                k = self.under_way[op.plan.data] = len(self.moves)
                self.moves.append(
                    {
                        "plan": op.plan.data,
                        **described(op.source),
                        "from": domain(op.source),
                        "to": domain(op.target),
                    }
                )
                source, target = self.names[op.source], self.names[op.target]
                call = f"comm->start(comm, {k}, {source}, {target});"
            case MoveWaitOp():
                call = f"comm->wait(comm, {self.under_way.pop(op.plan.data)});"
            case AllReduceOp():
                k = len(self.reductions)
                buffers = [lying(b) for b in op.buffers]
                self.reductions.append({"kind": op.kind.data, "buffers": buffers})
                call = f"comm->all_reduce(comm, {k}, {self.array('void *const', op.buffers)});"
            case BeginOp():
                k = self.published[frozenset(op.shown())] = len(self.publications)
                self.publications.append(self.publication(op))
                source = self.array("const void *const", op.shown().values())
                peers = self.array("void **const", op.shown())
                places = places_name(self.names[op.target]) if isinstance(op, PublishOp) else "0"
                call = f"comm->publish(comm, {k}, {source}, {peers}, {places});"
            case _:
                call = f"comm->retire(comm, {self.published.pop(frozenset(op.shown()))});"
        out.line(f"if ({self.goes_on}) {call}")
        if self.after:
            out.line(self.after)

    def publication(self, op: BeginOp) -> dict[str, Any]:
        """What is published, as plain data."""
        found = {"plan": TOTALS, "buffers": [lying(b) for b in op.shown().values()], "sent": None}
        if isinstance(op, PublishOp):
            through = None if op.through is None else self.places[op.through]
            sent = {"from": domain(op.source), "through": through}
            found |= {"plan": op.plan.data, "sent": sent}
        return found

    def array(self, kind: str, buffers: Iterable[SSAValue]) -> str:
        """Buffers as one argument in C."""
        return f"({kind}[]){{{', '.join(self.names[b] for b in buffers)}}}"


def comm_text() -> str:
    """The declaration of `gnnc_comm`."""
    return (files(__package__ or "") / "comm.h").read_text()


def described(buffer: SSAValue) -> dict[str, Any]:
    """The rows of a buffer as plain data."""
    return {"row": list(buffer_dims(buffer)), "dtype": str(element(buffer.type))}


def lying(buffer: SSAValue) -> dict[str, Any]:
    """The rows of a buffer, and where they lie."""
    return {**described(buffer), "at": domain(buffer)}


def domain(buffer: SSAValue) -> list[Any] | None:
    """Where they lie."""
    known = known_domain(buffer)
    assert known is not None  # the op's verifier
    return domain_of(known[0])
