# SPDX-License-Identifier: LGPL-3.0-or-later
"""What waits for Ceph leaves a quarter of Ganesha's workers to the others.

Sixty files whose capabilities another client keeps, and eight mounts whose
MDS is away, with hundreds of requests each, and one file that answers.
"""
import signal
import time

import pytest

import second_fs
from lab import LOGS, Log
from lab_program import until
from nfs import nfs3, rpc
from nfs.xdr import number, opaque
from withheld import Withheld

pytestmark = pytest.mark.measures

FILES = 60
MOUNTS = 8
OF_EACH_FILE = 8        # requests of each kind
OF_EACH_MOUNT = 100
WATCH_S = 8
P99_S = 0.05
JUKEBOX = 10008
BLOCK = b"x" * 4096
SET_MODE = nfs3.mode_alone(0o600) + number(0)   # without a guard


class Flood:
    """Requests to files that are withheld."""

    def __init__(self, connection, root, folder):
        directory = nfs3.make_directory(connection, root, folder)
        self.connection = connection
        self.files = [nfs3.create(connection, directory, str(n))
                      for n in range(FILES)]
        for file in self.files:
            nfs3.write(connection, file, 0, BLOCK)
        self.answers = []

    def send(self):
        for _ in range(OF_EACH_FILE):
            for file in self.files:
                for procedure, arguments in (
                        (nfs3.WRITE, nfs3.write_arguments(file, 0, BLOCK)),
                        (nfs3.READ, nfs3.read_arguments(file, 0, 4096)),
                        (nfs3.GETATTR, opaque(file)),
                        (nfs3.SETATTR, opaque(file) + SET_MODE)):
                    self.connection.send(
                        procedure, arguments,
                        lambda reply: self.answers.append(reply.number()))

    def waiting(self):
        return 4 * OF_EACH_FILE * FILES - len(self.answers)


class Away:
    """Mounts of a file system whose MDS is away, and files in them."""

    def __init__(self):
        self.connection = rpc.Concurrent(2049)
        self.files = []
        for mount in range(MOUNTS):
            root = nfs3.root_of(f"/away-{mount}", 2050)
            self.files += [nfs3.create(self.connection, root,
                                       f"{mount}-{n}")
                           for n in range(OF_EACH_MOUNT)]
        self.answers = []

    def send(self):
        for file in self.files:
            self.connection.send(
                nfs3.SETATTR, opaque(file) + SET_MODE,
                lambda reply: self.answers.append(reply.number()))

    def all_answered(self):
        return len(self.answers) == len(self.files)


def exports():
    return [second_fs.export(f"/away-{n}", 20 + n).replace(
        "Name = CEPH_ASYNC;", "Name = CEPH_ASYNC; Share_Client = false;")
        for n in range(MOUNTS)]


def watch(connection, file, seconds):
    """The seconds that each GETATTR and READ of a healthy file took."""
    times, end = {"GETATTR": [], "READ": []}, time.monotonic() + seconds
    while time.monotonic() < end:
        for kind, work in (
                ("GETATTR", lambda: nfs3.get_attributes(connection, file)),
                ("READ", lambda: nfs3.read(connection, file, 0, 4096))):
            began = time.monotonic()
            work()
            times[kind].append(time.monotonic() - began)
        time.sleep(0.01)
    return times


@pytest.fixture
def away(cluster, tmp_path):
    with second_fs.made(cluster, tmp_path) as daemon:
        options = [f"--append={text}" for text in exports()]
        cluster.ganesha("restart", "--fsal", "CEPH_ASYNC", "--export", "",
                        "--block", "", "--core", "", "--export-block", "",
                        "--nfsv4", "", *options)
        made = Away()
        daemon.send_signal(signal.SIGSTOP)
        yield made
        daemon.send_signal(signal.SIGCONT)
        until(made.all_answered, "the dead mounts' requests are answered", 60)


@pytest.mark.parametrize("pause_s", [0, 0.2, 1.2])
def test_a_file_that_answers_has_workers(away, record, pause_s):
    """The pause decides which files have answered within the last second when
    they stop: the withheld ones, those of the dead mounts, none."""
    log = Log(LOGS / "ganesha-a.log")
    healthy, theirs = rpc.Concurrent(2049), rpc.Concurrent(2049)
    root = nfs3.root_of("/ceph", 2050)
    file = nfs3.create(healthy, root, f"healthy-{time.time_ns()}")
    nfs3.write(healthy, file, 0, BLOCK)
    folder = f"withheld-{time.time_ns()}"
    flood = Flood(theirs, root, folder)
    files = Withheld(folder, FILES)
    time.sleep(pause_s)
    away.send()
    flood.send()
    times = watch(healthy, file, WATCH_S)
    assert files.are_withheld()
    waiting = flood.waiting()
    files.let_go()
    until(lambda: not flood.waiting(), "the withheld files' requests are "
          "answered", 60)
    p99 = {kind: sorted(all_of)[len(all_of) * 99 // 100]
           for kind, all_of in times.items()}
    record(f"{FILES} withheld files and {MOUNTS} mounts whose MDS is away, "
           f"after a pause of {pause_s} s: {waiting} and "
           f"{len(away.files) - len(away.answers)} requests waiting; a healthy "
           "file: " + ", ".join(
               f"{kind} p99 {p99[kind] * 1000:.0f} ms, longest "
               f"{max(times[kind]) * 1000:.0f} ms, {len(times[kind])} in all"
               for kind in times))
    assert waiting > FILES
    assert set(flood.answers) <= {0, JUKEBOX}
    assert max(p99.values()) < P99_S
    assert not log.matching("CRIT")
    for connection in (healthy, theirs):
        connection.close()
