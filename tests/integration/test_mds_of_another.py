# SPDX-License-Identifier: LGPL-3.0-or-later
"""The MDS of one file system is away, and many files of it are asked for at
once: each request keeps a worker of Ganesha.  Clients of another file system
may not notice.
"""
import time

import pytest

import second_fs
from lab_program import until
from nfs import nfs3, rpc
from nfs.xdr import number, opaque

FILES = 300             # Ganesha has 200 workers
IN_FLIGHT = 64          # CREATEs of one folder
PAUSE_S = 0.5
WATCH_S = 4             # shorter than any patience of the cluster
BOUND_S = 0.6
JUKEBOX = 10008
SET_MODE = nfs3.mode_alone(0o600) + number(0)   # without a guard


@pytest.fixture
def away(cluster, tmp_path):
    """Stops the MDS of the second file system, for the length of a block."""
    with second_fs.made(cluster, tmp_path) as daemon:
        yield lambda: second_fs.stopped(daemon)


def serve(cluster, keys=""):
    cluster.ganesha("restart", "--fsal", "CEPH_ASYNC", "--export", keys,
                    "--block", "", "--core", "", "--export-block", "",
                    "--nfsv4", "", "--append",
                    second_fs.export("/other", keys=keys))


def longest_create(connection, root, seconds):
    longest, end, count = 0, time.monotonic() + seconds, 0
    while time.monotonic() < end:
        began = time.monotonic()
        nfs3.create(connection, root, f"healthy-{time.time_ns()}")
        longest = max(longest, time.monotonic() - began)
        count += 1
        time.sleep(0.02)
    return longest, count


@pytest.mark.measures
def test_others_have_workers(cluster, away, record):
    serve(cluster)
    healthy, theirs = rpc.Concurrent(2049), rpc.Concurrent(2049)
    root = nfs3.root_of("/ceph", 2050)
    other = nfs3.root_of("/other", 2050)
    files = [nfs3.create(theirs, other, f"file-{n}") for n in range(FILES)]
    statuses = []
    with away():
        for file in files:
            theirs.send(nfs3.SETATTR, opaque(file) + SET_MODE,
                        lambda reply: statuses.append(reply.number()))
        longest, count = longest_create(healthy, root, WATCH_S)
        before = len(statuses)
    until(lambda: len(statuses) == FILES, "all are answered", 60)
    refused = statuses.count(JUKEBOX)
    record(f"{FILES} SETATTRs whose MDS is away: {refused} asked to retry, "
           f"{FILES - before} waited for it; {count} CREATEs elsewhere, the "
           f"slowest {longest:.2f} s")
    assert set(statuses) <= {0, JUKEBOX}
    assert refused and before < FILES, "they did not fill the mount's share"
    assert longest < BOUND_S
    # Nothing is left behind: all have room again.
    for file in files:
        nfs3.call(theirs, nfs3.SETATTR, opaque(file) + SET_MODE)
    theirs.close()
    healthy.close()


def test_a_folder_outlasts_a_short_pause(cluster, away, record):
    """The folder has places for 38 of them.  The others wait for a place, and
    are not told to come again."""
    serve(cluster)
    theirs, statuses = rpc.Concurrent(2049), []
    other = nfs3.root_of("/other", 2050)
    nfs3.create(theirs, other, "the-folder-is-in-use")
    with away():
        for n in range(IN_FLIGHT):
            theirs.send(nfs3.CREATE, nfs3.create_arguments(other, f"new-{n}"),
                        lambda reply: statuses.append(reply.number()))
        time.sleep(PAUSE_S)
        before = len(statuses)
    until(lambda: len(statuses) == IN_FLIGHT, "all are answered", 60)
    record(f"{IN_FLIGHT} CREATEs of a folder, {before} answered in a pause of "
           f"the MDS of {PAUSE_S} s, {statuses.count(JUKEBOX)} refused")
    assert statuses == [0] * IN_FLIGHT
    theirs.close()


def longest_write(connection, file, seconds):
    """Each makes the file longer: its size goes to the MDS."""
    longest, end, count = 0, time.monotonic() + seconds, 0
    while time.monotonic() < end:
        began = time.monotonic()
        nfs3.write(connection, file, 4096 * (count + 1), bytes(4096))
        longest = max(longest, time.monotonic() - began)
        count += 1
    return longest, count


def test_written_files_delay_no_flush_elsewhere(cluster, away, record):
    """More written files than a lane has threads wait for an MDS that is away;
    the other file system's WRITEs wait for their own MDS alone."""
    serve(cluster, "Stable_Write = full;")
    healthy, theirs = rpc.Concurrent(2049), rpc.Concurrent(2049)
    other = nfs3.root_of("/other", 2050)
    mine = nfs3.create(healthy, nfs3.root_of("/ceph", 2050),
                       f"mine-{time.time_ns()}")
    files = [nfs3.create(theirs, other, f"written-{n}") for n in range(FILES)]
    for file in files:
        nfs3.write(theirs, file, 0, bytes(4096))
    statuses = []
    with away():
        for file in files:
            theirs.send(nfs3.WRITE,
                        nfs3.write_arguments(file, 4096, bytes(4096)),
                        lambda reply: statuses.append(reply.number()))
        time.sleep(1)           # the lane has got its threads
        longest, count = longest_write(healthy, mine, WATCH_S)
        before = len(statuses)
    until(lambda: len(statuses) == FILES, "all are answered", 60)
    record(f"{FILES - before} WRITEs waited for an MDS that is away; {count} "
           f"WRITEs elsewhere, the slowest {longest:.2f} s")
    assert statuses == [0] * FILES
    assert before == 0, "they did not wait"
    assert longest < BOUND_S
    theirs.close()
    healthy.close()
