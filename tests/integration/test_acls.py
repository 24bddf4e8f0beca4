# SPDX-License-Identifier: LGPL-3.0-or-later
"""ACLs as an option of the export; what they do is in client/case_acls.py."""
import random
import struct
import time

import pytest

from lab import SECOND_PORT
from nfs import nfs3, nfs4, rpc
from nfs.xdr import Reader, number, opaque

ATTRNOTSUPP = 10032
ACL = 12
ONE_MORE = [(0, 0, 7, "OWNER@"), (0, 0x40, 0, "GROUP@"),
            (0, 0, 0, "EVERYONE@"), (0, 0, 3, "47110")]


def supported(client, handle):
    """The numbers of the attributes that the server says it has."""
    value, _ = client.get(handle, 0)
    words = Reader(value)
    masks = [words.number() for _ in range(words.number())]
    return {32 * n + bit for n, mask in enumerate(masks) for bit in range(32)
            if mask >> bit & 1}


def test_disable_acl_hides_them(lab, second):
    second(export_block="Disable_ACL = true;")
    name = f"acl-{time.time_ns()}"
    with_acls = nfs4.Client(2049, "with ACLs")
    without = nfs4.Client(SECOND_PORT, "without ACLs")
    file = with_acls.open(name, create=nfs4.UNCHECKED)
    assert ACL in supported(with_acls, file.handle)
    with_acls.set(file.handle, acl=ONE_MORE)
    assert b"47110" in with_acls.get(file.handle, ACL)[0]

    handle = without.lookup(name)
    assert ACL not in supported(without, handle)
    # who asks all the same gets what Ganesha's core makes of the mode
    assert b"47110" not in without.get(handle, ACL)[0]
    with pytest.raises(nfs4.Failed) as refusal:
        without.set(handle, acl=ONE_MORE)
    assert refusal.value.status == ATTRNOTSUPP
    file.close()
    for client in (with_acls, without):
        client.leave()


USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER = 1, 2, 4, 8, 16, 32
# CephFS keeps 64 KiB of extended attributes of an inode.
MOST_USERS = 8180
ACCESS_MS = 20


def posix_acl(entries):
    """As CephFS keeps it: entries of (tag, permissions, id)."""
    return struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", *entry) for entry in entries)


def unnamed(tag, permissions):
    return tag, permissions, 2**32 - 1


def milliseconds(call, times=5):
    """The shortest: others use the machine too."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return 1000 * min(took)


def test_the_largest_acl_is_cheap(lab, cephfs_client, record):
    name = f"large-{time.time_ns()}"
    connection = rpc.Connection(2049, 12345, 12345)
    client = nfs4.Client(2049, name)
    client.open(name, create=nfs4.UNCHECKED).close()
    cephfs_client.setxattr(f"/{name}", "system.posix_acl_access", posix_acl(
        [unnamed(USER_OBJ, 6)] +
        [(USER, uid % 8, 20000 + uid) for uid in range(MOST_USERS)] +
        [unnamed(GROUP_OBJ, 4), unnamed(MASK, 7), unnamed(OTHER, 4)]), 0)
    try:
        handle = nfs3.lookup(connection, nfs3.root_of("/ceph", 2050), name)
        took = milliseconds(lambda: nfs3.call(
            connection, nfs3.ACCESS, opaque(handle) + number(0x3f)))
    finally:
        # FSAL_CEPH takes seconds to list a folder that has it.
        cephfs_client.unlink(f"/{name}")
    record(f"ACCESS of a file whose ACL has {MOST_USERS + 4} entries: "
           f"{took:.1f} ms")
    connection.close()
    client.leave()
    assert took < ACCESS_MS


def any_acl(rng):
    """Sorted, as setfacl leaves it, and more than a mode: for a folder whose
    ACL is its mode FSAL_CEPH shows the inherited entries alone."""
    users, groups = (
        sorted(rng.sample(range(20000, 20100), rng.randrange(least, 5)))
        for least in (1, 0))
    return [unnamed(USER_OBJ, rng.randrange(8)),
            *((USER, rng.randrange(8), uid) for uid in users),
            unnamed(GROUP_OBJ, rng.randrange(8)),
            *((GROUP, rng.randrange(8), gid) for gid in groups),
            unnamed(MASK, rng.choice((7, rng.randrange(8)))),
            unnamed(OTHER, rng.randrange(8))]


def mask_of(entries):
    return next(allowed for tag, allowed, _ in entries if tag == MASK)


def the_mask_withholds(entries):
    """It takes from an entry what a later one allows.  FSAL_CEPH lets the
    later one give it again."""
    later = {OTHER: 0}
    later[GROUP] = later[GROUP_OBJ] = entries[-1][1]
    later[USER] = 0
    for tag, allowed, _ in entries:
        later[USER] |= allowed if tag in (GROUP_OBJ, GROUP, OTHER) else 0
    return any(allowed & ~mask_of(entries) & later[tag]
               for tag, allowed, _ in entries if tag in (USER, GROUP_OBJ,
                                                         GROUP))


def test_acls_are_shown_as_fsal_ceph_shows_them(lab, second, cephfs_client):
    """Ganesha's library makes FSAL_CEPH's, our own code makes ours."""
    second(fsal="CEPH")
    rng = random.Random(20261126)
    folder = f"any-{time.time_ns()}"
    cephfs_client.mkdir(f"/{folder}", 0o755)
    mine = nfs4.Client(2049, folder)
    other = nfs4.Client(SECOND_PORT, folder)
    seen = set()
    for name in map(str, range(200)):
        # A new one each time: FSAL_CEPH goes on showing an older ACL.
        cephfs_client.mkdir(f"/{folder}/{name}", 0o755)
        acls = {"access": any_acl(rng), "default": any_acl(rng)}
        for kind, acl in acls.items():
            cephfs_client.setxattr(f"/{folder}/{name}",
                                   f"system.posix_acl_{kind}",
                                   posix_acl(acl), 0)
        shown = [client.get(client.lookup(name, client.lookup(folder)), ACL)[0]
                 for client in (mine, other)]
        differs = any(map(the_mask_withholds, acls.values()))
        assert (shown[0] != shown[1]) == differs, acls
        if not differs:
            seen.add(shown[0])
    assert len(seen) > 40, "FSAL_CEPH shows no ACLs: nothing is compared"
    for client in (mine, other):
        client.leave()


def allowed_by(entries, uid, gid):
    """acl(5), for who is not the owner (0) and in one group."""
    mask = mask_of(entries)
    for tag, allowed, who in entries:
        if (tag, who) in ((USER, uid), (GROUP, gid)) or \
                (tag, gid) == (GROUP_OBJ, 0):
            return allowed & mask
    return entries[-1][1]


def test_each_user_has_what_the_acl_allows(lab, cephfs_client):
    """The mask too: it takes away what OTHER allows everybody else."""
    rng = random.Random(59)
    root = nfs3.root_of("/ceph", 2050)
    stem = f"rights-{time.time_ns()}"
    callers = {}
    bits = {4: 0x01, 2: 0x04, 1: 0x20}     # READ, MODIFY, EXECUTE of ACCESS
    for n in range(60):
        acl = any_acl(rng)
        name = f"{stem}-{n}"
        cephfs_client.mknod(f"/{name}", 0o100644)
        cephfs_client.setxattr(f"/{name}", "system.posix_acl_access",
                               posix_acl(acl), 0)
        for uid, gid in [(who if tag == USER else 31000,
                          who if tag == GROUP else 31000)
                         for tag, _, who in acl] + [(31000, 0)]:
            if (uid, gid) not in callers:
                callers[uid, gid] = rpc.Connection(2049, uid, gid)
            reply = nfs3.call(callers[uid, gid], nfs3.ACCESS, opaque(
                nfs3.lookup(callers[uid, gid], root, name)) + number(0x3f))
            nfs3.optional_attributes(reply)
            may = reply.number()
            assert sum(right for right, bit in bits.items() if may & bit) == \
                allowed_by(acl, uid, gid), (acl, uid, gid)
    for caller in callers.values():
        caller.close()
