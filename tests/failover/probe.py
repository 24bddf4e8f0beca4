#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a client has open while its gateway fails:

    probe.py DIRECTORY SIGNALS NAME [may-lose]

Four threads read, write, open and lock, one request at a time.  Each notes
every request that took longer than PAUSE_S.  The folder SIGNALS gets
"NAME.json" again and again: counts, and the pauses as [begin, end] by the
clock.  A file "stop" ends it; then everything acknowledged must be there.
Any error ends it with status 1.

One lock is held all the time; writes go through the descriptor that has it.
Linux answers EIO on such a descriptor once the lock is lost.  That is an error,
or with may-lose the end of a hold: the lock is taken again.  "holds" are
[begin, end or null], "writes" when the last ones began that were answered.
"""
import collections
import contextlib
import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

PAUSE_S = 0.25
REST_S = 0.05
BLOCK, BLOCKS = 4096, 64
KEPT = 16               # names
WRITES = 1200           # a minute of them
FLAGS = os.O_RDWR | os.O_CREAT | os.O_DIRECT | os.O_SYNC
LOCKED_BYTES = 10


def block(number):
    return f"{number:32d}".encode() * (BLOCK // 32)


class Requests(threading.Thread):
    """One kind."""

    def __init__(self, folder, name, stop):
        super().__init__(daemon=True)
        self.path = folder / f"{name}-{self.kind}"
        self.stop = stop
        self.count = 0
        self.pauses = []
        self.wrong = None
        self.holds, self.writes = [], collections.deque(maxlen=WRITES)

    def run(self):
        try:
            self.begin()
            while not self.stop.is_set():
                began = time.time()
                self.request()
                ended = time.time()
                if ended - began > PAUSE_S:
                    self.pauses.append((began, ended))
                self.count += 1
                time.sleep(REST_S)
            self.check()
        except Exception as err:  # noqa: BLE001 (told as the last word)
            where = traceback.extract_tb(err.__traceback__)[-1]
            self.wrong = (f"{time.strftime('%T')} {self.kind}: "
                          f"{type(err).__name__}: {err} ({where.line})")

    def begin(self):
        """Before the first request."""

    def check(self):
        """After the last one."""


class Read(Requests):
    kind = "read"

    def begin(self):
        self.fd = os.open(self.path, FLAGS, 0o644)
        for number in range(BLOCKS):
            os.pwrite(self.fd, block(number), number * BLOCK)

    def request(self):
        number = self.count % BLOCKS
        data = os.pread(self.fd, BLOCK, number * BLOCK)
        if data != block(number):
            raise ValueError(f"block {number} holds {data[:32]!r}")


class Write(Requests):
    kind = "write"

    def begin(self):
        self.fd = os.open(self.path, FLAGS, 0o644)
        self.acknowledged = {}

    def request(self):
        where = self.count % BLOCKS
        if os.pwrite(self.fd, block(self.count), where * BLOCK) != BLOCK:
            raise ValueError("a short write")
        self.acknowledged[where] = self.count

    def check(self):
        fd = os.open(self.path, FLAGS)
        for where, number in self.acknowledged.items():
            data = os.pread(fd, BLOCK, where * BLOCK)
            if data != block(number):
                raise ValueError(f"acknowledged: {number}; block {where} "
                                 f"holds {data[:32]!r}")


class Open(Requests):
    kind = "open"

    def begin(self):
        self.path.mkdir(exist_ok=True)
        self.kept = []

    def request(self):
        """A new name, for which the server is asked."""
        path = self.path / str(self.count)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o644))
        self.kept.append(path)
        if len(self.kept) > KEPT:
            # Sent again, it may find its work done.
            self.kept.pop(0).unlink(missing_ok=True)

    def check(self):
        missing = {path.name for path in self.kept} - \
            set(os.listdir(self.path))
        if missing:
            raise ValueError(f"created, and not there: {missing}")


class Lock(Requests):
    """One lock comes and goes, another one stays."""

    kind = "lock"
    may_lose = "may-lose" in sys.argv[4:]

    def begin(self):
        self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        self.hold()

    def hold(self):
        self.held = os.open(f"{self.path}-held", FLAGS, 0o644)
        fcntl.lockf(self.held, fcntl.LOCK_EX | fcntl.LOCK_NB, LOCKED_BYTES, 0)
        self.holds.append([time.time(), None])

    def hold_again(self):
        """As soon as whoever has the lock gives it back."""
        self.holds[-1][1] = time.time()
        while not self.stop.is_set():
            # Once: its number may be another thread's then.
            lost, self.held = self.held, None
            with contextlib.suppress(OSError):
                if lost is not None:
                    os.close(lost)
            with contextlib.suppress(OSError):
                self.hold()
                break
            time.sleep(REST_S)

    def request(self):
        try:
            fcntl.lockf(self.fd, fcntl.LOCK_EX, LOCKED_BYTES, 0)
            fcntl.lockf(self.fd, fcntl.LOCK_UN, LOCKED_BYTES, 0)
            began = time.time()
            os.pwrite(self.held, block(self.count), 0)
            self.writes.append(began)
        except OSError as err:
            if not self.may_lose or err.errno != errno.EIO:
                raise
            self.hold_again()


def main():
    folder, signals, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    folder.mkdir(exist_ok=True)
    stop = threading.Event()
    kinds = [kind(folder, name, stop) for kind in (Read, Write, Open, Lock)]
    for kind in kinds:
        kind.start()
    said = signals / f"{name}.json"
    while True:
        ended = stop.wait(0.2)
        if ended:
            for kind in kinds:
                kind.join(90)
                if kind.is_alive():
                    kind.wrong = kind.wrong or f"{kind.kind}: does not end"
        words = json.dumps({
            kind.kind: {"count": kind.count, "pauses": list(kind.pauses),
                        "wrong": kind.wrong,
                        "holds": list(kind.holds),
                        "writes": list(kind.writes)}
            for kind in kinds})
        new = said.with_suffix(".new")
        new.write_text(words, encoding="utf-8")
        new.replace(said)
        if ended:
            break
        if (signals / "stop").exists() or any(k.wrong for k in kinds):
            stop.set()
    wrong = [kind.wrong for kind in kinds if kind.wrong]
    print("; ".join(wrong), flush=True)
    if wrong:
        subprocess.run("dmesg | grep -i nfs | tail -n 20", shell=True,
                       check=False, timeout=20)
    # A thread that hangs keeps nobody.
    os._exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
