# SPDX-License-Identifier: LGPL-3.0-or-later
"""Short forms of what is in tests/coherence."""
import pytest

from lab import SECOND_PORT, SECOND_PSEUDO
from model import SECOND


@pytest.fixture
def gateways(cluster):
    """The checker restarts "a" and starts "b", with metrics."""
    cluster.altered = True
    with cluster.may_lose():
        yield cluster
        cluster.stop_second()


@pytest.mark.nightly    # ci/job.sh nightly runs the job itself
def test_no_read_is_behind_a_write(gateways, record):
    """Of two gateways with read caches and ceph-fuse; with an eviction,
    and a clock that goes ahead and is set right."""
    said = gateways.job("coherence/coherence.py", "--seed", "7", "--no-kernel",
                        "--evict", "12", "--clock", "14", "0.5",
                        limit_s=200)
    for line in said.splitlines():
        if "from the cache" in line:
            record(line.split(" ", 1)[1])


@pytest.mark.parametrize("vers, how", [
    ("3", ()), ("4", ("--grow",)), ("4", ("--writer", "ceph"))])
def test_no_read_has_zeros_that_nobody_wrote(lab, record, vers, how):
    """Beside truncations and WRITEs, and at the end of a file that grows."""
    said = lab.job("coherence/zeros.py", "--seconds", "4", "--vers", vers,
                   *how, limit_s=60)
    record(f"READs beside a writer, v{vers} {' '.join(how)}: "
           f"{said.splitlines()[-1]}")


def test_random_operations_are_as_in_the_model(cluster, second, record):
    """Two exports of one mount, and another CephFS client."""
    second(append=[SECOND], export='Cmount_Path = "/";')
    said = cluster.job("coherence/model.py", "--running",
                       f"{SECOND_PORT}:{SECOND_PSEUDO}", "--seeds", "1",
                       "0.12", limit_s=60)
    record(said.splitlines()[-1])
