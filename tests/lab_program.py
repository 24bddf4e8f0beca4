# SPDX-License-Identifier: LGPL-3.0-or-later
"""Calls the programs `lab` and `ceph`, reads the logs of the lab, waits, says
what it sees."""
from __future__ import annotations

import errno
import functools
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

LOGS = Path("/var/log/casync-lab")


# Of a process.
Sizes = namedtuple("Sizes", "rss_kib threads fds")


def say(text: str) -> None:
    """A line with the time of day."""
    print(f"{time.strftime('%T')} {text}", flush=True)


def sizes_of(pid: int) -> Sizes:
    """What the process takes now; an OSError if it is gone."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = dict(re.findall(r"^(\w+):\s+(\S+)", text, re.M))
    if found["State"] in "ZX":
        raise ProcessLookupError(f"process {pid} has ended")
    return Sizes(int(found["VmRSS"]), int(found["Threads"]),
                 len(os.listdir(f"/proc/{pid}/fd")))


def json_lines(raw: dict[str, Any]) -> str:
    """JSON with a line for each member of its lists: a diff says which of them
    changed."""
    lines = []
    for key, value in raw.items():
        name = json.dumps(key)
        if isinstance(value, list) and value:
            items = ",\n  ".join(json.dumps(one) for one in value)
            lines.append(f"{name}: [\n  {items}\n ]")
        else:
            lines.append(f"{name}: {json.dumps(value)}")
    return "{\n " + ",\n ".join(lines) + "\n}\n"


class LabFailed(AssertionError):
    """`lab` or `ceph` ended with a status other than 0."""


def _called(words: list[str], loud: bool, timeout: float, check: bool,
            cwd: str | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
        stderr=None if loud else subprocess.PIPE, errors="replace",
        timeout=timeout, check=False, cwd=cwd)
    if check and done.returncode != 0:
        raise LabFailed(f"{' '.join(words)}: status {done.returncode}\n"
                        f"{done.stdout}{done.stderr or ''}")
    return done


def lab(*args: Any, timeout: float = 200, check: bool = True,
        loud: bool = False, cwd: str | None = None
        ) -> subprocess.CompletedProcess[str]:
    """`lab ARGS`; a failure shows what it printed.  LOUD: its progress goes
    to our stderr as it comes."""
    return _called(["lab", *map(str, args)], loud, timeout, check, cwd)


def grace_tool(*args: Any) -> None:
    """`ganesha-rados-grace ARGS`.  It crashes now and then, with signal 11,
    before it begins or at its end: then a member is removed already."""
    crashed = False
    for last in (False, False, False, True):
        done = _called(["ganesha-rados-grace", *map(str, args)], False, 60,
                       last)
        if done.returncode != -signal.SIGSEGV:
            break
        crashed = True
    if crashed and f"Failure: -{errno.ENOKEY}" in done.stderr:
        return
    assert done.returncode == 0, done.stderr


def ceph(*args: Any, timeout: float = 60, check: bool = True) -> str:
    """What `ceph ARGS` printed to its stdout."""
    return _called(["ceph", *map(str, args)], False, timeout, check).stdout


def until(true: Callable[[], Any], what: str, seconds: float = 30,
          pause: float = 0.2) -> None:
    """Waits until TRUE() holds; a failure names WHAT."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(pause)


def stat() -> dict[str, Any]:
    """The state of cluster and gateways."""
    return json.loads(lab("stat").stdout)


def malloc_info(pid: int) -> str:
    """What malloc_info() says of a process."""
    with tempfile.NamedTemporaryFile("r", encoding="ascii") as report:
        subprocess.run(
            ["gdb", "-p", str(pid), "-batch", "-nx",
             "-ex", "set debuginfod enabled off",
             "-ex", "set $to = ((void*(*)(const char*,const char*))fopen)"
             f'("{report.name}","w")',
             "-ex", "print ((int(*)(int,void*))malloc_info)(0,$to)",
             "-ex", "print ((int(*)(void*))fclose)($to)"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, timeout=60, check=False)
        return report.read()


def in_use_kib(pid: int) -> int:
    """What its allocator has handed out.  When a CephFS client has ended, its
    memory stays with the allocator: 15 of them in 5 minutes added 16 and 11 MiB
    to RSS of two gateways, and 2 to what is in use (ci/chaos.sh 5 --seed 77
    --only evict)."""
    # What stands behind all heaps is of all of them.
    sizes = dict(re.findall(
        r'<(?:total|system) type="(\w+)"(?: count="\d+")? size="(\d+)"',
        malloc_info(pid).rpartition("</heap>")[2]))
    return (int(sizes["current"]) + int(sizes["mmap"]) -
            int(sizes.get("fast", 0)) - int(sizes["rest"])) >> 10


@functools.cache
def ganesha_version() -> tuple[int, ...]:
    """(9, 14), as ganesha.nfsd says."""
    said = _called(["ganesha.nfsd", "-v"], False, 30, True)
    match = re.search(r"V(\d+(?:\.\d+)+)", said.stdout + said.stderr)
    assert match, said
    return tuple(map(int, match[1].split(".")))


def has_reread(log: Log) -> bool:
    """Ganesha has read its configuration again, and told of errors."""
    if log.matching("reread_config :CONFIG :CRIT"):
        return True
    if ganesha_version() >= (9,):       # names are looked up anew last of all
        return bool(log.matching("NSSwitch pwnam implementation"))
    if not log.matching("Reread exports complete"):
        return False
    time.sleep(0.1)                     # errors are told right after it
    return True


def client_command(*cmd: Any, vers: str | None = None,
                   timeout: float | None = None,
                   options: tuple[str, ...] | list[str] = ()) -> list[str]:
    """The words that run CMD in a kernel client."""
    words = ["lab", "client", *options]
    if vers is not None:
        words += ["--vers", vers]
    if timeout is not None:
        words += ["--timeout", str(timeout)]
    return [*words, "--", *map(str, cmd)]


class Log:
    """A log file from now on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.start = self.end()
        self.left_out: list[tuple[int, int]] = []

    def end(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def leave_out(self, begin: int, end: int | None = None) -> None:
        """What was written from BEGIN, an end(), till END or now is
        another's."""
        self.left_out.append((begin, self.end() if end is None else end))

    def text(self) -> str:
        if not self.path.exists():
            return ""
        data, at = self.path.read_bytes(), self.start
        pieces = []
        for begin, end in sorted(self.left_out):    # one may be in another
            pieces.append(data[at:begin])
            at = max(at, end)
        return b"".join([*pieces, data[at:]]).decode("utf-8", "replace")

    def lines_since(self, begin: int) -> list[tuple[int, int, str]]:
        """Where each line begins and ends that was written from BEGIN on,
        also if it was left out, and the line."""
        found = []
        if self.path.exists():
            for line in self.path.read_bytes()[begin:].splitlines(True):
                found.append((begin, begin + len(line),
                              line.decode("utf-8", "replace")))
                begin += len(line)
        return found

    def matching(self, pattern: str | re.Pattern[str]) -> list[str]:
        return [line for line in self.text().splitlines()
                if re.search(pattern, line)]
