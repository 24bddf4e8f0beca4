# SPDX-License-Identifier: LGPL-3.0-or-later
"""The cluster of the chaos job, and its two gateways.

Gateway "b" is in a network namespace of its own with two links: one to Ceph,
which can be cut, and one to its NFS clients.
"""
import json
import math
import os
import subprocess
import time
from pathlib import Path

from gateway_clock import GatewayClock
from lab_program import (LOGS, LabFailed, ceph, in_use_kib, lab, sizes_of,
                         until)
from netns import ip, namespace
from nfs import nfs3, rpc
from soak.soak import SMALL_CACHE

STATE = Path("/var/lib/casync-lab")
LEASE_S = GRACE_S = 15
SESSION_S = 30          # the least that Ceph takes
# Ganesha keeps up to 100,000 entries (5.7 KiB each, with libcephfs' and ours):
# git alone made a process grow by 25 MiB in an hour (--seed 5401).  With few of
# them, what else grows is seen, and entries end while faults happen.
FEW_ENTRIES = "MDCACHE { Entries_HWMark = 2000; }"
OPTIONS = (
    "osd_pool_default_size = 2", "osd_pool_default_min_size = 1",
    "bluestore_block_size = 4294967296", "osd_memory_target = 939524096",
    # A daemon that hangs for longer counts as dead.  Monitors that look less
    # often than a beacon may be late forgive every MDS; those whose quorum is
    # young wait for mon_down_grace.
    "mds_beacon_grace = 6", "mds_beacon_mon_down_grace = 6",
    "mds_beacon_interval = 2", "mon_tick_interval = 1",
    "osd_heartbeat_grace = 6", "osd_heartbeat_interval = 2",
    "mon_osd_min_down_reporters = 1",
    # How long a new metadata server waits for its clients.
    "mds_reconnect_timeout = 12")
NFSV4 = (f"Graceless = false; Lease_Lifetime = {LEASE_S}; "
         f"Grace_Period = {GRACE_S};")
TELL_S = 8      # a daemon that dies meanwhile leaves `ceph tell` waiting
QUOTA_S = 90    # until the monitors know how much is used, faults included
FULL_S = 30     # until an old map of the OSDs is gone everywhere
# Both modes in which a write is acknowledged early, and COMMIT has work.
EXPORT = f"Session_Timeout = {SESSION_S};"
EXPORT_B = f"{EXPORT} Stable_Write = fdatasync; Promote_Unstable = false;"
# name of the link on our side: its address, and the one of the gateway
CEPH_LINK, NFS_LINK = "chaos-ceph", "chaos-nfs"
LINKS = {CEPH_LINK: ("10.11.0.1", "10.11.0.2"),
         NFS_LINK: ("10.12.0.1", "10.12.0.2")}


class Gateway:
    """One ganesha.nfsd."""

    def __init__(self, name, host, port, pseudo):
        self.name, self.host, self.port, self.pseudo = name, host, port, pseudo
        self.disturbed = 0      # when it last was stopped or killed
        self.kills = 0
        self.clock = GatewayClock(name)
        self.lease_is_over = lambda: None
        self.is_killed = lambda: None
        self.full_until = 0     # writes may be refused

    def root(self):
        return nfs3.root_of(self.pseudo, self.port + 1, self.host)

    def connection(self):
        return rpc.Connection(self.port, timeout=100, host=self.host)

    @property
    def pid(self):
        return int((STATE / "ganesha" / self.name / "pid").read_text())

    @property
    def log(self):
        return LOGS / f"ganesha-{self.name}.log"

    def signal(self, number):
        self.disturbed = time.monotonic()
        os.kill(self.pid, number)

    def step_clock(self, offset_s):
        self.disturbed = time.monotonic()
        if offset_s > self.clock.offset_s:
            self.lease_is_over()
        self.clock.set(offset_s)

    def kill(self):
        self.disturbed = time.monotonic()
        self.kills += 1
        self.is_killed()
        lab("ganesha", "kill9", "--name", self.name)

    def start(self, *options):
        """It comes up while others of the lab may do so too."""
        lab("ganesha", "start", "--name", self.name, "--no-wait", *options)

    def serves(self):
        try:
            self.root()
        except (OSError, rpc.Refused):
            return False
        return True

    def resources(self):
        """Memory, threads and descriptors of the process."""
        return {"in_use_kib": in_use_kib(self.pid),
                **sizes_of(self.pid)._asdict()}

    def sessions(self):
        """(id, address) of its CephFS sessions."""
        listed = json.loads(ceph("tell", "mds.cephfs:0", "session", "ls",
                                 timeout=TELL_S))
        return [(one["id"], "{addr}/{nonce}".format(**one["entity"]["addr"]))
                for one in listed
                if one["client_metadata"].get("pid") == str(self.pid)]


def daemon_pid(name):
    """Of an OSD, a metadata server, a monitor."""
    return int((STATE / "ceph/run" / f"{name}.pid").read_text())


def active_mds():
    """The letter of the metadata server of rank 0, without the monitor."""
    stat = json.loads(lab("stat").stdout)
    assert stat["mds"], "no metadata server is active"
    return stat["mds"]["name"].split(".")[1]


def mds_is_active():
    return json.loads(lab("stat").stdout)["mds"] is not None


def mons_answer():
    try:
        ceph("mon", "stat", timeout=TELL_S)
    except (LabFailed, subprocess.TimeoutExpired):
        return False
    return True


def set_quota(full):
    """The pool of data is full, or not; until the monitors say so."""
    def told():
        try:
            ceph("osd", "pool", "set-quota", "cephfs_data", "max_bytes",
                 "1" if full else "0", timeout=TELL_S)
            return ("POOL_FULL" in ceph("health", "detail",
                                        timeout=TELL_S)) == full
        except (LabFailed, subprocess.TimeoutExpired):
            return False
    until(told, f"the pool to be {'full' if full else 'free'}", QUOTA_S)


def _namespace():
    """That of gateway "b": the process that keeps it."""
    keeper = namespace()
    for link, (ours, theirs) in LINKS.items():
        subprocess.run(["ip", "link", "del", link], check=False,
                       stderr=subprocess.DEVNULL, timeout=20)
        ip("link", "add", link, "type", "veth", "peer", "name", "inner",
            "netns", keeper.pid)
        ip("addr", "add", f"{ours}/24", "dev", link)
        ip("link", "set", link, "up")
        name = f"in-{link}"
        ip("link", "set", "inner", "name", name, inside=keeper.pid)
        ip("addr", "add", f"{theirs}/24", "dev", name, inside=keeper.pid)
        ip("link", "set", name, "up", inside=keeper.pid)
    return keeper


def cut(whether):
    """The link between gateway "b" and Ceph."""
    ip("link", "set", CEPH_LINK, "down" if whether else "up")


def ports(kind):
    """Where the daemons of this kind listen now."""
    listed = subprocess.run(["ss", "-Htlnp"], check=True, timeout=20,
                            stdin=subprocess.DEVNULL, capture_output=True,
                            text=True).stdout
    return sorted({line.split()[3].rsplit(":", 1)[1]
                   for line in listed.splitlines()
                   if f'(("ceph-{kind}"' in line})


class Cluster:
    """All of it, started anew."""

    def __init__(self):
        lab("down")
        os.environ.update(OSD="3", MDS="2", MON="3")
        lab("cluster", "-n", "--bluestore",
            *(word for option in OPTIONS for word in ("-o", option)))
        for key, seconds in (("session_timeout", SESSION_S),
                             ("session_autoclose", SESSION_S + 5)):
            ceph("fs", "set", "cephfs", key, seconds)
        self.a = Gateway("a", "127.0.0.1", 2049, "/ceph")
        self.b = Gateway("b", LINKS[NFS_LINK][1], 12049, "/second")
        self.gateways = (self.a, self.b)
        self.keeper = _namespace()
        address = (STATE / "ceph/cluster.json").read_text(encoding="utf-8")
        address = json.loads(address)["addr"]
        ip("route", "add", address, "via", LINKS[CEPH_LINK][0],
            inside=self.keeper.pid)
        common = ("--fsal", "CEPH_ASYNC", "--nfsv4", NFSV4, "--block",
                  SMALL_CACHE, "--append", FEW_ENTRIES)
        self.a.start(*common, "--export", EXPORT, "--wrapper",
                     self.a.clock.wrapper())
        self.b.start(*common, "--export", EXPORT_B, "--port", self.b.port,
                     "--pseudo", self.b.pseudo, "--wrapper",
                     f"nsenter --net=/proc/{self.keeper.pid}/ns/net "
                     f"{self.b.clock.wrapper()}")
        for gateway in self.gateways:
            until(gateway.serves, f"gateway {gateway.name}", 60)
        self.rules = []         # of the cuts in force
        self.told_full = lambda: None

    def cut_from(self, whether, kind):
        """Between gateway "b" and one kind of daemons: what it sends them is
        thrown away."""
        if whether:
            new = [("ipproto", "tcp", "dport", port, "blackhole")
                   for port in ports(kind)]
            assert new, f"no ceph-{kind} listens"
            self.rules += new
        else:
            new, self.rules = self.rules, []
        for rule in new:
            ip("rule", "add" if whether else "del", *rule,
                inside=self.keeper.pid)

    def pool_is_full(self, whether):
        """Clients may be told so, and a while after."""
        for gateway in self.gateways:
            gateway.full_until = math.inf if whether else \
                time.monotonic() + FULL_S
        self.told_full()

    def stacks(self):
        """Where everybody is, into the folder of logs."""
        for gateway in self.gateways:
            lab("ganesha", "stacks", "--name", gateway.name, check=False)
        for name in ("osd.0", "osd.1", "osd.2", "mds.a", "mds.b",
                     "mon.a", "mon.b", "mon.c"):
            with open(LOGS / f"{name}-stacks.txt", "w",
                      encoding="utf-8") as out:
                subprocess.run(
                    ["timeout", "60", "gdb", "-p", str(daemon_pid(name)),
                     "-batch", "-nx", "-ex", "set debuginfod enabled off",
                     "-ex", "thread apply all bt"], stdout=out, stderr=out,
                    stdin=subprocess.DEVNULL, check=False)

    def end(self):
        lab("down", check=False)
        self.keeper.kill()
        self.keeper.wait(20)
