"""What the system says of cores and quotas, and that no core is given out twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gnnc.frontend.argo.configurations import Configuration, configurations
from gnnc.frontend.argo.cores import CONTROL, GROUPS, PROCESSOR, Machine, machine, masks


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def test_no_core_twice_and_never_more_than_usable() -> None:
    found = Machine(tuple(range(20)), 12.5)
    for x in configurations(found.usable, least_samplers=0):
        given = masks(found, x)
        cores = [core for m in given for core in (*m.samplers, *m.trainers)]
        assert len(given) == x.processes
        assert all((len(m.samplers), len(m.trainers)) == x[1:] for m in given)
        assert len(cores) == len(set(cores)) == x.cores <= 12
        assert set(cores) <= set(found.cores)


def test_more_than_the_quota_is_refused() -> None:
    with pytest.raises(ValueError, match=r"configuration.*4 are usable \(64 in the mask"):
        masks(Machine(tuple(range(64)), 4.0), Configuration(2, 1, 2))


def test_second_threads_of_cores_come_last_and_sockets_are_together(tmp_path: Path) -> None:
    for thread in range(8):  # two sockets of two cores, of two threads each: 0, 4 share a core
        topology = tmp_path / PROCESSOR / f"cpu{thread}" / "topology"
        write(topology / "physical_package_id", str(thread % 2))
        write(topology / "core_id", str(thread // 2 % 2))
    assert machine(tmp_path, range(8)).cores == (0, 2, 1, 3, 4, 6, 5, 7)
    assert machine(tmp_path, [6, 1, 5]).cores == (6, 1, 5)


def test_without_a_topology_each_is_a_core(tmp_path: Path) -> None:
    assert machine(tmp_path, [3, 1]) == Machine((1, 3), float("inf"))


@pytest.mark.parametrize(
    ("group", "file", "text", "quota"),
    [
        ("0::/a/b", "a/b/cpu.max", "150000 100000", 1.5),
        ("0::/a/b", "a/cpu.max", "200000 100000", 2.0),
        ("0::/a/b", "cpu.max", "300000 100000", 3.0),
        ("0::/a/b", "a/b/cpu.max", "max 100000", float("inf")),
    ],
)
def test_quotas_of_version_2(
    tmp_path: Path, group: str, file: str, text: str, quota: float
) -> None:
    write(tmp_path / GROUPS, group)
    write(tmp_path / CONTROL / file, text)
    found = machine(tmp_path, range(8))
    assert found.quota == quota
    assert found.usable == min(8, int(min(quota, 8)))


@pytest.mark.parametrize("microseconds", [250000, -1])
def test_quotas_of_version_1(tmp_path: Path, microseconds: int) -> None:
    write(tmp_path / GROUPS, "4:memory:/x\n2:cpu,cpuacct:/job")
    folder = tmp_path / CONTROL / "cpu,cpuacct" / "job"
    write(folder / "cpu.cfs_quota_us", str(microseconds))
    write(folder / "cpu.cfs_period_us", "100000")
    assert machine(tmp_path, range(8)).quota == (2.5 if microseconds > 0 else float("inf"))


def test_less_than_one_core_is_one(tmp_path: Path) -> None:
    write(tmp_path / GROUPS, "0::/")
    write(tmp_path / CONTROL / "cpu.max", "50000 100000")
    assert machine(tmp_path, range(8)).usable == 1


def test_this_machine() -> None:
    assert set(machine().cores) == os.sched_getaffinity(0)
