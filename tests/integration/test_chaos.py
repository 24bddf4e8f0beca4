# SPDX-License-Identifier: LGPL-3.0-or-later
"""Two minutes of the chaos job of tests/chaos, on a cluster of its own."""
import pytest

SEED = "32"


@pytest.fixture
def nothing_up(cluster):
    """The job starts its own cluster.  The tests after us find the one that
    they know."""
    cluster.run("down")
    # The job judges the logs itself: its faults explain lines that no other
    # test may cause.
    ends = [log.end() for log in cluster.whole_logs]
    yield cluster
    cluster.run("down")
    for log, end in zip(cluster.whole_logs, ends):
        log.leave_out(end)
    cluster.run("up", "--fsal", "CEPH_ASYNC", timeout=180)


def test_service_survives_random_faults(nothing_up, record):
    """A fixed seed: evictions and a blocklisting; MDS, OSD and MON killed, the
    gateway and the MDS stopped, a gateway cut from the MDS."""
    said = nothing_up.job("chaos/chaos.py", "--seed", SEED, "--no-kernel", "2",
                          limit_s=600)
    for line in said.splitlines():
        if " x  " in line or "reconnects" in line:
            record(line.split(" ", 1)[1])
