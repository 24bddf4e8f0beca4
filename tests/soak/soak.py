#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Mixed load in the kernel client, and what must be true after it.

    soak.py [--fsal CEPH_ASYNC] [--requests N [--mix MIX]] [--no-up] MINUTES

With --requests, N READs, WRITEs and GETATTRs come from user space beside the
kernel client, half over NFSv3 and half over NFSv4.0; the run lasts until they
are answered, too.  Its memory may grow by 5 % then.  MIX is nfsload's: with
fewer WRITEs, which cost the OSD most, more requests fit into an hour.

Exit status 0 when every check holds; each failed one is a line on stderr.
Short enough a run (2 minutes) checks the same things, its memory limit
only being a coarser one.
"""
from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

# For the programs beside this file too: they import it first.
sys.path.append(str(Path(__file__).resolve().parents[1]))

import lab_program
from lab_program import LOGS, Log, client_command, lab

LOAD = Path(__file__).with_name("load.sh")
LOG = LOGS / "ganesha-a.log"
OUT = LOGS / "ganesha-a.out"
NUMBER = 77             # of the second export
SAMPLE_S = 15
# Growth that a run may show between its middle and its end: the allocator
# and Ganesha's caches breathe by this much with the load unchanged.
GROWTH_KIB = 24 * 1024
GROWTH_PART = 0.08
GROWTH_PART_OF_REQUESTS = 0.05
MIX = "read=50,write=25,getattr=25"
# Full soon, so that what grows later is something else.
SMALL_CACHE = "Cache_Bytes = 4194304;"
BAD = re.compile(r":(FATAL|CRIT|MAJ)\b|[Aa]ssert|FAILED ceph_assert|"
                 r"\*\*\* Caught signal|stack smashing|double free")
# What every start of Ganesha says in a container without Kerberos.
KNOWN = re.compile(r"gss_principal_init|PR_SET_IO_FLUSHER")


def second_export(place: str, fsal: str, more: str = "") -> str:
    """An export of the folder PLACE, there; FSAL are its keys in FSAL { }."""
    return (f'EXPORT {{ Export_Id = {NUMBER}; Path = "{place}"; '
            f'Pseudo = "{place}"; Protocols = 3,4; Access_Type = RW; '
            "Squash = none; SecType = sys; Transports = TCP; "
            f"{more} FSAL {{ {fsal} }} }}\n")


def mount_options(vers: str) -> str:
    """For mount -o, of Ganesha "a"."""
    return f"vers={vers},proto=tcp,port=2049" + (
        ",mountport=2050,mountproto=tcp,nolock" if vers == "3" else "")


def stacks() -> None:
    """Where Ganesha is, into the folder of logs."""
    lab("ganesha", "stacks", check=False)


def stat() -> dict:
    return lab_program.stat()["ganesha"]["a"]


def requests(count: int, minutes: int, mix: str) -> list[subprocess.Popen]:
    """COUNT requests from user space: nfsload, once for each version."""
    return [subprocess.Popen(
        ["nfsload", "--nfs", str(nfs), "--name", f"soak{nfs}", "--mix", mix,
         "--files", "8", "--file-size", "16M", "--connections", "2",
         "--depth", "8", "--count", str(count // 2), "--seconds",
         str(minutes * 60 + 500)], stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL) for nfs in (3, 4)]


def watch(minutes: int, loads: list[subprocess.Popen]) -> list[dict]:
    """Sample Ganesha until the loads have ended."""
    samples: list[dict] = []
    begin = time.monotonic()
    limit = minutes * 60 + 600
    while True:
        try:
            for load in loads:
                load.wait(SAMPLE_S)
            return samples
        except subprocess.TimeoutExpired:
            pass
        now = time.monotonic() - begin
        if now > limit:
            for load in loads:
                load.terminate()
            raise SystemExit(f"soak: the load did not end in {limit} s")
        samples.append({"at": now, **stat()})
        last = samples[-1]
        print(f"soak: {now / 60:5.1f} min  rss {last['rss_kib'] / 1024:.0f} "
              f"MiB  threads {last['threads']}  fds {last['fds']}  "
              f"cpu {last['cpu_s']:.0f} s  in flight {last['in_flight']}",
              flush=True)


def growth(samples: list[dict], key: str) -> tuple[float, float]:
    """Means of the second and of the last quarter: the first is warm-up."""
    values = [s[key] for s in samples if s.get(key) is not None]
    quarter = max(1, len(values) // 4)
    early = values[quarter:2 * quarter] or values[:1]
    late = values[-quarter:]
    return sum(early) / len(early), sum(late) / len(late)


def quiet_in_flight() -> dict | None:
    """What is still in flight once the client is gone, waited for 30 s."""
    for _ in range(30):
        left = stat()["in_flight"]
        if left is not None and not any(left.values()):
            return None
        time.sleep(1)
    return left


def logs_from_now() -> list[Log]:
    return [Log(LOG), Log(OUT)]


def bad_lines(logs: list[Log]) -> list[str]:
    return [line for log in logs for line in log.matching(BAD)
            if not KNOWN.search(line)]


def close(name: str, what: str, complaints: list[str]) -> int:
    """Says how it ended; the exit status."""
    for complaint in complaints:
        print(f"{name}: FAILED: {complaint}", file=sys.stderr)
    print(f"{name}: {what}: {'FAILED' if complaints else 'passed'}")
    return 1 if complaints else 0


def checks(first: dict, samples: list[dict], loads: list[subprocess.Popen],
           logs: list[Log], least: float, part: float) -> list[str]:
    """Every complaint; none is a pass.  The memory may grow by PART of it, or
    by LEAST KiB."""
    complaints = [f"{load.args[0]} failed with status {load.returncode}"
                  for load in loads if load.returncode]
    last = stat()
    if last["pid"] != first["pid"]:
        complaints.append(f"ganesha.nfsd was pid {first['pid']} and is "
                          f"{last['pid']}")
    for line in bad_lines(logs)[:20]:
        complaints.append(f"log: {line}")
    left = quiet_in_flight() if last["pid"] else None
    if left:
        complaints.append(f"still in flight after the load: {left}")
    if len(samples) >= 4:
        early, late = growth(samples, "rss_kib")
        print(f"soak: rss {early / 1024:.0f} MiB in the second quarter, "
              f"{late / 1024:.0f} MiB in the last")
        if late - early > max(least, part * early):
            complaints.append(f"Ganesha's memory grew from {early:.0f} to "
                              f"{late:.0f} KiB")
        early, late = growth(samples, "fds")
        if late > early + 200:
            complaints.append(f"its open files grew from {early:.0f} to "
                              f"{late:.0f}")
    return complaints


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fsal", default="CEPH_ASYNC")
    parser.add_argument("--vers", default="4.2")
    parser.add_argument("--requests", type=int, default=0)
    parser.add_argument("--mix", default=MIX)
    parser.add_argument("--no-up", action="store_true",
                        help="use the lab that runs")
    parser.add_argument("minutes", type=int)
    args = parser.parse_args()
    if not args.no_up:
        lab("up", "--fsal", args.fsal, loud=True)
        if args.fsal == "CEPH_ASYNC":
            lab("ganesha", "restart", "--block", SMALL_CACHE)
    logs = logs_from_now()
    first = stat()
    loads = [subprocess.Popen(
        client_command("bash", LOAD, args.minutes * 60, vers=args.vers,
                       timeout=args.minutes * 60 + 500),
        stdin=subprocess.DEVNULL)]
    limits: tuple[float, float] = GROWTH_KIB, GROWTH_PART
    beside = ""
    if args.requests:
        loads += requests(args.requests, args.minutes, args.mix)
        limits = 0, GROWTH_PART_OF_REQUESTS
        beside = f" and {args.requests:,} requests"
    samples = watch(args.minutes, loads)
    complaints = checks(first, samples, loads, logs, *limits)
    return close("soak", f"{args.minutes} min of mixed load{beside} on "
                 f"{args.fsal}", complaints)


if __name__ == "__main__":
    sys.exit(main())
