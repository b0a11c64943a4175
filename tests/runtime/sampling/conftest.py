from collections.abc import Iterator

import pytest

from gnnc.runtime.cpu import toolchain
from gnnc.runtime.sampling import kernels

# with a grain of one node, small batches are shared among all threads, three nodes at a time
FINE = "#define GRAIN 1\n#define SHARE 3\n"


@pytest.fixture
def fine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    library = kernels.bind(toolchain.compile_source(FINE + kernels.source()))
    monkeypatch.setattr(kernels, "library", lambda: library)
    yield
