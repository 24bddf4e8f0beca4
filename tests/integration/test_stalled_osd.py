# SPDX-License-Identifier: LGPL-3.0-or-later
"""Exports whose OSD does not answer are full; everybody else is served.

Each of them lets one MiB of READs or WRITEs in.  Where the others wait for
room in a worker each, four such exports take all of Ganesha's 200.
"""
import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from statistics import median

import cephfs
import pytest

from lab_program import ceph, until
from nfs import nfs3, rpc
from nfs.xdr import Reader

pytestmark = pytest.mark.measures

RUN = Path("/var/lib/casync-lab/ceph/run")
EXPORTS = 4
REQUESTS = 300          # to each export
BLOCK = 64 << 10
BLOCKS_A_MIB = (1 << 20) // BLOCK
WATCH_S = 6             # longer than anybody waits for room, 5 s
BOUND_S = 0.5
LARGE = 1 << 20
LARGE_BLOCKS = 16
LARGE_READS = 250
JUKEBOX = 10008

EXPORT = """EXPORT {{
    Export_Id = {number}; Path = {folder}; Pseudo = {folder};
    Protocols = 3; Access_Type = RW; Squash = none; SecType = sys;
    Transports = TCP;
    FSAL {{ Name = CEPH_ASYNC; Max_Inflight_Bytes = 1048576; }}
}}"""


def stands_still(pid):
    """Each of its threads: a signal stops them one after the other."""
    try:
        return all("\nState:\tT" in status.read_text()
                   for status in Path(f"/proc/{pid}/task").glob("*/status"))
    except (FileNotFoundError, ProcessLookupError):
        return False    # one has just ended


@contextlib.contextmanager
def stopped_osds():
    """None answers, and none is taken for dead."""
    pids = [int(path.read_text()) for path in RUN.glob("osd.*.pid")]
    assert pids, f"no OSD in {RUN}"

    def nodown(word):
        ceph("osd", word, "nodown")
    nodown("set")
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        until(lambda: all(map(stands_still, pids)), "the OSDs stand still",
              pause=0.01)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        nodown("unset")


def content(number, size=BLOCK):
    return f"{number:16d}".encode() * (size // 16)


class Flight:
    """Requests that are sent without waiting, by number."""

    def __init__(self, connection):
        self.connection = connection
        self.sent = 0
        self.results = {}       # number: what its decoder makes of the reply
        self.seconds = {}       # number: until it was answered

    def send(self, number, procedure, arguments, decode=Reader.number):
        began = time.monotonic()

        def answered(reply):
            self.seconds[number] = time.monotonic() - began
            self.results[number] = decode(reply)
        self.sent += 1
        self.connection.send(procedure, arguments, answered)

    def read(self, number, handle, size=BLOCK):
        self.send(number, nfs3.READ, nfs3.read_arguments(
            handle, number * size, size), nfs3.read_result)

    def write(self, number, handle, data):
        self.send(number, nfs3.WRITE, nfs3.write_arguments(
            handle, number * len(data), data), nfs3.write_result)

    def complete(self):
        return len(self.results) == self.sent


class Export:
    """One of the four, and a file that was written through it."""

    def __init__(self, folder):
        root = nfs3.root_of(folder, 2050)
        self.connection = rpc.Concurrent(2049)
        self.file = nfs3.create(self.connection, root, "file")
        for first in range(0, REQUESTS, BLOCKS_A_MIB):
            data = b"".join(map(content, range(first, first + BLOCKS_A_MIB)))
            nfs3.write(self.connection, self.file, first * BLOCK, data)
        self.flight = Flight(self.connection)

    def send(self, what):
        for number in range(REQUESTS):
            if what == "READ":
                self.flight.read(number, self.file)
            else:
                self.flight.write(number, self.file, content(-number))

    def refused(self):
        return {number for number, result in self.flight.results.items()
                if result[0] == JUKEBOX}

    def check(self, what):
        """What was answered is right, and what was refused was not done."""
        refused = self.refused()
        for number, result in self.flight.results.items():
            assert result[0] in (0, JUKEBOX), (number, result[0])
            data = content(number)
            if what == "READ":
                assert number in refused or result[1] == data, number
            else:
                found = nfs3.read(self.connection, self.file,
                                  number * BLOCK, BLOCK)
                assert found == (data if number in refused
                                 else content(-number)), number


@pytest.fixture
def exports(lab):
    folders = [f"/stalled-osd-{time.time_ns()}-{i}" for i in range(EXPORTS)]
    fs = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
    fs.mount()
    for folder in folders:
        fs.mkdirs(folder, 0o755)
    fs.shutdown()
    lab.ganesha("restart", "--append", "\n".join(
        EXPORT.format(number=50 + i, folder=folder)
        for i, folder in enumerate(folders)))
    found = [Export(folder) for folder in folders]
    yield found
    for export in found:
        export.connection.close()


def longest_getattr(connection, handle, seconds):
    longest, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        nfs3.get_attributes(connection, handle)
        longest = max(longest, time.monotonic() - began)
        time.sleep(0.02)
    return longest


@pytest.mark.parametrize("what", ("READ", "WRITE"))
def test_full_exports_do_not_take_the_workers(exports, record, what):
    healthy = rpc.Concurrent(2049)
    file = nfs3.create(healthy, nfs3.root_of("/ceph", 2050),
                       f"healthy-{time.time_ns()}")
    nfs3.get_attributes(healthy, file)
    with stopped_osds():
        senders = [threading.Thread(target=export.send, args=(what,))
                   for export in exports]
        for sender in senders:
            sender.start()
        longest = longest_getattr(healthy, file, WATCH_S)
        waits = [export.flight.seconds[number] for export in exports
                 for number in export.refused()]
        assert all(result[0] == JUKEBOX for export in exports
                   for result in export.flight.results.values()), \
            "the OSD was not stopped"
    for sender in senders:      # who is not heard while there is no worker
        sender.join(30)
    for export in exports:
        until(export.flight.complete, "all are answered")
    healthy.close()
    later = sum(len(export.refused()) for export in exports) - len(waits)
    told = f"{len(waits)} were asked to retry"
    if waits:
        told += (f", after {median(waits):.2f} s in the median and "
                 f"{max(waits):.2f} at most")
    record(f"{EXPORTS} exports, {REQUESTS} {what}s of 64 KiB each, that the "
           f"OSD does not answer: GETATTR elsewhere within {longest:.2f} s; "
           f"{told}; {later} more once it answered")
    for export in exports:
        export.check(what)
    assert waits, "the exports were not full"
    assert longest < BOUND_S


def test_large_reads_keep_some_workers(lab, record):
    """They are blocking calls: half of the mount's share makes them at most."""
    lab.ganesha("restart")
    connection, healthy = rpc.Concurrent(2049), rpc.Concurrent(2049)
    root = nfs3.root_of("/ceph", 2050)
    other = nfs3.create(healthy, root, f"healthy-{time.time_ns()}")
    file = nfs3.create(connection, root, f"large-{time.time_ns()}")
    for n in range(LARGE_BLOCKS):
        nfs3.write(connection, file, n * LARGE, content(n, LARGE))
    nfs3.get_attributes(healthy, other)
    results = []
    with stopped_osds():
        for n in range(LARGE_READS):
            connection.send(
                nfs3.READ, nfs3.read_arguments(
                    file, n % LARGE_BLOCKS * LARGE, LARGE),
                lambda reply, n=n: results.append(
                    (n, nfs3.read_result(reply))))
        longest = longest_getattr(healthy, other, WATCH_S)
        before = len(results)
        told = [status for _, (status, *_) in results]
    assert set(told) <= {JUKEBOX} and before < LARGE_READS, \
        "the OSD was not stopped"
    until(lambda: len(results) == LARGE_READS, "all are answered")
    for n, (status, *rest) in results:
        assert status == JUKEBOX or \
            rest[0] == content(n % LARGE_BLOCKS, LARGE), (n, status)
    connection.close()
    healthy.close()
    record(f"{LARGE_READS} READs of 1 MiB that the OSD does not answer: "
           f"GETATTR elsewhere within {longest:.2f} s; {before} were asked to "
           "retry")
    assert longest < BOUND_S
