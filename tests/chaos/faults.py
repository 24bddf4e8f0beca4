# SPDX-License-Identifier: LGPL-3.0-or-later
"""The faults: what each does, how it is healed, and in which order they come.

A seed gives the sequence.  Two faults at once never have the same target.
"""
import os
import random
import signal
import subprocess
import threading
import time
from types import SimpleNamespace

import cluster
from gateway_clock import SEEN_S, STEP_S
from lab_program import LabFailed, ceph, lab, until

# kind: weight, and the longest time after healing until every client is
# served.  Ganesha's grace period and a failover are in these times.  After a
# short cut TCP may wait once more for as long as the cut was; a long one ends
# the session, and the new client has connections of its own.
KINDS = {
    "evict": (5, 20), "blocklist": (4, 20), "gateway stopped": (3, 25),
    "gateway stopped for long": (1, 45), "gateway killed": (2, 60),
    "gateway and MDS killed": (2, 90), "pool full": (2, 45),
    "MDS killed": (3, 45), "MDS stopped": (2, 45),
    "OSD killed": (3, 30), "OSD stopped": (3, 30), "MON stopped": (1, 30),
    "MON killed": (1, 30), "all MONs stopped": (1, 45),
    "network cut": (3, 45), "network cut for long": (1, 20),
    "cut from OSDs": (1, 45), "cut from MDS": (1, 45),
    "cut from MDS for long": (1, 90), "cut from MONs": (1, 30),
    "clock stepped": (2, 45),
}
SHORT_S, LONG_S = (5, 20), (cluster.SESSION_S + 15, cluster.SESSION_S + 30)
AT_ONCE = 0.4           # the part of rounds with two faults, if they may be
IDLE_S = 5              # a client may have sent nothing for so long before
# A renewal of capabilities comes meanwhile.
CLOCK_S = (cluster.SESSION_S / 3 + 5, cluster.SESSION_S / 3 + 15)
PATIENCE_S = 60         # for a command of Ceph that another fault disturbs


def sequence(seed, only):
    """Endless: the pause before a round, and its one or two faults.  ONLY: of
    kinds that have one of these words in their names; empty: all."""
    rng = random.Random(seed)
    kinds = [kind for kind in KINDS
             if not only or any(word in kind for word in only)]
    weights = [KINDS[kind][0] for kind in kinds]

    def draw():
        kind = rng.choices(kinds, weights)[0]
        for_long = kind.endswith("for long")
        return SimpleNamespace(
            kind=kind, gateway="b" if "cut" in kind else rng.choice("ab"),
            osd=rng.randrange(3), mon=rng.choice("abc"),
            seconds=rng.uniform(*CLOCK_S if kind == "clock stepped"
                                else LONG_S if for_long else SHORT_S),
            step_s=rng.choice((-STEP_S, STEP_S)))
    while True:
        faults = [draw()]
        if rng.random() < AT_ONCE:
            other = draw()
            if not targets(other) & targets(faults[0]):
                faults.append(other)
        yield rng.uniform(2, 8), rng.uniform(0, 2), faults


def targets(fault):
    """Whom it hits."""
    if "cut" in fault.kind:
        return {fault.gateway}
    hit = {daemon for daemon in ("MDS", "OSD", "MON", "pool")
           if daemon in fault.kind}
    return hit | {fault.gateway} if "gateway" in fault.kind or not hit \
        else hit


def may_lose_names(faults):
    """An MDS answers a create or a rename before its journal is written, up
    to 5 s before.  If it dies, its clients repeat what was not written; a
    client that is lost too cannot (docs/durability.md)."""
    hit = set().union(*map(targets, faults))
    return "MDS" in hit and bool(hit & {"a", "b"})


def named(fault):
    hit = targets(fault)
    whom = fault.gateway if fault.gateway in hit else \
        fault.osd if "OSD" in hit else \
        fault.mon if "MON" in hit and "all" not in fault.kind else ""
    long = any(word in fault.kind for word in ("stopped", "cut", "full"))
    if "clock" in fault.kind:
        return f"{fault.kind} {whom} ({fault.step_s:+d} s for " \
            f"{fault.seconds:.0f} s)"
    return f"{fault.kind} {whom}".strip() + \
        (f" ({fault.seconds:.0f} s)" if long else "")


def bound(faults):
    return sum(KINDS[fault.kind][1] for fault in faults)


class Strike(threading.Thread):
    """One fault, struck and healed."""

    def __init__(self, site, fault):
        super().__init__(daemon=True)
        self.site, self.fault = site, fault
        self.gateway = getattr(site, fault.gateway)
        self.sessions = 0       # that it ended
        self.failed = None

    def run(self):
        kind = self.fault.kind.removesuffix(" for long")
        try:
            getattr(self, "_" + kind.replace(" ", "_").lower())()
        except Exception as err:  # noqa: BLE001 (told by whoever waits for us)
            self.failed = f"{named(self.fault)}: {err}"

    def _sessions(self, end):
        """END each session of the gateway; tried until Ceph answers."""
        def ended():
            try:
                for session in self.gateway.sessions():
                    end(*session)
                    self.sessions += 1
            except (LabFailed, subprocess.TimeoutExpired):
                return False
            return True
        until(ended, "the session to end", PATIENCE_S)

    def _evict(self):
        self._sessions(lambda number, _: ceph(
            "tell", "mds.cephfs:0", "client", "evict", f"id={number}",
            timeout=cluster.TELL_S))

    def _blocklist(self):
        self._sessions(lambda _, address: ceph(
            "osd", "blocklist", "add", address, "3600",
            timeout=cluster.TELL_S))

    def _gateway_stopped(self):
        self.gateway.signal(signal.SIGSTOP)
        time.sleep(self.fault.seconds)
        if self.fault.seconds > cluster.LEASE_S - IDLE_S:
            self.gateway.lease_is_over()
        self.gateway.signal(signal.SIGCONT)

    def _gateway_killed(self):
        self.gateway.kill()
        self._start_gateway()

    def _start_gateway(self):
        # Ganesha's start hangs in libcephfs if no MDS has the rank (Ceph
        # 20.2.4, ceph_start_reclaim), and drops the export if no monitor
        # answers.
        until(cluster.mons_answer, "the monitors", PATIENCE_S)
        until(cluster.mds_is_active, "an active MDS", PATIENCE_S)
        self.gateway.start()
        until(self.gateway.serves, "the gateway to serve", PATIENCE_S)

    def _gateway_and_mds_killed(self):
        """Nobody is left who could repeat what the journal does not have."""
        name = cluster.active_mds()
        os.kill(cluster.daemon_pid(f"mds.{name}"), signal.SIGKILL)
        self.gateway.kill()
        time.sleep(self.fault.seconds / 4)
        lab("mds", "start", name)
        self._start_gateway()

    def _pool_full(self):
        self.site.pool_is_full(True)
        cluster.set_quota(True)
        self.site.pool_is_full(True)
        time.sleep(self.fault.seconds)
        cluster.set_quota(False)
        self.site.pool_is_full(False)

    def _clock_stepped(self):
        """Away and back again.  One of the two goes forward by more than the
        lease, which ends it.  For less than CLOCK_S a READ might hang in
        libcephfs (docs/limits.md)."""
        for offset_s in (self.fault.step_s, 0):
            self.gateway.step_clock(offset_s)
            time.sleep(self.fault.seconds if offset_s else SEEN_S)

    def _daemons_stopped(self, *names):
        pids = [cluster.daemon_pid(name) for name in names]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(self.fault.seconds)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    def _mds_killed(self):
        name = cluster.active_mds()
        os.kill(cluster.daemon_pid(f"mds.{name}"), signal.SIGKILL)
        time.sleep(self.fault.seconds / 4)
        lab("mds", "start", name)

    def _mds_stopped(self):
        self._daemons_stopped(f"mds.{cluster.active_mds()}")
        until(cluster.mds_is_active, "an active MDS", PATIENCE_S)

    def _osd_killed(self):
        os.kill(cluster.daemon_pid(f"osd.{self.fault.osd}"), signal.SIGKILL)
        time.sleep(self.fault.seconds / 2)
        lab("osd", "start", self.fault.osd)

    def _osd_stopped(self):
        self._daemons_stopped(f"osd.{self.fault.osd}")

    def _mon_stopped(self):
        self._daemons_stopped(f"mon.{self.fault.mon}")
        until(cluster.mons_answer, "the monitors", PATIENCE_S)

    def _mon_killed(self):
        os.kill(cluster.daemon_pid(f"mon.{self.fault.mon}"), signal.SIGKILL)
        time.sleep(self.fault.seconds / 2)
        lab("mon", "start", self.fault.mon)

    def _all_mons_stopped(self):
        self._daemons_stopped(*(f"mon.{letter}" for letter in "abc"))
        until(cluster.mons_answer, "the monitors", PATIENCE_S)

    def _network_cut(self):
        self._cut(cluster.cut)

    def _cut_from_osds(self):
        self._cut(self.site.cut_from, "osd")

    def _cut_from_mds(self):
        self._cut(self.site.cut_from, "mds")

    def _cut_from_mons(self):
        self._cut(self.site.cut_from, "mon")

    def _cut(self, cut, *whom):
        self.gateway.disturbed = time.monotonic()
        cut(True, *whom)
        time.sleep(self.fault.seconds)
        cut(False, *whom)
        self.gateway.disturbed = time.monotonic()


def strike(site, between, faults):
    """All of them, healed; the Strikes."""
    strikes = []
    for fault in faults:
        if strikes:
            time.sleep(between)
        strikes.append(Strike(site, fault))
        strikes[-1].start()
    for one in strikes:
        one.join(300)
        if one.is_alive():
            one.failed = f"{named(one.fault)}: not healed within 300 s"
    return strikes
