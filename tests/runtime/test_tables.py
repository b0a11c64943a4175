"""Tables of sets: what they hold however they are made, and what is kept meanwhile."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from gnnc.runtime.cpu.memory import HOST
from gnnc.runtime.sets import arrangement
from gnnc.runtime.sets.arrangement import Arrangement, Order
from gnnc.runtime.sets.sets import MapData, SetData
from gnnc.runtime.sets.tables import Tables, sets_of_tables

from .multigraphs import Multigraph, multigraphs

CODOMAINS = {"g": {"src": "n", "dst": "n", "rel": "r"}, "n": {"kind": "k"}, "r": {}, "k": {}}


def sets_of(graph: Multigraph) -> dict[str, SetData]:
    maps = {
        "src": MapData.of(graph.src, graph.nodes),
        "dst": MapData.of(graph.dst, graph.nodes),
        "rel": MapData.of(graph.rel, graph.relations),
    }
    kind = MapData.of(np.arange(graph.nodes) % 3, 3)
    return {
        "g": SetData(graph.edges, maps),
        "n": SetData(graph.nodes, {"kind": kind}),
        "r": SetData(graph.relations),
        "k": SetData(3),
    }


def spec(kind: str, along: str, *, keys: tuple[str, ...] = (), **more: Any) -> Mapping[str, Any]:
    return {"kind": kind, "domain": ["g", list(keys)], "along": along.split(), **more}


SPECS = (
    spec("member_map", "dst", path="src"),
    spec("member_map", "dst", path="src.kind"),
    spec("member_map", "src", path="dst"),
    spec("members", "src"),
    spec("witness", "dst"),
    spec("offsets", "dst"),
    spec("offsets", "src.kind"),
    spec("member_map", "src.kind", path="src"),
    spec("member_map", "rel src", path="dst"),
    spec("members", "rel src"),
    spec("member_map", "rel", keys=("rel", "src"), path="src"),
    {"kind": "index_map", "domain": ["g", []], "path": "dst.kind"},
    {"kind": "pair_index", "domain": ["g", ["rel", "src"]]},
)


@settings(max_examples=30, deadline=None)
@given(graph=multigraphs())
def test_all_at_once_or_one_by_one(graph: Multigraph):
    together = Tables(sets_of(graph), CODOMAINS)
    together.make(SPECS)
    for s in SPECS:
        alone = Tables(sets_of(graph), CODOMAINS).table(s)
        np.testing.assert_array_equal(together.table(s), alone, str(s), strict=True)
        assert together.table(s) is together.table(dict(s))
    rows = np.argsort(graph.dst, kind="stable")
    np.testing.assert_array_equal(together.table(SPECS[0]), graph.src[rows])


DIRECT = Arrangement.of("g", ["src", "dst", "rel"], SPECS)


@settings(max_examples=30, deadline=None)
@given(graph=multigraphs())
def test_of_a_set_arranged_at_once(graph: Multigraph):
    sets = sets_of(graph)
    assert DIRECT is not None
    arranged = DIRECT.of_set(sets["g"])
    assert arranged is not None
    before = [x.copy() for _, rows, taken in arranged.orders for x in (*taken, rows)]
    at_once = Tables(sets, CODOMAINS)
    at_once.have("g", DIRECT, arranged)
    at_once.make(SPECS)
    for s in SPECS:
        one_by_one = Tables(sets_of(graph), CODOMAINS).table(s)
        np.testing.assert_array_equal(at_once.table(s), one_by_one, str(s), strict=True)
    after = [x for _, rows, taken in arranged.orders for x in (*taken, rows)]
    for x, y in zip(before, after, strict=True):  # others may have them too
        np.testing.assert_array_equal(x, y)


def test_what_is_arranged():
    def of(*specs: Mapping[str, Any]) -> tuple[Order, ...]:
        found = Arrangement.of("g", ["src", "dst"], specs)
        return () if found is None else found.orders

    of_rows = spec("member_map", "dst", path="src.kind")
    assert of(spec("offsets", "dst"), spec("member_map", "dst", path="src")) == (
        Order(1, False, (0,)),
    )
    assert of(spec("offsets", "src")) == (Order(0, True, ()),)
    assert of(of_rows) == of(spec("members", "dst")) == (Order(1, True, ()),)
    assert of(spec("offsets", "src.kind"), spec("members", "src dst")) == ()


def test_sets_that_are_not_small_or_not_given_are_not_arranged(monkeypatch: pytest.MonkeyPatch):
    assert DIRECT is not None
    graph = Multigraph(3, 3, *(np.arange(6) % 3 for _ in range(3)))
    read = sets_of(graph)["g"]
    read.check()
    assert DIRECT.of_set(read) is None
    monkeypatch.setattr(arrangement, "LARGEST", 5)
    assert DIRECT.of_set(sets_of(graph)["g"]) is None


def test_a_wrong_index_of_a_set_that_is_arranged_is_named():
    assert DIRECT is not None
    graph = Multigraph(3, 3, *(np.arange(6) % 3 for _ in range(3)))
    graph.dst[4] = 3
    with pytest.raises(IndexError, match=r"edges\[1\]\[4\] is 3, .* between 0 and 2"):
        maps = sets_of(graph)["g"].maps | {"dst": MapData.of(graph.dst, 3, what="edges[1]")}
        DIRECT.of_set(SetData(6, maps))


def test_rows_of_a_group_go_with_the_last_table():
    graph = Multigraph(3, 3, *(np.arange(6) % 3 for _ in range(3)))
    for specs in itertools.permutations(SPECS[:3]):
        tables = Tables(sets_of(graph), CODOMAINS)
        tables.make(specs)
        for along in ("dst", "src"):
            with pytest.raises(RuntimeError, match="given up"):
                _ = tables.group(["g", []], [along]).rows


@pytest.mark.parametrize("order", [("own", "src"), ("src", "own")])
def test_an_identity_of_a_group_is_not_written_over(order: tuple[str, str]):
    """Its table is the rows of the group, which no other table may take."""
    rng = np.random.default_rng(0)
    graph = Multigraph(5, 3, *(rng.integers(0, n, 40) for n in (5, 5, 3)))
    sets = sets_of(graph)
    sets["g"] = sets["g"].with_maps({"own": MapData.identity(40)})
    codomains = {**CODOMAINS, "g": {**CODOMAINS["g"], "own": "g"}}
    tables = Tables(sets, codomains)
    own, src = (spec("member_map", "dst", path=p) for p in ("own", "src"))
    tables.make([{"own": own, "src": src}[p] for p in order])
    rows = np.argsort(graph.dst, kind="stable")
    np.testing.assert_array_equal(tables.table(own), rows)
    np.testing.assert_array_equal(tables.table(src), graph.src[rows])


@pytest.mark.parametrize("made_together", [False, True])
def test_maps_of_rows_in_the_order_of_their_groups_are_not_copied(made_together: bool):
    """As the edges of a sampled batch lie by target."""
    dst = np.array([0, 0, 2, 2, 2, 4])
    graph = Multigraph(5, 3, np.arange(6) % 5, dst, np.arange(6) % 3)
    tables = Tables(sets_of(graph), CODOMAINS)
    specs = spec("member_map", "dst", path="src"), spec("members", "dst"), spec("offsets", "dst")
    if made_together:
        tables.make(specs)
    src = tables.sets["g"].map("src").array
    assert np.shares_memory(tables.table(specs[0]), src)
    assert tables.group(["g", []], ["dst"]).in_order
    assert not tables.group(["g", []], ["src"]).in_order
    assert tables.uploaded(specs[1], HOST)[0] is None
    assert tables.table(specs[2]).tolist() == [0, 2, 2, 5, 5, 6]


def test_what_stays_of_settled_tables():
    graph = Multigraph(3, 3, *(np.arange(6) % 3 for _ in range(3)))
    tables = Tables(sets_of(graph), CODOMAINS)
    tables.make(SPECS)
    gone = weakref.ref(tables.sets["g"].map("src").array)
    table = tables.table(SPECS[0])
    tables.settle()
    assert gone() is None
    assert tables.size(["g", []]) == 6 and tables.size(["g", ["src"]]) == 3
    assert tables.size(["g", ["rel", "src"]]) == 3
    assert tables.table(spec("offsets", "dst")).tolist() == [0, 2, 4, 6]
    cuts = spec("cuts", "dst", row_cost=1, grain=4, chunks=9)
    assert tables.table(cuts)[-1] == 3
    assert table.tolist() == [0, 0, 1, 1, 2, 2]
    with pytest.raises(RuntimeError, match="given up"):
        tables.table(SPECS[0])


def test_which_sets_are_read():
    sizes = [{"kind": "input", "domain": ["g", []]}, {"kind": "output", "domain": ["n", ["kind"]]}]
    assert sets_of_tables(sizes, CODOMAINS) == set()
    pairs = {"kind": "input", "domain": ["g", ["rel", "src"]]}
    assert sets_of_tables([*sizes, pairs], CODOMAINS) == {"g", "n", "r", "k"}
    of_nodes = {"kind": "offsets", "domain": ["n", []], "along": ["kind"]}
    assert sets_of_tables([*sizes, of_nodes], CODOMAINS) == {"n", "k"}
