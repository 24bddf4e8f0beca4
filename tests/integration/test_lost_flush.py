# SPDX-License-Identifier: LGPL-3.0-or-later
"""A session that is lost before a flush, or before a hole is punched: libcephfs
drops it, and then says that it has succeeded.  The client must not be told
so."""
import threading
import time

import pytest

from faults import Faults, start
from lab_program import LOGS, Log, until
from nfs import nfs3, nfs4, rpc
from test_stalled_osd import stopped_osds

JUKEBOX = 10008
OLD, NEW = 0o600, 0o644


@pytest.fixture
def shim(cluster):
    """Ganesha "a" with the shim; it comes back from a loss."""
    with cluster.may_lose():
        faults = start(cluster)
        cluster.ganesha("restart", "--faults", "--block", "", "--export",
                        "Stable_Metadata = journal;")
        yield faults
        faults.clear()


class Setattr(threading.Thread):
    """A chmod, sent once; `status` is 0 or the NFS error."""

    def __init__(self, handle):
        super().__init__(daemon=True)
        self.handle, self.status = handle, None
        self.start()

    def run(self):
        connection = rpc.Connection(2049, timeout=60)
        try:
            nfs3.give(connection, self.handle, 0, NEW)
            self.status = 0
        except nfs3.Refused as refused:
            self.status = refused.status
        finally:
            connection.close()


def mode_of(handle):
    """As the next client of the gateway has it; None: it does not serve."""
    connection = rpc.Connection(2049, timeout=60)
    try:
        return nfs3.get_attributes(connection, handle).mode & 0o7777
    except nfs3.Refused:
        return None
    finally:
        connection.close()


def test_a_chmod_whose_session_is_lost_is_not_acknowledged(cluster, shim,
                                                           record):
    connection = rpc.Connection(2049, timeout=60)
    root = nfs3.root_of("/ceph", 2050)
    handle = nfs3.create(connection, root, "chmod-of-a-lost-session")
    nfs3.write(connection, handle, 0, b"x" * 4096)
    nfs3.give(connection, handle, 0, OLD)
    shim.set("flush nth=1 count=1 hold")
    chmod = Setattr(handle)
    # The mode is changed in libcephfs' memory, the flush has not begun.
    Faults.wait(lambda: shim.hits("hold"), "flush")
    cluster.evict(cluster.stat()["ganesha"]["a"]["pid"])
    shim.set("release")
    chmod.join(30)
    assert not chmod.is_alive()
    until(lambda: mode_of(handle) is not None, "the gateway serves",
          seconds=30)
    mode = mode_of(handle)
    record(f"evicted before its flush, a chmod gets {chmod.status}; "
           f"then the mode is {mode:o}")
    assert (mode, chmod.status) == (OLD, JUKEBOX)


def test_a_hole_whose_session_is_lost_is_not_acknowledged(lab, till_end):
    """The OSD stands still, so it has punched nothing."""
    till_end(lab.may_lose())
    client = nfs4.Client(2049, "hole-of-a-lost-session")
    file = client.open(client.name.decode(), create=nfs4.UNCHECKED)
    file.write(0, b"x" * 8192)
    answered = threading.Event()
    log = Log(LOGS / "ganesha-a.log")

    def punch():
        client.deallocate(file.handle, 0, 4096, file.stateid)
        answered.set()
    session = lab.sessions(lab.stat()["ganesha"]["a"]["pid"])[0]["id"]
    # The MDS answers when its journal is written: not while the OSD stands.
    eviction = threading.Thread(target=lab.evict_session, args=[session])
    with stopped_osds():
        threading.Thread(target=punch, daemon=True).start()
        time.sleep(0.5)
        eviction.start()
        until(lambda: log.matching("session is lost"), "the loss is seen")
        assert not answered.wait(1)
    assert answered.wait(30)
    eviction.join()
    assert file.read(0, 8192) == bytes(4096) + b"x" * 4096
    client.leave()
