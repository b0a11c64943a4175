"""C for the steps of a phase that exchange rows with other ranks: calls of the functions in the
`gnnc_comm` (comm.h) that is the last of the phase's buffers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.ir import SSAValue

from ...dialects.intra.bindings import known_domain
from ...dialects.intra.exchange import AllReduceOp, MoveStartOp, MoveWaitOp
from ...dialects.intra.syntax import buffer_dims, element
from ..common.host import domain_of
from ..common.writer import Writer

Exchange = MoveStartOp | MoveWaitOp | AllReduceOp
EXCHANGE = (MoveStartOp, MoveWaitOp, AllReduceOp)
PARAMETER = ("gnnc_comm *", "comm")
"""What a nest that polls takes."""


class ExchangeCode:
    """The messages of one phase so far. `described` is what the caller must know of them:

    ```
    {"kind": "comm",
     "moves": [{"plan": "halo", "row": [8], "dtype": "f32", "from": ["R", []], "to": ["H", []]}],
     "reductions": [{"kind": "sum", "buffers": [{"row": [], "dtype": "f32", "at": None}]}]}
    ```
    """

    def __init__(self, names: Mapping[SSAValue, str]) -> None:
        self.names = names
        self.moves: list[dict[str, Any]] = []
        self.reductions: list[dict[str, Any]] = []
        self.under_way: dict[str, int] = {}

    @property
    def described(self) -> dict[str, Any]:
        return {"kind": "comm", "moves": self.moves, "reductions": self.reductions}

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
                buffers = [{**described(b), "at": domain(b)} for b in op.buffers]
                self.reductions.append({"kind": op.kind.data, "buffers": buffers})
                given = ", ".join(self.names[b] for b in op.buffers)
                call = f"comm->all_reduce(comm, {k}, (void *const[]){{{given}}});"
        out.line(f"if (!comm->failed) {call}")
        out.line("SKIP_LAP;")


def described(buffer: SSAValue) -> dict[str, Any]:
    """The rows of a buffer as plain data."""
    return {"row": list(buffer_dims(buffer)), "dtype": str(element(buffer.type))}


def domain(buffer: SSAValue) -> list[Any] | None:
    """Where they lie."""
    known = known_domain(buffer)
    assert known is not None  # the op's verifier
    return domain_of(known[0])
