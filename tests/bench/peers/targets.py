# SPDX-License-Identifier: LGPL-3.0-or-later
"""What is demanded of the figures, and whether it is met; pure."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from peers import figures
from peers.figures import Run

Value = Callable[[list[Run]], dict[str, float] | None]


@dataclass(frozen=True)
class Target:
    what: str
    relation: str               # >= or <=
    bound: float
    value: Value


def _ratio(scenario: str, case: str, under: str, figure: str = "per_s",
           over: str = "casync") -> Value:
    return lambda runs: figures.ratio(
        runs, (scenario, case, over), (scenario, case, under), figure)


def _own(scenario: str, case: str, figure: str,
         scale: float = 1) -> Value:
    def value(runs: list[Run]) -> dict[str, float] | None:
        found = figures.of(runs, (scenario, case, "casync"), figure)
        return found and {key: one if key == "rounds" else one * scale
                          for key, one in found.items()}
    return value


def _to_better(scenario: str, case: str, figure: str, over: str = "casync",
               modes: tuple[str, ...] = ("ceph", "cephasync")) -> Value:
    """Against the better of FSAL_CEPH's modes, round by round."""
    def value(runs: list[Run]) -> dict[str, float] | None:
        return figures.divided(
            figures.by_round(runs, (scenario, case, over), figure),
            figures.better(runs, [(scenario, case, mode)
                                  for mode in modes],
                           figure))
    return value


_STABLE = "stable 4 KiB random write, 128 in flight"
_LINUX = "Linux client"

TARGETS = (
    Target(f"{_STABLE} / FSAL_CEPH blocking", ">=", 2.5,
           _ratio("small", "stable-write", "ceph")),
    Target(f"{_STABLE} / FSAL_CEPH async", ">=", 1.9,
           _ratio("small", "stable-write", "cephasync")),
    Target(f"{_STABLE} / rados bench", ">=", 0.35,
           _ratio("small", "stable-write", "rados")),
    Target(f"{_STABLE}, BlueStore / FSAL_CEPH blocking", ">=", 2.6,
           _ratio("bluestore", "stable-write", "ceph")),
    Target(f"{_STABLE}, BlueStore / rados bench", ">=", 0.55,
           _ratio("bluestore", "stable-write", "rados")),
    Target("MDS journal events per write", "<=", 0.005,
           _own("small", "stable-write", "journal")),
    Target("4 KiB random read, 128 in flight / FSAL_CEPH blocking", ">=",
           1.05, _ratio("small", "read", "ceph")),
    Target(f"{_LINUX}: sequential write / kcephfs", ">=", 1.5,
           _ratio("linux", "write", "kcephfs", "mib_s")),
    Target(f"{_LINUX}: sequential read / kcephfs", ">=", 1.8,
           _ratio("linux", "read", "kcephfs", "mib_s")),
    Target(f"{_LINUX}: sequential read / the better FSAL_CEPH mode", ">=", 1,
           _to_better("linux", "read", "mib_s")),
    Target(f"{_LINUX}: random write / kcephfs", ">=", 1.2,
           _ratio("linux", "randwrite", "kcephfs")),
    Target(f"{_LINUX}: random read / kcephfs", ">=", 1.2,
           _ratio("linux", "randread", "kcephfs")),
    Target("GETATTR p99 beside saturating 4 KiB reads / FSAL_CEPH blocking",
           "<=", 1, _ratio("getattr", "read-4k", "ceph",
                           "getattr_p99_us")),
    Target("GETATTR p99 beside saturating 1 MiB reads / FSAL_CEPH blocking",
           "<=", 1, _ratio("getattr", "read-1m", "ceph",
                           "getattr_p99_us")),
    Target("1 MiB write / the better FSAL_CEPH mode", ">=", 1.05,
           _to_better("large", "write", "mib_s")),
    Target("1 MiB read / the better FSAL_CEPH mode", ">=", 1.05,
           _to_better("large", "read", "mib_s")),
    Target("stable sequential 4 KiB appends, 64 in flight on one file / "
           "FSAL_CEPH blocking", ">=", 4, _ratio("append", "append", "ceph")),
    Target("stable sequential 4 KiB overwrites, 64 in flight on one file / "
           "FSAL_CEPH blocking", ">=", 4,
           _ratio("append", "overwrite", "ceph")),
    Target("slow backend 100 ms, 2,048 in flight: stable writes / FSAL_CEPH "
           "blocking", ">=", 9, _ratio("slow-100", "write-2048", "ceph")),
    Target("slow backend 100 ms, 2,048 in flight: GETATTR p99, ms", "<=", 30,
           _own("slow-100", "write-2048", "getattr_p99_us", 0.001)),
    Target("one at a time: stable 4 KiB write latency / FSAL_CEPH blocking",
           "<=", 0.5, _ratio("one", "stable-write", "ceph", "mean_us")),
    Target("one at a time: 4 KiB read latency / FSAL_CEPH blocking", "<=",
           1.05, _ratio("one", "read", "ceph", "mean_us")),
    Target("4 KiB random read, 128 in flight, cached / FSAL_CEPH blocking",
           ">=", 2.0, _ratio("reads", "cached-4k", "ceph")),
    Target("4 KiB random read, 128 in flight, cached / FSAL_CEPH Client_OC",
           ">=", 1.2, _ratio("reads", "cached-4k", "oc")),
    Target("one at a time: cached 4 KiB read latency / FSAL_CEPH blocking",
           "<=", 0.4, _ratio("reads", "cached-one", "ceph", "mean_us")),
    Target("one at a time: cached 4 KiB read latency / FSAL_CEPH Client_OC",
           "<=", 1.0, _ratio("reads", "cached-one", "oc", "mean_us")),
    Target("4 KiB random read, 128 in flight, missing / FSAL_CEPH blocking",
           ">=", 1.05, _ratio("reads", "missing-4k", "ceph", over="tenth")),
    Target("the same, p99 / FSAL_CEPH blocking", "<=", 1.0,
           _ratio("reads", "missing-4k", "ceph", "p99_us", over="tenth")),
    Target("1 MiB read, 16 in flight, cached / the better FSAL_CEPH mode",
           ">=", 1.5, _to_better("reads", "cached-1m", "mib_s",
                                 modes=("ceph", "cephasync", "oc"))),
    Target("1 MiB read, 16 in flight, missing / the better FSAL_CEPH mode",
           ">=", 1.05, _to_better("reads", "missing-1m", "mib_s",
                                  over="tenth")),
    Target("one stream of 4 KiB reads, missing / FSAL_CEPH blocking", ">=", 5,
           _ratio("reads", "stream-4k", "ceph", over="tenth")),
    Target("one stream of 64 KiB reads, missing / FSAL_CEPH blocking", ">=",
           2, _ratio("reads", "stream-64k", "ceph", over="tenth")),
    Target("Linux client, missing, buffered 4 KiB reads as dd / FSAL_CEPH "
           "blocking", ">=", 1.5,
           _ratio("reads", "dd", "ceph", "mib_s", over="tenth")),
    Target("Linux client, missing, buffered 8 KiB reads as tac / FSAL_CEPH "
           "blocking", ">=", 1.5,
           _ratio("reads", "tac", "ceph", "mib_s", over="tenth")),
    Target("the same / as cat, 128 KiB", ">=", 0.7,
           lambda runs: figures.ratio(runs, ("reads", "tac", "tenth"),
                                      ("reads", "cat", "tenth"), "mib_s")),
    Target("Linux client, missing, 4 KiB of each 64 KiB / FSAL_CEPH "
           "blocking", ">=", 2,
           _ratio("reads", "column", "ceph", over="tenth")),
    Target("Linux client, missing, as dd bs=1M / FSAL_CEPH blocking", ">=",
           1.3, _ratio("reads", "dd-1m", "ceph", "mib_s", over="tenth")),
    Target("Ganesha CPU per stable 4 KiB write / FSAL_CEPH blocking", "<=",
           0.5, _ratio("small", "stable-write", "ceph", "cpu_us")),
)


def judge(runs: list[Run]) -> list[dict[str, Any]]:
    """met: True, False, or None where there is no figure."""
    verdicts = []
    for target in TARGETS:
        value = target.value(runs)
        met = None
        if value:
            middle = value["median"]
            met = middle >= target.bound if target.relation == ">=" \
                else middle <= target.bound
        verdicts.append({"what": target.what, "met": met, "value": value,
                         "wanted": f"{target.relation} {target.bound:g}"})
    return verdicts
