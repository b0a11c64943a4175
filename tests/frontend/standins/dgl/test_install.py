"""`import dgl` finds `gnnc.dgl` where DGL is missing or fails to import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gnnc.dgl as ours
from gnnc.dgl.install import Finder

SCRIPT = """
import sys
import dgl
import dgl.function as fn
import dgl.ops as ops
from dgl import DGLGraph
from dgl.heterograph import DGLGraph as same
from dgl.ops import edge_softmax
from dgl.udf import NodeBatch
from dgl.utils import expand_as_pair

g = dgl.add_self_loop(dgl.graph(([0, 1], [1, 2])))
g.ndata["h"] = dgl.graph.__globals__["torch"].ones(3, 1)
g.update_all(fn.copy_u("h", "m"), fn.sum("m", "h"))
assert same is DGLGraph and callable(dgl.heterograph) and dgl.ops is ops
print(dgl.__name__, sys.argv[1:], __name__, g.ndata["h"].flatten().tolist())
"""
PRINTED = "gnnc.dgl ['--x', '1'] __main__ [1.0, 2.0, 2.0]"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script that stands beside a DGL that does not import."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "dgl").mkdir()
    (tmp_path / "dgl" / "__init__.py").write_text("from . import part\nraise OSError('no lib')\n")
    (tmp_path / "dgl" / "part.py").write_text("")
    return tmp_path


def test_a_script(script: Path):
    done = run(script, "-m", "gnnc.dgl", "script.py", "--x", "1")
    assert done.stdout.strip() == PRINTED, done.stderr


def test_a_module_and_always(script: Path):
    (script / "dgl" / "__init__.py").write_text("")
    done = run(script, "-m", "gnnc.dgl", "--always", "-m", "script", "--x", "1")
    assert done.stdout.strip() == PRINTED, done.stderr


def test_dgl_that_imports_stays(tmp_path: Path):
    (tmp_path / "dgl.py").write_text("name = 'the real one'\n")
    code = "import gnnc.dgl; print(gnnc.dgl.install()); import dgl; print(dgl.name)"
    assert run(tmp_path, "-c", code).stdout.split("\n")[:2] == ["False", "the real one"]


def test_what_is_not_there(tmp_path: Path):
    code = """
import gnnc.dgl
assert gnnc.dgl.install(always=True) and gnnc.dgl.install()
import dgl
for statement in (
    "import dgl.distributed",
    "from dgl.data import CoraGraphDataset",
    "import dgl.unknown",
    "dgl.sampling",
    "dgl.unknown",
    "dgl.metis_partition(dgl.graph(([0], [1])), 3, mode='k-way')",
):
    try:
        exec(statement)
    except Exception as error:
        print(type(error).__name__, error)
"""
    assert run(tmp_path, "-c", code).stdout.splitlines() == [
        "ModuleNotFoundError gnnc.dgl has no dgl.distributed, which is out of its scope",
        "ModuleNotFoundError gnnc.dgl has no dgl.data, which is out of its scope",
        "ModuleNotFoundError gnnc.dgl has no dgl.unknown",
        "AttributeError module 'dgl' as gnnc.dgl has no attribute 'sampling', "
        "which is out of its scope",
        "AttributeError module 'dgl' as gnnc.dgl has no attribute 'unknown'",
        "NotImplementedError gnnc.dgl has no dgl.metis_partition: metis_partition(Graph("
        "num_nodes=2, num_edges=1, ndata_schemes={} edata_sc..., 3, mode='k-way'). Do it with "
        "tensors (g.edges(), gnnc.dgl.graph), or with DGL where it is installed: "
        "gnnc.dgl.to_dgl(g) gives its graph.",
    ]


def test_modules_that_are_imported_when_they_are_asked_for():
    loading = ours.dataloading
    for name, wanted in (("", loading), (".negative_sampler", loading.negative_sampler)):
        found = Finder().find_spec(f"dgl.dataloading{name}", None)
        assert found is not None and found.loader is not None
        assert found.loader.create_module(found) is wanted
    assert ours.set_src_lazy_features is loading.set_src_lazy_features


def test_names_are_listed():
    assert len(ours.__all__) == len(set(ours.__all__))
    for name in ours.__all__:
        assert getattr(ours, name) is not None


def test_every_function_of_dgl_is_here_or_named():
    """No name of DGL's is unknown: it is here, or its call says that it is not."""
    from .both import theirs

    inside = {"extract_ext_funcs", "get_global_func", "list_global_func_names", "register_func"}
    inside |= {"load_backend", "enable_verbose_logging", "is_libxsmm_enabled", "use_libxsmm"}
    for name, value in vars(theirs).items():
        if type(value).__name__ == "function" and not name.startswith("_") and name not in inside:
            assert callable(getattr(ours, name)), name
