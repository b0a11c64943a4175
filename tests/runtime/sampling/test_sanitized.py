"""No sampler leaves its buffers, and none has undefined behaviour."""

import os
import subprocess
import sys

import pytest

from gnnc.runtime.cpu import toolchain
from gnnc.runtime.sampling import kernels

from .conftest import FINE


@pytest.mark.sanitize
def test_under_sanitizers():
    path = toolchain.compile_source(FINE + kernels.source(), sanitize=True)
    done = subprocess.run(
        [sys.executable, "-m", "gnnc.tests.runtime.sampling.exercise", str(path)],
        env={**os.environ, **toolchain.sanitizer_environment()},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "all samplers ran"
