# SPDX-License-Identifier: LGPL-3.0-or-later
"""A listing in pieces does not have the MDS send the directory over and
over (FSAL_CEPH: a request to the MDS for each 50 entries).
"""
import json
import os
import subprocess

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
