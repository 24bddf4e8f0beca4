#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The demonstration: files that survive a check, and two FSALs compared.

Runs in the lab container, from ci/demo.sh.
"""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SECONDS = 10
FSALS = {"CEPH": "b", "CEPH_ASYNC": "a"}
FILES = Path(__file__).with_name("demo-files.sh")


def title(text: str) -> None:
    print(f"\n=== {text}", flush=True)


def lab(*args: str) -> None:
    subprocess.run(["lab", *args], check=True, stdin=subprocess.DEVNULL)


def lab_output(*args: str) -> str:
    return subprocess.run(["lab", *args], check=True, text=True,
                          stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE).stdout


def journal_events() -> int:
    return json.loads(lab_output("stat"))["mds"]["journal_events"]


def ganesha_of(name: str) -> str:
    """What the running daemon's program says that it is."""
    pid = json.loads(lab_output("stat"))["ganesha"][name]["pid"]
    done = subprocess.run([f"/proc/{pid}/exe", "-v"], check=True, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return next(line for line in done.stdout.splitlines()
                if "Release" in line)


def measure(fsal: str, name: str) -> dict[str, float]:
    """One fio run in the kernel client; the MDS' journal before and after."""
    path = f"/mnt/nfs/demo-{fsal}"
    lab("client", "--name", name, "--", "dd", "if=/dev/zero", f"of={path}",
        "bs=1M", "count=64", "conv=fsync", "status=none")
    before = journal_events()
    report = json.loads(lab_output(
        "client", "--name", name, "--", "fio", "--name=demo",
        f"--filename={path}", "--size=64m", "--rw=randwrite", "--bs=4k",
        "--iodepth=32", "--ioengine=libaio", "--direct=1", "--time_based",
        f"--runtime={SECONDS}", "--output-format=json"))
    job = report["jobs"][0]
    if job["error"]:
        raise SystemExit(f"fio on {fsal}: error {job['error']}")
    done = job["write"]
    events = journal_events() - before
    return {"iops": done["iops"], "ms": done["clat_ns"]["mean"] / 1e6,
            "writes": done["total_ios"], "events": events,
            "per_write": events / done["total_ios"]}


def table(rows: dict[str, dict[str, float]]) -> None:
    print(f"{'FSAL':<12}{'IOPS':>8}{'latency ms':>12}{'writes':>9}"
          f"{'MDS journal events':>20}{'per write':>11}")
    for fsal, row in rows.items():
        print(f"{fsal:<12}{row['iops']:>8.0f}{row['ms']:>12.2f}"
              f"{row['writes']:>9}{row['events']:>20}"
              f"{row['per_write']:>11.4f}")
    faster = rows["CEPH_ASYNC"]["iops"] / rows["CEPH"]["iops"]
    print(f"\nCEPH_ASYNC: {faster:.2f} times the IOPS of CEPH")


def main() -> int:
    title("A Ceph cluster, and a Ganesha for each of the two FSALs")
    lab("up", "--fsal", "CEPH_ASYNC")
    lab("ganesha", "start", "--name", "b", "--fsal", "CEPH",
        "--port", "12049", "--pseudo", "/ceph-b")
    for fsal, name in FSALS.items():
        print(f"{fsal} is served by: {ganesha_of(name)}", flush=True)
    title("CEPH_ASYNC in Linux's NFS client: write, read back, verify")
    lab("client", "--", "bash", str(FILES), "write")
    print("--- a second mount, nothing cached:", flush=True)
    lab("client", "--", "bash", str(FILES), "verify")
    rows = {}
    for fsal, name in FSALS.items():
        title(f"{fsal}: stable 4 KiB random writes, 32 in flight, "
              f"{SECONDS} s, NFSv4.2")
        rows[fsal] = measure(fsal, name)
        print(f"{rows[fsal]['iops']:.0f} IOPS", flush=True)
    title("Side by side")
    table(rows)
    lab("down")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as err:
        sys.exit(f"demo: {' '.join(err.cmd)}: status {err.returncode}")
