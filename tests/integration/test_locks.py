# SPDX-License-Identifier: LGPL-3.0-or-later
"""Byte-range locks: between clients of one gateway, of two, and CephFS' own;
over NFSv3 (NLM) and NFSv4; through a client's death and the gateway's.
"""
import fcntl
import os
import re
import signal
import struct
import time
from pathlib import Path

import pytest

import ganesha_5_9
from fuse import Fuse
from lab import SECOND_PORT
from lab_program import LOGS, Log, until
from nfs import nfs4
from nfs.nfs4 import READ_LOCK as R, TO_THE_END, WRITE_LOCK as W
from test_cluster import opens

LEASE_S, GRACE_S = 8, 12     # Linux 7.2 fails locks with EIO below 6 s
# Ganesha keeps the state of clients that are gone (16 of them for a day) until
# a client of its own wants what they have; of others it does not hear.
NFSV4 = f"Lease_Lifetime = {LEASE_S}; Expired_Client_Threshold = 0;"
WITH_GRACE = f"{NFSV4} Grace_Period = {GRACE_S}; Graceless = false;"
FLOCK = "hhqqi4x"
MDS_PID = Path("/var/lib/casync-lab/ceph/run/mds.a.pid")
TOO_LATE = "clients cannot take their former locks"


class Nfs:
    """Locks through an NFSv4.2 open."""

    def __init__(self, port, path):
        self.client = nfs4.Client(port, f"locker-{port}-{time.time_ns()}")
        self.file = self.client.open(path)

    def lock(self, kind, offset, length):
        try:
            self.file.lock(kind, offset, length or TO_THE_END)
        except nfs4.Conflict as conflict:
            assert conflict.found[:2] != (0, 0)
            return False
        return True

    def unlock(self, offset, length):
        self.file.unlock(offset, length or TO_THE_END)

    def test(self, kind, offset, length):
        conflict = self.client.test_lock(self.file.handle, kind, offset,
                                         length or TO_THE_END, b"locker")
        if conflict is None:
            return None
        start, length, kind = conflict.found
        return kind, start, 0 if length == TO_THE_END else length

    def end(self):
        self.file.close()
        self.client.leave()


class Ceph:
    """Locks through ceph-fuse."""

    def __init__(self, mount, path):
        self.fd = os.open(mount.folder / path, os.O_RDWR)

    def _call(self, command, kind, offset, length):
        kind = {R: fcntl.F_RDLCK, W: fcntl.F_WRLCK, 0: fcntl.F_UNLCK}[kind]
        return struct.unpack(FLOCK, fcntl.fcntl(self.fd, command, struct.pack(
            FLOCK, kind, os.SEEK_SET, offset, length, 0)))

    def lock(self, kind, offset, length):
        try:
            self._call(fcntl.F_SETLK, kind, offset, length)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def unlock(self, offset, length):
        self._call(fcntl.F_SETLK, 0, offset, length)

    def test(self, kind, offset, length):
        kind, _, start, length, _ = self._call(fcntl.F_GETLK, kind, offset,
                                               length)
        if kind == fcntl.F_UNLCK:
            return None
        return R if kind == fcntl.F_RDLCK else W, start, length

    def end(self):
        os.close(self.fd)


class Kernel:
    """Locks through Linux' NFS client."""

    def __init__(self, lab, vers, path, orders, name="a"):
        self.lab, self.orders, self.count = lab, orders, 0
        self.process = lab.start_client(
            "python3", "-B", lab.scripts / "remote_locks.py",
            f"/mnt/nfs/{path}", orders, vers=vers, name=name, seconds=80)

    def order(self, *words):
        self.count += 1
        part = self.orders / f"{self.count}.order"
        part.write_text(" ".join(map(str, words)), encoding="ascii")
        part.rename(self.orders / str(self.count))

    def answer(self, seconds=50):
        path = self.orders / f"{self.count}.done"
        end = time.monotonic() + seconds
        while not path.exists():
            if self.process.poll() is not None:
                raise AssertionError(self.process.communicate()[0])
            if time.monotonic() > end:
                self.lab.stacks()
                raise AssertionError(f"no answer within {seconds} s; "
                                     "Ganesha's stacks are in the logs")
            time.sleep(0.02)
        return path.read_text(encoding="ascii").split()

    def lock(self, kind, offset, length):
        self.order("lock", "rw"[kind - 1], offset, length)
        return self.answer() == ["done"]

    def unlock(self, offset, length):
        self.order("lock", "u", offset, length)
        assert self.answer() == ["done"]

    def test(self, kind, offset, length):
        self.order("test", "rw"[kind - 1], offset, length)
        found = self.answer()
        if found == ["free"]:
            return None
        return "rw".index(found[0]) + 1, int(found[1]), int(found[2])

    def end(self):
        if self.process.poll() is None:
            self.order("end")
            self.lab.end_client(self.process, 40)


def two_lockers(one, two):
    """Everything that one's locks mean to the other."""
    assert one.lock(W, 100, 50)
    assert two.test(W, 0, 1000) == (W, 100, 50)
    assert two.test(R, 149, 1) == (W, 100, 50)
    assert two.test(W, 0, 100) is None and two.test(W, 150, 0) is None
    assert not two.lock(R, 120, 1) and not two.lock(W, 0, 0)
    assert two.lock(W, 0, 100) and two.lock(W, 150, 10)
    assert one.test(R, 0, 1) == (W, 0, 100)
    assert one.test(W, 155, 0) == (W, 150, 10)
    # downgraded, shared, and no way up while it is
    assert one.lock(R, 100, 50)
    assert two.lock(R, 100, 50)
    assert two.test(W, 100, 50) == (R, 100, 50)
    assert not two.lock(W, 120, 1) and not one.lock(W, 120, 1)
    two.unlock(100, 50)
    assert one.lock(W, 100, 50) and not two.lock(R, 100, 50)
    # split in three
    one.unlock(110, 10)
    assert two.test(W, 105, 1) == (W, 100, 10)
    assert two.test(W, 120, 1) == (W, 120, 30)
    assert two.lock(W, 110, 10) and not one.lock(R, 110, 1)
    # to the end of whatever will be
    assert one.lock(R, 1 << 20, 0)
    assert two.test(W, 1 << 40, 1) == (R, 1 << 20, 0)
    assert two.lock(R, 1 << 40, 1) and not two.lock(W, 1 << 40, 1)
    one.unlock(0, 0)
    assert two.lock(W, 200, 0)
    two.unlock(0, 0)
    assert one.test(W, 0, 0) is None and two.test(W, 0, 0) is None


@pytest.fixture(scope="module")
def gateways(cluster):
    """"a" and "b" with a short lease, and ceph-fuse."""
    cluster.ganesha("restart", "--fresh", "--core",
                    "Blocked_Lock_Poller_Interval = 1;", "--nfsv4", NFSV4)
    cluster.start_second(nfsv4=NFSV4)
    mount = Fuse()
    cluster.mount = mount
    yield cluster
    mount.end()
    cluster.stop_second()


@pytest.fixture
def path(gateways):
    """A new file, by its name in the root of all."""
    name = f"locks-{time.time_ns()}"
    (gateways.mount.folder / name).write_bytes(b"content")
    return name


@pytest.fixture
def lockers(gateways, path, tmp_path):
    """A function that makes one of each kind; they end with the test."""
    made = []

    def make(kind):
        if kind == "a" or kind == "b":
            one = Nfs(2049 if kind == "a" else SECOND_PORT, path)
        elif kind == "ceph":
            one = Ceph(gateways.mount, path)
        else:
            orders = tmp_path / f"orders-{len(made)}"
            orders.mkdir()
            one = Kernel(gateways, kind[1:], path, orders)
        made.append(one)
        return one
    yield make
    for one in made:
        one.end()


# Linux 7.2 over NFSv4.1 and 4.2 makes EIO of a refusal that names an owner of
# more than 20 bytes; Ganesha has 21 for who is not its own client.
@pytest.mark.parametrize("one, two", [
    ("a", "a"), ("a", "b"), ("a", "ceph"), ("ceph", "a"),
    ("v3", "a"), ("v3", "ceph"), ("v4.0", "b"), ("v4.1", "a"), ("v4.2", "a")])
def test_two_lockers(lockers, one, two):
    two_lockers(lockers(one), lockers(two))


@pytest.mark.parametrize("holder, waiter", [
    ("a", "v3"), ("a", "v4.0")])
def test_a_blocking_lock_is_had_after_the_release(
        lockers, record, holder, waiter):
    """Linux waits for NLM_GRANTED (v3) and asks again (v4).  Over v3 not for
    who is not this Ganesha's client: it does not look again (state_lock.c,
    STATE_BLOCK_ASYNC)."""
    holder, waiting = lockers(holder), lockers(waiter)
    assert not holder.test(W, 0, 0) and waiting.test(R, 0, 1) is None
    assert holder.lock(W, 0, 10)
    waiting.order("wait", "w", 5, 10)
    time.sleep(1)
    assert not (waiting.orders / f"{waiting.count}.done").exists()
    holder.unlock(0, 10)
    began = time.monotonic()
    assert waiting.answer() == ["done"]
    record(f"a blocking lock over {waiter} is had "
           f"{time.monotonic() - began:.1f} s after its release")
    assert holder.test(R, 0, 0) == (W, 5, 10)


def test_close_gives_locks_back(gateways, path):
    """By one lock owner of two: the other's stay, as do another open's."""
    client = nfs4.Client(2049, "closer")
    file, other = client.open(path), client.open(path)
    file.lock(W, 0, 10, owner=b"first")
    file.lock(W, 10, 10, owner=b"second")
    other.lock(W, 20, 10, owner=b"third")
    beside = Ceph(gateways.mount, path)
    assert beside.test(W, 0, 0) == (W, 0, 10)
    for owner, range_ in ((b"first", (0, 10)), (b"second", (10, 10))):
        file.unlock(*range_, owner=owner)
        client.free_stateid(file.lock_stateids.pop(owner))
    assert beside.test(W, 0, 0) == (W, 20, 10)
    file.close()
    assert beside.test(W, 0, 0) == (W, 20, 10)
    other.unlock(20, 10, owner=b"third")
    assert beside.test(W, 0, 0) is None
    other.lock(R, 0, 10)
    beside.end()
    client.leave()


def test_opens_change_and_locks_stay(gateways, path):
    """Upgrade and downgrade of an open reopen its file: locks are kept by
    another handle, which is opened for both from the first lock on."""
    client = nfs4.Client(2049, "upgrader")
    owner = b"the owner"
    file = client.open(path, access=nfs4.READ, owner=owner)
    file.lock(R, 0, 10)
    beside = Ceph(gateways.mount, path)
    upgraded = client.open(path, access=nfs4.WRITE, owner=owner)
    file.stateid = upgraded.stateid
    assert beside.test(W, 0, 0) == (R, 0, 10)
    file.lock(W, 20, 10)
    assert beside.test(R, 0, 0) == (W, 20, 10)
    assert beside.test(W, 0, 5) == (R, 0, 10)
    assert file.write(0, b"written") == 7
    file.unlock(20, 10)
    file.downgrade(nfs4.READ)
    assert beside.test(W, 0, 0) == (R, 0, 10)
    assert file.read(0, 7) == b"written"
    file.unlock(0, TO_THE_END)
    assert beside.test(W, 0, 0) is None
    beside.end()
    file.close()
    client.leave()


def test_a_dead_client_loses_its_locks(gateways, path, record):
    dead, alive = nfs4.Client(2049, "dead"), nfs4.Client(SECOND_PORT, "alive")
    dead.open(path).lock(W, 0, 10)
    file = alive.open(path)
    with pytest.raises(nfs4.Conflict) as conflict:
        file.lock(W, 5, 1)
    assert conflict.value.found == (0, 10, W)
    dead.die()
    began = time.monotonic()

    def free():
        return alive.test_lock(file.handle, W, 0, 10) is None
    until(free, "the dead client's lock is gone", 6 * LEASE_S)
    record(f"a dead client's lock is gone after "
           f"{time.monotonic() - began:.1f} s; the lease is {LEASE_S} s")
    file.lock(W, 0, 10)
    file.unlock(0, 10)      # Ganesha 5.9 closes no file with locks
    file.close()
    alive.leave()


def test_a_dead_ceph_client_loses_its_locks(gateways, path):
    """When it is evicted."""
    mount = Fuse(gateways.mount.folder.with_name("casync-fuse-2"))
    dead, alive = Ceph(mount, path), Nfs(2049, path)
    assert dead.lock(W, 0, 10)
    assert alive.test(W, 0, 0) == (W, 0, 10) and not alive.lock(W, 0, 1)
    pid = mount.process.pid
    mount.kill()
    assert not alive.lock(W, 0, 1)
    gateways.evict(pid)
    until(lambda: alive.lock(W, 0, 10), "the lock is had", 30)
    alive.unlock(0, 10)
    alive.end()


def test_locks_are_reclaimed_after_kill_9(gateways, path, record):
    """In the grace period: by whoever had them, and by nobody else."""
    one, two = nfs4.Client(2049, "one"), nfs4.Client(2049, "two")
    file, other = one.open(path), two.open(path)
    file.lock(W, 0, 10)
    other.lock(R, 20, 10)
    gateways.ganesha("kill9")
    gateways.ganesha("start", "--nfsv4", WITH_GRACE)
    began = time.monotonic()

    # a thief comes first
    thief = nfs4.Client(2049, "thief")
    for steal, status in (
            (lambda: thief.open(path), nfs4.GRACE),
            (lambda: thief.reclaim_open(file.handle), nfs4.NO_GRACE)):
        with pytest.raises(nfs4.Failed) as refusal:
            steal()
        assert refusal.value.status == status
    assert thief.test_lock_status(file.handle) == nfs4.GRACE

    for client, mine, kind, offset in ((one, file, W, 0),
                                       (two, other, R, 20)):
        client.connect(reclaim=True)
        again = client.reclaim_open(mine.handle, owner=mine.owner)
        again.lock(kind, offset, 10, reclaim=True)
        mine.stateid, mine.lock_stateids = again.stateid, again.lock_stateids
        client.reclaim_complete()

    until(lambda: opens(thief, path), "the grace period is over", GRACE_S + 10)
    record("the grace period ended "
           f"{time.monotonic() - began:.1f} s after the restart")
    assert thief.test_lock(
        file.handle, W, 0, TO_THE_END).found == (0, 10, W)
    beside = Ceph(gateways.mount, path)
    assert beside.test(W, 15, 0) == (R, 20, 10)
    assert beside.test(R, 0, 0) == (W, 0, 10)
    beside.end()
    file.unlock(0, 10)
    assert thief.test_lock(file.handle, R, 0, TO_THE_END) is None
    assert thief.test_lock(file.handle, W, 0, TO_THE_END).found == (20, 10, R)
    for client in (one, two, thief):
        client.leave()


def test_the_grace_period_ends_with_the_last_reclaim(gateways, path, record,
                                                      tmp_path):
    """Ganesha by itself looks 10 s after its start, with this lease.  Nobody
    else is known to it: the lab's own look is a client that reclaims
    nothing."""
    log = Log(LOGS / "ganesha-a.log")

    def start():
        before = len(log.matching("NFS SERVER INITIALIZED"))
        gateways.ganesha("start", "--no-wait", "--core", "Enable_NLM = false;",
                         "--nfsv4", "Lease_Lifetime = 60; Grace_Period = 90; "
                         f'Graceless = false; RecoveryRoot = "{tmp_path}";')
        until(lambda: len(log.matching("NFS SERVER INITIALIZED")) > before,
              "the gateway", 30)

    gateways.ganesha("stop")
    start()
    holder, other = (nfs4.Client(2049, name) for name in ("last", "other"))
    until(lambda: opens(other, path),
          "the grace period without clients is over", 15)
    file = holder.open(path)
    gateways.ganesha("kill9")
    start()
    other.connect(reclaim=True)
    other.reclaim_complete()
    assert not opens(other, path)
    holder.connect(reclaim=True)
    file = holder.reclaim_open(file.handle, owner=file.owner)
    holder.reclaim_complete()
    began = time.monotonic()
    until(lambda: opens(other, path), "the grace period is over", 4)
    record(f"the grace period ended {time.monotonic() - began:.1f} s after "
           "the last client had reclaimed")
    file.close()
    for client in (holder, other):
        client.leave()
    gateways.ganesha("restart", "--core", "", "--nfsv4", NFSV4)


def test_a_mount_after_the_grace_period_is_told(gateways, path):
    """The client's lock is lost then: the log says why."""
    holder = nfs4.Client(2049, "late")
    file = holder.open(path)
    file.lock(W, 0, 10)
    gateways.ganesha("stop")
    gateways.run("mds", "kill9", "a")
    log = Log(LOGS / "ganesha-a.log")
    with gateways.expects(TOO_LATE):
        gateways.ganesha("start", "--no-wait", "--nfsv4", WITH_GRACE)
        time.sleep(GRACE_S + 2)
        gateways.run("mds", "start", "a")
        until(lambda: log.matching("NFS SERVER INITIALIZED"), "the gateway",
              60)
    told, = log.matching(TOO_LATE)
    assert f"Grace_Period is {GRACE_S} s" in told
    holder.connect(reclaim=True)
    with pytest.raises(nfs4.Failed) as refusal:
        holder.reclaim_open(file.handle, owner=file.owner)
    assert refusal.value.status == nfs4.NO_GRACE
    holder.leave()


def test_a_mount_that_is_added_later_is_not_told(gateways):
    """It says nothing about clients that come back: they do not know it.  Its
    mount begins in the grace period and ends after it."""
    log = Log(LOGS / "ganesha-a.log")
    gateways.ganesha("stop")
    began = time.monotonic()
    gateways.ganesha("start", "--nfsv4", WITH_GRACE)
    mds = int(MDS_PID.read_text(encoding="ascii"))
    time.sleep(began + GRACE_S - 2 - time.monotonic())
    os.kill(mds, signal.SIGSTOP)
    try:
        gateways.ganesha("reload", "--append", """EXPORT { Export_Id = 77;
            Path = /; Pseudo = /added; Protocols = 4; Access_Type = RW;
            FSAL { Name = CEPH_ASYNC; Share_Client = false; } }""")
        time.sleep(began + GRACE_S + 2 - time.monotonic())
    finally:
        os.kill(mds, signal.SIGCONT)
    until(lambda: gateways.exported("/added", 2049), "the export", 60)
    assert not log.matching(TOO_LATE)
    gateways.ganesha("restart", "--append", "", "--nfsv4", NFSV4)


def quick_start():
    """What the quick start has in NFSv4 { }."""
    page = Path(__file__).parents[2] / "docs" / "quick-start.md"
    keys = re.search(r"^NFSv4 \{(.*)\}$", page.read_text(encoding="utf-8"),
                     re.MULTILINE).group(1)
    return re.sub(r"Blocking_Locks = \w+;", "", keys) \
        if ganesha_5_9.IS_OLD else keys


def test_locks_are_reclaimed_when_the_mds_died_too(gateways, path, record):
    """Another takes over after 15 s (mds_beacon_grace) and waits 45 s for
    sessions (mds_reconnect_timeout), and the new gateway waits for it.
    Mount_Timeout and Ganesha's grace period run meanwhile."""
    holder = nfs4.Client(2049, "both")
    file = holder.open(path)
    file.lock(W, 0, 10)
    gateways.ganesha("kill9")
    gateways.run("mds", "kill9", "a")
    log = Log(LOGS / "ganesha-a.log")
    began = time.monotonic()
    gateways.ganesha("start", "--no-wait", "--nfsv4",
                     quick_start() + "Graceless = false;")
    time.sleep(15)
    gateways.run("mds", "start", "a")
    until(lambda: log.matching("NFS SERVER INITIALIZED"), "the gateway", 20)
    record("gateway and MDS killed: the gateway serves after "
           f"{time.monotonic() - began:.0f} s")
    assert not log.matching(TOO_LATE)
    holder.connect(reclaim=True)
    again = holder.reclaim_open(file.handle, owner=file.owner)
    again.lock(W, 0, 10, reclaim=True)
    holder.reclaim_complete()
    beside = Ceph(gateways.mount, path)
    assert beside.test(W, 0, 0) == (W, 0, 10)
    beside.end()
    again.unlock(0, 10)
    holder.leave()
