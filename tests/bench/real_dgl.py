"""DGL beside today's torch, for tests that need it."""

import pytest

from gnnc.bench import dgl_shim


def needs_dgl() -> None:
    """Lets DGL be imported; skips the test where it is not installed."""
    dgl_shim.install()
    pytest.importorskip("dgl")
