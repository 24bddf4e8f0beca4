# SPDX-License-Identifier: LGPL-3.0-or-later
"""Work that is checked, while the gateway loses its CephFS session:
eviction_work.py DIRECTORY SECONDS [FOLDER [nolocks]]

SECONDS 0: until SOME rounds after there is a file "stop" in FOLDER, by default
DIRECTORY's parent.  In a FOLDER that is given a file "ready" is made after SOME
rounds.  So there is work before what happens in between and after it, however
slow the machine is.  "nolocks": without them.

Stamped blocks written with O_DSYNC and read back past the page cache, appends,
renames, files made and removed, and a lock that is held all the time.  Any
error ends it.  Prints the number of rounds, the longest pause and all pauses
over 0.2 s with what paused, as JSON.
"""
import contextlib
import fcntl
import json
import mmap
import os
import random
import struct
import sys
import time
from pathlib import Path

from registry import equal

BLOCK, BLOCKS = 4096, 64
PAUSE_S = 0.2
SOME = 4
STAMP = struct.Struct("<QQ")


def stamped(number, round_):
    return (STAMP.pack(number, round_) * (BLOCK // STAMP.size))[:BLOCK]


class Work:
    def __init__(self, directory, locks):
        self.directory = directory
        flags = os.O_RDWR | os.O_CREAT
        self.writer = os.open(directory / "blocks", flags | os.O_DSYNC, 0o644)
        self.reader = os.open(directory / "blocks", os.O_RDONLY | os.O_DIRECT)
        self.log = os.open(directory / "log", flags | os.O_APPEND, 0o644)
        self.locked = os.open(directory / "locked", flags, 0o644)
        if locks:
            fcntl.lockf(self.locked, fcntl.LOCK_EX | fcntl.LOCK_NB, 100, 0)
        self.aligned = mmap.mmap(-1, BLOCK)
        self.newest = {}
        self.lines = 0
        self.random = random.Random(3)

    def write(self, round_):
        number = self.random.randrange(BLOCKS)
        data = stamped(number, round_)
        equal(os.pwrite(self.writer, data, number * BLOCK), BLOCK, "written")
        self.newest[number] = round_

    def read(self, _):
        number = self.random.choice(list(self.newest))
        equal(os.preadv(self.reader, [self.aligned], number * BLOCK), BLOCK,
              "bytes read")
        equal(self.aligned[:], stamped(number, self.newest[number]),
              f"block {number}")

    def append(self, round_):
        os.write(self.log, b"%015d\n" % round_)
        os.fsync(self.log)
        self.lines += 1
        equal(os.fstat(self.log).st_size, 16 * self.lines, "size of the log")

    def rename(self, round_):
        one, other = (self.directory / f"{word}{round_}"
                      for word in ("new", "renamed"))
        one.write_bytes(b"%d" % round_)
        # A RENAME or REMOVE may be done and its answer lost.  It is repeated
        # then, and finds nothing, as after a restart of the server.
        with contextlib.suppress(FileNotFoundError):
            one.rename(other)
        equal(other.read_bytes(), b"%d" % round_, "content after a rename")
        other.unlink(missing_ok=True)

    def lock(self, _):
        """One more beside the one that is held, data, and back."""
        fcntl.lockf(self.locked, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 200)
        os.pwrite(self.locked, b"locked", 0)
        os.fsync(self.locked)
        fcntl.lockf(self.locked, fcntl.LOCK_UN, 10, 200)

    def check(self):
        for number, round_ in self.newest.items():
            os.preadv(self.reader, [self.aligned], number * BLOCK)
            equal(self.aligned[:], stamped(number, round_), f"block {number}")
        equal(len((self.directory / "log").read_bytes()), 16 * self.lines,
              "bytes of the log")


def main():
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True)
    seconds = float(sys.argv[2])
    folder = Path(sys.argv[3]) if len(sys.argv) > 3 else directory.parent
    began = time.monotonic()
    rounds, longest, pauses = 0, 0.0, []
    after_stop = 0

    def goes_on():
        nonlocal after_stop
        if seconds:
            return time.monotonic() - began < seconds
        if after_stop or (folder / "stop").exists():
            after_stop += 1
        return after_stop <= SOME

    locks = sys.argv[4:] != ["nolocks"]
    work = Work(directory, locks)
    work.write(0)
    steps = [work.write, work.read, work.append, work.rename]
    if locks:
        steps.append(work.lock)
    while goes_on():
        if rounds == SOME and folder != directory.parent:
            (folder / "ready").touch()
        rounds += 1
        for step in steps:
            step_began = time.monotonic()
            step(rounds)
            lasted = time.monotonic() - step_began
            longest = max(longest, lasted)
            if lasted > PAUSE_S:
                pauses.append((step.__name__, round(lasted, 2)))
    work.check()
    print(json.dumps({
        "rounds": rounds, "longest": round(longest, 2), "pauses": pauses}))


main()
