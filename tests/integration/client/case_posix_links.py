# SPDX-License-Identifier: LGPL-3.0-or-later
"""Links and their counts, rename, and names that go while a file is open."""
import ctypes
import errno
import functools
import mmap
import os
import time

from posix_helpers import (AT_FDCWD, KINDS, at_once, check, fresh, libc,
                           meanwhile, one_of_each)
from registry import case, cold, drop_caches, each, equal, opened, refused


# --- counts

@case()
def link_counts_of_every_kind(d):
    for kind, path in one_of_each(d).items():
        if kind == "dir":
            continue
        ino = fresh(path).ino
        second, third = d / f"{kind}-2", d / f"{kind}-3"
        os.link(path, second, follow_symlinks=False)
        os.link(second, third, follow_symlinks=False)
        for name in (path, second, third):
            about = fresh(name)
            equal((about.ino, about.nlink), (ino, 3), f"{kind}, three names")
        os.unlink(path)
        equal(fresh(third).nlink, 2, f"links of a {kind}, one gone")
        os.unlink(third)
        equal(fresh(second).nlink, 1, f"links of a {kind}, two gone")


@case()
def a_hundred_links(d):
    (d / "file").write_bytes(b"x")
    (d / "sub").mkdir()
    for n in range(99):
        os.link(d / "file", d / "sub" / f"{n}")
    equal(fresh(d / "file").nlink, 100, "links")
    for n in range(99):
        os.unlink(d / "sub" / f"{n}")
    equal(fresh(d / "file").nlink, 1, "links at last")


@case()
def attributes_are_shared_by_links(d):
    (d / "one").touch()
    os.link(d / "one", d / "two")
    os.chmod(d / "two", 0o600)
    os.truncate(d / "one", 4711)
    os.chown(d / "two", 47110, 47120)
    one, two = fresh(d / "one"), fresh(d / "two")
    equal(vars(one), vars(two), "attributes")
    equal((one.mode, one.size, one.uid), (0o600, 4711, 47110), "values")


@case()
def link_count_of_a_directory(d):
    """2 and one for each sub-directory, or 1 where nobody counts."""
    equal(fresh(d).nlink in (1, 2), True, f"empty: {fresh(d).nlink}")
    for n in range(3):
        (d / f"dir-{n}").mkdir()
        (d / f"file-{n}").touch()
    equal(fresh(d).nlink in (1, 5), True, f"with three: {fresh(d).nlink}")
    os.rename(d / "dir-0", d / "dir-1" / "moved")
    equal(fresh(d).nlink in (1, 4), True, f"with two: {fresh(d).nlink}")
    os.rmdir(d / "dir-2")
    equal(fresh(d).nlink in (1, 3), True, f"with one: {fresh(d).nlink}")


@case()
def link_count_of_an_open_file_without_name(d):
    """0; Linux' NFS client shows 1, its own name for the file."""
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.link(d / "file", d / "second")
        os.unlink(d / "file")
        equal(fresh(fd).nlink in (1, 2), True, "one name left")
        os.unlink(d / "second")
        equal(fresh(fd).nlink in (0, 1), True, "no name left")


# --- symbolic links

@each({f"symlink_of_{size}_bytes": (size,) for size in (1, 255, 1023, 4094)})
def symlink_target(d, size):
    target = ("t" * 99 + "/") * 41
    target = target[:size - 1] + "e"
    os.symlink(target, d / "link")
    drop_caches()
    equal(os.readlink(d / "link"), target, "target")
    equal(fresh(d / "link").size, size, "size")


@case()
def symlink_with_odd_bytes(d):
    for n, target in enumerate((b"\xff\xfe", b"a b\n\\", b"../..//./x", b"/",
                                "\u00e9\u20ac\U0001f40b".encode())):
        os.symlink(target, os.fsencode(d) + b"/%d" % n)
        drop_caches()
        equal(os.readlink(os.fsencode(d) + b"/%d" % n), target, "target")


@case()
def calls_on_the_link_itself(d):
    (d / "file").write_bytes(b"stays")
    os.symlink("file", d / "link")
    os.rename(d / "link", d / "moved")
    equal(os.readlink(d / "moved"), "file", "target after rename")
    os.link(d / "moved", d / "second", follow_symlinks=False)
    equal(fresh(d / "moved").nlink, 2, "links of the link")
    os.utime(d / "moved", ns=(10**18, 10**18), follow_symlinks=False)
    equal(fresh(d / "moved").mtime, 10**18, "its mtime")
    equal(fresh(d / "file").mtime > 10**18, True, "mtime of the file")
    os.unlink(d / "moved")
    os.unlink(d / "second")
    equal((d / "file").read_bytes(), b"stays", "the file")


@case()
def forty_links_in_a_row(d):
    (d / "link-0").write_bytes(b"at the end")
    for n in range(41):
        os.symlink(f"link-{n}", d / f"link-{n + 1}")
    equal((d / "link-40").read_bytes(), b"at the end", "past forty")
    refused(errno.ELOOP, os.stat, d / "link-41")


@case()
def open_creates_through_a_dangling_link(d):
    os.symlink("target", d / "link")
    (d / "link").write_bytes(b"x")
    equal(sorted(os.listdir(d)), ["link", "target"], "names")
    refused(errno.EEXIST, os.mkdir, d / "link")


@case()
def a_symlink_takes_its_name(d):
    """Linux sends these without a look for the name, if it does not know it."""
    (d / "file").touch()
    makers = {"dir": os.mkdir, "fifo": os.mkfifo,
              "symlink": functools.partial(os.symlink, "nowhere"),
              "link": functools.partial(os.link, d / "file")}
    for name in makers:
        os.symlink(f"made-{name}", d / name)
    drop_caches()
    for name, make in makers.items():
        refused(errno.EEXIST, make, d / name)
    equal(sorted(os.listdir(d)), sorted(["file", *makers]), "names")


# --- rename

@case()
def rename_of_every_kind(d):
    (d / "sub").mkdir()
    for kind, path in one_of_each(d).items():
        before = fresh(path)
        os.rename(path, d / "sub" / "new")
        after = fresh(d / "sub" / "new")
        equal((after.ino, after.type, after.nlink, after.mtime),
              (before.ino, before.type, before.nlink, before.mtime), kind)
        refused(errno.ENOENT, os.lstat, path)
        os.rename(d / "sub" / "new", path)
    equal(os.listdir(d / "sub"), [], "names")


@case()
def rename_over_every_kind(d):
    for kind, path in one_of_each(d).items():
        (d / "file").write_bytes(b"new")
        ino = fresh(d / "file").ino
        if kind == "dir":
            refused(errno.EISDIR, os.rename, d / "file", path)
            continue
        os.rename(d / "file", path)
        equal((fresh(path).ino, path.read_bytes()), (ino, b"new"), kind)
        refused(errno.ENOENT, os.lstat, d / "file")


@case()
def rename_directory_over_what_is_none(d):
    (d / "full").mkdir()
    for kind, path in one_of_each(d).items():
        if kind != "dir":
            refused(errno.ENOTDIR, os.rename, d / "full", path)
            equal(fresh(d / "full").type, fresh(d).type, "it stays")


@case()
def rename_over_an_empty_directory(d):
    (d / "one" / "sub").mkdir(parents=True)
    (d / "two").mkdir()
    ino = fresh(d / "one").ino
    os.rename(d / "one", d / "two")
    equal((os.listdir(d), os.listdir(d / "two")), (["two"], ["sub"]),
          "names")
    equal(fresh(d / "two").ino, ino, "inode")


@case()
def rename_over_a_full_directory(d):
    (d / "one").mkdir()
    (d / "two").mkdir()
    (d / "two" / "file").touch()
    refused((errno.ENOTEMPTY, errno.EEXIST), os.rename, d / "one",
            d / "two")
    equal(os.listdir(d / "two"), ["file"], "names")


@case()
def rename_into_itself(d):
    (d / "a" / "b" / "c").mkdir(parents=True)
    for below in ("b", "b/c", "new", "b/new", "b/c/new"):
        refused(errno.EINVAL, os.rename, d / "a", d / "a" / below)
    equal(os.listdir(d / "a"), ["b"], "names")


@case()
def rename_over_an_ancestor(d):
    (d / "a" / "b" / "c").mkdir(parents=True)
    (d / "a" / "b" / "file").touch()
    refused((errno.ENOTEMPTY, errno.EEXIST), os.rename,
            d / "a" / "b" / "c", d / "a")
    refused((errno.ENOTEMPTY, errno.EEXIST, errno.EISDIR), os.rename,
            d / "a" / "b" / "file", d / "a" / "b")


@case()
def rename_to_the_same_name(d):
    (d / "file").write_bytes(b"x")
    (d / "dir" / "sub").mkdir(parents=True)
    os.rename(d / "file", d / "file")
    os.rename(d / "dir", d / "dir")
    equal(sorted(os.listdir(d)), ["dir", "file"], "names")


@case()
def rename_to_another_name_of_the_same_file(d):
    """POSIX: nothing happens, both names stay."""
    (d / "one").write_bytes(b"x")
    os.link(d / "one", d / "two")
    os.rename(d / "one", d / "two")
    equal(sorted(os.listdir(d)), ["one", "two"], "names")
    equal(fresh(d / "one").nlink, 2, "links")


@case()
def rename_over_one_of_two_links(d):
    (d / "one").write_bytes(b"old")
    os.link(d / "one", d / "two")
    (d / "new").write_bytes(b"new")
    os.rename(d / "new", d / "one")
    equal(fresh(d / "two").nlink, 1, "links of the old file")
    equal((cold(d / "one"), cold(d / "two")), (b"new", b"old"), "contents")


@case()
def rename_changes_dot_dot(d):
    (d / "one" / "sub").mkdir(parents=True)
    (d / "two").mkdir()
    os.rename(d / "one" / "sub", d / "two" / "sub")
    drop_caches()
    equal(os.stat(d / "two" / "sub" / "..").st_ino, fresh(d / "two").ino,
          "inode of ..")


@case()
def rename_of_the_working_directory(d):
    (d / "one" / "sub").mkdir(parents=True)
    back = os.getcwd()
    os.chdir(d / "one" / "sub")
    try:
        os.rename(d / "one", d / "two")
        equal(os.getcwd(), str(d / "two" / "sub"), "working directory")
        with open("file", "w", encoding="ascii"):
            pass
    finally:
        os.chdir(back)
    equal(os.listdir(d / "two" / "sub"), ["file"], "names")


@case()
def rename_with_longest_names(d):
    long = ["a" * 255, "b" * 255]
    (d / long[0]).touch()
    os.rename(d / long[0], d / long[1])
    equal(os.listdir(d), [long[1]], "names")
    refused(errno.ENAMETOOLONG, os.rename, d / long[1], d / ("c" * 256))


def renameat2(old, new, flags):
    check(libc.renameat2(AT_FDCWD, os.fsencode(old), AT_FDCWD,
                         os.fsencode(new), ctypes.c_uint(flags)))


@case()
def rename_flags_are_obeyed_or_refused(d):
    """NFS has no such calls; what must not happen is a plain rename."""
    for flag in (1, 2):     # NOREPLACE, EXCHANGE
        (d / "one").write_bytes(b"one")
        (d / "two").write_bytes(b"two")
        try:
            renameat2(d / "one", d / "two", flag)
        except OSError as err:
            equal(err.errno in (errno.EINVAL, errno.EEXIST), True,
                  f"error {err.strerror}")
            wanted = (b"one", b"two")
        else:
            equal(flag, 2, "the flag of what went through")
            wanted = (b"two", b"one")
        equal(((d / "one").read_bytes(), (d / "two").read_bytes()), wanted,
              "contents")


@case()
def rename_replaces_at_once(d):
    """A name that is renamed over is never missing, never half."""
    (d / "name").write_bytes(b"0" * 1000)
    rounds = 60

    def writer():
        for n in range(rounds):
            (d / "new").write_bytes(b"%d" % (n % 10) * 1000)
            os.rename(d / "new", d / "name")
        (d / "end").touch()
    reads = 0
    with meanwhile(writer):
        while not (d / "end").exists() or not reads:
            data = (d / "name").read_bytes()
            equal((len(data), len(set(data))), (1000, 1), "length and kinds "
                  "of bytes")
            reads += 1
    equal(cold(d / "name"), b"9" * 1000, "content at last")


@case()
def rename_back_and_forth_of_two(d):
    """Two processes that rename the same names across: nothing is lost."""
    for name in ("one", "two"):
        (d / name).mkdir()
        (d / name / f"from-{name}").touch()

    def mover(source, target):
        def run():
            for _ in range(30):
                for name in ("from-one", "from-two"):
                    try:
                        os.rename(d / source / name, d / target / name)
                    except FileNotFoundError:
                        pass
        return run
    with meanwhile(mover("one", "two")):
        mover("two", "one")()
    drop_caches()
    equal(sorted(os.listdir(d / "one") + os.listdir(d / "two")),
          ["from-one", "from-two"], "names in both")


# --- names that go while the file is open

@case()
def unlink_open_file_and_use_the_name_again(d):
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as old:
        os.write(old, b"old content")
        os.unlink(d / "file")
        (d / "file").write_bytes(b"new")
        os.pwrite(old, b"OLD", 0)
        os.fsync(old)
        equal(os.pread(old, 100, 0), b"OLD content", "the old one")
        equal(cold(d / "file"), b"new", "the new one")
    equal(os.listdir(d), ["file"], "names")


@case()
def unlink_open_file_then_all_calls(d):
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.unlink(d / "file")
        os.write(fd, b"x" * 10_000)
        os.ftruncate(fd, 5000)
        os.fchmod(fd, 0o600)
        os.fchown(fd, 47110, 47110)
        os.utime(fd, ns=(10**18, 10**18))
        os.fsync(fd)
        about = fresh(fd)
        equal((about.size, about.mode, about.uid, about.mtime),
              (5000, 0o600, 47110, 10**18), "attributes")
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        equal(os.pread(fd, 10_000, 0), b"x" * 5000, "content")
    equal(os.listdir(d), [], "names")


@case()
def unlink_file_open_in_another_process(d):
    (d / "file").write_bytes(b"content")

    def reader():
        with opened(d / "file", os.O_RDONLY) as fd:
            (d / "opened").touch()
            end = time.monotonic() + 30
            while (d / "file").exists():
                assert time.monotonic() < end
                time.sleep(0.01)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            equal(os.pread(fd, 100, 0), b"content", "content")
    with meanwhile(reader):
        while not (d / "opened").exists():
            time.sleep(0.01)
        os.unlink(d / "file")
    equal(os.listdir(d), ["opened"], "names")


@case()
def unlink_open_file_of_two_descriptors(d):
    (d / "file").write_bytes(b"content")
    first = os.open(d / "file", os.O_RDONLY)
    with opened(d / "file", os.O_RDWR) as second:
        os.unlink(d / "file")
        os.close(first)
        os.posix_fadvise(second, 0, 0, os.POSIX_FADV_DONTNEED)
        equal(os.pread(second, 100, 0), b"content", "by the second")
        os.pwrite(second, b"C", 0)
        os.fsync(second)
    equal(os.listdir(d), [], "names")


@case()
def unlink_mapped_file(d):
    (d / "file").write_bytes(b"content")
    with opened(d / "file", os.O_RDWR) as fd:
        memory = mmap.mmap(fd, 7)
    os.unlink(d / "file")
    equal(memory[:], b"content", "through the map")
    memory[:3] = b"CON"
    memory.flush()
    equal(memory[:], b"CONtent", "after a write")
    memory.close()
    equal(os.listdir(d), [], "names")


@case()
def rmdir_after_an_open_file_was_closed(d):
    (d / "dir").mkdir()
    with opened(d / "dir" / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.unlink(d / "dir" / "file")
        os.write(fd, b"x")
    os.rmdir(d / "dir")
    equal(os.listdir(d), [], "names")


@case()
def rename_of_an_open_file(d):
    with opened(d / "old", os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"before ")
        os.rename(d / "old", d / "new")
        os.write(fd, b"after")
        os.fsync(fd)
        equal(cold(d / "new"), b"before after", "content")


@case()
def rename_over_an_open_file_of_many(d):
    """Each replaced file lives on in its descriptor."""
    fds = []
    for n in range(20):
        (d / "new").write_bytes(b"%d" % n)
        os.rename(d / "new", d / "name")
        fds.append(os.open(d / "name", os.O_RDONLY))
    drop_caches()
    for n, fd in enumerate(fds):
        equal(os.pread(fd, 100, 0), b"%d" % n, "content")
        os.close(fd)
    equal(os.listdir(d), ["name"], "names")


@case()
def rename_open_file_then_unlink(d):
    with opened(d / "old", os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"content")
        os.rename(d / "old", d / "new")
        os.unlink(d / "new")
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        equal(os.pread(fd, 100, 0), b"content", "content")
    equal(os.listdir(d), [], "names")


@case()
def rmdir_of_the_working_directory(d):
    (d / "dir").mkdir()
    back = os.getcwd()
    os.chdir(d / "dir")
    try:
        os.rmdir(d / "dir")
        refused((errno.ENOENT, errno.ESTALE), os.open, "new",
                os.O_CREAT | os.O_RDWR)
        refused((errno.ENOENT, errno.ESTALE), os.mkdir, "new")
    finally:
        os.chdir(back)


@case()
def rmdir_of_full_directories(d):
    for kind in KINDS:
        (d / "dir").mkdir(exist_ok=True)
        KINDS[kind](d / "dir" / kind)
        refused((errno.ENOTEMPTY, errno.EEXIST), os.rmdir, d / "dir")
        (os.rmdir if kind == "dir" else os.unlink)(d / "dir" / kind)
    os.rmdir(d / "dir")


# --- races where one must win

RACES = {
    "create": lambda d, n: os.close(os.open(
        d / "prize", os.O_CREAT | os.O_EXCL | os.O_WRONLY)),
    "mkdir": lambda d, n: os.mkdir(d / "prize"),
    "symlink": lambda d, n: os.symlink("any", d / "prize"),
    "link": lambda d, n: os.link(d / f"mine-{n}", d / "prize"),
    "mkfifo": lambda d, n: os.mkfifo(d / "prize"),
    "unlink": lambda d, n: os.unlink(d / "loot"),
    "rmdir": lambda d, n: os.rmdir(d / "lair"),
    "rename": lambda d, n: os.rename(d / "loot", d / f"taken-{n}"),
}


@each({f"race_of_{name}": (name,) for name in RACES})
def race(d, name):
    for n in range(4):
        (d / f"mine-{n}").touch()
    loser = errno.ENOENT if name in ("unlink", "rmdir", "rename") \
        else errno.EEXIST
    for turn in range(3):
        (d / "loot").touch()
        (d / "lair").mkdir(exist_ok=True)
        results = sorted(at_once(*(
            functools.partial(RACES[name], d, n) for n in range(4))))
        equal(results, [0] + [loser] * 3, f"turn {turn}: what they got")
        if (d / "prize").is_dir() and name == "mkdir":
            os.rmdir(d / "prize")
        elif os.path.lexists(d / "prize"):
            os.unlink(d / "prize")
