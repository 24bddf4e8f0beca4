# SPDX-License-Identifier: LGPL-3.0-or-later
"""Runs last: what the daemons wrote, and what is left of them."""
import re
import time

import pytest

from lab import BAD, LOGS, REFERENCES

pytestmark = pytest.mark.closing

# What Ganesha says at every start in a container; and of a client that leaves
# before Ganesha has tried its callback channel, which is a matter of time.
ALWAYS = (r"gss_principal_init", r"PR_SET_IO_FLUSHER",
          r"nfs_test_cb_chan .*nfs_rpc_get_chan failed")

PROCESS = r"nfs-ganesha-(\d+)\["
READ_AGAIN = "initiating export list reload"


def is_known(log, line):
    """Each export that was read again has left a reference to its FSAL; the
    cache above it has one for each export that is still there."""
    if re.search(REFERENCES, line):
        process = re.search(PROCESS, line)[0]
        return not line.endswith("to FSAL MDCACHE") and any(
            process in other and re.search(READ_AGAIN, other)
            for _, _, other in log.lines_since(0))
    return re.search("|".join(ALWAYS), line)


def test_no_bad_line_that_no_test_expects(lab):
    lines = [f"{log.path.name}: {line}" for log in lab.whole_logs
             for line in log.matching(BAD) if not is_known(log, line)]
    # One line: the summary at the end of all output shows it.
    assert not lines, " | ".join(lines[:40])


def test_no_daemon_dumped_core(cluster):
    """Daemons run in the folder of logs, which is where a core goes."""
    cores = [path for path in LOGS.glob("core*")
             if path.stat().st_mtime >= cluster.began]
    assert not cores, f"{cores}: gdb knows more"


def test_every_orderly_end_came_to_its_end(lab):
    """A crash while the plugin is unloaded leaves no other trace."""
    for log in lab.whole_logs:
        begun = log.matching("Unloading FSAL CEPH_ASYNC")
        ended = log.matching("FSAL CEPH_ASYNC unloaded")
        assert len(ended) == len(begun), log.path


def test_every_daemon_is_alive(lab):
    now = lab.stat()
    assert now["mds"], "the metadata server does not answer"
    assert all(now["osd"]["each"].values()), "an OSD does not answer"
    assert now["ganesha"]["a"]["pid"]
    assert lab.exported("/ceph", port=2049)


def test_nothing_is_left_in_flight(lab):
    for _ in range(20):
        left = lab.stat()["ganesha"]["a"]["in_flight"]
        if left == {"osd": 0, "mds": 0}:
            break
        time.sleep(0.5)
    assert left == {"osd": 0, "mds": 0}


def test_one_session_and_no_more(lab):
    pid = lab.stat()["ganesha"]["a"]["pid"]
    assert len(lab.sessions(pid)) == 1
