# SPDX-License-Identifier: LGPL-3.0-or-later
"""A command under Linux's own NFS or CephFS client, without the host's.

The client is a user-mode kernel: a process that boots in two seconds with
the container's files as its root, a tap device as its network, and the
export mounted.  One run, one kernel: nothing is left over for the next.
"""
from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import shlex
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, IO

from . import cluster, conf, ganesha, release
from .util import LOGS, STATE, LabError, run, say, stop_pid, tail

INIT = Path(__file__).resolve().parent.parent / "uml-init.sh"
KERNEL = "linux.uml"
CLIENTS = 16
FAILED = 125            # exit status of trouble that is ours
TIMED_OUT = 124         # as timeout(1) has it
# A frame without a meaning (local experimental Ethertype, IEEE 802), each 2 ms.
NUDGE = b"\xff" * 6 + b"\x02casy" + b"\x88\xb5" + bytes(46)
NUDGE_S = 0.002
PR_SET_CHILD_SUBREAPER = 36


@contextlib.contextmanager
def _slot() -> Iterator[int]:
    """A client number nobody else uses, for as long as we live."""
    folder = Path("/run/lock/casync-client")
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, CLIENTS + 1):
        with open(folder / str(number), "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield number
            return
    raise LabError(f"{CLIENTS} kernel clients run already")


def _tap(number: int) -> str:
    """The host's end of client NUMBER's network: 10.9.NUMBER.1/24."""
    name = f"tap{number}"
    if not Path(f"/sys/class/net/{name}").exists():
        run(["ip", "tuntap", "add", "dev", name, "mode", "tap"])
    run(["ip", "addr", "replace", f"10.9.{number}.1/24", "dev", name])
    run(["ip", "link", "set", name, "up"])
    return name


def nfs_mount(spec: dict[str, Any], server: str, vers: str,
              opts: str) -> str:
    """Shell lines that mount one Ganesha's export at /mnt/nfs."""
    port = conf.ports(spec)
    words = [f"vers={vers}", "proto=tcp", f"port={port['NFS_Port']}"]
    lines = ["mkdir -p /mnt/nfs"]
    if vers == "3":
        words += [f"mountport={port['MNT_Port']}", "mountproto=tcp"]
        if spec["name"] != "a":
            words.append("nolock")
        elif "nolock" not in opts.split(","):
            # lockd's helpers; their state belongs to this boot alone
            lines += ["mkdir -p /run/statd/sm /run/statd/sm.bak",
                      "rpcbind -w", "rpc.statd --no-notify -P /run/statd"]
    if opts:
        words.append(opts)
    kind = "nfs" if vers == "3" else "nfs4"
    source = f"{server}:{spec['pseudo']}"
    lines.append(f"modprobe nfsv{vers[0]}")
    lines.append(f"mount -t {kind} -o {shlex.quote(','.join(words))} "
                 f"{shlex.quote(source)} /mnt/nfs")
    return " &&\n".join(lines) + "\n"


def ceph_mount(opts: str) -> str:
    """Shell lines that mount the same file system by the kernel's ceph."""
    now = cluster.known()
    words = ["name=admin"]
    if now["auth"] == "cephx":
        key = run(["ceph-authtool", str(cluster.KEYRING), "-p", "-n",
                   "client.admin"]).stdout.strip()
        words.append(f"secret={key}")
    if opts:
        words.append(opts)
    return ("mkdir -p /mnt/ceph && modprobe ceph &&\n"
            f"mount -i -t ceph -o {shlex.quote(','.join(words))} "
            f"{now['addr']}:6789:/ /mnt/ceph\n")


def _spool_stdin(target: Path) -> None:
    """Piped or redirected input goes along; a terminal or socket does not."""
    mode = os.fstat(0).st_mode
    with open(target, "wb") as out:
        if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode)):
            return
        if stat.S_ISFIFO(mode) and not select.select([0], [], [], 2)[0]:
            say("reading standard input to its end before the client "
                "boots (</dev/null for none)")
        with open(0, "rb", closefd=False) as source:
            shutil.copyfileobj(source, out)


def _write_job(job: Path, number: int, mount: str, where: str,
               cmd: list[str]) -> None:
    """What uml-init.sh reads."""
    shutil.rmtree(job, ignore_errors=True)
    job.mkdir(parents=True)
    (job / "net").write_text(
        f"client_number={number}\nclient_addr=10.9.{number}.2\n"
        f"host_addr=10.9.{number}.1\n")
    (job / "mount").write_text(mount)
    env = {**os.environ, "LAB_MOUNT": where}
    exports = "".join(
        f"export {key}={shlex.quote(value)}\n" for key, value in env.items()
        if key.isidentifier() and key not in ("_", "SHLVL", "PWD", "OLDPWD"))
    (job / "cmd").write_text(
        f"{exports}cd {shlex.quote(os.getcwd())} || cd /\n"
        f"exec {shlex.join(cmd)}\n")
    _spool_stdin(job / "stdin")


def _pump(source: int, target: IO[bytes]) -> threading.Thread:
    """Pass output on as it comes."""
    def loop() -> None:
        with os.fdopen(source, "rb", buffering=0) as pipe:
            while data := pipe.read(65536):
                try:
                    target.write(data)
                    target.flush()
                except BrokenPipeError:
                    continue
    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    return thread


@contextlib.contextmanager
def _nudged(number: int) -> Iterator[None]:
    """Frames to the client, as long as we are here.

    The kernel's network driver misses an interrupt now and then: a frame
    lies there until the next one comes, which was TCP's retransmission after
    200 ms (one answer of some 500, seen with tcpdump).
    """
    over = threading.Event()

    def loop() -> None:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as link:
            link.bind((f"tap{number}", 0))
            while not over.wait(NUDGE_S):
                # Not while the kernel boots or ends.
                with contextlib.suppress(OSError):
                    link.send(NUDGE)
    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(5)


def _boot(number: int, job: Path, mem: str, log: Path
          ) -> tuple[subprocess.Popen, list[threading.Thread]]:
    """Start the kernel, its three serial lines on pipes to us."""
    pipes = [os.pipe() for _ in range(3)]
    fds = [write for _, write in pipes]
    tap = _tap(number)
    args = [KERNEL, f"mem={mem}", f"umid=lab{number}",
            f"uml_dir={job}/uml/", "rootfstype=hostfs", "rootflags=/",
            "rw", f"init={INIT}", "quiet", "panic=1",
            # Measuring for RAID takes 0.85 s of a boot's 3 (its older name
            # and its newer one).
            "initcall_blacklist=raid6_select_algo,raid6_init",
            f"vec0:transport=tap,ifname={tap},depth=64,gro=1",
            "con=null", "con0=null,fd:1", "ssl=null",
            *(f"ssl{n}=null,fd:{fd}" for n, fd in enumerate(fds)),
            *release.kernel_options(), f"casync_job={job}"]
    (job / "uml").mkdir()
    Path("/lib/modules").mkdir(exist_ok=True)   # a mount point for its init
    with open(log, "ab") as out:
        out.write(f"--- {time.strftime('%F %T')} client {number}\n".encode())
        out.flush()
        proc = subprocess.Popen(
            args, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            pass_fds=fds, start_new_session=True, cwd="/",
            env={"PATH": os.environ.get("PATH", ""), "TMPDIR": "/dev/shm",
                 "HOME": "/root", "TERM": "dumb"})
    for fd in fds:
        os.close(fd)
    targets = (sys.stdout.buffer, sys.stderr.buffer, sys.stderr.buffer)
    return proc, [_pump(read, target)
                  for (read, _), target in zip(pipes, targets)]


def mconsole(job: Path, number: int, command: str) -> None:
    """One order to the kernel's management console."""
    data = command.encode()
    packet = struct.pack("<III", 0xCAFEBABE, 2, len(data)) + \
        data.ljust(512, b"\0")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.bind(str(job / "uml" / "reply"))
        try:
            sock.sendto(packet, str(job / f"uml/lab{number}/mconsole"))
            sock.recv(4096)
        finally:
            (job / "uml" / "reply").unlink(missing_ok=True)


def _children() -> list[int]:
    """Processes whose parent we are (as sub-reaper, orphans too)."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                fields = (path / "stat").read_text().rpartition(")")[2]
                if int(fields.split()[1]) == os.getpid():
                    found.append(int(path.name))
    return found


def _end(proc: subprocess.Popen) -> None:
    """The kernel and every process that it was made of."""
    if proc.poll() is None:
        proc.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        proc.wait(10)
    for _ in range(50):
        left = _children()
        if not left:
            break
        for child in left:
            stop_pid(child, signal.SIGKILL, 2)


def run_command(cmd: list[str], *, name: str = "a", vers: str = "4.2",
                opts: str = "", kind: str = "nfs", mem: str = "1G",
                server: str | None = None, timeout: float = 600) -> int:
    """CMD in a fresh kernel client; its exit status, or 124 or 125."""
    if not shutil.which(KERNEL):
        raise LabError(f"{KERNEL} is not installed: the lab runs inside "
                       "its image (ci/image.sh)")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with _slot() as number:
        if kind == "ceph":
            mount, where = ceph_mount(opts), "/mnt/ceph"
        else:
            spec = ganesha.spec_of(name)
            mount = nfs_mount(spec, server or f"10.9.{number}.1", vers, opts)
            where = "/mnt/nfs"
        job = STATE / "client" / str(number)
        _write_job(job, number, mount, where, cmd)
        LOGS.mkdir(parents=True, exist_ok=True)
        return _supervise(number, job, mem, timeout)


def _supervise(number: int, job: Path, mem: str, timeout: float) -> int:
    log = LOGS / f"client-{number}.log"
    proc, pumps = _boot(number, job, mem, log)

    def forward(signum: int, _frame: object) -> None:
        raise SystemExit(128 + signum)
    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)
    try:
        with _nudged(number):
            proc.wait(timeout)
    except subprocess.TimeoutExpired:
        for order in ("sysrq 8", "sysrq w", "sysrq t"):
            with contextlib.suppress(OSError):
                mconsole(job, number, order)
        time.sleep(1)
        say(f"client: no end within {timeout:g} s, killed; its kernel's "
            f"tasks are in {log}")
        return TIMED_OUT
    finally:
        _end(proc)
        for pump in pumps:
            pump.join(5)
    try:
        status = (job / "status").read_text().strip()
    except OSError:
        say(f"client: its kernel ended without a word; end of {log}:\n"
            f"{tail(log, 15)}")
        return FAILED
    return int(status) if status.isdigit() else FAILED
