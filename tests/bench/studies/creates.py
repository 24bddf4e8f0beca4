#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""How long a CREATE takes at one rate: CEPH_ASYNC beside FSAL_CEPH.

    creates.py [--no-up] [--rounds N] [--seconds S] [--rate PER_S ...]

NFSv3 CREATEs are sent at a given rate, whether the ones before are answered or
not; their time counts from the moment at which they were due.  Runs in the
lab.
"""
from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[up]) for up in (1, 2)]

from bench import Others, lab
from nfs import nfs3, rpc
from nfs.xdr import Reader

FSALS = ("CEPH_ASYNC", "CEPH")


def paced(rate: int, seconds: float) -> list[float]:
    """Milliseconds of each CREATE."""
    connection = rpc.Concurrent(2049)
    folder = nfs3.make_directory(connection, nfs3.root_of("/ceph", 2050),
                                 f"creates-{time.time_ns()}")
    took: list[float] = []

    def created(due: float, reply: Reader) -> None:
        took.append((time.monotonic() - due) * 1000)
        nfs3.check(reply, nfs3.CREATE)

    count = int(rate * seconds)
    began = time.monotonic()
    for number in range(count):
        due = began + number / rate
        time.sleep(max(0.0, due - time.monotonic()))
        connection.send(nfs3.CREATE,
                        nfs3.create_arguments(folder, f"f{number}"),
                        lambda reply, due=due: created(due, reply))
    end = time.monotonic() + 30
    while len(took) < count and time.monotonic() < end:
        time.sleep(0.05)
    connection.close()
    if len(took) < count:
        sys.exit(f"creates.py: {count - len(took)} CREATEs of {count} were "
                 "not answered")
    return took


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-up", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rate", type=int, nargs="+",
                        default=[100, 300, 600])
    args = parser.parse_args()
    if not args.no_up:
        lab("up", "--fsal", "CEPH_ASYNC")
    others = Others()
    p99: dict[tuple[str, int], list[float]] = {}
    p50: dict[tuple[str, int], list[float]] = {}
    for turn in range(args.rounds):
        for fsal in FSALS[::-1 if turn % 2 else 1]:
            lab("ganesha", "restart", "--fsal", fsal)
            paced(100, 1)
            for rate in args.rate:
                took = sorted(paced(rate, args.seconds))
                p99.setdefault((fsal, rate), []).append(
                    took[len(took) * 99 // 100])
                p50.setdefault((fsal, rate), []).append(
                    statistics.median(took))
    for rate in args.rate:
        ratios = [ours / theirs for ours, theirs in zip(
            p99["CEPH_ASYNC", rate], p99["CEPH", rate])]
        print(f"{rate} CREATEs a second: " + ", ".join(
            f"{fsal} p50 {statistics.median(p50[fsal, rate]):.2f} ms, p99 "
            f"{statistics.median(p99[fsal, rate]):.2f} ms" for fsal in FSALS)
            + f"; p99 ratio {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f}-{max(ratios):.2f}), {args.rounds} rounds")
    print(f"others used {others.cpus():.2f} CPUs")


if __name__ == "__main__":
    main()
