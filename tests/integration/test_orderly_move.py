# SPDX-License-Identifier: LGPL-3.0-or-later
"""A gateway of several gets SIGTERM.  It is started again, as `ceph nfs` moves
one: its clients' locks stay with them, whatever clients of others ask for.  Or
it is not: then what it left can be ended.
"""
import os
import re
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import dbus
import pytest

import bus
from lab import LOGS, SECOND_PORT
from lab_program import Log, grace_tool, until
from nfs import nfs4
from test_cluster import NAMESPACE, POOL, locks, opens, two_nodes
from test_end_session import end_session

GRACE_S = 20            # where clients reclaim
BRIEF_S = 8
NO_GRACE_S = 90         # the longest of those that import this
LENGTH = 10
MDS_PID = Path("/var/lib/casync-lab/ceph/run/mds.a.pid")
DRAIN_S = 3             # where the MDS does not answer
OWN = 31
EXPORT = """EXPORT {{ Export_Id = {own}; Path = /; Pseudo = /own;
    Protocols = 4; Access_Type = RW; Squash = none; SecType = sys;
    Transports = TCP; FSAL {{ Name = CEPH_ASYNC; Share_Client = false;
    {drain} }} }}"""
RECLAIMS = pytest.mark.parametrize("nodes", [(GRACE_S, "")], indirect=True)
LEFT = "leaves its CephFS session and locks to its successor"


@pytest.fixture
def nodes(cluster, second, request):
    """Two gateways, each with an export that shares a client and one that has
    its own."""
    grace_s, drain = getattr(request, "param", (BRIEF_S, ""))
    for lab in two_nodes(cluster, second, grace_s,
                         append=[EXPORT.format(own=OWN, drain=drain)],
                         export=drain):
        until(lambda: cluster.exported("/ceph", 2049), "a serves", 60)
        yield lab


class Thief(threading.Thread):
    """Asks for a held lock again and again; what it was told, and how often
    it had the lock."""

    def __init__(self, file):
        super().__init__(daemon=True)
        self.file = file
        self.told = Counter()
        self.granted = 0
        self.stopping = False
        self.start()

    def run(self):
        while not self.stopping:
            try:
                self.file.lock(nfs4.WRITE_LOCK, 0, LENGTH)
            except nfs4.Failed as err:
                self.told[err.status] += 1
            else:
                self.granted += 1
                self.file.unlock(0, LENGTH)
            time.sleep(0.003)

    def is_refused(self):
        before = self.told[nfs4.DENIED]
        until(lambda: self.told[nfs4.DENIED] > before + 10, "it is refused",
              NO_GRACE_S)

    def end(self):
        self.stopping = True
        self.join(60)
        assert not self.is_alive()


class Holder:
    """A client that holds a lock on a new file."""

    def __init__(self, port, pseudo):
        self.port, self.pseudo = port, pseudo
        self.name = f"moved{pseudo.replace('/', '-')}-{time.time_ns()}"
        self.client = nfs4.Client(port, self.name, pseudo=pseudo)
        until(lambda: opens(self.client, self.name), "no grace", NO_GRACE_S)
        self.file = self.client.open(self.name)
        self.file.write(0, b"acknowledged")
        until(lambda: locks(self.file), "the lock", 10)

    def reclaim(self):
        """At the next gateway of the same name."""
        last, file = self.client, self.file
        last.die()
        self.client = nfs4.Client(self.port, self.name, pseudo=self.pseudo,
                                  reclaim=True, verifier=last.verifier)
        self.file = self.client.reclaim_open(file.handle, owner=file.owner)
        self.file.lock(nfs4.WRITE_LOCK, 0, LENGTH, reclaim=True)
        self.client.reclaim_complete()

    def still_has_it(self, content=b"acknowledged"):
        assert self.file.read(0, 100) == content
        self.file.unlock(0, LENGTH)
        self.client.leave()


def thief_of(holder, port):
    client = nfs4.Client(port, f"thief of {holder.name}")
    until(lambda: opens(client, holder.name), "no grace here", NO_GRACE_S)
    thief = Thief(client.open(holder.name))
    thief.is_refused()
    return thief


def pid(nodes, name):
    return nodes.stat()["ganesha"][name]["pid"]


@RECLAIMS
def test_nobody_gets_a_lock_that_moves(nodes, record):
    holders = [Holder(SECOND_PORT, pseudo) for pseudo in ("/second", "/own")]
    thieves = [thief_of(holder, 2049) for holder in holders]
    log, ended = Log(LOGS / "ganesha-b.log"), pid(nodes, "b")
    assert len(nodes.sessions(ended)) == 2

    nodes.ganesha("stop", "--name", "b")
    assert len(log.matching(LEFT)) == 2, log.text()
    assert len(nodes.sessions(ended)) == 2
    before = [sum(thief.told.values()) for thief in thieves]
    time.sleep(1)
    nodes.ganesha("start", "--name", "b")
    for holder in holders:
        holder.reclaim()
    for thief in thieves:
        thief.is_refused()
        thief.end()

    assert not nodes.sessions(ended)
    assert [thief.granted for thief in thieves] == [0, 0]
    for holder in holders:
        holder.still_has_it()
    asked = sum(sum(thief.told.values()) for thief in thieves)
    record("while a gateway was moved the locks of two of its clients were "
           f"asked for {asked} times, {sum(before)} of them before it had "
           "ended: never granted")


def test_a_gateway_that_is_stopped_for_good(nodes, record):
    """An export that goes before the end has its session ended.  The line at
    the end names the command that ends the other one."""
    holder, removed = Holder(2049, "/ceph"), Holder(2049, "/own")
    log, ended = Log(LOGS / "ganesha-a.log"), pid(nodes, "a")
    assert len(nodes.sessions(ended)) == 2
    bus.call("RemoveExport", "exportmgr", dbus.UInt16(OWN))
    until(lambda: len(nodes.sessions(ended)) == 1, "its session has ended", 10)
    thief = thief_of(holder, SECOND_PORT)

    nodes.ganesha("stop", "--name", "a")
    left, = log.matching(LEFT)
    name = re.search("end-session (ganesha-[^ ]+)$", left.rstrip())[1]
    grace_tool("--pool", POOL, "--ns", NAMESPACE, "remove", "node1")
    thief.is_refused()
    assert not thief.granted
    began = time.monotonic()
    done = end_session(name)
    assert done.returncode == 0, done.stderr
    assert f"{name}: ended at MDS cephfs:0" in done.stdout
    until(lambda: thief.granted, "others have it", 10)
    record("after a gateway was stopped for good others had its locks "
           f"{time.monotonic() - began:.1f} s after end-session")
    thief.end()
    assert not nodes.sessions(ended)
    for one in holder, removed:
        one.client.die()
    done = end_session(name)
    assert done.returncode == 1 and "no MDS has such a session" in done.stderr


def test_who_is_no_member_any_more_ends_its_session(nodes):
    holder = Holder(SECOND_PORT, "/second")
    ended = pid(nodes, "b")
    grace_tool("--pool", POOL, "--ns", NAMESPACE, "remove", "node2")
    nodes.ganesha("stop", "--name", "b")
    assert not nodes.sessions(ended)
    holder.client.die()


def test_an_end_while_the_session_is_lost(nodes, till_end):
    """There is nothing to leave."""
    till_end(nodes.may_lose())
    holder = Holder(SECOND_PORT, "/second")
    log, ended = Log(LOGS / "ganesha-b.log"), pid(nodes, "b")
    nodes.evict(ended)
    until(lambda: len(log.matching("the CephFS session is lost")) == 2,
          "the losses of both mounts", 10)
    nodes.ganesha("stop", "--name", "b", "--timeout", "30")
    assert not log.matching(LEFT), log.text()
    assert not nodes.sessions(ended)
    holder.client.die()


@pytest.mark.parametrize(
    "nodes", [(GRACE_S, f"Drain_Timeout = {DRAIN_S};")], indirect=True)
def test_an_end_whose_mds_does_not_answer(nodes, till_end, record):
    """It ends in time.  The session is there when the MDS goes on."""
    till_end(nodes.expects("unmounting '/' .* did not end within"))
    holder = Holder(SECOND_PORT, "/second")
    log, ended = Log(LOGS / "ganesha-b.log"), pid(nodes, "b")
    mds = int(MDS_PID.read_text(encoding="ascii"))
    os.kill(mds, signal.SIGSTOP)
    try:
        # The MDS has not heard of the new size.
        holder.file.write(12, b" twice")
        began = time.monotonic()
        nodes.ganesha("stop", "--name", "b", "--timeout", "40")
        took_s = time.monotonic() - began
    finally:
        os.kill(mds, signal.SIGCONT)
    record(f"an orderly end of two mounts took {took_s:.1f} s without an MDS")
    assert log.matching("not be in the MDS' journal: Connection timed out")
    assert took_s < 4 * DRAIN_S + 5
    assert len(nodes.sessions(ended)) == 2
    nodes.ganesha("start", "--name", "b")
    assert not nodes.sessions(ended)
    holder.reclaim()
    holder.still_has_it(b"acknowledged twice")
