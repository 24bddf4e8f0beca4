# SPDX-License-Identifier: LGPL-3.0-or-later
"""Who changes the data of a setuid file, and is not root, clears its set-id
bits: by DEALLOCATE, and by an OPEN or a CREATE that truncates.  WRITE and
SETATTR are in client/case_privileges.py."""
import struct
import time

from nfs import nfs3, nfs4, rpc
import pytest

USER, OTHER = 1000, 1001
DATA = b"program " * 4096
MODE, CLEARED = 0o6777, 0o777


@pytest.fixture
def root(lab):
    made = rpc.Concurrent(2049)
    yield made
    made.close()


@pytest.fixture
def folder(root):
    """Its name, which is open to all, and its handle."""
    name = f"set-id-{time.time_ns()}"
    handle = nfs3.make_directory(root, nfs3.root_of("/ceph", 2050), name)
    nfs3.call(root, nfs3.SETATTR, nfs3.setting(handle, mode=0o777))
    return name, handle


def file_of(root, folder, owner, mode):
    handle = nfs3.create(root, folder[1], "file")
    nfs3.write(root, handle, 0, DATA)
    nfs3.give(root, handle, owner, 0o644)
    # Alone: with an owner it would lose the bits.
    nfs3.call(root, nfs3.SETATTR, nfs3.setting(handle, mode=mode))
    assert nfs3.get_attributes(root, handle).mode == mode
    return handle


def with_v4(uid, folder, change):
    client = nfs4.Client(2049, f"set-id-{uid}-{time.time_ns()}", uid=uid)
    try:
        change(client, client.lookup(folder[0]))
    finally:
        client.leave()


def deallocate(uid, folder):
    def change(client, directory):
        file = client.open("file", directory=directory)
        client.deallocate(file.handle, 0, 4096, file.stateid)
        file.close()
    with_v4(uid, folder, change)


def open_truncates(uid, folder):
    with_v4(uid, folder, lambda client, directory: client.open(
        "file", create=nfs4.UNCHECKED, directory=directory, size=0).close())


def truncate_an_open_file(uid, folder):
    """The same open owner has it open already."""
    def change(client, directory):
        file = client.open("file", directory=directory, owner=b"me")
        client.open("file", create=nfs4.UNCHECKED, directory=directory,
                    size=0, owner=b"me")
        assert client.change_and_size(file.handle)[1] == 0
    with_v4(uid, folder, change)


def create_truncates(uid, folder):
    connection = rpc.Connection(2049, uid, uid)
    try:
        nfs3.call(connection, nfs3.CREATE, nfs3.named(folder[1], "file") +
                  struct.pack(">IIIIIQII", 0, 0, 0, 0, 1, 0, 0, 0))
    finally:
        connection.close()


@pytest.mark.parametrize("owner", [USER, OTHER])
@pytest.mark.parametrize("change", [deallocate, open_truncates,
                                    truncate_an_open_file, create_truncates])
def test_a_user_clears_them(root, folder, change, owner):
    handle = file_of(root, folder, owner, MODE)
    change(USER, folder)
    assert nfs3.get_attributes(root, handle).mode == CLEARED
    left = bytes(4096) + DATA[4096:] if change is deallocate else b""
    assert nfs3.read_all(root, handle) == left
    # The second time they are found again.
    nfs3.call(root, nfs3.SETATTR, nfs3.setting(handle, mode=MODE))
    change(USER, folder)
    assert nfs3.get_attributes(root, handle).mode == CLEARED


@pytest.mark.parametrize("change", [deallocate, open_truncates,
                                    create_truncates])
def test_root_keeps_them(root, folder, change):
    handle = file_of(root, folder, OTHER, MODE)
    change(0, folder)
    assert nfs3.get_attributes(root, handle).mode == MODE


@pytest.mark.parametrize("change", [open_truncates, create_truncates])
def test_who_may_not_write_truncates_nothing(root, folder, change):
    """Ganesha checks a CREATE of a file that is there when it has been
    truncated."""
    handle = file_of(root, folder, OTHER, 0o6755)
    with pytest.raises((nfs3.Refused, nfs4.Failed)) as refused:
        change(USER, folder)
    assert refused.value.status == nfs3.ACCESS_DENIED
    assert nfs3.read_all(root, handle) == DATA
    assert nfs3.get_attributes(root, handle).mode == 0o6755
