#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Do the unit tests depend on how fast the machine is?

    delays.py [SEEDS] [--first N] [--only REGEX]

Runs all of them with delays.c in front, which holds up their threads for up to
0.3 s at random, 15 s a program at most: SEEDS (3) times, each with another
seed, from N on.  A test that fails here compares a time that passes by itself
with one of the machine.  A table comes last.
"""
import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).with_name("delays.c")
LIBRARY = "/tmp/delays.so"
BUILD = "/build/plugin"
BESIDE = 40             # they sleep most of the time
LIMIT_S = 280           # of a program


def run(seed, only):
    """The names of the cases that failed, and how long all took."""
    began = time.monotonic()
    done = subprocess.run(
        ["ctest", "--test-dir", BUILD, "--output-on-failure",
         "--no-tests=error", "--parallel", str(BESIDE), "--timeout",
         str(LIMIT_S), "-R", only],
        env={**os.environ, "LD_PRELOAD": LIBRARY, "DELAYS_SEED": str(seed)},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    failed = set(re.findall(r"^\[  FAILED  \] (\w+)$", done.stdout, re.M))
    failed |= set(re.findall(r"- (test_\w+) \(Timeout\)", done.stdout))
    if done.returncode:
        print(done.stdout, flush=True)
        failed = failed or {"ctest"}
    return failed, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seeds", type=int, nargs="?", default=3)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--only", default=".")
    args = parser.parse_args()
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror",
                    "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", LIBRARY, SOURCE,
                    "-ldl"], check=True)
    subprocess.run(["ninja", "-C", BUILD, "--quiet", "tests/unit/all"],
                   check=True)
    rows = []
    for seed in range(args.first, args.first + args.seeds):
        failed, seconds = run(seed, args.only)
        rows.append((seed, f"{seconds:.0f} s", ", ".join(sorted(failed))))
        print(f"seed {seed}: {seconds:.0f} s, {len(failed)} failed", flush=True)
    print("| seed | time | failed |\n|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
    bad = sum(bool(row[2]) for row in rows)
    print(f"{'FAILED' if bad else 'passed'}: {len(rows) - bad} seeds passed, "
          f"{bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
