#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Is every READ from the read cache as new as it has to be?

    coherence.py [--seed N] [--files N] [--no-kernel] [--evict SECONDS]
        [--clock SECONDS [--behind]] [--pause] MINUTES

Two gateways (each a CephFS client of its own, both with a read cache),
ceph-fuse, and Linux' CephFS client write and read the blocks of some files:
file_life.py says in what order, history.py what is wrong.  Every --evict
seconds (25; 0: never) the CephFS session of a gateway is ended, while caches
are full and writes wait for that moment.  --pause stops the gateway (SIGSTOP)
for that time, so that it learns of it late.  Every --clock seconds (30; 0:
never) the clock of gateway B is stepped by a minute, forward and right again.
--behind also steps it back: then clocks differ by more than the cache allows
(docs/limits.md), and a READ may be stale.

Ends at the first wrong thing, with the history of that block, and status 1.
A run in which the gateways did not answer READs from their caches fails, too.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import random
import re
import signal
import socket
import struct
import sys
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from access_paths import FuseWay, KernelWay, Nfs3, Nfs4
from file_life import FileLife, World
from gateway_clock import STEP_S, GatewayClock
from integration import metrics_outputs as outputs
from integration.fuse import Fuse
from lab_program import lab, say, stat

SECOND_PORT, SECOND_PSEUDO = 12049, "/second"
GATEWAYS = {"A": ("a", 2049, "/ceph", 9587),
            "B": ("b", SECOND_PORT, SECOND_PSEUDO, SECOND_PORT + 4)}
WORKERS = 24
HOLD_S = 1.5            # files wait for an eviction, their caches full
PAUSE_S = 1             # a gateway is stopped
MDS = "/var/lib/casync-lab/ceph/run/mds.a.asok"
SAY_S = 30
LEAST_HITS = 0.1        # of a gateway's READs
CLOCK = GatewayClock("b")


def ask_mds(prefix, **args):
    """By its admin socket: the program `ceph` takes 0.4 s."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(60)
        sock.connect(MDS)
        sock.sendall(json.dumps({"prefix": prefix, "format": "json",
                                 **args}).encode() + b"\0")
        size, = struct.unpack(">I", sock.recv(4, socket.MSG_WAITALL))
        return sock.recv(size, socket.MSG_WAITALL)


def reads_of(gateway):
    """READs that this gateway was sent, and those that libcephfs answered."""
    name, _, _, monitoring = gateway
    text = outputs.scrape(name, monitoring)
    count = dict.fromkeys(("total", "libcephfs"), 0)
    for labels, value in re.findall(
            r"^ceph_async__latency_us_count\{(.*)\} (\S+)$", text, re.M):
        found = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if found.get("op") == "read" and found.get("stage") in count:
            count[found["stage"]] += int(float(value))
    return count


class Run:
    def __init__(self, args):
        self.args = args
        self.rng = random.Random(f"evict {args.seed}")
        folder = f"coherence-{args.seed}-{int(time.time())}"
        ways = [kind(side, port, pseudo, folder)
                for side, (_, port, pseudo, _) in GATEWAYS.items()
                for kind in (Nfs3, Nfs4, Nfs4)]
        self.fuse = Fuse()
        ways.append(FuseWay(self.fuse.folder / folder))
        self.kernel = None if args.no_kernel else KernelWay(folder)
        if self.kernel:
            ways.append(self.kernel)
        self.world = World(
            ways, concurrent.futures.ThreadPoolExecutor(WORKERS))
        self.lives = [FileLife(self.world, n, args.seed)
                      for n in range(args.files)]
        self.before = {}
        self.began = time.monotonic()

    def run(self):
        self.before = {side: reads_of(one)
                       for side, one in GATEWAYS.items()}
        for life in self.lives:
            life.start()
        if self.args.evict:
            threading.Thread(target=self.evictions, daemon=True).start()
        if self.args.clock:
            threading.Thread(target=self.clock_steps, daemon=True).start()
        end = self.began + self.args.minutes * 60
        while time.monotonic() < end and not self.world.stop.wait(
                min(SAY_S, max(0, end - time.monotonic()))):
            self.figures(short=True)
        if self.world.complaints:
            say(f"after {time.monotonic() - self.began:.1f} s:")
        self.world.stop.set()
        self.world.go.set()
        for life in self.lives:
            life.join(100)
            if life.is_alive():
                self.world.complain(f"{life.name} does not end")
        self.figures()

    # --- evictions

    def evictions(self):
        while not self.world.stop.wait(self.args.evict):
            try:
                self.evict(self.rng.choice("AAB"))
            except Exception as err:  # noqa: BLE001 (it is a complaint)
                self.world.complain(f"no eviction: {err!r}")

    def evict(self, side):
        """Those who wait begin in the moment in which the MDS does it."""
        name = GATEWAYS[side][0]
        now = stat()
        pid = now["ganesha"][name]["pid"]
        mine = [one["id"] for one in now["mds"]["sessions"]
                if one["metadata"].get("pid") == str(pid)]
        self.world.go.clear()
        time.sleep(HOLD_S)
        if self.args.pause:
            os.kill(pid, signal.SIGSTOP)
        else:
            self.world.go.set()
        try:
            for number in mine:
                ask_mds("session evict", filters=[f"id={number}"])
            self.world.go.set()
            time.sleep(PAUSE_S * self.args.pause)
        finally:
            os.kill(pid, signal.SIGCONT)
            self.world.go.set()
        self.world.count(sessions_evicted=len(mine))

    # --- the clock of gateway B

    def clock_steps(self):
        """Ahead, true, and so on; with --behind also behind.  Ahead for less
        than a third of session_timeout, a READ may hang (docs/limits.md)."""
        offsets = itertools.cycle((STEP_S, 0, -STEP_S, 0) if self.args.behind
                                  else (STEP_S, 0))
        while not self.world.stop.wait(self.args.clock):
            for way in self.world.ways:
                if way.side == "B" and isinstance(way, Nfs4):
                    way.stepped = time.monotonic()
            CLOCK.set(next(offsets))
            self.world.count(clock_steps=1)

    # --- figures

    def hits(self):
        """{side: (READs, of those answered without libcephfs)}"""
        result = {}
        for side, one in GATEWAYS.items():
            try:
                now, before = reads_of(one), self.before[side]
            except OSError as err:
                self.world.complain(f"gateway {side} does not answer: {err}")
                continue
            total = now["total"] - before["total"]
            result[side] = (total, total - now["libcephfs"] +
                            before["libcephfs"])
        return result

    def figures(self, short=False):
        seen, hits = dict(self.world.seen), self.hits()
        text = ", ".join(f"{side}: {hit} of {total} READs from the cache"
                         for side, (total, hit) in hits.items())
        say(f"{time.monotonic() - self.began:.0f} s: "
            f"{seen.get('READs', 0)} READs, {text}; "
            f"{seen.get('just written by another', 0)} blocks that another "
            "client had just written")
        if short:
            return
        seen["NFSv4 leases over"] = sum(
            getattr(way, "renewed", 0) for way in self.world.ways)
        for name, count in sorted(seen.items()):
            say(f"  {count:9} {name}")
        say(f"  {len(self.world.complaints):9} wrong")
        for side, (total, hit) in hits.items():
            if hit < total * LEAST_HITS and not self.world.complaints:
                self.world.complain(
                    f"gateway {side}: {hit} hits of {total} READs prove "
                    "nothing")

    def end(self):
        for life in self.lives:
            if life.file:
                life.file.forget()
        if self.kernel:
            self.kernel.end()
        self.fuse.end()


def options():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--files", type=int, default=48)
    parser.add_argument("--evict", type=float, default=25)
    parser.add_argument("--clock", type=float, default=30)
    parser.add_argument("--behind", action="store_true")
    parser.add_argument("--no-kernel", action="store_true")
    parser.add_argument("--pause", action="store_true")
    parser.add_argument("minutes", type=float, metavar="MINUTES")
    return parser.parse_args()


def main():
    args = options()
    common = ("--fsal", "CEPH_ASYNC", "--export", "", "--block", "",
              "--core", "Enable_Metrics = true;")
    lab("up", *common)
    lab("ganesha", "restart", "--name", "b", *common, "--port", SECOND_PORT,
        "--pseudo", SECOND_PSEUDO, "--wrapper", CLOCK.wrapper())
    say(f"seed {args.seed}")
    run = Run(args)
    try:
        run.run()
    finally:
        for what in run.world.complaints[:3]:
            say(what)
        run.end()
    return 1 if run.world.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
