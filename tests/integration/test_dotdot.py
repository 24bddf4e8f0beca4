# SPDX-License-Identifier: LGPL-3.0-or-later
"""LOOKUP of ".." does not leave the export: not from .snap, a snapshot, or a
folder that was moved out; not with signed handles either."""
import time

import pytest

from nfs import nfs3
from test_every_key import export
from test_signed_handles import (  # noqa: F401 (pytest finds two of them here)
    KEYS, Export, key, ours)

TREE = "mkdir -p /mnt/nfs/climb/a/top/sub /mnt/nfs/climb/b; " \
    "rm -rf /mnt/nfs/climb/b/*; mkdir -p /mnt/nfs/climb/a/top/{how}; " \
    "echo secret > /mnt/nfs/climb/b/secret"
STEPS = 6


@pytest.mark.parametrize("how", ["snapdir", "snapshot", "moved"])
def test_dotdot_stays_in_the_export(cluster, second, key, how):  # noqa: F811 (it is the fixture)
    cluster.client("sh", "-ec", TREE.format(how=how))
    exports = {"append": [export(100, "Sign_Handles = true;", "/climb/a/top"),
                          export(101, "Sign_Handles = true;", "/climb")],
               "block": f'Handle_Keys = "{KEYS}";'}
    second(**exports)
    below = Export(100)
    if how == "moved":
        at = nfs3.lookup(below.conn, below.root, how)
        cluster.client("mv", f"/mnt/nfs/climb/a/top/{how}",
                       "/mnt/nfs/climb/b/")
    else:
        at = nfs3.lookup(below.conn, below.root, ".snap")
    if how == "snapshot":
        at = nfs3.make_directory(below.conn, at, f"s{time.time_ns()}")
    # Ganesha forgets whose child it was, and asks the plugin.
    cluster.stop_second()
    second(**exports)
    below = Export(100)
    for _ in range(STEPS):
        at = nfs3.lookup(below.conn, at, "..")
        names = {name for name, _ in nfs3.readdir(below.conn, at)[0]}
        assert not names & {b"b", b"secret"}, names
        if at == below.root:
            break
    assert at == below.root
