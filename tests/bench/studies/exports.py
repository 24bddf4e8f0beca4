#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a CephFS client for each export gives: Share_Client = false.

    exports.py [--no-up] [--rounds N] [--seconds S] [--hold-us N]
               [--json FILE]

Two and four exports of one Path and one user, a load on each.  All share one
libcephfs client, so one client_lock, or each has its own; in turns.  The
counting library of client_lock.py watches one lock: how long a request waits
for it.  Rates are those of runs without it.

--hold-us: two cores never wait for one client_lock.  So libcephfs' answers come
from ceiling/ceiling.c, which holds a lock of each mount for so long, asleep: as
where cores are many and the lock is the limit.  Runs in the lab.
"""
from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from bench import Others, lab, nfsload, show, spread, stat
from ceiling import FILE as ANSWERS
from ceiling import LIBRARY as ANSWERING
from client_lock import FILE, LIBRARY, read_figures, since

Runs = dict[str, list[float]]

EXPORT = """EXPORT {{
    Export_Id = {number}; Path = /; Pseudo = /e{number}; Protocols = 3,4;
    Access_Type = RW; Squash = none; SecType = sys; Transports = TCP;
    Attr_Expiration_Time = 0;
    FSAL {{ Name = CEPH_ASYNC; Cmount_Path = "/"; }}
}}"""
FIRST = 40
COUNTS = (2, 4)
IN_FLIGHT = 64      # of all exports together
LOADS = {
    "GETATTR": ("--mix", "getattr=100"),
    "READ 4 KiB, missing": ("--mix", "read=100", "--block-size", "4k"),
    "WRITE 4 KiB, stable": ("--mix", "write=100", "--block-size", "4k"),
}
WAYS = {"shared": "true", "apart": "false"}


def start(way: str, wrapper: str) -> int:
    """Ganesha "a" with all exports; its pid."""
    lab("ganesha", "restart", "--fsal", "CEPH_ASYNC", "--wrapper", wrapper,
        "--block", f"Cache_Bytes = 0; Share_Client = {WAYS[way]};",
        "--export-block", "Attr_Expiration_Time = 0;",
        "--export", 'Cmount_Path = "/";', "--append", "\n".join(
            EXPORT.format(number=FIRST + index)
            for index in range(1, max(COUNTS))))
    for _ in range(2):
        load(1, ("--count", 500, "--mix", "getattr=100"))
    return stat()["ganesha"]["a"]["pid"]


def load(count: int, options: tuple[Any, ...]) -> float:
    """Requests a second, of all exports."""
    def one(index: int) -> float:
        # The lab's own export is the first one: its lock is the one that is
        # watched, as whoever started it asked there first.
        export = f"/e{FIRST + index}" if index else "/ceph"
        result = nfsload("--export", export, "--name",
                         f"export-{index}", "--file-size", "16M",
                         "--connections", 2, "--depth",
                         IN_FLIGHT // 2 // count, *options)
        return sum(each["per_s"] for each in result["ops"].values())

    with ThreadPoolExecutor(count) as pool:
        return sum(pool.map(one, range(count)))


def waited_us(before: dict[str, Any], after: dict[str, Any]) -> float:
    """For the lock that is watched, each time that it is taken."""
    did = since(before, after).values()
    taken = sum(one["taken"] for one in did)
    return sum(one["waited_ns"] for one in did) / 1000 / max(taken, 1)


def wrappers(hold_us: int) -> dict[str, str]:
    """What Ganesha runs in, for each thing that is measured."""
    if hold_us:
        return {"rate": f"env CEILING_FILE={ANSWERS} "
                f"CEILING_HOLD_US={hold_us} LD_PRELOAD={ANSWERING}"}
    return {"rate": "", "waited_us":
            f"env CLIENT_LOCK_FILE={FILE} LD_PRELOAD={LIBRARY}"}


def measure(args: argparse.Namespace) -> Runs:
    runs: Runs = {}
    for turn in range(args.rounds):
        for way in list(WAYS)[::-1 if turn % 2 else 1]:
            for what, wrapper in wrappers(args.hold_us).items():
                start(way, wrapper)
                for name, count in itertools.product(LOADS, COUNTS):
                    before = read_figures() if what == "waited_us" else {}
                    value = load(count, (*LOADS[name], "--seconds",
                                         args.seconds))
                    if before:
                        value = waited_us(before, read_figures())
                    runs.setdefault(f"{name}|{count}|{way}|{what}",
                                    []).append(value)
                    print(f"round {turn + 1}  {way:<7}{name:<22}{count} "
                          f"exports  {value:9.1f} {what}", flush=True)
    return runs


def tell(runs: Runs) -> None:
    print(f"\n{'':<22}{'exports':>8}{'apart / shared':>24}"
          f"{'waited for a lock, µs: shared':>32}{'apart':>8}")
    for name, count in itertools.product(LOADS, COUNTS):
        of = {(way, what): runs.get(f"{name}|{count}|{way}|{what}", [])
              for way in WAYS for what in ("rate", "waited_us")}
        ratio = spread([apart / shared for apart, shared in zip(
            of["apart", "rate"], of["shared", "rate"])])
        print(f"{name:<22}{count:>8}{show(ratio, 2):>24}" + "".join(
            f"{statistics.median(of[way, 'waited_us']):>{width}.2f}"
            for way, width in (("shared", 32), ("apart", 8))
            if of[way, "waited_us"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-up", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--hold-us", type=int, default=0, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    if not args.no_up:
        lab("up", "--fsal", "CEPH_ASYNC", "--export", "", "--block", "")
    others = Others()
    runs = measure(args)
    tell(runs)
    print(f"meanwhile others used {others.cpus():.2f} of {os.cpu_count()} "
          "CPUs")
    lab("ganesha", "restart", "--wrapper", "", "--block", "", "--append", "",
        "--export", "", "--export-block", "")
    if args.json:
        args.json.write_text(json.dumps(runs, indent=1) + "\n",
                             encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
