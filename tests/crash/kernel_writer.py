# SPDX-License-Identifier: LGPL-3.0-or-later
"""Synchronous writes by Linux's own client:
kernel_writer.py DIRECTORY SIGNALS SEED

Runs in `lab client`.  Says "ready" in the folder SIGNALS, writes until there
is "stop", then prints what was acknowledged, as JSON.  Each thread has one
write in flight; the one that the crash hits is sent again by the kernel, so
in the end every write was acknowledged once.
"""
import json
import mmap
import os
import random
import sys
import threading
import time
from pathlib import Path

from ledger import BLOCK, stamped, tail_bytes

BLOCKS = 1024
OVERWRITERS = 4
WARM = 12
DIRECT = os.O_DIRECT | os.O_DSYNC


class Thread(threading.Thread):
    def __init__(self, path, flags, seed, stop):
        super().__init__()
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o644)
        self.rng = random.Random(seed)
        self.stop = stop
        self.writes = 0
        self.slowest = 0
        self.error = None

    def run(self):
        try:
            while not self.stop.exists():
                began = time.monotonic()
                self.step()
                self.slowest = max(self.slowest, time.monotonic() - began)
                self.writes += 1
        except Exception as err:  # noqa: BLE001 (told by whoever joins)
            self.error = f"{type(err).__name__}: {err}"

    def put(self, data, offset):
        if os.pwrite(self.fd, data, offset) != len(data):
            raise OSError("a short write")


class Overwriter(Thread):
    """Its blocks are those of its own remainder."""

    def __init__(self, path, number, seed, stop):
        super().__init__(path, DIRECT, seed, stop)
        self.number = number
        self.acknowledged = {}
        self.buffer = mmap.mmap(-1, BLOCK)

    def step(self):
        block = self.rng.randrange(BLOCKS // OVERWRITERS) * OVERWRITERS + \
            self.number
        stamp = self.writes + 1
        self.buffer[:] = stamped(1, block, stamp)
        self.put(self.buffer, block * BLOCK)
        self.acknowledged[block] = stamp


class Appender(Thread):
    def __init__(self, path, file, flags, seed, stop):
        super().__init__(path, flags, seed, stop)
        self.file = file
        self.end = 0
        self.aligned = bool(flags & os.O_DIRECT)

    def step(self):
        length = BLOCK * self.rng.randint(1, 4) if self.aligned else \
            self.rng.randint(1, 20_000)
        data = tail_bytes(self.file, self.end, self.end + length)
        if self.aligned:
            buffer = mmap.mmap(-1, length)
            buffer[:] = data
            data = buffer
        self.put(data, self.end)
        self.end += length
        if os.fstat(self.fd).st_size < self.end:
            raise AssertionError("the file is shorter than what was written")


def main():
    top, signals = Path(sys.argv[1]), Path(sys.argv[2])
    seed = int(sys.argv[3])
    stop = signals / "stop"
    overwriters = [Overwriter(top / "blocks", n, seed + n, stop)
                   for n in range(OVERWRITERS)]
    appenders = [Appender(top / "direct", 2, DIRECT, seed + 4, stop),
                 Appender(top / "synced", 3, os.O_SYNC, seed + 5, stop)]
    threads = overwriters + appenders
    for thread in threads:
        thread.start()
    while any(t.writes < WARM and t.is_alive() for t in threads):
        time.sleep(0.02)
    (signals / "ready").touch()
    for thread in threads:
        thread.join()
    print(json.dumps({
        "blocks": {b: s for t in overwriters
                   for b, s in t.acknowledged.items()},
        "direct": appenders[0].end, "synced": appenders[1].end,
        "writes": sum(t.writes for t in threads),
        "slowest": max(t.slowest for t in threads),
        "errors": [t.error for t in threads if t.error]}), flush=True)


main()
