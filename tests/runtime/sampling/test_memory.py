"""A batch that there is no memory for is an error, and the sampler goes on. A fan-out of more than
there is takes none."""

import subprocess
import sys

import pytest

CODE = """
import resource
import numpy as np
from gnnc.runtime.sampling.in_edges import in_edges
from gnnc.runtime.sampling.sampler import Key, NeighborSampler, Seeds

graph = in_edges(np.arange(50) % 7, np.arange(50) % 10, 10, 10)
big = 2**31 - 1
samplers = [
    NeighborSampler(graph, [fans, 2], replace=True, disjoint=disjoint)
    for fans in (3, big) for disjoint in (False, True)
]
wanted = [s.sample(np.arange(10), Key(1)).nodes[0].ids.tolist() for s in samplers[:2]]
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, used + 2**28))
for few, many in zip(samplers[:2], samplers[2:], strict=True):
    few._fanouts[0, 0] = big
    for sampler in (few, many):
        try:
            sampler.sample(np.arange(10), Key(1))
        except MemoryError as error:
            assert "no memory for a batch of 10 seeds" in str(error), error
        else:
            raise SystemExit("there was memory")
    few._fanouts[0, 0] = 3
got = [s.sample(np.arange(10), Key(1)).nodes[0].ids.tolist() for s in samplers[:2]]
assert got == wanted
more, every = (NeighborSampler(graph, [k, 2]).sample(np.arange(10), Key(1)) for k in (big, -1))
assert more.edges[0].ids.tolist() == every.edges[0].ids.tolist()
print("went on")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process as Linux does")
def test_without_memory():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "went on", done.stderr
