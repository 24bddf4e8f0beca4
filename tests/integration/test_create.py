# SPDX-License-Identifier: LGPL-3.0-or-later
"""What fails after something was made leaves nothing behind.

NFSv3's CREATE, MKDIR, SYMLINK and MKNOD and NFSv4's OPEN take attributes that
CephFS sets in a second call.  A requester who gives the new file away has
that call refused; by then the name exists.
"""
import errno
import struct
import time

import pytest

from nfs import nfs3, nfs4, rpc
from nfs.xdr import number, opaque

REQUESTER, SOMEBODY_ELSE = 1000, 1001
SYMLINK, MKNOD, FIFO = 10, 11, 7
PERM = 1                # NFS3ERR_PERM, NFS4ERR_PERM


@pytest.fixture
def directory(lab):
    """A directory of the requester's: its handle, and how it is asked."""
    root = nfs3.root_of("/ceph", 2050)
    keeper = rpc.Connection(2049)
    name = f"half-made-{time.time_ns()}"
    handle = nfs3.make_directory(keeper, root, name)
    nfs3.give(keeper, handle, REQUESTER, 0o755)
    connection = rpc.Connection(2049, uid=REQUESTER, gid=REQUESTER)
    yield connection, handle, name
    assert names_in(keeper, handle) == set()
    nfs3.remove(keeper, root, name, nfs3.RMDIR)
    connection.close()
    keeper.close()


def names_in(connection, handle):
    entries, _, _ = nfs3.readdir(connection, handle)
    return {name for name, _ in entries} - {b".", b".."}


def given_away(mode):
    """sattr3: a mode, and an owner that only root may set."""
    return struct.pack(">IIIIIIII", 1, mode, 1, SOMEBODY_ELSE, 0, 0, 0, 0)


KINDS = {
    "create": (nfs3.CREATE, lambda: number(0) + given_away(0o644)),
    "mkdir": (nfs3.MKDIR, lambda: given_away(0o755)),
    "symlink": (SYMLINK, lambda: given_away(0o777) + opaque(b"where")),
    "mknod": (MKNOD, lambda: number(FIFO) + given_away(0o644)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_half_made_is_removed(directory, kind):
    connection, handle, _ = directory
    procedure, arguments = KINDS[kind]
    with pytest.raises(nfs3.Refused) as refused:
        nfs3.call(connection, procedure,
                  nfs3.named(handle, kind) + arguments())
    assert refused.value.status == errno.EPERM
    assert names_in(connection, handle) == set()


def test_half_made_by_open_is_removed(directory):
    """And the OPEN holds no state: the name can be created at once."""
    _, _, name = directory
    client = nfs4.Client(2049, f"maker-{time.time_ns()}", uid=REQUESTER)
    # Ganesha's id mapper knows a number it has met once as no user's name.
    stranger = str(10**6 + time.time_ns() % 10**6)
    parent = client.lookup(name)
    with pytest.raises(nfs4.Failed) as refused:
        client.open("open", create=nfs4.UNCHECKED, directory=parent,
                    file_owner=stranger)
    assert refused.value.status == PERM
    opened = client.open("open", create=nfs4.UNCHECKED, directory=parent)
    opened.write(0, b"here")
    opened.close()
    client.remove("open", parent)
    client.leave()
