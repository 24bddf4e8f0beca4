# SPDX-License-Identifier: LGPL-3.0-or-later
"""GETACL and SETACL of NFSv3 are not answered with "ask again".

Linux does not repeat them: its program gets errno 528, also from an open()
that creates a file in a folder whose default ACL the client does not know.  The
chaos job found it.  So they wait for the next CephFS client, and are not
answered when that takes long: then Linux sends them again.
"""
import os
import signal
import time
from pathlib import Path

import pytest

from lab_program import ceph, until
from nfs import nfs3
from nfs.xdr import number, opaque
from nfs3_requests import JUKEBOX, OK, Asker
from test_late_reclaims import blocklist

MDS_PID = Path("/var/lib/casync-lab/ceph/run/mds.a.pid")
NFSACL, GETACL, SETACL = 100227, 1, 2
ALL_OF_IT = 0xf
REPEAT_S = 2            # CASYNC_CALL_REPEAT_MS
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
    # As by default: MDCACHE holds the lock of a file's attributes meanwhile.
    cluster.ganesha("restart", "--export", "Mount_Timeout = 5;",
                    "--export-block", "Attr_Expiration_Time = 60;")
    # An unmount waits for the MDS, which stands still for a while.
    with cluster.may_lose(), cluster.may_log(
            "how long the MDS stands still is a matter of the machine",
            "unmounting .* did not end",
            r"reclaiming session '.*': no answer"):
        yield cluster
        cluster.ganesha("restart", "--export", "", "--export-block", "")


@pytest.fixture
def lost(gateway):
    """A gateway without a CephFS client, until what it yields is called."""
    asker = Asker("/ceph")
    # Written: MDCACHE does not know their attributes.
    asker.file, asker.other = asker.new_file(), asker.new_file("-2")
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


# The new client has to serve within CASYNC_CALL_REPEAT_MS.
@pytest.mark.measures
def test_acls_wait_for_the_next_client(lost, record):
    asker, go_on = lost
    acls = Acls(asker)
    acls.get(asker.file)
    acls.set(asker.file)
    acls.get(asker.other)
    time.sleep(0.3)
    assert acls.answers == []
    began = time.monotonic()
    go_on()
    acls.wait_for(3)
    record(f"answered {time.monotonic() - began:.1f} s after the MDS went on")
    assert acls.answers == [OK] * 3
    assert nfs3.get_attributes(asker.connection,
                               asker.file).mode & 0o777 == 0o640


def test_acls_have_no_answer_when_it_takes_long(lost):
    asker, go_on = lost
    acls = Acls(asker)
    for _ in range(200):
        acls.get(asker.file)
    time.sleep(REPEAT_S / 2)
    asker.longest = 0
    # What Linux repeats does not wait for long.
    assert asker.look(asker.file) == JUKEBOX
    assert asker.longest < 2 * REPEAT_S
    time.sleep(REPEAT_S)
    acls.get(asker.file)
    assert asker.look(asker.file) == JUKEBOX
    assert acls.answers == []
    go_on()
    until(lambda: asker.write(asker.file) == OK, "a client serves")
    acls.get(asker.file)
    acls.wait_for(1)
    assert acls.answers == [OK]
