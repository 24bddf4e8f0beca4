# SPDX-License-Identifier: LGPL-3.0-or-later
"""A name has one owner: of two gateways of one name, as when a host comes back
that was replaced, the one that was started last serves, and the other does not
end its session.
"""
import time

import pytest

from lab import SECOND_PORT
from lab_program import LOGS, Log, grace_tool, until
from nfs import nfs4
from nfs.xdr import number, opaque, wide
from test_cluster import GRACE_S, NAMESPACE, POOL, backend, opens

REPLACED = "another ganesha.nfsd, started later, has its name"
LOST = "the CephFS session is lost"
SERVES = "a new CephFS client serves"
# Several looks of the keeper, which come each 2 s, and its first tries.
WATCHED_S = 10
# Of a request; the one who ends the other by turns has pauses of seconds.
PROMPT_S = 2


@pytest.fixture(params=["rados_cluster", "rados_ng"])
def twins(cluster, second, request):
    """Both have the same exports and node, and so the same name; "b" comes
    later."""
    nfsv4, rados = backend("twin")
    nfsv4 = nfsv4.replace("rados_cluster", request.param)
    log = Log(LOGS / "ganesha-a.log")
    grace_tool("--pool", POOL, "--ns", NAMESPACE, "add", "twin")
    cluster.ganesha("restart", "--nfsv4", nfsv4, f"--append={rados}")
    with cluster.may_have_news(), cluster.may_lose(), \
            cluster.expects(REPLACED):
        yield log, lambda: second(nfsv4=nfsv4, append=[rados],
                                  export_block="Export_Id = 1;")
        cluster.stop_second()
    with cluster.may_have_news():
        cluster.ensure_default()
    grace_tool("--pool", POOL, "--ns", NAMESPACE, "remove", "twin")


def names_of(cluster, pid):
    return {session["metadata"]["uuid"]
            for session in cluster.serving_sessions(pid)}


def test_the_later_one_serves_and_is_left_alone(cluster, twins):
    log, start = twins
    pid = cluster.stat()["ganesha"]["a"]["pid"]
    names = names_of(cluster, pid)
    first = nfs4.Client(2049, "of-the-first")
    until(lambda: opens(first, "one-owner"), "no grace", GRACE_S + 15)
    later = start()
    assert names == names_of(cluster, later.pid), "they are no twins"
    assert not names_of(cluster, pid)
    client = nfs4.Client(SECOND_PORT, "of-the-later")
    until(lambda: opens(client, "one-owner"), "no grace", GRACE_S + 15)
    file = client.open("one-owner")
    end, longest, writes = time.monotonic() + WATCHED_S, 0, 0
    until(lambda: log.matching(REPLACED), "the first one notices", 30)
    while time.monotonic() < end:
        began = time.monotonic()
        writes += 1
        file.write(0, b"%08d" % writes)
        longest = max(longest, time.monotonic() - began)
    assert longest < PROMPT_S
    assert writes > WATCHED_S
    assert not later.log.matching(LOST)
    assert len(log.matching(LOST)) == 1
    assert not log.matching(SERVES)

    # Its clients are asked to come again, ...
    with pytest.raises(nfs4.Failed) as refused:
        first.compound(nfs4.put(file.handle), (38, nfs4.ANONYMOUS + wide(
            0) + number(2) + opaque(b"late"), None), seconds=3)
    assert refused.value.status == nfs4.DELAY
    # ... and are served once the name is free.
    client.leave()
    cluster.stop_second()
    until(lambda: log.matching(SERVES), "the first one serves", 60)
    first.leave()
