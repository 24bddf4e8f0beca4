# SPDX-License-Identifier: LGPL-3.0-or-later
"""Reads and writes by many threads, all verified, errors recorded:
mixed_io.py FILE SIGNALS COUNT THREADS

Makes the file, half of it holes, says so by "ready" in the folder SIGNALS,
waits for "go", does COUNT reads and writes past the page cache, says so by
"done", waits for "check" and compares the whole file.  Every read and write
is a line [kind, offset, length, done, errno] in "record"; no two become the
same call.  A write must have written just as much as it says.
"""
import json
import os
import random
import sys
import threading
from pathlib import Path

from calls import OBJECT, all_calls_of
from registry import cold, difference, equal, opened, wait_for, write_at

REGION = 2 * OBJECT     # a thread's own
LARGEST = OBJECT


class Worker(threading.Thread):
    """Uses a region that nobody else does, so the model is exact."""

    def __init__(self, fd, number, model, count):
        super().__init__(daemon=True)
        self.fd = fd
        self.start_at = number * REGION
        self.model = model
        self.count = count
        self.rng = random.Random(number)
        self.record = []
        self.wrong = []

    def run(self):
        seen = set()
        while len(self.record) < self.count:
            kind = self.rng.choice(("read", "write"))
            length = int(2 ** self.rng.uniform(0, LARGEST.bit_length() - 1))
            offset = self.start_at + self.rng.randrange(REGION - length)
            calls = all_calls_of(kind, offset, length)
            if seen.isdisjoint(calls):
                seen.update(calls)
                self.one(kind, offset, length)

    def one(self, kind, offset, length):
        call = self.read if kind == "read" else self.write
        done = error = 0
        try:
            done = call(offset, length)
        except OSError as err:
            error = err.errno
        self.record.append([kind, offset, length, done, error])

    def read(self, offset, length):
        data = os.pread(self.fd, length, offset)
        wanted = self.model[offset:offset + length]
        if data != wanted:
            self.wrong.append(f"{length} bytes at {offset}: "
                              + difference(data, wanted))
        return len(data)

    def write(self, offset, length):
        data = self.rng.randbytes(length)
        done = os.pwrite(self.fd, data, offset)
        self.model[offset:offset + done] = data[:done]
        return done


def prepare(fd, size):
    """Every other object has data."""
    rng = random.Random(size)
    model = bytearray(size)
    os.ftruncate(fd, size)
    for offset in range(0, size, 2 * OBJECT):
        model[offset:offset + OBJECT] = rng.randbytes(OBJECT)
        write_at(fd, model[offset:offset + OBJECT], offset)
    return model


def main():
    path, signals = map(Path, sys.argv[1:3])
    count, threads = map(int, sys.argv[3:])
    with opened(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT) as fd:
        model = prepare(fd, threads * REGION)
        (signals / "ready").touch()
        wait_for(signals / "go")
        workers = [Worker(fd, number, model, count // threads)
                   for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    (signals / "record").write_text("".join(
        json.dumps(one) + "\n" for worker in workers
        for one in worker.record))
    (signals / "done").touch()
    wait_for(signals / "check")
    wrong = [what for worker in workers for what in worker.wrong]
    equal(wrong, [], "what was read wrongly")
    equal(cold(path), model, "the whole file at last")
    os.unlink(path)
    print("mixed: all well")


main()
