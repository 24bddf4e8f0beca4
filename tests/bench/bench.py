# SPDX-License-Identifier: LGPL-3.0-or-later
"""What the measurements share: the lab, nfsload, medians, who else computes."""
from __future__ import annotations

import functools
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

# For the programs beside this file too: they import it first.
sys.path.append(str(Path(__file__).resolve().parents[1]))

import lab_program

TICKS = os.sysconf("SC_CLK_TCK")
# What nfsmeta does, in its order.
PHASES = ("create", "stat", "readdir", "rename", "unlink")


# Its progress goes to our stderr.
lab = functools.partial(lab_program.lab, loud=True)
stat = lab_program.stat


def nfsload(*args: Any, timeout: float = 900) -> dict[str, Any]:
    """One run; a failed or lost request is the end of the measurement."""
    done = subprocess.run(["nfsload", *map(str, args)], check=False,
                          text=True, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=timeout)
    if done.returncode:
        raise SystemExit(f"nfsload {' '.join(map(str, args))}: status "
                         f"{done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def spread(values: list[float]) -> dict[str, Any]:
    return {"median": statistics.median(values), "min": min(values),
            "max": max(values), "values": values}


def show(values: dict[str, Any], digits: int = 0) -> str:
    """median (min–max)"""
    return (f"{values['median']:.{digits}f} "
            f"({values['min']:.{digits}f}–{values['max']:.{digits}f})")


def fields_of(pid: int | str) -> list[str]:
    """/proc/PID/stat behind the name; [11] and [12] are its CPU ticks."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return text.rpartition(")")[2].split()


def cpu_s(pid: int | str) -> float:
    fields = fields_of(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS


class Others:
    """How many CPUs went to what is not in this container.

    Ratios within a run are what counts, but they too suffer when somebody
    else has the machine: so every result says how much that was.
    """

    def __init__(self) -> None:
        self.time = time.monotonic()
        self.all = self._all()
        self.ours = self._ours()

    def cpus(self) -> float:
        seconds = time.monotonic() - self.time
        after = self._ours()
        ours = sum(used - self.ours.get(who, 0) for who, used in after.items())
        return max(0.0, (self._all() - self.all - ours) / seconds)

    @staticmethod
    def _all() -> float:
        words = Path("/proc/stat").read_text(encoding="utf-8").split("\n")[0]
        user, nice, system, _idle, _wait, irq, softirq, steal = map(
            int, words.split()[1:9])
        return (user + nice + system + irq + softirq + steal) / TICKS

    @staticmethod
    def _ours() -> dict[str, float]:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = {"ended": children.ru_utime + children.ru_stime}
        for path in Path("/proc").iterdir():
            if path.name.isdigit():
                try:
                    used[path.name] = cpu_s(path.name)
                except OSError:
                    pass    # it has ended
        return used
