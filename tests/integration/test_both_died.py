# SPDX-License-Identifier: LGPL-3.0-or-later
"""A gateway of several dies together with the MDS, while clients of another
one ask for a lock.  That one has to begin the grace period that the successor
waits for, although its LOCK waits for the MDS, which waits for the successor.
"""
import time

import pytest

from lab import LOGS, SECOND_PORT
from lab_program import Log, ceph, until
from nfs import nfs4
from test_orderly_move import Holder, pid, thief_of
from test_orderly_move import nodes  # noqa: F401 (the fixture)

BACK_S = 100
GRACE_S = 60             # longer than the MDS takes
RECONNECT = ("config", "set", "mds", "mds_reconnect_timeout")


def expire(client, file):
    """The client's lease ends, and with it its states of the file."""
    file.lock(nfs4.WRITE_LOCK, 1000, 10)
    client.die()


@pytest.mark.nightly
@pytest.mark.parametrize("nodes", [(GRACE_S, "")], indirect=True)
def test_the_successor_serves(nodes,  # noqa: F811 (the fixture)
                              till_end, record):
    till_end(nodes.may_lose())
    ceph(*RECONNECT, 5)
    holder = Holder(SECOND_PORT, "/second")
    dying = nfs4.Client(2049, "dying")
    file = dying.open(holder.name)
    thief = thief_of(holder, 2049)
    log, ended = Log(LOGS / "ganesha-a.log"), pid(nodes, "b")
    expire(dying, file)

    nodes.run("mds", "kill9", "a")
    nodes.ganesha("kill9", "--name", "b")
    nodes.run("mds", "start", "a", "--no-wait")
    time.sleep(10)
    began = time.monotonic()
    nodes.ganesha("start", "--name", "b", "--no-wait")
    until(lambda: log.matching("Now IN GRACE"), "the grace period of a", BACK_S)
    grace_s = time.monotonic() - began
    until(lambda: nodes.exported("/second", SECOND_PORT), "b serves", BACK_S)
    record("after a gateway and the MDS had died together the others began "
           f"the grace period {grace_s:.1f} s after its start, and it served "
           f"after {time.monotonic() - began:.1f} s")
    holder.reclaim()
    thief.is_refused()
    thief.end()
    assert set(thief.told) <= {nfs4.DENIED, nfs4.GRACE, nfs4.DELAY}
    assert not thief.granted and not nodes.sessions(ended)
    holder.still_has_it()
    ceph(*RECONNECT, 45)
