"""What of a compiled program takes part in differentiation, found once for all calls."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any


class Signature:
    """Which arguments and results of a program take part in differentiation.

    `inputs` are the rows arguments in order, `gradients` maps an argument to the output of
    @backward that holds its gradient, `results` are those of @forward that the caller sees, `saved`
    those kept for @backward, `wanted` what @backward reads, `cotangents` maps a result to the input
    of @backward. The last `updates` results are copied to arguments. `attached` gives for a result
    the arguments that have a gradient of it, be it 0; `linked` are results that the caller gets
    from another node of autograd. `reads` gives for each result the numbers of those that eager's
    backward of it reads, and that nobody may edit before (None: perhaps all), `surely` of those
    that it reads without a doubt, `arguments` the arguments of the user's call that it reads.
    `read_for` gives for an output of @backward what it is computed from, of what is kept. What
    is saved and no result is the program's own: its last backward may write over it.

    From these follow `kept`, the names of what a call keeps until its backward, in order, and
    `own`, those of them that nobody else has;
    `constant`, the results without a gradient; `seen`, the others by number with their cotangents;
    for each argument `sources`, the numbers of the results that have a gradient for it; `zeros`,
    the numbers of the arguments whose gradient is 0; and `gives`, whether any other is not.
    `unreached` are the numbers of the arguments that no result has a gradient for, `entries` those
    of the arguments with the same sources, and `exits` those of the results with the same
    arguments, each with the numbers of the entries that these are. `editable` are the numbers of
    the results that are kept and that eager's backward of some result does not read, `unkept` of
    those that it reads for certain and that are not kept; `shown` are both. `updated` are those
    that it reads for certain in the memory of arguments. `known` are the results that eager is
    known to read for.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        results: Sequence[str],
        saved: Sequence[str],
        gradients: Mapping[str, str],
        cotangents: Mapping[str, str],
        wanted: Collection[str],
        attached: Mapping[str, Collection[str]],
        linked: Collection[str],
        reads: Sequence[Collection[int] | None],
        surely: Sequence[frozenset[int]],
        arguments: Sequence[Collection[int]],
        updates: int,
        read_for: Mapping[str, Collection[str]],
    ) -> None:
        self.inputs = tuple(inputs)
        self.results = tuple(results)
        self.saved = tuple(saved)
        # computed here once: these lines would be run at every call
        reached = {n for names in attached.values() for n in names}
        self.gradients = tuple(gradients.get(n) if n in reached else None for n in inputs)
        self.read_for = tuple(frozenset(read_for.get(n or "", ())) for n in self.gradients)
        self.zeros = tuple(i for i, n in enumerate(inputs) if n in reached and n not in gradients)
        self.kept_inputs = tuple(n for n in inputs if n in wanted)
        outputs = dict.fromkeys((*saved, *results))
        self.kept_outputs = tuple(n for n in outputs if n in wanted)
        self.kept = self.kept_inputs + self.kept_outputs
        self.constant = tuple(n for n in results if not attached.get(n))
        self.seen = tuple((i, cotangents.get(n)) for i, n in enumerate(results) if attached.get(n))
        self.sources = tuple(
            frozenset(i for i, r in enumerate(results) if n in attached.get(r, ())) for n in inputs
        )
        self.gives = any(n is not None for n in self.gradients)
        self.linked = frozenset(n for n in results if n in linked)
        self.entries = tuple(_alike(self.sources).values())
        # calls in pieces keep it once for each piece
        pieces = len(self.entries) > 1
        self.own = () if pieces else tuple(n for n in self.kept_outputs if n not in self.results)
        self.unreached = tuple(k for k, names in enumerate(self.sources) if not names)
        of = [frozenset(attached.get(n, ())) for n in results]
        self.exits = tuple(
            (numbers, tuple(e for e, ks in enumerate(self.entries) if inputs[ks[0]] in names))
            for names, numbers in _alike(of).items()
        )
        everything = frozenset(range(len(results)))
        self.known = frozenset(i for i, r in enumerate(reads) if r is not None)
        self.reads = [everything if r is None else frozenset(r) for r in reads]
        spared = {j for i, _ in self.seen for j in everything.difference(self.reads[i])}
        self.editable = tuple(j for j in sorted(spared) if results[j] in self.kept_outputs)
        self.surely = surely
        certain = {j for i, _ in self.seen for j in surely[i]}
        first = len(results) - updates
        self.updated = tuple(j for j in sorted(certain) if j >= first)
        certain.difference_update(self.updated)
        self.unkept = tuple(j for j in sorted(certain) if results[j] not in self.kept_outputs)
        self.shown = self.editable + self.unkept
        self.has_unkept = bool(self.unkept or self.updated or any(arguments))


def _alike(sets: Sequence[frozenset[Any]]) -> dict[frozenset[Any], list[int]]:
    """The positions of each set that is not empty."""
    out: dict[frozenset[Any], list[int]] = {}
    for i, x in enumerate(sets):
        if x:
            out.setdefault(x, []).append(i)
    return out
