# SPDX-License-Identifier: LGPL-3.0-or-later
"""The same CephFS past NFS, from inside the kernel client: another CephFS
client, and orders to the cluster.
"""
import contextlib
import json
import time
from pathlib import Path

import cephfs
import rados

CONF = "/etc/ceph/ceph.conf"
MOUNT = Path("/mnt/nfs")        # the export of "/"
DATA_POOL = "cephfs_data"
FILE_SYSTEM = "cephfs"


def ceph_path(path):
    """What CephFS calls a path on the mount."""
    return "/" + str(Path(path).relative_to(MOUNT))


@contextlib.contextmanager
def ceph_client():
    """A mounted CephFS; no admin socket, whose name could be Ganesha's."""
    fs = cephfs.LibCephFS(conffile=CONF)
    fs.conf_set("admin_socket", "")
    fs.conf_set("client_acl_type", "posix_acl")
    fs.mount()
    try:
        yield fs
    finally:
        fs.shutdown()


def set_xattr(path, name, value):
    with ceph_client() as fs:
        fs.setxattr(ceph_path(path), name, str(value).encode(), 0)


def get_xattr(path, name):
    with ceph_client() as fs:
        return fs.getxattr(ceph_path(path), name).decode()


@contextlib.contextmanager
def orders():
    """A function that gives the monitors one order."""
    cluster = rados.Rados(conffile=CONF, conf={"admin_socket": ""})
    cluster.connect()

    def order(prefix, **arguments):
        status, _, words = cluster.mon_command(
            json.dumps({"prefix": prefix, **arguments}), b"")
        if status:
            raise RuntimeError(f"{prefix} {arguments}: {words}")
    try:
        yield order
    finally:
        cluster.shutdown()


def has_object(path):
    """Does RADOS hold the first object of a file?"""
    cluster = rados.Rados(conffile=CONF, conf={"admin_socket": ""})
    cluster.connect()
    try:
        with cluster.open_ioctx(DATA_POOL) as pool:
            pool.stat(f"{path.stat().st_ino:x}.00000000")
        return True
    except rados.ObjectNotFound:
        return False
    finally:
        cluster.shutdown()


def until(probe, what, seconds=30):
    """Call PROBE until it is true: a change in a map takes its time."""
    end = time.monotonic() + seconds
    while not probe():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.1)


def remove_tree(fs, path):
    """Everything in a directory without sub-directories, and itself."""
    names = []
    with fs.opendir(path) as directory:
        while entry := fs.readdir(directory):
            names.append(entry.d_name)
    for name in names:
        if name not in (b".", b".."):
            fs.unlink(path.encode() + b"/" + name)
    fs.rmdir(path)
