#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Crash tests of names and attributes: which acknowledged ones are lost?

    names.py [CYCLES] [--settings names=mds,attributes=mds,...]
             [--dies both,gateway,MDS] [--ranks N] [--seed N]

For each value of Stable_Metadata, for each kind of death, CYCLES (20) times:
over NFSv3 connections that never send twice, and in one cycle of five from
Linux's own client too, names are made and removed in three folders: create,
mkdir, symlink, mknod, remove, rmdir, rename, link.  Then the same with owner,
mode and times of files.  At a random moment SIGKILL ends

both      gateway, MDS and OSDs at once.  In every second cycle the OSDs have
          stood still for 0.2 to 0.6 s then, as a disk does that is busy:
          nothing was written in that time.
gateway   the gateway.
MDS       an MDS.  It is started again, and when each chain has had another
          answer the gateway is killed: what it still had in memory is gone.

All is started again, and new connections look for each name.  With two ranks
one of the folders is the other rank's.

The requests of a chain follow one another, so their first ones have to
survive, in their order.  Lost are the acknowledged ones behind these.  With
`journal` none may be, with `mds` none if not both die.  Else the loss is
measured.  Anything else than some first requests of a chain is wrong
in each mode.  A request that is refused ends its chain, and is shown: after a
rename over one of a file's links the MDS says for a moment that there is no
other link.

A table comes last.  Needs a lab on bluestore.
"""
from __future__ import annotations

import argparse
import collections
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import cephfs

sys.path.append(str(Path(__file__).resolve().parents[1]))

from crash import (MOUNT_PORT, PORT, PSEUDO, SHOWN, Connected, damage,
                   quick_recovery, recover, spread)
from history import History
from kernel import CrashProgram
from lab_program import ceph, lab, say, until
from name_load import FOLDERS, Attributes, NameLoad, Names, find
from nfs import nfs3

PIDS = Path("/var/lib/casync-lab/ceph/run")
LOADS = {"names": Names, "attributes": Attributes}
SETTINGS = "names=journal,names=mds,attributes=journal,attributes=mds"
FIRM = "journal"        # the value with which nothing may be lost
ALL, STALLED, GATEWAY, MDS = ("gateway, MDS, OSD",
                              "the same, OSD stalled before", "gateway",
                              "MDS, later the gateway")
DEATHS = {"both": (ALL, STALLED), "gateway": (GATEWAY,), "MDS": (MDS,)}
METADATA_SERVERS = "abc"
CONNECTIONS = 6
CHAINS = (1, 4)         # of a connection
LINUX_EVERY = 5
MOMENT = (0.15, 1.2)    # seconds under load before the kill
STALL = (0.0, 0.4)      # and 0.2 s until `lab crash` kills
SETTLED_S = 0.4         # what a cycle begins with is in the journal by then
LATE_S = 0.1            # before the last acknowledgement


class Row:
    """What the cycles of one setting and one kind of crash add up to."""

    def __init__(self, setting, dies):
        self.setting = setting
        self.dies = dies
        self.cycles = self.lossy = self.late = self.linux = 0
        self.acknowledged = collections.Counter()
        self.lost = collections.Counter()
        self.oldest_ms = 0.0

    def cells(self):
        return (self.setting, self.dies, self.cycles,
                self.acknowledged.total(), self.linux, self.late,
                self.lost.total(), self.lossy,
                f"{self.oldest_ms:.0f} ms" if self.lossy else "-")


HEAD = ("Stable_Metadata", "what dies", "cycles", "acknowledged",
        "of them by Linux", "in the last 100 ms", "lost",
        "cycles with a loss", "oldest lost")


class Run:
    """The cycles of one setting."""

    def __init__(self, setting, ranks, seed, say):
        self.kind, self.value = setting.split("=")
        self.load = LOADS[self.kind]
        self.setting = f"{self.kind}, {self.value}"
        self.ranks = ranks
        self.rng = random.Random(f"{setting} {seed}")
        self.say = say
        self.number = 0
        self.rows = []
        self.recovery = []
        self.complaints = []
        lab("ganesha", "restart", "--export",
            f"Stable_Metadata = {self.value};")
        self.root = nfs3.root_of(PSEUDO, MOUNT_PORT)
        self.name = f"names-{self.kind}-{self.value}-{time.time_ns()}"
        with Connected() as (conn, _):
            self.top = nfs3.make_directory(conn, self.root, self.name)

    def cycles(self, count, dies):
        self._make_folders(count * len(dies))
        for death in dies:
            kinds = DEATHS[death]
            rows = [Row(self.setting, kind) for kind in kinds]
            for number in range(count):
                self._cycle(rows[number % len(rows)])
            self.rows += [row for row in rows if row.cycles]
        self._report()

    def _make_folders(self, cycles):
        """For each cycle three; of two ranks one has the first, with what is
        in it, the other one the others."""
        with Connected() as (conn, _):
            for number in range(1, cycles + 1):
                folder = nfs3.make_directory(conn, self.top, str(number))
                for name in FOLDERS:
                    inner = nfs3.make_directory(conn, folder, name)
                    nfs3.make_directory(conn, inner, "in")
        if self.ranks == 1:
            return
        fs = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
        fs.mount()
        for number in range(1, cycles + 1):
            fs.setxattr(f"/{self.name}/{number}/{FOLDERS[0]}", "ceph.dir.pin",
                        b"1", 0)
        fs.shutdown()

    def _report(self):
        for row in self.rows:
            kinds = ", ".join(f"{kind} {count} ({row.lost[kind]} lost)"
                              for kind, count in sorted(
                                  row.acknowledged.items()))
            self.say(f"{row.setting}, {row.dies}: {kinds}")
        self.say(f"{self.setting}: least / median / most: recovery "
                 f"{spread(self.recovery, 's')}")

    def _cycle(self, row):
        self.number += 1
        folders = self._folders()
        load = NameLoad(self.load, folders, PORT, self.rng, CONNECTIONS,
                        self.rng.choice(CHAINS))
        with tempfile.TemporaryDirectory() as signals:
            linux = self._linux(Path(signals))
            time.sleep(SETTLED_S)
            load.begin()
            moment = self.rng.uniform(*MOMENT)
            time.sleep(moment)
            self._kill(row.dies, load)
            if linux:
                linux.stop()
            load.end()
            complaints, seconds = recover()
            self.recovery.append(seconds)
            told = linux.last_words() if linux else \
                {"histories": [], "errors": []}
        row.cycles += 1
        before = row.acknowledged.total(), row.lost.total()
        complaints += told["errors"]
        complaints += self._judge(row, load, folders, told["histories"])
        acknowledged, lost = (now - then for now, then in zip(
            (row.acknowledged.total(), row.lost.total()), before))
        row.lossy += bool(lost)
        kept = row.dies in {GATEWAY, MDS}
        if lost and (kept or self.value == FIRM):
            complaints.append(f"{lost} of {acknowledged} acknowledged changes "
                              "are lost")
        self.say(f"{self.setting} {self.number}: {row.dies} killed after "
                 f"{moment:.3f} s; {acknowledged} acknowledged"
                 f"{', Linux at work too' if linux else ''}, {lost} lost; "
                 f"back after {seconds:.1f} s")
        for refused in load.refused:
            self.say(f"  refused: {refused}")
        for complaint in complaints[:SHOWN]:
            self.say(f"  WRONG: {complaint}")
        self.complaints += [f"{self.setting}, cycle {self.number}: {c}"
                            for c in complaints]

    def _folders(self):
        with Connected() as (conn, _):
            folder = look_up(conn, self.top, str(self.number))
            return {name: look_up(conn, folder, name) for name in FOLDERS}

    def _linux(self, signals):
        """Its client at work, or None."""
        if self.kind != "names" or self.number % LINUX_EVERY:
            return None
        linux = CrashProgram(
            "kernel_names.py", f"/mnt/nfs/{self.name}/{self.number}", signals,
            self.rng.randrange(10**6), self.rng.choice(("3", "4.2")))
        linux.wait_ready()
        return linux

    def _kill(self, dies, load):
        if dies == MDS:
            self._kill_mds(load)
        if dies == STALLED:
            for pid in osds():
                os.kill(pid, signal.SIGSTOP)
            time.sleep(self.rng.uniform(*STALL))
        lab("crash", *["--storage"] * (dies in DEATHS["both"]))

    def _kill_mds(self, load):
        which = self.rng.choice(METADATA_SERVERS[:self.ranks])
        lab("mds", "kill9", which)
        # The next answer may be from before.
        answers = [count + 1 for count in load.answers()]
        lab("mds", "start", which)
        until(lambda: self._each_rank_has_an_mds(which),
              "each rank has an MDS", 60)
        until(lambda: load.each_has_more_than(answers),
              "each chain has another answer", 60)
        time.sleep(self.rng.uniform(*MOMENT))

    def _each_rank_has_an_mds(self, started):
        if not runs(f"mds.{started}"):      # it crashed while it started
            self.say(f"mds.{started} has died, and is started again")
            lab("mds", "start", started)
        return active_ranks() == self.ranks

    def _judge(self, row, load, folders, others):
        """Counts into ROW; complaints."""
        wrong = []
        last = max((chain.history.times[-1] for chain in load.chains
                    if chain.history.times), default=0)
        with Connected() as (conn, _):
            for chain in load.chains:
                found = chain.found(conn)
                wrong += count(row, chain.history, found, last,
                               chain.history.survived(found))
            for told in others:
                history = History()
                vars(history).update(told)
                history.times = []      # of another clock
                row.linux += len(history.kinds)
                found = found_by_name(conn, folders, history)
                wrong += count(row, history, found, last,
                               history.survived(found, resent=True))
        return wrong


def active_ranks():
    """Of the file system: those that an MDS serves."""
    told = json.loads(ceph("mds", "stat", "--format", "json"))
    mdsmap = told["fsmap"]["filesystems"][0]["mdsmap"]
    return sum(mds["state"] == "up:active" for mds in mdsmap["info"].values())


def count(row, history, found, last, survived):
    """Counts one history into ROW.  LAST: when the last answer came."""
    row.acknowledged.update(history.kinds)
    row.late += sum(last - when <= LATE_S for when in history.times)
    if survived is None:
        return [f"not the first ones of {len(history.kinds)} changes: "
                f"{found}; acknowledged: {history.changes}; in flight: "
                f"{history.in_flight}"[:2000]]
    row.lost.update(history.kinds[survived:])
    for when in history.times[survived:][:1]:
        row.oldest_ms = max(row.oldest_ms, 1000 * (last - when))
    return []


def found_by_name(conn, folders, history):
    found = {}
    for key in history.known():
        folder, name = key.split("/")
        found[key] = find(conn, folders[folder], name)
    return found


def look_up(conn, folder, name):
    return nfs3.call(conn, nfs3.LOOKUP, nfs3.named(folder, name)).opaque()


def use_ranks(count):
    """That many MDSs serve; the cluster has to have them."""
    if count == 1:
        return
    ceph("fs", "set", "cephfs", "max_mds", str(count))
    until(lambda: ceph("mds", "stat").count("=up:active") == count,
          f"{count} MDSs are active", 60)


def osds():
    return [int(path.read_text()) for path in PIDS.glob("osd.*.pid")]


def runs(daemon):
    return Path("/proc", (PIDS / f"{daemon}.pid").read_text().strip()).exists()


def table(rows):
    lines = [HEAD, ("---",) * len(HEAD), *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cycles", type=int, nargs="?", default=20)
    parser.add_argument("--settings", default=SETTINGS)
    parser.add_argument("--dies", default="both,gateway,MDS")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    args = parser.parse_args()
    quick_recovery()
    use_ranks(args.ranks)
    say(f"seed {args.seed}")
    rows, complaints = [], []
    for setting in args.settings.split(","):
        this = Run(setting, args.ranks, args.seed, say)
        this.cycles(args.cycles, args.dies.split(","))
        rows += this.rows
        complaints += this.complaints
    complaints += [f"damage: {entry}" for entry in damage()]
    print(table(rows), flush=True)
    say(f"{'FAILED' if complaints else 'passed'}, {len(complaints)} things "
        f"wrong, seed {args.seed}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
