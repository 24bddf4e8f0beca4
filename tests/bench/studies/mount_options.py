# SPDX-License-Identifier: LGPL-3.0-or-later
"""What mount options are worth: mount_options.py [ROUNDS], with the lab up.

Linux' own client, fio inside it, a boot for each measurement, the options of a
group taking turns; the medians, and each relative to its group's first.
"""
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from lab_program import client_command

SECONDS = 4
FILE = "/mnt/nfs/mount-options"
MAKE = (f"fio --name=make --filename={FILE} --size=64m --rw=write --bs=1m "
        "--end_fsync=1 --fallocate=none --output-format=json >/dev/null")
SMALL = "--bs=4k --ioengine=libaio"
STREAM = "--bs=1m --ioengine=libaio --iodepth=4 --direct=1"
BUFFERED = f"--rw=randread {SMALL} --iodepth=16"

# Group: what is done, then (name, NFS version, mount options, fio's).
GROUPS = {
    "4 KiB random reads, file in the client's cache": [
        ("buffered, actimeo=0", "3", "actimeo=0", BUFFERED),
        ("buffered, actimeo=0, 8 jobs", "3", "actimeo=0",
         BUFFERED + " --numjobs=8 --group_reporting"),
        ("buffered, default (acregmin=3)", "3", "", BUFFERED),
        ("buffered, actimeo=60", "3", "actimeo=60", BUFFERED),
        ("direct, actimeo=0", "3", "actimeo=0", BUFFERED + " --direct=1"),
    ],
    "4 KiB random reads, direct, 32 in flight": [
        ("nconnect=1", "4.2", "", f"--rw=randread {SMALL} --iodepth=32 "
         "--direct=1"),
        ("nconnect=4", "4.2", "nconnect=4", f"--rw=randread {SMALL} "
         "--iodepth=32 --direct=1"),
    ],
    "4 KiB random writes, 32 in flight": [
        ("direct", "4.2", "", f"--rw=randwrite {SMALL} --iodepth=32 "
         "--direct=1"),
        ("buffered, fsync at the end", "4.2", "", f"--rw=randwrite {SMALL} "
         "--iodepth=32 --end_fsync=1"),
        ("buffered, sync mount", "4.2", "sync", f"--rw=randwrite {SMALL} "
         "--iodepth=32"),
    ],
    "1 MiB sequential reads, direct": [
        ("rsize=1048576 (default)", "4.2", "", f"--rw=read {STREAM}"),
        ("rsize=65536", "4.2", "rsize=65536", f"--rw=read {STREAM}"),
    ],
    "1 MiB sequential writes, direct": [
        ("wsize=1048576 (default)", "4.2", "", f"--rw=write {STREAM}"),
        ("wsize=65536", "4.2", "wsize=65536", f"--rw=write {STREAM}"),
    ],
}


def measure(vers, options, job):
    """Requests of fio a second."""
    warm = f"cat {FILE} >/dev/null;" if "--direct" not in job else ""
    script = (f"{MAKE} && {warm} fio --name=job --filename={FILE} --size=64m "
              f"--fallocate=none --time_based --runtime={SECONDS} "
              f"--invalidate=0 {job} --output-format=json")
    more = ("--opts", options) if options else ()
    done = subprocess.run(
        client_command("sh", "-c", script, vers=vers, timeout=120,
                       options=more), cwd="/",
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=150, check=False)
    if done.returncode != 0:
        sys.exit(f"{vers} {options} {job}:\n{done.stdout}{done.stderr}")
    report = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    total = sum(report[way]["total_ios"] for way in ("read", "write"))
    longest = max(report[way]["runtime"] for way in ("read", "write"))
    return total * 1000 / (longest or SECONDS * 1000)


def main(rounds):
    seen = {}
    print(f"load average at the start: {os.getloadavg()}", flush=True)
    for _ in range(rounds):
        for group, members in GROUPS.items():
            for name, vers, options, job in members:
                seen.setdefault((group, name), []).append(
                    measure(vers, options, job))
    for group, members in GROUPS.items():
        first = statistics.median(seen[group, members[0][0]])
        for name, *_ in members:
            values = seen[group, name]
            middle = statistics.median(values)
            print(f"{group} | {name} | {middle:.0f} "
                  f"({min(values):.0f}-{max(values):.0f}) | "
                  f"{middle / first:.2f}")
    print(f"load average at the end: {os.getloadavg()}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
