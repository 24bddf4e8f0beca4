# SPDX-License-Identifier: LGPL-3.0-or-later
"""Files whose data CephFS keeps in the inode ("inline data", deprecated).

On a Ganesha of its own: what hangs, hangs there.  Inline data are turned off
again, and the files that have some are removed.
"""
import subprocess
import time

import cephfs
import pytest

from server_side import remove_tree
from lab import Hang

SECONDS = 12
WHY = ("libcephfs never answers the write that moves inline data out of the "
       "inode (docs/limits.md)")


def set_inline(value):
    subprocess.run(["ceph", "fs", "set", "cephfs", "inline_data", value,
                    "--yes-i-really-really-mean-it"], check=True, timeout=60,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


@pytest.fixture
def inline(cluster, second):
    """Ganesha "b" and a directory; whatever a case made there goes."""
    set_inline("true")
    directory = f"inline-{time.time_ns()}"
    second()
    yield f"/mnt/nfs/{directory}"
    cluster.run("ganesha", "kill9", "--name", "b")
    cluster.evict_all_but_a()
    set_inline("false")
    fs = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
    fs.mount()
    try:
        remove_tree(fs, f"/{directory}")
    finally:
        fs.shutdown()


@pytest.mark.xfail(strict=True, raises=Hang, reason=WHY)
@pytest.mark.parametrize("maker, vers", [("ceph", "4.2"), ("nfs", "3")])
def test_inline_data_are_the_file(cluster, inline, maker, vers):
    said = cluster.script("inline_data.py", inline, maker, vers=vers,
                          name="b", seconds=SECONDS)
    assert "all well" in said
