# SPDX-License-Identifier: LGPL-3.0-or-later
"""Options of block and export as clients see them, and who they make us to
the MDS.
"""
import subprocess
import threading
import time

import pytest

from fuse import Fuse
from lab import SECOND_PORT, SECOND_PSEUDO
from lab_program import ceph
from nfs import nfs3, nfs4, rpc
from nfs.xdr import Reader

SECOND_MOUNT_PORT = SECOND_PORT + 1
LABEL = 80
TEXT = b"system_u:object_r:nfs_t:s0"


def second_root():
    connection = rpc.Concurrent(SECOND_PORT)
    return connection, nfs3.root_of(SECOND_PSEUDO, SECOND_MOUNT_PORT)


def status_of(call, *args, **options):
    with pytest.raises(nfs4.Failed) as refusal:
        call(*args, **options)
    return refusal.value.status


def mode_of(client, handle):
    return int.from_bytes(client.get(handle, 33)[0]) & 0o7777


# --- Umask

def test_umask_is_taken_from_new_objects(second):
    """From all that are made, once; not from what a SETATTR sets."""
    second(block="Umask = 0027;")
    client = nfs4.Client(SECOND_PORT, f"umask-{time.time_ns()}")
    name = f"umask-{time.time_ns()}"
    top = client.create(nfs4.DIRECTORY, name, mode=0o777)
    assert mode_of(client, top) == 0o750
    file = client.open("file", create=nfs4.UNCHECKED, directory=top,
                       mode=0o666)
    assert mode_of(client, file.handle) == 0o640
    exclusive = client.open("exclusive", create=nfs4.EXCLUSIVE,
                            directory=top, mode=0o666)
    fifo = client.create(nfs4.FIFO, "fifo", top, mode=0o777)
    assert mode_of(client, fifo) == 0o750
    client.set(file.handle, mode=0o666)
    assert mode_of(client, file.handle) == 0o666
    # RFC 8881, 18.16.3: here the attributes come with the OPEN too
    assert mode_of(client, exclusive.handle) == 0o640

    connection, root = second_root()
    top3 = nfs3.lookup(connection, root, name)
    made = nfs3.make_directory(connection, top3, "by nfs3", 0o777)
    assert nfs3.get_attributes(connection, made).mode == 0o750
    file3 = nfs3.create(connection, top3, "file by nfs3")
    assert nfs3.get_attributes(connection, file3).mode == 0o640
    connection.close()
    file.close()
    exclusive.close()
    client.leave()


@pytest.mark.evidence
def test_umask_of_ceph(second, record):
    second("CEPH", block="Umask = 0027;")
    client = nfs4.Client(SECOND_PORT, f"umask-{time.time_ns()}")
    file = client.open(f"umask-{time.time_ns()}", create=nfs4.UNCHECKED,
                       mode=0o666)
    made = mode_of(client, file.handle)
    client.set(file.handle, mode=0o666)
    record(f"FSAL_CEPH, Umask = 0027: a file of mode 0666 is made with "
           f"{made:04o}; SETATTR of 0666 gives "
           f"{mode_of(client, file.handle):04o}")
    file.close()
    client.leave()


# --- security labels

@pytest.fixture
def labels(cluster, second):
    """A function: a client of "b" that offers security labels."""
    made = []

    def start(fsal="CEPH_ASYNC", offered=True, keys=""):
        second(fsal, export_block="Security_Label = true;" if offered else "")
        if keys:
            cluster.stop_second()
            cluster.ganesha("start", "--name", "b", "--export", keys)
        made.append(nfs4.Client(SECOND_PORT, f"labels-{time.time_ns()}"))
        return made[-1]
    yield start
    for client in made:
        client.leave()


def supported(client):
    value, _ = client.get(client.root, 0)
    words = Reader(value)
    masks = [words.number() for _ in range(words.number())]
    return len(masks) > 2 and bool(masks[LABEL // 32] >> LABEL % 32 & 1)


def label_of(client, handle):
    """None if there is none."""
    value, there = client.get(handle, LABEL)
    if len(there) < 3 or not there[2]:
        return None
    reply = Reader(value)
    reply.skip(8)
    return reply.opaque()


@pytest.mark.parametrize("key", ("", "security.other"))
def test_security_labels_are_kept_in_cephfs(labels, key):
    """Under security.selinux, or what Sec_Label_Xattr says."""
    client = labels(keys=f'Sec_Label_Xattr = "{key}";' if key else "")
    assert supported(client)
    name = f"labelled-{time.time_ns()}"
    file = client.open(name, create=nfs4.UNCHECKED)
    assert not label_of(client, file.handle)
    client.set(file.handle, label=TEXT)
    assert label_of(client, file.handle) == TEXT
    client.set(file.handle, label=b"another")
    assert label_of(client, file.handle) == b"another"
    file.close()
    mount = Fuse()
    try:
        done = subprocess.run(
            ["getfattr", "--only-values", "-n", key or "security.selinux",
             mount.folder / name], stdin=subprocess.DEVNULL, timeout=30,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    finally:
        mount.end()
    assert done.stdout == b"another", done.stdout


def test_security_labels_are_off_by_default(labels):
    client = labels(offered=False)
    assert not supported(client)
    file = client.open(f"labelled-{time.time_ns()}", create=nfs4.UNCHECKED)
    assert status_of(client.set, file.handle, label=TEXT) \
        == nfs4.ATTRNOTSUPP
    assert not label_of(client, file.handle)
    file.close()


@pytest.mark.evidence
def test_security_labels_of_ceph(labels, record):
    client = labels("CEPH")
    file = client.open(f"labelled-{time.time_ns()}", create=nfs4.UNCHECKED)
    try:
        client.set(file.handle, label=TEXT)
        said = repr(label_of(client, file.handle))
    except nfs4.Failed as err:
        said = str(err)
    record(f"FSAL_CEPH, Security_Label = true: supported "
           f"{supported(client)}, set and read: {said}")
    file.close()


# --- an export that is read only

def test_a_read_only_export_is_rofs(lab, second):
    """For all that changes something, over 3 and 4; reading goes on."""
    writer = nfs4.Client(2049, f"writer-{time.time_ns()}")
    name = f"read-only-{time.time_ns()}"
    top = writer.create(nfs4.DIRECTORY, name)
    opened = writer.open("file", create=nfs4.UNCHECKED, directory=top)
    opened.write(0, b"content")
    opened.close()
    writer.leave()
    second(export_block="Access_Type = RO;")

    for minor in (1, 2):
        client = nfs4.Client(SECOND_PORT, f"reader-{time.time_ns()}",
                             minor=minor)
        there = client.lookup(name)
        file = client.open("file", access=nfs4.READ, directory=there)
        assert file.read(0, 100) == b"content"
        for call, args, options in (
                (client.open, ("new",), {"create": nfs4.UNCHECKED}),
                (client.open, ("file",), {"access": nfs4.BOTH}),
                (client.create, (nfs4.DIRECTORY, "new"), {}),
                (client.remove, ("file",), {})):
            assert status_of(call, *args, directory=there, **options) \
                == nfs4.ROFS, call
        assert status_of(client.set, file.handle, size=0) == nfs4.ROFS
        assert status_of(client.set, file.handle, mode=0) == nfs4.ROFS
        assert status_of(client.write, file.handle, 0, b"x") == nfs4.ROFS
        assert status_of(client.rename, there, "file", there, "x") \
            == nfs4.ROFS
        file.close()
        client.leave()

    connection, root = second_root()
    there = nfs3.lookup(connection, root, name)
    handle = nfs3.lookup(connection, there, "file")
    assert nfs3.read(connection, handle, 0, 100) == b"content"
    for procedure, arguments in (
            (nfs3.WRITE, nfs3.write_arguments(handle, 0, b"x")),
            (nfs3.SETATTR, nfs3.truncation(handle)),
            (nfs3.REMOVE, nfs3.named(there, "file")),
            (nfs3.RENAME, nfs3.named(there, "file") +
             nfs3.named(there, "new")),
            (nfs3.MKDIR, nfs3.named(there, "new") + bytes(24))):
        with pytest.raises(nfs3.Refused) as refusal:
            nfs3.call(connection, procedure, arguments)
        assert refusal.value.status == nfs3.READ_ONLY, procedure
    with pytest.raises(nfs3.Refused) as refusal:
        nfs3.create(connection, there, "new")
    assert refusal.value.status == nfs3.READ_ONLY
    assert nfs3.read(connection, handle, 0, 100) == b"content"
    connection.close()


# --- who we are to Ceph

def test_user_and_key_are_the_exports(cluster, second):
    """A cephx user whose key is in no keyring; it may do what Ceph lets it
    do, here: read."""
    user = f"reader{time.time_ns()}"
    key = ceph("auth", "get-or-create-key", f"client.{user}", "mon",
                "allow r", "mds", "allow r", "osd", "allow r").strip()
    export = ("EXPORT { Export_Id = 77; Path = /; Pseudo = /reader; "
              "Protocols = 3,4; Access_Type = RW; Squash = none; "
              "SecType = sys; Attr_Expiration_Time = 0; FSAL { "
              f'Name = CEPH_ASYNC; User_Id = "{user}"; '
              f'Secret_Access_Key = "{key}"; }} }}')
    started = second(append=[export])
    assert key not in started.log.text()
    assert len(cluster.sessions(started.pid)) == 2
    mine = [session for session in cluster.sessions(started.pid)
            if session["metadata"].get("entity_id") == user]
    assert len(mine) == 1, cluster.sessions(started.pid)
    writer = nfs4.Client(SECOND_PORT, f"writer-{time.time_ns()}")
    name = f"of-users-{time.time_ns()}"
    file = writer.open(name, create=nfs4.UNCHECKED)
    file.write(0, b"content")
    file.close()
    reader = nfs4.Client(SECOND_PORT, f"reader-{time.time_ns()}",
                         pseudo="/reader")
    assert reader.read(reader.lookup(name), 0, 100) == b"content"
    assert status_of(reader.create, nfs4.DIRECTORY, name + "x") \
        in (13, 1, nfs4.ROFS)       # ACCESS, PERM
    for client in (writer, reader):
        client.leave()
    cluster.stop_second()
    ceph("auth", "rm", f"client.{user}")


def identity(cluster, pid):
    session, = cluster.sessions(pid)
    return session["metadata"]["uuid"], session["metadata"].get("timeout")


@pytest.mark.parametrize("keys", ("", "Use_Old_Uuid = true;"))
def test_the_session_is_named_as_fsal_cephs(cluster, second, keys):
    """So either one takes over the other's; Session_Timeout is told to the
    MDS."""
    ours = identity(cluster, second(
        block=keys + " Session_Timeout = 200;").pid)
    assert ours[1] == "200"
    cluster.stop_second()
    theirs = identity(cluster, second("CEPH", block=keys).pid)
    assert ours[0] == theirs[0] and ours[0].startswith("ganesha-")
    assert theirs[1] == "300"


def test_zerocopy_is_told_to_have_no_effect(cluster, second):
    started = second(block="Zerocopy = true;")
    assert len(started.log.matching(r"Zerocopy = true.*has no effect")) == 1


@pytest.mark.parametrize("keys", (
    "Max_Inflight = 1;", "Max_Inflight_Bytes = 1048576;"))
def test_limits_in_flight_hold_up_and_lose_nothing(second, cluster, keys):
    """Sixteen requests at once, of which few may be on their way: each has
    its answer, or is asked to retry."""
    second(block=keys)
    connection, root = second_root()
    handle = nfs3.create(connection, root, f"in-flight-{time.time_ns()}")
    size = 300_000
    left, done = threading.Semaphore(0), []

    def answered(reply):
        done.append(nfs3.write_result(reply))
        left.release()
    for number in range(16):
        connection.send(nfs3.WRITE, nfs3.write_arguments(
            handle, number * size, bytes([number]) * size), answered)
    for _ in range(16):
        if not left.acquire(timeout=40):
            cluster.stacks()
            raise AssertionError(f"{len(done)} answers of 16")
    assert [status for status, *_ in done].count(0) == 16, done
    for number in range(16):
        assert nfs3.read(connection, handle, number * size, size) \
            == bytes([number]) * size
    connection.close()
