# SPDX-License-Identifier: LGPL-3.0-or-later
"""A client of NFSv4 that simply stops: others get what it held."""
import time

import pytest

from nfs import nfs4
from nfs.nfs4 import WRITE_LOCK as W

pytestmark = pytest.mark.measures

LEASE_S = 4
LOCK_S = 2 * LEASE_S + 5
REVOKED_S = 2 * LEASE_S + 15


@pytest.fixture
def short_leases(lab):
    with lab.may_delegate():
        lab.ganesha("restart", "--export-block", "Delegations = rw;",
                    "--nfsv4",
                    f"Lease_Lifetime = {LEASE_S}; Delegations = true;")
        yield lab
        lab.ganesha("stop")


@pytest.fixture
def clients(short_leases):
    made = [nfs4.Client(2049, f"client-{number}-{time.time_ns()}")
            for number in range(2)]
    yield made
    for client in made:
        client.leave()


def first_success(call, statuses, seconds):
    """The seconds until CALL() was not refused."""
    began = time.monotonic()
    while True:
        try:
            call()
            return time.monotonic() - began
        except nfs4.Failed as err:
            assert err.status in statuses, err
            assert time.monotonic() - began < seconds, err
        time.sleep(0.2)


def test_its_lock_is_free_after_the_lease(clients, record):
    dying, living = clients
    name = f"locked-{time.time_ns()}"
    held = dying.open(name, create=nfs4.GUARDED, want=nfs4.WANT_NO_DELEG)
    held.write(0, b"content")
    held.lock(W, 0, 100)
    file = living.open(name, want=nfs4.WANT_NO_DELEG)
    dying.die()
    with pytest.raises(nfs4.Conflict):
        file.lock(W, 50, 10)
    seconds = first_success(lambda: file.lock(W, 50, 10),
                            {nfs4.DENIED, nfs4.DELAY, nfs4.GRACE}, LOCK_S)
    record(f"the lock of a client that is gone: another got it after "
           f"{seconds:.1f} s, lease {LEASE_S} s")
    assert file.read(0, 7) == b"content"
    file.write(50, b"mine")
    file.unlock(50, 10)
    file.close()


def test_its_delegation_is_revoked(lab, till_end, clients, record):
    till_end(lab.expects("Revoking delegation|Delegation will be revoked"))
    dying, living = clients
    name = f"delegated-{time.time_ns()}"
    living.open(name, create=nfs4.GUARDED, want=nfs4.WANT_NO_DELEG).close()

    def delegated():
        held = dying.open(name, access=nfs4.READ)
        if held.kind != nfs4.READ_DELEG:
            held.close()
        return held.kind == nfs4.READ_DELEG
    end = time.monotonic() + 10
    while not delegated():
        assert time.monotonic() < end, "no delegation"
        time.sleep(0.2)
    dying.die()
    handle = living.lookup(name)
    began = time.monotonic()
    first_success(lambda: living.write(handle, 0, b"mine"), {nfs4.DELAY},
                  REVOKED_S)
    seconds = time.monotonic() - began
    record(f"the delegation of a client that is gone: another's WRITE went on "
           f"after {seconds:.1f} s, lease {LEASE_S} s")
    assert seconds < REVOKED_S
    assert living.read(handle, 0, 4) == b"mine"
