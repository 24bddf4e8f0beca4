# SPDX-License-Identifier: LGPL-3.0-or-later
"""A gateway whose exports have a mount each, after a failure of gateway and
MDS together: the MDS waits for every former session, and each export for
the MDS.
"""
import contextlib
import subprocess
import time

import cephfs

from nfs import nfs3, rpc
import pytest
import second_fs
from lab_program import ceph
from refusals import NO_EXPORT

NAMES = ("one", "two", "three")
# The MDS waits so long for its clients; 45 s by default.
RECONNECT_S = 5
BACK_S = 60

EXPORT = """EXPORT {{
    Export_Id = {number}; Path = /mounts/{name}; Pseudo = /{name};
    Protocols = 3,4; Access_Type = RW; Squash = none; SecType = sys;
    Transports = TCP; FSAL {{ Name = CEPH_ASYNC; }}
}}"""


@pytest.fixture
def quick_reconnect(lab):
    command = ["ceph", "config", "set", "mds", "mds_reconnect_timeout"]
    subprocess.run([*command, str(RECONNECT_S)], check=True, timeout=30)
    yield
    subprocess.run([*command, "45"], check=True, timeout=30)


def content(name):
    return f"{name}, acknowledged".encode() * 100


def test_all_are_back_after_gateway_and_mds_died(lab, quick_reconnect, record):
    lab.client("mkdir", "-p", *(f"/mnt/nfs/mounts/{name}" for name in NAMES))
    lab.ganesha("restart", "--append", "\n".join(
        EXPORT.format(number=10 + i, name=name)
        for i, name in enumerate(NAMES)))
    assert len(lab.sessions(lab.stat()["ganesha"]["a"]["pid"])) == 4
    # An MDS that starts waits for all who said that they would be back, and
    # FSAL_CEPH says so even when it stops in order, as for ab-pair.conf.
    lab.evict_all_but_a()
    connection = rpc.Concurrent(2049)
    handles = {}
    for name in NAMES:
        root = nfs3.root_of(f"/{name}", 2050)
        handles[name] = nfs3.create(connection, root, f"{time.time_ns()}")
        nfs3.write(connection, handles[name], 0, content(name))
    connection.close()

    lab.ganesha("kill9")
    lab.run("mds", "kill9")
    begun = time.monotonic()
    lab.run("recover", timeout=BACK_S + 120)
    seconds = time.monotonic() - begun
    record(f"four mounts after gateway and MDS died: all serve again after "
           f"{seconds:.1f} s; the MDS waited {RECONNECT_S} s for clients")
    assert seconds < BACK_S
    connection = rpc.Concurrent(2049)
    for name in NAMES:
        assert nfs3.read(connection, handles[name], 0,
                         len(content(name))) == content(name)
    connection.close()


# --- two file systems

# An export that waits for the others is refused after that.
MOUNT_S = 15
AWAY_S = 5      # the same, where it never comes
OF_SECOND = """EXPORT {{
    Export_Id = {number}; Path = /{name}; Pseudo = /{name};
    Protocols = 3,4; Access_Type = RW; Squash = none; SecType = sys;
    Transports = TCP;
    FSAL {{
        Name = CEPH_ASYNC; Filesystem = "second"; Mount_Timeout = {mount_s};
    }}
}}"""


@contextlib.contextmanager
def mounted(filesystem):
    client = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf", auth_id="admin")
    client.mount(b"/", filesystem.encode())
    try:
        yield client
    finally:
        client.unmount()
        client.shutdown()


def test_another_file_system_than_the_first(lab, quick_reconnect, tmp_path,
                                            record):
    """Its MDS dies with the gateway.  The MDS of the first export lives, and
    that export has nothing to wait for."""
    with second_fs.made(lab, tmp_path) as daemon:
        with mounted(second_fs.NAME) as client:
            for name in NAMES:
                client.mkdir(f"/{name}", 0o755)
        lab.ganesha("restart", "--append", "\n".join(
            OF_SECOND.format(number=20 + i, name=name, mount_s=MOUNT_S)
            for i, name in enumerate(NAMES)))
        lab.ganesha("kill9")
        with second_fs.died(daemon, tmp_path):
            begun = time.monotonic()
            lab.ganesha("start", timeout=BACK_S + 60)
            seconds = time.monotonic() - begun
            assert all(lab.exported(f"/{name}", 2049) for name in NAMES)
            record("three mounts of another file system after gateway and its "
                   f"MDS died: all serve again after {seconds:.1f} s")
            lab.ensure_default()


def test_a_file_system_without_an_mds_keeps_no_other_export_away(
        lab, quick_reconnect, tmp_path):
    """The exports of the first file system are before it and behind it."""
    lab.client("mkdir", "-p", "/mnt/nfs/mounts/last")
    with second_fs.made(lab, tmp_path) as daemon:
        with mounted(second_fs.NAME) as client:
            for name in NAMES[:2]:
                client.mkdir(f"/{name}", 0o755)
        lab.ganesha("restart", "--append", "\n".join(
            [OF_SECOND.format(number=20 + i, name=name, mount_s=AWAY_S)
             for i, name in enumerate(NAMES[:2])] +
            [EXPORT.format(number=30, name="last")]))
        served = [f"/{name}" for name in (*NAMES[:2], "last")]
        assert all(lab.exported(pseudo, 2049) for pseudo in served)
        lab.ganesha("kill9")
        daemon.kill()
        daemon.wait(30)
        ceph("mds", "fail", second_fs.DAEMONS[0])
        with lab.expects("Mount_Timeout", *NO_EXPORT):
            lab.ganesha("start", timeout=BACK_S + 60)
        assert [pseudo for pseudo in served if lab.exported(pseudo, 2049)] == \
            ["/last"]
        lab.ensure_default()
