#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""How long libcephfs' client_lock is held, and what one mount can do so.

    client_lock.py [--no-up] [--part table|contention|cpu] [--fsal FSAL]
                   [--rounds N] [--seconds S] [--json FILE]

client_lock is one mutex for all of a mount.  client_lock/client_lock.c
counts it inside of ganesha.nfsd; here are the loads, one kind of request at a
time, and the reckoning.  A mount can do 1 / held requests a second however
many cores there are; a gateway gets there with CPU / held cores.

table       each kind: taken, held, CPU, the ceiling; with and without the
            counting in turns, which shows what it costs
contention  Ganesha on one core and on two, 1 to 128 in flight: held, waited
cpu         Ganesha on one core, the load on another, no counting: CPU time
            for a stable 4 KiB write and for a cached 4 KiB read

Exit status 0 when the mutex was the right one: each callback of non-blocking
I/O came with it held.  Runs in the lab.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from bench import Others, cpu_now_s, lab, nfsload, spread, stat
from nfs import nfs3
from nfs.rpc import Connection
from nfs.xdr import number, opaque, wide

LIBRARY = "/usr/local/lib/libclient_lock.so"
FILE = Path("/tmp/client_lock.figures")
# client_lock/figures.h
HEAD = ("mutex", "learned_calls", "learned_votes", "clock_ns",
        "cpu_clock_ns", "callbacks", "callbacks_held", "callbacks_ns",
        "kinds")
FIELDS = ("taken", "contended", "waited_ns", "waits", "held_ns", "sampled",
          "sampled_cpu_ns")
BUCKETS = 40
HEAD_FORMAT, KIND_FORMAT = f"{len(HEAD)}Q", f"16s{len(FIELDS) + BUCKETS}Q"
WORKERS = "ganesha.nfsd"    # all other threads are libcephfs'

MISS = ("--block", "Cache_Bytes = 0;")
CACHE = ("--block", "Cache_Bytes = 268435456;")
ATTRS = ("--export-block", "Attr_Expiration_Time = 60;")    # the default
NO_ATTRS = ("--export-block", "Attr_Expiration_Time = 0;")
DIRECTORIES, FILES = 48, 100
IN_FLIGHT = 32
PORT = 2049


@dataclass(frozen=True)
class Case:
    """A load alone, on a Ganesha started with these options."""
    name: str
    options: tuple[str, ...]
    load: tuple[Any, ...] | Callable[[], int]
    mib: float = 0      # of data in a request
    # After a restart: neither Ganesha nor libcephfs knows the names.
    fresh: bool = False


def data(mix: str, size: str, *more: Any) -> tuple[Any, ...]:
    shape = (4, 32) if size == "4k" else (4, 4)
    return ("--mix", f"{mix}=100", "--block-size", size, "--connections",
            shape[0], "--depth", shape[1], *more)


# --- names: nfsload has none but CREATE

def pipelined(calls: Iterator[tuple[int, bytes]]) -> int:
    """Makes the calls, some in flight; how many."""
    connection = Connection(PORT)
    sent = answered = 0
    for procedure, arguments in calls:
        connection.send(procedure, arguments)
        sent += 1
        if sent - answered >= IN_FLIGHT:
            nfs3.check(connection.receive()[1])
            answered += 1
    while answered < sent:
        nfs3.check(connection.receive()[1])
        answered += 1
    connection.close()
    return sent


def directories() -> list[bytes]:
    """Their handles; they are made when they are missing."""
    root = nfs3.root_of("/ceph", PORT + 1)
    connection = Connection(PORT)
    found = []
    for index in range(DIRECTORIES):
        name = f"client-lock-{index}"
        try:
            found.append(nfs3.lookup(connection, root, name))
        except nfs3.Refused:
            found.append(nfs3.make_directory(connection, root, name))
    connection.close()
    return found


def each_name() -> Iterator[tuple[bytes, str]]:
    for index in range(FILES):
        for directory in directories_now:
            yield directory, f"f{index:05}"


directories_now: list[bytes] = []


def create() -> int:
    return pipelined((nfs3.CREATE, nfs3.create_arguments(*name))
                     for name in each_name())


def lookup() -> int:
    return pipelined((nfs3.LOOKUP, nfs3.named(*name))
                     for name in each_name())


def remove() -> int:
    return pipelined((nfs3.REMOVE, nfs3.named(*name))
                     for name in each_name())


def readdir() -> int:
    """Each directory as a whole, in one READDIR."""
    return pipelined((nfs3.READDIR, opaque(directory) + wide(0) + bytes(8) +
                      number(32768)) for directory in directories_now)


CASES = (
    Case("READ 4 KiB, missing", MISS + ATTRS, data("read", "4k"), 4 / 1024),
    Case("READ 1 MiB, missing", MISS + ATTRS, data("read", "1M"), 1),
    Case("WRITE 4 KiB, stable", MISS + ATTRS, data("write", "4k"), 4 / 1024),
    Case("WRITE 1 MiB, stable", MISS + ATTRS, data("write", "1M"), 1),
    Case("GETATTR", MISS + ATTRS, data("getattr", "4k")),
    Case("READ 4 KiB, cached", CACHE + ATTRS, data("read", "4k"), 4 / 1024),
    Case("READ 1 MiB, cached", CACHE + ATTRS, data("read", "1M"), 1),
    Case("GETATTR, no attribute cache", MISS + NO_ATTRS,
         data("getattr", "4k")),
    Case("CREATE", MISS + ATTRS, create),
    Case("LOOKUP, missing", MISS + ATTRS, lookup, fresh=True),
    Case(f"READDIR of {FILES} names, missing", MISS + ATTRS, readdir,
         fresh=True),
    Case("REMOVE", MISS + ATTRS, remove, fresh=True),
)


# --- the figures

def read_figures() -> dict[str, Any]:
    raw = FILE.read_bytes()
    found = dict(zip(HEAD, struct.unpack_from(HEAD_FORMAT, raw)))
    found["threads"] = {}
    for index in range(found["kinds"]):
        name, *values = struct.unpack_from(
            KIND_FORMAT, raw, struct.calcsize(HEAD_FORMAT) +
            index * struct.calcsize(KIND_FORMAT))
        found["threads"][name.rstrip(b"\0").decode()] = dict(
            zip(FIELDS, values), holds=values[len(FIELDS):])
    return found


def since(before: dict[str, Any], after: dict[str, Any]
          ) -> dict[str, dict[str, int]]:
    """What each kind of thread has done meanwhile."""
    none = dict.fromkeys(FIELDS, 0)
    return {name: {field: now[field] -
                   before["threads"].get(name, none)[field]
                   for field in FIELDS}
            for name, now in after["threads"].items()}


def cpu_held_us(did: dict[str, int], after: dict[str, Any]) -> float:
    """CPU time of all holds, by those that were sampled.

    Both clocks say too much: the one of the wall counts what preempts the
    holder, the CPU's is a system call, which is slower here than in the loop
    that told its cost.  So it is at most the lesser of both.
    """
    wall = did["held_ns"] - did["taken"] * after["clock_ns"]
    if not did["sampled"]:
        return max(0.0, wall / 1000)
    each = did["sampled_cpu_ns"] / did["sampled"] - after["cpu_clock_ns"]
    return max(0.0, min(wall, each * did["taken"]) / 1000)


def per_request(before: dict[str, Any], after: dict[str, Any],
                requests: int) -> dict[str, float]:
    did = since(before, after)
    cpu = {name: cpu_held_us(one, after) / requests
           for name, one in did.items()}

    def all_of(field: str) -> float:
        return sum(one[field] for one in did.values()) / requests

    return {
        "taken": all_of("taken"),
        "contended": all_of("contended"),
        "waited_us": all_of("waited_ns") / 1000,
        "held_workers_us": cpu.get(WORKERS, 0),
        "held_ceph_us": sum(cpu.values()) - cpu.get(WORKERS, 0),
        "held_us": sum(cpu.values()),
        # With what preempted the holder, less the counting itself.
        "held_clock_us": (all_of("held_ns") - all_of("taken") *
                          after["clock_ns"]) / 1000,
        "callbacks": (after["callbacks"] - before["callbacks"]) / requests,
        "callback_us": (after["callbacks_ns"] -
                        before["callbacks_ns"]) / 1000 / requests,
    }


# --- the loads

def start(args: argparse.Namespace, options: tuple[str, ...], counted: bool,
          cpus: int = 0) -> int:
    """Ganesha "a"; its pid."""
    wrapper = ["taskset", "-c", f"0-{cpus - 1}"] if cpus else []
    wrapper += ["env", *args.env]
    if counted:
        wrapper += [f"CLIENT_LOCK_FILE={FILE}", f"LD_PRELOAD={LIBRARY}"]
    # FSAL_CEPH has no read cache.
    known = [word for word in options if args.fsal != "CEPH" or
             word not in (*MISS, *CACHE)]
    lab("ganesha", "restart", "--fsal", args.fsal, "--wrapper",
        " ".join(wrapper), *known)
    directories_now[:] = directories()
    # Makes the file, and calls enough for the mutex to be known.
    nfsload("--name", "lock", "--count", 500)
    nfsload("--name", "lock", "--count", 500, "--mix", "getattr=100")
    if counted and not read_figures()["mutex"]:
        raise SystemExit("client_lock: the mutex was not found")
    return stat()["ganesha"]["a"]["pid"]


def run(case: Case, pid: int, counted: bool, seconds: float,
        more: tuple[Any, ...] = ()) -> dict[str, float]:
    # What is written to is not cached.
    file = "lock-read" if case.name.startswith("READ") else "lock"
    if "cached" in case.name:       # S3-FIFO believes what was read twice
        for _ in range(2):
            nfsload("--name", file, "--mix", "read=100", "--pattern",
                    "sequential", "--block-size", "64k", "--connections", 1,
                    "--depth", 8, "--count", 1024)
    others, began, cpu = Others(), time.monotonic(), cpu_now_s(pid)
    before = read_figures() if counted else {}
    if callable(case.load):
        requests = case.load()
        rate = requests / (time.monotonic() - began)
    else:
        result = nfsload("--name", file, *case.load, *more,
                         "--seconds", seconds)
        requests = result["sent"]
        (each,) = result["ops"].values()
        rate = each["per_s"]
    found = {"rate": rate, "requests": requests,
             "cpu_us": (cpu_now_s(pid) - cpu) * 1e6 / requests,
             "others_cpus": others.cpus()}
    if counted:
        found.update(per_request(before, read_figures(), requests))
    return found


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(one[key] for one in runs)
            for key in runs[0]}


def check_mutex() -> dict[str, Any]:
    """Of the Ganesha that was counted last: is it client_lock?"""
    found = read_figures()
    print(f"  mutex {found['mutex']:#x}: held longest in "
          f"{found['learned_votes']} of {found['learned_calls']} "
          f"ceph_ll_getattr(); held in {found['callbacks_held']} of "
          f"{found['callbacks']} callbacks", flush=True)
    return {key: found[key] for key in HEAD}


def is_right(mutex: dict[str, Any]) -> bool:
    """One callback may belong to the hold in which the mutex was learned.
    FSAL_CEPH has none: its calls block."""
    return mutex["callbacks"] - mutex["callbacks_held"] <= 1


# --- the parts

def table(args: argparse.Namespace) -> dict[str, Any]:
    cases = [case for case in CASES if args.only in case.name]
    runs: dict[str, dict[str, list[Any]]] = {
        case.name: {"counted": [], "plain": []} for case in cases}
    mutexes = []
    for turn in range(args.rounds):
        # Turned round every time: nobody is always the first.
        for how in ("counted", "plain")[::-1 if turn % 2 else 1]:
            options, pid = None, 0
            for case in cases:
                if case.fresh or case.options != options:
                    if pid and how == "counted" and not case.fresh:
                        mutexes.append(check_mutex())
                    options = case.options
                    pid = start(args, options, how == "counted")
                one = run(case, pid, how == "counted", args.seconds)
                runs[case.name][how].append(one)
                print(f"round {turn + 1}  {how:<8}{case.name:<36}"
                      f"{one['rate']:8.0f}/s  CPU {one['cpu_us']:7.1f} µs  "
                      f"held {one.get('held_us', 0):7.2f}  others "
                      f"{one['others_cpus']:.2f} CPUs", flush=True)
    tell_table(cases, runs)
    right = all(map(is_right, mutexes))
    return {"runs": runs, "mutexes": mutexes, "right": right}


def tell_table(cases: list[Case], runs: dict[str, Any]) -> None:
    print(f"\n{'':<34}taken  held µs: workers  libcephfs  all (clock)   "
          "callback  ceiling/s    MiB/s  CPU µs  cores  counting costs")
    for case in cases:
        held = medians(runs[case.name]["counted"])
        plain = medians(runs[case.name]["plain"])
        cost = statistics.median(
            one["cpu_us"] / other["cpu_us"] * 100 - 100 for one, other in
            zip(runs[case.name]["counted"], runs[case.name]["plain"]))
        each = f"{case.name:<34}{held['taken']:5.2f}"
        if held["held_us"] < 0.05:
            print(f"{each}  not by libcephfs, CPU {plain['cpu_us']:.0f} µs")
            continue
        ceiling = 1e6 / held["held_us"]
        print(f"{each}{held['held_workers_us']:18.2f}"
              f"{held['held_ceph_us']:11.2f}{held['held_us']:7.2f} "
              f"({held['held_clock_us']:.2f}){held['callback_us']:9.2f}"
              f"{ceiling:11.0f}{ceiling * case.mib:9.0f}"
              f"{plain['cpu_us']:8.0f}{plain['cpu_us'] / held['held_us']:7.1f}"
              f"{cost:9.0f} %")


def contention(args: argparse.Namespace) -> dict[str, Any]:
    """Rows of cores, case and depth."""
    shapes = ((1, 1), (4, 8), (4, 32))
    cases = [case for case in CASES
             if case.name in ("READ 4 KiB, missing", "WRITE 4 KiB, stable")]
    runs: dict[str, list[Any]] = {}
    for turn in range(args.rounds):
        for cpus in (1, 2)[::-1 if turn % 2 else 1]:
            pid = start(args, cases[0].options, True, cpus)
            for case in cases:
                for connections, depth in shapes:
                    shape = ("--connections", connections, "--depth", depth)
                    runs.setdefault(
                        f"{case.name}, {cpus} cores, "
                        f"{connections * depth} in flight", []).append(
                        run(case, pid, True, args.seconds, shape))
    mutex = check_mutex()
    for name, each in runs.items():
        one = medians(each)
        print(f"{name:<44}{one['rate']:7.0f}/s  held {one['held_us']:6.2f} "
              f"µs (clock {one['held_clock_us']:.2f})  waited "
              f"{one['waited_us']:8.2f} µs  contended "
              f"{one['contended'] / one['taken'] * 100:4.1f} %  others "
              f"{one['others_cpus']:.2f} CPUs")
    return {"runs": runs,
            "right": is_right(mutex)}


def cpu(args: argparse.Namespace) -> dict[str, Any]:
    """The load gets the last core, Ganesha the first."""
    found: dict[str, list[Any]] = {}
    cases = [case for case in CASES
             if case.name in ("READ 4 KiB, cached", "WRITE 4 KiB, stable")]
    everywhere = os.sched_getaffinity(0)
    for _ in range(args.rounds):
        for case in cases:
            pid = start(args, (*CACHE, *ATTRS), False, 1)
            os.sched_setaffinity(0, {max(everywhere)})
            found.setdefault(case.name, []).append(
                run(case, pid, False, args.seconds))
            os.sched_setaffinity(0, everywhere)
    for name, runs in found.items():
        values = spread([one["cpu_us"] for one in runs])
        rate = spread([one["rate"] for one in runs])
        print(f"{name:<24}CPU {values['median']:.1f} "
              f"({values['min']:.1f}–{values['max']:.1f}) µs, "
              f"{rate['median']:.0f}/s, others "
              f"{max(one['others_cpus'] for one in runs):.2f} CPUs at most")
    return {"runs": found, "right": True}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-up", action="store_true")
    parser.add_argument("--part", choices=("table", "contention", "cpu"),
                        default="table")
    parser.add_argument("--fsal", choices=("CEPH_ASYNC", "CEPH"),
                        default="CEPH_ASYNC")
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="of the table: cases with TEXT in their name")
    parser.add_argument("--env", action="append", default=[],
                        metavar="NAME=VALUE", help="of ganesha.nfsd")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    if not args.no_up:
        lab("up", "--fsal", args.fsal, "--export", "", "--block", "")
    others = Others()
    found = {"table": table, "contention": contention,
             "cpu": cpu}[args.part](args)
    found["others_cpus"] = others.cpus()
    print(f"meanwhile others used {found['others_cpus']:.2f} of "
          f"{os.cpu_count()} CPUs")
    lab("ganesha", "restart", "--wrapper", "", "--block", "",
        "--export-block", "")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n",
                             encoding="utf-8")
    return 0 if found["right"] else 1


if __name__ == "__main__":
    sys.exit(main())
