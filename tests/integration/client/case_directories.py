# SPDX-License-Identifier: LGPL-3.0-or-later
"""Directories, small and large."""
import errno
import os
import shutil

from posix_helpers import meanwhile
from registry import case, drop_caches, equal, refused

MANY = 10_000
CHANGED = 100         # one in so many; each waits for a listing's end


@case()
def make_and_remove_directories(d):
    os.mkdir(d / "sub", 0o750)
    drop_caches()
    equal(oct(os.stat(d / "sub").st_mode), oct(0o40750), "mode")
    refused(errno.EEXIST, os.mkdir, d / "sub")
    (d / "sub" / "file").touch()
    refused(errno.ENOTEMPTY, os.rmdir, d / "sub")
    refused(errno.ENOTDIR, os.rmdir, d / "sub" / "file")
    refused(errno.EISDIR, os.open, d / "sub", os.O_WRONLY)
    os.unlink(d / "sub" / "file")
    os.rmdir(d / "sub")
    equal(os.listdir(d), [], "names")
    refused(errno.ENOENT, os.rmdir, d / "sub")


@case()
def rename_directory(d):
    (d / "a" / "deep").mkdir(parents=True)
    (d / "a" / "deep" / "file").write_bytes(b"content")
    (d / "empty").mkdir()
    (d / "full" / "x").mkdir(parents=True)
    # POSIX allows either, and the NFS versions differ
    refused((errno.ENOTEMPTY, errno.EEXIST), os.rename, d / "a", d / "full")
    os.rename(d / "a", d / "empty")
    drop_caches()
    equal(sorted(os.listdir(d)), ["empty", "full"], "names")
    equal((d / "empty" / "deep" / "file").read_bytes(), b"content", "content")
    os.rename(d / "empty" / "deep", d / "full" / "x" / "moved")
    drop_caches()
    equal((d / "full" / "x" / "moved" / "file").read_bytes(), b"content",
          "content after the second move")
    equal(os.stat(d / "full" / "x" / "moved" / "..").st_ino,
          os.stat(d / "full" / "x").st_ino, "the new parent")
    refused(errno.EINVAL, os.rename, d / "full", d / "full" / "x" / "y")


@case()
def deep_tree(d):
    path = d
    for level in range(40):
        path = path / f"level{level}"
        path.mkdir()
        (path / "file").write_text(str(level))
    drop_caches()
    equal((path / "file").read_text(), "39", "content at the bottom")
    equal(sum(len(files) for _, _, files in os.walk(d)), 40, "files found")
    shutil.rmtree(d / "level0")
    equal(os.listdir(d), [], "names")


@case()
def listing_has_types_and_inodes(d):
    (d / "file").touch()
    (d / "dir").mkdir()
    os.symlink("file", d / "link")
    drop_caches()
    with os.scandir(d) as entries:
        seen = {e.name: (e.is_dir(follow_symlinks=False), e.is_symlink(),
                         e.inode()) for e in entries}
    equal(seen, {"file": (False, False, os.stat(d / "file").st_ino),
                 "dir": (True, False, os.stat(d / "dir").st_ino),
                 "link": (False, True, os.lstat(d / "link").st_ino)},
          "entries")


@case()
def listing_of_a_directory_that_changes(d):
    names = [f"file-{n:04}" for n in range(800)]
    for name in names:
        (d / name).touch()
    drop_caches()
    seen = []
    with os.scandir(d) as entries:
        for entry in entries:
            seen.append(entry.name)
            if entry.name.endswith("1"):
                os.unlink(entry.path)
    equal(len(seen), len(set(seen)), "names that are seen once")
    stay = {name for name in names if not name.endswith("1")}
    equal(stay - set(seen), set(), "names that were never seen")
    drop_caches()
    equal(set(os.listdir(d)), stay, "names at last")


@case(versions=("3", "4.2"), seconds=150)
def ten_thousand_entries(d):
    """Listed, and listed again while some come and others go: who is there
    all the time is seen, and once."""
    top = d / "dir"
    top.mkdir()
    names = [f"an-entry-of-some-length-{n:05}" for n in range(MANY)]
    for name in names:
        os.mkfifo(top / name)       # 1 ms; a file is created and closed in 4
    drop_caches()
    equal(sorted(os.listdir(top)), names, "names, each once")

    def change():
        for n in range(0, MANY, CHANGED):
            os.unlink(top / names[n])
            os.mknod(top / f"new-{n:05}", 0o644)
        (d / "end").touch()
    stay = {name for n, name in enumerate(names) if n % CHANGED}
    with meanwhile(change):
        while not (d / "end").exists():
            seen = os.listdir(top)
            equal(len(seen), len(set(seen)), "names that are seen once")
            equal(stay - set(seen), set(), "names that were not seen")
    drop_caches()
    equal(set(os.listdir(top)),
          stay | {f"new-{n:05}" for n in range(0, MANY, CHANGED)},
          "names at last")
