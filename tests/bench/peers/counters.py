# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a load cost: counters of the daemons before and after it."""
from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

from bench import TICKS, Others, cpu_s, fields_of, stat


def switches_of(pid: int) -> dict[str, int]:
    """Thread -> its context switches, of both kinds."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            text = (task / "status").read_text(encoding="utf-8")
        except OSError:
            continue            # it has ended
        found[task.name] = sum(
            int(line.split(":")[1]) for line in text.splitlines()
            if "ctxt_switches" in line)
    return found


def tree_cpu_s(root: int) -> float:
    """CPU time of ROOT and what it has started, ended ones included."""
    parents: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = fields_of(path.name)
            except OSError:
                continue        # it has ended
            parents.setdefault(int(fields[1]), []).append(int(path.name))
            used[int(path.name)] = sum(map(int, fields[11:15])) / TICKS
    total, found = 0.0, [root]
    while found:
        pid = found.pop()
        total += used.get(pid, 0)
        found += parents.get(pid, [])
    return total


def peak_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if "VmHWM" in line)
    return int(line.split()[1]) / 1024


class Counters:
    """Begin, let the load run, then costs(how many requests it made).

    `client` is the process of a kernel client, whose CPU time is the
    client's.  Else the client is what we start and wait for.
    """

    def __init__(self, pid: int | None, client: int | None = None) -> None:
        self.pid, self.client = pid, client
        self.began = time.monotonic()
        self.client_cpu = self._client_cpu()
        if pid:                 # the peak shall be this load's
            Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="utf-8")
        self.before = self._cluster()
        self.switches = switches_of(pid) if pid else {}
        self.cpu = cpu_s(pid) if pid else 0.0
        self.others = Others()

    def _client_cpu(self) -> float:
        if self.client:
            return tree_cpu_s(self.client)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    @staticmethod
    def _cluster() -> dict[str, Any]:
        now = stat()
        return {"journal": now["mds"]["journal_events"],
                **now["osd"]["total"]}

    def costs(self, requests: int) -> dict[str, float]:
        """Of one request; `requests` are all that were made since."""
        used = self._client_cpu() - self.client_cpu
        found: dict[str, float] = {
            "others_cpus": self.others.cpus(),
            "client_cpu_us": used * 1e6 / requests,
            "client_cpus": used / (time.monotonic() - self.began)}
        if self.pid:
            now = switches_of(self.pid)
            found["cpu_us"] = (cpu_s(self.pid) - self.cpu) * 1e6 / requests
            found["switches"] = sum(
                count - self.switches.get(who, 0)
                for who, count in now.items()) / requests
            found["peak_mib"] = peak_mib(self.pid)
        after = self._cluster()
        delta = {key: after[key] - self.before[key] for key in after}
        found["journal"] = delta["journal"] / requests
        found["osd_ops"] = delta["op"] / requests
        found["osd_bytes"] = (delta["op_in_bytes"] +
                              delta["op_out_bytes"]) / requests
        return found
