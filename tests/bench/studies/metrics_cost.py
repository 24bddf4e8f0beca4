#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What counting costs: the plugin with and without its metrics.

    metrics_cost.py [--rounds N] [--seconds S] [--bound PERCENT] [--quiet CPUS]
                    [--json FILE]

4 KiB stable writes and reads over NFSv3 on a memstore OSD, 128 in flight.
The two builds take turns in every round, Ganesha's endpoint is on in both and
is scraped each second.  A round beside which others used more than QUIET CPUs
says nothing: its noise is ten times what is to be measured.  Exit status 0
when the median of the other rounds' ratios of CPU time per request is below
the bound, 2 when too few are left to tell.  Beside it stands what counting
takes in a loop (metrics_ns).  Runs in the lab.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from bench import Others, cpu_s, lab, nfsload, show, spread, stat

SOURCE = Path(__file__).resolve().parents[3]
LIBRARY = "libfsalceph_async.so"
FLAGS = {"on": "", "off": "-DCASYNC_NO_METRICS"}
CASES = {"write": "write=100", "read": "read=100"}
ENOUGH = 8      # pairs
ENDPOINT = "http://127.0.0.1:9587/metrics"


def build(variant: str) -> Path:
    """The folder of a plugin with or without metrics."""
    where = Path(f"/build/metrics-{variant}")
    for cmd in (["cmake", "-S", SOURCE, "-B", where, "-G", "Ninja",
                 "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                 f"-DCMAKE_C_FLAGS={FLAGS[variant]}"],
                ["ninja", "-C", where, "fsalceph_async", "metrics_ns"]):
        subprocess.run(list(map(str, cmd)), check=True, timeout=600,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return next(where.rglob(LIBRARY)).parent


def in_a_loop() -> float:
    """µs of CPU that counting a WRITE takes, and nothing else."""
    program = next(Path("/build/metrics-on").rglob("metrics_ns/metrics_ns"))
    done = subprocess.run([program, "2"], check=True, text=True, timeout=60,
                          stdout=subprocess.PIPE)
    return float(done.stdout) / 1000


def scrape() -> str:
    with urllib.request.urlopen(ENDPOINT, timeout=10) as answer:
        return answer.read().decode()


class Scraper:
    """Prometheus, once a second, and more often than it does."""

    def __enter__(self) -> None:
        self.end = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def __exit__(self, *_: Any) -> None:
        self.end.set()
        self.thread.join()

    def _run(self) -> None:
        while not self.end.wait(1):
            scrape()


def start(folder: Path, variant: str) -> int:
    """Ganesha "a" with that plugin; does it count, or not?"""
    lab("ganesha", "restart", "--core",
        f'Plugins_Dir = "{folder}"; Enable_Metrics = true;')
    nfsload("--name", "cost", "--count", 2000)      # warm
    with Scraper():
        threading.Event().wait(1.2)
    counts = 'ceph_async__latency_us_count{' in scrape() and any(
        line.startswith("ceph_async__requests_total") and
        float(line.split()[-1]) >= 2000 for line in scrape().splitlines())
    if counts != (variant == "on"):
        raise SystemExit(f"metrics_cost: {folder} counts: {counts}")
    return stat()["ganesha"]["a"]["pid"]


def measure(pid: int, case: str, seconds: float, seed: int) -> dict[str, float]:
    others, before = Others(), cpu_s(pid)
    with Scraper():
        result = nfsload("--name", "cost", "--mix", CASES[case],
                         "--connections", 4, "--depth", 32, "--seconds",
                         seconds, "--seed", seed)
    # All that Ganesha did, for all that was sent.
    return {"cpu_us": (cpu_s(pid) - before) * 1e6 / result["sent"],
            "iops": result["ops"][case]["per_s"],
            "others_cpus": others.cpus()}


def rounds(folders: dict[str, Path], count: int,
           seconds: float) -> dict[str, dict[str, list[Any]]]:
    found: dict[str, dict[str, list[Any]]] = {
        case: {variant: [] for variant in folders} for case in CASES}
    for number in range(count):
        # Turned round every time: nobody is always the first.
        for variant in list(folders)[::-1 if number % 2 else 1]:
            pid = start(folders[variant], variant)
            for case in CASES:
                one = measure(pid, case, seconds, number + 1)
                found[case][variant].append(one)
                print(f"round {number + 1}  {variant:<4}{case:<6}"
                      f"{one['cpu_us']:6.2f} µs of CPU a request  "
                      f"{one['iops']:6.0f} IOPS  others "
                      f"{one['others_cpus']:.2f} CPUs", flush=True)
    return found


def ratios(found: dict[str, dict[str, list[Any]]],
           quiet: float) -> list[float]:
    """Percent that the metrics cost, of each pair that nobody disturbed."""
    return [(on["cpu_us"] / off["cpu_us"] - 1) * 100
            for each in found.values()
            for on, off in zip(each["on"], each["off"])
            if max(on["others_cpus"], off["others_cpus"]) <= quiet]


def judge(percent: list[float], bound: float) -> int:
    if len(percent) < ENOUGH:
        print(f"{len(percent)} undisturbed pairs are too few to tell")
        return 2
    cost = spread(percent)
    holds = cost["median"] < bound
    print(f"{'holds ' if holds else 'MISSED'}  counting costs "
          f"{show(cost, 2)} % of Ganesha's CPU time ({len(percent)} pairs), "
          f"wanted < {bound} %")
    return 0 if holds else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--bound", type=float, default=1.0, metavar="PERCENT")
    parser.add_argument("--quiet", type=float, default=0.3, metavar="CPUS")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    folders = {variant: build(variant) for variant in FLAGS}
    lab("up", "--fsal", "CEPH_ASYNC", "--export", "", "--block", "")
    nfsload("--name", "cost", "--count", 1)     # makes its file
    others = Others()
    found = rounds(folders, args.rounds, args.seconds)
    lab("ganesha", "restart", "--core", "")
    percent = ratios(found, args.quiet)
    print()
    for case in CASES:
        for variant in FLAGS:
            print(f"{case:<6}{variant:<4}µs of CPU a request "
                  + show(spread([one["cpu_us"] for one in
                                 found[case][variant]]), 2))
    loop_us = in_a_loop()
    least_us = min(one["cpu_us"] for case in CASES
                   for one in found[case]["off"])
    print(f"in a loop, counting a WRITE takes {loop_us:.3f} µs: at most "
          f"{loop_us / least_us * 100:.2f} %")
    print(f"meanwhile others used {others.cpus():.2f} of {os.cpu_count()} "
          "CPUs")
    status = judge(percent, args.bound)
    if args.json:
        args.json.write_text(json.dumps(
            {"cost_percent": percent, "loop_us": loop_us, "runs": found},
            indent=1) + "\n",
            encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
