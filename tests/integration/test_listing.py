# SPDX-License-Identifier: LGPL-3.0-or-later
"""A listing in pieces does not have the MDS send the directory over and
over (FSAL_CEPH: a request to the MDS for each 50 entries).
"""
import json
import os
import re
import subprocess

import pytest

import ganesha_5_9
from lab import LOGS, Log
from lab_program import ceph

FILES = 2000
# The MDS sends some thousand entries at once.
MOST_REQUESTS = 8


def listed():
    server = json.loads(ceph("daemon", "mds.a", "perf", "dump"))["mds_server"]
    return server["req_readdir_latency"]["avgcount"]


def test_a_listing_asks_the_mds_a_few_times(lab, record):
    about = lab.stat()["ganesha"]["a"]
    url = (f"nfs://127.0.0.1{about['pseudo']}?version=3"
           f"&nfsport={about['port']}&mountport={about['port'] + 1}")
    before = listed()
    # It fails unless the listing has all files, once.
    done = subprocess.run(
        ["nfsmeta", url, f"listing-{os.getpid()}", "1", str(FILES)],
        check=True, timeout=120, stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE)
    requests = listed() - before
    per_s = json.loads(done.stdout)["per_s"]["readdir"]
    record(f"a listing of {FILES} files: {requests} requests to the MDS, "
           f"{per_s:.0f} entries a second")
    assert 0 < requests <= MOST_REQUESTS


@pytest.fixture
def with_block(cluster, second, tmp_path):
    """Starts "b" with that block in the place of the lab's; its log."""
    second()

    def start(block):
        text = cluster.run("conf", "--name", "b").stdout
        conf = tmp_path / "conf"
        conf.write_text(re.sub(r"(?m)^MDCACHE \{[^}]*\}", "", text) + block)
        log = Log(LOGS / "ganesha-b.log")
        cluster.run("ganesha", "restart", "--name", "b", "--conf", conf)
        return log
    return start


@pytest.mark.parametrize("block, value", [
    ("", "(preset)"), ("MDCACHE { Dir_Chunk = 128; }", "128"),
    ("CACHEINODE { Dir_Chunk = 128; }", "128"),
    ("MDCACHE { Dir_Chunk = 0; }", None)])
def test_listings_that_ganesha_keeps_are_told_of(with_block, block, value):
    """A line at load with Ganesha 5.9; 9.x keeps none."""
    log = with_block(block)
    assert log.matching(r"FSAL CEPH_ASYNC \S+: FSAL API")
    lines = [line for line in log.text().splitlines() if "Dir_Chunk" in line]
    if value is None or not ganesha_5_9.IS_OLD:
        assert not lines
        return
    line, = lines
    assert f":CONFIG :WARN :Dir_Chunk = {value}: Ganesha 5.9 keeps lists of " \
        "directories" in line
