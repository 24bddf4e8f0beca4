#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Random faults under verified load, on two gateways and a redundant cluster.

    chaos.py [--seed N] [--only WORD] [--no-kernel] MINUTES

Three OSDs (each object has two copies), an active and a standby metadata
server, three monitors, two gateways on one file system.  Clients of NFSv3,
4.0 and 4.1 write and read through both, two Linux clients through one: one
writes blocks, one clones, builds and pushes.  Sessions are evicted
and blocklisted, daemons and gateways killed and stopped, a gateway's network
cut: cluster.py, load.py and faults.py say how.  After each fault all clients
must be served within a bound.

In the end every acknowledged byte and name is there, no update of a locked
counter is lost, and no reader saw a block older than one it knew of.  A seed
gives the same sequence of faults again (with the same --only).  Exit status 0
when all holds.
"""
from __future__ import annotations

import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import faults
import load
from crash.ledger import Blocks
from integration.fuse import Fuse
from kernel_program import KernelProgram
from lab_program import LOGS, Log, ceph, say
from cluster import Cluster
from soak.soak import GROWTH_KIB

HERE = Path(__file__).resolve().parent
VERIFIED = HERE.parent / "soak" / "verified.py"
TREES = HERE / "trees.py"
WARM_UP_S = 10
NAMES_REST_S = 7
END_S = 60              # for the workers to end
REST_S = 330            # for Trees: one program of it may take 300 (LIMIT_S)
LAST_SAMPLES = 3
IDLE_WORKER_S = 60      # idle workers of Ganesha's end: 144 threads, then 75
GROWTH = {"in_use_kib": GROWTH_KIB, "rss_kib": 2 * GROWTH_KIB, "threads": 12,
          "fds": 30}
# Of a lost client that waits for READs (FSAL_CEPH_ASYNC/mount/client.h).
LEFT_CLIENT = {"in_use_kib": 8192, "rss_kib": 8192, "threads": 18, "fds": 18}
BAD = r":FATAL\b|[Aa]ssertion|FAILED ceph_assert|\*\*\* Caught signal|" \
    r"stack smashing|double free|no new CephFS client within|" \
    r"a second completion is ignored|Segmentation|corrupted"
LOSS = r"the CephFS session is lost .*; making a new client"
FOUND = r"a new CephFS client serves after (\d+)"
PROTOCOLS = ("NFSv3", "NFSv4.0", "NFSv4.1", "Linux")


class Kernel(load.Worker):
    """Linux's client with a PROGRAM that signals its progress."""

    protocol = "Linux"
    program = (VERIFIED, "kernel", "slow")

    def __init__(self, world, gateway, vers):
        program, folder, *more = self.program
        super().__init__(f"{folder} {vers}", world, gateway, 0)
        self.signals = Path(tempfile.mkdtemp(prefix="chaos-"))
        self.before = 0
        self.words = {}         # its last ones
        self.client = KernelProgram(
            self.signals, "python3", "-B", program,
            f"/mnt/nfs/{world.folder}/{folder}", self.signals, *more,
            vers=vers, timeout=86400, options=("--mem", "256M"))

    def step(self):
        while self.client.progress() <= self.before:
            if self.world.stop.is_set() or self.world.abandon.is_set():
                return
            assert not self.client.has_ended(), "the kernel client ended"
            time.sleep(load.PAUSE_S)
        self.before = self.client.progress()

    def end(self):
        """Its last words."""
        self.client.stop()
        status = self.client.wait(2 * END_S)
        if status is None:
            self.world.complain(f"{self.name} does not end")
            return
        self.words = self.client.told() or {}
        say(f"{self.name}: {self.words}")
        if status or not self.words:
            self.world.complain(f"{self.name}: status {status}\n"
                                f"{self.client.words()}")


class Trees(Kernel):
    """Clones, builds and pushes.  A step of it may take longer than a fault;
    the program ends by itself if one hangs."""

    protocol = "Linux, git"
    program = (TREES, "trees")
    prompt = False

    def rest(self):
        """Until no name has changed for the time that the MDS' journal may
        be late."""
        (self.signals / "rest").touch()
        end = time.monotonic() + REST_S
        while not (self.signals / "resting").exists():
            if self.client.has_ended() or time.monotonic() > end:
                self.world.complain(f"{self.name} does not rest")
                return
            time.sleep(load.PAUSE_S)

    def go_on(self):
        (self.signals / "rest").unlink(missing_ok=True)

    def lease_is_over(self):
        """The gateway is about to go on, after a longer time than that."""
        (self.signals / "expired").touch()

    def gateway_is_killed(self):
        (self.signals / "killed").touch()

    def is_full(self):
        """The pool is full now, or was until now."""
        (self.signals / "full").touch()

    def read_back(self, top):
        """What every push has left, to a client that knows nothing."""
        origin = top / "trees" / "origin.git"
        git = ("git", "-c", "safe.directory=*", "-C", str(origin))
        subprocess.run([*git, "fsck", "--full"], check=True, timeout=120,
                       stdin=subprocess.DEVNULL, capture_output=True)
        count = int(subprocess.run(
            [*git, "rev-list", "--count", "main"], check=True, timeout=60,
            stdin=subprocess.DEVNULL, capture_output=True).stdout)
        kills, cut_off = self.gateway.kills, self.words.get("cut off", 0)
        if cut_off > 1 + kills / 4:
            self.world.complain(f"{self.name}: {cut_off} creates met their "
                                f"own files after {kills} kills")
        pushed = self.words.get("pushed", 0)
        if not pushed <= count <= pushed + 1 + self.words.get("anew", 0):
            self.world.complain(f"in the end, {self.name}: {count} commits, "
                                f"{pushed} acknowledged")


class Run:
    """One run with one seed."""

    def __init__(self, seed, only, kernel):
        self.seed, self.only = seed, only
        self.logs = {path: Log(path) for name in "ab" for path in (
            LOGS / f"ganesha-{name}.log", LOGS / f"ganesha-{name}.out")}
        self.site = Cluster()
        self.world = load.World(f"chaos-{seed}")
        self.workers, self.files = load.workers(self.world, self.site, seed)
        self.kernels, self.trees = [], None
        if kernel:
            one, other = ("4.2", "3") if seed % 2 else ("3", "4.2")
            self.trees = Trees(self.world, self.site.a, other)
            self.site.a.lease_is_over = self.trees.lease_is_over
            self.site.a.is_killed = self.trees.gateway_is_killed
            self.site.told_full = self.trees.is_full
            self.kernels = [Kernel(self.world, self.site.a, one), self.trees]
            self.workers += self.kernels
        self.pauses = collections.defaultdict(list)
        self.resources = collections.defaultdict(list)   # by gateway, pid
        self.ended_sessions = collections.Counter()
        self.rounds = self.faults = 0

    # --- faults

    def strike(self, minutes):
        for worker in self.workers:
            worker.start()
        if not self._back(time.monotonic(), 60, "start"):
            return
        time.sleep(WARM_UP_S)
        began = time.monotonic()
        sequence = faults.sequence(self.seed, self.only)
        while time.monotonic() - began < minutes * 60 and \
                not self.world.complaints:
            pause, between, these = next(sequence)
            time.sleep(pause)
            self._sample()
            if not self._round(between, these):
                return
        time.sleep(IDLE_WORKER_S)
        self._sample()
        say(f"{self.faults} faults in {self.rounds} rounds, "
            f"{(time.monotonic() - began) / 60:.1f} min")

    def _round(self, between, these):
        what = " + ".join(map(faults.named, these))
        say(f"round {self.rounds + 1}: {what}")
        if faults.may_lose_names(these):
            self._names_rest()
        struck = time.monotonic()
        strikes = faults.strike(self.site, between, these)
        healed = time.monotonic()
        self._names_go_on()
        self.rounds += 1
        self.faults += len(strikes)
        for one in strikes:
            self.ended_sessions[one.gateway.name] += one.sessions
            if one.failed:
                self.world.complain(f"a fault failed: {one.failed}")
        if not self._back(healed, faults.bound(these), what):
            return False
        kind = these[0].kind if len(these) == 1 else "two at once"
        longest = {}
        for worker in self.workers:
            for start, end in worker.pauses:
                if end >= struck:
                    longest[worker.protocol] = max(
                        longest.get(worker.protocol, 0), end - start)
        for protocol in PROTOCOLS:
            self.pauses[kind, protocol].append(longest.get(protocol, 0))
        say(f"  healed after {healed - struck:.1f} s, all served "
            f"{time.monotonic() - healed:.1f} s later; longest pauses " +
            ", ".join(f"{protocol} {longest.get(protocol, 0):.1f} s"
                      for protocol in PROTOCOLS))
        return True

    def _names_rest(self):
        self.world.names_rest.set()
        if self.trees:
            self.trees.rest()
        time.sleep(NAMES_REST_S)

    def _names_go_on(self):
        self.world.names_rest.clear()
        if self.trees:
            self.trees.go_on()

    def _back(self, since, seconds, what):
        """Every worker has done a step that began after SINCE."""
        end = time.monotonic() + seconds
        while True:
            late = [worker for worker in self.workers
                    if worker.prompt and
                    (worker.begun < since or not worker.steps)]
            if not late or self.world.complaints:
                return not late
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        self.world.complain(
            f"after {what}: not served within {seconds} s: " +
            ", ".join(worker.name for worker in late))
        say("a hang: taking all stacks")
        self.site.stacks()
        return False

    def _sample(self):
        for gateway in self.site.gateways:
            self.resources[gateway.name, gateway.pid].append(
                gateway.resources())

    # --- what must be true in the end

    def end(self):
        self.world.stop.set()
        late = [worker for worker in self.workers if not self._joined(worker)]
        if late:
            self.world.complain("workers that do not end: " + ", ".join(
                worker.name for worker in late))
            self.site.stacks()
        self.world.abandon.set()
        for kernel in self.kernels:
            kernel.end()
        for check in (self._read_back, self._damage, self._growth,
                      self._losses, self._logs):
            try:
                check()
            except Exception as err:  # noqa: BLE001 (each is one complaint)
                self.world.complain(f"{check.__name__}: {err!r}")

    @staticmethod
    def _joined(worker):
        worker.join(END_S)
        return not worker.is_alive()

    def _read_back(self):
        """Through a client that has nothing in its cache."""
        fuse = Fuse()
        top = fuse.folder / self.world.folder
        firm = 0
        try:
            for name, ledger in self.files.items():
                firm += ledger.firm_count
                for wrong in ledger.check((top / name).read_bytes()):
                    self.world.complain(f"in the end, {name}: {wrong}")
            for worker in self.workers:
                if isinstance(worker, load.Names3):
                    self._names(top, worker)
            self._counter((top / "counter").read_bytes())
            if self.trees:
                self.trees.read_back(top)
        finally:
            fuse.end()
        say(f"read back: {firm} acknowledged writes of NFSv3 and more of "
            "NFSv4.1")

    def _names(self, top, worker):
        found = set(os.listdir(top / worker.folder))
        if found != set(worker.there):
            self.world.complain(
                f"in the end, {worker.name}: too many "
                f"{sorted(found - set(worker.there))}, missing "
                f"{sorted(set(worker.there) - found)}")
        if type(worker) is load.Names3:
            for name in found & set(worker.there):
                ledger = Blocks(worker.there[name], 1)
                ledger.make_firm(ledger.sent(0, 1, 1))
                for wrong in ledger.check(
                        (top / worker.folder / name).read_bytes()):
                    self.world.complain(f"in the end, {name}: {wrong}")

    def _counter(self, data):
        counters = [worker for worker in self.workers
                    if isinstance(worker, load.Counter)]
        total, *slots = load.COUNTER.unpack(data)
        for worker in counters:
            if not worker.mine <= slots[worker.slot] <= \
                    worker.mine + worker.open_question:
                self.world.complain(
                    f"in the end, {worker.name}: {slots[worker.slot]} "
                    f"updates, acknowledged {worker.mine}")
        if total != sum(slots):
            self.world.complain(f"in the end, counter: {total}, {slots}")
        say(f"counter: {total} updates, none lost" if total == sum(slots)
            else f"counter: {total} is not the sum of {slots}")

    def _damage(self):
        if json.loads(ceph("tell", "mds.cephfs:0", "damage", "ls")):
            self.world.complain("the metadata server found damage")

    def _left_clients(self, name, pid):
        """CephFS clients that READs were left with, and that still wait."""
        lines = [line for line in getattr(self.site, name).log.read_text(
            encoding="utf-8", errors="replace").splitlines()
            if f"nfs-ganesha-{pid}[" in line]
        return sum("are left with the lost CephFS client" in line
                   for line in lines) - \
            sum("come back, and it has ended" in line for line in lines)

    def _growth(self):
        for (name, pid), samples in sorted(self.resources.items()):
            # What leaks does not go down again; Ganesha's workers do.
            first, last = samples[0], {
                key: min(one[key] for one in samples[-LAST_SAMPLES:])
                for key in samples[0]}
            say(f"gateway {name}, pid {pid}, {len(samples)} samples: " +
                ", ".join(f"{key} {first[key]} to {last[key]}"
                          for key in first))
            left = self._left_clients(name, pid)
            if left:
                say(f"gateway {name}: {left} lost clients wait for READs")
            for key, most in GROWTH.items():
                if last[key] - first[key] > most + left * LEFT_CLIENT[key]:
                    self.world.complain(
                        f"gateway {name}: {key} grew from {first[key]} to "
                        f"{last[key]}")

    def _losses(self):
        """Each loss has its reconnect, but for those a kill cut short."""
        for gateway in self.site.gateways:
            log = self.logs[gateway.log]
            losses = len(log.matching(LOSS))
            found = len(log.matching(FOUND))
            ended = self.ended_sessions[gateway.name]
            say(f"gateway {gateway.name}: {ended} sessions ended on purpose, "
                f"{losses} losses, {found} reconnects, {gateway.kills} kills")
            if not 0 <= losses - found <= gateway.kills:
                self.world.complain(f"gateway {gateway.name}: {losses} losses "
                                    f"and {found} reconnects")
            if not Path(f"/proc/{gateway.pid}").exists():
                self.world.complain(f"gateway {gateway.name} is dead")

    def _logs(self):
        for path, log in self.logs.items():
            for line in log.matching(BAD)[:5]:
                self.world.complain(f"{path.name}: {line}")
        for folder in (LOGS, Path("/")):
            for core in folder.glob("core*"):
                self.world.complain(f"a core: {core}")

    def report(self):
        say("longest / median pause of a round, in s, by fault:")
        kinds = sorted({kind for kind, _ in self.pauses})
        for kind in kinds:
            cells = []
            for protocol in PROTOCOLS:
                values = self.pauses[kind, protocol]
                cells.append(f"{protocol} {max(values):5.1f} /"
                             f"{statistics.median(values):5.1f}")
            say(f"  {kind:24} {len(self.pauses[kind, 'NFSv3']):3} x  "
                + "  ".join(cells))
        say("steps: " + ", ".join(
            f"{protocol} " + str(sum(worker.steps for worker in self.workers
                                     if worker.protocol == protocol))
            for protocol in (*PROTOCOLS, Trees.protocol)))
        say("seen: " + ", ".join(f"{what} {count}" for what, count
                                 in self.world.seen.items()))
        wrong = self.world.complaints
        for complaint in wrong:
            say(f"WRONG: {complaint}")
        say(f"chaos: {'FAILED' if wrong else 'passed'}, {self.faults} faults, "
            f"{len(wrong)} things wrong, seed {self.seed}")
        return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    parser.add_argument("--only", action="append", default=[], metavar="WORD",
                        help="faults whose name has this word: \"evict\", "
                        "\"killed\", \"long\" (may be given again)")
    parser.add_argument("--no-kernel", action="store_true",
                        help="without the Linux clients")
    parser.add_argument("minutes", type=float)
    args = parser.parse_args()
    say(f"seed {args.seed}")
    run = Run(args.seed, args.only, not args.no_kernel)
    try:
        run.strike(args.minutes)
        run.end()
        return run.report()
    finally:
        run.site.keeper.kill()


if __name__ == "__main__":
    sys.exit(main())
