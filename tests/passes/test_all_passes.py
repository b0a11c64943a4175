"""The list of passes."""

import pytest

from gnnc.passes import get_all_passes


@pytest.mark.parametrize("name", get_all_passes())
def test_each_is_loaded_by_its_name(name):
    pass_class = get_all_passes()[name]()
    assert pass_class.name == name
    assert (pass_class.__doc__ or "").strip(), "gnn-opt --help prints the first line"
