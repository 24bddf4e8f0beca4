# SPDX-License-Identifier: LGPL-3.0-or-later
"""Mode, owner, times, access rights, file system figures."""
import errno
import os
import stat
import time

from registry import (MIB, case, cold, drop_caches, equal, in_child, opened,
                      refused)

# Five digits on purpose: Ganesha's name2id() reads the byte that follows an
# owner's name on the wire, which is padding, hence 0, only where the name's
# length is no multiple of four.  "4711" is now and then refused (BADOWNER).
USER = 47110


@case()
def chmod(d):
    (d / "file").touch()
    for mode in (0o600, 0o4755, 0o2711, 0o1777, 0o000, 0o644):
        os.chmod(d / "file", mode)
        drop_caches()
        equal(oct(stat.S_IMODE(os.stat(d / "file").st_mode)), oct(mode),
              "mode")


@case()
def chown(d):
    (d / "file").touch()
    os.chown(d / "file", USER, USER + 1)
    drop_caches()
    about = os.stat(d / "file")
    equal((about.st_uid, about.st_gid), (USER, USER + 1), "owner")
    os.chown(d / "file", -1, 7)
    drop_caches()
    about = os.stat(d / "file")
    equal((about.st_uid, about.st_gid), (USER, 7), "owner")


@case()
def set_times(d):
    (d / "file").touch()
    times = (1_000_000_000_123_456_789, 1_600_000_000_987_654_321)
    os.utime(d / "file", ns=times)
    drop_caches()
    about = os.stat(d / "file")
    equal((about.st_atime_ns, about.st_mtime_ns), times, "times")
    before = time.time() - 120
    os.utime(d / "file")
    drop_caches()
    about = os.stat(d / "file")
    equal(about.st_mtime > before and about.st_atime > before, True,
          "times set to now")


@case()
def write_changes_mtime(d):
    path = d / "file"
    path.write_bytes(b"x")
    os.utime(path, ns=(10**18, 10**18))
    with opened(path, os.O_WRONLY | os.O_SYNC) as fd:
        os.write(fd, b"y")
    drop_caches()
    about = os.stat(path)
    equal(about.st_mtime > 10**9 + 1, True, "mtime moved by a stable write")
    os.utime(path, ns=(10**18, 10**18))
    path.write_bytes(b"buffered")
    drop_caches()
    equal(os.stat(path).st_mtime > 10**9 + 1, True,
          "mtime moved by a buffered write")


@case()
def blocks_are_counted(d):
    (d / "file").write_bytes(bytes(range(256)) * 4096)
    drop_caches()
    equal(os.stat(d / "file").st_blocks * 512 >= MIB, True, "st_blocks")


@case()
def access_of_another_user(d):
    (d / "secret").write_bytes(b"mine")
    os.chmod(d / "secret", 0o600)
    (d / "open").write_bytes(b"all may read")
    os.chmod(d / "open", 0o644)
    os.chmod(d, 0o755)
    drop_caches()

    def stranger():
        refused(errno.EACCES, os.open, d / "secret", os.O_RDONLY)
        refused(errno.EACCES, os.open, d / "open", os.O_WRONLY)
        refused(errno.EACCES, os.mkdir, d / "new")
        refused(errno.EACCES, os.unlink, d / "secret")
        equal((d / "open").read_bytes(), b"all may read", "content")
    in_child(stranger, uid=USER)


@case()
def files_of_another_user(d):
    os.chmod(d, 0o777)

    def user():
        os.umask(0o022)
        (d / "file").write_bytes(b"of the user")
        (d / "dir").mkdir()
        os.symlink("file", d / "link")
        os.chmod(d / "file", 0o600)
        refused(errno.EPERM, os.chown, d / "file", 0, 0)
    in_child(user, uid=USER)
    drop_caches()
    for name in ("file", "dir", "link"):
        about = os.lstat(d / name)
        equal((about.st_uid, about.st_gid), (USER, USER), f"owner of {name}")
    equal(cold(d / "file"), b"of the user", "content")


@case()
def write_to_a_file_created_read_only(d):
    # git creates its objects so: mode 0444, then writes by the same fd
    os.chmod(d, 0o777)

    def create():
        name = d / f"object-{os.getuid()}"
        data = os.urandom(70_000)
        with opened(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o444) as fd:
            os.write(fd, data)
            os.fsync(fd)
            os.pwrite(fd, b"again", 10)
        equal(cold_or_not(name), data[:10] + b"again" + data[15:], "content")
        if os.getuid():
            refused(errno.EACCES, os.open, name, os.O_WRONLY)

    def cold_or_not(name):
        return cold(name) if os.getuid() == 0 else name.read_bytes()
    create()
    in_child(create, uid=USER)


@case()
def file_system_figures(d):
    (d / "file").write_bytes(b"x" * 100_000)
    about = os.statvfs(d)
    equal(about.f_blocks > 0, True, "blocks in all")
    equal(about.f_bavail <= about.f_bfree <= about.f_blocks, True,
          f"free blocks ({about})")
    equal(about.f_namemax, 255, "longest name")
    size = about.f_frsize * about.f_blocks
    equal(10 * MIB < size < 10**15, True, f"a size that can be ({size})")
