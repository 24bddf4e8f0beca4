# SPDX-License-Identifier: LGPL-3.0-or-later
"""The size of a large file after a crash of its gateway is the acknowledged
one, and others can ask for it as soon as the MDS has found it."""
import json
import os
import threading
import time

import pytest

from fuse import Fuse
from lab_program import ceph
from nfs import nfs3, nfs4, rpc
from nfs.xdr import number, wide
from test_stalled_osd import stopped_osds

MIB = 1 << 20
LARGE, OBJECT, BLOCK = 2 << 30, 4 << 20, 4096


class Stat(threading.Thread):
    """A stat by another CephFS client, begun while nobody answers for the
    file: the size that it got."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.size = path, None
        self.start()

    def run(self):
        self.size = os.stat(self.path).st_size


@pytest.fixture
def fuse():
    it = Fuse()
    yield it
    it.end()


def test_size_of_a_large_file_after_a_crash(lab, fuse, record):
    """Sparse; the MDS looks at each object below the range that the gateway
    might write, there or not."""
    name = f"large-{time.time_ns()}"
    connection = rpc.Connection(2049)
    root = nfs3.root_of("/ceph", 2050)
    handle = nfs3.create(connection, root, name)
    for offset in (0, *(OBJECT << k for k in range(9)), LARGE - BLOCK):
        reply = nfs3.write(connection, handle, offset, bytes(BLOCK))
        assert reply.committed
    before = json.loads(ceph("tell", "mds.0", "perf", "dump"))
    lab.run("ganesha", "kill9")
    began = time.monotonic()
    other = Stat(fuse.folder / name)
    lab.run("ganesha", "start")
    connection = rpc.Connection(2049)
    size = nfs3.get_attributes(connection, handle).size
    known_s = time.monotonic() - began
    other.join(60)
    after = json.loads(ceph("tell", "mds.0", "perf", "dump"))
    looks = after["objecter"]["osdop_stat"] - before["objecter"]["osdop_stat"]
    record(f"a file of {LARGE >> 30} GiB after a crash: its size is known "
           f"after {known_s:.1f} s, {looks} looks at objects")
    assert size == other.size == LARGE
    assert after["mds_cache"]["recovery_completed"] > \
        before["mds_cache"]["recovery_completed"]
    assert looks >= LARGE // OBJECT
    nfs3.remove(connection, root, name)


HOLES = {"tail": (4 * MIB, 16 * MIB), "all": (0, MIB)}


@pytest.mark.parametrize("death", ("kill -9", "eviction"))
def test_size_after_the_end_was_punched(lab, till_end, death):
    """The MDS finds a size by the objects.  A hole takes them away, so the
    size has to be in its journal before."""
    name = f"punched-{time.time_ns()}"
    client = nfs4.Client(2049, name)
    for hole, (begin, end) in HOLES.items():
        file = client.open(f"{name}-{hole}", create=nfs4.UNCHECKED)
        for at in range(0, end, MIB):
            assert file.write(at, b"x" * MIB) == MIB
        client.deallocate(file.handle, begin, end - begin, file.stateid)
    if death == "kill -9":
        lab.run("crash")
        lab.run("recover")
    else:
        till_end(lab.may_lose())
        lab.evict(lab.stat()["ganesha"]["a"]["pid"])
    client.die()
    reader = nfs4.Client(2049, f"reader-{name}")
    sizes = {hole: reader.change_and_size(reader.lookup(f"{name}-{hole}"))[1]
             for hole in HOLES}
    assert sizes == {hole: end for hole, (_, end) in HOLES.items()}
    reader.leave()


def open_with_size_0(name):
    nfs4.Client(2049, f"again-{name}").open(name, create=nfs4.UNCHECKED,
                                            size=0)


def create_with_size_0(name):
    connection = rpc.Concurrent(2049)
    root = nfs3.root_of("/ceph", 2050)
    # UNCHECKED, no mode, owner or group, a size, no times
    connection.call(nfs3.CREATE, nfs3.named(root, name) + number(0) +
                    number(0) * 3 + number(1) + wide(0) + number(0) * 2)


@pytest.mark.parametrize("truncate", (open_with_size_0, create_with_size_0))
def test_a_truncation_waits_for_the_journal(lab, truncate):
    """As that by SETATTR: after a crash of MDS and gateway the old bytes were
    back."""
    name = f"truncated-{time.time_ns()}"
    client = nfs4.Client(2049, name)
    file = client.open(name, create=nfs4.UNCHECKED)
    file.write(0, b"x" * 4096)
    file.close()
    client.set(file.handle, mode=0o600)
    thread = threading.Thread(target=truncate, args=[name])
    with stopped_osds():
        thread.start()
        thread.join(2)
        assert thread.is_alive(), "it is acknowledged, and in no journal"
    thread.join(30)
    assert not thread.is_alive()
    assert client.change_and_size(file.handle)[1] == 0
    client.leave()
