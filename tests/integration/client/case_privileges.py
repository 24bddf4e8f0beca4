# SPDX-License-Identifier: LGPL-3.0-or-later
"""setuid and setgid go with another user's write; space and holes."""
import errno
import os
import stat

from server_side import set_xattr, until
from case_access import ONE
from registry import MIB, case, cold, drop_caches, equal, in_child, opened, \
    refused

SEEK_DATA, SEEK_HOLE = os.SEEK_DATA, os.SEEK_HOLE
KEEP_SIZE, PUNCH_HOLE = 1, 2
QUOTA = 64 * MIB


def privileged(d, mode=0o6777):
    path = d / "file"
    path.write_bytes(b"program")
    path.chmod(mode)
    drop_caches()
    equal(mode_of(path), mode, "mode at first")
    return path


def mode_of(path):
    drop_caches()
    return stat.S_IMODE(path.stat().st_mode)


def by_another(path, change):
    def run():
        with opened(path, os.O_WRONLY | os.O_DIRECT) as fd:
            change(fd)
    in_child(run, uid=ONE)


@case()
def setuid_goes_with_a_write(d):
    path = privileged(d)
    by_another(path, lambda fd: os.pwrite(fd, b"evil", 0))
    equal(mode_of(path), 0o777, "mode after another's write")
    path.chmod(0o6777)
    by_another(path, lambda fd: os.pwrite(fd, b"evil", 3))
    equal(mode_of(path), 0o777, "the second time")


@case()
def setuid_goes_with_a_truncate(d):
    path = privileged(d)
    by_another(path, lambda fd: os.ftruncate(fd, 3))
    equal(mode_of(path), 0o777, "mode after another's truncate")


@case()
def setgid_of_locks_stays(d):
    """Without group execute it is no privilege."""
    path = privileged(d, 0o2767 & ~stat.S_IXGRP)
    by_another(path, lambda fd: os.pwrite(fd, b"evil", 0))
    equal(mode_of(path), 0o2767 & ~stat.S_IXGRP, "mode")


@case(versions=("4.2",))
def holes_are_found(d):
    """CephFS knows the end of a file and no hole before it."""
    path = d / "file"
    with opened(path, os.O_RDWR | os.O_CREAT) as fd:
        os.pwrite(fd, b"data", 0)
        os.pwrite(fd, b"data", 8 * MIB)
        os.fsync(fd)
        size = 8 * MIB + 4
        equal(os.lseek(fd, 0, SEEK_DATA), 0, "data at the beginning")
        equal(os.lseek(fd, size - 1, SEEK_DATA), size - 1, "data at the end")
        equal(os.lseek(fd, size - 1, SEEK_HOLE), size, "the hole at the end")
        refused(errno.ENXIO, os.lseek, fd, size, SEEK_DATA)
        refused(errno.ENXIO, os.lseek, fd, size + 10, SEEK_HOLE)
        hole = os.lseek(fd, 0, SEEK_HOLE)
        equal(4 <= hole <= size, True, f"a hole at {hole}")


def fallocate(fd, mode, offset, length):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(fd, mode, ctypes.c_int64(offset),
                      ctypes.c_int64(length)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@case(versions=("4.2",))
def holes_are_punched_and_space_is_not_reserved(d):
    path = d / "file"
    model = bytearray(os.urandom(6 * MIB))
    with opened(path, os.O_RDWR | os.O_CREAT) as fd:
        os.pwrite(fd, model, 0)
        os.fsync(fd)
        for offset, length in ((100, 5000), (3 * MIB, 2 * MIB),
                               (6 * MIB - 10, 20)):
            fallocate(fd, PUNCH_HOLE | KEEP_SIZE, offset, length)
            model[offset:offset + length] = bytes(
                min(length, len(model) - offset))
        equal(os.fstat(fd).st_size, 6 * MIB, "size")
        refused(errno.EOPNOTSUPP, fallocate, fd, 0, 0, 7 * MIB)
    equal(cold(path), model, "content")


@case()
def df_of_a_quota(d):
    limited = d / "limited"
    limited.mkdir()
    set_xattr(limited, "ceph.quota.max_bytes", QUOTA)

    def size():
        about = os.statvfs(limited)
        return about.f_frsize * about.f_blocks
    until(lambda: size() == QUOTA, f"a size of {QUOTA}")
    equal(os.statvfs(d).f_frsize * os.statvfs(d).f_blocks > QUOTA, True,
          "the size above")
