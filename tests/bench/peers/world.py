# SPDX-License-Identifier: LGPL-3.0-or-later
"""The cluster, and every system on it, up and idle side by side."""
from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bench import lab, stat
from lab_program import LabFailed, ceph
from peers.env import Env
from peers.kernel_client import SLOTS, KernelClient
from peers.knfsd import Knfsd
from peers.systems import SYSTEMS, System, port_of, pseudo_of

POOL = "peers"
IMAGE = "image"
IMAGE_MIB = 512             # 16 streams of 32 MiB
SETTLE_LIMIT_S = 30
# Else memstore keeps an object as the list of what was written into it, which
# every later request walks: after 50,000 random writes the same load has half
# the rate, and whoever has written most is slowed down most. The default page
# of 64 KiB would hold the limit down: `rados bench` gives a page to each of
# its 4 KiB objects.
MEMSTORE = ("-o", "memstore_page_set = true", "-o", "memstore_page_size = 4096")
# Reads shall come from the disk.
SMALL_CACHE = ("-o", "bluestore_cache_autotune = false",
               "-o", "bluestore_cache_size = 16777216")
QUIET_OPS = 20              # in half a second
# What the lab sets otherwise, for tests, is back to Ganesha's own default.
GANESHA = ("--export-block", "Attr_Expiration_Time = 60;",
           "--nfsv4", f"Slot_Table_Size = {SLOTS};")


class World:
    def __init__(self, keep_cluster: bool,
                 say: Callable[[str], None]) -> None:
        self.keep_cluster = keep_cluster
        self.say = say
        self.env: Env | None = None
        self.ganeshas: dict[str, dict[str, Any]] = {}
        self.clients: dict[str, KernelClient] = {}
        self.fuse: dict[str, subprocess.Popen] = {}
        self.knfsd: Knfsd | None = None
        self.pool = False
        self.filled = False     # the image of RBD

    # What a scenario asks for.

    def enter(self, env: Env, systems: Iterable[str]) -> None:
        """That world, with these systems up; the others stay, idle."""
        if env != self.env:
            self.leave()
            self._cluster(env)
            self.env = env
        for name in systems:
            self.ensure(SYSTEMS[name])

    def ensure(self, system: System) -> None:
        if system.kind == "ganesha" and system.name not in self.ganeshas:
            self._start_ganesha(system)
        elif system.kind == "fuse" and system.name not in self.fuse:
            self._start_fuse(system)
        elif system.kind == "knfsd" and not self.knfsd:
            self.knfsd = Knfsd()
        elif system.kind in ("rados", "rbd"):
            self._make_pool()

    def pid(self, system: System) -> int | None:
        """The server's process, where the server is one of this machine."""
        if system.kind == "ganesha":
            return self.ganeshas[system.name]["pid"]
        if system.kind == "fuse":
            return self.fuse[system.name].pid
        return None

    def client_pid(self, system: System) -> int | None:
        """The process of its kernel client, if it has one."""
        client = self.clients.get(system.name)
        return client.process.pid if client else None

    def nfs(self, system: System) -> dict[str, Any]:
        """server, port, mount_port and export of an NFS system."""
        if system.kind == "knfsd":
            assert self.knfsd
            return self.knfsd.address()
        about = self.ganeshas[system.name]
        return {"server": "127.0.0.1", "port": about["port"],
                "mount_port": about["port"] + 1, "export": about["pseudo"]}

    def client(self, system: System, vers: str, opts: str,
               mem: str = "1G") -> tuple[KernelClient, str]:
        """A kernel client of that system, mounted so, and where."""
        if system.name in self.clients and \
                self.clients[system.name].mem != mem:
            self.clients.pop(system.name).close()
        if system.name not in self.clients:
            self.say(f"kernel client for {system.name}, {mem}")
            options = ["--fs", "ceph", *system.options] \
                if system.kind != "ganesha" else \
                ["--name", about_name(system)]
            self.clients[system.name] = KernelClient(options, mem)
        client = self.clients[system.name]
        if system.kind == "kcephfs":
            return client, "/mnt/ceph"
        where = self.nfs(system)
        host = "lab" if where["server"] == "127.0.0.1" else where["server"]
        # NFSv4 sees knfsd's export as the root.
        path = "/" if system.kind == "knfsd" and vers[0] == "4" else \
            where["export"]
        client.mount_nfs(f"{host}:{path}", where["port"],
                         where["mount_port"], vers, opts)
        return client, "/mnt/nfs"

    def image(self) -> str:
        """Of RBD, full, as the files are; what fio calls it."""
        if not self.filled:
            self._make_image(IMAGE)
            self.filled = True
        return IMAGE

    def make_cold(self, system: System) -> None:
        """Its client and its server know no file."""
        client = self.clients.get(system.name)
        if client:
            client.unmount_nfs()
            client.run("echo 3 > /proc/sys/vm/drop_caches")
        about = self.ganeshas.pop(system.name, None)
        if about:
            lab("ganesha", "stop", "--name", about_name(system))
            self._evict({str(about["pid"])})
        self.ensure(system)

    # How it comes and goes.

    def settle(self) -> None:
        """Until the OSDs are quiet: purging what was removed is load, too."""
        until = time.monotonic() + SETTLE_LIMIT_S
        before = -1
        while time.monotonic() < until:
            now = stat()["osd"]["total"]["op"]
            if 0 <= now - before < QUIET_OPS:
                return
            before = now
            time.sleep(0.5)
        self.say(f"the OSDs are not quiet after {SETTLE_LIMIT_S} s")

    def forget(self, system: System) -> None:
        """Its client may be broken: the next one who asks gets another."""
        client = self.clients.pop(system.name, None)
        if client:
            client.kill()

    def leave(self) -> None:
        """Everything of ours ends, but the cluster."""
        for client in self.clients.values():
            client.close()
        self.clients = {}
        if self.knfsd:
            self.knfsd.close()
            self.knfsd = None
        pids = {str(about["pid"]) for about in self.ganeshas.values()}
        for name in self.ganeshas:
            lab("ganesha", "stop", "--name", about_name(SYSTEMS[name]))
        self.ganeshas = {}
        for name in list(self.fuse):
            self._stop_fuse(name)
        self._evict(pids)

    def _evict(self, pids: set[str]) -> None:
        """FSAL_CEPH leaves its session behind, whose capabilities would keep
        everyone waiting until it times out."""
        if not self.env:
            return
        for session in stat()["mds"]["sessions"]:
            if session["metadata"].get("pid") in pids:
                ceph("tell", "mds.0", "client", "evict",
                     f"id={session['id']}")

    def end(self) -> None:
        self.leave()
        if self.env and self.env.slow_ms >= 0:
            lab("slow", "0")
        if self.keep_cluster:
            with contextlib.suppress(LabFailed):
                self._remove_pool()
        else:
            lab("down")

    def _cluster(self, env: Env) -> None:
        old = self.env
        if not self.keep_cluster and (
                not old or (old.store, old.disk) != (env.store, env.disk)):
            lab("down")
            self.say(f"a cluster on {env.store}")
            lab("cluster", f"--{env.store}",
                *(MEMSTORE if env.store == "memstore" else ()),
                *(SMALL_CACHE if env.disk else ()))
            self.pool = self.filled = False
            old = None
        if env.slow_ms >= 0 or (old and old.slow_ms >= 0):
            self.say(f"backend delayed by 0 to {max(env.slow_ms, 0):g} ms")
            lab("slow", f"{max(env.slow_ms, 0):g}")

    def _start_ganesha(self, system: System) -> None:
        self.say(f"Ganesha {system.name}: {system.label}")
        export = list(system.export)
        if system.name == "quiet":
            export.append(f'Secret_Access_Key = "{_quiet_user()}";')
        options = list(GANESHA)
        for kind, keys in (("--export", export), ("--block", system.block)):
            for key in keys or ("",):
                options += [kind, key]
        for kind, keys in (("--nfsv4", system.nfsv4),
                           ("--export-block", system.export_block)):
            for key in keys:
                options += [kind, key]
        options += ["--core", ""]
        name = about_name(system)
        lab("ganesha", "start", "--name", name, "--fsal", system.fsal,
            "--port", str(port_of(system)), "--pseudo", pseudo_of(system),
            *options)
        about = stat()["ganesha"][name]
        self.ganeshas[system.name] = about

    def _start_fuse(self, system: System) -> None:
        where = fuse_of(system)
        where.mkdir(exist_ok=True)
        daemon = subprocess.Popen(
            ["ceph-fuse", "-f", "-n", "client.admin", *system.options,
             str(where)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.fuse[system.name] = daemon
        for _ in range(300):
            if os.path.ismount(where):
                return
            if daemon.poll() is not None:
                break
            time.sleep(0.1)
        raise SystemExit(f"bench: ceph-fuse does not mount at {where}")

    def _stop_fuse(self, name: str) -> None:
        daemon = self.fuse.pop(name)
        subprocess.run(["umount", str(fuse_of(SYSTEMS[name]))], check=False,
                       timeout=60, stdin=subprocess.DEVNULL)
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            daemon.send_signal(signal.SIGKILL)
            daemon.wait(20)

    def _make_pool(self) -> None:
        """For RADOS and RBD, with as many placement groups as CephFS has."""
        if self.pool:
            return
        ceph("osd", "pool", "create", POOL, "8")
        ceph("osd", "pool", "application", "enable", POOL, "rbd")
        self.pool = True

    @staticmethod
    def _make_image(name: str) -> None:
        subprocess.run(
            ["rbd", "create", "--pool", POOL, "--size", str(IMAGE_MIB),
             "--image-feature", "layering", name], check=True, timeout=60,
            stdin=subprocess.DEVNULL)
        subprocess.run(
            ["fio", "--name=fill", "--ioengine=rbd", "--clientname=admin",
             f"--pool={POOL}", f"--rbdname={name}", "--rw=write", "--bs=4m",
             "--iodepth=4", "--output=/dev/null"], check=True, timeout=120,
            stdin=subprocess.DEVNULL)

    def _remove_pool(self) -> None:
        if self.pool:
            ceph("osd", "pool", "rm", POOL, POOL,
                 "--yes-i-really-really-mean-it")
            self.pool = self.filled = False


def fuse_of(system: System) -> Path:
    """Where its ceph-fuse is mounted."""
    return Path(f"/mnt/peer-{system.name}")


def about_name(system: System) -> str:
    """The lab's name of its Ganesha."""
    return f"peer{system.name}"


def _quiet_user() -> str:
    """A cephx user whose clients keep no debug messages; its key."""
    ceph("config", "set", "client.quiet", "debug_client", "0/0")
    return ceph("auth", "get-or-create-key", "client.quiet", "mon", "allow *",
                "osd", "allow *", "mds", "allow *").strip()
