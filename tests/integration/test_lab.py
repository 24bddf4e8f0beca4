# SPDX-License-Identifier: LGPL-3.0-or-later
"""What commands of the lab do, and what they leave alone."""
import time

import pytest

from fuse import Fuse
from lab_program import until


@pytest.fixture
def other():
    """A CephFS client that is not Ganesha's."""
    fuse = Fuse()
    yield fuse
    fuse.end()


def ids(cluster, pid):
    return {s["id"] for s in cluster.sessions(pid)}


def test_evict_leaves_other_clients(cluster, till_end, other):
    """`lab evict` ends Ganesha's session, and no other one."""
    cluster.ensure_default()
    till_end(cluster.may_lose())
    ours = ids(cluster, cluster.stat()["ganesha"]["a"]["pid"])
    others = ids(cluster, other.process.pid)
    assert ours
    assert others
    name = other.folder / f"open-{time.time_ns()}"
    with name.open("w", encoding="ascii") as file:
        cluster.run("evict")
        left = {s["id"] for s in cluster.stat()["mds"]["sessions"]}
        assert not ours & left
        assert others <= left
        file.write("still here")        # an evicted client cannot
    assert name.read_text(encoding="ascii") == "still here"
    name.unlink()
    until(lambda: cluster.exported("/ceph", port=2049),
          "the gateway has a new session", 30)
