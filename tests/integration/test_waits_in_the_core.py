# SPDX-License-Identifier: LGPL-3.0-or-later
"""A file whose capabilities another client keeps, looked up by name.

Ganesha's core holds its directory's lock meanwhile, with any FSAL: who makes a
name there waits.  But the MDS lets him wait as well, without any gateway.
"""
import contextlib
import subprocess
import sys
import time

import pytest

from fuse import Fuse
from nfs import nfs3, rpc
from withheld import Withheld

pytestmark = pytest.mark.evidence
WAITS_S = 5
MAKE_A_NAME = """
import cephfs, sys
fs = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
fs.mount()
fs.mkdir(sys.argv[1], 0o755)
"""


@contextlib.contextmanager
def withheld(folder):
    mount = Fuse()
    (mount.folder / folder).mkdir()
    (mount.folder / folder / "0").write_bytes(b"content")
    mount.end()
    files = Withheld(folder, 1)
    yield files
    assert files.are_withheld()
    files.let_go()


def test_without_a_gateway(cluster, record):
    folder = f"kept-{time.time_ns()}"
    with withheld(folder):
        waiting = subprocess.Popen([sys.executable, "-c", MAKE_A_NAME,
                                    f"/{folder}/new"])
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(WAITS_S)
    assert waiting.wait(30) == 0
    record("a mkdir by a CephFS client beside a file whose capabilities are "
           f"withheld: no answer within {WAITS_S} s")


@pytest.mark.parametrize("fsal", ["CEPH", "CEPH_ASYNC"])
def test_through_a_gateway(cluster, fsal, record):
    cluster.ganesha("restart", "--fsal", fsal)
    folder = f"kept-{time.time_ns()}"
    connection = rpc.Concurrent(2049)
    root = nfs3.root_of("/ceph", 2050)
    answers = []
    with withheld(folder):
        directory = nfs3.lookup(connection, root, folder)
        for procedure, arguments in (
                (nfs3.LOOKUP, nfs3.named(directory, "0")),
                (nfs3.CREATE, nfs3.create_arguments(directory, "new"))):
            connection.send(procedure, arguments, answers.append)
        time.sleep(WAITS_S)
        assert not answers
    record(f"{fsal}: a LOOKUP and a CREATE beside it: no answer within "
           f"{WAITS_S} s")
    connection.close()
