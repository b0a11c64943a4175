"""Children that take turns: one that is out is asked no more."""

from typing import Any, cast

import pytest

from gnnc.bench import turns
from gnnc.frontend.tools.children import Child, ChildFailed, Message, Refused
from gnnc.runtime.cpu.heap import PLAIN_TORCH


class Answering:
    """Fails, with this error, from a question on."""

    def __init__(self, error: Exception | None = None, at: int = 0) -> None:
        self.error, self.at, self.asked, self.ended = error, at, 0, 0

    def ask(self, question: Message) -> Message:
        self.asked += 1
        if self.error is not None and self.asked > self.at:
            raise self.error
        return {"number": self.asked, **question}

    def end(self) -> None:
        self.ended += 1


def test_who_is_out_stays_out(capsys: pytest.CaptureFixture[str]):
    children = {
        "good": Answering(),
        "refusing": Answering(Refused("not here")),
        "failing": Answering(ChildFailed("ended"), at=2),
    }
    racing = turns.Turns(cast(dict[str, Child], children))
    assert set(racing.prepare(dict.fromkeys(children, {}))) == {"good", "failing"}
    for number in range(2):
        racing.turn({"turn": number})
    assert racing.answers == {"good": [{"number": 2, "turn": 0}, {"number": 3, "turn": 1}]}
    assert racing.absent == {"refusing": "not here", "failing": "ended"}
    assert {n: (c.asked, c.ended) for n, c in children.items()} == {
        "good": (3, 0),
        "refusing": (1, 1),
        "failing": (3, 1),
    }
    assert "refusing is out: not here" in capsys.readouterr().err


def test_what_children_are_given(monkeypatch: pytest.MonkeyPatch):
    """Threads; and others than gnnc have torch as it is by itself."""
    started: list[dict[str, str]] = []

    class Started(Answering):
        def __init__(self, module: str, *, environment: dict[str, str]) -> None:
            super().__init__()
            started.append(environment)

        def __enter__(self) -> "Started":
            return self

        def __exit__(self, *_: Any) -> None:
            pass

    monkeypatch.setattr(turns, "Child", Started)
    with turns.turns("module", {"gnnc-workers": "gnnc", "other": "dgl"}, 3):
        pass
    assert started == [{"OMP_NUM_THREADS": "3"}, {**PLAIN_TORCH, "OMP_NUM_THREADS": "3"}]
