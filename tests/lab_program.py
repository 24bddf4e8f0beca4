# SPDX-License-Identifier: LGPL-3.0-or-later
"""Calls the `lab` program, and reads the logs that it keeps."""
from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

LOGS = Path("/var/log/casync-lab")


class LabFailed(AssertionError):
    """`lab` ended with a status other than 0."""


def lab(*args: Any, timeout: float = 200, check: bool = True,
        loud: bool = False, cwd: str | None = None
        ) -> subprocess.CompletedProcess[str]:
    """`lab ARGS`; a failure shows what it printed.  LOUD: its progress goes
    to our stderr as it comes."""
    words = list(map(str, args))
    done = subprocess.run(
        ["lab", *words], stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=None if loud else subprocess.PIPE,
        errors="replace", timeout=timeout, check=False, cwd=cwd)
    if check and done.returncode != 0:
        raise LabFailed(f"lab {' '.join(words)}: status {done.returncode}\n"
                        f"{done.stdout}{done.stderr or ''}")
    return done


def stat() -> dict[str, Any]:
    """The state of cluster and gateways."""
    return json.loads(lab("stat").stdout)


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
        self.start = path.stat().st_size if path.exists() else 0

    def text(self) -> str:
        if not self.path.exists():
            return ""
        with open(self.path, "rb") as file:
            file.seek(self.start)
            return file.read().decode("utf-8", "replace")

    def matching(self, pattern: str | re.Pattern[str]) -> list[str]:
        return [line for line in self.text().splitlines()
                if re.search(pattern, line)]
