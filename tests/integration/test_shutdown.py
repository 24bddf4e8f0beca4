# SPDX-License-Identifier: LGPL-3.0-or-later
"""Orderly ends: with thousands of writes in flight, after refused opens."""
import itertools
import json
import subprocess
import threading
import time

import cephfs
import pytest

import all_cases  # noqa: F401  (registers the cases)
from batch import Batch
from lab import LOGS, REFERENCES, Log
from lab_program import ceph
from nfs import nfs3, rpc

BLOCK = 4096
FILES = 8
CONNECTIONS = 4
WINDOW = 2000           # requests that we keep unanswered
# Of which so many calls at least wait for Ceph: one for each, or eight of each
# file's and the rest queued behind those.
IN_FLIGHT = {"Gather_Bytes = 0;": 1000, "": 50}
SLOW_MS = 1500
DRAIN_S = 10
MORE_S = 15             # for all else that an end takes
STUCK_S = 4             # Drain_Timeout where it is used up


def content(number):
    return f"{number:16d}".encode() * (BLOCK // 16)


class Writers:
    """Keep WINDOW stable writes unanswered until the connections end."""

    def __init__(self, name):
        root = nfs3.root_of("/ceph", 2050)
        self.connections = [rpc.Concurrent(2049)
                            for _ in range(CONNECTIONS)]
        self.names = [f"{name}-{i}" for i in range(FILES)]
        self.handles = [nfs3.create(self.connections[0], root, each)
                        for each in self.names]
        self.numbers = itertools.count()
        self.room = threading.Semaphore(WINDOW)
        self.acknowledged = []
        self.refused = []
        self.threads = [threading.Thread(target=self._send, args=(one,),
                                         daemon=True)
                        for one in self.connections]
        for thread in self.threads:
            thread.start()

    def _send(self, connection):
        try:
            while self.room.acquire(timeout=60):
                self._one(connection, next(self.numbers))
        except OSError:
            return

    def _one(self, connection, number):
        def answered(reply):
            status, count, stable = nfs3.write_result(reply)
            if status == 0 and count == BLOCK and stable == nfs3.FILE_SYNC:
                self.acknowledged.append(number)
            else:
                self.refused.append((number, status, count, stable))
            self.room.release()
        connection.send(nfs3.WRITE, nfs3.write_arguments(
            self.handles[number % FILES], number // FILES * BLOCK,
            content(number)), answered)

    def end(self):
        for connection in self.connections:
            connection.close()
        for _ in self.threads:
            self.room.release()
        for thread in self.threads:
            thread.join(30)


def missing(names, acknowledged):
    """Acknowledged blocks that another CephFS client does not find."""
    fs = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
    fs.mount()
    try:
        data = []
        for name in names:
            fd = fs.open(f"/{name}", "r", 0)
            data.append(fs.read(fd, 0, fs.fstat(fd).st_size))
            fs.close(fd)
    finally:
        fs.shutdown()
    return [number for number in acknowledged
            if data[number % FILES][number // FILES * BLOCK:][:BLOCK]
            != content(number)]


@pytest.fixture
def slow(lab):
    lab.run("slow", SLOW_MS)
    yield
    lab.run("slow", 0)


def test_refused_opens_do_not_spoil_the_end(lab):
    """libcephfs remembers what ceph_ll_open leaves in its argument even when
    it fails, and closes it at the unmount."""
    for vers in ("3", "4.2"):
        batch = Batch(lab, vers, ["errors_of_a_snapshot"])
        assert batch.outcome("errors_of_a_snapshot") is None
    log = Log(LOGS / "ganesha-a.log")
    lab.ganesha("stop")
    assert log.matching("regular exit"), log.text()


def in_flight(lab):
    return (lab.stat()["ganesha"]["a"]["in_flight"] or {"osd": 0})["osd"]


@pytest.mark.parametrize("gather", IN_FLIGHT)
def test_sigterm_with_writes_in_flight(lab, till_end, slow, record, gather):
    till_end(lab.may_log("whether a WRITE still holds one just then",
                         REFERENCES))
    lab.ganesha("restart", "--block", f"Drain_Timeout = {DRAIN_S}; {gather}")
    writers = Writers(f"sigterm-{time.time_ns()}")
    try:
        end = time.monotonic() + 60
        while (most := in_flight(lab)) < IN_FLIGHT[gather]:
            assert time.monotonic() < end, f"only {most} are in flight"
        before = len(writers.acknowledged)
        begun = time.monotonic()
        lab.ganesha("stop", "--timeout", DRAIN_S + MORE_S)
        seconds = time.monotonic() - begun
    finally:
        writers.end()
    acknowledged = sorted(writers.acknowledged)
    record(f"SIGTERM with {most} calls in flight, {gather}: ended after "
           f"{seconds:.1f} s, {len(acknowledged)} were acknowledged, "
           f"{len(acknowledged) - before} of them after the signal")
    assert not writers.refused, writers.refused[:5]
    assert seconds < DRAIN_S + MORE_S
    assert missing(writers.names, acknowledged) == []

    lab.run("slow", 0)
    lab.ganesha("start")
    reader = rpc.Concurrent(2049)
    for number in acknowledged[::37]:
        assert nfs3.read(reader, writers.handles[number % FILES],
                         number // FILES * BLOCK, BLOCK) == content(number)
    reader.close()


@pytest.fixture
def quick_reconnect(lab):
    """An MDS that starts waits 5 s for its clients, not 45."""
    command = ["ceph", "config", "set", "mds", "mds_reconnect_timeout"]
    subprocess.run([*command, "5"], check=True, timeout=30)
    yield
    subprocess.run([*command, "45"], check=True, timeout=30)


def start_mds():
    """Without the sessions that were left behind: the MDS would wait for a
    gateway that takes them over."""
    def tell(*words):
        return ceph("tell", "mds.a", *words, check=False)
    mds = subprocess.Popen(["lab", "mds", "start"], stdin=subprocess.DEVNULL)
    while mds.poll() is None:
        time.sleep(1)
        for session in json.loads(tell("session", "ls") or "[]"):
            if "uuid" in session["client_metadata"]:
                tell("client", "evict", f"id={session['id']}")
    assert mds.returncode == 0


def test_sigterm_with_the_mds_gone(lab, till_end, quick_reconnect, record):
    """libcephfs waits for it without a timeout; we do not.  One mount of
    several waits for Drain_Timeout, as a reload set it, the others 1 s
    each."""
    till_end(lab.expects(r"unmounting '.*' of file system '.*' did not end"))
    folders = ["/gone-1", "/gone-2"]
    fs = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
    fs.mount()
    for folder in folders:
        fs.mkdirs(folder, 0o755)
    fs.shutdown()
    lab.ganesha("restart", "--block", f"Drain_Timeout = {3 * STUCK_S};",
                "--append", "\n".join(
                    f"EXPORT {{ Export_Id = {40 + number}; Path = {folder}; "
                    f"Pseudo = {folder}; Protocols = 3,4; Access_Type = RW; "
                    "SecType = sys; FSAL { Name = CEPH_ASYNC; } }"
                    for number, folder in enumerate(folders)))
    log = Log(LOGS / "ganesha-a.log")
    lab.ganesha("reload", "--block", f"Drain_Timeout = {STUCK_S};")
    end = time.monotonic() + MORE_S
    while len(log.matching(r"export \d+: Drain_Timeout = ")) < 3:
        assert time.monotonic() < end, log.text()
        time.sleep(0.1)
    root = nfs3.root_of("/ceph", 2050)
    connection = rpc.Concurrent(2049)
    handle = nfs3.create(connection, root, f"mds-gone-{time.time_ns()}")
    nfs3.write(connection, handle, 0, content(1))
    lab.run("mds", "kill9")
    try:
        began = time.monotonic()
        lab.ganesha("stop", "--timeout", STUCK_S + MORE_S)
        seconds = time.monotonic() - began
    finally:
        connection.close()
        start_mds()
    record(f"SIGTERM with the MDS killed, {1 + len(folders)} mounts: ended "
           f"after {seconds:.1f} s, Drain_Timeout = {STUCK_S} s")
    assert STUCK_S <= seconds < STUCK_S + len(folders) + 5
    lab.ganesha("start")
    reader = rpc.Concurrent(2049)
    assert nfs3.read(reader, handle, 0, BLOCK) == content(1)
    reader.close()


@pytest.fixture
def journal_paused():
    """Pauses the MDS' journal; it goes on with the test's end."""
    def pause(value):
        ceph("tell", "mds.a", "config", "set", "mds_log_pause", value)
    yield lambda: pause("true")
    pause("false")


def test_sigterm_with_a_name_that_is_not_journaled(lab, till_end,
                                                   journal_paused, record):
    """The MDS answers, and cannot write its journal.  The question for it
    (mount/journal.c) does not return.  The end says so, and is bounded."""
    till_end(lab.expects(r"unmounting '.*' of file system '.*' did not end"))
    lab.ganesha("restart", "--block", f"Drain_Timeout = {STUCK_S};")
    log = Log(LOGS / "ganesha-a.log")
    root = nfs3.root_of("/ceph", 2050)
    connection = rpc.Concurrent(2049)
    # A folder that this client alone knows, and not its first CREATE: else the
    # CREATE is answered after the MDS has written its journal.
    folder = nfs3.make_directory(connection, root, f"own-{time.time_ns()}")
    nfs3.create(connection, folder, "journaled")
    time.sleep(1)
    journal_paused()
    nfs3.create(connection, folder, "not-journaled")
    time.sleep(0.5)             # it is asked for after 20 ms
    began = time.monotonic()
    lab.ganesha("stop", "--timeout", STUCK_S + MORE_S)
    seconds = time.monotonic() - began
    connection.close()
    record(f"SIGTERM with a name that the MDS cannot journal: ended after "
           f"{seconds:.1f} s, Drain_Timeout = {STUCK_S} s")
    assert log.matching("a question to Ceph did not return")
    assert log.matching("did not end within")
    assert STUCK_S <= seconds < STUCK_S + 5
