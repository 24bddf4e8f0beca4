# SPDX-License-Identifier: LGPL-3.0-or-later
"""Names made, moved and removed by Linux's own client:
kernel_names.py DIRECTORY SIGNALS SEED

Runs in `lab client`.  Says "ready" in the folder SIGNALS, goes on until there
is "stop", then prints each thread's history, as JSON.  A request that the
crash hits is sent again by the kernel, so it may be refused: what ended when
there was "stop" counts as in flight.
"""
import json
import os
import random
import sys
import threading
import time
from pathlib import Path

from history import History

THREADS = 4
WARM = 8
FOLDERS = ("x", "y", "z")
REGULAR, DIRECTORY, SYMBOLIC_LINK, FIFO = 1, 2, 5, 7


class Thread(threading.Thread):
    """It has at most one name of each type at rest, so that each of the eight
    kinds has its turn."""

    def __init__(self, top, number, seed, stop):
        super().__init__()
        self.top = top
        self.number = number
        self.rng = random.Random(seed)
        self.stop = stop
        self.names = 0
        self.there = {}             # name: type
        self.history = History()
        self.error = None

    def run(self):
        try:
            while self.step(*self.next()):
                pass
        except Exception as err:  # noqa: BLE001 (told by whoever joins)
            self.error = f"{type(err).__name__}: {err}"

    def step(self, kind, change, call, *paths):
        """False: there is "stop"."""
        self.history.sent(change)
        try:
            call(*(self.top / path for path in paths))
        except OSError:
            if not self.stop.exists():
                raise
        if self.stop.exists():
            return False
        self.history.acknowledged(kind, change, time.monotonic())
        for name, value in change.items():
            self.there.pop(name, None)
            if value:
                self.there[name] = value[0]
        return True

    def next(self):
        """Kind, change, call and paths."""
        some = self.rng.sample(sorted(self.there), len(self.there))
        files = [name for name in some if self.there[name] == REGULAR]
        others = [name for name in some if self.there[name] != DIRECTORY]
        folders = [name for name in some if self.there[name] == DIRECTORY]
        new = self.new()
        kinds = ["create", "mkdir", "symlink", "mknod"]
        kinds += ["link"] * bool(files) + ["rename"] * bool(some)
        kinds += ["remove"] * bool(others) * (1 + len(others) // 4)
        kinds += ["rmdir"] * bool(folders) * (1 + len(folders) // 2)
        kind = self.rng.choice(kinds)
        made = {"create": (REGULAR, create), "mkdir": (DIRECTORY, os.mkdir),
                "symlink": (SYMBOLIC_LINK, symlink), "mknod": (FIFO, os.mkfifo)}
        if kind in made:
            number, call = made[kind]
            return kind, {new: [number, None]}, call, new
        if kind == "link":
            return kind, {new: [REGULAR, None]}, os.link, files[0], new
        if kind == "rename":
            return kind, {some[0]: None, new: [self.there[some[0]], None]}, \
                os.rename, some[0], new
        if kind == "remove":
            return kind, {others[0]: None}, os.unlink, others[0]
        return kind, {folders[0]: None}, os.rmdir, folders[0]

    def new(self):
        self.names += 1
        return f"{self.rng.choice(FOLDERS)}/linux-{self.number}-{self.names}"


def create(path):
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    try:
        os.close(fd)
    except OSError:
        pass        # a file that is lost cannot be closed


def symlink(path):
    os.symlink("nowhere", path)


def main():
    top, signals = Path(sys.argv[1]), Path(sys.argv[2])
    seed = int(sys.argv[3])
    stop = signals / "stop"
    threads = [Thread(top, number, seed + number, stop)
               for number in range(THREADS)]
    for thread in threads:
        thread.start()
    while any(len(t.history.kinds) < WARM and t.is_alive() for t in threads):
        time.sleep(0.02)
    (signals / "ready").touch()
    for thread in threads:
        thread.join()
    print(json.dumps({
        "histories": [vars(t.history) for t in threads],
        "errors": [t.error for t in threads if t.error]}), flush=True)


main()
