# SPDX-License-Identifier: LGPL-3.0-or-later
"""A file that is read, by requests that no OSD answers, is to be written.

What is open for reading only has to be opened again for that; whoever waits
with it until the READs are answered holds up all who come after.
"""
import time
from concurrent.futures import ThreadPoolExecutor, wait

import cephfs
import pytest

from lab_program import until
from nfs import nfs3, nfs4, rpc
from nfs.xdr import opaque
from test_stalled_osd import Flight, content, stopped_osds

pytestmark = pytest.mark.measures

WORKERS = 32
READS = 130             # before the WRITE, and as many behind it
BLOCK = 4096
BLOCKS = 320
WRITTEN = 300           # the block, which no READ is of
SESSIONS = 8            # with a READ in flight each
PATIENCE_S = 10
BOUND_S = 1


def make_files():
    """The names of a file of BLOCKS and of a small one, which no Ganesha has
    seen yet."""
    names = [f"read-then-write-{time.time_ns()}-{i}" for i in range(2)]
    fs = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
    fs.mount()
    for name, blocks in zip(names, (BLOCKS, 1)):
        fd = fs.open(f"/{name}", "w", 0o644)
        fs.write(fd, b"".join(content(number, BLOCK)
                              for number in range(blocks)), 0)
        fs.fsync(fd, 0)
        fs.close(fd)
    fs.shutdown()
    return names


def told(seconds):
    return f"within {seconds:.2f} s" if seconds < PATIENCE_S else \
        f"not within {PATIENCE_S} s"


class Elsewhere:
    """Somebody with another file, on a connection of his own."""

    def __init__(self, root, file):
        self.connection = rpc.Concurrent(2049)
        self.root, self.file = root, file
        self.longest()

    def longest(self):
        """Of GETATTR and FSINFO, both sent once the others' are there."""
        time.sleep(0.5)
        flight = Flight(self.connection)
        flight.send("GETATTR", nfs3.GETATTR, opaque(self.file))
        flight.send("FSINFO", nfs3.FSINFO, opaque(self.root))
        end = time.monotonic() + PATIENCE_S
        while not flight.complete() and time.monotonic() < end:
            time.sleep(0.01)
        if not flight.complete():
            return PATIENCE_S
        assert set(flight.results.values()) == {0}
        return max(flight.seconds.values())


def test_a_write_behind_reads_does_not_take_the_workers(lab, record):
    lab.ganesha("restart", "--core", f"RPC_Ioq_ThrdMax = {WORKERS};")
    connection = rpc.Concurrent(2049)
    root = nfs3.root_of("/ceph", 2050)
    file, other = (nfs3.lookup(connection, root, name)
                   for name in make_files())
    elsewhere = Elsewhere(root, other)
    assert nfs3.read(connection, file, 0, BLOCK) == content(0, BLOCK)
    reads, write = Flight(connection), Flight(connection)
    with stopped_osds():
        for number in range(READS):
            reads.read(number, file, BLOCK)
        before = elsewhere.longest()
        write.write(WRITTEN, file, content(-1, BLOCK))
        for number in range(READS, 2 * READS):
            reads.read(number, file, BLOCK)
        behind = elsewhere.longest()
        assert not reads.results and not write.results
    until(lambda: reads.complete() and write.complete(),
              "all are answered")
    record(f"NFSv3, READs that no OSD answers, {WORKERS} workers: GETATTR "
           f"and FSINFO elsewhere beside {READS} of them {told(before)}, "
           f"beside {2 * READS} and one WRITE {told(behind)}")
    assert all(result == (0, content(number, BLOCK))
               for number, result in reads.results.items())
    assert write.results[WRITTEN] == (0, BLOCK, nfs3.FILE_SYNC)
    assert nfs3.read(connection, file, WRITTEN * BLOCK, BLOCK) == \
        content(-1, BLOCK)
    connection.close()
    elsewhere.connection.close()
    assert max(before, behind) < BOUND_S


def timed(call, *args, **options):
    began = time.monotonic()
    result = call(*args, **options)
    return time.monotonic() - began, result


def test_an_upgraded_open_does_not_wait_for_reads(lab, record):
    """By NFSv4.1; the READs and the OPEN that upgrades are of one client,
    in a session each."""
    name, other = make_files()
    clients = [nfs4.Client(2049, f"upgrade-{time.time_ns()}", minor=1)]
    clients += [nfs4.Client(2049, clients[0].name.decode(), minor=1,
                            verifier=clients[0].verifier, reclaim=True)
                for _ in range(SESSIONS)]
    clients += [nfs4.Client(2049, f"other-{i}-{time.time_ns()}", minor=1)
                for i in range(2)]
    owner, sessions, strangers = clients[0], clients[1:-2], clients[-2:]
    file = owner.open(name, nfs4.READ)
    assert file.read(0, BLOCK) == content(0, BLOCK)
    other = strangers[1].lookup(other)
    strangers[1].change_and_size(other)
    with ThreadPoolExecutor(SESSIONS + 3) as pool:
        with stopped_osds():
            reads = [pool.submit(session.read, file.handle, number * BLOCK,
                                 BLOCK, file.stateid)
                     for number, session in enumerate(sessions)]
            time.sleep(0.5)     # for each of them to have come to the OSD
            asked = {"the OPEN": pool.submit(
                timed, owner.open, name, nfs4.BOTH, owner=file.owner)}
            time.sleep(0.1)
            asked["another client's OPEN"] = pool.submit(
                timed, strangers[0].open, name, nfs4.READ)
            asked["GETATTR elsewhere"] = pool.submit(
                timed, strangers[1].change_and_size, other)
            wait(asked.values(), timeout=PATIENCE_S)
            took = {what: future.result()[0] if future.done() else PATIENCE_S
                    for what, future in asked.items()}
            assert not any(read.done() for read in reads)
        found = [read.result(timeout=30) for read in reads]
        opened = asked["the OPEN"].result(timeout=30)[1]
        second = asked["another client's OPEN"].result(timeout=30)[1]
    record(f"NFSv4.1, OPEN for writing too of a file with {SESSIONS} READs "
           "that no OSD answers: " + ", ".join(
               f"{what} {told(seconds)}" for what, seconds in took.items()))
    assert found == [content(number, BLOCK) for number in range(SESSIONS)]
    assert opened.stateid[4:] == file.stateid[4:], "it was no upgrade"
    opened.write(WRITTEN * BLOCK, content(-1, BLOCK))
    assert second.read(WRITTEN * BLOCK, BLOCK) == content(-1, BLOCK)
    second.close()
    opened.close()
    for client in clients[:1] + strangers:
        client.leave()
    assert max(took.values()) < BOUND_S
