# SPDX-License-Identifier: LGPL-3.0-or-later
"""SETATTR and COMMIT of a file with 128 writes in flight.

Both end with a flush of the inode, for which libcephfs waits until the inode
has no write in flight: never, while others keep coming.
"""
import statistics
import struct
import threading

import pytest

from bench import Others, nfsload
from lab_program import until
from nfs import nfs3, rpc
from nfs.xdr import opaque
from test_stalled_osd import Flight

# On a quiet machine alone: with 0.3 CPUs of others a miss says nothing.
pytestmark = pytest.mark.nightly

SLOW_MS = 20            # an OSD's operation takes 0 to that
NAME = "change-under-load"
CONNECTIONS, DEPTH = 4, 32
SIZE = "64M"
# A load without one, with CHANGES of them, one a second, and without again.
CHANGES = 6
ALONE_S = 2
WARMUP_S = 0.3
TIMES_P99 = 3
# Of a machine so fast that 3 x p99 is less than anything else takes.
P99_FLOOR_MS = 30
# 5 % are wanted; on a quiet machine loads that are all alike differ by 10,
# and with others on it by 30.
LOSS = 0.2
COMMIT = 21


def load(stable, seconds):
    """Overwrite the file at random: writes a second, and their p99 in ms."""
    writes = nfsload(
        "--connections", CONNECTIONS, "--depth", DEPTH, "--file-size", SIZE,
        "--name", NAME, "--stable", stable, "--warmup", WARMUP_S,
        "--seconds", seconds, "--drain", 60)["ops"]["write"]
    return writes["per_s"], writes["latency_us"]["p99"] / 1000


@pytest.fixture(params=(0, SLOW_MS), ids=("fast", "slow"))
def backend(cluster, request):
    """Fast or slow, for a Ganesha that starts now; the file is there."""
    cluster.ensure_default()
    nfsload("--file-size", SIZE, "--name", NAME, "--count", 1)
    if request.param:
        cluster.run("slow", request.param)
    yield f"OSDs of 0 to {request.param} ms" if request.param else "fast OSDs"
    if request.param:
        cluster.run("slow", 0)


@pytest.mark.parametrize("what, procedure, stable, keys", (
    ("SETATTR", nfs3.SETATTR, "file_sync", ""),
    ("COMMIT", COMMIT, "unstable", "Stable_Write = full;")),
    ids=("SETATTR", "COMMIT"))
def test_a_change_waits_for_few_writes(cluster, backend, record, what,
                                       procedure, stable, keys):
    cluster.ganesha("restart", "--export", keys)
    connection = rpc.Concurrent(2049)
    file = nfs3.lookup(connection, nfs3.root_of("/ceph", 2050), f"{NAME}.0")
    changes = Flight(connection)

    def change(number):
        changes.send(number, procedure, nfs3.read_arguments(file, 0, 0)
                     if what == "COMMIT" else opaque(file) + struct.pack(
                         ">IIIIIIII", 1, 0o600 + number, 0, 0, 0, 0, 0, 0))
    timers = [threading.Timer(WARMUP_S + 0.2 + number, change, (number,))
              for number in range(CHANGES)]
    others = Others()
    before, _ = load(stable, ALONE_S)
    for timer in timers:
        timer.start()
    beside, p99 = load(stable, CHANGES)
    for timer in timers:
        timer.join()
    until(changes.complete, "all are answered")
    after, _ = load(stable, ALONE_S)
    busy = others.cpus()
    connection.close()

    ratio = 2 * beside / (before + after)
    waits = [1000 * seconds for seconds in changes.seconds.values()]
    record(f"{what} of a file with {CONNECTIONS * DEPTH} {stable} writes in "
           f"flight, {backend}: {len(waits)}, median "
           f"{statistics.median(waits):.0f} ms, at most {max(waits):.0f}; the "
           f"writes' p99 {p99:.0f} ms, rate {ratio:.3f} of "
           f"{before:.0f} and {after:.0f}/s without; others used {busy:.2f} "
           "CPUs")
    assert set(changes.results.values()) == {0}
    assert max(waits) <= TIMES_P99 * max(p99, P99_FLOOR_MS)
    assert ratio > 1 - LOSS
