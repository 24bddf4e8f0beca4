#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a second gateway costs and gives: one alone, then two at once.

    gateways.py [--no-up] [--rounds N] [--files N] [--json FILE]

Names are made, looked at, renamed and removed over NFSv3 (nfsmeta), in a
folder of its own for each gateway.  On one machine two gateways do not make
twice as much.  What counts is the CPU time of the MDS and of the gateways for
a file, with one and with two: as long as it stays the same, N gateways on
machines of their own give N times as much, up to what one MDS can do.

Then each gateway looks at the same files: what their capabilities cost the
MDS in memory.
"""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from bench import PHASES, Others, cpu_s, lab, show, spread, stat
from lab_program import ceph

CLIENTS = 4
GATEWAYS = {"a": ("2049", "/ceph"), "b": ("12049", "/ceph-b")}
RUN_LIMIT_S = 600
MDS_PID = Path("/var/lib/casync-lab/ceph/run/mds.a.pid")


def start_lab() -> None:
    for name, (port, pseudo) in GATEWAYS.items():
        lab("up", "--name", name, "--fsal", "CEPH_ASYNC", "--port", port,
            "--pseudo", pseudo, "--export", "", "--block", "")


def url_of(name: str) -> str:
    port, pseudo = GATEWAYS[name]
    return (f"nfs://127.0.0.1{pseudo}?version=3&nfsport={port}"
            f"&mountport={int(port) + 1}")


def nfsmeta(name: str, folder: str, files: int) -> subprocess.Popen:
    return subprocess.Popen(
        ["nfsmeta", url_of(name), folder, str(CLIENTS), str(files)],
        text=True, cwd="/tmp", stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finished(process: subprocess.Popen) -> dict[str, float]:
    out, err = process.communicate(timeout=RUN_LIMIT_S)
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if process.returncode or not lines:
        raise SystemExit(f"nfsmeta: status {process.returncode}\n{out}{err}")
    return json.loads(lines[-1])["per_s"]


def counters() -> dict[str, float]:
    """CPU seconds of MDS and gateways, requests that the MDS has had."""
    server = json.loads(ceph("daemon", "mds.a", "perf", "dump"))["mds_server"]
    gateways = stat()["ganesha"]
    return {"mds_s": cpu_s(int(MDS_PID.read_text())),
            "gateways_s": sum(cpu_s(gateways[name]["pid"])
                              for name in GATEWAYS),
            "requests": server["handle_client_request"]}


def run(names: str, files: int, folder: str) -> dict[str, Any]:
    """All of NAMES at once, each with its own FILES."""
    others, before, began = Others(), counters(), time.monotonic()
    each = [finished(process) for process in
            [nfsmeta(name, f"{folder}-{name}", files) for name in names]]
    elapsed, after = time.monotonic() - began, counters()
    used = {key: after[key] - before[key] for key in after}
    count = files * len(names)
    return {"gateways": len(names), "files_per_s": count / elapsed,
            "per_s": {phase: sum(one[phase] for one in each)
                      for phase in PHASES},
            "mds_us_per_file": used["mds_s"] * 1e6 / count,
            "gateway_us_per_file": used["gateways_s"] * 1e6 / count,
            "requests_per_file": used["requests"] / count,
            "mds_us_per_request": used["mds_s"] * 1e6 / used["requests"],
            "others_cpus": others.cpus()}


def memory() -> dict[str, int]:
    """Of the MDS: bytes of its cache, inodes, capabilities."""
    cache = json.loads(ceph("tell", "mds.cephfs:0", "cache", "status"))
    perf = json.loads(ceph("daemon", "mds.a", "perf", "dump"))
    return {"bytes": cache["pool"]["bytes"],
            "inodes": perf["mds"]["inodes"], "caps": perf["mds"]["caps"]}


def look(name: str, folder: str) -> None:
    """Every name of the folder, with its attributes."""
    done = subprocess.run(
        ["nfs-ls", "-R", f"nfs://127.0.0.1{GATEWAYS[name][1]}/{folder}"
         f"?version=3&nfsport={GATEWAYS[name][0]}"
         f"&mountport={int(GATEWAYS[name][0]) + 1}"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, timeout=RUN_LIMIT_S, check=False)
    if done.returncode:
        raise SystemExit(f"nfs-ls: {done.stderr}")


def capabilities(files: int) -> dict[str, float]:
    """What a file that a gateway knows takes of the MDS' memory."""
    import cephfs
    mount = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
    mount.mount()
    folder = f"looked-at-{time.time_ns()}"
    mount.mkdir(f"/{folder}".encode(), 0o777)
    for number in range(files):
        mount.close(mount.open(f"/{folder}/{number}".encode(), "w", 0o666))
    mount.shutdown()
    time.sleep(2)
    known = [memory()]
    for name in GATEWAYS:
        look(name, folder)
        time.sleep(2)
        known.append(memory())
    caps = [now["caps"] - before["caps"]
            for before, now in pairwise(known)]
    grown = [now["bytes"] - before["bytes"]
             for before, now in pairwise(known)]
    return {"files": files, "caps_per_file": sum(caps) / files / len(caps),
            "bytes_per_cap": sum(grown) / sum(caps),
            "bytes_per_inode": known[0]["bytes"] / known[0]["inodes"]}


def tell(found: list[dict[str, Any]], caps: dict[str, float]) -> None:
    print(f"\n{'':<24}{'one gateway':>22}{'two':>22}")
    for key in ("files_per_s", "mds_us_per_file", "mds_us_per_request",
                "requests_per_file", "gateway_us_per_file"):
        columns = [spread([one[key] for one in found
                           if one["gateways"] == count]) for count in (1, 2)]
        digits = 2 if key == "requests_per_file" else 0
        print(f"{key:<24}{show(columns[0], digits):>22}"
              f"{show(columns[1], digits):>22}")
    print(f"\n{caps['files']} files that both gateways have looked at: "
          f"{caps['caps_per_file']:.2f} capabilities a file and gateway, "
          f"{caps['bytes_per_cap']:.0f} bytes of the MDS each; an inode in "
          f"its cache takes {caps['bytes_per_inode']:.0f} bytes")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-up", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=4000)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    if not args.no_up:
        start_lab()
    found = []
    for number in range(args.rounds):
        for names in ("a", "ab") if number % 2 else ("ab", "a"):
            one = run(names, args.files, f"gateways-{number}-{len(names)}")
            found.append(one)
            print(f"round {number + 1}  {one['gateways']} gateways  " +
                  "  ".join(f"{phase} {one['per_s'][phase]:.0f}"
                            for phase in PHASES) +
                  f"  MDS {one['mds_us_per_file']:.0f} us a file, others "
                  f"{one['others_cpus']:.2f} CPUs", flush=True)
    caps = capabilities(args.files)
    tell(found, caps)
    if args.json:
        args.json.write_text(json.dumps(
            {"runs": found, "capabilities": caps}, indent=1) + "\n",
            encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
