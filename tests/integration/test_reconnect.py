# SPDX-License-Identifier: LGPL-3.0-or-later
"""A gateway that loses its CephFS session comes back by itself.

It is evicted by the MDS, or its address is put on the blocklist, while clients
work.  Nobody gets an error, no acknowledged byte is lost, and the truth is told
about locks.
"""
import json
import os
import signal
import threading
import time
from pathlib import Path

import cephfs
import pytest

from faults import Faults
from fuse import Fuse
from lab_program import LOGS, Log, ceph, until
from nfs import nfs3, nfs4, rpc
from nfs.nfs4 import TO_THE_END, WRITE_LOCK as W
from nfs.xdr import number, opaque, wide
from test_locks import Ceph
from test_setattr import create_exclusive
from test_stalled_osd import Flight

SERVED_S = 15               # at most, from the loss to the next WRITE
JUKEBOX = 10008
SERVES = r"a new CephFS client serves after (\d+) ms"
BLOCK = 4096

class Gateway:
    """Ganesha "a", how often it came back, and ways to end its session."""

    def __init__(self, lab):
        self.lab = lab
        self.pid = lab.stat()["ganesha"]["a"]["pid"]
        self.log = Log(LOGS / "ganesha-a.log")

    def times_back(self):
        return len(self.log.matching(SERVES))

    def evict(self):
        self.lab.evict(self.pid)

    def blocklist(self):
        for session in json.loads(ceph("tell", "mds.0", "client", "ls")):
            if session["client_metadata"].get("pid") != str(self.pid):
                continue
            addr = session["entity"]["addr"]
            ceph("osd", "blocklist", "add",
                 f"{addr['addr']}/{addr['nonce']}")

    def lose(self, how):
        """Until it serves again; the seconds that this took."""
        before = self.times_back()
        began = time.monotonic()
        how()
        until(lambda: self.times_back() > before, "a new client serves",
              seconds=60, pause=0.02)
        return time.monotonic() - began

    def status(self, what):
        for line in Path(f"/proc/{self.pid}/status").read_text(
                encoding="ascii").splitlines():
            if line.startswith(what + ":"):
                return int(line.split()[1])
        raise AssertionError(what)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))


@pytest.fixture
def losing(lab):
    """A lab whose "a" may lose its session."""
    with lab.may_lose():
        yield lab


@pytest.fixture
def gateway(losing):
    losing.ganesha("restart")   # the locks of other tests are no matter
    return Gateway(losing)


class Writer(threading.Thread):
    """Stable WRITEs by NFSv3, one after the other; each is repeated while the
    server asks for that.  The gaps between answers tell the pauses."""

    def __init__(self):
        super().__init__(daemon=True)
        self.connection = rpc.Concurrent(2049)
        self.root = nfs3.root_of("/ceph", 2050)
        self.name = f"reconnect-{time.time_ns()}"
        self.file = nfs3.create(self.connection, self.root, self.name)
        self.answered = []          # when
        self.delays = 0
        self.newest = {}
        self.failed = None
        self.ended = threading.Event()

    @staticmethod
    def content(number):
        return b"%016d" % number * (BLOCK // 16)

    def write(self, number):
        while True:
            try:
                nfs3.write(self.connection, self.file, number % 64 * BLOCK,
                           self.content(number))
                return
            except nfs3.Refused as err:
                if err.status != JUKEBOX:
                    raise
            self.delays += 1
            time.sleep(0.01)

    def run(self):
        number = 0
        try:
            while not self.ended.is_set():
                number += 1
                self.write(number)
                self.newest[number % 64] = number
                self.answered.append(time.monotonic())
        except Exception as err:  # noqa: BLE001 (told at the end)
            self.failed = err

    def end(self):
        """The longest pause, once all that was acknowledged is seen."""
        self.ended.set()
        self.join(60)
        assert self.failed is None, repr(self.failed)
        assert not self.is_alive()
        for place, newest in self.newest.items():
            assert nfs3.read(self.connection, self.file, place * BLOCK,
                             BLOCK) == self.content(newest)
        self.connection.close()
        return max(b - a for a, b in zip(self.answered, self.answered[1:]))


@pytest.mark.parametrize("how", ("evict", "blocklist"))
def test_writes_go_on(gateway, record, how):
    writer = Writer()
    writer.start()
    time.sleep(0.5)
    seconds = [gateway.lose(getattr(gateway, how)) for _ in range(3)]
    time.sleep(0.5)
    longest = writer.end()
    record(f"{how}, 3 times beside stable NFSv3 WRITEs: served again within "
           f"{max(seconds):.2f} s, longest pause {longest:.2f} s, "
           f"{writer.delays} delays, {len(writer.answered)} WRITEs")
    assert writer.delays
    assert longest < SERVED_S


@pytest.mark.parametrize("vers", ("3", "4.0", "4.1", "4.2"))
def test_a_kernel_client_sees_no_error(gateway, record, tmp_path, vers):
    """With open files and a lock that is held; it works before the losses and
    after them."""
    folder = f"/mnt/nfs/evicted-{time.time_ns()}"
    client = gateway.lab.start_client(
        "python3", "-B", gateway.lab.scripts / "eviction_work.py", folder,
        0, tmp_path, vers=vers, seconds=120)
    until(lambda: (tmp_path / "ready").exists()
          or client.poll() is not None, "it works", 60)
    seconds = [gateway.lose(how)
               for how in (gateway.evict, gateway.blocklist)]
    (tmp_path / "stop").touch()
    said = json.loads(gateway.lab.end_client(client, 120).splitlines()[-1])
    record(f"NFSv{vers}: 2 losses, served again within {max(seconds):.2f} s; "
           f"the client's longest pause {said['longest']} s, "
           f"{said['rounds']} rounds of work")
    assert said["longest"] < SERVED_S


class Creator(threading.Thread):
    """One exclusive create by NFSv3, sent again while it has to be."""

    def __init__(self, name, verifier):
        super().__init__(daemon=True)
        self.connection = rpc.Concurrent(2049)
        self.root = nfs3.root_of("/ceph", 2050)
        self.name, self.verifier = name, verifier
        self.delays = 0
        self.answer = None

    def run(self):
        while self.answer is None:
            try:
                create_exclusive(self.connection, self.root, self.name,
                                 self.verifier)
                self.answer = 0
            except nfs3.Refused as err:
                if err.status != JUKEBOX:
                    self.answer = err.status
            self.delays += 1
            time.sleep(0.1)


def test_an_exclusive_create_is_finished(losing, record):
    """The session ends between a file and its verifier.  The create that is
    sent again gets its file, and no other one does."""
    losing.ganesha("restart", "--faults")
    gateway, faults = Gateway(losing), Faults()
    try:
        faults.set("setattr count=1 hold")
        creator = Creator(f"cut-{time.time_ns()}", b"verifier")
        creator.start()
        faults.wait(lambda: faults.hits("hold"), "the verifier")

        def evict_before_it():
            gateway.evict()
            faults.set("release")
        seconds = gateway.lose(evict_before_it)
        creator.join(30)
        assert gateway.log.matching(r"is left behind by a failed create")
        assert creator.answer == 0, creator.answer
        for verifier, answer in ((b"REIFIREV", nfs4.EXIST), (b"verifier", 0)):
            again = Creator(creator.name, verifier)
            again.start()
            again.join(30)
            assert again.answer == answer
        record(f"evicted before the verifier: served again within "
               f"{seconds:.2f} s, the create after {creator.delays} tries")
    finally:
        faults.set("release")
        losing.ganesha("restart")


def test_nothing_grows(gateway, record):
    """Many losses in a row."""
    losses = 20
    writer = Writer()
    writer.start()
    for _ in range(3):          # what is allocated once
        gateway.lose(gateway.evict)
    before = gateway.status("VmRSS"), gateway.status("Threads"), \
        gateway.descriptors()
    for _ in range(losses):
        gateway.lose(gateway.evict)
    after = gateway.status("VmRSS"), gateway.status("Threads"), \
        gateway.descriptors()
    writer.end()
    record(f"{losses} evictions in a row: RSS {before[0]} to {after[0]} KiB, "
           f"threads {before[1]} to {after[1]}, descriptors {before[2]} to "
           f"{after[2]}")
    assert after[2] <= before[2] + 4
    assert after[0] < before[0] + losses * 512
    # A worker of Ganesha's that has nothing to do ends after half a minute.
    until(lambda: gateway.status("Threads") <= before[1] + 2,
          "the threads of before", seconds=60)


def test_an_idle_gateway_notices(gateway):
    """No request tells it."""
    before = gateway.times_back()
    gateway.evict()
    until(lambda: gateway.times_back() > before, "it noticed", seconds=30)


@pytest.fixture
def fuse():
    mount = Fuse()
    yield mount
    mount.end()


def locked_file(client, fuse, owner=b"locker"):
    """A file with a lock through the gateway on its first 100 bytes, and the
    same file by ceph-fuse."""
    name = f"locked-{time.time_ns()}"
    file = client.open(name, create=nfs4.GUARDED)
    file.write(0, b"content")
    file.lock(W, 0, 100, owner)
    return file, Ceph(fuse, name)


def test_locks_are_taken_again(gateway, fuse):
    client = nfs4.Client(2049, f"holder-{time.time_ns()}")
    file, other = locked_file(client, fuse)
    file.lock(W, 500, 10, owner=b"second owner")
    gateway.lose(gateway.evict)
    assert other.test(W, 0, 10) is not None
    assert not other.lock(W, 505, 1)
    assert other.lock(W, 200, 10), "a range that nobody has"
    assert file.read(0, 7) == b"content"
    assert client.read(file.handle, 0, 7, file.lock_stateids[b"locker"]) == \
        b"content"
    file.unlock(0, TO_THE_END)
    assert other.lock(W, 0, 10)
    assert not other.lock(W, 505, 1)
    other.end()
    file.close()
    client.leave()


def test_what_is_unlocked_meanwhile_is_free(losing, fuse):
    """The new client has taken the lock of one file, and waits for that of
    another."""
    losing.ganesha("restart", "--faults")
    gateway, faults = Gateway(losing), Faults()
    client = nfs4.Client(2049, f"holder-{time.time_ns()}")
    file, other = locked_file(client, fuse)
    kept, beside = locked_file(client, fuse, b"of another file")
    faults.set("lock nth=2 hold")
    gateway.evict()
    faults.wait(lambda: faults.hits("hold"), "the second lock is taken")
    try:
        file.unlock(0, TO_THE_END)
        assert not gateway.times_back()
    finally:
        faults.set("release")
    until(gateway.times_back, "a new client serves", seconds=60)
    assert other.lock(W, 0, 10)
    assert not beside.lock(W, 0, 10)
    for end in (other.end, beside.end, file.close, kept.close, client.leave):
        end()


def test_losses_in_a_row_under_a_lock(gateway, fuse):
    """libcephfs refuses the first WRITE by EIO, mostly before the keeper knows
    of the loss.  That the keeper has looked at the client before this one a
    moment ago proves nothing."""
    client = nfs4.Client(2049, f"holder-{time.time_ns()}")
    file, other = locked_file(client, fuse)

    def evict_and_write():
        gateway.evict()
        time.sleep(0.3)         # libcephfs has heard of it
        client.write(file.handle, 0, b"written",
                     file.lock_stateids[b"locker"])
    for _ in range(5):
        gateway.lose(evict_and_write)
        assert other.test(W, 0, 10) is not None
        time.sleep(2.5)         # the keeper looks every 2 s
    assert file.read(0, 7) == b"written"
    other.end()
    file.close()
    client.leave()


@pytest.fixture
def stopped(gateway):
    """Stops Ganesha, by stopped(); it goes on at the end in any case."""
    def stop():
        os.kill(gateway.pid, signal.SIGSTOP)
    yield stop
    os.kill(gateway.pid, signal.SIGCONT)


@pytest.mark.parametrize("other_does", (
    "keeps it", "changes the file", "changes a file of the future"))
def test_a_lost_lock_is_told(gateway, fuse, stopped, record, other_does):
    """While the gateway stands still, it is evicted, and another client gets
    the lock.  It may have let go before the gateway is back."""
    client = nfs4.Client(2049, f"holder-{time.time_ns()}")
    client.gone = True          # no renewals meanwhile
    file, other = locked_file(client, fuse)
    kept, beside = locked_file(client, fuse, b"of another file")
    beside.end()
    if "future" in other_does:      # no later change has a later mtime
        later = time.time() + 3600
        os.utime(other.fd, (later, later))
        assert file.read(0, 7) == b"content"
    stopped()
    gateway.evict()
    assert other.lock(W, 0, 50)
    if other_does != "keeps it":
        os.pwrite(other.fd, b"changed", 0)
        os.fsync(other.fd)
        other.unlock(0, 50)
    os.kill(gateway.pid, signal.SIGCONT)
    until(gateway.times_back, "it came back", seconds=60)
    lost = file.lock_stateids[b"locker"]
    with pytest.raises(nfs4.Failed) as read:
        client.read(file.handle, 0, 7, lost)
    with pytest.raises(nfs4.Failed) as write:
        client.write(file.handle, 0, b"mine", lost)
    record(f"a lock that another client got, who {other_does}: "
           f"READ {read.value.status}, WRITE {write.value.status}")
    assert {read.value.status, write.value.status} == {nfs4.IO}
    content = b"content" if other_does == "keeps it" else b"changed"
    assert file.read(0, 7) == content, "not under the lock"
    assert client.read(
        kept.handle, 0, 7, kept.lock_stateids[b"of another file"]) == \
        b"content", "another file's lock is taken again"
    file.unlock(0, TO_THE_END)
    assert client.read(file.handle, 0, 7,
                       file.lock_stateids[b"locker"]) == content
    if other_does == "keeps it":
        other.unlock(0, 50)
    file.lock(W, 0, 100)
    other.end()
    client.leave()


HELD_BLOCKS = 128


def overwrite(name, data):
    """By CephFS' own client, all blocks."""
    fs = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
    fs.mount()
    fd = fs.open(f"/{name}", "r+", 0o644)
    for place in range(HELD_BLOCKS):
        fs.write(fd, data, place * BLOCK)
    fs.fsync(fd, 0)
    fs.close(fd)
    fs.shutdown()


def test_a_write_that_was_held_back_never_arrives(gateway, stopped, record):
    """The gateway stands still with WRITEs on their way.  It is evicted, and
    somebody else writes the same blocks.  Once it goes on, what it still had
    must not get to an OSD, before or after the new client serves."""
    connection = rpc.Concurrent(2049)
    root = nfs3.root_of("/ceph", 2050)
    name = f"held-{time.time_ns()}"
    file = nfs3.create(connection, root, name)
    theirs = b"theirs".ljust(16) * (BLOCK // 16)
    overwrite(name, b"before".ljust(16) * (BLOCK // 16))
    nfs3.write(connection, file, HELD_BLOCKS * BLOCK, b"capabilities")
    flight = Flight(connection)
    for place in range(HELD_BLOCKS):
        flight.write(place, file, Writer.content(place))
    stopped()
    done_before = len(flight.results)
    gateway.evict()
    overwrite(name, theirs)
    os.kill(gateway.pid, signal.SIGCONT)
    until(flight.complete, "all are answered")
    until(gateway.times_back, "a new client serves", seconds=60)
    nfs3.write(connection, file, HELD_BLOCKS * BLOCK, b"by the new client")
    asked_again = [place for place, (status, *_) in flight.results.items()
                   if status == JUKEBOX]
    record(f"{HELD_BLOCKS} WRITEs, evicted in their midst: {done_before} "
           f"answered before, {len(asked_again)} to be sent again")
    # What the new client itself was asked to write is answered with success.
    wrong = [place for place in asked_again
             if nfs3.read(connection, file, place * BLOCK, BLOCK) != theirs]
    connection.close()
    assert not wrong, "written after somebody else had written"
    assert asked_again, "none was held back"


def test_the_write_verifier_changes(gateway):
    """Who has written without COMMIT has to send it again.  By NFSv4: that of
    NFSv3 is Ganesha's own."""
    client = nfs4.Client(2049, f"verifier-{time.time_ns()}")
    file = client.open(f"verifier-{time.time_ns()}", create=nfs4.GUARDED)

    def verifier():
        return client.compound(nfs4.put(file.handle), (
            38, file.stateid + wide(0) + number(0) + opaque(b"data"),
            lambda reply: (reply.skip(8), reply.fixed(8))[1]))[-1]
    first = verifier()
    assert verifier() == first
    gateway.lose(gateway.evict)
    assert verifier() != first
    file.close()
    client.leave()


def test_the_change_attribute_goes_forward(gateway):
    client = nfs4.Client(2049, f"change-{time.time_ns()}")
    file = client.open(f"change-{time.time_ns()}", create=nfs4.GUARDED)
    seen = []
    for content in (b"0", b"1", b"2", b"3"):
        file.write(0, content)
        seen.append(client.change_and_size(file.handle)[0])
        gateway.lose(gateway.evict)
        seen.append(client.change_and_size(file.handle)[0])
    assert seen == sorted(seen)
    assert len(set(seen[::2])) == 4
    file.close()
    client.leave()


def test_without_reconnect_requests_fail(lab, till_end):
    """The key Reconnect = false."""
    till_end(lab.expects("nfs3_Errno_verbose :NFS3 :CRIT :Error I/O error"))
    lab.ganesha("restart", "--block", "Reconnect = false;")
    gateway = Gateway(lab)
    writer = Writer()
    gateway.evict()
    with pytest.raises(nfs3.Refused) as refused:
        for number in range(100):
            writer.write(number)
            time.sleep(0.1)
    assert refused.value.status == nfs4.IO
    assert not gateway.times_back()
    writer.connection.close()
    lab.ganesha("restart", "--block", "")
