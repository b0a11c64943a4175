"""`gnnc.load`: arrays from folders, archives and data sets."""

from pathlib import Path

import numpy as np
import pytest
import torch

import gnnc

ARRAYS = {
    "x": np.arange(6, dtype=np.float64).reshape(3, 2),
    "edge_index": np.array([[0, 1, 2], [1, 2, 0]]),
    "y": np.array([0, 4, 1]),
    "mask": np.array([True, False, True]),
}


def saved(folder: Path) -> Path:
    for name, x in ARRAYS.items():
        np.save(folder / f"{name}.npy", x)
    np.savez(folder / "all.npz", **ARRAYS)  # type: ignore[arg-type]
    return folder


@pytest.mark.parametrize("place", ["", "all.npz"])
def test_files(place: str, tmp_path: Path):
    data = gnnc.load(saved(tmp_path) / place)
    assert sorted(data) == sorted(ARRAYS)
    for name, x in ARRAYS.items():
        assert torch.equal(data[name], torch.from_numpy(x))
        assert data[name] is getattr(data, name)
    found = (data.num_nodes, data.num_features, data.num_edges, data.num_classes)
    assert found == (3, 2, 3, 5)


def test_the_generated_graph():
    data = gnnc.load("default")
    assert data.x.shape == (2708, 1433)
    assert data.train_mask.sum() == 140
    assert data.num_classes == 7


def test_nodes_without_features(tmp_path: Path):
    np.save(tmp_path / "edge_index.npy", ARRAYS["edge_index"])
    assert gnnc.load(tmp_path).num_nodes == 3


def test_mistakes(tmp_path: Path):
    data = gnnc.load(saved(tmp_path))
    with pytest.raises(AttributeError, match="no array 'z'; it has edge_index, mask, x, y"):
        _ = data.z
    with pytest.raises(KeyError, match="no array 'z'"):
        _ = data["z"]
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        gnnc.load(tmp_path / "nothing")
    with pytest.raises(ValueError, match="has no 'Planet'"):
        gnnc.load("Planet:Cora")
    (tmp_path / "bad.npz").write_text("numbers")
    with pytest.raises(ValueError, match=r"bad.npz"):
        gnnc.load(tmp_path / "bad.npz")
    np.save(tmp_path / "text.npy", np.array(["a"]))
    with pytest.raises(ValueError, match="text in .* holds <U1, not numbers"):
        gnnc.load(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no arrays"):
        gnnc.load(tmp_path / "empty")
