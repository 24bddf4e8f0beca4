# SPDX-License-Identifier: LGPL-3.0-or-later
"""Six of the crash cycles of tests/crash, on a cluster that survives them."""
import subprocess
import sys
from pathlib import Path

import pytest

CRASH = Path(__file__).resolve().parents[1] / "crash" / "crash.py"


@pytest.fixture(scope="module")
def bluestore(cluster):
    """The lab on BlueStore: memstore's data would die with the OSD.  The
    tests after us find the cluster that they know."""
    cluster.run("down")
    cluster.run("up", "--store", "bluestore", timeout=180)
    yield cluster
    cluster.run("down")
    cluster.run("up", "--fsal", "CEPH_ASYNC", timeout=180)


@pytest.mark.parametrize("mode", (
    "data", pytest.param("fdatasync", marks=pytest.mark.nightly),
    pytest.param("full", marks=pytest.mark.nightly)))
def test_nothing_acknowledged_is_lost(bluestore, record, mode):
    """Once the gateway is killed alone, once OSD and MDS die with it."""
    done = subprocess.run(
        [sys.executable, "-B", CRASH, "--modes", mode, "--cycles", "1",
         "--storage", "1"], text=True, cwd="/tmp", timeout=300,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout
    for line in done.stdout.splitlines():
        if " wrong: " in line or "least / median" in line:
            record(line.split(" ", 1)[1])
