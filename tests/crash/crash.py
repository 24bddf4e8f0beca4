#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Crash tests: processes are killed under load, nothing acknowledged is lost.

    crash.py [--modes data,fdatasync,full] [--cycles N] [--storage N]

Each cycle of a mode writes with several requests in flight, kills
ganesha.nfsd by SIGKILL at a random moment (in the cycles of --storage all
OSDs and metadata servers with it), starts what was killed, and checks
through a new connection every acknowledged byte, sizes, and that the NFSv4
change attribute moved forward.  Needs a lab on bluestore for --storage.

New files get one stable block each all the while, the youngest milliseconds
before the kill.  Other files grow, and lose tails and holes by DEALLOCATE.  Of
five cycles one has Linux's own client write, two write UNSTABLE and send
COMMITs; each mode starts at another of the five.  Exit status 0 when nothing
is wrong.
"""
from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from holes import punchers, settle_holes
from kernel import KernelLoad
from lab_program import ceph, lab, say
from ledger import Blocks, Tail
from load import File, Load, settle, settle_born
from nfs import nfs3, nfs4, rpc

PORT, MOUNT_PORT, PSEUDO = 2049, 2050, "/ceph"
MODES = ("data", "fdatasync", "full")
KINDS = ("stable", "unstable", "stable", "linux", "unstable")
BLOCKS = 2048           # 8 MiB, two objects
DEPTH = 12
SHOWN = 12              # complaints of a cycle
MOMENT = (0.15, 1.2)    # seconds under load before the kill
# A restarted metadata server waits 45 s for its clients if nobody tells it
# otherwise.  Its tick of 5 s stays: that is when it writes its journal out.
QUICK = (("mds_reconnect_timeout", "2"),)


class Totals:
    """What a mode's cycles add up to."""

    def __init__(self):
        self.cycles = 0
        self.writes = {"stable": 0, "unstable": 0, "commits": 0, "kernel": 0}
        self.firm = 0
        self.firm_bytes = 0
        self.looks = 0
        self.born = 0
        self.punched = 0
        self.recovery = []
        self.change_ms = []
        self.ctime_ms = []
        self.same_ctime = 0
        self.complaints = []


class Run:
    """The cycles of one mode."""

    def __init__(self, mode, seed, say):
        self.mode = mode
        self.rng = random.Random(f"{mode} {seed}")
        self.say = say
        self.number = 0
        self.totals = Totals()
        self.name = f"crash-{mode}-{time.time_ns()}"
        lab("ganesha", "restart", "--export", f"Stable_Write = {mode};")
        self.root = nfs3.root_of(PSEUDO, MOUNT_PORT)
        with Connected() as (conn, conn4):
            self.folder = nfs3.make_directory(conn, self.root, self.name)
            self.files = [self._file(conn, conn4, "blocks",
                                     Blocks(1, BLOCKS))]

    def _file(self, conn, conn4, name, ledger):
        handle = nfs3.create(conn, self.folder, name)
        handle4 = nfs4.handle_of(conn4, f"{PSEUDO}/{self.name}/{name}")
        return File(name, ledger, handle, handle4)

    def cycle(self, storage):
        self.number += 1
        kind = KINDS[(self.number - 1 + MODES.index(self.mode)) % len(KINDS)]
        complaints = self._kernel(storage) if kind == "linux" else \
            self._raw(storage, unstable=kind == "unstable")
        self.totals.cycles += 1
        self.totals.complaints += [f"{self.mode}, cycle {self.number}: {c}"
                                   for c in complaints]
        for complaint in complaints[:SHOWN]:
            self.say(f"  WRONG: {complaint}")

    def _raw(self, storage, unstable):
        """Our own client: one file overwritten, three that grow, of which
        the oldest makes room for a new one."""
        with Connected() as (conn, conn4):
            if len(self.files) > 3:
                nfs3.remove(conn, self.folder, self.files.pop(1).name)
            while len(self.files) < 4:
                number = self.number * 10 + len(self.files)
                self.files.append(self._file(
                    conn, conn4, f"tail-{number}", Tail(number)))
            name = f"nursery-{self.number}"
            nursery = nfs3.make_directory(conn, self.folder, name)
            nursery4 = nfs4.handle_of(conn4, f"{PSEUDO}/{self.name}/{name}")
        load = Load(PORT, self.files, self.rng, DEPTH, unstable, nursery)
        holes = punchers(PORT, nursery4, self.rng)
        moment = self.rng.uniform(*MOMENT)
        killer = threading.Timer(moment, self._kill, [storage])
        load.run(begun=killer.start)
        killer.join()
        for client in holes:
            client.join()
        complaints = load.complaints + self._recover()
        complaints += self._settle(self.files)
        with Connected() as (conn, _):
            complaints += settle_born(conn, load)
            complaints += settle_holes(conn, nursery, holes)
        self._count(load)
        self.totals.punched += sum(client.punched for client in holes)
        self.say(f"{self.mode} {self.number}: "
                 f"{'gateway, OSD and MDS' if storage else 'gateway'} killed "
                 f"after {moment:.3f} s and {load.counts['stable']} stable, "
                 f"{load.counts['unstable']} unstable writes, "
                 f"{load.counts['commits']} commits; back after "
                 f"{self.totals.recovery[-1]:.1f} s")
        return complaints

    def _count(self, load):
        for kind, count in load.counts.items():
            self.totals.writes[kind] += count
        self.totals.looks += load.looks
        self.totals.born += len(load.born)
        for file in self.files:
            self.totals.firm += file.ledger.firm_count
            self.totals.firm_bytes += file.ledger.firm_bytes
            file.ledger.firm_count = file.ledger.firm_bytes = 0

    def _kernel(self, storage):
        """Linux's client: it lives on and goes on with its open files."""
        with tempfile.TemporaryDirectory() as signals, \
                Connected() as (conn, conn4):
            top = f"kernel-{self.number}"
            folder = nfs3.make_directory(conn, self.folder, top)
            files = [File(name, None,
                          nfs3.create(conn, folder, name),
                          nfs4.handle_of(
                              conn4, f"{PSEUDO}/{self.name}/{top}/{name}"))
                     for name in ("blocks", "direct", "synced")]
            load = KernelLoad(f"/mnt/nfs/{self.name}/{top}", Path(signals),
                              self.rng.randrange(10**6))
            load.wait_ready()
            moment = self.rng.uniform(*MOMENT)
            load.look(PORT, files, moment)
            self._kill(storage)
            load.stop()
            complaints = self._recover()
            complaints += load.settle(files)
        complaints += self._settle(files)
        self.totals.writes["kernel"] += load.writes
        self.totals.firm += load.writes
        self.totals.firm_bytes += load.bytes
        self.totals.looks += load.looks
        self.say(f"{self.mode} {self.number}: "
                 f"{'gateway, OSD and MDS' if storage else 'gateway'} killed "
                 f"{moment:.3f} s after Linux's client got going; "
                 f"{load.writes} synchronous writes, the slowest took "
                 f"{load.slowest:.1f} s; back after "
                 f"{self.totals.recovery[-1]:.1f} s")
        return complaints

    def _kill(self, storage):
        lab("crash", *["--storage"] * storage)

    def _recover(self):
        complaints, seconds = recover()
        self.totals.recovery.append(seconds)
        return complaints

    def _settle(self, files):
        complaints = []
        with Connected() as (conn, conn4):
            for file in files:
                wrong, figures = settle(conn, conn4, file)
                complaints += wrong
                if figures.change_ms is not None:
                    self.totals.change_ms.append(figures.change_ms)
                if figures.ctime_ms is not None:
                    self.totals.ctime_ms.append(figures.ctime_ms)
                    self.totals.same_ctime += figures.same_ctime
        return complaints


class Connected:
    """Two fresh connections, for NFSv3 and for NFSv4."""

    def __enter__(self):
        self.pair = rpc.Connection(PORT), rpc.Connection(PORT)
        return self.pair

    def __exit__(self, *_):
        for conn in self.pair:
            conn.close()


def recover():
    """Start what is dead; one start has to do.  Complaints, and how long it
    took."""
    began = time.monotonic()
    # Over NFSv3 Ganesha's write verifier is the second it was started in: two
    # starts within one have the same.  No administrator is as fast.
    time.sleep(1 - time.time() % 1)
    done = lab("recover", check=False)
    complaints = []
    if done.returncode:
        complaints.append("the gateway did not come back by itself:\n" +
                          done.stderr)
        lab("ganesha", "restart")
    return complaints, time.monotonic() - began


def spread(values, unit):
    if not values:
        return "-"
    return (f"{min(values):.1f} / {statistics.median(values):.1f} / "
            f"{max(values):.1f} {unit}")


def report(mode, totals, say):
    writes = totals.writes
    say(f"{mode}: {totals.cycles} cycles, {totals.firm} acknowledged writes "
        f"({totals.firm_bytes >> 20} MiB) checked: {writes['stable']} "
        f"answered as stable, {writes['unstable']} as unstable with "
        f"{writes['commits']} commits, {writes['kernel']} by Linux's client; "
        f"{totals.born} new files; {totals.punched} holes punched; "
        f"{totals.looks} looks at change before "
        f"crashes; wrong: {len(totals.complaints)}")
    say(f"{mode}: least / median / most: recovery "
        f"{spread(totals.recovery, 's')}; change moved "
        f"{spread(totals.change_ms, 'ms')}; ctime moved "
        f"{spread(totals.ctime_ms, 'ms')} ({totals.same_ctime} the same)")


def run(modes, cycles, storage, seed, say):
    """All cycles; every complaint of them."""
    complaints = []
    say(f"seed {seed}")
    for mode in modes:
        this = Run(mode, seed, say)
        for number in range(cycles + storage):
            this.cycle(storage=number >= cycles)
        report(mode, this.totals, say)
        complaints += this.totals.complaints
    return complaints


def quick_recovery():
    for key, value in QUICK:
        ceph("config", "set", "mds", key, value)


def damage():
    """What the metadata server itself found broken."""
    return json.loads(ceph("tell", "mds.0", "damage", "ls"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--cycles", type=int, default=50)
    parser.add_argument("--storage", type=int, default=20)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    args = parser.parse_args()
    if args.storage:
        quick_recovery()
    complaints = run(args.modes.split(","), args.cycles, args.storage,
                     args.seed, say)
    complaints += [f"damage: {entry}" for entry in damage()]
    say(f"{'FAILED' if complaints else 'passed'}, {len(complaints)} things "
        f"wrong, seed {args.seed}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
