# SPDX-License-Identifier: LGPL-3.0-or-later
"""Two minutes of the chaos job of tests/chaos, on a cluster of its own."""
import subprocess
import sys
from pathlib import Path

import pytest

from lab import AFTER_A_LOSS

CHAOS = Path(__file__).resolve().parents[1] / "chaos" / "chaos.py"
LIMIT_S = 600
SEED = "32"


@pytest.fixture
def nothing_up(cluster):
    """The job starts its own cluster.  The tests after us find the one that
    they know."""
    cluster.run("down")
    # The job judges the logs itself.
    cluster.expected += [*AFTER_A_LOSS, r"no answer from the cluster in time",
                         r"unmounting '.*' of file system '.*' did not end"]
    yield cluster
    cluster.run("down")
    cluster.run("up", "--fsal", "CEPH_ASYNC", timeout=180)


def test_service_survives_random_faults(nothing_up, record):
    """A fixed seed: evictions and a blocklisting; MDS, OSD and MON killed, the
    gateway and the MDS stopped, a gateway cut from the MDS."""
    try:
        done = subprocess.run(
            [sys.executable, "-B", CHAOS, "--seed", SEED, "--no-kernel", "2"],
            text=True, cwd="/tmp", timeout=LIMIT_S, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    except subprocess.TimeoutExpired as err:
        nothing_up.stacks()
        raise AssertionError(f"no end within {LIMIT_S} s:\n"
                             f"{err.stdout}") from None
    assert done.returncode == 0, done.stdout
    for line in done.stdout.splitlines():
        if " x  " in line or "reconnects" in line:
            record(line.split(" ", 1)[1])
