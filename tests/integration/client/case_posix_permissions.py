# SPDX-License-Identifier: LGPL-3.0-or-later
"""Who may do what, and the mode bits that are set and cleared on the way."""
import errno
import os
import stat

from posix_helpers import (GROUP, OTHER, USER, as_user, fresh, one_of_each)
from registry import case, drop_caches, each, equal, opened, refused

# A class of users: the shift of its three bits, and who belongs to it.
CLASSES = {
    "owner": (6, {"uid": USER, "gid": OTHER}),
    "group": (3, {"uid": OTHER, "gid": GROUP}),
    "supplementary_group": (3, {"uid": OTHER, "groups": (7, GROUP, 9)}),
    "others": (0, {"uid": OTHER}),
}
R, W, X = 4, 2, 1


def works(call, *args):
    try:
        result = call(*args)
    except PermissionError as err:
        equal(err.errno, errno.EACCES, "error")
        return False
    if isinstance(result, int) and not isinstance(result, bool):
        os.close(result)
    return result is not False


def create(path):
    with opened(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY):
        pass


def modes(shift):
    """Each right of one class; the other classes have the contrary, so
    that the wrong class shows."""
    for bits in range(8):
        mode = bits << shift
        for other in {0, 3, 6} - {shift}:
            mode |= (7 - bits) << other
        yield bits, mode


@each({f"file_mode_for_{name}": row for name, row in CLASSES.items()})
def file_mode(d, shift, who):
    path = d / "file"
    path.write_bytes(b"content")
    os.chown(path, USER, GROUP)
    for bits, mode in modes(shift):
        path.chmod(mode)
        with as_user(**who):
            got = [works(os.open, path, flags) for flags in
                   (os.O_RDONLY, os.O_WRONLY, os.O_RDWR,
                    os.O_WRONLY | os.O_TRUNC)]
            may = [os.access(path, how, effective_ids=True)
                   for how in (os.R_OK, os.W_OK, os.X_OK)]
        r, w, x = bool(bits & R), bool(bits & W), bool(bits & X)
        equal(got, [r, w, r and w, w], f"opened with mode {mode:o}")
        equal(may, [r, w, x], f"access() with mode {mode:o}")


@each({f"directory_mode_for_{name}": row for name, row in CLASSES.items()})
def directory_mode(d, shift, who):
    top = d / "dir"
    top.mkdir()
    for bits, _ in modes(shift):
        create(top / f"gone-{bits}")
    (top / "there").touch()
    os.chown(top, USER, GROUP)
    for bits, mode in modes(shift):
        top.chmod(mode)
        with as_user(**who):
            got = [works(os.listdir, top), works(os.lstat, top / "there"),
                   works(create, top / f"new-{bits}"),
                   works(os.mkdir, top / f"dir-{bits}"),
                   works(os.rename, top / f"gone-{bits}",
                         top / f"going-{bits}")]
            got.append(works(os.unlink, top / f"going-{bits}")
                       if got[-1] else False)
        r, x = bool(bits & R), bool(bits & X)
        wx = bool(bits & W) and x
        equal(got, [r, x, wx, wx, wx, wx],
              f"list, stat, create, mkdir, rename, unlink with {mode:o}")


@case()
def execute_permission(d):
    """A program runs by its x bit, and needs no r bit for that."""
    path = d / "program"
    with open("/bin/true", "rb") as source:
        path.write_bytes(source.read())

    def run():
        return os.spawnv(os.P_WAIT, path, ["program"])
    for mode, status in ((0o755, 0), (0o711, 0), (0o644, 127),
                         (0o666, 127)):
        path.chmod(mode)
        drop_caches()
        with as_user():
            equal(run(), status, f"its status with mode {mode:o}")


@case()
def root_may_all_but_execute(d):
    (d / "file").write_bytes(b"x")
    os.chown(d / "file", USER, USER)
    (d / "file").chmod(0)
    (d / "dir").mkdir()
    os.chown(d / "dir", USER, USER)
    (d / "dir").chmod(0)
    equal((d / "file").read_bytes(), b"x", "content")
    (d / "file").write_bytes(b"y")
    equal([os.access(d / "file", how) for how in
           (os.R_OK, os.W_OK, os.X_OK)], [True, True, False], "access()")
    (d / "dir" / "new").touch()
    equal(os.listdir(d / "dir"), ["new"], "names")


# --- directories that one may not write to

NEED_WRITE = {
    "create": lambda p: create(p / "new"),
    "mkdir": lambda p: os.mkdir(p / "new"),
    "mkfifo": lambda p: os.mkfifo(p / "new"),
    "mknod": lambda p: os.mknod(p / "new", stat.S_IFSOCK | 0o600),
    "symlink": lambda p: os.symlink("any", p / "new"),
    "link": lambda p: os.link(p / "there", p / "new"),
    "unlink": lambda p: os.unlink(p / "there"),
    "rmdir": lambda p: os.rmdir(p / "empty"),
    "rename_within": lambda p: os.rename(p / "there", p / "new"),
    "rename_out": lambda p: os.rename(p / "there", p.parent / "new"),
    "rename_in": lambda p: os.rename(p.parent / "mine", p / "new"),
}


@each({f"{name}_needs_write_permission": (name,) for name in NEED_WRITE})
def need_write(d, name):
    d.chmod(0o777)
    with as_user():
        top = d / "dir"
        top.mkdir()
        (top / "there").touch()
        (top / "empty").mkdir()
        (d / "mine").touch()
        top.chmod(0o555)
        refused(errno.EACCES, NEED_WRITE[name], top)
        equal(sorted(os.listdir(top)), ["empty", "there"], "names")
        top.chmod(0o755)
        NEED_WRITE[name](top)


# --- the sticky bit: only its owner, or the directory's, removes a name

STICKY = {
    "unlink": lambda d: os.unlink(d / "file"),
    "rmdir": lambda d: os.rmdir(d / "dir"),
    "rename_file": lambda d: os.rename(d / "file", d / "new"),
    "rename_directory": lambda d: os.rename(d / "dir", d / "new"),
    "rename_over": lambda d: os.rename(d / "mine", d / "file"),
    "rename_away": lambda d: os.rename(d / "file", d / "open" / "new"),
}


@each({f"sticky_{name}": (name,) for name in STICKY})
def sticky(d, name):
    os.chown(d, OTHER, OTHER)
    d.chmod(0o1777)
    (d / "file").touch()
    (d / "dir").mkdir()
    (d / "open").mkdir()
    (d / "open").chmod(0o777)
    with as_user():
        (d / "mine").touch()
        refused((errno.EPERM, errno.EACCES), STICKY[name], d)
        os.unlink(d / "mine")
        (d / "mine").touch()
    with as_user(OTHER):        # it is his directory
        if name != "rename_directory":      # which is root's
            STICKY[name](d)


# --- chmod, chown, utime: whose file it is

@case()
def chmod_by_others_eperm(d):
    for kind, path in one_of_each(d).items():
        if kind != "symlink":
            path.chmod(0o666)
            with as_user():
                refused(errno.EPERM, os.chmod, path, 0o777)
            equal(oct(fresh(path).mode), "0o666", f"mode of {kind}")


@case()
def chmod_by_owner(d):
    for kind, path in one_of_each(d).items():
        if kind != "symlink":
            os.chown(path, USER, USER)
            with as_user():
                path.chmod(0o511)
            equal(oct(fresh(path).mode), "0o511", f"mode of {kind}")


@case()
def chmod_keeps_the_type(d):
    for kind, path in one_of_each(d).items():
        if kind != "symlink":
            before = fresh(path)
            path.chmod(0o7777)
            after = fresh(path)
            equal((after.type, after.mode), (before.type, 0o7777), kind)


@case()
def chmod_through_a_link(d):
    (d / "file").touch()
    os.symlink("file", d / "link")
    os.chmod(d / "link", 0o640)
    equal(oct(fresh(d / "file").mode), "0o640", "mode of the file")


@case()
def chmod_in_a_foreign_group_clears_setgid(d):
    (d / "file").touch()
    os.chown(d / "file", USER, GROUP)
    with as_user(USER, USER):
        os.chmod(d / "file", 0o2755)
    equal(oct(fresh(d / "file").mode), "0o755", "mode")
    with as_user(USER, USER, (GROUP,)):
        os.chmod(d / "file", 0o2755)
    equal(oct(fresh(d / "file").mode), "0o2755", "as a member of the group")


@case()
def sticky_bit_on_a_file(d):
    (d / "file").touch()
    os.chown(d / "file", USER, USER)
    with as_user():
        os.chmod(d / "file", 0o1644)    # Linux has no use for it and no
    equal(oct(fresh(d / "file").mode), "0o1644", "mode")    # objection


@case()
def chown_to_another_eperm(d):
    for kind, path in one_of_each(d).items():
        os.lchown(path, USER, USER)
        with as_user():
            refused(errno.EPERM, os.lchown, path, OTHER, -1)
            refused(errno.EPERM, os.lchown, path, USER, GROUP)
        with as_user(OTHER):
            refused(errno.EPERM, os.lchown, path, OTHER, -1)
            refused(errno.EPERM, os.lchown, path, -1, OTHER)
        equal((fresh(path).uid, fresh(path).gid), (USER, USER), kind)


@case()
def chown_to_an_own_group(d):
    for kind, path in one_of_each(d).items():
        os.lchown(path, USER, USER)
        with as_user(USER, USER, (GROUP,)):
            os.lchown(path, USER, GROUP)
        equal((fresh(path).uid, fresh(path).gid), (USER, GROUP), kind)
        with as_user():
            os.lchown(path, -1, USER)
        equal((fresh(path).uid, fresh(path).gid), (USER, USER), kind)


@case()
def chown_of_the_link_itself(d):
    (d / "file").touch()
    os.symlink("file", d / "link")
    os.lchown(d / "link", USER, GROUP)
    os.chown(d / "link", OTHER, OTHER)
    link, file = fresh(d / "link"), fresh(d / "file")
    equal((link.uid, link.gid, file.uid, file.gid),
          (USER, GROUP, OTHER, OTHER), "owners")


# What takes the set-id bits away: what is done to the file as its owner.
def chown_same(path):
    os.chown(path, USER, GROUP)


def write(path):
    with opened(path, os.O_WRONLY) as fd:
        os.write(fd, b"x")


def write_direct(path):
    with opened(path, os.O_WRONLY | os.O_DIRECT) as fd:
        os.write(fd, b"x" * 4096)


def shorten(path):
    os.truncate(path, 10)


def lengthen(path):
    os.truncate(path, 10_000)


def open_to_truncate(path):
    with opened(path, os.O_WRONLY | os.O_TRUNC):
        pass


SET_ID = {"chown": chown_same, "write": write, "direct_write": write_direct,
          "truncate_down": shorten, "truncate_up": lengthen,
          "o_trunc": open_to_truncate}


def privileged(d):
    path = d / "program"
    path.write_bytes(b"p" * 100)
    os.chown(path, USER, USER)
    path.chmod(0o6777)
    equal(oct(fresh(path).mode), "0o6777", "mode before")
    return path


@each({f"{name}_by_owner_clears_set_id": (act,)
       for name, act in SET_ID.items()})
def owner_clears(d, act):
    path = privileged(d)
    with as_user(USER, USER, (GROUP,)):
        act(path)
    equal(oct(fresh(path).mode), "0o777", "mode after")


@each({f"{name}_by_others_clears_set_id": (act,)
       for name, act in SET_ID.items() if name != "chown"})
def others_clear(d, act):
    path = privileged(d)
    with as_user(OTHER):
        act(path)
    equal(oct(fresh(path).mode), "0o777", "mode after")


@case()
def chown_by_root_clears_set_id(d):
    path = privileged(d)
    os.chown(path, OTHER, GROUP)
    about = fresh(path)
    equal((oct(about.mode), about.uid), ("0o777", OTHER), "mode and owner")


@case()
def chown_keeps_set_id_of_a_directory(d):
    (d / "dir").mkdir()
    (d / "dir").chmod(0o2775)
    os.chown(d / "dir", USER, GROUP)
    equal(oct(fresh(d / "dir").mode), "0o2775", "mode")


@case()
def write_keeps_setgid_without_execute(d):
    """Without x for the group the bit meant mandatory locking."""
    path = privileged(d)
    path.chmod(0o2767)
    with as_user(OTHER, OTHER, (USER,)):
        write(path)
    equal(oct(fresh(path).mode), "0o2767", "mode")


# --- utime

@case()
def utime_by_owner(d):
    for kind, path in one_of_each(d).items():
        os.lchown(path, USER, USER)
        with as_user():
            os.utime(path, ns=(10**18 + 1, 10**18 + 2),
                     follow_symlinks=False)
            about = fresh(path)
            equal((about.atime, about.mtime), (10**18 + 1, 10**18 + 2),
                  f"times of {kind}")


@case()
def utime_by_who_may_write(d):
    (d / "file").touch()
    (d / "file").chmod(0o666)
    with as_user():
        refused(errno.EPERM, os.utime, d / "file", ns=(10**18, 10**18))
        before = fresh(d / "file")
        os.utime(d / "file")
        after = fresh(d / "file")
    equal(after.mtime >= before.mtime, True, "mtime was set to now")


@case()
def utime_by_who_may_not_write(d):
    (d / "file").touch()
    (d / "file").chmod(0o644)
    with as_user():
        refused(errno.EACCES, os.utime, d / "file")
        refused(errno.EPERM, os.utime, d / "file", ns=(10**18, 10**18))


# --- what a new object gets

def make_all(d):
    with opened(d / "file", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o777):
        pass
    os.mkdir(d / "dir", 0o777)
    os.mkfifo(d / "fifo", 0o777)
    os.mknod(d / "socket", stat.S_IFSOCK | 0o777)
    os.symlink("any", d / "link")
    return [d / name for name in ("file", "dir", "fifo", "socket", "link")]


@each({f"umask_{mask:03o}": (mask,) for mask in (0, 0o22, 0o77, 0o137,
                                                 0o777)})
def umask(d, mask):
    old = os.umask(mask)
    try:
        paths = make_all(d)
    finally:
        os.umask(old)
    for path in paths[:-1]:
        equal(oct(fresh(path).mode), oct(0o777 & ~mask), path.name)
    equal(oct(fresh(paths[-1]).mode), "0o777", "mode of a link")


@case()
def new_objects_belong_to_their_maker(d):
    d.chmod(0o777)
    with as_user(USER, GROUP):
        paths = make_all(d)
    for path in paths:
        about = fresh(path)
        equal((about.uid, about.gid), (USER, GROUP), path.name)


@case()
def setgid_directory_gives_its_group(d):
    os.chown(d, OTHER, GROUP)
    d.chmod(0o2777)
    with as_user():
        paths = make_all(d)
    for path in paths:
        equal((fresh(path).uid, fresh(path).gid), (USER, GROUP), path.name)
    equal(bool(fresh(d / "dir").mode & stat.S_ISGID), True,
          "the new directory has the bit too")
    equal(bool(fresh(d / "fifo").mode & stat.S_ISGID), False,
          "a new fifo has not")


@case()
def create_setgid_in_a_foreign_group(d):
    """Who is no member of the group gets no program that runs as it."""
    os.chown(d, OTHER, GROUP)
    d.chmod(0o2777)
    old = os.umask(0)
    try:
        with as_user(), opened(d / "file", os.O_CREAT | os.O_WRONLY,
                               0o2777):
            pass
    finally:
        os.umask(old)
    about = fresh(d / "file")
    equal((oct(about.mode), about.gid), ("0o777", GROUP), "mode and group")


@case()
def create_with_special_bits(d):
    old = os.umask(0)
    try:
        for mode in (0o4755, 0o2755, 0o1777, 0o6711):
            with opened(d / f"{mode:o}", os.O_CREAT | os.O_WRONLY, mode):
                pass
            equal(oct(fresh(d / f"{mode:o}").mode), oct(mode), "mode")
        os.mkdir(d / "dir", 0o1777)
        equal(oct(fresh(d / "dir").mode), "0o1777", "mode of the directory")
    finally:
        os.umask(old)


@case()
def create_without_any_permission(d):
    """The descriptor of a new file works whatever its mode."""
    d.chmod(0o777)
    with as_user():
        with opened(d / "file", os.O_CREAT | os.O_RDWR, 0) as fd:
            os.write(fd, b"written")
            os.fsync(fd)
            equal(os.pread(fd, 100, 0), b"written", "read by it")
            os.ftruncate(fd, 3)
            equal(fresh(fd).size, 3, "size")
        refused(errno.EACCES, os.open, d / "file", os.O_RDONLY)


@case()
def open_descriptor_outlives_its_permission(d):
    """What POSIX promises to any descriptor, NFS can keep for the owner."""
    d.chmod(0o777)
    with as_user(), opened(d / "file", os.O_CREAT | os.O_RDWR, 0o600) as fd:
        os.fchmod(fd, 0)
        os.write(fd, b"written")
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        equal(os.pread(fd, 100, 0), b"written", "read by it")


@case()
def link_to_a_foreign_file(d):
    """To link one needs the directory, not the file (protected_hardlinks
    of Linux apart)."""
    d.chmod(0o777)
    (d / "file").write_bytes(b"x")
    (d / "file").chmod(0o666)
    with as_user():
        os.link(d / "file", d / "second")
    equal(fresh(d / "file").nlink, 2, "links")


@case()
def rename_of_a_foreign_directory(d):
    """Its ".." changes, so moving it needs write permission in it."""
    d.chmod(0o777)
    for name in ("dir", "one", "two"):
        (d / name).mkdir()
    (d / "one").chmod(0o777)
    (d / "two").chmod(0o777)
    (d / "one" / "sub").mkdir()
    (d / "one" / "mine").mkdir()
    os.chown(d / "one" / "mine", USER, USER)
    with as_user():
        os.rename(d / "one" / "sub", d / "one" / "within")
        refused((errno.EACCES, errno.EPERM), os.rename,
                d / "one" / "within", d / "two" / "moved")
        os.rename(d / "one" / "mine", d / "two" / "mine")
    equal(os.listdir(d / "two"), ["mine"], "names")
