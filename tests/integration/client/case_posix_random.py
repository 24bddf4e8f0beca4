# SPDX-License-Identifier: LGPL-3.0-or-later
"""Random calls, each judged: data by a model in memory, names by the same
calls on a local file system of the same kernel.
"""
import ctypes
import errno
import mmap
import os
import random
import stat
import tempfile
from pathlib import Path

from posix_helpers import GROUP, OTHER, USER, as_user, check, fresh, libc
from registry import cold, drop_caches, each, equal, opened

LARGEST = 400_000
PUNCH = 3               # with KEEP_SIZE


class File:
    """A file, its model, and the calls that change both."""

    def __init__(self, path, rng, flags):
        self.path, self.rng, self.flags = path, rng, flags
        self.model = bytearray()
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | flags)

    def span(self, most=60_000):
        at = self.rng.randrange(LARGEST)
        return at, self.rng.randrange(1, min(most, LARGEST - at) + 1)

    def store(self, at, data):
        if len(self.model) < at + len(data):
            self.model += bytes(at + len(data) - len(self.model))
        self.model[at:at + len(data)] = data

    def write(self):
        at, size = self.span()
        data = self.rng.randbytes(size)
        os.pwrite(self.fd, data, at)
        self.store(at, data)

    def read(self):
        at, size = self.span()
        equal(os.pread(self.fd, size, at), self.model[at:at + size],
              f"{size} bytes at {at}")

    def truncate(self):
        size = self.rng.choice((0, self.rng.randrange(LARGEST),
                                len(self.model)))
        if self.rng.random() < 0.5:
            os.ftruncate(self.fd, size)
        else:
            os.truncate(self.path, size)
        self.model[size:] = bytes(max(0, size - len(self.model)))

    def map_read(self):
        if self.model:
            with mmap.mmap(self.fd, len(self.model)) as memory:
                at, size = self.span()
                equal(memory[at:at + size], self.model[at:at + size],
                      f"{size} mapped bytes at {at}")

    def map_write(self):
        at, size = self.span()
        size = min(size, len(self.model) - at)
        if size > 0:
            data = self.rng.randbytes(size)
            with mmap.mmap(self.fd, len(self.model)) as memory:
                memory[at:at + size] = data
            self.model[at:at + size] = data

    def punch(self):
        at, size = self.span()
        try:
            check(libc.fallocate(self.fd, PUNCH, ctypes.c_int64(at),
                                 ctypes.c_int64(size)))
        except OSError as err:
            equal(err.errno, errno.EOPNOTSUPP, "error of punching a hole")
            return
        end = min(at + size, len(self.model))
        self.model[at:end] = bytes(max(0, end - at))

    def append(self):
        data = self.rng.randbytes(self.rng.randrange(1, 3000))
        if len(self.model) < LARGEST:
            with opened(self.path, os.O_WRONLY | os.O_APPEND) as fd:
                os.write(fd, data)
            self.model += data

    def sync(self):
        os.fsync(self.fd)

    def size(self):
        equal(os.fstat(self.fd).st_size, len(self.model), "size")
        equal(fresh(self.fd).size, len(self.model), "size on the server")

    def reopen(self):
        os.close(self.fd)
        self.fd = os.open(self.path, os.O_RDWR | self.flags)

    def forget(self):
        drop_caches()


PLAIN = ("write", "read", "truncate", "sync", "size", "reopen", "append")
MAPS = ("map_read", "map_write")


@each({
    "random_calls_buffered": (0, PLAIN + ("forget",), 700),
    "random_calls_direct": (os.O_DIRECT, PLAIN, 400),
    "random_calls_stable": (os.O_SYNC, PLAIN, 250),
    "random_calls_mapped": (0, PLAIN + MAPS, 500),
    "random_calls_with_holes": (0, PLAIN + MAPS + ("punch", "forget"), 500),
}, seconds=120)
def random_calls(d, flags, names, count):
    rng = random.Random(len(names) * count + flags)
    file = File(d / "file", rng, flags)
    done = []
    for _ in range(count):
        name = rng.choices(names, [6 if name in PLAIN[:3] + MAPS + (
            "punch",) else 1 for name in names])[0]
        done.append(name)
        try:
            getattr(file, name)()
        except Exception as err:
            raise AssertionError(
                f"call {len(done)}, after {done[-8:]}") from err
    os.close(file.fd)
    equal(cold(d / "file"), file.model, "content at last")


# --- names

def touch(d, a, b):
    os.close(os.open(d / a, os.O_CREAT | os.O_RDWR, 0o644))


def exclusive(d, a, b):
    os.close(os.open(d / a, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def write(d, a, b):
    with opened(d / a, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK) as fd:
        os.write(fd, b"w" * len(a))


NAMESPACE = {
    "touch": touch, "exclusive": exclusive, "write": write,
    "mkdir": lambda d, a, b: os.mkdir(d / a),
    "rmdir": lambda d, a, b: os.rmdir(d / a),
    "unlink": lambda d, a, b: os.unlink(d / a),
    "rename": lambda d, a, b: os.rename(d / a, d / b),
    "link": lambda d, a, b: os.link(d / a, d / b),
    "symlink": lambda d, a, b: os.symlink(os.path.basename(b), d / a),
    "mkfifo": lambda d, a, b: os.mkfifo(d / a),
    "chmod": lambda d, a, b: os.chmod(d / a, 0o700 + len(b)),
    "list": lambda d, a, b: sorted(os.listdir(d / a)),
    "readlink": lambda d, a, b: os.readlink(d / a),
    "truncate": lambda d, a, b: os.truncate(d / a, len(b)),
    "stat": lambda d, a, b: stat.S_IFMT(os.stat(d / a).st_mode),
}


def outcome(call, *args):
    try:
        return call(*args)
    except OSError as err:
        return err


def agree(one, other, name):
    """Results or errors that POSIX calls the same: where several errors
    hold, it does not say which one is told."""
    if not isinstance(one, OSError) or not isinstance(other, OSError):
        return one == other
    pair = {one.errno, other.errno}
    return len(pair) == 1 or \
        bool(pair & {errno.EACCES, errno.EPERM}) or \
        (name == "rename" and pair == {errno.EEXIST, errno.ENOTEMPTY})


def tree(top):
    """{path: type, mode, owner, links, content} of all below."""
    found = {}
    for folder, names, files in os.walk(top):
        for name in names + files:
            path = Path(folder) / name
            about = fresh(path)
            kind = about.type
            content = os.readlink(path) if kind == stat.S_IFLNK else \
                path.read_bytes() if kind == stat.S_IFREG else None
            found[str(path.relative_to(top))] = (
                oct(kind), oct(about.mode), about.uid, about.gid,
                None if kind == stat.S_IFDIR else about.nlink, content)
    return found


def some_path(rng):
    return "/".join(rng.choice("abcd") for _ in range(rng.choice((1, 2, 2,
                                                                  3))))


@each({f"random_names_{seed}": (seed, None) for seed in (1, 2, 3)} |
      {f"random_names_of_users_{seed}": (seed, (USER, OTHER))
       for seed in (4, 5, 6)}, seconds=120)
def random_names(d, seed, users):
    """The same calls here and in memory, the same results and errors."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as local:
        tops = [d, Path(local)]
        for top in tops:
            top.chmod(0o1777 if seed == 6 else 0o777)
        done = []
        for _ in range(400):
            name = rng.choice(list(NAMESPACE))
            paths = some_path(rng), some_path(rng)
            who = {"uid": rng.choice(users),
                   "groups": (GROUP,)} if users else {"uid": 0}
            done.append((name, *paths, who["uid"]))
            got = []
            for top in tops:
                with as_user(**who):
                    got.append(outcome(NAMESPACE[name], top, *paths))
            equal(agree(*got, name), True,
                  f"{done[-1]} after {done[-6:-1]}: {got[0]!r} and "
                  f"{got[1]!r} in memory")
        drop_caches()
        equal(tree(d), tree(Path(local)), "trees at last")
