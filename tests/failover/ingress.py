# SPDX-License-Identifier: LGPL-3.0-or-later
"""Two hosts, and a proxy with the address: `ceph nfs` with ingress.

The gateway is rank 0 of a cluster of `ceph nfs`.  Ganesha and haproxy have the
configurations of cephadm's own templates, and haproxy speaks PROXY protocol.
cephadm itself is not here.  deploy() does its steps in its order, at once: the
daemon before is removed if its host can be reached, its key goes, the next
generation starts, haproxy is configured anew and restarted (cephadm's serve.py
and services/nfs.py, ingress.py).  How long cephadm takes to notice is left out.
One thing is not cephadm's: the proxy's health checks have no PROXY header, for
which Ganesha 5.9 and 9.14 crash (docs/limits.md).

Rank 1 is where Ceph is, and not behind the proxy: who wants to steal a lock
goes there.
"""
from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from lab_program import LOGS, Log, ceph, lab, until
from nfs import nfs4, rpc
from hosts import (ADDRESS, FSAL, HOST_TWO, PORT, PORT_TWO, PSEUDO, Bound,
                   Host, Pair)
from netns import ip

CLUSTER = "ha"
HAPROXY = Path("/var/lib/haproxy/haproxy.cfg")
LEFT_S = 20     # a host that comes back has its old daemon for so long
STOP_S = 10     # podman's, between SIGTERM and SIGKILL


class Served(Host):
    """A host that may have the daemon of rank 0."""

    def __init__(self, number: int):
        super().__init__(number)
        self.ganesha = f"{CLUSTER}-h{number}"

    def has_address(self) -> bool:
        """The proxy sends to it."""
        return f" {self.address}:{PORT} check" in HAPROXY.read_text()

    def log(self) -> Log:
        return Log(LOGS / f"ganesha-{self.ganesha}.log")

    def reset(self) -> None:
        if self.pid():
            lab("ganesha", "kill9", "--name", self.ganesha)


class Ingress(Pair):
    """All of it, started anew.  NFSV4: keys in the user's own template of
    ganesha.conf; CONFIG: another text for `ceph nfs cluster config set`.
    """

    kinds = ("killed", "stopped", "cut off")
    thief_kinds = ("evicted", "MDS killed")
    versions = ("4.1", "4.2")
    moves = "haproxy has the other host"
    # Four waits of 3 s for a dead daemon, and Linux' own between two tries.
    bound = Bound(io_s=15, state_s=45, planned_s=15)
    second = f"{CLUSTER}-h0"
    mounted = f"/mnt/nfs{PSEUDO}"   # `lab client` mounts the pseudo root

    def __init__(self, nfsv4: str = "", config: str = "") -> None:
        self.nfsv4 = nfsv4
        self.stock = os.environ.get(FSAL) == "CEPH"
        self.config = config
        super().__init__()

    def _begin(self) -> None:
        self.hosts = (Served(1), Served(2))
        self.proxy = Host(3)
        ip("addr", "add", f"{ADDRESS}/24", "dev", "eth0",
            inside=self.proxy.keeper.pid)
        self.deploy(self.hosts[0])
        # The manager waits for answers of a daemon that is starting.
        until(lambda: serves(ADDRESS, PORT, nfs4.Viewer), "rank 0", 120)
        if self.config:
            path = LOGS / "user-config"
            path.write_text(self.config)
            # It ends by asking the orchestrator, which is not there, for a
            # restart.
            ceph("nfs", "cluster", "config", "set", CLUSTER, "-i", path,
                 check=False)
            assert ceph("nfs", "cluster", "config", "get",
                        CLUSTER).strip() == self.config
        ceph("nfs", "export", "create", "cephfs", "--cluster-id", CLUSTER,
             "--pseudo-path", PSEUDO, "--fsname", "cephfs", "--path=/")
        until(lambda: serves(ADDRESS, PORT), "the export", 120)
        self._daemon("--host", "h0", "--rank", 1, "--port", PORT_TWO)
        until(lambda: serves(HOST_TWO, PORT_TWO), "rank 1", 120)

    def _daemon(self, *words: object) -> None:
        # cephadm lists each host that it knows, and the address.
        known = [host.address for host in (*self.hosts, self.proxy)]
        lab("nfs-cluster", CLUSTER, "--no-wait", "--nfsv4", self.nfsv4,
            *["--installed"] * self.stock, *words, "--haproxy-hosts", *known,
            ADDRESS)

    def deploy(self, host: Host, offline: bool = False) -> None:
        """Rank 0 is at HOST from now on.  OFFLINE: the other one is out of
        reach."""
        self._daemon("--host", f"h{host.number}", "--address", host.address,
                     "--port", PORT, "--wrapper", host.wrapper,
                     *["--offline"] * offline)
        self.put_proxy()

    def put_proxy(self, *words: str) -> None:
        """Configured anew, and restarted."""
        lab("ingress", CLUSTER, "--virtual-ip", ADDRESS, "--port", PORT,
            "--address", self.proxy.address, "--ranks", 1, "--plain-checks",
            "--wrapper", self.proxy.wrapper, *words)

    def fail(self, kind: str, host: Host) -> None:
        if kind == "evicted":
            host.evict()
            return
        host.fail(kind)
        self.kill_mds(kind)
        self.deploy(self.other(host), offline=kind == "cut off")

    def heal(self, kind: str, host: Host) -> None:
        """A host that is back has its old daemon until cephadm removes it."""
        if kind == "cut off":
            host.cut(False)
            time.sleep(LEFT_S)
            host.signal(signal.SIGTERM)
            time.sleep(STOP_S)
            host.reset()
        until(lambda: not host.pid(), f"host {host.number} has no daemon")

    def end(self) -> None:
        if hasattr(self, "proxy"):
            self.proxy.end()
        super().end()


def serves(host: str, port: int, client: type = nfs4.Client) -> bool:
    """The export is there; with a Viewer, Ganesha alone."""
    try:
        client(port, f"asks-{time.time_ns()}", host=host,
               pseudo=PSEUDO).leave()
    except (OSError, rpc.Refused):
        return False
    return True
