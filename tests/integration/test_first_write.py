# SPDX-License-Identifier: LGPL-3.0-or-later
"""The first data of a file wait until the MDS has journaled its create, however
long that takes, and by whatever object the file is found."""
import threading
import time

from lab import SECOND_PORT
from lab_program import ceph
from nfs import nfs3, rpc
import pytest
import test_share_client

# Of the MDS, whose default is 5 s; and of libcephfs, for what it holds back.
TICK_S = 1
HELD_BACK = f'Ceph_Option = "client_caps_release_delay = {TICK_S}";'
DATA = b"first" * 100


class Write(threading.Thread):
    """One stable WRITE, on a connection of its own."""

    def __init__(self, handle):
        super().__init__(daemon=True)
        self.connection = rpc.Concurrent(SECOND_PORT)
        self.handle = handle
        self.done = False
        self.start()

    def run(self):
        nfs3.write(self.connection, self.handle, 0, DATA)
        self.done = True
        self.connection.close()

    def is_answered(self, seconds):
        self.join(seconds)
        return self.done


@pytest.fixture
def connection(lab, second):
    """To two exports with the same CephFS client.  Each has an object of its
    own for a file."""
    test_share_client.start(lab, second, block=HELD_BACK)
    made = rpc.Connection(SECOND_PORT)
    yield made
    made.close()


@pytest.fixture
def pair(connection):
    """A folder through both exports, which no other CephFS client knows."""
    roots = [nfs3.root_of(f"/{name}", SECOND_PORT + 1)
             for name in ("left", "right")]
    name = f"first-{time.time_ns()}"
    nfs3.make_directory(connection, roots[0], name)
    return [nfs3.lookup(connection, root, name) for root in roots]


@pytest.fixture
def quick_tick():
    ceph("tell", "mds.a", "config", "set", "mds_tick_interval", TICK_S)
    yield
    ceph("tell", "mds.a", "config", "set", "mds_tick_interval", "5")


def test_a_journal_that_is_far_behind(quick_tick, pair, connection,
                                      journal_paused):
    """Its MDS is slow: after its tick the create is not journaled yet."""
    left, right = pair
    name = f"new-{time.time_ns()}"
    nfs3.create(connection, left, "before")
    time.sleep(1)
    journal_paused("true")
    nfs3.create(connection, left, name)
    time.sleep(2 * TICK_S)
    write = Write(nfs3.lookup(connection, right, name))
    assert not write.is_answered(2)
    journal_paused("false")
    assert write.is_answered(20)


def test_a_file_that_is_journaled(pair, connection, record, journal_paused):
    """Its first WRITE asks the MDS for nothing."""
    left, right = pair
    name = f"old-{time.time_ns()}"
    nfs3.create(connection, left, name)
    time.sleep(3 * TICK_S)              # libcephfs has sent what it had
    handle = nfs3.lookup(connection, right, name)
    journal_paused("true")
    began = time.monotonic()
    assert Write(handle).is_answered(2)
    record(f"the first WRITE of a file that is journaled: "
           f"{1000 * (time.monotonic() - began):.1f} ms")
