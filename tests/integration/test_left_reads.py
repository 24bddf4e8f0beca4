# SPDX-License-Identifier: LGPL-3.0-or-later
"""READs that libcephfs does not answer hold up no new client.

A shim keeps their answers back (tests/faults), as an OSD does that is away or a
connection that waits to send again.
"""
import re
import threading
import time
from contextlib import closing

import cephfs
import pytest

import faults as shim
from lab_program import LOGS, Log, ceph, until
from nfs import nfs3, rpc

JUKEBOX = 10008
BLOCK = 4096
BLOCKS = 64
LARGE = 1 << 20
MOST = 16                   # CASYNC_CLIENTS_LEFT_MAX
SERVES = r"a new CephFS client serves after (\d+) ms"
LEFT = r"(\d+) READs that Ceph does not answer are left"
ENDED = r"have come back, and it has ended"
HUNG = r"inode 0x[0-9a-f]+ was truncated while it was read"
SERVED_S = 10               # from the loss to the first request served


def content(number):
    return b"%016d" % number * (BLOCK // 16)


class Reading(threading.Thread):
    """One READ on a connection of its own; its status, or its data.  Before
    the session is lost, JUKEBOX means that the machine was slow: the READ is
    sent again."""

    def __init__(self, file, offset, count):
        super().__init__(daemon=True)
        self.args = file, offset, count
        self.answer = None
        self.again = True
        self.start()

    def run(self):
        with closing(rpc.Connection(2049, timeout=100)) as connection:
            while self.answer is None:
                self.read(connection)

    def read(self, connection):
        try:
            self.answer = nfs3.read(connection, *self.args)
        except nfs3.Refused as err:
            if err.status == JUKEBOX and self.again:
                time.sleep(0.1)
            else:
                self.answer = err.status


class Gateway:
    def __init__(self, lab):
        lab.ganesha("restart", "--faults", "--fsal", "CEPH_ASYNC",
                    "--export", "", "--block", "")
        self.lab = lab
        self.pid = lab.stat()["ganesha"]["a"]["pid"]
        self.log = Log(LOGS / "ganesha-a.log")
        self.faults = shim.Faults()
        self.connection = rpc.Connection(2049, timeout=60)
        self.root = nfs3.root_of("/ceph", 2050)

    def new_file(self, large=False):
        name = f"left-{time.time_ns()}"
        file = nfs3.create(self.connection, self.root, name)
        if large:
            nfs3.write(self.connection, file, 0, content(7) * (LARGE // BLOCK))
        else:
            for place in range(BLOCKS):
                nfs3.write(self.connection, file, place * BLOCK,
                           content(place))
        return name, file

    def count(self, pattern):
        return len(self.log.matching(pattern))

    def asks(self):
        """Until it serves: the seconds."""
        began = time.monotonic()
        while True:
            try:
                nfs3.get_attributes(self.connection, self.root)
                return time.monotonic() - began
            except nfs3.Refused as err:
                assert err.status == JUKEBOX
            assert time.monotonic() - began < 60, "it does not serve"
            time.sleep(0.05)


@pytest.fixture
def gateway(cluster):
    with cluster.may_lose():
        one = Gateway(cluster)
        yield one
        one.faults.clear()
        one.connection.close()


def lose(gateway, *readings):
    for reading in readings:
        reading.again = False
    before = gateway.count(SERVES)
    began = time.monotonic()
    gateway.lab.evict(gateway.pid)
    until(lambda: gateway.count(SERVES) > before, "a new client serves",
          seconds=SERVED_S, pause=0.02)
    return time.monotonic() - began


@pytest.mark.parametrize("old_enough_to_be_cached", (False, True))
def test_reads_are_left_with_the_lost_client(gateway, record,
                                             old_enough_to_be_cached):
    _, file = gateway.new_file()
    if old_enough_to_be_cached:
        time.sleep(3)
    gateway.faults.set("read hold")
    readings = [Reading(file, place * 23 % BLOCKS * BLOCK, BLOCK)
                for place in range(16)]
    # A READ that fetches more has several calls.
    until(lambda: len(gateway.faults.hits("hold")) >= len(readings),
          "all READs are with libcephfs")
    seconds = lose(gateway, *readings)
    for reading in readings:
        reading.join(10)
    assert {reading.answer for reading in readings} == {JUKEBOX}
    assert int(re.search(LEFT, gateway.log.matching(LEFT)[-1])[1]) == \
        len(readings)
    # The new client's answers come; the old one's still do not.
    gateway.faults.set()
    assert nfs3.read(gateway.connection, file, BLOCK, BLOCK) == content(1)
    assert gateway.count(ENDED) == 0
    # They come at last, to nobody, and the old client ends.
    gateway.faults.clear()
    until(lambda: gateway.count(ENDED) == 1, "the old client ends")
    for place in range(BLOCKS):
        assert nfs3.read(gateway.connection, file, place * BLOCK, BLOCK) == \
            content(place)
    record(f"16 READs without an answer, evicted: a new client serves after "
           f"{seconds:.2f} s")


def test_a_blocking_read_holds_up_no_new_client(gateway, record):
    _, file = gateway.new_file(large=True)
    gateway.faults.set("repair count=1 hold")
    reading = Reading(file, 0, LARGE)
    until(lambda: gateway.faults.hits("hold"), "the READ is with libcephfs")
    seconds = lose(gateway, reading)
    assert gateway.asks() < 1
    assert reading.answer is None, "its worker is inside libcephfs"
    gateway.faults.clear()
    reading.join(30)
    assert reading.answer == JUKEBOX
    until(lambda: gateway.count(ENDED) == 1, "the old client ends")
    assert nfs3.read(gateway.connection, file, 0, LARGE) == \
        content(7) * (LARGE // BLOCK)
    record(f"a READ of 1 MiB without an answer, evicted: a new client serves "
           f"after {seconds:.2f} s")


def test_clients_that_are_left_have_a_bound(gateway):
    """The loss after that waits."""
    _, file = gateway.new_file()
    gateway.faults.set(f"read count={MOST + 1} hold")
    for loss in range(MOST):
        reading = Reading(file, loss * 23 % BLOCKS * BLOCK, BLOCK)
        until(lambda loss=loss: len(gateway.faults.hits("hold")) == loss + 1,
              "the READ is with libcephfs")
        lose(gateway, reading)
        reading.join(10)
        assert reading.answer == JUKEBOX
        gateway.asks()
    reading = Reading(file, 0, BLOCK)
    until(lambda: len(gateway.faults.hits("hold")) == MOST + 1,
          "the READ is with libcephfs")
    before = gateway.count(SERVES)
    gateway.lab.evict(gateway.pid)
    time.sleep(5)
    assert gateway.count(SERVES) == before
    gateway.faults.clear()
    until(lambda: gateway.count(SERVES) > before, "a new client serves",
          seconds=SERVED_S)
    until(lambda: gateway.count(ENDED) == MOST, "all old clients end")


def test_a_read_that_waits_for_itself(gateway, record):
    """libcephfs never answers a READ of a file that is truncated at the wrong
    moment.  The session is ended, and the mount lives."""
    name, file = gateway.new_file()
    gateway.faults.set("read count=1 hold")
    reading = Reading(file, 0, BLOCK)
    until(lambda: gateway.faults.hits("hold"), "the READ is with libcephfs")
    reading.again = False
    began = time.monotonic()
    fs = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
    fs.mount()
    fs.truncate(f"/{name}", 10 * BLOCK)
    until(lambda: gateway.count(SERVES) == 1, "a new client serves",
          seconds=30)
    reading.join(10)
    seconds = time.monotonic() - began
    assert reading.answer == JUKEBOX
    assert gateway.count(HUNG) == 1
    assert nfs3.read(gateway.connection, file, 0, BLOCK) == content(0)
    fs.shutdown()
    record(f"a READ that is never answered, its file truncated: JUKEBOX after "
           f"{seconds:.1f} s")


def test_a_slow_read_ends_no_session(gateway):
    _, file = gateway.new_file()
    gateway.faults.set("read count=1 delay=8000")
    reading = Reading(file, 0, BLOCK)
    reading.join(20)
    assert reading.answer == content(0)
    assert gateway.count(SERVES) == 0
    ceph("health")
