# SPDX-License-Identifier: LGPL-3.0-or-later
"""The descriptors that no OPEN stands for: kept for I/O without a state
(NFSv3, special stateids), closed when Ganesha's reaper wants them back, or
made for one request where none may be kept.
"""
import threading
import time

import dbus
import pytest

import bus
from lab_program import until
from nfs import nfs3, nfs4, rpc

FILES = 100
LOAD_S = 6
TOO_BIG = 27
PAST_THE_LARGEST = 1 << 41      # CephFS' max_file_size is 1 TiB


def descriptors():
    """How many are open for objects rather than states."""
    answer = bus.call("ShowFDUsage", "exportstats")
    words = [str(word) for part in answer if isinstance(part, dbus.Struct)
             for word in part]
    return int(words[words.index("FSAL opened Global FD count") + 1])


def start(cluster, keys):
    cluster.ganesha("restart", "--fsal", "CEPH_ASYNC", "--export", "",
                    "--block", "", "--core", "", "--export-block", "",
                    "--nfsv4", "", "--append", f"MDCACHE {{ {keys} }}")


class Files:
    """Files that all have their own name for content."""

    def __init__(self, count=FILES):
        self.connection = rpc.Concurrent(2049)
        root = nfs3.root_of("/ceph", 2050)
        prefix = f"descriptor-{time.time_ns()}"
        self.folder = nfs3.make_directory(self.connection, root, prefix)
        self.handles = {}
        for number in range(count):
            data = b"%s-%06d " % (prefix.encode(), number) * 100
            handle = nfs3.create(self.connection, self.folder, f"f{number}")
            nfs3.write(self.connection, handle, 0, data)
            self.handles[handle] = data

    def read_all(self, connection=None):
        for handle, data in self.handles.items():
            assert nfs3.read(connection or self.connection, handle, 0,
                             1 << 16) == data


def load(files, seconds):
    """Two clients read and write beside each other; how many rounds, and
    the errors."""
    end = time.monotonic() + seconds
    rounds, errors = [0, 0], []

    def reader():
        try:
            connection = rpc.Concurrent(2049)
            while time.monotonic() < end:
                files.read_all(connection)
                rounds[0] += 1
            connection.close()
        except BaseException as err:  # noqa: BLE001 (told below)
            errors.append(err)

    def writer():
        try:
            client = nfs4.Client(2049, f"writer-{time.time_ns()}")
            own = [client.open(f"descriptor-{time.time_ns()}",
                               create=nfs4.UNCHECKED) for _ in range(10)]
            while time.monotonic() < end:
                for number, file in enumerate(own):
                    data = b"%06d %06d " % (rounds[1], number) * 100
                    client.write(file.handle, 0, data)
                    assert client.read(file.handle, 0, 1 << 16) == data
                rounds[1] += 1
            for file in own:
                file.close()
            client.leave()
        except BaseException as err:  # noqa: BLE001 (told below)
            errors.append(err)
    threads = [threading.Thread(target=run, daemon=True)
               for run in (reader, reader, writer)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 40)
    return rounds, errors, any(thread.is_alive() for thread in threads)


def under_load(cluster, files):
    rounds, errors, hangs = load(files, LOAD_S)
    if hangs:
        cluster.stacks()
    assert not hangs, "a request has no answer; Ganesha's stacks are in the "\
        "folder of logs"
    assert not errors, errors
    assert min(rounds) > 2, rounds
    return rounds


def test_the_reaper_closes_what_nobody_uses(cluster, record):
    start(cluster, "Cache_FDs = false; LRU_Run_Interval = 4; "
                   "FD_LWMark_Percent = 0;")
    files = Files()
    most = 0
    for _ in range(20):
        files.read_all()
        most = max(most, descriptors())
    assert most >= FILES // 2, "NFSv3 I/O keeps descriptors open"
    until(lambda: descriptors() == 0, "all are closed", 20)
    files.read_all()
    rounds = under_load(cluster, files)
    until(lambda: descriptors() == 0, "all are closed again", 20)
    record(f"{most} descriptors of {FILES} files without an open, 0 after the "
           f"reaper; {sum(rounds)} rounds of I/O beside it")


def test_each_request_its_own(cluster, record):
    """Close_Fast: opened for one request and closed with it.  FSAL_CEPH with
    async = true takes its own answer for another structure there."""
    start(cluster, "Close_Fast = true;")
    files = Files()
    files.read_all()
    assert descriptors() == 0
    rounds = under_load(cluster, files)
    assert descriptors() == 0
    record(f"Close_Fast: {sum(rounds)} rounds of I/O, no descriptor kept")

    # and a request that fails is told so
    handle = next(iter(files.handles))
    with pytest.raises(nfs3.Refused) as refusal:
        nfs3.write(files.connection, handle, PAST_THE_LARGEST, b"x" * 100)
    assert refusal.value.status == TOO_BIG
    stranger = rpc.Concurrent(2049, 47110, 47110)
    nfs3.give(files.connection, handle, 0, 0o600)
    with pytest.raises(nfs3.Refused) as refusal:
        nfs3.read(stranger, handle, 0, 100)
    assert refusal.value.status == nfs3.ACCESS_DENIED
    files.read_all()
    stranger.close()
    files.connection.close()
