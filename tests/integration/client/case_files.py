# SPDX-License-Identifier: LGPL-3.0-or-later
"""Create, write, append, truncate, rename, unlink."""
import errno
import os
import shutil

from registry import MIB, case, cold, drop_caches, equal, opened, refused


@case()
def create_write_read(d):
    data = os.urandom(300_001)
    (d / "file").write_bytes(data)
    equal((d / "file").read_bytes(), data, "from the page cache")
    equal(cold(d / "file"), data, "from the server")
    equal(os.stat(d / "file").st_size, len(data), "size")


@case()
def empty_file(d):
    (d / "file").touch()
    drop_caches()
    equal(os.stat(d / "file").st_size, 0, "size")
    equal(cold(d / "file"), b"", "content")


@case()
def append(d):
    path = d / "file"
    path.write_bytes(b"first\n")
    with open(path, "ab") as file:
        file.write(b"second\n")
    with opened(path, os.O_WRONLY | os.O_APPEND | os.O_SYNC) as fd:
        os.write(fd, b"third\n")
    # Linux' NFS client has no O_APPEND with O_DIRECT
    refused(errno.EINVAL, os.open, path,
            os.O_WRONLY | os.O_APPEND | os.O_DIRECT)
    equal(cold(path), b"first\nsecond\nthird\n", "content")


@case()
def truncate_down_and_up(d):
    path = d / "file"
    data = bytearray(os.urandom(5 * MIB + 77))
    path.write_bytes(data)
    for size in (4 * MIB + 1, 4 * MIB, 10_000, 9 * MIB + 5, 4097, 20_000, 0,
                 100):
        os.truncate(path, size)
        data = data[:size] + bytes(max(0, size - len(data)))
        equal(os.stat(path).st_size, size, "size")
        equal(cold(path), data, f"content after truncation to {size}")


@case()
def truncate_open_file(d):
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"x" * 8192)
        os.ftruncate(fd, 100)
        os.pwrite(fd, b"y" * 10, 200)
        equal(os.fstat(fd).st_size, 210, "size")
        wanted = b"x" * 100 + bytes(100) + b"y" * 10
        equal(os.pread(fd, 1000, 0), wanted, "from the page cache")
    equal(cold(d / "file"), wanted, "from the server")


@case()
def open_with_o_trunc(d):
    path = d / "file"
    path.write_bytes(b"a long first content" * 1000)
    with opened(path, os.O_WRONLY | os.O_TRUNC) as fd:
        os.write(fd, b"short")
    equal(cold(path), b"short", "content")


@case()
def exclusive_create(d):
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR
    with opened(d / "file", flags) as fd:
        os.write(fd, b"mine")
    refused(errno.EEXIST, os.open, d / "file", flags)
    equal(cold(d / "file"), b"mine", "content")
    refused(errno.ENOENT, os.open, d / "other", os.O_RDONLY)


@case()
def rename_file(d):
    (d / "old").write_bytes(b"content")
    inode = os.stat(d / "old").st_ino
    (d / "sub").mkdir()
    os.rename(d / "old", d / "new")
    equal(sorted(os.listdir(d)), ["new", "sub"], "names")
    os.rename(d / "new", d / "sub" / "newer")
    equal(os.listdir(d), ["sub"], "names in the old directory")
    drop_caches()
    equal(os.stat(d / "sub" / "newer").st_ino, inode, "inode")
    equal(cold(d / "sub" / "newer"), b"content", "content")
    refused(errno.ENOENT, os.rename, d / "absent", d / "any")


@case()
def rename_over_existing(d):
    (d / "a").write_bytes(b"the new one")
    (d / "b").write_bytes(b"the one that goes")
    os.rename(d / "a", d / "b")
    equal(os.listdir(d), ["b"], "names")
    equal(cold(d / "b"), b"the new one", "content")


@case()
def unlink(d):
    (d / "file").write_bytes(b"x")
    os.unlink(d / "file")
    equal(os.listdir(d), [], "names")
    refused(errno.ENOENT, os.stat, d / "file")
    refused(errno.ENOENT, os.unlink, d / "file")


@case()
def unlink_open_file(d):
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"still here")
        os.unlink(d / "file")
        refused(errno.ENOENT, os.stat, d / "file")
        drop_caches()
        equal(os.pread(fd, 100, 0), b"still here", "content")
        os.pwrite(fd, b"STILL", 0)
        equal(os.pread(fd, 100, 0), b"STILL here", "content")
    equal(os.listdir(d), [], "names after the close")


@case()
def rename_over_open_file(d):
    (d / "old").write_bytes(b"old content")
    (d / "new").write_bytes(b"new content")
    with opened(d / "old", os.O_RDONLY) as fd:
        os.rename(d / "new", d / "old")
        drop_caches()
        equal(os.pread(fd, 100, 0), b"old content", "through the old fd")
        equal(cold(d / "old"), b"new content", "through the name")
    equal(os.listdir(d), ["old"], "names after the close")


@case()
def copy(d):
    data = os.urandom(6 * MIB + 123)
    (d / "from").write_bytes(data)
    shutil.copyfile(d / "from", d / "to")
    equal(cold(d / "to"), data, "content of the copy")
