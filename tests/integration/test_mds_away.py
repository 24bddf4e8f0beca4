# SPDX-License-Identifier: LGPL-3.0-or-later
"""The MDS is away, and the first writes of many new files wait for it: what
says that their files are is not on disk.  Files whose capabilities the
gateway holds need no MDS: nobody who uses them may notice.

    CASYNC_AWAY_FILES=1000 CASYNC_AWAY_S=60 python3 -m pytest \
        tests/integration/test_mds_away.py
"""
import os
import signal
import statistics
import threading
import time
from pathlib import Path

import pytest

from lab_program import ceph
from nfs import nfs3, rpc

pytestmark = pytest.mark.measures

FILES = int(os.environ.get("CASYNC_AWAY_FILES", "200"))
AWAY_S = float(os.environ.get("CASYNC_AWAY_S", "8"))
BEFORE_S = 3
PATIENCE_S = 60
MDS_PID = Path("/var/lib/casync-lab/ceph/run/mds.a.pid")
SMALL = 100
BLOCK = 4096
LARGE = 1 << 20
MOST_MS = 500


@pytest.fixture
def patient(lab):
    """Nobody gives up an MDS that is away, nor what it had granted; and the
    gateway has inode numbers for all files, for whose likes it would have to
    wait until the journal is written."""
    options = {"mds_beacon_grace": int(AWAY_S) + PATIENCE_S,
               "mds_client_prealloc_inos": max(1000, 4 * FILES)}
    for key, value in options.items():
        ceph("config", "set", "global", key, value)
    ceph("fs", "set", "cephfs", "session_timeout",
         3 * int(AWAY_S) + PATIENCE_S)
    lab.ganesha("restart")
    yield lab
    ceph("fs", "set", "cephfs", "session_timeout", 60)
    for key in options:
        ceph("config", "rm", "global", key)


@pytest.fixture
def journal(patient):
    """journal(False): the MDS writes no journal, neither when it is asked to
    nor every 5 s; what is made then is new when it goes."""
    def written(yes):
        ceph("tell", "mds.a", "config", "set", "mds_log_pause",
             str(not yes).lower())
    yield written
    written(True)


class Load(threading.Thread):
    """So many requests at once on a connection of its own, then as many
    more; how long each took."""

    def __init__(self, depth, procedure, arguments, check):
        super().__init__(daemon=True)
        self.connection = rpc.Concurrent(2049)
        self.depth, self.procedure = depth, procedure
        self.arguments, self.check = arguments, check
        self.numbers = 0
        self.stopped = threading.Event()
        self.ms = []
        self.bad = []

    def run(self):
        while not self.stopped.wait(0.01):
            answered = threading.Semaphore(0)
            for _ in range(self.depth):
                self._send(answered)
            for _ in range(self.depth):
                if not answered.acquire(timeout=AWAY_S + PATIENCE_S):
                    self.bad.append("no answer")
                    return
        self.connection.close()

    def _send(self, answered):
        def came(reply):
            self.ms.append((time.monotonic() - began) * 1000)
            if not self.check(reply):
                self.bad.append(reply.data)
            answered.release()
        arguments = self.arguments(self.numbers)
        self.numbers += 1
        began = time.monotonic()
        self.connection.send(self.procedure, arguments, came)


def is_small(reply):
    """All of the small file, and its end."""
    return reply.number() == 0 and \
        nfs3.found(reply) == (b"s" * SMALL, True)


def is_written(reply):
    return nfs3.write_result(reply) == (0, BLOCK, nfs3.FILE_SYNC)


class Healthy:
    """Three files whose capabilities are held, and who uses them."""

    def __init__(self, connection, root):
        def file(name, byte, size):
            handle = nfs3.create(connection, root,
                                 f"{name}-{time.time_ns()}")
            for offset in range(0, size, 1 << 16):
                nfs3.write(connection, handle, offset,
                           byte * min(size - offset, 1 << 16))
            assert nfs3.read(connection, handle, 0, SMALL) == byte * SMALL
            return handle
        self.small = file("small", b"s", SMALL)
        self.large = file("large", b"l", LARGE)
        self.stream = file("stream", b"t", LARGE)

    def loads(self):
        def block(handle, number):
            return nfs3.write_arguments(
                handle, number % (LARGE // BLOCK) * BLOCK, b"w" * BLOCK)
        return {
            "READ to the end": Load(
                1, nfs3.READ,
                lambda _: nfs3.read_arguments(self.small, 0, BLOCK),
                is_small),
            # 101 has no divisor in common with the number of blocks.
            "overwrite": Load(
                1, nfs3.WRITE,
                lambda number: block(self.large, number * 101), is_written),
            "stream of 32": Load(
                32, nfs3.WRITE,
                lambda number: block(self.stream, number), is_written)}


def run(loads, seconds):
    for load in loads.values():
        load.start()
    time.sleep(seconds)
    for load in loads.values():
        load.stopped.set()
    # Who is about to have an answer gets it; who has none yet is waited for
    # when the MDS is there again.
    time.sleep(MOST_MS / 1000)


def figures(loads):
    """Name → the slowest in ms, and all in words."""
    for load in loads.values():
        load.join(AWAY_S + PATIENCE_S)
        assert not load.bad, load.bad[:3]
    return ({name: max(load.ms) for name, load in loads.items()},
            ", ".join(f"{name} {statistics.median(load.ms):.1f} / "
                      f"{max(load.ms):.0f} ms"
                      for name, load in loads.items()))


class FirstWrites:
    """One WRITE to each of many new files, all at once."""

    def __init__(self, handles):
        self.connection = rpc.Concurrent(2049)
        self.results = []
        self.answered = threading.Semaphore(0)
        for handle in handles:
            self.connection.send(
                nfs3.WRITE,
                nfs3.write_arguments(handle, 0, b"f" * BLOCK), self._came)

    def _came(self, reply):
        self.results.append(is_written(reply))
        self.answered.release()

    def wait_for(self, count):
        for _ in range(count):
            assert self.answered.acquire(timeout=PATIENCE_S), \
                f"{len(self.results)} of {count} first writes are answered"
        self.connection.close()
        assert all(self.results)


def test_healthy_files_do_not_notice(journal, record):
    connection = rpc.Concurrent(2049)
    root = nfs3.root_of("/ceph", 2050)
    healthy = Healthy(connection, root)
    before = healthy.loads()
    run(before, BEFORE_S)
    record("p50 / most with the MDS there: " + figures(before)[1])

    folder = nfs3.make_directory(connection, root, f"away-{time.time_ns()}")
    journal(False)
    handles = [nfs3.create(connection, folder, f"new-{number}")
               for number in range(FILES)]
    mds = int(MDS_PID.read_text())
    os.kill(mds, signal.SIGSTOP)
    try:
        first = FirstWrites(handles)
        meanwhile = healthy.loads()
        run(meanwhile, AWAY_S)
        waiting = FILES - len(first.results)
    finally:
        os.kill(mds, signal.SIGCONT)
        journal(True)
    began = time.monotonic()
    first.wait_for(FILES)
    seconds = time.monotonic() - began
    slowest, words = figures(meanwhile)
    record(f"p50 / most with the MDS away for {AWAY_S:g} s and {waiting} "
           f"first writes waiting: {words}; those were answered "
           f"{seconds:.1f} s after it was back")
    connection.close()
    assert waiting == FILES, "these did not need the MDS"
    assert max(slowest.values()) < MOST_MS, slowest
