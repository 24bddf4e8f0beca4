# SPDX-License-Identifier: LGPL-3.0-or-later
"""Trouble on purpose: dead daemons, a slow backend, an evicted session."""
from __future__ import annotations

import signal

from . import asok, cluster
from .util import LabError, say, stop_pid, wait_until


# Which one is meant when none is named.
FIRST = {"osd": "osd.0", "mon": "mon.a", "mgr": "mgr.x"}


def _named(kind: str, which: str | None) -> str:
    """osd.0, or the active metadata server, unless one is named."""
    if which is None:
        if kind in FIRST:
            return FIRST[kind]
        try:
            return cluster.active_mds()
        except LabError:
            return "mds.a"
    name = f"{kind}.{which}"
    if name not in cluster.daemons():
        raise LabError(f"no daemon {name}; there are: "
                       f"{', '.join(cluster.daemons())}")
    return name


def kill9(kind: str, which: str | None) -> None:
    name = _named(kind, which)
    pid = cluster.daemon_pid(name)
    if not pid:
        raise LabError(f"{name} is not running")
    if not stop_pid(pid, signal.SIGKILL, 15):
        raise LabError(f"{name} (pid {pid}) does not die")
    say(f"{name} killed")


def start(kind: str, which: str | None, wait: bool = True) -> None:
    """Start it and, unless told not to, wait until it serves again."""
    name = _named(kind, which)
    if cluster.daemon_pid(name):
        raise LabError(f"{name} runs already")
    if kind == "osd" and cluster.known()["store"] == "memstore":
        raise LabError(f"{name} had its data in memory (--store memstore): "
                       "they died with it.  `lab down`, then "
                       "`lab up --store bluestore` for crash tests")
    cluster.start_daemon(name)
    cluster.wait_daemon(name)
    if not wait:
        say(f"{name} runs")
        return
    if kind == "osd":
        wait_until(lambda: _osd_active(name), f"{name} to become active", 60)
    elif kind == "mon":
        wait_until(lambda: _in_quorum(name), f"{name} to join the quorum", 60)
    elif kind == "mgr":
        wait_until(_modules_answer, f"{name} to be active", 60)
    else:
        wait_until(lambda: _mds_serves(name), f"{name} to become active", 90)
    say(f"{name} serves again")


def _mds_serves(name: str) -> bool:
    cluster.start_again([name])
    return cluster.mds_active()


def _osd_active(name: str) -> bool:
    """Its own word; a young OSD does not know the question yet."""
    try:
        return asok.ask(cluster.socket_of(name), "status")["state"] \
            == "active"
    except (LabError, KeyError):
        return False


def _in_quorum(name: str) -> bool:
    try:
        return asok.ask(cluster.socket_of(name), "mon_status")["state"] \
            in ("leader", "peon")
    except (LabError, KeyError):
        return False


def _modules_answer() -> bool:
    """A command of a module that is always on; the one before, if it was
    killed, may still be thought of as active."""
    try:
        cluster.ceph("balancer", "status", timeout=10)
    except LabError:
        return False
    return True


def slow(ms: float) -> None:
    """Delay every OSD operation by 0 to MS milliseconds; 0 = off.

    An OSD decides when a connection begins whether it can be delayed.
    """
    if ms < 0 or ms > 60000:
        raise LabError(f"lab slow {ms:g}: 0 to 60000 milliseconds")
    values = [("ms_inject_delay_type", "client" if ms else ""),
              ("ms_inject_delay_max", f"{ms / 1000:g}"),
              ("ms_inject_delay_probability", "1" if ms else "0"),
              ("osd_client_message_cap", "4096" if ms else "256")]
    for key, value in values:
        cluster.ceph("config", "set", "osd", key, value)
    for name in cluster.daemons():
        if name.startswith("osd.") and cluster.daemon_pid(name):
            wait_until(lambda n=name: _has(n, values),
                       f"{name} to take the delay", 20)
    say(f"OSD operations are delayed by 0 to {ms:g} ms, for connections that "
        "begin now: restart Ganesha" if ms
        else "OSD operations are no longer delayed")


def _has(name: str, values: list[tuple[str, str]]) -> bool:
    """The monitors know at once, a daemon a moment later."""
    for key, value in values:
        now = asok.ask(cluster.socket_of(name), "config get", var=key)[key]
        kind = str if key == "ms_inject_delay_type" else float
        if kind(now) != kind(value):
            return False
    return True


def evict() -> int:
    """Evict every CephFS session that Ganesha holds; how many it were.

    `session evict` takes filters, and ignores what it does not know: without
    one it ends the sessions of all clients.  So look at who is left.
    """
    mds = cluster.socket_of(cluster.active_mds())
    ours, others = set(), set()
    for session in asok.ask(mds, "session ls"):
        about = session.get("client_metadata", {})
        (ours if is_ganesha(about) else others).add(session["id"])
    for number in sorted(ours):
        asok.ask(mds, "session evict", timeout=60, filters=[f"id={number}"])
    left = {session["id"] for session in asok.ask(mds, "session ls")
            if session["state"] in ("open", "opening", "stale")}
    if ours & left:
        raise LabError(f"sessions {sorted(ours & left)} are not evicted")
    if others - left:
        raise LabError(f"sessions {sorted(others - left)} of other clients "
                       "are gone: evicted with Ganesha's, or they left")
    say(f"{len(ours)} session{'s' * (len(ours) != 1)} evicted")
    return len(ours)


def is_ganesha(about: dict) -> bool:
    """A library client that calls itself ganesha, not kcephfs or a tool."""
    text = " ".join(str(value) for value in about.values()).lower()
    return "ganesha" in text
