import numpy as np
import pytest
from hypothesis import given, settings

from gnnc.runtime.sets.sets import MapData, SetData
from gnnc.runtime.sets.structure import STEPS, Step, run_plan

from .multigraphs import Multigraph, multigraphs


def nodes_and_edges(graph: Multigraph) -> dict[str, SetData | np.ndarray]:
    n = graph.nodes
    maps = {"src": MapData.of(graph.src, n), "dst": MapData.of(graph.dst, n)}
    maps["rel"] = MapData.of(graph.rel, graph.relations)
    return {"N": SetData(n), "R": SetData(graph.relations), "g": SetData(graph.edges, maps)}


def step(name: str, inputs: str = "", output: str = "y", **attrs) -> Step:
    return Step(name, tuple(inputs.split()), (output,), attrs)


def run(name: str, *inputs, **attrs):
    """One step on values."""
    names = [f"x{i}" for i in range(len(inputs))]
    plan = [step(name, " ".join(names), **attrs)]
    return run_plan(plan, dict(zip(names, inputs, strict=True)), keep=["y"])["y"]


def rows(*values, dtype=np.int64) -> np.ndarray:
    return np.array(values, dtype)


REMAINING_LOOPS = [
    step("filter", "g", "g1", no_loops=True),
    step("loops", "g", "l", remaining=True),
    step("union", "g1 l", "u", maps=["src", "dst"]),
    step("at", "g1 w", "w1", path=["parent"]),
    step("const", "", "one", value=1, shape=[], elem="i64"),
    step("at", "l w one", "w2", path=["old"]),
    step("stack", "u w1 w2", "wu"),
    step("reduce", "u wu", "degree", kind="sum", along=["dst"]),
    step("count", "u", "count", along=["dst"]),
    step("index", "u", "src", path=["src"]),
    step("part", "u wu", "back", index=1),
]


@settings(max_examples=40, deadline=None)
@given(graph=multigraphs())
def test_add_remaining_self_loops(graph: Multigraph):
    """What PyG's gcn_norm does to a weighted graph."""
    weight = np.arange(2, graph.edges + 2)
    found = run_plan(REMAINING_LOOPS, {**nodes_and_edges(graph), "w": weight})
    keep = graph.src != graph.dst
    nodes = np.arange(graph.nodes)
    src = np.concatenate([graph.src[keep], nodes])
    dst = np.concatenate([graph.dst[keep], nodes])
    loop = np.ones(graph.nodes, np.int64)
    for edge in np.flatnonzero(~keep):
        loop[graph.src[edge]] = weight[edge]
    full = np.concatenate([weight[keep], loop])
    degree = np.zeros(graph.nodes, np.int64)
    np.add.at(degree, dst, full)
    np.testing.assert_array_equal(found["src"], src)
    np.testing.assert_array_equal(found["wu"], full)
    np.testing.assert_array_equal(found["degree"], degree)
    np.testing.assert_array_equal(found["count"], np.bincount(dst, minlength=graph.nodes))
    np.testing.assert_array_equal(found["back"], loop)
    union = found["u"]
    assert isinstance(union, SetData)
    assert union.parts == (keep.sum(), graph.nodes)
    assert sorted(union.maps) == ["dst", "src"]


@settings(max_examples=30, deadline=None)
@given(graph=multigraphs())
def test_attach_and_filter_by_mask(graph: Multigraph):
    plan = [
        step("slice", "edge_index", "s0", dim=0, lo=0, hi=1),
        step("reshape", "s0", "s1", shape=[graph.edges]),
        step("as_rows", "E s1", "s"),
        step("slice", "edge_index", "d0", dim=0, lo=1, hi=2),
        step("reshape", "d0", "d1", shape=[graph.edges]),
        step("as_rows", "E d1", "d"),
        step("attach", "E s d N N", "g", maps=["src", "dst"], what=["row 0", "row 1"]),
        step("at", "g label", "a", path=["src"]),
        step("at", "g label", "b", path=["dst"]),
        step("eq", "a b", "same"),
        step("filter", "g same", "h"),
        step("index", "h", "src", path=["src"]),
        step("index", "h", "parent", path=["parent"]),
        step("index", "h g", "parent_dst", path=["parent", "dst"]),
    ]
    label = np.arange(graph.nodes) % 3
    env = {
        "E": SetData(graph.edges),
        "N": SetData(graph.nodes),
        "edge_index": np.stack([graph.src, graph.dst])[None],
        "label": label,
    }
    found = run_plan(plan, env, keep=["src", "parent", "parent_dst"])
    assert set(found) == {"src", "parent", "parent_dst"}
    kept = np.flatnonzero(label[graph.src] == label[graph.dst])
    np.testing.assert_array_equal(found["src"], graph.src[kept])
    np.testing.assert_array_equal(found["parent"], kept)
    np.testing.assert_array_equal(found["parent_dst"], graph.dst[kept])


def reduced(kind: str, x: np.ndarray, index: np.ndarray, count: int) -> np.ndarray:
    empty = 1 if kind == "mul" else 0
    out = np.full((count, *x.shape[1:]), empty, np.float64)
    whole = {"sum": np.sum, "mean": np.mean, "mul": np.prod, "max": np.max, "min": np.min}[kind]
    for k in range(count):
        if (index == k).any():
            out[k] = whole(x[index == k], axis=0)
    return out


@pytest.mark.parametrize("kind", ["sum", "mean", "mul", "max", "min"])
@settings(max_examples=15, deadline=None)
@given(graph=multigraphs())
def test_reduce(kind: str, graph: Multigraph):
    g = nodes_and_edges(graph)["g"]
    x = np.random.default_rng(0).integers(-2, 3, (graph.edges, 2)).astype(np.float64)
    tuples = np.stack([graph.rel, graph.src], 1)
    _, classes = np.unique(tuples, axis=0, return_inverse=True)
    for along, index, count in (
        (["dst"], graph.dst, graph.nodes),
        ([], np.zeros(graph.edges, int), 1),
        (["rel", "src"], classes.reshape(-1), len(np.unique(tuples, axis=0))),
    ):
        found = run("reduce", g, x, kind=kind, along=along)
        np.testing.assert_allclose(found, reduced(kind, x, index, count))


@settings(max_examples=30, deadline=None)
@given(graph=multigraphs())
def test_domains(graph: Multigraph):
    g = nodes_and_edges(graph)["g"]
    tuples = np.unique(np.stack([graph.rel, graph.src], 1), axis=0)
    by_relation = 10 * np.arange(graph.relations)
    on_edges = run("read", g, by_relation, **{"from": ["rel"], "to": None})
    np.testing.assert_array_equal(on_edges, 10 * graph.rel)
    on_pairs = run("read", g, by_relation, **{"from": ["rel"], "to": ["rel", "src"]})
    np.testing.assert_array_equal(on_pairs, 10 * tuples[:, 0])
    from_pairs = run("read", g, tuples[:, 1], **{"from": ["rel", "src"], "to": None})
    np.testing.assert_array_equal(from_pairs, graph.src)
    everywhere = run("read", g, rows(7), **{"from": [], "to": ["src"]})
    np.testing.assert_array_equal(everywhere, np.full(graph.nodes, 7))
    per_source = run("count", g, along=["src"], over=["rel", "src"])
    np.testing.assert_array_equal(per_source, np.bincount(tuples[:, 1], minlength=graph.nodes))


def test_a_path_and_its_beginning_agree_on_rows_no_edge_reads():
    kind = SetData(3, {"tag": MapData.of(rows(1, 0, 1), 2)})
    g = SetData(2, {"src": MapData.of(rows(0, 0), 3)})
    derived = run("derive", g, kind, path=["src", "tag"])
    assert derived.map("src.tag").array.tolist() == [1, 1]
    read = run("read", derived, rows(5, 6), **{"from": ["src.tag"], "to": ["src"]})
    assert read.tolist() == [6, 5, 6]
    total = run("reduce", derived, rows(1, 2, 4), kind="sum", along=["src.tag"], over=["src"])
    assert total.tolist() == [2, 5]


def test_last():
    g = SetData(4, {"src": MapData.of(rows(2, 0, 2, 2), 3)})
    x, y = rows(10, 11, 12, 13), rows(-1)
    assert run("reduce", g, x, y, kind="last", along=["src"]).tolist() == [11, -1, 13]
    with pytest.raises(TypeError, match="cast them first"):
        run("reduce", g, x > 0, kind="sum", along=["src"])
    assert run("reduce", g, x > 12, kind="max", along=["src"]).tolist() == [False, False, True]


def test_partial_map_leaves_rows_out():
    g = SetData(3, {"old": MapData.of(rows(1, -1, 1), 2, partial=True)})
    assert run("reduce", g, rows(1, 2, 4), kind="sum", along=["old"]).tolist() == [0, 5]
    assert run("count", g, along=["old"]).tolist() == [0, 2]
    assert run("at", g, rows(7, 8), rows(0), path=["old"]).tolist() == [8, 0, 8]
    two = run("at", g, rows([1, 2], [3, 4]), rows(0), path=["old"])
    assert two.tolist() == [[3, 4], [0, 0], [3, 4]]
    with pytest.raises(ValueError, match="partial map needs a value"):
        run("at", g, rows(7, 8), path=["old"])
    empty = SetData(2, {"old": MapData.of(rows(-1, -1), 0, partial=True)})
    assert run("at", empty, np.empty(0, int), rows(3), path=["old"]).tolist() == [3, 3]


def test_sizes():
    assert run("range", size=3).size == 3
    assert run("sized", rows(4)).size == 4
    assert run("size", SetData(5)).tolist() == [5]
    assert run("iota", SetData(3)).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="is -1, but it must be between 0"):
        run("sized", rows(-1))


def test_row_shapes():
    x = np.arange(12).reshape(2, 2, 3)
    np.testing.assert_array_equal(run("transpose", x, order=[1, 0]), x.transpose(0, 2, 1))
    np.testing.assert_array_equal(run("reshape", x, shape=[6]), x.reshape(2, 6))
    np.testing.assert_array_equal(run("slice", x, dim=1, lo=0, hi=3, step=2), x[:, :, ::2])
    np.testing.assert_array_equal(run("row_reduce", x, kind="max", dims=[1]), x.max(2))
    np.testing.assert_array_equal(run("row_reduce", x, kind="sum", dims=[0, 1]), x.sum((1, 2)))
    assert run("broadcast", rows(1, 2), shape=[3]).shape == (2, 3)
    np.testing.assert_array_equal(
        run("concat", x, x[:1], dim=0), np.concatenate([x, np.stack([x[0], x[0]])], 1)
    )
    np.testing.assert_array_equal(run("as_unit", SetData(2), x, rows=2), x[None])
    np.testing.assert_array_equal(run("as_rows", SetData(2), x[None]), x)
    with pytest.raises(ValueError, match="rows of a set of 3 rows"):
        run("as_rows", SetData(3), x[None])


def test_values():
    assert run("const", value=True, shape=[2], elem="i1").tolist() == [[True, True]]
    assert run("table", values=[[1, 2]], elem="i32").shape == (1, 1, 2)
    assert run("cast", rows(1.7, -1.7, dtype=np.float32), elem="i64").tolist() == [1, -1]
    row = rows([1, 2, 3], [4, 5, 6])
    np.testing.assert_array_equal(run("add", row, rows(10, 20)), row + [[10], [20]])
    assert run("where", rows(True, False, dtype=bool), rows(1), rows(2)).tolist() == [1, 2]
    assert run("floordiv", rows(-7), rows(2)).tolist() == [-4]
    assert run("mod", rows(-7), rows(2)).tolist() == [1]
    assert run("lt", rows(0.5, dtype=np.float32), rows(0.7, dtype=np.float32)).tolist() == [True]
    assert run("logical_not", rows(True, dtype=bool)).tolist() == [False]
    assert run("mod", rows(1), rows(0)).tolist() == [0]


def test_union_of_different_codomains():
    a, b = (SetData(n, {"src": MapData.identity(n)}) for n in (2, 3))
    with pytest.raises(ValueError, match=r"'src' into sets of different sizes: \[2, 3\]"):
        run("union", a, b, maps=["src"])


def test_a_filter_that_keeps_all_shares_the_maps():
    g = SetData(2, {"src": MapData.of(rows(0, 1), 2), "dst": MapData.of(rows(1, 0), 2)})
    kept = run("filter", g, no_loops=True)
    assert kept.map("src") is g.map("src")
    assert kept.map("parent").is_identity


def test_numbers_of_a_map_are_a_map_again_without_a_copy():
    """As in a sampled batch, whose edges lead to the rows in front."""
    g = SetData(3, {"dst": MapData.of(rows(0, 1, 1), 4)})
    plan = [
        step("index", "g", "x", path=["dst"]),
        step("attach", "g x N", "h", maps=["row"]),
        step("lt", "x one", "first"),
        step("lt", "x many", "all"),
        step("add", "x x", "twice"),
    ]
    env = {"g": g, "one": rows(1), "many": rows(2**40)}
    for size in (2, 4, 5):
        made = run_plan(plan, {**env, "N": SetData(size)})
        row = made["h"].map("row")
        assert (row.size, row.codomain, row.partial) == (3, size, False)
        assert np.shares_memory(row.array, g.map("dst").array)
    assert made["first"].tolist() == [True, False, False] and made["all"].all()
    for name, numbers in (("x", [0, 1, 1]), ("twice", [0, 2, 2])):
        assert made[name].dtype == np.int64 and made[name].tolist() == numbers
    with pytest.raises(IndexError, match=r"row\[1\] is 1, but it must be between 0 and 0"):
        run_plan(plan, {**env, "N": SetData(1)})


def test_numbers_of_a_partial_map_need_a_partial_map():
    g = SetData(2, {"old": MapData.of(rows(-1, 1), 2, partial=True)})
    plan = [step("index", "g", "x", path=["old"]), step("attach", "g x N", "h", maps=["row"])]
    with pytest.raises(IndexError, match=r"row\[0\] is -1"):
        run_plan(plan, {"g": g, "N": SetData(2)})
    plan[1] = step("attach", "g x N", "h", maps=["row"], partial=["row"])
    assert run_plan(plan, {"g": g, "N": SetData(2)})["h"].map("row").array.tolist() == [-1, 1]


def test_errors_name_the_argument_and_the_step():
    plan = [step("attach", "E x N", "g", maps=["src"], what=["batch.edge_index[0]"])]
    env = {"E": SetData(2), "N": SetData(3), "x": rows(0, 3)}
    with pytest.raises(IndexError, match=r"batch.edge_index\[0\]\[1\] is 3") as caught:
        run_plan(plan, env)
    assert "in structure step 0: g = attach(E, x, N)" in caught.value.__notes__
    with pytest.raises(ValueError, match="a value of 3 rows is used where there are 2"):
        run_plan(plan, {**env, "x": rows(0, 1, 2)})
    with pytest.raises(KeyError, match="no value named x"):
        run_plan(plan, {"E": SetData(2), "N": SetData(3)})
    with pytest.raises(ValueError, match="unknown structure step 'atach'"):
        run("atach")
    with pytest.raises(KeyError, match="makes no value named z"):
        run_plan([], {}, keep=["z"])


def test_steps_are_known():
    assert {s.name for s in REMAINING_LOOPS} <= STEPS.keys()
