# SPDX-License-Identifier: LGPL-3.0-or-later
"""File handles that nobody was given: an error, or the very file that they
name; see tests/fuzz/handles.py.  ci/fuzz.sh does this for longer."""
import time

import pytest

from lab_program import LOGS, Log
from handles import NO_HANDLE, NOSNAP, OPERATIONS, SNAPDIR, Fuzz, World

HANDLES = 5000
SEED = 20240229         # any: the same handles each time


@pytest.fixture(scope="module")
def world(cluster):
    cluster.ensure_default()
    return World(2049, "/ceph", f"handles-{time.time_ns()}")


def still_there(lab, world):
    world.check()
    assert lab.stat()["ganesha"]["a"]["pid"], lab.tails()


def test_random_handles(lab, world, record):
    fuzz = Fuzz(world, SEED)
    # Export 0, Ganesha's own, says so of each handle that is not one of its.
    with lab.expects("pseudofs_create_handle :FSAL :CRIT :Invalid "):
        fuzz.run(seconds=120, most=HANDLES)
    record(f"handles: {fuzz.summary()}")
    assert fuzz.sent == HANDLES
    assert not fuzz.wrong, "\n".join(fuzz.wrong)
    still_there(lab, world)


# libcephfs takes these for files; reading one ended the process, or never did.
@pytest.mark.parametrize("snapid", [0, 1, 0x777, 2**63, NOSNAP - 1, SNAPDIR],
                         ids=hex)
@pytest.mark.parametrize("operation", [*OPERATIONS, "WRITE"])
def test_no_such_snapshot(lab, world, operation, snapid):
    meaning = world.form.take_apart(world.files[0])._replace(snapid=snapid)
    fuzz = Fuzz(world, SEED)
    fuzz.send(world.form.make(meaning), operation)
    fuzz.finish()
    assert not fuzz.wrong, fuzz.wrong
    assert set(fuzz.seen) <= set(NO_HANDLE.values()), fuzz.seen
    still_there(lab, world)


# What the MDS keeps for itself: its directory, journal, purge queue, strays.
@pytest.mark.parametrize("ino", [0x100, 0x200, 0x500, 0x600, 0x609, 0xfff],
                         ids=hex)
def test_inodes_of_the_mds(lab, world, ino):
    """Refused before libcephfs: it writes a line into its log for each."""
    logs = [Log(path) for path in LOGS.glob("*.log")]
    living = world.form.take_apart(world.files[0])
    fuzz = Fuzz(world, SEED)
    for operation in OPERATIONS:
        for snapid in NOSNAP, SNAPDIR, 5:
            fuzz.send(world.form.make(living._replace(
                ino=ino, snapid=snapid)), operation)
    fuzz.finish()
    assert not fuzz.wrong, fuzz.wrong
    assert set(fuzz.seen) <= set(NO_HANDLE.values()), fuzz.seen
    lines = [line for log in logs for line in log.matching("reserved inode")]
    assert not lines, lines[0]
    still_there(lab, world)


def test_snapshots_are_read_after_a_restart(lab, world):
    """By handles alone: nobody has looked the snapshot up since."""
    lab.run("ganesha", "restart")
    world.reconnect()
    still_there(lab, world)
