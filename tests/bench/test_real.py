"""Real data: a folder that is not there or does not fit is refused in words that name it."""

import argparse
from pathlib import Path

import pytest

from gnnc.bench import race
from gnnc.bench.command import PARTS
from gnnc.bench.graphs import GRAPHS, Real, tasks
from gnnc.bench.real import prepared
from gnnc.frontend.tools.children import Refused

REAL = [name for name, graph in GRAPHS.items() if isinstance(graph, Real)]


def fb15k(folder: Path) -> None:
    """A data set of the same form with three nodes and two edges."""
    raw = folder / GRAPHS["fb15k-237"].folder / "raw"
    raw.mkdir(parents=True)
    (raw / "entities.dict").write_text("0\ta\n1\tb\n2\tc\n")
    (raw / "relations.dict").write_text("0\tlikes\n1\tknows\n")
    (raw / "train.txt").write_text("a\tknows\tb\nc\tlikes\ta\n")
    for name in ("valid.txt", "test.txt"):
        (raw / name).write_text("a\tlikes\tb\n")


@pytest.mark.parametrize("name", REAL)
def test_without_a_folder(name: str):
    with pytest.raises(Refused, match=f"--graphs {name}: .* with --data FOLDER"):
        with prepared(name, None):
            pass


@pytest.mark.parametrize("name", REAL)
def test_with_a_folder_that_lacks_it(name: str, tmp_path: Path):
    with pytest.raises(Refused, match=f"--data {tmp_path}: {name} needs .*raw.* not there"):
        with prepared(name, str(tmp_path)):
            pass


def test_drawn_graphs_need_none():
    with prepared("fb15k-like", None) as file:
        assert file is None


def test_data_of_another_size(tmp_path: Path):
    fb15k(tmp_path)
    with pytest.raises(Refused, match="has {'nodes': 3, 'edges': 4, 'relations': 4} there"):
        with prepared("fb15k-237", str(tmp_path)):
            pass
    assert not list(tmp_path.rglob("processed")), "PyG writes beside a copy"


def test_nothing_is_measured_before_all_is_there():
    parser = argparse.ArgumentParser()
    PARTS[0].add_arguments(parser)
    args = parser.parse_args(["--models", "rgcn", "--graphs", "tiny-relations", "aifb"])
    with pytest.raises(Refused, match="aifb"):
        next(race.measure(args))


def test_models_go_with_graphs_of_their_kind():
    assert list(tasks(["gcn", "rgcn"], None)) == [("arxiv-like", "gcn"), ("fb15k-like", "rgcn")]
    chosen = list(tasks(["gcn", "rgcn", "gat"], ["aifb-like", "tiny"]))
    assert chosen == [("aifb-like", "rgcn"), ("tiny", "gcn"), ("tiny", "gat")]
    with pytest.raises(Refused, match="--graphs tiny:"):
        list(tasks(["rgcn"], ["aifb-like", "tiny"]))
    with pytest.raises(Refused, match="--models rgcn:"):
        list(tasks(["gcn", "rgcn"], ["tiny"]))
