# SPDX-License-Identifier: LGPL-3.0-or-later
"""A LOCK that Ganesha let pass before the grace period began, and that reaches
the MDS after the dead gateway's session has ended.
"""
import threading
import time

import pytest

from faults import Faults
from lab import SECOND_PORT
from lab_program import until
from nfs import nfs4
from test_cluster import locks, opens, two_nodes

GRACE_S = 30
# The other gateway must have started before the LOCK goes on.
LOCK_DELAY_S = 12


@pytest.fixture
def nodes(cluster, second):
    """Two gateways with a common grace period; "a" has the shim."""
    yield from two_nodes(cluster, second, GRACE_S, ["--faults"])


class Locking(threading.Thread):
    """A LOCK, and what became of it."""

    def __init__(self, file):
        super().__init__(daemon=True)
        self.file = file
        self.status = None
        self.start()

    def ended(self):
        self.join(LOCK_DELAY_S + 10)
        return self.status

    def run(self):
        try:
            self.file.lock(nfs4.WRITE_LOCK, 0, 10)
            self.status = "granted"
        except nfs4.Conflict:
            self.status = "refused"
        except nfs4.Failed as err:
            self.status = err.status


def test_a_late_lock_is_left_to_who_reclaims(nodes, record):
    faults = Faults()
    dead = nfs4.Client(SECOND_PORT, "holder")
    thief = nfs4.Client(2049, "thief")
    name = f"late-{time.time_ns()}"
    until(lambda: opens(dead, name), "no grace", GRACE_S + 15)
    until(lambda: opens(thief, name), "no grace here", GRACE_S + 15)
    file = dead.open(name)
    until(lambda: locks(file), "the lock", 10)
    wanted = thief.open(name)
    session_of = nodes.stat()["ganesha"]["b"]["pid"]

    faults.set(f"lock count=1 delay={LOCK_DELAY_S * 1000}")
    locking = Locking(wanted)
    faults.wait(lambda: faults.hits("delay"), "delayed LOCK")
    began = time.monotonic()
    nodes.ganesha("kill9", "--name", "b")
    dead.die()
    nodes.ganesha("start", "--name", "b")
    until(lambda: not nodes.sessions(session_of), "the session is ended", 20)
    took_s = time.monotonic() - began
    assert took_s < LOCK_DELAY_S and locking.is_alive(), took_s

    assert locking.ended() == nfs4.GRACE
    heir = nfs4.Client(SECOND_PORT, "holder", reclaim=True,
                       verifier=dead.verifier)
    again = heir.reclaim_open(file.handle, owner=file.owner)
    again.lock(nfs4.WRITE_LOCK, 0, 10, reclaim=True)
    heir.reclaim_complete()
    record(f"a gateway was killed and back within {took_s:.1f} s; the LOCK "
           "that had waited was not granted, its holder has it again")

    # Who asks again finds it taken, and has it when it is free.
    until(lambda: Locking(wanted).ended() != nfs4.GRACE, "the grace ends",
          GRACE_S + 15)
    assert Locking(wanted).ended() == "refused"
    again.unlock(0, 10)
    assert Locking(wanted).ended() == "granted"
    for client in (heir, thief):
        client.leave()
