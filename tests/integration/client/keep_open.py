# SPDX-License-Identifier: LGPL-3.0-or-later
"""Files that stay open while something happens to Ganesha:
keep_open.py DIRECTORY SIGNALS

Writes stable data, says so by a file "ready" in the folder SIGNALS, waits
for "go", then uses every descriptor and every name again.  Ends with status
STALE if the server takes none of its handles any more.
"""
import errno
import os
import random
import sys
from pathlib import Path

from registry import (MIB, OBJECT, cold, drop_caches, equal, opened,
                      read_all, wait_for, write_at)


STALE = 70


def grow_stably(fd, seed, rounds=60):
    """Stable writes that each make the file longer, with holes."""
    rng = random.Random(seed)
    model = bytearray()
    for _ in range(rounds):
        data = rng.randbytes(rng.randint(1, 60_000))
        offset = len(model) + rng.choice((0, 0, 1, 5000))
        write_at(fd, data, offset)
        model += bytes(offset - len(model)) + data
    return model


class Files:
    def __init__(self, top):
        self.top = top
        top.mkdir()
        sync = os.O_SYNC
        flags = {"sync": sync, "direct": sync | os.O_DIRECT, "plain": 0}
        self.paths = {name: top / name for name in flags}
        self.fds = {name: os.open(self.paths[name],
                                  os.O_RDWR | os.O_CREAT | more)
                    for name, more in flags.items()}
        self.models = {name: grow_stably(fd, seed=len(name))
                       for name, fd in self.fds.items()}
        os.fsync(self.fds["plain"])
        # a last write past an object boundary: the size must survive too
        for name in ("sync", "direct"):
            offset = 2 * OBJECT + 12_345
            self.models[name] += bytes(offset - len(self.models[name]))
            self.models[name] += b"the very end"
            write_at(self.fds[name], b"the very end", offset)
        self._names()
        self.inodes = self._inodes()

    def _names(self):
        (self.top / "sub" / "deep").mkdir(parents=True)
        (self.top / "sub" / "deep" / "file").write_bytes(b"deep")
        os.symlink("sub/deep/file", self.top / "link")
        os.link(self.paths["sync"], self.top / "sub" / "second name")
        self.reader = os.open(self.top / "sub" / "deep" / "file", os.O_RDONLY)
        self.folder = os.open(self.top / "sub", os.O_RDONLY)
        os.sync()

    def _inodes(self):
        return {str(path): os.lstat(path).st_ino
                for path in sorted(self.top.rglob("*"))}

    def check(self):
        drop_caches()
        equal(self._inodes(), self.inodes, "inode numbers")
        equal(os.readlink(self.top / "link"), "sub/deep/file", "link")
        for name, fd in self.fds.items():
            equal(os.fstat(fd).st_size, len(self.models[name]),
                  f"size of {name}")
            equal(read_all(fd, MIB), self.models[name],
                  f"{name} through the open descriptor")
        equal(os.pread(self.reader, 100, 0), b"deep", "the reader")
        equal(sorted(os.listdir(self.folder)), ["deep", "second name"],
              "the open directory")

    def go_on(self):
        """Writing goes on, by the old descriptors and by new ones."""
        for name, fd in self.fds.items():
            write_at(fd, b"written afterwards", 1000)
            self.models[name][1000:1018] = b"written afterwards"
            write_at(fd, b"longer", len(self.models[name]))
            self.models[name] += b"longer"
        self.check()
        for name, fd in self.fds.items():
            os.close(fd)
            equal(cold(self.paths[name]), self.models[name],
                  f"{name} opened anew")
        with opened(self.top / "new", os.O_RDWR | os.O_CREAT | os.O_EXCL
                    ) as fd:
            os.write(fd, b"new")
        equal(cold(self.top / "new"), b"new", "a new file")


def main():
    top, signals = map(Path, sys.argv[1:])
    files = Files(top)
    (signals / "ready").touch()
    wait_for(signals / "go")
    drop_caches()
    try:
        os.lstat(top)
    except OSError as err:
        if err.errno != errno.ESTALE:
            raise
        print("kept open: stale handles")
        sys.exit(STALE)
    files.check()
    files.go_on()
    print("kept open: all well")


main()
