# SPDX-License-Identifier: LGPL-3.0-or-later
"""Which times each call moves, of the object and of its directories."""
import ctypes
import errno
import functools
import mmap
import os
import stat
import time

from posix_helpers import (AT_FDCWD, USER, as_user, check, fresh, libc,
                           one_of_each, tick)
from registry import case, each, equal, opened, refused


def moved(paths, act):
    """Of each path: "m" and "c" where mtime and ctime have grown."""
    before = [fresh(path) for path in paths]
    tick()
    act()
    after = [fresh(path) for path in paths]
    return ["".join(letter for letter, name in (("m", "mtime"),
                                                ("c", "ctime"))
                    if getattr(new, name) > getattr(old, name))
            for old, new in zip(before, after)]


def with_fd(flags, act):
    def run(path):
        with opened(path, flags) as fd:
            act(fd)
    return run


def mapped(path):
    with opened(path, os.O_RDWR) as fd, mmap.mmap(fd, 100) as memory:
        memory[50:54] = b"mmap"
        memory.flush()


# name: kinds of objects, the call, what moves
ALL = ("file", "dir", "fifo", "char", "block", "socket")
ON_OBJECT = {
    "chmod": (ALL, lambda p: os.chmod(p, 0o711), "c"),
    "chmod_to_the_same": (ALL, lambda p: os.chmod(
        p, stat.S_IMODE(os.stat(p).st_mode)), "c"),
    "chown": (ALL, lambda p: os.chown(p, USER, USER), "c"),
    "lchown": (("symlink",), lambda p: os.lchown(p, USER, USER), "c"),
    "utime": (ALL, os.utime, "mc"),
    "link": (("file", "fifo", "symlink"), lambda p: os.link(
        p, str(p) + "-2", follow_symlinks=False), "c"),
    "write": (("file",), with_fd(os.O_WRONLY,
                                 lambda fd: os.write(fd, b"x")), "mc"),
    "stable_write": (("file",), with_fd(
        os.O_WRONLY | os.O_SYNC, lambda fd: os.write(fd, b"x")), "mc"),
    "direct_write": (("file",), with_fd(
        os.O_WRONLY | os.O_DIRECT,
        lambda fd: os.write(fd, b"x" * 4096)), "mc"),
    "empty_write": (("file",), with_fd(os.O_WRONLY,
                                       lambda fd: os.write(fd, b"")), ""),
    "mapped_write": (("file",), mapped, "mc"),
    "truncate_up": (("file",), lambda p: os.truncate(p, 1000), "mc"),
    "truncate_down": (("file",), lambda p: os.truncate(p, 10), "mc"),
    "truncate_to_the_same": (("file",),
                             lambda p: os.truncate(p, 100), "mc"),
    "ftruncate": (("file",), with_fd(
        os.O_WRONLY, lambda fd: os.ftruncate(fd, 77)), "mc"),
    "open_with_o_trunc": (("file",), with_fd(
        os.O_WRONLY | os.O_TRUNC, lambda fd: None), "mc"),
    "open_and_close": (("file", "dir"), with_fd(
        os.O_RDONLY, lambda fd: None), ""),
    "stat": (ALL, os.stat, ""),
    "read": (("file",), lambda p: p.read_bytes(), ""),
}


@each({f"times_of_{name}": row for name, row in ON_OBJECT.items()})
def times_of_object(d, kinds, act, wanted):
    paths = one_of_each(d)
    paths["file"].write_bytes(b"c" * 100)
    for kind in kinds:
        path = paths[kind]
        equal(moved([path], functools.partial(act, path)), [wanted],
              f"times that moved of a {kind}")


# name: the call; what moves of the directory, the sub-directory, the file
# in the directory ("-" where it is gone)
IN_DIRECTORY = {
    "create": (lambda d: os.close(os.open(
        d / "new", os.O_CREAT | os.O_RDWR)), ["mc", "", ""]),
    "mkdir": (lambda d: os.mkdir(d / "new"), ["mc", "", ""]),
    "mkfifo": (lambda d: os.mkfifo(d / "new"), ["mc", "", ""]),
    "mknod": (lambda d: os.mknod(d / "new", stat.S_IFSOCK),
              ["mc", "", ""]),
    "symlink": (lambda d: os.symlink("any", d / "new"), ["mc", "", ""]),
    "link_into": (lambda d: os.link(d / "file", d / "sub" / "new"),
                  ["", "mc", "c"]),
    "unlink_one_of_two": (lambda d: os.unlink(d / "second"),
                          ["mc", "", "c"]),
    "unlink": (lambda d: os.unlink(d / "other"), ["mc", "", ""]),
    "rmdir": (lambda d: os.rmdir(d / "empty"), ["mc", "", ""]),
    "open_of_an_existing": (lambda d: os.close(os.open(
        d / "file", os.O_CREAT | os.O_RDWR)), ["", "", ""]),
    "write_in_a_file": (lambda d: (d / "other").write_bytes(b"x"),
                        ["", "", ""]),
}


@each({f"directory_times_of_{name}": row
       for name, row in IN_DIRECTORY.items()})
def times_of_directory(d, act, wanted):
    for name in ("file", "other"):
        (d / name).touch()
    os.link(d / "file", d / "second")
    for name in ("sub", "empty"):
        (d / name).mkdir()
    equal(moved([d, d / "sub", d / "file"], lambda: act(d)), wanted,
          "times that moved")


@case()
def directory_times_of_rename(d):
    for name in ("one", "two", "three"):
        (d / name).mkdir()
    (d / "one" / "file").touch()
    paths = [d / name for name in ("one", "two", "three")]
    equal(moved(paths, lambda: os.rename(
        d / "one" / "file", d / "two" / "file")), ["mc", "mc", ""], "moved")
    equal(moved(paths, lambda: os.rename(
        d / "two" / "file", d / "two" / "new")), ["", "mc", ""], "within")


@case()
def times_of_a_file_that_lost_a_name_to_rename(d):
    for name in ("file", "other"):
        (d / name).touch()
    os.link(d / "file", d / "second")
    equal(moved([d / "second"], lambda: os.rename(
        d / "other", d / "file")), ["c"], "the link count changed")


@case()
def new_objects_have_the_time_of_now(d):
    before = time.time_ns()
    tick()
    for kind, path in one_of_each(d).items():
        about = fresh(path)
        for name in ("atime", "mtime", "ctime"):
            age = (getattr(about, name) - before) / 1e9
            equal(-0.1 < age < 20, True, f"{name} of a new {kind}: {age} s")


FAILING = {
    "mkdir": lambda d: refused(errno.EEXIST, os.mkdir, d / "file"),
    "rmdir": lambda d: refused(errno.ENOTEMPTY, os.rmdir, d / "full"),
    "unlink": lambda d: refused(errno.ENOENT, os.unlink, d / "none"),
    "symlink": lambda d: refused(errno.EEXIST, os.symlink, "a", d / "file"),
    "link": lambda d: refused(errno.EEXIST, os.link, d / "file",
                              d / "full"),
    "rename": lambda d: refused(errno.EISDIR, os.rename, d / "file",
                                d / "full"),
    "create": lambda d: refused(errno.EEXIST, os.open, d / "file",
                                os.O_CREAT | os.O_EXCL),
    "truncate": lambda d: refused(errno.EINVAL, os.truncate, d / "file",
                                  -1),
}


@each({f"no_times_of_failed_{name}": (act,)
       for name, act in FAILING.items()})
def failing(d, act):
    (d / "file").touch()
    (d / "full" / "sub").mkdir(parents=True)
    equal(moved([d, d / "file", d / "full"], lambda: act(d)),
          ["", "", ""], "times that moved")


@case()
def no_times_of_refused_chmod_and_chown(d):
    (d / "file").touch()

    def act():
        with as_user():
            refused(errno.EPERM, os.chmod, d / "file", 0o777)
            refused(errno.EPERM, os.chown, d / "file", USER, USER)
            refused(errno.EPERM, os.utime, d / "file", ns=(1, 1))
            refused(errno.EACCES, os.truncate, d / "file", 5)
    equal(moved([d / "file"], act), [""], "times that moved")


# --- values

NOW, OMIT = (1 << 30) - 1, (1 << 30) - 2


def set_times(path, atime, mtime):
    """utimensat with NOW or OMIT, which Python does not offer."""
    words = (ctypes.c_long * 4)(*(word for value in (atime, mtime)
                                  for word in ((0, value)
                                               if value in (NOW, OMIT)
                                               else divmod(value, 10**9))))
    check(libc.utimensat(AT_FDCWD, os.fsencode(path), words, 0))


@case()
def utime_of_one_time_only(d):
    path = d / "file"
    path.touch()
    os.utime(path, ns=(10**18, 10**18))
    set_times(path, 11 * 10**17, OMIT)
    equal((fresh(path).atime, fresh(path).mtime), (11 * 10**17, 10**18),
          "atime set")
    set_times(path, OMIT, 12 * 10**17)
    equal((fresh(path).atime, fresh(path).mtime),
          (11 * 10**17, 12 * 10**17), "mtime set")
    set_times(path, OMIT, NOW)
    about = fresh(path)
    equal((about.atime, about.mtime > 12 * 10**17), (11 * 10**17, True),
          "mtime set to now")
    set_times(path, NOW, 10**18)
    about = fresh(path)
    equal((about.atime > 12 * 10**17, about.mtime), (True, 10**18),
          "atime set to now")


@case()
def utime_of_neither(d):
    (d / "file").touch()
    equal(moved([d / "file"], lambda: set_times(d / "file", OMIT, OMIT)),
          [""], "times that moved")


def times_kept(d, seconds):
    times = (seconds * 10**9 + 123_456_789, seconds * 10**9 + 987_654_321)
    (d / "file").touch()
    os.utime(d / "file", ns=times)
    about = fresh(d / "file")
    equal((about.atime, about.mtime), times, "times")


# 32 bits, signed and unsigned, and what is past them
@each({"time_in_1970": (1,), "time_in_2038": (2**31 - 1,),
       "time_in_2040": (2**31 + 10**8,), "time_in_2106": (2**32 - 2,)})
def times_of_32_bits(d, seconds):
    times_kept(d, seconds)


# NFSv3 has unsigned 32-bit seconds (RFC 1813, 2.5, nfstime3).
@each({"time_before_1970": (-10**8, 0),
       "time_after_2106": (2**32 + 10**8, 2**32 - 1)},
      versions=("4.0", "4.1", "4.2"))
def times_of_64_bits(d, seconds, nearest):
    """Kept, or the nearest that the file system has; never another."""
    (d / "file").touch()
    os.utime(d / "file", ns=(seconds * 10**9, seconds * 10**9))
    about = fresh(d / "file")
    equal(about.mtime in (seconds * 10**9, nearest * 10**9), True,
          f"mtime {about.mtime}")
    equal(about.atime, about.mtime, "atime, the same")


@case()
def times_stand_still_when_nothing_happens(d):
    path = d / "file"
    path.write_bytes(b"x" * 5000)
    with opened(path, os.O_RDONLY) as fd:
        before = fresh(path)
        tick()
        os.pread(fd, 100, 0)
        os.lseek(fd, 0, os.SEEK_END)
        os.fsync(fd)
    after = fresh(path)
    equal((after.mtime, after.ctime), (before.mtime, before.ctime), "times")


@case()
def set_mtime_survives_the_close(d):
    """What was written before does not move an mtime that was set after."""
    path = d / "file"
    with opened(path, os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"x" * 100_000)
        os.utime(fd, ns=(10**18, 10**18))
    equal(fresh(path).mtime, 10**18, "mtime")


@case()
def ctime_cannot_be_set(d):
    path = d / "file"
    path.touch()
    before = fresh(path)
    tick()
    os.utime(path, ns=(10**18, 10**18))
    equal(fresh(path).ctime > before.ctime, True, "ctime is now")


@case()
def reading_marks_the_atime(d):
    path = d / "file"
    path.write_bytes(b"x" * 5000)
    os.utime(path, ns=(10**18, 10**18 + 1))     # older than its mtime
    with opened(path, os.O_RDONLY | os.O_DIRECT) as fd:
        os.pread(fd, 5000, 0)
    equal(fresh(path).atime > 10**18, True, "atime moved")
