# SPDX-License-Identifier: LGPL-3.0-or-later
"""Snapshots by mkdir and rmdir in .snap, which is in no listing."""
import contextlib
import errno
import os
import subprocess

from registry import case, cold, drop_caches, equal, refused


@contextlib.contextmanager
def snapshot(folder, name):
    """Linux mounts what has another file system id by itself, and such a
    directory is no longer one that can be removed."""
    path = folder / ".snap" / name
    os.mkdir(path)
    try:
        yield path
    finally:
        for mounted in (path, path.parent):
            subprocess.run(["umount", mounted], check=True)
        os.rmdir(path)
        subprocess.run(["umount", path.parent], check=False,
                       stderr=subprocess.DEVNULL)


@case()
def snapshot_is_made_read_and_removed(d):
    (d / "sub").mkdir()
    (d / "sub" / "file").write_bytes(b"old" * 1000)
    os.symlink("sub/file", d / "link")
    with snapshot(d, "one") as one:
        (d / "sub" / "file").write_bytes(b"new")
        (d / "sub" / "later").touch()
        os.unlink(d / "link")
        equal(sorted(os.listdir(d)), ["sub"], "names now")
        equal(sorted(os.listdir(one)), ["link", "sub"], "names then")
        equal(os.listdir(one / "sub"), ["file"], "names in the folder then")
        equal(os.readlink(one / "link"), "sub/file", "the link then")
        equal(cold(one / "sub" / "file"), b"old" * 1000, "content then")
        equal(cold(d / "sub" / "file"), b"new", "content now")
        refused(errno.EROFS, os.mkdir, one / "new")
        refused(errno.EROFS, os.unlink, one / "sub" / "file")
        refused(errno.EROFS, os.rmdir, one / "sub")
        refused(errno.EROFS, os.symlink, "x", one / "new")
        equal(os.stat(one / "sub" / "file").st_size, 3000, "size then")
    drop_caches()
    refused(errno.ENOENT, os.stat, d / ".snap" / "one")
    equal(sorted(os.listdir(d / "sub")), ["file", "later"], "names at last")
    equal(cold(d / "sub" / "file"), b"new", "content at last")


@case()
def snapshots_are_many_and_listed(d):
    (d / "file").write_bytes(b"1")
    with snapshot(d, "one"):
        (d / "file").write_bytes(b"22")
        with contextlib.ExitStack() as after:
            two = d / ".snap" / "two"
            os.mkdir(two)
            after.callback(os.rmdir, two)
            after.callback(subprocess.run, ["umount", two], check=True)
            (d / "file").write_bytes(b"333")
            equal(sorted(os.listdir(d / ".snap")), ["one", "two"], "names")
            equal(cold(d / ".snap" / "one" / "file"), b"1", "the first")
            equal(cold(two / "file"), b"22", "the second")
            equal(cold(d / "file"), b"333", "the file")
            refused(errno.EEXIST, os.mkdir, two)
            refused((errno.ENOTEMPTY, errno.EBUSY, errno.EEXIST), os.rmdir,
                    d)
