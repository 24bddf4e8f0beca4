# SPDX-License-Identifier: LGPL-3.0-or-later
"""Watches a ganesha.nfsd beside the fuzz: what it takes, and how long a client
that does nothing wrong waits."""
import re
import subprocess
import threading
import time

from lab_program import Sizes, say, sizes_of
from nfs import nfs3, rpc

CANARY_S = 5                # an answer has to be there by then
PAUSE_S = 0.05
TOLD_S = 300                # between two lines about the daemon
WARM_S = 60                 # or a quarter of the run, if that is shorter
# What may be added after that: KiB resident, by sanitizer.
GROWTH_KIB = {None: 256 << 10, "thread": 1 << 20}
# AddressSanitizer's allocator keeps what was freed, by size and thread: 1,620
# MiB when 93 were in use.  So it is asked for what is in use.
GROWTH_HEAP_KIB = 256 << 10
GDB_S = 120
# Ganesha has up to 200 workers, which it begins as it needs them.
GROWTH_THREADS, GROWTH_FDS = 256, 64


def taken(pid):
    """What the process takes now; None if it is gone."""
    try:
        return sizes_of(pid)
    except OSError:
        return None


def heap_kib(pid):
    """What AddressSanitizer's allocator has given out; None if nobody says."""
    call = "((unsigned long (*)(void))__sanitizer_get_current_allocated_bytes)"
    try:
        done = subprocess.run(
            ["gdb", "-p", str(pid), "-batch", "-nx", "-ex",
             f"print {call}()"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            timeout=GDB_S, check=False)
    except subprocess.TimeoutExpired:
        return None             # the canary has to go on
    found = re.search(r"^\$1 = (\d+)", done.stdout, re.M)
    return int(found[1]) >> 10 if found else None


def described(one):
    return f"RSS {one.rss_kib >> 10} MiB, {one.threads} threads, " \
        f"{one.fds} descriptors"


class Watch(threading.Thread):
    """Samples PID and sends GETATTRs of HANDLE, each PAUSE_S."""

    def __init__(self, pid, port, handle, minutes, sanitizer):
        super().__init__(daemon=True)
        self.pid, self.port, self.handle = pid, port, handle
        self.warm_s = min(WARM_S, minutes * 15)
        self.sanitizer = sanitizer
        self.waits = []             # seconds of each GETATTR
        self.first = self.warm = self.last = None
        self.heaps = []             # when warm, and at the end
        self.most = Sizes(0, 0, 0)
        self.complaints = []
        self.since = self.told = time.monotonic()
        self.stopped, self.held = threading.Event(), threading.Event()
        self.idle = threading.Event()

    def run(self):
        line = None
        while not self.stopped.is_set():
            if self.held.is_set():
                line = None
                self.idle.set()
                time.sleep(PAUSE_S)
                continue
            self.idle.clear()
            line = self._ask(line)
            self._sample()
            time.sleep(PAUSE_S)

    def hold(self):
        """The daemon is about to go, or is gone."""
        self.held.set()
        self.idle.wait(CANARY_S * 2)

    def go_on(self, pid):
        """A new daemon: it has to get warm first."""
        self.judge()
        self.pid, self.since = pid, time.monotonic()
        self.first = self.warm = self.last = None
        self.heaps = []
        self.most = Sizes(0, 0, 0)
        self.held.clear()

    def alive(self):
        return taken(self.pid) is not None

    def _ask(self, line):
        begin = time.monotonic()
        try:
            line = line or rpc.Connection(self.port, timeout=CANARY_S)
            nfs3.get_attributes(line, self.handle)
        except (OSError, AssertionError) as err:
            took = time.monotonic() - begin
            # That the daemon is gone is for others to say.
            if self.alive() and not self.held.is_set():
                self.complaints.append(
                    f"canary: no GETATTR after {took:.1f} s: {err!r}")
            return None
        self.waits.append(time.monotonic() - begin)
        return line

    def _sample(self):
        now = taken(self.pid)
        if not now:
            return
        self.first = self.first or now
        self.last = now
        if time.monotonic() - self.told > TOLD_S:
            self.told = time.monotonic()
            say(f"daemon: {described(now)}")
        self.most = Sizes(*map(max, self.most, now))
        if not self.warm and time.monotonic() - self.since > self.warm_s:
            self.warm = now
            self._ask_the_heap()

    def _ask_the_heap(self):
        if self.sanitizer == "address":
            self.heaps.append(heap_kib(self.pid))

    def judge(self):
        """Complains if the daemon takes more than when it was warm."""
        if not self.warm:
            return
        limits = [("threads", GROWTH_THREADS), ("fds", GROWTH_FDS)]
        if self.sanitizer in GROWTH_KIB:
            limits.append(("rss_kib", GROWTH_KIB[self.sanitizer]))
        for what, limit in limits:
            self._compare(what, getattr(self.warm, what),
                          getattr(self.last, what), limit)
        if self.heaps and self.alive():
            self._ask_the_heap()
            self._compare("KiB in use", *self.heaps, GROWTH_HEAP_KIB)

    def _compare(self, what, warm, last, limit):
        if None in (warm, last) or last > warm + limit:
            self.complaints.append(f"{what}: {warm} when warm, {last} in the "
                                   f"end, {limit} more is allowed")

    def figures(self):
        waits = sorted(self.waits) or [0]
        lines = [f"canary: {len(self.waits)} GETATTRs, p50 "
                 f"{waits[len(waits) // 2] * 1000:.1f} ms, p99 "
                 f"{waits[len(waits) * 99 // 100] * 1000:.1f} ms, longest "
                 f"{waits[-1] * 1000:.0f} ms"]
        for name, one in (("at first", self.first), ("warm", self.warm),
                          ("most", self.most), ("last", self.last)):
            if one:
                lines.append(f"daemon {name}: {described(one)}")
        if self.heaps:
            lines.append(f"KiB in use when warm, in the end: {self.heaps}")
        return lines
