# SPDX-License-Identifier: LGPL-3.0-or-later
"""A program in a Linux client of its own, which goes on until it is told.

The folder SIGNALS is here and there: the program looks for "stop" in it, may
say how far it is ("progress") and other things by files there, and its last
line is JSON.  What it prints is in a file of that folder, too.
"""
from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab_program import client_command


class KernelProgram:
    """WORDS are its command; OPTIONS those of `lab client`."""

    def __init__(self, signals: Path, *words: Any, output: str = "output",
                 **client: Any) -> None:
        self.signals = signals
        self.output = signals / output
        with open(self.output, "wb") as out:
            self.process = subprocess.Popen(
                client_command(*words, **client), stdin=subprocess.DEVNULL,
                stdout=out, stderr=subprocess.STDOUT, cwd="/")

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def progress(self) -> int:
        """It may be read when it is not written yet."""
        try:
            return int((self.signals / "progress").read_text() or 0)
        except FileNotFoundError:
            return 0

    def words(self) -> str:
        """All that it printed."""
        return self.output.read_text(errors="replace")

    def told(self) -> Any:
        """What its last words say; None if it had none."""
        found = [line for line in self.words().splitlines()
                 if line.startswith("{")]
        return json.loads(found[-1]) if found else None

    def stop(self) -> None:
        (self.signals / "stop").touch()

    def wait(self, seconds: float,
             late: Callable[[], Any] = lambda: None) -> int | None:
        """Its status; None if it had to be terminated, after LATE()."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            late()
            self.end()
            return None

    def end(self) -> None:
        if not self.has_ended():
            self.process.terminate()
            self.process.wait(60)
