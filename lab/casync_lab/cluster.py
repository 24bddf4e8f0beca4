# SPDX-License-Identifier: LGPL-3.0-or-later
"""A Ceph cluster of plain daemons on one address, up in seconds.

What vstart.sh makes in a build tree, from installed packages: one monitor or
three, a manager, N OSDs, M metadata servers, one file system named cephfs.
"""
from __future__ import annotations

import json
import os
import shutil
import signal
import string
import uuid
from pathlib import Path
from typing import Any

from . import asok
from .util import (LOGS, STATE, LabError, alive, load, pid_of, run, save, say,
                   spawn, stop_pid, tail, wait_until)

DIR = STATE / "ceph"
RUN = DIR / "run"
STATEFILE = DIR / "cluster.json"
CONF = Path("/etc/ceph/ceph.conf")
KEYRING = Path("/etc/ceph/ceph.client.admin.keyring")
FS = "cephfs"
# Ports of the first monitor, by protocol; each further one has the next.
MON_PORTS = {"v2": 3300, "v1": 6789}

CONF_TEXT = """\
# Written by `lab up`; `lab down` leaves it, the next `lab up` replaces it.
[global]
fsid = {fsid}
mon_host = {mon_host}
public_addr = {addr}
ms_bind_ipv4 = {ipv4}
ms_bind_ipv6 = {ipv6}
auth_cluster_required = {auth}
auth_service_required = {auth}
auth_client_required = {auth}
keyring = {dir}/keyring
run_dir = {run}
admin_socket = {run}/$name.asok
pid_file = {run}/$name.pid
log_file = {logs}/ceph-$name.log
log_to_stderr = false
err_to_stderr = true
mon_cluster_log_file = {logs}/ceph-cluster.log
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 8
osd_pool_default_pgp_num = 8
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_allow_pool_delete = true
mon_max_pg_per_osd = 1000
mon_warn_on_pool_no_redundancy = false
mon_warn_on_insecure_global_id_reclaim_allowed = false
{options}

[mon]
mon_data = {dir}/mon$id
mon_data_avail_crit = 1
mon_data_avail_warn = 2
mgr_initial_modules =
mon_initial_members = {mon_names}
mon_osd_reporter_subtree_level = osd

[mgr]
mgr_data = {dir}/mgr

[osd]
osd_data = {dir}/osd$id
osd_objectstore = {store}
osd_class_dir = {classes}
osd_memory_target = 1610612736
osd_op_complaint_time = 120
memstore_device_bytes = 6442450944
bluestore_block_size = 10737418240
bluestore_block_path =
bluestore_fsck_quick_fix_on_mount = false

[mds]
mds_data = {dir}/mds$id

[client]
keyring = {keyring}
admin_socket = {run}/$name.$pid.$cctid.asok
log_file = {logs}/ceph-$name.log
"""


def address() -> str:
    """An address that the kernel client in its own network reaches too."""
    links = json.loads(run(["ip", "-j", "-4", "addr"]).stdout)
    for link in links:
        if link["ifname"].startswith(("lo", "tap", "docker")):
            continue
        for addr in link["addr_info"]:
            if addr["scope"] == "global":
                return addr["local"]
    run(["ip", "tuntap", "add", "dev", "lab0", "mode", "tap"], check=False)
    run(["ip", "addr", "replace", "10.8.0.1/24", "dev", "lab0"])
    run(["ip", "link", "set", "lab0", "up"])
    return "10.8.0.1"


def state() -> dict[str, Any]:
    return load(STATEFILE, {})


def known() -> dict[str, Any]:
    """The state of a cluster that was started, or a plain refusal."""
    now = state()
    if not now:
        raise LabError("no cluster: start one with `lab up`")
    return now


def socket_of(name: str) -> Path:
    """The admin socket of one daemon, in our directories or vstart's."""
    build = known().get("build_dir")
    return Path(build) / "out" / f"{name}.asok" if build \
        else RUN / f"{name}.asok"


def daemon_pid(name: str) -> int | None:
    build = known().get("build_dir")
    pidfile = (Path(build) / "out" if build else RUN) / f"{name}.pid"
    return pid_of(pidfile, f"ceph-{name.split('.')[0]}")


def _letters(count: int) -> str:
    return string.ascii_lowercase[:count]


def daemons() -> list[str]:
    """Every daemon of this cluster, in the order they start."""
    now = known()
    return ([f"mon.{letter}" for letter in _letters(now["mons"])]
            + ["mgr.x"] * now["mgr"]
            + [f"osd.{n}" for n in range(now["osds"])]
            + [f"mds.{letter}" for letter in _letters(now["mds"])])


def ceph(*args: str, timeout: float = 30) -> str:
    """The `ceph` tool, bounded on both sides."""
    return run(["ceph", "--connect-timeout", "20", *args],
               timeout=timeout).stdout


def start_daemon(name: str) -> None:
    """Start one daemon; it speaks to its own log."""
    kind, ident = name.split(".")
    proc = spawn([f"ceph-{kind}", "-f", "-i", ident, "--cluster", "ceph"],
                 LOGS / f"ceph-{name}.out",
                 # The manager's test_orchestrator reads `ps`, which else may
                 # cut its lines.
                 env={**os.environ, "COLUMNS": "512"})
    # The daemon writes its pid file itself; -f skips that, so we do it.
    (RUN / f"{name}.pid").write_text(f"{proc.pid}\n")


def _ended(name: str) -> bool:
    """True when the process that we started is gone.  One that is there but
    bears our own name has not come to its exec yet; and the file is empty
    for a moment when the daemon writes its pid itself."""
    pid = (RUN / f"{name}.pid").read_text().strip()
    return pid.isdigit() and not daemon_pid(name) and not alive(int(pid))


def wait_daemon(name: str, timeout: float = 30) -> None:
    """Until its admin socket answers; a death is told at once."""
    def up() -> bool:
        if _ended(name):
            raise LabError(f"ceph-{name.replace('.', ' ')} died at start; "
                           f"end of its output and log:\n"
                           f"{tail(LOGS / f'ceph-{name}.out', 10)}\n"
                           f"{tail(LOGS / f'ceph-{name}.log', 15)}")
        try:
            return bool(asok.ask(socket_of(name), "version", timeout=5))
        except LabError:
            return False
    wait_until(up, f"admin socket of {name}", timeout, every=0.05)


def _classes() -> Path:
    """Debian's 20.2.4 looks for object classes (RBD's) below its working
    directory, so that none is found."""
    found = list(Path("/usr/lib").glob("*/rados-classes"))
    return found[0] if found else Path("/usr/lib/rados-classes")


def _write_conf(now: dict[str, Any]) -> None:
    CONF.parent.mkdir(exist_ok=True)
    addr = now["addr"]
    hosts = ",".join(_mon_address(addr, n, "/0") for n in range(now["mons"]))
    text = CONF_TEXT.format(
        dir=DIR, run=RUN, logs=LOGS, keyring=KEYRING, classes=_classes(),
        ipv4=":" not in addr, ipv6=":" in addr, mon_host=hosts,
        mon_names=" ".join(_letters(now["mons"])),
        **{**now, "options": "\n".join(now["options"])})
    CONF.write_text(text)


def _make_keys(now: dict[str, Any]) -> None:
    """All keys at once, taken over by the monitor's mkfs."""
    ring = DIR / "keyring"
    caps = {
        "mon.": ("mon", "allow *"),
        "client.admin": ("mon", "allow *", "mgr", "allow *",
                         "osd", "allow *", "mds", "allow *"),
        "mgr.x": ("mon", "allow profile mgr", "osd", "allow *",
                  "mds", "allow *"),
    }
    for n in range(now["osds"]):
        caps[f"osd.{n}"] = ("mon", "allow profile osd", "mgr",
                            "allow profile osd", "osd", "allow *")
    for letter in _letters(now["mds"]):
        caps[f"mds.{letter}"] = (
            "mon", "allow profile mds", "mgr", "allow profile mds",
            "osd", "allow rwx", "mds", "allow *")
    run(["ceph-authtool", "--create-keyring", str(ring)])
    for name, cap in caps.items():
        args = [x for kind, what in zip(cap[::2], cap[1::2])
                for x in ("--cap", kind, what)]
        run(["ceph-authtool", str(ring), "--gen-key", "-n", name, *args])
    key = run(["ceph-authtool", str(ring), "-p", "-n", "client.admin"])
    KEYRING.write_text(f"[client.admin]\n\tkey = {key.stdout.strip()}\n")
    KEYRING.chmod(0o600)


def _mon_address(addr: str, n: int, tail_: str = "") -> str:
    """Of monitor N, as ceph.conf and monmaptool take it."""
    addr = f"[{addr}]" if ":" in addr else addr
    return "[" + ",".join(f"{kind}:{addr}:{port + n}{tail_}"
                          for kind, port in MON_PORTS.items()) + "]"


def _start_mons(now: dict[str, Any]) -> None:
    monmap = DIR / "monmap"
    names = list(enumerate(_letters(now["mons"])))
    run(["monmaptool", "--create", "--clobber", "--fsid", now["fsid"],
         *(word for n, letter in names for word in (
             "--addv", letter, _mon_address(now["addr"], n))), str(monmap)])
    for _, letter in names:
        (DIR / f"mon{letter}").mkdir()
        run(["ceph-mon", "--mkfs", "-i", letter, "--monmap", str(monmap),
             "--keyring", str(DIR / "keyring")])
        start_daemon(f"mon.{letter}")
    for _, letter in names:
        wait_daemon(f"mon.{letter}")


def _start_osds(now: dict[str, Any]) -> None:
    for n in range(now["osds"]):
        ident = str(uuid.uuid4())
        ceph("osd", "new", ident, str(n))
        (DIR / f"osd{n}").mkdir()
        run(["ceph-osd", "--mkfs", "-i", str(n), "--osd-uuid", ident,
             "--no-mon-config"])
        start_daemon(f"osd.{n}")


def _make_fs() -> None:
    for pool in ("cephfs_metadata", "cephfs_data"):
        ceph("osd", "pool", "create", pool, "8")
    ceph("fs", "new", FS, "cephfs_metadata", "cephfs_data")


def start_again(names: list[str]) -> None:
    """Those that have died, as systemd would: an MDS of Ceph 20.2.4 may crash
    while it starts (a question about its state, a client that connects)."""
    for name in names:
        if not daemon_pid(name):
            say(f"{name} has died at its start, and is started again")
            start_daemon(name)


def mds_active() -> bool:
    for name in daemons():
        if name.startswith("mds.") and daemon_pid(name):
            try:
                if asok.ask(socket_of(name), "status")["state"] \
                        == "up:active":
                    return True
            except (LabError, KeyError):
                pass
    return False


def active_mds() -> str:
    """The name of the metadata server that serves rank 0."""
    for name in daemons():
        if name.startswith("mds."):
            try:
                if asok.ask(socket_of(name), "status").get("whoami") == 0:
                    return name
            except LabError:
                pass
    raise LabError("no metadata server is active: `lab mds start`, and "
                   "`ceph -s` for the cluster's own view")


def running() -> bool:
    """True when every daemon of the known cluster is there."""
    return bool(state()) and all(map(daemon_pid, daemons()))


def up(store: str | None, osds: int | None, auth: str | None,
       mds: int = 1, mgr: int = 1, mons: int = 1,
       options: list[str] | None = None, addr: str | None = None) -> None:
    """Start a cluster, or keep the one that runs if it is as wanted."""
    now = state()
    if now and running():
        for key, wanted in (("store", store), ("osds", osds),
                            ("auth", auth), ("options", options)):
            if wanted is not None and now[key] != wanted:
                raise LabError(f"a cluster with {key} = {now[key]} is up, "
                               f"{wanted} is asked for: `lab down` first "
                               "(its data go)")
        say(f"cluster is up already ({now['store']}, {now['osds']} OSD)")
        return
    if now:
        dead = [d for d in daemons() if not daemon_pid(d)]
        raise LabError(f"a cluster is there, but {', '.join(dead)} is not "
                       "running: `lab osd start`, `lab mds start`, or "
                       "`lab down` for a fresh one")
    _fresh({"store": store or "memstore", "osds": osds or 1, "mds": mds,
            "mgr": mgr, "mons": mons, "auth": auth or "cephx",
            "fsid": str(uuid.uuid4()), "addr": addr or address(),
            "build_dir": None, "options": options or []})


def _fresh(now: dict[str, Any]) -> None:
    shutil.rmtree(DIR, ignore_errors=True)
    RUN.mkdir(parents=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    _write_conf(now)
    if now["mgr"]:
        (DIR / "mgr").mkdir()
    _make_keys(now)
    save(STATEFILE, now)
    say(f"{now['mons']} monitor{'s' * (now['mons'] > 1)} on "
        f"{now['addr']}")
    _start_mons(now)
    if now["mgr"]:
        start_daemon("mgr.x")
    say(f"{now['osds']} OSD ({now['store']})")
    _start_osds(now)
    _make_fs()
    say("metadata server")
    for name in daemons():
        if name.startswith("mds."):
            (DIR / name.replace(".", "")).mkdir()
            start_daemon(name)
    for name in daemons():
        wait_daemon(name)
    wait_until(mds_active, "a metadata server to become active", 60)
    say("cluster is up")


def down() -> None:
    """End every daemon; their data go with them."""
    if not state():
        return
    if known().get("build_dir"):
        from . import vstart
        vstart.stop(Path(known()["build_dir"]))
    else:
        pids = [pid for pid in map(daemon_pid, reversed(daemons())) if pid]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            stop_pid(pid, signal.SIGKILL, 10)
            if alive(pid):
                raise LabError(f"process {pid} does not die")
    shutil.rmtree(DIR, ignore_errors=True)
