# SPDX-License-Identifier: LGPL-3.0-or-later
"""ganesha-ceph-async-config end-session: what a gateway has left behind.
test_orderly_move.py has one that was stopped for good.
"""
import subprocess

from lab_program import LOGS, Log, until
from nfs3_requests import SERVES


def end_session(*words):
    return subprocess.run(["ganesha-ceph-async-config", "end-session", *words],
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60, check=False)


def test_a_session_is_ended_by_its_name(cluster, till_end):
    till_end(cluster.may_lose())
    cluster.ensure_default()
    pid = cluster.stat()["ganesha"]["a"]["pid"]
    session, = cluster.sessions(pid)
    name = session["metadata"]["uuid"]
    log = Log(LOGS / "ganesha-a.log")
    done = end_session("ganesha-0x1", name)
    assert f"{name}: ended at MDS cephfs:0" in done.stdout, done.stderr
    assert done.returncode == 1
    assert "ganesha-0x1: no MDS has such a session" in done.stderr
    # This gateway runs, and makes itself another one.
    until(lambda: [one["id"] for one in cluster.sessions(pid)
                   if one["id"] != session["id"]], "the next one", 20)
    # The MDS has it a moment before it serves.
    until(lambda: log.matching(SERVES), "the next one serves", 20)


def test_what_is_no_session_of_a_gateway_is_refused(cluster):
    done = end_session("12345")
    assert done.returncode == 1 and "begins with ganesha-" in done.stderr
    done = end_session("ganesha-0x1", "--user", "nobody")
    assert done.returncode == 1 and "user 'nobody'" in done.stderr
