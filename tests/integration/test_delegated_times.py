# SPDX-License-Identifier: LGPL-3.0-or-later
"""Delegations with attributes (RFC 9754): the holder says of times what they
are.  Who looks next sees its times with its data; so after a crash of the
holder, of the gateway, of the MDS, and after an eviction.  And what work with
delegations comes to, beside work without.

The lease is short, as in test_delegations.py.
"""
import contextlib
import json
import os
import threading
import time
from pathlib import Path

import pytest

import delegated_times
import delegated_work
import test_delegations
from lab import SECOND_PORT
from lab_program import until
from nfs import nfs4
from test_delegations import (DATA, LEASE_S, NFSV4, REVOKED_WITHIN_S, Beside,
                              delegated, recalled)
from test_reconnect import Gateway

gateways, path, clients = (test_delegations.gateways, test_delegations.path,
                           test_delegations.clients)

WHEN = delegated_times.WHEN
EARLIER = WHEN - 10**15
GRACE_S = 2 * LEASE_S
WITH_GRACE = f"{NFSV4} Grace_Period = {GRACE_S}; Graceless = false;"
# Linux on a busy machine connects again after some seconds.
LINUX_GRACE = f"{NFSV4} Grace_Period = {5 * LEASE_S}; Graceless = false;"
# Linux fails locks with EIO if the lease is shorter than 6 s.
FOR_LOCKS = "Lease_Lifetime = 20; Delegations = true;"
FIGHT_S = 3
HANDED_OVER = 10
SLOWER = 3              # than without delegations, at most
KINDS = ("a", "b", "ceph")


def timed(client, path, **options):
    """An open with a delegation with attributes, for writing."""
    return delegated(client, path, nfs4.BOTH, nfs4.WRITE_ATTRS_DELEG,
                     want=nfs4.WANT_TIMES, **options)


def put_times(client, file, when):
    client.set(file.handle, file.delegation, deleg_access=when,
               deleg_modify=when)


def looker(cluster, clients, kind, path):
    """A function: the data that such a client reads, and the file's time of
    modification."""
    if kind == "ceph":
        def look():
            with open(cluster.mount.folder / path, "rb") as file:
                return file.read(), os.fstat(file.fileno()).st_mtime_ns
        return look
    client = clients(2049 if kind == "a" else SECOND_PORT)

    def look():
        file = client.open(path, access=nfs4.READ, want=nfs4.WANT_NO_DELEG)
        data = file.read(0, 1000)
        modified = client.times(file.handle)[1]
        file.close()
        return data, modified
    return look


def seen_by_all(cluster, clients, path, data, when):
    for kind in KINDS:
        assert looker(cluster, clients, kind, path)() == (data, when), kind


class Obliging(threading.Thread):
    """Gives back each delegation that is recalled from the client."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client, self.count = client, 0
        self.start()

    def run(self):
        while recall := self.client.recalls.get():
            _, stateid, handle = recall
            with contextlib.suppress(nfs4.Failed):
                self.client.return_delegation(handle, bytes(4) + stateid[4:])
            self.count += 1

    def end(self):
        self.client.recalls.put(None)
        self.join(30)
        return self.count


# --- times

@pytest.mark.parametrize("kind", KINDS)
def test_times_of_the_holder_are_seen(gateways, clients, path, record, kind):
    """What it said before the recall, and what it says with the return."""
    holder = clients()
    file = timed(holder, path)
    assert holder.write(file.handle, 0, b"AS", file.delegation) == 2
    put_times(holder, file, EARLIER)
    assert holder.times(file.handle) == (EARLIER, EARLIER)
    look = Beside(looker(gateways, clients, kind, path))
    recalled(holder, file)
    assert look.is_alive()
    holder.write(file.handle, 3, b"IT", file.delegation)
    put_times(holder, file, WHEN)
    file.return_delegation()
    said = look.end(gateways)
    after = b"AS IT" + DATA[5:], WHEN
    if kind == "a":
        assert said == after
    else:
        # CephFS recalled it: who looks may come between the WRITE and the
        # times, or before both; never with a time that is not of its data.
        record(f"who looks ({kind}) sees {said[0][:5]}, "
               f"{'with' if said[1] == WHEN else 'without'} its time")
        assert said[0] in (b"AS" + DATA[2:], after[0])
        assert said[1] != WHEN or said == after
    seen_by_all(gateways, clients, path, *after)
    file.close()
    seen_by_all(gateways, clients, path, *after)


def attributes_of(cluster, kind, client, path):
    """A function: size and time of modification as that client sees them, who
    wants more attributes at once."""
    if kind == "ceph":
        def look():
            about = os.stat(cluster.mount.folder / path)
            return about.st_size, about.st_mtime_ns
        return look
    if kind == "linux":
        return lambda: tuple(map(int, cluster.client(
            "python3", "-c", "import os, sys; a = os.stat(sys.argv[1]); "
            "print(a.st_size, a.st_mtime_ns)", f"/mnt/nfs/{path}").split()))
    handle = client.lookup(path)

    def look():
        _, there = client.get(handle, 1, 4, 33, 35)
        assert there[:2] == [1 << 1 | 1 << 4, 1 << 33 - 32 | 1 << 35 - 32]
        return client.change_and_size(handle)[1], client.times(handle)[1]
    return look


@pytest.mark.parametrize("kind", (*KINDS, "linux"))
def test_who_looks_at_attributes_alone_sees_the_holders(
        gateways, clients, path, kind):
    """Without an open.  All attributes are there, and they are true, at the
    first look and later; and the change attribute does not go back.  Ganesha
    9.14 would invent some, and Linux would not find the file."""
    holder = clients()
    attributes = attributes_of(
        gateways, kind, clients(SECOND_PORT if kind == "b" else 2049), path)
    file = timed(holder, path)
    change = holder.change_and_size(file.handle)[0]
    holder.kept[file.handle] = change + 1, 500
    look = Beside(attributes)
    recalled(holder, file)
    assert look.is_alive(), "answered before the holder said what it has"
    # What it had kept for itself.
    holder.write(file.handle, 0, b"x" * 500, file.delegation)
    put_times(holder, file, WHEN)
    file.return_delegation()
    said = look.end(gateways)
    if kind in ("a", "linux"):
        assert said == (500, WHEN)
    else:       # CephFS recalled it: who looks may come before the WRITE
        assert said[0] in (len(DATA), 500)
        assert said[1] != WHEN or said[0] == 500
    assert attributes() == (500, WHEN)
    assert holder.change_and_size(file.handle)[0] > change
    file.write(500, b"more")
    assert attributes()[0] == 504
    file.close()


@pytest.mark.measures
@pytest.mark.parametrize("kind", ("a", "b"))
def test_a_reader_returns_its_delegation_with_a_time(
        gateways, clients, path, record, kind):
    """As Linux does, in one COMPOUND: CephFS recalls the delegation because of
    the SETATTR, and the DELEGRETURN comes after that."""
    holder = clients()
    other = clients(2049 if kind == "a" else SECOND_PORT)
    mine, its = (delegated(client, path, nfs4.READ, nfs4.READ_ATTRS_DELEG,
                           want=nfs4.WANT_TIMES) for client in (holder, other))
    obliging = Obliging(other)
    began = time.monotonic()
    holder.compound(
        nfs4.put(mine.handle),
        (34, mine.delegation + nfs4.attributes(deleg_access=WHEN),
         nfs4.skip_bitmap), (8, mine.delegation, None))
    seconds = time.monotonic() - began
    obliging.end()
    record("SETATTR and DELEGRETURN of one who reads, beside another "
           f"({kind}), took {seconds:.2f} s")
    assert seconds < 2
    assert holder.times(mine.handle)[0] == WHEN
    mine.close()
    its.close()


# --- who or what dies

@pytest.mark.parametrize("kind", ("a", "ceph"))
def test_what_a_dead_holder_had_acknowledged_is_there(
        gateways, till_end, clients, path, record, kind):
    till_end(gateways.expects(test_delegations.REVOKED))
    holder = nfs4.Client(2049, f"to die {time.time_ns()}")
    file = timed(holder, path)
    assert holder.write(file.handle, 0, b"AS", file.delegation) == 2
    put_times(holder, file, WHEN)
    look = looker(gateways, clients, kind, path)
    holder.die()
    look = Beside(look)
    said = look.end(gateways)
    record(f"who looks ({kind}) waited {look.seconds:.1f} s for a delegation "
           f"with attributes of a dead client; the lease is {LEASE_S} s")
    assert look.seconds < REVOKED_WITHIN_S
    assert said == (b"AS" + DATA[2:], WHEN)


def is_probed(modified, written):
    """Of a file with a time of the past, after its CephFS session ended."""
    return modified == WHEN or abs(modified - written) < 10**9


def gateway_lost(cluster):
    Gateway(cluster).lose(lambda: cluster.evict(
        cluster.stat()["ganesha"]["a"]["pid"]))


def mds_killed(cluster):
    # It would wait for the sessions that tests before this one have left.
    for session in cluster.stat()["mds"]["sessions"]:
        pid = session["metadata"].get("pid", "self")
        if not Path(f"/proc/{pid}").exists():
            cluster.evict_session(session["id"])
    cluster.run("mds", "kill9", "a")
    cluster.run("mds", "start", "a")
    until(lambda: cluster.stat()["mds"], "an active MDS", 60)


@pytest.mark.parametrize("how", (gateway_lost, mds_killed))
def test_nothing_acknowledged_is_lost_with(gateways, till_end, clients, path,
                                           record, how):
    """The gateway's CephFS session, or the MDS.  But if a session ends, then
    the MDS takes the time of a file's last write for a time of the past
    (docs/durability.md)."""
    till_end(gateways.may_lose())
    holder = clients()
    file = timed(holder, path)
    assert holder.write(file.handle, 0, b"AS", file.delegation) == 2
    written = holder.times(file.handle)[1]
    put_times(holder, file, WHEN)
    how(gateways)
    look = Beside(looker(gateways, clients, "b", path))
    recalled(holder, file)
    file.return_delegation()
    data, modified = look.end(gateways)
    assert data == b"AS" + DATA[2:]
    if how is mds_killed:
        assert modified == WHEN
    else:
        assert is_probed(modified, written)
    record(f"{how.__name__}: who looks waited {look.seconds:.1f} s")
    assert look.seconds < REVOKED_WITHIN_S
    assert holder.write(file.handle, 0, b"as", file.stateid) == 2
    assert looker(gateways, clients, "ceph", path)()[0] == DATA
    file.close()


def wait_for_grace(client):
    def is_over():
        try:
            client.open(f"grace-{time.time_ns()}",
                        create=nfs4.UNCHECKED).close()
        except nfs4.Failed as err:
            assert err.status == nfs4.GRACE
            return False
        return True
    until(is_over, "the grace period is over", 5 * LEASE_S + 10)


def test_a_holder_reclaims_after_kill_9(gateways, clients, path, record):
    holder = clients()
    file = timed(holder, path)
    assert holder.write(file.handle, 0, b"AS", file.delegation) == 2
    written = holder.times(file.handle)[1]
    put_times(holder, file, WHEN)
    gateways.ganesha("kill9")
    gateways.ganesha("start", "--nfsv4", WITH_GRACE)
    holder.connect(reclaim=True)
    again = holder.reclaim_open(file.handle, owner=file.owner,
                                deleg=nfs4.WRITE_ATTRS_DELEG,
                                want=nfs4.WANT_TIMES)
    holder.reclaim_complete()
    record(f"reclaimed after kill -9: delegation {again.kind}")
    assert again.kind == nfs4.WRITE_ATTRS_DELEG
    assert is_probed(holder.times(again.handle)[1], written)
    wait_for_grace(clients())
    put_times(holder, again, WHEN)
    look = Beside(looker(gateways, clients, "ceph", path))
    recalled(holder, again)
    again.return_delegation()
    assert look.end(gateways) == (b"AS" + DATA[2:], WHEN)
    seen_by_all(gateways, clients, path, b"AS" + DATA[2:], WHEN)
    again.close()


# --- Linux

def test_times_of_linux_are_seen_before_and_after_kill_9(
        gateways, clients, tmp_path, record):
    """It sets a file's time with a delegation, and it takes its opens again
    by itself."""
    gateways.ganesha("restart", "--nfsv4", LINUX_GRACE)
    wait_for_grace(clients())
    folder = f"linux-{time.time_ns()}"
    before, after = KINDS, [f"{kind} later" for kind in KINDS]
    holder = gateways.start_client(
        "python3", "-B", gateways.scripts / "delegated_times.py",
        f"/mnt/nfs/{folder}", tmp_path, *before, *after, seconds=110)
    try:
        until((tmp_path / "ready").exists, "the holder is ready", 60)
        for names in (before, after):
            for kind, name in zip(KINDS, names):
                look = looker_below(gateways, clients, kind, folder, name)
                look = Beside(look)
                assert look.end(gateways) == (delegated_times.DATA, WHEN)
                record(f"who looks ({kind}) at a file of Linux' with a "
                       f"delegation waited {look.seconds:.2f} s")
            if names is before:
                gateways.ganesha("kill9")
                gateways.ganesha("start")
                wait_for_grace(clients())
        (tmp_path / "go").touch()
        said = gateways.end_client(holder, 60)
        record(f"Linux with delegations and kill -9: {said.split()}")
        assert "all well" in said
    finally:
        holder.terminate()
        holder.wait(30)
        gateways.ganesha("restart", "--nfsv4", NFSV4)


def looker_below(cluster, clients, kind, folder, name):
    if kind == "ceph":
        return looker(cluster, clients, kind, f"{folder}/{name}")
    client = clients(2049 if kind == "a" else SECOND_PORT)

    def look():
        file = client.open(name, access=nfs4.READ, want=nfs4.WANT_NO_DELEG,
                           directory=client.lookup(folder))
        data, modified = file.read(0, 1000), client.times(file.handle)[1]
        file.close()
        return data, modified
    return look


def test_work_with_delegations_is_that_of_a_local_disk(gateways, till_end,
                                                       record):
    """And another client sees what the holder saw, to the nanosecond."""
    till_end(gateways.may_log(
        "whether Linux reads with a delegation whose open is closed",
        "No openstate with delegation"))
    gateways.ganesha("restart", "--nfsv4", FOR_LOCKS)
    folder = f"work-{time.time_ns()}"
    said = json.loads(gateways.script(
        "delegated_work.py", f"/mnt/nfs/{folder}", "/run/work",
        seconds=110).splitlines()[-1])
    record(f"work with delegations, {said['returned']} of them returned: "
           f"seconds {said['seconds']}")
    gateways.ganesha("restart", "--nfsv4", NFSV4)
    assert said["returned"] > 100
    assert delegated_work.tree(gateways.mount.folder / folder) == said["tree"]


# --- two that want the same

def in_turn(pair, names, want):
    """How often a second they open, write and close one file after the
    other, each in turn."""
    began, count = time.monotonic(), 0
    for name in names:
        for client in pair:
            file = client.open(name, want=want)
            assert file.write(0, b"%08d" % count) == 8
            file.close()
            count += 1
    return count / (time.monotonic() - began)


def for_some_time(name):
    end = time.monotonic() + FIGHT_S
    while time.monotonic() < end:
        yield name


@pytest.mark.measures
@pytest.mark.parametrize("kind", ("a", "b"))
def test_two_fight_for_one_file(gateways, clients, path, record, kind):
    """No slower than without delegations; and what a file costs that goes
    from one to the other once."""
    pair = clients(), clients(2049 if kind == "a" else SECOND_PORT)
    obliging = [Obliging(client) for client in pair]
    once = [f"{path}-{number}" for number in range(HANDED_OVER)]
    for name in once:
        (gateways.mount.folder / name).write_bytes(DATA)
    rates, handed = {}, {}
    for how, want in (("without", nfs4.WANT_NO_DELEG), ("with", 0)):
        rates[how] = in_turn(pair, for_some_time(path), want)
        handed[how] = in_turn(pair, once, want)
    recalls = sum(one.end() for one in obliging)
    record(f"two clients (a and {kind}) in turn, opens a second: one file "
           f"{rates['without']:.0f} without delegations, {rates['with']:.0f} "
           f"with; {HANDED_OVER} files once {handed['without']:.0f} and "
           f"{handed['with']:.0f}; {recalls} recalls")
    assert recalls
    assert rates["with"] > rates["without"] / SLOWER
