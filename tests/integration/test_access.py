# SPDX-License-Identifier: LGPL-3.0-or-later
"""NFSv3 reads by handle, by users who may and who may not."""
import time

import pytest

from faults import Faults
from nfs import nfs3, rpc

ONE, OTHER = 47110, 47120
DATA = b"secret" * 10_000
ROUNDS = 200


def refused(connection, handle):
    with pytest.raises(nfs3.Refused) as refusal:
        nfs3.read(connection, handle, 0, len(DATA))
    assert refusal.value.status == nfs3.ACCESS_DENIED


def test_who_asks_decides(lab):
    """Both users' reads in flight together; nobody gets the other's answer."""
    root = rpc.Concurrent(2049)
    handle = nfs3.create(root, nfs3.root_of("/ceph", 2050),
                         f"access-{time.time_ns()}")
    nfs3.write(root, handle, 0, DATA)
    one, other = (rpc.Concurrent(2049, uid, uid) for uid in (ONE, OTHER))
    for owner, stranger, uid in ((one, other, ONE), (other, one, OTHER)):
        nfs3.give(root, handle, uid, 0o600)
        answers = []
        for _ in range(ROUNDS):
            stranger.send(nfs3.READ, nfs3.read_arguments(
                handle, 0, len(DATA)), lambda reply, to=answers: to.append(
                    (reply.number(), DATA[:6] in reply.data)))
            assert nfs3.read(owner, handle, 0, len(DATA)) == DATA
        refused(stranger, handle)
        # It may overtake others.
        Faults.wait(lambda to=answers: len(to) == ROUNDS, "last answer")
        assert answers == [(nfs3.ACCESS_DENIED, False)] * ROUNDS
    for connection in (root, one, other):
        connection.close()
