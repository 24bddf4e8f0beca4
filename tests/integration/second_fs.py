# SPDX-License-Identifier: LGPL-3.0-or-later
"""Another CephFS in the lab's cluster, with a metadata server of its own."""
import contextlib
import subprocess

from lab_program import ceph, until

NAME, MDS = "second", "z"
POOLS = ("meta2", "data2")


def export(pseudo, number=9):
    """An export of it, as `lab` takes it after --append."""
    return (f"EXPORT {{ Export_Id = {number}; Path = /; Pseudo = {pseudo}; "
            "Protocols = 3,4; Access_Type = RW; Squash = none; "
            "SecType = sys; Attr_Expiration_Time = 0; FSAL { "
            f'Name = CEPH_ASYNC; Filesystem = "{NAME}"; }} }}')


@contextlib.contextmanager
def made(cluster, folder):
    """Its metadata server, a Popen.  Who uses it calls `cluster` afterwards:
    the gateway is started anew without it."""
    for pool in POOLS:
        ceph("osd", "pool", "create", pool, "8")
    ceph("fs", "flag", "set", "enable_multiple", "true")
    ceph("fs", "new", NAME, *POOLS)
    keyring, data = folder / "keyring", folder / "mds"
    ceph("auth", "get-or-create", f"mds.{MDS}", "mon", "allow profile mds",
         "osd", "allow rwx", "mds", "allow", "-o", str(keyring))
    data.mkdir()
    daemon = subprocess.Popen(
        ["ceph-mds", "-f", "-i", MDS, "--keyring", str(keyring),
         f"--mds_data={data}", "--admin_socket="],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    try:
        until(lambda: f"{NAME}:0={MDS}=up:active" in ceph("mds", "stat"),
              "the second MDS is active", 40)
        yield daemon
    finally:
        cluster.ensure_default()    # an unmount waits for the MDS
        daemon.kill()
        daemon.wait(30)
        ceph("fs", "fail", NAME)
        ceph("fs", "rm", NAME, "--yes-i-really-mean-it")
        for pool in POOLS:
            ceph("osd", "pool", "rm", pool, pool,
                 "--yes-i-really-really-mean-it")
