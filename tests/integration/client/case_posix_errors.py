# SPDX-License-Identifier: LGPL-3.0-or-later
"""Every call, and each way in which the path it is given is no good."""
import errno
import os
import stat

from posix_helpers import KINDS, as_user, one_of_each
from registry import case, each, equal, opened, refused


def touch(path, flags=os.O_RDWR | os.O_CREAT):
    os.close(os.open(path, flags, 0o644))


# name: what it does to a path, given a directory with a file "other"
CALLS = {
    "chdir": lambda d, p: os.chdir(p),
    "chmod": lambda d, p: os.chmod(p, 0o644),
    "chown": lambda d, p: os.chown(p, os.geteuid(), -1),
    "lchown": lambda d, p: os.lchown(p, os.geteuid(), -1),
    "link_from": lambda d, p: os.link(p, d / "spare"),
    "link_to": lambda d, p: os.link(d / "other", p),
    "list": lambda d, p: os.listdir(p),
    "lstat": lambda d, p: os.lstat(p),
    "mkdir": lambda d, p: os.mkdir(p),
    "mkfifo": lambda d, p: os.mkfifo(p),
    "mknod": lambda d, p: os.mknod(p, stat.S_IFSOCK | 0o644),
    "open_create": lambda d, p: touch(p),
    "open_read": lambda d, p: touch(p, os.O_RDONLY),
    "readlink": lambda d, p: os.readlink(p),
    "rename_from": lambda d, p: os.rename(p, d / "spare"),
    "rename_to": lambda d, p: os.rename(d / "other", p),
    "rmdir": lambda d, p: os.rmdir(p),
    "stat": lambda d, p: os.stat(p),
    "statvfs": lambda d, p: os.statvfs(p),
    "symlink": lambda d, p: os.symlink("any", p),
    "truncate": lambda d, p: os.truncate(p, 0),
    "unlink": lambda d, p: os.unlink(p),
    "utime": lambda d, p: os.utime(p),
}
CREATING = ("link_to", "mkdir", "mkfifo", "mknod", "open_create",
            "rename_to", "symlink")


def rows(suffix):
    return {f"{name}_{suffix}": (name,) for name in CALLS}


@each(rows("enoent"))
def missing(d, name):
    touch(d / "other")
    refused(errno.ENOENT, CALLS[name], d, d / "absent" / "name")
    refused(errno.ENOENT, CALLS[name], d, "")
    if name not in CREATING:
        refused(errno.ENOENT, CALLS[name], d, d / "absent")
    equal(os.listdir(d), ["other"], "names afterwards")


@each(rows("enotdir"))
def file_in_the_path(d, name):
    touch(d / "other")
    for kind in ("file", "fifo", "socket"):
        KINDS[kind](d / kind)
        refused(errno.ENOTDIR, CALLS[name], d, d / kind / "name")


@each(rows("enametoolong"))
def too_long(d, name):
    touch(d / "other")
    refused(errno.ENAMETOOLONG, CALLS[name], d, d / ("n" * 256))
    refused(errno.ENAMETOOLONG, CALLS[name], d, d / ("n" * 256) / "name")
    refused(errno.ENAMETOOLONG, CALLS[name], d,
            str(d) + "/." * 2048 + "/name")
    equal(os.listdir(d), ["other"], "names afterwards")


@each(rows("eloop"))
def links_in_a_circle(d, name):
    touch(d / "other")
    os.symlink("two", d / "one")
    os.symlink("one", d / "two")
    refused(errno.ELOOP, CALLS[name], d, d / "one" / "name")


@each(rows("eacces"))
def no_search_permission(d, name):
    d.chmod(0o777)
    with as_user():
        touch(d / "other")
        (d / "closed").mkdir()
        touch(d / "closed" / "there")
        (d / "closed").chmod(0o600)
        refused(errno.EACCES, CALLS[name], d, d / "closed" / "there")
        refused(errno.EACCES, CALLS[name], d, d / "closed" / "absent")
        (d / "closed").chmod(0o700)
        equal(os.listdir(d / "closed"), ["there"], "names afterwards")


# --- the name is taken

@each({f"{name}_eexist": (name,) for name in
       ("link_to", "mkdir", "mkfifo", "mknod", "symlink")})
def taken(d, name):
    touch(d / "other")
    for path in one_of_each(d).values():
        before = os.lstat(path)
        refused(errno.EEXIST, CALLS[name], d, path)
        equal(os.lstat(path).st_ino, before.st_ino, f"inode of {path.name}")


@case()
def open_exclusive_eexist(d):
    for path in one_of_each(d).values():
        refused(errno.EEXIST, os.open, path,
                os.O_RDWR | os.O_CREAT | os.O_EXCL)


# --- it is of the wrong kind

@case()
def open_directory_to_write(d):
    (d / "dir").mkdir()
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_CREAT,
                  os.O_WRONLY | os.O_TRUNC):
        refused(errno.EISDIR, os.open, d / "dir", flags)


@case()
def open_as_directory(d):
    for kind, path in one_of_each(d).items():
        if kind not in ("dir", "symlink"):
            refused(errno.ENOTDIR, os.open, path, os.O_DIRECTORY)


@case()
def open_link_without_following(d):
    touch(d / "file")
    os.symlink("file", d / "link")
    refused(errno.ELOOP, os.open, d / "link", os.O_RDONLY | os.O_NOFOLLOW)
    refused(errno.ELOOP, os.open, d / "link",
            os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW)


@case()
def open_fifo_and_socket(d):
    paths = one_of_each(d)
    refused(errno.ENXIO, os.open, paths["socket"], os.O_RDONLY)
    refused(errno.ENXIO, os.open, paths["fifo"],
            os.O_WRONLY | os.O_NONBLOCK)
    with opened(paths["fifo"], os.O_RDONLY | os.O_NONBLOCK) as reader, \
            opened(paths["fifo"], os.O_WRONLY) as writer:
        os.write(writer, b"through the kernel")
        equal(os.read(reader, 100), b"through the kernel", "from the fifo")


@case()
def open_device(d):
    with opened(one_of_each(d)["char"], os.O_RDWR) as fd:
        os.write(fd, b"to /dev/null")
        equal(os.read(fd, 100), b"", "from /dev/null")


@case()
def rmdir_of_what_is_no_directory(d):
    for kind, path in one_of_each(d).items():
        if kind != "dir":
            refused(errno.ENOTDIR, os.rmdir, path)


@case()
def unlink_of_a_directory(d):
    (d / "dir").mkdir()
    refused((errno.EISDIR, errno.EPERM), os.unlink, d / "dir")
    equal((d / "dir").is_dir(), True, "it is still there")


@case()
def link_of_a_directory(d):
    (d / "dir").mkdir()
    refused(errno.EPERM, os.link, d / "dir", d / "second")
    equal(os.listdir(d), ["dir"], "names")


@case()
def readlink_of_what_is_no_link(d):
    for kind, path in one_of_each(d).items():
        if kind != "symlink":
            refused(errno.EINVAL, os.readlink, path)


@case()
def truncate_of_what_is_no_file(d):
    paths = one_of_each(d)
    refused(errno.EISDIR, os.truncate, paths["dir"], 0)
    for kind in ("fifo", "socket", "char"):
        refused(errno.EINVAL, os.truncate, paths[kind], 0)


@case()
def list_of_what_is_no_directory(d):
    for kind, path in one_of_each(d).items():
        if kind not in ("dir", "symlink"):
            refused(errno.ENOTDIR, os.listdir, path)


# --- values and places that cannot be

@case()
def truncate_to_a_negative_size(d):
    (d / "file").write_bytes(b"stays")
    refused(errno.EINVAL, os.truncate, d / "file", -1)
    with opened(d / "file", os.O_RDWR) as fd:
        refused(errno.EINVAL, os.ftruncate, fd, -1)
    with opened(d / "file", os.O_RDONLY) as fd:
        refused((errno.EINVAL, errno.EBADF), os.ftruncate, fd, 0)
    equal((d / "file").read_bytes(), b"stays", "content")


@case()
def rmdir_of_dot(d):
    (d / "dir").mkdir()
    refused(errno.EINVAL, os.rmdir, str(d / "dir") + "/.")
    refused((errno.ENOTEMPTY, errno.EEXIST), os.rmdir,
            str(d / "dir") + "/..")


@case()
def rename_of_dot(d):
    (d / "dir").mkdir()
    for name in ("/.", "/.."):
        refused((errno.EBUSY, errno.EINVAL), os.rename,
                str(d / "dir") + name, d / "new")
        refused((errno.EBUSY, errno.EINVAL, errno.EEXIST), os.rename,
                d / "dir", str(d / "dir") + name)


@case()
def empty_symlink_target(d):
    refused(errno.ENOENT, os.symlink, "", d / "link")
    equal(os.listdir(d), [], "names")


@case()
def rename_and_link_to_another_file_system(d):
    touch(d / "file")
    refused(errno.EXDEV, os.rename, d / "file", "/run/moved")
    refused(errno.EXDEV, os.link, d / "file", "/run/linked")
    touch("/run/here")
    refused(errno.EXDEV, os.rename, "/run/here", d / "moved")
    refused(errno.EXDEV, os.link, "/run/here", d / "linked")
    equal(os.listdir(d), ["file"], "names")


@case()
def trailing_slashes(d):
    touch(d / "file")
    os.mkdir(f"{d}/dir/")
    os.rename(f"{d}/dir/", f"{d}/moved/")
    equal(sorted(os.listdir(d)), ["file", "moved"], "names")
    for call in (os.stat, os.unlink, os.listdir):
        refused(errno.ENOTDIR, call, f"{d}/file/")
    refused(errno.EISDIR, os.open, f"{d}/new/", os.O_CREAT | os.O_RDWR)
    refused(errno.ENOENT, os.symlink, "any", f"{d}/new/")
    refused(errno.ENOTDIR, os.rename, d / "file", f"{d}/new/")
    os.rmdir(f"{d}/moved/")
    equal(os.listdir(d), ["file"], "names at last")


@case()
def bad_access_mode_of_a_descriptor(d):
    touch(d / "file")
    with opened(d / "file", os.O_RDONLY) as fd:
        refused(errno.EBADF, os.write, fd, b"no")
    with opened(d / "file", os.O_WRONLY) as fd:
        refused(errno.EBADF, os.read, fd, 1)
    with opened(d, os.O_RDONLY) as fd:
        refused(errno.EISDIR, os.read, fd, 1)
