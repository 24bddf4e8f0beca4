# SPDX-License-Identifier: LGPL-3.0-or-later
"""GETACL and SETACL of NFSv3 are not answered with "ask again".

Linux does not repeat them: its program gets errno 528, also from an open()
that creates a file in a folder whose default ACL the client does not know.  The
chaos job found it.  So they wait for the next CephFS client, some at a time.
"""
import os
import signal
import time
from pathlib import Path

import pytest

from lab import AFTER_A_LOSS
from lab_program import LOGS, Log, ceph, until
from nfs import nfs3
from nfs.xdr import number, opaque
from nfs3_requests import JUKEBOX, OK, Asker
from test_late_reclaims import blocklist

MDS_PID = Path("/var/lib/casync-lab/ceph/run/mds.a.pid")
NFSACL, GETACL, SETACL = 100227, 1, 2
ALL_OF_IT = 0xf
WAIT = 8                # CASYNC_CALL_REPEATERS
ACL = b"".join(number(n) for n in (
    1, 3, 3,            # the ACL: its entries
    1, 0, 6, 4, 0, 4, 0x20, 0, 0,   # user, group, others of mode 0640
    0, 0))              # no default ACL


class Acls:
    """Requests of NFSACL, and the statuses of those that are answered."""

    def __init__(self, asker):
        self.asker = asker
        self.answers = []

    def send(self, procedure, arguments):
        self.asker.connection.send(
            procedure, arguments,
            lambda reply: self.answers.append(reply.number()),
            program=NFSACL)

    def get(self, handle):
        self.send(GETACL, opaque(handle) + number(ALL_OF_IT))

    def set(self, handle):
        self.send(SETACL, opaque(handle) + ACL)

    def wait_for(self, count, seconds=30):
        until(lambda: len(self.answers) >= count, f"{count} answers",
              seconds=seconds)


@pytest.fixture
def gateway(cluster):
    cluster.ganesha("restart", "--export", "Mount_Timeout = 5;")
    cluster.expected += [*AFTER_A_LOSS, "did not end",
                         r"reclaiming session '.*': no answer"]
    yield cluster
    cluster.ganesha("restart")


@pytest.fixture
def lost(gateway):
    """A gateway without a CephFS client, until what it yields is called."""
    asker = Asker("/ceph")
    asker.file = asker.new_file()
    pid = gateway.stat()["ganesha"]["a"]["pid"]
    addresses = list(blocklist(pid))
    assert addresses
    mds = int(MDS_PID.read_text(encoding="ascii"))
    os.kill(mds, signal.SIGSTOP)
    try:
        for address in addresses:
            ceph("osd", "blocklist", "add", address)
        until(lambda: asker.write(asker.file) == JUKEBOX,
              "the loss is noticed", seconds=60)
        yield asker, lambda: os.kill(mds, signal.SIGCONT)
    finally:
        os.kill(mds, signal.SIGCONT)
    asker.close()


def test_acls_wait_for_the_next_client(lost, record):
    asker, go_on = lost
    log = Log(LOGS / "ganesha-a.log")
    acls = Acls(asker)
    acls.get(asker.file)
    acls.set(asker.file)
    acls.get(asker.root)
    time.sleep(2)
    assert acls.answers == []
    # What Linux repeats does not wait.
    assert asker.look(asker.file) == JUKEBOX
    began = time.monotonic()
    go_on()
    acls.wait_for(3)
    record(f"answered {time.monotonic() - began:.1f} s after the MDS went on")
    assert acls.answers == [OK] * 3
    assert log.matching("a new CephFS client serves")
    assert nfs3.get_attributes(asker.connection,
                               asker.file).mode & 0o777 == 0o640


def test_acls_that_wait_have_a_bound(lost):
    asker, go_on = lost
    acls = Acls(asker)
    for _ in range(3 * WAIT):
        acls.get(asker.file)
    acls.wait_for(2 * WAIT)
    time.sleep(1)
    assert acls.answers == [JUKEBOX] * 2 * WAIT
    go_on()
    acls.wait_for(3 * WAIT)
    assert acls.answers[2 * WAIT:] == [OK] * WAIT
