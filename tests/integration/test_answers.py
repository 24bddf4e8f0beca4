# SPDX-License-Identifier: LGPL-3.0-or-later
"""What the server says of itself, and what it says to operations that
CephFS or Ganesha's core has nothing for: accepted, or a clear refusal that
leaves file and connection as they were.
"""
import struct
import time

import pytest

from nfs import nfs3, nfs4, rpc
from nfs.xdr import number, opaque, wide

LARGEST = (1 << 63) - 1
LONGEST_NAME, MOST_LINKS = 255, 1024
ONE_NS = (0, 1)


@pytest.fixture
def client(lab):
    made = nfs4.Client(2049, f"asker-{time.time_ns()}")
    yield made
    made.leave()


@pytest.fixture
def file(client):
    name = f"asked-{time.time_ns()}"
    opened = client.open(name, create=nfs4.UNCHECKED)
    opened.name = name
    opened.write(0, b"content")
    yield opened
    if opened.stateid:
        opened.close()


def test_figures_of_nfs3(lab):
    """FSINFO and PATHCONF."""
    connection = rpc.Concurrent(2049)
    root = nfs3.root_of("/ceph", 2050)
    reply = nfs3.call(connection, nfs3.FSINFO, opaque(root))
    nfs3.optional_attributes(reply)
    rtmax, _, _, wtmax = (reply.number() for _ in range(4))
    reply.skip(4 * 3)
    largest, seconds, nanoseconds, properties = reply.take("QIII")
    assert rtmax >= 1 << 20 and wtmax >= 1 << 20
    assert largest == LARGEST
    assert (seconds, nanoseconds) == ONE_NS
    assert properties & 0x1b == 0x1b    # links, symlinks, homogeneous, times

    reply = nfs3.call(connection, nfs3.PATHCONF, opaque(root))
    nfs3.optional_attributes(reply)
    assert [reply.number() for _ in range(6)] == [
        MOST_LINKS, LONGEST_NAME, 1, 1, 0, 1]   # no_trunc, chown_restricted,
    connection.close()                          # case-insensitive, -preserving


@pytest.mark.parametrize("minor", (1, 2))
def test_figures_of_nfs4(lab, minor):
    client = nfs4.Client(2049, f"asker-{time.time_ns()}", minor=minor)
    value, there = client.get(client.root, 5, 6, 9, 16, 17, 18, 26, 27, 28,
                              29, 34, 51)
    assert there[0].bit_count() + there[1].bit_count() == 12
    # link and symlink support, unique handles; case-insensitive,
    # case-preserving, chown restricted; homogeneous; largest file; links,
    # name; no_trunc; time_delta.
    assert struct.unpack(">IIIIIIIQIIIqI", value) == (
        1, 1, 1, 0, 1, 1, 1, LARGEST, MOST_LINKS, LONGEST_NAME, 1, *ONE_NS)
    client.leave()


# --- NFSv4.2, RFC 7862

COPY, COPY_NOTIFY, IO_ADVISE, OFFLOAD_CANCEL, OFFLOAD_STATUS = \
    60, 61, 63, 66, 67
READ_PLUS, WRITE_SAME, CLONE, LAYOUTGET = 68, 70, 71, 50
WILL_NEED, SEQUENTIAL = 7, 1


@pytest.mark.parametrize("locked", (False, True))
def test_io_advise_is_refused_and_the_daemon_lives(lab, file, locked):
    """Ganesha 9.14 writes what an FSAL accepts over the list of the open's
    locks, and CLOSE follows that (sal_data.h, union state_data)."""
    pid = lab.stat()["ganesha"]["a"]["pid"]
    if locked:
        file.lock(nfs4.WRITE_LOCK, 0, 10)
    assert file.client.status_of(nfs4.put(file.handle), (
        IO_ADVISE, file.stateid + wide(0) + wide(4096) +
        nfs4.bitmap(WILL_NEED, SEQUENTIAL), None)) == nfs4.NOTSUPP
    assert file.read(0, 100) == b"content"
    if locked:
        file.unlock(0, 10)
    again = file.client.open(file.name, owner=file.owner)
    again.close()
    assert lab.stat()["ganesha"]["a"]["pid"] == pid
    file.stateid = None


def arguments(file):
    """Each operation with arguments that make sense for FILE."""
    whole = wide(0) * 3
    return {
        READ_PLUS: file.stateid + wide(0) + number(4096),
        WRITE_SAME: file.stateid + number(2) + wide(0) + wide(512) +
        wide(2) + wide(0) + number(0) + wide(0) + opaque(b"pattern"),
        COPY: file.stateid * 2 + whole + number(1) + number(1) + number(0),
        CLONE: file.stateid * 2 + whole,
        COPY_NOTIFY: file.stateid + number(1) + opaque(b"other"),
        OFFLOAD_CANCEL: file.stateid,
        OFFLOAD_STATUS: file.stateid,
    }


@pytest.mark.parametrize("operation", (
    READ_PLUS, WRITE_SAME, COPY, CLONE, COPY_NOTIFY, OFFLOAD_CANCEL,
    OFFLOAD_STATUS))
def test_what_there_is_not_is_refused(file, operation):
    """NOTSUPP, which sends a client back to READ and WRITE; nothing has
    happened, and the session goes on."""
    before = file.client.get(file.handle, 3, 4)
    status = file.client.status_of(
        nfs4.put(file.handle), (32, b"", None),     # SAVEFH, for COPY
        (operation, arguments(file)[operation], None))
    assert status == nfs4.NOTSUPP
    assert file.client.get(file.handle, 3, 4) == before
    assert file.read(0, 100) == b"content"
    assert file.write(7, b" and more") == 9
    assert file.read(0, 100) == b"content and more"


def test_there_are_no_layouts(file):
    """No pNFS, as with FSAL_CEPH, whose own was never finished."""
    value, _ = file.client.get(file.client.root, 62)    # fs_layout_types
    assert struct.unpack_from(">I", value)[0] == 0
    assert file.client.status_of(nfs4.put(file.handle), (
        LAYOUTGET, number(0) + number(1) + number(1) + wide(0) +
        wide(4096) + wide(4096) + file.stateid + number(4096), None)) != 0
    assert file.read(0, 100) == b"content"
