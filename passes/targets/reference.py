"""Plain C99 for any machine: what other targets are compared with. It has openmp's figures, so that
both run the same program up to lower-to-intra, and no fusion, so that each step does one thing.
"""

from dataclasses import replace

from .openmp import OPENMP

REFERENCE = replace(
    OPENMP,
    name="reference",
    about="plain C99: one loop nest a step, no threads, no vectors",
    printer="gnnc.codegen.reference.printer",
    steps=("intra.traverse",),
    # updates are written by the call itself, as openmp's mostly are: one that the runtime copies
    # into its place after the call is missed where a checkpoint stops the call early
    tail=("update-in-place", "plan-memory"),
)
