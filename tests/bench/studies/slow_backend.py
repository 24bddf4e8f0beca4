#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""FSAL_CEPH beside CEPH_ASYNC when every OSD operation takes 0 to 100 ms.

    slow_backend.py [--no-up | --own-core] [--control-depth N]
                    [--rounds N] [--seconds S] [--json FILE]

Two Ganeshas on one CephFS take turns, so that what else the machine does
hits both.  Exit status 0 when every bound holds.  With --no-up, the
Ganeshas of the two FSALs that run are measured; they must have been started
after `lab slow`, which an OSD connection obeys from its beginning or never.
FSAL_CEPH takes a minute to end the 2048 writes that prove the load: with
--control-depth 32 it gets 512.  With --own-core Ganesha has the first core,
and OSD, MDS and load have the others: a GETATTR then waits for Ganesha alone.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from bench import Others, lab, nfsload, show, spread, stat

SLOW_MS = 100
PROBE_MS = 5
WARMUP_S = 2
FILE_SIZE = "64M"
# Connections and requests in flight on each.
DEEP = (16, 128)
MEDIUM = (4, 32)

# (name, which Ganesha, shape, stable_how or "read"), in the order of a round.
# What the narrowest bound compares is run in three pairs of neighbours, each
# first in turn.  A hiccup of half a second makes one pair wrong, not the
# median.  FSAL_CEPH's rate differs by a third from run to run (203 to 288), so
# it has as many runs, among ours.
RUNS = (
    ("deep", "CEPH_ASYNC", DEEP, "file_sync"),
    ("deep", "CEPH", DEEP, "file_sync"),
    ("reads", "CEPH_ASYNC", DEEP, "read"),
    ("stable", "CEPH", MEDIUM, "file_sync"),
    ("stable", "CEPH_ASYNC", MEDIUM, "file_sync"),
    ("unstable", "CEPH_ASYNC", MEDIUM, "unstable"),
    ("stable", "CEPH", MEDIUM, "file_sync"),
    ("unstable", "CEPH_ASYNC", MEDIUM, "unstable"),
    ("stable", "CEPH_ASYNC", MEDIUM, "file_sync"),
    ("stable", "CEPH", MEDIUM, "file_sync"),
    ("stable", "CEPH_ASYNC", MEDIUM, "file_sync"),
    ("unstable", "CEPH_ASYNC", MEDIUM, "unstable"),
)

# What must hold of the medians: (what, where it stands, relation, bound).
BOUNDS = (
    ("GETATTR p99 beside 2048 stable writes, CEPH_ASYNC, ms",
     "getattr_p99_ms", "<", 30),
    # Else the load was none, and the line above says nothing.
    ("GETATTR p99 beside the control's stable writes, CEPH, ms",
     "getattr_p99_ms_ceph", ">=", 100),
    # Its workers wait for answers that come soon; these do not.
    ("GETATTR p99 beside 2048 reads, CEPH_ASYNC, ms",
     "getattr_p99_ms_reads", "<", 30),
    ("stable writes, 128 in flight: CEPH_ASYNC / CEPH",
     "stable_to_ceph", ">=", 6),
    ("stable / unstable writes, 128 in flight, CEPH_ASYNC",
     "stable_to_unstable", ">=", 0.95),
)


def start_lab(own_core: bool) -> None:
    cores = sorted(os.sched_getaffinity(0))
    if own_core and len(cores) < 2:
        raise SystemExit("slow_backend: --own-core needs two cores")
    wrapper = f"taskset -c {cores[0]}" if own_core else ""
    if own_core:    # What is started from here on inherits it.
        os.sched_setaffinity(0, cores[1:])
    lab("cluster")
    lab("slow", str(SLOW_MS))
    lab("up", "--fsal", "CEPH_ASYNC", "--export", "", "--block", "",
        "--wrapper", wrapper)
    lab("ganesha", "start", "--name", "b", "--fsal", "CEPH", "--port", "12049",
        "--pseudo", "/ceph-b", "--wrapper", wrapper)


def servers() -> dict[str, list[str]]:
    """FSAL → the options that lead nfsload to it."""
    ganesha = stat()["ganesha"]
    found = {about["fsal"]: ["--port", str(about["port"]),
                             "--export", about["pseudo"],
                             "--name", f"slow-{name}",
                             "--file-size", FILE_SIZE]
             for name, about in ganesha.items() if about["pid"]}
    if set(found) != {"CEPH", "CEPH_ASYNC"}:
        raise SystemExit("slow_backend: one Ganesha of each FSAL is wanted, "
                         f"there are {list(found)}")
    return found


def prepare(server: list[str]) -> None:
    """Its file, made and filled; and is the backend slow to it?"""
    one = nfsload(*server, "--connections", 1, "--depth", 2, "--count", 100)
    mean_ms = one["ops"]["write"]["latency_us"]["mean"] / 1000
    if mean_ms < SLOW_MS / 4:
        raise SystemExit(f"slow_backend: a write to {server} takes "
                         f"{mean_ms:.1f} ms, not about {SLOW_MS / 2:.0f}: "
                         "`lab slow` first, then (re)start Ganesha")


def measure(server: list[str], shape: tuple[int, int], what: str,
            seconds: float, seed: int) -> dict[str, Any]:
    """One run of 4 KiB random writes or reads, and the probe."""
    connections, depth = shape
    load = ("--mix", "read=100") if what == "read" else ("--stable", what)
    result = nfsload(*server, "--connections", connections, "--depth", depth,
                     *load, "--seconds", seconds, "--warmup", WARMUP_S,
                     "--probe", PROBE_MS, "--seed", seed, "--drain", 120)
    (each,), probe = result["ops"].values(), result["probe"]
    return {
        "iops": each["per_s"],
        "p50_ms": each["latency_us"]["p50"] / 1000,
        "p99_ms": each["latency_us"]["p99"] / 1000,
        "probes": probe["answered"],
        "getattr_p99_ms": probe["latency_us"]["p99"] / 1000,
        "getattr_p99_corrected_ms":
            probe["corrected_latency_us"]["p99"] / 1000,
        "getattr_max_ms": probe["latency_us"]["max"] / 1000,
    }


def rounds(runs: tuple[Any, ...], count: int, seconds: float
           ) -> list[dict[str, Any]]:
    """Every run's result, with its name, FSAL and round."""
    where = servers()
    found = []
    for server in where.values():
        prepare(server)
    for number in range(count):
        # Turned round every time: nobody is always the first.
        for name, fsal, shape, what in runs[::-1 if number % 2 else 1]:
            others = Others()
            one = measure(where[fsal], shape, what, seconds, number + 1)
            one.update(name=name, fsal=fsal, round=number,
                       others_cpus=others.cpus())
            found.append(one)
            print(f"round {number + 1}  {name:<9}{fsal:<11}"
                  f"{one['iops']:5.0f} IOPS  ms p50 "
                  f"{one['p50_ms']:.0f} p99 {one['p99_ms']:.0f}"
                  f"  GETATTR ms p99 {one['getattr_p99_ms']:.1f} (corrected "
                  f"{one['getattr_p99_corrected_ms']:.1f}) max "
                  f"{one['getattr_max_ms']:.0f}  others "
                  f"{one['others_cpus']:.2f} CPUs", flush=True)
    return found


def each_of(found: list[dict[str, Any]], name: str) -> list[float]:
    """The rates of all runs of this name, in their order."""
    return [one["iops"] for one in found
            if (one["name"], one["fsal"]) == (name, "CEPH_ASYNC")]


def values_of(found: list[dict[str, Any]], name: str, fsal: str,
              key: str) -> list[float]:
    """One value a round: the mean, where there are several runs in it."""
    each: dict[int, list[float]] = {}
    for one in found:
        if (one["name"], one["fsal"]) == (name, fsal):
            each.setdefault(one["round"], []).append(one[key])
    return [statistics.mean(each[number]) for number in sorted(each)]


def ratios(over: list[float], under: list[float]) -> dict[str, Any]:
    """Of what was measured side by side."""
    return spread([a / b for a, b in zip(over, under)])


def conclude(found: list[dict[str, Any]]) -> dict[str, Any]:
    """What the bounds are about."""
    ours = values_of(found, "stable", "CEPH_ASYNC", "iops")
    return {
        "getattr_p99_ms": spread(values_of(
            found, "deep", "CEPH_ASYNC", "getattr_p99_ms")),
        "getattr_p99_ms_ceph": spread(values_of(
            found, "deep", "CEPH", "getattr_p99_ms")),
        "getattr_p99_ms_reads": spread(values_of(
            found, "reads", "CEPH_ASYNC", "getattr_p99_ms")),
        "stable_to_ceph": ratios(
            ours, values_of(found, "stable", "CEPH", "iops")),
        "stable_to_unstable": ratios(
            each_of(found, "stable"), each_of(found, "unstable")),
    }


def judge(values: dict[str, Any]) -> list[dict[str, Any]]:
    verdicts = []
    for what, key, relation, bound in BOUNDS:
        value = values[key]["median"]
        verdicts.append({
            "what": what, "key": key, "value": value,
            "wanted": f"{relation} {bound}",
            "holds": value < bound if relation == "<" else value >= bound})
    return verdicts


def tell(runs: tuple[Any, ...], found: list[dict[str, Any]],
         values: dict[str, Any], verdicts: list[dict[str, Any]]) -> None:
    print(f"\n{'4 KiB':<23}{'FSAL':<12}{'IOPS':>20}"
          f"{'GETATTR p99 ms':>22}{'corrected':>22}")
    for name, fsal, shape, what in dict.fromkeys(runs):
        columns = [spread(values_of(found, name, fsal, key)) for key in
                   ("iops", "getattr_p99_ms", "getattr_p99_corrected_ms")]
        print(f"{what + ', ' + str(shape[0] * shape[1]):<23}{fsal:<12}"
              f"{show(columns[0]):>20}{show(columns[1], 1):>22}"
              f"{show(columns[2], 1):>22}")
    print()
    for verdict in verdicts:
        print(f"{'holds ' if verdict['holds'] else 'MISSED'}  "
              f"{verdict['what']}: {show(values[verdict['key']], 2)}, "
              f"wanted {verdict['wanted']}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--no-up", action="store_true")
    where.add_argument("--own-core", action="store_true")
    parser.add_argument("--control-depth", type=int, default=DEEP[1])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    if not args.no_up:
        start_lab(args.own_core)
    others = Others()
    control = ("deep", "CEPH", (DEEP[0], args.control_depth), "file_sync")
    runs = tuple(control if run[:2] == control[:2] else run for run in RUNS)
    found = rounds(runs, args.rounds, args.seconds)
    values = conclude(found)
    verdicts = judge(values)
    busy = others.cpus()
    tell(runs, found, values, verdicts)
    print(f"\nmeanwhile others used {busy:.2f} of {os.cpu_count()} CPUs; "
          f"load average {os.getloadavg()[0]:.1f}")
    if args.json:
        args.json.write_text(json.dumps(
            {"slow_ms": SLOW_MS, "seconds": args.seconds,
             "others_cpus": busy, "cpus": os.cpu_count(), "runs": found,
             "values": values, "bounds": verdicts}, indent=1) + "\n",
            encoding="utf-8")
    return 0 if all(verdict["holds"] for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
