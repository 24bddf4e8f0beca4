# SPDX-License-Identifier: LGPL-3.0-or-later
"""Ganesha's reaper, one thread for all clients, never waits for Ceph.

A client dies with a request, or a lock, for which Ceph does not answer.  The
reaper ends its states, and goes on: another client that dies later loses its
lock in time.
"""
import collections
import queue
import struct
import threading
import time

import pytest

import second_fs
from lab_program import ganesha_version, until
from nfs import nfs4
from nfs.nfs4 import WRITE_LOCK as W
from nfs.xdr import number, opaque, wide
from test_dead_clients import first_success
from test_stalled_osd import stopped_osds

LEASE_S = 4
EXPIRED_S = LEASE_S + LEASE_S // 2 + 2     # the reaper looks each 2 s
NFSV4 = f"Lease_Lifetime = {LEASE_S};" + (
    " Expired_Client_Threshold = 0;" if ganesha_version() >= (9,) else "")


@pytest.fixture
def client():
    made = []

    def new(kind, name=None, **given):
        made.append(nfs4.Client(2049, name or f"{kind}-{time.time_ns()}",
                                **given))
        return made[-1]
    yield new
    for one in made:
        one.leave()


def send_write(client, handle, stateid, offset, data):
    """A WRITE whose answer nobody waits for, in the client's only slot."""
    client.gone = True
    with client.lock:
        operations = ((53, client.session + struct.pack(
            ">IIII", next(client.slot_sequence), 0, 0, 0), None),
            nfs4.put(handle),
            (38, stateid + wide(offset) + number(2) + opaque(data), None))
        client.connection.send(
            nfs4.COMPOUND, nfs4.compound_arguments(operations, client.minor),
            lambda reply: None, version=4)


def expires_in_time(dying, file, record, what):
    """DYING holds a lock of FILE, another's open; it dies."""
    with pytest.raises(nfs4.Conflict):
        file.lock(W, 0, 10)
    dying.die()
    seconds = first_success(lambda: file.lock(W, 0, 10),
                            {nfs4.DENIED, nfs4.DELAY, nfs4.GRACE},
                            2 * EXPIRED_S)
    record(f"{what}: the lock of the next client that is gone was free after "
           f"{seconds:.1f} s, lease {LEASE_S} s")
    file.unlock(0, 10)


@pytest.mark.parametrize("stateid", ("open", "lock"))
def test_a_write_that_no_osd_answers(lab, client, record, stateid):
    """Its client has started again, and its former states end.  Ganesha holds
    the lock of the client's record meanwhile, and the reaper wants that lock
    when the new client id, which is not confirmed, is older than a lease."""
    lab.ganesha("restart", "--nfsv4", NFSV4)
    first, second, living = client("first"), client("second"), client("third")
    stuck_name, name = (f"{kind}-{time.time_ns()}"
                        for kind in ("stuck", "other"))
    stuck = first.open(stuck_name, create=nfs4.GUARDED)
    stuck.write(0, b"before")
    stuck.lock(W, 100, 10)
    held = second.open(name, create=nfs4.GUARDED)
    held.write(0, b"content")
    held.lock(W, 0, 100)
    file = living.open(name)
    born = queue.SimpleQueue()
    with stopped_osds():
        send_write(first, stuck.handle, stuck.stateid if stateid == "open"
                   else stuck.lock_stateids[b"locker"], 0, b"after!")
        time.sleep(1)
        threading.Thread(target=lambda: born.put(client(
            None, name=first.name.decode())), daemon=True).start()
        time.sleep(EXPIRED_S)
        expires_in_time(second, file, record,
                        f"a WRITE by {stateid} stateid that no OSD answers")
        again = born.get(timeout=1)
        # Its states have ended, too: share reservation and lock.
        mine = again.open(stuck_name, deny=nfs4.BOTH)
        mine.lock(W, 0, nfs4.TO_THE_END)
    # What was on its way arrives.
    until(lambda: mine.read(0, 6) == b"after!", "the WRITE has arrived")
    mine.close()
    file.close()


def test_a_lock_that_is_on_its_way_out(lab, till_end, client, record):
    """Who asks for it is refused in the name of its holder, or is to ask again.
    Ganesha makes up a holder that it does not know: Linux gives EIO then."""
    till_end(lab.may_log("whether the lock is asked for while it goes",
                         r"Unable to lock FSAL, error=STATE_"))
    lab.ganesha("restart", "--nfsv4", NFSV4)
    dying, living = client("first"), client("second")
    names = [f"locked-{number}-{time.time_ns()}" for number in range(100)]
    for name in names:
        dying.open(name, create=nfs4.GUARDED).lock(
            W, 0, 10, owner=name.encode())
    file = living.open(names[-1])
    dying.die()
    told = collections.Counter()
    end = time.monotonic() + 2 * EXPIRED_S
    while True:
        try:
            file.lock(W, 0, 10)
            break
        except nfs4.Conflict as conflict:
            assert conflict.clientid, conflict.owner
            told["refused"] += 1
        except nfs4.Failed as err:
            assert err.status == nfs4.GRACE
            told["to ask again"] += 1
        assert time.monotonic() < end
    record(f"a lock of a client that is gone: {dict(told)}")
    file.unlock(0, 10)
    file.close()


def asked(file, request, told):
    """What the REQUEST of FILE's client is answered."""
    try:
        if request.endswith("LOCK") and request != "UNLOCK":
            # For a new owner the gateway opens the file once more.
            file.lock(W, 300, 10, owner=b"another" if request == "first LOCK"
                      else b"locker")
        elif request == "UNLOCK":
            file.unlock(200, 10)
    except nfs4.Failed as err:
        told.put(err.status)
    else:
        told.put(0)


@pytest.fixture
def away(cluster, tmp_path):
    with second_fs.made(cluster, tmp_path) as daemon:
        yield lambda: second_fs.stopped(daemon)


@pytest.mark.parametrize("request_", ("nothing", "LOCK", "first LOCK",
                                      "UNLOCK"))
def test_a_lock_whose_mds_is_away(cluster, till_end, away, client, record,
                                  request_):
    """Ganesha has the lock of the file's state while a LOCK or an UNLOCK of
    another client waits for the MDS."""
    till_end(cluster.may_log("whether the lock is asked for while it goes",
                             r"Unable to lock FSAL, error=STATE_"))
    cluster.ganesha("restart", "--fsal", "CEPH_ASYNC", "--export", "",
                    "--block", "", "--core", "", "--export-block", "",
                    "--nfsv4", NFSV4, "--append", second_fs.export("/other"))
    first = client("first", pseudo="/other")
    waiting = client("waiting", pseudo="/other")
    second, living = client("second"), client("third")
    stuck_name = f"stuck-{time.time_ns()}"
    stuck = first.open(stuck_name, create=nfs4.GUARDED)
    stuck.lock(W, 0, 100)
    next_one = waiting.open(stuck_name)
    next_one.lock(W, 200, 10)
    told = queue.SimpleQueue()
    name = f"other-{time.time_ns()}"
    held = second.open(name, create=nfs4.GUARDED)
    held.lock(W, 0, 100)
    file = living.open(name)
    with away():
        threading.Thread(target=asked, args=(next_one, request_, told),
                         daemon=True).start()
        time.sleep(1)
        first.die()
        time.sleep(EXPIRED_S)
        expires_in_time(second, file, record, "a lock whose MDS is away, "
                        f"{request_} waits for it")
        if request_ != "nothing":
            assert told.get(timeout=10) == (
                0 if request_ == "UNLOCK" else nfs4.GRACE)
            # It asks once more.
            asked(next_one, "first LOCK", told)
            assert told.get() == nfs4.GRACE
    # The MDS gives up the lock, once it is back.
    first_success(lambda: next_one.lock(W, 50, 10),
                  {nfs4.DENIED, nfs4.DELAY, nfs4.GRACE}, 30)
    next_one.unlock(0, nfs4.TO_THE_END)
    next_one.close()
    file.close()
