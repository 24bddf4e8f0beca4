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

from lab import SECOND_PORT
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


# --- a name that a symlink has is taken (libcephfs would follow it)

MADE = "made"


def makers_of_v3(connection, folder):
    """What makes a name with NFSv3; each is given the name."""
    file = nfs3.create(connection, folder, "file")

    def called(procedure, arguments):
        return lambda name: nfs3.call(connection, procedure, arguments(name))
    return {
        "mkdir": called(nfs3.MKDIR, lambda name: nfs3.directory_arguments(
            folder, name)),
        "symlink": called(nfs3.SYMLINK, lambda name: nfs3.symlink_arguments(
            folder, name)),
        "fifo": called(nfs3.MKNOD, lambda name: nfs3.fifo_arguments(
            folder, name)),
        "link": called(nfs3.LINK, lambda name: nfs3.link_arguments(
            file, folder, name)),
        "create": called(nfs3.CREATE, lambda name: nfs3.named(folder, name) +
                         number(1) + nfs3.mode_alone(0o644))}


def makers_of_v4(client, folder):
    file = client.open("file", create=nfs4.UNCHECKED, directory=folder)
    file.close()
    fifo, directory = nfs3.FIFO, nfs3.DIRECTORY
    return {
        "mkdir": lambda name: client.create(directory, name, folder),
        "symlink": lambda name: client.create(
            nfs4.SYMLINK, name, folder, target=b"nowhere"),
        "fifo": lambda name: client.create(fifo, name, folder),
        "link": lambda name: client.compound(
            nfs4.put(file.handle), (32, b"", None), nfs4.put(folder),
            (11, opaque(name.encode()), lambda reply: reply.skip(20))),
        "create": lambda name: client.open(
            name, create=nfs4.GUARDED, directory=folder)}


def all_are_taken(makers, make_symlink):
    for kind, make in makers.items():
        make_symlink(kind, f"{MADE}-{kind}")
        with pytest.raises((nfs3.Refused, nfs4.Failed)) as refused:
            make(kind)
        assert refused.value.status == errno.EEXIST, kind


@pytest.fixture
def folder(lab):
    """A connection, and a folder with its name."""
    connection = rpc.Connection(2049)
    name = f"taken-{time.time_ns()}"
    yield connection, nfs3.make_directory(
        connection, nfs3.root_of("/ceph", 2050), name), name
    connection.close()


def made_elsewhere(connection, handle):
    return {name for name in names_in(connection, handle)
            if name.startswith(MADE.encode())}


@pytest.mark.parametrize("whose", ["a client of ours", "a CephFS client"])
@pytest.mark.parametrize("version", [3, 4])
def test_a_symlink_takes_its_name(folder, cephfs_client, version, whose):
    connection, handle, name = folder
    client = nfs4.Client(2049, name)

    def make_symlink(kind, target):
        if whose == "a CephFS client":
            cephfs_client.symlink(target, f"/{name}/{kind}")
        else:
            nfs3.call(connection, nfs3.SYMLINK, nfs3.symlink_arguments(
                handle, kind, target.encode()))
    all_are_taken(makers_of_v3(connection, handle) if version == 3
                  else makers_of_v4(client, client.lookup(name)),
                  make_symlink)
    assert made_elsewhere(connection, handle) == set()
    client.leave()


def test_a_symlink_leads_to_no_read_only_export(second, folder):
    """Which shares the mount."""
    second(append=[
        'EXPORT { Export_Id = 100; Path = "/"; Pseudo = "/rw"; '
        'Access_Type = RW; Squash = None; FSAL { Name = CEPH_ASYNC; } }',
        f'EXPORT {{ Export_Id = 101; Path = "/{folder[2]}"; Pseudo = "/ro"; '
        'Access_Type = RO; Squash = None; FSAL { Name = CEPH_ASYNC; } }'])
    connection = rpc.Connection(SECOND_PORT)
    root = nfs3.root_of("/rw", SECOND_PORT + 1)
    here = nfs3.make_directory(connection, root, folder[2] + "-rw")

    def make_symlink(kind, target):
        nfs3.call(connection, nfs3.SYMLINK, nfs3.symlink_arguments(
            here, kind, f"../{folder[2]}/{target}".encode()))
    all_are_taken(makers_of_v3(connection, here), make_symlink)
    assert names_in(*folder[:2]) == set()
    connection.close()
