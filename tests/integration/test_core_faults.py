# SPDX-License-Identifier: LGPL-3.0-or-later
"""Requests that end Ganesha's core, or keep a thread of it for ever, with any
FSAL: tests/fuzz/wire.py found them and does not send them.  The day one fails,
Ganesha is mended: take it out of wire_calls.py and of docs/limits.md.
"""
import resource
import struct
import time
from pathlib import Path

import pytest

from lab import SECOND_PORT
from lab_program import until
from nfs import nfs4, rpc
from nfs.xdr import number, opaque, wide

pytestmark = [
    pytest.mark.evidence,
    pytest.mark.parametrize("fsal", ["CEPH", "CEPH_ASYNC"]),
]

RANGE = nfs4.ANONYMOUS + wide(0) + wide(4096)
WITHOUT_HANDLE = {
    "ALLOCATE": (59, RANGE), "DEALLOCATE": (62, RANGE),
    "READ_PLUS": (68, nfs4.ANONYMOUS + wide(0) + number(4096)),
    # of a whole file system
    "LAYOUTRETURN": (51, struct.pack(">IIII", 0, 1, 1, 2))}
HELD_S = 8


@pytest.fixture
def gateway(cluster, second, fsal):
    """Its end is expected."""
    result = second(fsal)
    resource.prlimit(result.pid, resource.RLIMIT_CORE, (0, 0))
    yield result
    if pid_of(cluster):     # it may end before we do it
        cluster.run("ganesha", "kill9", "--name", "b", check=False)
    cluster.evict_all_but_a()


def pid_of(cluster):
    return cluster.stat()["ganesha"]["b"]["pid"]


def client(name):
    return nfs4.Client(SECOND_PORT, f"{name} {time.time_ns()}")


@pytest.mark.parametrize("operation", WITHOUT_HANDLE)
def test_an_operation_without_a_handle(cluster, gateway, operation):
    """One COMPOUND of anybody who reaches the port: no export is named in
    it."""
    one = client("no handle")
    with pytest.raises((OSError, TimeoutError)):
        one.compound((*WITHOUT_HANDLE[operation], None), seconds=5)
    one.die()
    until(lambda: not pid_of(cluster), "ganesha.nfsd ends", 10)


def test_a_write_without_its_data(cluster, gateway):
    """Ganesha asks for as many bytes as the count says before it looks for
    them.  It ends where the system does not promise that many."""
    one = client("no data")
    taken = int(Path(f"/proc/{gateway.pid}/statm").read_text().split()[0]) * \
        resource.getpagesize()
    resource.prlimit(gateway.pid, resource.RLIMIT_AS,
                     (taken + (1 << 30), resource.RLIM_INFINITY))
    with pytest.raises((OSError, TimeoutError)):
        one.compound((38, nfs4.ANONYMOUS + wide(0) + number(0) +
                      number(0xfffffff0), None), seconds=5)
    one.die()
    until(lambda: not pid_of(cluster), "ganesha.nfsd ends", 10)


def test_a_close_of_a_lock(cluster, gateway, fsal):
    """CLOSE takes the stateid of a LOCK, and its list of locks for one of
    states."""
    one = client("close")
    opened = one.open(f"close-{fsal}", create=nfs4.UNCHECKED)
    opened.lock(nfs4.WRITE_LOCK, 0, 1)
    opened.stateid = opened.lock_stateids[b"locker"]
    with pytest.raises((OSError, TimeoutError)):
        opened.close()
    one.die()
    until(lambda: not pid_of(cluster), "ganesha.nfsd ends", 10)


def test_a_stateid_of_another_client(cluster, gateway, record, fsal):
    """A LOCK goes by another client's OPEN.  When that client comes back as
    new, a thread of Ganesha goes round for ever, and its answer never comes."""
    victim, other = client("victim"), client("other")
    opened = victim.open(f"foreign-{fsal}", create=nfs4.UNCHECKED)
    other.compound(nfs4.put(opened.handle), (
        12, struct.pack(">IIQQII", nfs4.WRITE_LOCK, 0, 0, 1, 1, 0) +
        opened.stateid + number(0) + wide(other.clientid) + opaque(b"other"),
        lambda reply: reply.fixed(16)))
    goes_round(gateway, victim, record, fsal)
    other.die()


def goes_round(gateway, one, record, fsal):
    """ONE comes back as a new client, and gets no answer."""
    one.gone, one.verifier = True, b"restart."
    before = seconds_of_cpu(gateway.pid)
    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        one.connect()
    used = seconds_of_cpu(gateway.pid) - before
    record(f"{fsal}: {used:.0f} s of CPU in "
           f"{time.monotonic() - begin:.0f} s, without an answer")
    assert used > HELD_S
    assert gateway.log.matching("Possibly extra references")


def seconds_of_cpu(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return sum(map(int, file.read().split()[13:15])) / 100


@pytest.mark.parametrize("operation", ["READ", "READDIR"])
def test_a_replay_of_data(cluster, gateway, operation, fsal):
    """A client has the answer to a READ or READDIR kept, and sends the request
    again: its data were freed when it was answered first."""
    one = client("replay")
    one.gone = True
    handle, request = one.root, (
        26, wide(0) + bytes(8) + number(4096) * 2 + nfs4.bitmap(20))
    if operation == "READ":
        handle = one.open(f"replay-{fsal}", create=nfs4.UNCHECKED).handle
        one.write(handle, 0, b"d" * 4096)
        request = (25, nfs4.ANONYMOUS + wide(0) + number(4096))
    ended = False
    for _ in range(200):
        arguments = nfs4.compound_arguments([
            (53, one.session + struct.pack(
                ">IIII", next(one.slot_sequence), 0, 0, 1), None),
            nfs4.put(handle), (*request, None)], one.minor)
        try:
            first = one.connection.call(nfs4.COMPOUND, arguments, version=4,
                                        seconds=5)
            again = one.connection.call(nfs4.COMPOUND, arguments, version=4,
                                        seconds=5)
        except (rpc.Gone, TimeoutError):
            ended = True
            break
        if again.data[again.at:] != first.data[first.at:]:
            ended = True            # another's memory was sent
            break
    assert ended or not pid_of(cluster)
