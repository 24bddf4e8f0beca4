# SPDX-License-Identifier: LGPL-3.0-or-later
"""Small adjacent writes that are all refused: each call of libcephfs that
carried several is made again for each alone.  That must not cost memory, or
any client that may write one file takes the gateway down.
"""
import json
import subprocess
import time

import cephfs
import pytest

import metrics_outputs as outputs
from lab import resident_kib
from lab_program import ceph

BLOCK = 4096
IN_FLIGHT = 64
CONNECTIONS = 4
LIMIT = 1 << 16             # CephFS takes no lower max_file_size
LARGEST = 1 << 40           # as it sets it
WARM_UP_S = 2
SECONDS = 8
LEAST = 60_000
# The metrics are up to a second late.
SETTLE_S = 1.5
# What refused writes leave behind once and for all: with Gather_Bytes = 0,
# where none is made again, it was at most 3.3 MiB behind such a warm-up.
SLACK_KIB = 4 << 10


def largest_file(size):
    ceph("fs", "set", "cephfs", "max_file_size", size)


@pytest.fixture(params=("DQUOT", "FBIG"))
def limited(request, cluster):
    """A folder whose files are soon refused more, and how."""
    folder = f"/refused-{time.time_ns()}"
    fs = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
    fs.mount()
    fs.mkdir(folder, 0o777)
    if request.param == "DQUOT":
        fs.setxattr(folder, "ceph.quota.max_bytes", str(LIMIT).encode(), 0)
    else:
        largest_file(LIMIT)
    fs.shutdown()
    yield folder, f"NFS3ERR_{request.param}"
    largest_file(LARGEST)


def refused(limited, seconds):
    """How many stable writes, one behind the other, were refused."""
    folder, error = limited
    done = subprocess.run(
        ["nfsload", "--export", f"/ceph{folder}", "--pattern", "append",
         "--file-size", str(BLOCK), "--block-size", str(BLOCK),
         "--connections", str(CONNECTIONS), "--depth",
         str(IN_FLIGHT // CONNECTIONS), "--warmup", "0",
         "--seconds", str(seconds), "--allow-errors"],
        text=True, check=False, timeout=seconds + 60,
        stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 0, done.stderr
    write = json.loads(done.stdout)["ops"]["write"]
    assert write["errors"].keys() == {error}
    assert write["lost"] == 0
    # libcephfs learns from the MDS how much of a quota is used.
    assert write["answered"] <= LIMIT // BLOCK + IN_FLIGHT, "no limit"
    return write["failed"]


def gathered():
    time.sleep(SETTLE_S)
    return outputs.prometheus("gathered_writes_total", export="1")


def test_refused_writes_leave_no_memory_behind(lab, limited, record):
    lab.ganesha("restart", "--core", "Enable_Metrics = true;")
    pid = lab.stat()["ganesha"]["a"]["pid"]
    refused(limited, WARM_UP_S)
    together = gathered()
    before = resident_kib(pid)
    count = refused(limited, SECONDS)
    after = resident_kib(pid)
    together = gathered() - together
    record(f"{count} sequential writes refused with {limited[1]}, "
           f"{IN_FLIGHT} in flight, {together:.0f} of them gathered: "
           f"ganesha.nfsd {before / 1024:.1f} MiB before, "
           f"{after / 1024:.1f} MiB after")
    assert count >= LEAST
    assert together > 0, "no write shared a call, so this says nothing"
    assert after < before * 1.05 + SLACK_KIB
