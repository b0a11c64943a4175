"""What a built program says of data that does not fit, and what cannot be built."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import gnnc
from gnnc.codegen.standalone.description import NoProgram, SizeText
from gnnc.codegen.standalone.names import CNames
from gnnc.codegen.standalone.sizes import c_size
from gnnc.codegen.standalone.structure import StructureCode
from gnnc.frontend.tools.build_command import TARGETS
from gnnc.frontend.torch.training.build import BUILDS, build

from .building import loaded, made, run
from .programs import CLASSES, FEATURES, graph, masked


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(masked, tmp_path_factory.mktemp("program"), graph(), "gcn", epochs=2)


def changed(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Path], None]:
    def save(folder: Path) -> None:
        path = folder / f"{name}.npy"
        np.save(path, change(np.load(path)))

    return save


def out_of_range(x: np.ndarray) -> np.ndarray:
    x[1, 7] = 120
    return x


def negative(x: np.ndarray) -> np.ndarray:
    x[0, 3] = -2
    return x


def cut(folder: Path) -> None:
    path = folder / "x.npy"
    path.write_bytes(path.read_bytes()[:-4])


WRONG = {
    "missing": (lambda f: (f / "y.npy").unlink(), "y.npy cannot be read"),
    "type": (
        changed("x", lambda x: x.astype(np.float64)),
        "x.npy has numbers of type float64, the program takes float32",
    ),
    "features": (
        changed("x", lambda x: x[:, :-1].copy()),
        "x.npy has 11 entries in dimension 1, the program is made for 12",
    ),
    "dimensions": (changed("y", lambda y: y[None]), "y.npy has 2 dimensions, the program takes 1"),
    "rows": (
        changed("y", lambda y: y[:-1].copy()),
        "y has 119 entries in dimension 0, but x has 120",
    ),
    "index": (
        changed("edge_index", out_of_range),
        "edge_index[1][7] is 120, but it must be between 0 and 119",
    ),
    "negative index": (
        changed("edge_index", negative),
        "edge_index[0][3] is -2, but it must be between 0 and 119",
    ),
    "class": (changed("y", lambda y: y + CLASSES), "y[0] is "),
    "order": (changed("x", np.asfortranarray), "x.npy is in Fortran's order"),
    "short": (cut, "x.npy ends before its 1440 numbers do"),
    "no file": (lambda f: (f / "x.npy").write_text("numbers"), "x.npy is no .npy file"),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_wrong_data(name: str, program: Path, tmp_path: Path):
    spoil, message = WRONG[name]
    for path in (program.parent / "data").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert run(program, "--data", str(tmp_path), "--out", str(tmp_path / "out")).returncode == 0
    spoil(tmp_path)
    done = run(program, "--data", str(tmp_path))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert message in done.stderr


@gnnc.training
def branches(data):
    model = nn.Linear(FEATURES, CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _epoch in range(2):
        optimizer.zero_grad()
        out = model(data.x)
        if data.x.shape[0] > 100:
            out = 2 * out
        loss = F.cross_entropy(out, data.y)
        loss.backward()
        optimizer.step()


def test_data_of_another_branch(tmp_path: Path):
    program = made(branches, tmp_path, graph())
    assert run(program).returncode == 0
    small = graph(nodes=100)
    for name in ("x", "y"):
        np.save(tmp_path / "data" / f"{name}.npy", small[name].numpy())
    done = run(program)
    assert done.returncode == 1
    assert "error: the program is made for x.shape[0] > 100" in done.stderr


def test_wrong_options(program: Path):
    assert run(program, "--epochs", "many").returncode == 1
    done = run(program, "--what")
    assert done.returncode == 2
    assert "usage: " in done.stderr


REPORTS = {
    "log.append(loss.item())": "prints texts, the epoch and numbers",
    "print(out.sum().item())": "prints texts, the epoch and numbers",
    "print(loss)": "prints texts, the epoch and numbers",
    "print(epoch / 2)": "prints texts, the epoch and numbers",
    "if loss.item() < 1: print(epoch)": "prints texts, the epoch and numbers",
    "print(out.item())": "`out` is no single number that the step computes",
    "print(f'{loss.item():>9}')": "a number is formatted as",
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("report", list(REPORTS))
def test_a_report_without_form(report: str, tmp_path: Path):
    """Python can do it, a program without Python cannot."""
    text = f"""
import gnnc, torch
import torch.nn.functional as F
@gnnc.training
def reports(data, log=()):
    model = torch.nn.Linear({FEATURES}, {CLASSES})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        optimizer.zero_grad()
        out = model(data.x)
        loss = F.cross_entropy(out, data.y)
        loss.backward()
        optimizer.step()
        {report}
"""
    module = loaded(text, tmp_path / "reports.py")
    with pytest.raises(gnnc.ProgramError, match=REPORTS[report]) as caught:
        build(module.reports, (graph(),), {}, tmp_path / "out")
    assert caught.value.lineno == 14
    assert not (tmp_path / "out").exists()


@gnnc.training
def evaluates(data):
    model = nn.Linear(FEATURES, CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _epoch in range(2):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data.x), data.y)
        loss.backward()
        optimizer.step()
    print(model(data.x).argmax(1))


def test_nothing_behind_the_loop(tmp_path: Path):
    with pytest.raises(gnnc.ProgramError, match="behind the loop a program without Python"):
        build(evaluates, (graph(),), {}, tmp_path)


@gnnc.training
def in_torch(data, optimizer=torch.optim.SGD):
    model = nn.Linear(FEATURES, CLASSES)
    update = optimizer(model.parameters(), lr=0.1)
    for _epoch in range(2):
        update.zero_grad()
        loss = F.cross_entropy(model(data.x), data.y) + torch.linalg.eigvalsh(data.a).sum()
        loss.backward()
        update.step()


def test_a_step_that_is_not_one_program(tmp_path: Path):
    data = graph()
    data._arrays["a"] = torch.eye(3)
    with pytest.raises(NoProgram, match="eigvalsh"):
        build(in_torch, (data,), {}, tmp_path)


def test_an_optimizer_without_a_rule(tmp_path: Path):
    with pytest.raises(NoProgram, match="Adamax has no rule"):
        build(masked, (graph(), "gcn"), {"optimizer": "Adamax"}, tmp_path)


def test_a_structure_step_that_the_library_lacks():
    with pytest.raises(NoProgram, match=r"no structure step 'sort' \(for s\)"):
        StructureCode(CNames()).step("sort", ["g"], ["s"], {})


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("n", "here"),
        ("2 * n - 1", "((INT64_C(2) * here) - INT64_C(1))"),
        ("n // 2 % 3", "floor_mod(floor_div(here, INT64_C(2)), INT64_C(3))"),
        ("max(n, 1)", "(here > INT64_C(1) ? here : INT64_C(1))"),
        ("n > 1 and not n == k", "((here > INT64_C(1)) && (!(here == INT64_C(7))))"),
        ("-n <= 3", "((-here) <= INT64_C(3))"),
    ],
)
def test_sizes_in_c(text: str, code: str):
    assert c_size(SizeText(text, {"n": (0, 0), "k": 7}), lambda array, dimension: "here") == code


@pytest.mark.parametrize("text", ["n / 2", "1.5", "n ** 2", "math.ceil(n)", "m", "1 < n < 3"])
def test_sizes_without_form_in_c(text: str):
    with pytest.raises(NoProgram, match="is no arithmetic of whole numbers"):
        c_size(SizeText(text, {"n": (0, 0)}), lambda array, dimension: "here")


def test_an_unknown_target(tmp_path: Path):
    assert tuple(BUILDS) == TARGETS
    with pytest.raises(ValueError, match="'gpu': there are openmp, reference, cuda, mpi"):
        build(masked, (graph(), "gcn"), {}, tmp_path, target="gpu")
