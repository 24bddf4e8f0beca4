# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a power cut does to processes, and the way back from it."""
from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from . import cluster, ganesha
from .util import LabError, say, wait_until


def _storage() -> list[str]:
    """The OSDs and metadata servers, in the order they start."""
    return [name for name in cluster.daemons()
            if name.startswith(("osd.", "mds."))]


def crash(name: str, storage: bool) -> None:
    """SIGKILL Ganesha NAME and, with STORAGE, all OSDs and MDSs, at once."""
    if storage and cluster.known()["store"] == "memstore":
        raise LabError("the OSDs have their data in memory: they would die "
                       "with them.  `lab down`, then `lab up --store "
                       "bluestore`")
    pids = [ganesha.pid(name)]
    if storage:
        pids += [cluster.daemon_pid(daemon) for daemon in _storage()]
    if None in pids:
        raise LabError("not all of the victims are running")
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    # Locks on files last until the last thread is gone, when the process has
    # long been a zombie.
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids),
               "the processes to be gone", 30, every=0.01)
    say(f"{len(pids)} processes killed at once")


def _rank_taken(started: list[str]) -> bool:
    """An MDS of ours knows from its own map that rank 0 is its."""
    cluster.start_again(started)
    with contextlib.suppress(LabError):
        return bool(cluster.active_mds())
    return False


def recover(name: str, timeout: float = 120) -> None:
    """Start whatever is dead and wait until Ganesha NAME answers a mount.

    Ganesha comes up beside the others, which may need its takeover of its
    old session to get on; but not before the metadata server has its rank:
    until then that drops requests, and libcephfs waits for an answer for
    ever (Ceph 20.2.4, ceph_start_reclaim).
    """
    begin = time.monotonic()
    dead = [daemon for daemon in _storage() if not cluster.daemon_pid(daemon)]
    for daemon in dead:
        cluster.start_daemon(daemon)
    for daemon in dead:
        cluster.wait_daemon(daemon)
    wait_until(lambda: _rank_taken(dead), "a metadata server to take rank 0",
               90)
    ganesha.start(name, {}, timeout)
    wait_until(cluster.mds_active, "a metadata server to become active", 90)
    say(f"recovered in {time.monotonic() - begin:.1f} s")
