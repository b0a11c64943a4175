"""Programs for NVIDIA GPUs train as Python does, on a driver that is the emulator; and say what is
wrong with the machine."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import gnnc
from gnnc.frontend.torch.training.build import build
from gnnc.frontend.torch.training.data import GraphArrays, load
from gnnc.frontend.torch.training.program import TrainingProgram

from .building import assert_equal, compiled, numbers, printed, trained
from .emulated import OnDevice, fake_driver, made, other_folder, quickly
from .programs import CLASSES, graph, indexed, loops, masked, mlp, relational, sparse_graph

WITHIN = 1e-5
"""How far losses may be apart: kernels of a device sum in another order."""
EPOCHS = 4

LONG = pytest.mark.long


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_driver(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="module")
def program(driver: Path, tmp_path_factory: pytest.TempPathFactory) -> OnDevice:
    """With dropout and Adam; something is prepared, and rows of nodes are chosen."""
    folder = tmp_path_factory.mktemp("program")
    return made(masked, folder, driver, graph(), "gcn", epochs=EPOCHS)


def parameters(folder: Path) -> dict[str, Tensor]:
    found = load(folder)
    return {name: found[name] for name in found}


def test_losses_and_parameters(program: OnDevice, tmp_path: Path):
    """Those of Python, and of the program for the CPU, whose arrays at the start are the same."""
    theirs = printed(masked, graph(), "gcn", epochs=EPOCHS)
    assert_equal(program.trained("--out", str(tmp_path / "ours")), theirs, EPOCHS, WITHIN)
    build(masked, (graph(), "gcn"), {"epochs": EPOCHS}, tmp_path / "cpu")
    on_cpu = trained(quickly(tmp_path / "cpu"))
    assert_equal(program.trained(), on_cpu, EPOCHS, WITHIN)
    for part in ("data", "parameters"):
        start = parameters(program.program.parent / part)
        assert {n: x.tolist() for n, x in parameters(tmp_path / "cpu" / part).items()} == {
            n: x.tolist() for n, x in start.items()
        }
    ours, expected = parameters(tmp_path / "ours"), parameters(tmp_path / "cpu" / "trained")
    assert len(ours) == 17
    assert float(ours["first.bias.step"]) == EPOCHS
    assert ours.keys() == expected.keys()
    for name, x in ours.items():
        torch.testing.assert_close(x, expected[name], rtol=1e-4, atol=1e-6, msg=name)
        same = torch.equal(x, parameters(program.program.parent / "parameters")[name])
        assert not same or name == "generator"  # its numbers are drawn ahead, by the block


def test_going_on(program: OnDevice, tmp_path: Path):
    """From what was written, as without a break."""
    first, rest = str(tmp_path / "first"), str(tmp_path / "rest")
    begun = program.trained("--epochs", "2", "--out", first)
    gone_on = program.trained("--epochs", "2", "--parameters", first, "--out", rest)
    assert numbers(begun)[1::2] + numbers(gone_on)[1::2] == numbers(program.trained())[1::2]


def hub() -> GraphArrays:
    """A larger graph with a node of so many edges that several blocks share them."""
    found = graph(seed=1, nodes=150, edges=1100)
    edges = found.edge_index.clone()
    edges[1, :400] = 7
    return GraphArrays({name: found[name] for name in found} | {"edge_index": edges})


def test_another_graph_in_the_folder(program: OnDevice, tmp_path: Path):
    moved = other_folder(program, tmp_path)
    data = hub()
    for name in data:
        np.save(tmp_path / "data" / f"{name}.npy", data[name].numpy())
    theirs = printed(masked, data, "gcn", epochs=EPOCHS)
    assert_equal(moved.trained(), theirs, EPOCHS, WITHIN)
    without = np.zeros((2, 0), np.int64)
    np.save(tmp_path / "data" / "edge_index.npy", without)
    arrays = {name: data[name] for name in data} | {"edge_index": torch.from_numpy(without)}
    theirs = printed(masked, GraphArrays(arrays), "gcn", epochs=EPOCHS)
    assert_equal(moved.trained(), theirs, EPOCHS, WITHIN)


@gnnc.training
def normalized(data):
    model = mlp(data.num_features, CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(EPOCHS):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data.x), data.y)
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())


def test_parameters_that_are_not_changed_in_place(driver: Path, tmp_path: Path):
    """The step needs the weight of the normalization until its end; the result is copied then."""
    ours = made(normalized, tmp_path, driver, graph())
    assert "copy_on_device(" in (tmp_path / "main.c").read_text()
    assert_equal(ours.trained(), printed(normalized, graph()), EPOCHS, WITHIN)


@LONG
@pytest.mark.parametrize("kind", ["gin", "gat", "sage"])
def test_layers(kind: str, driver: Path, tmp_path: Path):
    ours = made(masked, tmp_path, driver, graph(), kind, epochs=EPOCHS)
    theirs = printed(masked, graph(), kind, epochs=EPOCHS)
    assert_equal(ours.trained(), theirs, EPOCHS, WITHIN)


@LONG
@pytest.mark.parametrize("training", [relational, loops])
def test_relations(training: TrainingProgram, driver: Path, tmp_path: Path):
    ours = made(training, tmp_path, driver, graph(), epochs=EPOCHS)
    assert_equal(ours.trained(), printed(training, graph(), epochs=EPOCHS), EPOCHS, WITHIN)


@LONG
def test_reports_clips_and_chosen_rows(driver: Path, tmp_path: Path):
    ours = made(indexed, tmp_path, driver, graph(), epochs=10)
    assert_equal(ours.trained(), printed(indexed, graph(), epochs=10), 3, 2e-5)


@LONG
def test_features_that_are_mostly_zeros(driver: Path, tmp_path: Path):
    ours = made(masked, tmp_path, driver, sparse_graph(), "gcn", epochs=EPOCHS)
    theirs = printed(masked, sparse_graph(), "gcn", epochs=EPOCHS)
    assert_equal(ours.trained(), theirs, EPOCHS, WITHIN)


# ------------------------------------------------------------ what is wrong

WRONG = {
    "no driver": (
        {"GNNC_LIBCUDA": "/nowhere/libcuda.so.1"},
        ["there is no NVIDIA driver (/nowhere/libcuda.so.1: ", "GNNC_LIBCUDA"],
    ),
    "another library": (
        {"GNNC_LIBCUDA": "libm.so.6"},
        ["libm.so.6 has no cuInit: it is not the NVIDIA driver, or too old"],
    ),
    "no device": (
        {"FAKE_DEVICES": "0"},
        ["cuInit failed during the start: no CUDA-capable device is detected (CUDA_ERROR_"],
    ),
    "an old device": (
        {"FAKE_CAPABILITY": "7.5"},
        ["The emulator has compute capability 7.5, the program needs 8.0 or newer"],
    ),
    "no code": (
        {"FAKE_REFUSED": "1", "FAKE_CAPABILITY": "12.1"},
        ["the program has no kernels for a device of compute capability 12.1"],
    ),
    "memory": (
        {"FAKE_MEMORY": "20000"},
        [
            "cuMemAlloc of ",
            " bytes failed during the making of the graph, with ",
            " in use by the program: out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2)",
        ],
    ),
    "a launch": (
        {"FAKE_FAILS": "1"},
        [
            "cuLaunchKernel of prepare_0",
            " failed during the phase prepare: too many resources requested for launch "
            "(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)",
        ],
    ),
    "a kernel": (
        {"FAKE_FAILS_LATER": "12"},
        [
            "cuStreamSynchronize failed during the phase forward: an illegal memory access was "
            "encountered (CUDA_ERROR_ILLEGAL_ADDRESS, 700)"
        ],
    ),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_wrong_machines(name: str, program: OnDevice, tmp_path: Path):
    variables, messages = WRONG[name]
    done = program.run("--out", str(tmp_path / "out"), **variables)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert [m for m in messages if m not in done.stderr] == [], done.stderr
    assert not (tmp_path / "out").exists()


def test_code_for_several_devices(program: OnDevice, tmp_path: Path):
    """The first that the device takes is run."""
    moved = other_folder(program, tmp_path)
    text = (tmp_path / "image.c").read_text()
    text = text.replace("images[] = {image_0}", "images[] = {image_0, image_0, image_0}")
    (tmp_path / "image.c").write_text(text.replace("image_count = 1", "image_count = 3"))
    assert compiled(tmp_path) == moved.program
    assert moved.run("--epochs", "1", FAKE_REFUSED="2").returncode == 0
    assert moved.run("--epochs", "1", FAKE_REFUSED="3").returncode == 1
