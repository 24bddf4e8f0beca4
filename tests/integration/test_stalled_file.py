# SPDX-License-Identifier: LGPL-3.0-or-later
"""One file's requests wait for capabilities; everybody else is served.

Another client of CephFS has the file open for writing and is stopped; a
third one truncates the file, for which the MDS takes back everybody's
capabilities and waits for the stopped one for ever.  Writes through the
gateway wait for theirs meanwhile, inside libcephfs.
"""
import subprocess
import sys
import time

import pytest

from lab import LOGS, Log
from lab_program import until
from withheld import Withheld

pytestmark = pytest.mark.measures

WORKERS = 32
IN_FLIGHT = 128
SLOW = "slow request: WRITE"


@pytest.mark.parametrize("vers", ("3", "4.1"))
def test_a_stalled_file_does_not_take_the_workers(lab, record, vers):
    lab.ganesha("restart", "--core", f"RPC_Ioq_ThrdMax = {WORKERS};",
                "--export", "Slow_Op_Warn = 500;")
    log = Log(LOGS / "ganesha-a.log")
    top = f"stalled-{time.time_ns()}"
    name = f"{top}/0"
    writer = lab.start_client(
        "sh", "-c", f"mkdir -p /mnt/nfs/{top}/other && exec fio "
        f"--name=stalled --filename=/mnt/nfs/{name} --size=8m "
        "--rw=randwrite --bs=4k --ioengine=libaio --direct=1 "
        f"--iodepth={IN_FLIGHT} --time_based --runtime=12",
        vers=vers, seconds=100)
    file = None
    try:
        until(lambda: size_of(name) == 8 << 20, "the file is laid out")
        file = Withheld(top, 1)
        until(lambda: log.matching(SLOW), "a request is slow")
        time.sleep(1)

        longest = 0
        for _ in range(5):
            began = time.monotonic()
            assert lab.exported(f"/ceph/{top}/other", port=2049)
            longest = max(longest, time.monotonic() - began)
        assert file.are_withheld()
        record(f"NFSv{vers}, {IN_FLIGHT} writes to a stalled file, "
               f"{WORKERS} workers: another client mounts and lists within "
               f"{longest:.2f} s")
        assert longest < 3
    finally:
        if file:
            file.let_go()
        output = lab.end_client(writer, seconds=100)
    assert "err= 0" in output, output


def size_of(name):
    """As CephFS has it; None while there is no such file."""
    done = subprocess.run(
        [sys.executable, "-c",
         "import cephfs, sys\n"
         "fs = cephfs.LibCephFS(conffile='/etc/ceph/ceph.conf')\n"
         "fs.mount()\n"
         "print(fs.stat('/' + sys.argv[1]).st_size)\n", name],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        check=False, timeout=60)
    return int(done.stdout) if done.returncode == 0 else None
