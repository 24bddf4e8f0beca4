# SPDX-License-Identifier: LGPL-3.0-or-later
"""What every part needs: places, messages, processes, bounded waits."""
from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

STATE = Path("/var/lib/casync-lab")
LOGS = Path("/var/log/casync-lab")
LOCK = Path("/run/lock/casync-lab.lock")

_started = time.monotonic()


class LabError(Exception):
    """Something that the user is told in one message, without a traceback."""


def say(text: str) -> None:
    """A line of progress, on stderr so that stdout stays a command's own."""
    print(f"lab: {time.monotonic() - _started:5.1f} s  {text}",
          file=sys.stderr, flush=True)


def run(cmd: list[str], *, timeout: float = 60, check: bool = True,
        input_text: str | None = None,
        env: dict[str, str] | None = None) -> subprocess.CompletedProcess:
    """Run a helper program to its end, always with a limit."""
    try:
        done = subprocess.run(
            cmd, timeout=timeout, text=True, env=env, input=input_text,
            stdin=subprocess.DEVNULL if input_text is None else None,
            capture_output=True, check=False)
    except FileNotFoundError:
        raise LabError(f"program {cmd[0]} is not installed: the lab runs "
                       "inside its image (ci/image.sh)") from None
    except subprocess.TimeoutExpired:
        raise LabError(f"no answer within {timeout:g} s: "
                       f"{shlex.join(cmd)}") from None
    if check and done.returncode:
        raise LabError(f"{shlex.join(cmd)} failed "
                       f"(status {done.returncode}):\n"
                       f"{(done.stderr or done.stdout).strip()}")
    return done


def tail(path: Path, lines: int = 25, start: int = 0) -> str:
    """The end of a log, at most from byte START on."""
    try:
        with open(path, "rb") as log:
            size = os.fstat(log.fileno()).st_size
            log.seek(max(start, size - 65536))
            text = log.read().decode("utf-8", "replace")
    except OSError as err:
        return f"({path}: {err.strerror})"
    return "\n".join(text.splitlines()[-lines:])


def _child_setup() -> None:
    """Detached daemons: own session, core dumps where the limits allow."""
    os.setsid()
    for what in (resource.RLIMIT_CORE, resource.RLIMIT_NOFILE):
        hard = resource.getrlimit(what)[1]
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(what, (hard, hard))


def spawn(cmd: list[str], log: Path, cwd: Path | None = None,
          env: dict[str, str] | None = None) -> subprocess.Popen:
    """Start a daemon that outlives us, its output appended to LOG."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as out:
        try:
            return subprocess.Popen(
                cmd, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                cwd=cwd or LOGS, env=env, close_fds=True,
                # No other thread runs here, so none can hold a lock.
                preexec_fn=_child_setup)  # noqa: PLW1509 (single thread)
        except FileNotFoundError:
            raise LabError(f"program {cmd[0]} is not installed: the lab "
                           "runs inside its image (ci/image.sh)") from None


def alive(pid: int | None) -> bool:
    """True while PID runs.  A zombie has stopped for our purposes when its last
    thread has: until then its locks on files last."""
    if not pid:
        return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        threads = len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX" or threads > 1


def reap(pid: int) -> None:
    """Collect a child of ours, if it is one."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def wait_until(probe: Callable[[], Any], what: str, timeout: float,
               every: float = 0.1, heartbeat: float = 5) -> Any:
    """Call PROBE until it is true; say now and then that we still wait."""
    begin = last = time.monotonic()
    while True:
        value = probe()
        if value:
            return value
        now = time.monotonic()
        if now - begin > timeout:
            raise LabError(f"{what}: nothing within {timeout:g} s")
        if now - last > heartbeat:
            say(f"still waiting: {what} ({now - begin:.0f} s of {timeout:g})")
            last = now
        time.sleep(every)


def stop_pid(pid: int | None, sig: int = signal.SIGTERM,
             timeout: float = 20) -> bool:
    """Signal PID and wait for its end; False when it outlived TIMEOUT."""
    if not alive(pid):
        return True
    assert pid
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sig)
    end = time.monotonic() + timeout
    while alive(pid):
        reap(pid)
        if time.monotonic() > end:
            return False
        time.sleep(0.03)
    reap(pid)
    return True


def end_pid(pid: int | None, what: str, sig: int = signal.SIGTERM,
            timeout: float = 20) -> None:
    """As stop_pid(), for whom it matters that the process is gone."""
    if not stop_pid(pid, sig, timeout):
        raise LabError(f"{what} (pid {pid}) did not end within {timeout:g} s")


def pid_of(pidfile: Path, name: str) -> int | None:
    """The live process that PIDFILE names, if it still is a NAME."""
    try:
        pid = int(pidfile.read_text())
        comm = Path(f"/proc/{pid}/comm").read_text().strip()
    except (OSError, ValueError):
        return None
    return pid if alive(pid) and comm.startswith(name[:15]) else None


def load(path: Path, default: Any = None) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return default


def save(path: Path, value: Any) -> None:
    """Whole or not at all: the file is replaced by rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(value, indent=1) + "\n")
    new.replace(path)


@contextlib.contextmanager
def locked(timeout: float = 180) -> Iterator[None]:
    """One state-changing command at a time."""
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    with open(LOCK, "w") as lock:
        def take() -> bool:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True
        wait_until(take, "another lab command holds the lock", timeout)
        yield
