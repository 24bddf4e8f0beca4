# SPDX-License-Identifier: LGPL-3.0-or-later
"""The POSIX cases with CEPH_ASYNC and with controls, side by side, in the
lab container:

    python3 tests/integration/posix_comparison.py [-k WORD] [--versions 3 4.2]
        [--sides CEPH CEPH_ASYNC KERNEL LOCAL] [--table FILE]

CEPH is FSAL_CEPH in the same Ganesha and on the same cluster; KERNEL is
Linux' own CephFS client without Ganesha, LOCAL a local file system of the
same client kernel: what fails there is a mistake of the case.

Says what failed where and writes the table of docs/comparison.md.  Status 1
where CEPH_ASYNC fails unexpectedly, or a case fails that
expected_differences.py does not know.
"""
import argparse
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).with_name("client").resolve()))

import all_cases  # noqa: F401  (registers the cases)
from batch import Batch
from expected_differences import EXPECTED, verdict
from lab import Lab
from registry import CASES, VERSIONS

FSALS = ("CEPH", "CEPH_ASYNC")
ANY = "any"             # the version of a side that has no NFS
NO_NFS = {"KERNEL": {"top": "/mnt/ceph", "options": ("--fs", "ceph")},
          "LOCAL": {"top": "/dev/shm"}}


def say(line):
    print(line, file=sys.stderr, flush=True)


def batches_of(lab, side, versions, names):
    """What is to run on that side, which is set up for it."""
    if side in FSALS:
        lab.ganesha("restart", "--fsal", side, "--export", "", "--block", "")
        return [Batch(lab, version, [name for name in names if version in
                                     CASES[name].versions])
                for version in versions]
    # Ganesha would share the kernel's capabilities.  A local file system needs
    # it only for the client's mount.
    lab.ganesha("stop" if side == "KERNEL" else "restart")
    return [Batch(lab, "4.2", names, **NO_NFS[side])]


def run(lab, side, versions, names):
    """{(name, version): None or why} of one side."""
    outcomes = {}
    for batch in batches_of(lab, side, versions, names):
        began = time.monotonic()
        mine = list(batch.left)
        version = batch.version if side in FSALS else ANY
        for name in mine:
            outcomes[name, version] = batch.outcome(name)
        failed = [name for name in mine if outcomes[name, version]]
        say(f"{side} {version}: {len(mine)} cases, {len(failed)} failed, "
            f"{time.monotonic() - began:.0f} s")
        for name in failed:
            say(f"    {name}: {last_line(outcomes[name, version])}")
        slow = sorted(batch.seconds, key=batch.seconds.get)[-3:]
        say("    slowest: " + ", ".join(
            f"{name} {batch.seconds[name]} s" for name in slow))
    return outcomes


def last_line(why):
    lines = [line for line in why.splitlines() if line.strip()]
    found = [line for line in lines if "Error" in line] or lines
    return found[-1].strip()[:150]


def versions_of(outcomes, name):
    """Those that failed: "3 4.2", "all", "-" where it did not, "" where it
    did not run."""
    ran = [version for case, version in outcomes if case == name]
    failed = [version for version in ran if outcomes[name, version]]
    if not ran:
        return ""
    if not failed:
        return "passes"
    if ran == [ANY]:
        return "fails"
    return "fails" if failed == ran else "fails: " + " ".join(failed)


def table(results, names):
    """One row a case that fails with one of the FSALs; how many rows are
    not as judged."""
    sides = list(results)
    lines = ["| case | " + " | ".join(sides) + " | right | why |",
             "|" + "---|" * (len(sides) + 3)]
    wrong = 0
    for name in names:
        row = {side: versions_of(results[side], name) for side in sides}
        if not any(row.get(side, "").startswith("fails") for side in FSALS):
            continue
        known = verdict(name)
        ours = row.get("CEPH_ASYNC", "").startswith("fails")
        if not known or ours != (known.right in EXPECTED):
            wrong += 1
        lines.append(
            f"| `{name}` | " + " | ".join(row.values()) +
            (f" | {known.right} | {known.why} |" if known else " | ? | |"))
    return lines, wrong


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n",
                                                               maxsplit=1)[0])
    parser.add_argument("-k", default="", metavar="WORD",
                        help="only cases whose name has it")
    parser.add_argument("--versions", nargs="+", default=VERSIONS,
                        choices=VERSIONS)
    parser.add_argument("--sides", nargs="+", default=(*FSALS, *NO_NFS),
                        choices=(*FSALS, *NO_NFS))
    parser.add_argument("--table", type=Path, metavar="FILE")
    return parser.parse_args()


def main():
    args = options()
    names = [name for name, one in CASES.items() if args.k in name and
             one.module.startswith("case_posix")]
    lab = Lab()
    lab.up()
    try:
        results = {side: run(lab, side, args.versions, names)
                   for side in args.sides}
    finally:
        lab.ganesha("stop", check=False)
    lines, wrong = table(results, names)
    if args.table:
        args.table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    say(f"{len(names)} cases; {wrong} rows that are not as judged")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
