"""Partitioned programs on the emulated GPU, whose kernels read rows of other ranks, and add up what
these have."""

from __future__ import annotations

import pytest

from gnnc.tests.passes.programs import PROGRAMS
from gnnc.tests.passes.ranked import CUT

from ..test_partitioned import NAMES, check
from .emulated import FINE, TARGET

READS = "lower-to-intra,publish-rows,overlap-exchanges,publish-totals"
PIPELINES = "build-pipeline{{local=2 remote=2 warps=2}}"
QUICK = ("sage",)


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.long) for n in NAMES]
)
def test_programs(name: str) -> None:
    check(PROGRAMS[name], CUT, lower=READS, schedule=f"{PIPELINES},{FINE}", target=TARGET)
