# SPDX-License-Identifier: LGPL-3.0-or-later
"""The sentences of docs/security.md: what a client may do, and what it cannot.
Signed handles have a file of their own."""
import os
import random
import struct
import subprocess
import threading
import time

from fuse import Fuse
from lab import SECOND_PORT, resident_kib
from lab_program import LOGS, Log, ceph
from nfs import nfs3, nfs4, rpc
from nfs.xdr import number, opaque, wide
import pytest
from test_signed_handles import made_of, ours

ALICE, BOB = 1000, 1001
NOBODY = 2**32 - 2      # Ganesha's default of Anonymous_Uid
DATA = b"of one user\n" * 400
DENIED, ROFS, INVAL = 13, 30, 22
SYMLINK, LINK = 10, 15
# RFC 1813 2.6: what keeps a client out.
OUT = {1: "PERM", 13: "ACCES", 70: "STALE"}
REQUESTS = 10000
SEED = 20261123
# What Ganesha's workers and caches take in their first requests.
GROWTH_KIB = 64 << 10


def export(number_, path="/secure", more="", fsal="", squash="none",
           access="RW"):
    return (f'EXPORT {{ Export_Id = {number_}; Path = "{path}"; '
            f'Pseudo = "/e{number_}"; Protocols = 3,4; '
            f"Access_Type = {access}; Squash = {squash}; SecType = sys; "
            f"Transports = TCP; Attr_Expiration_Time = 0; {more} "
            f"FSAL {{ Name = CEPH_ASYNC; {fsal} }} }}")


def root_of(number_):
    return nfs3.root_of(f"/e{number_}", SECOND_PORT + 1)


def as_user(uid=0):
    return rpc.Connection(SECOND_PORT, uid, uid, timeout=20)


def status_of(call, *args):
    try:
        call(*args)
        return 0
    except nfs3.Refused as refused:
        return refused.status


@pytest.fixture
def file(cluster):
    """Of root with mode 0600, and through "a" its handle."""
    cluster.ensure_default()
    conn = rpc.Connection(2049)
    top = nfs3.root_of("/ceph", 2050)
    try:
        folder = nfs3.make_directory(conn, top, "secure", 0o777)
    except nfs3.Refused:
        folder = nfs3.lookup(conn, top, "secure")
    handle = nfs3.create(conn, folder, f"f{time.time_ns()}")
    nfs3.write(conn, handle, 0, DATA)
    nfs3.give(conn, handle, 0, 0o600)
    nfs3.give(conn, folder, 0, 0o777)
    conn.close()
    return ours(handle)


def through(number_, fsal_bytes):
    """That file's handle as that export would give it."""
    return made_of(root_of(number_), fsal_bytes)


def owner_of(conn, handle):
    reader = nfs3.call(conn, nfs3.GETATTR, opaque(handle))
    return reader.take("IIIII")[3]


# --- users and addresses

def test_sys_believes_the_client(second, file):
    second(append=[export(100)])
    handle = through(100, file)
    nfs3.give(as_user(), handle, ALICE, 0o600)
    assert nfs3.read_all(as_user(ALICE), handle) == DATA
    assert status_of(nfs3.read, as_user(BOB), handle, 0, 10) == DENIED


def squashed(second, file, squash, others):
    second(append=[export(100, squash=squash)])
    root, handle = root_of(100), through(100, file)
    for uid, owner in ((0, NOBODY), (ALICE, others)):
        conn = as_user(uid)
        assert status_of(nfs3.read, conn, handle, 0, 10) == DENIED
        mine = nfs3.create(conn, root, f"of-{uid}-{time.time_ns()}")
        assert owner_of(conn, mine) == owner
        nfs3.write(conn, mine, 0, DATA)
        assert nfs3.read_all(conn, mine) == DATA


def test_root_is_squashed(second, file):
    squashed(second, file, "Root_Squash", ALICE)


def test_all_are_squashed(second, file):
    squashed(second, file, "All_Squash", NOBODY)


def test_other_addresses_get_nothing(second, file):
    """192.0.2.0/24 is for documents (RFC 5737): nobody here is in it."""
    second(append=[
        export(100, access="None", more="CLIENT { Clients = 192.0.2.0/24; "
               "Access_Type = RW; }"), export(101)])
    with pytest.raises(rpc.Refused):
        root_of(100)
    conn = as_user()
    handle = made_of(root_of(101), file, 100)
    for call, *args in ((nfs3.get_attributes,), (nfs3.read, 0, 10),
                        (nfs3.write, 0, b"x")):
        with pytest.raises(rpc.Refused):
            call(conn, handle, *args)
    assert nfs3.read_all(conn, through(101, file)) == DATA


def test_read_only_is_read_only(second, file):
    second(append=[export(100, access="RO")])
    conn, root, handle = as_user(), root_of(100), through(100, file)
    assert nfs3.read_all(conn, handle) == DATA
    assert status_of(nfs3.write, conn, handle, 0, b"x") == ROFS
    assert status_of(nfs3.give, conn, handle, 0, 0o777) == ROFS
    assert status_of(nfs3.create, conn, root, "new") == ROFS
    assert status_of(nfs3.remove, conn, root, "new") == ROFS


def test_only_privileged_ports(second, file):
    second(append=[export(100, more="PrivilegedPort = true;"), export(101)])
    conn = as_user()
    handle = made_of(root_of(101), file, 100)
    with pytest.raises(rpc.Refused):
        nfs3.read(conn, handle, 0, 10)


# --- names

def test_a_name_is_no_path(second, file):
    """NFSv3 has no rule for names, and libcephfs takes one for a path: with it
    a client would leave the export.  An empty one would keep the folder's lock
    for ever."""
    second(append=[export(100, fsal='Cmount_Path = "/";')])
    for path in ("", "/", "a/b", "../outside", "../../", "./a", "a/", "/a"):
        refuse_as_a_name(path)


def refuse_as_a_name(path):
    conn, root = as_user(), root_of(100)
    folder = nfs3.make_directory(conn, root, f"names{time.time_ns()}")
    for name in ("a", "sub"):
        nfs3.make_directory(conn, folder, name)
    inside = nfs3.lookup(conn, folder, "sub")
    mine = nfs3.create(conn, folder, "mine")
    nfs3.create(conn, folder, "outside")
    there = inside if path.startswith("..") else folder
    one, new = nfs3.named(folder, "mine"), nfs3.named(there, path)
    for procedure, arguments in (
            (nfs3.LOOKUP, new), (nfs3.REMOVE, new), (nfs3.RMDIR, new),
            (nfs3.CREATE, nfs3.create_arguments(there, path)),
            (nfs3.MKDIR, new + nfs3.mode_alone(0o755)),
            (SYMLINK, new + nfs3.mode_alone(0o777) + opaque(b"target")),
            (LINK, opaque(mine) + new), (nfs3.RENAME, one + new),
            (nfs3.RENAME, new + nfs3.named(folder, "x"))):
        with pytest.raises(nfs3.Refused) as refused:
            nfs3.call(conn, procedure, arguments)
        # Ganesha's core refuses an empty name, but lets a LOOKUP of it pass.
        wanted = INVAL if path == "" and procedure != nfs3.LOOKUP else DENIED
        assert refused.value.status == wanted, (procedure, path)
    names = {bytes(name) for name, _ in nfs3.readdir(conn, folder)[0]}
    assert names == {b".", b"..", b"a", b"sub", b"mine", b"outside"}


# --- the cephx user

@pytest.fixture
def fenced(file):
    """A user of `ceph fs authorize` for one folder; its key."""
    fuse = Fuse()
    os.makedirs(fuse.folder / "fenced", exist_ok=True)
    fuse.end()
    user = f"fenced{time.time_ns()}"
    ceph("fs", "authorize", "cephfs", f"client.{user}", "/fenced", "rw")
    yield user, ceph("auth", "get-key", f"client.{user}").strip()
    ceph("auth", "rm", f"client.{user}")


def test_a_user_does_not_leave_its_path(cluster, second, fenced, file,
                                        record):
    user, key = fenced
    second(append=[export(
        100, "/fenced", fsal=f'User_Id = "{user}"; Secret_Access_Key = '
        f'"{key}";')])
    conn, root = as_user(), root_of(100)
    mine = nfs3.create(conn, root, f"f{time.time_ns()}")
    nfs3.write(conn, mine, 0, DATA)
    assert nfs3.read_all(conn, mine) == DATA
    outside = through(100, file)
    seen = {status_of(call, conn, outside, *args) for call, *args in (
        (nfs3.get_attributes,), (nfs3.read, 0, 10), (nfs3.write, 0, b"x"),
        (nfs3.lookup, "x"))}
    record(f"a handle from outside the user's path: statuses {seen}")
    assert seen <= set(OUT), seen
    cluster.stop_second()


def test_a_snapshot_needs_a_capability_of_its_own(cluster, second, fenced):
    user, key = fenced

    def snapshots():
        cluster.stop_second()
        second(append=[export(
            100, "/fenced", fsal=f'User_Id = "{user}"; Secret_Access_Key = '
            f'"{key}";')])
        conn = as_user()
        return conn, nfs3.lookup(conn, root_of(100), ".snap")
    name = f"s{time.time_ns()}"
    assert status_of(nfs3.make_directory, *snapshots(), name) == DENIED
    ceph("auth", "caps", f"client.{user}",
         "mds", "allow rws fsname=cephfs path=/fenced",
         "mon", "allow r fsname=cephfs",
         "osd", "allow rw tag cephfs data=cephfs")
    made = snapshots()
    nfs3.make_directory(*made, name)
    nfs3.remove(*made, name, nfs3.RMDIR)
    cluster.stop_second()


def test_an_exports_user_does_not_read_the_configuration(fenced):
    """The pool that `ceph nfs` keeps configurations in."""
    user, key = fenced
    pools = ceph("osd", "pool", "ls").split()
    if ".nfs" not in pools:
        ceph("osd", "pool", "create", ".nfs", "1", "1",
             "--yes-i-really-mean-it")
        ceph("osd", "pool", "application", "enable", ".nfs", "nfs")

    def rados(*words):
        return subprocess.run(["rados", "-p", ".nfs", *words], timeout=60,
                              stdin=subprocess.DEVNULL, check=False,
                              capture_output=True, text=True)
    try:
        assert rados("put", "conf-nfs.x", "/etc/hostname").returncode == 0
        theirs = rados("--name", f"client.{user}", "--key", key, "get",
                       "conf-nfs.x", "-")
        assert theirs.returncode == 1, theirs
        assert "Operation not permitted" in theirs.stderr
    finally:
        rados("rm", "conf-nfs.x")


# --- requests with bytes altered

def templates(root, folder, handle):
    """Requests that real clients send: (version, procedure, arguments)."""
    name = nfs3.named(folder, "one")
    both = opaque(handle) + wide(0) + number(4096)
    v3 = [
        (nfs3.GETATTR, opaque(handle)), (nfs3.LOOKUP, name),
        (nfs3.SETATTR, opaque(handle) + nfs3.mode_alone(0o644) + bytes(4)),
        (nfs3.ACCESS, opaque(handle) + number(0x3f)), (nfs3.READ, both),
        (nfs3.READLINK, opaque(handle)),
        (nfs3.WRITE, nfs3.write_arguments(handle, 0, DATA)),
        (nfs3.CREATE, nfs3.create_arguments(folder, "two")),
        (nfs3.MKDIR, nfs3.named(folder, "sub") + nfs3.mode_alone(0o755)),
        (nfs3.REMOVE, nfs3.named(folder, "two")),
        (nfs3.RMDIR, nfs3.named(folder, "sub")),
        (nfs3.RENAME, name + nfs3.named(folder, "three")),
        (nfs3.READDIR, opaque(folder) + bytes(16) + number(4096)),
        (nfs3.READDIRPLUS, opaque(folder) + bytes(16) + number(512) +
         number(4096)),
        (nfs3.FSINFO, opaque(root)), (nfs3.PATHCONF, opaque(root)),
        (nfs3.COMMIT, nfs3.commit_arguments(handle)),
    ]
    anonymous = bytes(16)
    put, file_, get = nfs4.put(folder), nfs4.put(handle), nfs4.GETFH
    v4 = [
        [put, nfs4.look_up("one"), get],
        [file_, (9, number(2) + number(0x18) + number(0x30), None)],
        [file_, (3, number(0x3f), None)],
        [file_, (25, anonymous + wide(0) + number(4096), None)],
        [file_, (38, anonymous + wide(0) + number(2) + opaque(DATA), None)],
        [file_, (5, wide(0) + number(0), None)],
        [put, (26, wide(0) + bytes(8) + number(4096) + number(8192) +
               number(1) + number(0x18), None)],
        [put, (28, opaque(b"one"), None)], [put, (16, b"", None), get],
        [file_, (32, b"", None), put, (31, b"", None), get],
        [(36, bytes(8) + opaque(b"fuzz"), None)],
    ]
    return [(3, *one) for one in v3] + \
        [(4, nfs4.COMPOUND, nfs4.compound_arguments(one)) for one in v4]


def altered(rng, data):
    """Bits, words, lengths: one to four changes."""
    data = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(data)) if data else 0
        kind = rng.randrange(5)
        if kind == 0 and data:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            at &= ~3
            data[at:at + 4] = number(rng.choice(
                [0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 65, 4096]))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            data[at:at] = rng.randbytes(4 * rng.randrange(1, 20))
        else:
            data[at:at + 8] = rng.randbytes(8)
    return bytes(data[:1 << 20])


@pytest.fixture
def target(cluster, second):
    """A folder with a quota: an altered offset must not make a file of a
    TiB."""
    fuse = Fuse()
    name = f"fuzzed{time.time_ns()}"
    os.mkdir(fuse.folder / name)
    os.setxattr(fuse.folder / name, "ceph.quota.max_bytes", b"67108864")
    fuse.end()
    ends = [log.end() for log in cluster.whole_logs]
    yield second(append=[export(100, f"/{name}")])
    # Ganesha's core has a line for much of it.
    for log, end in zip(cluster.whole_logs, ends):
        log.leave_out(end)


def test_altered_requests_do_no_harm(target, record):
    rng = random.Random(SEED)
    conn, root = as_user(), root_of(100)
    folder = nfs3.make_directory(conn, root, "folder")
    handle = nfs3.create(conn, folder, "one")
    nfs3.write(conn, handle, 0, DATA)
    kept = nfs3.create(conn, root, "kept")
    nfs3.write(conn, kept, 0, DATA)
    real = templates(root, folder, handle)
    answered, closed, before = 0, 0, None
    end = time.monotonic() + 120
    for sent in range(REQUESTS):
        assert time.monotonic() < end, f"{sent} requests in 120 s"
        if sent == REQUESTS // 4:
            before = resident_kib(target.pid)
        version, procedure, arguments = rng.choice(real)
        if rng.randrange(50) == 0:
            procedure = rng.randrange(24)
        try:
            conn.call(procedure, altered(rng, arguments), version=version)
            answered += 1
        except rpc.Gone:
            closed += 1
            conn = as_user()
        except rpc.Refused:
            answered += 1
    grown = resident_kib(target.pid) - before
    record(f"altered requests: {REQUESTS}, seed {SEED}: {answered} answered, "
           f"{closed} connections closed; memory grew by {grown} KiB over "
           f"the last {REQUESTS - REQUESTS // 4}")
    assert answered > REQUESTS // 2
    assert grown < GROWTH_KIB
    conn = as_user()
    # Nothing was written that was not asked for, and nothing waits for ever.
    assert nfs3.lookup(conn, folder, "..") == root
    assert nfs3.read_all(conn, kept) == DATA
    os.kill(target.pid, 0)
    ours_ = [line for line in target.log.matching(":FSAL :(CRIT|MAJ)")
             if "pseudofs" not in line]
    assert not ours_, ours_


FORGED = "a line that a client wrote"


def test_names_are_in_no_log_line(cluster):
    """Creates that fail half-way, and the name is gone by then: the line about
    what is left behind has no name, and comes once a minute."""
    cluster.ensure_default()
    log = Log(LOGS / "ganesha-a.log")
    conn = rpc.Connection(2049)
    folder = nfs3.make_directory(conn, nfs3.root_of("/ceph", 2050),
                                 f"forge{time.time_ns()}")
    nfs3.give(conn, folder, ALICE, 0o700)
    name = f"x\nganesha.nfsd: CRIT: {FORGED}\n"
    # CREATE, UNCHECKED, with a size that CephFS refuses.
    create = nfs3.named(folder, name) + number(0) + struct.pack(
        ">IIIIIQII", 1, 0o644, 0, 0, 1, 1 << 62, 0, 0)
    end = time.monotonic() + 3

    def repeat(call):
        user = rpc.Connection(2049, ALICE, ALICE)
        while time.monotonic() < end:
            status_of(call, user)
        user.close()

    calls = [lambda user: nfs3.call(user, nfs3.CREATE, create)]
    calls += [lambda user: nfs3.remove(user, folder, name)] * 2
    threads = [threading.Thread(target=repeat, args=(call,))
               for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    conn.close()
    assert not log.matching(FORGED)
    assert len(log.matching("is left behind by a failed create")) <= 1
