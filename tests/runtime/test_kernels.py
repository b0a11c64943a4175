import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from gnnc.runtime.cpu import threads, toolchain
from gnnc.runtime.sets.sets import kernels

from .kernel_checks import check_all, check_group
from .multigraphs import Multigraph, multigraphs, random_multigraph

# with a grain of one item, small inputs are shared among all threads
FINE = "#define GRAIN 1\n"
# with narrow buckets there are as many as for more keys than a test has memory for
NARROW = "#define WIDEST 1\n#define SMALL 0\n"


@pytest.fixture(params=["", FINE, NARROW + FINE], ids=["coarse", "fine", "narrow"])
def threaded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    library = kernels.bind(toolchain.compile_source(request.param + kernels.source()))
    monkeypatch.setattr(kernels, "_library", lambda: library)
    yield
    threads.set_num_threads(None)


@pytest.mark.parametrize("count", [1, 2, 5])
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(graph=multigraphs())
def test_against_numpy(threaded: None, count: int, graph: Multigraph):
    threads.set_num_threads(count)
    check_all(graph, np.random.default_rng(graph.edges))


@pytest.mark.parametrize("shape", ["uniform", "hub"])
def test_larger_graphs(threaded: None, shape: str):
    rng = np.random.default_rng(0)
    check_all(random_multigraph(rng, 20_000, 100_000, shape), rng)


def test_no_rows_no_keys(threaded: None):
    check_group(np.empty(0, np.int64), 0)


def test_more_threads_than_openmp_gives(threaded: None):
    """Fewer threads than asked for may run; the result must not depend on it."""
    code = f"""
import numpy as np
from gnnc.runtime.cpu import threads, toolchain
from gnnc.runtime.sets import kernels
library = kernels.bind(toolchain.compile_source({FINE!r} + kernels.source()))
kernels._library = lambda: library
threads.set_num_threads(16)
keys = np.random.default_rng(0).integers(0, 50, 1000)
ptr, rows = kernels.group(keys, 50)
assert (rows == np.argsort(keys, kind="stable")).all()
runs = kernels.runs([kernels.narrow(keys, 50)], [50])
assert runs.found == 50 and (np.diff(runs.start) == np.bincount(keys)).all()
assert (kernels.where(keys > 20) == np.flatnonzero(keys > 20)).all()
"""
    env = {**os.environ, "OMP_THREAD_LIMIT": "3", "OMP_DYNAMIC": "true"}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=120)


def test_wrong_index_is_named(threaded: None):
    with pytest.raises(IndexError, match=r"edge_index\[0\]\[2\] is 9, .* between 0 and 4"):
        kernels.narrow(np.array([0, 4, 9, 11]), 5, what="edge_index[0]")
    with pytest.raises(IndexError, match=r"x\[1\] is -1"):
        kernels.narrow(np.array([0, -1]), 5, what="x")
    with pytest.raises(IndexError, match=r"x\[0\] is 4294967296"):
        kernels.narrow(np.array([2**32]), 5, what="x")
    with pytest.raises(IndexError, match=r"x\[0\] is 0, .* empty"):
        kernels.narrow(np.array([0]), 0, what="x")


def test_first_wrong_index_is_shown(threaded: None):
    values = np.zeros(100_000, np.int64)
    values[[70_000, 99_999]] = -5
    threads.set_num_threads(4)
    with pytest.raises(IndexError, match=r"\[70000\] is -5"):
        kernels.narrow(values, 5)


def test_more_rows_than_int32_numbers():
    many = np.broadcast_to(np.int64(0), 2**31)  # takes no memory
    with pytest.raises(ValueError, match=r"edge_index\[0\] is 2147483648, .* 2\*\*31 - 1"):
        kernels.narrow(many, 1, what="edge_index[0]")
    with pytest.raises(ValueError, match="the number of rows to group is 2147483648"):
        kernels.group(many, 1)


def test_other_integer_types():
    for dtype in (np.int8, np.uint8, np.int16, np.uint32):
        narrow = kernels.narrow(np.array([3, 1], dtype), 4)
        assert narrow.dtype == np.int32
        assert narrow.tolist() == [3, 1]
    np.testing.assert_array_equal(kernels.narrow(np.arange(10)[::3], 10), [0, 3, 6, 9])
    with pytest.raises(TypeError, match="src must hold integers .* float64"):
        kernels.narrow(np.zeros(3), 4, what="src")
    with pytest.raises(TypeError, match="bool"):
        kernels.narrow(np.zeros(3, np.bool_), 4)
    with pytest.raises(ValueError, match=r"one dimension, got shape \(3, 1\)"):
        kernels.narrow(np.zeros((3, 1), np.int64), 4)


def test_a_copy_is_made_of_int32():
    mine = np.array([1, 2], np.int32)
    checked = kernels.narrow(mine, 3)
    mine[0] = 77
    assert checked.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        checked[0] = 5


def test_kernels_check_every_index(threaded: None):
    def array(*values: int) -> np.ndarray:
        return np.array(values, np.int32)

    with pytest.raises(IndexError):
        kernels.group(array(0, 7), 2)
    with pytest.raises(IndexError, match=r"key\[1\] is -1"):
        kernels.group(array(0, -1), 2)
    with pytest.raises(IndexError):
        kernels.group(array(0, 1), 2, array(0, 2))
    with pytest.raises(ValueError, match="order has 1 entries for 2 rows"):
        kernels.group(array(0, 1), 2, array(0))
    with pytest.raises(IndexError, match=r"\[1\] is 3, but the table it reads has 2 rows"):
        kernels.take(array(5, 6), array(0, 3))
    with pytest.raises(IndexError, match=r"src\[1\] is 4"):
        kernels.last_loop(array(0, 4), array(1, 4), 2)
    with pytest.raises(ValueError, match=r"2\*\*31"):
        kernels.group(array(0), 2**31)
    with pytest.raises(ValueError, match="at least one key"):
        kernels.runs([], [])


SANITIZED = f"""
import sys
import numpy as np
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from gnnc.runtime.cpu import threads
from gnnc.runtime.sets import kernels
from pathlib import Path
library = kernels.bind(Path(sys.argv[1]))
kernels._library = lambda: library
from gnnc.runtime.sets.arrangement import Arrangement, Order
from runtime.kernel_checks import check_all
from runtime.multigraphs import random_multigraph
rng = np.random.default_rng(0)
for count in (1, 3):
    threads.set_num_threads(count)
    for nodes in (1, 2, 50, 3000):
        for edges in (0, 1, 7, 300):
            for shape in ("uniform", "hub", "sparse", "loops"):
                check_all(random_multigraph(rng, nodes, edges, shape), rng)
keys = np.array([0, 5, -1], np.int32)
for wrong in (lambda: kernels.group(keys, 2), lambda: kernels.take(keys, keys + 1),
              lambda: kernels.group(abs(keys), 6, keys), lambda: kernels.last_loop(keys, keys, 2)):
    try:
        wrong()
    except (IndexError, ValueError):
        continue
    raise SystemExit("a wrong index was accepted")
both = Arrangement(("a", "b"), (Order(0, False, (1,)), Order(1, True, ())))
if both.arranged([keys + 1, keys], [7, 2]) != 1:
    raise SystemExit("a wrong index of a set was accepted")
print("all checks passed")
"""


@pytest.mark.sanitize
def test_under_sanitizers():
    path = toolchain.compile_source(FINE + kernels.source(), sanitize=True)
    done = subprocess.run(
        [sys.executable, "-c", SANITIZED, str(path)],
        env={**os.environ, **toolchain.sanitizer_environment()},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "all checks passed"
