# SPDX-License-Identifier: LGPL-3.0-or-later
"""Network namespaces: hosts and gateways with links of their own."""
from __future__ import annotations

import os
import subprocess

from lab_program import until


def ip(*words: object, inside: int | None = None) -> None:
    """`ip WORDS`, in the namespace of the process INSIDE."""
    enter = ["nsenter", f"--net=/proc/{inside}/ns/net"] if inside else []
    subprocess.run([*enter, "ip", *map(str, words)], check=True, timeout=20,
                   stdin=subprocess.DEVNULL)


def namespace() -> subprocess.Popen[bytes]:
    """A process that keeps a new one."""
    keeper = subprocess.Popen(["unshare", "--net", "sleep", "infinity"],
                              stdin=subprocess.DEVNULL)
    mine = os.readlink("/proc/self/ns/net")
    until(lambda: os.readlink(f"/proc/{keeper.pid}/ns/net") != mine,
          "a network namespace")
    ip("link", "set", "lo", "up", inside=keeper.pid)
    return keeper
