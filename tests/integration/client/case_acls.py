# SPDX-License-Identifier: LGPL-3.0-or-later
"""ACLs: NFSv4's on the mount, POSIX' in CephFS."""
import errno
import os
import stat
import struct

import cephfs

from server_side import ceph_client, ceph_path
from case_access import ONE, OTHER
from registry import case, drop_caches, equal, in_child, refused

V4 = ("4.0", "4.1", "4.2")
NAME = "system.nfs4_acl"
POSIX, INHERITED = "system.posix_acl_access", "system.posix_acl_default"
ALLOW, DENY = 0, 1
READ, WRITE, APPEND, EXECUTE = 1, 2, 4, 0x20
RW = READ | WRITE | APPEND
INHERIT = 3         # by files and by directories
GROUP = 0x40
ACL_USER, ACL_MASK = 2, 16


def get(path):
    """The entries as (type, flag, mask, who)."""
    data = os.getxattr(path, NAME)
    count, at = struct.unpack_from(">I", data)[0], 4
    entries = []
    for _ in range(count):
        kind, flag, mask, size = struct.unpack_from(">IIII", data, at)
        entries.append((kind, flag, mask, data[at + 16:at + 16 + size]
                        .decode()))
        at += 16 + size + -size % 4
    return entries


def put(path, entries):
    data = struct.pack(">I", len(entries))
    for kind, flag, mask, who in entries:
        who = who.encode()
        data += struct.pack(">IIII", kind, flag, mask, len(who)) + who + \
            bytes(-len(who) % 4)
    os.setxattr(path, NAME, data)
    drop_caches()


def posix(path, name=POSIX):
    """{(tag, id): permissions} of CephFS, None where there is none."""
    with ceph_client() as fs:
        try:
            data = fs.getxattr(ceph_path(path), name)
        except cephfs.NoData:
            return None
    equal(struct.unpack_from("<I", data)[0], 2, "version of the POSIX ACL")
    entries = {}
    for at in range(4, len(data), 8):
        tag, permissions, number = struct.unpack_from("<HHI", data, at)
        entries[tag, number if tag in (2, 8) else 0] = permissions
    return entries


def user(uid):
    """Nobody has these numbers, so nobody has a name for them."""
    return str(uid)


def mode_of(path):
    drop_caches()
    return stat.S_IMODE(os.stat(path).st_mode)


def three(owner, group, everyone):
    return [(ALLOW, 0, owner, "OWNER@"), (ALLOW, GROUP, group, "GROUP@"),
            (ALLOW, 0, everyone, "EVERYONE@")]


def reads(path):
    return path.read_bytes


def read_refused(path):
    return lambda: refused(errno.EACCES, os.open, path, os.O_RDONLY)


def writes(path):
    return lambda: path.write_bytes(b"written")


def write_refused(path):
    return lambda: refused(errno.EACCES, os.open, path, os.O_WRONLY)


def secret(d):
    path = d / "file"
    path.write_bytes(b"secret")
    path.chmod(0o600)
    return path


@case(versions=V4)
def acl_of_a_plain_file_says_its_mode(d):
    path = secret(d)
    path.chmod(0o640)
    allowed = {who: mask for kind, _, mask, who in get(path)
               if kind == ALLOW}
    equal(allowed["OWNER@"] & RW, RW, "the owner's")
    equal(allowed["GROUP@"] & RW, READ, "the group's")
    equal(allowed["EVERYONE@"] & RW, 0, "all others'")
    equal(posix(path), None, "no ACL in CephFS")


@case(versions=V4)
def acl_lets_one_more_user_in(d):
    path = secret(d)
    in_child(read_refused(path), uid=ONE)
    put(path, get(path) + [(ALLOW, 0, RW, user(ONE))])
    in_child(reads(path), writes(path), uid=ONE)
    in_child(read_refused(path), write_refused(path), uid=OTHER)
    equal(posix(path)[ACL_USER, ONE], 6, "in CephFS")
    # the same once more changes nothing
    before = get(path), posix(path)
    put(path, before[0])
    equal((get(path), posix(path)), before, "set as it was got")
    # and out again
    put(path, three(RW, 0, 0))
    in_child(read_refused(path), uid=ONE)
    equal((ACL_USER, ONE) in (posix(path) or {}), False, "in CephFS")
    equal(mode_of(path), 0o600, "mode")


@case(versions=V4)
def acl_keeps_one_user_out(d):
    path = secret(d)
    path.chmod(0o644)
    put(path, [(DENY, 0, RW, user(ONE)), (ALLOW, 0, RW, "OWNER@"),
               (ALLOW, GROUP, READ, "GROUP@"),
               (ALLOW, 0, READ, "EVERYONE@")])
    in_child(read_refused(path), uid=ONE)
    in_child(reads(path), uid=OTHER)
    equal(posix(path)[ACL_USER, ONE], 0, "in CephFS")


@case(versions=V4)
def acl_and_mode_follow_each_other(d):
    path = secret(d)
    put(path, three(RW, READ, 0))
    equal(mode_of(path), 0o640, "mode after the ACL")
    put(path, get(path) + [(ALLOW, 0, RW, user(ONE))])
    in_child(writes(path), uid=ONE)
    # the group's bits of the mode are the ACL's mask now
    equal(mode_of(path), 0o660, "mode with one more user")
    path.chmod(0o600)
    drop_caches()
    in_child(read_refused(path), uid=ONE)
    equal(posix(path)[ACL_MASK, 0], 0, "mask after chmod")
    path.chmod(0o660)
    drop_caches()
    in_child(writes(path), uid=ONE)
    path.chmod(0o644)
    allowed = {who: mask for kind, _, mask, who in get(path)
               if kind == ALLOW}
    equal(allowed["EVERYONE@"] & RW, READ, "everyone's after chmod")
    in_child(reads(path), write_refused(path), uid=ONE)


@case(versions=V4)
def acl_is_inherited(d):
    folder = d / "folder"
    folder.mkdir(mode=0o700)
    d.chmod(0o755)
    mine = RW | EXECUTE
    put(folder, three(mine | 0x40, 0, 0) + [
        (ALLOW, 0, READ | EXECUTE, user(ONE)),
        (ALLOW, INHERIT, mine, "OWNER@"),
        (ALLOW, INHERIT | GROUP, 0, "GROUP@"),
        (ALLOW, INHERIT, READ | EXECUTE, user(ONE)),
        (ALLOW, INHERIT, 0, "EVERYONE@")])
    equal(posix(folder, INHERITED)[ACL_USER, ONE], 5, "default in CephFS")
    (folder / "sub").mkdir()
    for path in (folder / "file", folder / "sub" / "file"):
        path.write_bytes(b"inherited")
        equal(posix(path)[ACL_USER, ONE], 5, f"{path} in CephFS")
        in_child(reads(path), write_refused(path), uid=ONE)
        in_child(read_refused(path), uid=OTHER)
    equal(posix(folder / "sub", INHERITED)[ACL_USER, ONE], 5, "passed on")
    # no inherited entries, no default ACL
    put(folder, three(mine | 0x40, 0, 0))
    equal(posix(folder, INHERITED), None, "default in CephFS")
    (folder / "later").write_bytes(b"not inherited")
    in_child(read_refused(folder / "later"), uid=ONE)


@case(versions=V4)
def acl_of_cephfs_is_seen(d):
    path = secret(d)
    entries = [(1, 6, -1), (2, 4, ONE), (4, 0, -1), (16, 4, -1), (32, 0, -1)]
    data = struct.pack("<I", 2) + b"".join(
        struct.pack("<HHi", *entry) for entry in entries)
    with ceph_client() as fs:
        fs.setxattr(ceph_path(path), POSIX, data, 0)
    drop_caches()
    allowed = {who: mask for kind, _, mask, who in get(path)
               if kind == ALLOW}
    equal(allowed[user(ONE)] & RW, READ, "the other user's")
    in_child(reads(path), uid=ONE)
    in_child(read_refused(path), uid=OTHER)
