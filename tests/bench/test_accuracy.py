"""`gnnc bench accuracy`: its tables and ranks, all tasks on tiny data, and on real data where that
is to be had."""

import argparse
import gzip
import json
import os
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from gnnc.bench import accuracy
from gnnc.bench.graphs import GRAPHS
from gnnc.bench.ranking import Known, reciprocal_ranks
from gnnc.frontend.tools.children import Message, Refused

DATA = os.environ.get("GNNC_DATA")
needs_rdf = pytest.mark.skipif(
    find_spec("rdflib") is None or find_spec("pandas") is None,
    reason="PyG reads AIFB with rdflib and pandas, which are not installed",
)
AIFB = pytest.param("aifb", marks=needs_rdf)
OTHERS = ("acm", "fb15k-237")


def arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    accuracy.add_arguments(parser)
    return parser.parse_args(given)


# ---------------------------------------------------------------- tiny data in the layout of PyG


def write_aifb(raw: Path) -> None:
    """Twelve persons who know others and are in one of two groups."""
    people = [f"http://x/p{i}" for i in range(12)]
    lines = [f"<{p}> <http://x/knows> <{people[(i + 3) % 12]}> ." for i, p in enumerate(people)]
    lines += [f"<{p}> <http://x/in> <http://x/g{i % 2}> ." for i, p in enumerate(people)]
    with gzip.open(raw / "aifb_stripped.nt.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    rows = [f"{p}\tg{i % 2}" for i, p in enumerate(people)]
    for name, part in (("complete", rows), ("training", rows[:8]), ("test", rows[8:])):
        suffix = "Dataset" if name == "complete" else "Set"
        text = "\n".join(["person\tlabel_affiliation", *part])
        (raw / f"{name}{suffix}.tsv").write_text(text + "\n")


def write_acm(raw: Path) -> None:
    """Six papers with features and two authors, terms without, and edges to and from papers."""
    kinds = {"0": "paper", "1": "author", "2": "term"}
    links = [(0, 1, "paper-author"), (1, 0, "author-paper"), (2, 0, "term-paper")]
    info = {
        "node.dat": {"node type": kinds},
        "link.dat": {
            "link type": {
                str(i): {"start": a, "end": b, "meaning": m} for i, (a, b, m) in enumerate(links)
            }
        },
        "label.dat": {"node type": {"0": {"0": "one", "1": "other"}}},
    }
    of_type = [0] * 6 + [1] * 2 + [2] * 2
    nodes = [f"{i}\tn{i}\t{t}" + ("\t1,0,0.5" if t < 2 else "") for i, t in enumerate(of_type)]
    edges = [(p, 6 + p % 2, 0) for p in range(6)] + [(6 + p % 2, p, 1) for p in range(6)]
    edges += [(8 + p % 2, p, 2) for p in range(6)]
    labels = [f"{p}\tn{p}\t0\t{p % 2}" for p in range(6)]
    files = {
        "info.dat": json.dumps(info),
        "node.dat": "\n".join(nodes) + "\n",
        "link.dat": "\n".join(f"{a}\t{b}\t{t}\t1.0" for a, b, t in edges) + "\n",
        "label.dat": "\n".join(labels[:4]) + "\n",
        "label.dat.test": "\n".join(labels[4:]) + "\n",
    }
    with zipfile.ZipFile(raw / "ACM.zip", "w") as archive:
        for name, text in files.items():
            archive.writestr(f"ACM/{name}", text)


def write_fb15k(raw: Path) -> None:
    """Thirty triples of three relations among nine entities."""
    for name, kind, count in (("entities", "e", 9), ("relations", "r", 3)):
        (raw / f"{name}.dict").write_text("".join(f"{i}\t{kind}{i}\n" for i in range(count)))
    triples = [f"e{i % 9}\tr{i % 3}\te{(i * i + 1) % 9}\n" for i in range(30)]
    for name, part in (("train", triples[:20]), ("valid", triples[20:25]), ("test", triples[25:])):
        (raw / f"{name}.txt").write_text("".join(part))


WRITERS = {"aifb": write_aifb, "acm": write_acm, "fb15k-237": write_fb15k}


@pytest.mark.parametrize("task", [AIFB, *(pytest.param(t, marks=pytest.mark.long) for t in OTHERS)])
def test_tiny_data(task: str, tmp_path: Path):
    folder = GRAPHS[accuracy.STUDIES[task].graph].folder
    assert folder is not None
    raw = tmp_path / folder / "raw"
    raw.mkdir(parents=True)
    WRITERS[task](raw)
    before = sorted(tmp_path.rglob("*"))
    options = ["--seeds", "1", "--epochs", "2", "--hidden", "16", "--tasks", task]
    (result,) = accuracy.measure(arguments("--data", str(tmp_path), *options))
    assert sorted(tmp_path.rglob("*")) == before  # PyG wrote elsewhere
    ours, theirs = (result["results"][way] for way in ("gnnc", "pyg"))
    assert ours["kernels"] > 0
    assert ours["in_torch"] == []
    # the same weights; dropout draws others
    rel = 1e-4 if task != "fb15k-237" else 0.1
    assert ours["first_losses"] == pytest.approx(theirs["first_losses"], rel=rel)
    for found in (ours, theirs):
        assert 0 <= found["mean"] <= 1
        assert found["median_seconds"] > 0
    assert f"test {result['metric']}" in accuracy.report(result)


# ---------------------------------------------------------------- real data


@pytest.mark.long
@pytest.mark.skipif(DATA is None, reason="GNNC_DATA does not name a folder with published data")
@pytest.mark.parametrize("task", [AIFB, *OTHERS])
def test_real_data(task: str):
    assert DATA is not None
    options = ["--seeds", "2", "--epochs", "10" if task != "fb15k-237" else "2", "--tasks", task]
    try:
        results = list(accuracy.measure(arguments("--data", DATA, *options)))
    except Refused as error:
        pytest.skip(str(error))
    assert results[0]["results"]["gnnc"]["in_torch"] == []
    losses = [results[0]["results"][way]["first_losses"] for way in ("gnnc", "pyg")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


# ---------------------------------------------------------------- ranks


def test_ranks_are_those_of_a_loop():
    random = torch.Generator().manual_seed(0)
    entities = torch.randint(-1, 2, (7, 3), generator=random).float()  # many equal scores
    queries = torch.randint(-1, 2, (40, 3), generator=random).float()
    keys = torch.randint(0, 5, (40,), generator=random)
    answers = torch.randint(0, 7, (40,), generator=random)
    known_keys, known_answers = keys[10:], answers[10:]  # some answers are not among the known
    found = reciprocal_ranks(queries, entities, answers, keys, Known(known_keys, known_answers))
    for i in range(40):
        true = {int(a) for k, a in zip(known_keys, known_answers, strict=True) if k == keys[i]}
        scores = (entities @ queries[i]).tolist()
        own = scores[answers[i]]
        others = [s for j, s in enumerate(scores) if j not in true and j != answers[i]]
        ranks = np.flatnonzero(np.sort([own, *others])[::-1] == own) + 1
        assert found[i].item() == pytest.approx(1 / ranks.mean())


# ---------------------------------------------------------------- tables and messages


def result(ours: list[float], theirs: list[float]) -> Message:
    def way(scores: list[float]) -> Message:
        found = {"mean": sum(scores) / len(scores), "spread": 0.0, "scores": scores}
        found |= {"median_seconds": 0.5, "first_seconds": 2.0, "memory": 3 << 20}
        return found | {"memory_exact": True, "kernels": 1, "in_torch": []}

    sizes = {"nodes": 10, "edges": 2000, "relations": 3, "seeds": len(ours), "epochs": 4}
    described = {"model": "rgcn", "graph": "aifb", "layers": 2, "hidden": 16, "metric": "accuracy"}
    return {
        **sizes,
        **described,
        "tolerance": 0.02,
        "results": {"gnnc": way(ours), "pyg": way(theirs)},
    }


def test_report_and_failure():
    near, far = result([0.5, 0.53], [0.5, 0.51]), result([0.5], [0.6])
    assert accuracy.difference(near) == (pytest.approx(0.01), pytest.approx(0.01))
    assert not accuracy.failed([near])
    assert accuracy.failed([near, far])
    text = accuracy.report(near)
    assert "+0.0100 ± 0.0100 (standard error); at most 0.02" in text
    assert "2,000 edges of 3 relations; 2 seeds, 4 epochs" in text
    assert "WARNING" not in text
    assert "WARNING" in accuracy.report(far)


def test_needs_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("GNNC_DATA", raising=False)
    with pytest.raises(Refused, match="--data FOLDER"):
        next(accuracy.measure(arguments()))
    with pytest.raises(Refused, match="ACM.zip, which is not there"):
        next(accuracy.measure(arguments("--tasks", "acm", "--data", str(tmp_path))))
