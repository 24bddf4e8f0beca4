# SPDX-License-Identifier: LGPL-3.0-or-later
"""Errors of the cluster: each reaches the request it belongs to, is not
covered up by a later success, and is gone once it was told.
"""
import contextlib
import errno
import os
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor

from server_side import (DATA_POOL, FILE_SYSTEM, ceph_client, ceph_path,
                         orders, set_xattr, until)
from registry import (MIB, case, cold, drop_caches, equal, opened, refused)

BLOCK = 4096
DIRECT = os.O_RDWR | os.O_CREAT | os.O_DIRECT | os.O_SYNC
BUFFERED = os.O_RDWR | os.O_CREAT
QUOTA = MIB
PAST_QUOTA = 4 * MIB
PAST_LARGEST = 1 << 40      # max_file_size as CephFS sets it
SMALLER_LARGEST = 64 * MIB


# --- one offset of a file is refused, the others are not

def direct_in_turn(path, bad, number):
    """Good and bad requests one after the other, each with its answer."""
    with opened(path, DIRECT) as fd:
        for _ in range(3):
            good = os.urandom(BLOCK)
            equal(os.pwrite(fd, good, 0), BLOCK, "written")
            refused(number, os.pwrite, fd, b"n" * BLOCK, bad)
            equal(os.pread(fd, BLOCK, 0), good, "read after the refusal")
            os.fsync(fd)
    equal(os.stat(path).st_size, BLOCK, "size")
    equal(cold(path), good, "content")


def direct_at_once(path, bad, number):
    """Good and bad requests in flight together are not mixed up."""
    count = 64
    with opened(path, DIRECT) as fd:
        os.pwrite(fd, bytes(count * BLOCK), 0)
        model = [bytes([i]) * BLOCK for i in range(1, count + 1)]
        jobs = [(i, True) for i in range(count)]
        jobs += [(i, False) for i in range(count)]
        random.Random(6).shuffle(jobs)

        def write(job):
            i, good = job
            if good:
                equal(os.pwrite(fd, model[i], i * BLOCK), BLOCK, "written")
            else:
                refused(number, os.pwrite, fd, b"n" * BLOCK,
                        bad + i * BLOCK)
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(write, jobs))
    equal(cold(path), b"".join(model), "content")


def buffered_fsync(path, bad, number):
    """fsync tells of the write that failed, though a later one did not."""
    with opened(path, BUFFERED) as fd:
        os.pwrite(fd, b"a" * BLOCK, 0)
        os.fsync(fd)
        os.pwrite(fd, b"n" * BLOCK, bad)
        os.pwrite(fd, b"b" * BLOCK, 0)
        refused(number, os.fsync, fd)
        os.fsync(fd)
        os.pwrite(fd, b"c" * BLOCK, 0)
        os.fsync(fd)
    drop_caches()
    equal(os.stat(path).st_size, BLOCK, "size")
    equal(cold(path), b"c" * BLOCK, "content")


def buffered_close(path, bad, number):
    """So does close, where nobody asked before."""
    fd = os.open(path, BUFFERED)
    os.pwrite(fd, b"n" * BLOCK, bad)
    os.pwrite(fd, b"a" * BLOCK, 0)
    refused(number, os.close, fd)
    with opened(path, BUFFERED) as fd:
        # Linux: an error that no fsync has told is told to the next fd too.
        fails(number, os.fsync, fd)
        os.pwrite(fd, b"b" * BLOCK, 0)
    equal(cold(path), b"b" * BLOCK, "content")


def other_file_unharmed(path, other, bad, number):
    """The error is the file's, not the client's or the export's."""
    with opened(path, BUFFERED) as fd, opened(other, BUFFERED) as good:
        os.pwrite(fd, b"n" * BLOCK, bad)
        os.pwrite(good, b"g" * BLOCK, bad if number == errno.EDQUOT else 0)
        os.fsync(good)
        refused(number, os.fsync, fd)
        os.fsync(good)


def all_ways(d, other, bad, number):
    direct_in_turn(d / "in-turn", bad, number)
    direct_at_once(d / "at-once", bad, number)
    buffered_fsync(d / "fsync", bad, number)
    buffered_close(d / "close", bad, number)
    other_file_unharmed(d / "bad", other, bad, number)


@case()
def errors_of_a_quota(d):
    """EDQUOT comes and, once the quota is gone, goes."""
    limited = d / "limited"
    limited.mkdir()
    set_xattr(limited, "ceph.quota.max_bytes", QUOTA)

    def in_force():
        with opened(limited / "probe", DIRECT) as fd:
            return fails(errno.EDQUOT, os.pwrite, fd, b"p", PAST_QUOTA)
    until(in_force, "the quota")
    os.truncate(limited / "probe", 0)
    all_ways(limited, d / "other", PAST_QUOTA, errno.EDQUOT)

    with opened(limited / "in-turn", DIRECT) as fd:
        refused(errno.EDQUOT, os.pwrite, fd, b"n", PAST_QUOTA)
        set_xattr(limited, "ceph.quota.max_bytes", 0)
        until(lambda: not fails(errno.EDQUOT, os.pwrite, fd, b"y",
                                PAST_QUOTA), "the end of the quota")
        os.fsync(fd)


@case()
def errors_of_too_large_a_file(d):
    """EFBIG, for data and for a size alone."""
    all_ways(d, d / "other", PAST_LARGEST, errno.EFBIG)
    with opened(d / "size", DIRECT) as fd:
        refused(errno.EFBIG, os.ftruncate, fd, PAST_LARGEST + 1)
        equal(os.fstat(fd).st_size, 0, "size")


@case(versions=("3", "4.2"))
def errors_of_a_lowered_largest_file(d):
    """max_file_size changes while files are open."""
    with orders() as order, opened(d / "file", DIRECT) as fd:
        def largest(size):
            order("fs set", fs_name=FILE_SYSTEM, var="max_file_size",
                  val=str(size))

        size = SMALLER_LARGEST

        def grow():
            # Past the end each time: Ceph refuses no write within the size,
            # and the first may come before the new limit does.
            nonlocal size
            os.pwrite(fd, b"y", size + MIB - 1)
            size += MIB
        grow()
        try:
            largest(SMALLER_LARGEST)
            until(lambda: fails(errno.EFBIG, grow), "the new limit")
            equal(os.pwrite(fd, b"y", 0), 1, "written below it")
        finally:
            largest(PAST_LARGEST)
        until(lambda: not fails(errno.EFBIG, grow), "the old limit")
    equal(os.stat(d / "file").st_size, size, "size")


def fails(number, call, *args):
    """Does it fail so?  Any other error is raised."""
    try:
        call(*args)
    except OSError as err:
        if err.errno != number:
            raise
        return True
    return False


# --- every write is refused for a time

@contextlib.contextmanager
def full_pool(fd):
    """The data pool is full, by a quota that is below what it holds."""
    def limit(order, count):
        order("osd pool set-quota", pool=DATA_POOL, field="max_objects",
              val=str(count))
    with orders() as order:
        try:
            limit(order, 1)
            until(lambda: fails(errno.ENOSPC, os.pwrite, fd, b"p" * BLOCK,
                                0), "a full pool")
            yield
        finally:
            limit(order, 0)


@case(versions=("3", "4.2"), seconds=120)
def errors_of_a_full_pool(d):
    """ENOSPC, and writing goes on as soon as there is room."""
    with opened(d / "one", DIRECT) as one, opened(d / "two", DIRECT) as two, \
            opened(d / "cached", BUFFERED) as cached:
        for fd in (one, two, cached):
            os.pwrite(fd, b"a" * BLOCK, 0)
        os.fsync(cached)
        with full_pool(one):
            refused(errno.ENOSPC, os.pwrite, two, b"n" * BLOCK, 0)
            refused(errno.ENOSPC, os.pwrite, two, b"n" * BLOCK, BLOCK)
            os.pwrite(cached, b"n" * BLOCK, BLOCK)
            refused(errno.ENOSPC, os.fsync, cached)
            equal(os.pread(two, BLOCK, 0), b"a" * BLOCK, "read meanwhile")
            last = os.open(d / "last", BUFFERED)
            os.pwrite(last, b"n" * BLOCK, 0)
            refused(errno.ENOSPC, os.close, last)
        until(lambda: not fails(errno.ENOSPC, os.pwrite, one, b"b" * BLOCK,
                                0), "room")
        for fd in (two, cached):
            os.pwrite(fd, b"b" * BLOCK, 0)
            os.fsync(fd)
    for name in ("one", "two", "cached"):
        equal(cold(d / name)[:BLOCK], b"b" * BLOCK, name)


# --- snapshots

@case()
def errors_of_a_snapshot(d):
    """A snapshot can be read and nothing else; the file itself lives on."""
    live = d / "file"
    live.write_bytes(b"old" * 1000)
    inside = d / ".snap" / "one"
    with ceph_client() as fs:
        fs.mkdir(ceph_path(inside), 0o755)
    try:
        live.write_bytes(b"new" * 1000)
        kept = inside / "file"
        equal(cold(kept), b"old" * 1000, "what the snapshot holds")
        refused(errno.EROFS, write_to, kept)
        refused(errno.EROFS, os.truncate, kept, 0)
        refused(errno.EROFS, os.chmod, kept, 0o600)
        refused(errno.EROFS, os.unlink, kept)
        refused(errno.EROFS, os.mkdir, inside / "new")
        refused((errno.EROFS, errno.EXDEV), os.rename, kept, d / "moved")
        equal(cold(kept), b"old" * 1000, "afterwards")
        with opened(live, DIRECT) as fd:
            os.pwrite(fd, b"live", 0)
        equal(cold(live), b"live" + (b"new" * 1000)[4:], "the file itself")
    finally:
        # Another file system id: Linux has mounted it by itself.
        for mounted in (inside, inside.parent):
            subprocess.run(["umount", mounted], check=True)
        with ceph_client() as fs:
            fs.rmdir(ceph_path(inside))


def write_to(path):
    """NFSv3 knows no open: there the write itself is refused."""
    with opened(path, os.O_WRONLY | os.O_DIRECT | os.O_SYNC) as fd:
        os.pwrite(fd, b"n" * BLOCK, 0)
