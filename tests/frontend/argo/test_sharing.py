"""Messages are what was sent, and what is large is sent once."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
import torch.multiprocessing as shared

from gnnc.frontend.argo.sharing import LEAST_BYTES, Sharing

LARGE = np.arange(LEAST_BYTES // 4, dtype=np.float32).reshape(-1, 16)


def test_arrays_are_what_they_were() -> None:
    sharing = Sharing()
    arrays: list[Any] = [
        LARGE,
        LARGE.T,
        LARGE[::2],
        LARGE.astype("M8[s]"),
        np.float32(3),
        LARGE[:2],
    ]
    found = pickle.loads(sharing.message(arrays))
    for a, b in zip(arrays, found, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_large_arrays_are_one_memory_and_small_ones_are_not() -> None:
    sharing, few = Sharing(), np.zeros(3)
    messages = [sharing.message((LARGE, few)) for _ in range(2)]
    assert all(len(m) < LEAST_BYTES // 8 for m in messages)
    (one, small), (other, own) = map(pickle.loads, messages)
    one[3, 4], small[0] = -1, -1
    assert other[3, 4] == -1 and LARGE[3, 4] != -1
    assert own[0] == 0


def test_tensors_are_one_memory_of_their_own() -> None:
    sharing, x = Sharing(), torch.zeros(4, 3)
    weight = torch.nn.Parameter(x)
    kept = x.numpy()
    one, other = (pickle.loads(sharing.message({"x": [x, x[1:].T, weight]}))["x"] for _ in range(2))
    one[0][1, 2] = 5
    assert other[0][1, 2] == one[1][2, 0] == other[2][1, 2] == 5
    assert isinstance(other[2], torch.nn.Parameter) and other[2].requires_grad
    assert not x.is_shared() and not x.any()
    kept[:] = 7  # memory that is still that of the tensor
    assert (x == 7).all()


def test_tensors_that_are_shared_stay_where_they_are() -> None:
    x = torch.zeros(4).share_memory_()
    found = pickle.loads(Sharing().message(x))
    found[1] = 5
    assert x[1] == 5


def test_memory_under_names_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "get_sharing_strategy", lambda: "file_system")
    with pytest.raises(RuntimeError, match="file_descriptor"):
        Sharing()
