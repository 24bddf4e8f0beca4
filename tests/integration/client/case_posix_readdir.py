# SPDX-License-Identifier: LGPL-3.0-or-later
"""Names, and listing them while they come and go."""
import ctypes
import errno
import os
import random

from posix_helpers import (USER, as_user, check, fresh, libc, meanwhile,
                           one_of_each)
from registry import case, drop_caches, each, equal, opened, refused

libc.opendir.restype = ctypes.c_void_p
libc.opendir.argtypes = [ctypes.c_char_p]
libc.readdir.restype = ctypes.c_void_p
libc.readdir.argtypes = [ctypes.c_void_p]
libc.telldir.restype = ctypes.c_long
libc.telldir.argtypes = [ctypes.c_void_p]
libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
libc.rewinddir.argtypes = [ctypes.c_void_p]
libc.closedir.argtypes = [ctypes.c_void_p]
NAME_AT = 19            # of struct dirent


class Listing:
    """A DIR*, with its cookies."""

    def __init__(self, path):
        self.dir = libc.opendir(os.fsencode(path))
        assert self.dir, "opendir"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        libc.closedir(self.dir)

    def next(self):
        entry = libc.readdir(self.dir)
        return entry and ctypes.string_at(entry + NAME_AT)

    def rest(self):
        return list(iter(self.next, None))

    def tell(self):
        return libc.telldir(self.dir)

    def seek(self, cookie):
        libc.seekdir(self.dir, cookie)

    def rewind(self):
        libc.rewinddir(self.dir)


def filled(d, count):
    names = [b"entry-%05d" % n for n in range(count)]
    for name in names:
        os.mknod(os.fsencode(d) + b"/" + name, 0o600)
    drop_caches()
    return names


@case()
def listing_of_an_empty_directory(d):
    with Listing(d) as listing:
        equal(sorted(listing.rest()), [b".", b".."], "entries")


@case()
def listing_has_the_type_of_every_kind(d):
    paths = one_of_each(d)
    drop_caches()
    with os.scandir(d) as entries:
        for entry in entries:
            about = fresh(entry.path)
            equal(entry.inode(), about.ino, f"inode of {entry.name}")
            equal((entry.is_file(follow_symlinks=False),
                   entry.is_dir(follow_symlinks=False), entry.is_symlink()),
                  tuple(about.type == kind for kind in
                        (0o100000, 0o040000, 0o120000)), entry.name)
            paths.pop(entry.name.removeprefix("a-"))
    equal(paths, {}, "what was not listed")


@case(seconds=100)
def listing_cookies_are_stable(d):
    """seekdir() comes back to where telldir() was, though entries around
    it have come and gone."""
    filled(d, 600)
    with Listing(d) as listing:
        marks = [(listing.tell(), listing.next()) for _ in range(602)]
    for n in range(50):
        os.mknod(d / f"new-{n}", 0o600)
    gone = [mark[1] for mark in marks[::7] if mark[1] not in (b".", b"..")]
    for name in gone:
        os.unlink(os.fsencode(d) + b"/" + name)
    random.Random(3).shuffle(marks)
    drop_caches()
    with Listing(d) as listing:
        for cookie, name in marks[:80]:
            if name not in gone and name not in (b".", b".."):
                listing.seek(cookie)
                found = listing.next()
                while found.startswith(b"new-"):
                    found = listing.next()
                equal(found, name, f"the entry at {cookie:#x}")


@case()
def listing_starts_again(d):
    filled(d, 100)
    with Listing(d) as listing:
        equal(len(listing.rest()), 102, "entries")
        (d / "new").touch()
        listing.rewind()
        names = listing.rest()
        equal((len(names), b"new" in names), (103, True), "entries again")


@case()
def listing_while_all_is_removed(d):
    """As rm -r does it: one name read, one removed."""
    filled(d, 500)
    with Listing(d) as listing:
        while name := listing.next():
            if name not in (b".", b".."):
                os.unlink(os.fsencode(d) + b"/" + name)
    equal(os.listdir(d), [], "names at last")


@case()
def listing_while_names_are_renamed(d):
    """A file that is renamed all the time never is there twice under one
    name; the others are all seen."""
    filled(d, 300)

    def renamer():
        for n in range(60):
            os.rename(d / f"entry-{n:05}", d / f"moved-{n:05}")
    stay = {f"entry-{n:05}" for n in range(60, 300)}
    with meanwhile(renamer):
        for _ in range(5):
            seen = os.listdir(d)
            equal(len(seen), len(set(seen)), "names that are seen once")
            equal(stay - set(seen), set(), "names that were not seen")
    drop_caches()
    equal(sorted(os.listdir(d)), sorted(
        stay | {f"moved-{n:05}" for n in range(60)}), "names at last")


@case()
def listing_of_a_removed_directory(d):
    (d / "dir").mkdir()
    with opened(d / "dir", os.O_RDONLY | os.O_DIRECTORY) as fd:
        os.rmdir(d / "dir")
        try:
            equal(os.listdir(fd), [], "names")
        except OSError as err:
            equal(err.errno in (errno.ENOENT, errno.ESTALE), True,
                  f"error {err.strerror}")


@case()
def listing_without_search_permission(d):
    """r without x: names, and nothing else."""
    (d / "dir").mkdir()
    for n in range(20):
        (d / "dir" / f"{n}").touch()
    os.chown(d / "dir", USER, USER)
    (d / "dir").chmod(0o400)
    drop_caches()
    with as_user():
        equal(len(os.listdir(d / "dir")), 20, "names")
        refused(errno.EACCES, os.stat, d / "dir" / "3")


@case()
def listing_by_a_moved_position(d):
    """One descriptor, read by two processes in turn: each name once."""
    filled(d, 400)
    fd = os.open(d, os.O_RDONLY | os.O_DIRECTORY)
    buffer = ctypes.create_string_buffer(2048)
    seen = []
    while size := check(libc.syscall(217, fd, buffer, 2048)):   # getdents64
        at = 0
        while at < size:
            seen.append(ctypes.string_at(ctypes.addressof(buffer) + at + 19))
            at += int.from_bytes(buffer[at + 16:at + 18], "little")
    os.close(fd)
    equal((len(seen), len(set(seen))), (402, 402), "names, each once")


# --- names

ODD = {
    "every_byte": [bytes([n]) for n in range(1, 256) if n not in b"./"],
    "every_byte_at_the_end": [b"x" + bytes([n]) for n in range(1, 256)
                              if n != ord("/")],
    "dots": [b"...", b". ", b".. ", b"..a", b"a..", b".a", b" .", b"...."],
    "blanks": [b" ", b"  ", b"\t", b"\n", b"a\nb", b" a", b"a "],
    "shell": [b"*", b"?", b"[a]", b"$HOME", b"`id`", b"-rf", b"a|b", b"a;b",
              b"'", b'"', b"\\", b"a\\b", b"~", b"#", b"%s%n", b"&"],
    "unicode_forms": ["\u00e9".encode(), "e\u0301".encode(),
                      "\u212b".encode(), "\u00c5".encode()],
    "cases": [b"name", b"NAME", b"Name", b"nAME"],
    "not_utf8": [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"a\x80b",
                 b"\xf8\x88\x80\x80\x80", b"\xfe\xff"],
    "of_other_systems": [b"CON", b"con.txt", b"a:b", b"a:", b"NUL",
                         b".nfs", b".snapshot", b"name."],
    "longest": [b"a" * 255, b"b" * 254, "\u20ac".encode() * 85,
                b"\xff" * 255, b" " * 255],
}


@each({f"names_{name}": (names,) for name, names in ODD.items()})
def odd_names(d, names):
    """Made, listed, found, renamed and removed; none is another's."""
    top = os.fsencode(d)
    inodes = {}
    for name in names:
        os.mknod(top + b"/" + name, 0o600)
        inodes[name] = os.stat(top + b"/" + name).st_ino
    drop_caches()
    equal(sorted(os.listdir(top)), sorted(names), "names")
    equal({name: os.stat(top + b"/" + name).st_ino for name in names},
          inodes, "inodes")
    equal(len(set(inodes.values())), len(names), "files")
    for name in names[:10]:
        os.rename(top + b"/" + name, top + b"/is renamed")
        os.rename(top + b"/is renamed", top + b"/" + name)
    for name in names:
        os.unlink(top + b"/" + name)
    equal(os.listdir(d), [], "names at last")
