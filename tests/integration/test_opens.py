# SPDX-License-Identifier: LGPL-3.0-or-later
"""Opens as Linux does not ask for them: share reservations, exclusive
creates sent twice; and handles of another file system.
"""
import struct
import time

import pytest

import second_fs
from lab import resident_kib
from nfs import nfs3, nfs4, rpc
from nfs.nfs4 import BOTH, EXCLUSIVE, GUARDED, READ, UNCHECKED, WRITE
from nfs.xdr import number, opaque, wide


JUKEBOX = 10008


@pytest.fixture
def clients():
    made = []

    def make(port=2049, **options):
        made.append(nfs4.Client(port, f"opener-{time.time_ns()}", **options))
        return made[-1]
    yield make
    for client in made:
        client.leave()


def status_of(call, *args, **options):
    with pytest.raises(nfs4.Failed) as refusal:
        call(*args, **options)
    return refusal.value.status


def test_share_reservations(lab, clients):
    """What one open denies, no other has; and the other way round."""
    one, two = clients(), clients()
    name = f"shared-{time.time_ns()}"
    file = one.open(name, access=READ, create=UNCHECKED, owner=b"owner")
    file.stateid = one.open(name, access=READ, deny=WRITE,
                            owner=b"owner").stateid
    for access in (WRITE, BOTH):
        assert status_of(two.open, name, access=access) == nfs4.SHARE_DENIED
    assert status_of(two.open, name, access=READ, deny=READ) \
        == nfs4.SHARE_DENIED
    other = two.open(name, access=READ, deny=WRITE)
    assert status_of(two.set, file.handle, size=0) == nfs4.SHARE_DENIED
    other.close()
    file.downgrade(READ)
    other = two.open(name, access=BOTH, deny=WRITE)
    assert status_of(one.open, name, access=WRITE) == nfs4.SHARE_DENIED
    other.write(0, b"mine alone")
    other.close()
    assert status_of(two.open, name, access=READ, deny=READ) \
        == nfs4.SHARE_DENIED
    file.close()
    again = one.open(name, access=BOTH, deny=BOTH)
    assert status_of(two.open, name, access=READ) == nfs4.SHARE_DENIED
    again.close()
    two.open(name, access=BOTH, deny=BOTH).close()


def test_an_exclusive_create_sent_twice(lab, clients):
    """The same verifier finds its file, another one does not; nor after it
    was used."""
    client = clients()
    name = f"exclusive-{time.time_ns()}"
    mine, other = b"verifier", b"REIFIREV"
    file = client.open(name, create=EXCLUSIVE, verifier=mine)
    again = client.open(name, create=EXCLUSIVE, verifier=mine)
    assert again.handle == file.handle
    assert status_of(client.open, name, create=EXCLUSIVE, verifier=other) \
        == nfs4.EXIST
    assert status_of(client.open, name, create=GUARDED) == nfs4.EXIST
    assert client.open(name, create=UNCHECKED).handle == file.handle
    file.write(0, b"content")
    again.close()
    file.close()


def test_an_open_grows_and_shrinks(lab, clients):
    """Upgrade by a second OPEN of the same owner, downgrade: one stateid,
    whose access is what it was given last."""
    for minor in (1, 2):
        client = clients(minor=minor)
        name, owner = f"grows-{time.time_ns()}", b"owner"
        file = client.open(name, access=READ, create=UNCHECKED, owner=owner)
        assert status_of(file.write, 0, b"no") == nfs4.OPENMODE
        grown = client.open(name, access=WRITE, owner=owner)
        assert grown.stateid[4:] == file.stateid[4:]
        assert grown.stateid[:4] > file.stateid[:4]
        assert status_of(file.write, 0, b"no") == nfs4.OLD_STATEID
        file.stateid = grown.stateid
        assert file.write(0, b"content") == 7
        assert file.read(0, 100) == b"content"

        stranger = clients(minor=minor)
        held = stranger.open(name, access=BOTH)
        file.downgrade(READ)
        assert file.read(0, 100) == b"content"
        held.close()
        # Not that a WRITE by it is refused: Ganesha's core keeps the access
        # that the open had (nfs4_do_open_downgrade).  The FSAL has given it
        # back, and what it never denied it is not given by a downgrade.
        assert status_of(file.downgrade, READ, READ) == nfs4.INVAL
        sole = stranger.open(name, access=READ, deny=WRITE)
        assert status_of(client.open, name, access=WRITE, owner=owner) \
            == nfs4.SHARE_DENIED
        assert file.read(0, 100) == b"content"
        sole.close()
        file.close()
        stranger.open(name, access=BOTH, deny=BOTH).close()


def test_special_stateids(lab, clients):
    """All zeros and all ones are for I/O without an open; in between there
    is nothing; zeros with a one are the compound's own."""
    for minor in (1, 2):
        client = clients(minor=minor)
        name = f"special-{time.time_ns()}"
        file = client.open(name, create=UNCHECKED)
        for stateid, data in ((nfs4.ANONYMOUS, b"zeros"),
                              (nfs4.BYPASS, b"-ones")):
            assert client.write(file.handle, 0, data, stateid) == 5
            assert client.read(file.handle, 0, 9, stateid) == data
            client.set(file.handle, stateid, size=3)
            assert client.read(file.handle, 0, 9, stateid) == data[:3]
            client.set(file.handle, stateid, size=0)
        for other in (b"\0" * 3 + b"\x05" + b"\0" * 12,
                      b"\0" * 4 + b"\xff" * 12,
                      b"\xff" * 4 + b"\0" * 12, nfs4.CURRENT):
            assert status_of(client.read, file.handle, 0, 9, other) \
                == nfs4.BAD_STATEID, other
            assert status_of(client.write, file.handle, 0, b"x", other) \
                == nfs4.BAD_STATEID, other
            assert status_of(client.set, file.handle, other, size=0) \
                == nfs4.BAD_STATEID, other
        forged = file.stateid[:4] + bytes(b ^ 0x55 for b in file.stateid[4:])
        assert status_of(client.write, file.handle, 0, b"x", forged) \
            == nfs4.BAD_STATEID
        file.write(0, b"content")
        assert current_stateid_reads(client, name) == b"content"
        file.close()
        assert status_of(file.write, 0, b"x") == nfs4.BAD_STATEID


def current_stateid_reads(client, name):
    """OPEN and READ in one COMPOUND (RFC 8881, 16.2.3.1.2)."""
    arguments = struct.pack(">III", 0, READ, 0) + wide(
        client.clientid) + opaque(b"current") + number(0) + \
        number(0) + opaque(name.encode())
    return client.compound(
        nfs4.put(client.root), (18, arguments, nfs4.decode_open),
        (25, nfs4.CURRENT + wide(0) + number(100),
         lambda reply: (reply.skip(4), reply.opaque())[1]),
        (4, number(0) + nfs4.CURRENT,
         lambda reply: reply.fixed(16)))[2]


def test_special_stateids_and_denials(lab, clients):
    """An open that denies is not got around without one."""
    one, two = clients(), clients()
    name = f"denied-{time.time_ns()}"
    file = one.open(name, access=BOTH, create=UNCHECKED, deny=WRITE)
    file.write(0, b"content")
    for stateid in (nfs4.ANONYMOUS, nfs4.BYPASS):
        assert status_of(two.write, file.handle, 0, b"x", stateid) \
            == nfs4.LOCKED
        assert status_of(two.set, file.handle, stateid, size=0) \
            == nfs4.SHARE_DENIED
    assert two.read(file.handle, 0, 99) == b"content"
    file.close()
    file = one.open(name, access=BOTH, deny=BOTH)
    assert status_of(two.read, file.handle, 0, 99) == nfs4.LOCKED
    assert file.read(0, 99) == b"content"
    file.close()
    assert two.write(file.handle, 0, b"CON") == 3
    assert two.read(file.handle, 0, 99) == b"CONtent"


def test_a_create_empties_no_file_that_denies_it(lab, clients):
    """NFSv3's has no state, and is a write all the same."""
    one, two = clients(), clients()
    name = f"denied-{time.time_ns()}"
    file = one.open(name, access=BOTH, create=UNCHECKED, deny=WRITE)
    file.write(0, b"content")
    connection = rpc.Connection(2049)
    with pytest.raises(nfs3.Refused) as refusal:
        nfs3.call(connection, nfs3.CREATE, nfs3.named(
            nfs3.root_of("/ceph", 2050), name) + struct.pack(
                ">IIIIIQII", 0, 0, 0, 0, 1, 0, 0, 0))
    assert refusal.value.status == JUKEBOX
    assert status_of(two.open, name, create=UNCHECKED, size=0) == \
        nfs4.SHARE_DENIED
    assert file.read(0, 99) == b"content"
    file.close()
    connection.close()


def test_sizes_of_open_and_unopened_files(lab, clients):
    """SETATTR of the size asks for WRITE: by the open's stateid, or by
    none."""
    client = clients()
    name = f"sized-{time.time_ns()}"
    file = client.open(name, create=UNCHECKED)
    file.write(0, b"c" * 1000)
    client.set(file.handle, file.stateid, size=10)
    assert file.read(0, 2000) == b"c" * 10
    client.set(file.handle, file.stateid, size=20)
    assert file.read(0, 2000) == b"c" * 10 + bytes(10)
    reading = client.open(name, access=READ)
    assert status_of(client.set, file.handle, reading.stateid, size=0) \
        == nfs4.OPENMODE
    reading.close()
    file.close()
    client.set(file.handle, size=5)
    assert client.read(file.handle, 0, 99) == b"c" * 5
    assert client.change_and_size(file.handle)[1] == 5
    top = client.create(nfs4.DIRECTORY, name + "-dir")
    assert status_of(client.set, top, size=0) == nfs4.ISDIR


def test_holes_and_space(lab, clients):
    client = clients()
    file = client.open(f"holes-{time.time_ns()}", create=UNCHECKED)
    file.write(0, b"x" * 100)
    assert status_of(client.allocate, file.handle, 0, 1000, file.stateid) \
        == nfs4.NOTSUPP
    client.deallocate(file.handle, 10, 20, file.stateid)
    assert file.read(0, 200) == b"x" * 10 + bytes(20) + b"x" * 70
    assert client.seek(file.handle, 0, 0, file.stateid)[1] == 0
    assert client.seek(file.handle, 50, 1, file.stateid)[1] == 100
    assert status_of(client.seek, file.handle, 100, 0, file.stateid) \
        == nfs4.NXIO
    assert client.change_and_size(file.handle)[1] == 100
    file.close()


def test_a_hole_far_beyond_the_end(lab, clients, record):
    """libcephfs makes an OSD operation of each object in the range, all at
    once: 2^62 bytes are 2^40 objects."""
    client = clients()
    pid = lab.stat()["ganesha"]["a"]["pid"]
    file = client.open(f"far-{time.time_ns()}", create=UNCHECKED)
    file.write(0, b"x" * 8192)
    before, began = resident_kib(pid), time.monotonic()
    client.deallocate(file.handle, 4096, 1 << 62, file.stateid)
    client.deallocate(file.handle, 1 << 40, 1 << 61, file.stateid)
    seconds, after = time.monotonic() - began, resident_kib(pid)
    record(f"a hole of 2^62 bytes in a file of 8 KiB took {seconds:.2f} s; "
           f"ganesha.nfsd {before / 1024:.0f} MiB before, "
           f"{after / 1024:.0f} after")
    assert file.read(0, 9000) == b"x" * 4096 + bytes(4096)
    assert seconds < 5 and after < before + (32 << 10)
    file.close()


@pytest.fixture
def other_fs(cluster, tmp_path):
    with second_fs.made(cluster, tmp_path):
        yield


def test_two_file_systems(cluster, other_fs, clients):
    """Each its own files; a handle of one means nothing to the other."""
    cluster.ganesha("restart", "--fsal", "CEPH_ASYNC", "--export", "",
                    "--block", "", "--core", "", "--export-block", "",
                    "--nfsv4", "", "--append", second_fs.export("/other"))
    one, two = clients(), clients(pseudo="/other")
    name = f"whose-{time.time_ns()}"
    for client, data in ((one, b"the first's"), (two, b"the second's")):
        file = client.open(name, create=GUARDED)
        file.write(0, data)
        file.close()
    assert one.read(one.lookup(name), 0, 99) == b"the first's"
    assert two.read(two.lookup(name), 0, 99) == b"the second's"
    mine = one.lookup(name)
    theirs = two.lookup(name)
    assert one.root != two.root and mine != theirs
    # the same handle with the other export's number in it
    number = next(n for n in range(len(mine))
                  if one.root[n:n + 2] == b"\0\1" and
                  two.root[n:n + 2] == b"\0\x09")
    forged = mine[:number] + b"\0\x09" + mine[number + 2:]
    assert status_of(two.read, forged, 0, 9) == nfs4.STALE
    assert one.read(mine, 0, 99) == b"the first's"
