"""Settings of Dynamo's that hold during a call."""

from types import SimpleNamespace

import pytest
import torch
from torch._dynamo import config

from gnnc.frontend.torch.capture.settings import setter

LIMIT = 12345


def test_they_hold_and_are_set_back():
    before = config.accumulated_recompile_limit, config.suppress_errors
    set_all = setter(accumulated_recompile_limit=LIMIT, suppress_errors=True)
    outer = set_all()
    assert (config.accumulated_recompile_limit, config.suppress_errors) == (LIMIT, True)
    config.suppress_errors = False  # by somebody in between
    inner = set_all()
    assert config.suppress_errors
    inner()
    assert not config.suppress_errors
    outer()
    assert (config.accumulated_recompile_limit, config.suppress_errors) == before


def test_what_the_user_has_set_comes_back():
    with config.patch(accumulated_recompile_limit=7):
        set_back = setter(accumulated_recompile_limit=LIMIT)()
        set_back()
        assert config.accumulated_recompile_limit == 7


def test_where_torch_keeps_them_otherwise_it_sets_them(monkeypatch: pytest.MonkeyPatch):
    asked: list[dict[str, int]] = []

    def patcher(**settings: int) -> str:
        asked.append(settings)
        return "torch's"

    torchs = SimpleNamespace(_make_closure_patcher=patcher)
    monkeypatch.setattr(torch._dynamo, "config", torchs)
    assert setter(recompile_limit=1) == "torch's"
    assert asked == [{"recompile_limit": 1}]
