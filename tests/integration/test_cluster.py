# SPDX-License-Identifier: LGPL-3.0-or-later
"""Several gateways: one takes over from another that died, by way of
Ganesha's own recovery database in RADOS; registration as a service.
"""
import fcntl
import json
import os
import signal
import subprocess
import time

import pytest

import bus
import ganesha_5_9
from fuse import Fuse
from lab import LOGS, SECOND_PORT, SECOND_PSEUDO
from lab_program import Log, ceph, grace_tool, until
from nfs import nfs4

CONF = "/etc/ceph/ceph.conf"
POOL, NAMESPACE = "cephfs_metadata", "ganesha"
TAKE_NODEID = 4         # Ganesha's event: "4:2" is "node2 is gone"
GRACE_S = 8


def backend(node, grace_s=GRACE_S):
    return ("RecoveryBackend = rados_cluster; Graceless = false; "
            f"Lease_Lifetime = 4; Grace_Period = {grace_s};",
            f'RADOS_KV {{ nodeid = "{node}"; pool = "{POOL}"; '
            f'namespace = "{NAMESPACE}"; }}')


@pytest.fixture
def nodes(cluster, second):
    """Two nodes of one cluster that serve the same export."""
    yield from two_nodes(cluster, second)


def two_nodes(cluster, second, grace_s=GRACE_S, options=(), block="",
              append=(), export=""):
    """OPTIONS are of "a", the others of both."""
    with cluster.may_have_news(), cluster.may_log(
            "who asks for a lock while it takes long is told to ask again",
            "Unable to lock FSAL, error=STATE_IN_GRACE"):
        yield from _two_nodes(cluster, second, grace_s, options, block,
                              append, export)


def _two_nodes(cluster, second, grace_s, options, block, append, export):
    grace_tool("--pool", POOL, "--ns", NAMESPACE, "add", "node1", "node2")
    for name, node in (("a", "node1"), ("b", "node2")):
        nfsv4, rados = backend(node, grace_s)
        if name == "a":
            cluster.ganesha("restart", "--fsal", "CEPH_ASYNC", "--export",
                            export, "--block", block, "--core", "",
                            "--export-block", "", "--nfsv4", nfsv4,
                            *(f"--append={text}" for text in (rados, *append)),
                            "--no-wait", *options)
        else:
            second(nfsv4=nfsv4, append=[rados, *append], block=block,
                   export=export, export_block="Export_Id = 1;")
    yield cluster
    cluster.stop_second()
    cluster.ensure_default()
    subprocess.run(["rados", "--pool", POOL, "--namespace", NAMESPACE,
                    "rm", "grace"], check=True, timeout=60,
                   stdin=subprocess.DEVNULL)


def opens(client, name):
    try:
        client.open(name, create=nfs4.UNCHECKED).close()
    except nfs4.Failed as err:
        assert err.status == nfs4.GRACE
        return False
    return True


def locks(file):
    """A LOCK that took long is to be asked for again."""
    try:
        file.lock(nfs4.WRITE_LOCK, 0, 10)
    except nfs4.Failed as err:
        assert err.status == nfs4.GRACE
        return False
    return True


def test_the_session_of_a_dead_node_is_ended(nodes, record):
    """Its locks and capabilities keep nobody waiting: no session timeout."""
    victim = nodes.stat()["ganesha"]["b"]["pid"]
    mount = Fuse()
    name = f"taken-over-{time.time_ns()}"
    dead = nfs4.Client(SECOND_PORT, "the dead node's")
    until(lambda: opens(dead, name), "no grace", GRACE_S + 15)
    file = dead.open(name)
    file.write(0, b"acknowledged")
    until(lambda: locks(file), "the lock", 10)
    assert len(nodes.sessions(victim)) == 1

    nodes.ganesha("kill9", "--name", "b")
    dead.die()
    assert len(nodes.sessions(victim)) == 1, "it went by itself"
    began = time.monotonic()
    bus.call("grace", "admin", f"{TAKE_NODEID}:2", of="admin")
    until(lambda: not nodes.sessions(victim), "the session is ended", 20)
    record("the session of a dead node is ended "
           f"{time.monotonic() - began:.1f} s after the take-over began")
    assert (mount.folder / name).read_bytes() == b"acknowledged"

    # The client comes over and has its lock again; nobody else may take it.
    thief = nfs4.Client(2049, "the thief's", reclaim=True)
    with pytest.raises(nfs4.Failed) as refusal:
        thief.reclaim_open(file.handle)
    assert refusal.value.status == nfs4.NO_GRACE
    heir = nfs4.Client(2049, "the dead node's", reclaim=True,
                       verifier=dead.verifier)
    again = heir.reclaim_open(file.handle, owner=file.owner)
    again.lock(nfs4.WRITE_LOCK, 0, 10, reclaim=True)
    assert again.read(0, 100) == b"acknowledged"
    with open(mount.folder / name, "r+b") as beside:
        with pytest.raises(BlockingIOError):
            fcntl.lockf(beside, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 0)
        fcntl.lockf(beside, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 10)
    mount.end()
    again.unlock(0, 10)
    again.close()
    for client in (heir, thief):
        client.leave()


def test_a_node_dies_while_the_own_session_is_lost(nodes, till_end):
    """One cause hits both gateways: the take-over is not left out."""
    till_end(nodes.may_lose())
    log = Log(LOGS / "ganesha-a.log")
    victim, own = (nodes.stat()["ganesha"][name]["pid"] for name in "ba")
    dead = nfs4.Client(SECOND_PORT, "the dead node's")
    name = f"both-{time.time_ns()}"
    until(lambda: opens(dead, name), "no grace", GRACE_S + 15)
    nodes.ganesha("kill9", "--name", "b")
    dead.die()
    nodes.evict(own)
    until(lambda: log.matching("the CephFS session is lost"), "the loss", 10)
    assert len(nodes.sessions(victim)) == 1, "it went by itself"
    bus.call("grace", "admin", f"{TAKE_NODEID}:2", of="admin")
    try:
        until(lambda: not nodes.sessions(victim), "the session is ended", 15)
    finally:
        nodes.evict(victim)     # it would keep all tests waiting
    assert log.matching("takeover of node 'node2': session .*: ended")
    until(lambda: log.matching("a new CephFS client serves"), "it serves", 20)
    assert len(log.matching("the CephFS session is lost")) == 1


@pytest.fixture
def replaced(cluster):
    """A gateway as node1, alone in its cluster; its pid."""
    grace_tool("--pool", POOL, "--ns", NAMESPACE, "add", "node1")
    nfsv4, rados = backend("node1")
    with cluster.may_have_news():
        cluster.ganesha("restart", "--fsal", "CEPH_ASYNC", "--export", "",
                        "--block", "", "--core", "", "--export-block", "",
                        "--nfsv4", nfsv4, "--append", rados)
        yield cluster.stat()["ganesha"]["a"]["pid"]
        cluster.ensure_default()
    subprocess.run(["rados", "--pool", POOL, "--namespace", NAMESPACE,
                    "rm", "grace"], check=True, timeout=60,
                   stdin=subprocess.DEVNULL)


def test_who_was_replaced_leaves_his_successor_alone(cluster, replaced,
                                                     second, till_end):
    """Another host became this gateway while ours stood still; now it goes
    on, and somebody is about to kill it."""
    till_end(cluster.may_log("whether it asks for its name before that",
                             "started later, has its name"))
    log = Log(LOGS / "ganesha-a.log")
    nfsv4, rados = backend("node1")
    os.kill(replaced, signal.SIGSTOP)
    try:
        its = second(nfsv4=nfsv4, append=[rados],
                     export_block="Export_Id = 1;")
    finally:
        os.kill(replaced, signal.SIGCONT)
    session, = cluster.sessions(its.pid)
    until(lambda: log.matching("the CephFS session is lost"), "notices it", 10)
    time.sleep(3)
    assert [one["id"] for one in cluster.sessions(its.pid)] == [session["id"]]
    assert not cluster.serving_sessions(replaced)
    assert not its.log.matching("the CephFS session is lost")
    cluster.ganesha("kill9", "--name", "a")


def test_a_reload_ends_the_search_for_a_client(cluster, replaced, till_end):
    """While the session is lost; it goes on when Reconnect is true again."""
    till_end(cluster.may_lose())
    log = Log(LOGS / "ganesha-a.log")

    def reload(value):
        cluster.run("ganesha", "reload", "--export", f"Reconnect = {value};")
        until(lambda: log.matching(f"export 1: Reconnect = {value} "), value,
              10)
    cluster.evict(replaced)
    until(lambda: log.matching("the CephFS session is lost"), "the loss", 10)
    reload("false")
    time.sleep(6)       # a successor is waited for 5 s
    assert not log.matching("not reloaded")
    assert not log.matching("a new CephFS client serves")
    reload("true")
    until(lambda: log.matching("a new CephFS client serves"), "it serves", 20)


def test_registration_without_a_connection_goes_on(cluster, second):
    """Ganesha's library would crash, and 5.9 cannot do it at all: one clear
    line, and serving goes on."""
    why = "Register_Service = true: " + (
        "Ganesha 5.9 has no registration of services" if ganesha_5_9.IS_OLD
        else "no RADOS_URLS")
    cluster.ensure_default()
    with cluster.expects(why):
        said = second(block='Register_Service = true; Nodeid = "node-b";')
    assert len(said.log.matching(why)) == 1
    client = nfs4.Client(SECOND_PORT, "served")
    file = client.open(f"registered-{time.time_ns()}", create=nfs4.UNCHECKED)
    assert file.write(0, b"as ever") == 7
    file.close()
    client.leave()


def services():
    found = json.loads(ceph("service", "dump", "--format", "json"))
    return found["services"].get("nfs-ganesha", {}).get("daemons", {})


def test_registration_is_seen_by_the_manager(cluster, second):
    """As cephadm configures it: with a watch on its configuration."""
    subprocess.run(["rados", "--pool", POOL, "--namespace", NAMESPACE,
                    "put", "conf-nfs", "/dev/null"], check=True, timeout=60,
                   stdin=subprocess.DEVNULL)
    said = second(block='Register_Service = true; Nodeid = "node-b";',
                  append=[f'RADOS_URLS {{ ceph_conf = "{CONF}"; '
                          f'watch_url = "rados://{POOL}/{NAMESPACE}/'
                          'conf-nfs"; }'])
    assert not said.log.matching("Register_Service = true:")
    until(lambda: "nfs.node-b" in services(), "the manager knows it", 30)
    # Ganesha 9.14 does not end once it is registered: it waits for the thread
    # that keeps the registration, whose end it orders only afterwards.
    cluster.ganesha("kill9", "--name", "b")
    cluster.evict(said.pid)


@pytest.mark.parametrize("recovery", ("rados_kv", "rados_ng"))
def test_a_node_id_that_ganesha_keeps(cluster, till_end, second, recovery):
    """These two recovery backends hand out their own text of the node's id: it
    is not ours to free.  A second client of CephFS asks for it again."""
    till_end(cluster.may_lose())
    said = second(
        nfsv4=f"RecoveryBackend = {recovery}; Graceless = true;",
        append=[f'RADOS_KV {{ nodeid = "kept"; pool = "{POOL}"; '
                'namespace = "kept"; }'])
    for loss in (1, 2):
        cluster.evict(said.pid)
        until(lambda loss=loss: len(said.log.matching(
            "a new CephFS client serves")) == loss, "it serves again", 30)
    assert cluster.exported(SECOND_PSEUDO)
    assert cluster.stat()["ganesha"]["b"]["pid"] == said.pid
