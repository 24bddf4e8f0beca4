# SPDX-License-Identifier: LGPL-3.0-or-later
"""Symbolic and hard links, special files."""
import errno
import os
import stat

from registry import case, cold, drop_caches, equal, refused


@case()
def symlink(d):
    (d / "file").write_bytes(b"content")
    os.symlink("file", d / "link")
    drop_caches()
    equal(os.readlink(d / "link"), "file", "target")
    equal((d / "link").read_bytes(), b"content", "through the link")
    equal(stat.S_ISLNK(os.lstat(d / "link").st_mode), True, "type")
    equal(os.lstat(d / "link").st_size, 4, "its size")


@case()
def symlink_long_target(d):
    target = "/".join(["a" * 99] * 10)          # 999 characters
    os.symlink(target + "b", d / "link")
    drop_caches()
    equal(os.readlink(d / "link"), target + "b", "target")


@case()
def symlink_dangling_and_replaced(d):
    os.symlink("nowhere", d / "link")
    refused(errno.ENOENT, os.stat, d / "link")
    refused(errno.EEXIST, os.symlink, "other", d / "link")
    os.unlink(d / "link")
    os.symlink("other", d / "link")
    drop_caches()
    equal(os.readlink(d / "link"), "other", "target")


@case()
def hard_link(d):
    (d / "one").write_bytes(b"content")
    (d / "sub").mkdir()
    os.link(d / "one", d / "sub" / "two")
    drop_caches()
    first, second = os.stat(d / "one"), os.stat(d / "sub" / "two")
    equal(second.st_ino, first.st_ino, "inode")
    equal((first.st_nlink, second.st_nlink), (2, 2), "link counts")
    (d / "sub" / "two").write_bytes(b"changed")
    equal(cold(d / "one"), b"changed", "content through the other name")
    refused(errno.EEXIST, os.link, d / "one", d / "sub" / "two")
    os.unlink(d / "one")
    drop_caches()
    equal(os.stat(d / "sub" / "two").st_nlink, 1, "link count at last")
    equal(cold(d / "sub" / "two"), b"changed", "content at last")


@case()
def fifo(d):
    os.mkfifo(d / "fifo", 0o640)
    drop_caches()
    about = os.stat(d / "fifo")
    equal(stat.S_ISFIFO(about.st_mode), True, "type")
    equal(stat.S_IMODE(about.st_mode), 0o640, "mode")
    os.unlink(d / "fifo")
    equal(os.listdir(d), [], "names")


@case()
def device_nodes(d):
    os.mknod(d / "char", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.mknod(d / "block", stat.S_IFBLK | 0o600, os.makedev(7, 130))
    drop_caches()
    char, block = os.stat(d / "char"), os.stat(d / "block")
    equal((stat.S_ISCHR(char.st_mode), char.st_rdev),
          (True, os.makedev(1, 3)), "character device")
    equal((stat.S_ISBLK(block.st_mode), block.st_rdev),
          (True, os.makedev(7, 130)), "block device")
