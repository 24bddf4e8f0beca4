# SPDX-License-Identifier: LGPL-3.0-or-later
"""Half a minute of the coherence checker of tests/coherence."""
import pytest

from lab import AFTER_A_LOSS


@pytest.fixture
def gateways(cluster):
    """The checker restarts "a" and starts "b", with metrics."""
    cluster.altered = True
    cluster.expected += AFTER_A_LOSS
    yield cluster
    cluster.stop_second()


def test_no_read_is_behind_a_write(gateways, record):
    """Of two gateways with read caches and ceph-fuse; with an eviction,
    and a clock that goes ahead and is set right."""
    said = gateways.job("coherence/coherence.py", "--seed", "7", "--no-kernel",
                        "--evict", "12", "--clock", "14", "0.5",
                        limit_s=200)
    for line in said.splitlines():
        if "from the cache" in line:
            record(line.split(" ", 1)[1])
