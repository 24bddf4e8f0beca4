# SPDX-License-Identifier: LGPL-3.0-or-later
"""Who wants the locks that the clients hold: at the other gateway, or as a
CephFS client of its own.

A lock that a thief gets is given back after HOLD_S.  It is held twice if its
holder writes meanwhile.  It is lost in silence if the holder is never told
(EIO): it took the lock again without knowing that somebody else had it.
"""
from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "integration"))

from fuse import Fuse
from lab_program import until
from nfs import nfs4
from hosts import HOST_TWO, PORT_TWO, PSEUDO

PAUSE_S = 0.003
HOLD_S = 1
AFTER_S = 0.3           # a write that began later began after the grant
TOLD_S = 5              # the holder has been answered since
LENGTH = 10
TOLD, SILENT, TWICE = "its holder was told", "lost in silence", "held twice"


class Thief(threading.Thread):
    """Asks for each of the files, again and again."""

    where = ""

    def __init__(self, names: list[str]):
        super().__init__(daemon=True)
        self.names = names
        self.stop = threading.Event()
        self.tries = {"denied": 0, "grace": 0}
        self.grants: list[tuple[float, str]] = []
        self.wrong = ""
        self.longest_s = 0.0        # what its requests have waited

    def run(self) -> None:
        try:
            while not self.stop.wait(PAUSE_S):
                for name in self.names:
                    self.attempt(name)
        except Exception as err:  # noqa: BLE001 (told at the end)
            self.wrong = f"{self.where}: {type(err).__name__}: {err}"

    def attempt(self, name: str) -> None:
        began = time.monotonic()
        said = self.ask(name)
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        if said:
            self.tries[said] += 1
            return
        self.grants.append((time.time(), name))
        self.stop.wait(HOLD_S)
        self.give_back(name)

    def ask(self, name: str) -> str:
        """Why it has not got the lock; "": it has."""
        raise NotImplementedError

    def give_back(self, name: str) -> None:
        raise NotImplementedError

    def end(self) -> None:
        self.stop.set()
        self.join(40)

    def taken(self) -> list[tuple[float, str]]:
        """Since the last call."""
        taken, self.grants = self.grants, []
        return taken

    def summary(self, meant: Counter[str]) -> str:
        granted = meant.total()
        of_these = ", ".join(f"{count} {what}" for what, count in
                             sorted(meant.items()))
        meant_words = f" ({of_these})" if granted else ""
        return (f"the thief {self.where}: {self.tries['denied']} times "
                f"denied, {self.tries['grace']} times in the grace period, "
                f"{granted} times successful{meant_words}; it waited "
                f"{self.longest_s:.1f} s at most")


class NfsThief(Thief):
    """Over NFSv4.1."""

    where = "at the other gateway"

    def __init__(self, folder: str, names: list[str]):
        super().__init__(names)
        self.client = nfs4.Client(PORT_TWO, "thief", host=HOST_TWO,
                                  pseudo=PSEUDO)
        self.folder = self.client.lookup(folder)
        self.files: dict[str, Any] = dict.fromkeys(names)

    def ask(self, name: str) -> str:
        try:
            self.files[name] = file = self.files[name] or self.client.open(
                name, directory=self.folder)
            file.lock(nfs4.WRITE_LOCK, 0, LENGTH)
        except nfs4.Failed as err:
            if err.status not in (nfs4.DENIED, nfs4.GRACE, nfs4.DELAY):
                raise
            return "denied" if err.status == nfs4.DENIED else "grace"
        return ""

    def give_back(self, name: str) -> None:
        self.files[name].close()
        self.files[name] = None


class CephThief(Thief):
    """By ceph-fuse.  No grace period binds it: it may have a lock until its
    holder takes it again, at the next gateway (docs/limits.md)."""

    where = "as a CephFS client"

    def __init__(self, folder: str, names: list[str]):
        super().__init__(names)
        self.mount = Fuse()
        self.files = {name: os.open(self.mount.folder / folder / name,
                                    os.O_RDWR) for name in names}

    def ask(self, name: str) -> str:
        try:
            fcntl.lockf(self.files[name], fcntl.LOCK_EX | fcntl.LOCK_NB,
                        LENGTH, 0)
        except BlockingIOError:
            return "denied"
        return ""

    def give_back(self, name: str) -> None:
        fcntl.lockf(self.files[name], fcntl.LOCK_UN, LENGTH, 0)

    def end(self) -> None:
        super().end()
        for file in self.files.values():
            os.close(file)
        # After a kill of the gateway its orderly end took over 60 s (not
        # looked into); the cluster goes next.
        self.mount.kill()


def judged(granted: float, lock: Callable[[], dict[str, Any]]) -> str:
    """What it meant that a thief got the lock then; LOCK: what the holder's
    probe says of it now."""
    def ended() -> float | None:
        for begin, end in lock()["holds"]:
            if begin < granted and (end is None or granted < end):
                return end
        return granted      # nobody held it
    with contextlib.suppress(AssertionError):
        until(ended, "the holder is told", TOLD_S)
    end = ended()
    both = [began for began in lock()["writes"]
            if granted + AFTER_S < began < min(end or granted + HOLD_S,
                                               granted + HOLD_S)]
    if both:
        return TWICE
    return TOLD if end else SILENT
