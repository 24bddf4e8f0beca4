#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""FSAL_CEPH beside CEPH_ASYNC when names are made, looked at and removed.

    metadata.py [--no-up] [--rounds N] [--files N] [--json FILE]

Two Ganeshas with their defaults on one CephFS take turns, so that what else
the machine does hits both.  NFSv3 is spoken by libnfs (nfsmeta), a process a
client; NFSv4.1, which libnfs does not speak, by a Linux client whose
attribute cache is off (actimeo=0), with as many processes.

Exit status 0 when the median of the rounds' ratios is at least --bound (1.0)
in every phase.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from bench import PHASES, Others, cpu_s, lab, show, spread, stat
from lab_program import ceph, client_command

# (NFS version, clients)
SHAPES = (("3", 1), ("3", 8), ("4.1", 1), ("4.1", 8))
OURS, THEIRS = "CEPH_ASYNC", "CEPH"
# Ganesha's own default; the lab's is 0, so that tests see each change.
DEFAULTS = ("--export-block", "Attr_Expiration_Time = 60;")
RUN_LIMIT_S = 600


def start_lab(more: list[str]) -> None:
    options = [*DEFAULTS, *more, "--export", "", "--block", ""]
    lab("up", "--fsal", OURS, *options)
    lab("ganesha", "start", "--name", "b", "--fsal", THEIRS, "--port", "12049",
        "--pseudo", "/ceph-b", *options)


def servers() -> dict[str, dict[str, Any]]:
    found = {about["fsal"]: {**about, "name": name}
             for name, about in stat()["ganesha"].items()
             if about["pid"]}
    if set(found) != {OURS, THEIRS}:
        raise SystemExit("metadata: one Ganesha of each FSAL is wanted, "
                         f"there are {list(found)}")
    return found


def measure(server: dict[str, Any], version: str, clients: int, files: int,
            name: str) -> dict[str, float]:
    if version == "3":
        url = (f"nfs://127.0.0.1{server['pseudo']}?version=3"
               f"&nfsport={server['port']}&mountport={server['port'] + 1}")
        command = ["nfsmeta", url]
    else:
        command = client_command(
            "nfsmeta", "/mnt/nfs", vers=version, timeout=RUN_LIMIT_S,
            options=("--name", server["name"], "--opts", "actimeo=0"))
    done = subprocess.run(
        [*command, name, str(clients), str(files)], check=False, text=True,
        cwd="/tmp", stdin=subprocess.DEVNULL, capture_output=True,
        timeout=RUN_LIMIT_S + 60)
    lines = [line for line in done.stdout.splitlines()
             if line.startswith("{")]
    if done.returncode or not lines:
        raise SystemExit(f"{' '.join(command)}: status {done.returncode}\n"
                         f"{done.stdout}{done.stderr}")
    return json.loads(lines[-1])["per_s"]


def mds_requests() -> int:
    """Requests of clients to the MDS: what the wall clock cannot blur."""
    server = json.loads(ceph("daemon", "mds.a", "perf", "dump"))["mds_server"]
    return server["handle_client_request"]


def rounds(count: int, files: int,
           shapes: list[tuple[str, int]]) -> list[dict[str, Any]]:
    where = servers()
    found = []
    for number in range(count):
        for version, clients in shapes:
            # Turned round every time: nobody is always the first.
            for fsal in (OURS, THEIRS)[::-1 if number % 2 else 1]:
                others = Others()
                cpu, requests = cpu_s(where[fsal]["pid"]), mds_requests()
                per_s = measure(where[fsal], version, clients, files,
                                f"meta-{os.getpid()}-{number}")
                cpu = cpu_s(where[fsal]["pid"]) - cpu
                requests = mds_requests() - requests
                one = {"fsal": fsal, "version": version, "clients": clients,
                       "round": number, "per_s": per_s,
                       "cpu_us_per_file": cpu * 1e6 / files,
                       "mds_requests_per_file": requests / files,
                       "others_cpus": others.cpus()}
                found.append(one)
                print(f"round {number + 1}  v{version:<4}{clients} "
                      f"{fsal:<11}" + "  ".join(
                          f"{phase} {per_s[phase]:.0f}" for phase in PHASES) +
                      f"  Ganesha {one['cpu_us_per_file']:.0f} us a file"
                      f"  MDS {one['mds_requests_per_file']:.2f} requests"
                      f"  others {one['others_cpus']:.2f} CPUs", flush=True)
    return found


def costs(found: list[dict[str, Any]],
          shapes: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """What a file costs, all phases together."""
    return [{"version": version, "clients": clients, "what": what,
             **{fsal: spread([one[what] for one in found
                              if (one["fsal"], one["version"],
                                  one["clients"]) ==
                              (fsal, version, clients)])
                for fsal in (OURS, THEIRS)}}
            for version, clients in shapes
            for what in ("cpu_us_per_file", "mds_requests_per_file")]


def compare(found: list[dict[str, Any]],
            shapes: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """Each round's own ratio, for every phase."""
    def values(fsal: str, version: str, clients: int,
               phase: str) -> list[float]:
        return [one["per_s"][phase] for one in found
                if (one["fsal"], one["version"], one["clients"]) ==
                (fsal, version, clients)]
    lines = []
    for version, clients in shapes:
        for phase in PHASES:
            ours = values(OURS, version, clients, phase)
            theirs = values(THEIRS, version, clients, phase)
            lines.append({
                "version": version, "clients": clients, "phase": phase,
                OURS: spread(ours), THEIRS: spread(theirs),
                "ratio": spread([a / b for a, b in zip(ours, theirs)])})
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-up", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=10000)
    parser.add_argument("--shape", action="append", metavar="VERSION:CLIENTS",
                        help="e.g. 3:8; all of them if not given")
    parser.add_argument("--bound", type=float, default=1.0)
    parser.add_argument("--export-block", action="append", default=[],
                        metavar="'KEY = VALUE;'", help="for both")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    shapes = list(SHAPES)
    if args.shape:
        shapes = [(version, int(clients)) for version, clients in
                  (one.split(":") for one in args.shape)]
    if not args.no_up:
        more = [word for block in args.export_block
                for word in ("--export-block", block)]
        start_lab(more)
    others = Others()
    found = rounds(args.rounds, args.files, shapes)
    lines = compare(found, shapes)
    busy = others.cpus()
    print(f"\n{args.files} files, {args.rounds} rounds, operations a second: "
          "median (min–max)")
    print(f"{'NFS':<5}{'clients':<9}{'phase':<10}{OURS:>24}{THEIRS:>24}"
          f"{'ratio':>20}")
    for line in lines:
        print(f"{line['version']:<5}{line['clients']:<9}{line['phase']:<10}"
              f"{show(line[OURS]):>24}{show(line[THEIRS]):>24}"
              f"{show(line['ratio'], 2):>20}" +
              ("" if line["ratio"]["median"] >= args.bound else "  MISSED"))
    print()
    cost = costs(found, shapes)
    for line in cost:
        print(f"{line['version']:<5}{line['clients']:<9}{line['what']:<24}"
              f"{show(line[OURS], 2):>26}{show(line[THEIRS], 2):>26}")
    print(f"meanwhile others used {busy:.2f} of {os.cpu_count()} CPUs")
    if args.json:
        args.json.write_text(json.dumps(
            {"files": args.files, "rounds": args.rounds, "others_cpus": busy,
             "runs": found, "compared": lines, "costs": cost}, indent=1) + "\n",
            encoding="utf-8")
    return 0 if all(line["ratio"]["median"] >= args.bound
                    for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
