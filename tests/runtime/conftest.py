"""Tests of the runtime keep their compiled code out of the user's cache."""

from pathlib import Path

import pytest

from gnnc.tests.session import session_cache

__all__ = ["cache_root", "session_cache"]


@pytest.fixture
def cache_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for one test."""
    monkeypatch.setenv("GNNC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
