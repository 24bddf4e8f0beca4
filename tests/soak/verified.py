#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Verified load in the kernel client, until told to stop:

    verified.py DIRECTORY SIGNALS steady|interrupted|slow [MOUNT ARGUMENTS]

Threads write blocks stably and read them back.  The folder SIGNALS, shared
with whoever started it, gets "progress", a count that grows; a file "stop"
ends the load, whose last words are one line of JSON.

"steady": any error ends it with status 1.  "interrupted": errors may come,
as long as files can be opened again afterwards and hold what was
acknowledged.  "slow": the same with two threads that pause after each step,
which leaves the CPU to others.  MOUNT ARGUMENTS, if any, are those of a
mount(8) first.
"""
import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

THREADS, SLOW_THREADS = 8, 2
BLOCKS = 64
BLOCK = 4096
PAUSE_S, SLOW_PAUSE_S = 0.05, 0.1
FLAGS = os.O_RDWR | os.O_CREAT | os.O_DIRECT | os.O_SYNC


def block(thread: int, number: int) -> bytes:
    return f"{thread:8d}{number:24d}".encode() * (BLOCK // 32)


class Load(threading.Thread):
    """One thread and its file."""

    def __init__(self, number: int, directory: Path, mode: str,
                 stop: threading.Event):
        super().__init__()
        self.number = number
        self.path = directory / f"file-{number}"
        self.steady = mode == "steady"
        self.pause_s = SLOW_PAUSE_S if mode == "slow" else 0
        self.stop = stop
        self.rng = random.Random(number)
        self.fd = -1
        # What each block may hold: an unanswered write may or may not have
        # come to pass.
        self.may_hold: dict[int, set[int]] = {}
        self.done = self.errors = 0
        self.longest_s = 0.0
        self.kinds: dict[str, int] = {}
        self.wrong: str | None = None

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                self.step()
                time.sleep(self.pause_s)
            self.verify_all()
        except Exception as err:  # noqa: BLE001 (told at the end of the load)
            self.wrong = f"{self.path.name}: {type(err).__name__}: {err}"
            self.stop.set()

    def step(self) -> None:
        begin = time.monotonic()
        try:
            self.open()
            self.write(self.rng.randrange(BLOCKS))
            self.check(self.rng.choice(list(self.may_hold)))
            self.done += 1
        except OSError as err:
            if self.steady:
                raise
            self.failed(err)
        self.longest_s = max(self.longest_s, time.monotonic() - begin)

    def open(self) -> None:
        if self.fd < 0:
            self.fd = os.open(self.path, FLAGS, 0o644)

    def failed(self, err: OSError) -> None:
        self.errors += 1
        self.kinds[err.strerror] = self.kinds.get(err.strerror, 0) + 1
        fd, self.fd = self.fd, -1
        if fd >= 0:
            try:
                os.close(fd)
            except OSError:
                pass
        time.sleep(PAUSE_S)

    def write(self, where: int) -> None:
        number = self.done + self.errors + 1
        allowed = self.may_hold.setdefault(where, {0})
        allowed.add(number)
        count = os.pwrite(self.fd, block(self.number, number),
                          where * BLOCK)
        if count != BLOCK:
            raise ValueError(f"{count} bytes written")
        self.may_hold[where] = {number}

    def check(self, where: int) -> None:
        data = os.pread(self.fd, BLOCK, where * BLOCK)
        for number in self.may_hold[where]:
            if data == block(self.number, number) or \
                    (number == 0 and not data.strip(b"\0")):
                return
        raise ValueError(f"block {where} holds {data[:32]!r}, wanted one of "
                         f"{sorted(self.may_hold[where])}")

    def verify_all(self) -> None:
        """In the end everything is there, by a new open."""
        end = time.monotonic() + 60
        while True:
            try:
                self.open()
                for where in self.may_hold:
                    self.check(where)
                os.close(self.fd)
                return
            except OSError as err:
                if self.steady or time.monotonic() > end:
                    raise
                self.failed(err)


def main() -> int:
    directory, signals = Path(sys.argv[1]), Path(sys.argv[2])
    if sys.argv[4:]:
        Path(sys.argv[-1]).mkdir(exist_ok=True)
        subprocess.run(["mount", *sys.argv[4:]], check=True)
    directory.mkdir(exist_ok=True)
    stop = threading.Event()
    mode = sys.argv[3]
    loads = [Load(number, directory, mode, stop)
             for number in range(SLOW_THREADS if mode == "slow" else THREADS)]
    for load in loads:
        load.start()
    while not stop.wait(0.2):
        (signals / "progress").write_text(
            str(min(load.done for load in loads)), encoding="ascii")
        if (signals / "stop").exists():
            stop.set()
    for load in loads:
        load.join()
    wrong = [load.wrong for load in loads if load.wrong]
    kinds: dict[str, int] = {}
    for load in loads:
        for kind, count in load.kinds.items():
            kinds[kind] = kinds.get(kind, 0) + count
    print(json.dumps({
        "done": sum(load.done for load in loads), "errors": kinds,
        "longest_s": round(max(load.longest_s for load in loads), 2),
        "wrong": wrong}), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
