# SPDX-License-Identifier: LGPL-3.0-or-later
"""Snapshots by handle: made and removed through the gateway, kept through
its restart.  What applications see of them is in client/case_snapshots.py.
"""
import time

import pytest

from fuse import Fuse
from lab_program import until
from nfs import nfs3, nfs4, rpc

NOENT, STALE = 2, 70
OLD, NEW = b"old" * 1000, b"new" * 1000


class V3:
    def __init__(self):
        self.connection = rpc.Concurrent(2049)
        self.root = nfs3.root_of("/ceph", 2050)

    def lookup(self, directory, name):
        return nfs3.lookup(self.connection, directory, name)

    def mkdir(self, directory, name):
        return nfs3.make_directory(self.connection, directory, name)

    def rmdir(self, directory, name):
        nfs3.remove(self.connection, directory, name, nfs3.RMDIR)

    def unlink(self, directory, name):
        nfs3.remove(self.connection, directory, name)

    def file(self, directory, name):
        return nfs3.create(self.connection, directory, name)

    def write(self, handle, data):
        nfs3.write(self.connection, handle, 0, data)

    def read(self, handle):
        return nfs3.read(self.connection, handle, 0, 1 << 16)

    def names(self, handle):
        return {name for name, _ in nfs3.readdir(
            self.connection, handle)[0]} - {b".", b".."}

    def truncate(self, handle):
        nfs3.call(self.connection, nfs3.SETATTR, nfs3.truncation(handle))

    def status(self, call, *args):
        with pytest.raises(nfs3.Refused) as refusal:
            call(*args)
        return refusal.value.status

    def end(self):
        self.connection.close()


class V4:
    minor = 2

    def __init__(self):
        self.client = nfs4.Client(2049, f"snapshots-{time.time_ns()}",
                                  minor=self.minor)
        self.root = self.client.root

    def lookup(self, directory, name):
        return self.client.lookup(name, directory)

    def mkdir(self, directory, name):
        return self.client.create(nfs4.DIRECTORY, name, directory)

    def rmdir(self, directory, name):
        self.client.remove(name, directory)

    unlink = rmdir

    def file(self, directory, name):
        file = self.client.open(name, create=nfs4.UNCHECKED,
                                directory=directory)
        file.close()
        return file.handle

    def write(self, handle, data):
        self.client.write(handle, 0, data)

    def read(self, handle):
        return self.client.read(handle, 0, 1 << 16)

    def names(self, handle):
        return {name for name, _ in self.client.readdir(handle)[0]}

    def truncate(self, handle):
        self.client.set(handle, size=0)

    def status(self, call, *args):
        with pytest.raises(nfs4.Failed) as refusal:
            call(*args)
        return refusal.value.status

    def end(self):
        self.client.leave()


class V41(V4):
    minor = 1


@pytest.fixture(params=(V3, V41, V4), ids=("v3", "v4.1", "v4.2"))
def version(request):
    return request.param


def test_a_snapshot_from_birth_to_death(lab, version):
    client = version()
    top = client.mkdir(client.root, f"snapshots-{time.time_ns()}")
    inside = client.mkdir(top, "inside")
    live = client.file(inside, "file")
    client.write(live, OLD)
    folder = client.lookup(top, ".snap")
    assert client.names(folder) == set()
    assert b".snap" not in client.names(top)
    one = client.mkdir(folder, "one")
    client.write(live, NEW)
    client.file(inside, "later")
    assert client.names(folder) == {b"one"}
    frozen_inside = client.lookup(one, "inside")
    assert client.names(frozen_inside) == {b"file"}
    frozen = client.lookup(frozen_inside, "file")
    assert frozen != live
    assert client.read(frozen) == OLD and client.read(live) == NEW
    # of a folder below, it has the snapshot's own name and its folder's
    assert len(client.names(client.lookup(inside, ".snap"))) == 1

    # all that would change it; RFC 1813 and 8881 both have number 30
    for call, *args in (
            (client.write, frozen, NEW), (client.truncate, frozen),
            (client.mkdir, frozen_inside, "new"),
            (client.file, frozen_inside, "new"),
            (client.unlink, frozen_inside, "file")):
        assert client.status(call, *args) == nfs3.READ_ONLY, call
    assert client.status(client.lookup, folder, "none") == NOENT

    # by handle alone, for who has never looked it up
    lab.run("ganesha", "restart")
    client.end()
    client = version()
    assert client.names(frozen_inside) == {b"file"}
    assert client.names(one) == {b"inside"}
    assert client.names(folder) == {b"one"}
    assert client.lookup(frozen_inside, "file") == frozen
    assert client.lookup(one, "inside") == frozen_inside
    assert client.status(client.lookup, frozen_inside, "later") == NOENT
    assert client.read(frozen) == OLD and client.read(live) == NEW
    for call, *args in ((client.write, frozen, NEW),
                        (client.mkdir, frozen_inside, "new"),
                        (client.file, frozen_inside, "new"),
                        (client.unlink, frozen_inside, "file")):
        assert client.status(call, *args) == nfs3.READ_ONLY, call
    assert client.names(inside) == {b"file", b"later"}

    client.rmdir(folder, "one")
    assert client.names(folder) == set()
    assert client.status(client.lookup, folder, "one") == NOENT
    assert client.read(live) == NEW
    client.end()


def test_opens_of_a_snapshot(lab):
    """OPEN to read, and to read only."""
    client = V4()
    top = client.mkdir(client.root, f"snapshots-{time.time_ns()}")
    live = client.file(top, "file")
    client.write(live, OLD)
    folder = client.lookup(top, ".snap")
    one = client.mkdir(folder, "one")
    client.write(live, NEW)
    opened = client.client.open("file", access=nfs4.READ, directory=one)
    assert opened.read(0, len(OLD)) == OLD
    for access in (nfs4.WRITE, nfs4.BOTH):
        with pytest.raises(nfs4.Failed) as refusal:
            client.client.open("file", access=access, directory=one)
        assert refusal.value.status == nfs4.ROFS
    with pytest.raises(nfs4.Failed) as refusal:
        opened.write(0, NEW)
    assert refusal.value.status == nfs4.OPENMODE
    assert opened.read(0, len(OLD)) == OLD
    opened.close()
    client.rmdir(folder, "one")
    client.end()


def test_what_is_deleted_since_is_the_snapshots_still(lab, record):
    """By a handle from before the restart: what it was, or STALE; by name
    what it was."""
    client = V4()
    top = client.mkdir(client.root, f"snapshots-{time.time_ns()}")
    inside = client.mkdir(top, "inside")
    client.write(client.file(inside, "file"), OLD)
    folder = client.lookup(top, ".snap")
    one = client.mkdir(folder, "one")
    frozen_inside = client.lookup(one, "inside")
    frozen = client.lookup(frozen_inside, "file")
    client.unlink(inside, "file")
    client.rmdir(top, "inside")
    assert client.names(frozen_inside) == {b"file"}
    assert client.read(frozen) == OLD
    lab.run("ganesha", "restart")
    client.end()
    client = V4()
    said = []
    for call, handle, was in ((client.names, frozen_inside, {b"file"}),
                              (client.read, frozen, OLD)):
        try:
            assert call(handle) == was
            said.append("right")
        except nfs4.Failed as err:
            assert err.status == nfs4.STALE
            said.append("STALE")
    record(f"folder and file deleted since the snapshot, by handles from "
           f"before a restart: {said}")
    again = client.lookup(one, "inside")
    assert client.names(again) == {b"file"}
    assert client.read(client.lookup(again, "file")) == OLD
    client.rmdir(folder, "one")
    client.end()


class SeenByFuse:
    """As another CephFS client removes it: the gateway is not told."""

    def __init__(self):
        self.fuse = Fuse()

    def remove(self, _client, _folder, top, name):
        (self.fuse.folder / top / ".snap" / name).rmdir()

    def end(self):
        self.fuse.end()


class SeenByUs:
    @staticmethod
    def remove(client, folder, _top, name):
        client.rmdir(folder, name)

    def end(self):
        pass


@pytest.mark.parametrize("by", (SeenByFuse, SeenByUs))
def test_a_file_of_a_removed_snapshot_is_stale(lab, by):
    """The OSDs trim it seconds later.  What they have no more are holes, and
    would be zeros; the present file is another one."""
    who = by()
    clients = [kind() for kind in (V3, V41, V4)]
    client = clients[0]
    top = f"snapshots-{time.time_ns()}"
    inside = client.mkdir(client.mkdir(client.root, top), "inside")
    live = client.file(inside, "file")
    client.write(live, OLD)
    sparse = client.file(inside, "sparse")
    nfs3.write(client.connection, sparse, 5 << 20, OLD)
    folder = client.lookup(client.lookup(client.root, top), ".snap")
    for name in ("gone", "stays"):
        client.mkdir(folder, name)
        client.write(live, NEW)

    def frozen(one, *path):
        at = one.root
        for step in (top, ".snap", *path):
            at = one.lookup(at, step)
        return at
    gone = {one: frozen(one, "gone", "inside", "file") for one in clients}
    hole = frozen(client, "stays", "inside", "sparse")
    who.remove(client, folder, top, "gone")
    client.mkdir(folder, "gone")    # another one, by the same name
    said = {}

    def are_stale():
        for one, handle in gone.items():
            try:
                assert one.read(handle) == OLD, "zeros"
            except (nfs3.Refused, nfs4.Failed) as err:
                said[one] = err.status
        return len(said) == len(clients)
    until(are_stale, "the snapshot is trimmed", seconds=60)
    assert set(said.values()) == {STALE}
    assert client.read(hole) == bytes(1 << 16)
    for name in ("gone", "stays"):
        client.rmdir(folder, name)
    for one in clients:
        one.end()
    who.end()
