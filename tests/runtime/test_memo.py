import gc
import threading

import pytest

from gnnc.runtime.memo import Memo, owner_of, version_key


class Storage:
    pass


class Tensor:
    """What the memo sees of a torch tensor."""

    dtype = "int64"
    device = "cpu"

    def __init__(self, storage: Storage, address: int = 64, version: int = 0):
        self.storage, self.address, self._version = storage, address, version
        self.shape = (3,)

    def data_ptr(self):
        return self.address

    def stride(self):
        return (1,)

    def untyped_storage(self):
        return self.storage


def counter():
    made: list[int] = []

    def make():
        made.append(len(made))
        return made[-1]

    return make


def test_an_edit_is_seen():
    memo, make, tensor = Memo(), counter(), Tensor(Storage())
    assert memo.get_for([tensor], "csc", make) == 0
    assert memo.get_for([tensor], "csc", make) == 0
    assert memo.get_for([tensor], "csr", make) == 1
    tensor._version += 1
    assert memo.get_for([tensor], "csc", make) == 2


def test_views_share_an_entry_and_the_storage_owns_it():
    memo, make, storage = Memo(), counter(), Storage()
    assert memo.get_for([Tensor(storage)], None, make) == 0
    gc.collect()
    assert memo.get_for([Tensor(storage)], None, make) == 0
    assert len(memo) == 1
    del storage
    gc.collect()
    assert len(memo) == 0
    assert memo.get_for([Tensor(Storage())], None, make) == 1  # same address, other memory


def test_any_dead_owner_drops_the_entry():
    memo, a, b = Memo(), Tensor(Storage()), Tensor(Storage(), address=128)
    memo.get_for([a, b], None, counter())
    assert len(memo) == 1
    del b
    gc.collect()
    assert len(memo) == 0


def test_least_recently_used_goes_first():
    memo, make, owner = Memo(capacity=2), counter(), Storage()
    for key in ("a", "b", "a", "c"):
        memo.get(key, [owner], make)
    assert memo.get("a", [owner], make) == 0
    assert memo.get("b", [owner], make) == 3
    memo.clear()
    assert len(memo) == 0
    with pytest.raises(ValueError, match="capacity 0"):
        Memo(0)


def test_without_a_version_nothing_is_kept():
    memo, make = Memo(), counter()
    assert version_key(object()) is None
    assert memo.get_for([object()], None, make) == 0
    assert memo.get_for([object()], None, make) == 1
    assert len(memo) == 0


def test_a_failure_is_not_kept():
    memo, owner = Memo(), Storage()

    def fail():
        raise IndexError("edge_index[0][0] is 7")

    with pytest.raises(IndexError):
        memo.get("a", [owner], fail)
    assert memo.get("a", [owner], lambda: 5) == 5


def test_threads_agree():
    memo, owner = Memo(), Storage()
    start = threading.Barrier(4)
    found: list[object] = []

    def work():
        start.wait()
        found.append(memo.get("a", [owner], object))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(set(map(id, found))) == 1


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    memo, make = Memo(), counter()
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    assert memo.get_for([edge_index[0]], None, make) == 0
    assert memo.get_for([edge_index[0]], None, make) == 0
    assert memo.get_for([edge_index[1]], None, make) == 1
    edge_index[0, 0] = 2
    assert memo.get_for([edge_index.detach()[0]], None, make) == 2
    assert owner_of(edge_index) is edge_index.untyped_storage()
    del edge_index
    gc.collect()
    assert len(memo) == 0
    with torch.inference_mode():
        assert version_key(torch.ones(3)) is None


def test_a_tensor_that_was_moved_is_read_again():
    """`tensor.data = other` keeps the counter of tensor, and other's own goes unseen."""
    torch = pytest.importorskip("torch")
    memo, make = Memo(), counter()
    here, there = torch.tensor([0, 1]), torch.tensor([1, 0])
    tensor = torch.tensor([2, 2])
    tensor.data = here
    assert memo.get_for([tensor], None, make) == 0
    tensor.data = there
    assert memo.get_for([tensor], None, make) == 1
    here[0] = 5
    tensor.data = here
    assert memo.get_for([tensor], None, make) == 2
    assert memo.get_for([tensor], None, make) == 2


def test_values_are_those_that_live_last_used_last():
    memo, storages = Memo(3), [Storage() for _ in range(3)]
    for k, storage in enumerate(storages):
        memo.get(k, [storage], lambda k=k: f"made {k}")
    memo.get(0, [storages[0]], lambda: "not made again")
    assert memo.values() == ["made 1", "made 2", "made 0"]
    del storages[1], storage
    gc.collect()
    assert memo.values() == ["made 2", "made 0"]
