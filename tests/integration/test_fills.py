# SPDX-License-Identifier: LGPL-3.0-or-later
"""READs that fill the read cache, with faults on their way: what is cached
afterwards is right, and what is not right is not cached."""
import errno
import threading
import time

import pytest

from metrics_outputs import SETTLED_S, CacheCounts
from faults import Faults, start
from nfs import nfs4

PAGE = 4 << 10
BLOCK = 64 << 10
TOLD = "nfs4_Errno_verbose :NFS4 :CRIT :Error I/O error"
FAR = 1 << 20           # apart from each other no READs are a stream
BLOCKS = 16


@pytest.fixture(name="faults", scope="module")
def shim(cluster):
    faults = start(cluster, core="Enable_Metrics = true;")
    yield faults
    faults.clear()


@pytest.fixture
def two(faults):
    """Two clients: a request of one does not wait for the other's."""
    clients = [nfs4.Client(2049, f"fill-{n}-{time.time_ns()}")
               for n in range(2)]
    yield clients
    faults.clear()
    for client in clients:
        client.leave()


def block(stamp):
    return bytes([stamp]) * BLOCK


def settled(client):
    """A file of blocks, stamped 1 to 16, each in a MiB of its own."""
    file = client.open(f"fill-{time.time_ns()}", create=nfs4.UNCHECKED)
    for n in range(BLOCKS):
        file.write(n * FAR, block(n + 1))
    time.sleep(SETTLED_S)
    return file


class Reading(threading.Thread):
    """A READ that another client makes meanwhile."""

    def __init__(self, client, file, offset, length=BLOCK):
        super().__init__(daemon=True)
        self.ask = lambda: client.read(file.handle, offset, length)
        self.data = None
        self.start()

    def run(self):
        self.data = self.ask()

    def answer(self):
        self.join(10)
        assert not self.is_alive()
        return self.data


def held_fill(two, faults, file):
    """A READ of the first block by the second client, under way."""
    faults.set("read count=1 offset=0 hold")
    reading = Reading(two[1], file, 0)
    faults.wait(lambda: faults.hits("hold"), "held READ")
    return reading


def test_a_short_fill_is_completed(two, faults):
    """libcephfs gives half; the rest is there."""
    file, counts = settled(two[0]), CacheCounts()
    faults.set("read count=1 offset=0 short=half")
    assert file.read(0, BLOCK) == block(1)
    assert len(faults.hits("short")) == 1
    assert file.read(0, BLOCK) == block(1)
    assert counts.since("hits", "fills") == (1, 1)
    file.close()


def test_a_short_fill_that_cannot_be_completed(cluster, till_end, two, faults):
    till_end(cluster.expects(TOLD))
    file, counts = settled(two[0]), CacheCounts()
    faults.set("read count=1 offset=0 short=half",
               "repair count=1 error=EIO")
    with pytest.raises(nfs4.Failed) as failed:
        file.read(0, BLOCK)
    assert failed.value.status == errno.EIO
    assert counts.since("fills") == (0,)
    assert file.read(0, BLOCK) == block(1)
    assert file.read(0, BLOCK) == block(1)
    assert counts.since("hits", "fills") == (1, 1)
    file.close()


@pytest.mark.parametrize("how", ("error", "refuse"))
def test_a_fill_that_fails(cluster, till_end, two, faults, how):
    till_end(cluster.expects(TOLD))
    file, counts = settled(two[0]), CacheCounts()
    faults.set(f"read count=1 offset={FAR} {how}=EIO")
    with pytest.raises(nfs4.Failed) as failed:
        file.read(FAR, BLOCK)
    assert failed.value.status == errno.EIO
    assert counts.since("fills") == (0,)
    for _ in range(2):
        assert file.read(FAR, BLOCK) == block(2)
    assert counts.since("hits", "fills") == (1, 1)
    file.close()


def test_a_fill_that_comes_after_a_write(two, faults):
    """It has the old bytes.  The WRITE was acknowledged meanwhile."""
    file, counts = settled(two[0]), CacheCounts()
    late = held_fill(two, faults, file)
    file.write(PAGE, block(99)[:PAGE])
    faults.set("release")
    new = block(1)[:PAGE] + block(99)[:PAGE] + block(1)[2 * PAGE:]
    assert late.answer() in (block(1), new)
    assert counts.since("fills", "fills_dropped write") == (0, 1)
    time.sleep(SETTLED_S)
    for _ in range(2):
        assert file.read(0, BLOCK) == new
    assert counts.since("hits", "fills") == (1, 1)
    file.close()


def test_fills_in_the_wrong_order(two, faults):
    """All of a file at once; what comes first was asked for last."""
    file, counts = settled(two[0]), CacheCounts()
    clients = [nfs4.Client(2049, f"fill-{n}-{time.time_ns()}")
               for n in range(BLOCKS)]
    faults.set("read hold")
    readings = [Reading(client, file, n * FAR)
                for n, client in enumerate(clients)]
    Faults.wait(lambda: len(faults.hits("hold")) == BLOCKS, "held READs")
    faults.set("release reversed")
    for n, reading in enumerate(readings):
        assert reading.answer() == block(n + 1)
    assert counts.since("hits", "fills") == (0, BLOCKS)
    for n in range(BLOCKS):
        assert file.read(n * FAR, BLOCK) == block(n + 1)
    assert counts.since("hits", "fills") == (BLOCKS, BLOCKS)
    for client in clients:
        client.leave()
    file.close()


def test_two_fills_of_the_same_page(two, faults):
    """The second finds the page there; both are answered."""
    file, counts = settled(two[0]), CacheCounts()
    first = held_fill(two, faults, file)
    assert file.read(0, BLOCK) == block(1)
    faults.set("release")
    assert first.answer() == block(1)
    assert counts.since("fills", "fills_dropped known") == (1, 1)
    file.close()
