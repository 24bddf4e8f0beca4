# SPDX-License-Identifier: LGPL-3.0-or-later
"""A process of its own: does with the cluster what an export will do.

A request is read from stdin as JSON.  Each step prints a line of JSON when it
begins and one when it has ended: cluster.py ends this process when the time
is up, and then knows which step hung.  Nothing is changed in the cluster,
unless the request says "write_test".
"""
import errno
import json
import os
import re
import sys
import uuid

import cephfs
import rados

# No object and no attribute has this name.  Removing it, or replacing it, is
# permitted or not, and changes nothing.
ABSENT = f"ganesha-ceph-async-check-{uuid.uuid4()}"


class Steps:
    """Runs steps one after the other, until a needed one fails."""

    def __init__(self):
        self.results = {}

    @staticmethod
    def _print(**words):
        print(json.dumps(words), flush=True)

    def run(self, name, function, *args):
        """What FUNCTION returns; None after an error."""
        self._print(begin=name)
        try:
            result = function(*args)
        except (cephfs.Error, rados.Error, OSError) as err:
            number = getattr(err, "errno", None)
            self._print(end=name, errno=abs(number or errno.EIO),
                        text=str(err))
            return None
        self._print(end=name, errno=0, result=result)
        return result if result is not None else True


def _options(asked):
    """Ceph's options for the user of an export."""
    seconds = str(int(asked["timeout"]))
    options = {"client_mount_timeout": seconds,
               "rados_mon_op_timeout": seconds,
               "rados_osd_op_timeout": seconds,
               "log_file": "/dev/null", "admin_socket": "",
               "err_to_stderr": "false", "log_to_stderr": "false"}
    for line in (asked["ceph_options"] or "").splitlines():
        name, value = line.split("=", 1)
        options[name] = value
    if asked["secret"]:
        options["key"] = asked["secret"]
    return options


def _cluster(asked):
    return rados.Rados(conffile=asked["ceph_conf"] or "",
                       rados_id=asked["user"])


def _configure(cluster, asked):
    for name, value in _options(asked).items():
        cluster.conf_set(name, value)


def _has_key(cluster, asked):
    """True, or the files in which there is no key of the user: without one the
    monitors refuse it as if it were unknown, unless ceph.conf demands cephx."""
    if asked["secret"] or cluster.conf_get("key") or \
            cluster.conf_get("keyfile"):
        return True
    paths = [path for path in
             re.split(r"[;,\s]+", cluster.conf_get("keyring")) if path]
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as keyring:
                if f"[client.{asked['user']}]" in keyring.read():
                    return True
                return [path]
        except PermissionError:
            return True     # ganesha.nfsd is root
        except OSError:
            continue        # Ceph takes the first one that is there, too
    return paths


def _told(cluster, command):
    """The answer of the monitors to a command that only reads."""
    status, out, text = cluster.mon_command(
        json.dumps({"prefix": command, "format": "json"}), b"")
    if status != 0:
        raise OSError(-status, text)
    return json.loads(out)


def _filesystems(cluster):
    """The file systems that the user may see."""
    dump = _told(cluster, "fs dump")
    return [{"name": entry["mdsmap"]["fs_name"], "id": entry["id"],
             "preset": entry["id"] == dump["default_fscid"],
             "session_autoclose": entry["mdsmap"]["session_autoclose"],
             "pools": entry["mdsmap"]["data_pools"],
             "ranks": len(entry["mdsmap"]["up"]),
             "states": [info["state"]
                        for info in entry["mdsmap"]["info"].values()]}
            for entry in dump["filesystems"]]


def _pools(cluster):
    """Pools, and the flags of all and each that say "full"."""
    dump = _told(cluster, "osd dump")
    return {"flags": dump["flags_set"],
            "pools": [{"id": pool["pool"], "name": pool["pool_name"],
                       "flags": pool["flags_names"].split(",")}
                      for pool in dump["pools"]]}


def _mounted(asked):
    mount = cephfs.LibCephFS(conffile=asked["ceph_conf"] or "",
                             auth_id=asked["user"])
    for name, value in _options(asked).items():
        mount.conf_set(name, value)
    mount.set_mount_timeout(int(asked["timeout"]))
    mount.init()
    filesystem = asked["filesystem"]
    mount.mount(asked["root"].encode(),
                filesystem.encode() if filesystem else None)
    return mount


def _is_directory(mount, path):
    return os.path.stat.S_ISDIR(mount.stat(path).st_mode)


def _missing(mount, path, folders):
    """Those of FOLDERS that are not below PATH."""
    missing = []
    for folder in folders:
        try:
            mount.stat(f"{path.rstrip('/')}/{folder}")
        except cephfs.ObjectNotFound:
            missing.append(folder)
    return missing


def _statfs(mount, path):
    found = mount.statfs(path)
    return {name: found[name] for name in
            ("f_frsize", "f_blocks", "f_bavail")}


def _layout(mount, path):
    return json.loads(mount.getxattr(path, "ceph.dir.layout.json"))


def _may(allowed, function, *args):
    """Whether a harmless call was refused for want of a capability."""
    try:
        function(*args)
    except (cephfs.Error, rados.Error) as err:
        number = abs(err.errno or 0)
        if number in (errno.EACCES, errno.EPERM):
            return {"may": False}
        if number not in allowed:
            raise
    return {"may": True}


def _may_write(mount, path):
    """The MDS checks before it misses the attribute."""
    return _may((errno.ENODATA,), mount.setxattr, path, f"user.{ABSENT}", b"",
                os.XATTR_REPLACE)


def _may_set_layout(mount, path):
    """It checks "p" before it misses the field."""
    return _may((errno.ENODATA, errno.EINVAL), mount.setxattr, path,
                "ceph.dir.layout.absent", b"1", 0)


def _pool(cluster, name, namespace):
    """May objects be read and written?"""
    with cluster.open_ioctx(name) as pool:
        pool.set_namespace(namespace)
        return {"read": _may((errno.ENOENT,), pool.stat, ABSENT)["may"],
                "write": _may((errno.ENOENT,), pool.remove_object,
                              ABSENT)["may"]}


def _write_test(mount, path, asked):
    name = f"{path.rstrip('/')}/.{ABSENT}"
    fd = mount.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        if asked["data_pool"]:
            mount.fsetxattr(fd, "ceph.file.layout.pool",
                            asked["data_pool"].encode(), 0)
        mount.write(fd, b"test", 0)
        mount.fsync(fd, False)
        return mount.read(fd, 0, 4) == b"test"
    finally:
        mount.close(fd)
        mount.unlink(name)


def _below(asked):
    """The export's Path, as the mount sees it."""
    root = asked["root"].rstrip("/")
    return asked["path"].removeprefix(root) or "/"


def _file_system(steps, cluster, asked):
    holder = []
    steps.run("mount", lambda: holder.append(_mounted(asked)))
    if not holder:
        return
    mount, path = holder[0], _below(asked)
    if steps.run("path", _is_directory, mount, path) is None:
        return
    if asked["junctions"]:
        steps.run("junctions", _missing, mount, path, asked["junctions"])
    steps.run("statfs", _statfs, mount, path)
    if asked["writes"]:
        steps.run("mds-write", _may_write, mount, path)
    if asked["sets_layout"]:
        steps.run("mds-layout", _may_set_layout, mount, path)
    layout = steps.run("layout", _layout, mount, path)
    if isinstance(layout, dict):
        steps.run("osd", _pool, cluster, layout["pool_name"],
                  layout["pool_namespace"])
    if asked["data_pool"]:
        steps.run("data-pool", _pool, cluster, asked["data_pool"], "")
    if asked["write_test"]:
        steps.run("write-test", _write_test, mount, path, asked)


def _grace(cluster, asked):
    """Nodes in the database of rados_cluster: names, and their flags."""
    with cluster.open_ioctx(asked["pool"]) as pool:
        pool.set_namespace(asked["namespace"])
        with rados.ReadOpCtx() as operation:
            found, _ = pool.get_omap_vals(operation, "", "", 1024)
            pool.operate_read_op(operation, asked["grace_oid"])
            return [name for name, _ in found]


def _recovery(steps, cluster, asked):
    if steps.run("recovery-pool", _pool, cluster, asked["pool"],
                 asked["namespace"]) is None:
        return
    if asked["grace_oid"]:
        steps.run("grace", _grace, cluster, asked)


def main():
    asked = json.load(sys.stdin)
    steps = Steps()
    holder = []
    steps.run("conf", lambda: holder.append(_cluster(asked)))
    if not holder:
        return
    cluster = holder[0]
    if steps.run("options", _configure, cluster, asked) is None:
        return
    steps.run("key", _has_key, cluster, asked)
    if steps.run("connect", lambda: cluster.connect(
            timeout=int(asked["timeout"]))) is None:
        return
    if asked["what"] == "recovery":
        _recovery(steps, cluster, asked)
        return
    steps.run("filesystems", _filesystems, cluster)
    steps.run("pools", _pools, cluster)
    if asked["what"] == "export":
        steps.run("health", _told, cluster, "health")
        _file_system(steps, cluster, asked)
    else:
        steps.run("status", _told, cluster, "status")
        steps.run("time", _told, cluster, "time-sync-status")
        steps.run("versions", _told, cluster, "versions")


main()
# Libraries may wait at the end for what does not answer.
sys.stdout.flush()
os._exit(0)
