# SPDX-License-Identifier: LGPL-3.0-or-later
"""fcntl and flock locks, of one client's processes and of two clients.

Each test of a conflict comes twice: by the same mount, where Linux itself
knows both sides, and by a second one, where only the server does.
"""
import errno
import fcntl
import os
import signal
import struct
import time

from posix_helpers import elsewhere, second_mount
from registry import case, drop_caches, each, equal, opened, refused

EX, SH, UN, NB = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_UN, fcntl.LOCK_NB
FLOCK = "hhqqi4x"
BUSY = (errno.EAGAIN, errno.EACCES)

SIDES = {"": lambda path: path,
         "_of_two_clients": lambda path: second_mount(path.parent) / path.name}


def sides(name):
    return {name + suffix: (side,) for suffix, side in SIDES.items()}


def file_in(d):
    (d / "file").write_bytes(b"l" * 1000)
    return d / "file"


def lock(fd, kind, start=0, length=0):
    fcntl.lockf(fd, kind | (0 if kind == UN else NB), length, start)


def would(path, kind, start=0, length=0):
    """What another process is told that asks for this lock."""
    def ask():
        with opened(path, os.O_RDWR) as fd:
            lock(fd, kind, start, length)
    number = elsewhere(ask)
    return "busy" if number in BUSY else number


def holder(fd, kind=fcntl.F_WRLCK, start=0, length=0):
    """F_GETLK: type, start, length of the lock in the way, or None."""
    got = struct.unpack(FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack(
        FLOCK, kind, os.SEEK_SET, start, length, 0)))
    return None if got[0] == fcntl.F_UNLCK else (got[0], got[2], got[3])


@each(sides("lock_is_exclusive"))
def exclusive(d, side):
    path = file_in(d)
    with opened(path, os.O_RDWR) as fd:
        lock(fd, EX)
        equal([would(side(path), kind) for kind in (EX, SH)],
              ["busy", "busy"], "while it is held")
        lock(fd, UN)
        equal(would(side(path), EX), 0, "after it")


@each(sides("lock_is_shared"))
def shared(d, side):
    path = file_in(d)
    with opened(path, os.O_RDWR) as fd:
        lock(fd, SH)
        equal([would(side(path), kind) for kind in (EX, SH)],
              ["busy", 0], "while it is held")


@each(sides("lock_of_a_range"))
def ranges(d, side):
    path = file_in(d)
    with opened(path, os.O_RDWR) as fd:
        lock(fd, EX, 100, 50)
        got = [would(side(path), EX, *where) for where in
               ((0, 100), (150, 0), (149, 1), (99, 2), (120, 5), (0, 0))]
        equal(got, [0, 0] + ["busy"] * 4, "ranges beside and within")


@each(sides("lock_is_split"))
def split(d, side):
    """Unlocking the middle leaves two."""
    path = file_in(d)
    with opened(path, os.O_RDWR) as fd:
        lock(fd, EX, 0, 300)
        lock(fd, UN, 100, 100)
        got = [would(side(path), EX, *where) for where in
               ((0, 100), (100, 100), (200, 100), (300, 0))]
        equal(got, ["busy", 0, "busy", 0], "its parts")


@each(sides("lock_changes_its_kind"))
def changes(d, side):
    path = file_in(d)
    with opened(path, os.O_RDWR) as fd:
        lock(fd, SH, 0, 100)
        lock(fd, EX, 0, 100)
        equal(would(side(path), SH, 0, 100), "busy", "after the upgrade")
        lock(fd, SH, 0, 50)
        equal([would(side(path), SH, at, 50) for at in (0, 50)],
              [0, "busy"], "half of it shared again")


@each(sides("lock_to_the_end"))
def to_the_end(d, side):
    """Length 0 reaches past whatever the file grows to."""
    path = file_in(d)
    with opened(path, os.O_RDWR) as fd:
        lock(fd, EX, 500, 0)
        os.ftruncate(fd, 10**6)
        equal([would(side(path), EX, 0, 500), would(side(path), EX, 999_999,
                                                    1)],
              [0, "busy"], "before it and at the new end")


@each(sides("lock_goes_with_a_close"))
def goes_with_close(d, side):
    """POSIX: with any descriptor of the file that the process closes."""
    path = file_in(d)
    with opened(path, os.O_RDWR) as fd:
        lock(fd, EX)
        with opened(path, os.O_RDONLY):
            pass
        equal(would(side(path), EX), 0, "after the close of another one")


@each(sides("lock_goes_with_its_process"))
def goes_with_process(d, side):
    path = file_in(d)

    def take():
        lock(os.open(path, os.O_RDWR), EX)
    equal(elsewhere(take), 0, "taken by who ends at once")
    equal(would(side(path), EX), 0, "afterwards")


@each(sides("lock_is_told_of"))
def told_of(d, side):
    path = file_in(d)
    with opened(path, os.O_RDWR) as fd:
        lock(fd, SH, 100, 50)
        def ask():
            with opened(side(path), os.O_RDWR) as other:
                equal(holder(other), (fcntl.F_RDLCK, 100, 50), "who it is")
                equal(holder(other, fcntl.F_RDLCK), None, "for a reader")
                equal(holder(other, start=150), None, "behind it")
        equal(elsewhere(ask), 0, "the other process")
        equal(holder(fd), None, "one's own is not in one's way")


@each(sides("lock_wait_ends"), seconds=100)
def wait_ends(d, side):
    """Who waits for a lock gets it once it is free, and not before."""
    path = file_in(d)
    with opened(path, os.O_RDWR) as fd:
        lock(fd, EX)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                with opened(side(path), os.O_RDWR) as other:
                    fcntl.lockf(other, EX)
                    status = 0 if (d / "free").exists() else 2
            finally:
                os._exit(status)
        time.sleep(0.3)
        equal(os.waitpid(pid, os.WNOHANG), (0, 0), "it waits")
        (d / "free").touch()
        lock(fd, UN)
        equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0,
              "the one that waited")


@case()
def lock_wait_is_interrupted(d):
    path = file_in(d)
    with opened(path, os.O_RDWR) as fd:
        lock(fd, EX)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            fcntl.lockf(os.open(path, os.O_RDWR), EX)
            os._exit(0)
        equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]),
              -signal.SIGALRM, "how it ended")
        lock(fd, UN)
        equal(would(path, EX), 0, "no lock stays behind")


@case()
def lock_needs_the_right_descriptor(d):
    path = file_in(d)
    with opened(path, os.O_RDONLY) as fd:
        refused(errno.EBADF, lock, fd, EX)
        lock(fd, SH)
    with opened(path, os.O_WRONLY) as fd:
        refused(errno.EBADF, lock, fd, SH)
        lock(fd, EX)


@case()
def lock_from_the_end_and_backwards(d):
    path = file_in(d)
    with opened(path, os.O_RDWR) as fd:
        fcntl.lockf(fd, EX | NB, 10, -20, os.SEEK_END)      # 980 to 989
        equal([would(path, EX, at, 1) for at in (979, 980, 989, 990)],
              [0, "busy", "busy", 0], "around it")
        lock(fd, UN)
        fcntl.lockf(fd, EX | NB, -10, 100)                  # 90 to 99
        equal([would(path, EX, at, 1) for at in (89, 90, 99, 100)],
              [0, "busy", "busy", 0], "around it, length -10")
        refused(errno.EINVAL, lock, fd, EX, 5, -10)


@case()
def a_hundred_locks(d):
    path = file_in(d)
    with opened(path, os.O_RDWR) as fd:
        for at in range(0, 1000, 10):
            lock(fd, EX, at, 5)
        drop_caches()
        other = second_mount(d) / "file"
        equal([would(other, EX, at, 5) for at in (0, 5, 500, 505, 995)],
              ["busy", 0, "busy", 0, 0], "locks and gaps")
        lock(fd, UN, 0, 990)
        equal([would(other, EX, 0, 985), would(other, EX, 990, 5)],
              [0, "busy"], "at last")


@case()
def locks_at_the_largest_offsets(d):
    path = file_in(d)
    with opened(path, os.O_RDWR) as fd:
        for start, length in ((2**31 - 1, 2), (2**32 - 1, 2),
                              (2**63 - 2, 1), (2**63 - 1, 1)):
            lock(fd, EX, start, length)
            equal(would(second_mount(d) / "file", EX, start, length),
                  "busy", f"{length} at {start}")
            lock(fd, UN, start, length)


@case()
def lock_and_io_of_another(d):
    """Locks are advice: reads and writes go on."""
    path = file_in(d)

    def use():
        with opened(second_mount(d) / "file", os.O_RDWR) as fd:
            os.pwrite(fd, b"written", 0)
            os.fsync(fd)
            equal(os.pread(fd, 7, 0), b"written", "content")
    with opened(path, os.O_RDWR) as fd:
        lock(fd, EX)
        equal(elsewhere(use), 0, "the other process")


# --- flock

def would_flock(path, kind):
    def ask():
        with opened(path, os.O_RDWR) as fd:
            fcntl.flock(fd, kind | NB)
    number = elsewhere(ask)
    return "busy" if number in BUSY else number


@each(sides("flock_is_exclusive"))
def flock_exclusive(d, side):
    path = file_in(d)
    with opened(path, os.O_RDWR) as fd:
        fcntl.flock(fd, EX)
        equal([would_flock(side(path), kind) for kind in (EX, SH)],
              ["busy", "busy"], "while it is held")
        fcntl.flock(fd, SH)
        equal([would_flock(side(path), kind) for kind in (EX, SH)],
              ["busy", 0], "after the downgrade")
        fcntl.flock(fd, UN)
        equal(would_flock(side(path), EX), 0, "after it")


@case()
def flock_belongs_to_the_open_file(d):
    """To a duplicate and a child too; it goes with the last of them."""
    path = file_in(d)
    fd = os.open(path, os.O_RDWR)
    fcntl.flock(fd, EX)
    second = os.dup(fd)
    os.close(fd)
    equal(would_flock(path, EX), "busy", "one descriptor is left")
    os.close(second)
    equal(would_flock(path, EX), 0, "none is left")


# --- locks of open files (F_OFD_SETLK)

def ofd(fd, kind, start=0, length=0):
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack(
        FLOCK, kind, os.SEEK_SET, start, length, 0))


@case()
def open_file_locks(d):
    """Two opens of one process exclude each other."""
    path = file_in(d)
    with opened(path, os.O_RDWR) as one, opened(path, os.O_RDWR) as two:
        ofd(one, fcntl.F_WRLCK, 0, 100)
        refused(BUSY, ofd, two, fcntl.F_WRLCK, 50, 100)
        ofd(two, fcntl.F_WRLCK, 100, 100)
        equal(would(path, EX, 0, 10), "busy", "for fcntl locks too")
        ofd(one, fcntl.F_UNLCK, 0, 100)
        ofd(two, fcntl.F_WRLCK, 0, 100)
