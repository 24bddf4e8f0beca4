# SPDX-License-Identifier: LGPL-3.0-or-later
"""Tries to reclaim the session that were left behind, as no MDS answered, do
not end the session of the client that serves, once the MDS is back."""
import json
import os
import signal
import time
from pathlib import Path

import pytest

from lab_program import LOGS, Log, ceph, until
from nfs3_requests import JUKEBOX, OK, Asker

MDS_PID = Path("/var/lib/casync-lab/ceph/run/mds.a.pid")
TRIES = 3
NO_ANSWER = r"reclaiming session '.*': no answer from the cluster"


@pytest.fixture
def gateway(cluster):
    cluster.ganesha("restart", "--export", "Mount_Timeout = 5;")
    with cluster.expects(NO_ANSWER), cluster.may_lose(), cluster.may_log(
            "how long the MDS stands still is a matter of the machine",
            "unmounting .* did not end"):
        yield cluster
        cluster.ganesha("restart")


def blocklist(pid):
    for session in json.loads(ceph("tell", "mds.0", "client", "ls")):
        if session["client_metadata"].get("pid") == str(pid):
            addr = session["entity"]["addr"]
            yield f"{addr['addr']}/{addr['nonce']}"


def test_late_reclaims_end_no_session(gateway, record):
    log = Log(LOGS / "ganesha-a.log")
    pid = gateway.stat()["ganesha"]["a"]["pid"]
    asker = Asker("/ceph")
    file = asker.new_file(blocks=2)
    addresses = list(blocklist(pid))
    assert addresses
    mds = int(MDS_PID.read_text(encoding="ascii"))
    threads = len(os.listdir(f"/proc/{pid}/task"))
    os.kill(mds, signal.SIGSTOP)
    try:
        for address in addresses:
            ceph("osd", "blocklist", "add", address)
        until(lambda: asker.write(file) == JUKEBOX, "the loss is noticed",
              seconds=60)
        until(lambda: len(log.matching(NO_ANSWER)) >= TRIES,
              "tries without an answer", seconds=90)
    finally:
        os.kill(mds, signal.SIGCONT)
    until(lambda: log.matching("a new CephFS client serves"),
          "a new client serves", seconds=60)
    time.sleep(10)
    assert asker.write(file) == OK
    assert len(log.matching("the CephFS session is lost")) == 1
    until(lambda: len(os.listdir(f"/proc/{pid}/task")) <= threads + 14,
          "the clients of those tries end", seconds=60)
    record(f"{TRIES} tries to reclaim without an MDS: one loss, threads "
           f"{threads} to {len(os.listdir(f'/proc/{pid}/task'))}")
    asker.close()
