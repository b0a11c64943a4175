"""Ranks that run other code than the rest are found out by `gnnc.distribute`, and named."""

from __future__ import annotations

from pathlib import Path

import pytest

import gnnc
from gnnc.frontend import compiler
from gnnc.frontend.torch.ranks import same_code
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.errors import Disagreement

from .cut_models import graph, net


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("gnnc_version", "the version of gnnc"),
        ("source", "the source of gnnc"),
        ("torch_version", "the version of torch"),
    ],
)
def test_other_code_on_a_rank(monkeypatch: pytest.MonkeyPatch, name: str, what: str) -> None:
    usual = getattr(same_code, name)
    monkeypatch.setattr(same_code, name, lambda: usual() + ".1" * (gnnc.rank() == 1))
    data, model = graph(5, 9), net("gcn")

    def work(_: object) -> None:
        with pytest.raises(Disagreement, match=f"ranks differ in {what}: rank 1 from ranks 0 and"):
            gnnc.distribute(model, data)

    virtual.run(3, work)


def test_the_source_is_that_of_compiler_and_runtime(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder in (*compiler._COMPILER_FOLDERS, "runtime"):
        (tmp_path / folder).mkdir()
    monkeypatch.setattr(compiler, "_PACKAGE", tmp_path)
    read = compiler.source_hash.__wrapped__
    found = [read()]
    for file in ("passes/a.py", "runtime/ranks.py", "runtime/b.c"):
        (tmp_path / file).write_text("x = 1\n")
        found.append(read())
    (tmp_path / "runtime/b.c").write_text("x = 2\n")
    found.append(read())
    assert len(set(found)) == len(found)
    (tmp_path / "runtime/b.pyc").write_text("x = 2\n")
    assert read() == found[-1]
