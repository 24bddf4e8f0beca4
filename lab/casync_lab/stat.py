# SPDX-License-Identifier: LGPL-3.0-or-later
"""The counters that tests and benchmarks compare before and after."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from . import asok, cluster, ganesha
from .faults import is_ganesha
from .util import LabError

OSD_KEYS = ("op", "op_r", "op_w", "op_rw", "op_in_bytes", "op_out_bytes")


def collect() -> dict[str, Any]:
    """One sample of everything; a dead daemon's part is null."""
    return {"mds": _or_none(_mds), "osd": _osds(),
            "ganesha": {name: _ganesha(name) for name in ganesha.names()}}


def _or_none(part: Any) -> Any:
    try:
        return part()
    except (LabError, KeyError, TypeError):
        return None


def _mds() -> dict[str, Any]:
    name = cluster.active_mds()
    path = cluster.socket_of(name)
    log = asok.ask(path, "perf dump")["mds_log"]
    sessions = [{
        "id": s["id"], "state": s["state"], "num_caps": s.get("num_caps"),
        "ganesha": is_ganesha(s.get("client_metadata", {})),
        "metadata": s.get("client_metadata", {}),
    } for s in asok.ask(path, "session ls")]
    return {"name": name, "journal_events": log["evadd"],
            "journal_segments": log.get("segadd"), "sessions": sessions}


def _osds() -> dict[str, Any]:
    """Each OSD's operation counters, and their sum."""
    each: dict[str, Any] = {}
    total = dict.fromkeys(OSD_KEYS, 0)
    for name in cluster.daemons():
        if name.startswith("osd."):
            each[name] = _or_none(lambda n=name: {
                key: asok.ask(cluster.socket_of(n), "perf dump")["osd"][key]
                for key in OSD_KEYS})
            for key, value in (each[name] or {}).items():
                total[key] += value
    return {"total": total, "each": each}


def _ganesha(name: str) -> dict[str, Any]:
    spec = ganesha.spec_of(name)
    pid = ganesha.pid(name)
    about: dict[str, Any] = {
        "fsal": spec["fsal"], "port": spec["port"],
        "pseudo": spec["pseudo"], "pid": pid, "rss_kib": None,
        "threads": None, "fds": None, "cpu_s": None}
    if pid:
        try:
            about.update(_process(pid))
        except (OSError, KeyError):     # it has ended since, or is about to
            about["pid"] = ganesha.pid(name)
            return about
        about["in_flight"] = _or_none(lambda: _in_flight(pid))
    return about


def _in_flight(pid: int) -> dict[str, int]:
    """Requests that the process' CephFS clients wait for at this moment."""
    count = {"osd": 0, "mds": 0}
    for path in cluster.RUN.glob(f"client.*.{pid}.*.asok"):
        count["osd"] += len(asok.ask(path, "objecter_requests")["ops"])
        count["mds"] += len(asok.ask(path, "mds_requests")["requests"])
    return count


def _process(pid: int) -> dict[str, Any]:
    status = dict(
        line.split(":", 1) for line in
        Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return {"rss_kib": int(status["VmRSS"].split()[0]),
            "threads": int(status["Threads"]),
            "fds": len(os.listdir(f"/proc/{pid}/fd")),
            "cpu_s": (int(fields[11]) + int(fields[12])) / ticks}
