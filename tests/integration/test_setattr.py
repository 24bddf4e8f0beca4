# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a SETATTR waits for: with Stable_Metadata = journal a change is in the
MDS' journal when it is answered.  An owner that the file has already waits for
nothing new."""
import contextlib
import struct
import threading
import time

import pytest

import faults
from nfs import nfs3, rpc
from nfs.xdr import opaque

FILES = 20
OWNER, OTHER = 1000, 1001
EXCLUSIVE = 2                   # createmode3
EXIST = 17                      # NFS3ERR_EXIST
# libcephfs sends what it has changed in memory after 5 s
# (client_caps_release_delay), and looks for it once a second.
SENT_S = 8


@pytest.fixture
def connection(lab):
    made = rpc.Concurrent(2049)
    yield made
    made.close()


@pytest.fixture
def folder(connection):
    """One that no other CephFS client knows."""
    root = nfs3.root_of("/ceph", 2050)
    return nfs3.make_directory(connection, root, f"set-{time.time_ns()}")


def chown(connection, handle, uid):
    nfs3.call(connection, nfs3.SETATTR, opaque(handle) + struct.pack(
        ">IIIII", 0, 1, uid, 1, uid) + bytes(16))


def settled_file(connection, folder, name):
    """Owner and mode are journaled."""
    handle = nfs3.create(connection, folder, name)
    nfs3.give(connection, handle, OWNER, 0o640)
    return handle


@pytest.fixture
def stable(lab, request):
    """Before a connection is made."""
    lab.ganesha("restart", "--export", f"Stable_Metadata = {request.param};")
    return request.param


@pytest.mark.parametrize("stable", ("mds", "journal"), indirect=True)
def test_an_owner_that_is_so_already_journals_nothing(
        stable, lab, connection, folder, record):
    """The chown() of a tar or rsync."""
    handles = [settled_file(connection, folder, f"file-{number}")
               for number in range(FILES)]

    def events_of(uid):
        before = lab.journal_events()
        for handle in handles:
            chown(connection, handle, uid)
        return lab.journal_events() - before

    same, changed = events_of(OWNER), events_of(OTHER)
    record(f"{stable}: MDS journal events of {FILES} chown: {same} where the "
           f"owner was so already, {changed} where he was not")
    # The MDS has some of its own.
    assert same < FILES // 2
    assert changed >= FILES


def test_ctime_moves_though_the_owner_does_not(connection, folder):
    """POSIX' chown() marks it, whatever it changes."""
    handle = settled_file(connection, folder, "file")
    before = nfs3.get_attributes(connection, handle)
    time.sleep(0.02)
    chown(connection, handle, OWNER)
    after = nfs3.get_attributes(connection, handle)
    assert after.ctime > before.ctime
    assert after.mode == before.mode


class Chown(threading.Thread):
    """One SETATTR, on a connection of its own."""

    def __init__(self, handle, uid):
        super().__init__(daemon=True)
        self.connection = rpc.Concurrent(2049)
        self.arguments = handle, uid
        self.failure = None
        self.start()

    def run(self):
        try:
            chown(self.connection, *self.arguments)
        except (nfs3.Refused, OSError) as err:
            self.failure = err
        self.connection.close()

    def is_answered(self, seconds):
        """With success."""
        self.join(seconds)
        if self.failure:
            raise self.failure
        return not self.is_alive()


@pytest.mark.parametrize("stable", ("journal",), indirect=True)
def test_an_owner_that_is_so_in_memory_alone_waits(stable, connection, folder,
                                                   journal_paused):
    """The first changes the owner, and waits for the journal.  The second
    finds him changed.  A crash would undo it, so it must wait as well: by the
    count of such SETATTRs, and by the flush that comes first."""
    handle = settled_file(connection, folder, "changed")
    untouched = settled_file(connection, folder, "untouched")
    journal_paused("true")
    first = Chown(handle, OTHER)
    assert not first.is_answered(1)
    second = Chown(handle, OTHER)
    assert Chown(untouched, OWNER).is_answered(20)
    assert not second.is_answered(1)
    assert first.is_alive()
    journal_paused("false")
    assert first.is_answered(20)
    assert second.is_answered(20)


def test_what_clears_set_id_bits_is_a_change(lab, connection, folder):
    """A chown() to the owner that the file has still clears them, and that
    survives the gateway."""
    handle = settled_file(connection, folder, "privileged")
    nfs3.give(connection, handle, OWNER, 0o6755)
    chown(connection, handle, OWNER)
    lab.ganesha("kill9")
    lab.ganesha("start")
    again = rpc.Concurrent(2049)
    assert nfs3.get_attributes(again, handle).mode & 0o6000 == 0
    again.close()


def create_exclusive(connection, folder, name, verifier):
    return nfs3.new_handle(nfs3.call(
        connection, nfs3.CREATE,
        nfs3.named(folder, name) + struct.pack(">I8s", EXCLUSIVE, verifier)))


def test_a_verifier_outlives_the_gateway(lab, connection, folder):
    """The client had no answer, and sends its exclusive create again."""
    mine, other = b"verifier", b"REIFIREV"
    handle = create_exclusive(connection, folder, "exclusive", mine)
    time.sleep(SENT_S)
    lab.ganesha("kill9")
    lab.ganesha("start")
    again = rpc.Concurrent(2049)
    assert create_exclusive(again, folder, "exclusive", mine) == handle
    with pytest.raises(nfs3.Refused) as refused:
        create_exclusive(again, folder, "exclusive", other)
    assert refused.value.status == EXIST
    again.close()


def test_an_exclusive_create_waits_for_no_journal(connection, folder,
                                                  journal_paused):
    for number in range(2):     # the folder is known, its journal written
        create_exclusive(connection, folder, f"before-{number}", b"12345678")
    time.sleep(1)
    journal_paused("true")
    for number in range(FILES):
        create_exclusive(connection, folder, f"file-{number}", b"%08d" % number)


def test_a_verifier_that_dies_with_the_gateway(lab, folder):
    """CephFS makes a file and sets its times in two requests.  A gateway that
    is killed between them leaves a file of nobody (docs/durability.md)."""
    shim = faults.start(lab)
    shim.set("setattr delay=60000")

    first = rpc.Concurrent(2049)

    def create():
        with contextlib.suppress(OSError):      # it is cut off
            create_exclusive(first, folder, "cut", b"verifier")

    creator = threading.Thread(target=create)
    creator.start()
    shim.wait(lambda: shim.hits("delay"), "the verifier")
    lab.ganesha("kill9")
    lab.ganesha("restart")
    again = rpc.Concurrent(2049)
    with pytest.raises(nfs3.Refused) as refused:
        create_exclusive(again, folder, "cut", b"verifier")
    assert refused.value.status == EXIST
    again.close()
    creator.join(30)
    assert not creator.is_alive()
    first.close()
