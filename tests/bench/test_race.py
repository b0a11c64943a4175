"""What a race gives its contestants."""

import argparse
from typing import Any

import pytest

from gnnc.bench import race
from gnnc.frontend.tools.children import Refused
from gnnc.runtime.cpu.heap import PLAIN_TORCH


def test_peers_have_torch_as_it_is_without_gnnc(monkeypatch: pytest.MonkeyPatch):
    started: list[dict[str, str] | None] = []

    class Refusing:
        def __init__(self, module: str, *, environment: dict[str, str] | None, **_: Any):
            started.append(environment)

        def __enter__(self):
            return self

        def __exit__(self, *_: object) -> None:
            pass

        end = __exit__

        def ask(self, question: Any) -> Any:
            raise Refused("not here")

    monkeypatch.setattr(race, "Child", Refusing)
    names = ("gnnc", "gnnc-step", "pyg", "dgl", "floor")
    parser = argparse.ArgumentParser()
    race.add_arguments(parser)
    args = parser.parse_args(["--models", "gcn", "--graphs", "tiny", "--contestants", *names])
    (result,) = race.measure(args)
    assert result["absent"] == {}
    assert all(r["error"] == "not here" for r in result["results"].values())
    assert started == [None, None, PLAIN_TORCH, PLAIN_TORCH, PLAIN_TORCH]
    args.inference = True
    (result,) = race.measure(args)
    assert result["absent"] == {"floor": "it trains"}
    assert "gcn, inference, 3 layers" in race.report(result)
