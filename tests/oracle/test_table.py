"""docs/ops.md says what is."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from . import table  # noqa: E402
from .samples import database  # noqa: E402

DRAWN = ("add", "cat", "index_add", "nn.functional.gelu", "sort")


def test_every_op_is_in_the_table():
    assert table.stated().keys() == database().keys()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", DRAWN)
def test_the_table_is_current(name: str):
    found = table.line(database()[name])
    assert table.stated()[name] == (str(found) if found.compiles else "in torch"), "run make ops"
