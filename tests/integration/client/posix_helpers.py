# SPDX-License-Identifier: LGPL-3.0-or-later
"""What the POSIX cases share: users, kinds of files, attributes as the
server has them now, a second mount.

They hold on any POSIX file system, so that a run on a local one tells a
wrong case from a wrong server (posix_comparison.py).
"""
import contextlib
import ctypes
import os
import socket
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

# Five digits: see case_access.py.
USER, OTHER, GROUP = 47110, 47120, 47130

libc = ctypes.CDLL(None, use_errno=True)

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_SYMLINK_NOFOLLOW = 0x100
AT_STATX_FORCE_SYNC = 0x2000
STATX_BASIC_STATS = 0x7ff
TICK = 0.015            # a local file system's clock steps by up to 10 ms


@contextlib.contextmanager
def as_user(uid=USER, gid=None, groups=()):
    """The body runs as that user, without privileges."""
    os.setgroups(groups)
    os.setegid(uid if gid is None else gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups([])


def check(result):
    """As Python's own functions do it."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def fresh(path):
    """The attributes, asked from the server; of a descriptor too.  A link
    is not followed."""
    buffer = ctypes.create_string_buffer(256)
    fd, name = (path, b"") if isinstance(path, int) else \
        (AT_FDCWD, os.fsencode(path))
    check(libc.statx(fd, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW |
                     AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, buffer))
    nlink, uid, gid, mode = struct.unpack_from("IIIH", buffer, 16)
    ino, size, blocks = struct.unpack_from("QQQ", buffer, 32)

    def time_at(offset):
        seconds, nanoseconds = struct.unpack_from("qI", buffer, offset)
        return seconds * 10**9 + nanoseconds
    return SimpleNamespace(
        nlink=nlink, uid=uid, gid=gid, mode=stat.S_IMODE(mode),
        type=stat.S_IFMT(mode), ino=ino, size=size, blocks=blocks,
        atime=time_at(64), ctime=time_at(96), mtime=time_at(112))


def tick():
    time.sleep(TICK)


def _socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        fd = os.open(path.parent, os.O_PATH)
        try:        # a socket's path has 107 bytes at most
            one.bind(f"/proc/self/fd/{fd}/{path.name}")
        finally:
            os.close(fd)


KINDS = {
    "file": lambda path: path.touch(),
    "dir": os.mkdir,
    "symlink": lambda path: os.symlink("/nowhere", path),
    "fifo": os.mkfifo,
    "char": lambda path: os.mknod(path, stat.S_IFCHR | 0o644,
                                  os.makedev(1, 3)),
    "block": lambda path: os.mknod(path, stat.S_IFBLK | 0o644,
                                   os.makedev(7, 1)),
    "socket": _socket,
}


def one_of_each(d):
    """{kind: path} of new files of every kind."""
    paths = {kind: d / f"a-{kind}" for kind in KINDS}
    for kind, path in paths.items():
        KINDS[kind](path)
    return paths


def _fork(function, *args):
    """A process that ends with 0, an errno, or 255 and words on stderr."""
    pid = os.fork()
    if pid:
        return pid
    status = 255
    try:
        function(*args)
        status = 0
    except OSError as err:
        status = err.errno
    except BaseException as err:  # noqa: BLE001 (the child ends here)
        print(f"child: {type(err).__name__}: {err}", file=sys.stderr,
              flush=True)
    finally:
        os._exit(status)


def _status(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def elsewhere(function, *args):
    """What the call says in another process: 0 or an errno."""
    return _status(_fork(function, *args))


def at_once(*functions):
    """The same of many, all in processes of their own."""
    return [_status(pid) for pid in [_fork(one) for one in functions]]


@contextlib.contextmanager
def meanwhile(function):
    """Another process does that while the body runs; it must end well."""
    pid = _fork(function)
    try:
        yield
    finally:
        status = _status(pid)
    if status:
        raise AssertionError(f"the other process ended with {status}"
                             f" ({os.strerror(status)})")


SECOND = Path("/run/second")


def second_mount(d):
    """D by a mount that shares no cache with the first: what another client
    sees.  On another file system than NFS: D itself."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        source, target, kind, options = line.split()[:4]
        if kind.startswith("nfs") and d.is_relative_to(target):
            break
    else:
        return d
    if not SECOND.is_mount():
        SECOND.mkdir(exist_ok=True)
        wanted = [option for option in options.split(",") if option.split(
            "=")[0] in ("vers", "proto", "port", "mountport", "mountproto")]
        subprocess.run(["mount", "-t", "nfs", "-o",
                        ",".join(wanted + ["nosharecache"]), source, SECOND],
                       check=True)
    return SECOND / d.relative_to(target)
