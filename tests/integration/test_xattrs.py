# SPDX-License-Identifier: LGPL-3.0-or-later
"""Extended attributes as Linux does not ask for them: cookies and odd names.
The rest is in client/case_xattrs.py.
"""
import os
import time

import pytest

from fuse import Fuse
from nfs import nfs4, rpc

COUNT = 40
LARGEST = 8191          # Ganesha's core decodes no longer one


@pytest.fixture
def file(lab):
    client = nfs4.Client(2049, f"xattrs-{time.time_ns()}")
    opened = client.open(f"xattrs-{time.time_ns()}", create=nfs4.UNCHECKED)
    yield opened
    opened.close()
    client.leave()


def status_of(call, *args):
    with pytest.raises(nfs4.Failed) as refusal:
        call(*args)
    return refusal.value.status


def test_a_list_comes_in_pieces(file):
    """Each name once, whatever the size of the pieces."""
    client, handle = file.client, file.handle
    assert client.list_xattrs(handle) == ([], 0, True)
    names = sorted(b"name %02d " % n + b"n" * 90 for n in range(COUNT))
    for name in names:
        client.set_xattr(handle, name, b"v")
    for room in (200, 1000, 1 << 16):
        got, cookie, eof, pieces = [], 0, False, 0
        while not eof:
            more, cookie, eof = client.list_xattrs(handle, cookie, room)
            got += more
            pieces += 1
            assert pieces <= COUNT + 1
        assert sorted(got) == names
        assert (pieces == 1) == (room == 1 << 16)
    assert status_of(client.list_xattrs, handle, 0, 20) == nfs4.TOOSMALL


def test_odd_names(file):
    client, handle = file.client, file.handle
    for name in (b"n" * 250, "käse".encode(), b"with user. in it",
                 b"user.user", b"."):
        client.set_xattr(handle, name, name)
        assert client.get_xattr(handle, name) == name
    assert status_of(client.set_xattr, handle, b"n" * 251, b"v") \
        == nfs4.NAMETOOLONG
    assert status_of(client.set_xattr, handle, b"", b"v") == nfs4.INVAL
    assert status_of(client.get_xattr, handle, b"none") == nfs4.NOXATTR
    assert status_of(client.remove_xattr, handle, b"none") == nfs4.NOXATTR


def test_values_of_all_sizes(file):
    """Up to what Ganesha's core takes; and a change is a change."""
    client, handle = file.client, file.handle
    for size in (0, 1, 4095, 4096, LARGEST):
        before = client.change_and_size(handle)[0]
        client.set_xattr(handle, b"sized", b"v" * size)
        assert client.get_xattr(handle, b"sized") == b"v" * size
        assert client.change_and_size(handle)[0] > before


def test_a_value_longer_than_a_request(file):
    """The core cannot read it: GARBAGE_ARGS, which uses up no sequence."""
    client = nfs4.Client(2049, f"longer-{time.time_ns()}")
    with pytest.raises(rpc.Rejected, match="not accepted: 4"):
        client.set_xattr(file.handle, b"long", b"v" * (LARGEST + 1))
    client.die()
    assert status_of(file.client.get_xattr, file.handle, b"long") \
        == nfs4.NOXATTR


def test_a_value_longer_than_an_answer(lab, file):
    """It came past NFS; Ganesha would drop the connection over it."""
    client = file.client
    mount = Fuse()
    name = f"long-{time.time_ns()}"
    path = mount.folder / name
    path.touch()
    os.setxattr(path, "user.fits", b"v" * 8192)
    os.setxattr(path, "user.long", b"v" * 8193)
    handle = client.lookup(name)
    assert client.get_xattr(handle, b"fits") == b"v" * 8192
    # NFS4ERR_XATTR2BIG, of which Ganesha's core makes an I/O error
    assert status_of(client.get_xattr, handle, b"long") == nfs4.IO
    assert sorted(client.list_xattrs(handle)[0]) == [b"fits", b"long"]
    mount.end()
