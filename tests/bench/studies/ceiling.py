#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""How fast could any FSAL be behind this Ganesha?

    ceiling.py [--no-up] [--rounds N] [--seconds S] [--only TEXT]
               [--systems TEXT] [--json FILE]

Ganesha has the first core and the load the last one.  One kind of request at
a time, with 1, 32 and 128 in flight, on these systems in turns:

CEPH_ASYNC, CEPH  as they are
... answering     the same FSAL on a libcephfs that answers its calls for data
                  and attributes at once, from nothing: ceiling/ceiling.c
MEM               Ganesha's FSAL without a store.  It keeps a file's size: a
                  READ is a memset, a WRITE is dropped

Of the CPU time of a request
Ganesha's   is what MEM needs.  FSAL_MEM's own part, which is small, is in it
the FSAL's  is "answering" less MEM.  No answer comes late there: what an FSAL
            does to wait for one, or to go on afterwards, is not in it
libcephfs'  is the FSAL as it is less "answering".  Besides libcephfs' calls
            and threads it has that waiting, and the change of threads
A cached READ, and a GETATTR that MDCACHE answers, do not ask libcephfs.

Exit status 0 when the library answered each request that it should, and the
OSD saw none of them.  Runs in the lab.
"""
from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from bench import Others, cpu_now_s, lab, nfsload, stat

LIBRARY = "/usr/local/lib/libceiling.so"
FILE = Path("/tmp/ceiling.figures")
FIGURES = ("reads", "writes", "fsyncs", "getattrs", "passed")    # figures.h
REAL = ("CEPH_ASYNC", "CEPH")
ANSWERING = tuple(f"{fsal} answering" for fsal in REAL)
SYSTEMS = (*(name for pair in zip(REAL, ANSWERING) for name in pair), "MEM")
SHAPES = ((1, 1), (4, 8), (4, 32))      # connections, in flight on each
FILES = ("ceiling-read", "ceiling-write")   # what is written is not cached
PLAIN = ("--fsal", "CEPH_ASYNC", "--wrapper", "", "--export", "", "--block",
         "", "--export-block", "")

Runs = dict[str, dict[str, list[dict[str, float]]]]     # row, system, round


@dataclass(frozen=True)
class Case:
    """A request, and the options of the Ganesha that gets it."""
    name: str
    mix: str
    options: tuple[int, int] = (0, 60)  # Cache_Bytes, Attr_Expiration_Time
    systems: tuple[str, ...] = SYSTEMS
    floor: str = ""             # whose MEM it has; default its own


CASES = (
    Case("WRITE 4 KiB, stable", "write"),
    Case("READ 4 KiB, missing", "read"),
    Case("GETATTR by MDCACHE", "getattr", systems=(*REAL, "MEM")),
    Case("GETATTR", "getattr", (0, 0)),
    Case("READ 4 KiB, cached", "read", (256 << 20, 60), REAL[:1],
         "READ 4 KiB, missing"),
)


# --- the loads

def figures() -> dict[str, int]:
    return dict(zip(FIGURES, struct.unpack("5Q", FILE.read_bytes())))


def start(system: str, case: Case) -> dict[str, Any]:
    """Ganesha "a"; the lab's counters then.  Its files are there, and full."""
    fsal, (cache_bytes, attributes_s) = system.split()[0], case.options
    wrapper = "taskset -c 0"
    if system in ANSWERING:
        wrapper += f" env CEILING_FILE={FILE} LD_PRELOAD={LIBRARY}"
    lab("ganesha", "restart", "--fsal", fsal, "--wrapper", wrapper, "--block",
        f"Cache_Bytes = {cache_bytes};" if fsal == "CEPH_ASYNC" else "",
        "--export-block", f"Attr_Expiration_Time = {attributes_s};")
    fill()
    if cache_bytes:     # S3-FIFO believes what was read twice
        for _ in range(2):
            nfsload("--name", FILES[0], "--mix", "read=100", "--pattern",
                    "sequential", "--block-size", "64k", "--connections", 1,
                    "--depth", 8, "--count", 1024)
    return stat()


def fill() -> None:     # nfsload does, where they are not
    for name in FILES:
        nfsload("--name", name, "--mix", "getattr=100", "--count", 100)


def run(system: str, case: Case, pid: int, shape: tuple[int, int],
        seconds: float) -> dict[str, float]:
    before = figures() if system in ANSWERING else {}
    others, cpu = Others(), cpu_now_s(pid)
    result = nfsload(
        "--name", FILES[case.mix == "write"], "--mix", f"{case.mix}=100",
        "--connections", shape[0], "--depth", shape[1],
        "--seconds", seconds, "--warmup", seconds / 2)
    requests = result["sent"]
    (each,) = result["ops"].values()
    found = {"rate": each["per_s"], "requests": requests,
             "cpu_us": (cpu_now_s(pid) - cpu) * 1e6 / requests,
             "others_cpus": others.cpus()}
    for key, figure in (("answered", f"{case.mix}s"), ("passed", "passed")):
        if before:
            found[key] = (figures()[figure] - before[figure]) / requests
    return found


def turn_of(system: str, cases: list[Case], seconds: float, runs: Runs
            ) -> float:
    """One Ganesha, all cases that it is for; OSD operations a request."""
    before = start(system, cases[0])
    pid, requests = before["ganesha"]["a"]["pid"], 0.0
    for case in cases:
        for shape in SHAPES:
            one = run(system, case, pid, shape, seconds)
            requests += one["requests"]
            row = f"{case.name}, {shape[0] * shape[1]}"
            runs.setdefault(row, {}).setdefault(system, []).append(one)
            print(f"{system:<22}{row:<26}" + cells(EACH, r=[one]) + "  others "
                  f"{one['others_cpus']:.2f} CPUs", flush=True)
    return (stat()["osd"]["total"]["op"] -
            before["osd"]["total"]["op"]) / requests


def measure(args: argparse.Namespace) -> dict[str, Any]:
    runs: Runs = {}
    ops: dict[str, list[float]] = {}
    systems = [name for name in SYSTEMS if args.systems in name]
    cases = [case for case in CASES if args.only in case.name]
    for turn in range(args.rounds):
        first = turn % len(systems)     # nobody is always the first
        for options in dict.fromkeys(case.options for case in cases):
            for system in systems[first:] + systems[:first]:
                mine = [case for case in cases if system in case.systems and
                        case.options == options]
                if mine:
                    ops.setdefault(system, []).append(
                        turn_of(system, mine, args.seconds, runs))
    return {"runs": runs, "osd_ops": ops}


def is_right(found: dict[str, Any]) -> bool:
    """A few calls are of the open; a gathered WRITE has none of its own."""
    return all(
        one["answered"] > 0.9 and one["passed"] < 0.02
        for systems in found["runs"].values() for name in ANSWERING
        for one in systems.get(name, [])) and all(
        ops < 0.02 for name in ANSWERING
        for ops in found["osd_ops"].get(name, []))


# --- the tables

Columns = tuple[tuple[int, int, str, Callable[..., float]], ...]
# Width, digits, of what: the FSAL as it is (real), answering, MEM.
EACH: Columns = (
    (11, 0, "r", lambda r: r["rate"]),
    (7, 1, "r", lambda r: r["cpu_us"]),
    (5, 0, "r", lambda r: r["rate"] * r["cpu_us"] / 1e4))
PARTS: Columns = (
    (11, 1, "m", lambda m: m["cpu_us"]),
    (12, 1, "am", lambda a, m: a["cpu_us"] - m["cpu_us"]),
    (12, 1, "ra", lambda r, a: r["cpu_us"] - a["cpu_us"]),
    (7, 0, "ra", lambda r, a: r["rate"] / (a["rate"] or math.nan) * 100),
    (7, 0, "ra", lambda r, a: a["cpu_us"] / r["cpu_us"] * 100),
    (7, 0, "rm", lambda r, m: r["rate"] / (m["rate"] or math.nan) * 100),
    (7, 0, "rm", lambda r, m: m["cpu_us"] / r["cpu_us"] * 100))


def cells(columns: Columns, **rounds: list[dict[str, float]]) -> str:
    """Medians of what each round gives, where all were measured."""
    text = ""
    for width, digits, which, how in columns:
        values = [how(*each) for each in zip(*(rounds[of] for of in which))]
        text += f"{statistics.median(values):{width}.{digits}f}" \
            if values else "–".rjust(width)
    return text


def tell(runs: Runs) -> None:
    print("\nrequests a second, Ganesha's CPU µs for each, % of its core\n"
          f"{'':<26}" + "".join(f"{name:>23}" for name in SYSTEMS))
    for row, systems in runs.items():
        print(f"{row:<26}" + "".join(
            cells(EACH, r=systems.get(name, [])) for name in SYSTEMS))
    print(f"\nCPU µs; % of answering and of MEM, by rate and by CPU\n{'':<40}"
          "Ganesha's  the FSAL's  libcephfs'  of answering        of MEM")
    for row, systems in runs.items():
        name, _, flight = row.rpartition(", ")
        (case,) = (case for case in CASES if case.name == name)
        floor = runs.get(f"{case.floor or name}, {flight}", {})
        for fsal, quick in zip(REAL, ANSWERING):
            if fsal in systems:
                print(f"{row:<26}{fsal:<12}" + cells(
                    PARTS, r=systems[fsal], m=floor.get("MEM", []), a=systems
                    .get(quick if quick in case.systems else fsal, [])))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-up", action="store_true")
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="cases with TEXT in their name")
    parser.add_argument("--systems", default="", metavar="TEXT",
                        help="systems with TEXT in their name")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    others = Others()
    lab(*(("ganesha", "restart") if args.no_up else ("up",)), *PLAIN)
    fill()
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(everywhere)})      # the load's
    found = measure(args)
    os.sched_setaffinity(0, everywhere)
    tell(found["runs"])
    found["others_cpus"], found["right"] = others.cpus(), is_right(found)
    print(f"meanwhile others used {found['others_cpus']:.2f} of "
          f"{os.cpu_count()} CPUs; the library answered "
          f"{'all' if found['right'] else 'NOT all'} that it had to")
    lab("ganesha", "restart", *PLAIN)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n",
                             encoding="utf-8")
    return 0 if found["right"] else 1


if __name__ == "__main__":
    sys.exit(main())
