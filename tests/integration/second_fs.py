# SPDX-License-Identifier: LGPL-3.0-or-later
"""Another CephFS in the lab's cluster, with a metadata server of its own."""
import contextlib
import signal
import subprocess

from lab_program import ceph, until

NAME = "second"
DAEMONS = ("z", "y")    # the metadata servers of rank 0 and 1
POOLS = ("meta2", "data2")


def export(pseudo, number=9, keys=""):
    """An export of it, as `lab` takes it after --append."""
    return (f"EXPORT {{ Export_Id = {number}; Path = /; Pseudo = {pseudo}; "
            "Protocols = 3,4; Access_Type = RW; Squash = none; "
            "SecType = sys; Attr_Expiration_Time = 0; FSAL { "
            f'Name = CEPH_ASYNC; Filesystem = "{NAME}"; {keys} }} }}')


def _run(name, folder):
    """Its socket is not where the lab looks for others; without any, `ceph
    tell` is not answered."""
    return subprocess.Popen(
        ["ceph-mds", "-f", "-i", name, "--keyring", folder / f"keyring-{name}",
         f"--mds_data={folder / f'mds-{name}'}",
         f"--admin_socket={folder / name}.asok"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)


def _start(name, folder):
    ceph("auth", "get-or-create", f"mds.{name}", "mon", "allow profile mds",
         "osd", "allow rwx", "mds", "allow", "-o",
         str(folder / f"keyring-{name}"))
    (folder / f"mds-{name}").mkdir()
    return _run(name, folder)


def _remove_pool(pool):
    ceph("osd", "pool", "rm", pool, pool, "--yes-i-really-really-mean-it")


def _remove_fs():
    ceph("fs", "fail", NAME)
    ceph("fs", "rm", NAME, "--yes-i-really-mean-it")


@contextlib.contextmanager
def made(cluster, folder, ranks=1):
    """Its metadata server of rank 0, a Popen.  Who uses it calls `cluster`
    afterwards: the gateway is started anew without it."""
    with contextlib.ExitStack() as made_so_far:
        for pool in POOLS:
            ceph("osd", "pool", "create", pool, "8")
            made_so_far.callback(_remove_pool, pool)
        ceph("fs", "flag", "set", "enable_multiple", "true")
        ceph("fs", "new", NAME, *POOLS)
        made_so_far.callback(_remove_fs)
        ceph("fs", "set", NAME, "max_mds", str(ranks))
        daemons = []
        for rank, name in enumerate(DAEMONS[:ranks]):
            daemon = _start(name, folder)
            daemons.append(daemon)
            made_so_far.callback(daemon.wait, 30)
            made_so_far.callback(daemon.kill)
            until(lambda r=rank, n=name:
                  f"{NAME}:{r}={n}=up:active" in ceph("mds", "stat"),
                  f"the MDS of rank {rank} is active", 40)
        made_so_far.callback(cluster.ensure_default)    # an unmount waits
        yield daemons[0]


@contextlib.contextmanager
def died(daemon, folder):
    """It is killed, and another one takes its place, for the length of the
    block."""
    daemon.kill()
    daemon.wait(30)
    ceph("mds", "fail", DAEMONS[0])     # or the monitor waits for a sign
    again = _run(DAEMONS[0], folder)
    try:
        yield
    finally:
        again.kill()
        again.wait(30)


@contextlib.contextmanager
def stopped(daemon):
    """It does not answer, for the length of the block."""
    daemon.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        daemon.send_signal(signal.SIGCONT)
