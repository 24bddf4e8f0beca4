# SPDX-License-Identifier: LGPL-3.0-or-later
"""What Linux' VFS does for a local file system between a system call and the
inode, the server does for NFS clients that rely on it: our own clients send
what a user's program asked for, and nothing is checked before.

docs/security.md lists these duties.  Those that a Linux client shows are in
client/case_posix_permissions.py too.
"""
import errno
import itertools
import struct
import time

import pytest

from nfs import nfs3, nfs4, rpc
from nfs.xdr import number, opaque

USER, OTHER, GROUP = 1000, 1001, 50
SETGID, EXECUTED = 0o2000, 0o2777
CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0)
EACCES, EPERM = [errno.EACCES], [errno.EPERM]
NAMES = map("file-{}".format, itertools.count())


class Folder:
    """A folder, and those who ask for something in it."""

    def __init__(self, cephfs_client):
        self.cephfs = cephfs_client
        self.name = f"duties-{time.time_ns()}"
        self.root = rpc.Connection(2049)
        self.user = rpc.Connection(2049, USER, USER)
        self.member = rpc.Connection(2049, USER, GROUP)
        self.v4 = nfs4.Client(2049, self.name, uid=USER)
        self.handle = nfs3.make_directory(
            self.root, nfs3.root_of("/ceph", 2050), self.name)
        self.mode(self.handle, 0o777)

    def close(self):
        self.v4.leave()
        for connection in (self.root, self.user, self.member):
            connection.close()

    def mode(self, handle, mode, uid=None, gid=None, who=None):
        """Owner first: a chown takes set-id bits."""
        if uid is not None:
            self.set(handle, uid=uid, gid=gid)
        self.set(handle, mode=mode, who=who)

    def set(self, handle, who=None, **values):
        nfs3.call(who or self.root, nfs3.SETATTR,
                  nfs3.setting(handle, **values))

    def attrs(self, handle):
        return nfs3.get_attributes(self.root, handle)

    def file(self, uid=USER, mode=0o644, who=None):
        """Its name and handle."""
        name = next(NAMES)
        handle = nfs3.create(who or self.root, self.handle, name)
        nfs3.write(self.root, handle, 0, b"program")
        self.mode(handle, mode, uid, uid)
        return name, handle

    def path(self, name):
        return f"/{self.name}/{name}"

    def give_capability(self, name):
        self.cephfs.setxattr(self.path(name), "security.capability",
                             CAPABILITY, 0)

    def has_capability(self, name):
        return b"security.capability" in \
            self.cephfs.listxattr(self.path(name))[1].split(b"\0")


@pytest.fixture
def folder(lab, cephfs_client):
    made = Folder(cephfs_client)
    yield made
    made.close()


def refused(statuses, call, *args):
    with pytest.raises((nfs3.Refused, nfs4.Failed)) as refusal:
        call(*args)
    assert refusal.value.status in statuses


# --- mode_strip_sgid(): a new file in a setgid folder of another group

def create_v3(folder, connection, mode):
    name = next(NAMES)
    return nfs3.new_handle(nfs3.call(connection, nfs3.CREATE, nfs3.named(
        folder.handle, name) + number(1) + nfs3.mode_alone(mode)))


def mknod(folder, connection, mode):
    return nfs3.new_handle(nfs3.call(connection, nfs3.MKNOD,
                                     nfs3.fifo_arguments(
                                         folder.handle, next(NAMES), mode)))


def open_v4(folder, _, mode, create=nfs4.GUARDED):
    name = next(NAMES)
    folder.v4.open(name, create=create, mode=mode,
                   directory=folder.v4.lookup(folder.name)).close()
    return nfs3.lookup(folder.root, folder.handle, name)


def open_exclusive(folder, _, mode):
    return open_v4(folder, _, mode, nfs4.EXCLUSIVE)


MAKERS = [create_v3, mknod, open_v4, open_exclusive]


@pytest.mark.parametrize("make", MAKERS)
def test_no_setgid_file_of_a_foreign_group(folder, make):
    folder.mode(folder.handle, 0o3777, 0, GROUP)
    made = folder.attrs(make(folder, folder.user, EXECUTED))
    assert (made.mode, made.uid, made.gid) == (0o777, USER, GROUP)
    # It means mandatory locks, and a chmod() later takes it.
    handle = make(folder, folder.user, SETGID | 0o644)
    assert folder.attrs(handle).mode == SETGID | 0o644
    folder.mode(handle, EXECUTED, who=folder.user)
    assert folder.attrs(handle).mode == 0o777


@pytest.mark.parametrize("make", MAKERS[:2])
def test_a_member_and_root_may_make_one(folder, make):
    folder.mode(folder.handle, 0o3777, 0, GROUP)
    for who in (folder.member, folder.root):
        assert folder.attrs(make(folder, who, EXECUTED)).mode == EXECUTED


def test_a_users_own_group_may_have_one(folder):
    assert folder.attrs(create_v3(folder, folder.user, EXECUTED)).mode == \
        EXECUTED


def test_a_folder_takes_over_setgid_and_group(folder):
    folder.mode(folder.handle, 0o3777, 0, GROUP)
    made = folder.attrs(nfs3.make_directory(
        folder.user, folder.handle, next(NAMES), 0o755))
    assert (made.mode, made.uid, made.gid) == (SETGID | 0o755, USER, GROUP)


def test_an_acl_gives_no_setgid_program(folder):
    """posix_acl_update_mode(): the ACL lets the group execute it."""
    folder.mode(folder.handle, 0o3777, 0, GROUP)
    opened = folder.v4.open("program", create=nfs4.GUARDED,
                            mode=SETGID | 0o644,
                            directory=folder.v4.lookup(folder.name))
    folder.v4.set(opened.handle, acl=[
        (0, flag, 0x27, who) for flag, who in (
            (0, "OWNER@"), (0x40, "GROUP@"), (0, "EVERYONE@"))])
    mode = folder.attrs(nfs3.lookup(folder.root, folder.handle,
                                    "program")).mode
    assert mode & 0o010 and not mode & SETGID, oct(mode)
    opened.close()


# --- file_remove_privs(), and what chown() takes

def write_v3(folder, who, name, handle):
    nfs3.write(who, handle, 0, b"evil")


def write_v4(folder, who, name, handle):
    opened = folder.v4.open(name, access=nfs4.WRITE,
                            directory=folder.v4.lookup(folder.name))
    opened.write(0, b"evil")
    opened.close()


def truncate(folder, who, name, handle):
    folder.set(handle, who=who, size=3)


def create_truncates(folder, who, name, handle):
    nfs3.call(who, nfs3.CREATE, nfs3.named(folder.handle, name) +
              struct.pack(">IIIIIQII", 0, 0, 0, 0, 1, 0, 0, 0))


def open_truncates(folder, who, name, handle):
    folder.v4.open(name, create=nfs4.UNCHECKED, size=0,
                   directory=folder.v4.lookup(folder.name)).close()


def deallocate(folder, who, name, handle):
    opened = folder.v4.open(name, directory=folder.v4.lookup(folder.name))
    folder.v4.deallocate(opened.handle, 0, 4, opened.stateid)
    opened.close()


CHANGES = [write_v3, write_v4, truncate, create_truncates, open_truncates,
           deallocate]


@pytest.mark.parametrize("change", CHANGES)
def test_a_users_change_takes_what_another_client_has_set(folder, change):
    """Since the gateway has last looked at the file."""
    name, handle = folder.file(OTHER, 0o777)
    change(folder, folder.user, name, handle)
    for _ in range(2):
        folder.give_capability(name)
        folder.cephfs.chmod(folder.path(name), 0o6777)
        change(folder, folder.user, name, handle)
        assert folder.attrs(handle).mode == 0o777
        assert not folder.has_capability(name)


@pytest.mark.parametrize("change", [write_v3, truncate, create_truncates])
def test_roots_change_leaves_the_set_id_bits(folder, change):
    """And takes the capability, as Linux does."""
    name, handle = folder.file(OTHER, 0o777)
    folder.give_capability(name)
    folder.cephfs.chmod(folder.path(name), 0o6777)
    change(folder, folder.root, name, handle)
    assert folder.attrs(handle).mode == 0o6777
    assert not folder.has_capability(name)


def test_who_may_not_write_takes_nothing(folder):
    name, handle = folder.file(OTHER, 0o6755)
    folder.give_capability(name)
    for change in CHANGES:
        refused(EACCES, change, folder, folder.user, name, handle)
    refused(EPERM, lambda: folder.set(handle, folder.user, uid=USER))
    assert folder.attrs(handle).mode == 0o6755
    assert folder.has_capability(name)


@pytest.mark.parametrize("owner", [OTHER, 0], ids=["another", "the same"])
def test_a_chown_takes_all(folder, owner):
    name, handle = folder.file(0, 0o777)
    # Without any execute bit CephFS itself leaves them.
    for mode, left in (0o6777, 0o777), (0o4644, 0o644):
        folder.mode(handle, mode)
        folder.give_capability(name)
        folder.set(handle, uid=owner)
        assert folder.attrs(handle).mode == left
        assert not folder.has_capability(name)


def test_a_chmod_leaves_the_capability(folder):
    name, handle = folder.file(USER, 0o755)
    folder.give_capability(name)
    folder.set(handle, folder.user, mode=0o700)
    assert folder.has_capability(name)


# --- setattr_prepare()

def test_attributes_of_others(folder):
    _, handle = folder.file(OTHER, 0o6646)

    def sets(**values):
        return lambda: folder.set(handle, folder.user, **values)
    for values in ({"mode": 0o777}, {"mode": 0o6646}, {"mode": 0o646},
                   {"uid": USER}, {"gid": USER}, {"mtime": 10**18}):
        refused(EPERM, sets(**values))
    # To mark it with the present time needs the right to write alone.
    nfs3.call(folder.user, nfs3.SETATTR, opaque(handle) + struct.pack(
        ">IIIIIII", 0, 0, 0, 0, 0, 1, 0))
    assert folder.attrs(handle).mode == 0o6646
    assert folder.attrs(handle).uid == OTHER


def test_own_attributes(folder):
    _, handle = folder.file(USER, 0o644)
    for values in ({"uid": OTHER}, {"gid": GROUP}):
        refused(EPERM, lambda values=values: folder.set(
            handle, folder.user, **values))
    folder.set(handle, folder.member, gid=GROUP)
    assert folder.attrs(handle).gid == GROUP
    folder.set(handle, folder.user, mode=EXECUTED)
    assert folder.attrs(handle).mode == 0o777


# --- may_delete() and may_linkat()

def test_a_sticky_folder(folder):
    theirs, _ = folder.file(OTHER, 0o666)
    mine, _ = folder.file(USER)
    nfs3.make_directory(folder.root, folder.handle, "sub")
    folder.mode(folder.handle, 0o1777)
    for procedure, name in (nfs3.REMOVE, theirs), (nfs3.RMDIR, "sub"):
        refused(EPERM, nfs3.remove, folder.user, folder.handle, name,
                procedure)
    for old, new in (theirs, "new"), (mine, theirs):
        refused(EPERM, nfs3.call, folder.user, nfs3.RENAME,
                nfs3.rename_arguments(folder.handle, old, folder.handle, new))
    nfs3.call(folder.user, nfs3.RENAME, nfs3.rename_arguments(
        folder.handle, mine, folder.handle, "new"))
    nfs3.remove(folder.user, folder.handle, "new")


def test_links_to_files_of_others(folder):
    """As with fs.protected_hardlinks."""
    def link(handle):
        nfs3.call(folder.user, nfs3.LINK, nfs3.link_arguments(
            handle, folder.handle, next(NAMES)))
    for uid, mode in (OTHER, 0o6777), (OTHER, 0o644), (0, 0o4777):
        refused(EPERM + EACCES, link, folder.file(uid, mode)[1])
    refused(EPERM + EACCES, link, mknod(folder, folder.root, 0o666))
    link(folder.file(USER, 0o4755)[1])
    link(folder.file(OTHER, 0o666)[1])
    with pytest.raises(nfs3.Refused):
        link(nfs3.make_directory(folder.user, folder.handle, "sub"))


# --- umask, default ACLs, masks

def posix_acl(*entries):
    return struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", tag, allowed, 2**32 - 1 if who is None else who)
        for tag, allowed, who in entries)


def test_a_new_file_inherits_the_acl(folder):
    """posix_acl_create(): its mode is what the ACL and the client allow."""
    folder.cephfs.setxattr(f"/{folder.name}", "system.posix_acl_default",
                           posix_acl((1, 7, None), (2, 6, OTHER), (4, 5, None),
                                     (16, 7, None), (32, 4, None)), 0)
    for make in MAKERS:
        handle = make(folder, folder.user, 0o640)
        assert folder.attrs(handle).mode == 0o640, make.__name__
        # The group's bits are the mask: user 1001 may read, not write.
        other = rpc.Connection(2049, OTHER, OTHER)
        reply = nfs3.call(other, nfs3.ACCESS, opaque(handle) + number(5))
        nfs3.optional_attributes(reply)
        assert reply.number() == 1, make.__name__
        other.close()


def test_a_chmod_sets_the_mask(folder):
    """posix_acl_chmod()."""
    name, handle = folder.file(OTHER)
    folder.cephfs.setxattr(folder.path(name), "system.posix_acl_access",
                           posix_acl((1, 6, None), (2, 6, USER), (4, 4, None),
                                     (16, 6, None), (32, 0, None)), 0)
    nfs3.write(folder.user, handle, 0, b"may")
    folder.set(handle, mode=0o640)
    refused(EACCES, nfs3.write, folder.user, handle, 0, b"may not")
